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
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Matrix, PerRecord
from hedgerow.errors import SettingError
from hedgerow.numerics.leaves import leaves_of
from hedgerow.numerics.sums.loadings import cap_loadings, cap_weights
from hedgerow.numerics.triangular import ROWS
from hedgerow.tables.leaves import Leaves, go_over
from hedgerow.threads import Here, Workers, share_out

Loadings = NDArray[np.int64]
Chosen = NDArray[np.intp]  # numbers of records, in order
Made = TypeVar("Made")
STAGE = "statistics"  # what passes over leaves are called while one waits


@dataclass(frozen=True, eq=False)
class Beside:
    """How entries of other protected columns enter sums beside public predictors: public, and small."""

    sizes: Array  # root mean squares of their stand-ins (m,)
    scale: Array  # of an entry before it is clipped (m,)
    reach: Array  # where it is clipped (m,)
    together: float  # no record's entries, scaled and clipped, have a larger sum of absolute values

    def norms(self, rows: Matrix, order: int) -> PerRecord:
        """Norms of rows before the cap, protected entries counted at the farthest that they can reach."""
        if order == 1:
            return np.asarray(np.abs(rows).sum(axis=1) + self.together)
        reach = np.broadcast_to(self.reach, (len(rows), len(self.reach)))
        return np.asarray(np.linalg.norm(np.hstack([rows, reach]), ord=order, axis=1))

    def clip(self, entries: Matrix) -> Matrix:
        """Entries as they enter sums, weights apart; one that is no number adds nothing."""
        clipped = np.clip(entries * self.scale, -self.reach, self.reach)
        return np.asarray(np.where(np.isnan(clipped), 0.0, clipped))

    def most(self, weights: PerRecord, order: int, unit: float) -> Loadings:
        """The largest that entries' loadings may be: all together (n, 1), or each in the norm 2 (n, m).

        Rounding may add half a unit to each.
        """
        if order != 1:
            return _whole(weights[:, None] * self.reach / unit)
        return _whole(weights[:, None] * self.together / unit) + len(self.scale)

    def load(self, entries: Matrix, weights: PerRecord, order: int, unit: float) -> Loadings:
        """Loadings of entries (n, m): none exceeds `most`, whatever an entry is."""
        loadings = _whole(weights[:, None] * self.clip(entries) / unit)
        most = self.most(weights, order, unit)
        if order != 1:
            return np.clip(loadings, -most, most)
        over = np.abs(loadings).sum(axis=1) > most[:, 0]  # in exact arithmetic no record's are larger
        return np.where(over[:, None], 0, loadings)


def _whole(numbers: Array) -> Loadings:
    return np.rint(numbers).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Capping:
    """How predictors become loadings: v_i q_ij in whole units, v_i = min(1, C/‖q_i‖).

    Where there are entries of other protected columns they are the last columns of a matrix, clipped and
    weighed alike, and the norm is the largest that they can make of it.
    """

    basis: Array  # Q = X · basis, X public
    cap: float  # C
    order: int  # of the norm
    unit: float
    most: int | None = None  # what the price says of any record's Σ|V_ij|, or ΣV_ij²; None: not known yet
    beside: Beside | None = None

    def load(self, matrix: Matrix) -> Loadings:
        """V of some rows; one beyond `most`, as another processor may round it, counts for nothing.

        Whether it does follows from public predictors: what entries may add to it at most is counted.
        """
        public, weights = matrix[:, : len(self.basis)], self._weigh(matrix)
        loadings = cap_loadings(
            public, self.basis, self.cap, order=self.order, unit=self.unit, weights=weights
        )
        whole, most = loadings, None
        if self.beside is not None and weights is not None:
            entries = self.beside.load(matrix[:, len(self.basis) :], weights, self.order, self.unit)
            whole, most = np.hstack([loadings, entries]), self.beside.most(weights, self.order, self.unit)
        if self.most is not None:
            whole[count_norms(loadings, most, self.order) > self.most] = 0
        return whole

    def most_of(self, matrix: Matrix) -> Loadings | None:
        """The largest that entries' loadings may be beside these public predictors; None without entries."""
        weights = self._weigh(matrix)
        if self.beside is None or weights is None:
            return None
        return self.beside.most(weights, self.order, self.unit)

    def _weigh(self, matrix: Matrix) -> PerRecord | None:
        """v, where entries decide as well."""
        if self.beside is None:
            return None
        norms = self.beside.norms(matrix[:, : len(self.basis)] @ self.basis, self.order)
        return cap_weights(norms, self.cap)


def count_norms(loadings: Loadings, most: Loadings | None, order: int) -> NDArray[np.int64]:
    """What the price says of each row: Σ|V_ij|, or ΣV_ij², with the most that entries may add."""
    counted = loadings if most is None else np.hstack([loadings, most])
    return np.abs(counted).sum(axis=1) if order == 1 else np.einsum("ij,ij->i", counted, counted)


class Part:
    """The predictors of consecutive records, and their loadings as far as these are settled."""

    def __init__(
        self,
        rows: slice,
        matrix: Matrix,
        load: Callable[[Matrix], Loadings],
        most: Callable[[Matrix], Loadings | None] | None = None,
    ) -> None:
        self.rows, self.matrix = rows, matrix  # rows: their numbers in the table
        self._load, self._most = load, most

    @cached_property
    def loadings(self) -> Loadings:
        """V, made when a task first asks for it."""
        return self._load(self.matrix)

    @cached_property
    def most(self) -> Loadings | None:
        """How large loadings of protected columns' entries may be, where the matrix has some."""
        return None if self._most is None else self._most(self.matrix)

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
    capping: Capping | None  # once it is settled

    @abstractmethod
    def each(self, task: Callable[[Part], Made]) -> Iterator[Made]:
        """What the task makes of every leaf, in their order; large results are put together as they come."""

    @abstractmethod
    def load(self, capping: Capping) -> "Rows":
        """These rows with loadings made by `capping`."""

    @abstractmethod
    def take_out(self, lines: Array) -> "Rows":
        """These rows with lines in the public columns (p, m) subtracted from the entries beside them."""


@dataclass(frozen=True, eq=False)
class HeldRows(Rows):
    """Rows in memory. The repr shows no numbers: entries of protected columns may be among them."""

    matrix: Matrix = field(repr=False)
    loadings: Loadings = field(
        default_factory=lambda: np.zeros((0, 0), dtype=np.int64), repr=False
    )  # none yet
    capping: Capping | None = field(default=None, repr=False)
    # Where leaves of a longer table begin and end; None: it is all.
    cuts: tuple[slice, ...] | None = field(default=None, repr=False)

    @property
    def records(self) -> int:  # type: ignore[override]  # derived, where others have a field
        return len(self.matrix)

    def each(self, task: Callable[[Part], Made]) -> Iterator[Made]:
        leaves = leaves_of(self.records) if self.cuts is None else self.cuts
        return iter(share_out(lambda rows: task(self._part(rows)), leaves, worth=len(leaves) > 1))

    def _part(self, rows: slice) -> Part:
        most = None if self.capping is None else self.capping.most_of
        return Part(rows, self.matrix[rows], lambda _: self.loadings[rows], most)

    def load(self, capping: Capping) -> "HeldRows":
        parts = self.each(lambda part: capping.load(part.matrix))
        return replace(self, loadings=np.concatenate(list(parts)), capping=capping)

    def take_out(self, lines: Array) -> "HeldRows":
        return replace(self, matrix=np.concatenate(list(self.each(lambda part: _less(part.matrix, lines)))))


def read_predictors(leaves: Leaves, leaf: int) -> Matrix:
    """The public predictors of a leaf."""
    return leaves.design(leaf).matrix


@dataclass(frozen=True, eq=False)
class LeafRows(Rows):
    """Rows in leaves, on which workers run tasks; loadings are made from predictors whenever a task asks."""

    leaves: Leaves
    workers: Workers
    capping: Capping | None = None
    read: Callable[[Leaves, int], Matrix] = read_predictors  # picklable, as tasks are
    taken_out: Array | None = None

    @property
    def records(self) -> int:  # type: ignore[override]  # derived, as above
        return self.leaves.records

    def each(self, task: Callable[[Part], Made]) -> Iterator[Made]:
        on_part = _OnPart(task, self.capping, self.read, self.taken_out)
        # One leaf leaves nothing to share out, and groups are then cut by all of its records: more than a
        # worker may send.
        workers = self.workers if self.leaves.count > 1 else Here()
        return go_over(workers, on_part, self.leaves, stage=STAGE)

    def load(self, capping: Capping) -> "LeafRows":
        return replace(self, capping=capping)

    def take_out(self, lines: Array) -> "LeafRows":
        return replace(self, taken_out=lines)

    @property
    def matrix(self) -> Matrix:  # type: ignore[override]  # there is none
        raise SettingError(NOT_HELD)

    @property
    def loadings(self) -> Loadings:  # type: ignore[override]  # there is none
        raise SettingError(NOT_HELD)


NOT_HELD = (
    "This reads all records at once, and the table is read leaf by leaf because it may not fit into memory. "
    "Run it on a table in memory, for instance on a public sample of the rows."
)


@dataclass(frozen=True, eq=False)
class _OnPart:
    """A task over public rows as one over leaves."""

    task: Callable[[Part], Any]
    capping: Capping | None
    read: Callable[[Leaves, int], Matrix]
    taken_out: Array | None

    def __call__(self, leaves: Leaves, leaf: int) -> Any:
        matrix = self.read(leaves, leaf)
        matrix = matrix if self.taken_out is None else _less(matrix, self.taken_out)
        return self.task(part_of(matrix, leaves.rows(leaf), self.capping))


def part_of(matrix: Matrix, rows: slice, capping: Capping | None) -> Part:
    """A leaf's rows, laid out as a whole table's are: how products round may depend on it."""
    matrix = np.ascontiguousarray(matrix, dtype=np.float64)
    return Part(rows, matrix, *((_refuse,) if capping is None else (capping.load, capping.most_of)))


def _less(matrix: Matrix, lines: Array) -> Matrix:
    """Entries beside public columns less lines in these."""
    public, entries = matrix[:, : len(lines)], matrix[:, len(lines) :]
    return np.hstack([public, entries - public @ lines])


def _refuse(matrix: Matrix) -> Loadings:
    raise SettingError("The loadings of these rows are not settled yet.")


def add_parts(parts: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Sums of what leaves summed to, from the first to the last."""
    return reduce(lambda sums, one: tuple(a + b for a, b in zip(sums, one, strict=True)), parts)
