"""A CSV file whose records come in batches; guarded against change.

It is read twice, or three times where the decimal sign is not known: what a column is read as follows from
all of its cells (`files.csv`), and only then are these read so.

Guarantee: as for Parquet files, what `batches` has yielded by its end are all records of one state of it.
"""

import codecs
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv

from hedgerow.tables.files.csv.header import (
    Likeness,
    check_known,
    check_names,
    compare_header,
    judge_header,
    read_header,
)
from hedgerow.tables.files.csv.rows import cell_options, check_any, telling_rows_apart
from hedgerow.tables.files.csv.spelling import (
    Commas,
    check_nul,
    check_quotes,
    count_commas,
    explaining_encoding,
    find_decimal,
    refuse_utf16,
    spell,
)
from hedgerow.tables.files.csv.types import Seen, Types
from hedgerow.tables.files.source import LEFT_INDEX, Dialect, Format, Missing, Reading
from hedgerow.tables.spool.parquet import check_schema, refuse_changed, stamp_of

_CHUNK = 1 << 20  # bytes read at a time
_HEAD = 1 << 24  # of a first line, at most


@dataclass(frozen=True, eq=False)
class Text:
    """A CSV file with a header, of which the type of every column is known."""

    path: Path
    stamp: tuple[int, ...]
    header: tuple[str, ...]  # with that of an index
    kinds: Mapping[str, str]  # of columns, as `Types` says them
    types: Types
    schema: pa.Schema
    records: int
    notes: tuple[str, ...]
    dialect: Dialect
    format = Format.CSV

    @property
    def missing(self) -> Mapping[str, Missing]:
        """Cells without a value, by column."""
        return self.types.counts

    @classmethod
    def at(
        cls,
        path: Path,
        *,
        encoding: str | None = None,
        delimiter: str | None = None,
        decimal: str | None = None,
        **said: Any,
    ) -> "Text":
        """What is at a path: looks at every cell; options are those of `files.read`."""
        reading = Reading(**said)
        stamp, content = stamp_of(path), Content(path, encoding or "utf-8")
        dialect = spell(
            path.name, content.first_line(), content.encoding, delimiter, decimal, bom=content.bom
        )
        with closing(Content(path, content.encoding)) as again:
            first = read_header(path.name, again, dialect)  # type: ignore[arg-type]  # reads as IO[bytes]
        has_index = check_names(first, path.name)
        names, notes = first[has_index:], [LEFT_INDEX] if has_index else []
        words, settled = reading.words, reading.settled

        def look(tell: Callable[[str, pa.ChunkedArray], None], known: Collection[str] = ()) -> int:
            rows = 0
            for batch in _read(path, dialect, first):
                rows += batch.num_rows
                for place, name in enumerate(first):
                    if place >= has_index and name not in known:
                        tell(name, pa.chunked_array([batch.column(place)]))
            return rows

        if decimal is None and dialect.delimiter != ",":
            commas = dict.fromkeys((name for name in names if name not in settled), Commas())

            def count(name: str, column: pa.ChunkedArray) -> None:
                commas[name] = _add(commas[name], count_commas(column, words))

            look(count, settled)
            dialect = find_decimal(dialect, commas, notes)
        check_known(path.name, names, reading)
        types = Types(path.name, dialect.decimal, reading)
        seen = {name: Seen() for name in names}
        likes = {name: Likeness() for name in names if not reading.header and name not in settled}

        def see(name: str, column: pa.ChunkedArray) -> None:
            types.look(name, column, seen[name])
            if name in likes:
                likes[name] = _add(likes[name], compare_header(name, column, dialect.decimal))

        records = look(see)
        check_any(path.name, first, records)
        if not reading.header:
            judge_header(path.name, names, likes, dialect.decimal, reading)
        kinds = {name: types.decide(name, seen[name]) for name in names}
        none = pa.chunked_array([pa.array([None], pa.string())])
        fields = [pa.field(name, types.cast(name, none, kind).type) for name, kind in kinds.items()]
        if stamp_of(path) != stamp:
            raise refuse_changed(path.name)
        return cls(
            path, stamp, tuple(first), kinds, types, check_schema(pa.schema(fields), path.name), records,
            (*notes, *types.notes), types.spell(dialect),
        )  # fmt: skip

    def batches(self, names: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
        """All records in order, the named columns in that order."""
        schema = pa.schema([self.schema.field(name) for name in names])
        places, seen = [self.header.index(name) for name in names], 0
        for batch in _read(self.path, self.dialect, list(self.header)):
            seen += batch.num_rows
            parts = [pa.chunked_array([batch.column(place)]) for place in places]
            typed = [self.types.cast(n, c, self.kinds[n]) for n, c in zip(names, parts, strict=True)]
            yield from pa.Table.from_arrays(typed, schema=schema).to_batches(size)
        if seen != self.records or stamp_of(self.path) != self.stamp:
            raise refuse_changed(self.path.name)


def _add(one: Any, other: Any) -> Any:
    return type(one)(*(a + b for a, b in zip(one, other, strict=True)))


def _read(path: Path, dialect: Dialect, header: list[str]) -> Iterator[pa.RecordBatch]:
    """Every cell below the header as text."""
    content = Content(path, dialect.encoding)
    with closing(content), telling_rows_apart(path.name, header, dialect) as parse:
        reading, converting = cell_options(header)
        try:
            yield from pyarrow.csv.open_csv(pa.PythonFile(content, "r"), reading, parse, converting)
        except pa.ArrowInvalid:
            if content.failure is not None:
                raise content.failure from None
            raise
    check_quotes(path.name, content.quotes)


class Content:
    """The text of a file as UTF-8, without a mark or blank lines before it; whoever reads it to its end knows
    how many quotation marks it has.
    """

    def __init__(self, path: Path, encoding: str) -> None:
        self.name, self.encoding = path.name, encoding
        self.file: IO[bytes] = path.open("rb")
        self.bom, self.quotes, self.closed = False, 0, False
        self.failure: Exception | None = None
        self._rest, self._ended, self._begun = b"", False, False
        with explaining_encoding(self.name, encoding):
            self._decoder = codecs.getincrementaldecoder(encoding)("strict")

    def first_line(self) -> str:
        """The line that the header begins with."""
        line = b""
        while b"\n" not in line and len(line) < _HEAD:
            part = self.read(_CHUNK)
            if not part:
                break
            line += part
        self.close()
        return line.partition(b"\n")[0].decode()

    def read(self, size: int = -1) -> bytes:
        """At most so many bytes; none at the end."""
        while not self._ended and (size < 0 or len(self._rest) < size):
            self._fill()
        cut = len(self._rest) if size < 0 else size
        found, self._rest = self._rest[:cut], self._rest[cut:]
        return found

    read1 = read

    def _fill(self) -> None:
        raw = self.file.read(_CHUNK)
        self._ended = not raw
        try:
            if not self._begun and raw.startswith((b"\xff\xfe", b"\xfe\xff")) and self.encoding == "utf-8":
                raise refuse_utf16(self.name)
            with explaining_encoding(self.name, self.encoding):
                part = self._decoder.decode(raw, final=self._ended)
            check_nul(self.name, part.count("\0"))
        except Exception as failure:  # any: Arrow would word it its own way
            self.failure = failure
            raise
        if not self._begun:
            self.bom |= part.startswith("\ufeff")
            part = part.removeprefix("\ufeff").lstrip("\r\n")
            self._begun = bool(part)
        self.quotes += part.count('"')
        self._rest += part.encode()

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True
        self.file.close()
