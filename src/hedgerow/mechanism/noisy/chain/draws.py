"""Draws given what was released of every column, and copies from them: post-processing, any number.

A column without entries has the posterior of `noisy.posterior`. With entries only its second round counts:
there residuals are about a line that has the entries in it, so that it matters little how the table's own
entries scatter, of which nobody knows more than stand-ins do.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hedgerow.arrays import Array, Mask, Matrix, PerRecord
from hedgerow.mechanism.copies import stratify
from hedgerow.mechanism.noisy.chain.classes import ReleasedClasses, chances_of, draw_classes, pick_classes
from hedgerow.mechanism.noisy.chain.release import ReleasedColumn, join_entries
from hedgerow.mechanism.noisy.chain.tasks import Values
from hedgerow.mechanism.noisy.copies import predict
from hedgerow.mechanism.noisy.leaves.rows import HeldRows
from hedgerow.mechanism.noisy.margin import fit_tilt
from hedgerow.mechanism.noisy.posterior import PosteriorDraws, draw_posterior
from hedgerow.mechanism.noisy.recipe import Released
from hedgerow.models.base import Parameters
from hedgerow.privacy.settings import Sampling
from hedgerow.randomness import Key

Applies = Callable[[Sequence[Values]], Mask]  # where a rule leaves the next column a cell of its own


def draw_column(column: ReleasedColumn, *, draws: int, key: Key) -> PosteriorDraws:
    """Draws of one column's parameters, entries last among the coefficients."""
    released = column.released
    if isinstance(released, ReleasedClasses):
        lines = draw_classes(released, draws=draws, key=key)
        return PosteriorDraws({"logits": lines}, float(draws), (1.0, 1.0, 1.0))
    if column.task.reads:
        released = replace(released, rounds=released.rounds[-1:])
    drawn = draw_posterior(released, draws=draws, key=key)
    if column.kinds is not None:
        drawn.parameters["logits"] = draw_classes(column.kinds, draws=draws, key=key.child("kinds"))
    return drawn


def predict_chain(
    columns: Sequence[ReleasedColumn],
    parameters: Sequence[Parameters],
    place: int,
    *,
    sampling: Sampling,
    key: Key,
    applies: Applies | None = None,
) -> list[Values]:
    """One copy from the draws at one place, column by column.

    `applies` says of what was made so far in which rows the next column has a cell of its own, where a rule
    over protected columns decides that.
    """
    made: list[Values] = []
    entries: list[Array] = []
    for number, (column, own) in enumerate(zip(columns, parameters, strict=True)):
        task, this = column.task, key.child(number)
        matrix = join_entries(task, entries)
        fixed = ~task.pick(applies(made)) if applies and task.elsewhere else None
        there = np.ones(len(matrix), dtype=np.bool_)
        if isinstance(column.released, ReleasedClasses):
            chances = chances_of(own["logits"][place], matrix, signed=column.released.signed)
            values = Values(_draw_classes(chances, sampling, this, fixed, -1), there)
        else:
            numbers, kinds = _predict_amounts(column.released, matrix, own, place, sampling, this), None
            if column.kinds is not None:
                chances = chances_of(own["logits"][place], matrix, signed=False)
                kinds = _draw_classes(chances, sampling, this.child("kinds"), fixed, 0).astype(np.int64)
                numbers = np.where(kinds < len(task.kinds), np.nan, numbers)
            values = Values(numbers, there, kinds)
        made.append(values)
        entries.append(task.spread(column.handed.entries(matrix, values)))
    return made


def _predict_amounts(
    released: Released, matrix: Matrix, own: Parameters, place: int, sampling: Sampling, key: Key
) -> PerRecord:
    recipe = replace(released.recipe, rows=HeldRows(matrix))
    beta, sigma = own["beta"][place], float(own["sigma"][place])
    tilt = None if released.counts is None else fit_tilt(released, beta, sigma)
    return predict(recipe, beta, sigma, tilt, sampling=sampling, key=key)


def _draw_classes(chances: Array, sampling: Sampling, key: Key, fixed: Mask | None, place: int) -> PerRecord:
    """Classes by their chances; that at one place where a rule fixes it, and nowhere else."""
    if fixed is not None:
        chances = chances.copy()
        chances[:, place] = 0.0
        # A class that was all but certain leaves the others nothing to go by.
        chances += np.where(chances.sum(axis=1, keepdims=True) > 0, 0.0, 1.0)
        chances[:, place] = 0.0
    numbers = key.stream().uniform(len(chances))
    if sampling != "independent":
        ties, order = key.child("strata").stream().uniform((2, len(chances)))
        numbers = stratify(chances @ np.arange(chances.shape[1]), numbers, ties=ties, order=order)
    picked = pick_classes(chances, numbers)
    return picked if fixed is None else np.where(fixed, place % chances.shape[1], picked)
