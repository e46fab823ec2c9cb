"""CSV out: the same table in the same dialect, always the same bytes.

A cell of text that begins with = + - @, a tab or a line break is run as a formula by spreadsheets
(`=cmd|…`). A release is opened by people who did not make it, so such a cell is refused unless the caller
says what to do with it; signed plain numbers and a lone dash are harmless.
"""

import codecs
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import DataError, SettingError
from hedgerow.tables.files.columns import is_text, some
from hedgerow.tables.files.source import Dialect, Stamp

FORMULAS = ("refuse", "escape", "allow")
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
_HARMLESS = r"^[+-]?$|^[+-]?[0-9]+([.,][0-9]+)?$"
_ROWS = 1 << 16
_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}


def formula_cells(table: pa.Table) -> dict[str, int]:
    """Columns with text that a spreadsheet would run, and how many cells; a column's name counts as one."""
    found: dict[str, int] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        cells = pc.sum(_dangerous(column.cast(kind))).as_py() or 0 if is_text(kind) else 0
        cells += int(_dangerous(pa.array([name]))[0].as_py())
        if cells:
            found[name] = cells
    return found


def _dangerous(cells: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    return pc.and_(
        pc.match_substring_regex(cells, _FORMULA), pc.invert(pc.match_substring_regex(cells, _HARMLESS))
    )


def check_csv(table: pa.Table, formulas: str) -> None:
    """Refuses what a CSV file should not carry."""
    if formulas not in FORMULAS:
        raise SettingError(f"formulas={formulas!r} is not one of {', '.join(FORMULAS)}.")
    found = formula_cells(table) if formulas == "refuse" else {}
    if found:
        raise DataError(
            f"{sum(found.values())} text cells would run as formulas in a spreadsheet, in {len(found)} "
            f"columns: {some([f'{name!r} ({count})' for name, count in found.items()])}. Correct them, pass "
            "formulas='escape' to put an apostrophe in front, or formulas='allow' to write them as they are."
        )
    spans = [
        name
        for name, c in zip(table.column_names, table.columns, strict=True)
        if pa.types.is_duration(c.type)
    ]
    if spans:
        raise DataError(
            f"columns {some(spans)} hold durations, which CSV has no text for. Convert them to numbers."
        )


def csv_bytes(table: pa.Table, dialect: Dialect, formulas: str) -> Iterator[bytes]:
    """The file in pieces."""
    check_csv(table, formulas)
    encoder = codecs.getincrementalencoder(dialect.encoding)()
    shown = [
        _Shown(name, column, dialect, formulas)
        for name, column in zip(table.column_names, table, strict=True)
    ]
    names = pa.array(table.column_names, pa.large_string())
    if formulas == "escape":
        names = _escaped(names)
    head = dialect.delimiter.join(_quoted(names, dialect).to_pylist()) + dialect.newline
    yield encoder.encode(("\ufeff" if dialect.bom else "") + head)
    for start in range(0, table.num_rows, _ROWS):
        rows = min(_ROWS, table.num_rows - start)
        cells = [column.slice(start, rows) for column in shown]
        lines = pc.binary_join_element_wise(*cells, pa.scalar(dialect.delimiter, pa.large_string()))
        block = dialect.newline.join(lines.to_pylist()) + dialect.newline
        try:
            yield encoder.encode(block)
        except UnicodeEncodeError:
            lost = [column.name for column in shown if not column.fits(dialect.encoding, start, rows)]
            raise DataError(
                f"columns {some(lost)} hold characters that {dialect.encoding} does not have. Write the copy "
                "with encoding='utf-8'."
            ) from None


class _Shown:
    """A column and how its cells are spelled."""

    def __init__(self, name: str, column: pa.ChunkedArray, dialect: Dialect, formulas: str) -> None:
        self.name = name
        self._dialect, self._formulas = dialect, formulas
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        self._column = column
        self._stamp = _stamp(column, dialect.stamps.get(name)) if pa.types.is_timestamp(column.type) else None
        # An empty text cell must differ from a missing one.
        self._missing = "" if is_text(column.type) else dialect.missing.get(name, "")

    def slice(self, start: int, rows: int) -> pa.ChunkedArray:
        cells = self._column.slice(start, rows)
        kind = cells.type
        if is_text(kind):
            words = cells.cast(pa.large_string())
            if self._formulas == "escape":
                words = _escaped(words)
            words = pc.if_else(pc.equal(words, ""), '""', _quoted(words, self._dialect))
        elif pa.types.is_boolean(kind):
            false, true = self._dialect.booleans.get(self.name, ("false", "true"))
            words = pc.if_else(cells, true, false).cast(pa.large_string())
        elif pa.types.is_floating(kind):
            words = cells.cast(pa.large_string())
            # A whole float keeps its point, or the column would come back as integers.
            words = pc.replace_substring_regex(words, r"^(-?[0-9]+)$", r"\1.0")
            words = pc.replace_substring(words, ".", self._dialect.decimal)
        elif self._stamp is not None:
            words = _spelled(cells, self._stamp)
        else:
            words = cells.cast(pa.large_string())
            if pa.types.is_decimal(kind):
                words = pc.replace_substring(words, ".", self._dialect.decimal)
        return pc.fill_null(words, self._missing)

    def fits(self, encoding: str, start: int, rows: int) -> bool:
        try:
            "".join(self.slice(start, rows).to_pylist()).encode(encoding)
        except UnicodeEncodeError:
            return False
        return True


def _escaped(words: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    marked = pc.binary_join_element_wise(pa.scalar("'", words.type), words, pa.scalar("", words.type))
    return pc.if_else(_dangerous(words), marked, words)


def _quoted(words: pa.ChunkedArray | pa.Array, dialect: Dialect) -> pa.ChunkedArray | pa.Array:
    mark = pa.scalar('"', pa.large_string())
    doubled = pc.replace_substring(words, '"', '""')
    wrapped = pc.binary_join_element_wise(mark, doubled, mark, pa.scalar("", pa.large_string()))
    special = "\\" + dialect.delimiter
    # Outer blanks are quoted too: some readers trim what is bare.
    return pc.if_else(pc.match_substring_regex(words, rf'["\r\n{special}]|^\s|\s$'), wrapped, words)


def _stamp(column: pa.ChunkedArray, wanted: Stamp | None) -> Stamp:
    """The wanted spelling if it holds all values, else the shortest that does."""
    zone = "Z" if column.type.tz else ""
    between = wanted.between if wanted else "T"
    for digits in (wanted.digits, 0, 3, 6, 9) if wanted else (0, 3, 6, 9):
        try:
            column.cast(pa.timestamp(_UNITS[digits], column.type.tz))
        except pa.ArrowInvalid:
            continue
        return Stamp(between, digits, zone)
    raise AssertionError("nanoseconds hold every timestamp that Arrow does")


def _spelled(cells: pa.ChunkedArray, stamp: Stamp) -> pa.ChunkedArray:
    # Zoned times are shown in UTC: the offset of a zone is not fixed, Z is.
    bare = cells.cast(pa.timestamp(_UNITS[stamp.digits], "UTC" if stamp.zone else None))
    words = pc.strftime(bare.cast(pa.timestamp(_UNITS[stamp.digits])), f"%Y-%m-%d{stamp.between}%H:%M:%S")
    end = pa.scalar(stamp.zone, pa.string())
    return pc.binary_join_element_wise(words, end, pa.scalar("", pa.string())).cast(pa.large_string())
