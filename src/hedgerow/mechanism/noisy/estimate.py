"""Line and σ from noisy sums: a function of what was released, round by round (docs/maths.md, "Estimates").

Coordinates are those of Q, in which Q'Q/n = I: the squared error of a line, averaged over records, is that
of its coordinates. Each round sees the offset g of the truth from the line it was clipped about:
E T₁ = nη M g, and E T₂/n = m₂ + e|g|². It starts from what the round before it left, the first one from a
prior by the limits alone.

Two rounds read the same outcomes, so their sampling errors are common and only their noise can be averaged:
a state keeps both apart.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from hedgerow.arrays import Array
from hedgerow.mechanism.noisy.recipe import Recipe
from hedgerow.mechanism.noisy.released import Released, Round
from hedgerow.numerics.sums.clipped import clipped_moments

_SWEEPS = 100
_WIDEST = 0.95  # σ stays below this share of the window: beyond it clipped values say little of it
_SMALLEST = 1e-6  # and above this one
_SPECK = 1e-8  # variance, beside the others, of coordinates that no line needs


@dataclass(frozen=True, eq=False)
class Estimate:
    """Plugged-in values and their errors. A function of released statistics: public."""

    beta: Array  # (p,), coefficients of X
    sigma: float
    covariance: Array  # of beta, sampling and noise (p, p)
    sigma_error: float  # standard error of sigma


@dataclass(frozen=True, eq=False)
class State:
    """What is known after some rounds, in coordinates of Q."""

    line: Array  # (p,)
    noisy: Array  # covariance of the line by noise, and by the prior's spread as far as it still counts
    gain: Array | None  # how the line answers to T₁'s sampling error; None before the first round
    variance: float  # σ²
    variance_noise: float  # variance of σ² by noise; infinite before the first round
    sampling: Array  # covariance of the line by sampling
    variance_error: float  # standard error of σ² by everything

    @property
    def covariance(self) -> Array:
        """The covariance of the line, by noise and sampling."""
        return self.noisy + self.sampling

    def uncertain_variance(self) -> float:
        """σ² with what its error and the line's may hide: half a standard error of σ², and tr V."""
        return self.variance + self.variance_error / 2 + float(np.trace(self.covariance))


def start(recipe: Recipe) -> State:
    """The prior: the mean line Normal(middle, H²/4), the other coordinates together with variance H²/9."""
    H, u = recipe.half_width, recipe.constant
    length = float(u @ u)
    along = np.outer(u, u) / length if length > 0 else np.zeros((u.size, u.size))
    used = np.any(recipe.basis != 0, axis=0)
    across = (np.diag(used.astype(np.float64)) - along) / max(1, int(used.sum()) - 1)
    across += np.diag(np.where(used, 0.0, _SPECK))  # which keeps the prior proper
    line = recipe.middle * u / max(length, 1.0)
    spread = along * H**2 / 4 + across * H**2 / 9
    return State(line, spread, None, H**2 / 9, np.inf, np.zeros_like(spread), H**2)


def estimate(released: Released) -> Estimate:
    """Line and σ by all rounds that were released."""
    recipe, state = released.recipe, start(released.recipe)
    for each in released.rounds:
        state = learn(recipe, state, each)
    basis, sigma = recipe.basis, float(np.sqrt(state.variance))
    return Estimate(
        beta=basis @ state.line,
        sigma=sigma,
        covariance=basis @ state.covariance @ basis.T,
        sigma_error=state.variance_error / (2 * sigma),
    )


def learn(recipe: Recipe, before: State, of: Round) -> State:
    """The state after a round."""
    n, w = recipe.amounts, of.window
    squares = of.squares - of.blank * (recipe.records - n)  # what zeros added, as blanks do
    uncertain = 0.0 if recipe.presence is None else recipe.presence.variance / n**2
    times = 2.0 if recipe.noise == "laplace" else 1.0
    score_noise, square_noise = times * of.score_scale**2, times * of.square_scale**2 / n**2
    offset = before.line - coordinates(recipe, of.line)
    identity = np.eye(offset.size)
    smallest, largest = (_SMALLEST * w) ** 2, (_WIDEST * w) ** 2
    variance = min(max(before.variance, smallest), largest)
    for _ in range(_SWEEPS):
        slope, curvature, second, fourth = (float(m) for m in clipped_moments(w / np.sqrt(variance)))
        second, fourth = second * variance, fourth * variance**2
        A = n * slope * recipe.weighted_gram
        sampled = n * second * recipe.weighted_squares
        noise = score_noise * identity
        # Prior and first round: all of T₁'s error counts. Later rounds share the sampling error of the first.
        spread = noise + sampled if before.gain is None else noise
        gain = before.noisy @ A.T @ np.linalg.inv(A @ before.noisy @ A.T + spread)
        kept = identity - gain @ A
        answer = gain if before.gain is None else kept @ before.gain + gain
        here = offset + gain @ (of.scores - A @ offset)
        noisy = kept @ before.noisy @ kept.T + gain @ noise @ gain.T
        sampling = answer @ sampled @ answer.T
        V = noisy + sampling
        by_line = curvature**2 * float(4 * here @ V @ here + 2 * np.trace(V @ V))
        by_zeros = (of.blank - second) ** 2 * uncertain
        of_noise = (square_noise + by_line + by_zeros) / curvature**2
        # What noise hides of the line adds to the squares; what sampling moved it by was taken out of them.
        missed = float(here @ here + np.trace(noisy) - np.trace(sampling))
        excess = squares / n - second - curvature * missed
        found = variance + excess / curvature
        if np.isfinite(before.variance_noise):
            share = before.variance_noise / (before.variance_noise + of_noise)
            found, of_noise = before.variance + share * (found - before.variance), share * of_noise
        error = np.sqrt(of_noise + (fourth - second**2) / (n * curvature**2))
        after = min(max(truncated_mean(found, error, largest), smallest), largest)
        if abs(after - variance) <= 1e-9 * variance:
            break
        variance = (variance + after) / 2
    line = before.line + here - offset
    return State(line, noisy, answer, after, of_noise, sampling, min(error, largest / np.sqrt(12)))


def coordinates(recipe: Recipe, line: Array) -> Array:
    """Where a line given by coefficients of X lies among the coordinates of Q."""
    sizes = np.abs(recipe.basis).max(axis=1)
    sizes = np.where(sizes > 0, sizes, 1.0)
    return np.asarray(np.linalg.lstsq(recipe.basis / sizes[:, None], line / sizes, rcond=None)[0])


def truncated_mean(mean: float, error: float, top: float) -> float:
    """The mean of Normal(mean, error²) between 0 and `top`: no noise leads to a σ² outside."""
    error = max(error, 1e-9 * top)
    low, high = -mean / error, (top - mean) / error
    if low + high < 0:  # mirrored, so that both ends lie in the tail that log_ndtr is exact in
        return top - truncated_mean(top - mean, error, top)
    if low > 30:  # all mass lies at 0, as an exponential
        return min(error / low, top / 2)
    if high - low < 1e-6:  # narrow beside its error: uniform
        return top / 2
    tails = log_ndtr(-low), log_ndtr(-high)
    mass = np.exp(tails[0]) - np.exp(tails[1])
    density = (np.exp(-(low**2) / 2) - np.exp(-(high**2) / 2)) / np.sqrt(2 * np.pi)
    return float(min(max(mean + error * density / mass, 0.0), top))
