"""What strict privacy by noisy statistics costs: `python -m hedgerow_studies.strict`. No table is real.

Simulated, model right, limits −3 … 9 on the log scale: p = 2 is the paper's simulation, p = 6 and 15 add a
factor of 4 or 10 levels and normal columns. One stratified copy from the plugged-in estimate, next to a copy
from a draw of the exact posterior without privacy: maximum of the difference of the distribution functions,
error of the log of the 90 % quantile, of the slope of z and of log σ, each against the table itself.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import ks_2samp

from hedgerow.arrays import Array, PerRecord
from hedgerow.mechanism.noisy.estimate import estimate
from hedgerow.mechanism.noisy.recipe import make_recipe
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.randomness import Key
from hedgerow_studies.work import each, processors

RECORDS, COLUMNS, EPSILONS = (200, 2000, 20_000), (2, 6, 15), (0.2, 0.5, 1.0, 2.0)
LOW, HIGH = -3.0, 9.0
WIDTH = float(np.log(1.8 / 0.4))  # of Radius(0.4, 1.8) on the log scale
SETTINGS: dict[str, dict[str, Any]] = {
    "withheld": {},
    "replaced": {"relation": "replaced"},
    "range": {"relation": "range", "width": WIDTH},
    "gaussian": {"noise": "gaussian", "delta": 1e-6},
}
FIGURES = ("ecdf", "q90", "slope", "sigma")


def simulate(n: int, p: int, number: int, seed: int) -> tuple[Array, PerRecord, np.random.Generator]:
    """Predictors and the log of the outcome; a generator to go on with."""
    random = np.random.default_rng([seed, n, p, number])
    z = random.normal(2.0, 1.0, n)
    levels = {2: 1, 6: 4, 15: 10}[p]
    dummies = random.integers(0, levels, n)[:, None] == np.arange(1, levels)
    X = np.column_stack([np.ones(n), z, dummies, random.normal(size=(n, p - 1 - levels))])
    beta = np.concatenate([[1.0, 1.0], random.normal(0.0, 0.3, p - 2)])
    return X, X @ beta + random.normal(size=n), random


def measured(n: int, p: int, number: int, seed: int, kind: str) -> list[dict[str, Any]]:
    """One table, without privacy and at every ε."""
    X, y, random = simulate(n, p, number, seed)
    beta, sigma = fit(X, y)
    row = {"n": n, "p": p, "sample": number, "seed": seed, "kind": kind}
    spread = sigma * np.sqrt((n - p) / random.chisquare(n - p))
    draw = beta + spread * np.linalg.solve(np.linalg.cholesky(X.T @ X).T, random.normal(size=p))
    copy = X @ draw + spread * random.normal(size=n)
    rows = [row | {"epsilon": None} | compare(X, y, copy, fit(X, copy)[1])]
    for epsilon in EPSILONS:
        recipe = make_recipe(X, low=LOW, high=HIGH, epsilon=epsilon, **SETTINGS[kind])
        key = Key.from_seed(seed).child(f"{n} {p} {number} {epsilon}")
        found = estimate(release_statistics(recipe, y, np.ones(n, dtype=bool), key=key))
        copy = X @ found.beta + found.sigma * ndtri((random.permutation(n) + random.random(n)) / n)
        rows.append(row | {"epsilon": epsilon} | compare(X, y, copy, found.sigma))
    return rows


def fit(X: Array, y: PerRecord) -> tuple[Array, float]:
    """Least squares: coefficients and σ."""
    beta = np.linalg.lstsq(X, y, rcond=None)[0]
    return beta, float(np.sqrt(np.sum((y - X @ beta) ** 2) / (len(y) - X.shape[1])))


def compare(X: Array, y: PerRecord, copy: PerRecord, sigma: float) -> dict[str, float]:
    """The four errors of a copy whose model had this σ."""
    (beta, truth), (copied, _) = fit(X, y), fit(X, copy)
    return {
        "ecdf": float(ks_2samp(y, copy).statistic),
        "q90": float(abs(np.quantile(copy, 0.9) - np.quantile(y, 0.9))),
        "slope": float(abs(copied[1] - beta[1])),
        "sigma": float(abs(np.log(sigma / truth))),
    }


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """ECDF maximum, Q90, slope and σ, means over samples, in Markdown."""
    frame = pd.DataFrame(rows).assign(epsilon=lambda each: each["epsilon"].fillna(np.inf))
    for kind, here in frame.groupby("kind", sort=False):
        yield f"\n{kind}"
        yield "\n| n, p | without privacy | " + " | ".join(f"ε = {e:g}" for e in EPSILONS) + " |"
        yield "| --- " * (len(EPSILONS) + 2) + "|"
        for (n, p), part in here.groupby(["n", "p"]):
            means = part.groupby("epsilon")[list(FIGURES)].mean()
            cells = [" ".join(f"{value:.2g}" for value in means.loc[e]) for e in (np.inf, *EPSILONS)]
            yield f"| {n}, {p} ({part['sample'].nunique()} samples) | " + " | ".join(cells) + " |"


def main() -> None:
    """Measure what the file does not hold yet, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m hedgerow_studies.strict", description=__doc__)
    parser.add_argument("--samples", type=int, default=40, help="at n = 20,000 three in ten of them")
    parser.add_argument("--records", type=int, nargs="*", choices=RECORDS, default=RECORDS)
    parser.add_argument("--columns", type=int, nargs="*", choices=COLUMNS, default=COLUMNS)
    parser.add_argument("--kinds", nargs="*", choices=list(SETTINGS), default=["withheld"])
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--out", type=Path, help="a file of JSON lines, one a table; resumed if it is there")
    given = parser.parse_args()
    held: list[list[dict[str, Any]]] = []
    if given.out is not None and given.out.exists():
        # A line that was cut short by the end of a run is measured again.
        lines = [line for line in given.out.read_text().splitlines(keepends=True) if line.endswith("\n")]
        given.out.write_text("".join(lines))
        held = [json.loads(line) for line in lines]
    done = {tuple(rows[0][name] for name in ("n", "p", "sample", "seed", "kind")) for rows in held}
    tasks = [
        (n, p, number, given.seed, kind)
        for kind in given.kinds
        for n in given.records
        for p in given.columns
        for number in range(given.samples if n < 20_000 else given.samples * 3 // 10)
        if (n, p, number, given.seed, kind) not in done
    ]
    for rows in each(tasks, measured, jobs=processors(given.jobs)):
        held.append(rows)
        if given.out is not None:
            with given.out.open("a") as file:
                file.write(json.dumps(rows) + "\n")
    sys.stdout.write("\n".join(table([row for rows in held for row in rows])) + "\n")


if __name__ == "__main__":
    main()
