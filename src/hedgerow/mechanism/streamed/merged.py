"""A fit of all records from factors of their leaves, and what it is on one leaf.

Formal guarantee: what a task returns is a triangular factor, a sum or an extreme of at most a leaf of
records; and of a record that decides nearly all of its own fit, its place, and what it finds without itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hedgerow.arrays import Array, Confidential, PerRecord
from hedgerow.mechanism.fit import Fit, checked_sample
from hedgerow.models.base import Health, Influence, Model, Parameters
from hedgerow.models.chain import Chain, ChainInfluence, join_samples
from hedgerow.models.conjugate import Left, Places, Posterior
from hedgerow.models.exact import Drawn, Regression
from hedgerow.numerics.leaves import add_in_order
from hedgerow.numerics.triangular import merge_factors
from hedgerow.progress import count_fit
from hedgerow.randomness import Key
from hedgerow.tables.design import Design

Row = tuple[int, int, float]  # the leaf of a record, its place there, and the share that is taken away
Batch = tuple[int, int]  # rows that are left out of a fit together: of which link, and on which occasion
Requests = dict[Batch, list[Row]]


@dataclass(frozen=True, repr=False)
class Merged(Confidential):
    """A fit of all records: what one leaf needs of it. Small."""

    posteriors: tuple[Posterior, ...]  # of each link
    power: float  # Σ over records
    records: int
    parameters: Parameters
    health: Health
    left: tuple[Mapping[Row, Left], ...] = ()  # by link, the neighbours that were fitted anew

    def on(self, model: Model, design: Design, power: PerRecord, leaf: int, requests: "RefitRequests") -> Fit:
        """The fit on the records of one leaf."""
        links, models = design.links, regressions(model)

        def influence() -> Influence:
            parts = tuple(
                own.influence(link, power, posterior, requests.of_link(self, place, leaf))
                for place, (own, link, posterior) in enumerate(
                    zip(models, links, self.posteriors, strict=True)
                )
            )
            return ChainInfluence(parts, design) if isinstance(model, Chain) else parts[0]

        return Fit(model, design, power, self.parameters, self.health, influence)

    def redrawn(self, model: Model, *, draws: int, key: Key) -> "Merged":
        """Other draws of the same posterior."""
        return draw_merged(model, self.posteriors, self.power, self.records, draws=draws, key=key)


@dataclass(repr=False)
class RefitRequests(Confidential):
    """Which records of a leaf need a fit without them that is not there yet.

    Taking a record away from a fit that it decides nearly alone leaves too few digits. That fit is made anew,
    of all other records, which takes a pass over the leaves. All records of one batch are left out together,
    and the others put back, so that none may be in it twice.
    """

    rows: Requests = field(default_factory=dict)
    occasion: int = 0  # 0: the standard's neighbours; 1: those with the outcome withheld

    def of_link(self, merged: Merged, place: int, leaf: int) -> Callable[[PerRecord, Places], list[Left]]:
        """What `RegressionInfluence.refit` does on a leaf: looks a fit up, or requests it."""
        known = merged.left[place] if merged.left else {}

        def refit(share: PerRecord, rows: Places) -> list[Left]:
            fits = []
            for row in map(int, rows):
                name = leaf, row, float(share[row])
                if name not in known:
                    self.rows.setdefault((place, self.occasion), []).append(name)
                fits.append(known.get(name, (np.inf, np.inf, np.inf)))
            return fits

        return refit


def regressions(model: Model) -> tuple[Regression, ...]:
    """The model of each link."""
    models = model.models if isinstance(model, Chain) else (model,)
    return tuple(each for each in models if isinstance(each, Regression))  # `check_streamed` saw to it


def leaf_factors(model: Model, design: Design, power: PerRecord, *, first: bool) -> list[Array]:
    """The factor of one leaf, by link."""
    links = zip(regressions(model), design.links, strict=True)
    return [own.leaf_factor(link, power, first=first) for own, link in links]


def merge_leaves(parts: Iterable[tuple[Sequence[Array], float]]) -> tuple[list[Array], float]:
    """The factors of all records by link, and the sum of their powers, from those of leaves in order."""
    sums: list[float] = []
    merged: list[Array] | None = None
    for factors, power in parts:  # one after the other: no more than two leaves' are held
        sums.append(power)
        merged = (
            list(factors)
            if merged is None
            else [merge_factors(pair) for pair in zip(merged, factors, strict=True)]
        )
    return merged or [], add_in_order(sums)


def fit_merged(
    model: Model, factors: Sequence[Array], power: float, records: int, *, draws: int, key: Key
) -> Merged:
    """Draws of the posterior that factors of all records make."""
    made = zip(regressions(model), factors, strict=True)
    posteriors = tuple(own.posterior_of(factor, power) for own, factor in made)
    merged = draw_merged(model, posteriors, power, records, draws=draws, key=key)
    count_fit()
    return merged


def draw_merged(
    model: Model, posteriors: tuple[Posterior, ...], power: float, records: int, *, draws: int, key: Key
) -> Merged:
    """Draws of posteriors, with the keys that they have in memory."""
    links = list(zip(regressions(model), posteriors, strict=True))
    if isinstance(model, Chain):
        samples = [
            own.draw(each, draws=draws, key=key.child(place)) for place, (own, each) in enumerate(links)
        ]
        sample = checked_sample(model, join_samples(samples))
    else:
        ((own, posterior),) = links
        sample = checked_sample(model, own.draw(posterior, draws=draws, key=key))
        sample = replace(sample, parameters=Drawn(sample.parameters, records))
    return Merged(posteriors, power, records, sample.parameters, sample.health)
