"""Synthetic responses from draws given released statistics: post-processing, for any number of copies.

Three ways to draw them from the normal about the line (tilted where there is a margin):

- `independent`: records by themselves;
- `stratified`: evenly spread among the records of a leaf that have neighbouring fitted values
  (`mechanism.copies.stratify`);
- `projected`: stratified residuals with their regression on X taken out and rescaled, so that least squares
  on the copy returns β, and √(RSS / (n − p)) returns σ. With a tilt only β: its scale belongs to the margin.

A projected copy has no sampling error of its own about its draw. Rules that combine copies must leave it out:
with M copies the variance of the mean estimate is (1 + 1/M) B with M − 1 degrees of freedom, B the variance
between copies; a standard error computed from one copy says nothing about the data.

Copies are clipped to the limits: these say, without the data, where values lie, and what the rounds read was
clipped there too. A value at a limit moves a projected copy's regression a little off its draw.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from scipy.special import expit, ndtri

from hedgerow.arrays import Array, Matrix, PerRecord, RecordMask
from hedgerow.mechanism.copies import stratify_leaf
from hedgerow.mechanism.noisy.leaves.rows import Part, add_parts
from hedgerow.mechanism.noisy.margin import Tilt, bin_chances, fit_tilts
from hedgerow.mechanism.noisy.recipe import Recipe
from hedgerow.mechanism.noisy.released import Released
from hedgerow.models.base import Parameters
from hedgerow.models.scored import Interval
from hedgerow.numerics import leaves
from hedgerow.numerics.normal_mass import interval_quantile
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict.limits import amounts_of, spike_of
from hedgerow.privacy.terms import Sampling
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.threads import one_blas_thread, share_out

_ROWS = 4096  # times bins: what fits the cache


@dataclass(frozen=True, eq=False)
class Numbers:
    """Uniform numbers of one copy, leaf by leaf: those of a leaf are made without those of others."""

    records: int  # of all leaves
    sampling: Sampling
    key: Key = field(repr=False)

    def of(self, rows: slice, fitted: PerRecord, leaf: int | None = None) -> PerRecord:
        """One in (0, 1) for each of a leaf's records, which have these fitted values.

        The number of the leaf follows from its rows where every record of the table is one of these.
        """
        fresh = self.key.stream().part(rows, self.records)
        if self.sampling == "independent":
            return fresh
        leaf = rows.start // leaves.LEAF if leaf is None else leaf
        return stratify_leaf(fitted, fresh, leaf, key=self.key.child("strata"))


@dataclass(frozen=True, eq=False)
class Drawing:
    """What one copy's responses are made by: small, and public but for the key."""

    beta: Array
    sigma: float
    tilt: Tilt | None
    limits: tuple[float, float]  # of the response
    numbers: Numbers
    taken_out: tuple[Array, ...] = ()  # n times the lines that projected residuals are rid of in turn
    stretch: float | None = None  # what makes them as large as σ says

    def residuals(self, rows: slice, matrix: Matrix, fitted: PerRecord, leaf: int | None = None) -> PerRecord:
        """Residuals of a leaf's records, less what is already settled to be taken out of them."""
        numbers = self.numbers.of(rows, fitted, leaf)
        if self.tilt is None:
            residual = self.sigma * ndtri(numbers)
        else:
            residual = _tilt_quantiles(fitted, self.sigma, self.tilt, numbers) - fitted
        for line in self.taken_out:
            residual = residual - matrix @ line / self.numbers.records
        return np.asarray(residual if self.stretch is None else residual * self.stretch)

    def responses(self, rows: slice, matrix: Matrix, leaf: int | None = None) -> PerRecord:
        """One copy's responses (the log of the outcome for the lognormal) in a leaf, within the limits."""
        fitted = matrix @ self.beta
        return np.asarray(np.clip(fitted + self.residuals(rows, matrix, fitted, leaf), *self.limits))


@dataclass(frozen=True, eq=False)
class Copying:
    """What one copy's outcomes are made by, leaf by leaf: small, and public but for the keys."""

    settings: Settings
    draw: Parameters
    drawing: Drawing
    zeros: Numbers  # of the family's spike, where there is one

    def values(self, design: Design, rows: slice, classes: Interval | None = None) -> PerRecord:
        """The outcomes of a leaf, inside `classes` where these are given. `design` has no outcome."""
        model, spike = amounts_of(self.settings.model), spike_of(self.settings.model)
        if classes is not None and model is not None:
            line = {"beta": self.draw["beta"], "sigma": np.asarray(float(self.draw["sigma"]))}
            fitted = model.predict(design, line, np.full(design.records, 0.5))
            return model.predict_inside(design, line, classes, self.drawing.numbers.of(rows, fitted))
        response = self.drawing.responses(rows, design.matrix)
        values = response if model is None else model.outcome(response)
        if spike is None:
            return values
        return np.where(_fall(design.matrix, self.draw["spike_beta"], self.zeros, rows), spike, values)


def plan_copies(settings: Settings, released: Released, parameters: Parameters, *, key: Key) -> list[Copying]:
    """How copies are made from draws that lie far apart."""
    draws = [{name: one[place] for name, one in parameters.items()} for place in draw_places(settings)]
    keys = [key.child("predict").child(copy) for copy in range(len(draws))]
    return plan_from(settings, released, draws, keys)


def draw_places(settings: Settings) -> list[int]:
    """The draws that copies come from, far apart."""
    return [int((copy + 0.5) * settings.draws / settings.copies) for copy in range(settings.copies)]


@one_blas_thread()
def plan_from(
    settings: Settings, released: Released, draws: Sequence[Parameters], keys: Sequence[Key]
) -> list[Copying]:
    """How a copy is made from each draw, by the settings' sampling: in passes over records that all share."""
    recipe, sampling = released.recipe, settings.sampling
    lines = [(draw["beta"], float(draw["sigma"])) for draw in draws]
    inside = settings.standard.inside  # then copies know nothing of margins, nor of projections
    tilts = [None] * len(lines) if released.counts is None or inside else fit_tilts(released, lines)
    drawings = [
        draw_responses(recipe, beta, sigma, tilt, sampling=sampling, key=key)
        for (beta, sigma), tilt, key in zip(lines, tilts, keys, strict=True)
    ]
    if sampling == "projected" and not inside:
        drawings = _project(recipe, drawings)
    zeros = [Numbers(recipe.records, sampling, key.child("spike")) for key in keys]
    return [Copying(settings, *one) for one in zip(draws, drawings, zeros, strict=True)]


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
    (copying,) = plan_from(settings, released, [draw], [key])
    return predict_all(copying, design, classes)


@one_blas_thread()
def predict_all(copying: Copying, design: Design, classes: Interval | None) -> PerRecord:
    """One copy's outcomes of a table in memory, leaf by leaf; `design` has no outcome."""

    def predict_leaf(rows: slice) -> PerRecord:
        here = design.take(np.arange(rows.start, rows.stop, dtype=np.intp))
        part = None
        if classes is not None:
            part = Interval(classes.lower[rows], classes.upper[rows], classes.inside[rows])
        return copying.values(here, rows, part)

    every = leaves.leaves_of(design.records)
    return np.concatenate(share_out(predict_leaf, every, worth=len(every) > 1))


@one_blas_thread()
def predict(
    recipe: Recipe, beta: Array, sigma: float, tilt: Tilt | None, *, sampling: Sampling, key: Key
) -> PerRecord:
    """One copy's responses (the log of the outcome for the lognormal), within the limits."""
    drawing = draw_responses(recipe, beta, sigma, tilt, sampling=sampling, key=key)
    if sampling == "projected":
        (drawing,) = _project(recipe, [drawing])
    return np.concatenate(list(recipe.rows.each(lambda part: drawing.responses(part.rows, part.matrix))))


def draw_responses(
    recipe: Recipe, beta: Array, sigma: float, tilt: Tilt | None, *, sampling: Sampling, key: Key
) -> Drawing:
    """By what responses of one draw are made, projections apart."""
    return Drawing(beta, sigma, tilt, (recipe.low, recipe.high), Numbers(recipe.records, sampling, key))


@one_blas_thread()
def draw_zeros(recipe: Recipe, coefficients: Array, *, sampling: Sampling, key: Key) -> RecordMask:
    """Which values of one copy lie at the spike, by a draw of its logistic regression."""
    numbers = Numbers(recipe.records, sampling, key)
    zeros = recipe.rows.each(lambda part: _fall(part.matrix, coefficients, numbers, part.rows))
    return np.concatenate(list(zeros))


def _fall(matrix: Matrix, coefficients: Array, numbers: Numbers, rows: slice) -> RecordMask:
    logits = matrix @ coefficients
    return np.asarray(numbers.of(rows, logits) < expit(logits), dtype=np.bool_)


def _tilt_quantiles(fitted: PerRecord, sigma: float, tilt: Tilt, numbers: PerRecord) -> PerRecord:
    """Quantiles of each record's tilted density: first the bin, then the place in it."""
    ends = np.concatenate(([-np.inf], tilt.edges, [np.inf]))
    values = np.empty(len(fitted))

    def fill(first: int) -> None:
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

    share_out(fill, range(0, len(fitted), _ROWS), worth=len(fitted) > 4 * _ROWS)
    return values


def _project(recipe: Recipe, drawings: Sequence[Drawing]) -> list[Drawing]:
    """Residuals at right angles to X, with σ² (n − p) as their sum of squares where nothing is tilted.

    Passes over all records find what to take out; residuals are made again in each from their numbers.
    """
    drawings = list(drawings)
    for _ in range(2):  # twice, because the basis is orthonormal up to rounding only
        crossed = add_parts(recipe.rows.each(partial(_cross_residuals, drawings)))
        drawings = [
            replace(one, taken_out=(*one.taken_out, recipe.basis @ (recipe.basis.T @ along)))
            for one, along in zip(drawings, crossed, strict=True)
        ]
    free = recipe.records - len(recipe.basis)
    sizes = add_parts(recipe.rows.each(partial(_square_residuals, drawings)))
    return [
        one
        if one.tilt is not None or size == 0 or free <= 0
        else replace(one, stretch=one.sigma * np.sqrt(free / size))
        for one, size in zip(drawings, sizes, strict=True)
    ]


def _cross_residuals(drawings: list[Drawing], part: Part) -> tuple[Array, ...]:
    matrix = part.matrix
    return tuple(matrix.T @ one.residuals(part.rows, matrix, matrix @ one.beta) for one in drawings)


def _square_residuals(drawings: list[Drawing], part: Part) -> tuple[float, ...]:
    matrix = part.matrix
    residuals = (one.residuals(part.rows, matrix, matrix @ one.beta) for one in drawings)
    return tuple(float(residual @ residual) for residual in residuals)
