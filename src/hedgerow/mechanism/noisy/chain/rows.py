"""The rows of a chain, leaf by leaf: public predictors of each column, and entries of columns before it.

What a column reads of earlier ones has a number for each record, and nobody needs to keep it: on a leaf it
follows from public predictors, the leaf's own values and what was handed on, which is small. `Piece` goes
from column to column on one leaf. `OpenChain` is a chain as far as it is released, and gives the next column
its public rows and a reader of its values; `HeldChain` has the table in memory and keeps what it made,
`chain.streamed` makes it again wherever leaves are.

Formal guarantees
-----------------
Rows hold public predictors and stand-ins alone. Entries of a record are a function of its own values, of
public things and of what was released, whoever makes them again and however that rounds; none enters a sum
with more than the price counts with (`leaves.rows.Beside`). Entries and values go to the readers' tasks, and
nowhere else.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Confidential, Mask, Matrix
from hedgerow.errors import SettingError
from hedgerow.mechanism.noisy.chain.handed import Handed, OwnRows, stand_in
from hedgerow.mechanism.noisy.chain.tasks import Task, Values
from hedgerow.mechanism.noisy.leaves.rows import HeldRows, Rows
from hedgerow.mechanism.noisy.recipe import Recipe
from hedgerow.mechanism.noisy.rounds import Reader, hold_outcomes
from hedgerow.numerics.leaves import leaves_of
from hedgerow.threads import share_out

Making = Callable[[int, Handed, Matrix], Array]  # entries of a column, by its place, in its own rows


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive records of a table with what is public of them, column by column."""

    where: slice  # their numbers in the table
    matrices: Sequence[Array]  # public predictors of each column, of its own rows
    own: Sequence[OwnRows]  # these rows
    masks: Sequence[Mask | None]  # which of the records they are, if not all

    @property
    def records(self) -> int:
        """How many there are."""
        return self.where.stop - self.where.start

    def pick(self, place: int, whole: NDArray[Any]) -> NDArray[Any]:
        """The rows of an array over all records that are a column's own."""
        mask = self.masks[place]
        return whole if mask is None else whole[mask]

    def spread(self, place: int, part: NDArray[Any]) -> NDArray[Any]:
        """An array of a column's own rows among all records, with zeros elsewhere."""
        mask = self.masks[place]
        if mask is None:
            return part
        whole = np.zeros((self.records, *part.shape[1:]), dtype=part.dtype)
        whole[mask] = part
        return whole

    def join(self, place: int, task: Task, entries: Sequence[Array]) -> Matrix:
        """Public predictors of a column's own rows, and beside them the entries that it reads."""
        beside = [self.pick(place, entries[j]) for j in task.reads]
        return np.ascontiguousarray(np.hstack([self.matrices[place], *beside]), dtype=np.float64)

    def hand_on(self, place: int, task: Task, handed: Handed, before: Sequence[Array], make: Making) -> Array:
        """What later columns read of one, of all records (n, m): zeros where it has no cell of its own."""
        made = make(place, handed, self.join(place, task, before))
        return self.spread(place, made if np.isfinite(made).all() else np.nan_to_num(made, nan=0.0))

    def hand_on_all(
        self, tasks: Sequence[Task], handed: Sequence[Handed], make: Making, wanted: Collection[int]
    ) -> list[Array]:
        """`hand_on` for several columns, one after the other; empty for those that are not wanted."""
        found: list[Array] = []
        for place, (task, one) in enumerate(zip(tasks, handed, strict=False)):
            there = place in wanted
            found.append(self.hand_on(place, task, one, found, make) if there else np.zeros((0, 0)))
        return found

    def stand_in(self, place: int, handed: Handed, matrix: Matrix) -> Array:
        """Public entries of a simulated table, as it is made anywhere."""
        return stand_in(place, handed, matrix, self.own[place])


def find_read(tasks: Sequence[Task], place: int) -> set[int]:
    """The columns that one reads, that these read, and so on."""
    found: set[int] = set()
    waiting = [*tasks[place].reads]
    while waiting:
        found.add(one := waiting.pop())
        waiting += [j for j in tasks[one].reads if j not in found]
    return found


class OpenChain(ABC):
    """A chain of columns as far as it is released: it gives the next column its rows and a reader."""

    tasks: Sequence[Task]
    handed: tuple[Handed, ...]  # of the columns that are released

    @property
    def place(self) -> int:
        """The number of the next column."""
        return len(self.handed)

    @property
    def task(self) -> Task:
        """What is to be released of the next column."""
        return self.tasks[self.place]

    @property
    def read(self) -> list[Handed]:
        """What was handed on by the columns that it reads."""
        return [self.handed[j] for j in self.task.reads]

    @abstractmethod
    def rows(self) -> Rows:
        """Public predictors of the next column."""

    @abstractmethod
    def rows_beside(self) -> Rows:
        """Public predictors of the next column, with stand-ins of the entries that it reads beside them."""

    @abstractmethod
    def reader(self, recipe: Recipe, *, kinds: bool = False) -> Reader:
        """A reader of the next column's numbers, or of its cells' kinds, with the entries that it reads."""

    @abstractmethod
    def after(self, handed: Handed) -> "OpenChain":
        """The chain once one more column is released."""


@dataclass(frozen=True, eq=False, repr=False)
class HeldChain(OpenChain, Confidential):
    """A chain over a table in memory."""

    tasks: Sequence[Task]
    whole: Piece  # all records
    values: Sequence[Values] | None  # what columns hold; None for whoever has public things alone
    handed: tuple[Handed, ...] = ()
    standins: tuple[Array, ...] = ()  # by column, of all records
    entries: tuple[Array, ...] = ()

    @classmethod
    def of(
        cls,
        tasks: Sequence[Task],
        matrices: Sequence[Array],
        values: Sequence[Values] | None = None,
        masks: Sequence[Mask | None] | None = None,
    ) -> "HeldChain":
        """From the public predictors of each column's own rows, and what these hold."""
        masks = [None] * len(tasks) if masks is None else masks
        records = len(matrices[0]) if masks[0] is None else len(masks[0])
        own = [OwnRows(0, slice(0, len(matrix)), len(matrix)) for matrix in matrices]
        return cls(tasks, Piece(slice(0, records), matrices, own, masks), values)

    @cached_property
    def pieces(self) -> list[Piece]:
        """The table, cut into a piece for each leaf."""
        return [self._cut(leaf, rows) for leaf, rows in enumerate(leaves_of(self.whole.records))]

    def _cut(self, leaf: int, where: slice) -> Piece:
        whole, own = self.whole, list[OwnRows]()
        for mask, every in zip(whole.masks, whole.own, strict=True):
            rows = where
            if mask is not None:
                rows = slice(*(int(np.count_nonzero(mask[:end])) for end in (where.start, where.stop)))
            own.append(OwnRows(leaf, rows, every.of))
        matrices = [matrix[one.rows] for matrix, one in zip(whole.matrices, own, strict=True)]
        return Piece(where, matrices, own, [None if mask is None else mask[where] for mask in whole.masks])

    def rows(self) -> HeldRows:
        own = (piece.own[self.place].rows for piece in self.pieces)
        cuts = tuple(rows for rows in own if rows.start < rows.stop)
        return HeldRows(np.ascontiguousarray(self.whole.matrices[self.place], dtype=np.float64), cuts=cuts)

    def rows_beside(self) -> HeldRows:
        return replace(self.rows(), matrix=self.whole.join(self.place, self.task, self.standins))

    def reader(self, recipe: Recipe, *, kinds: bool = False) -> Reader:
        if self.values is None:
            raise SettingError("This chain has public things alone: there are no values to read.")
        values, task = self.values[self.place], self.task
        if task.reads:
            beside = [self.whole.pick(self.place, self.entries[j]) for j in task.reads]
            recipe = recipe.with_entries(np.hstack(beside))
        return hold_outcomes(recipe.rows, values.read(kinds=kinds), values.present)

    def after(self, handed: Handed) -> "HeldChain":
        place, task, values = self.place, self.task, self.values

        def step(piece: Piece) -> tuple[Array, Array | None]:
            before, entries = ([one[piece.where] for one in each] for each in (self.standins, self.entries))
            public = piece.hand_on(place, task, handed, before, piece.stand_in)
            if values is None:
                return public, None
            here = values[place].take(piece.own[place].rows)
            own = piece.hand_on(
                place, task, handed, entries, lambda _, one, matrix: one.entries(matrix, here)
            )
            return public, own

        public, own = zip(*share_out(step, self.pieces, worth=len(self.pieces) > 1), strict=True)
        found = () if values is None else (np.concatenate(own),)
        standins = (*self.standins, np.concatenate(public))
        return replace(
            self, handed=(*self.handed, handed), standins=standins, entries=(*self.entries, *found)
        )
