"""The first line of a CSV file: column names, or a record that stands in their place.

A first line that looks like a record is no header: as names its cells would be printed, published and quoted
by every message. It is refused without a word of it, unless the caller says that it holds names.
"""

import csv
import io
import re
from collections.abc import Mapping
from typing import IO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import DataError, FileError, list_some
from hedgerow.tables.files.columns import check_width
from hedgerow.tables.files.csv.types import DATE, NUMBER, STAMP, count_matches
from hedgerow.tables.files.source import Dialect, Reading


def read_header(file: str, content: IO[bytes], dialect: Dialect) -> list[str]:
    """The cells of the first line."""
    head = io.TextIOWrapper(content, encoding="utf-8", newline="")
    try:
        return [cell.strip() for cell in next(csv.reader(head, delimiter=dialect.delimiter))]
    except csv.Error:
        raise FileError(
            f"{file}: the first line is no header. Pass the delimiter, or export it again."
        ) from None


def check_names(header: list[str], file: str) -> bool:
    """Refuses columns without names and names that repeat; whether the first is an index without a name."""
    check_width(len(header), file)
    has_index = len(header) > 1 and not header[0]
    blank = sum(not cell for cell in header) - has_index
    if blank:
        raise DataError(f"{file}: {blank} of {len(header)} columns have no name. Name them.")
    repeated = len(header) - len(set(header))
    if repeated:
        # By place: the first line may be a record.
        first = {cell: place for place, cell in reversed([*enumerate(header, 1)])}
        places = [place for place, cell in enumerate(header, 1) if first[cell] < place]
        raise DataError(
            f"{file}: {repeated} of {len(header)} cells of the first line repeat another (columns "
            f"{list_some(places)}). Add a line with column names if it is a record, or rename them."
        )
    return has_index


def check_known(file: str, names: list[str], reading: Reading) -> None:
    """Refuses columns to be read as text that are not there."""
    unknown = sorted(set(reading.text) - set(names))
    if unknown:
        raise DataError(
            f"{file}: no column named {list_some(unknown)}. The columns are {list_some(names, 20)}."
        )


class Likeness(NamedTuple):
    """How the cell over a column is like those below, counted over these; of parts the counts add."""

    present: int = 0
    alike: int = 0  # numbers or dates, if the cell is one
    again: int = 0  # the same word
    numbers: int = 0


def compare_header(name: str, column: pa.ChunkedArray, decimal: str) -> Likeness:
    """The counts of a column, or of a part of it."""
    present = len(column) - column.null_count
    plain = pc.replace_substring(column, ",", ".") if decimal == "," else column
    pattern = _pattern_of(name, decimal)
    if pattern is not None:
        return Likeness(present, count_matches(plain, pattern))
    again = int(pc.index(column, name).as_py() >= 0)
    return Likeness(present, 0, again, count_matches(plain, NUMBER))


def _pattern_of(name: str, decimal: str) -> str | None:
    word = name.replace(",", ".") if decimal == "," else name
    return next((each for each in (NUMBER, DATE, STAMP.pattern) if re.match(each, word)), None)


def check_header(file: str, names: list[str], cells: pa.Table, decimal: str, reading: Reading) -> None:
    """Refuses a first line that looks like a record (`judge_header`)."""
    pairs = [each for each in zip(names, cells.columns, strict=True) if each[0] not in reading.settled]
    likes = {name: compare_header(name, column, decimal) for name, column in pairs}
    judge_header(file, names, likes, decimal, reading)


def judge_header(
    file: str, names: list[str], likes: Mapping[str, Likeness], decimal: str, reading: Reading
) -> None:
    """Refuses a first line that looks like a record: a number over numbers, a word that comes again.

    A word that comes again may still be a name ("other", "total") where another word stands over numbers. A
    name that the caller knows is one, whatever stands below it: it has no likeness.
    """
    alike, again, unlike = 0, 0, len(names) - len(likes)
    for name, like in likes.items():
        if _pattern_of(name, decimal) is not None:
            alike += like.present == 0 or 2 * like.alike >= like.present
        elif name in reading.missing:
            alike += 1
        elif like.again:
            again += 1
        else:
            unlike += 0 < like.present == like.numbers
    if not unlike:
        alike += again
    if alike:
        raise DataError(
            f"{file}: the first line looks like a record, not like column names: {alike} of its {len(names)} "
            "cells are like those below them. Add a line with column names; if these are names, say so with "
            "header=True (--header)."
        )
