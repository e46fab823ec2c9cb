"""Parquet and Arrow IPC, in and out."""

from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet

from hedgerow.errors import FileError
from hedgerow.tables.files.columns import check_flat, check_width, is_text, join_chunks
from hedgerow.tables.files.source import Format, Missing, Source, freeze

_ROW_GROUP = 1 << 20


def read_columnar(path: Path, kind: Format) -> Source:
    """A Parquet or Arrow file as a `Source`."""
    try:
        if kind is Format.PARQUET:
            # A ParquetFile reads the file alone; read_table would also take columns from the folder's name.
            parquet = pyarrow.parquet.ParquetFile(path)
            check_width(parquet.metadata.num_columns, path.name)
            table = parquet.read()
        else:
            with pa.OSFile(str(path)) as file:
                is_file = file.read(6) == b"ARROW1"
                file.seek(0)
                reader = (pyarrow.ipc.open_file if is_file else pyarrow.ipc.open_stream)(file)
                check_width(len(reader.schema), path.name)
                table = reader.read_all()
        table.validate(full=True)
        table.column_names  # noqa: B018 - bytes that are no text are noticed here
    except (pa.ArrowException, OSError, UnicodeError) as error:
        if isinstance(error, PermissionError):
            raise
        # Arrow's own message may quote bytes of the file.
        raise FileError(
            f"{path.name}: not a whole {kind.display_name} file ({path.stat().st_size} bytes). It was cut "
            "short, damaged, or has another format: copy or export it again, or pass the format."
        ) from None
    table = check_flat(table, path.name)
    return Source(table, kind, freeze(count_missing(table)))


def count_missing(table: pa.Table) -> dict[str, Missing]:
    """Nulls by column; NaN is another thing and is counted apart."""
    counts = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        odd = pc.sum(pc.is_nan(column)).as_py() or 0 if pa.types.is_floating(column.type) else 0
        if column.null_count or odd:
            counts[name] = Missing(column.null_count, freeze({"NaN": odd} if odd else {}))
    return counts


def write_columnar(table: pa.Table, file: BinaryIO, kind: Format) -> None:
    """The same table gives the same bytes, whatever its chunks were."""
    # Statistics in the footer come from the written values alone. No column's bytes depend on another.
    columns = [_canonical(join_chunks(column)) for column in table.columns]
    fields = [pa.field(f.name, c.type, f.nullable) for f, c in zip(table.schema, columns, strict=True)]
    clean = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    if kind is Format.PARQUET:
        pyarrow.parquet.write_table(clean, file, _ROW_GROUP, version="2.6", compression="snappy")
        return
    with pyarrow.ipc.new_file(file, clean.schema) as writer:
        writer.write_table(clean)


def _canonical(column: pa.Array) -> pa.Array:
    """The same values in buffers that hold nothing else.

    Arrow keeps whatever lies under a null, and writes it to IPC files: a value masked by a null would
    leave with the file. Here each null lies on zeros, and equal columns have equal bytes.
    """
    if pa.types.is_null(column.type):
        return column
    if pa.types.is_dictionary(column.type):
        indices, words = _canonical(column.indices), _canonical(column.dictionary)
        return pa.DictionaryArray.from_arrays(indices, words, ordered=column.type.ordered)

    def bitmap(flags: pa.Array) -> pa.Buffer:
        # A boolean array's values are a bitmap: exactly what a validity buffer is.
        return pa.array(flags.to_numpy(zero_copy_only=False)).buffers()[1]

    valid = bitmap(pc.is_valid(column)) if column.null_count else None
    if pa.types.is_boolean(column.type):
        buffers = [valid, bitmap(pc.fill_null(column, False))]
        return pa.Array.from_buffers(column.type, len(column), buffers)
    if is_text(column.type):
        # Joining with nothing copies, and a copy drops what lies outside a slice.
        filled = pa.concat_arrays([pc.fill_null(column, ""), pa.array([], column.type)])
        return pa.Array.from_buffers(column.type, len(column), [valid, *filled.buffers()[1:]])
    width = column.type.bit_width // 8
    zero = pa.Array.from_buffers(column.type, 1, [None, pa.py_buffer(bytes(width))])[0]
    filled = pc.fill_null(column, zero)
    values = filled.buffers()[1].slice(filled.offset * width, len(filled) * width)
    return pa.Array.from_buffers(column.type, len(column), [valid, values])
