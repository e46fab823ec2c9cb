"""Moments of normals that were clipped to intervals, in closed form.

y is normal; r = clip(y − c, low, high) puts what lies beyond an end on that end. One such variable has four
moments here, and two of the same y, the second clipped within the first, have their joint ones. Everything
follows from E[zᵏ; a < z < b] of a standard normal:

    M₀ = Φ(b) − Φ(a),  M₁ = φ(a) − φ(b),  M_k = (k − 1) M_{k−2} + a^{k−1} φ(a) − b^{k−1} φ(b)

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


def _standardise(edge: Array | float, mean: Array, sd: Array) -> tuple[Array, Array, Array]:
    z = np.clip((edge - mean) / sd, -_FAR, _FAR)
    return z, ndtr(z), _INVERSE_ROOT * np.exp(-0.5 * z * z)


Edge = tuple[Array, Array, Array]


def _piece(lower: Edge, upper: Edge, shift: Array, sd: Array, order: int) -> list[Array]:
    """E[(shift + sd z)ᵏ; lower < z < upper] for k = 0 … order."""
    (a, below, left), (b, above, right) = lower, upper
    raw = [above - below, left - right]
    for k in range(2, order + 1):
        left, right = left * a, right * b
        raw.append((k - 1) * raw[k - 2] + left - right)
    scaled, power = [raw[0]], sd
    for k in range(1, order + 1):
        scaled.append(raw[k] * power)
        power = power * sd
    shifts = [np.ones_like(shift)]
    for _ in range(order):
        shifts.append(shifts[-1] * shift)
    terms = [[comb(k, j) * shifts[k - j] * scaled[j] for j in range(k + 1)] for k in range(order + 1)]
    return [sum(term[1:], start=term[0]) for term in terms]


def clip_normal(mean: Array, sd: Array, clip: Clip) -> Clipped:
    """Moments of one clipped normal."""
    lower = _standardise(clip.centre + clip.low, mean, sd)
    upper = _standardise(clip.centre + clip.high, mean, sd)
    return _one(lower, upper, mean, sd, clip)


def _one(lower: Edge, upper: Edge, mean: Array, sd: Array, clip: Clip) -> Clipped:
    inner = _piece(lower, upper, mean - clip.centre, sd, 4)
    low, high = clip.low, clip.high
    first, second, third, fourth = (
        low**k * lower[1] + inner[k] + high**k * (1 - upper[1]) for k in range(1, 5)
    )
    return Clipped(
        (first, second, third, fourth),
        inside=inner[0],
        inside_first=inner[1],
        square_bend=2 * (inner[0] + (low * lower[2] - high * upper[2]) / sd),
    )


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
    first, last = (_standardise(wide.centre + end, mean, sd) for end in (wide.low, wide.high))
    lower, upper = (_standardise(narrow.centre + end, mean, sd) for end in (narrow.low, narrow.high))
    one, two = _one(first, last, mean, sd, wide), _one(lower, upper, mean, sd, narrow)
    below = _piece(first, lower, mean - wide.centre, sd, 2)
    above = _piece(upper, last, mean - wide.centre, sd, 2)
    middle = _piece(lower, upper, mean - narrow.centre, sd, 4)
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
