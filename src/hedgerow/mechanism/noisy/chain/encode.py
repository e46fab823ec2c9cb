"""Formulas and a table to one public design per protected column, with its values beside it.

An earlier protected column in a formula, in whatever transform, stands for its residual, which the matrix
does not hold: it is made of public columns alone, and nothing of it depends on a protected value.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hedgerow.errors import FormulaError
from hedgerow.mechanism.cells import check_derived
from hedgerow.mechanism.noisy.chain.cells import read_cells, settle_types
from hedgerow.privacy.columns import Column
from hedgerow.privacy.settings import Settings
from hedgerow.tables import design as designs
from hedgerow.tables.chain import ChainDesign
from hedgerow.tables.design import Design
from hedgerow.tables.formula import parse, shorten
from hedgerow.tables.table import Table
from hedgerow.tables.values import Declared

_NO_VALUE = 1.0  # in place of a value that is not there


def encode_columns(settings: Settings, table: Table, learnt: designs.Learnt | None = None) -> Design:
    """A design for each link: which kind a cell is, where copies have several, and its amount or class.

    `learnt` is for a table that comes in parts (`tables.design.build`).
    """
    check_derived(settings, table)
    table = settle_types(settings, table)
    taken = {one.shape.column.outcome: one for one in read_cells(settings, table)}
    links: list[Design] = []
    for each in settings.links:
        column, cells = each.column, taken[each.column.outcome]
        link = build_public(read_formula(column, settings.outcomes, table)[0], column.outcome, table, learnt)
        levels: tuple[Any, ...] | None = column.kinds
        if each.role == "kind":
            there = cells.applies & cells.known
            values = np.where(there, cells.kinds, 0).astype(np.float64)
        else:
            there, levels = cells.present, cells.shape.levels
            numbers = cells.amounts
            if cells.shape.places and levels is None:  # as the table has them
                numbers = np.array(cells.shape.places)[np.nan_to_num(numbers).astype(np.intp)]
            values = np.where(there, numbers, _NO_VALUE)
        links.append(replace(link, outcome=each.outcome, values=values, present=there, levels=levels))
    return links[0] if len(links) == 1 else ChainDesign.of(links)


def build_public(formula: str, outcome: str, table: Table, learnt: designs.Learnt | None = None) -> Design:
    """The design of public predictors; ones stand in the outcome's place, of which it would refuse some."""
    ones = table.with_column(outcome, np.ones(table.rows), declared=Declared("number"))
    return designs.build(formula, Table.of(ones), learnt=learnt)


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
