"""Arrow columns in memory of their own: the values, and nothing that lies beside, behind or under them.

    >>> import pickle
    >>> part = pa.array(["north", "Acme Ltd"])[:1]
    >>> b"Acme" in pickle.dumps(part), b"Acme" in pickle.dumps(own_buffers(part))
    (True, False)

A slice shares the buffers of the whole column, a null may lie on a value, a category lists levels that no
row has: all of them travel with a pickle or a file.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import DataError


def drop_unused_levels(column: pa.Array) -> pa.Array:
    """A category with those levels alone that occur, in their order; any other column as it is."""
    if not pa.types.is_dictionary(column.type):
        return column
    gone = column.indices.is_null().to_numpy(zero_copy_only=False)
    codes = column.indices.fill_null(0).to_numpy()
    used = np.unique(codes[~gone])
    if len(used) == len(column.dictionary):
        return column
    places = np.where(gone, 0, np.searchsorted(used, codes))
    indices = pa.array(places.astype(codes.dtype), mask=gone)
    words = column.dictionary.take(pa.array(used))
    return pa.DictionaryArray.from_arrays(indices, words, ordered=column.type.ordered)


def written_buffers(column: pa.Array) -> pa.Array:
    """The same values, such that nothing else is written of them to Parquet: its writer leaves out what lies
    outside a slice of numbers by itself, and what takes no copy takes half the time.
    """
    kind = column.type
    bare = pa.types.is_primitive(kind) and not pa.types.is_boolean(kind) and not column.null_count
    return column if bare else own_buffers(column)


def own_buffers(column: pa.Array) -> pa.Array:
    """The same values in buffers that hold nothing else; equal columns have equal bytes.

    Arrow keeps whatever lies under a null, and writes it to IPC files and pickles. Here each null lies on
    zeros.
    """
    kind = column.type
    if pa.types.is_null(kind):
        return column
    if pa.types.is_dictionary(kind):
        indices, words = own_buffers(column.indices), own_buffers(column.dictionary)
        return pa.DictionaryArray.from_arrays(indices, words, ordered=kind.ordered)

    def bitmap(flags: pa.Array) -> pa.Buffer:
        # A boolean array's values are a bitmap: exactly what a validity buffer is.
        return pa.array(flags.to_numpy(zero_copy_only=False)).buffers()[1]

    valid = bitmap(pc.is_valid(column)) if column.null_count else None
    if pa.types.is_boolean(kind):
        buffers = [valid, bitmap(pc.fill_null(column, False))]
        return pa.Array.from_buffers(kind, len(column), buffers)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        # Joining with nothing copies, and a copy drops what lies outside a slice.
        filled = pa.concat_arrays([pc.fill_null(column, ""), pa.array([], kind)])
        return pa.Array.from_buffers(kind, len(column), [valid, *filled.buffers()[1:]])
    if pa.types.is_string_view(kind):
        return own_buffers(column.cast(pa.large_string())).cast(kind)
    if not pa.types.is_primitive(kind) and not pa.types.is_decimal(kind):
        return _build_anew(column)
    width = kind.bit_width // 8
    zero = pa.Array.from_buffers(kind, 1, [None, pa.py_buffer(bytes(width))])[0]
    filled = pc.fill_null(column, zero) if column.null_count else column
    # As bytes: a slice of a buffer would still hold on to all of it.
    values = filled.buffers()[1].slice(filled.offset * width, len(filled) * width).to_pybytes()
    return pa.Array.from_buffers(kind, len(column), [valid, pa.py_buffer(values)])


def _build_anew(column: pa.Array) -> pa.Array:
    """Bytes and nested values, cell by cell: a gathered one keeps levels and what lies under inner nulls."""
    try:
        return pa.array(column.to_pylist(), _without_notes(column.type))
    except (pa.ArrowException, ValueError, TypeError):
        raise DataError(
            f"A column of type {_without_notes(column.type)} cannot be copied on its own. Unnest, convert or "
            "drop it."
        ) from None


def _without_notes(kind: pa.DataType) -> pa.DataType:
    """The type without the metadata that fields inside it may have."""

    def plain(field: pa.Field) -> pa.Field:
        return pa.field(field.name, _without_notes(field.type), field.nullable)

    if pa.types.is_struct(kind):
        return pa.struct([plain(kind.field(place)) for place in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_field), plain(kind.item_field), keys_sorted=kind.keys_sorted)
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(plain(kind.value_field), kind.list_size)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return (pa.list_ if pa.types.is_list(kind) else pa.large_list)(plain(kind.value_field))
    return kind
