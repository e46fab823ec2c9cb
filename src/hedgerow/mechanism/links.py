"""The designs of a chain's links, built from the cells of its columns one column after the other.

A later column reads an earlier one by what `cells.stand_in` says of it, the same as it reads of a copy.

Formal guarantees
-----------------
All links of a row are withheld together: `present` is confidential and only ever takes a link's likelihood of
a row away. Levels, kinds, fillers and rules are declared, and nothing of them is read off a protected cell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import numpy as np

from hedgerow.arrays import Mask, PerRecord
from hedgerow.errors import DataError, FormulaError, SettingError
from hedgerow.mechanism.cells import (
    Cells,
    Usable,
    check_derived,
    codes_of,
    fill_unused,
    stand_in,
    take_apart,
    with_numbers,
)
from hedgerow.models.base import Domain, Model
from hedgerow.models.families import on_log_scale
from hedgerow.privacy.columns import Column, Link, marks_of
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
    first, tell = settings[0], learnt is None or not learnt.designs
    check_derived(first, table)
    formulas = [parse(column.formula, table) for column in first.columns]
    levels = find_levels(first, table)
    check_links(formulas, table, levels)
    units = check_units(first, table, formulas)
    if units is not None:
        table = units.share(table, [column.outcome for column in first.columns if column.shared])
    marks, codes = marks_of(first.columns), codes_of(first.columns)
    levels |= {mark: (0.0, 1.0) for each in marks.values() for mark in each}
    outcomes = [column.outcome for column in first.columns]
    secret = [*outcomes, *(mark for each in marks.values() for mark in each)]
    table.require([name for column in first.columns for name in column.reads])
    checked = [name for check in first.rules.conditions for name in check.names]
    table.require([name for name in checked if name not in first.rules.names])
    table.require_complete(
        [name for column in first.columns for name in column.reads if name not in outcomes]
    )
    made, unknown, built = table, dict[str, Mask](), list[Design]()
    for column, formula in zip(first.columns, formulas, strict=True):
        own = [(place, link) for place, link in enumerate(first.links) if link.column is column]
        doubtful = [unknown[name] for name in (*formula.predictors, *column.reads) if name in unknown]
        hidden = np.logical_or.reduce(doubtful) if doubtful else None
        read = [mark for name in formula.predictors for mark in marks.get(name, ())]
        cells = None
        if not column.is_plain or hidden is not None:
            place = own[-1][0]
            cells = take_apart(
                column, table, first.domains[place], codes=codes, unknown=hidden,
                usable=_rule(settings, place),
            )  # fmt: skip
            # Others refuse no table; and a part of one may have none.
            if learnt is None and _rule(settings, place) is None and not cells.present.any():
                refuse_empty(column, table.rows)
        read_from = made if cells is None else fill_unused(first, column, made, cells.applies)
        for place, link in own:
            crossed = first.domains[place].crossed
            terms = [f"C(`{mark}`)" if crossed else f"`{mark}`" for mark in read]
            model, text = first.models[place], link.formula(terms)
            if cells is None:
                design = designs.build(
                    text, made, model.columns, first.domains[place].classes, secret=secret,
                    usable=_rule(settings, place), levels_of=levels, crossed=crossed, learnt=learnt,
                )  # fmt: skip
                if design.present is not None and not design.present.all():
                    unknown[column.outcome] = ~design.present
                    made = with_numbers(
                        made, {column.outcome: np.where(design.present, design.values, column.filler)}
                    )
            else:
                design = _build_part(text, read_from, model, cells, link, secret, levels, learnt)
            if units is not None and column.shared:  # its likelihood counts once
                present = units.leads if design.present is None else units.leads & design.present
                design = replace(design, present=present)
            hints = hint_at_logs(column.formula, table, outcomes) if tell and on_log_scale(model) else []
            built.append(replace(design, notes=(*design.notes, *hints)))
        if cells is not None:
            if not cells.known.all():
                unknown[column.outcome] = ~cells.known
            gone = ~cells.known if hidden is None else ~cells.known & ~hidden
            if gone.any():
                notes = note_withheld(column, int(gone.sum()), table.rows) if learnt is None else ()
                built[-1] = replace(built[-1], withheld=gone, notes=(*built[-1].notes, *notes))
            made = stand_in(made, cells, marks[column.outcome])
    return built


def check_units(settings: Settings, table: Table, formulas: Sequence[Formula]) -> Units | None:
    """The units that are priced together; refuses shared columns that are not their unit's own.

    A shared column that differs within a unit is refused as other data are, which no price under these
    standards covers (`Strict`, which may refuse none, has no shared columns).
    """
    if settings.unit is None:
        return None
    units = Units.of(table, settings.unit)
    shared = [column.outcome for column in settings.columns if column.shared]
    outcomes, known = [column.outcome for column in settings.columns], settings.standard.range
    hanging = set[str]()  # columns that follow, through others, from a shared one
    for column, formula in zip(settings.columns, formulas, strict=True):
        kinds = [] if column.kinds_by is None else [f"{quote(column.outcome)} ~ {column.kinds_by}"]
        read = [*formula.predictors, *column.reads]
        read += [name for text in kinds for name in parse(text, table).predictors]
        if any(name in shared or name in hanging for name in read):
            hanging.add(column.outcome)
            if known.restricts(column.outcome) and isinstance(known, Box) and not column.shared:
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


def _build_part(
    formula: str,
    made: Table,
    model: Model,
    cells: Cells,
    link: Link,
    secret: Sequence[str],
    levels_of: Mapping[str, tuple[Any, ...]],
    learnt: designs.Learnt | None,
) -> Design:
    """The design of one link of a column whose cells were taken apart."""
    values, present = cells.of_link(link)
    here = with_numbers(made, {link.outcome: np.where(present, values, 1.0)})
    design = designs.build(
        formula, here, model.columns, secret=[*secret, link.outcome], levels_of=levels_of,
        crossed=model.domain.crossed, learnt=learnt,
    )  # fmt: skip
    present = present if design.present is None else present & design.present
    levels = cells.column.kinds if link.role == "kind" else cells.levels
    design = replace(design, levels=levels)
    if present.all():
        return design
    return replace(design, values=np.where(present, values, _usual(model.domain, design)), present=present)


def _usual(domain: Domain, design: Design) -> float:
    """A number that the model describes, in place of an outcome that is not there: it has no power."""
    places = getattr(domain, "places", lambda _: ())(design)
    if places:
        return float(places[0])
    support = domain.support
    near = float(np.clip(1.0, support.lower, support.upper))
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
        f"learnt of it. {_whence(column)}"
    )


def _whence(column: Column) -> str:
    """What to do about a column without amounts."""
    if column.only_where is not None:
        return f"Check that only_where, {column.only_where}, spells labels as the table does."
    return "Leave it out of the columns that are protected, and drop it from the copies."


def _rule(settings: Sequence[Settings], place: int) -> Usable | None:
    """Which outcomes of a link every standard describes; None where one refuses the others."""
    rules = [rule for each in settings if (rule := each.domains[place].usable) is not None]
    return partial(_all_usable, rules) if len(rules) == len(settings) else None


def _all_usable(rules: Sequence[Usable], values: PerRecord) -> Mask:
    return np.logical_and.reduce([rule(values) for rule in rules])
