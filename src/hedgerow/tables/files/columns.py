"""Columns of an Arrow table: which types are accepted, and their one canonical form."""

from collections import Counter
from contextlib import suppress
from typing import Any

import narwhals as nw
import pandas as pd
import pyarrow as pa

from hedgerow.errors import DataError, list_some
from hedgerow.numerics.rounding import format_count

EXACT = 2**53  # whole numbers up to here are exact as doubles
MOST_COLUMNS = 10_000  # each takes a millisecond, and a line of every certificate
MOST_NAMES = 1 << 20  # bytes of all names together: a certificate repeats them, and has a largest size itself


def is_text(kind: pa.DataType) -> bool:
    """Text of any Arrow flavour."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_flat(kind: pa.DataType) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    plain = ("boolean", "integer", "floating", "decimal", "date", "timestamp", "time", "duration", "null")
    return is_text(kind) or any(getattr(pa.types, f"is_{word}")(kind) for word in plain)


def to_arrow(frame: Any) -> pa.Table:
    """Any dataframe as an Arrow table without its row index."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pd.DataFrame):
        return _from_pandas(frame)
    try:
        return nw.from_native(frame, eager_only=True).to_arrow()
    except TypeError:
        raise DataError(
            f"expected a pandas, polars or Arrow table, got {type(frame).__name__}. Pass a dataframe."
        ) from None


def _from_pandas(frame: pd.DataFrame) -> pa.Table:
    unconvertible = (pa.ArrowException, ValueError, TypeError, OverflowError)
    with suppress(*unconvertible):
        # The index is not data, and pandas would keep it as a column or in the metadata.
        return pa.Table.from_pandas(frame, preserve_index=False)
    mixed = []  # Arrow's own message quotes the value.
    for name in frame.columns:
        try:
            pa.Array.from_pandas(frame[name])
        except unconvertible:
            mixed.append(str(name))
    raise DataError(
        f"{len(mixed)} columns mix types or hold objects ({list_some(mixed)}). Convert each to one type, "
        "with astype."
    )


def check_width(columns: int, where: str) -> None:
    """Refuses a file of very many columns before their cells are read."""
    if columns > MOST_COLUMNS:
        raise DataError(
            f"{where}: {columns} columns; at most {MOST_COLUMNS} are read. Keep those that are needed, or "
            "check the delimiter."
        )


def check_unique(names: list[str], where: str) -> None:
    """Refuses names that occur more than once."""
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise DataError(
            f"{where}: {len(repeated)} column names occur more than once ({list_some(repeated)}). Rename "
            "them, so that each column can be addressed."
        )


def check_flat(table: pa.Table, name: str) -> pa.Table:
    """The table without metadata and views; refuses what is no flat table of named columns with rows."""
    names = table.column_names
    check_unique(names, name)
    size = sum(len(column.encode()) for column in names)
    if size > MOST_NAMES:
        raise DataError(
            f"{name}: the column names have {size} bytes in all; at most {MOST_NAMES} are read. Rename them."
        )
    if not names or table.num_rows == 0:
        raise DataError(
            f"{name}: {len(names)} columns and {table.num_rows} rows. At least one of each is needed."
        )
    nested = [f"{f.name} ({f.type})" for f in table.schema if not _is_flat(f.type)]
    if nested:
        raise DataError(
            f"{name}: {format_count(len(nested), 'column')} without numbers, text, booleans, dates or "
            f"categories: {list_some(nested)}. Unnest, convert or drop what is listed first."
        )
    # Schema and field metadata can carry anything, a path or a pandas index included. Arrow computes too
    # little with views of strings.
    plain = [pa.large_string() if pa.types.is_string_view(f.type) else f.type for f in table.schema]
    fields = [pa.field(f.name, kind, f.nullable) for f, kind in zip(table.schema, plain, strict=True)]
    columns = [column.cast(kind) for column, kind in zip(table.columns, plain, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def join_chunks(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array: its only chunk, if it has one, and else a copy."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
