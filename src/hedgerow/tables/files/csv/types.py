"""The type of a CSV column, decided by all of its cells.

A type is given only when every cell of the column fits it, and only when writing the value gives the same
text back up to notation: codes with leading zeros, numbers with a leading plus and whole numbers beyond 64
bits stay text. A file that is read in parts is shown to `Types.look` part by part.
"""

import re
import shlex
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import DataError
from hedgerow.tables.files.columns import EXACT
from hedgerow.tables.files.source import Dialect, Missing, Reading, Stamp, freeze

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?(inf|Inf|INF|infinity|Infinity)$"
DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
STAMP = re.compile(r"^\d{4}-\d\d-\d\d([ T])\d\d:\d\d:\d\d(?:\.(\d{3}|\d{6}|\d{9}))?(Z?)$")
_INTEGER = r"^-?(0|[1-9][0-9]*)$"
_CODE = r"^[+-]?0[0-9]|^\+[0-9]+$"  # 00123, +44123: numbers to a parser, names to people
_DAY = r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}(?:[ T].*)?$"  # a date, or the day of a moment
_BOOLEANS = (("false", "true"), ("False", "True"), ("FALSE", "TRUE"))


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

    `look` may be shown a column part by part; `decide` then says its type, `cast` gives it to each part.
    """

    def __init__(self, file: str, decimal: str, reading: Reading) -> None:
        self.file, self.decimal, self.words = file, decimal, reading.words
        self.text, self.numbers, self.dates = reading.text, reading.numbers, reading.dates
        plain = self.words.to_pylist()
        numeric = [word.replace(",", ".") if decimal == "," else word for word in plain]
        self.codes = pa.array([float(word) for word in numeric if re.match(NUMBER, word)], pa.float64())
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
            number = pc.if_else(pc.match_substring_regex(plain, NUMBER), plain, pa.scalar(None, pa.string()))
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
        numbers = count_matches(plain, NUMBER)
        seen.numbers += numbers
        # No number is a word for true or false, or a date.
        look_on = self._look_at_numbers if numbers == present else self._look_at_words
        look_on(plain if numbers == present else cells, present, seen, made)
        return made

    def _look_at_numbers(self, cells: Any, present: int, seen: Seen, made: dict[str, Any]) -> None:
        seen.codes += count_matches(cells, _CODE)
        integers = count_matches(cells, _INTEGER)
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
        dates = count_matches(cells, DATE)
        seen.dates += dates
        style, stamps = STAMP.match(seen.first or ""), 0
        if style is not None:
            # Every cell like the first one, digit for digit.
            stamps = count_matches(cells, "^" + re.sub(r"\d", "[0-9]", re.escape(style[0])) + "$")
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
        style = STAMP.match(seen.first or "")
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
            for place, words in enumerate(zip(*_BOOLEANS, strict=True)):  # false is 0, true 1
                flag = pc.is_in(cells, value_set=pa.array(words))
                cells = pc.if_else(flag, pa.scalar(str(place)), cells)
            plain = self._plain(cells)
            number = pc.match_substring_regex(plain, NUMBER)
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


def count_matches(cells: pa.ChunkedArray, pattern: str) -> int:
    return pc.sum(pc.match_substring_regex(cells, pattern)).as_py() or 0
