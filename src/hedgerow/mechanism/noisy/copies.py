"""Synthetic responses from draws given released statistics: post-processing, for any number of copies.

Three ways to draw them from the normal about the line (tilted where there is a margin):

- `independent`: records by themselves;
- `stratified`: evenly spread among records with neighbouring fitted values (`mechanism.copies.stratify`);
- `projected`: stratified residuals with their regression on X taken out and rescaled, so that least squares
  on the copy returns β, and √(RSS / (n − p)) returns σ. With a tilt only β: its scale belongs to the margin.

A projected copy has no sampling error of its own about its draw. Rules that combine copies must leave it out:
with M copies the variance of the mean estimate is (1 + 1/M) B with M − 1 degrees of freedom, B the variance
between copies; a standard error computed from one copy says nothing about the data.

Copies are clipped to the limits: these say, without the data, where values lie, and what the rounds read was
clipped there too. A value at a limit moves a projected copy's regression a little off its draw.
"""

import numpy as np
from scipy.special import expit, ndtri

from hedgerow.arrays import Array, PerRecord, RecordMask
from hedgerow.mechanism.copies import stratify, uniforms
from hedgerow.mechanism.noisy.margin import Tilt, bin_chances, fit_tilt
from hedgerow.mechanism.noisy.recipe import Recipe, Released
from hedgerow.models.base import Parameters
from hedgerow.models.scored import Interval
from hedgerow.numerics.normal_mass import interval_quantile
from hedgerow.privacy.settings import Sampling, Settings
from hedgerow.privacy.strict.limits import amounts_of, spike_of
from hedgerow.randomness import Key
from hedgerow.tables.design import Design

_ROWS = 4096  # times bins: what fits the cache


def predict_values(
    settings: Settings,
    design: Design,
    released: Released,
    draw: Parameters,
    *,
    classes: Interval | None = None,
    key: Key,
) -> PerRecord:
    """One copy's outcomes from one draw, by the settings' sampling: inside `classes` where these are given.

    `design` has no outcome.
    """
    model, spike, recipe = amounts_of(settings.model), spike_of(settings.model), released.recipe
    beta, sigma = draw["beta"], float(draw["sigma"])
    if classes is not None and model is not None:
        line = {"beta": beta, "sigma": np.asarray(sigma)}
        return model.predict_inside(
            design, line, classes, uniforms(settings.sampling, model, design, line, key=key)
        )
    tilt = None if released.counts is None else fit_tilt(released, beta, sigma)
    response = predict(recipe, beta, sigma, tilt, sampling=settings.sampling, key=key)
    values = response if model is None else model.outcome(response)
    if spike is None:
        return values
    zeros = draw_zeros(recipe, draw["spike_beta"], sampling=settings.sampling, key=key.child("spike"))
    return np.where(zeros, spike, values)


def predict(
    recipe: Recipe, beta: Array, sigma: float, tilt: Tilt | None, *, sampling: Sampling, key: Key
) -> PerRecord:
    """One copy's responses (the log of the outcome for the lognormal), within the limits."""
    fitted = recipe.matrix @ beta
    numbers = key.stream().uniform(len(fitted))
    if sampling != "independent":
        ties, order = key.child("strata").stream().uniform((2, len(fitted)))
        numbers = stratify(fitted, numbers, ties=ties, order=order)
    residual = sigma * ndtri(numbers) if tilt is None else _tilted(fitted, sigma, tilt, numbers) - fitted
    if sampling == "projected":
        residual = _project(recipe, residual, None if tilt else sigma)
    return np.asarray(np.clip(fitted + residual, recipe.low, recipe.high), dtype=np.float64)


def draw_zeros(recipe: Recipe, coefficients: Array, *, sampling: Sampling, key: Key) -> RecordMask:
    """Which values of one copy lie at the spike, by a draw of its logistic regression."""
    logits = recipe.matrix @ coefficients
    numbers = key.stream().uniform(len(logits))
    if sampling != "independent":
        ties, order = key.child("strata").stream().uniform((2, len(logits)))
        numbers = stratify(logits, numbers, ties=ties, order=order)
    return np.asarray(numbers < expit(logits), dtype=np.bool_)


def _tilted(fitted: PerRecord, sigma: float, tilt: Tilt, numbers: PerRecord) -> PerRecord:
    """Quantiles of each record's tilted density: first the bin, then the place in it."""
    ends = np.concatenate(([-np.inf], tilt.edges, [np.inf]))
    values = np.empty(len(fitted))
    for first in range(0, len(fitted), _ROWS):
        rows = slice(first, first + _ROWS)
        mass = bin_chances(fitted[rows], sigma, tilt.edges) * tilt.weights
        upto = np.cumsum(mass, axis=1)
        wanted = numbers[rows] * upto[:, -1]
        chosen = (upto < wanted[:, None]).sum(axis=1)
        place = np.arange(len(wanted))
        inside = 1 - (upto[place, chosen] - wanted) / mass[place, chosen]
        standard = interval_quantile(
            (ends[chosen] - fitted[rows]) / sigma,
            (ends[chosen + 1] - fitted[rows]) / sigma,
            np.clip(inside, 0, 1),
        )
        values[rows] = fitted[rows] + sigma * standard
    return values


def _project(recipe: Recipe, residual: PerRecord, sigma: float | None) -> PerRecord:
    """Residuals at right angles to X, with σ² (n − p) as their sum of squares where σ is given."""
    records, columns = recipe.matrix.shape
    for _ in range(2):  # twice, because the basis is orthonormal up to rounding only
        residual = (
            residual
            - recipe.matrix @ (recipe.basis @ (recipe.basis.T @ (recipe.matrix.T @ residual))) / records
        )
    size = float(residual @ residual)
    if sigma is None or size == 0 or records <= columns:
        return residual
    return np.asarray(residual * (sigma * np.sqrt((records - columns) / size)), dtype=np.float64)
