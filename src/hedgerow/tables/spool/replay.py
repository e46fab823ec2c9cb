"""Formulaic's encoding applied again, for terms of numbers and of categories that are named bare.

Formulaic itself takes thirty milliseconds for a leaf with a category, and every pass over leaves needs their
designs. What it makes of these terms is a few products, made here in its order, so that no digit differs;
`encode` returns None where terms have anything else in them.
"""

from collections.abc import Mapping
from functools import reduce
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from hedgerow.arrays import Matrix
from hedgerow.numerics.leaves import leaves_of
from hedgerow.tables.files.columns import is_text
from hedgerow.threads import share_out

Columns = list[NDArray[Any]]


def encode(spec: Any, native: Any, functions: Mapping[str, Any]) -> Matrix | None:
    """The matrix that a spec makes of an Arrow or pandas table; None if it takes formulaic to make it."""
    if not isinstance(native, pa.Table | pd.DataFrame):
        return None
    rows, made = len(native), list[NDArray[Any]]()
    known: dict[str, Columns | None] = {}
    for row in spec.structure:
        for scoped in row.scoped_terms:
            parts = list[Columns]()
            for each in scoped.factors:
                factor = each.factor.factor
                if factor.expr not in known:
                    known[factor.expr] = _encode_factor(factor, spec, native, functions)
                columns = known[factor.expr]
                if columns is None:
                    return None
                parts.append(columns[1:] if each.reduced else columns)
            # Factors of one column first, as one; of the others the first one's columns change fastest.
            single = [columns[0] for columns in parts if len(columns) == 1]
            several = [columns for columns in parts if len(columns) != 1]
            together = [reduce(np.multiply, single)] if single else [] if several else [np.ones(rows)]
            for cells in product(*reversed(several)):
                made.append(scoped.scale * reduce(np.multiply, [*reversed(cells), *together]))
    return np.ascontiguousarray(np.column_stack(made), dtype=np.float64) if made else None


def encode_leaves(spec: Any, native: Any, functions: Mapping[str, Any]) -> Matrix | None:
    """`encode` for many rows, leaf by leaf on all cores: no row's numbers depend on another's."""
    made = np.empty((len(native), len(spec.column_names)))

    def fill(rows: slice) -> bool:
        some = (
            native.slice(rows.start, rows.stop - rows.start) if isinstance(native, pa.Table) else native[rows]
        )
        part = encode(spec, some, functions)
        if part is not None:
            made[rows] = part
        return part is not None

    first, *others = leaves_of(len(native))
    return made if fill(first) and all(share_out(fill, others)) else None


def _encode_factor(factor: Any, spec: Any, native: Any, functions: Mapping[str, Any]) -> Columns | None:
    kind, state = spec.encoder_state.get(factor.expr, (None, {}))
    if kind is None or kind.value not in ("numerical", "categorical"):
        return None
    if kind.value == "categorical":
        bare = factor.eval_method.value == "lookup"
        return _encode_words(native[factor.expr], state["categories"]) if bare else None
    if factor.eval_method.value == "lookup":
        return _read_numbers(native[factor.expr])
    if factor.eval_method.value != "python":
        return None
    from formulaic.materializers import FormulaMaterializer
    from formulaic.utils.stateful_transforms import stateful_eval

    context = FormulaMaterializer.for_data(native)(native, functions).layered_context
    found = stateful_eval(factor.expr, context, {}, dict(spec.transform_state), spec)
    values = None if isinstance(found, dict) else np.asarray(found)
    return None if values is None or values.ndim != 1 or values.dtype.kind not in "iuf" else [values]


def _read_numbers(column: Any) -> Columns | None:
    if isinstance(column, pa.ChunkedArray):
        kind = column.type
        plain = pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)
        return [column.to_numpy()] if plain and not column.null_count else None
    return [column.to_numpy()] if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf" else None


def _encode_words(column: Any, levels: list[Any]) -> Columns | None:
    """A column of zeros and ones for each level."""
    if isinstance(getattr(column, "dtype", None), pd.StringDtype):
        found = pa.array(column, from_pandas=True)  # of several chunks perhaps
        column = found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])
    if isinstance(column, pa.ChunkedArray):
        if not is_text(column.type):
            return None
        coded = column.combine_chunks().dictionary_encode()
        words, codes = coded.dictionary.to_pylist(), coded.indices.fill_null(len(coded.dictionary)).to_numpy()
    elif isinstance(column.dtype, pd.CategoricalDtype):
        words, codes = list(column.cat.categories), column.cat.codes.to_numpy()  # −1 where missing
    else:
        return None
    order = {level: place for place, level in enumerate(levels)}
    places = np.array([*(order.get(word, -1) for word in words), -1])[codes]
    return [(places == place).astype(np.float64) for place in range(len(levels))]
