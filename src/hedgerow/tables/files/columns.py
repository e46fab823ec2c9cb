"""Columns of an Arrow table: which types are accepted, and their one canonical form."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import narwhals as nw
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import DataError

EXACT = 2**53  # whole numbers up to here are exact as doubles


def is_text(kind: pa.DataType) -> bool:
    """Text of any Arrow flavour."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


_FLAT: tuple[Callable[[pa.DataType], bool], ...] = (
    is_text,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_time,
    pa.types.is_duration,
    pa.types.is_null,
)


def _is_flat(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_flat(kind.value_type) and not pa.types.is_dictionary(kind.value_type)
    return any(accepts(kind) for accepts in _FLAT)


def to_arrow(frame: Any) -> pa.Table:
    """Any dataframe as an Arrow table without its row index."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pd.DataFrame):
        # The index is not data, and pandas would keep it as a column or in the metadata.
        return _from_pandas(frame)
    try:
        return nw.from_native(frame, eager_only=True).to_arrow()
    except TypeError:
        raise DataError(
            f"expected a pandas, polars or Arrow table, got {type(frame).__name__}. Pass a dataframe."
        ) from None


def _from_pandas(frame: pd.DataFrame) -> pa.Table:
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        # Arrow's own message quotes the value.
        mixed = [str(name) for name in frame.columns if not _convertible(frame[name])]
    raise DataError(
        f"{len(mixed)} columns mix types or hold objects ({some(mixed)}). Convert each to one type, with "
        "astype."
    )


def _convertible(column: Any) -> bool:
    try:
        pa.Array.from_pandas(column)
    except (pa.ArrowException, ValueError, TypeError, OverflowError):
        return False
    return True


def check_flat(table: pa.Table, name: str) -> pa.Table:
    """The table with metadata removed; refuses what is no flat table of named columns with rows."""
    names = table.column_names
    twice = sorted(n for n, count in Counter(names).items() if count > 1)
    if twice:
        raise DataError(
            f"{name}: {len(twice)} column names occur more than once ({some(twice)}). Rename them, "
            "so that each column can be addressed."
        )
    if not names or table.num_rows == 0:
        raise DataError(
            f"{name}: {len(names)} columns and {table.num_rows} rows. At least one of each is needed."
        )
    nested = [f"{f.name} ({f.type})" for f in table.schema if not _is_flat(f.type)]
    if nested:
        raise DataError(
            f"{name}: {len(nested)} columns are neither numbers, text, booleans, dates nor categories: "
            f"{some(nested)}. Unnest, convert or drop them first."
        )
    # Schema and field metadata can carry anything, a path or a pandas index included.
    fields = [pa.field(f.name, f.type, f.nullable) for f in table.schema]
    return pa.Table.from_arrays(table.columns, schema=pa.schema(fields))


def some(items: list[str], limit: int = 5) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(items) - limit} more" if len(items) > limit else ""
    return ", ".join(items[:limit]) + more


def join_chunks(column: pa.ChunkedArray) -> pa.Array:
    """The column as one array."""
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def canonical(column: pa.Array) -> pa.Array:
    """The same values in buffers that hold nothing else.

    Arrow keeps whatever lies under a null, and writes it to IPC files: a value masked by a null would
    leave with the file. Here each null lies on zeros, and equal columns have equal bytes.
    """
    if pa.types.is_null(column.type):
        return column
    if pa.types.is_dictionary(column.type):
        indices = canonical(column.indices)
        return pa.DictionaryArray.from_arrays(
            indices, canonical(column.dictionary), ordered=column.type.ordered
        )
    if pa.types.is_string_view(column.type):
        return canonical(column.cast(pa.large_string()))
    valid = None
    if column.null_count:
        # A boolean array's values are a bitmap: exactly what a validity buffer is.
        valid = _booleans(pc.is_valid(column)).buffers()[1]
    if pa.types.is_boolean(column.type):
        return pa.Array.from_buffers(
            column.type, len(column), [valid, _booleans(pc.fill_null(column, False)).buffers()[1]]
        )
    if is_text(column.type):
        # Joining with nothing copies, and a copy drops what lies outside a slice.
        filled = pa.concat_arrays([pc.fill_null(column, ""), pa.array([], column.type)])
        return pa.Array.from_buffers(column.type, len(column), [valid, *filled.buffers()[1:]])
    width = column.type.bit_width // 8
    zero = pa.Array.from_buffers(column.type, 1, [None, pa.py_buffer(bytes(width))])[0]
    filled = pc.fill_null(column, zero)
    values = filled.buffers()[1].slice(filled.offset * width, len(filled) * width)
    return pa.Array.from_buffers(column.type, len(column), [valid, values])


def _booleans(column: pa.Array) -> pa.Array:
    return pa.array(column.to_numpy(zero_copy_only=False))
