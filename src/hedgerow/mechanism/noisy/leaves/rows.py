"""The public rows of a table, leaf by leaf: what every sum of the strict mechanism runs over.

    >>> rows = HeldRows(np.ones((200_000, 1)))
    >>> list(rows.each(lambda part: len(part.matrix)))
    [131072, 68928]

A task is a function of one leaf's rows and of a few small things about all; it returns what is small. What is
said of all is put together from these in the order of the leaves, so that it does not depend on where rows
are or who runs the tasks. For rows elsewhere a task must be picklable: a `functools.partial` of a function.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Matrix
from hedgerow.errors import SettingError
from hedgerow.mechanism.streamed.merged import go_over
from hedgerow.numerics.leaves import leaves_of
from hedgerow.numerics.sums.loadings import cap_loadings
from hedgerow.numerics.triangular import ROWS
from hedgerow.tables.leaves import Leaves
from hedgerow.threads import Workers, share_out

Loadings = NDArray[np.int64]
Chosen = NDArray[np.intp]  # numbers of records, in order
Made = TypeVar("Made")
STAGE = "statistics"  # what passes over leaves are called while one waits


@dataclass(frozen=True, eq=False)
class Capping:
    """How predictors become loadings: v_i q_ij in whole units, v_i = min(1, C/‖q_i‖)."""

    basis: Array  # Q = X · basis
    cap: float  # C
    order: int  # of the norm
    unit: float
    most: int | None = None  # what the price says of any record's Σ|V_ij|, or ΣV_ij²; None: not known yet

    def load(self, matrix: Matrix) -> Loadings:
        """V of some rows; one beyond `most`, as another processor may round it, counts for nothing."""
        loadings = cap_loadings(matrix, self.basis, self.cap, order=self.order, unit=self.unit)
        if self.most is not None:
            squares = self.order == 2
            norms = np.einsum("ij,ij->i", loadings, loadings) if squares else np.abs(loadings).sum(axis=1)
            loadings[norms > self.most] = 0
        return loadings


class Part:
    """The public predictors of consecutive records, and their loadings as far as these are settled."""

    def __init__(
        self, rows: slice, matrix: Matrix, load: Callable[[Matrix], Loadings], most: Loadings | None = None
    ) -> None:
        self.rows, self.matrix, self.most = rows, matrix, most  # rows: their numbers in the table
        self._load = load

    @cached_property
    def loadings(self) -> Loadings:
        """V, made when a task first asks for it."""
        return self._load(self.matrix)

    def each_block(self, make: Callable[[slice], Made]) -> list[Made]:
        """What is made of blocks whose intermediate results stay small, at once on several cores."""
        blocks = [slice(first, first + ROWS) for first in range(0, len(self.matrix), ROWS)]
        return share_out(make, blocks, worth=len(blocks) > 1)

    def find(self, chosen: Chosen) -> Chosen:
        """Where records with these numbers, in order, are in the part; those that are elsewhere left out."""
        first, last = np.searchsorted(chosen, [self.rows.start, self.rows.stop])
        return chosen[first:last] - self.rows.start


class Rows(ABC):
    """Public predictors of all records of a table."""

    records: int
    matrix: Matrix  # X, where it is in memory
    loadings: Loadings  # V, where they are in memory

    @abstractmethod
    def each(self, task: Callable[[Part], Made]) -> Iterator[Made]:
        """What the task makes of every leaf, in their order; large results are put together as they come."""

    @abstractmethod
    def load(self, capping: Capping) -> "Rows":
        """The same with loadings."""


@dataclass(frozen=True, eq=False)
class HeldRows(Rows):
    """In memory; `most` says how large loadings of protected columns' entries may be at most.

    Its repr shows none of them: rows may have those entries themselves (`Recipe.with_entries`).
    """

    matrix: Matrix = field(repr=False)
    loadings: Loadings = field(
        default_factory=lambda: np.zeros((0, 0), dtype=np.int64), repr=False
    )  # none yet
    most: Loadings | None = field(default=None, repr=False)

    @property
    def records(self) -> int:  # type: ignore[override]  # derived, where others have a field
        return len(self.matrix)

    def each(self, task: Callable[[Part], Made]) -> Iterator[Made]:
        leaves = leaves_of(self.records)
        return iter(share_out(lambda rows: task(self._part(rows)), leaves, worth=len(leaves) > 1))

    def _part(self, rows: slice) -> Part:
        most = None if self.most is None else self.most[rows]
        return Part(rows, self.matrix[rows], lambda _: self.loadings[rows], most)

    def load(self, capping: Capping) -> "HeldRows":
        unloaded = (Part(rows, self.matrix[rows], capping.load) for rows in leaves_of(self.records))
        return HeldRows(self.matrix, np.concatenate([part.loadings for part in unloaded]))


@dataclass(frozen=True, eq=False)
class LeafRows(Rows):
    """In leaves, which others run tasks on; loadings are made from predictors whenever a task asks."""

    leaves: Leaves
    workers: Workers
    capping: Capping | None = None

    @property
    def records(self) -> int:  # type: ignore[override]
        return self.leaves.records

    def each(self, task: Callable[[Part], Made]) -> Iterator[Made]:
        return go_over(self.workers, _OnPart(task, self.capping), self.leaves, stage=STAGE)

    def load(self, capping: Capping) -> "LeafRows":
        return LeafRows(self.leaves, self.workers, capping)

    @property
    def matrix(self) -> Matrix:  # type: ignore[override]
        raise SettingError(_NOT_HELD)

    @property
    def loadings(self) -> Loadings:  # type: ignore[override]
        raise SettingError(_NOT_HELD)


_NOT_HELD = (
    "This reads all records at once, and the table is read leaf by leaf because it may not fit into memory. "
    "Run it on a table in memory, for instance on a public sample of the rows."
)


@dataclass(frozen=True, eq=False)
class _OnPart:
    """A task over public rows as one over leaves."""

    task: Callable[[Part], Any]
    capping: Capping | None

    def __call__(self, leaves: Leaves, leaf: int) -> Any:
        return self.task(part_of(leaves.design(leaf).matrix, leaves.rows(leaf), self.capping))


def part_of(matrix: Matrix, rows: slice, capping: Capping | None) -> Part:
    """A leaf's public rows, laid out as a whole table's are: how products round may depend on it."""
    matrix = np.ascontiguousarray(matrix, dtype=np.float64)
    return Part(rows, matrix, _refuse if capping is None else capping.load)


def _refuse(matrix: Matrix) -> Loadings:
    raise SettingError("The loadings of these rows are not settled yet.")


def add_parts(parts: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Sums of what leaves summed to, from the first to the last."""
    return reduce(lambda sums, one: tuple(a + b for a, b in zip(sums, one, strict=True)), parts)
