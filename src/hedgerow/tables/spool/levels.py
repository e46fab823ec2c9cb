"""A few records that have every level of the public columns that a formula makes categories of.

What is learnt of them, which categories there are and which of them is the reference, is what would be learnt
of all. Of the levels of several columns in one factor, such as C(a + b), they have every combination.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hedgerow.errors import FormulaError, list_some
from hedgerow.tables.formula import Formula, shorten
from hedgerow.tables.spool.store import Spooled
from hedgerow.tables.table import Table
from hedgerow.threads import Workers

MOST_LEVELS = 10_000  # columns that a design may have
MOST_CELLS = 100_000  # of which each has shares of its own
_SPREAD = 4_096  # records from all over the table, for hints


@dataclass(frozen=True)
class FirstRows:
    """The first row of each combination of values, for each of some groups of columns."""

    groups: tuple[tuple[str, ...], ...]

    def __call__(self, leaves: Spooled, leaf: int) -> list[dict[tuple[Any, ...], int]]:
        start = leaves.rows(leaf).start
        table = leaves.table(leaf).select(
            list(dict.fromkeys(name for group in self.groups for name in group))
        )
        found = []
        for group in self.groups:
            codes, values = np.zeros(table.rows, np.int64), list[list[Any]]()
            for name in group:
                words, inner = _encode(table.native.column(name))
                values.append(words)
                codes = codes * len(words) + inner
            # Combinations that occur, from the codes back to the values of each column.
            occurring, first = np.unique(codes, return_index=True)
            places = np.unravel_index(occurring, [len(words) for words in values])
            keys = zip(
                *([words[p] for p in at] for words, at in zip(values, places, strict=True)), strict=True
            )
            found.append(dict(zip(keys, (first + start).tolist(), strict=True)))
        return found


def find_rows(
    leaves: Spooled,
    workers: Workers,
    formulas: Iterable[Formula],
    blank: Table,
    protected: Sequence[str],
    crossed: Iterable[Formula] = (),
) -> list[int]:
    """The records from which an encoding is learnt, by number; `blank` has the columns of the table.

    Of formulas that are `crossed` they have every combination of public predictors that occurs.
    """
    groups = {
        group: formula
        for formula in formulas
        for group in formula.categories(blank)
        if not set(group) & {*protected}
    }
    cells = {tuple(name for name in each.predictors if name not in protected): each for each in crossed}
    groups |= {group: formula for group, formula in cells.items() if group}
    rows = set(np.linspace(0, leaves.records - 1, _SPREAD).astype(np.int64).tolist())
    if groups:
        known: list[dict[tuple[Any, ...], int]] = [{} for _ in groups]
        for found in workers.map(FirstRows(tuple(groups)), leaves, range(leaves.count)):
            for group, before, here in zip(groups, known, found, strict=True):
                for key, row in here.items():
                    before.setdefault(key, row)
                if len(before) > (MOST_CELLS if group in cells else MOST_LEVELS):
                    raise FormulaError(_describe_many(groups[group], group, group in cells))
        rows.update(row for before in known for row in before.values())
    return sorted(rows)


def _describe_many(formula: Formula, group: Sequence[str], crossed: bool) -> str:
    names = list_some(group, quoted=True)
    if crossed:
        return (
            f"Formula '{shorten(formula.text)}' makes more than {MOST_CELLS:,} cells of {names}. Use fewer "
            "predictors, or put them into classes first."
        )
    return (
        f"Formula '{shorten(formula.text)}' makes categories of {names}, which has more than {MOST_LEVELS} "
        "values. Use it as a number, or put it into classes first."
    )


def _encode(column: pa.ChunkedArray) -> tuple[list[Any], np.ndarray[Any, np.dtype[np.int64]]]:
    """The values of a column, and the place of each cell's among them; a missing one has a place too."""
    coded = column.combine_chunks()
    if not pa.types.is_dictionary(coded.type):
        coded = coded.dictionary_encode(null_encoding="encode")
    words = coded.dictionary
    if pa.types.is_temporal(words.type):
        words = words.cast(pa.int64() if words.type.bit_width == 64 else pa.int32())
    places = coded.indices.fill_null(len(words)).to_numpy().astype(np.int64)
    return [*words.to_pylist(), None], places
