"""How many tables of a chain a weight has refused, found before any protected value is looked at.

As for one column (`planned`), a record's share of each link's residual sum of squares has a known law where
the model holds, and these shares are independent. What is new is that D_o adds over links before the least ε
is taken, and that a link may read protected columns: a record that lies far out in one column then has a
larger leverage in the next. Both are simulated, from public columns and priors alone: the protected columns
of one table of the model, whose predictors stand for those that are not to be looked at, and for some records
many more values of their own, far ones among them by importance sampling. Where a link reads earlier columns
on the scale of their own regressions, leverages do not depend on coefficients and σ; otherwise the prior's σ
is taken for them, and more or fewer tables may be refused than planned.

Formal guarantee: what is read is `Design.blank` and the table's public columns. Random numbers are the same
each time, so that the weight is a function of public things.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from hedgerow.arrays import Array, PerRecord
from hedgerow.errors import DataError, SettingError
from hedgerow.models.chain import Chain
from hedgerow.models.exact import Regression
from hedgerow.numerics.renyi import Neighbours
from hedgerow.numerics.triangular import leverages, weighted_factor
from hedgerow.privacy.settings import Settings
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table

_PLACES = 9  # records that stand for all, evenly by rank of their leverages and as many by size
_CELLS = 200_000  # simulated values
_FEWEST, _MOST = 300, 2000  # for each of these records
_FAR, _BOTH = 3.0, 2.5  # standard deviations of one value that is far out, and of two
_CLEARLY = 20.0  # times the chance allowed, from which it need not be known well


@dataclass(frozen=True, repr=False)
class _Link:
    """What is planned with of one link: nothing protected."""

    model: Regression
    gram: Array  # triangular factor of the predictors of a simulated table
    prior: Array  # the prior's rows, as many as coefficients
    own: Array  # predictors of the chosen records in that table
    rows: Array  # predictors of their simulated values, a row each; empty: their own
    share: Array  # of the residual sum of squares, by simulated value
    left: float  # degrees of freedom

    def neighbours(self, weight: float, records: int) -> Neighbours:
        """The fit without the record beside each of its simulated values, at equal weights."""
        factor = weighted_factor(
            np.sqrt(weight) * self.gram, np.zeros(len(self.gram)), start=np.pad(self.prior, (0, 1))
        )[:-1, :-1]
        inverse = solve_triangular(factor, np.eye(len(factor)))
        here = self.own @ inverse
        size = np.einsum("ik,ik->i", here, here)
        without = np.maximum(1 - weight * size, np.finfo(np.float64).tiny)
        if self.rows.size:
            moved = (self.rows @ inverse).reshape(len(here), -1, len(factor))
            across = np.einsum("imk,ik->im", moved, here)
            spread = np.einsum("imk,imk->im", moved, moved) + weight * across**2 / without[:, None]
        else:
            spread = np.broadcast_to((size / without)[:, None], (len(here), len(self.share)))
        share = np.broadcast_to(self.share, spread.shape).ravel()
        spread = spread.ravel()
        squared = share * self.left * (1 + weight * spread)
        shape = self.model.prior.shape + weight * (records - 1) / 2
        rate = weight * self.left / 2 * (1 - share)
        every = np.ones_like(spread)
        return Neighbours(weight * every, spread, squared, shape * every, rate)


@dataclass(frozen=True, repr=False)
class Plan:
    """What the chance of a refusal is computed from, for any weight."""

    settings: Settings
    links: tuple[_Link, ...]
    chosen: Array  # leverages of the records that stand for all, in order
    every: PerRecord  # leverages of all records
    likely: Array  # importance weights of the simulated values

    def chance_of_refusal(self, weight: float, refused: float) -> float:
        """About this share of the model's tables, or less, has a record that is priced above the target."""
        settings, records = self.settings, len(self.every)
        pairs = Neighbours.join([link.neighbours(weight, records) for link in self.links])
        told: dict[str, Any] = {"delta": settings.delta, "copies": settings.copies}
        above = pairs.perhaps_above(settings.epsilon or 0.0, **told)
        found = self._add_up(above)
        if found > _CLEARLY * refused or not above.any():
            return found
        rows = np.flatnonzero(above)
        above[rows] = ~(pairs.of(rows).by_record(**told) <= (settings.epsilon or 0.0))
        return self._add_up(above)

    def _add_up(self, above: Any) -> float:
        by_place = (above.reshape(len(self.chosen), -1) * self.likely).mean(axis=1)
        return float(np.interp(self.every, self.chosen, np.minimum(by_place, 1.0)).sum())


def plan_links(settings: Settings, design: Design, table: Table) -> Plan:
    """Simulate what the plan needs of the protected columns."""
    chain = settings.model
    if not isinstance(chain, Chain) or settings.target is None:
        raise SettingError("A plan for several columns needs a target and several columns.")
    blank = design.blank()
    outcomes = [link.outcome for link in blank.links]
    public = [name for name in blank.predictors if name not in outcomes]
    key = Key.from_seed(0)  # the same each time: the weight is not to follow chance
    records, count = blank.records, len(blank.links)
    plain = key.child("table").stream().normal((records, count))
    matrices = _simulate(chain, blank, table, public, np.arange(records), plain)
    parts = [_read(model, link, matrix) for model, link, matrix in matrices]
    every = np.sum([leverage for *_, leverage in parts], axis=0)
    order = np.argsort(every, kind="stable")
    by_rank = order[np.linspace(0, records - 1, _PLACES).astype(int)]
    sizes = np.linspace(every.min(), every.max(), _PLACES)
    by_size = order[np.minimum(np.searchsorted(every[order], sizes), records - 1)]
    places = np.unique(np.concatenate([by_rank, by_size]))
    places = places[np.unique(every[places], return_index=True)[1]]  # in the order of their leverages
    many = int(np.clip(_CELLS // (len(places) * count), _FEWEST, _MOST))
    normal, likely = _draw_far(many, count, key.child("far"))
    repeated = np.repeat(places, many)
    again = _simulate(chain, blank, table, public, repeated, np.tile(normal, (len(places), 1)))
    links = []
    for place, ((model, link, matrix), (*_, rows), (gram, prior, _)) in enumerate(
        zip(matrices, again, parts, strict=True)
    ):
        left = float(max(records - matrix.shape[1], 2))
        rest = 2 * key.child("rest").child(place).stream().gamma((left - 1) / 2, many)
        square = normal[:, place] ** 2
        moved = rows if link.secret else np.empty((0, matrix.shape[1]))
        links.append(_Link(model, gram, prior, matrix[places], moved, square / (square + rest), left))
    return Plan(settings, tuple(links), every[places], every, likely)


def _simulate(
    chain: Chain, blank: Design, table: Table, public: list[str], rows: NDArray[np.intp], errors: Array
) -> list[tuple[Regression, Design, Array]]:
    """Each link with its matrix in a table of these rows, whose protected columns have these errors."""
    made, found = table.select(public).take(rows) if public else None, []
    for place, (model, link, _) in enumerate(chain.links(blank)):
        if not isinstance(model, Regression):
            raise SettingError(
                "PlannedWeights, which preset='recommended' takes, need models with a closed form (normal, "
                f"lognormal), and '{link.outcome}' has the {model.name} model. Give weights of your own and "
                "their bound (weights=, --weights)."
            )
        here = link
        if link.secret and made is not None:
            try:
                here = link.encode(made)
            except DataError:
                raise SettingError(
                    f"PlannedWeights: the formula of '{link.outcome}' takes a transform of protected columns "
                    "that is not finite for every value their families have. Use families of positive values "
                    "for logarithms and roots, or weights of your own (weights=, --weights)."
                ) from None
            matrix = here.matrix
        else:
            matrix = link.matrix[rows]
        found.append((model, here, matrix))
        mean, _ = model.prior.moments(here)
        centre = np.linalg.solve(model.prior.contrasts(here), mean)
        with np.errstate(over="ignore"):
            values = model.outcome(matrix @ centre + model.prior.residual * errors[:, place])
        column = Table.of(table.like({link.outcome: values}))
        made = column if made is None else made.beside(column)
    return found


def _read(model: Regression, link: Design, matrix: Array) -> tuple[Array, Array, PerRecord]:
    """The factor of a link's predictors, its prior's rows, and the leverages that public columns give."""
    gram = weighted_factor(matrix, np.zeros(len(matrix)))[:-1, :-1]
    _, deviation = model.prior.moments(link)
    prior = model.prior.contrasts(link) / deviation[:, None]
    public = [place for place in range(matrix.shape[1]) if place not in link.hidden]
    factor = weighted_factor(gram[:, public], np.zeros(len(gram)))
    factor = weighted_factor(prior[:, public], np.zeros(len(prior)), start=factor)
    return gram, prior, leverages(matrix[:, public], factor)


def _draw_far(many: int, count: int, key: Key) -> tuple[Array, Array]:
    """Errors of all links, of which one or two are often far out, and how likely they are beside that.

    A mixture of plain errors, of those with one value of a larger spread, and with two: the ratio of its
    density to that of plain errors is a mean of products over values, and never below the plain ones' share.
    """
    parts = (0.2, 0.6, 0.2) if count > 1 else (0.2, 0.8, 0.0)
    normal = key.child("normal").stream().normal((many, count))
    places = np.argsort(key.child("which").stream().uniform((many, count)), axis=1)
    kind = (np.arange(many) + 0.5) / many  # as many of each kind as it has a share
    one = kind > parts[0]
    two = kind > parts[0] + parts[1]
    normal[one & ~two, places[one & ~two, 0]] *= _FAR
    for place in range(min(2, count)):
        normal[two, places[two, place]] *= _BOTH
    far, both = (np.exp(normal**2 / 2 * (1 - 1 / sd**2)) / sd for sd in (_FAR, _BOTH))
    pairs = max(count * (count - 1) / 2, 1.0)
    ratio = parts[0] + parts[1] * far.mean(axis=1)
    ratio += parts[2] * (both.sum(axis=1) ** 2 - (both**2).sum(axis=1)) / 2 / pairs
    return normal, 1 / ratio
