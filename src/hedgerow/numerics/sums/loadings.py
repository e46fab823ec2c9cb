"""Predictors made ready for sums with noise: whitened, and capped so that no record weighs too much."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array
from hedgerow.errors import SettingError
from hedgerow.numerics.triangular import ROWS
from hedgerow.threads import share_out

Places = NDArray[np.intp]
_LARGEST = 2.0**14  # norm of a record's loadings: their squares, in units of 2⁻¹⁶, stay within 64 bits
_CAPS = 25
_DEPENDENT = 1e-9  # of a column's length: what is left of one that the columns before it explain
_VANISHING = 1e-100  # a column below it is taken for zero
_TOO_NEAR = (
    "The predictors are so nearly collinear, or of such different sizes, that floating point cannot make "
    "them independent of each other. Remove or combine some, or rescale them."
)


def whiten(sizes: Array, records: int, factor: Callable[[Array, Places], Array]) -> Array:
    """A p × p basis with Q = X · basis, Q'Q/n = I; a column that those before it explain adds a zero column.

    `sizes` are the largest absolute values of X's columns, and `factor` gives the triangular factor of some,
    each divided by a number: columns are brought to size 1 first, so that no sum of squares overflows.
    """
    used = sizes > _VANISHING
    scale = np.where(used, sizes, np.inf)
    R = factor(scale, np.arange(len(scale)))
    lengths = np.linalg.norm(R, axis=0)
    kept = np.flatnonzero(np.diag(R) > _DEPENDENT * np.maximum(lengths, np.finfo(float).tiny))
    basis = np.zeros((len(scale), len(scale)))
    if kept.size < len(scale):
        R = factor(scale, kept)
    with np.errstate(over="ignore"):
        basis[np.ix_(kept, kept)] = np.sqrt(records) * np.linalg.inv(R)
        basis /= np.where(used, scale, 1.0)[:, None]
    if not np.isfinite(basis).all():
        raise SettingError(_TOO_NEAR)
    return np.asarray(basis)


def spreads_by_cap(
    rows: Array, *, order: int, summed: Array | None = None, norms: Array | None = None
) -> tuple[Array, Array, Array]:
    """Caps C to choose from, and at each the traces of M⁻¹S'v²SM⁻¹'/n and of C²M⁻¹M⁻¹'.

    Q: the rows; S: what is summed with residuals, Q unless given; v_i = min(1, C/‖s_i‖) in the norm of this
    order, or by the norms given, M = S'diag(v)Q/n. The first trace scales the sampling variance of a line
    solved for from S'diag(v)y, the second that of noise in proportion to C.
    """
    summed = rows if summed is None else summed
    norms = np.linalg.norm(rows, ord=order, axis=1) if norms is None else norms
    positive = norms[norms > 0]
    if positive.size == 0:
        return np.ones(1), np.zeros(1), np.zeros(1)
    least, most = np.minimum(np.quantile(positive, [0.02, 1.0]), _LARGEST)
    caps = np.asarray(np.geomspace(float(least), float(most), _CAPS), dtype=np.float64)
    kept = np.any(rows != 0, axis=0)
    used, summed = rows[:, kept], summed[:, kept]
    sampling, noisy = np.empty(_CAPS), np.empty(_CAPS)
    for place, cap in enumerate(caps):
        V = summed * cap_weights(norms, float(cap))[:, None]
        inverse = np.linalg.pinv(V.T @ used / len(rows))
        sampling[place] = np.trace(inverse @ (V.T @ V / len(rows)) @ inverse.T)
        noisy[place] = cap**2 * np.trace(inverse @ inverse.T)
    return caps, sampling, noisy


def cap_loadings(
    matrix: Array, basis: Array, cap: float, *, order: int, unit: float, weights: Array | None = None
) -> NDArray[np.int64]:
    """V: v_i q_ij in whole units, n × p; v as given, or min(1, C/‖q_i‖)."""
    loadings = np.empty(matrix.shape, dtype=np.int64)

    def fill(first: int) -> None:
        Q = matrix[first : first + ROWS] @ basis
        if weights is None:
            v = cap_weights(np.linalg.norm(Q, ord=order, axis=1), cap)
        else:
            v = weights[first : first + ROWS]
        units = np.rint(Q * v[:, None] / unit)
        # Said of public numbers, before any outcome is read: beyond it a price would miss what is summed.
        if not (np.abs(units) <= _LARGEST / unit).all():
            raise SettingError(_TOO_NEAR)
        loadings[first : first + ROWS] = units

    share_out(fill, range(0, len(matrix), ROWS))
    return loadings


def cap_weights(norms: Array, cap: float) -> Array:
    """v_i = min(1, C/‖q_i‖)."""
    return np.asarray(np.minimum(1.0, cap / np.maximum(norms, cap / 2)))
