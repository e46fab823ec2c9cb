"""Draws given what was released of every column, and copies from them: post-processing, any number.

A column without entries has the posterior of `noisy.posterior`. With entries only its second round counts:
there residuals are about a line that has the entries in it, so that it matters little how the table's own
entries scatter, of which nobody knows more than stand-ins do.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hedgerow.arrays import Array, Matrix, PerRecord
from hedgerow.mechanism.copies import stratify
from hedgerow.mechanism.noisy.chain.classes import ReleasedClasses, chances_of, draw_classes, pick_classes
from hedgerow.mechanism.noisy.chain.release import ReleasedColumn, join_entries
from hedgerow.mechanism.noisy.copies import draw_zeros, predict
from hedgerow.mechanism.noisy.margin import fit_tilt
from hedgerow.mechanism.noisy.posterior import PosteriorDraws, draw_posterior
from hedgerow.mechanism.noisy.recipe import Released
from hedgerow.models.base import Parameters
from hedgerow.privacy.settings import Sampling
from hedgerow.randomness import Key


def draw_column(column: ReleasedColumn, *, draws: int, key: Key) -> PosteriorDraws:
    """Draws of one column's parameters, entries last among the coefficients."""
    released = column.released
    if isinstance(released, ReleasedClasses):
        lines = draw_classes(released, draws=draws, key=key)
        return PosteriorDraws({"logits": lines}, float(draws), (1.0, 1.0, 1.0))
    if column.task.reads:
        released = replace(released, rounds=released.rounds[-1:])
    return draw_posterior(released, draws=draws, key=key)


def predict_chain(
    columns: Sequence[ReleasedColumn],
    parameters: Sequence[Parameters],
    place: int,
    *,
    sampling: Sampling,
    key: Key,
) -> list[PerRecord]:
    """One copy from the draws at one place: responses (NaN at a spike) and places of classes, by column."""
    made: list[PerRecord] = []
    entries: list[Array] = []
    for number, (column, own) in enumerate(zip(columns, parameters, strict=True)):
        matrix, this = join_entries(column.task, entries), key.child(number)
        if isinstance(column.released, ReleasedClasses):
            chances = chances_of(own["logits"][place], matrix)
            values = pick_classes(chances, _numbers(chances, sampling, this))
        else:
            values = _predict_amounts(column.released, matrix, own, place, sampling, this)
        made.append(values)
        present = np.ones(len(values), dtype=np.bool_)
        entries.append(column.handed.entries(matrix, values, present))
    return made


def _predict_amounts(
    released: Released, matrix: Matrix, own: Parameters, place: int, sampling: Sampling, key: Key
) -> PerRecord:
    recipe = replace(released.recipe, matrix=matrix)
    beta, sigma = own["beta"][place], float(own["sigma"][place])
    tilt = None if released.counts is None else fit_tilt(released, beta, sigma)
    values = predict(recipe, beta, sigma, tilt, sampling=sampling, key=key)
    if released.spike is None:
        return values
    zeros = draw_zeros(recipe, own["spike_beta"][place], sampling=sampling, key=key.child("spike"))
    return np.where(zeros, np.nan, values)


def _numbers(chances: Array, sampling: Sampling, key: Key) -> PerRecord:
    numbers = key.stream().uniform(len(chances))
    if sampling == "independent":
        return numbers
    ties, order = key.child("strata").stream().uniform((2, len(chances)))
    return stratify(chances @ np.arange(chances.shape[1]), numbers, ties=ties, order=order)
