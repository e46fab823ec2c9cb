"""Lognormal regression under the prior of the paper's authors, for the application (docs/paper.md).

    β ~ N(0, D Ω D),  D = diag(τ),  τ_j ~ half-t(3, 0, 1),  Ω ~ LKJ(6),  σ ~ half-t(3, 0, 1),

on raw predictors. Given (τ, Ω) and σ the coefficients are normal, and given (τ, Ω) alone the posterior of σ
is one-dimensional. So the hyperprior is replaced by a fixed quasi-random set of equally likely points,
chosen without any data, and the posterior under that prior is drawn from exactly: first a point, then σ by
its distribution function on a grid, then β. The draws are independent; no chain has to converge.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, stdtrit
from scipy.stats import qmc

from hedgerow.arrays import Array, PerRecord
from hedgerow.models.base import Health, Sample
from hedgerow.models.exact import Lognormal
from hedgerow.randomness import Key
from hedgerow.tables.design import Design

DEGREES = 3.0
CONCENTRATION = 6.0  # of the LKJ distribution
_POINTS = 1 << 14
_SIGMA = np.exp(np.linspace(np.log(0.02), np.log(60.0), 121))


class _Mixture(NamedTuple):
    """Per point: the basis in which the coefficients are independent, and their spectrum."""

    basis: Array  # point × coefficient × direction
    spectrum: Array  # point × direction: precision the data add in each direction, times σ²
    pull: Array  # point × direction
    log_weight: Array  # point × σ


@dataclass(frozen=True)
class AuthorsLognormal(Lognormal):
    """The exact model's likelihood and scores with another prior; there is no closed-form privacy loss."""

    name: str = "lognormal, authors' prior"

    def check(self, design: Design) -> None:
        Lognormal().check(design)

    def sample(self, design: Design, power: PerRecord, *, draws: int, key: Key) -> Sample:
        mixture = self.mixture(design, power)
        point, sigma = _points_and_sigma(mixture.log_weight, draws, key)
        spread = 1 + mixture.spectrum[point] / sigma[:, None] ** 2
        noise = key.child("beta").stream().normal((draws, design.matrix.shape[1]))
        along = mixture.pull[point] / sigma[:, None] ** 2 / spread + noise / np.sqrt(spread)
        beta = np.einsum("sjd,sd->sj", mixture.basis[point], along)
        return Sample(
            {"beta": np.ascontiguousarray(beta), "sigma": sigma},
            Health(sampler="mixture", independent=True, effective_draws=float(draws)),
        )

    def mixture(self, design: Design, power: PerRecord) -> _Mixture:
        """The posterior under these powers, in the form it is drawn from."""
        response = self.response(design.values)
        shape = design.matrix.shape
        return _mixture(design.matrix.tobytes(), response.tobytes(), power.tobytes(), shape)


@lru_cache(maxsize=4)  # several standards share one mechanism; the key is what the posterior depends on
def _mixture(
    matrix_bytes: bytes, response_bytes: bytes, power_bytes: bytes, shape: tuple[int, int]
) -> _Mixture:
    """The posterior weight of every point and σ, with β integrated out."""
    matrix = np.frombuffer(matrix_bytes).reshape(shape)
    response, power = np.frombuffer(response_bytes), np.frombuffer(power_bytes)
    gram = matrix.T @ (power[:, None] * matrix)
    cross = matrix.T @ (power * response)
    roots = hyperprior(shape[1])
    spectrum, turn = np.linalg.eigh(np.einsum("kji,jl,klm->kim", roots, gram, roots))
    spectrum = np.maximum(spectrum, 0.0)
    basis = roots @ turn
    pull = np.einsum("kjd,j->kd", basis, cross)
    variance = _SIGMA**2
    log_weight = np.full((len(roots), len(variance)), -0.5 * float(power @ response**2))
    for d in range(shape[1]):  # one direction at a time keeps the largest array small
        log_weight += 0.5 * pull[:, d, None] ** 2 / (variance + spectrum[:, d, None])
    log_weight /= variance
    for d in range(shape[1]):
        log_weight -= 0.5 * np.log1p(spectrum[:, d, None] / variance)
    log_weight -= 0.5 * float(power.sum()) * np.log(2 * np.pi * variance)
    log_weight -= (DEGREES + 1) / 2 * np.log1p(variance / DEGREES)  # half-t(3, 0, 1)
    log_weight += np.log(_SIGMA)  # the grid is even in log σ
    return _Mixture(basis, spectrum, pull, log_weight)


@cache
def hyperprior(width: int) -> Array:
    """Square roots D·chol(Ω) of the prior covariance at every point: point × coefficient × direction."""
    pairs = width * (width - 1) // 2
    uniform = qmc.Sobol(width + pairs, scramble=True, rng=np.random.default_rng(3)).random(_POINTS)
    uniform = np.clip(uniform, 1e-12, 1 - 1e-12)
    scale = stdtrit(DEGREES, 0.5 + uniform[:, :width] / 2)
    root = np.zeros((_POINTS, width, width))
    root[:, 0, 0] = 1.0
    column = width
    for row in range(1, width):
        left = np.ones(_POINTS)
        for place in range(row):
            # Partial correlations given the earlier variables are independent betas (the vine of LKJ).
            shape = CONCENTRATION + (width - 2 - place) / 2
            partial = 2 * betaincinv(shape, shape, uniform[:, column]) - 1
            root[:, row, place] = partial * np.sqrt(left)
            left = left * (1 - partial**2)
            column += 1
        root[:, row, row] = np.sqrt(left)
    return np.asarray(scale[:, :, None] * root, dtype=np.float64)


def _points_and_sigma(log_weight: Array, draws: int, key: Key) -> tuple[Array, Array]:
    weight = np.exp(log_weight - log_weight.max())
    # Trapezoids in log σ, so that σ has a continuous distribution between the grid's values.
    pieces = np.cumsum((weight[:, 1:] + weight[:, :-1]) / 2, axis=1)
    points = np.cumsum(pieces[:, -1])
    place = key.child("point").stream().uniform(draws) * points[-1]
    point = np.searchsorted(points, place)
    within = key.child("sigma").stream().uniform(draws)
    steps = np.log(_SIGMA)
    sigma = np.empty(draws)
    for s, (k, u) in enumerate(zip(point, within, strict=True)):
        rise = np.concatenate([[0.0], pieces[k]])
        sigma[s] = np.exp(np.interp(u * rise[-1], rise, steps))
    return point, sigma
