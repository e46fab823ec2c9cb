"""Triangular factors of weighted rows, streamed and merged (docs/maths.md, "Exact models").

The R factor of [√A Z, √A y] holds what the conjugate posterior needs: R'R is the matrix of weighted
sums of squares, and the last diagonal entry is the root of the residual sum of squares, which summed
squares would lose to cancellation.
"""

from collections.abc import Iterable
from functools import reduce

import numpy as np
from scipy.linalg import solve_triangular

from hedgerow.arrays import Array, PerRecord
from hedgerow.errors import SettingError
from hedgerow.numerics.leaves import leaves_of
from hedgerow.threads import one_blas_thread, share_out

_CELLS = 1 << 17  # numbers factored in one call: the memory of larger ones is asked for anew each time
ROWS = 8_192  # rows factored at a time: they stay in the cache, and continuing costs next to nothing
# OpenBLAS has one lock for the scratch memory of all threads, and does without for vectors this short: on 16
# cores narrow matrices are factored seven times as fast. Of wide ones too many rows would be left to merge.
_SHORT_ROWS, _NARROW = 128, 8


def _factor(rows: Array) -> Array:
    """The upper-triangular factor with a diagonal that is not negative, square whatever the row count."""
    width = rows.shape[1]
    R: Array = np.asarray(np.linalg.qr(rows, mode="r"), dtype=np.float64)
    if R.shape[0] < width:
        R = np.vstack([R, np.zeros((width - R.shape[0], width))])
    return np.asarray(R * np.where(np.diag(R) < 0.0, -1.0, 1.0)[:, None], dtype=np.float64)


@one_blas_thread()
def weighted_factor(Z: Array, y: Array, power: Array | float = 1.0, *, start: Array | None = None) -> Array:
    """The (p+1) × (p+1) upper-triangular R of [√A Z, √A y], A = diag(power), streamed over blocks of rows.

    `start` is a factor to continue from. A record of power 0 leaves no trace, one of power 2 counts twice.
    """
    power = np.broadcast_to(np.asarray(power, dtype=np.float64), y.shape)

    def factor(rows: slice) -> Array:
        if rows.stop and power[rows].min() < 0.0:
            raise SettingError(
                "power must not be negative: it is the exponent of a record's likelihood. Clip it at 0."
            )
        return leaf_factor(Z[rows], y[rows], power[rows], start=None if rows.start else start)

    leaves = leaves_of(y.size) or [slice(0, 0)]
    return merge_factors(share_out(factor, leaves, worth=len(leaves) > 1))


def leaf_factor(Z: Array, y: Array, power: Array, *, start: Array | None = None) -> Array:
    """The factor of one leaf of rows; the first one continues from `start`."""
    width = Z.shape[1] + 1
    above = [np.zeros((width, width)) if start is None else np.asarray(start, dtype=np.float64)]
    # Whole blocks are factored many at a time, in one call that keeps no other thread waiting; their factors
    # then go with what is left into one more.
    block = _SHORT_ROWS if width <= _NARROW else ROWS
    whole = y.size // block * block if y.size > ROWS else 0
    step = max(1, _CELLS // (block * width)) * block
    for first in range(0, whole, step):
        some = slice(first, min(first + step, whole))
        weighted = _weigh_rows(Z[some], y[some], power[some], 0)
        factors = np.asarray(np.linalg.qr(weighted.reshape(-1, block, width), mode="r"), dtype=np.float64)
        above.append(factors.reshape(-1, width))
    R = np.concatenate(above)
    rows = _weigh_rows(Z[whole:], y[whole:], power[whole:], len(R))
    rows[: len(R)] = R
    return _factor(rows)


def _weigh_rows(Z: Array, y: Array, power: Array, above: int) -> Array:
    """[√A Z, √A y] below so many rows that are still empty."""
    root = np.sqrt(power)
    rows = np.empty((above + root.size, Z.shape[1] + 1))
    np.multiply(Z, root[:, None], out=rows[above:, :-1])
    np.multiply(y, root, out=rows[above:, -1])
    return rows


def merge_factors(factors: Iterable[Array]) -> Array:
    """The factor of all leaves from theirs, merged from the first to the last."""
    return reduce(lambda merged, one: _factor(np.vstack([merged, one])), factors)


@one_blas_thread()
def leverages(Z: Array, R: Array) -> PerRecord:
    """z_i'(R'R)⁻¹z_i for the leading p × p part of R, streamed; times the power, near 1 for a lone record."""
    inverse = invert_leading(R, Z.shape[1])
    result = np.empty(Z.shape[0])

    def measure(rows: slice) -> None:
        result[rows] = leaf_leverages(Z[rows], inverse)

    leaves = leaves_of(len(Z))
    share_out(measure, leaves, worth=len(leaves) > 1)
    return result


def leaf_leverages(Z: Array, inverse: Array) -> PerRecord:
    """The leverages of one leaf of rows, from the inverse of R."""
    result = np.empty(len(Z))
    for first in range(0, len(Z), 4 * ROWS):
        block = slice(first, first + 4 * ROWS)
        scaled = Z[block] @ inverse
        np.einsum("ik,ik->i", scaled, scaled, out=result[block])
    return result


def invert_leading(R: Array, columns: int) -> Array:
    """The inverse of the leading columns × columns part of R."""
    triangle = np.ascontiguousarray(R[:columns, :columns])
    if np.any(np.diag(triangle) == 0.0):
        raise SettingError(
            f"The {columns} columns of the design are linearly dependent, so leverages are undefined. "
            "Drop a column or use a proper prior."
        )
    # One small inverse and a product: LAPACK's triangular solve is ten times slower with many short columns.
    return np.asarray(solve_triangular(triangle, np.eye(columns), check_finite=False))
