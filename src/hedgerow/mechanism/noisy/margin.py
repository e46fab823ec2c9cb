"""A margin for models that are wrong: noisy counts of the response, shrunk, and records tilted towards them.

Bins have equal probability under the released model's own margin, so their edges follow from what was
released before. What the noisy counts say beyond that margin is expanded in cosines of u = F(x), blocks of
them are shrunk by how much of them noise alone explains, and every record's predictive density is multiplied
by weights that are constant on bins, until the average over records has the margin found:

    p(x | z_i, θ) w(x) / norm_i   with   1/n Σ_i P_i(bin) w(bin) / norm_i = target(bin)

Edges are a function of earlier output, the tilt one of noisy counts, θ, X and n: post-processing. With little
ε the counts add more than they mend: `margin_pays` says beforehand, from public things.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from hedgerow.arrays import Array
from hedgerow.errors import SettingError
from hedgerow.mechanism.noisy.estimate import Estimate
from hedgerow.mechanism.noisy.leaves.groups import group_fitted
from hedgerow.mechanism.noisy.recipe import Recipe
from hedgerow.mechanism.noisy.released import Counts, Released
from hedgerow.privacy.strict.limits import Relation

BINS = 32
LEAST = 200.0  # records × share × ε below which counts hurt (n = 200: ECDF maximum 0.065 → 0.075)
_BLOCKS = ((1, 2), (3, 4, 5), (6, 7, 8, 9, 10))
_SHRINK = 3.0
_FLOOR = 0.02  # of the model's probability: no bin is emptied
_ROUNDS, _CLOSE = 200, 1e-9


@dataclass(frozen=True, eq=False)
class Tilt:
    """Weights of the response's bins. Public, as what it comes from."""

    edges: Array  # inner edges
    weights: Array  # one more than edges
    margin: Array  # the shares of the bins that records have together


def margin_pays(
    records: int, share: float, epsilon: float, relation: Relation = "withheld", rows_per_unit: int = 1
) -> bool:
    """Whether counts for that share of ε mend more than their noise spoils. Known beforehand.

    An outcome that is replaced leaves one bin and enters another, which takes twice the noise; several rows
    of a person share ε.
    """
    return records * share * epsilon >= least_for_margin(relation, rows_per_unit)


def least_for_margin(relation: Relation, rows_per_unit: int) -> float:
    """How much records × share × ε must be at least for counts to pay."""
    return LEAST * rows_per_unit * (1 if relation == "withheld" else 2)


def bin_edges(recipe: Recipe, estimate: Estimate, bins: int = BINS) -> Array:
    """Inner edges of bins that have equal probability under the model's own margin, by bisection."""
    ((fitted, share),) = group_fitted(recipe, [estimate.beta])
    sigma = float(estimate.sigma)
    wanted = np.arange(1, bins) / bins
    low = np.full(bins - 1, fitted.min() - 10 * sigma)
    high = np.full(bins - 1, fitted.max() + 10 * sigma)
    for _ in range(60):
        middle = 0.5 * (low + high)
        below = share @ ndtr((middle - fitted[:, None]) / sigma) < wanted
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.maximum.accumulate(high)


def fit_tilt(released: Released, beta: Array, sigma: float) -> Tilt:
    """The tilt that gives copies of one draw the margin which the noisy counts support.

    Needs a release with counts. Where they say nothing beyond the noise, all weights are 1.
    """
    return fit_tilts(released, [(beta, sigma)])[0]


def fit_tilts(released: Released, draws: Sequence[tuple[Array, float]]) -> list[Tilt]:
    """`fit_tilt` for several draws of line and σ, in as many passes over records as one draw takes."""
    counts = released.counts
    if counts is None:
        raise SettingError("This release has no counts, and so no margin. Ask for one with margin=.")
    groups = group_fitted(released.recipe, [beta for beta, _ in draws])
    return [
        _fit_tilt(counts, released.recipe.amounts, fitted, share, sigma)
        for (fitted, share), (_, sigma) in zip(groups, draws, strict=True)
    ]


def _fit_tilt(counts: Counts, amounts: float, fitted: Array, share: Array, sigma: float) -> Tilt:
    """By iterative proportional fitting over groups of records."""
    chances = bin_chances(fitted, sigma, counts.edges)
    model = share @ chances
    target = _smooth(model, counts.counts / amounts, counts.scale / amounts)
    weights = np.ones(len(model))
    for _ in range(_ROUNDS):
        tilted = chances * weights
        found = share @ (tilted / tilted.sum(axis=1, keepdims=True))
        if np.abs(found - target).max() < _CLOSE:
            break
        weights = weights * target / np.maximum(found, 1e-300)
        weights = weights / (weights @ model)
    return Tilt(counts.edges, weights, target)


def bin_chances(fitted: Array, sigma: float, edges: Array) -> Array:
    """Probability of each bin for each fitted value, never quite zero."""
    z = (edges - fitted[:, None]) / sigma
    tail = ndtr(-np.abs(z))
    below, above = np.where(z < 0, tail, 1 - tail), np.where(z < 0, 1 - tail, tail)
    # From the nearer tail, so that far bins keep their digits.
    middle = np.where(below[:, 1:] > 0.5, above[:, :-1] - above[:, 1:], below[:, 1:] - below[:, :-1])
    return np.maximum(np.hstack((below[:, :1], middle, above[:, -1:])), 1e-300)


def _smooth(model: Array, observed: Array, scale: float) -> Array:
    """The margin that counts support: the model's, and of the deviation what stands out of the noise."""
    ends = np.concatenate(([0.0], np.cumsum(model) / model.sum()))
    width = np.maximum(np.diff(ends), 1e-12)
    ratio = np.ones(len(model))
    for block in _BLOCKS:
        angle = np.pi * np.array(block)[:, None]
        cosines = np.sqrt(2) * np.diff(np.sin(angle * ends), axis=1) / (angle * width)
        found = cosines @ (observed - model)
        noise = 2 * scale**2 * (cosines**2).sum()
        kept = max(1 - _SHRINK * noise / max(float((found**2).sum()), 1e-300), 0.0)
        ratio = ratio + kept * found @ cosines
    target = model * np.maximum(ratio, _FLOOR)
    return target / target.sum()
