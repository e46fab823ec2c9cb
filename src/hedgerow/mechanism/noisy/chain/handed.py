"""What a released column hands on to later ones: functions of a record's own values and of public things.

- an amount: its residual about the released line, over the released σ; in sums it is clipped to ±1.5, which
  keeps 96 % of what it says of a normal column;
- a value at a spike: 1, an amount 0, less the released chance of it, and no residual;
- a class: 1 or 0 for each but the first, less the released chance;
- a missing value: zeros.

By construction entries are nearly uncorrelated with public predictors and with the entries of columns that
their own column read. Stand-ins drawn from what was released have that property too: through them the next
column's recipe knows, without looking, how entries scatter. They come from a fixed key, so that whoever has
the statistics can make them again.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.special import expit, ndtri

from hedgerow.arrays import Array, Matrix, PerRecord, RecordMask
from hedgerow.mechanism.noisy.chain.classes import ReleasedClasses, chances_of, fit_classes, pick_classes
from hedgerow.mechanism.noisy.estimate import estimate
from hedgerow.mechanism.noisy.recipe import Beside, Released
from hedgerow.mechanism.noisy.spike import spike_line
from hedgerow.randomness import Key

_CLIP = 1.5  # standard deviations
_LEAST_SHARE = 0.01  # of a class, for the size of its stand-ins
_STANDINS = 20  # seeds the fixed key


@runtime_checkable
class Handed(Protocol):
    """Of one column."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of its entries, where the column is called x: "x", or "x = 0" for a class."""
        ...

    @property
    def bounded(self) -> tuple[bool, ...]:
        """Which entries never exceed 1."""
        ...

    def entries(self, matrix: Matrix, values: PerRecord, present: RecordMask) -> Array:
        """Of records with these predictors and values (n, m): as confidential as those."""
        ...

    def simulate(self, matrix: Matrix, key: Key) -> PerRecord:
        """Values drawn from what was released."""
        ...


@dataclass(frozen=True, eq=False)
class HandedAmounts:
    """Of amounts: line and σ, and the spike's regression if there is one. NaN stands for the spike."""

    name: str
    line: Array
    sigma: float
    low: float
    high: float
    spike: Array | None

    @classmethod
    def of(cls, name: str, released: Released) -> "HandedAmounts":
        found, recipe = estimate(released), released.recipe
        spike = None if released.spike is None else spike_line(recipe, released.spike)
        return cls(name, found.beta, found.sigma, recipe.low, recipe.high, spike)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,) if self.spike is None else (self.name, f"{self.name} at its spike")

    @property
    def bounded(self) -> tuple[bool, ...]:
        return (False,) if self.spike is None else (False, True)

    def entries(self, matrix: Matrix, values: PerRecord, present: RecordMask) -> Array:
        with np.errstate(all="ignore"):
            residual = (np.clip(values, self.low, self.high) - matrix @ self.line) / self.sigma
        residual = np.nan_to_num(np.where(present, residual, 0.0), nan=0.0, posinf=0.0, neginf=0.0)
        if self.spike is None:
            return np.asarray(residual)[:, None]
        at_spike = np.isnan(values) - expit(matrix @ self.spike)
        return np.column_stack([residual, np.where(present, at_spike, 0.0)])

    def simulate(self, matrix: Matrix, key: Key) -> PerRecord:
        values = matrix @ self.line + self.sigma * ndtri(_even(len(matrix), key.child("amounts")))
        if self.spike is None:
            return values
        return np.where(_even(len(matrix), key.child("spike")) < expit(matrix @ self.spike), np.nan, values)


@dataclass(frozen=True, eq=False)
class HandedClasses:
    """Of classes: the regressions of their chances."""

    name: str
    lines: Array

    @classmethod
    def of(cls, name: str, released: ReleasedClasses) -> "HandedClasses":
        return cls(name, fit_classes(released))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.name}, class {place + 2}" for place in range(len(self.lines)))

    @property
    def bounded(self) -> tuple[bool, ...]:
        return (True,) * len(self.lines)

    def entries(self, matrix: Matrix, values: PerRecord, present: RecordMask) -> Array:
        chances = chances_of(self.lines, matrix)
        known = present & np.isin(values, np.arange(chances.shape[1]))
        hits = values[:, None] == np.arange(1, chances.shape[1])
        return np.where(known[:, None], hits - chances[:, 1:], 0.0)

    def simulate(self, matrix: Matrix, key: Key) -> PerRecord:
        return pick_classes(chances_of(self.lines, matrix), _even(len(matrix), key.child("classes")))


def _even(records: int, key: Key) -> PerRecord:
    """Numbers that fill (0, 1) evenly, in random order."""
    return (np.argsort(key.stream().uniform(records)) + 0.5) / records


def stand_in(place: int, handed: Handed, matrix: Matrix) -> Array:
    """Entries of one simulated table: for every record, whatever its own values (n, m)."""
    key = Key.from_seed(_STANDINS).child("stand-ins").child(place)
    return handed.entries(matrix, handed.simulate(matrix, key), np.ones(len(matrix), dtype=np.bool_))


def lay_beside(matrix: Matrix, standins: Array, bounded: tuple[bool, ...]) -> Beside:
    """Stand-ins at right angles to public predictors, as entries nearly are, and how far entries reach."""
    used = np.linalg.svd(matrix / np.maximum(np.abs(matrix).max(axis=0), 1e-300), full_matrices=False)
    span = used[0][:, used[1] > 1e-10 * used[1][0]]
    for _ in range(2):
        standins = standins - span @ (span.T @ standins)
    sizes = np.sqrt((standins**2).mean(axis=0))
    least = np.sqrt(_LEAST_SHARE)
    scale = np.where(bounded, np.minimum(1 / np.maximum(sizes, least), _CLIP), 1.0)
    reach = np.where(bounded, scale, _CLIP)
    return Beside(standins, scale, np.broadcast_to(reach, standins.shape).copy())
