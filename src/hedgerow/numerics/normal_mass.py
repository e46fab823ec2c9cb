"""The log mass a standard normal puts on an interval, right in the far tails and for narrow intervals.

Three forms, each used where it loses nothing (docs/maths.md, "Scoring"):

- ends on both sides of zero: 1 − Q(−lower) − Q(upper);
- ends on one side: reflected into one tail and scaled by the density of the nearer end, so that the
  difference is between numbers of order 1/end and never underflows;
- narrow: density at the midpoint × width × the even Hermite series, because a difference of two nearly
  equal tails would keep no digits.

The same forms are in `kernels`, fused with the reductions over draws and relative to the record's own value;
they are tested against these. `models.programs.masses.normal_log_mass` works on the
log scale throughout, because there the mass enters a posterior and needs a gradient in both tails.

`log_star_mass` is that of several normals, each in its interval and linear in the same one of them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import erfcx, ndtr, ndtri

from hedgerow.arrays import Array, LogMass

# Below this (half width) × (|midpoint| + 1) the series with five corrections is exact to double precision;
# above it the differences lose less than a factor of 20.
NARROW = 0.1
_FAR, _DECAYED = 10.0, 40.0  # a tail that far out is summed up to where the density has fallen by e⁻⁴⁰
_REACH = 8.5  # standard deviations about the mode beyond which a log-concave integrand is nothing
_SMALL = 1e-5  # above it a sum of differences of distribution functions keeps ten digits
_TAIL = 2.0  # from here on quantiles are found relative to the tail

_SQRT_HALF = np.sqrt(0.5)
_SQRT_HALF_PI = np.sqrt(0.5 * np.pi)
_SQRT_TWO_PI = np.sqrt(2.0 * np.pi)
_HALF_LOG_TWO_PI = 0.5 * np.log(2.0 * np.pi)
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(32)


def _mills(x: Array) -> Array:
    """(1 − Φ(x)) / φ(x) for x ≥ 0."""
    return np.asarray(_SQRT_HALF_PI * erfcx(_SQRT_HALF * x), dtype=np.float64)


def _narrow_series(half: Array, middle: Array) -> Array:
    """Σ_k He_2k(middle) half^2k / (2k+1)!, by the even recurrence of the Hermite polynomials."""
    q, v = (middle * half) ** 2, half * half
    before, now = np.ones_like(q), q - v
    total, factorial = before + now / 6.0, 6.0
    for k in range(1, 5):
        before, now = now, (q - (4 * k + 1) * v) * now - 2 * k * (2 * k - 1) * v * v * before
        factorial *= (2 * k + 2) * (2 * k + 3)
        total = total + now / factorial
    return total


def log_interval_mass(lower: Array, upper: Array) -> Array:
    """log(Φ(upper) − Φ(lower)), elementwise, for lower ≤ upper on the standardised scale.

    Ends may be infinite. Equal ends give −inf, lower > upper or a NaN gives NaN. The mass is accurate to
    1e-10 relative for ends up to ±40 and widths down to 1e-12; beyond ±40 the logarithm itself keeps its
    relative accuracy and stays finite until the square of an end overflows, near 1e154.
    """
    lower, upper = np.broadcast_arrays(np.asarray(lower, np.float64), np.asarray(upper, np.float64))
    with np.errstate(all="ignore"):
        half = 0.5 * (upper - lower)
        middle = np.where(np.isinf(half), 0.5 * (lower + upper), lower + half)
        near = np.minimum(np.abs(lower), np.abs(upper))
        far = np.maximum(np.abs(lower), np.abs(upper))
        straddle = (lower < 0.0) & (upper > 0.0)
        narrow = half * (np.abs(middle) + 1.0) < NARROW

        near_tail, far_tail = _mills(near), _mills(far)
        both_sides = (
            _SQRT_TWO_PI - near_tail * np.exp(-0.5 * near * near) - far_tail * np.exp(-0.5 * far * far)
        )
        one_side = near_tail - far_tail * np.exp(-2.0 * half * np.abs(middle))
        scaled = np.where(straddle, both_sides, one_side)
        reference = np.where(straddle, 0.0, near)
        scaled = np.where(narrow, 2.0 * half * _narrow_series(half, middle), scaled)
        reference = np.where(narrow, middle, reference)

        result = np.log(scaled) - 0.5 * reference * reference - _HALF_LOG_TWO_PI
    result = np.where(straddle & ~narrow, np.minimum(result, 0.0), result)
    result = np.where(lower == upper, -np.inf, result)
    return np.asarray(np.where(lower > upper, np.nan, result), dtype=np.float64)


@dataclass(frozen=True, repr=False)
class IntervalMoments:
    """A standard normal restricted to intervals, elementwise."""

    log_mass: Array
    mean: Array
    variance: Array
    lower_hazard: Array  # density at the lower end over the mass
    upper_hazard: Array


def interval_moments(lower: Array, upper: Array) -> IntervalMoments:
    """Mass, mean, variance and hazards of a standard normal on [lower, upper], for finite lower < upper.

    Everything is relative to the density at the end nearer to zero, so that far tails lose nothing.
    """
    lower, upper = np.broadcast_arrays(np.asarray(lower, np.float64), np.asarray(upper, np.float64))
    flip = lower + upper < 0.0  # reflected: now |lower| ≤ upper
    low, high = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
    half = 0.5 * (high - low)
    middle = low + half
    with np.errstate(all="ignore"):
        drop = np.exp(-2.0 * half * middle)  # density at `high` relative to that at `low`
        tails = _mills(np.abs(low)) - drop * _mills(high)
        inside = _SQRT_TWO_PI * np.exp(0.5 * low * low) - _mills(-low) - drop * _mills(high)
        scaled = np.where(low >= 0.0, tails, inside)
        near = 1.0 / scaled
        far = np.where(drop == 0.0, 0.0, drop * near)
        mean = -np.expm1(-2.0 * half * middle) * near
        variance = 1.0 - mean * mean - np.where(far == 0.0, 0.0, high * far) + low * near
    # A short piece, and a far tail up to where it has decayed, are smooth enough for quadrature, which
    # subtracts nothing: the variance keeps its digits.
    smooth = (half * (middle + 1.0) < NARROW) | (low > _FAR)
    if smooth.any():
        start = low[smooth]
        reach = np.minimum(2.0 * half[smooth], _DECAYED / np.maximum(start, 1.0))
        ahead = 0.5 * reach * (1.0 + _NODES[:, None])
        pieces = 0.5 * reach * _NODE_WEIGHTS[:, None] * np.exp(-ahead * (start + 0.5 * ahead))
        total = pieces.sum(axis=0)
        shift = (ahead * pieces).sum(axis=0) / total
        mean[smooth] = start + shift
        variance[smooth] = ((ahead - shift) ** 2 * pieces).sum(axis=0) / total
        near[smooth] = 1.0 / total
        far[smooth] = drop[smooth] / total
    return IntervalMoments(
        log_interval_mass(lower, upper),
        np.where(flip, -mean, mean),
        np.clip(variance, 0.0, 1.0),
        np.where(flip, far, near),
        np.where(flip, near, far),
    )


def interval_quantile(lower: Array, upper: Array, share: Array) -> Array:
    """Where a standard normal restricted to [lower, upper] has a share of its mass below, elementwise.

    Inside it inverts the distribution function, in a tail the ratio of two tails, as a distance from the
    nearer end. What comes out is kept between the ends.
    """
    flip = lower + upper < 0.0
    low, high = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
    below = np.where(flip, 1.0 - share, share)  # the share of the mass below the value, after reflection
    with np.errstate(all="ignore"):
        tail = ndtr(-high) + (1.0 - below) * (ndtr(-low) - ndtr(-high))
        value = np.where(tail < 0.5, -ndtri(tail), ndtri(ndtr(low) + below * (ndtr(high) - ndtr(low))))
        first = np.maximum(low, 0.0)
        mills = _mills(first)
        gap = high - first
        # log of (tail beyond the value) / (tail beyond the nearer end), which the distance has to match
        kept = np.log1p(-below * (1.0 - np.exp(-gap * (first + 0.5 * gap)) * _mills(high) / mills))
        distance = -2.0 * kept / (first + np.sqrt(first * first - 2.0 * kept))
        for _ in range(3):
            there = _mills(first + distance)
            error = np.log(there / mills) - distance * (first + 0.5 * distance) - kept
            distance = distance + error * there
    value = np.clip(np.where(low > _TAIL, first + distance, value), low, high)
    return np.asarray(np.where(flip, -value, value), dtype=np.float64)


def normal_inside(mean: Array, sigma: Array | float, lower: Array, upper: Array, share: Array) -> Array:
    """Where a normal restricted to [lower, upper] has a share of its mass below; ends may be infinite."""
    with np.errstate(invalid="ignore"):  # an interval without ends has no middle
        standard = interval_quantile((lower - mean) / sigma, (upper - mean) / sigma, share)
    return np.asarray(np.clip(mean + sigma * standard, lower, upper), dtype=np.float64)


def log_star_mass(low: Array, high: Array, leaves: Sequence[tuple[Array, Array, Array]]) -> LogMass:
    """log P(low ≤ t ≤ high and lower_j ≤ κ_j t + e_j ≤ upper_j for all j), t and e_j standard normal.

    `leaves` holds lower, upper and κ. The integrand φ(t) Π_j P(e_j inside) is log-concave with a curvature
    between 1 and 1 + Σκ², so that nothing lies far from its mode, and Gauss' rule needs points as wide as it
    is in units of the smallest feature.
    """
    steep = np.sqrt(1 + sum(slope**2 for _, _, slope in leaves))
    if len(leaves) == 1 and np.isneginf(low).all() and np.isposinf(high).all():
        lower, upper, _ = leaves[0]
        return log_interval_mass(lower / steep, upper / steep)  # the sum of two normals
    mode = np.clip(0.0, low, high)
    for _ in range(4 + 2 * len(leaves)):  # of the integrand with squared distances for log masses
        slope, bend = mode.copy(), np.ones_like(mode)
        for lower, upper, own in leaves:
            away = np.maximum(lower - own * mode, 0.0) + np.minimum(upper - own * mode, 0.0)
            slope -= own * away
            bend += np.where(away != 0, own**2, 0.0)
        mode = np.clip(mode - slope / bend, low, high)
    low, high = np.maximum(low, mode - _REACH), np.minimum(high, mode + _REACH)
    width = (high - low) * steep
    needed = np.ceil(2 ** (np.ceil(2 * np.log2(np.maximum(6 + 1.4 * width.max(axis=0), 8))) / 2))
    found = np.empty(low.shape)
    for points in np.unique(needed):
        chosen = needed == points
        some = [tuple(each[:, chosen] for each in leaf) for leaf in leaves]
        found[:, chosen] = _gauss(low[:, chosen], high[:, chosen], some, int(points))
    return found


def _gauss(low: Array, high: Array, leaves: Sequence[tuple[Array, ...]], points: int) -> Array:
    """By Gauss' rule: of probabilities where their sum keeps its digits, else of their logs."""
    half, middle = (high - low) / 2, (high + low) / 2
    total = np.zeros(low.shape)
    for node, weight in zip(*gauss_rule(points), strict=True):
        t = middle + half * node
        part = weight * np.exp(-t * t / 2)
        for lower, upper, slope in leaves:
            part *= ndtr(upper - slope * t) - ndtr(lower - slope * t)
        total += part
    far = ~(half * total > _SMALL)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(half) + np.log(total)
    if far.any():
        half, middle, total = half[far], middle[far], np.full(int(far.sum()), -np.inf)
        leaves = [tuple(each[far] for each in leaf) for leaf in leaves]
        for node, weight in zip(*gauss_rule(points), strict=True):
            t = middle + half * node
            part = np.log(weight) - t * t / 2
            for lower, upper, slope in leaves:
                part = part + log_interval_mass(lower - slope * t, upper - slope * t)
            total = np.logaddexp(total, part)
        with np.errstate(divide="ignore"):
            found[far] = np.log(half) + total
    return np.asarray(found - _HALF_LOG_TWO_PI)


@cache
def gauss_rule(points: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss' rule on (−1, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(points)
    return nodes, weights
