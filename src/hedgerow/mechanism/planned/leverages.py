"""The leverages of all records, which a plan reads by rank and adds up: in memory, or with the leaves.

Formal guarantee: a leverage is a function of public predictors, and so is what is said of all of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Confidential, PerRecord
from hedgerow.mechanism.streamed.ranks import CountUpTo, select_ranks
from hedgerow.numerics.leaves import add_in_order, sum_leaves
from hedgerow.tables.leaves import Leaves, go_over
from hedgerow.threads import Workers


@runtime_checkable
class Leverages(Protocol):
    """The leverages of all records, wherever they are."""

    def ordered(self, ranks: Sequence[int]) -> Array:
        """Those of some ranks, from 0 up."""

    def add_up(self, places: Array, tail: Array) -> float:
        """The sum over records of a function of their leverages, interpolated between these places."""


@dataclass(frozen=True, eq=False, repr=False)
class LeveragesHere:
    """Leverages in memory."""

    every: Array

    def ordered(self, ranks: Sequence[int]) -> Array:
        return np.partition(self.every, ranks)[list(ranks)]

    def add_up(self, places: Array, tail: Array) -> float:
        return sum_leaves(np.interp(self.every, places, tail))


@dataclass(frozen=True, repr=False)
class KeptLeverages(Confidential):
    """Leverages that leaves keep (`keep_leverages`)."""

    leaves: Leaves
    workers: Workers
    ends: Sequence[tuple[float, float]]  # the least and the largest of each leaf

    def ordered(self, ranks: Sequence[int]) -> Array:
        return select_ranks(self.leaves, self.workers, ranks, self.ends)

    def add_up(self, places: Array, tail: Array) -> float:
        return add_in_order(list(go_over(self.workers, AddUp(places, tail), self.leaves, stage="plan")))

    def count_below(self, sizes: Array) -> list[int]:
        """How many are less than each of these."""
        counts = np.zeros(len(sizes))
        task = CountUpTo(np.nextafter(sizes, -np.inf))
        for one in go_over(self.workers, task, self.leaves, stage="plan"):
            counts += one
        return [int(count) for count in counts]

    def find(self, values: Array) -> NDArray[np.intp]:
        """The first record with each of these leverages, which must occur."""
        found = list(go_over(self.workers, FindFirst(values), self.leaves, stage="plan"))
        return np.min(found, axis=0)


def keep_leverages(leaves: Leaves, leaf: int, every: PerRecord) -> tuple[float, float]:
    """Keep a leaf's leverages, as they come and in order; returns the least and the largest."""
    ordered = np.sort(every)
    leaves.keep("leverage", leaf, every)
    leaves.keep("sorted", leaf, ordered)
    return float(ordered[0]), float(ordered[-1])


@dataclass(frozen=True)
class AddUp:
    """The sum over a leaf of a function of leverages."""

    places: Array
    tail: Array

    def __call__(self, leaves: Leaves, leaf: int) -> float:
        return float(np.interp(leaves.kept("leverage", leaf), self.places, self.tail).sum())


@dataclass(frozen=True)
class FindFirst:
    """The number of a leaf's first record with each leverage; beyond all records where there is none."""

    values: Array

    def __call__(self, leaves: Leaves, leaf: int) -> NDArray[np.intp]:
        same = leaves.kept("leverage", leaf) == self.values[:, None]
        return np.where(same.any(axis=1), same.argmax(axis=1) + leaves.rows(leaf).start, leaves.records)
