"""CSV in: every cell read as text first, then each column typed by all of its cells.

A reader that guesses from a first block turns a late letter into an error or a whole column into
floats. Here a type is given only when every cell of the column fits it, and only when writing the value
gives the same text back up to notation: codes with leading zeros, numbers with a leading plus and whole
numbers beyond 64 bits stay text.

Missing: an empty cell always; in a column of numbers, booleans or dates also the words in `missing`
("NA", "NaN", …), a number among them however it is written (-8, -8.0). In a text column those words are
text, since NA may be Namibia. Blank lines are skipped when there is more than one column.

A first line that looks like a record is no header: as names its cells would be printed, published and
quoted by every message. It is refused without a word of it, unless the caller says that it holds names.
"""

import csv
import io
import re
import shlex
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from hedgerow.errors import DataError, FileError, list_some
from hedgerow.tables.files.columns import EXACT, check_flat, check_width
from hedgerow.tables.files.source import LEFT_INDEX, Dialect, Format, Missing, Source, Stamp, freeze

MISSING_WORDS = ("NA", "N/A", "NaN", "nan", "NULL", "null", "None", ".")

_BLOCK = 1 << 24  # one row must fit into a block: 10,000 wide cells do
_INTEGER = r"^-?(0|[1-9][0-9]*)$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?(inf|Inf|INF|infinity|Infinity)$"
_CODE = r"^[+-]?0[0-9]|^\+[0-9]+$"  # 00123, +44123: numbers to a parser, names to people
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_DAY = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}(?:[ T].*)?$"  # a date, or the day of a moment
_STAMP = re.compile(r"^\d{4}-\d\d-\d\d([ T])\d\d:\d\d:\d\d(?:\.(\d{3}|\d{6}|\d{9}))?(Z?)$")
_BOOLEANS = (("false", "true"), ("False", "True"), ("FALSE", "TRUE"))


def read_csv(
    path: Path,
    encoding: str,
    delimiter: str | None,
    decimal: str | None,
    missing: Collection[str],
    text: Collection[str],
    *,
    header: bool = False,
    numbers: Collection[str] = (),
    dates: Collection[str] = (),
) -> Source:
    """A CSV file with a header as a `Source`. Without a decimal sign it is found by what the columns hold."""
    body, dialect = _decode(path, encoding, delimiter, decimal)
    names, cells, notes = _split(path.name, body, dialect)
    words = pa.array(sorted({"", *missing}), pa.string())
    fixed = {*text, *numbers, *dates}  # columns whose cells may decide nothing
    if decimal is None and dialect.delimiter != ",":
        others = {n: c for n, c in zip(names, cells.columns, strict=True) if n not in fixed}
        comma, decides = _find_decimal_comma(others, words)
        if decides:
            dialect = replace(dialect, decimal=",")
            notes.append(
                f"numbers are read with a decimal comma, as in column {comma!r}. If these are no numbers, "
                "say --decimal . (decimal=)."
            )
        elif comma is not None:
            notes.append(
                f"column {comma!r} is kept as text: its commas may be decimal signs, for which say "
                "--decimal , (decimal=), or group thousands."
            )
    if not header:
        check_header(path.name, names, cells, dialect.decimal, missing, fixed)
    unknown = sorted(set(text) - set(names))
    if unknown:
        raise DataError(
            f"{path.name}: no column named {list_some(unknown)}. The columns are {list_some(names, 20)}."
        )
    types = _Types(path.name, dialect.decimal, words, text, numbers, dates)
    columns = [types.convert(name, column) for name, column in zip(names, cells.columns, strict=True)]
    table = check_flat(pa.Table.from_arrays(columns, names=names), path.name)
    spelled: dict[str, Any] = {
        kind: freeze(getattr(types, kind)) for kind in ("missing", "booleans", "stamps")
    }
    notes += types.notes
    return Source(table, Format.CSV, freeze(types.counts), tuple(notes), replace(dialect, **spelled))


def _decode(path: Path, encoding: str, delimiter: str | None, decimal: str | None) -> tuple[bytes, Dialect]:
    """The file as UTF-8 without a byte order mark, and how it was spelled."""
    raw = path.read_bytes()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) and encoding == "utf-8":
        raise FileError(f"{path.name}: the file is UTF-16, not UTF-8. Pass --encoding utf-16 (encoding=).")
    try:
        content = raw.decode(encoding)
    except LookupError:
        raise FileError(
            f"{path.name}: {encoding!r} is no known encoding. Use 'utf-8', 'cp1252', 'latin-1' or 'utf-16'."
        ) from None
    except UnicodeError:
        raise FileError(
            f"{path.name}: the file is not {encoding}. Pass the encoding it was saved in: --encoding cp1252 "
            "(encoding= in Python; Windows, Western Europe), cp1250 (Central Europe), latin-1, utf-16, "
            "shift_jis or another."
        ) from None
    if "\0" in content:
        raise FileError(
            f"{path.name}: {content.count(chr(0))} NUL characters. This is not a text file, or it is UTF-16 "
            "without its mark: pass --encoding utf-16-le (encoding=), or export the file again."
        )
    bom = content.startswith("\ufeff")
    content = content.removeprefix("\ufeff").lstrip("\r\n")
    if not content:
        raise FileError(f"{path.name}: the file is empty. A header and at least one row are needed.")
    head = content.partition("\n")[0]
    newline = "\r\n" if head.endswith("\r") else "\n"
    if delimiter is None:
        # Ties and none at all: the comma.
        delimiter = max(",;\t|", key=re.sub(r'"[^"]*"', "", head).count)
    elif len(delimiter) != 1 or delimiter in '"\r\n':
        raise FileError(
            f"{path.name}: the delimiter must be one character, got {delimiter!r}. Use ',' or ';'."
        )
    decimal = decimal or "."
    if decimal not in (".", ",") or decimal == delimiter:
        raise FileError(
            f"{path.name}: decimal sign {decimal!r} with delimiter {delimiter!r}. Use '.' or ',', not "
            "the same."
        )
    if content.count('"') % 2:
        raise FileError(
            f"{path.name}: a quotation mark is opened and never closed. The file is cut short, or a cell "
            'holds a single " that should be doubled: export it again.'
        )
    return content.encode("utf-8"), Dialect(encoding, bom, delimiter, decimal, newline)


def _split(name: str, body: bytes, dialect: Dialect) -> tuple[list[str], pa.Table, list[str]]:
    """The header, every cell as text, and what was left out; an empty cell is null, a quoted empty one "".

    A first column without a name is the index that pandas and R write before the others.
    """
    head = io.TextIOWrapper(io.BytesIO(body), encoding="utf-8", newline="")
    try:
        header = [cell.strip() for cell in next(csv.reader(head, delimiter=dialect.delimiter))]
    except csv.Error:
        raise FileError(
            f"{name}: the first line is no header. Pass the delimiter, or export it again."
        ) from None
    has_index = check_names(header, name)
    ragged: list[int] = []
    numbered = [str(place) for place in range(len(header))]

    def skip(row: "pyarrow.csv.InvalidRow") -> str:
        ragged.append(row.actual_columns)
        return "skip"

    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(body),
            pyarrow.csv.ReadOptions(
                # Commands that ended at once, on tables without rows, sometimes aborted with threads.
                use_threads=len(body) >= _BLOCK,
                column_names=numbered,
                skip_rows_after_names=1,
                block_size=_BLOCK,
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=dialect.delimiter,
                newlines_in_values=True,
                # In a file of one column a blank line is a missing value.
                ignore_empty_lines=len(header) > 1,
                invalid_row_handler=skip,
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(numbered, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
    except pa.ArrowInvalid:
        # Arrow's own message quotes the row.
        raise FileError(
            f"{name}: the rows cannot be told apart with delimiter {dialect.delimiter!r}. Pass another "
            "delimiter, or export the file again."
        ) from None
    if ragged:
        raise FileError(
            f"{name}: {len(ragged)} rows have between {min(ragged)} and {max(ragged)} cells, the header has "
            f"{len(header)} (delimiter {dialect.delimiter!r}). The file is cut short, a cell holds an "
            "unquoted delimiter, or the delimiter is another: pass it, or export the file again."
        )
    if table.num_rows == 0:
        raise DataError(f"{name}: a header of {len(header)} columns and no rows. At least one row is needed.")
    if has_index:
        return header[1:], table.drop_columns(["0"]), [LEFT_INDEX]
    return header, table, []


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


def _find_decimal_comma(columns: Mapping[str, pa.ChunkedArray], missing: pa.Array) -> tuple[str | None, bool]:
    """The first column of numbers with a comma, if none has a point, and whether it must be the decimal sign.

    1,234 is a thousand and more, or one and a part of one: a file without other commas does not tell.
    """
    comma, decides = None, False
    for name, column in columns.items():
        absent = pc.fill_null(pc.is_in(column, value_set=missing), True)
        present = column.filter(pc.invert(absent))
        signs = _count_matches(present, "[,.]")
        if signs and _count_matches(present, _NUMBER) == len(present):
            return None, False  # a point
        plain = pc.replace_substring(present, ",", ".", max_replacements=1)
        if signs and _count_matches(plain, _NUMBER) == len(present):
            comma = comma or name
            decides |= _count_matches(present, r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$") < signs
    return comma, decides


def check_header(
    file: str,
    names: list[str],
    cells: pa.Table,
    decimal: str,
    missing: Collection[str],
    known: Collection[str] = (),
) -> None:
    """Refuses a first line that looks like a record: a number over numbers, a word that comes again.

    A word that comes again may still be a name ("other", "total") where another word stands over numbers. A
    name that the caller knows is one, whatever stands below it.
    """
    alike, again, unlike = 0, 0, 0
    for name, column in zip(names, cells.columns, strict=True):
        if name in known:
            unlike += 1
            continue
        word = name.replace(",", ".") if decimal == "," else name
        pattern = next((each for each in (_NUMBER, _DATE, _STAMP.pattern) if re.match(each, word)), None)
        plain = pc.replace_substring(column, ",", ".") if decimal == "," else column
        present = len(column) - column.null_count
        if pattern is not None:
            alike += present == 0 or 2 * _count_matches(plain, pattern) >= present
        elif name in missing:
            alike += 1
        elif pc.index(column, name).as_py() >= 0:
            again += 1
        else:
            unlike += present > 0 and _count_matches(plain, _NUMBER) == present
    if not unlike:
        alike += again
    if alike:
        raise DataError(
            f"{file}: the first line looks like a record, not like column names: {alike} of its {len(names)} "
            "cells are like those below them. Add a line with column names; if these are names, say so with "
            "header=True (--header)."
        )


class _Types:
    """Gives each column its type and collects what was decided on the way."""

    def __init__(
        self,
        file: str,
        decimal: str,
        words: pa.Array,
        text: Collection[str],
        numbers: Collection[str],
        dates: Collection[str],
    ) -> None:
        self.file, self.decimal, self.words = file, decimal, words
        self.text, self.numbers, self.dates = text, numbers, dates
        numeric = [word.replace(",", ".") if decimal == "," else word for word in words.to_pylist()]
        self.codes = pa.array([float(word) for word in numeric if re.match(_NUMBER, word)], pa.float64())
        self.counts: dict[str, Missing] = {}
        self.missing: dict[str, str] = {}  # column: the one word that all its missing cells hold
        self.booleans: dict[str, tuple[str, str]] = {}
        self.stamps: dict[str, Stamp] = {}
        self.notes: list[str] = []

    def convert(self, name: str, cells: pa.ChunkedArray) -> pa.ChunkedArray:
        """The column in its type; words for missing values count only where they cannot be data."""
        absent = pc.fill_null(pc.is_in(cells, value_set=self.words), False)
        if len(self.codes):  # -8 stands for -8.0 too, as other programs write it
            plain = pc.replace_substring(cells, ",", ".") if self.decimal == "," else cells
            number = pc.if_else(pc.match_substring_regex(plain, _NUMBER), plain, pa.scalar(None, pa.string()))
            coded = pc.is_in(number.cast(pa.float64()), value_set=self.codes)
            absent = pc.or_(absent, pc.and_(coded, pc.is_valid(number)))
        present = pc.if_else(absent, pa.scalar(None, pa.string()), cells)
        typed = None if name in self.text else self._to_type(name, present)
        empty, words = cells.null_count, {}
        if typed is not None:
            counts = pc.value_counts(cells.filter(absent)).to_pylist()
            words = {each["values"]: each["counts"] for each in sorted(counts, key=itemgetter("values"))}
            empty += words.pop("", 0)
        if empty or words:
            self.counts[name] = Missing(empty, freeze(words))
        # How a copy spells its gaps may not follow from a cell that decides nothing.
        if len(words) == 1 and not empty and name not in (*self.numbers, *self.dates):
            (self.missing[name],) = words
        return cells if typed is None else typed

    def _to_type(self, name: str, cells: pa.ChunkedArray) -> pa.ChunkedArray | None:
        """The column in its type, or None if it is text."""
        if name in self.numbers:
            plain = pc.replace_substring(cells, ",", ".") if self.decimal == "," else cells
            number = pc.match_substring_regex(plain, _NUMBER)
            return pc.if_else(number, plain, pa.scalar(None, pa.string())).cast(pa.float64())
        if name in self.dates:
            written = pc.match_substring_regex(cells, _DAY)
            days = pc.utf8_slice_codeunits(pc.if_else(written, cells, pa.scalar(None, pa.string())), 0, 10)
            moments = pc.strptime(days, format="%Y-%m-%d", unit="s", error_is_null=True)
            same = pc.equal(pc.strftime(moments, format="%Y-%m-%d"), days)  # 31 April is no day of May
            return pc.if_else(same, moments.cast(pa.date32()), pa.scalar(None, pa.date32()))
        present = len(cells) - cells.null_count
        if not present:
            return pa.chunked_array([pa.nulls(len(cells))])
        plain = pc.replace_substring(cells, ",", ".") if self.decimal == "," else cells
        numbers = _count_matches(plain, _NUMBER)
        if numbers == present:
            return self._to_number(name, plain, present)
        if 2 * numbers >= present:
            raise DataError(
                f"{self.file}: column {name!r} mixes types: {numbers} of {present} cells are numbers, "
                f"{present - numbers} are not. Correct them, name the word they use for a missing value "
                f"(--missing-word, missing=), or read the column as text (--text {shlex.quote(name)}, text=)."
            )
        for pair in _BOOLEANS:
            if pc.sum(pc.is_in(cells, value_set=pa.array(pair))).as_py() == present:
                self.booleans[name] = pair
                return pc.equal(cells, pair[1])
        return self._to_moment(name, cells, present)

    def _to_number(self, name: str, cells: pa.ChunkedArray, present: int) -> pa.ChunkedArray | None:
        if _count_matches(cells, _CODE):
            self.notes.append(
                f"column {name!r} is kept as text: some of its numbers have leading zeros or a plus."
            )
            return None
        if _count_matches(cells, _INTEGER) == present:
            for kind in (pa.int64(), pa.uint64()):
                with suppress(pa.ArrowInvalid):
                    return cells.cast(kind)
            self.notes.append(f"column {name!r} is kept as text: its whole numbers need more than 64 bits.")
            return None
        numbers = cells.cast(pa.float64())
        lost = pc.sum(pc.and_(pc.is_inf(numbers), pc.match_substring_regex(cells, "[0-9]"))).as_py()
        if lost:
            raise DataError(
                f"{self.file}: column {name!r} has {lost} numbers beyond 1.8e308, the most a "
                f"float holds. Correct them, or read the column as text with text=[{name!r}]."
            )
        inexact = pc.greater_equal(pc.abs(numbers), float(EXACT))
        large = pc.sum(pc.and_(pc.match_substring_regex(cells, _INTEGER), inexact)).as_py()
        if large:
            raise DataError(
                f"{self.file}: column {name!r} has {large} whole numbers of 2^53 and more "
                "beside numbers with decimals; as floats they would change. Read it as text with "
                f"text=[{name!r}], or rescale it."
            )
        return numbers

    def _to_moment(self, name: str, cells: pa.ChunkedArray, present: int) -> pa.ChunkedArray | None:
        try:
            if _count_matches(cells, _DATE) == present:
                return cells.cast(pa.date32())
            style = _STAMP.match(pc.drop_null(cells)[0].as_py())
            if style is None:
                return None
            stamp = Stamp(style[1], len(style[2] or ""), style[3])
            # Every cell like the first one, digit for digit.
            if _count_matches(cells, "^" + re.sub(r"\d", "[0-9]", re.escape(style[0])) + "$") != present:
                return None
            moments = pc.replace_substring(cells, "Z", "").cast(pa.timestamp(stamp.unit))
            self.stamps[name] = stamp
            return pc.assume_timezone(moments, "UTC") if stamp.zone else moments
        except pa.ArrowInvalid:
            raise DataError(
                f"{self.file}: column {name!r} is written like dates, but not all {present} can be read "
                f"as such. Correct them, or read the column as text with text=[{name!r}]."
            ) from None


def _count_matches(cells: pa.ChunkedArray, pattern: str) -> int:
    return pc.sum(pc.match_substring_regex(cells, pattern)).as_py() or 0
