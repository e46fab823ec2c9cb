"""A Parquet file, or a folder of them, whose records come in batches; guarded against change.

Guarantee: what `batches` has yielded by its end are all records of files that were the same before and after,
by size, time, place on the disk and number of records. Otherwise it ends in an error.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet

from hedgerow.errors import DataError, FileError, list_some
from hedgerow.tables.files.columnar import INDEX
from hedgerow.tables.files.columns import check_flat, check_width
from hedgerow.tables.files.source import LEFT_INDEX, Dialect, Format, format_of

_BUFFER = 1 << 20  # bytes of a column read at a time: a row group need not fit into memory


@dataclass(frozen=True)
class Parquet:
    """Parquet files whose records follow each other."""

    name: str  # of the file or folder
    files: tuple[Path, ...]
    folder: Path | None
    stamps: tuple[tuple[int, ...], ...]  # of each file, before anything was read
    schema: pa.Schema  # of all columns, without metadata
    counts: tuple[int, ...]  # records of each file
    notes: tuple[str, ...]
    format = Format.PARQUET
    missing = None  # to be counted
    dialect = Dialect()

    @classmethod
    def at(cls, path: Path) -> "Parquet":
        """What is at a path: reads the footers."""
        folder = path if path.is_dir() else None
        files = _list(path) if folder else (path,)
        stamps = tuple(stamp_of(file) for file in files)
        schemas, counts = list[pa.Schema](), list[int]()
        for file in files:
            with explaining_file(file), pyarrow.parquet.ParquetFile(file) as parquet:
                check_width(parquet.metadata.num_columns, file.name)
                schemas.append(parquet.schema_arrow)
                schemas[-1].names  # noqa: B018 - bytes that are no text are noticed here
                counts.append(parquet.metadata.num_rows)
        schema = schemas[0]
        for file, other in zip(files, schemas, strict=True):
            schema = _agree(schema, other, file.name, files[0].name)
        index = [name for name in schema.names if re.fullmatch(INDEX, name)]
        kept = [field for field in schema if field.name not in index]
        if not sum(counts):
            raise DataError(f"{path.name}: {len(kept)} columns and 0 rows. At least one of each is needed.")
        schema = check_schema(pa.schema(kept), path.name)
        return cls(path.name, files, folder, stamps, schema, tuple(counts), (LEFT_INDEX,) if index else ())

    @property
    def records(self) -> int:
        """Number of records."""
        return sum(self.counts)

    def batches(self, names: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """All records in order, the named columns in that order."""
        schema = pa.schema([self.schema.field(name) for name in names])
        for file, count, stamp in zip(self.files, self.counts, self.stamps, strict=True):
            seen = 0
            # Arrow would buffer ahead by default, and keep whatever it has read until the file is closed.
            sparing: dict[str, Any] = {"buffer_size": _BUFFER, "pre_buffer": False}
            with explaining_file(file), pyarrow.parquet.ParquetFile(file, **sparing) as parquet:
                for batch in parquet.iter_batches(size, columns=list(names)):
                    batch.validate(full=True)
                    seen += batch.num_rows
                    columns = [batch.column(name).cast(schema.field(name).type) for name in names]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)
            if seen != count or stamp_of(file) != stamp:
                raise refuse_changed(file.name)
        if self.folder is not None and _list(self.folder) != self.files:
            raise refuse_changed(self.name)


def check_schema(schema: pa.Schema, name: str) -> pa.Schema:
    """Columns as `tables.files` has them: refuses names and types that it refuses."""
    # One row without values is enough for all that is said about these.
    row = pa.Table.from_arrays([pa.nulls(1, field.type) for field in schema], schema=schema)
    return check_flat(row, name).schema


def refuse_changed(name: str) -> FileError:
    """The error about a file that changed while it was read."""
    return FileError(
        f"{name}: changed while it was read, so that the records are of no one state of it. Wait until it is "
        "written, or copy it first; nothing was released."
    )


def _list(folder: Path) -> tuple[Path, ...]:
    """The files of a folder by name; those that begin with _ or . are about the others."""
    there = sorted(
        (file for file in folder.iterdir() if file.name[0] not in "._"), key=lambda file: file.name
    )
    other = [file.name for file in there if not _is_parquet(file)]
    if other:
        raise FileError(
            f"{folder.name}: {list_some(other, quoted=True)} in this folder are no Parquet files "
            "(.parquet, .pq). Move them elsewhere, and the files of folders inside it into it."
        )
    if not there:
        raise FileError(f"{folder.name}: a folder without Parquet files (.parquet, .pq). Pass another.")
    return tuple(there)


def _is_parquet(file: Path) -> bool:
    try:
        return not file.is_dir() and format_of(file) is Format.PARQUET
    except FileError:
        return False


def stamp_of(file: Path) -> tuple[int, ...]:
    with explaining_file(file):
        about = file.stat()
        return about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns


def _agree(first: pa.Schema, other: pa.Schema, name: str, like: str) -> pa.Schema:
    """The columns of both files; refuses others, in another order or of other types."""
    if first.names != other.names:
        apart = sorted(set(first.names) ^ set(other.names))
        what = f"differ in {list_some(apart, quoted=True)}" if apart else "come in another order"
        raise DataError(f"{name}: its columns and those of {like} {what}. Write all files alike.")
    apart = [f.name for f, o in zip(first, other, strict=True) if f.type != o.type]
    if apart:
        raise DataError(
            f"{name}: columns {list_some(apart, quoted=True)} have other types than in {like}. Write all "
            "files alike."
        )
    fields = [pa.field(f.name, f.type, f.nullable or o.nullable) for f, o in zip(first, other, strict=True)]
    return pa.schema(fields)


@contextmanager
def explaining_file(file: Path) -> Iterator[None]:
    """Errors of a file in words of ours: Arrow's own message may quote bytes of it."""
    try:
        yield
    except FileNotFoundError:
        raise FileError(f"{file.name}: no such file. Check the name and the folder.") from None
    except PermissionError:
        raise FileError(
            f"{file.name}: no permission to read it. Ask its owner, or change its mode."
        ) from None
    except (pa.ArrowException, OSError, UnicodeError):
        size = file.stat().st_size if file.is_file() else 0
        raise FileError(
            f"{file.name}: not a whole Parquet file ({size} bytes). It was cut short, damaged, or has "
            "another format: copy or export it again."
        ) from None
