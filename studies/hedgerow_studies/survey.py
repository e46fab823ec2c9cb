"""Totals and means by cell from copies of a survey: `python -m hedgerow_studies.survey`. None confidential.

A population of 20,000 firms in four sectors, whose turnover x grows with a size that is not in the table. Of
it surveys of about 800 are drawn, the larger firms with more chance, so that the weight w = 1/chance says
much about x. Copies are made with weights public, and with weights protected: a chain of w by sector, then x
by log w and sector. Each copy gives weighted totals and means with linearised variances (`inference.survey`);
rules make intervals of them, which cover the population's own figures or not.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t

from hedgerow import receive
from hedgerow.arrays import Array
from hedgerow.errors import CalibrationError
from hedgerow.inference import survey
from hedgerow.mechanism.steps import begin
from hedgerow.privacy.columns import Column
from hedgerow.privacy.standards import Unweighted
from hedgerow.privacy.strict import Strict
from hedgerow.randomness import Key
from hedgerow.synthesizer import Synthesizer, encode
from hedgerow.tables.table import Table
from hedgerow_studies.work import each, jobs_of, processors, silence_advice

SEED, FIRMS, SAMPLED, COPIES, LEVEL = 7, 20_000, 800, 5, 0.95
SECTORS = {"farming": (0.1, -0.4), "trade": (0.35, 0.0), "services": (0.4, 0.2), "industry": (0.15, 0.6)}
FORMULAS = {"w": "w ~ C(sector)", "x": "x ~ log(w) + C(sector)"}
LIMITS = {"w": (1.0, 1000.0), "x": (0.01, 1000.0)}  # chosen for the study, with room
STANDARDS: dict[str, dict[str, Any]] = {
    "Unweighted": {"standard": Unweighted()},
    "ADP, ε = 2": {"preset": "recommended", "epsilon": 2.0, "sampling": "independent"},
    "Strict, ε = 2": {"epsilon": 2.0},
}
ITSELF = "the survey itself"


@cache
def build_population() -> pd.DataFrame:
    """Sector, turnover and chance to be drawn of every firm."""
    random = np.random.default_rng(SEED)
    sector = random.choice(list(SECTORS), FIRMS, p=[share for share, _ in SECTORS.values()])
    level = np.array([SECTORS[name][1] for name in sector])
    size = np.exp(level + random.normal(0, 1.0, FIRMS))
    x = np.exp(0.3 * level + 0.8 * np.log(size) + random.normal(0, 0.5, FIRMS))
    chance = SAMPLED * np.sqrt(size) / np.sqrt(size).sum()
    return pd.DataFrame({"sector": sector, "x": x, "chance": chance})


def draw_survey(population: pd.DataFrame, number: int) -> pd.DataFrame:
    """A sample of independent draws; its rows in no order."""
    random = np.random.default_rng([SEED, 1 + number])  # with a 0 it would be the population's own stream
    drawn = population[random.uniform(size=FIRMS) < population["chance"]]
    table = pd.DataFrame({"sector": drawn["sector"], "x": drawn["x"], "w": 1 / drawn["chance"]})
    return table.sample(frac=1, random_state=number).reset_index(drop=True)


def measure(label: str, protected: bool, number: int) -> dict[str, Any]:
    """Estimates and the parts of their variances, from one survey's copies."""
    table = draw_survey(build_population(), number)
    row: dict[str, Any] = {"method": label, "protected": protected, "survey": number}
    if label == ITSELF:
        copies = [table]
    else:
        names = ["w", "x"] if protected else ["x"]
        columns = {name: Column(FORMULAS[name], family="lognormal") for name in names}
        asked = dict(STANDARDS[label])
        if "standard" not in asked and "preset" not in asked:
            asked["standard"] = Strict(limits={name: LIMITS[name] for name in names})
        synth = Synthesizer(columns, copies=COPIES, draws=200, seed=number, **asked)
        try:
            with silence_advice():
                copies = make_copies(table, synth)
        except CalibrationError:  # a weight planned beforehand is not scaled down for this table
            return row | {"figures": None}
    parts = [_estimate(copy) for copy in copies]
    estimates, variances = (np.array([part[k] for part in parts]) for k in (0, 1))
    added = np.array([part[2] for part in parts])
    given = added.var(axis=0, ddof=1).sum(axis=0) if len(copies) > 1 else np.zeros(estimates.shape[1])
    between = estimates.var(axis=0, ddof=1) if len(copies) > 1 else np.zeros(estimates.shape[1])
    figures = np.column_stack([estimates.mean(axis=0), variances.mean(axis=0), between, given])
    return row | {"figures": [[float(f"{cell:.7g}") for cell in line] for line in figures]}


def make_copies(table: pd.DataFrame, synth: Synthesizer) -> list[pd.DataFrame]:
    """The copies of a fit; of a weighted posterior without what an owner is told, which takes longest."""
    asked = synth.settings
    if asked.noisy is not None:
        return list(synth.fit(table).sample().tables)
    data, key = Table.of(table), Key.from_seed(synth._seed)
    start = begin(asked.model, data, encode(data, [asked]), draws=asked.draws, key=key)
    return list(synth.fit_from(start, key=key, seeded=True).release.tables)


def _estimate(table: pd.DataFrame) -> tuple[Array, Array, Array]:
    """Totals, then means, by sector: estimates, variances, and what each record adds to them."""
    found = [
        make(table, "x", weight="w", by=["sector"])
        for make in (survey.estimate_totals, survey.estimate_means)
    ]
    estimates = np.concatenate([each["estimate"] for each in found])
    variances = np.concatenate([each["std_error"] ** 2 for each in found])
    inside = table["sector"].to_numpy()[:, None] == np.array(sorted(SECTORS))
    w, x = inside * table["w"].to_numpy()[:, None], table["x"].to_numpy()[:, None]
    added = np.hstack([w * x, w * (x - estimates[len(SECTORS) :]) / w.sum(axis=0)])
    return estimates, variances, added


def find_ends(figures: Array, rule: str, copies: int) -> tuple[Array, Array]:
    """The interval of each figure by a rule for copies (docs/combine.md), or without one."""
    mean, within, between, given = figures.T
    total, df = within, np.full(len(mean), np.inf)
    if rule != "none":
        total, df = receive.total_variance(rule, copies, within, between, given=given)
    reach = t.ppf((1 + LEVEL) / 2, df) * np.sqrt(total)
    return mean - reach, mean + reach


def tabulate(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Bias in percent of the truth and coverage, averaged over sectors, in Markdown."""
    population = build_population()
    groups = population.groupby("sector")["x"]
    truth = np.concatenate([groups.sum(), groups.mean()])
    yield "| copies | weights | surveys | totals: bias | coverage | width | means: bias | coverage | width |"
    yield "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"
    itself = None
    for (label, protected), here in pd.DataFrame(rows).groupby(["method", "protected"], sort=False):
        rule = "none" if label == ITSELF else ("noisy" if "Strict" in str(label) else "partial")
        every = np.array([figures for figures in here["figures"] if figures is not None])
        ends = np.array([find_ends(each, rule, COPIES) for each in every])
        inside = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
        width = (ends[:, 1] - ends[:, 0]).mean(axis=0)
        itself = width if itself is None else itself
        cells = ""
        for part in (slice(0, 4), slice(4, 8)):
            bias = 100 * (every[:, part, 0].mean(axis=0) / truth[part] - 1)
            share = inside[:, part].mean()
            error = np.sqrt(share * (1 - share) / inside[:, part].size)
            wide = (width[part] / itself[part]).mean()
            cells += f" {bias.mean():+.1f} % (at most {np.abs(bias).max():.1f}) |"
            cells += f" {share:.3f} ± {error:.3f} | {wide:.2f} |"
        kind = "–" if label == ITSELF else ("protected" if protected else "public")
        met = f"{len(every)}" if len(every) == len(here) else f"{len(every)} of {len(here)}"
        yield f"| {label} | {kind} | {met} |{cells}"


def main() -> None:
    """Measure what the file does not hold yet, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m hedgerow_studies.survey", description=__doc__)
    parser.add_argument("--surveys", type=int, default=200)
    parser.add_argument("--only", nargs="*", help="words that the methods to run begin with: Unweighted ADP")
    parser.add_argument("--jobs", type=jobs_of)
    parser.add_argument("--out", type=Path, help="a file of JSON lines, one a survey; resumed if it is there")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if given.out is not None and given.out.exists():
        lines = [line for line in given.out.read_text().splitlines(keepends=True) if line.endswith("\n")]
        rows = [json.loads(line) for line in lines]
        given.out.write_text("".join(lines))
    held = {(row["method"], row["protected"], row["survey"]) for row in rows}
    kinds = [(ITSELF, False), *((label, kind) for label in STANDARDS for kind in (False, True))]
    tasks = [
        (label, kind, number)
        for number in range(given.surveys)
        for label, kind in kinds
        if (label, kind, number) not in held and label.startswith(tuple(given.only or ("",)))
    ]
    for row in each(tasks, measure, jobs=processors(given.jobs)):
        rows.append(row)
        if given.out is not None:
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
    rows.sort(key=lambda row: (kinds.index((row["method"], row["protected"])), row["survey"]))
    sys.stdout.write("\n".join(tabulate(rows)) + "\n")


if __name__ == "__main__":
    main()
