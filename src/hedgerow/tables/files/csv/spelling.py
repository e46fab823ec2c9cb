"""How a CSV file spells things: its encoding, its delimiter, its decimal sign."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import FileError, format_value
from hedgerow.tables.files.csv.types import NUMBER, count_matches
from hedgerow.tables.files.source import Dialect


def decode(path: Path, encoding: str, delimiter: str | None, decimal: str | None) -> tuple[bytes, Dialect]:
    """The file as UTF-8 without a byte order mark, and how it was spelled."""
    raw = path.read_bytes()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) and encoding == "utf-8":
        raise refuse_utf16(path.name)
    with explaining_encoding(path.name, encoding):
        content = raw.decode(encoding)
    check_nul(path.name, content.count("\0"))
    bom = content.startswith("\ufeff")
    content = content.removeprefix("\ufeff").lstrip("\r\n")
    dialect = spell(path.name, content.partition("\n")[0], encoding, delimiter, decimal, bom=bom)
    check_quotes(path.name, content.count('"'))
    return content.encode("utf-8"), dialect


def refuse_utf16(file: str) -> FileError:
    """The error about a file whose mark says that it is UTF-16."""
    return FileError(f"{file}: the file is UTF-16, not UTF-8. Pass --encoding utf-16 (encoding=).")


@contextmanager
def explaining_encoding(file: str, encoding: str) -> Iterator[None]:
    """Words an error of decoding as one of ours."""
    try:
        yield
    except LookupError:
        raise FileError(
            f"{file}: {encoding!r} is no known encoding. Use 'utf-8', 'cp1252', 'latin-1' or 'utf-16'."
        ) from None
    except UnicodeError:
        raise FileError(
            f"{file}: the file is not {encoding}. Pass the encoding it was saved in: --encoding cp1252 "
            "(encoding= in Python; Windows, Western Europe), cp1250 (Central Europe), latin-1, utf-16, "
            "shift_jis or another."
        ) from None


def check_nul(file: str, count: int) -> None:
    """Refuses what is no text."""
    if count:
        raise FileError(
            f"{file}: {count} NUL characters. This is not a text file, or it is UTF-16 without its mark: "
            "pass --encoding utf-16-le (encoding=), or export the file again."
        )


def check_quotes(file: str, count: int) -> None:
    """Refuses quotation marks that do not come in pairs."""
    if count % 2:
        raise FileError(
            f"{file}: a quotation mark is opened and never closed. The file is cut short, or a cell holds a "
            'single " that should be doubled: export it again.'
        )


def spell(
    file: str, head: str, encoding: str, delimiter: str | None, decimal: str | None, *, bom: bool
) -> Dialect:
    """How a file spells things, by its first line and what the caller says."""
    if not head:
        raise FileError(f"{file}: the file is empty. A header and at least one row are needed.")
    newline = "\r\n" if head.endswith("\r") else "\n"
    if delimiter is None:
        # Ties and none at all: the comma.
        delimiter = max(",;\t|", key=re.sub(r'"[^"]*"', "", head).count)
    elif len(delimiter) != 1 or delimiter in '"\r\n':
        raise FileError(
            f"{file}: the delimiter must be one character, got {format_value(delimiter)}. Use ',' or ';'."
        )
    decimal = decimal or "."
    if decimal not in (".", ",") or decimal == delimiter:
        raise FileError(
            f"{file}: decimal sign {decimal!r} with delimiter {delimiter!r}. Use '.' or ',', not the same."
        )
    return Dialect(encoding, bom, delimiter, decimal, newline)


class Commas(NamedTuple):
    """What a column says of the decimal sign, counted over cells; of parts of it the counts add."""

    present: int = 0
    signs: int = 0  # with a comma or a point
    numbers: int = 0
    plain: int = 0  # numbers once the first comma is a point
    thousands: int = 0  # 1,234


def count_commas(column: pa.ChunkedArray, missing: pa.Array) -> Commas:
    """The counts of a column, or of a part of it."""
    absent = pc.fill_null(pc.is_in(column, value_set=missing), True)
    present = column.filter(pc.invert(absent))
    signs, numbers = count_matches(present, "[,.]"), count_matches(present, NUMBER)
    if not signs:
        return Commas(len(present), 0, numbers, numbers)
    plain = count_matches(pc.replace_substring(present, ",", ".", max_replacements=1), NUMBER)
    thousands = count_matches(present, r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$")
    return Commas(len(present), signs, numbers, plain, thousands)


def find_decimal(dialect: Dialect, counts: Mapping[str, Commas], notes: list[str]) -> Dialect:
    """The dialect with a decimal comma, where columns have numbers with one and none has a point.

    1,234 is a thousand and more, or one and a part of one: a file without other commas does not tell.
    """
    comma, decides = None, False
    for name, count in counts.items():
        if count.signs and count.numbers == count.present:
            return dialect  # a point
        if count.signs and count.plain == count.present:
            comma = comma or name
            decides |= count.thousands < count.signs
    if decides:
        notes.append(
            f"numbers are read with a decimal comma, as in column {comma!r}. If these are no numbers, "
            "say --decimal . (decimal=)."
        )
        return replace(dialect, decimal=",")
    if comma is not None:
        notes.append(
            f"column {comma!r} is kept as text: its commas may be decimal signs, for which say "
            "--decimal , (decimal=), or group thousands."
        )
    return dialect
