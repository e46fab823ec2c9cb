"""Files in and out: `read` a table with all that a copy in the same format needs, `write` one.

    >>> import pandas as pd
    >>> written = write(pd.DataFrame({"region": ["north", None], "pay": [12.5, 9.0]}), "pay.csv", "csv")
    >>> source = read("pay.csv")
    >>> source
    Source(confidential: 2 columns × 2 rows, csv, 1 missing cells)
    >>> source.missing["region"]
    Missing(empty=1, marked=mappingproxy({}))
    >>> written.sha256 == write(source.frame, "copy.csv", source).sha256
    True

In memory a table is an Arrow table: it alone keeps nullable integers, dates, categories and missing values
apart, and narwhals works on it. Reading says what was missing (`Source.missing`) and what it decided
(`Source.notes`); writing says what the format could not hold (`Written.changes`).

Guarantee: writing puts a whole file in place or none, and the same table always gives the same bytes: no
time, path, pandas index or value hidden under a null is written, and no file label but the one passed.

Read in this order: `source` (the formats, and what a file was), `columns` (which types are accepted),
`dictionary` (what copies may say about their columns), `buffers` (columns in memory of their own), `csv`,
`excel`, `columnar` (Parquet and Arrow), `growing` (files written part by part),
`statistical` (Stata, SPSS and SAS in, and their dates) and `statistical_writer` (Stata and SPSS out).

To add a format: its name and endings in `source`, a module that reads and writes it, and a branch in each of
`read`, `check` and `_write_table` below.
"""

import hashlib
import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from hedgerow.errors import FileError, SettingError, reason_of
from hedgerow.tables.files.columnar import read_columnar, read_footer, write_columnar
from hedgerow.tables.files.columns import check_flat, to_arrow
from hedgerow.tables.files.csv import read_csv
from hedgerow.tables.files.csv.writer import check_csv, csv_bytes
from hedgerow.tables.files.dictionary import DictionaryEntry, source_of_copies
from hedgerow.tables.files.growing import find_not_numbers, grow, look_at, placing, tell_gaps, tell_labels
from hedgerow.tables.files.source import (
    MISSING_WORDS,
    Dictionary,
    Format,
    Missing,
    Reading,
    Source,
    Written,
    as_format,
    format_of,
)

__all__ = [
    "MISSING_WORDS", "DictionaryEntry", "Format", "Missing", "Source", "Written", "check", "format_of",
    "grow", "look_at", "read", "read_schema", "source_of_copies", "write",
]  # fmt: skip


def read(
    path: str | os.PathLike[str],
    *,
    format: Format | str | None = None,
    encoding: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    missing: Collection[str] = MISSING_WORDS,
    text: Collection[str] = (),
    header: bool = False,
    numbers: Collection[str] = (),
    dates: Collection[str] = (),
    sheet: str | None = None,
) -> Source:
    """A table from a file, by its ending or the given format.

    `missing`, `text` (columns to keep as text), `header` (the first line holds names, though it looks like a
    record), `numbers` and `dates` (columns of doubles, flags as 1 and 0, or of days, where any other cell is
    missing) are for CSV and Excel, `delimiter` and `decimal` for CSV, `sheet` for Excel; `encoding` is for
    CSV, Stata, SPSS and SAS.
    """
    path = Path(path)
    if path.is_dir():
        raise FileError(
            f"{path.name}: this is a folder, read as a whole by synthesize alone. Pass a file in it."
        )
    kind = as_format(format) if format is not None else format_of(path)
    if isinstance(missing, str) or isinstance(text, str):
        raise SettingError("missing and text are lists of words and of columns, not one string. Use ['NA'].")
    reading = Reading(missing, text, header, numbers, dates)
    if sheet is not None and kind is not Format.EXCEL:
        raise SettingError(f"sheet: {path.name} is no Excel file and has no sheets. Leave --sheet out.")
    try:
        if path.stat().st_size == 0:
            raise FileError(f"{path.name}: the file is empty (0 bytes). Copy or export it again.")
        with path.open("rb"):
            pass  # a missing permission is said here, before a parser words it its own way
        if kind is Format.CSV:
            return read_csv(path, encoding or "utf-8", delimiter, decimal, reading)
        if kind in (Format.PARQUET, Format.ARROW):
            return read_columnar(path, kind)
        if kind is Format.EXCEL:
            from hedgerow.tables.files.excel import read_excel

            return read_excel(path, sheet, reading)
        from hedgerow.tables.files.statistical import read_statistical

        return read_statistical(path, kind, encoding=encoding)
    except OSError as error:
        reasons: dict[type, str] = {
            FileNotFoundError: "no such file. Check the name and the folder.",
            PermissionError: "no permission to read it. Ask its owner, or change its mode.",
        }
        reason = reasons.get(type(error), f"cannot be read ({reason_of(error)}).")
        raise FileError(f"{path.name}: {reason}") from None


def read_schema(path: str | os.PathLike[str], format: Format | str) -> pa.Schema:
    """The columns of a copy and their types; of Parquet, without its rows."""
    if as_format(format) is Format.PARQUET:
        return read_footer(Path(path))
    return read(path, format=format, header=True).frame.schema


def check(
    frame: Any, like: Source | Format | str, *, format: Format | str | None = None, formulas: str = "refuse"
) -> None:
    """Raises what `write` would say about names and formulas, without writing: ask before a long fit."""
    table = check_flat(to_arrow(frame), "the table")
    kind = _target(like, format)
    if kind in (Format.CSV, Format.EXCEL):
        check_csv(table, formulas)
    if kind is Format.EXCEL:
        from hedgerow.tables.files.excel import check_excel

        check_excel(table)
    elif kind in (Format.STATA, Format.SPSS):
        from hedgerow.tables.files.statistical_writer import check_names

        check_names(table.column_names, kind)


def write(
    frame: Any,
    path: str | os.PathLike[str],
    like: Source | Format | str,
    *,
    format: Format | str | None = None,
    formulas: str = "refuse",
    encoding: str | None = None,
    label: str = "",
    overwrite: bool = False,
) -> Written:
    """Writes a dataframe like a source: in its format or the given one, with its dialect and dictionary.

    `like` may also be a format alone. `label` says what the file is, where its format has a place for that:
    the metadata of Parquet and Arrow, the file label of Stata and SPSS (64 bytes at most), the properties of
    an Excel file. SAS files are not written: a copy of one is Parquet. The file appears whole under its name,
    or not at all.
    """
    path = Path(path)
    table = check_flat(to_arrow(frame), "the table")
    source = like if isinstance(like, Source) else Source(table, as_format(like))
    kind = _target(like, format)
    with placing(path, overwrite=overwrite) as partial:
        changes = _write_table(partial, table, source, kind, formulas, encoding, label)
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        size = partial.stat().st_size
    return Written(path, kind, digest, size, tuple(changes))


def _target(like: Source | Format | str, format: Format | str | None) -> Format:
    if isinstance(like, Source) and format is None:
        return like.format.written_as
    kind = as_format(format if format is not None else str(like))
    if not kind.writable:
        raise SettingError(
            f"format {kind.value!r} is read only. Write parquet, csv, arrow, stata, spss or excel."
        )
    return kind


def _write_table(
    path: Path,
    table: pa.Table,
    source: Source,
    kind: Format,
    formulas: str,
    encoding: str | None,
    label: str,
) -> list[str]:
    """Writes the file; returns what its format could not hold."""
    changes: list[str] = []
    dictionary = source.dictionary
    if kind in (Format.STATA, Format.SPSS):
        from hedgerow.tables.files.statistical_writer import write_statistical

        # A column that comes back as it was read has its declared missing codes still.
        codes = {
            name: column
            for name, column in source.codes.items()
            if name in table.column_names and table.column(name).equals(source.frame.column(name))
        }
        if kind is not source.format:
            # Display formats, measures and declared codes mean something in their own format only.
            dictionary, codes = Dictionary(dictionary.labels, dictionary.value_labels), {}
        changes += write_statistical(table, path, kind, dictionary, codes, label)
    else:
        changes += tell_labels(dictionary, table.column_names, kind)
        if kind in (Format.PARQUET, Format.ARROW):
            with path.open("wb") as file:
                write_columnar(table, file, kind, label)
            return changes
        if kind is Format.EXCEL:
            from hedgerow.tables.files.excel import write_excel

            check_csv(table, formulas)
            changes += write_excel(table, path, formulas, label)
        else:
            dialect = replace(source.dialect, encoding=encoding or source.dialect.encoding)
            with path.open("wb") as file:
                file.writelines(csv_bytes(table, dialect, formulas))
    return changes + tell_gaps(find_not_numbers(table))
