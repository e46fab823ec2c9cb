"""The designs of a chain's links, built from the cells of its columns one column after the other.

A later column reads an earlier one by what `cells.with_fillers` says of it, the same as it reads of a copy.

Formal guarantees
-----------------
All links of a row are withheld together: `present` is confidential and only ever takes a link's likelihood of
a row away. Levels, kinds, fillers and rules are declared, and nothing of them is read off a protected cell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np

from hedgerow.arrays import Confidential, Mask, PerRecord
from hedgerow.errors import DataError, FormulaError, SettingError
from hedgerow.mechanism.cells import (
    Cells,
    Usable,
    check_derived,
    fill_unused,
    take_apart,
    with_fillers,
    with_numbers,
)
from hedgerow.models.base import Domain
from hedgerow.models.families import on_log_scale
from hedgerow.privacy.columns import Column
from hedgerow.privacy.ranges import Box
from hedgerow.privacy.settings import Settings
from hedgerow.tables import design as designs
from hedgerow.tables.chain import Units, check_links
from hedgerow.tables.design import Design
from hedgerow.tables.formula import Formula, parse, quote
from hedgerow.tables.predictors import hint_at_logs
from hedgerow.tables.table import Table


def build_links(
    table: Table, settings: Sequence[Settings], learnt: designs.Learnt | None = None
) -> list[Design]:
    """A design for each link, for settings that differ in their standards alone.

    An outcome that is missing, or none that the model describes, counts as withheld where every standard
    takes it so. `learnt` is for a table that comes in parts (`tables.design.build`).
    """
    first = settings[0]
    check_derived(first, table)
    formulas = [parse(column.formula, table) for column in first.columns]
    levels = find_levels(first, table)
    check_links(formulas, table, levels)
    units = check_units(settings, table, formulas)
    _check_ranges(settings, formulas)
    if units is not None:
        table = units.share(table, [column.outcome for column in first.columns if column.shared])
    _check_rules(first, table)
    levels |= {mark: (0.0, 1.0) for marks in first.marks.values() for mark in marks}
    hint = learnt is None or not learnt.designs  # once for all parts
    builder = _LinkBuilder(table, settings, levels, units, learnt, hint, read=table)
    for column, formula in zip(first.columns, formulas, strict=True):
        builder.add(column, formula)
    return builder.designs


@dataclass(repr=False)
class _LinkBuilder(Confidential):
    """Builds links column by column: their designs so far, and the table as later columns read it."""

    table: Table
    settings: Sequence[Settings]
    levels: Mapping[str, tuple[Any, ...]]  # by which columns are encoded where others read them
    units: Units | None
    learnt: designs.Learnt | None
    hint: bool  # whether the owner is told which predictors might be logs
    read: Table
    unknown: dict[str, Mask] = field(default_factory=dict)  # cells that count as withheld, by column
    designs: list[Design] = field(default_factory=list)

    def __post_init__(self) -> None:
        first = self.settings[0]
        self.links, self.models, self.domains = first.links, first.models, first.domains
        self.marks = first.marks
        self.secret = (*first.outcomes, *(mark for marks in self.marks.values() for mark in marks))

    def add(self, column: Column, formula: Formula) -> None:
        """Build the links of the next column."""
        read = (*formula.predictors, *column.reads)
        doubtful = [self.unknown[name] for name in read if name in self.unknown]
        places = [place for place, link in enumerate(self.links) if link.column is column]
        if column.is_plain and not doubtful:
            self._add_plain(column, places[0], formula)
        else:
            self._add_cells(column, places, formula, np.logical_or.reduce(doubtful) if doubtful else None)

    def _add_plain(self, column: Column, place: int, formula: Formula) -> None:
        """A column of amounts or classes alone, which reads nothing that counts as withheld."""
        domain = self.domains[place]
        design = designs.build(
            self._write(place, formula), self.read, self.models[place].columns, domain.classes,
            secret=self.secret, usable=self._usable(place), levels_of=self.levels, crossed=domain.crossed,
            learnt=self.learnt,
        )  # fmt: skip
        self._append(column, place, design)
        if design.present is not None and not design.present.all():
            self.unknown[column.outcome] = ~design.present
            values = np.where(design.present, design.values, column.filler)
            self.read = with_numbers(self.read, {column.outcome: values})

    def _add_cells(self, column: Column, places: list[int], formula: Formula, hidden: Mask | None) -> None:
        """A column whose cells are taken apart; `hidden` are rows in which it reads something withheld."""
        last, first = places[-1], self.settings[0]
        usable = self._usable(last)
        cells = take_apart(
            column, self.table, self.domains[last], codes=first.codes, unknown=hidden, usable=usable
        )
        # Others refuse no table; and a part of one may have none.
        if self.learnt is None and usable is None and not cells.present.any():
            refuse_empty(column, self.table.rows)
        read = fill_unused(first, column, self.read, cells.applies)
        for place in places:
            self._append(column, place, self._build_part(place, self._write(place, formula), read, cells))
        if not cells.known.all():
            self.unknown[column.outcome] = ~cells.known
        gone = ~cells.known if hidden is None else ~cells.known & ~hidden
        if gone.any():
            design, count = self.designs[-1], int(gone.sum())
            notes = note_withheld(column, count, self.table.rows) if self.learnt is None else ()
            self.designs[-1] = replace(design, withheld=gone, notes=(*design.notes, *notes))
        self.read = with_fillers(self.read, cells, self.marks[column.outcome])

    def _build_part(self, place: int, formula: str, read: Table, cells: Cells) -> Design:
        """The design of one link of a column whose cells were taken apart."""
        link, model = self.links[place], self.models[place]
        values, present = cells.of_link(link)
        table = with_numbers(read, {link.outcome: np.where(present, values, 1.0)})
        design = designs.build(
            formula, table, model.columns, secret=[*self.secret, link.outcome], levels_of=self.levels,
            crossed=model.domain.crossed, learnt=self.learnt,
        )  # fmt: skip
        present = present if design.present is None else present & design.present
        levels = cells.column.kinds if link.role == "kind" else cells.levels
        design = replace(design, levels=levels)
        if present.all():
            return design
        values = np.where(present, values, _usual(model.domain, design))
        return replace(design, values=values, present=present)

    def _write(self, place: int, formula: Formula) -> str:
        """The formula of a link, with the marks of the columns that it reads."""
        marks = [mark for name in formula.predictors for mark in self.marks.get(name, ())]
        crossed = self.domains[place].crossed
        return self.links[place].formula([f"C(`{mark}`)" if crossed else f"`{mark}`" for mark in marks])

    def _append(self, column: Column, place: int, design: Design) -> None:
        if self.units is not None and column.shared:  # its likelihood counts once
            leads = self.units.leads
            design = replace(design, present=leads if design.present is None else leads & design.present)
        hints: list[str] = []
        if self.hint and on_log_scale(self.models[place]):
            hints = hint_at_logs(column.formula, self.table, self.settings[0].outcomes)
        self.designs.append(replace(design, notes=(*design.notes, *hints)))

    def _usable(self, place: int) -> Usable | None:
        """Which outcomes of a link every standard describes; None where one refuses the others."""
        rules = [rule for each in self.settings if (rule := each.domains[place].usable) is not None]
        return partial(_all_usable, rules) if len(rules) == len(self.settings) else None


def _check_rules(settings: Settings, table: Table) -> None:
    """Refuse rules and checks that read columns which are not there, or public ones with gaps."""
    read = [name for column in settings.columns for name in column.reads]
    table.require(read)
    checked = [name for check in settings.rules.conditions for name in check.names]
    table.require([name for name in checked if name not in settings.rules.names])
    table.require_complete([name for name in read if name not in settings.outcomes])


def _check_ranges(settings: Sequence[Settings], formulas: Sequence[Formula]) -> None:
    """Refuse ranges whose probability nobody computes: it would need that of a rule's cells in each row."""
    ruled = set[str]()  # columns with cells that a rule fixes, and those that follow from such
    for column, formula in zip(settings[0].columns, formulas, strict=True):
        read = [name for name in formula.predictors if name in ruled]
        if read and _is_ranged(settings, column.outcome):
            raise SettingError(
                f"Box: '{column.outcome}' has a range and follows from '{read[0]}', which goes back to cells "
                f"that a rule fixes (only_where or share_of): the probability of the range is not known. "
                f"Leave '{read[0]}' out of its formula, or the range out of the box."
            )
        if read or column.reads:
            ruled.add(column.outcome)


def _is_ranged(settings: Sequence[Settings], outcome: str) -> bool:
    """Whether something is known of one of several columns, under any of the standards."""
    ranges = [each.standard.range for each in settings]
    return any(isinstance(known, Box) and known.restricts(outcome) for known in ranges)


def check_units(every: Sequence[Settings], table: Table, formulas: Sequence[Formula]) -> Units | None:
    """The units that are priced together; refuses shared columns that are not their unit's own.

    A shared column that differs within a unit is refused as other data are, which no price under these
    standards covers (`Strict`, which may refuse none, has no shared columns).
    """
    settings = every[0]
    if settings.unit is None:
        return None
    units = Units.of(table, settings.unit)
    shared = [column.outcome for column in settings.columns if column.shared]
    outcomes = settings.outcomes
    hanging = set[str]()  # columns that follow, through others, from a shared one
    for column, formula in zip(settings.columns, formulas, strict=True):
        kinds = [] if column.kinds_by is None else [f"{quote(column.outcome)} ~ {column.kinds_by}"]
        read = [*formula.predictors, *column.reads]
        read += [name for text in kinds for name in parse(text, table).predictors]
        if any(name in shared or name in hanging for name in read):
            hanging.add(column.outcome)
            if _is_ranged(every, column.outcome) and not column.shared:
                raise SettingError(
                    f"Box: '{column.outcome}' has a range and follows from a column that the rows of one "
                    f"'{units.name}' share, so that their probabilities do not multiply. Leave its range "
                    "out, or shared."
                )
        if not column.shared:
            continue
        for name in dict.fromkeys(read):
            if name in outcomes and name not in shared:
                raise FormulaError(
                    f"'{column.outcome}' is shared by the rows of one '{units.name}' and reads "
                    f"'{name}', which each row has for itself. Put it before '{name}', and let that read it."
                )
            if name not in outcomes:
                units.check_predictor(table, column.outcome, name)
        if units.differs(table, column.outcome):
            raise DataError(
                f"Column '{column.outcome}' is shared, and some '{units.name}' has rows with different cells "
                "of it. Give each unit one, or leave shared out: rows are then modelled one by one and still "
                "priced together."
            )
    return units


def crossed_formulas(settings: Settings) -> list[str]:
    """Formulas whose public predictors make cells together; those of kinds are written as their column's."""
    return [
        f"{quote(link.column.outcome)} ~ {link.column.kinds_by}" if link.role == "kind" else link.formula()
        for link, domain in zip(settings.links, settings.domains, strict=True)
        if domain.crossed
    ]


def find_levels(settings: Settings, table: Table) -> dict[str, tuple[Any, ...]]:
    """The declared classes of protected columns, by which later ones encode them."""
    levels = {}
    for link, domain in zip(settings.links, settings.domains, strict=True):
        # The type of a column says enough: its cells may be gaps and codes.
        part = table if link.column.is_plain else table.rows_where(np.zeros(table.rows, np.bool_))
        found = None if link.role == "kind" else domain.levels(part, link.column.outcome)
        if found is not None:
            levels[link.column.outcome] = found
    return levels


def _usual(domain: Domain, design: Design) -> float:
    """A number that the model describes, in place of an outcome that is not there: it has no power."""
    places = getattr(domain, "places", lambda _: ())(design)
    if places:
        return float(places[0])
    support = domain.support
    step = getattr(domain, "rounded", None) or 1.0  # ends are multiples of it
    near = float(np.clip(step, support.lower, support.upper))
    at_end = (near == support.lower and support.above) or (near == support.upper and support.below)
    return (support.lower + min(support.upper, support.lower + 2)) / 2 if at_end else near


def note_withheld(column: Column, withheld: int, records: int) -> tuple[str, ...]:
    """What the owner should know of cells that count as withheld."""
    if not withheld:
        return ()
    return (
        f"{withheld} of {records} cells of '{column.outcome}' are missing, or break its rule. They count as "
        "withheld, and their rows get synthetic cells like any other (confidential).",
    )


def refuse_empty(column: Column, records: int) -> NoReturn:
    """Refuse a column of which no record has anything to learn from."""
    raise DataError(
        f"Column '{column.outcome}' has no amount or class in any of {records} rows, so that nothing can be "
        f"learnt of it. {_remedy(column)}"
    )


def _remedy(column: Column) -> str:
    """What to do about a column without amounts."""
    if column.only_where is not None:
        return f"Check that only_where, {column.only_where}, spells labels as the table does."
    return "Leave it out of the columns that are protected, and drop it from the copies."


def _all_usable(rules: Sequence[Usable], values: PerRecord) -> Mask:
    return np.logical_and.reduce([rule(values) for rule in rules])
