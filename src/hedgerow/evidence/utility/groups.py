"""By public group: distances and quantiles of a column within each.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"pay": [1.0, 2.0, 5.0, 7.0], "region": ["n", "n", "s", "s"]})
    >>> found = compare_groups(table, table.assign(pay=table["pay"] + 1), "region")
    >>> found.loc[found["statistic"] == "mean", ["group", "original", "synthetic"]].values.tolist()[::2]
    [['n', 1.5, 2.5], ['s', 6.0, 7.0]]

Confidential.
"""

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from hedgerow.arrays import PerRecord
from hedgerow.errors import SettingError
from hedgerow.evidence.utility.columns import ecdf_distance, statistics
from hedgerow.evidence.utility.stack import (
    Rows,
    Stack,
    pooled_columns,
    read_weights,
    stack_tables,
)
from hedgerow.tables.table import Table

GROUPED = ("synthetic", "error")
_QUANTILES = (0.1, 0.25, 0.75, 0.9)
_MOST_GROUPS = 50


def compare_groups(
    original: Any,
    copies: Any,
    by: str,
    *,
    protected: Collection[str] | None = None,
    codes: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    weight: str | None = None,
) -> Any:
    """Columns of numbers within groups: ECDF distance, mean, median, quantiles and their errors.

    `by` is a public column with few values. The ECDF's "original" is 0, the distance of the data to itself;
    `error` is synthetic less original.
    """
    if protected is None:
        protected = [name for name in Table.of(original).columns if name not in (by, weight)]
    stack = stack_tables(original, copies, protected=protected, codes=codes)
    rows = groups_of_copies(stack, by, weight)
    return Table.of(original).like(pooled_columns(rows, GROUPED))


def groups_of_copies(stack: Stack, by: str, weight: str | None = None) -> Rows:
    """What `compare_groups` finds, a row per column, group, copy and statistic."""
    if by not in stack.kept:
        raise SettingError(
            f"by: '{by}' is {'protected' if by in stack.columns else 'no column of the copies'}. Name a "
            "public column with few values."
        )
    places, labels = stack.columns[by].group()
    if (count := len(np.unique(places))) > _MOST_GROUPS:
        raise SettingError(
            f"by: '{by}' has {count} different values, and at most {_MOST_GROUPS} groups are compared. Name "
            "a public column with few values."
        )
    declared = None if weight is None else read_weights(stack, weight)
    found: Rows = []
    for name in stack.protected:
        column, weights = stack.columns[name], None if name == weight else declared
        numbers = column.numbers
        if numbers is None:
            continue
        for place, label in enumerate(labels):
            inside = (places == place) & column.there
            parts = [inside[stack.part(number)] for number in range(len(stack.sizes))]
            if not all(part.any() for part in parts):
                continue
            values = [numbers[stack.part(n)][part] for n, part in enumerate(parts)]
            own = [None if weights is None else weights[stack.part(n)][part] for n, part in enumerate(parts)]
            truth = _describe(values[0], own[0], values[0], own[0])
            for number in stack.copies:
                made = _describe(values[0], own[0], values[number], own[number])
                for statistic, value in made.items():
                    row: dict[str, Any] = {"column": name, "by": by, "group": label, "statistic": statistic}
                    row |= {"copy": str(number), "records": int(parts[0].sum())}
                    row |= {"original": truth[statistic], "synthetic": value}
                    found.append(row | {"error": value - truth[statistic]})
    return found


def _describe(
    original: PerRecord, weight: PerRecord | None, copy: PerRecord, other: PerRecord | None
) -> dict[str, float]:
    both = None if weight is None or other is None else (weight, other)
    far = ecdf_distance(original, copy, both).maximum
    return {"ecdf_max": far, **statistics(copy, _QUANTILES, other)}


def few_groups(stack: Stack, most: int = 12) -> list[str]:
    """Kept columns that have a few values, which make groups; flags behind the others."""
    counts = {
        name: len(np.unique(column.group()[0]))
        for name, column in stack.columns.items()
        if name in stack.kept
    }
    few = [name for name, count in counts.items() if 2 <= count <= most]
    return sorted(few, key=lambda name: counts[name] == 2)
