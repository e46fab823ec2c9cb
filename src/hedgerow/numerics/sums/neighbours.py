"""Groups of records with neighbouring fitted values, found from some of them and the same for all leaves.

Records stand in the order of their fitted values, and of equal ones in that of their numbers. A group begins
at a place of this order, so that each leaf can say by itself which of its records are in it.

    >>> import numpy as np
    >>> cuts = cut_evenly(np.array([1.0, 1.0, 2.0, 3.0]), np.array([1, 3, 2, 0]), groups=2)
    >>> order, starts = split(np.array([3.0, 1.0, 2.0, 1.0]), 0, cuts)
    >>> order.tolist(), starts.tolist()
    ([1, 3, 2, 0], [0, 2])
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array

Places = NDArray[np.intp]


class Cuts(NamedTuple):
    """Where groups begin, after the first: a fitted value, and a number among records that share it."""

    values: Array
    numbers: Places


def cut_evenly(fitted: Array, numbers: Places, *, groups: int) -> Cuts:
    """Groups of as many of these records each, which stand in order."""
    starts = np.linspace(0, len(fitted), min(groups, len(fitted)), endpoint=False).astype(int)[1:]
    return Cuts(fitted[starts], numbers[starts])


def cut_narrowly(fitted: Array, numbers: Places, counted: Array, *, groups: int) -> Cuts:
    """Narrow groups that hold few: their measure is half the range of fitted values, half the count.

    `counted` is 1 for each of these records, or 0 for one that says no more than how far fitted values go.
    """
    steps = np.append(0.0, np.diff(fitted)) / max(fitted[-1] - fitted[0], 1e-300)
    measure = np.cumsum(steps + counted / counted.sum()) / (2 + 1e-9)
    measure *= min(groups, 2 * len(fitted))
    whole = np.floor(measure)
    values, places = list[float](), list[int]()
    for start in (np.flatnonzero(np.diff(whole)) + 1).tolist():
        low, high = fitted[start - 1], fitted[start]
        # Of a long way between two of these records others may have some: there is a group for each step.
        for passed in np.arange(whole[start - 1] + 1, whole[start]):
            share = (passed - measure[start - 1]) / (measure[start] - measure[start - 1])
            if low < (between := low + share * (high - low)) < high:
                values.append(between)
                places.append(0)
        values.append(high)
        places.append(int(numbers[start]))
    return Cuts(np.array(values, dtype=np.float64), np.array(places, dtype=np.intp))


def split(fitted: Array, first: int, cuts: Cuts) -> tuple[Places, Places]:
    """Consecutive records, from number `first` on: their places in order, and where in it each group starts.

    A group of which there are none starts where the next one does.
    """
    order = np.argsort(fitted, kind="stable")
    there = fitted[order]
    starts = np.searchsorted(there, cuts.values, side="left")
    ends = np.searchsorted(there, cuts.values, side="right")
    for cut in np.flatnonzero(ends > starts):
        equal = order[starts[cut] : ends[cut]] + first
        starts[cut] += np.searchsorted(equal, cuts.numbers[cut])
    return order, np.concatenate(([0], starts)).astype(np.intp)
