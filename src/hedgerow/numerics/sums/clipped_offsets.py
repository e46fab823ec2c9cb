"""Moments of normals that were clipped to intervals, in closed form.

y is normal; r = clip(y − c, low, high) puts what lies beyond an end on that end. One such variable has four
moments here, and two of the same y, the second clipped within the first, have their joint ones. Everything
follows from pieces M_k = E[xᵏ; a < x < b] of x = y − c with mean μ, standard deviation σ and density f:

    M₀ = F(b) − F(a),   M_k = μ M_{k−1} + σ² ((k − 1) M_{k−2} + a^{k−1} f(a) − b^{k−1} f(b))

    >>> import numpy as np
    >>> one = clip_normal(np.array([0.0]), np.array([1.0]), Clip(0.0, -1.0, 1.0))
    >>> one.moments[1].round(3)  # E r²
    array([0.516])
"""

from dataclasses import dataclass
from math import comb

import numpy as np
from scipy.special import ndtr

from hedgerow.arrays import Array

_FAR = 38.0  # standard deviations: beyond it nothing is left, and powers times densities stay finite
_INVERSE_ROOT = 1 / np.sqrt(2 * np.pi)


@dataclass(frozen=True)
class Clip:
    """r = clip(y − centre, low, high), low ≤ high."""

    centre: Array | float
    low: Array | float
    high: Array | float


@dataclass(frozen=True, eq=False)
class Clipped:
    """What one clipped variable does, elementwise over means."""

    moments: tuple[Array, Array, Array, Array]  # E r … E r⁴
    inside: Array  # P(not clipped), which is dE r / dE y
    inside_first: Array  # E[r; not clipped], half of dE r² / dE y
    square_bend: Array  # d²E r² / dE y²


Edge = tuple[Array, Array, Array]  # y itself, P(below), σ² × density


def _edge(place: Array | float, mean: Array, sd: Array) -> Edge:
    z = np.clip((place - mean) / sd, -_FAR, _FAR)
    return np.asarray(place, dtype=np.float64), ndtr(z), (_INVERSE_ROOT * sd) * np.exp(-0.5 * z * z)


def _piece(
    lower: Edge, upper: Edge, centre: Array | float, mean: Array, sd: Array, order: int
) -> list[Array]:
    """E[(y − centre)ᵏ; between the edges] for k = 0 … order."""
    (a, below, left), (b, above, right) = lower, upper
    a, b, mean, variance = a - centre, b - centre, mean - centre, sd * sd
    found = [above - below]
    found.append(mean * found[0] + left - right)
    for k in range(2, order + 1):
        left, right = left * a, right * b
        found.append(mean * found[k - 1] + (k - 1) * variance * found[k - 2] + left - right)
    return found


def clip_normal(mean: Array, sd: Array, clip: Clip) -> Clipped:
    """Moments of one clipped normal."""
    lower, upper = (_edge(clip.centre + end, mean, sd) for end in (clip.low, clip.high))
    return _join(lower, upper, _piece(lower, upper, clip.centre, mean, sd, 4), clip, sd)


def _join(lower: Edge, upper: Edge, inner: list[Array], clip: Clip, sd: Array) -> Clipped:
    """What lies between the edges, and what was put on them."""
    low, high, above = clip.low, clip.high, 1 - upper[1]
    first, second, third, fourth = (low**k * lower[1] + inner[k] + high**k * above for k in range(1, 5))
    bend = inner[0] + (low * lower[2] - high * upper[2]) / (sd * sd)
    return Clipped((first, second, third, fourth), inner[0], inner[1], 2 * bend)


@dataclass(frozen=True, eq=False)
class Covariances:
    """Between powers of two clipped variables of the same y: of rᵃ (wide) and sᵇ (narrow)."""

    line_line: Array
    line_square: Array
    square_line: Array
    square_square: Array


def clip_normal_twice(
    mean: Array, sd: Array, wide: Clip, narrow: Clip
) -> tuple[Clipped, Clipped, Covariances]:
    """Moments of two clipped variables and between them. The narrow interval of y lies in the wide one."""
    first, last = (_edge(wide.centre + end, mean, sd) for end in (wide.low, wide.high))
    lower, upper = (_edge(narrow.centre + end, mean, sd) for end in (narrow.low, narrow.high))
    middle = _piece(lower, upper, narrow.centre, mean, sd, 4)
    one = _join(first, last, _piece(first, last, wide.centre, mean, sd, 4), wide, sd)
    two = _join(lower, upper, middle, narrow, sd)
    below, above = (_piece(*ends, wide.centre, mean, sd, 2) for ends in ((first, lower), (upper, last)))
    gap = narrow.centre - wide.centre  # r = s + gap where neither is clipped
    products = []
    for a in (1, 2):
        left = wide.low**a * first[1] + below[a]
        right = above[a] + wide.high**a * (1 - last[1])
        for b in (1, 2):
            both = sum(comb(a, j) * gap ** (a - j) * middle[b + j] for j in range(a + 1))
            products.append(narrow.low**b * left + both + narrow.high**b * right)  # E[rᵃ sᵇ]
    (r, r2, _, _), (s, s2, _, _) = one.moments, two.moments
    means = (r * s, r * s2, r2 * s, r2 * s2)
    return one, two, Covariances(*(both - apart for both, apart in zip(products, means, strict=True)))
