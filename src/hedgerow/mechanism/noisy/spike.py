"""Which outcomes lie at the spike: a logistic regression from one noisy sum of loadings.

The sum over outcomes at the spike, T₀ = Σ v_i q_i + noise, has the mean Σ v_i q_i p_i, where p_i is
1/(1 + exp(−x_i'γ)): but for caps it is the statistic of logistic regression. It is nearly normal,

    T₀ | γ ~ Normal(Σ v_i q_i p_i, Σ v_i² q_i q_i' p_i (1 − p_i) + variance of the noise)

and the prior is the line's, on the logit scale with −5 and 5 for limits: mean shares of 0.7 to 99.3 %.
`expect_presence` says which records have an amount as far as T₀ tells, for the rounds that follow;
`draw_spike` draws γ. Everything here is a function of T₀ and of public things: post-processing.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from hedgerow.arrays import Array, Matrix, PerRecord
from hedgerow.mechanism.noisy.estimate import start
from hedgerow.mechanism.noisy.leaves.rows import Loadings, Part, add_parts
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT, Presence, Recipe, chance_left, choose_rows
from hedgerow.mechanism.noisy.released import Spike
from hedgerow.numerics.sums.modes import draw_about_mode
from hedgerow.numerics.triangular import ROWS
from hedgerow.randomness import Key

_LOGITS = 5.0
_STEPS, _HALVINGS, _FULL = 50, 12, 4  # steps to the mode: on some rows, and then on all
_POINTS = 1 << 21  # chances computed at a time
_ROWS = 5_000


def spike_line(recipe: Recipe, spike: Spike) -> Array:
    """Coefficients of X at the mode of γ."""
    return np.asarray(recipe.basis @ _find_mode(recipe, spike), dtype=np.float64)


def expect_presence(recipe: Recipe, spike: Spike) -> Presence:
    """At the mode of γ; the number of amounts varies by what the noise and the caps hide of the sum."""
    return presence_given(recipe, spike_line(recipe, spike)[None], noise_variance(recipe, spike))


def presence_given(recipe: Recipe, lines: Array, noise: float) -> Presence:
    """For lines of logits of what is no amount, whose sums have this variance of noise on each entry."""
    total, mixed, along, spread = add_parts(recipe.rows.each(partial(_mix, lines)))
    spread = spread + noise * np.eye(len(along))
    hidden = float(mixed - along @ np.linalg.solve(spread, along))
    return Presence(lines, float(total), max(hidden, 0.0), noise)


def _mix(lines: Array, part: Part) -> tuple[float, float, Array, Array]:
    """Σc, and Σc(1 − c){1, v q, v² q q'}, c the chance of an amount, of a leaf."""
    chance = chance_left(lines, part.matrix)
    mixed = chance * (1 - chance)
    loadings = part.loadings * LOADING_UNIT
    along, spread = mixed @ loadings, (loadings * mixed[:, None]).T @ loadings
    return float(chance.sum()), float(mixed.sum()), along, spread


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
    """Moments of T₀/n at one γ, over some rows."""

    mean: Array
    slope: Array  # by coordinates of γ (p, p)
    spread: Array  # n times the covariance by sampling (p, p)


class _Some(NamedTuple):
    """Some rows."""

    matrix: Matrix
    loadings: Loadings


def _choose(recipe: Recipe, most: int) -> _Some:
    return _Some(*recipe.pick(choose_rows(recipe.records, most)))


def _moments(recipe: Recipe, spike: Spike, point: Array, some: _Some | None = None) -> _Moments:
    """Over all rows unless some are given.

    Entries of other protected columns are random: what they scatter by themselves is part of the spread.
    """
    add = partial(_add_moments, recipe.basis, recipe.entries, spike, point)
    if some is None:
        mean, slope, spread = add_parts(recipe.rows.each(partial(_add_part, add)))
    else:
        mean, slope, spread = add(*some)
    records = recipe.records if some is None else len(some.matrix)
    return _Moments(mean / records, slope / records, spread / records)


def _add_part(add: Callable[[Matrix, Loadings], _Moments], part: Part) -> _Moments:
    return add(part.matrix, part.loadings)


def _add_moments(
    basis: Array, entries: int, spike: Spike, point: Array, matrix: Matrix, loadings: Loadings
) -> _Moments:
    """Sums over rows, block by block."""
    mean, slope, spread = np.zeros(len(point)), np.zeros(basis.shape), np.zeros(basis.shape)
    for first in range(0, len(matrix), ROWS):
        block = slice(first, first + ROWS)
        Q, V = matrix[block] @ basis, loadings[block] * LOADING_UNIT
        chance, left = expit(Q @ point), spike.remaining(matrix[block])
        here, bend = left * chance, left * chance * (1 - chance)
        mixed = here * (1 - here)
        mean, slope = mean + here @ V, slope + V.T @ (Q * bend[:, None])
        spread = spread + V.T @ (V * mixed[:, None])
        if entries:
            U, at = V[:, -entries:], slice(len(point) - entries, None)
            spread[at, at] += U.T @ (U * (spike.spread_of_entries(here) - mixed)[:, None])
    return _Moments(mean, slope, spread)


def noise_variance(recipe: Recipe, spike: Spike) -> float:
    """The variance of the noise on each entry of a sum."""
    return (2.0 if recipe.noise == "laplace" else 1.0) * spike.scale**2


def _prior(recipe: Recipe) -> tuple[Array, Array]:
    """Mean and precision of γ in coordinates of Q."""
    state = start(replace(recipe, low=-_LOGITS, high=_LOGITS))
    return state.line, np.asarray(np.linalg.inv(state.noisy), dtype=np.float64)


def _clip_mean(recipe: Recipe, spike: Spike) -> Array:
    """T₀/n; no noise in practice leads further than this."""
    far = recipe.reach + 60 * spike.scale
    return np.asarray(np.clip(spike.scores, -far, far) / recipe.records)


def _find_mode(recipe: Recipe, spike: Spike) -> Array:
    """By scoring with halved steps: on some rows of a long table first, the last steps on all."""
    n, noise = recipe.records, noise_variance(recipe, spike)
    observed, (centre, precision) = _clip_mean(recipe, spike), _prior(recipe)

    def value(at: _Moments, point: Array) -> float:
        spread = at.spread / n + noise / n**2 * np.eye(len(point))
        away, residual = point - centre, observed - at.mean
        fit = residual @ np.linalg.solve(spread, residual) + np.linalg.slogdet(spread)[1]
        return float(away @ precision @ away + fit)

    here, chosen = centre, _choose(recipe, _ROWS)
    phases: list[tuple[_Some | None, int]] = [(chosen, _STEPS)]
    if len(chosen.matrix) < n:
        phases.append((None, _FULL))
    for some, steps in phases:
        at = _moments(recipe, spike, here, some)
        for _ in range(steps):
            weight = np.linalg.inv(at.spread / n + noise / n**2 * np.eye(len(here)))
            curvature = precision + at.slope.T @ weight @ at.slope
            gradient = at.slope.T @ weight @ (observed - at.mean) - precision @ (here - centre)
            step, before = np.linalg.solve(curvature, gradient), value(at, here)
            for halvings in range(_HALVINGS):
                there = here + step / 2**halvings
                then = _moments(recipe, spike, there, some)
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
        chosen = _choose(recipe, rows)
        Q, V = chosen.matrix @ recipe.basis, chosen.loadings * LOADING_UNIT
        at, some = _moments(recipe, spike, mode), _moments(recipe, spike, mode, chosen)
        observed, noise = _clip_mean(recipe, spike), noise_variance(recipe, spike) / recipe.records**2
        known = mode, observed, noise, recipe.records, _prior(recipe)
        return cls(*known, Q, V / len(V), spike.remaining(chosen.matrix), at, some)

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
