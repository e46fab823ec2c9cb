"""Where a model's outcome may lie, and the values of a column's type that keep to it.

    >>> positive, whole = Support(0.0, above=True), Grid.of(nw.Int16())
    >>> positive.within(np.array([0.3, 2.6]), whole).tolist()
    [1.0, 3.0]

A copy is written in the type that the owner declares of the column, or else in that of the confidential
column. Rounding into that type must not leave the support: a duration of 0.3 becomes 1 in a column of whole
numbers, not a zero that its family rules out.
"""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Literal, get_args

import narwhals as nw
import numpy as np

from hedgerow.arrays import Array, PerRecord
from hedgerow.errors import SettingError, format_value, is_count, is_finite

_DIGITS = 15  # decimal digits that a float64 holds
_YEARS = {"ns": ("1678-01-01", "2261-12-31"), "other": ("0001-01-01", "9999-12-31")}  # that types have


def count_days(day: str) -> float:
    """A date as days since 1970-01-01."""
    return float(np.datetime64(day, "D").astype(np.int64))


@dataclass(frozen=True)
class Grid:
    """The values of a numeric type: multiples of `step` up to ±`most`, or floating-point numbers."""

    least: float
    most: float
    step: float | None = None
    kind: Any = np.float64

    @classmethod
    def of(cls, dtype: Any) -> "Grid":
        """The values of a column's type."""
        if dtype.is_integer():
            limits: Any = np.iinfo(str(dtype).lower())
            # The largest int64 is not a float64: step inside, so that the cast cannot wrap.
            top = np.nextafter(float(limits.max), 0.0) if limits.bits == 64 else float(limits.max)
            return cls(float(limits.min), float(top), 1.0)
        if isinstance(dtype, nw.Decimal):
            step, size = 10.0**-dtype.scale, 10.0**dtype.precision
            most = step * (size - 1 if dtype.precision <= _DIGITS else size * (1 - 1e-15))
            return cls(-most, most, step)
        if isinstance(dtype, nw.Date | nw.Datetime):  # whole days
            first, last = _YEARS["ns" if getattr(dtype, "time_unit", "") == "ns" else "other"]
            return cls(count_days(first), count_days(last), 1.0)
        kind = np.float32 if dtype == nw.Float32 else np.float64
        most = float(np.finfo(kind).max)
        return cls(-most, most, None, kind)

    def nearest(self, values: Array) -> Array:
        """The nearest values of the type."""
        inside = np.clip(values, self.least, self.most)
        if self.step is None:
            return np.asarray(inside.astype(self.kind), dtype=np.float64)
        # What is rounded to zero from below is zero, not -0.0.
        return np.asarray(np.rint(inside / self.step) * self.step + 0.0, dtype=np.float64)

    def first(self, end: float, *, above: bool) -> float:
        """The least value of the type from an end up, or above it."""
        if self.step is None:
            with np.errstate(over="ignore"):
                near = float(self.kind(end))  # in 32 bits too 0.1 is 0.1
            return self.after(near) if above else near
        whole = end / self.step
        if np.isclose(whole, np.rint(whole), rtol=1e-12, atol=0):
            whole = np.rint(whole)  # 0.07 is seven hundredths, although 0.07/0.01 is above 7
        return float((np.floor(whole) + 1 if above else np.ceil(whole)) * self.step)

    def after(self, value: float) -> float:
        """The next value of the type."""
        if self.step is not None:
            return float((np.rint(value / self.step) + 1) * self.step)
        # From zero on to a normal number: smaller ones count as zero in some arithmetic.
        return float(np.nextafter(self.kind(value), self.kind(np.inf)) if value else np.finfo(self.kind).tiny)


@dataclass(frozen=True)
class Support:
    """Between two ends, which are left out where `above` and `below` say so, and at a spike."""

    lower: float = -np.inf
    upper: float = np.inf
    above: bool = False
    below: bool = False
    spike: float | None = None

    def within(self, values: PerRecord, grid: Grid) -> PerRecord:
        """For each value the nearest of a type's values in the support.

        Values at the spike stay there, and no other value moves onto it.
        """
        # Added to zero: an end at -0.0 would be written so.
        first = 0.0 + max(grid.first(self.lower, above=self.above), grid.least)
        last = 0.0 + min(-grid.first(-self.upper, above=self.below), grid.most)
        sides = [(first, last)]
        if self.spike is not None:
            spike = grid.first(self.spike, above=False)
            if grid.step is not None and not np.isclose(spike, self.spike, rtol=1e-12, atol=0):
                raise SettingError(
                    f"The spike at {self.spike!r} is no value of the outcome's column, whose type is too "
                    "coarse. Convert the column to a floating-point type."
                )
            sides = [(first, min(last, -grid.after(-spike))), (max(first, grid.after(spike)), last)]
        sides = [(low, high) for low, high in sides if low <= high]
        if not sides:
            raise SettingError(
                f"The type of the outcome's column has no value {'above' if self.above else 'from'} "
                f"{self.lower!r} {'and below' if self.below else 'to'} {self.upper!r}. Convert the column to "
                "a floating-point type, or declare other ends."
            )
        near = grid.nearest(values)
        if self.spike is None:
            return np.clip(near, first, last)
        apart = np.where(values < self.spike, np.clip(near, *sides[0]), np.clip(near, *sides[-1]))
        return np.where(values == self.spike, spike, apart)


ANYWHERE = Support()


def is_day(text: str) -> bool:
    """Whether a text is a date as copies write it."""
    try:
        return str(np.datetime64(text, "D")) == text and text[:4] >= "0001"
    except ValueError:
        return False


Kind = Literal["number", "integer", "date"]


@dataclass(frozen=True)
class Declared:
    """What the owner declares of a column's values without looking at them; copies are written accordingly.

        >>> money = Declared("number", decimal_places=2, range_min=0)
        >>> money.nearest(np.array([-3.0, 2.718])).tolist()
        [0.0, 2.72]
        >>> Declared("integer", multiple_of=100).nearest(np.array([149.0, 1951.0])).tolist()
        [100.0, 2000.0]
        >>> Declared("date", range_min="1970-01-05").nearest(np.array([2.7, 9.2])).tolist()  # days
        [4.0, 9.0]

    Copies are rounded and moved into the limits, which is post-processing. The confidential values are not
    checked against it. The names are those of SDV's metadata; `multiple_of` is JSON Schema's.
    """

    type: Kind
    decimal_places: int | None = None
    range_min: float | str | None = None  # a date as text: "2015-01-01"
    range_max: float | str | None = None
    multiple_of: float | None = None

    def __post_init__(self) -> None:
        if self.type not in get_args(Kind):
            raise SettingError(
                f"Declared: type must be 'number', 'integer' or 'date', got {format_value(self.type)}."
            )
        digits = self.decimal_places
        if digits is not None and (
            self.type != "number" or not is_count(digits) or not 0 <= digits <= _DIGITS
        ):
            raise SettingError(
                f"Declared: decimal_places must be a whole number from 0 to {_DIGITS}, for type 'number', "
                f"got {format_value(digits)} for '{self.type}'."
            )
        step = self.multiple_of
        if step is not None and (
            digits is not None
            or self.type == "date"
            or not is_finite(step)
            or step <= 0
            or (self.type == "integer" and step != round(step))
        ):
            raise SettingError(
                "Declared: multiple_of must be a positive number, a whole one for type 'integer', and not "
                f"together with decimal_places, got {format_value(step)} for '{self.type}'. Two decimals are "
                "decimal_places=2."
            )
        ends = self.range_min, self.range_max
        if self.type == "date":
            if not all(end is None or (isinstance(end, str) and is_day(end)) for end in ends):
                raise SettingError(
                    "Declared: range_min and range_max of type 'date' are dates such as '2015-01-31', got "
                    f"{format_value(self.range_min)} and {format_value(self.range_max)}."
                )
        elif not all(end is None or is_finite(end) for end in ends):
            raise SettingError("Declared: range_min and range_max must be finite. Leave out what is unknown.")
        ends = self.ends
        if ends[0] is not None and ends[1] is not None and ends[0] >= ends[1]:
            raise SettingError(
                f"Declared: range_min must be below range_max, got {format_value(self.range_min)} and "
                f"{format_value(self.range_max)}. Give the lower one first."
            )
        self.nearest(np.zeros(0))  # refuses limits between which there is no value

    @property
    def dtype(self) -> Any:
        """The type of the column."""
        return {"integer": nw.Int64(), "number": nw.Float64(), "date": nw.Date()}[self.type]

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The limits as numbers: dates as days."""
        low, high = (
            count_days(end) if isinstance(end, str) else end for end in (self.range_min, self.range_max)
        )
        return low, high

    @property
    def step(self) -> float | None:
        """What all values are multiples of; None for floating-point numbers."""
        if self.decimal_places is not None:
            return 10.0**-self.decimal_places
        return Grid.of(self.dtype).step if self.multiple_of is None else float(self.multiple_of)

    def nearest(self, values: PerRecord, support: Support = ANYWHERE) -> PerRecord:
        """For each value the nearest of those declared that lies in the support."""
        low, high = self.ends
        if low is not None and low > support.lower:
            support = replace(support, lower=low, above=False)
        if high is not None and high < support.upper:
            support = replace(support, upper=high, below=False)
        grid, step, digits = Grid.of(self.dtype), self.multiple_of, self.decimal_places
        if digits is not None:
            step = 10.0**-digits
        if step is None:
            return support.within(values, grid)
        # Beyond 2^53 steps floating-point numbers are coarser than the steps.
        most = min(grid.most, step * 2.0**53)
        near = support.within(values, Grid(-most, most, step))
        if digits is None:  # as many as the step is written with: 0.05 has two
            digits = max(0, -int(Decimal(repr(float(step))).normalize().as_tuple().exponent))
        return np.round(near, digits)

    def __str__(self) -> str:
        numbers = {
            "decimal places": self.decimal_places,
            "at least": self.range_min,
            "at most": self.range_max,
            "multiple of": self.multiple_of,
        }
        given = [
            f"{name} {value if isinstance(value, str) else format(value, '.15g')}"
            for name, value in numbers.items()
            if value is not None
        ]
        return ", ".join([f"type {self.type}", *given])
