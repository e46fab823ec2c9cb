"""Strict with a spike at zero: `python -m hedgerow_studies.noisy.zeros` prints the table of docs/strict.md.

Amounts are lognormal, zeros logistic, both on the same predictors: z alone, or with a factor of four levels
and another number. One copy from a draw, against its own table: errors of the share of zeros overall and in
either half of the table by z, and the ECDF maximum; beside it a draw of both regressions without privacy.
"""

import argparse
import sys
from collections.abc import Iterator

import numpy as np
from scipy.special import expit, logit

from hedgerow.arrays import Array, Matrix, PerRecord
from hedgerow.evidence.utility import ecdf_distance
from hedgerow.mechanism.noisy.copies import draw_zeros, predict
from hedgerow.mechanism.noisy.posterior import draw_posterior
from hedgerow.mechanism.noisy.recipe import Recipe
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.randomness import Key
from hedgerow_studies.noisy.runs import HIGH, LOW, figures, line

CELLS = (  # records, columns, share of zeros, ε
    (2000, 2, 0.1, 1.0),
    (2000, 2, 0.4, 1.0),
    (2000, 6, 0.1, 1.0),
    (2000, 6, 0.4, 1.0),
    (2000, 2, 0.25, 0.2),
    (200, 2, 0.25, 1.0),
)
SEEDS = 16
_ZERO = -99.0  # in place of log 0, below all amounts


def simulated(records: int, columns: int, share: float, seed: int) -> tuple[Matrix, PerRecord]:
    """X, and log x with NaN for a zero."""
    random = np.random.default_rng(seed)
    z, level, other = (
        random.normal(2, 1, records),
        random.integers(0, 4, records),
        random.normal(size=records),
    )
    wide = [(level == k).astype(float) for k in (1, 2, 3)] + [other]
    matrix = np.column_stack([np.ones(records), z, *wide[: columns - 2]])
    effect = np.r_[1.0, 1.0, np.full(columns - 2, 0.3)]
    odds = np.r_[logit(share) + 1.2, -0.6, np.full(columns - 2, 0.2)]
    response = matrix @ effect + random.normal(size=records)
    return matrix, np.where(random.uniform(size=records) < expit(matrix @ odds), np.nan, response)


def measured(records: int, columns: int, share: float, epsilon: float, seed: int) -> Array:
    """The three errors with privacy, then without."""
    matrix, response = simulated(records, columns, share, seed)
    recipe = make_recipe(matrix, low=LOW, high=HIGH, epsilon=epsilon, spiked=True)
    key = Key.from_seed(1000 + seed).child(columns).child(int(1000 * share))
    released = release_statistics(recipe, response, np.ones(records, dtype=np.bool_), key=key.child("noise"))
    draws = draw_posterior(released, draws=100, key=key.child("posterior")).parameters
    own = _copy(recipe, draws["beta"][0], float(draws["sigma"][0]), draws["spike_beta"][0], key.child("copy"))
    plain = _copy(recipe, *_draw_plain(matrix, response, key.child("plain")), key.child("plain copy"))
    return np.concatenate([_errors(matrix, response, copy) for copy in (own, plain)])


def _copy(recipe: Recipe, beta: Array, sigma: float, odds: Array, key: Key) -> PerRecord:
    amounts = predict(recipe, beta, sigma, None, sampling="independent", key=key.child("amounts"))
    return np.where(draw_zeros(recipe, odds, sampling="independent", key=key.child("zeros")), _ZERO, amounts)


def _draw_plain(matrix: Matrix, response: PerRecord, key: Key) -> tuple[Array, float, Array]:
    """A draw about least squares on amounts, and one about the logistic regression of zeros."""
    there, chance = ~np.isnan(response), key.stream()
    beta, sigma = line(matrix[there], response[there])
    odds, width = np.zeros(matrix.shape[1]), matrix.shape[1]
    for _ in range(30):
        p = expit(matrix @ odds)
        information = (matrix.T * p * (1 - p)) @ matrix
        odds = odds + np.linalg.solve(information, matrix.T @ (~there - p))
    roots = (np.linalg.cholesky(np.linalg.inv(of)) for of in (matrix[there].T @ matrix[there], information))
    steps = [root @ chance.normal(width) for root in roots]
    return beta + sigma * steps[0], sigma, odds + steps[1]


def _errors(matrix: Matrix, response: PerRecord, copy: PerRecord) -> Array:
    zero, shown, high = np.isnan(response), copy == _ZERO, matrix[:, 1] > 2
    by_half = [abs(float(zero[half].mean() - shown[half].mean())) for half in (high, ~high)]
    distance = ecdf_distance(np.where(zero, _ZERO, response), copy).maximum
    return np.array([abs(float(zero.mean() - shown.mean())), float(np.mean(by_half)), distance])


def rows(cells: tuple[tuple[int, int, float, float], ...] = CELLS, seeds: int = SEEDS) -> Iterator[str]:
    """The table, in Markdown, a line at a time."""
    yield "| n | columns | zeros | ε | strict: share of zeros, by half, ECDF | without privacy |"
    yield "| --- " * 6 + "|"
    for records, columns, share, epsilon in cells:
        found = np.array([measured(records, columns, share, epsilon, seed) for seed in range(seeds)])
        yield (
            f"| {records} | {columns} | about {100 * share:g} % | {epsilon:g} | {figures(found[:, :3])} | "
            f"{figures(found[:, 3:])} |"
        )


def main() -> None:
    """Measure and print."""
    argparse.ArgumentParser(prog="python -m hedgerow_studies.noisy.zeros", description=__doc__).parse_args()
    for text in rows():
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
