"""Strict for several columns: `python -m hedgerow_studies.noisy.chain` prints the table of docs/strict.md.

Three columns, each given a public predictor and the columns before it, with normal errors. One stratified
copy from a draw, against its own table: ECDF maximum (mean of the columns), error of the coefficients of
each column on the predictor and the columns before it (mean), and of correlations (mean). Beside it a copy
from a draw of the same chain without privacy (Unweighted).
"""

import argparse
import sys
from collections.abc import Iterator

import numpy as np

from hedgerow.arrays import Array, PerRecord
from hedgerow.evidence.utility import ecdf_distance
from hedgerow.mechanism.noisy.chain.coefficients import convert_lines
from hedgerow.mechanism.noisy.chain.draws import draw_column, draw_columns, plan_chain
from hedgerow.mechanism.noisy.chain.release import release_chain
from hedgerow.mechanism.noisy.chain.rows import HeldChain
from hedgerow.mechanism.noisy.chain.tasks import Task, Values, split_epsilon
from hedgerow.randomness import Key

EPSILONS, RECORDS, SEEDS = (1.0, 2.0, 4.0), (2000, 20_000), {2000: 16, 20_000: 6}
LOW, HIGH = -8.0, 12.0
# Coefficients of the intercept, the predictor and the columns before, then σ, by column.
TRUTH = ((2.0, 0.5, 0.8), (-0.2, -0.6, 0.6, 0.5), (2.0, -0.4, 0.8, -0.7, 0.6))


def simulate(records: int, seed: int) -> tuple[Array, list[PerRecord]]:
    """X and three columns of responses."""
    random = np.random.default_rng(seed)
    matrix = np.column_stack([np.ones(records), random.normal(size=records)])
    columns: list[PerRecord] = []
    for *line, sigma in TRUTH:
        columns.append(np.column_stack([matrix, *columns]) @ line + sigma * random.normal(size=records))
    return matrix, columns


def hold(matrix: Array, columns: list[PerRecord], epsilon: float) -> HeldChain:
    """A chain of these columns, ε in equal parts."""
    parts, there = split_epsilon(epsilon, [1.0] * len(columns)), np.ones(len(matrix), dtype=np.bool_)
    tasks = [
        Task(f"y{k}", "", ("Intercept", "z"), tuple(range(k)), part, low=LOW, high=HIGH)
        for k, part in enumerate(parts)
    ]
    return HeldChain.of(tasks, [matrix] * len(tasks), [Values(column, there) for column in columns])


def find_ranks(records: int, epsilon: float, seed: int, draws: int = 400) -> Array:
    """The share of draws below the true value, by parameter (12,)."""
    key = Key.from_seed(10_000 + seed)
    released, ranks = release_chain(hold(*simulate(records, seed), epsilon), key=key.child("noise")), []
    for place, (column, truth) in enumerate(zip(released, TRUTH, strict=True)):
        own = draw_column(column, draws=draws, key=key.child("draws").child(place)).parameters
        lines, _ = convert_lines(released, place, own["beta"])
        ranks += list((np.column_stack([lines, own["sigma"]]) < truth).mean(axis=0))
    return np.array(ranks)


def measure(records: int, epsilon: float, seed: int) -> Array:
    """The three errors with privacy, then without."""
    matrix, columns = simulate(records, seed)
    key = Key.from_seed(seed).child(int(1000 * epsilon))
    chain = hold(matrix, columns, epsilon)
    released = release_chain(chain, key=key.child("noise"))
    drawn = [one.parameters for one in draw_columns(released, draws=100, key=key)]
    (copying,) = plan_chain(released, drawn, [0], sampling="stratified", keys=[key.child("copy")])
    (piece,) = chain.pieces
    copy = [one.numbers for one in copying.values(piece)]
    plain = _predict_plain(matrix, columns, np.random.default_rng(seed + 1))
    return np.r_[_errors(matrix, columns, copy), _errors(matrix, columns, plain)]


def _predict_plain(matrix: Array, columns: list[PerRecord], random: np.random.Generator) -> list[PerRecord]:
    made: list[PerRecord] = []
    for place, column in enumerate(columns):
        line, sigma, root = _regress(np.column_stack([matrix, *columns[:place]]), column)
        freedom = len(column) - len(line)
        sigma = sigma * np.sqrt(freedom / random.chisquare(freedom))
        line = line + sigma * root @ random.normal(size=len(line))
        made.append(np.column_stack([matrix, *made]) @ line + sigma * random.normal(size=len(column)))
    return made


def _regress(matrix: Array, column: PerRecord) -> tuple[Array, float, Array]:
    """Coefficients, σ, and a root of their covariance over σ²."""
    inverse = np.linalg.inv(matrix.T @ matrix)
    line = inverse @ (matrix.T @ column)
    residual = column - matrix @ line
    sigma = float(np.sqrt(residual @ residual / (len(column) - len(line))))
    return line, sigma, np.linalg.cholesky(inverse)


def _errors(matrix: Array, columns: list[PerRecord], copy: list[PerRecord]) -> Array:
    margin = np.mean([ecdf_distance(one, two).maximum for one, two in zip(columns, copy, strict=True)])
    slopes = []
    for place in range(len(columns)):
        own, theirs = (
            _regress(np.column_stack([matrix, *table[:place]]), table[place])[0] for table in (columns, copy)
        )
        slopes += list(np.abs(own - theirs)[1:])
    pairs = np.triu_indices(len(columns), 1)
    apart = np.abs(np.corrcoef(columns) - np.corrcoef(copy))[pairs]
    return np.array([margin, np.mean(slopes), np.mean(apart)])


def tabulate(records: tuple[int, ...] = RECORDS, epsilons: tuple[float, ...] = EPSILONS) -> Iterator[str]:
    """Rows of a Markdown table, each as soon as it is there."""
    yield "| n | ε in all | strict: ECDF, slopes, correlations | without privacy |"
    yield "| --- | --- | --- | --- |"
    for n in records:
        for epsilon in epsilons:
            found = np.mean([measure(n, epsilon, seed) for seed in range(SEEDS.get(n, 16))], axis=0)
            strict, plain = (", ".join(f"{value:.3f}" for value in part) for part in (found[:3], found[3:]))
            yield f"| {n} | {epsilon:g} | {strict} | {plain} |"


def main() -> None:
    argparse.ArgumentParser(prog="python -m hedgerow_studies.noisy.chain", description=__doc__).parse_args()
    for line in tabulate():
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
