"""CSV out: the same table in the same dialect, always the same bytes.

A cell of text that begins with = + - @, a tab or a line break is run as a formula by spreadsheets
(`=cmd|…`). A release is opened by people who did not make it, so such a cell is refused unless the caller
says what to do with it; signed plain numbers and a lone dash are harmless.
"""

import codecs
from collections.abc import Iterator
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import DataError, SettingError, list_some
from hedgerow.tables.files.columns import is_text
from hedgerow.tables.files.source import Dialect, Stamp

FORMULAS = ("refuse", "escape", "allow")
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
_HARMLESS = r"^[+-][-0-9 .,%/()]*$"  # "+43 1 234", "-2 %": without a letter it calls and fetches nothing
_ROWS = 1 << 16


def check_csv(table: pa.Table, formulas: str) -> None:
    """Refuses what a CSV file should not carry: cells that run, a column's name included, and durations."""
    if formulas not in FORMULAS:
        raise SettingError(f"formulas={formulas!r} is not one of {', '.join(FORMULAS)}.")
    columns = dict(zip(table.column_names, table.columns, strict=True))
    running: dict[str, int] = {}
    for name, column in columns.items() if formulas == "refuse" else ():
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        cells = pc.sum(_is_formula(column.cast(kind))).as_py() or 0 if is_text(kind) else 0
        cells += int(_is_formula(pa.array([name]))[0].as_py())
        if cells:
            running[name] = cells
    if running:
        raise DataError(
            f"{sum(running.values())} text cells would run as formulas in a spreadsheet, in {len(running)} "
            f"columns: {list_some([f'{name!r} ({count})' for name, count in running.items()])}. Correct "
            "them, pass --formulas escape (formulas=) to put an apostrophe in front, or --formulas allow to "
            "write them as they are."
        )
    spans = [name for name, column in columns.items() if pa.types.is_duration(column.type)]
    if spans:
        raise DataError(
            f"columns {list_some(spans)} hold durations, which are not written to CSV or Excel. Convert them "
            "to numbers."
        )


def csv_bytes(table: pa.Table, dialect: Dialect, formulas: str) -> Iterator[bytes]:
    """The file in pieces."""
    check_csv(table, formulas)
    encoder = codecs.getincrementalencoder(dialect.encoding)()
    columns = {
        name: column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    stamps = {
        name: _choose_stamp(column, dialect.stamps.get(name))
        for name, column in columns.items()
        if pa.types.is_timestamp(column.type)
    }
    names = pa.array(table.column_names, pa.large_string())
    if formulas == "escape":
        names = escape_formulas(names)
    head = dialect.delimiter.join(_quote(names, dialect).to_pylist()) + dialect.newline
    yield encoder.encode(("\ufeff" if dialect.bom else "") + head)
    for start in range(0, table.num_rows, _ROWS):
        cells = {
            name: _spell(name, column.slice(start, _ROWS), dialect, formulas, stamps.get(name))
            for name, column in columns.items()
        }
        lines = pc.binary_join_element_wise(*cells.values(), pa.scalar(dialect.delimiter, pa.large_string()))
        block = dialect.newline.join(lines.to_pylist()) + dialect.newline
        try:
            yield encoder.encode(block)
        except UnicodeEncodeError:
            code = dialect.encoding
            texts = {name: "".join(words.to_pylist()) for name, words in cells.items()}
            lost = [name for name, text in texts.items() if text.encode(code, "ignore").decode(code) != text]
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


def _choose_stamp(column: pa.ChunkedArray, wanted: Stamp | None) -> Stamp:
    """The wanted spelling if it holds all values, else the shortest that does."""
    zone = "Z" if column.type.tz else ""
    for digits in (wanted.digits, 0, 3, 6) if wanted else (0, 3, 6):
        stamp = Stamp(wanted.between if wanted else "T", digits, zone)
        with suppress(pa.ArrowInvalid):
            column.cast(pa.timestamp(stamp.unit, column.type.tz))
            return stamp
    return Stamp(wanted.between if wanted else "T", 9, zone)  # nanoseconds hold whatever Arrow does
