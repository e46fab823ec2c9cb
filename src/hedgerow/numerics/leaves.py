"""Records in leaves: fixed blocks of consecutive records, over which every sum runs in a fixed order.

    >>> [(rows.start, rows.stop) for rows in leaves_of(300_000)]
    [(0, 131072), (131072, 262144), (262144, 300000)]

What is computed of a leaf depends on its records and on a few numbers about all; what is said of all is a
merge, a sum or an extreme of what leaves say, taken in their order. So results are the same whether a table
is held in memory, read leaf by leaf from a disk or spread over a cluster, to the last digit.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Matrix, PerRecord
from hedgerow.threads import one_blas_thread, share_out

LEAF = 131_072  # records: as many as one block of a random stream has numbers (`randomness`)


def leaves_of(records: int) -> list[slice]:
    """The rows of each leaf."""
    return [slice(first, min(first + LEAF, records)) for first in range(0, records, LEAF)]


def sum_leaves(values: Array, among: NDArray[np.bool_] | None = None) -> float:
    """Σ over all records: the sums of the leaves, one after the other.

    Of some records only, `among` says for all records of the table which these are.
    """
    if among is None:
        return add_in_order([float(values[rows].sum()) for rows in leaves_of(len(values))])
    ends = np.cumsum([among[rows].sum() for rows in leaves_of(len(among))])
    return add_in_order([float(part.sum()) for part in np.split(values, ends[:-1])])


def add_in_order(sums: Sequence[float]) -> float:
    """The sum of what each leaf summed to, from the first to the last."""
    total = 0.0
    for one in sums:
        total += one
    return float(np.float64(total))


def apply(function: Callable[..., PerRecord], *values: PerRecord) -> PerRecord:
    """A function of each record's own numbers, leaf by leaf on all cores: what it makes fits the cache."""
    records = len(values[0])
    if records <= LEAF:
        return function(*values)
    result = np.empty(records)

    def fill(rows: slice) -> None:
        result[rows] = function(*(each[rows] for each in values))

    share_out(fill, leaves_of(records))
    return result


@one_blas_thread()
def multiply(Z: Matrix, vector: Array) -> PerRecord:
    """Z b leaf by leaf: how a matrix product rounds may depend on how many rows it has."""
    product = np.empty(len(Z))
    share_out(
        lambda rows: np.matmul(Z[rows], vector, out=product[rows]), leaves_of(len(Z)), worth=len(Z) > LEAF
    )
    return product


@dataclass(frozen=True, eq=False, repr=False)
class Columns:
    """The smallest and the largest value of each column of a matrix, NaN where it has one, and the sum."""

    low: Array
    high: Array
    total: Array

    @property
    def largest(self) -> Array:
        """The largest absolute value of each column."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def reach(self, means: Array) -> Array:
        """How far a value is from its column's mean, at most."""
        return np.maximum(np.abs(self.low - means), np.abs(self.high - means))


def summarize_columns(Z: Matrix) -> Columns:
    """Extremes and sums of the columns of a matrix."""
    return merge_columns(share_out(lambda rows: summarize_leaf(Z[rows]), _whole(Z), worth=len(Z) > LEAF))


def summarize_leaf(Z: Matrix) -> Columns:
    """Extremes and sums of the columns of one leaf."""
    with np.errstate(all="ignore"):
        found = [(column.min(), column.max(), column.sum()) for column in _by_column(Z)]
    return Columns(*np.array(found, dtype=np.float64).reshape(-1, 3).T)


def merge_columns(parts: Iterable[Columns]) -> Columns:
    """The extremes and sums of all leaves from theirs, merged from the first to the last."""
    return reduce(
        lambda all_, one: Columns(
            np.minimum(all_.low, one.low), np.maximum(all_.high, one.high), all_.total + one.total
        ),
        parts,
    )


def sum_powers(Z: Matrix, means: Array, reach: Array) -> Array:
    """Σ u² and Σ u⁴ of each column, u = (z − mean)/reach: of numbers up to 1, so that nothing overflows."""
    parts = share_out(lambda rows: sum_leaf_powers(Z[rows], means, reach), _whole(Z), worth=len(Z) > LEAF)
    return np.asarray(reduce(np.add, parts))


def sum_leaf_powers(Z: Matrix, means: Array, reach: Array) -> Array:
    """Σ u² and Σ u⁴ of one leaf; leaves are added from the first to the last."""
    sums = np.empty((2, Z.shape[1]))
    with np.errstate(all="ignore"):
        for place, column in enumerate(_by_column(Z)):
            square = ((column - means[place]) / reach[place]) ** 2
            sums[:, place] = square.sum(), (square**2).sum()
    return sums


def _whole(Z: Matrix) -> list[slice]:
    return leaves_of(len(Z)) or [slice(0, 0)]


def _by_column(Z: Matrix) -> Iterator[Array]:
    """The columns one by one, each in memory of its own: eight at a time share what is read."""
    for first in range(0, Z.shape[1], 8):
        yield from np.ascontiguousarray(Z[:, first : first + 8].T)


def interpolate(low: NDArray[Any], high: NDArray[Any], share: NDArray[Any]) -> NDArray[Any]:
    """Between two order statistics, digit for digit as `np.quantile` does it."""
    step = np.subtract(high, low)
    return np.where(share >= 0.5, high - step * (1 - share), low + step * share)
