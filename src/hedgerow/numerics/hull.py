"""Which draws can decide a minimum (docs/maths.md, "Scoring").

f and f − log γ are concave in the natural parameters (β/σ², 1/σ²), so their minimum over draws is taken
at a vertex of the convex hull of the draws. Draws deep inside the hull can be left out.

"Deep inside" carries a certificate. Let a draw have distance δ to every facet, in coordinates where the
hull has diameter D, and let g be concave with minimum m and maximum m + w over the vertices. The line
from the vertex of the maximum through the draw leaves the hull at least δ beyond it, where g ≥ m, hence
g(draw) ≥ m + w·δ/D. As long as w·δ/D exceeds what rounding can do, a scan of the kept draws
returns the very number a scan of all draws would.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hedgerow.arrays import Array, PerRecord

MOST_COLUMNS = 3  # in five dimensions and more nearly every draw is a vertex, and hulls are slow
_LEAST_DRAWS = 100
_DEPTH = 1e-3  # in standard deviations of the cloud of draws; nearer to a facet than this is kept
_LARGEST_SHARE = 0.5
_EPS = float(np.finfo(np.float64).eps)


Index: TypeAlias = np.ndarray[tuple[int], np.dtype[np.intp]]


@dataclass(frozen=True, eq=False)
class Deciding:
    """The draws that may decide a minimum, and δ/D for the rest."""

    index: Index
    margin: float


def find_deciding(beta: Array, sigma: Array) -> Deciding | None:
    """The deciding draws, or None where leaving draws out is not safe or does not pay."""
    draws, columns = beta.shape
    if columns > MOST_COLUMNS or draws < _LEAST_DRAWS:
        return None
    from scipy.spatial import ConvexHull, QhullError  # slow to import, and needed for large tables only

    precision = sigma**-2.0
    # Moving the outcome by z'β̄ changes the natural parameters linearly and spares them a cancellation.
    middle = beta.mean(axis=0)
    points = np.column_stack([(beta - middle) * precision[:, None], precision])
    with np.errstate(all="ignore"):
        centred = points - points.mean(axis=0)
        spread = centred.std(axis=0)
        scaled = centred / spread
        if not np.all(np.isfinite(scaled)):
            return None
        _, sizes, axes = np.linalg.svd(scaled, full_matrices=False)
        rounding = 8.0 * _EPS * precision.max() * np.append(np.abs(beta).max(axis=0), 1.0) / spread
        # Whitened, rounding must stay far below the depth that is asked for: flat clouds are not pruned.
        stretch = np.sqrt(draws) / sizes[-1]
        if not np.linalg.norm(rounding) * stretch < 1e-3 * _DEPTH:
            return None
        white = scaled @ axes.T * (np.sqrt(draws) / sizes)
    try:
        hull = ConvexHull(white)
    except QhullError:
        return None
    if hull.vertices.size > _LARGEST_SHARE * draws:
        return None
    nearest = np.full(draws, -np.inf)
    for first in range(0, len(hull.equations), 512):
        facets = hull.equations[first : first + 512]
        np.maximum(nearest, (white @ facets[:, :-1].T + facets[:, -1]).max(axis=1), out=nearest)
    keep = nearest > -_DEPTH
    keep[hull.vertices] = True
    if keep.sum() > _LARGEST_SHARE * draws:
        return None
    diameter = 2.0 * float(np.linalg.norm(white, axis=1).max())
    # Half the depth: Qhull's facets and the whitening are themselves rounded.
    return Deciding(np.flatnonzero(keep), 0.5 * float(-nearest[~keep].max()) / diameter)


def rounding_bound(Z: Array, y: Array, beta: Array, sigma: Array) -> PerRecord:
    """More than rounding can move a record's f or f − log γ at any draw, but for the size of the result."""
    middle, deviation, smallest = reach_of_draws(beta, sigma)
    result = np.empty(y.size)
    for first in range(0, y.size, 8192):
        block = slice(first, first + 8192)
        size = np.abs(Z[block])
        residual = (np.abs(y[block] - Z[block] @ middle) + size @ deviation) / smallest
        magnitude = (np.abs(y[block]) + size @ np.abs(middle)) / smallest + residual
        result[block] = _rounding(residual, magnitude, beta.shape[1], sigma)
    return result


def largest_rounding(Z: Array, y: Array, beta: Array, sigma: Array) -> float:
    """`rounding_bound` for all of these records together: at least the largest of theirs."""
    middle, deviation, smallest = reach_of_draws(beta, sigma)
    sizes = np.array([np.abs(column).max() for column in Z.T])
    magnitude = (np.abs(y).max() + sizes @ np.abs(middle)) / smallest
    residual = magnitude + sizes @ deviation / smallest
    bound = _rounding(np.asarray([residual]), np.asarray([magnitude + residual]), beta.shape[1], sigma)
    return (1 + 1e-9) * float(bound[0])  # sums in another order round otherwise


def reach_of_draws(beta: Array, sigma: Array) -> tuple[Array, Array, float]:
    """The middle of the draws, how far they are from it, and the smallest σ."""
    middle = beta.mean(axis=0)
    return middle, np.abs(beta - middle).max(axis=0), float(sigma.min())


def _rounding(residual: Array, magnitude: Array, columns: int, sigma: Array) -> Array:
    error = (columns + 4) * (residual + 2.0) * magnitude + residual**2 + np.abs(np.log(sigma)).max()
    return np.asarray(32.0 * _EPS * (error + 32.0))
