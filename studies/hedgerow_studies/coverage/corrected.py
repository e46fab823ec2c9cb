"""How often intervals from corrected draws cover: `python -m hedgerow_studies.coverage.corrected`.

The paper's simulation. From one fit and its five draws: what an analyst computes from one copy, what the
combining rule for partially synthetic data makes of five, with and without correction, and the bootstrap of
`hedgerow.inference.intervals`. Copies are there to compare methods, so that each has the setting's target.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import chi2, t

from hedgerow.arrays import Array, PerRecord
from hedgerow.errors import CalibrationError
from hedgerow.fitted import Fitted
from hedgerow.inference.intervals import intervals
from hedgerow.mechanism.debias import public_view
from hedgerow.synthesizer import Synthesizer
from hedgerow_studies.bias import COPIES, SEED, Setting, sample
from hedgerow_studies.work import each, jobs_of, processors, silence_advice

LEVEL = 0.95
PARAMETERS = ("Intercept", "z", "sigma")
TRUTH = dict.fromkeys(PARAMETERS, 1.0)
SETTINGS = (Setting(2000, 5.7), Setting(2000, 1.0, strict=True))
METHODS = (
    "least squares, 1 plain copy",
    "combining rule, 5 plain copies",
    "least squares, 1 corrected copy",
    "combining rule, 5 corrected copies",
    "bootstrap, 1 corrected copy",
    "bootstrap, 5 corrected copies",
)


def measured(setting: Setting, number: int, seed: int, tables: int) -> dict[str, Any]:
    """The intervals of every method on one sample; none of them where no fit meets the target."""
    data, key = sample(setting, number, seed)
    row: dict[str, Any] = {"setting": setting.label, "sample": number, "seed": seed, "tables": tables}
    try:
        with silence_advice():
            done = (
                Synthesizer(
                    "x ~ z",
                    standard=setting.standard,
                    epsilon=COPIES * setting.epsilon,
                    copies=COPIES,
                    debias=True,
                    seed=key.integer(),
                )
                .fit(data)
                ._need()
            )
        found = dict(zip(METHODS, _ends(done, data["z"].to_numpy(), tables), strict=True))
    except CalibrationError:
        return row | {"found": {}}
    return row | {"found": {name: ends.tolist() for name, ends in found.items()}}


def _ends(done: Fitted, z: PerRecord, tables: int) -> Iterator[Array]:
    """Lower and upper ends, parameters by two, in the order of METHODS."""
    for fitted in (done.variant(debias=False), done):
        copies = fitted.predict()
        yield least_squares(copies[0], z)
        yield combined(copies, z)
    key = done.key.child("release").child("intervals")
    public = public_view(done.settings, done.start, done.released[0].parameters, key)
    for draws in (done.released[:1], done.released):
        made = intervals(public, draws, level=LEVEL, tables=tables)
        yield np.column_stack([made.lower, made.upper])


def least_squares(x: PerRecord, z: PerRecord) -> Array:
    """The usual t intervals for the coefficients and χ² interval for σ, as if x were data."""
    estimate, variance = _estimated(x, z)
    freedom = len(x) - 2
    half = t.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(variance[:2])
    cuts = chi2.ppf([(1 + LEVEL) / 2, (1 - LEVEL) / 2], freedom)
    sigma = np.exp(estimate[2]) * np.sqrt(freedom / cuts)
    return np.vstack([np.column_stack([estimate[:2] - half, estimate[:2] + half]), sigma])


def combined(copies: list[PerRecord], z: PerRecord) -> Array:
    """docs/maths.md, "Utility": T = b/m + v̄ with (m − 1)(1 + v̄/(b/m))² degrees of freedom; σ by its log."""
    parts = [_estimated(copy, z) for copy in copies]
    estimates, variances = (np.array(part) for part in zip(*parts, strict=True))
    between, within = estimates.var(axis=0, ddof=1) / len(copies), variances.mean(axis=0)
    freedom = (len(copies) - 1) * (1 + within / between) ** 2
    half = t.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(between + within)
    ends = np.column_stack([estimates.mean(axis=0) - half, estimates.mean(axis=0) + half])
    return np.vstack([ends[:2], np.exp(ends[2])])


def _estimated(x: PerRecord, z: PerRecord) -> tuple[Array, Array]:
    """Least squares of log x on z: intercept, slope and log σ, and their variances."""
    y, design = np.log(x), np.column_stack([np.ones_like(z), z])
    freedom = len(y) - 2
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ y
    squared = float(np.sum((y - design @ beta) ** 2)) / freedom
    return np.append(beta, np.log(squared) / 2), np.append(squared * np.diag(inverse), 1 / (2 * freedom))


def table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Coverage ± its binomial standard error, and the mean width, in Markdown."""
    for label, here in pd.DataFrame(rows).groupby("setting", sort=False):
        met = [found for found in here["found"] if found]
        yield f"\n{label}: {len(met)} of {len(here)} samples met the target"
        yield "\n| 95 % intervals | intercept | width | slope | width | σ | width |"
        yield "| --- | --- | --- | --- | --- | --- | --- |"
        for method in METHODS:
            ends = np.array([found[method] for found in met])
            cells = ""
            for place, name in enumerate(PARAMETERS):
                lower, upper = ends[:, place].T
                share = float(np.mean((lower <= TRUTH[name]) & (TRUTH[name] <= upper)))
                error = np.sqrt(share * (1 - share) / len(met))
                cells += f" {share:.3f} ± {error:.3f} | {np.mean(upper - lower):.3f} |"
            yield f"| {method} |{cells}"


def main() -> None:
    """Measure what the file does not hold yet, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m hedgerow_studies.coverage.corrected", description=__doc__
    )
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--tables", type=int, default=40, help="simulated tables for a bootstrap")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the settings, from 0")
    parser.add_argument("--jobs", type=jobs_of)
    parser.add_argument("--out", type=Path, help="a file of JSON lines, one a sample; resumed if it is there")
    parser.add_argument("--tell", action="store_true", help="measure nothing, print what the file holds")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if given.out is not None and given.out.exists():
        # A line that was cut short by the end of a run is measured again.
        lines = given.out.read_text().splitlines(keepends=True)
        rows = [json.loads(line) for line in lines if line.endswith("\n")]
        rows = [row for row in rows if (row["seed"], row["tables"]) == (given.seed, given.tables)]
        given.out.write_text("".join(line for line in lines if line.endswith("\n")))
    held = {(row["setting"], row["sample"]) for row in rows}
    chosen = [SETTINGS[k] for k in given.only] if given.only else list(SETTINGS)
    tasks = [
        (setting, number, given.seed, given.tables)
        for setting in chosen
        for number in range(given.samples)
        if (setting.label, number) not in held and not given.tell
    ]
    for row in each(tasks, measured, jobs=processors(given.jobs)):
        rows.append(row)
        if given.out is not None:
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
    order = [setting.label for setting in SETTINGS]
    rows.sort(key=lambda row: (order.index(row["setting"]), row["sample"]))
    sys.stdout.write("\n".join(table(rows)) + "\n")


if __name__ == "__main__":
    main()
