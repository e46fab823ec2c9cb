"""What a released column hands on to later ones: functions of a record's own values and of public things.

- an amount: its residual about the released line, over the released σ; in sums it is clipped to ±1.5, which
  keeps 96 % of what it says of a normal column;
- a kind of cell that has no amount: 1 or 0, less the released chance of it, and no residual;
- a class: 1 or 0 for each but the first, less the released chance;
- a missing value, and a row that has no cell of its own: zeros.

A record is of one kind, in one class. So its indicators, times scales s_j, add up to at most the two largest
of these in absolute value, however many there are: Σ s_j |1_j − p_j| ≤ s_k + max_j s_j for the k that it is.

By construction entries are nearly uncorrelated with public predictors and with the entries of columns that
their own column read. Stand-ins drawn from what was released have that property too: through them the next
column's recipe knows, without looking, how entries scatter. They come from a fixed key, so that whoever has
the statistics can make them again; leaf by leaf, as entries themselves, and nobody needs to keep either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.special import ndtri

from hedgerow.arrays import Array, Matrix, PerRecord
from hedgerow.mechanism.noisy.chain.classes import ReleasedClasses, chances_of, fit_classes, pick_classes
from hedgerow.mechanism.noisy.chain.tasks import Task, Values
from hedgerow.mechanism.noisy.estimate import estimate
from hedgerow.mechanism.noisy.leaves.rows import Beside
from hedgerow.mechanism.noisy.released import Released
from hedgerow.randomness import Key

_CLIP = 1.5  # standard deviations
_LEAST_SHARE = 0.01  # of a class, for the size of its stand-ins
_STANDINS = 20  # seeds the fixed key


@dataclass(frozen=True)
class OwnRows:
    """Some of a column's own rows: which, in which leaf of the table, and how many there are of all."""

    leaf: int
    rows: slice
    of: int

    def spread_evenly(self, key: Key) -> PerRecord:
        """Numbers that fill (0, 1) evenly, in random order: those of a leaf without those of others."""
        numbers = np.argsort(key.stream().part(self.rows, self.of)) + 0.5
        return np.asarray(numbers / max(len(numbers), 1))


@runtime_checkable
class Handed(Protocol):
    """What later columns may know of a released one: names of its entries, how to make and simulate them."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its entries: for a column called x, "x", or "x, class 2"."""
        ...

    @property
    def residuals(self) -> int:
        """How many of its entries, the first ones, are residuals; the others are indicators less chances."""
        ...

    def entries(self, matrix: Matrix, values: Values) -> Array:
        """The entries of records with these predictors and values (n, m): as confidential as the values."""
        ...

    def simulate(self, matrix: Matrix, own: OwnRows, key: Key) -> Values:
        """Values drawn from what was released."""
        ...


@dataclass(frozen=True, eq=False)
class HandedAmounts:
    """What a column of amounts hands on: line and σ, and regressions of the kinds of cells that have none."""

    name: str
    line: Array
    sigma: float
    low: float
    high: float
    kinds: tuple[str, ...]
    chances: Array  # coefficients, kind by kind

    @classmethod
    def of(cls, task: Task, released: Released, kinds: ReleasedClasses | None) -> "HandedAmounts":
        found, recipe = estimate(released), released.recipe
        chances = np.zeros((0, len(found.beta))) if kinds is None else fit_classes(kinds)
        return cls(task.outcome, found.beta, found.sigma, recipe.low, recipe.high, task.kinds, chances)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *(f"{self.name}: {kind}" for kind in self.kinds))

    @property
    def residuals(self) -> int:
        return 1

    def entries(self, matrix: Matrix, values: Values) -> Array:
        with np.errstate(all="ignore"):
            residual = (np.clip(values.numbers, self.low, self.high) - matrix @ self.line) / self.sigma
        residual = np.nan_to_num(np.where(values.present, residual, 0.0), nan=0.0, posinf=0.0, neginf=0.0)
        if values.kinds is None:
            return np.asarray(residual)[:, None]
        count = len(self.kinds)
        hits = values.kinds[:, None] == np.arange(count)
        away = hits - chances_of(self.chances, matrix, signed=False)[:, :count]
        return np.column_stack([residual, np.where(values.present[:, None], away, 0.0)])

    def simulate(self, matrix: Matrix, own: OwnRows, key: Key) -> Values:
        there = np.ones(len(matrix), dtype=np.bool_)
        numbers = matrix @ self.line + self.sigma * ndtri(own.spread_evenly(key.child("amounts")))
        if not self.kinds:
            return Values(numbers, there)
        chances = chances_of(self.chances, matrix, signed=False)
        kinds = pick_classes(chances, own.spread_evenly(key.child("spike"))).astype(np.int64)
        return Values(np.where(kinds < len(self.kinds), np.nan, numbers), there, kinds)


@dataclass(frozen=True, eq=False)
class HandedClasses:
    """What a column of classes hands on: the regressions of their chances."""

    name: str
    lines: Array
    signed: bool

    @classmethod
    def of(cls, task: Task, released: ReleasedClasses) -> "HandedClasses":
        return cls(task.outcome, fit_classes(released), released.signed)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}, class {place + 2}" for place in range(len(self.lines)))

    @property
    def residuals(self) -> int:
        return 0

    def entries(self, matrix: Matrix, values: Values) -> Array:
        chances = chances_of(self.lines, matrix, signed=self.signed)
        known = values.present & np.isin(values.numbers, np.arange(chances.shape[1]))
        hits = values.numbers[:, None] == np.arange(1, chances.shape[1])
        return np.where(known[:, None], hits - chances[:, 1:], 0.0)

    def simulate(self, matrix: Matrix, own: OwnRows, key: Key) -> Values:
        chances = chances_of(self.lines, matrix, signed=self.signed)
        numbers = pick_classes(chances, own.spread_evenly(key.child("classes")))
        return Values(numbers, np.ones(len(matrix), dtype=np.bool_))


def stand_in(place: int, handed: Handed, matrix: Matrix, own: OwnRows) -> Array:
    """Entries of one simulated table: for every record, whatever its own values (n, m)."""
    key = Key.from_seed(_STANDINS).child("stand-ins").child(place)
    return handed.entries(matrix, handed.simulate(matrix, own, key))


def reach_beside(read: Sequence[Handed], sizes: Array, *, jointly: bool) -> Beside:
    """How entries enter sums, by the root mean squares of their stand-ins beside public predictors."""
    scales, reaches, together, first = list[Array](), list[Array](), 0.0, 0
    for one in read:
        last = first + len(one.names)
        own = np.maximum(sizes[first + one.residuals : last], np.sqrt(_LEAST_SHARE))
        indicators = np.minimum(1 / own, _CLIP)
        scales += [np.ones(one.residuals), indicators]
        reaches += [np.full(one.residuals, _CLIP), indicators]
        largest = np.sort(indicators)[::-1]
        # Where there is an amount no indicator is 1, and elsewhere there is no residual.
        together += max(float(largest[:2].sum()), _CLIP * one.residuals + float(largest[:1].sum()))
        first = last
    reach = np.concatenate(reaches)
    together = together if jointly else float(reach.sum())
    return Beside(np.where(sizes > 0, sizes, 1.0), np.concatenate(scales), reach, together)
