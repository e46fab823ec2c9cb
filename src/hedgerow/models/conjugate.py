"""The conjugate posterior of a regression, and what one record does to it, in closed form.

    >>> one, other = (Posterior(np.eye(1), np.array([mean]), shape=10.0, rate=10.0) for mean in (0.0, 1.0))
    >>> one.divergences(other, orders=np.array([2.0])).round(2).tolist()
    [1.05]

The fit without a record follows from the fit with it (docs/maths.md, "Exact loss"), so that the privacy loss
about every record is known exactly.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import gammaln, polygamma, psi

from hedgerow.arrays import Array, PerDraw, PerRecord
from hedgerow.models.base import Influence
from hedgerow.numerics.renyi import Neighbours
from hedgerow.numerics.scoring import Draws
from hedgerow.randomness import Key

LOG_2PI = float(np.log(2 * np.pi))
DIGITS = 1e-8  # what is left after a subtraction must keep this share of what was there
REFIT = 1e-3  # where less is left, the fit without a record is made anew


@dataclass(frozen=True, repr=False)
class Posterior:
    """β | σ² ~ N(mean, σ² (R'R)⁻¹), σ² ~ IG(shape, rate)."""

    factor: Array  # R, upper triangular: R'R = Λ
    mean: Array
    shape: float
    rate: float

    def draw(self, draws: int, key: Key) -> Draws:
        """Independent draws."""
        variance = self.rate / key.child("sigma").stream().gamma(self.shape, draws)
        sigma = np.sqrt(variance)
        noise = key.child("beta").stream().normal((draws, len(self.mean)))
        beta = self.mean + sigma[:, None] * solve_triangular(self.factor, noise.T).T
        return Draws(np.ascontiguousarray(beta), sigma)

    def log_density(self, draws: Draws) -> PerDraw:
        """log ξ(β, σ²) at each draw, normalised."""
        width = len(self.mean)
        standardised = (draws.beta - self.mean) @ self.factor.T / draws.sigma[:, None]
        log_variance = 2 * np.log(draws.sigma)
        return np.asarray(
            np.log(np.diag(self.factor)).sum()
            - width / 2 * (LOG_2PI + log_variance)
            - np.sum(standardised**2, axis=1) / 2
            + self.shape * np.log(self.rate)
            - gammaln(self.shape)
            - (self.shape + 1) * log_variance
            - self.rate / draws.sigma**2,
            dtype=np.float64,
        )

    def divergences(self, other: "Posterior", orders: Array) -> Array:
        """Rényi's D_o of this posterior from another, at each order; infinite where it does not exist.

        Both are of one exponential family: with η its natural parameter and A the log normaliser,
        (o − 1) D_o = A(o η − (o − 1) η') − o A(η) + (o − 1) A(η'). In coordinates that make this precision
        the identity and the other's diagonal, nothing is subtracted that is nearly equal.
        """
        o, more = orders, orders - 1
        beside = solve_triangular(self.factor, other.factor.T, trans=1).T
        precision, turn = np.linalg.eigh(beside.T @ beside)
        apart = turn.T @ (self.factor @ (other.mean - self.mean))
        mixed = o[:, None] - more[:, None] * precision
        shape = o * self.shape - more * other.shape
        with np.errstate(all="ignore"):
            lost = (more * o)[:, None] * precision * apart**2 / mixed
            rate = o * self.rate - more * other.rate - lost.sum(axis=1) / 2
            spread = np.log(mixed) + more[:, None] * np.log(precision)
            found = (
                gammaln(shape)
                - o * gammaln(self.shape)
                + more * gammaln(other.shape)
                - shape * np.log(rate)
                + o * self.shape * np.log(self.rate)
                - more * other.shape * np.log(other.rate)
                - spread.sum(axis=1) / 2
            ) / more
        exists = (mixed > 0).all(axis=1) & (shape > 0) & (rate > 0)
        return np.where(exists, found, np.inf)


Places = NDArray[np.intp]
Left = tuple[float, float, float]  # h, r² and b where a record's neighbour is fitted without it
Refit = Callable[[PerRecord, Places], list[Left]]  # what some records find in the fit without their shares


@dataclass(frozen=True, repr=False)
class RegressionInfluence(Influence):
    """docs/maths.md, "Exact loss"."""

    leverage: PerRecord
    pull: PerRecord
    spread: PerRecord  # h = z'Λ⁻¹z
    squared: PerRecord  # r², the squared residual
    jacobian: PerRecord
    shape: float
    rate: float
    refit: Refit

    def loss_constant(self, share: PerRecord) -> PerRecord:
        taken = share * self.spread
        with np.errstate(all="ignore"):
            removed = share * self.squared / (2 * (1 - taken) * self.rate)
            half = share / 2
            constant = (
                np.log1p(-taken) / 2
                - half * (LOG_2PI + np.log(self.rate) + np.log1p(-removed))
                + self.shape * np.log1p(-removed)
                + _log_gamma_drop(self.shape, half)
            )
        # A record that decides the fit to the last digits leaves nothing to compute the fit without it from:
        # its loss is not bounded by anything known.
        lost = (1 - taken < DIGITS) | (1 - removed < DIGITS) | ~np.isfinite(constant)
        return np.where(lost, -np.inf, constant + share * self.jacobian)

    def neighbours(self, share: PerRecord) -> Neighbours:
        left = 1 - share * self.spread
        with np.errstate(all="ignore"):
            rest = 1 - share * self.squared / (2 * left * self.rate)
            spread, squared, rate = self.spread / left, self.squared / left**2, self.rate * rest
        rows = np.flatnonzero(~((left > REFIT) & (rest > REFIT)))
        if rows.size:
            spread[rows], squared[rows], rate[rows] = np.transpose(self.refit(share, rows))
        return Neighbours(share, spread, squared, self.shape - share / 2, rate)


def _log_gamma_drop(shape: float, half: PerRecord) -> PerRecord:
    """lnΓ(shape) − lnΓ(shape − half) for 0 ≤ half ≤ ½, without cancellation for large shapes."""
    if shape < 50:
        return np.asarray(gammaln(shape) - gammaln(shape - half), dtype=np.float64)
    # Taylor series about the shape; the terms fall by a factor of half/shape each.
    total = half * psi(shape)
    term = half.copy()
    for order in range(1, 6):
        term = -term * half / (order + 1)
        total = total + term * polygamma(order, shape)
    return np.asarray(total, dtype=np.float64)
