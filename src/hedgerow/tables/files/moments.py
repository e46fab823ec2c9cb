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

_DAY = 86_400_000_000  # microseconds
_1960 = np.datetime64("1960-01-01", "us").astype(np.int64)
_1582 = np.datetime64("1582-10-14", "us").astype(np.int64)
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # years 1 to 9999


@dataclass(frozen=True)
class Clock:
    """What one step of a stored number means."""

    kind: str  # "date", "timestamp" or "time"
    step: int  # microseconds
    zero: int  # microseconds from 1970 to the number 0


_STATA = {"td": Clock("date", _DAY, int(_1960)), "tc": Clock("timestamp", 1000, int(_1960))}
_SPSS = {
    "date": Clock("date", 1_000_000, int(_1582)),
    "timestamp": Clock("timestamp", 1_000_000, int(_1582)),
    "time": Clock("time", 1_000_000, 0),
}
_SAS = {
    "date": Clock("date", _DAY, int(_1960)),
    "timestamp": Clock("timestamp", 1_000_000, int(_1960)),
    "time": Clock("time", 1_000_000, 0),
}
_SPSS_NAMES = {
    "date": {"DATE", "ADATE", "EDATE", "JDATE", "SDATE"},
    "timestamp": {"DATETIME", "YMDHMS"},
    "time": {"TIME"},
}
_SAS_NAMES = {
    "date": {
        "DATE",
        "DDMMYY",
        "DDMMYYP",
        "MMDDYY",
        "MMDDYYP",
        "YYMMDD",
        "YYMMDDP",
        "YYMMDDN",
        "E8601DA",
        "WORDDATE",
    },
    "timestamp": {"DATETIME", "E8601DT", "DATEAMPM"},
    "time": {"TIME", "HHMM", "E8601TM"},
}
DEFAULTS = {
    Format.STATA: {"date": "%td", "timestamp": "%tc"},
    Format.SPSS: {"date": "DATE11", "timestamp": "DATETIME23.2", "time": "TIME11.2"},
}


def clock(kind: Format, display: str | None) -> Clock | None:
    """What a display format says about the numbers, if they are dates or times."""
    if not display:
        return None
    if kind is Format.STATA:
        found = re.match(r"%-?(td|tc|d)", display)
        return _STATA["td" if found[1] == "d" else found[1]] if found else None
    names, clocks = (_SPSS_NAMES, _SPSS) if kind is Format.SPSS else (_SAS_NAMES, _SAS)
    # E8601DA10. carries digits inside its name; the width is what follows the last letter.
    name = re.sub(r"[0-9]*(\.[0-9]*)?$", "", display.upper())
    return next((clocks[group] for group, members in names.items() if name in members), None)


def to_moments(values: Array, when: Clock) -> pa.Array | None:
    """Numbers (NaN: missing) as dates or times; None if any would not come back the same."""
    gone = np.isnan(values)
    known = np.where(gone, 0.0, values)
    if np.abs(known).max(initial=0.0) > 2.0**53:
        return None
    whole = np.floor(known)
    part = np.rint((known - whole) * when.step)
    if not np.array_equal(whole + part / when.step, known):
        return None
    limit = (_LAST - when.zero) // when.step
    if whole.max(initial=0.0) > limit or whole.min(initial=0.0) < (_FIRST - when.zero) // when.step:
        return None
    ticks = whole.astype(np.int64) * when.step + part.astype(np.int64) + when.zero
    if when.kind == "date":
        if (ticks[~gone] % _DAY).any():
            return None
        return pa.array((ticks // _DAY).astype(np.int32), mask=gone).cast(pa.date32())
    if when.kind == "time":
        if ((ticks[~gone] < 0) | (ticks[~gone] >= _DAY)).any():
            return None
        return pa.array(ticks, mask=gone).cast(pa.time64("us"))
    return pa.array(ticks, mask=gone).cast(pa.timestamp("us"))


def clock_for(kind: Format, column: pa.DataType) -> Clock | None:
    """The clock a format uses for an Arrow type."""
    clocks = _SPSS if kind is Format.SPSS else {"date": _STATA["td"], "timestamp": _STATA["tc"]}
    if pa.types.is_date(column):
        return clocks["date"]
    if pa.types.is_timestamp(column):
        return clocks["timestamp"]
    return clocks.get("time") if pa.types.is_time(column) else None


def from_moments(name: str, column: pa.Array, when: Clock, changes: list[str]) -> Array:
    """Dates or times as numbers, NaN where missing."""
    gone = column.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_timestamp(column.type) and column.type.tz:
        changes.append(f"column {name!r}: times written in UTC, without their zone.")
        column = column.cast(pa.timestamp(column.type.unit))
    unit = {"date": pa.date32(), "time": pa.time64("us")}.get(when.kind, pa.timestamp("us"))
    try:
        ticks = column.cast(unit).cast(pa.int32() if when.kind == "date" else pa.int64())
    except pa.ArrowInvalid:
        raise DataError(
            f"column {name!r} has times below a microsecond, which Stata and SPSS do not hold. Round "
            "them first."
        ) from None
    numbers = ticks.fill_null(0).to_numpy().astype(np.int64) * (_DAY if when.kind == "date" else 1)
    whole, part = np.divmod(numbers - when.zero, when.step)
    return np.asarray(np.where(gone, np.nan, whole.astype(np.float64) + part / when.step), dtype=np.float64)
