"""Pairs of columns: rank correlations, and tables of two columns.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": ["x", "x", "y", "y"], "b": [1, 2, 1, 2]})
    >>> copy = table.assign(b=[1, 1, 2, 2])
    >>> compare_two_way(table, copy, classes=["b"])["TVD"].tolist()
    [0.5, 0.5]

Confidential.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import PerRecord
from hedgerow.evidence.utility.stack import (
    Rows,
    Stack,
    Stacked,
    pooled_columns,
    read_weights,
    stack_tables,
    sum_up,
)
from hedgerow.tables.table import Table
from hedgerow.threads import WORTH_SHARING, share_out

GROUPS = 5  # of numbers in a table of two columns
TWO_WAY = ("TVD", "VW", "df", "S_VW")
_MOST_CLASSES = 30


def compare_associations(
    protected: Mapping[str, PerRecord],
    copies: Sequence[Mapping[str, PerRecord]],
    public: Mapping[str, PerRecord],
) -> dict[str, list[object]]:
    """Tidy columns first, second, copy, original, synthetic: rank correlations of pairs.

    One of a pair is protected at least. A pair's records are those with values of both; public columns are in
    every copy as they are.
    """
    names, found = list(protected), dict[str, list[object]]()
    pairs = [(a, b) for place, a in enumerate(names) for b in (*names[place + 1 :], *public)]
    tables = [{**public, **table} for table in (protected, *copies)]
    ranked = share_out(_rank_all, tables, worth=len(next(iter(protected.values()))) > WORTH_SHARING)
    for a, b in pairs:
        truth, *synthetic = (_rank_correlation(ranks[a], ranks[b]) for ranks in ranked)
        shown = {str(k): value for k, value in enumerate(synthetic, 1)}
        shown |= {label: float(cells[0]) for label, cells in sum_up(np.array([synthetic]).T).items()}
        for copy, value in shown.items():
            row = {"first": a, "second": b, "copy": copy, "original": truth, "synthetic": value}
            for name, cell in row.items():
                found.setdefault(name, []).append(cell)
    return found


def _rank_all(table: Mapping[str, PerRecord]) -> dict[str, PerRecord]:
    from scipy.stats import rankdata  # slow to import

    return {name: rankdata(values, nan_policy="omit") for name, values in table.items()}


def _rank_correlation(first: PerRecord, second: PerRecord) -> float:
    """Spearman's, of ranks; NaN where one of them does not vary."""
    there = np.isfinite(first) & np.isfinite(second)
    if not there.all():
        first, second = _rank_all({"first": first[there], "second": second[there]}).values()
    if len(first) < 2 or not np.ptp(first) or not np.ptp(second):
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def compare_two_way(
    original: Any,
    copies: Any,
    *,
    protected: Collection[str] | None = None,
    classes: Collection[str] = (),
    codes: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    columns: Sequence[str] | None = None,
    weight: str | None = None,
) -> Any:
    """Tables of two columns, one of them protected at least: how far copies are from the original.

    `TVD` is the total variation distance of the cells' shares, 0 at best and 1 at most; with `weight`, the
    name of the survey weights, of their weighted shares. `VW` is Voas and Williamson's statistic of the
    counts, `df` its degrees of freedom, `S_VW` their ratio: 1 where nothing was lost, 2 for another sample.
    Numbers are put into fifths of the original's; a missing cell, or a code, is a class.
    """
    stack = stack_tables(original, copies, protected=protected, classes=classes, codes=codes, columns=columns)
    weights = None
    if weight is not None:
        weights = read_weights(stack_tables(original, copies, columns=[weight]), weight)
    rows = two_way_of_copies(stack, weights, without=[weight] if weight else ())
    return Table.of(original).like(pooled_columns(rows, TWO_WAY))


def two_way_of_copies(stack: Stack, weights: PerRecord | None, without: Collection[str] = ()) -> Rows:
    """What `compare_two_way` finds, a row per pair and copy; columns of many labels are left out.

    And so are kept columns `without` which tables are made, such as public weights.
    """
    kept = stack.kept.intersection(without)
    grouped = {
        name: _group(column, stack.part(0)) for name, column in stack.columns.items() if name not in kept
    }
    grouped = {name: places for name, places in grouped.items() if places.max() < _MOST_CLASSES}
    weights = np.ones(sum(stack.sizes)) if weights is None else weights
    names, found = [name for name in stack.protected if name in grouped], Rows()
    pairs = [
        (a, b)
        for place, a in enumerate(names)
        for b in (*names[place + 1 :], *(name for name in grouped if name in stack.kept))
    ]
    for a, b in pairs:
        width = int(grouped[b].max()) + 1
        cells = grouped[a] * width + grouped[b]
        size = int(cells.max()) + 1

        def count(number: int, by: PerRecord, cells: Any = cells, size: int = size) -> PerRecord:
            part = stack.part(number)
            return np.bincount(cells[part], weights=by[part], minlength=size)

        plain = np.ones(len(cells))
        real, real_share = count(0, plain), count(0, weights) / weights[stack.part(0)].sum()
        for number in stack.copies:
            made = count(number, plain) * stack.sizes[0] / stack.sizes[number]
            share = count(number, weights) / weights[stack.part(number)].sum()
            there = real + made > 0
            statistic = float(np.sum((real - made)[there] ** 2 / ((real + made)[there] / 2)))
            # A kept column's classes have as many rows in the copy: each is one condition.
            fixed = len(np.unique(np.flatnonzero(there) % width)) if b in stack.kept else 1
            df = max(int(there.sum()) - fixed, 1)
            row: dict[str, Any] = {"first": a, "second": b, "copy": str(number)}
            row |= {"TVD": float(np.abs(real_share - share).sum() / 2), "VW": statistic}
            found.append(row | {"df": float(df), "S_VW": statistic / df})
    return found


def _group(column: Stacked, real: slice) -> NDArray[np.int64]:
    """Classes from 0 up; numbers by fifths of the original's amounts, then codes and what is missing."""
    if column.numbers is None:
        return column.places
    amounts = column.numbers[real][column.there[real]]
    few = np.unique(amounts)
    inner = np.quantile(amounts, np.arange(1, GROUPS) / GROUPS) if len(amounts) else np.empty(0)
    edges = few[:-1] if len(few) <= GROUPS else np.unique(inner)
    groups = np.searchsorted(edges, np.nan_to_num(column.numbers), side="left")
    return np.where(column.there, groups, len(edges) + column.places).astype(np.int64)
