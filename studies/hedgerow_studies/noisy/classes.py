"""Public classes: copies inside them at no price, beside two rounds at ε, and what both together could gain.

`python -m hedgerow_studies.noisy.classes` prints the tables of docs/blowfish.md, "Public classes". Classes
have equal probability under the simulation's margin, the outer ones no end.
"""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from hedgerow.arrays import Array, PerRecord
from hedgerow.mechanism.classes import draw_from_classes, predict_inside
from hedgerow.mechanism.copies import stratify
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.numerics.normal_mass import normal_inside
from hedgerow.randomness import Key
from hedgerow_studies.noisy.runs import HIGH, LOW, differences, figures, release, simulated
from hedgerow_studies.work import Jobs, each, jobs_of, processors

SIZES, CLASSES, EPSILONS, SEEDS = (200, 2000), (3, 4, 8), (0.2, 1.0, 5.7), 40
_SHARES = (np.arange(200) + 0.5) / 200  # at which a truncated law is summed up
_SPLIT = 1.3


def edges_of(classes: int) -> Array:
    """Edges of classes of equal probability under the margin of log x, N(3, 2)."""
    inner = stats.norm.ppf(np.arange(1, classes) / classes, 3.0, np.sqrt(2.0))
    return np.concatenate(([-np.inf], inner, [np.inf]))


def classified(response: PerRecord, classes: int) -> tuple[PerRecord, PerRecord]:
    """Each record's class: in a release a public column."""
    edges = edges_of(classes)
    place = np.searchsorted(edges, response) - 1
    return edges[place], edges[place + 1]


def measured(records: int, classes: int, seed: int) -> list[dict[str, Any]]:
    """One simulated table: classes alone, and two rounds with ε = 1, copies inside the classes for both."""
    matrix, response = simulated(records, 500 + seed)
    lower, upper = classified(response, classes)
    key = Key.from_seed(seed).child("classes").child(records).child(classes)
    draws = draw_from_classes(
        matrix, lower, upper, low=LOW, high=HIGH, draws=20, key=key.child("alone")
    ).parameters
    recipe = make_recipe(matrix, low=LOW, high=HIGH, epsilon=1.0)
    rounds = release(recipe, response, key.child("noise")).found
    fresh, ties, order = key.child("copy").stream().uniform((3, records))
    rows = []
    for name, beta, sigma in (
        ("classes alone, ε = 0", draws["beta"][0], float(draws["sigma"][0])),
        ("two rounds, ε = 1", rounds.beta, rounds.sigma),
    ):
        uniforms = stratify(matrix @ beta, fresh, ties=ties, order=order)
        copy = predict_inside(matrix, beta, sigma, lower, upper, uniforms)
        found = differences(matrix, response, copy)
        rows.append({"records": records, "classes": classes, "draws from": name, "copy": found})
    return rows


def spreads(records: int, classes: int, epsilon: float, seed: int) -> Array:
    """Errors of slope and log σ at the truth: classes alone, with T₁ and T₂ about class midpoints, all.

    "With" is a lower bound: the information in a noisy sum is at most 1/(its variance + b²) (Stam), b being
    Laplace's scale in the withheld relation, and the cap on T₁ is the best of a few for the slope.
    """
    matrix, response = simulated(records, 500 + seed)
    lower, upper = classified(response, classes)
    low, high = np.clip(lower, LOW, HIGH), np.clip(upper, LOW, HIGH)
    middle, half = (low + high) / 2, (high - low) / 2
    mean, step = matrix @ np.ones(2), 1e-4
    basis = np.column_stack([np.ones(records), matrix[:, 1] - matrix[:, 1].mean()])
    norms = np.abs(basis).sum(axis=1) * half

    def score(mean: PerRecord, sigma: float) -> tuple[PerRecord, PerRecord]:
        """Of each record's class: by its mean and by log σ."""
        standard = (
            normal_inside(mean[:, None], sigma, lower[:, None], upper[:, None], _SHARES) - mean[:, None]
        ) / sigma
        return standard.mean(axis=1) / sigma, (standard**2).mean(axis=1) - 1

    def moved(coordinate: int, amount: float) -> tuple[PerRecord, float]:
        return (
            (mean, float(np.exp(amount))) if coordinate == 2 else (mean + amount * matrix[:, coordinate], 1.0)
        )

    def gradient(coordinate: int, amount: float) -> Array:
        by_mean, by_sigma = score(*moved(coordinate, amount))
        return np.append(matrix.T @ by_mean, by_sigma.sum())

    alone = -np.array([(gradient(j, step) - gradient(j, -step)) / (2 * step) for j in range(3)])
    alone = (alone + alone.T) / 2
    whole = np.zeros((3, 3))
    whole[:2, :2], whole[2, 2] = matrix.T @ matrix, 2 * records

    def residuals(mean: PerRecord, sigma: float) -> Array:
        return normal_inside(mean[:, None], sigma, low[:, None], high[:, None], _SHARES) - middle[:, None]

    best: Array = np.linalg.inv(alone)
    for cap in np.quantile(norms, [0.3, 0.6, 0.9, 1.0]):
        weights = np.minimum(1.0, cap / norms)[:, None] * basis

        def sums(coordinate: int, amount: float, weights: Array = weights) -> Array:
            away = residuals(*moved(coordinate, amount))
            return np.append(weights.T @ away.mean(axis=1), (away**2).mean(axis=1).sum())

        slopes = np.array([(sums(j, step) - sums(j, -step)) / (2 * step) for j in range(3)]).T
        away = residuals(mean, 1.0)
        first, second = away - away.mean(axis=1, keepdims=True), away**2
        second = second - second.mean(axis=1, keepdims=True)
        spread = np.zeros((3, 3))
        spread[:2, :2] = (weights * (first**2).mean(axis=1)[:, None]).T @ weights
        spread[:2, 2] = spread[2, :2] = weights.T @ (first * second).mean(axis=1)
        spread[2, 2] = (second**2).mean(axis=1).sum()
        price = (1 + _SPLIT / 2) ** 2 / (2 * epsilon)
        spread += np.diag([(cap * price / _SPLIT) ** 2] * 2 + [(half.max() ** 2 * price) ** 2])
        both = np.linalg.inv(alone + slopes.T @ np.linalg.solve(spread, slopes))
        best = both if both[1, 1] < best[1, 1] else best
    found = [np.linalg.inv(alone), best, np.linalg.inv(whole)]
    return np.sqrt(np.array([[one[1, 1], one[2, 2]] for one in found]))


def rounds_spread(records: int, epsilon: float, seed: int) -> Array:
    """Standard errors of slope and log σ that two rounds without classes state."""
    matrix, response = simulated(records, 500 + seed)
    found = release(
        make_recipe(matrix, low=LOW, high=HIGH, epsilon=epsilon), response, Key.from_seed(seed)
    ).found
    return np.array([np.sqrt(found.covariance[1, 1]), found.sigma_error / found.sigma])


def tables(seeds: int, jobs: Jobs) -> Iterator[str]:
    """Both tables in Markdown."""
    tasks = [(n, classes, seed) for n in SIZES for classes in CLASSES for seed in range(seeds)]
    rows = pd.DataFrame([row for part in each(tasks, measured, jobs=jobs) for row in part])
    yield "| n | classes | draws from | ECDF, Q90, slope, σ |"
    yield "| --- | --- | --- | --- |"
    for (n, classes, name), part in rows.groupby(["records", "classes", "draws from"], sort=False):
        yield f"| {n} | {classes} | {name} | {figures(np.stack(part['copy'].to_list()))} |"
    yield "\n| n | classes | ε | classes alone | two rounds alone | both, at best | all values |"
    yield "| --- " * 7 + "|"
    for n in SIZES:
        for classes in CLASSES:
            for epsilon in EPSILONS:
                alone, both, whole = np.mean(
                    [spreads(n, classes, epsilon, seed) for seed in range(4)], axis=0
                )
                rounds = np.mean([rounds_spread(n, epsilon, seed) for seed in range(8)], axis=0)
                cells = [f"{one[0]:.3f}, {one[1]:.3f}" for one in (alone, rounds, both, whole)]
                yield f"| {n} | {classes} | {epsilon:g} | {' | '.join(cells)} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m hedgerow_studies.noisy.classes", description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=jobs_of, default=1)
    given = parser.parse_args()
    for text in tables(given.seeds, processors(given.jobs)):
        sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
