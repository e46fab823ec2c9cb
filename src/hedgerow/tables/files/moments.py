"""Dates and times as Stata, SPSS and SAS keep them: numbers since a day, and a display format.

A column becomes a date or time only if it turns back into the very same numbers; else it stays numbers
with its format, and nothing is lost.
"""

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from hedgerow.arrays import Array
from hedgerow.errors import DataError
from hedgerow.tables.files.source import Format

_SECOND, _DAY = 1_000_000, 86_400_000_000  # microseconds
_1960, _1582 = -315_619_200 * _SECOND, -12_219_379_200 * _SECOND  # where Stata and SAS, and SPSS, begin
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # years 1 to 9999
_WIDTH = r"[0-9]*(?:\.[0-9]*)?"


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
