"""Where everybody knows the class of every record: draws from the classes alone, and copies inside them.

    >>> from hedgerow.randomness import Key
    >>> X = np.column_stack([np.ones(400), np.linspace(-1, 1, 400)])
    >>> y = X @ [1.0, 2.0] + Key.from_seed(1).stream().normal(400)
    >>> lower = np.floor(y)  # of classes one wide, a public column
    >>> sample = draw_from_classes(X, lower, lower + 1, low=-8.0, high=8.0, draws=200, key=Key.from_seed(2))
    >>> bool(abs(sample.parameters["beta"].mean(axis=0) - [1.0, 2.0]).max() < 0.3)
    True

The likelihood of (β, σ) is that of the classes, ∏ Φ((u_i − x_i'β)/σ) − Φ((l_i − x_i'β)/σ), on the scale on
which errors are normal. The prior comes from public limits of the response: the mean over the records is
N(middle, (H/2)²), the other coordinates together have variance (H/3)², log σ is N(log(H/6), 1.5²), with H
half the distance of the limits.

Formal guarantees
-----------------
No function here takes an outcome. Given that the classes are public, what comes out is independent of where
in its class a record lies: ε = 0 for replacing an outcome by any other of its class, and nothing to compose.
It says nothing about the classes themselves.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import ndtr

from hedgerow.arrays import Array, Matrix, PerRecord
from hedgerow.errors import RangeError
from hedgerow.models.base import Health, Sample
from hedgerow.numerics.normal_mass import interval_moments, log_interval_mass, normal_inside
from hedgerow.numerics.sums.modes import draw_about_mode, find_mode
from hedgerow.randomness import Key

_SPREAD = 1.5  # standard deviation of log σ in the prior
_BLOCK = 1 << 16  # masses computed at a time, so many as a cache holds


def draw_from_classes(
    matrix: Matrix, lower: PerRecord, upper: PerRecord, *, low: float, high: float, draws: int, key: Key
) -> Sample:
    """Independent draws of β and σ given classes [lower, upper] of the response; ends may be infinite.

    Every draw is the end of a Metropolis chain of its own (`numerics.sums.modes`); `effective_draws` are
    those whose chains have forgotten their start.
    """
    target = _Target.of(matrix, lower, upper, low, high)
    here, effective = draw_about_mode(target, *find_mode(target), draws=draws, key=key)
    health = Health("classes", independent=True, effective_draws=effective)
    return Sample({"beta": target.coefficients(here[:, :-1]), "sigma": np.exp(here[:, -1])}, health)


def predict_inside(
    matrix: Matrix, beta: Array, sigma: float, lower: PerRecord, upper: PerRecord, uniforms: PerRecord
) -> PerRecord:
    """One response per record from p(y | z_i, θ, y in its class), by inverse distribution function."""
    return normal_inside(matrix @ beta, sigma, lower, upper, uniforms)


@dataclass(frozen=True, eq=False)
class _Target:
    """The log posterior of φ = (g, log σ), where X β = Q g and Q'Q/n = I. Public, like the classes."""

    basis: Matrix  # Q, one row per pattern of predictors and class
    times: PerRecord  # how many records have that pattern
    lower: PerRecord
    upper: PerRecord
    factor: Array  # R: β = R⁻¹ g
    centre: Array  # of the prior of φ
    precision: Array

    @classmethod
    def of(cls, matrix: Matrix, lower: PerRecord, upper: PerRecord, low: float, high: float) -> "_Target":
        empty = int((~(lower < upper)).sum())
        if empty:
            raise RangeError(
                f"{empty} of {len(lower)} classes hold no interval. Give each a lower end below its upper."
            )
        records, width = matrix.shape
        basis, factor = np.linalg.qr(matrix)
        basis, factor = basis * np.sqrt(records), factor / np.sqrt(records)
        half, middle = (high - low) / 2, (high + low) / 2
        flat = basis.mean(axis=0)  # the direction in which all fitted values move together
        size = max(float(np.linalg.norm(flat)), 1e-12)
        along = np.outer(flat, flat) / size**2
        precision = np.zeros((width + 1, width + 1))
        precision[:-1, :-1] = along / (half / 2) ** 2
        precision[:-1, :-1] += (np.eye(width) - along) * max(width - 1, 1) / (half / 3) ** 2
        precision[-1, -1] = 1 / _SPREAD**2
        centre = np.append(middle * flat, np.log(half / 6))
        told = np.isfinite(lower) | np.isfinite(upper)  # a class without ends says nothing
        patterns, times = np.unique(np.column_stack([basis, lower, upper])[told], axis=0, return_counts=True)
        ends = patterns[:, -2], patterns[:, -1]
        return cls(patterns[:, :-2], times.astype(np.float64), *ends, factor, centre, precision)

    def coefficients(self, coordinates: Array) -> Array:
        """β of rows of g."""
        return np.ascontiguousarray(solve_triangular(self.factor, coordinates.T).T)

    def log_density(self, points: Array) -> Array:
        """The log posterior at rows of φ, up to a constant."""
        found = np.empty(len(points))
        for start in range(0, len(points), block := max(1, _BLOCK // max(len(self.times), 1))):
            part = points[start : start + block]
            away = part - self.centre
            with np.errstate(all="ignore"):  # σ may leave the numbers: no mass there
                mean, sigma = part[:, :-1] @ self.basis.T, np.exp(part[:, -1:])
                mass = _log_mass((self.lower - mean) / sigma, (self.upper - mean) / sigma)
            found[start : start + block] = (
                mass @ self.times - ((away @ self.precision) * away).sum(axis=1) / 2
            )
        return np.where(np.isfinite(found), found, -np.inf)

    def slope(self, point: Array) -> tuple[Array, Array]:
        """The gradient at one φ, and the curvature of its first coordinates."""
        mean, sigma = self.basis @ point[:-1], np.exp(point[-1])
        moments = interval_moments((self.lower - mean) / sigma, (self.upper - mean) / sigma)
        level = self.basis.T @ (self.times * moments.mean) / sigma
        spread = self.times @ (moments.mean**2 + moments.variance - 1.0)
        away = self.precision @ (point - self.centre)
        lost = self.times * (1.0 - moments.variance) / sigma**2
        return np.append(level, spread) - away, self.basis.T @ (self.basis * lost[:, None])

    def curvature(self, point: Array) -> Array:
        """Minus the second derivatives: those along log σ by differences of the gradient."""
        step = np.zeros_like(point)
        step[-1] = 1e-4
        across = (self.slope(point - step)[0] - self.slope(point + step)[0]) / (2 * step[-1])
        whole = self.precision.copy()
        whole[:-1, :-1] += self.slope(point)[1]
        whole[-1], whole[:, -1] = across, across  # the prior's part is in the gradient
        return whole


def _log_mass(lower: Array, upper: Array) -> Array:
    """`log_interval_mass`, by a difference of two distribution functions wherever that keeps its digits."""
    flip = lower + upper > 0  # reflected into the lower tail, where differences lose least
    high = ndtr(np.where(flip, -lower, upper))
    mass = high - ndtr(np.where(flip, -upper, lower))
    fine = mass > 1e-5 * high
    result = np.log(mass, where=fine, out=np.empty_like(mass))
    result[~fine] = log_interval_mass(lower[~fine], upper[~fine])
    return result
