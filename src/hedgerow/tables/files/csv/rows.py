"""The rows of a CSV file told apart by Arrow, with every cell as text."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.csv

from hedgerow.errors import DataError, FileError
from hedgerow.tables.files.source import Dialect

BLOCK = 1 << 24  # one row must fit into a block: 10,000 wide cells do


def cell_options(
    header: list[str], *, size: int = 0
) -> tuple[pyarrow.csv.ReadOptions, pyarrow.csv.ConvertOptions]:
    """How Arrow reads every cell below the header as text; columns are called by their places.

    `size` is that of a file that is read at once: a large one is shared out among threads.
    """
    numbered = [str(place) for place in range(len(header))]
    return (
        pyarrow.csv.ReadOptions(
            # Commands that ended at once, on tables without rows, sometimes aborted with threads.
            use_threads=size >= BLOCK,
            column_names=numbered,
            skip_rows_after_names=1,
            block_size=BLOCK,
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


def check_any(file: str, header: list[str], rows: int) -> None:
    """Refuses a table without rows."""
    if rows == 0:
        raise DataError(f"{file}: a header of {len(header)} columns and no rows. At least one row is needed.")
