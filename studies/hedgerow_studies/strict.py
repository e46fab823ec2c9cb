"""What strict privacy by noisy statistics costs: `python -m hedgerow_studies.strict`. No table is real.

Simulated, model right, limits −3 … 9 on the log scale: p = 2 is the paper's simulation, p = 6 and 15 add a
factor of 4 or 10 levels and normal columns. Stratified copies from draws of the posterior given the noisy
statistics, which is what a release has, and from the plugged-in estimate, next to copies from draws of the
exact posterior without privacy; eight of each, whose errors are averaged. Errors are those of
`noisy.runs.differences`: maximum of the difference of the distribution functions, log of the 90 % quantile,
slope of z and σ, of least squares on the copy against least squares on the table.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hedgerow.arrays import Array, PerRecord
from hedgerow.mechanism.noisy.copies import predict
from hedgerow.mechanism.noisy.posterior import draw_posterior
from hedgerow.mechanism.noisy.recipe import Recipe
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.randomness import Key
from hedgerow_studies.noisy.runs import HIGH, LOW, differences, line, release
from hedgerow_studies.work import each, jobs_of, processors

RECORDS, COLUMNS, EPSILONS = (200, 2000, 20_000), (2, 6, 15), (0.2, 0.5, 1.0, 2.0)
GOAL = {(2000, 2): 0.5, (2000, 15): 1.0}  # n, p and ε: within 1.15 of no privacy in all four figures
WIDTH = float(np.log(1.8 / 0.4))  # of Radius(0.4, 1.8) on the log scale
SETTINGS: dict[str, dict[str, Any]] = {
    "withheld": {},
    "replaced": {"relation": "replaced"},
    "range": {"relation": "range", "width": WIDTH},
    "gaussian": {"noise": "gaussian", "delta": 1e-6},
}
FIGURES, SOURCES, COPIES = ("ecdf", "q90", "slope", "sigma"), ("draw", "estimate"), 8


def simulate(n: int, p: int, number: int, seed: int) -> tuple[Array, PerRecord, Array, np.random.Generator]:
    """Predictors, the log of the outcome and true coefficients (σ is 1); a generator to go on with."""
    random = np.random.default_rng([seed, n, p, number])
    z = random.normal(2.0, 1.0, n)
    levels = {2: 1, 6: 4, 15: 10}[p]
    dummies = random.integers(0, levels, n)[:, None] == np.arange(1, levels)
    X = np.column_stack([np.ones(n), z, dummies, random.normal(size=(n, p - 1 - levels))])
    beta = np.concatenate([[1.0, 1.0], random.normal(0.0, 0.3, p - 2)])
    return X, X @ beta + random.normal(size=n), beta, random


def measured(
    n: int, p: int, number: int, seed: int, kind: str, epsilons: Sequence[float], sources: Sequence[str]
) -> list[dict[str, Any]]:
    """One table, without privacy and at every ε. The estimate takes a tenth of a draw's time."""
    X, y, _, random = simulate(n, p, number, seed)
    row = {"n": n, "p": p, "sample": number, "seed": seed, "kind": kind}
    root = Key.from_seed(seed).child(f"{n} {p} {number}")

    def errors(recipe: Recipe, betas: Array, sigmas: Array, key: Key) -> dict[str, float]:
        found = [
            differences(X, y, predict(recipe, beta, sigma, None, sampling="stratified", key=key.child(place)))
            for place, (beta, sigma) in enumerate(zip(betas, sigmas.tolist(), strict=True))
        ]
        return dict(zip(FIGURES, np.mean(found, axis=0).tolist(), strict=True))

    rows: list[dict[str, Any]] = []
    for epsilon in epsilons:
        recipe = make_recipe(X, low=LOW, high=HIGH, epsilon=epsilon, **SETTINGS[kind])
        if not rows:
            beta, sigma = line(X, y)
            sigmas = sigma * np.sqrt((n - p) / random.chisquare(n - p, size=COPIES))
            away = np.linalg.solve(np.linalg.cholesky(X.T @ X).T, random.normal(size=(p, COPIES)))
            plain = errors(recipe, beta + (sigmas * away).T, sigmas, root.child("without"))
            rows.append(row | {"epsilon": None, "without": plain})
        key = root.child(str(epsilon))
        run = release(recipe, y, key.child("noise"))
        found = {}
        if "draw" in sources:
            drawn = draw_posterior(run.released, draws=COPIES, key=key.child("posterior")).parameters
            found["draw"] = errors(recipe, drawn["beta"], drawn["sigma"], key.child("draw"))
        if "estimate" in sources:
            plugged = np.tile(run.found.beta, (COPIES, 1)), np.full(COPIES, run.found.sigma)
            found["estimate"] = errors(recipe, *plugged, key.child("estimate"))
        rows.append(row | {"epsilon": epsilon} | found)
    return rows


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """ECDF maximum, Q90, slope and σ, means over samples, in Markdown: by relation, n, p and kind of copy."""
    frame = pd.DataFrame(rows)
    epsilons = sorted(frame["epsilon"].dropna().unique())
    sources = [source for source in SOURCES if source in frame]
    for kind, here in frame.groupby("kind", sort=False):
        yield f"\n{kind}"
        yield f"\n| n, p | copies from | no privacy | {' | '.join(f'ε = {e:g}' for e in epsilons)} |"
        yield "| --- " * (len(epsilons) + 3) + "|"
        for (n, p), part in here.groupby(["n", "p"]):
            head = f"{n}, {p} ({part['sample'].nunique()} samples)", _mean(part["without"])
            for source in sources:
                cells = [_mean(part[part["epsilon"] == e][source]) for e in epsilons]
                yield f"| {head[0]} | {source} | {head[1]} | {' | '.join(cells)} |"
                head = "", ""


def _mean(errors: pd.Series) -> str:
    return " ".join(f"{value:.2g}" for value in pd.DataFrame(errors.dropna().to_list())[list(FIGURES)].mean())


def goal(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Errors over those without privacy on the same tables, with the standard errors of these ratios."""
    frame = pd.DataFrame(rows)
    yield f"\n| n, p, ε | copies from | {' | '.join(FIGURES)} |"
    yield "| --- " * (len(FIGURES) + 2) + "|"
    for (n, p), epsilon in GOAL.items():
        part = frame[(frame["n"] == n) & (frame["p"] == p) & (frame["kind"] == "withheld")].set_index(
            "sample"
        )
        if not (part["epsilon"] == epsilon).any():
            continue
        plain = pd.DataFrame(part["without"].dropna().to_dict()).T
        for source in (source for source in SOURCES if source in frame):
            errors = pd.DataFrame(part[part["epsilon"] == epsilon][source].to_dict()).T
            ratio = errors.mean() / plain.mean()
            error = (errors - ratio * plain).std() / np.sqrt(len(plain)) / plain.mean()
            cells = [f"{ratio[name]:.2f} ± {error[name]:.2f}" for name in FIGURES]
            yield f"| {n}, {p}, {epsilon:g} | {source} | {' | '.join(cells)} |"


def main() -> None:
    """Measure what the file does not hold yet, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m hedgerow_studies.strict", description=__doc__)
    parser.add_argument("--samples", type=int, default=40, help="at n = 20,000 three in ten of them")
    parser.add_argument("--records", type=int, nargs="*", choices=RECORDS, default=RECORDS)
    parser.add_argument("--columns", type=int, nargs="*", choices=COLUMNS, default=COLUMNS)
    parser.add_argument("--epsilons", type=float, nargs="*", default=EPSILONS)
    parser.add_argument("--sources", nargs="*", choices=SOURCES, default=SOURCES)
    parser.add_argument("--kinds", nargs="*", choices=list(SETTINGS), default=["withheld"])
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--jobs", type=jobs_of)
    parser.add_argument(
        "--out", type=Path, help="JSON lines, one a table; resumed if it is there, with the same options"
    )
    given = parser.parse_args()
    held: list[list[dict[str, Any]]] = []
    if given.out is not None and given.out.exists():
        # A line that was cut short by the end of a run is measured again.
        lines = [line for line in given.out.read_text().splitlines(keepends=True) if line.endswith("\n")]
        given.out.write_text("".join(lines))
        held = [json.loads(line) for line in lines]
    done = {tuple(rows[0][name] for name in ("n", "p", "sample", "seed", "kind")) for rows in held}
    tasks = [
        (n, p, number, given.seed, kind, given.epsilons, given.sources)
        for number in range(given.samples)  # outermost: a run that was stopped has as many of each
        for kind in given.kinds
        for n in given.records
        for p in given.columns
        if n < 20_000 or number < given.samples * 3 // 10
        if (n, p, number, given.seed, kind) not in done
    ]
    for rows in each(tasks, measured, jobs=processors(given.jobs)):
        held.append(rows)
        if given.out is not None:
            with given.out.open("a") as file:
                file.write(json.dumps(rows) + "\n")
    rows = [row for rows in held for row in rows]
    sys.stdout.write("\n".join((*table(rows), *goal(rows))) + "\n")


if __name__ == "__main__":
    main()
