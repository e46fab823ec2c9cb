"""Independent draws of a few coordinates from a density about one mode.

Every draw is the end of a Metropolis chain of its own, whose proposals come from a multivariate t about the
mode, fitted to the density where its peak is not like the rest. A step makes a chain forget its start with a
probability of at least the mean importance ratio over the largest; steps go on until all but one in a hundred
have forgotten, as far as the ratios seen tell.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.linalg import solve_triangular

from hedgerow.arrays import Array
from hedgerow.randomness import Key

_STEPS = 200  # of every chain at most
_REMEMBERING = 0.01  # share of chains that may still depend on their start
_PILOTS, _PILOT = 4, 1000  # times proposals are fitted, and to how many
_FITTING = 0.25  # mean importance ratio over the largest at which they need it no more
_WIDER = 1.2  # than the variance that was found
_NEWTON = 100  # steps to the mode at most


@runtime_checkable
class Target(Protocol):
    """A density whose mode is looked for."""

    def log_density(self, points: Array) -> Array:
        """The log density at rows of coordinates, up to a constant."""
        ...


@runtime_checkable
class Sloping(Target, Protocol):
    """A density with its derivatives, and a normal prior among its factors."""

    @property
    def centre(self) -> Array:
        """The mean of the prior."""
        ...

    @property
    def precision(self) -> Array:
        """The precision of the prior."""
        ...

    def slope(self, point: Array) -> tuple[Array, Array]:
        """The gradient at a point first."""
        ...

    def curvature(self, point: Array) -> Array:
        """Minus the second derivatives."""
        ...


def draw_about_mode(
    target: Target, mode: Array, precision: Array, *, draws: int, key: Key
) -> tuple[Array, float]:
    """Draws, one row each, and how many of them have forgotten where they started."""
    proposal = _Proposal(mode, precision)
    for turn in range(_PILOTS):  # a few records make a posterior that is not like its peak
        points, ratio = proposal.draw(target, _PILOT, key.child("pilot").child(turn))
        weights = np.exp(ratio - ratio.max())
        if weights.mean() > _FITTING:
            break
        proposal = proposal.refit(points, weights)
    here, current = proposal.draw(target, draws, key.child("start"))
    seen, remembering = current, 1.0
    for step in range(1, _STEPS + 1):
        own = key.child("step").child(step)
        points, ratio = proposal.draw(target, draws, own)
        accepted = np.log(own.child("accept").stream().uniform(draws)) < ratio - current
        here, current = np.where(accepted[:, None], points, here), np.where(accepted, ratio, current)
        seen = np.concatenate([seen, ratio])
        remembering = (1 - float(np.exp(seen - seen.max()).mean())) ** step
        if remembering < _REMEMBERING:
            break
    return here, draws * (1 - remembering)


@dataclass(frozen=True, eq=False)
class _Proposal:
    """A multivariate t: tails heavier than the posterior's, the less so the more coordinates there are."""

    centre: Array
    precision: Array

    def draw(self, target: Target, count: int, key: Key) -> tuple[Array, Array]:
        """Points, and the log of their importance ratios up to a constant."""
        stream, width = key.stream(), len(self.centre)
        freedom = 4.0 + width
        away = stream.normal((count, width))
        away *= np.sqrt(freedom / (2.0 * stream.gamma(freedom / 2, count)))[:, None]
        points = self.centre + solve_triangular(np.linalg.cholesky(self.precision).T, away.T).T
        proposed = -(freedom + width) / 2 * np.log1p((away**2).sum(axis=1) / freedom)
        return points, target.log_density(points) - proposed

    def refit(self, points: Array, weights: Array) -> "_Proposal":
        """The t about the weighted mean; no point counts for more than ten."""
        weights = np.minimum(weights, 10 * weights.mean())
        weights = weights / weights.sum()
        centre = weights @ points
        away = points - centre
        covariance = _WIDER * (away * weights[:, None]).T @ away
        spread = np.trace(covariance) / len(centre)
        return _Proposal(centre, np.linalg.inv(covariance + 1e-9 * spread * np.eye(len(centre))))


def find_mode(target: Sloping) -> tuple[Array, Array]:
    """The mode by Newton's method with halved steps, and the curvature there."""

    def value(point: Array) -> float:
        return float(target.log_density(point[None])[0])

    here = target.centre
    best = value(here)
    for _ in range(_NEWTON):
        gradient, curvature = target.slope(here)[0], _positive(target.curvature(here), target.precision)
        step: Array = np.linalg.solve(curvature, gradient).astype(np.float64)
        gain = float(gradient @ step)
        if gain < 1e-10:
            break
        there, best = _walk(value, here, step, best)
        if there is here:
            break
        here = there
    return here, _positive(target.curvature(here), target.precision)


def _walk(value: Callable[[Array], float], here: Array, step: Array, best: float) -> tuple[Array, float]:
    """The first of ever shorter steps that leads upwards; where none does, the place itself."""
    for halvings in range(40):
        there = here + step / 2**halvings
        found = value(there)
        if found > best:
            return there, found
    return here, best


def _positive(curvature: Array, least: Array) -> Array:
    """The curvature, raised to a share of the prior's in directions in which it is less or bends upwards."""
    scale = np.linalg.cholesky(least)
    whitened = solve_triangular(scale, solve_triangular(scale, curvature, lower=True).T, lower=True)
    values, vectors = np.linalg.eigh((whitened + whitened.T) / 2)
    raised = scale @ vectors
    return np.asarray((raised * np.maximum(values, 0.5)) @ raised.T, dtype=np.float64)
