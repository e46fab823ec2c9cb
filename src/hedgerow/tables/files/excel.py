"""Excel .xlsx in and out, through openpyxl (an extra: hedgerow[excel]).

One sheet is read, the first unless another is named: its first row holds the names, its cells the values that
Excel last computed. A cell is what Excel says it is: a number, text, a flag, a date; an error such as #N/A is
missing, and so is text among the words for it in a column of something else. Excel has doubles alone, so that
whole numbers are integers here.

Text is written as text and never as a formula. The same table gives the same bytes, without a time.
"""

import datetime as dt
import io
import math
import re
import shlex
import zipfile
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.errors import DataError, FileError, HedgerowError, list_some
from hedgerow.tables.files.columns import check_flat, check_width, is_text
from hedgerow.tables.files.csv.header import check_header, check_known, check_names
from hedgerow.tables.files.csv.writer import escape_formulas
from hedgerow.tables.files.source import LEFT_INDEX, Format, Missing, Reading, Source, freeze

_ERRORS = {"#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "#N/A", "#SPILL!", "#CALC!"}
_KINDS = {int: "numbers", float: "numbers", str: "texts", bool: "flags", dt.datetime: "dates"}
_MOST_ROWS, _MOST_COLUMNS, _MOST_TEXT, _MOST_DIGITS = 1_048_575, 16_384, 32_767, 15
_FIRST_DATE = dt.date(1900, 3, 1)  # before it Excel counts a day that never was
_EPOCH, _DAY = 25_569, 86_400_000  # days that Excel counts to 1970, and their milliseconds
_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip file knows
_SHEET, _ROWS = "xl/worksheets/sheet1.xml", 1 << 14
_CONTROLS = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x{fffe}\x{ffff}]"


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError:
        raise FileError(
            "Excel files need openpyxl, which is not installed. Install it with pip install "
            "'hedgerow[excel]', or export the sheet as CSV."
        ) from None
    return openpyxl


def read_excel(path: Path, sheet: str | None, reading: Reading) -> Source:
    """A sheet of an Excel file as a `Source`."""
    rows, notes = _read_rows(path, sheet, {*reading.numbers, *reading.dates})
    width = max(
        (place for row in rows for place, cell in enumerate(row, 1) if not _is_blank(cell)), default=0
    )
    if not width:
        raise DataError(f"{path.name}: the sheet is empty. A row of names and at least one row are needed.")
    rows = [[*row, *[None] * (width - len(row))][:width] for row in rows]
    filled = [not all(map(_is_blank, row)) for row in rows]
    # As in a CSV file: of one column a blank row below the name is a missing value.
    first = filled.index(True)
    rows = [row for place, row in enumerate(rows) if filled[place] or (width == 1 and place > first)]
    names = ["" if cell is None else str(cell).strip() for cell in rows[0]]
    has_index = check_names(names, path.name)
    if has_index:
        names, rows = names[1:], [row[1:] for row in rows]
        notes.append(LEFT_INDEX)
    if len(rows) == 1:
        raise DataError(f"{path.name}: a header of {len(names)} columns and no rows. At least one is needed.")
    columns = dict(zip(names, map(list, zip(*rows[1:], strict=True)), strict=True))
    if not reading.header:
        words = [pa.chunked_array([_as_text(cells)]) for cells in columns.values()]
        numbered = [str(place) for place in range(len(names))]
        check_header(path.name, names, pa.Table.from_arrays(words, names=numbered), ".", reading)
    check_known(path.name, names, reading)
    types = _Types(path.name, reading)
    arrays = [types.convert(name, cells) for name, cells in columns.items()]
    table = check_flat(pa.Table.from_arrays(arrays, names=names), path.name)
    return Source(table, Format.EXCEL, freeze(types.counts), tuple(notes))


def _is_blank(cell: Any) -> bool:
    return cell is None or cell == ""


def _read_rows(path: Path, sheet: str | None, numbers: Collection[str]) -> tuple[list[list[Any]], list[str]]:
    """The rows of a sheet, and which of several it is."""
    openpyxl = _openpyxl()
    try:
        with path.open("rb") as file:  # of which the ending does not matter
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            if sheet is not None and sheet not in book.sheetnames:
                known = list_some(book.sheetnames, quoted=True)
                raise DataError(f"{path.name}: no sheet {sheet!r}. It has {known}.")
            name = book.worksheets[0].title if sheet is None else sheet
            rows = _list_rows(book[name], path.name)
            if any(cell is None for row in rows for cell in row):
                said = openpyxl.load_workbook(file, read_only=True)[name]
                _check_results(path.name, rows, _list_rows(said, path.name), numbers)
    except (HedgerowError, OSError):
        raise
    except Exception:  # whatever openpyxl stumbles over, the file is at fault; its message may quote a cell
        raise FileError(
            f"{path.name}: not a whole Excel file ({path.stat().st_size} bytes). It was cut short, damaged, "
            "protected by a password or has another format: save it as .xlsx again."
        ) from None
    several = sheet is None and len(book.sheetnames) > 1
    note = f"sheet {name!r} is read, the first of {len(book.sheetnames)}. Name another with --sheet (sheet=)."
    return rows, [note] if several else []


def _list_rows(sheet: Any, file: str) -> list[list[Any]]:
    sheet.reset_dimensions()  # some programs note wrong ones
    rows = []
    for row in sheet.iter_rows(values_only=True):
        check_width(len(row), file)
        rows.append(list(row))
    return rows


def _check_results(file: str, rows: list[list[Any]], said: list[list[Any]], numbers: Collection[str]) -> None:
    """Refuses formulas that nobody has computed: they would read as missing, as in `numbers` they do."""
    taken = {place for place, cell in enumerate(rows[0]) if cell in numbers}
    open_ = sum(
        cell is None and isinstance(formula, str) and formula.startswith("=") and place not in taken
        for row, formulas in zip(rows, said, strict=True)
        for place, (cell, formula) in enumerate(zip(row, formulas, strict=False))
    )
    if open_:
        raise DataError(
            f"{file}: {open_} cells hold formulas without a result. Open the file in a spreadsheet program "
            "and save it, or replace them by their values."
        )


class _Types:
    """Gives each column its type and counts what was missing."""

    def __init__(self, file: str, reading: Reading) -> None:
        self.file, self.text, self.numbers, self.dates = file, reading.text, reading.numbers, reading.dates
        self.words = {*reading.missing}
        self.codes = {float(word) for word in reading.missing if re.fullmatch(r"[+-]?\d+(\.\d*)?", word)}
        self.counts: dict[str, Missing] = {}

    def convert(self, name: str, cells: list[Any]) -> pa.Array:
        """The column in its Arrow type, missing values as nulls."""
        marks: Counter[str] = Counter()
        is_words = name in self.text or all(isinstance(cell, str | None) for cell in cells)
        present = []
        for cell in cells:
            gone = cell in _ERRORS if isinstance(cell, str) else False
            if isinstance(cell, str) and not is_words:
                gone = gone or cell.strip() in self.words
            elif type(cell) in (int, float) and not is_words:
                gone = cell in self.codes
            if gone:
                marks[str(cell)] += 1
            present.append(None if gone or cell == "" else cell)
        array = self._to_type(name, present)
        if array.null_count:
            self.counts[name] = Missing(array.null_count - marks.total(), freeze(dict(marks)))
        return array

    def _to_type(self, name: str, cells: list[Any]) -> pa.Array:
        if name in self.numbers:
            return pa.array([_as_double(cell) for cell in cells], pa.float64())
        if name in self.dates:
            days = [cell.date() if isinstance(cell, dt.datetime) else None for cell in cells]
            return pa.array(days, pa.date32())
        if name in self.text:
            return _as_text(cells)
        kinds = {type(cell) for cell in cells} - {type(None)}
        if kinds <= {int, float} and kinds:
            whole = kinds == {int} and all(abs(cell or 0) < 2**53 for cell in cells)
            return (
                pa.array(cells, pa.int64())
                if whole
                else pa.array([None if cell is None else float(cell) for cell in cells], pa.float64())
            )
        if kinds == {dt.datetime}:
            is_date = all(cell is None or cell.time() == dt.time() for cell in cells)
            return pa.array(cells, pa.timestamp("us")).cast(pa.date32() if is_date else pa.timestamp("us"))
        if len(kinds) > 1:
            counts = Counter(_KINDS.get(type(cell), "times") for cell in cells if cell is not None)
            raise DataError(
                f"{self.file}: column {name!r} mixes types: "
                f"{', '.join(f'{count} {kind}' for kind, count in counts.most_common())}. Correct them, name "
                "the word they use for a missing value (--missing-word, missing=), or read the column as "
                f"text (--text {shlex.quote(name)}, text=)."
            )
        single = {
            bool: pa.bool_(),
            str: pa.string(),
            dt.time: pa.time64("us"),
            dt.timedelta: pa.duration("us"),
        }
        return pa.array(cells, single[kinds.pop()]) if kinds else pa.nulls(len(cells))


def _as_double(cell: Any) -> float | None:
    """A number, a flag as 0 or 1, and nothing for any other cell; no number is too large, as in CSV."""
    if type(cell) not in (int, float, bool):
        return None
    try:
        return float(cell)
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def _as_text(cells: list[Any]) -> pa.Array:
    """Cells as people read them; a date without a time as a date."""

    def spell(cell: Any) -> str | None:
        if isinstance(cell, dt.datetime) and cell.time() == dt.time():
            return cell.date().isoformat()
        return None if cell is None else str(cell)

    return pa.array([spell(cell) for cell in cells], pa.string())


def write_excel(table: pa.Table, path: Path, formulas: str, label: str = "") -> list[str]:
    """Writes the only sheet of an .xlsx file; returns what the format could not hold as it was.

    A label becomes the description in the file's properties.
    """
    check_excel(table)
    changes: list[str] = []
    names = pa.chunked_array([pa.array([name], pa.large_string()) for name in table.column_names])
    columns = {
        name: column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    columns = {name: _prepare(name, column, changes) for name, column in columns.items()}
    with zipfile.ZipFile(_empty_book(label)) as book, zipfile.ZipFile(path, "w") as file:
        for name in book.namelist():
            entry = zipfile.ZipInfo(name, _NO_TIME)
            entry.create_system, entry.compress_type = 0, zipfile.ZIP_DEFLATED  # the same on every system
            if name != _SHEET:
                times = rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*"
                file.writestr(entry, re.sub(times, rb"\g<1>1980-01-01T00:00:00Z", book.read(name)))
                continue
            plain = re.sub(b"<dimension[^>]*>", b"", book.read(name))
            before, after = re.split(b"<sheetData>.*</sheetData>", plain, flags=re.DOTALL)
            with file.open(entry, "w", force_zip64=True) as sheet:
                sheet.write(before + b"<sheetData>")
                head = [_spell(names.slice(place, 1), formulas) for place in range(len(names))]
                sheet.write(_rows(head, 1))
                for start in range(0, table.num_rows, _ROWS):
                    cells = [_spell(column.slice(start, _ROWS), formulas) for column in columns.values()]
                    sheet.write(_rows(cells, start + 2))
                sheet.write(b"</sheetData>" + after)
    return changes


def _empty_book(label: str) -> io.BytesIO:
    """A workbook with a sheet of one cell for each style that `_spell` uses, and all that belongs around it.

    The cells are not left to openpyxl: it would put them into a temporary file, where a crash leaves them.
    """
    openpyxl = _openpyxl()
    book = openpyxl.Workbook()
    book.properties = openpyxl.packaging.core.DocumentProperties(
        creator="hedgerow", description=label or None
    )
    book.active.title = "data"
    book.active.append([dt.date(2000, 1, 1), dt.datetime(2000, 1, 1, 1), dt.time(1)])  # styles 1, 2, 3
    book.save(raw := io.BytesIO())
    return raw


def _rows(cells: list[pa.ChunkedArray], first: int) -> bytes:
    numbers = pa.array(range(first, first + len(cells[0]))).cast(pa.large_string())
    return "".join(_join('<row r="', numbers, '">', *cells, "</row>").to_pylist()).encode()


def _join(*parts: Any) -> Any:
    """Texts side by side, row by row; nothing where one is missing."""
    words = [pa.scalar(part, pa.large_string()) if isinstance(part, str) else part for part in (*parts, "")]
    return pc.binary_join_element_wise(*words)


def _spell(column: pa.ChunkedArray, formulas: str) -> pa.ChunkedArray:
    """The cells of a column as they stand in the sheet; text is marked as such, whatever it looks like."""
    kind, head, tail = column.type, "<c><v>", "</v></c>"
    if is_text(kind):
        words = column.cast(pa.large_string())
        words = escape_formulas(words) if formulas == "escape" else words
        for sign, code in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("\r", "&#13;")):
            words = pc.replace_substring(words, sign, code)
        head, tail = '<c t="inlineStr"><is><t xml:space="preserve">', "</t></is></c>"
    elif pa.types.is_boolean(kind):
        words, head = pc.if_else(column, "1", "0"), '<c t="b"><v>'
    elif pa.types.is_date(kind):
        days = column.cast(pa.date32()).cast(pa.int32())
        words, head = pc.add(days, _EPOCH), '<c s="1"><v>'
    elif pa.types.is_timestamp(kind):
        days = pc.divide(column.cast(pa.int64()).cast(pa.float64()), _DAY)
        words, head = pc.add(days, float(_EPOCH)), '<c s="2"><v>'
    elif pa.types.is_time(kind):
        ticks = column.cast(pa.time64("us")).cast(pa.int64()).cast(pa.float64())
        words, head = pc.divide(ticks, 1000 * _DAY), '<c s="3"><v>'
    else:
        words = column
    return pc.fill_null(_join(head, words.cast(pa.large_string()), tail), "<c/>")


def check_excel(table: pa.Table) -> None:
    """Refuses what a sheet cannot hold."""
    if table.num_rows > _MOST_ROWS or table.num_columns > _MOST_COLUMNS:
        raise DataError(
            f"{table.num_rows} rows of {table.num_columns} columns; an Excel sheet holds {_MOST_ROWS} of "
            f"{_MOST_COLUMNS}. Choose another format: --format parquet."
        )
    names = pa.chunked_array([pa.array(table.column_names)])
    for name, column in [("names", names), *zip(table.column_names, table.columns, strict=True)]:
        plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        problem = _find_problem(plain)
        if problem:
            raise DataError(f"column {name!r} has {problem}. Correct it, or choose another format.")


def _find_problem(column: pa.ChunkedArray) -> str | None:
    """Why Excel cannot hold a column, if it cannot."""
    kind = column.type
    if is_text(kind):
        longest = pc.max(pc.utf8_length(column)).as_py() or 0
        if longest > _MOST_TEXT:
            return f"text of {longest} characters; Excel holds {_MOST_TEXT}"
        odd = pc.any(pc.match_substring_regex(column, _CONTROLS)).as_py()
        return "text with control characters, which Excel does not hold" if odd else None
    if pa.types.is_integer(kind) and len(column.drop_null()):
        ends = pc.min_max(column).as_py()
        large = max(abs(ends["min"]), abs(ends["max"])) >= 10**_MOST_DIGITS
        return f"whole numbers of more than {_MOST_DIGITS} digits, which Excel rounds" if large else None
    if pa.types.is_floating(kind):
        return "infinite numbers, which Excel does not hold" if pc.any(pc.is_inf(column)).as_py() else None
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        first = (
            pc.min(column.cast(pa.timestamp("s"), safe=False)).as_py() if len(column.drop_null()) else None
        )
        return (
            f"dates before {_FIRST_DATE}, which Excel miscounts"
            if first and first.date() < _FIRST_DATE
            else None
        )
    return None


def _prepare(name: str, column: pa.ChunkedArray, changes: list[str]) -> pa.ChunkedArray:
    """A column as Excel can hold it: no zones, times to the millisecond, NaN and -0.0 as nothing and zero."""
    kind = column.type
    if pa.types.is_floating(kind):
        plain = pc.add(column.cast(pa.float64()), 0.0)
        return pc.if_else(pc.is_nan(plain), pa.scalar(None, pa.float64()), plain)
    if not pa.types.is_timestamp(kind):
        return column
    if kind.tz:
        changes.append(f"column {name!r}: times written in UTC, without their zone.")
    column = column.cast(pa.timestamp(kind.unit))
    kept = column.cast(pa.timestamp("ms"), safe=False)
    if not kept.cast(pa.timestamp(kind.unit), safe=False).equals(column):
        changes.append(f"column {name!r}: times written to the millisecond.")
    return kept
