"""The original's rows and, below them, those of each copy: one encoding for all, whatever their types.

A cell is an amount, a class, one of the declared codes, or missing. Confidential.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Confidential, Mask, PerRecord
from hedgerow.errors import DataError, SettingError, list_some
from hedgerow.tables.table import DAY, Table

MISSING = "missing"
POOLED = "pooled"
SUMMED_UP = (POOLED, "lowest", "highest")  # in place of a copy's number
Rows = list[dict[str, Any]]


@dataclass(frozen=True, repr=False)
class Stacked(Confidential):
    """A column of all tables."""

    numbers: PerRecord | None  # NaN where there is no amount; None for classes
    places: NDArray[np.int64]  # of classes among the labels; of numbers 0 for an amount, then codes, missing
    labels: tuple[str, ...]

    @property
    def there(self) -> Mask:
        """Which cells hold an amount or a class."""
        if self.numbers is not None:
            return self.places == 0
        return self.places < len(self.labels) - 1

    def group(self) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        """The place of each cell among labels: its class, or its number as one; in order, missing last."""
        if self.numbers is None:
            return self.places, self.labels
        known, places = np.unique(self.numbers[self.there], return_inverse=True)
        found = len(known) - 1 + self.places  # codes, then what is missing
        found[self.there] = places
        return found, (*_write_words(known).tolist(), *self.labels[1:])

    def words(self) -> NDArray[Any]:
        """Classes by their labels, None where missing."""
        return np.array([*self.labels[:-1], None], dtype=object)[self.places]


@dataclass(frozen=True, repr=False)
class Stack(Confidential):
    """The columns of all tables, and how many rows each table has."""

    columns: Mapping[str, Stacked]
    sizes: tuple[int, ...]  # the original's first
    kept: frozenset[str]  # columns that every copy has as they are

    def part(self, number: int) -> slice:
        """The rows of a table: 0 is the original."""
        start = sum(self.sizes[:number])
        return slice(start, start + self.sizes[number])

    @property
    def copies(self) -> range:
        """The numbers of the copies, from 1 up."""
        return range(1, len(self.sizes))

    @property
    def protected(self) -> list[str]:
        """The columns that copies do not have as they are."""
        return [name for name in self.columns if name not in self.kept]


def stack_tables(
    original: Any,
    copies: Any,
    *,
    protected: Collection[str] | None = None,
    classes: Collection[str] = (),
    codes: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    columns: Sequence[str] | None = None,
    rows: Mask | None = None,
) -> Stack:
    """The columns that all tables have, or those named.

    `protected` are the synthetic ones, None: all; the others are in every copy row by row. `classes` names
    numbers that are none, such as codes of an industry; `codes` has values that stand for no amount. `rows`
    says which rows of every table count.
    """
    tables = [Table.of(each) for each in (original, *list_tables(copies))]
    if len(tables) == 1:
        raise SettingError("copies must be a table, several in a list, or a Release; got none.")
    names = [name for name in tables[0].columns if all(name in table.columns for table in tables[1:])]
    if columns is not None:
        for table in tables:
            table.require(list(columns))
        names = list(columns)
    if not names:
        raise DataError("The original and its copies have no column in common. Give copies of this table.")
    kept = frozenset(() if protected is None else (name for name in names if name not in protected))
    if kept and len({table.rows for table in tables}) > 1:
        raise SettingError(
            f"Columns {list_some(sorted(kept), quoted=True)} are kept row by row, and the tables have "
            "different numbers of rows. Leave protected= out."
        )
    if rows is not None:
        tables = [table if rows.all() else table.rows_where(rows) for table in tables]
    stacked = {name: _stack(tables, name, name in classes, codes.get(name, ())) for name in names}
    return Stack(stacked, tuple(table.rows for table in tables), kept)


def list_tables(copies: Any) -> list[Any]:
    """The tables of a release, of a list, or the one that was given."""
    copies = getattr(copies, "tables", copies)
    return list(copies) if isinstance(copies, list | tuple) else [copies]


def _stack(tables: Sequence[Table], name: str, as_classes: bool, codes: Sequence[Any]) -> Stacked:
    parts = [_read(table, name) for table in tables]
    numeric = all(part.dtype.kind == "f" for part in parts)
    if numeric and not as_classes:
        numbers, places = np.concatenate(parts), np.zeros(sum(map(len, parts)), dtype=np.int64)
        known = [float(code) for code in codes if not isinstance(code, str)]
        for place, code in enumerate(known, 1):
            places[numbers == code] = place
        places[~np.isfinite(numbers)] = len(known) + 1
        labels = ("amount", *(f"{code:g}" for code in known), MISSING)
        return Stacked(np.where(places == 0, numbers, np.nan), places, labels)
    words = np.concatenate([_write_words(part) if part.dtype.kind == "f" else part for part in parts])
    levels, found = np.unique(words, return_inverse=True)
    labels = tuple(str(level) for level in levels if level)
    shift = len(levels) - len(labels)  # the empty word comes first
    places = np.where(found < shift, len(labels), found - shift).astype(np.int64)
    return Stacked(None, places, (*labels, MISSING))


def _read(table: Table, name: str) -> Any:
    cells: Any = table.cells(name)
    return cells / DAY if table.is_temporal(name) and cells.dtype.kind == "f" else cells


def _write_words(numbers: PerRecord) -> NDArray[np.str_]:
    return np.array(["" if np.isnan(cell) else f"{cell:.15g}" for cell in numbers], dtype=np.str_)


def read_weights(stack: Stack, name: str) -> PerRecord:
    """The survey weights of all tables: positive numbers, in each copy its own."""
    if name not in stack.columns:
        raise SettingError(f"design_weight: no column named '{name}' is in the copies.")
    weights = stack.columns[name].numbers
    if weights is None or not (weights > 0).all():  # NaN is not
        raise SettingError(
            f"design_weight: '{name}' must hold positive numbers in every row. Drop rows that count for "
            "nobody."
        )
    return weights


def pool_copies(rows: Rows, measures: Sequence[str]) -> Rows:
    """Behind the rows of each comparison their mean over copies, "pooled", and the lowest and highest.

    Rows that agree in all but `copy` and the measures are one comparison. One copy has the mean alone.
    """
    groups: dict[tuple[Any, ...], Rows] = {}
    for row in rows:
        key = tuple(value for name, value in row.items() if name not in ("copy", *measures))
        groups.setdefault(key, []).append(row)
    found: Rows = []
    for own in groups.values():
        values = np.array([[row[name] for name in measures] for row in own], dtype=np.float64)
        found += own
        for label, cells in sum_up(values).items():
            found.append(own[0] | {"copy": label} | dict(zip(measures, cells.tolist(), strict=True)))
    return found


def sum_up(values: Array) -> dict[str, Array]:
    """The mean over copies of figures with a row for each; for several copies also the lowest and highest."""
    found = {POOLED: values.mean(axis=0)}
    if len(values) > 1:
        found |= {"lowest": values.min(axis=0), "highest": values.max(axis=0)}
    return found


def pooled_columns(rows: Rows, measures: Sequence[str]) -> dict[str, list[Any]]:
    """What `pool_copies` returns, as tidy columns."""
    pooled = pool_copies(rows, measures)
    return {name: [row[name] for row in pooled] for name in pooled[0]} if pooled else {}
