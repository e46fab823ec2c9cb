"""Parquet and Arrow IPC, in and out."""

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet

from hedgerow.errors import FileError
from hedgerow.tables.files.buffers import own_buffers, written_buffers
from hedgerow.tables.files.columns import check_flat, check_width, join_chunks
from hedgerow.tables.files.source import LEFT_INDEX, Format, Missing, Source, freeze

_ROW_GROUP = 1 << 20
INDEX = "__index_level_[0-9]+__"  # what pandas calls an index without a name


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
    index = [name for name in table.column_names if re.fullmatch(INDEX, name)]
    table = check_flat(table.drop_columns(index), path.name)
    return Source(table, kind, freeze(count_missing(table)), (LEFT_INDEX,) if index else ())


def read_footer(path: Path) -> pa.Schema:
    """The schema of a Parquet file that is known to be whole."""
    return pyarrow.parquet.ParquetFile(path).schema_arrow


def count_missing(table: pa.Table) -> dict[str, Missing]:
    """Nulls by column; NaN is another thing and is counted apart."""
    counts = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        odd = pc.sum(pc.is_nan(column)).as_py() or 0 if pa.types.is_floating(column.type) else 0
        if column.null_count or odd:
            counts[name] = Missing(column.null_count, freeze({"NaN": odd} if odd else {}))
    return counts


def write_columnar(table: pa.Table, file: BinaryIO, kind: Format, label: str = "") -> None:
    """The same table gives the same bytes, whatever its chunks were; a label becomes the description."""
    if kind is Format.PARQUET:
        with closing(ParquetParts(file, label)) as parts:
            parts.append(table)
        return
    clean = _clean(table, own_buffers, label)  # Arrow pads with what follows a slice
    with pyarrow.ipc.new_file(file, clean.schema) as writer:
        writer.write_table(clean)


class ParquetParts:
    """A Parquet file that grows part by part: the same bytes as all of them at once.

    Categories of all parts have the same levels, in the same order.
    """

    def __init__(self, file: BinaryIO, label: str = "") -> None:
        self._file, self._label = file, label
        self._writer: pyarrow.parquet.ParquetWriter | None = None
        self._waiting: list[pa.Table] = []

    def append(self, part: pa.Table) -> None:
        """More rows. What makes a whole group of rows is written."""
        self._waiting.append(part)
        rows = sum(each.num_rows for each in self._waiting)
        if rows >= _ROW_GROUP:
            whole = pa.concat_tables(self._waiting)
            there = rows - rows % _ROW_GROUP
            self._write(whole.slice(0, there))
            self._waiting = [whole.slice(there)] if there < rows else []

    def close(self) -> None:
        """The rest of the rows, and the end of the file."""
        if self._waiting:
            self._write(pa.concat_tables(self._waiting))
        if self._writer is not None:
            self._writer.close()

    def _write(self, table: pa.Table) -> None:
        # Statistics in the footer come from the written values alone. No column's bytes depend on another.
        clean = _clean(table, written_buffers, self._label)
        if self._writer is None:
            self._writer = pyarrow.parquet.ParquetWriter(
                self._file, clean.schema, version="2.6", compression="snappy"
            )
        self._writer.write_table(clean, _ROW_GROUP)


def _clean(table: pa.Table, own: Callable[[pa.Array], pa.Array], label: str) -> pa.Table:
    """The columns in one piece each, with nothing around their values."""
    columns = [own(join_chunks(column)) for column in table.columns]
    fields = [pa.field(f.name, c.type, f.nullable) for f, c in zip(table.schema, columns, strict=True)]
    told = {"description": label} if label else None
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=told))
