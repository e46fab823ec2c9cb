"""Which kind a cell is, an amount, one of several codes or missing, and how copies get such cells.

>>> import pandas as pd
>>> table = Table.of(pd.DataFrame({"pay": [9.0, -8.0, None]}))
>>> read_kinds(table, "pay", (-8,)).tolist()
[0, 1, 2]
"""

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_pandas_like_dataframe, is_pyarrow_table
from numpy.typing import NDArray

from hedgerow.arrays import Mask, PerRecord
from hedgerow.errors import SettingError
from hedgerow.tables.table import Table
from hedgerow.tables.values import Grid


def read_kinds(table: Table, name: str, codes: Sequence[Any]) -> NDArray[np.int64]:
    """For each cell 0 for an amount or class, the place of its code from 1 up, or one more where missing."""
    values, known = table.raw_cells(name)
    numbers = values.dtype.kind == "f"
    if numbers and any(isinstance(code, str) for code in codes):
        raise SettingError(f"codes of '{name}': the column holds numbers. Give the codes as numbers.")
    kinds = np.zeros(table.rows, dtype=np.int64)
    for place, code in enumerate(codes, 1):
        kinds[known & (values == (code if numbers else str(code)))] = place
    kinds[~known] = len(codes) + 1
    return kinds


def blank_codes(native: Any, codes: Mapping[str, Sequence[Any]]) -> Any:
    """A native table whose numbers among `codes`, by column, are missing: they stand for no amount."""
    frame = nw.from_native(native, eager_only=True)
    gone = {
        name: [code for code in told if not isinstance(code, str)]
        for name, told in codes.items()
        if name in frame.columns and frame[name].dtype.is_numeric()
    }
    kept = [nw.when(~nw.col(name).is_in(told)).then(nw.col(name)).alias(name) for name, told in gone.items()]
    return frame.with_columns(kept).to_native() if kept else native


def overlay(native: Any, name: str, values: PerRecord, gone: Mask, *, gaps: bool) -> Any:
    """A native table whose column holds `values` where they are numbers, and nothing where `gone`.

    `gaps` says whether it may have missing cells at all, whatever this copy has: whole numbers and flags of
    pandas then get their nullable type.
    """
    at = ~np.isnan(values)
    if is_pandas_like_dataframe(native):
        native = native.copy()
        column = native[name]
        kind = getattr(column.dtype, "kind", "O")
        if gaps and isinstance(column.dtype, np.dtype) and kind in "iub":
            short = str(column.dtype)
            column = column.astype("boolean" if kind == "b" else short.replace("i", "I", 1).replace("u", "U"))
        else:
            column = column.copy()
        if at.any():
            _require_held(nw.from_native(column, series_only=True).dtype, name, values[at])
            kept = getattr(column.dtype, "numpy_dtype", column.dtype)
            column[at] = values[at].astype(kept)
        if gone.any():
            column[gone] = None
        native[name] = column
        return native
    frame = nw.from_native(native, eager_only=True)
    series = frame[name]
    if at.any():
        _require_held(series.dtype, name, values[at])
        other = nw.new_series(name, np.where(at, values, 0.0), backend=frame.implementation)
        series = series.zip_with(_mask(~at, frame), other.cast(series.dtype))
    if gone.any() and is_pyarrow_table(native) and isinstance(series.dtype, nw.Categorical | nw.Enum):
        return _blank_category(native, name, gone)
    if gone.any():
        none = nw.new_series(name, [None] * len(gone), series.dtype, backend=frame.implementation)
        series = series.zip_with(_mask(~gone, frame), none)
    return frame.with_columns(series.alias(name)).to_native()


def _mask(mask: Mask, frame: "nw.DataFrame[Any]") -> Any:
    return nw.new_series("", mask, backend=frame.implementation)


def _require_held(dtype: Any, name: str, values: PerRecord) -> None:
    """Refuse numbers that the column's type does not have; they are public."""
    held = Grid.of(dtype).nearest(values)
    if not np.allclose(held, values, rtol=1e-6, atol=1e-9):
        raise SettingError(
            f"The type of column '{name}' does not have every number that its rules put there. Convert the "
            "column to a wider type, or declare one."
        )


def _blank_category(native: Any, name: str, gone: Mask) -> Any:
    """An Arrow table with some cells of a category missing."""
    import pyarrow as pa

    place = native.column_names.index(name)
    column = native.column(place).combine_chunks()
    indices = pa.array(column.indices.to_numpy(zero_copy_only=False), mask=gone, type=column.type.index_type)
    fresh = pa.DictionaryArray.from_arrays(indices, column.dictionary, ordered=column.type.ordered)
    return native.set_column(place, native.schema.field(place), fresh)
