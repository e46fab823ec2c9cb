"""The axes of charts: where a value stands, where an axis ends, which round values are marked on it.

>>> axis = Axis(kind="log")
>>> [word for _, word in find_ticks(axis, find_ends(axis, [1.0, 30.0]))]
['1', '2', '5', '10', '20']
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Point = tuple[float, float]
# Of an axis up and across: between ticks that are not equally far from each other.
APART = 0.09, 0.13
_FAR = 1e300  # beyond it round values and differences leave the range of doubles


@dataclass(frozen=True)
class Axis:
    """What an axis measures, and how: linear, by logarithms, or with `knots` equally far apart.

    Where `low` and `high` are not given, marks decide. `ticks` replaces round numbers by places with words.
    """

    label: str = ""
    kind: Literal["linear", "log", "knots"] = "linear"
    low: float | None = None
    high: float | None = None
    knots: Sequence[float] = ()
    ticks: Mapping[float, str] | None = None
    zero: bool = False  # 0 is on it

    def place(self, value: float) -> float:
        """Where a value stands, before the axis is stretched to the picture."""
        value = min(max(value, -_FAR), _FAR)
        if self.kind == "log":
            return math.log10(max(value, 1e-300))
        if self.kind == "knots":
            spot = min(max(bisect_right(self.knots, value) - 1, 0), len(self.knots) - 2)
            first, second = self.knots[spot], self.knots[spot + 1]
            return spot + min(max((value - first) / ((second - first) or 1.0), 0.0), 1.0)
        return value


def find_ends(axis: Axis, values: Sequence[float]) -> Point:
    """Where an axis begins and ends, with some room, in its own places."""
    if axis.kind == "knots":
        return 0.0, float(len(axis.knots) - 1)
    known = [value for value in values if math.isfinite(value) and (axis.kind != "log" or value > 0)]
    known += [0.0] * (axis.zero and axis.kind == "linear")
    low = axis.low if axis.low is not None else min(known, default=0.0)
    high = axis.high if axis.high is not None else max(known, default=1.0)
    low, high = axis.place(low), axis.place(high)
    if high <= low:
        low, high = low - 0.5, high + 0.5
    room = 0.04 * (high - low)
    below = 0.0 if axis.low is not None or (axis.zero and low == 0) else room
    return low - below, high + (0.0 if axis.high is not None else room)


def find_ticks(axis: Axis, ends: Point, apart: float = APART[0]) -> list[tuple[float, str]]:
    """Round values within the ends, with their words."""
    if axis.ticks is not None:
        return list(axis.ticks.items())
    low, high = ends
    if axis.kind == "linear":
        step = _round_step((high - low) / 6)
        first = math.ceil(low / step - 1e-9)
        places = [step * k for k in range(first, math.floor(high / step + 1e-9) + 1)]
        return [(value, _word(value)) for value in places]
    if axis.kind == "log":
        ends = 10.0**low, 10.0 ** min(high, math.log10(_FAR))
    else:
        ends = max(axis.knots[0], -_FAR), min(axis.knots[-1], _FAR)
    largest = max(abs(end) for end in ends)
    smallest = min(abs(end) for end in ends) if min(ends) > 0 else largest / 1e6
    powers = range(math.floor(math.log10(max(smallest, 1e-300))), math.ceil(math.log10(largest or 1)) + 1)
    # What matters most first: zero, then powers of ten, the large ones before the small; each keeps its room.
    sizes = [step * 10.0**power for step in (1, 2, 5) for power in reversed(powers)]
    wanted = [0.0, *(value for size in sizes for value in (size, -size))] if min(ends) <= 0 else sizes
    thin, taken = [], list[float]()
    for value in wanted:
        spot = (axis.place(value) - low) / (high - low)
        if ends[0] <= value <= ends[1] and all(abs(spot - other) > apart for other in taken):
            thin.append(value)
            taken.append(spot)
    if len(thin) < 3:  # not far apart: equal steps say more
        step, even, last = _round_step((ends[1] - ends[0]) / 6), list[float](), -math.inf
        for value in (step * k for k in range(math.ceil(ends[0] / step), math.floor(ends[1] / step) + 1)):
            spot = (axis.place(value) - low) / (high - low)
            if spot - last > apart:
                even.append(value)
                last = spot
        thin = max(thin, even, key=len)
    return [(value, _word(value)) for value in sorted(thin)]


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    return next((step * power for step in (1, 2, 2.5, 5) if step * power >= rough), 10 * power)


def _word(value: float) -> str:
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(value) >= size:
            return f"{value / size:g}{letter}" if abs(value) < 1e15 else f"{value:.2g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{float(f'{value:.6g}'):zg}"
