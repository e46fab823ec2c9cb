"""A copy without the table it was made from: no memory, notes or levels in common with it.

    >>> import pandas as pd
    >>> region = pd.Categorical(["north", "north"], categories=["north", "only in dropped rows"])
    >>> list(detach(pd.DataFrame({"pay": [9.0, 11.0], "region": region}), "pay")["region"].cat.categories)
    ['north']

Guarantee: pickled or written, a detached table holds its rows, names and types alone: no rows outside a
slice, no value under a null, no `attrs`, metadata of schema or fields, and no unused level of a public
column. The levels of the protected column are those its caller gave it.
"""

from typing import Any

import numpy as np
from narwhals.dependencies import is_pandas_like_dataframe, is_polars_dataframe, is_pyarrow_table


def detach(native: Any, protected: str) -> Any:
    """The table in memory of its own, without what only the confidential one says."""
    if is_pyarrow_table(native):
        return _detach_arrow(native, protected)
    if is_pandas_like_dataframe(native):
        return _detach_pandas(native, protected)
    if is_polars_dataframe(native):
        return _detach_polars(native, protected)
    return native


def _detach_arrow(native: Any, protected: str) -> Any:
    import pyarrow as pa

    pairs = zip(native.column_names, native.columns, strict=True)
    columns = [_own_column(column, name == protected) for name, column in pairs]
    # The metadata of pandas names dropped columns and the index, and holds `attrs`: none of it is kept.
    fields = [pa.field(f.name, c.type, f.nullable) for f, c in zip(native.schema, columns, strict=True)]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _own_column(column: Any, is_protected: bool) -> Any:
    from hedgerow.tables.files.buffers import drop_unused_levels, own_buffers
    from hedgerow.tables.files.columns import join_chunks

    joined = join_chunks(column)
    return own_buffers(joined if is_protected else drop_unused_levels(joined))


def _detach_pandas(native: Any, protected: str) -> Any:
    native = native.copy(deep=True).rename_axis(columns=None)
    native.attrs = {}
    for place, name in enumerate(native.columns):
        series = native.iloc[:, place]
        if hasattr(series, "cat"):
            used = series if name == protected else series.cat.remove_unused_categories()
            native[name] = used.cat.rename_categories(used.cat.categories.rename(None))  # the list has a name
        elif hasattr(series.dtype, "pyarrow_dtype"):
            column = series.array.__arrow_array__()  # chunked
            native[name] = type(series.array)(_own_column(column, name == protected))
        elif hasattr(series.dtype, "numpy_dtype") and series.hasnans:  # a mask over numbers, which it keeps
            gone = series.isna()
            filled = series.fillna(np.zeros(1, series.dtype.numpy_dtype)[0])
            filled[gone] = series.dtype.na_value
            native[name] = filled
    native.index = _detach_index(native.index)
    return native


def _detach_index(index: Any) -> Any:
    """The index without levels that no row has."""
    if hasattr(index, "remove_unused_categories"):
        index = index.remove_unused_categories()
        return index.rename_categories(index.categories.rename(None))
    if hasattr(index, "remove_unused_levels"):
        index = index.remove_unused_levels()
        return index.set_levels([_detach_index(level) for level in index.levels], verify_integrity=False)
    return index


def _detach_polars(native: Any, protected: str) -> Any:
    import polars as pl

    own = []
    for column in native:
        kind = column.dtype
        if isinstance(kind, pl.Enum):
            occurring = set(column.cast(pl.String).unique())
            used = [level for level in kind.categories if level in occurring]
            levels = kind if column.name == protected else pl.Enum(used)
            own.append(column.cast(pl.String).cast(levels))
        elif isinstance(kind, pl.Categorical | pl.Object):
            own.append(column)  # codes of a list that all tables share; objects one by one
        else:
            # A text of polars points into buffers that hold the rows outside a slice as well.
            arrow = _own_column(native.select(column.name).to_arrow().column(0), is_protected=False)
            series = pl.Series(column.name, arrow)
            # A nested type may list levels that no row has; such a category comes back without a fixed list.
            own.append(series if kind.is_nested() else series.cast(kind))
    return pl.DataFrame(own)
