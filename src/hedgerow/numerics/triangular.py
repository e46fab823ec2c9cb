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

ROWS = 8_192  # rows factored at a time: they stay in the cache, and continuing costs next to nothing


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
    if np.any(np.asarray(power) < 0.0):
        raise SettingError(
            "power must not be negative: it is the exponent of a record's likelihood. Clip it at 0."
        )
    power = np.broadcast_to(np.asarray(power, dtype=np.float64), y.shape)

    def factor(rows: slice) -> Array:
        return leaf_factor(Z[rows], y[rows], power[rows], start=None if rows.start else start)

    leaves = leaves_of(y.size) or [slice(0, 0)]
    return merge_factors(share_out(factor, leaves, worth=len(leaves) > 1))


def leaf_factor(Z: Array, y: Array, power: Array, *, start: Array | None = None) -> Array:
    """The same of one leaf; the first one continues from `start`."""
    width = Z.shape[1] + 1
    R = np.zeros((width, width)) if start is None else np.asarray(start, dtype=np.float64)
    for first in range(0, y.size, ROWS):
        block = slice(first, first + ROWS)
        root = np.sqrt(power[block])
        # The factor so far goes first into the same factorisation: one QR a block instead of two.
        rows = np.empty((width + root.size, width))
        rows[:width] = R
        np.multiply(Z[block], root[:, None], out=rows[width:, :-1])
        np.multiply(y[block], root, out=rows[width:, -1])
        R = _factor(rows)
    return R


def merge_factors(factors: Iterable[Array]) -> Array:
    """The factor of all leaves from theirs, merged from the first to the last."""
    return reduce(lambda merged, one: _factor(np.vstack([merged, one])), factors)


@one_blas_thread()
def leverages(Z: Array, R: Array) -> PerRecord:
    """z_i'(R'R)⁻¹z_i for the leading p × p part of R, streamed; times the power, near 1 for a lone record."""
    columns = Z.shape[1]
    triangle = np.ascontiguousarray(R[:columns, :columns])
    if np.any(np.diag(triangle) == 0.0):
        raise SettingError(
            f"The {columns} columns of the design are linearly dependent, so leverages are undefined. "
            "Drop a column or use a proper prior."
        )
    # One small inverse and a product: LAPACK's triangular solve is ten times slower with many short columns.
    inverse = solve_triangular(triangle, np.eye(columns), check_finite=False)
    result = np.empty(Z.shape[0])

    def measure(rows: slice) -> None:
        for first in range(rows.start, rows.stop, ROWS):
            block = slice(first, min(first + ROWS, rows.stop))
            scaled = Z[block] @ inverse
            np.einsum("ik,ik->i", scaled, scaled, out=result[block])

    leaves = leaves_of(len(Z))
    share_out(measure, leaves, worth=len(leaves) > 1)
    return result
