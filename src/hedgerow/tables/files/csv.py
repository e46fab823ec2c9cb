"""CSV in: every cell read as text first, then each column typed by all of its cells.

A reader that guesses from a first block turns a late letter into an error or a whole column into
floats. Here a type is given only when every cell of the column fits it, and only when writing the value
gives the same text back up to notation: codes with leading zeros, numbers with a leading plus and whole
numbers beyond 64 bits stay text.

Missing: an empty cell always; in a column of numbers, booleans or dates also the words in `missing`
("NA", "NaN", …). In a text column those words are text, since NA may be Namibia. Blank lines are skipped
when there is more than one column.
"""

import csv
import io
import re
from collections import Counter
from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from hedgerow.errors import DataError, FileError
from hedgerow.tables.files.columns import check_flat, some
from hedgerow.tables.files.csv_types import NUMBER, Typing
from hedgerow.tables.files.source import Dialect, Format, Source, frozen

MISSING_WORDS = ("NA", "N/A", "NaN", "nan", "NULL", "null", "None", ".")

_BLOCK = 1 << 24  # one row must fit into a block: 10,000 wide cells do


def read_csv(
    path: Path,
    *,
    encoding: str = "utf-8",
    delimiter: str | None = None,
    decimal: str = ".",
    missing: Collection[str] = MISSING_WORDS,
    text: Collection[str] = (),
) -> Source:
    """A CSV file with a header as a `Source`."""
    body, dialect = _decoded(path, encoding, delimiter, decimal)
    names, cells = _cells(path.name, body, dialect)
    unknown = sorted(set(text) - set(names))
    if unknown:
        raise DataError(f"{path.name}: no column named {some(unknown)}. The columns are {some(names, 20)}.")
    typing = Typing(path.name, decimal, frozenset(missing) - {""}, frozenset(text))
    columns = [typing.column(name, column) for name, column in zip(names, cells.columns, strict=True)]
    table = check_flat(pa.Table.from_arrays(columns, names=names), path.name)
    dialect = Dialect(
        dialect.encoding,
        dialect.bom,
        dialect.delimiter,
        decimal,
        dialect.newline,
        frozen(typing.spelled),
        frozen(typing.booleans),
        frozen(typing.stamps),
    )
    return Source(table, Format.CSV, frozen(typing.missing), tuple(typing.notes), dialect)


def _decoded(path: Path, encoding: str, delimiter: str | None, decimal: str) -> tuple[bytes, Dialect]:
    """The file as UTF-8 without a byte order mark, and how it was spelled."""
    raw = path.read_bytes()
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")) and encoding == "utf-8":
        raise FileError(f"{path.name}: the file is UTF-16, not UTF-8. Pass encoding='utf-16'.")
    try:
        content = raw.decode(encoding)
    except LookupError:
        raise FileError(
            f"{path.name}: {encoding!r} is no known encoding. Use 'utf-8', 'cp1252', 'latin-1' or 'utf-16'."
        ) from None
    except UnicodeError:
        raise FileError(
            f"{path.name}: the file is not {encoding}. Pass the encoding it was saved in: encoding='cp1252' "
            "(Windows, Western Europe), 'cp1250' (Central Europe), 'latin-1', 'utf-16', 'shift_jis' or "
            "another."
        ) from None
    if "\0" in content:
        raise FileError(
            f"{path.name}: {content.count(chr(0))} NUL characters. This is not a text file, or it is UTF-16 "
            "without its mark: pass encoding='utf-16-le', or export the file again."
        )
    bom = content.startswith("\ufeff")
    content = content.removeprefix("\ufeff").lstrip("\r\n")
    if not content:
        raise FileError(f"{path.name}: the file is empty. A header and at least one row are needed.")
    head = content.split("\n", 1)[0]
    newline = "\r\n" if head.endswith("\r") else "\n"
    if delimiter is None:
        bare = re.sub(r'"[^"]*"', "", head)
        delimiter = max(",;\t|", key=bare.count)  # ties and none at all: the comma
    elif len(delimiter) != 1 or delimiter in '"\r\n':
        raise FileError(
            f"{path.name}: the delimiter must be one character, got {delimiter!r}. Use ',' or ';'."
        )
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


def _cells(name: str, body: bytes, dialect: Dialect) -> tuple[list[str], pa.Table]:
    """The header, and every cell as text; an empty cell is null, a quoted empty one is ""."""
    head = io.TextIOWrapper(io.BytesIO(body), encoding="utf-8", newline="")
    try:
        header = [cell.strip() for cell in next(csv.reader(head, delimiter=dialect.delimiter))]
    except csv.Error:
        raise FileError(
            f"{name}: the first line is no header. Pass the delimiter, or export it again."
        ) from None
    _check_header(name, header)
    ragged: list[int] = []

    def count(row: "pyarrow.csv.InvalidRow") -> str:
        ragged.append(row.actual_columns)
        return "skip"

    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(body),
            read_options=pyarrow.csv.ReadOptions(
                column_names=[str(i) for i in range(len(header))], skip_rows_after_names=1, block_size=_BLOCK
            ),
            parse_options=pyarrow.csv.ParseOptions(
                delimiter=dialect.delimiter,
                newlines_in_values=True,
                # In a file of one column a blank line is a missing value.
                ignore_empty_lines=len(header) > 1,
                invalid_row_handler=count,
            ),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types={str(i): pa.string() for i in range(len(header))},
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
    return header, table


def _check_header(name: str, header: list[str]) -> None:
    # A first row of data taken for a header would be quoted by every later message: this check comes first.
    if all(re.match(NUMBER, cell) for cell in header):
        raise DataError(
            f"{name}: all {len(header)} cells of the first line are numbers, so it is not a header. Add a "
            "line with column names."
        )
    blank = sum(not cell for cell in header)
    if blank:
        raise DataError(
            f"{name}: {blank} of {len(header)} columns have no name. Name them; a first column of row "
            "numbers is best left out."
        )
    twice = sorted(cell for cell, times in Counter(header).items() if times > 1)
    if twice:
        raise DataError(
            f"{name}: {len(twice)} column names occur more than once ({some(twice)}). Rename them, so that "
            "each column can be addressed."
        )
