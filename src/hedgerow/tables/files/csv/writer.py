"""CSV out: the same table in the same dialect, always the same bytes.

A cell of text that begins with = + - @, a tab or a line break is run as a formula by spreadsheets
(`=cmd|…`). A release is opened by people who did not make it, so such a cell is refused unless the caller
says what to do with it; signed plain numbers and a lone dash are harmless.
"""

import codecs
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import DataError, SettingError, list_some
from hedgerow.numerics.rounding import format_count
from hedgerow.tables.files.columns import is_text
from hedgerow.tables.files.source import Dialect, Stamp

FORMULAS = ("refuse", "escape", "allow")
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
_HARMLESS = r"^[+-][-0-9 .,%/()]*$"  # "+43 1 234", "-2 %": without a letter it calls and fetches nothing
_ROWS = 1 << 16


def check_csv(table: pa.Table, formulas: str) -> None:
    """Refuses what a CSV file should not carry: cells that run, a column's name included, and durations."""
    refuse_running([count_running(table, formulas)])
    spans = [field.name for field in table.schema if pa.types.is_duration(field.type)]
    if spans:
        raise DataError(
            f"columns {list_some(spans)} hold durations, which are not written to CSV or Excel. Convert them "
            "to numbers."
        )


def count_running(table: pa.Table, formulas: str) -> Counter[str]:
    """By column, how many cells a spreadsheet would run; none where they may be written."""
    if formulas not in FORMULAS:
        raise SettingError(f"formulas={formulas!r} is not one of {', '.join(FORMULAS)}.")
    running: Counter[str] = Counter()
    for name, column in zip(table.column_names, table.columns, strict=True) if formulas == "refuse" else ():
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        running[name] += pc.sum(_is_formula(column.cast(kind))).as_py() or 0 if is_text(kind) else 0
    return running


def refuse_running(parts: Iterable[Counter[str]]) -> None:
    """Refuses cells that would run, and names of columns, counted over all parts of a table."""
    cells: Counter[str] = Counter()
    for part in parts:
        cells.update(part)
    running = {
        name: count + int(_is_formula(pa.array([name]))[0].as_py())
        for name, count in cells.items()
        if count or _is_formula(pa.array([name]))[0].as_py()
    }
    if running:
        where = list_some([f"{name!r} ({count})" for name, count in running.items()])
        raise DataError(
            f"{format_count(sum(running.values()), 'text cell')} would run as formulas in a spreadsheet, in "
            f"{format_count(len(running), 'column')}: {where}. Correct "
            "them, pass --formulas escape (formulas=) to put an apostrophe in front, or --formulas allow to "
            "write them as they are."
        )


def csv_bytes(table: pa.Table, dialect: Dialect, formulas: str) -> Iterator[bytes]:
    """The file in pieces."""
    check_csv(table, formulas)
    parts = CsvParts(dialect, formulas, merge_stamps([choose_stamps(table, dialect)]))
    return parts.lines(table)


class CsvParts:
    """The lines of a table that comes part by part, as they are of all of it at once."""

    def __init__(self, dialect: Dialect, formulas: str, stamps: Mapping[str, Stamp]) -> None:
        self._dialect, self._formulas, self._stamps = dialect, formulas, stamps
        self._encoder = codecs.getincrementalencoder(dialect.encoding)()
        self._begun = False

    def lines(self, table: pa.Table) -> Iterator[bytes]:
        """More lines; before the first of them that of the names."""
        dialect, formulas = self._dialect, self._formulas
        columns = {
            name: column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
        if not self._begun:
            self._begun = True
            names = pa.array(table.column_names, pa.large_string())
            if formulas == "escape":
                names = escape_formulas(names)
            head = dialect.delimiter.join(_quote(names, dialect).to_pylist()) + dialect.newline
            yield self._encoder.encode(("\ufeff" if dialect.bom else "") + head)
        for start in range(0, table.num_rows, _ROWS):
            cells = {
                name: _spell(name, column.slice(start, _ROWS), dialect, formulas, self._stamps.get(name))
                for name, column in columns.items()
            }
            delimiter = pa.scalar(dialect.delimiter, pa.large_string())
            lines = pc.binary_join_element_wise(*cells.values(), delimiter)
            block = dialect.newline.join(lines.to_pylist()) + dialect.newline
            try:
                yield self._encoder.encode(block)
            except UnicodeEncodeError:
                code = dialect.encoding
                texts = {name: "".join(words.to_pylist()) for name, words in cells.items()}
                lost = [
                    name for name, text in texts.items() if text.encode(code, "ignore").decode(code) != text
                ]
                raise DataError(
                    f"columns {list_some(lost)} hold characters that {code} does not have. Write the "
                    "copy with encoding='utf-8'."
                ) from None


def _spell(
    name: str, cells: pa.ChunkedArray, dialect: Dialect, formulas: str, stamp: Stamp | None
) -> pa.ChunkedArray:
    """The cells of a column as they stand in the file."""
    kind = cells.type
    if pa.types.is_boolean(kind):
        false, true = dialect.booleans.get(name, ("false", "true"))
        cells = pc.if_else(cells, true, false)
    elif stamp is not None:
        # Zoned times are written in UTC: the offset of a zone is not fixed, Z is.
        utc = cells.cast(pa.timestamp(stamp.unit, "UTC" if stamp.zone else None)).cast(
            pa.timestamp(stamp.unit)
        )
        cells = pc.strftime(utc, f"%Y-%m-%d{stamp.between}%H:%M:%S{stamp.zone}")
    words = cells.cast(pa.large_string())
    if is_text(kind):
        words = escape_formulas(words) if formulas == "escape" else words
        # An empty text cell must differ from a missing one.
        return pc.fill_null(pc.if_else(pc.equal(words, ""), '""', _quote(words, dialect)), "")
    if pa.types.is_floating(kind):
        # A whole float keeps its point, or the column would come back as integers.
        words = pc.replace_substring_regex(words, r"^(-?[0-9]+)$", r"\1.0")
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        words = pc.replace_substring(words, ".", dialect.decimal)
    return pc.fill_null(words, dialect.missing.get(name, ""))


def _is_formula(cells: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    harmless = pc.match_substring_regex(cells, _HARMLESS)
    return pc.and_(pc.match_substring_regex(cells, _FORMULA), pc.invert(harmless))


def escape_formulas(words: pa.ChunkedArray | pa.Array) -> pa.ChunkedArray | pa.Array:
    """Text with an apostrophe in front of what a spreadsheet would run."""
    marked = pc.binary_join_element_wise(pa.scalar("'", words.type), words, pa.scalar("", words.type))
    return pc.if_else(_is_formula(words), marked, words)


def _quote(words: pa.ChunkedArray | pa.Array, dialect: Dialect) -> pa.ChunkedArray | pa.Array:
    mark = pa.scalar('"', pa.large_string())
    doubled = pc.replace_substring(words, '"', '""')
    wrapped = pc.binary_join_element_wise(mark, doubled, mark, pa.scalar("", pa.large_string()))
    special = "\\" + dialect.delimiter
    # Outer blanks are quoted too: some readers trim what is bare.
    return pc.if_else(pc.match_substring_regex(words, rf'["\r\n{special}]|^\s|\s$'), wrapped, words)


def choose_stamps(table: pa.Table, dialect: Dialect) -> dict[str, tuple[Stamp, ...]]:
    """By column of times, the spellings that hold all of its values, the one that is wanted first."""
    return {
        name: tuple(_fitting_stamps(column, dialect.stamps.get(name)))
        for name, column in zip(table.column_names, table.columns, strict=True)
        if pa.types.is_timestamp(column.type)
    }


def merge_stamps(parts: Iterable[Mapping[str, tuple[Stamp, ...]]]) -> dict[str, Stamp]:
    """The first spelling of each column that holds its values in all parts."""
    first, *others = parts
    return {
        name: next(stamp for stamp in fitting if all(stamp in other[name] for other in others))
        for name, fitting in first.items()
    }


def _fitting_stamps(column: pa.ChunkedArray, wanted: Stamp | None) -> Iterator[Stamp]:
    zone, between = "Z" if column.type.tz else "", wanted.between if wanted else "T"
    for digits in (wanted.digits, 0, 3, 6) if wanted else (0, 3, 6):
        stamp = Stamp(between, digits, zone)
        with suppress(pa.ArrowInvalid):
            column.cast(pa.timestamp(stamp.unit, column.type.tz))
            yield stamp
    yield Stamp(between, 9, zone)  # nanoseconds hold whatever Arrow does
