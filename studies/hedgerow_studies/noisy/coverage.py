"""Do 95 % intervals given noisy statistics hold? `python -m hedgerow_studies.noisy.coverage`.

Simulated tables of `hedgerow_studies.strict`: how often the true coefficients and log σ lie inside the
central 95 % of 480 posterior draws, and where among the draws they lie on average (0.5 where nothing is
biased). Cells take turns, so that a run that was stopped has as many tables of each.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hedgerow.mechanism.noisy.posterior import draw_posterior
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.randomness import Key
from hedgerow_studies.noisy.runs import HIGH, LOW, release
from hedgerow_studies.strict import simulate
from hedgerow_studies.work import each, jobs_of, processors

CELLS = ((2000, 2, 1.0), (2000, 2, 0.5), (200, 2, 5.7), (200, 2, 1.0), (2000, 6, 1.0))  # n, p, ε
DRAWS, SAMPLES = 480, 300


def measured(n: int, p: int, epsilon: float, number: int, seed: int) -> dict[str, Any]:
    """One table: which truths lie inside, and their ranks among the draws."""
    X, y, beta, _ = simulate(n, p, number, seed)
    key = Key.from_seed(seed).child(f"{n} {p} {epsilon} {number}")
    run = release(make_recipe(X, low=LOW, high=HIGH, epsilon=epsilon), y, key.child("noise"))
    drawn = draw_posterior(run.released, draws=DRAWS, key=key.child("draws")).parameters
    theta = np.column_stack((drawn["beta"], np.log(drawn["sigma"])))
    truth = np.append(beta, 0.0)
    low, high = np.quantile(theta, [0.025, 0.975], axis=0)
    inside = (low < truth) & (truth < high)
    return {"cell": [n, p, epsilon], "inside": inside.tolist(), "rank": (theta < truth).mean(axis=0).tolist()}


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Intercept, slope, σ, and the other coefficients together, in Markdown."""
    yield "| n, p, ε | tables | intercept | slope | log σ | other coefficients | mean ranks |"
    yield "| --- " * 7 + "|"
    for cell in CELLS:
        here = [row for row in rows if tuple(row["cell"]) == cell]
        if not here:
            continue
        inside, ranks = (np.array([row[name] for row in here], dtype=float) for name in ("inside", "rank"))
        shown = [f"{inside[:, place].mean():.2f}" for place in (0, 1, -1)]
        others = f"{inside[:, 2:-1].mean():.2f}" if cell[1] > 2 else ""
        where = ", ".join(f"{ranks[:, place].mean():.2f}" for place in (0, 1, -1))
        n, p, epsilon = cell
        yield f"| {n}, {p}, {epsilon:g} | {len(here)} | {' | '.join(shown)} | {others} | {where} |"


def main() -> None:
    """Measure what the file does not hold yet, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m hedgerow_studies.noisy.coverage", description=__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--seed", type=int, default=2027)
    parser.add_argument("--jobs", type=jobs_of)
    parser.add_argument("--out", type=Path, help="a file of JSON lines, one a table; resumed if it is there")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if given.out is not None and given.out.exists():
        rows = [json.loads(text) for text in given.out.read_text().splitlines()]
    done = pd.Series([tuple(row["cell"]) for row in rows], dtype=object).value_counts()
    tasks = [
        (*cell, number, given.seed)
        for number in range(given.samples)
        for cell in CELLS
        if number >= done.get(cell, 0)
    ]
    for row in each(tasks, measured, jobs=processors(given.jobs)):
        rows.append(row)
        if given.out is not None:
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
    sys.stdout.write("\n".join(table(rows)) + "\n")


if __name__ == "__main__":
    main()
