"""Which outcomes lie at the spike: a logistic regression from one noisy sum of loadings.

The sum over outcomes at the spike, T₀ = Σ v_i q_i + noise, has the mean Σ v_i q_i p_i, where p_i is
1/(1 + exp(−x_i'γ)): but for caps it is the statistic of logistic regression. It is nearly normal,

    T₀ | γ ~ Normal(Σ v_i q_i p_i, Σ v_i² q_i q_i' p_i (1 − p_i) + variance of the noise)

and the prior is the line's, on the logit scale with −5 and 5 for limits: mean shares of 0.7 to 99.3 %.
`expect_presence` says which records have an amount as far as T₀ tells, for the rounds that follow;
`draw_spike` draws γ. Everything here is a function of T₀ and of public things: post-processing.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from hedgerow.arrays import Array, PerRecord
from hedgerow.mechanism.noisy.estimate import start
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT, Presence, Recipe, Spike, choose_rows
from hedgerow.numerics.sums.modes import draw_about_mode
from hedgerow.numerics.triangular import ROWS
from hedgerow.randomness import Key

Rows = NDArray[np.intp]
_LOGITS = 5.0
_STEPS, _HALVINGS, _FULL = 50, 12, 4  # steps to the mode: on some rows, and then on all
_POINTS = 1 << 21  # chances computed at a time
_ROWS = 5_000


def spike_line(recipe: Recipe, spike: Spike) -> Array:
    """Coefficients of X at the mode of γ."""
    return np.asarray(recipe.basis @ _find_mode(recipe, spike), dtype=np.float64)


def expect_presence(recipe: Recipe, spike: Spike) -> Presence:
    """At the mode of γ; the number of amounts varies by what the noise and the caps hide of the sum."""
    mode = _find_mode(recipe, spike)
    chance = np.empty(recipe.records)
    for rows in _blocks(recipe.records):
        chance[rows] = expit(-(recipe.matrix[rows] @ (recipe.basis @ mode)))
    return presence_given(recipe, chance, noise_variance(recipe, spike))


def presence_given(recipe: Recipe, chance: PerRecord, noise: float) -> Presence:
    """For chances of an amount, where the sum over all others has this variance of noise on each entry."""
    mixed = chance * (1 - chance)
    loadings = recipe.loadings * LOADING_UNIT
    along = mixed @ loadings
    spread = (loadings * mixed[:, None]).T @ loadings + noise * np.eye(len(along))
    hidden = float(mixed.sum() - along @ np.linalg.solve(spread, along))
    return Presence(chance, max(hidden, 0.0), noise)


def draw_spike(recipe: Recipe, spike: Spike, *, draws: int, key: Key, rows: int = _ROWS) -> Array:
    """Draws of γ, coefficients of X (draws, p); at most so many rows say how T₀'s mean bends."""
    mode = _find_mode(recipe, spike)
    target = _Target.about(recipe, spike, mode, rows)
    points, _ = draw_about_mode(target, mode, target.curvature(), draws=draws, key=key)
    return np.asarray(points @ recipe.basis.T, dtype=np.float64)


def draw_chances(recipe: Recipe, spike: Spike, key: Key) -> tuple[PerRecord, PerRecord]:
    """Each record's chance of the spike: at the mode, and at one draw from the normal about it."""
    mode = _find_mode(recipe, spike)
    root = np.linalg.cholesky(_Target.about(recipe, spike, mode).curvature())
    drawn = mode + np.linalg.solve(root.T, key.stream().normal(len(mode)))
    at_mode, elsewhere = (np.asarray(expit(recipe.matrix @ (recipe.basis @ h))) for h in (mode, drawn))
    return at_mode, elsewhere


class _Moments(NamedTuple):
    """Of T₀/n at one γ, over some rows."""

    mean: Array
    slope: Array  # by coordinates of γ (p, p)
    spread: Array  # n times the covariance by sampling (p, p)


def _moments(recipe: Recipe, spike: Spike, point: Array, rows: Rows | None = None) -> _Moments:
    """Block by block; over all rows unless some are named.

    Entries of other protected columns are random: what they scatter by themselves is part of the spread.
    """
    places = np.arange(recipe.records) if rows is None else rows
    mean, slope, spread = np.zeros(len(point)), np.zeros(recipe.basis.shape), np.zeros(recipe.basis.shape)
    for block in _blocks(len(places)):
        Q, V = recipe.matrix[places[block]] @ recipe.basis, recipe.loadings[places[block]] * LOADING_UNIT
        chance, left = expit(Q @ point), spike.remaining(places[block])
        here, bend = left * chance, left * chance * (1 - chance)
        mixed = here * (1 - here)
        mean, slope = mean + here @ V, slope + V.T @ (Q * bend[:, None])
        spread = spread + V.T @ (V * mixed[:, None])
        if recipe.entries:
            U, at = V[:, -recipe.entries :], slice(len(point) - recipe.entries, None)
            spread[at, at] += U.T @ (U * (spike.spread_of_entries(here) - mixed)[:, None])
    return _Moments(mean / len(places), slope / len(places), spread / len(places))


def _blocks(records: int) -> list[slice]:
    return [slice(first, first + ROWS) for first in range(0, records, ROWS)]


def noise_variance(recipe: Recipe, spike: Spike) -> float:
    """Of the noise on each entry of a sum."""
    return (2.0 if recipe.noise == "laplace" else 1.0) * spike.scale**2


def _prior(recipe: Recipe) -> tuple[Array, Array]:
    """Mean and precision of γ in coordinates of Q."""
    state = start(replace(recipe, low=-_LOGITS, high=_LOGITS))
    return state.line, np.asarray(np.linalg.inv(state.noisy), dtype=np.float64)


def _observed(recipe: Recipe, spike: Spike) -> Array:
    """T₀/n; no noise in practice leads further than this."""
    far = np.abs(recipe.loadings).sum(axis=0) * LOADING_UNIT + 60 * spike.scale
    return np.asarray(np.clip(spike.scores, -far, far) / recipe.records)


def _find_mode(recipe: Recipe, spike: Spike) -> Array:
    """By scoring with halved steps: on some rows of a long table first, the last steps on all."""
    n, noise = recipe.records, noise_variance(recipe, spike)
    observed, (centre, precision) = _observed(recipe, spike), _prior(recipe)

    def value(at: _Moments, point: Array) -> float:
        spread = at.spread / n + noise / n**2 * np.eye(len(point))
        away, residual = point - centre, observed - at.mean
        fit = residual @ np.linalg.solve(spread, residual) + np.linalg.slogdet(spread)[1]
        return float(away @ precision @ away + fit)

    here, chosen = centre, choose_rows(n)
    phases = [(chosen, _STEPS)] if len(chosen) == n else [(chosen, _STEPS), (None, _FULL)]
    for rows, steps in phases:
        at = _moments(recipe, spike, here, rows)
        for _ in range(steps):
            weight = np.linalg.inv(at.spread / n + noise / n**2 * np.eye(len(here)))
            curvature = precision + at.slope.T @ weight @ at.slope
            gradient = at.slope.T @ weight @ (observed - at.mean) - precision @ (here - centre)
            step, before = np.linalg.solve(curvature, gradient), value(at, here)
            for halvings in range(_HALVINGS):
                there = here + step / 2**halvings
                then = _moments(recipe, spike, there, rows)
                if value(then, there) < before:
                    break
            else:
                break
            here, at = there, then
            if float(step @ curvature @ step) < 1e-8:
                break
    return np.asarray(here, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Target:
    """The posterior of γ in coordinates of Q. Of a long table some rows say how far T₀'s mean bends."""

    mode: Array
    observed: Array  # T₀/n
    noise: float  # variance of the noise on it
    records: int
    prior: tuple[Array, Array]
    rows: Array  # q of the rows by which chances are computed
    weights: Array  # v q of these rows, over their number
    left: Array | float  # their chances of being here at all
    at: _Moments  # over all rows, at the mode
    some: _Moments  # over these

    @classmethod
    def about(cls, recipe: Recipe, spike: Spike, mode: Array, rows: int = _ROWS) -> "_Target":
        chosen = choose_rows(recipe.records, rows)
        Q, V = recipe.matrix[chosen] @ recipe.basis, recipe.loadings[chosen] * LOADING_UNIT
        at, some = _moments(recipe, spike, mode), _moments(recipe, spike, mode, chosen)
        observed, noise = _observed(recipe, spike), noise_variance(recipe, spike) / recipe.records**2
        known = mode, observed, noise, recipe.records, _prior(recipe)
        return cls(*known, Q, V / len(chosen), spike.remaining(chosen), at, some)

    def curvature(self) -> Array:
        """About the mode."""
        spread = self.at.spread / self.records + self.noise * np.eye(len(self.mode))
        return self.prior[1] + self.at.slope.T @ np.linalg.solve(spread, self.at.slope)

    def log_density(self, points: Array) -> Array:
        """At rows of coordinates, up to a constant; the sampling variance grows as p (1 − p) does."""
        centre, precision = self.prior
        sizes, turn = np.linalg.eigh(self.at.spread / self.records)
        usual = self.left * expit(self.rows @ self.mode)
        usual_mixed = float((usual * (1 - usual)).mean())
        found = np.empty(len(points))
        for first in range(0, len(points), size := max(1, _POINTS // len(self.rows))):
            part = points[first : first + size]
            away, chance = part - self.mode, self.left * expit(part @ self.rows.T)
            mean = chance @ self.weights - self.some.mean + self.at.mean
            mean += away @ (self.at.slope - self.some.slope).T
            mixed = (chance * (1 - chance)).mean(axis=1) / max(usual_mixed, 1e-300)
            variance = self.noise + np.maximum(sizes, 0.0) * mixed[:, None]
            turned = (self.observed - mean) @ turn
            far = part - centre
            prior = ((far @ precision) * far).sum(axis=1)
            found[first : first + size] = -(prior + (turned**2 / variance + np.log(variance)).sum(axis=1)) / 2
        return found
