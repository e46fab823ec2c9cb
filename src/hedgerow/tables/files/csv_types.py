"""The type of a CSV column, by all of its cells."""

import re

import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import DataError
from hedgerow.tables.files.columns import EXACT
from hedgerow.tables.files.source import Missing, Stamp, frozen

_INTEGER = r"^-?(0|[1-9][0-9]*)$"
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?(inf|Inf|INF|infinity|Infinity)$"
_CODE = r"^[+-]?0[0-9]|^\+[0-9]+$"  # 00123, +44123: numbers to a parser, names to people
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_STAMP = re.compile(r"^\d{4}-\d\d-\d\d([ T])\d\d:\d\d:\d\d(?:\.(\d{3}|\d{6}|\d{9}))?(Z?)$")
_BOOLEANS = (("false", "true"), ("False", "True"), ("FALSE", "TRUE"))
_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}


class Typing:
    """Gives each column its type and collects what was decided on the way."""

    def __init__(self, file: str, decimal: str, words: frozenset[str], text: frozenset[str]) -> None:
        self.file, self.decimal, self.words, self.text = file, decimal, words, text
        self.missing: dict[str, Missing] = {}
        self.spelled: dict[str, str] = {}
        self.booleans: dict[str, tuple[str, str]] = {}
        self.stamps: dict[str, Stamp] = {}
        self.notes: list[str] = []

    def column(self, name: str, cells: pa.ChunkedArray) -> pa.ChunkedArray:
        """The column in its type; words for missing values count only where they cannot be data."""
        words = pc.fill_null(
            pc.is_in(cells, value_set=pa.array(sorted({"", *self.words}), pa.string())), False
        )
        filled = pc.if_else(words, pa.scalar(None, pa.string()), cells)
        typed = None if name in self.text else self._typed(name, filled)
        if typed is None:
            if cells.null_count:
                self.missing[name] = Missing(cells.null_count)
            return cells
        self._count(name, cells, words)
        return typed

    def _count(self, name: str, cells: pa.ChunkedArray, words: pa.ChunkedArray) -> None:
        found = {v["values"].as_py(): v["counts"].as_py() for v in pc.value_counts(cells.filter(words))}
        empty = cells.null_count + found.pop("", 0)
        if empty or found:
            self.missing[name] = Missing(empty, frozen(dict(sorted(found.items()))))
        if len(found) == 1 and not empty:
            self.spelled[name] = next(iter(found))

    def _typed(self, name: str, cells: pa.ChunkedArray) -> pa.ChunkedArray | None:
        """The column in its type, or None if it is text."""
        present = len(cells) - cells.null_count
        if not present:
            return pa.chunked_array([pa.nulls(len(cells))])
        plain = pc.replace_substring(cells, ",", ".") if self.decimal == "," else cells
        numbers = _matching(plain, NUMBER)
        if numbers == present:
            return self._number(name, plain, present)
        if 2 * numbers >= present:
            raise DataError(
                f"{self.file}: column {name!r} mixes types: {numbers} of {present} cells are numbers, "
                f"{present - numbers} are not. Correct them, add the word they use for a missing value to "
                f"missing, or read the column as text with text=[{name!r}]."
            )
        for pair in _BOOLEANS:
            if pc.sum(pc.is_in(cells, value_set=pa.array(pair))).as_py() == present:
                self.booleans[name] = pair
                return pc.equal(cells, pair[1])
        return self._moment(name, cells, present)

    def _number(self, name: str, cells: pa.ChunkedArray, present: int) -> pa.ChunkedArray | None:
        if _matching(cells, _CODE):
            self.notes.append(
                f"column {name!r} is kept as text: some of its numbers have leading zeros or a plus."
            )
            return None
        whole = _matching(cells, _INTEGER)
        if whole == present:
            for kind in (pa.int64(), pa.uint64()):
                try:
                    return cells.cast(kind)
                except pa.ArrowInvalid:
                    continue
            self.notes.append(f"column {name!r} is kept as text: its whole numbers need more than 64 bits.")
            return None
        numbers = cells.cast(pa.float64())
        lost = pc.and_(pc.is_inf(numbers), pc.match_substring_regex(cells, "[0-9]"))
        if pc.any(lost).as_py():
            raise DataError(
                f"{self.file}: column {name!r} has {pc.sum(lost).as_py()} numbers beyond 1.8e308, the most a "
                f"float holds. Correct them, or read the column as text with text=[{name!r}]."
            )
        large = pc.and_(
            pc.match_substring_regex(cells, _INTEGER), pc.greater_equal(pc.abs(numbers), float(EXACT))
        )
        if pc.any(large).as_py():
            raise DataError(
                f"{self.file}: column {name!r} has {pc.sum(large).as_py()} whole numbers of 2^53 and more "
                "beside numbers with decimals; as floats they would change. Read it as text with "
                f"text=[{name!r}], or rescale it."
            )
        return numbers

    def _moment(self, name: str, cells: pa.ChunkedArray, present: int) -> pa.ChunkedArray | None:
        try:
            if _matching(cells, _DATE) == present:
                return cells.cast(pa.date32())
            style = _STAMP.match(pc.drop_null(cells)[0].as_py())
            if style is None:
                return None
            between, fraction, zone = style.groups()
            digits = len(fraction or "")
            tail = rf"\.[0-9]{{{digits}}}" if digits else ""
            same = rf"^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}{between}[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}{tail}{zone}$"
            if _matching(cells, same) != present:
                return None
            bare = pc.replace_substring(cells, "Z", "") if zone else cells
            moments = bare.cast(pa.timestamp(_UNITS[digits]))
            self.stamps[name] = Stamp(between, digits, zone)
            return pc.assume_timezone(moments, "UTC") if zone else moments
        except pa.ArrowInvalid:
            raise DataError(
                f"{self.file}: column {name!r} is written like dates, but not all {present} can be read "
                "as such. "
                f"Correct them, or read the column as text with text=[{name!r}]."
            ) from None


def _matching(cells: pa.ChunkedArray, pattern: str) -> int:
    return pc.sum(pc.match_substring_regex(cells, pattern)).as_py() or 0
