"""Records with neighbouring fitted values, taken together: for the posterior, and for margins.

Where groups begin is found from all records of a table of one leaf, and in a longer one from some that are
spread over it, and the two ends; what is summed over a group are all of its records. All of it is public.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from hedgerow.arrays import Array, PerRecord
from hedgerow.mechanism.noisy.leaves.rows import Chosen, Part
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT, Presence, Recipe, choose_rows
from hedgerow.numerics import leaves
from hedgerow.numerics.sums.neighbours import Cuts, cut_evenly, cut_narrowly, split
from hedgerow.threads import share_out

_CELLS = 40
_GROUPS = 1000  # of fitted values: edges and tilts do not depend on n
_SOME = 16_384  # records of a table of several leaves by which groups are cut


def group_fitted(recipe: Recipe, lines: Sequence[Array]) -> list[tuple[Array, Array]]:
    """For each line: mean fitted values of neighbouring records, and the groups' shares of the records.

    With a spike each record counts for its chance of an amount.
    """
    cuts = [cut_evenly(some.fitted, some.numbers, groups=_GROUPS) for some in _refer(recipe, lines)]
    sums = reduce(np.add, recipe.rows.each(partial(_sum_groups, list(lines), cuts, recipe.presence)))
    groups = ((each[0] / each[1], each[2]) for each in sums)
    return [(fitted, seen / seen.sum()) for fitted, seen in groups]


def _sum_groups(lines: list[Array], cuts: list[Cuts], presence: Presence | None, part: Part) -> Array:
    """For each line and group of one leaf: the sum of fitted values, how many there are, and of chances."""
    chance, found = None if presence is None else presence.chance(part.matrix), []
    for line, cut in zip(lines, cuts, strict=True):
        fitted = _fit(part, line)
        order, starts = split(fitted, part.rows.start, cut)
        sizes = np.diff(np.append(starts, len(order))).astype(np.float64)
        seen = sizes if chance is None else _add_runs(chance[order], starts, sizes)
        found.append((_add_runs(fitted[order], starts, sizes), sizes, seen))
    return np.array(found)


def _add_runs(values: PerRecord, starts: Chosen, sizes: Array) -> Array:
    """Sums of runs, some of which may be empty."""
    sums = np.zeros(len(starts))
    there = sizes > 0
    sums[there] = np.add.reduceat(values, starts[there])
    return sums


class _Some(NamedTuple):
    """Records in the order of their fitted values; counted is 0 for an end that is not among those chosen."""

    fitted: Array
    numbers: Chosen
    counted: Array


def _refer(recipe: Recipe, lines: Sequence[Array]) -> list[_Some]:
    """For each line the records by which groups are cut."""
    chosen = _choose(recipe.records)
    parts, found = recipe.rows.each(partial(_refer_part, recipe.records, list(lines))), []
    for each in zip(*parts, strict=True):
        fitted = np.concatenate([values for values, *_ in each])
        ends = min(low for _, low, _ in each), max((high for _, _, high in each), key=lambda end: end[0])
        more = {number: value for value, number in ends if number not in chosen}
        numbers = np.concatenate([chosen, np.array(list(more), dtype=np.intp)])
        counted = np.concatenate([np.ones(len(chosen)), np.zeros(len(more))])
        fitted = np.concatenate([fitted, list(more.values())])
        by_number = np.argsort(numbers)
        order = by_number[np.argsort(fitted[by_number], kind="stable")]
        found.append(_Some(fitted[order], numbers[order], counted[order]))
    return found


def _refer_part(
    records: int, lines: list[Array], part: Part
) -> list[tuple[PerRecord, tuple[float, int], tuple[float, int]]]:
    """Fitted values of the chosen records of a leaf, and its lowest and highest with their numbers."""
    places, found = part.find(_choose(records)), []
    for line in lines:
        fitted = _fit(part, line)
        ends = int(fitted.argmin()), int(fitted.argmax())
        low, high = ((float(fitted[end]), part.rows.start + end) for end in ends)
        found.append((fitted[places], low, high))
    return found


def _choose(records: int) -> Chosen:
    return choose_rows(records, records if records <= leaves.LEAF else _SOME)


def _fit(part: Part, line: Array) -> PerRecord:
    return np.asarray(np.nan_to_num(part.matrix @ line))


@dataclass(frozen=True, eq=False)
class Cells:
    """Sums over records with neighbouring fitted values, so that a sweep does not depend on n. Per record."""

    share: Array  # of the records (cell,)
    centre: Array  # mean q (cell, p)
    loading: Array  # Σ v q / n (cell, p)
    slope: Array  # Σ v q q' / n (cell, p, p)
    square: Array  # Σ v² q q' / n (cell, p, p)
    scatter: Array  # Σ (q − centre)(q − centre)' / n (cell, p, p)
    mixed: tuple[Array, Array, Array] | None = (
        None  # Σ c(1−c){1, v q, v² q q'} / n, c the chance of an amount
    )

    @classmethod
    def of(cls, recipe: Recipe, line: Array) -> "Cells":
        """In two passes: where cells begin, and sums over their records."""
        (some,) = _refer(recipe, [line])
        cuts = cut_narrowly(some.fitted, some.numbers, some.counted, groups=_CELLS)
        parts = recipe.rows.each(partial(_sum_cells, recipe.basis, line, cuts, recipe.presence))
        sums = reduce(_CellSums.merge, parts).drop_empty()
        n = recipe.records
        share, loading, slope, square, scatter, *mixed = (
            one / n for one in (sums.seen, sums.loading, sums.slope, sums.square, sums.scatter, *sums.mixed)
        )
        both = (mixed[0], mixed[1], mixed[2]) if mixed else None
        return cls(share, sums.centre, loading, slope, square, scatter, both)


@dataclass(frozen=True, eq=False)
class _CellSums:
    """Sums over the records of each cell in some leaves; the first axis is the cell."""

    records: Array
    centre: Array  # their mean q
    seen: Array  # Σ c, the chance of an amount or 1
    lean: Array  # Σ c (q − centre)
    loading: Array  # Σ c v q
    slope: Array  # Σ c v q q'
    square: Array  # Σ c v² q q'
    scatter: Array  # Σ c (q − centre)(q − centre)'
    mixed: tuple[Array, ...] = field(kw_only=True)  # Σ c(1−c){1, v q, v² q q'}, with a spike

    def merge(self, other: "_CellSums") -> "_CellSums":
        """The moments of both, about their common centre."""
        records = self.records + other.records
        share = other.records / np.maximum(records, 1.0)
        centre = self.centre + share[:, None] * (other.centre - self.centre)
        # Where there are none the other's centre is all: nothing is to be moved, not even by rounding.
        centre = np.where((self.records == 0)[:, None], other.centre, centre)
        one, two = self._about(centre), other._about(centre)
        mixed = tuple(a + b for a, b in zip(self.mixed, other.mixed, strict=True))
        return _CellSums(records, centre, *(a + b for a, b in zip(one, two, strict=True)), mixed=mixed)

    def _about(self, centre: Array) -> tuple[Array, ...]:
        """The sums, those of distances about another centre."""
        moved = self.centre - centre
        turned = self.lean[:, :, None] * moved[:, None]
        scatter = self.scatter + turned + turned.transpose(0, 2, 1)
        scatter = scatter + self.seen[:, None, None] * (moved[:, :, None] * moved[:, None])
        lean = self.lean + self.seen[:, None] * moved
        return self.seen, lean, self.loading, self.slope, self.square, scatter

    def drop_empty(self) -> "_CellSums":
        """Cells that have records."""
        there = self.records > 0
        plain = (one[there] for one in (self.records, self.centre, *self._about(self.centre)))
        return _CellSums(*plain, mixed=tuple(one[there] for one in self.mixed))


def _sum_cells(basis: Array, line: Array, cuts: Cuts, presence: Presence | None, part: Part) -> _CellSums:
    """Sums of each cell over one leaf."""
    order, starts = split(_fit(part, line), part.rows.start, cuts)
    chances = None if presence is None else presence.chance(part.matrix)
    width = len(basis)

    def add(rows: Chosen) -> tuple[Any, ...]:
        q, loading = part.matrix[rows] @ basis, part.loadings[rows] * LOADING_UNIT
        centre = q.mean(axis=0) if len(rows) else np.zeros(width)
        away = q - centre
        if chances is None:
            seen, sums = np.array(float(len(rows))), (loading, loading.T @ q, loading.T @ loading)
            return seen, centre, seen, np.zeros(width), sums[0].sum(0), *sums[1:], away.T @ away
        chance = chances[rows]  # each record counts for its chance of an amount
        heavy, mixed = loading * chance[:, None], chance * (1 - chance)
        lean, scatter = chance @ away, (away.T * chance) @ away
        sums = heavy.sum(0), heavy.T @ q, heavy.T @ loading
        spiked = mixed.sum(), mixed @ loading, (loading.T * mixed) @ loading
        return np.array(float(len(rows))), centre, chance.sum(), lean, *sums, scatter, *spiked

    found = share_out(add, np.split(order, starts[1:]), worth=len(order) > _SOME)
    columns = [np.array(each, dtype=np.float64) for each in zip(*found, strict=True)]
    return _CellSums(*columns[:8], mixed=tuple(columns[8:]))
