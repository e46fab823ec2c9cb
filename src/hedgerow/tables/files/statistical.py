"""Stata, SPSS and SAS in, through pyreadstat, with their data dictionaries.

Codes stay codes and their value labels go into the dictionary: a label need not exist for every code,
and a copy must hold the same codes. An empty text cell is how these formats say that text is missing.
Dates and times are numbers since a day, and a display format: a column becomes a date or time only if it
turns back into the very same numbers; else it stays numbers with its format, and nothing is lost.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyreadstat

from hedgerow.arrays import Array, Mask
from hedgerow.errors import DataError, FileError
from hedgerow.tables.files.columns import EXACT, check_flat, check_width
from hedgerow.tables.files.source import Dictionary, Format, Missing, Source, freeze

_READERS = {
    Format.STATA: (pyreadstat.read_dta, {"user_missing": True}),
    Format.SPSS: (pyreadstat.read_sav, {"user_missing": True}),
    Format.SAS: (pyreadstat.read_sas7bdat, {"user_missing": True}),
    Format.XPORT: (pyreadstat.read_xport, {}),
}
_STORAGE = {"int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "float": pa.float32()}
_SECOND, _DAY = 1_000_000, 86_400_000_000  # microseconds
_1960, _1582 = -315_619_200 * _SECOND, -12_219_379_200 * _SECOND  # where Stata and SAS, and SPSS, begin
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # years 1 to 9999
_WIDTH = r"[0-9]*(?:\.[0-9]*)?"


def read_statistical(path: Path, kind: Format, *, encoding: str | None = None) -> Source:
    """A Stata, SPSS or SAS file as a `Source`."""
    reader, options = _READERS[kind]
    try:
        _, meta = reader(str(path), metadataonly=True, encoding=encoding)
        check_width(len(meta.column_names), path.name)
        cells, meta = reader(
            str(path), output_format="dict", disable_datetime_conversion=True, encoding=encoding, **options
        )
    except DataError:
        raise
    except UnicodeError:
        raise FileError(
            f"{path.name}: its text is not in the encoding it declares. Pass --encoding cp1252 (encoding=), "
            "latin-1 or another."
        ) from None
    except (pyreadstat.ReadstatError, pyreadstat.PyreadstatError, ValueError, OverflowError, MemoryError):
        raise FileError(
            f"{path.name}: not a whole {kind.display_name} file ({path.stat().st_size} bytes). It was cut "
            "short, damaged or has another format: copy or export it again. Text in another encoding can "
            "look like this too."
        ) from None
    columns = _Columns(kind, meta)
    arrays = [columns.convert(name, list(cells[name])) for name in meta.column_names]
    table = check_flat(pa.Table.from_arrays(arrays, names=meta.column_names), path.name)
    described = (
        meta.column_names_to_labels,
        {name: freeze(labels) for name, labels in meta.variable_value_labels.items()},
        meta.original_variable_types,
        {name: measure for name, measure in meta.variable_measure.items() if measure != "unknown"},
        meta.variable_display_width,
        meta.missing_ranges,
    )
    dictionary = Dictionary(*(freeze({k: v for k, v in entries.items() if v}) for entries in described))
    return Source(table, kind, freeze(columns.missing), dictionary=dictionary, codes=freeze(columns.codes))


class _Columns:
    """Types each column and collects what was missing and how."""

    def __init__(self, kind: Format, meta: Any) -> None:
        self.kind, self.meta = kind, meta
        self.missing: dict[str, Missing] = {}
        self.codes: dict[str, pa.ChunkedArray] = {}

    def convert(self, name: str, cells: list[Any]) -> pa.ChunkedArray:
        """The column in its Arrow type, declared missing values as nulls."""
        declared = self.meta.missing_ranges.get(name, []) if self.kind is Format.SPSS else []
        if self.meta.readstat_variable_types[name] in ("string", "string_ref"):
            words = np.array([cell or "" for cell in cells], dtype=object)
            marks, marked = _in_ranges(words, declared)
            array = pa.array(words, pa.string(), mask=marked | (words == ""))
            codes = pa.array(words, pa.string(), mask=~marked)
        elif any(isinstance(cell, str) for cell in cells):
            # Stata and SAS: a letter in place of a number says why it is missing.
            letters = np.array([cell if isinstance(cell, str) else "" for cell in cells], dtype=object)
            marks = {f".{letter}": letters == letter for letter in sorted(set(letters) - {""})}
            numbers = [np.nan if cell is None or isinstance(cell, str) else cell for cell in cells]
            array = self._to_type(name, np.array(numbers, float))
            codes = pa.array(letters, pa.string(), mask=letters == "")
        else:
            values = np.array([np.nan if cell is None else cell for cell in cells], float)
            marks, marked = _in_ranges(values, declared)
            array = self._to_type(name, np.where(marked, np.nan, values))
            codes = pa.array(values, mask=~marked)
        counts = {label: int(mask.sum()) for label, mask in marks.items() if mask.any()}
        if counts:
            self.codes[name] = pa.chunked_array([codes])
        if array.null_count:
            self.missing[name] = Missing(array.null_count - sum(counts.values()), freeze(counts))
        return pa.chunked_array([array])

    def _to_type(self, name: str, numbers: Array) -> pa.Array:
        display = self.meta.original_variable_types.get(name)
        clock = clock_of_display(self.kind, display)
        moments = to_moments(numbers, clock) if clock else None
        if moments is not None:
            return moments
        kind = _STORAGE.get(self.meta.readstat_variable_types[name], pa.float64())
        gone = np.isnan(numbers)
        # SPSS and SAS keep doubles only; a format without decimals over whole numbers means integers.
        if self.kind is not Format.STATA and re.match(r"^(F|N|COMMA)?[0-9]+(\.0?)?$", display or ""):
            known = numbers[~gone]
            if np.array_equal(known, np.rint(known)) and np.abs(known).max(initial=0.0) <= EXACT:
                kind = pa.int64()
        cells = np.where(gone, 0.0, numbers) if pa.types.is_integer(kind) else numbers
        return pa.array(cells.astype(kind.to_pandas_dtype()), kind, mask=gone)


def _in_ranges(values: Any, declared: list[Any]) -> tuple[dict[str, Mask], Mask]:
    """Which cells hold a declared missing value: by the words of the declaration, and of any."""
    marks: dict[str, Mask] = {}
    marked = np.zeros(len(values), dtype=bool)
    for entry in declared:
        low, high = (entry["lo"], entry["hi"]) if isinstance(entry, dict) else (entry, entry)
        inside = np.asarray((values >= low) & (values <= high), dtype=bool) & ~marked
        marked |= inside
        marks[f"{low}" if low == high else f"{low} to {high}"] = inside
    return marks, marked


@dataclass(frozen=True)
class Clock:
    """What one step of a stored number means."""

    kind: str  # "date", "timestamp" or "time"
    step: int  # microseconds
    zero: int  # microseconds from 1970 to the number 0
    display: str  # the format to show it in where the column brings none
    displays: str  # a pattern of all formats that show it


_CLOCKS = {
    Format.STATA: (
        Clock("date", _DAY, _1960, "%td", "%-?(td|d).*"),
        Clock("timestamp", 1000, _1960, "%tc", "%-?tc.*"),
    ),
    Format.SPSS: (
        Clock("date", _SECOND, _1582, "DATE11", "(?i)[AEJS]?DATE" + _WIDTH),
        Clock("timestamp", _SECOND, _1582, "DATETIME23.2", "(?i)(DATETIME|YMDHMS)" + _WIDTH),
        Clock("time", _SECOND, 0, "TIME11.2", "(?i)TIME" + _WIDTH),
    ),
    Format.SAS: (
        Clock(
            "date", _DAY, _1960, "", "(?i)(DATE|(DDMMYY|MMDDYY|YYMMDD)P?|YYMMDDN|E8601DA|WORDDATE)" + _WIDTH
        ),
        Clock("timestamp", _SECOND, _1960, "", "(?i)(DATETIME|E8601DT|DATEAMPM)" + _WIDTH),
        Clock("time", _SECOND, 0, "", "(?i)(TIME|HHMM|E8601TM)" + _WIDTH),
    ),
}


def clock_of_display(format: Format, display: str | None) -> Clock | None:
    """What a display format says about the numbers, if they are dates or times."""
    clocks = _CLOCKS[Format.SAS if format is Format.XPORT else format]
    return next((clock for clock in clocks if re.fullmatch(clock.displays, display or "")), None)


def clock_of_type(format: Format, column: pa.DataType) -> Clock | None:
    """The clock a format uses for an Arrow type, if that is a date or time."""
    return next((clock for clock in _CLOCKS[format] if getattr(pa.types, f"is_{clock.kind}")(column)), None)


def to_moments(values: Array, clock: Clock) -> pa.Array | None:
    """Numbers (NaN: missing) as dates or times; None if any would not come back the same."""
    gone = np.isnan(values)
    known = np.where(gone, 0.0, values)
    if np.abs(known).max(initial=0.0) > 2.0**53:
        return None
    whole = np.floor(known)
    part = np.rint((known - whole) * clock.step)
    first, last = (_FIRST - clock.zero) // clock.step, (_LAST - clock.zero) // clock.step
    inside = whole.max(initial=0.0) <= last and whole.min(initial=0.0) >= first
    if not inside or not np.array_equal(whole + part / clock.step, known):
        return None
    ticks = whole.astype(np.int64) * clock.step + part.astype(np.int64) + clock.zero
    days, rest = np.divmod(ticks, _DAY)
    if (clock.kind == "date" and rest[~gone].any()) or (clock.kind == "time" and days[~gone].any()):
        return None
    if clock.kind == "date":
        return pa.array(days.astype(np.int32), mask=gone).cast(pa.date32())
    return pa.array(ticks, mask=gone).cast(pa.time64("us") if clock.kind == "time" else pa.timestamp("us"))


def from_moments(name: str, column: pa.Array, clock: Clock, changes: list[str]) -> Array:
    """Dates or times as numbers, NaN where missing."""
    gone = column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(column.type) and column.type.tz:
        changes.append(f"column {name!r}: times written in UTC, without their zone.")
        column = column.cast(pa.timestamp(column.type.unit))
    unit = {"date": pa.date32(), "time": pa.time64("us")}.get(clock.kind, pa.timestamp("us"))
    try:
        ticks = column.cast(unit).cast(pa.int32() if clock.kind == "date" else pa.int64())
    except pa.ArrowInvalid:
        raise DataError(
            f"column {name!r} has times below a microsecond, which Stata and SPSS do not hold. Round "
            "them first."
        ) from None
    numbers = ticks.fill_null(0).to_numpy().astype(np.int64) * (_DAY if clock.kind == "date" else 1)
    whole, part = np.divmod(numbers - clock.zero, clock.step)
    return np.asarray(np.where(gone, np.nan, whole.astype(np.float64) + part / clock.step), dtype=np.float64)
