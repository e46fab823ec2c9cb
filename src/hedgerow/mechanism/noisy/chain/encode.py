"""Formulas and a table to one public design per protected column, with its values beside it.

An earlier protected column in a formula, in whatever transform, stands for its residual, which the matrix
does not hold: it is made of public columns alone, and nothing of it depends on a protected value. Whatever a
protected cell holds, nothing is refused because of it: what is no number, or no declared class, is missing.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.arrays import PerRecord, RecordMask
from hedgerow.errors import FormulaError, SettingError
from hedgerow.mechanism.cells import check_derived
from hedgerow.models.families.classes import Classes, TwoClasses
from hedgerow.privacy.columns import Column
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict.limits import has_words
from hedgerow.tables import design as designs
from hedgerow.tables.chain import ChainDesign
from hedgerow.tables.design import LARGEST, Design
from hedgerow.tables.formula import parse, shorten
from hedgerow.tables.table import Table
from hedgerow.tables.values import Declared

_NO_VALUE = 1.0  # in place of a value that is not there


def encode_columns(settings: Settings, table: Table) -> Design:
    """A design for each protected column, and one more for where gaps are that copies have too."""
    check_derived(settings, table)
    table = settle_types(settings, table)
    outcomes = [column.outcome for column in settings.columns]
    links: list[Design] = []
    for each, domain in zip(settings.links, settings.domains, strict=True):
        column = each.column
        formula, _ = read_formula(column, outcomes, table)
        link = build_public(formula, column.outcome, table)
        if each.role == "kind":
            links.append(replace(link, outcome=each.outcome, levels=column.kinds))
            continue
        levels = _levels(domain, column.outcome, table) if isinstance(domain, Classes) else None
        values, present = _read_values(table, column.outcome, levels)
        if links and links[-1].outcome == f"{column.outcome}: kind":
            links[-1] = replace(links[-1], values=np.where(present, 0.0, 1.0))
        known = np.where(present, np.clip(values, -LARGEST, LARGEST), _NO_VALUE)
        links.append(replace(link, values=known, present=present, levels=levels))
    return links[0] if len(links) == 1 else ChainDesign.of(links)


def settle_types(settings: Settings, table: Table) -> Table:
    """The table with its protected columns in types that follow from the plan, and from no cell."""
    for each, domain in zip(settings.links, settings.domains, strict=True):
        if each.role == "amount" and not has_words(domain):
            flags = isinstance(domain, TwoClasses) and domain.setting("levels") is None
            table = table.settle_cells(each.outcome, flags=flags)
    return table


def build_public(formula: str, outcome: str, table: Table) -> Design:
    """The design of public predictors; ones stand in the outcome's place, of which it would refuse some."""
    ones = table.with_column(outcome, np.ones(table.rows), declared=Declared("number"))
    return designs.build(formula, Table.of(ones))


def read_formula(column: Column, outcomes: Sequence[str], table: Table) -> tuple[str, tuple[int, ...]]:
    """The public part of a column's formula, and the places of the earlier columns it reads."""
    parsed = parse(column.formula, table)
    text, read = parsed.set_apart(outcomes)
    place = outcomes.index(column.outcome)
    for name in read:
        if name in outcomes[place:]:
            raise FormulaError(
                f"Formula '{shorten(column.formula)}' reads '{name}', which is synthesized later. Put "
                f"'{name}' before '{column.outcome}', or leave it out of that formula."
            )
    return text, tuple(sorted(outcomes.index(name) for name in read))


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


def _read_values(table: Table, outcome: str, levels: tuple[Any, ...] | None) -> tuple[PerRecord, RecordMask]:
    if levels is None:
        values = table.gappy_numbers(outcome)
        return values, ~np.isnan(values)
    places = table.places(outcome, levels)
    return places, places >= 0
