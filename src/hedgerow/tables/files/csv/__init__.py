"""CSV in: every cell read as text first, then each column typed by all of its cells. And CSV out (`writer`).

A reader that guesses from a first block turns a late letter into an error or a whole column into floats: here
nothing is decided before all cells have been seen.

Missing: an empty cell always; in a column of numbers, booleans or dates also the words for it ("NA", "NaN",
…), a number among them however it is written (-8, -8.0). In a text column those words are text, since NA may
be Namibia. Blank lines are skipped when there is more than one column.

Read in this order: `spelling` (encoding, delimiter, decimal sign), `header`, `rows`, `types`, `writer`. The
same parts read a file that does not fit into memory (`spool.text`).
"""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from hedgerow.tables.files.columns import check_flat
from hedgerow.tables.files.csv.header import check_header, check_known, check_names, read_header
from hedgerow.tables.files.csv.rows import cell_options, check_any, telling_rows_apart
from hedgerow.tables.files.csv.spelling import count_commas, decode, find_decimal
from hedgerow.tables.files.csv.types import Types
from hedgerow.tables.files.source import LEFT_INDEX, Dialect, Format, Reading, Source, freeze


def read_csv(
    path: Path, encoding: str, delimiter: str | None, decimal: str | None, reading: Reading
) -> Source:
    """A CSV file with a header as a `Source`. Without a decimal sign it is found by what the columns hold."""
    body, dialect = decode(path, encoding, delimiter, decimal)
    names, cells, notes = _split(path.name, body, dialect)
    if decimal is None and dialect.delimiter != ",":
        others = {n: c for n, c in zip(names, cells.columns, strict=True) if n not in reading.settled}
        dialect = find_decimal(dialect, {n: count_commas(c, reading.words) for n, c in others.items()}, notes)
    if not reading.header:
        check_header(path.name, names, cells, dialect.decimal, reading)
    check_known(path.name, names, reading)
    types = Types(path.name, dialect.decimal, reading)
    columns = [types.convert(name, column) for name, column in zip(names, cells.columns, strict=True)]
    table = check_flat(pa.Table.from_arrays(columns, names=names), path.name)
    notes += types.notes
    return Source(table, Format.CSV, freeze(types.counts), tuple(notes), types.spell(dialect))


def _split(name: str, body: bytes, dialect: Dialect) -> tuple[list[str], pa.Table, list[str]]:
    """The header, every cell as text, and what was left out; an empty cell is null, a quoted empty one "".

    A first column without a name is the index that pandas and R write before the others.
    """
    header = read_header(name, io.BytesIO(body), dialect)
    has_index = check_names(header, name)
    with telling_rows_apart(name, header, dialect) as parse:
        reading, cells = cell_options(header, size=len(body))
        table = pyarrow.csv.read_csv(pa.BufferReader(body), reading, parse, cells)
    check_any(name, header, table.num_rows)
    if has_index:
        return header[1:], table.drop_columns(["0"]), [LEFT_INDEX]
    return header, table, []
