"""A fit of all records from factors of their leaves, and what it is on one leaf.

Formal guarantee: what a task returns is a triangular factor, a count, a sum or an extreme of at most a leaf
of records; and of a record that decides nearly all of its own fit, its place, and what it finds without
itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from hedgerow.arrays import Array, Confidential, PerRecord
from hedgerow.mechanism.fit import Fit, checked_sample
from hedgerow.models.base import Health, Influence, Mergeable, Model, Parameters
from hedgerow.models.chain import Chain, ChainInfluence, join_samples, zero_missing
from hedgerow.models.conjugate import Left, Places
from hedgerow.models.exact import Drawn, Regression
from hedgerow.progress import count_fit
from hedgerow.randomness import Key
from hedgerow.tables.design import Design

Row = tuple[int, int, float]  # the leaf of a record, its place there, and the share that is taken away
Batch = tuple[int, int]  # rows that are left out of a fit together: of which link, and on which occasion
Requests = dict[Batch, list[Row]]


@dataclass(frozen=True, repr=False)
class LinkSum(Confidential):
    """What some records say of one link."""

    said: Array  # a triangular factor, or counts of classes by cell
    power: float  # Σ over records that have a value of the link
    records: int  # that have one

    def join(self, other: "LinkSum", model: Mergeable) -> "LinkSum":
        """What those records say together with later ones."""
        merged = model.merge_sums(self.said, other.said)
        return LinkSum(merged, self.power + other.power, self.records + other.records)


@dataclass(frozen=True, repr=False)
class Merged(Confidential):
    """A fit of all records: what one leaf needs of it. Small."""

    posteriors: tuple[Any, ...]  # of each link
    worth: tuple[tuple[float, int], ...]  # of each link: Σ of powers, and records that have a value
    records: int
    parameters: Parameters
    health: Health
    left: tuple[Mapping[Row, Left], ...] = ()  # by link, the neighbours that were fitted anew

    def on(self, model: Model, design: Design, power: PerRecord, leaf: int, requests: "RefitRequests") -> Fit:
        """The fit on the records of one leaf."""
        links, models = design.links, mergeable_links(model)

        def influence() -> Influence:
            parts = tuple(
                own.influence(link, zero_missing(link, power), posterior, requests.of_link(self, place, leaf))
                for place, (own, link, posterior) in enumerate(
                    zip(models, links, self.posteriors, strict=True)
                )
            )
            return ChainInfluence(parts, design) if isinstance(model, Chain) else parts[0]

        return Fit(model, design, power, self.parameters, self.health, influence)

    def redrawn(self, model: Model, *, draws: int, key: Key) -> "Merged":
        """Other draws of the same posterior."""
        return draw_merged(model, self.posteriors, self.worth, self.records, draws=draws, key=key)


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


def models_of(model: Model) -> tuple[Model, ...]:
    """The model of each link."""
    return model.models if isinstance(model, Chain) else (model,)


def mergeable_links(model: Model) -> tuple[Mergeable, ...]:
    """The model of each link; `check_streamed` saw to it that all are such."""
    return tuple(each for each in models_of(model) if isinstance(each, Mergeable))


def regressions(model: Model) -> tuple[Regression, ...]:
    """The model of each link, where all are regressions."""
    return tuple(each for each in models_of(model) if isinstance(each, Regression))


def sum_links(model: Model, design: Design, power: PerRecord, *, first: bool) -> list[LinkSum]:
    """What one leaf says of each link."""
    links = zip(mergeable_links(model), design.links, strict=True)
    return [sum_link(own, link, zero_missing(link, power), first=first) for own, link in links]


def sum_link(model: Mergeable, design: Design, power: PerRecord, *, first: bool) -> LinkSum:
    """What one leaf says of a link at these powers, 0 where it has no value."""
    records = design.records if design.present is None else int(design.present.sum())
    return LinkSum(model.sum_leaf(design, power, first=first), float(power.sum()), records)


def merge_leaves(models: Sequence[Mergeable], parts: Iterable[Sequence[LinkSum]]) -> list[LinkSum]:
    """What all records say of each link, from what leaves say in order: no more than two are held."""
    return reduce(
        lambda merged, said: [a.join(b, own) for own, a, b in zip(models, merged, said, strict=True)],
        map(list, parts),
    )


def fit_merged(model: Model, sums: Sequence[LinkSum], records: int, *, draws: int, key: Key) -> Merged:
    """Draws of the posterior that all records make."""
    made = zip(mergeable_links(model), sums, strict=True)
    posteriors = tuple(own.posterior_of(each.said, each.power) for own, each in made)
    worth = tuple((each.power, each.records) for each in sums)
    merged = draw_merged(model, posteriors, worth, records, draws=draws, key=key)
    count_fit()
    return merged


def draw_merged(
    model: Model,
    posteriors: tuple[Any, ...],
    worth: tuple[tuple[float, int], ...],
    records: int,
    *,
    draws: int,
    key: Key,
) -> Merged:
    """Draws of posteriors, with the keys that they have in memory."""
    links = list(zip(mergeable_links(model), posteriors, strict=True))
    if isinstance(model, Chain):
        samples = [
            own.draw(each, draws=draws, key=key.child(place)) for place, (own, each) in enumerate(links)
        ]
        sample = checked_sample(model, join_samples(samples))
    else:
        ((own, posterior),) = links
        sample = checked_sample(model, own.draw(posterior, draws=draws, key=key))
        if isinstance(own, Regression):
            sample = replace(sample, parameters=Drawn(sample.parameters, records))
    return Merged(posteriors, worth, records, sample.parameters, sample.health)
