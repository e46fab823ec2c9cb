"""Draws given what was released of every column, and copies from them: post-processing, any number.

A column without entries has the posterior of `noisy.posterior`. With entries only its second round counts:
there residuals are about a line that has the entries in it, so that it matters little how the table's own
entries scatter, of which nobody knows more than stand-ins do.

    drawn = draw_columns(columns, draws=1000, key=key)
    (copying,) = plan_chain(columns, [one.parameters for one in drawn], [place], sampling=…, keys=[key])
    copying.values(piece)  # one column after the other, in the records of one leaf
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.arrays import Array, Mask, Matrix, PerRecord
from hedgerow.mechanism.noisy.chain.classes import ReleasedClasses, chances_of, draw_classes, pick_classes
from hedgerow.mechanism.noisy.chain.handed import Handed, OwnRows
from hedgerow.mechanism.noisy.chain.release import ReleasedColumn
from hedgerow.mechanism.noisy.chain.rows import Piece
from hedgerow.mechanism.noisy.chain.tasks import Task, Values
from hedgerow.mechanism.noisy.copies import Drawing, Numbers, draw_responses
from hedgerow.mechanism.noisy.margin import fit_tilts
from hedgerow.mechanism.noisy.posterior import PosteriorDraws, draw_posterior
from hedgerow.mechanism.noisy.released import Released
from hedgerow.models.base import Parameters
from hedgerow.privacy.terms import Sampling
from hedgerow.randomness import Key
from hedgerow.threads import one_blas_thread

Applies = Callable[[Sequence[Values]], Mask]  # where a rule leaves the next column a cell of its own


def draw_columns(columns: Sequence[ReleasedColumn], *, draws: int, key: Key) -> tuple[PosteriorDraws, ...]:
    """Draws of every column's parameters."""
    return tuple(draw_column(one, draws=draws, key=key.child(place)) for place, one in enumerate(columns))


def draw_column(column: ReleasedColumn, *, draws: int, key: Key) -> PosteriorDraws:
    """Draws of one column's parameters, entries last among the coefficients."""
    released = column.released
    if isinstance(released, ReleasedClasses):
        lines = draw_classes(released, draws=draws, key=key)
        return PosteriorDraws({"logits": lines}, float(draws), (1.0, 1.0, 1.0))
    if column.task.reads:
        released = replace(released, rounds=released.rounds[-1:])
    drawn = draw_posterior(released, draws=draws, key=key)
    if column.kinds is not None:
        drawn.parameters["logits"] = draw_classes(column.kinds, draws=draws, key=key.child("kinds"))
    return drawn


@dataclass(frozen=True, eq=False)
class Chances:
    """By what classes, or kinds of cells, of one copy are picked."""

    lines: Array  # logits, one after the other
    signed: bool
    numbers: Numbers
    fixed: int  # the class that a rule over protected columns makes it

    def pick(self, matrix: Matrix, own: OwnRows, fixed: Mask | None) -> PerRecord:
        """Classes by their chances; that at one place where a rule fixes it, and nowhere else."""
        chances = chances_of(self.lines, matrix, signed=self.signed)
        if fixed is not None:
            chances[:, self.fixed] = 0.0
            # A class that was all but certain leaves the others nothing to go by.
            chances += np.where(chances.sum(axis=1, keepdims=True) > 0, 0.0, 1.0)
            chances[:, self.fixed] = 0.0
        numbers = self.numbers.of(own.rows, chances @ np.arange(chances.shape[1]), own.leaf)
        picked = pick_classes(chances, numbers)
        return picked if fixed is None else np.where(fixed, self.fixed % chances.shape[1], picked)


@dataclass(frozen=True, eq=False)
class ColumnCopying:
    """What one copy needs to make the cells of a column: small, and public but for the keys."""

    task: Task
    handed: Handed
    cells: Chances | Drawing  # classes, or amounts
    kinds: Chances | None  # of amounts that not every cell has

    def values(self, matrix: Matrix, own: OwnRows, fixed: Mask | None) -> Values:
        """The cells of some of its rows, given predictors and the copy's entries of earlier columns."""
        there = np.ones(len(matrix), dtype=np.bool_)
        if isinstance(self.cells, Chances):
            return Values(self.cells.pick(matrix, own, fixed), there)
        numbers = self.cells.responses(own.rows, matrix, own.leaf)
        if self.kinds is None:
            return Values(numbers, there)
        kinds = self.kinds.pick(matrix, own, fixed).astype(np.int64)
        return Values(np.where(kinds < len(self.task.kinds), np.nan, numbers), there, kinds)


@dataclass(frozen=True, eq=False)
class ChainCopying:
    """What one copy needs to make all its columns."""

    columns: tuple[ColumnCopying, ...]

    def values(self, piece: Piece, applies: Applies | None = None) -> list[Values]:
        """The cells of some records, column by column.

        Where a rule over protected columns decides which records have a cell of the next column, `applies`
        says which, given what was made so far.
        """
        made, entries = list[Values](), list[Array]()
        for place, one in enumerate(self.columns):
            fixed = None
            if applies is not None and one.task.elsewhere:
                fixed = ~piece.pick(place, applies(made))
            matrix = piece.join(place, one.task, entries)
            made.append(one.values(matrix, piece.own[place], fixed))
            entries.append(piece.spread(place, one.handed.entries(matrix, made[-1])))
        return made


@one_blas_thread()
def plan_chain(
    columns: Sequence[ReleasedColumn],
    parameters: Sequence[Parameters],
    places: Sequence[int],
    *,
    sampling: Sampling,
    keys: Sequence[Key],
) -> list[ChainCopying]:
    """How a copy is made from the draws at each place, with a key each."""
    by_column = [
        _plan_column(column, own, places, sampling, [key.child(number) for key in keys])
        for number, (column, own) in enumerate(zip(columns, parameters, strict=True))
    ]
    return [ChainCopying(each) for each in zip(*by_column, strict=True)]


def _plan_column(
    column: ReleasedColumn,
    parameters: Parameters,
    places: Sequence[int],
    sampling: Sampling,
    keys: Sequence[Key],
) -> list[ColumnCopying]:
    """A column's part of every copy; together, since the passes that margins take are shared."""
    released, kinds = column.released, column.kinds
    cells, others = list[Chances | Drawing](), list[Chances | None]([None] * len(places))
    if isinstance(released, ReleasedClasses):
        cells += _draw_chances(released, parameters, places, sampling, keys, fixed=-1)
    else:
        cells += _draw_amounts(released, parameters, places, sampling, keys)
    if kinds is not None:
        own = [key.child("kinds") for key in keys]
        others = [*_draw_chances(kinds, parameters, places, sampling, own, fixed=0)]
    pairs = zip(cells, others, strict=True)
    return [ColumnCopying(column.task, column.handed, one, other) for one, other in pairs]


def _draw_chances(
    released: ReleasedClasses,
    parameters: Parameters,
    places: Sequence[int],
    sampling: Sampling,
    keys: Sequence[Key],
    *,
    fixed: int,
) -> list[Chances]:
    records, logits = released.recipe.records, parameters["logits"]
    return [
        Chances(logits[place], released.signed, Numbers(records, sampling, key), fixed)
        for place, key in zip(places, keys, strict=True)
    ]


def _draw_amounts(
    released: Released,
    parameters: Parameters,
    places: Sequence[int],
    sampling: Sampling,
    keys: Sequence[Key],
) -> list[Drawing]:
    lines = [(parameters["beta"][place], float(parameters["sigma"][place])) for place in places]
    tilts = [None] * len(lines) if released.counts is None else fit_tilts(released, lines)
    return [
        draw_responses(released.recipe, beta, sigma, tilt, sampling=sampling, key=key)
        for (beta, sigma), tilt, key in zip(lines, tilts, keys, strict=True)
    ]
