"""Range restriction that is differential privacy: error against ε in three relations, and the figure of it.

`python -m hedgerow_studies.noisy.ranges` prints the tables of docs/blowfish.md; `--figure FILE` draws its
figure. The paper's simulation, two columns, limits −3 and 9 of log x.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.randomness import Key
from hedgerow_studies.noisy.runs import HIGH, LOW, differences, figures, line, release, simulated
from hedgerow_studies.work import Jobs, each, jobs_of, processors

TRUTH = np.array([1.0, 1.0]), 1.0
SIZES, EPSILONS = (200, 2000, 20_000), (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
SEEDS = {200: 60, 2000: 60, 20_000: 24}
SHOWN = (0.2, 0.5, 1.0, 2.0)  # in the table
RELATIONS: dict[str, dict[str, Any]] = {
    "replaced": {"relation": "replaced"},
    "withheld": {"relation": "withheld"},
    "in range (0.4, 1.8)": {"relation": "range", "width": float(np.log(1.8 / 0.4))},
}
COLOURS = {"replaced": "#7f7f7f", "withheld": "#1f77b4", "in range (0.4, 1.8)": "#d62728"}


def measured(records: int, seed: int) -> list[dict[str, Any]]:
    """One simulated table in every relation and at every ε."""
    matrix, response = simulated(records, 100 + seed)
    plain_beta, plain_sigma = line(matrix, response)
    root = Key.from_seed(seed).child("ranges").child(records)
    rows = []
    for name, settings in RELATIONS.items():
        for epsilon in EPSILONS:
            key = root.child(name).child(int(1000 * epsilon))
            recipe = make_recipe(matrix, low=LOW, high=HIGH, epsilon=epsilon, **settings)
            run = release(recipe, response, key.child("noise"))
            found = differences(matrix, response, run.plugged_copy(key.child("copy")))
            rows.append(
                {
                    "records": records,
                    "relation": name,
                    "epsilon": epsilon,
                    "slope": run.found.beta[1] - TRUTH[0][1],
                    "sigma": np.log(run.found.sigma / TRUTH[1]),
                    "plain slope": plain_beta[1] - TRUTH[0][1],
                    "plain sigma": np.log(plain_sigma / TRUTH[1]),
                    "copy": found,
                }
            )
    return rows


def measure(sizes: Sequence[int] = SIZES, seeds: int | None = None, *, jobs: Jobs = 1) -> pd.DataFrame:
    """Every table's rows."""
    tasks = [(n, seed) for n in sizes for seed in range(seeds or SEEDS.get(n, 24))]
    return pd.DataFrame([row for part in each(tasks, measured, jobs=jobs) for row in part])


def summarize(rows: pd.DataFrame) -> pd.DataFrame:
    """Root mean squared errors of slope and log σ, each over that of least squares on the same tables."""
    squares = rows.drop(columns="copy").set_index(["records", "relation", "epsilon"]) ** 2
    rms = np.sqrt(squares.groupby(level=[0, 1, 2], sort=False).mean())
    return pd.DataFrame(
        {"slope": rms["slope"] / rms["plain slope"], "sigma": rms["sigma"] / rms["plain sigma"]}
    ).reset_index()


def tables(rows: pd.DataFrame) -> Iterator[str]:
    """Errors over those without privacy, then those of a copy against its table, in Markdown."""
    ratios = summarize(rows)
    for title in ("slope, σ: times the error without privacy", "ECDF, Q90, slope, σ of a copy"):
        shown = [epsilon for epsilon in SHOWN if epsilon in set(rows["epsilon"])]
        yield f"\n{title}\n"
        yield f"| n | relation | {' | '.join(f'ε = {epsilon:g}' for epsilon in shown)} |"
        yield "| --- " * (len(shown) + 2) + "|"
        for (records, relation), part in rows.groupby(["records", "relation"], sort=False):
            cells = []
            for epsilon in shown:
                if title.startswith("slope"):
                    at = ratios[(ratios["records"] == records) & (ratios["relation"] == relation)]
                    ratio = at[at["epsilon"] == epsilon].iloc[0]
                    cells.append(f"{ratio['slope']:.2f}, {ratio['sigma']:.2f}")
                else:
                    cells.append(figures(np.stack(part[part["epsilon"] == epsilon]["copy"].to_list())))
            yield f"| {records} | {relation} | {' | '.join(cells)} |"


def draw(rows: pd.DataFrame, path: Path) -> None:
    """ε against the error of slope and σ, a column of panels per n."""
    from matplotlib.figure import Figure

    found = summarize(rows)
    sizes = list(found["records"].unique())
    figure = Figure(figsize=(3.4 * len(sizes), 5.4), layout="constrained")
    panels = figure.subplots(2, len(sizes), sharex=True, sharey="row", squeeze=False)
    for place, records in enumerate(sizes):
        for row, (measure_, label) in enumerate((("slope", "the slope"), ("sigma", "σ"))):
            axes = panels[row][place]
            for name, colour in COLOURS.items():
                part = found[(found["records"] == records) & (found["relation"] == name)]
                axes.loglog(part["epsilon"], part[measure_], "o-", color=colour, label=name, markersize=3.5)
            axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
            axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
            axes.set_yticks([1, 2, 5, 10, 20], ["1", "2", "5", "10", "20"])
            axes.minorticks_off()
            if row == 0:
                axes.set_title(f"n = {records:,}")
            if row == 1:
                axes.set_xlabel("ε")
            if place == 0:
                axes.set_ylabel(f"error of {label},\ntimes that without privacy")
    panels[0][-1].legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, print, and draw where asked to."""
    parser = argparse.ArgumentParser(prog="python -m hedgerow_studies.noisy.ranges", description=__doc__)
    parser.add_argument("--seeds", type=int, help="tables of each size")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--jobs", type=jobs_of, default=1)
    given = parser.parse_args()
    rows = measure(given.sizes, given.seeds, jobs=processors(given.jobs))
    sys.stdout.write("\n".join(tables(rows)) + "\n")
    if given.figure is not None:
        draw(rows, given.figure)


if __name__ == "__main__":
    main()
