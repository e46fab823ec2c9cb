"""Several columns over leaves: from settings and a table that is read leaf by leaf to copies of it.

    streamed = stream_chain(settings, leaves, key=key, workers=Here())
    streamed.released, streamed.parameters
    copying = streamed.plan_copies()[0]
    predict_leaf(settings, copying, leaves, 0)  # the first copy in the rows of the first leaf

Statistics, draws and copies are those of a table in memory, with the same key and to the last digit.

Formal guarantees
-----------------
What is released has the guarantee of `chain.release`. Of a record nothing travels but its part in an exact
sum over a leaf, which is confidential: a task makes a leaf's entries again from its rows, its values and what
was released before, sums, and forgets them. Public passes have stand-ins in the entries' place. Whatever
machine makes them, no loading that is summed exceeds the bound that the price counts with.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hedgerow.arrays import Confidential, Matrix, PerLink
from hedgerow.mechanism.copies import write_copy
from hedgerow.mechanism.noisy.chain.cells import settle_types
from hedgerow.mechanism.noisy.chain.draws import ChainCopying, draw_columns, plan_chain
from hedgerow.mechanism.noisy.chain.handed import Handed, OwnRows
from hedgerow.mechanism.noisy.chain.release import ReleasedColumn, release_chain
from hedgerow.mechanism.noisy.chain.rows import OpenChain, Piece, find_read
from hedgerow.mechanism.noisy.chain.run import (
    count_clipped,
    matrices_of,
    read_columns,
    tasks_of,
    write_piece,
)
from hedgerow.mechanism.noisy.chain.tasks import Task
from hedgerow.mechanism.noisy.copies import draw_places
from hedgerow.mechanism.noisy.leaves.rows import STAGE, Capping, LeafRows, part_of
from hedgerow.mechanism.noisy.leaves.streamed import check_statistics
from hedgerow.mechanism.noisy.posterior import PosteriorDraws
from hedgerow.mechanism.noisy.recipe import Recipe
from hedgerow.mechanism.noisy.rounds import Reader, ReadingTask
from hedgerow.privacy.settings import Settings
from hedgerow.randomness import Key
from hedgerow.tables.leaves import Leaves, go_over
from hedgerow.tables.table import Table
from hedgerow.threads import Workers, one_blas_thread


@dataclass(frozen=True, repr=False, eq=False)
class StreamedChain(Confidential):
    """Noisy statistics of a table in leaves, and what follows from them: nothing grows with the records."""

    settings: Settings
    key: Key
    released: tuple[ReleasedColumn, ...]
    clipped: tuple[tuple[int, int], ...]  # by column, amounts and how many of them limits moved; confidential

    @cached_property
    def drawn(self) -> tuple[PosteriorDraws, ...]:
        """The posterior of each column given what was released."""
        return draw_columns(self.released, draws=self.settings.draws, key=self.key.child("posterior"))

    def plan_copies(self) -> list[ChainCopying]:
        """How each copy is made, leaf by leaf."""
        return plan_copies(self.settings, self.released, self.drawn, key=self.key)


def plan_copies(
    settings: Settings, released: tuple[ReleasedColumn, ...], drawn: tuple[PosteriorDraws, ...], *, key: Key
) -> list[ChainCopying]:
    """How copies are made from draws that lie far apart."""
    places, own = draw_places(settings), key.child("release").child("predict")
    keys = [own.child(copy) for copy in range(len(places))]
    parameters = [one.parameters for one in drawn]
    return plan_chain(released, parameters, places, sampling=settings.sampling, keys=keys)


@one_blas_thread()
def stream_chain(settings: Settings, leaves: Leaves, *, key: Key, workers: Workers) -> StreamedChain:
    """Clip, sum and add noise, column by column, over a table that is read leaf by leaf."""
    check_statistics(settings)
    (tasks,) = go_over(workers, _Settle(settings, leaves.records), leaves, [0], stage=STAGE)
    chain = LeafChain(settings, tuple(tasks), leaves, workers)
    released = release_chain(chain, key=key.child("statistics"))
    counts = go_over(workers, _Clipped(settings, chain.tasks), leaves, stage=STAGE)
    by_column = zip(*counts, strict=True)
    clipped = tuple((sum(a for a, _ in one), sum(b for _, b in one)) for one in by_column)
    return StreamedChain(settings, key, released, clipped)


@one_blas_thread()
def predict_leaf(settings: Settings, copying: ChainCopying, leaves: Leaves, leaf: int) -> PerLink:
    """What a copy has of each link in the rows of a leaf, from public things and draws given statistics."""
    table, piece = read_piece(settings, leaves, leaf)
    return write_piece(settings, copying, table, piece)


def write_leaf(settings: Settings, copying: ChainCopying, leaves: Leaves, leaf: int) -> Any:
    """The rows of a leaf as a typed table with the synthetic columns of one copy; all columns are there."""
    values = predict_leaf(settings, copying, leaves, leaf)
    return write_copy(settings, settle_types(settings, leaves.table(leaf)), leaves.design(leaf), values)


def read_piece(settings: Settings, leaves: Leaves, leaf: int) -> tuple[Table, Piece]:
    """The records of a leaf: all of them, as far as is public, may have a cell of each column."""
    rows, masks = leaves.rows(leaf), [None] * len(settings.columns)
    own = [OwnRows(leaf, rows, leaves.records)] * len(masks)
    matrices = matrices_of(settings, leaves.design(leaf), masks)
    return settle_types(settings, leaves.table(leaf)), Piece(rows, matrices, own, masks)


@dataclass(frozen=True, eq=False, repr=False)
class LeafChain(OpenChain, Confidential):
    """A chain over a table in leaves, on which workers run tasks."""

    settings: Settings
    tasks: tuple[Task, ...]
    leaves: Leaves
    workers: Workers
    handed: tuple[Handed, ...] = ()

    def rows(self) -> LeafRows:
        return LeafRows(self.leaves, self.workers, read=_Predictors(self.settings, self.place))

    def rows_beside(self) -> LeafRows:
        return LeafRows(self.leaves, self.workers, read=_StandIns(self._state))

    def reader(self, recipe: Recipe, *, kinds: bool = False) -> Reader:
        state, capping = self._state, recipe.capping

        def read(task: ReadingTask) -> list[Any]:
            over = _Read(state, task, capping, kinds)
            return list(go_over(self.workers, over, self.leaves, stage=STAGE))

        return read

    def after(self, handed: Handed) -> "LeafChain":
        return replace(self, handed=(*self.handed, handed))

    @property
    def _state(self) -> "_ChainState":
        return _ChainState(self.settings, self.tasks, self.handed)


@dataclass(frozen=True, eq=False)
class _ChainState:
    """What tasks know of a chain as far as it is released: small, and public."""

    settings: Settings
    tasks: tuple[Task, ...]
    handed: tuple[Handed, ...]

    def join(self, piece: Piece, make: Callable[[int, Handed, Matrix], Matrix]) -> Matrix:
        """The next column's public predictors, and beside them entries that it reads."""
        place = len(self.handed)
        wanted = find_read(self.tasks, place)
        return piece.join(place, self.tasks[place], piece.hand_on_all(self.tasks, self.handed, make, wanted))


@dataclass(frozen=True)
class _Predictors:
    """A leaf's public predictors of a column."""

    settings: Settings
    place: int

    def __call__(self, leaves: Leaves, leaf: int) -> Matrix:
        return read_piece(self.settings, leaves, leaf)[1].matrices[self.place]


@dataclass(frozen=True, eq=False)
class _StandIns:
    """A leaf's public predictors of the next column, with stand-ins."""

    state: _ChainState

    def __call__(self, leaves: Leaves, leaf: int) -> Matrix:
        piece = read_piece(self.state.settings, leaves, leaf)[1]
        return self.state.join(piece, piece.stand_in)


@dataclass(frozen=True, eq=False)
class _Read:
    """A task over the next column's numbers, or the kinds of its cells, as one over leaves."""

    state: _ChainState
    task: ReadingTask
    capping: Capping
    kinds: bool

    def __call__(self, leaves: Leaves, leaf: int) -> Any:
        table, piece = read_piece(self.state.settings, leaves, leaf)
        values = read_columns(self.state.settings, table)
        matrix = self.state.join(piece, lambda place, one, matrix: one.entries(matrix, values[place]))
        own = values[len(self.state.handed)]
        part = part_of(matrix, piece.where, self.capping)
        return self.task(part, own.read(kinds=self.kinds), own.present)


@dataclass(frozen=True)
class _Settle:
    """What is settled of each column beforehand: by the plan, types, and how many records there are."""

    settings: Settings
    records: int

    def __call__(self, leaves: Leaves, leaf: int) -> list[Task]:
        table = settle_types(self.settings, leaves.table(leaf))
        return tasks_of(self.settings, table, leaves.design(leaf), self.records)


@dataclass(frozen=True)
class _Clipped:
    """By column, how many amounts a leaf has and how many were moved to a limit; confidential."""

    settings: Settings
    tasks: tuple[Task, ...]

    def __call__(self, leaves: Leaves, leaf: int) -> list[tuple[int, int]]:
        table = settle_types(self.settings, leaves.table(leaf))
        return count_clipped(self.tasks, read_columns(self.settings, table))
