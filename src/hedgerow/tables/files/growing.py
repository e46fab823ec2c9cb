r"""A file that grows part by part, for tables larger than memory: the same bytes as `write` of all rows.

    >>> parts = [pa.table({"pay": [12.5]}), pa.table({"pay": [9.0]})]
    >>> cells = Cells.join(look_at(part, "refuse", Dialect()) for part in parts)
    >>> with grow(Path("pay.csv"), Source(parts[0], Format.CSV), cells) as file:
    ...     for part in parts:
    ...         file.append(part)
    >>> Path("pay.csv").read_text()
    'pay\n12.5\n9.0\n'

How times are spelled, which levels a category keeps and which cells a spreadsheet would run depends on all
rows: `look_at` says what a part has of that, and `Cells.join` what it comes to.
"""

import hashlib
import os
import secrets
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import pyarrow as pa

from hedgerow.errors import FileError, SettingError, list_some, reason_of
from hedgerow.tables.files.columnar import ParquetParts, count_missing
from hedgerow.tables.files.columns import join_chunks
from hedgerow.tables.files.csv.writer import (
    CsvParts,
    choose_stamps,
    count_running,
    merge_stamps,
    refuse_running,
)
from hedgerow.tables.files.source import Dialect, Dictionary, Format, Source, Stamp, Written

GROWING = (Format.PARQUET, Format.CSV)


@dataclass(frozen=True)
class Seen:
    """What the cells of a part have to do with how all of them are written."""

    running: Counter[str]  # cells that a spreadsheet would run
    stamps: Mapping[str, tuple[Stamp, ...]]  # spellings that hold its times
    levels: Mapping[str, frozenset[int]]  # of categories, the places of those that occur
    not_numbers: frozenset[str]  # columns with NaN


@dataclass(frozen=True)
class Cells:
    """How the cells of all parts are written."""

    stamps: Mapping[str, Stamp] = field(default_factory=dict)
    levels: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # those that occur, in their order
    not_numbers: tuple[str, ...] = ()

    @classmethod
    def join(cls, parts: Iterable[Seen]) -> Self:
        """From what was seen of each part; refuses cells that would run."""
        seen = list(parts)
        refuse_running(part.running for part in seen)
        levels = {
            name: tuple(sorted(set().union(*(part.levels[name] for part in seen)))) for name in seen[0].levels
        }
        not_numbers = sorted(frozenset().union(*(part.not_numbers for part in seen)))
        return cls(merge_stamps(part.stamps for part in seen), levels, tuple(not_numbers))

    def keep_levels(self, part: pa.Table, kept: Collection[str] = ()) -> pa.Table:
        """A part whose categories have the levels that occur anywhere, or all where they are `kept`."""
        for place, name in enumerate(part.column_names):
            if name in self.levels and name not in kept:
                column = join_chunks(part.column(name))
                if len(self.levels[name]) < len(column.dictionary):
                    part = part.set_column(place, part.schema.field(name), _recode(column, self.levels[name]))
        return part


def look_at(part: pa.Table, formulas: str, dialect: Dialect) -> Seen:
    """What there is to know of a part before the file is begun."""
    levels = {
        name: frozenset(np.unique(join_chunks(column).indices.drop_null().to_numpy()).tolist())
        for name, column in zip(part.column_names, part.columns, strict=True)
        if pa.types.is_dictionary(column.type)
    }
    stamps = choose_stamps(part, dialect)
    return Seen(count_running(part, formulas), stamps, levels, frozenset(find_not_numbers(part)))


@contextmanager
def grow(
    path: Path, like: Source, cells: Cells, *, formulas: str = "refuse", label: str = ""
) -> Iterator["Growing"]:
    """A file like a source, in its format; whole under its name at the end of the context, or not there."""
    kind = like.format.written_as
    if kind not in GROWING:
        raise SettingError(
            f"format {kind.value!r} cannot be written part by part. Ask for parquet or csv (--format)."
        )
    with placing(path) as partial, partial.open("xb") as file:
        growing = Growing(file, kind, like, cells, formulas, label)
        yield growing
        growing.finish(path)


class Growing:
    """What `grow` gives: `append` to it; `written` is there when its context has ended."""

    written: Written
    closed = False  # as Arrow asks of what it writes to

    def __init__(
        self, file: BinaryIO, kind: Format, like: Source, cells: Cells, formulas: str, label: str
    ) -> None:
        self._file, self._kind, self._like, self._cells = file, kind, like, cells
        self._hash, self._size, self._names = hashlib.sha256(), 0, list[str]()
        self._parquet = ParquetParts(pa.PythonFile(self, "w"), label) if kind is Format.PARQUET else None
        self._csv = CsvParts(like.dialect, formulas, cells.stamps)

    def append(self, part: pa.Table) -> None:
        """More rows, of the same columns."""
        self._names = part.column_names
        if self._parquet is not None:
            self._parquet.append(part)
            return
        for lines in self._csv.lines(part):
            self.write(lines)

    def finish(self, path: Path) -> None:
        """The rest of the file, which is on disk then."""
        if self._parquet is not None:
            self._parquet.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        changes = tell_labels(self._like.dictionary, self._names, self._kind)
        changes += [] if self._parquet else tell_gaps(self._cells.not_numbers)
        self.written = Written(path, self._kind, self._hash.hexdigest(), self._size, tuple(changes))

    def write(self, content: bytes) -> int:
        """Bytes on their way into the file: its digest is taken here."""
        self._hash.update(content)
        self._size += len(content)
        return self._file.write(content)

    def flush(self) -> None:
        """Arrow asks; the end of the file does it."""

    def close(self) -> None:
        """Arrow's end of its own wrapper."""


@contextmanager
def placing(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A name to write under, which becomes the file at the end of the context, or is not there any more."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        if path.exists() and not overwrite:
            raise FileError(f"{path.name}: the file exists. Choose another name, or pass overwrite=True.")
        if not path.parent.is_dir():
            raise FileError(f"{path.name}: the folder to write it into does not exist. Create it first.")
        yield partial
        partial.replace(path)
    except OSError as error:
        raise FileError(
            f"{path.name}: cannot be written ({reason_of(error)}). Nothing was left "
            "behind; free some room, or choose a folder that can be written to."
        ) from None
    finally:
        with suppress(OSError):
            partial.unlink()


def find_not_numbers(table: pa.Table) -> list[str]:
    """Columns with NaN, which is no missing value."""
    return sorted(name for name, missing in count_missing(table).items() if missing.marked)


def tell_labels(dictionary: Dictionary, names: Collection[str], kind: Format) -> list[str]:
    """That a format has no place for labels, where there are some."""
    labelled = sorted({*dictionary.labels, *dictionary.value_labels} & {*names})
    return [f"{kind.value} has no place for the labels of columns {list_some(labelled)}."] if labelled else []


def tell_gaps(not_numbers: Sequence[str]) -> list[str]:
    """That NaN will be read as a gap, where there are some."""
    return [f"NaN in columns {list_some(not_numbers)} reads as a missing value."] if not_numbers else []


def _recode(column: Any, used: tuple[int, ...]) -> Any:
    """A category with the levels at some places alone, all of which it may have."""
    gone = column.indices.is_null().to_numpy(zero_copy_only=False)
    codes = column.indices.fill_null(used[0] if used else 0).to_numpy()
    places = np.searchsorted(np.array(used, dtype=np.int64), codes)
    indices = pa.array(np.where(gone, 0, places).astype(codes.dtype), mask=gone)
    words = column.dictionary.take(pa.array(used, pa.int64()))
    return pa.DictionaryArray.from_arrays(indices, words, ordered=column.type.ordered)
