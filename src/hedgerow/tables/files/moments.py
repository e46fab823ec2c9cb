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
_DISPLAYS = {  # the name of the group that a display format matches is the kind of its column
    Format.STATA: r"%-?(?:(?P<date>td|d)|(?P<timestamp>tc)).*",
    Format.SPSS: r"(?i:(?P<date>[AEJS]?DATE)|(?P<timestamp>DATETIME|YMDHMS)|(?P<time>TIME))" + _WIDTH,
    Format.SAS: r"(?i:(?P<date>DATE|(?:DDMMYY|MMDDYY|YYMMDD)P?|YYMMDDN|E8601DA|WORDDATE)"
    r"|(?P<timestamp>DATETIME|E8601DT|DATEAMPM)|(?P<time>TIME|HHMM|E8601TM))" + _WIDTH,
}


@dataclass(frozen=True)
class Clock:
    """What one step of a stored number means."""

    kind: str  # "date", "timestamp" or "time"
    step: int  # microseconds
    zero: int  # microseconds from 1970 to the number 0
    display: str = ""  # the format to show it in where the column brings none


_CLOCKS = {
    Format.STATA: (Clock("date", _DAY, _1960, "%td"), Clock("timestamp", 1000, _1960, "%tc")),
    Format.SPSS: (
        Clock("date", _SECOND, _1582, "DATE11"),
        Clock("timestamp", _SECOND, _1582, "DATETIME23.2"),
        Clock("time", _SECOND, 0, "TIME11.2"),
    ),
    Format.SAS: (Clock("date", _DAY, _1960), Clock("timestamp", _SECOND, _1960), Clock("time", _SECOND, 0)),
}


def _clock(format: Format, kind: str | None) -> Clock | None:
    return next((clock for clock in _CLOCKS[format] if clock.kind == kind), None)


def clock_of_display(format: Format, display: str | None) -> Clock | None:
    """What a display format says about the numbers, if they are dates or times."""
    format = Format.SAS if format is Format.XPORT else format
    match = re.fullmatch(_DISPLAYS[format], display or "")
    return _clock(format, match.lastgroup) if match else None


def clock_of_type(format: Format, column: pa.DataType) -> Clock | None:
    """The clock a format uses for an Arrow type, if that is a date or time."""
    tests = {"date": pa.types.is_date, "timestamp": pa.types.is_timestamp, "time": pa.types.is_time}
    return next((_clock(format, kind) for kind, is_kind in tests.items() if is_kind(column)), None)


def to_moments(values: Array, clock: Clock) -> pa.Array | None:
    """Numbers (NaN: missing) as dates or times; None if any would not come back the same."""
    gone = np.isnan(values)
    known = np.where(gone, 0.0, values)
    if np.abs(known).max(initial=0.0) > 2.0**53:
        return None
    whole = np.floor(known)
    part = np.rint((known - whole) * clock.step)
    if not np.array_equal(whole + part / clock.step, known):
        return None
    first, last = (_FIRST - clock.zero) // clock.step, (_LAST - clock.zero) // clock.step
    if whole.max(initial=0.0) > last or whole.min(initial=0.0) < first:
        return None
    ticks = whole.astype(np.int64) * clock.step + part.astype(np.int64) + clock.zero
    if clock.kind == "date":
        if (ticks[~gone] % _DAY).any():
            return None
        return pa.array((ticks // _DAY).astype(np.int32), mask=gone).cast(pa.date32())
    if clock.kind == "time" and ((ticks[~gone] < 0) | (ticks[~gone] >= _DAY)).any():
        return None
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
