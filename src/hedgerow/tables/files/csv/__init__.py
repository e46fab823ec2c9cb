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
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

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
        dialect = find_decimal(dialect, {n: count_commas(c, words) for n, c in others.items()}, notes)
    if not header:
        check_header(path.name, names, cells, dialect.decimal, missing, fixed)
    check_known(path.name, names, text)
    types = Types(path.name, dialect.decimal, words, text, numbers, dates)
    columns = [types.convert(name, column) for name, column in zip(names, cells.columns, strict=True)]
    table = check_flat(pa.Table.from_arrays(columns, names=names), path.name)
    notes += types.notes
    return Source(table, Format.CSV, freeze(types.counts), tuple(notes), types.spell(dialect))


def check_known(file: str, names: list[str], text: Collection[str]) -> None:
    """Refuses columns to be read as text that are not there."""
    unknown = sorted(set(text) - set(names))
    if unknown:
        raise DataError(
            f"{file}: no column named {list_some(unknown)}. The columns are {list_some(names, 20)}."
        )


def _decode(path: Path, encoding: str, delimiter: str | None, decimal: str | None) -> tuple[bytes, Dialect]:
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
    """What is said of a file whose mark says another encoding."""
    return FileError(f"{file}: the file is UTF-16, not UTF-8. Pass --encoding utf-16 (encoding=).")


@contextmanager
def explaining_encoding(file: str, encoding: str) -> Iterator[None]:
    """What is said of a file that is not in the encoding."""
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
        raise FileError(f"{file}: the delimiter must be one character, got {delimiter!r}. Use ',' or ';'.")
    decimal = decimal or "."
    if decimal not in (".", ",") or decimal == delimiter:
        raise FileError(
            f"{file}: decimal sign {decimal!r} with delimiter {delimiter!r}. Use '.' or ',', not the same."
        )
    return Dialect(encoding, bom, delimiter, decimal, newline)


def _split(name: str, body: bytes, dialect: Dialect) -> tuple[list[str], pa.Table, list[str]]:
    """The header, every cell as text, and what was left out; an empty cell is null, a quoted empty one "".

    A first column without a name is the index that pandas and R write before the others.
    """
    header = read_header(name, io.BytesIO(body), dialect)
    has_index = check_names(header, name)
    with telling_rows_apart(name, header, dialect) as parse:
        # Commands that ended at once, on tables without rows, sometimes aborted with threads.
        reading, cells = cell_options(header, threads=len(body) >= _BLOCK)
        table = pyarrow.csv.read_csv(pa.BufferReader(body), reading, parse, cells)
    check_any(name, header, table.num_rows)
    if has_index:
        return header[1:], table.drop_columns(["0"]), [LEFT_INDEX]
    return header, table, []


def read_header(file: str, content: IO[bytes], dialect: Dialect) -> list[str]:
    """The cells of the first line."""
    head = io.TextIOWrapper(content, encoding="utf-8", newline="")
    try:
        return [cell.strip() for cell in next(csv.reader(head, delimiter=dialect.delimiter))]
    except csv.Error:
        raise FileError(
            f"{file}: the first line is no header. Pass the delimiter, or export it again."
        ) from None


def check_any(file: str, header: list[str], rows: int) -> None:
    """Refuses a table without rows."""
    if rows == 0:
        raise DataError(f"{file}: a header of {len(header)} columns and no rows. At least one row is needed.")


def cell_options(
    header: list[str], *, threads: bool
) -> tuple[pyarrow.csv.ReadOptions, pyarrow.csv.ConvertOptions]:
    """How Arrow reads every cell below the header as text; columns are called by their places."""
    numbered = [str(place) for place in range(len(header))]
    return (
        pyarrow.csv.ReadOptions(
            use_threads=threads, column_names=numbered, skip_rows_after_names=1, block_size=_BLOCK
        ),
        pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(numbered, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


@contextmanager
def telling_rows_apart(
    file: str, header: list[str], dialect: Dialect
) -> "Iterator[pyarrow.csv.ParseOptions]":
    """How rows are told apart; at the end, those of another length than the header are refused."""
    ragged: list[int] = []

    def skip(row: "pyarrow.csv.InvalidRow") -> str:
        ragged.append(row.actual_columns)
        return "skip"

    try:
        yield pyarrow.csv.ParseOptions(
            delimiter=dialect.delimiter,
            newlines_in_values=True,
            # In a file of one column a blank line is a missing value.
            ignore_empty_lines=len(header) > 1,
            invalid_row_handler=skip,
        )
    except pa.ArrowInvalid:
        # Arrow's own message quotes the row.
        raise FileError(
            f"{file}: the rows cannot be told apart with delimiter {dialect.delimiter!r}. Pass another "
            "delimiter, or export the file again."
        ) from None
    if ragged:
        raise FileError(
            f"{file}: {len(ragged)} rows have between {min(ragged)} and {max(ragged)} cells, the header has "
            f"{len(header)} (delimiter {dialect.delimiter!r}). The file is cut short, a cell holds an "
            "unquoted delimiter, or the delimiter is another: pass it, or export the file again."
        )


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
    signs, numbers = _count_matches(present, "[,.]"), _count_matches(present, _NUMBER)
    if not signs:
        return Commas(len(present), 0, numbers, numbers)
    plain = _count_matches(pc.replace_substring(present, ",", ".", max_replacements=1), _NUMBER)
    thousands = _count_matches(present, r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$")
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
        return Likeness(present, _count_matches(plain, pattern))
    again = int(pc.index(column, name).as_py() >= 0)
    return Likeness(present, 0, again, _count_matches(plain, _NUMBER))


def _pattern_of(name: str, decimal: str) -> str | None:
    word = name.replace(",", ".") if decimal == "," else name
    return next((each for each in (_NUMBER, _DATE, _STAMP.pattern) if re.match(each, word)), None)


def check_header(
    file: str,
    names: list[str],
    cells: pa.Table,
    decimal: str,
    missing: Collection[str],
    known: Collection[str] = (),
) -> None:
    """Refuses a first line that looks like a record (`judge_header`)."""
    pairs = zip(names, cells.columns, strict=True)
    likes = {name: compare_header(name, column, decimal) for name, column in pairs if name not in known}
    judge_header(file, names, likes, decimal, missing)


def judge_header(
    file: str, names: list[str], likes: Mapping[str, Likeness], decimal: str, missing: Collection[str]
) -> None:
    """Refuses a first line that looks like a record: a number over numbers, a word that comes again.

    A word that comes again may still be a name ("other", "total") where another word stands over numbers. A
    name that the caller knows is one, whatever stands below it: it has no likeness.
    """
    alike, again, unlike = 0, 0, len(names) - len(likes)
    for name, like in likes.items():
        if _pattern_of(name, decimal) is not None:
            alike += like.present == 0 or 2 * like.alike >= like.present
        elif name in missing:
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


@dataclass
class Seen:
    """What decides the type of a column, counted over the cells seen so far."""

    empty: int = 0
    words: Counter[str] = field(default_factory=Counter)  # that stand for a missing value
    present: int = 0
    first: str | None = None  # of the present ones
    numbers: int = 0
    codes: int = 0  # with leading zeros or a plus
    integers: int = 0
    fitting: set[str] = field(default_factory=lambda: {"int64", "uint64"})  # types of whole numbers
    lost: int = 0  # beyond doubles
    large: int = 0  # whole numbers that doubles do not tell apart
    booleans: list[int] = field(default_factory=lambda: [0] * len(_BOOLEANS))
    dates: int = 0
    stamps: int = 0  # like the first cell, digit for digit
    unreadable: bool = False  # dates or times that are none


class Types:
    """Gives each column its type and collects what was decided on the way.

    `look` may be told of a column part by part; `decide` then says its type, `cast` gives it to each part.
    """

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
        """A whole column in its type."""
        seen = Seen()
        made = self.look(name, cells, seen)
        kind = self.decide(name, seen)
        return made[kind] if kind in made else self.cast(name, cells, kind)

    def spell(self, dialect: Dialect) -> Dialect:
        """The dialect with how columns spell what is missing, true and false, and times."""
        spelled: dict[str, Any] = {
            kind: freeze(getattr(self, kind)) for kind in ("missing", "booleans", "stamps")
        }
        return replace(dialect, **spelled)

    def _find_absent(self, cells: pa.ChunkedArray) -> Any:
        """Where a word stands for a missing value; such words count only where they cannot be data."""
        absent = pc.fill_null(pc.is_in(cells, value_set=self.words), False)
        if len(self.codes):  # -8 stands for -8.0 too, as other programs write it
            plain = self._plain(cells)
            number = pc.if_else(pc.match_substring_regex(plain, _NUMBER), plain, pa.scalar(None, pa.string()))
            coded = pc.is_in(number.cast(pa.float64()), value_set=self.codes)
            absent = pc.or_(absent, pc.and_(coded, pc.is_valid(number)))
        return absent

    def _plain(self, cells: Any) -> Any:
        return pc.replace_substring(cells, ",", ".") if self.decimal == "," else cells

    def look(self, name: str, cells: pa.ChunkedArray, seen: Seen) -> dict[str, pa.ChunkedArray]:
        """Adds what some cells say to what was seen; returns them in types that were tried on the way."""
        made: dict[str, pa.ChunkedArray] = {}
        seen.empty += cells.null_count
        if name in self.text:
            return made
        absent = self._find_absent(cells)
        counts = pc.value_counts(cells.filter(absent)).to_pylist()
        seen.words.update({each["values"]: each["counts"] for each in counts})
        cells = pc.if_else(absent, pa.scalar(None, pa.string()), cells)
        present = len(cells) - cells.null_count
        seen.present += present
        if not present or name in self.numbers or name in self.dates:
            return made
        plain = self._plain(cells)
        seen.first = seen.first or pc.drop_null(cells)[0].as_py()
        numbers = _count_matches(plain, _NUMBER)
        seen.numbers += numbers
        # No number is a word for true or false, or a date.
        look_on = self._look_at_numbers if numbers == present else self._look_at_words
        look_on(plain if numbers == present else cells, present, seen, made)
        return made

    def _look_at_numbers(self, cells: Any, present: int, seen: Seen, made: dict[str, Any]) -> None:
        seen.codes += _count_matches(cells, _CODE)
        integers = _count_matches(cells, _INTEGER)
        seen.integers += integers
        if integers == present:
            for kind in ("int64", "uint64"):
                try:
                    made[kind] = cells.cast(kind)
                    break
                except pa.ArrowInvalid:
                    seen.fitting.discard(kind)
            if "int64" in made:
                if pc.min(made["int64"]).as_py() < 0:
                    seen.fitting.discard("uint64")
                sizes = pc.abs(pc.max_element_wise(made["int64"], -(2**63) + 1))
                seen.large += pc.sum(pc.greater_equal(sizes, EXACT)).as_py() or 0
                return
        made["double"] = doubles = cells.cast(pa.float64())
        digits = pc.match_substring_regex(cells, "[0-9]")  # others are infinite themselves
        seen.lost += pc.sum(pc.and_(pc.is_inf(doubles), digits)).as_py() or 0
        inexact = pc.greater_equal(pc.abs(doubles), float(EXACT))
        seen.large += pc.sum(pc.and_(pc.match_substring_regex(cells, _INTEGER), inexact)).as_py() or 0

    def _look_at_words(self, cells: Any, present: int, seen: Seen, made: dict[str, Any]) -> None:
        for place, pair in enumerate(_BOOLEANS):
            seen.booleans[place] += pc.sum(pc.is_in(cells, value_set=pa.array(pair))).as_py() or 0
        dates = _count_matches(cells, _DATE)
        seen.dates += dates
        style, stamps = _STAMP.match(seen.first or ""), 0
        if style is not None:
            # Every cell like the first one, digit for digit.
            stamps = _count_matches(cells, "^" + re.sub(r"\d", "[0-9]", re.escape(style[0])) + "$")
            seen.stamps += stamps
        try:
            if dates == present:
                made["date32"] = cells.cast(pa.date32())
            elif style is not None and stamps == present:
                made["stamp"] = _read_stamps(cells, _stamp_of(style))
        except pa.ArrowInvalid:
            seen.unreadable = True

    def decide(self, name: str, seen: Seen) -> str:
        """The type of a column all of whose cells were seen."""
        kind = self._decide(name, seen)
        words = dict(sorted(seen.words.items())) if kind != "text" else {}
        empty = seen.empty + words.pop("", 0)
        if empty or words:
            self.counts[name] = Missing(empty, freeze(words))
        # How a copy spells its gaps may not follow from a cell that decides nothing.
        if len(words) == 1 and not empty and name not in (*self.numbers, *self.dates):
            (self.missing[name],) = words
        return kind

    def _decide(self, name: str, seen: Seen) -> str:
        if name in self.text:
            return "text"
        if name in self.numbers:
            return "numbers"
        if name in self.dates:
            return "days"
        if not seen.present:
            return "null"
        if seen.numbers == seen.present:
            return self._decide_number(name, seen)
        if 2 * seen.numbers >= seen.present:
            raise DataError(
                f"{self.file}: column {name!r} mixes types: {seen.numbers} of {seen.present} cells are "
                f"numbers, {seen.present - seen.numbers} are not. Correct them, name the word they use for a "
                "missing value (--missing-word, missing=), or read the column as text (--text "
                f"{shlex.quote(name)}, text=)."
            )
        for pair, count in zip(_BOOLEANS, seen.booleans, strict=True):
            if count == seen.present:
                self.booleans[name] = pair
                return "boolean"
        style = _STAMP.match(seen.first or "")
        if seen.dates < seen.present and (style is None or seen.stamps < seen.present):
            return "text"
        if seen.unreadable:
            raise DataError(
                f"{self.file}: column {name!r} is written like dates, but not all {seen.present} can be read "
                f"as such. Correct them, or read the column as text with text=[{name!r}]."
            )
        if seen.dates == seen.present or style is None:
            return "date32"
        self.stamps[name] = _stamp_of(style)
        return "stamp"

    def _decide_number(self, name: str, seen: Seen) -> str:
        if seen.codes:
            self.notes.append(
                f"column {name!r} is kept as text: some of its numbers have leading zeros or a plus."
            )
            return "text"
        if seen.integers == seen.present:
            if seen.fitting:
                return min(seen.fitting)
            self.notes.append(f"column {name!r} is kept as text: its whole numbers need more than 64 bits.")
            return "text"
        if seen.lost:
            raise DataError(
                f"{self.file}: column {name!r} has {seen.lost} numbers beyond 1.8e308, the most a "
                f"float holds. Correct them, or read the column as text with text=[{name!r}]."
            )
        if seen.large:
            raise DataError(
                f"{self.file}: column {name!r} has {seen.large} whole numbers of 2^53 and more "
                "beside numbers with decimals; as floats they would change. Read it as text with "
                f"text=[{name!r}], or rescale it."
            )
        return "double"

    def cast(self, name: str, cells: pa.ChunkedArray, kind: str) -> pa.ChunkedArray:
        """Cells of a column in the type that was decided."""
        if kind == "text":
            return cells
        if kind == "null":
            return pa.chunked_array([pa.nulls(len(cells))])
        cells = pc.if_else(self._find_absent(cells), pa.scalar(None, pa.string()), cells)
        if kind == "numbers":
            plain = self._plain(cells)
            number = pc.match_substring_regex(plain, _NUMBER)
            return pc.if_else(number, plain, pa.scalar(None, pa.string())).cast(pa.float64())
        if kind == "days":
            written = pc.match_substring_regex(cells, _DAY)
            days = pc.utf8_slice_codeunits(pc.if_else(written, cells, pa.scalar(None, pa.string())), 0, 10)
            moments = pc.strptime(days, format="%Y-%m-%d", unit="s", error_is_null=True)
            same = pc.equal(pc.strftime(moments, format="%Y-%m-%d"), days)  # 31 April is no day of May
            return pc.if_else(same, moments.cast(pa.date32()), pa.scalar(None, pa.date32()))
        if kind == "boolean":
            return pc.equal(cells, self.booleans[name][1])
        if kind == "stamp":
            return _read_stamps(cells, self.stamps[name])
        return (cells if kind == "date32" else self._plain(cells)).cast(kind)


def _stamp_of(style: re.Match[str]) -> Stamp:
    return Stamp(style[1], len(style[2] or ""), style[3])


def _read_stamps(cells: Any, stamp: Stamp) -> Any:
    moments = pc.replace_substring(cells, "Z", "").cast(pa.timestamp(stamp.unit))
    return pc.assume_timezone(moments, "UTC") if stamp.zone else moments


def _count_matches(cells: pa.ChunkedArray, pattern: str) -> int:
    return pc.sum(pc.match_substring_regex(cells, pattern)).as_py() or 0
