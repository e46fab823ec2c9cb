"""Files that somebody else wrote: nothing is followed, waited for, or read beyond the size it should have.

    >>> with open_file(Path("release/public/synthetic-copy-1.csv")) as file:
    ...     count_records(file, "csv")
    150

What is checked is what was opened, not what lay there a moment before: a pipe, a device or a link that takes
a file's place cannot make a receiver wait, nor a file of any size make it read.
"""

import csv
import errno
import hashlib
import html
import io
import os
import re
import stat
import struct
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO

from hedgerow.errors import ReleaseError

_FLAGS = ("O_RDONLY", "O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY")  # of which each system has some
_OPEN = sum(getattr(os, flag, 0) for flag in _FLAGS)
_BLOCK = 1 << 20
_ROW, _MOST_ROWS, _LARGEST_SHEET = b"<row ", 1 << 20, 1 << 34  # of Excel; bytes, unpacked
_LARGEST_NAMES = 1 << 24  # bytes; 32,767 columns, the most that SPSS has, need three million


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """An ordinary file, open for reading; `ReleaseError` if it is anything else."""
    try:
        handle = os.open(path, _OPEN)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket
            raise ReleaseError(f"{path.name} is not a file.") from None
        raise
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ReleaseError(f"{path.name} is not a file.")
    with open(handle, "rb") as file:  # noqa: PTH123 - a handle has no path
        yield file


def read_file(path: Path, largest: int) -> bytes:
    """The whole of a file that has at most so many bytes; one byte more of a larger one, so that it shows."""
    with open_file(path) as file:
        return file.read(largest + 1)


def size_of(file: BinaryIO) -> int:
    """How many bytes an open file has."""
    return os.fstat(file.fileno()).st_size


def digest(file: BinaryIO, size: int) -> str:
    """SHA-256 of the first `size` bytes and of one more, if the file has grown meanwhile."""
    found, left = hashlib.sha256(), size + 1
    while left and (block := file.read(min(left, _BLOCK))):
        found.update(block)
        left -= len(block)
    return found.hexdigest()


def show_name(name: str) -> str:
    """A word in somebody else's file, in a message: what cannot be printed is written out."""
    return name if name.isprintable() else ascii(name)


def count_records(file: BinaryIO, format: str) -> int:
    """How many records a copy has, from its header where the format has one."""
    file.seek(0)
    try:
        return _COUNTS[format](file)
    except Exception:  # whatever a parser stumbles over, the file is at fault
        raise ReleaseError(f"cannot be read as {show_name(format)}.") from None


def read_columns(
    file: BinaryIO, format: str, expected: Collection[str], dialect: Mapping[str, Any]
) -> list[str]:
    """The names of a copy's columns, from its header.

    Of a CSV file the `dialect` may be known in part; it is read by the delimiter that makes most of the
    `expected` names of its header. A name that a spreadsheet would run may have an apostrophe in front.
    """
    file.seek(0)
    try:
        if format != "csv":
            return _COLUMNS[format](file)
        encoding, delimiter = dialect.get("encoding", "utf-8"), dialect.get("delimiter", ",;\t|")
        head = file.read(64 + sum(8 * (len(name) + 4) for name in expected))  # of four bytes, and doubled
        cells = [
            next(
                csv.reader(
                    io.StringIO(head.decode(encoding, "ignore").removeprefix("\ufeff"), ""), delimiter=d
                )
            )
            for d in delimiter
        ]
        names = [[c[1:] if c not in expected and c[1:] in expected else c for c in row] for row in cells]
        return max(names, key=lambda row: len({*row} & {*expected}) - len({*row} - {*expected}))
    except Exception:  # as above
        raise ReleaseError(f"cannot be read as {show_name(format)}.") from None


def _count_csv(file: BinaryIO) -> int:
    """Line ends outside quotes, less that of the header."""
    first = file.read(2)
    wide = "utf-16-le" if first == b"\xff\xfe" or first[1:] == b"\0" else None
    wide = "utf-16-be" if first == b"\xfe\xff" or first[:1] == b"\0" else wide
    file.seek(0)
    lines, quoted = -1, False
    while block := file.read(_BLOCK):
        if wide:  # of a character beyond the sixteen bits no half is a quote or a line end
            block = block.decode(wide, "replace").encode()
        for place, part in enumerate(block.split(b'"')):
            quoted = quoted != (place > 0)
            lines += 0 if quoted else part.count(b"\n")
    return lines


def _count_parquet(file: BinaryIO) -> int:
    import pyarrow.parquet as pq

    return int(pq.ParquetFile(file).metadata.num_rows)


def _count_arrow(file: BinaryIO) -> int:
    """From the heads of its messages: a body may be packed, and unpack to any size."""
    import pyarrow as pa

    listed = pa.ipc.open_file(file).num_record_batches
    file.seek(8)  # behind the magic word a file is a stream
    messages = pa.ipc.MessageReader.open_stream(file)
    batches = [_batch_length(m.metadata.to_pybytes()) for m in messages if m.type == "record batch"]
    if len(batches) != listed:
        raise ValueError("its footer lists other batches")
    return sum(batches)


def _batch_length(head: bytes) -> int:
    """The length in a record batch's head: field 0 of the table in field 2 of a flatbuffer's root."""

    def find(table: int, field: int) -> int:
        entry = table - struct.unpack_from("<i", head, table)[0] + 4 + 2 * field
        return int(struct.unpack_from("<H", head, entry)[0])

    def follow(place: int) -> int:
        return place + int(struct.unpack_from("<I", head, place)[0])

    message = follow(0)
    batch = follow(message + find(message, 2))
    place = find(batch, 0)  # 0 where a batch has no rows, which flatbuffers leave out
    return int(struct.unpack_from("<q", head, batch + place)[0]) if place else 0


def _count_stata(file: BinaryIO) -> int:
    before, mark, after = file.read(200).partition(b"<N>")
    if not mark or not before.startswith(b"<stata_dta>"):
        raise ValueError("no header")
    return int.from_bytes(after[:8], "big" if b"MSF" in before else "little")


def _count_spss(file: BinaryIO) -> int:
    head = file.read(84)
    if head[:3] != b"$FL":
        raise ValueError("no header")
    return int(struct.unpack_from(f"{_spss_order(head)}i", head, 80)[0])


def _spss_order(head: bytes) -> str:
    """Which end of a number comes first, by the header's layout code."""
    return "<" if int.from_bytes(head[64:68], "little") in (2, 3) else ">"


def _count_excel(file: BinaryIO) -> int:
    """Rows of the sheet as hedgerow writes it, less that of the names; nothing of it is parsed or kept."""
    rows, left, kept = -1, _LARGEST_SHEET, b""
    with _excel_sheet(file) as sheet:
        while block := sheet.read(_BLOCK):
            left -= len(block)
            rows += (kept + block).count(_ROW)
            kept = block[1 - len(_ROW) :]
            if left < 0 or rows > _MOST_ROWS:
                raise ValueError("too large")
    return rows


def _excel_columns(file: BinaryIO) -> list[str]:
    with _excel_sheet(file) as sheet:
        head, mark, _ = sheet.read(_LARGEST_NAMES).partition(b"</row>")
    if not mark:
        raise ValueError("no header")
    return [html.unescape(name) for name in re.findall("<t[^>]*>([^<]*)</t>", head.decode())]


def _excel_sheet(file: BinaryIO) -> IO[bytes]:
    return zipfile.ZipFile(file).open("xl/worksheets/sheet1.xml")


def _parquet_columns(file: BinaryIO) -> list[str]:
    import pyarrow.parquet as pq

    return list(pq.ParquetFile(file).schema_arrow.names)


def _arrow_columns(file: BinaryIO) -> list[str]:
    import pyarrow as pa

    return list(pa.ipc.open_file(file).schema.names)


def _stata_columns(file: BinaryIO) -> list[str]:
    """From fields of 129 bytes, in the section that the map's fourth entry leads to (format 118)."""
    head = file.read(512)
    order = ">" if b"MSF" in head[:100] else "<"
    (columns,) = struct.unpack_from(f"{order}H", head, head.index(b"<K>") + len("<K>"))
    (place,) = struct.unpack_from(f"{order}q", head, head.index(b"<map>") + len("<map>") + 8 * 3)
    file.seek(place + len("<varnames>"))
    fields = [file.read(129) for _ in range(columns)]
    return [field.partition(b"\0")[0].decode() for field in fields]


def _spss_columns(file: BinaryIO) -> list[str]:
    """From the records of the dictionary: short names, and long ones and segments of long texts by them."""
    order = _spss_order(file.read(176))

    def numbers(count: int) -> tuple[int, ...]:
        return struct.unpack(f"{order}{count}i", file.read(4 * count))

    def skip(size: int) -> None:
        if size < 0:  # back to where it would be read again
            raise ValueError("no dictionary")
        file.seek(size, os.SEEK_CUR)

    short: list[str] = []
    told: dict[int, dict[str, str]] = {}
    while (kind := numbers(1)[0]) != 999:
        if kind == 2:  # a variable, or 8 more bytes of the one before
            width, labelled, missing, _, _ = numbers(5)
            name = file.read(8).decode().rstrip()
            short += [name] if width >= 0 else []
            skip(-(-numbers(1)[0] // 4) * 4 if labelled else 0)
            skip(8 * abs(missing))
        elif kind == 3:  # labels of values, each filled up to eight bytes
            for _ in range(numbers(1)[0]):
                skip(8)
                skip(file.read(1)[0] // 8 * 8 + 7)
        elif kind in (4, 6):  # which variables they belong to; notes
            skip(numbers(1)[0] * {4: 4, 6: 80}[kind])
        elif kind == 7:
            subtype, size, count = numbers(3)
            if subtype not in (13, 14) or size * count > _LARGEST_NAMES:
                skip(size * count)
                continue
            words = file.read(size * count).decode().replace("\0", "").split("\t")
            told[subtype] = dict(word.split("=", 1) for word in words if word)
        else:
            raise ValueError("no dictionary")
    long, segments, columns = told.get(13, {}), told.get(14, {}), iter(short)
    names = []
    for name in columns:
        names.append(long.get(name, name))
        for _ in range((int(segments.get(name, 1)) - 1) // 252):  # bytes of a text that one segment holds
            next(columns)
    return names


# By the name of the format, of those that hedgerow writes.
_COUNTS: dict[str, Callable[[BinaryIO], int]] = {
    "csv": _count_csv,
    "parquet": _count_parquet,
    "arrow": _count_arrow,
    "stata": _count_stata,
    "spss": _count_spss,
    "excel": _count_excel,
}
_COLUMNS: dict[str, Callable[[BinaryIO], list[str]]] = {
    "parquet": _parquet_columns,
    "arrow": _arrow_columns,
    "stata": _stata_columns,
    "spss": _spss_columns,
    "excel": _excel_columns,
}
