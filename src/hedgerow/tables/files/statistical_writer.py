"""Stata .dta (format 118: Stata 14 and later) out through pandas, SPSS .sav out through pyreadstat.

Both programs hold numbers, text and dates, with labels for columns and for codes; what a column has beyond
that is returned as sentences for `Written.changes`. Neither library gives the same bytes every time, or all
of the dictionary: the few fixed fields that they get wrong are written over in the finished file, at places
that the formats themselves fix.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyreadstat

from hedgerow.arrays import Array, Mask
from hedgerow.errors import DataError, FileError, list_some
from hedgerow.tables.files.columns import EXACT, is_text, join_chunks
from hedgerow.tables.files.source import Dictionary, Format
from hedgerow.tables.files.statistical import clock_of_display, clock_of_type, from_moments

# A name's pattern, what it may be in words, its most bytes, the reserved words. SPSS ignores case.
_NAMES = {
    Format.STATA: (
        *(r"(?!str\d+$)[^\W\d]\w{0,31}", "32 letters, digits and underscores", 128),
        "_all _b _coef _cons _n _N _pi _pred _rc _skip byte double float if in int long strL using with",
    ),
    Format.SPSS: (
        *(r"[^\W\d_]([\w.@#$]*[\w@#$])?", "64 bytes of letters, digits and _ . @ # $", 64),
        "ALL AND BY EQ GE GT LE LT NE NOT OR TO WITH",
    ),
}
_STATA_COLUMNS, _STATA_LABEL = 32_767, 80
_STATA_TEXT, _SPSS_TEXT = 2045, 32_767  # bytes; Stata holds longer ones as strL, SPSS none
_LONG = (-2_147_483_647, 2_147_483_620)  # Stata's own whole numbers; above them come `.` and `.a` to `.z`
_FLOAT = 1.70141173e38
_LARGEST = {Format.STATA: 8.9884656e307, Format.SPSS: float(np.finfo(float).max)}
_STATA_NAMES, _STATA_DISPLAYS = (3, "<varnames>", 129), (5, "<formats>", 57)  # place in the map, tag, bytes
_SPSS_WRITTEN_AT, _SPSS_NO_TIME = 92, b"01 Jan 7000:00:00"  # the header's date and time

_Cells = dict[str, Any]  # by column, as everything here
_Words = dict[str, str]
_Labels = dict[str, dict[Any, str]]


def check_names(names: list[str], format: Format) -> None:
    """Refuses column names that Stata or SPSS does not allow."""
    if format is Format.STATA and len(names) > _STATA_COLUMNS:
        raise DataError(
            f"{len(names)} columns; a .dta file of format 118 holds {_STATA_COLUMNS}. Write Parquet or CSV."
        )
    plain = str.upper if format is Format.SPSS else str
    pattern, allowed, most, reserved = _NAMES[format]
    bad = [
        repr(name)
        for name in names
        if not re.fullmatch(pattern, name) or len(name.encode()) > most or plain(name) in reserved.split()
    ]
    if bad:
        raise DataError(
            f"{len(bad)} column names are not allowed in {format.display_name}: {list_some(bad)}. Use up to "
            f"{allowed}, a letter first, no reserved word; or choose another format."
        )
    if len({plain(name) for name in names}) < len(names):
        raise DataError(
            "some column names differ only in upper and lower case, which SPSS ignores. Rename them."
        )


def write_statistical(
    table: pa.Table,
    path: Path,
    format: Format,
    dictionary: Dictionary,
    codes: Mapping[str, pa.ChunkedArray],
    label: str = "",
) -> list[str]:
    """Writes a .dta or .sav file; returns what the format could not hold as it was.

    `codes` has the declared missing values of columns that come back as they were read, `label` says what the
    file is.
    """
    check_names(table.column_names, format)
    changes: list[str] = []
    cells: _Cells = {}
    displays: _Words = {}
    labels: _Labels = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        array, given = join_chunks(column), dict(dictionary.value_labels.get(name, {}))
        if pa.types.is_dictionary(array.type) and is_text(array.type.value_type):
            # Codes from 1 with value labels: what Stata and SPSS have for categories.
            changes.append(f"column {name!r}: categories written as codes with value labels.")
            given |= enumerate(array.dictionary.to_pylist(), start=1)
            array = pc.add(array.indices.cast(pa.int32()), 1)
        elif pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        if is_text(array.type):
            cells[name] = _text(name, array, format, changes)
        else:
            cells[name] = _numbers(name, array, format, changes)
            display = _display(dictionary.formats.get(name), array.type, format)
            if display:
                displays[name] = display
        labels[name] = _usable_labels(given, format, text=is_text(array.type))
        if len(labels[name]) < len(given):
            changes.append(
                f"column {name!r}: {len(given) - len(labels[name])} value labels left out, which "
                f"{format.display_name} has no place for."
            )
    labels = {name: texts for name, texts in labels.items() if texts}
    titles = {name: label for name, label in dictionary.labels.items() if name in cells}
    if format is Format.STATA:
        if codes:
            changes.append(f"columns {list_some(sorted(codes))}: missing values .a to .z written as `.`.")
        _write_dta(path, cells, displays, labels, titles, label, changes)
    else:
        for name, column in codes.items():
            known = column.to_numpy()
            cells[name] = np.where(pd.isna(known), cells[name], known)
        _write_sav(path, cells, displays, labels, titles, label, dictionary)
    return changes


def _text(name: str, array: pa.Array, format: Format, changes: list[str]) -> Any:
    if array.null_count and pc.any(pc.equal(array, "")).as_py():
        changes.append(f"column {name!r}: missing text and empty text are the same in Stata and SPSS.")
    array = array.fill_null("")
    if format is Format.STATA and pc.any(pc.match_substring(array, "\0")).as_py():
        raise DataError(
            f"column {name!r} holds NUL characters, which Stata ends a text at. Remove them first."
        )
    if format is Format.SPSS and _text_bytes(array) > _SPSS_TEXT:
        raise DataError(
            f"column {name!r} has text above {_SPSS_TEXT} bytes, the most SPSS holds. Shorten it."
        )
    return np.array(array.to_pylist(), dtype=object)


def _text_bytes(words: Any) -> int:
    return pc.max(pc.binary_length(pa.array(words))).as_py() or 0


def _numbers(name: str, array: pa.Array, format: Format, changes: list[str]) -> Any:
    """Doubles, NaN where missing; for Stata, which has them, also whole numbers and floats."""
    kind = array.type
    gone: Mask = array.is_null().to_numpy(zero_copy_only=False)
    clock = clock_of_type(format, kind)
    if clock is not None:
        moments = from_moments(name, array, clock, changes)
        if clock.kind != "date" or format is Format.SPSS:
            return moments
        return pd.arrays.IntegerArray(np.where(gone, 0.0, moments).astype(np.int64), gone)
    if pa.types.is_boolean(kind):
        changes.append(f"column {name!r}: false and true written as 0 and 1.")
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        array = array.cast(pa.int8())
    if pa.types.is_integer(array.type):
        whole = array.fill_null(0).to_numpy()
        large = int(((whole > EXACT) | (whole < -EXACT)).sum())
        if large:
            raise DataError(
                f"column {name!r} has {large} whole numbers above 2^53, which Stata and SPSS cannot hold "
                "exactly. Convert it to text, or write Parquet, Arrow or CSV."
            )
        if format is Format.SPSS or whole.min() < _LONG[0] or whole.max() > _LONG[1]:
            return np.where(gone, np.nan, whole.astype(float))
        # pandas does not look whether 32 bits reach into Stata's missing values; of 64 it does.
        return pd.arrays.IntegerArray(whole if array.type.bit_width < 32 else whole.astype(np.int64), gone)
    if not pa.types.is_floating(kind):
        raise DataError(
            f"column {name!r} is {kind}, which {format.display_name} does not hold. Convert it to numbers or "
            "text first."
        )
    numbers: Array = array.cast(pa.float64()).fill_null(np.nan).to_numpy()
    size = np.abs(numbers[~np.isnan(numbers)])
    beyond = int((size > _LARGEST[format]).sum())
    if beyond:
        raise DataError(
            f"column {name!r} has {beyond} numbers beyond ±{_LARGEST[format]:g}, infinity included, which "
            f"{format.display_name} does not hold. Correct them, or choose another format."
        )
    short = format is Format.STATA and kind.bit_width <= 32 and size.max(initial=0.0) <= _FLOAT
    return numbers.astype(np.float32) if short else numbers


def _display(given: str | None, kind: pa.DataType, format: Format) -> str | None:
    """The column's own display format if it still says what the column is, else the usual one."""
    clock = clock_of_type(format, kind)
    if clock is not None:
        return given if given and clock_of_display(format, given) == clock else clock.display
    misleading = not given or clock_of_display(format, given) or re.match(r"%-?[0-9]*s$|A", given)
    if format is Format.STATA:
        return None if misleading else given
    if pa.types.is_floating(kind):
        return "F8.2" if misleading else given
    return given if given and re.fullmatch(r"[FN][0-9]+(\.0)?", given) else "F8.0"


def _usable_labels(given: Mapping[Any, str], format: Format, *, text: bool) -> dict[Any, str]:
    if format is Format.SPSS:
        return {value: label for value, label in given.items() if isinstance(value, str) == text}
    codes: dict[Any, str] = {}
    for value, label in {} if text else given.items():
        if isinstance(value, str) and re.fullmatch("[a-z]", value):
            codes[_LONG[1] + 2 + ord(value) - ord("a")] = label
        elif not isinstance(value, str) and value == int(value) and _LONG[0] <= value <= _LONG[1]:
            codes[int(value)] = label
    return codes


def _write_dta(
    path: Path,
    cells: _Cells,
    displays: _Words,
    labels: _Labels,
    titles: _Words,
    label: str,
    changes: list[str],
) -> None:
    cut = sum(len(title) > _STATA_LABEL for title in titles.values())
    if cut:
        changes.append(f"{cut} variable labels cut to {_STATA_LABEL} characters.")
    # pandas renames columns such as `class` that Stata allows, and calls a set of labels after its column.
    alias = {name: f"labels_{place}" for place, name in enumerate(cells, start=1)}
    long = [alias[n] for n, c in cells.items() if c.dtype == object and _text_bytes(c) > _STATA_TEXT]
    with path.open("w+b") as file:
        try:
            pd.DataFrame({alias[name]: column for name, column in cells.items()}, copy=False).to_stata(
                file,
                version=118,
                byteorder="<",
                write_index=False,
                time_stamp=datetime(1960, 1, 1),  # the same table, the same bytes
                data_label=label or None,
                variable_labels={alias[name]: title[:_STATA_LABEL] for name, title in titles.items()},
                value_labels={alias[name]: texts for name, texts in labels.items()},
                convert_strl=long,
            )
        except ValueError:
            # Its message can quote a value.
            raise FileError(
                "the Stata file could not be written: a label or a text that Stata does not allow. Choose "
                "another format."
            ) from None
        _write_fields(file, _STATA_NAMES, dict(enumerate(cells)))
        _write_fields(file, _STATA_DISPLAYS, {i: displays[n] for i, n in enumerate(cells) if n in displays})


def _write_fields(file: BinaryIO, section: tuple[int, str, int], words: Mapping[int, str]) -> None:
    """Writes over the texts of some columns in a section of a .dta file, which its map leads to."""
    place, tag, size = section
    file.seek(0)
    head = file.read(512)
    start = head.index(b"<map>") + len("<map>") + 8 * place
    fields = int.from_bytes(head[start : start + 8], "little") + len(tag)
    for column, word in words.items():
        file.seek(fields + column * size)
        file.write(word.encode().ljust(size, b"\0"))


def _write_sav(
    path: Path,
    cells: _Cells,
    displays: _Words,
    labels: _Labels,
    titles: _Words,
    label: str,
    dictionary: Dictionary,
) -> None:
    def is_word(entry: Any) -> bool:
        return isinstance(entry["lo"] if isinstance(entry, dict) else entry, str)

    try:
        pyreadstat.write_sav(
            pd.DataFrame(cells, copy=False),
            str(path),
            file_label=label,
            column_labels=titles,
            variable_value_labels=labels,
            missing_ranges={
                name: list(entries)
                for name, entries in dictionary.missing_ranges.items()
                if name in cells and (cells[name].dtype == object) == is_word(entries[0])
            },
            variable_display_width={n: width for n, width in dictionary.widths.items() if n in cells},
            variable_measure={n: measure for n, measure in dictionary.measures.items() if n in cells},
            variable_format=displays,
        )
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError):
        # Its message can quote a value.
        raise FileError(
            "the SPSS file could not be written: no room on the disk, or a name, label or declared missing "
            "value that SPSS does not allow. Free some room, or choose another format."
        ) from None
    with path.open("r+b") as file:
        file.seek(_SPSS_WRITTEN_AT)
        file.write(_SPSS_NO_TIME)
