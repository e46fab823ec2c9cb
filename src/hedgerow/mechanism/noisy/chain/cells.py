"""What the cells of a protected column can be under Strict, and from cells to values and back.

A cell has an amount, or it is of a kind that has none: fixed by a rule, at a family's spike, a code, or
missing. Of classes all these are further classes. Which rows may have a cell of their own is public where the
column's rule reads public columns alone, or its gaps were declared public: the others are left out.

Formal guarantees
-----------------
`shape_columns` and `Shape.rows` read the plan, types and public cells. Whatever a protected cell holds,
nothing is refused because of it: what is no number, or no declared class, is missing, and a row whose rule
reads a blank is blank. What a record's values become depends on its own cells and on public things alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Confidential, Mask, PerRecord
from hedgerow.errors import SettingError
from hedgerow.mechanism.cells import apply_rules, find_own_rows
from hedgerow.mechanism.noisy.chain.tasks import Values
from hedgerow.models.base import Model
from hedgerow.models.exact import Regression
from hedgerow.models.families.classes import Classes
from hedgerow.privacy.columns import Column
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict.limits import amounts_of, has_words, spike_of
from hedgerow.tables.design import LARGEST
from hedgerow.tables.kinds import read_kinds
from hedgerow.tables.table import Table

ELSEWHERE = "fixed by its rule"


@dataclass(frozen=True)
class Shape:
    """What the cells of one column may be: public."""

    column: Column
    model: Model
    levels: tuple[Any, ...] | None  # the labels of classes
    places: tuple[float, ...]  # the numbers that stand for classes, in the table; none for amounts
    limits: tuple[float, float]  # of amounts, or of shares
    ruled: bool  # whether a rule over protected columns may fix a cell

    @property
    def others(self) -> tuple[str, ...]:
        """The kinds of cells that the column's own links know, apart from amounts and classes."""
        return self.column.kinds[1:]

    @property
    def kinds(self) -> tuple[str, ...]:
        """What a cell may be that has no amount; none for classes."""
        if self.places:
            return ()
        spike = spike_of(self.model)
        at_spike = () if spike is None else (f"at {spike:g}",)
        return (*((ELSEWHERE,) if self.ruled else ()), *at_spike, *self.others)

    @property
    def classes(self) -> int:
        """How many there are, with all that a cell may be beside; 0 for amounts."""
        return len(self.places) + len(self.others) + self.ruled if self.places else 0

    @property
    def regression(self) -> Regression:
        """The regression model of the amounts."""
        amounts = amounts_of(self.model)
        if amounts is None:
            raise SettingError(f"The {self.model.name} family has no noisy sums of amounts.")
        return amounts

    def rows(self, table: Table, codes: Mapping[str, Sequence[Any]]) -> Mask | None:
        """Which rows may have a cell of their own, where that is public and not all do."""
        rows = find_own_rows(self.column, table, codes)
        if not rows.any():
            raise SettingError(
                f"'{self.column.outcome}' has a cell of its own in no row, by what is public of it. Check "
                "only_where and share_of, or leave the column out."
            )
        return None if rows.all() else rows

    def write(self, values: Values, rows: Mask | None, records: int) -> list[Array]:
        """What each of the column's links has of a copy: the kind of each cell, and its amount or class."""
        numbers, others = values.numbers, np.zeros(len(values.numbers), np.int64)
        if self.places:
            above = numbers.astype(np.int64) - len(self.places)
            others = np.where((above >= 0) & (above < len(self.others)), above + 1, 0)
            own = np.array(self.places)[np.where(above >= 0, 0, numbers).astype(np.intp)]
        else:
            usual = self.regression.response(np.array([np.mean(self.limits)]))
            own = self.regression.outcome(np.where(np.isnan(numbers), usual, numbers))
            if values.kinds is not None:
                first = len(self.kinds) - len(self.others)
                others = np.where(values.kinds < len(self.kinds), np.maximum(values.kinds - first + 1, 0), 0)
                spike = spike_of(self.model)
                own = own if spike is None else np.where(values.kinds == int(self.ruled), spike, own)
        written = [others.astype(np.float64), own] if self.others else [own]
        if rows is None:
            return written
        pairs = zip((0.0, own[0])[-len(written) :], written, strict=True)
        return [_spread(part, rows, records, elsewhere) for elsewhere, part in pairs]


@dataclass(frozen=True, repr=False)
class ColumnCells(Confidential):
    """The cells of one column, taken apart, of all rows."""

    shape: Shape
    kinds: NDArray[np.int64]  # 0 for an amount or class, then the column's codes, the last for a missing cell
    amounts: PerRecord  # numbers, shares or places of classes; NaN where there is none
    applies: Mask  # where no rule fixes the cell
    known: Mask  # the others are blank

    @property
    def present(self) -> Mask:
        """Where there is an amount, or a class."""
        return self.applies & self.known & (self.kinds == 0)

    def values(self, rows: Mask | None) -> Values:
        """What sums are made of."""
        shape, chosen = self.shape, slice(None) if rows is None else rows
        others = self.applies & self.known & (self.kinds > 0)
        if shape.places:
            last = len(shape.places)
            numbers = np.where(others, last + self.kinds - 1, np.where(self.present, self.amounts, 0.0))
            numbers = np.where(self.applies, numbers, last + len(shape.others)).astype(np.float64)
            return Values(numbers[chosen], self.known[chosen])
        response = shape.regression.response(
            np.clip(np.where(self.present, self.amounts, 1.0), *shape.limits)
        )
        count, spike = len(shape.kinds), spike_of(shape.model)
        kinds = np.where(others, count - len(shape.others) + self.kinds - 1, count)
        if spike is not None:
            kinds[self.present & (self.amounts == spike)] = int(shape.ruled)
        kinds[~self.applies] = 0
        response = np.where(self.known & (kinds == count), response, np.nan)
        kinds = kinds[chosen].astype(np.int64)
        return Values(response[chosen], self.known[chosen], kinds if count else None)


def _spread(part: PerRecord, rows: Mask, records: int, elsewhere: float) -> Array:
    """Some rows among all."""
    whole = np.full(records, elsewhere)
    whole[rows] = part
    return whole


def shape_columns(settings: Settings, table: Table) -> list[Shape]:
    """What the cells of every column may be."""
    strict = settings.noisy
    limits = strict.limits if strict is not None and isinstance(strict.limits, Mapping) else {}
    shapes = []
    for link, model, domain in zip(settings.links, settings.models, settings.domains, strict=True):
        if link.role == "kind":
            continue
        name, levels = link.column.outcome, None
        places: tuple[float, ...] = ()
        if isinstance(domain, Classes):
            levels = _levels(domain, name, table)
            numbers = range(len(levels)) if levels is not None else domain.levels(_no_rows(table), name)
            places = tuple(float(place) for place in numbers or ())
        ruled = any(read in settings.outcomes for read in link.column.reads)
        pair = limits.get(name, (0.0, 1.0))
        shapes.append(Shape(link.column, model, levels, places, pair, ruled))
    return shapes


def read_cells(settings: Settings, table: Table) -> list[ColumnCells]:
    """The cells of every column; each rule reads the columns before its own as this has read them."""
    columns, unknown, so_far = list[ColumnCells](), dict[str, Mask](), table
    read = [name for column in settings.columns for name in column.reads]
    table.require(read)
    table.require_complete([name for name in read if name not in settings.outcomes])
    for shape in shape_columns(settings, table):
        column, name = shape.column, shape.column.outcome
        known = np.ones(table.rows, np.bool_)
        for before in column.reads:
            known &= ~unknown.get(before, np.zeros(table.rows, np.bool_))
        kinds = read_kinds(table, name, column.codes)
        applies, fixed, whole = apply_rules(column, so_far, settings.codes)
        amounts = _read_amounts(table, shape) / whole
        gap = (kinds > len(column.codes)) | ((kinds == 0) & np.isnan(amounts))
        kinds = np.where(gap, len(column.codes) + 1, kinds)
        if column.missing != "synthesized":
            known &= ~(gap & applies)
        cells = ColumnCells(shape, kinds, np.where(kinds == 0, amounts, np.nan), applies, known)
        columns.append(cells)
        unknown[name] = ~known
        if name in read:
            so_far = so_far.beside(Table.of(so_far.like({name: _restore(cells, fixed, whole)})))
    return columns


def _read_amounts(table: Table, shape: Shape) -> PerRecord:
    """Numbers, or places of classes; NaN where there is none."""
    name = shape.column.outcome
    if shape.levels is not None:
        places = table.places(name, shape.levels)
        return np.where(places >= 0, places, np.nan)
    values = table.gappy_numbers(name)
    if not shape.places:
        return np.clip(values, -LARGEST, LARGEST)
    at = np.searchsorted(shape.places, values).clip(0, len(shape.places) - 1)
    return np.where(np.array(shape.places)[at] == values, at, np.nan).astype(np.float64)


def _restore(cells: ColumnCells, fixed: PerRecord, whole: PerRecord) -> Any:
    """A column as the rules of later ones read it: its own numbers or words, nothing where it is blank."""
    shape, column = cells.shape, cells.shape.column
    known = cells.applies & cells.known
    if shape.levels is not None and not all(isinstance(level, bool) for level in shape.levels):
        words = [*map(str, shape.levels), *map(str, column.codes), None]
        codes = np.where(cells.kinds > 0, len(shape.levels) + cells.kinds - 1, np.nan_to_num(cells.amounts))
        elsewhere = column.otherwise if isinstance(column.otherwise, str) else None
        places = np.where(known, codes, len(words) - 1).astype(np.intp).tolist()
        pairs = zip(places, cells.applies, strict=True)
        return [words[place] if applies else elsewhere for place, applies in pairs]
    numbers = cells.amounts * whole
    if shape.places:
        numbers = np.array(shape.places)[np.nan_to_num(cells.amounts).astype(np.intp)]
    numbers = np.where(cells.present, numbers, np.nan)
    for place, code in enumerate(column.codes, 1):
        numbers = np.where(known & (cells.kinds == place), float(code), numbers)
    return np.where(cells.applies, numbers, fixed)


def _no_rows(table: Table) -> Table:
    """Types alone."""
    return table.rows_where(np.zeros(table.rows, np.bool_))


def settle_types(settings: Settings, table: Table) -> Table:
    """The table with its protected columns in types that follow from the plan, and from no cell."""
    for link, domain in zip(settings.links, settings.domains, strict=True):
        if link.role != "kind":
            settle = table.settle_words if has_words(domain) else table.settle_cells
            table = settle(link.column.outcome)
    return table


def _levels(domain: Classes, outcome: str, table: Table) -> tuple[Any, ...] | None:
    """The declared labels; None for classes that are numbers."""
    if table.is_numeric(outcome):
        return None
    if table.is_boolean(outcome):
        return (False, True)
    declared = domain.setting("levels")
    if declared is None or not isinstance(declared[0], str):
        raise SettingError(
            f"Strict: '{outcome}' holds labels, and its classes are to be public. Declare them in order: "
            'hr.Family("categorical", levels=["low", "high"]).'
        )
    return tuple(declared)
