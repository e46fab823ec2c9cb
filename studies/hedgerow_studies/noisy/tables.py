"""Strict by noisy statistics on real tables: `python -m hedgerow_studies.noisy.tables`.

Skewed amounts with factors from tables that ship with statsmodels; limits are round numbers, four to five
decades apart. Strict at ε = 1 with its margin beside Unweighted and ADP (the preset "recommended" at ε = 1),
as they come out: errors of one copy against the table itself, averaged over a few runs.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from hedgerow.arrays import Array, Matrix, PerRecord
from hedgerow.errors import CalibrationError
from hedgerow.evidence.utility import ecdf_distance
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.privacy.standards import Unweighted
from hedgerow.randomness import Key
from hedgerow.synthesizer import Synthesizer
from hedgerow_studies.noisy.runs import line, margin_share, release
from hedgerow_studies.work import silence_advice

EPSILON, RUNS = 1.0, 5
FIGURES = ("ECDF maximum", "log Q90", "fitted log means", "σ")


def _shipped(*place: str) -> Path:
    """A file of the installed statsmodels."""
    import statsmodels

    return Path(statsmodels.__file__).parent.joinpath(*place)


def medical() -> pd.DataFrame:
    """RAND health insurance experiment: medical spending in a year, of those with any."""
    data = pd.read_csv(_shipped("datasets", "randhie", "src", "randhie.csv"))
    names = ["meddol", "xage", "female", "black", "site", "hlthg", "hlthf", "hlthp", "physlm", "year"]
    return data[data["meddol"] > 0][names].dropna()


def affairs() -> pd.DataFrame:
    """Fair: time in extramarital affairs, of those with any."""
    data = pd.read_csv(_shipped("datasets", "fair", "fair.csv"))
    return data[data["affairs"] > 0][["affairs", "yrs_married", "rate_marriage", "occupation", "religious"]]


def incomes() -> pd.DataFrame:
    """Medicare beneficiaries of 65 and more: household income in thousands, where positive."""
    data = pd.read_csv(_shipped("sandbox", "regression", "tests", "racd10data_with_transformed.csv"))
    names = ["income", "educyr", "age", "female", "medicaid", "private", "phylim", "actlim"]
    return data[data["income"] > 0][names]


def stays() -> pd.DataFrame:
    """Medicare patients: days in hospital, by type of admission and number of codes."""
    return pd.read_csv(_shipped("genmod", "tests", "results", "stata_medpar1_glm.csv"))


def wages() -> pd.DataFrame:
    """Griliches: wages of young men in 1980."""
    data = pd.read_stata(_shipped("sandbox", "regression", "tests", "griliches76.dta"))
    data["wage"] = np.exp(data["lw80"].astype(np.float64))
    return data[["wage", "s80", "expr80", "rns80", "smsa80", "mrt80", "year"]].astype(np.float64)


@dataclass(frozen=True)
class Real:
    """A table, its model and public limits of the outcome."""

    load: Callable[[], pd.DataFrame]
    formula: str
    limits: tuple[float, float]
    whole: bool = False  # copies are rounded to whole numbers from 1 up, as the plan of a release would say


TABLES = {
    "medical spending": Real(
        medical,
        "meddol ~ xage + female + black + C(site) + C(year) + hlthg + hlthf + hlthp + physlm",
        (1.0, 1e5),
    ),
    "affairs": Real(
        affairs, "affairs ~ yrs_married + C(rate_marriage) + C(occupation) + C(religious)", (0.01, 100.0)
    ),
    "incomes": Real(
        incomes, "income ~ educyr + age + female + medicaid + private + phylim + actlim", (0.1, 1e4)
    ),
    "hospital stays": Real(stays, "los ~ C(admitype) + codes", (0.1, 1e3), whole=True),
    "wages": Real(wages, "wage ~ s80 + expr80 + rns80 + smsa80 + mrt80 + C(year)", (10.0, 1e5)),
}


def measured(name: str, runs: int) -> list[dict[str, Any]]:
    """Rows of one table: every method and run."""
    real = TABLES[name]
    data, root = real.load().reset_index(drop=True), Key.from_seed(7).child(name)
    rows = []

    def add(method: str, copy: PerRecord) -> None:
        copy = np.maximum(np.rint(copy), 1.0) if real.whole else copy
        rows.append({"table": name, "method": method, "errors": _errors(matrix, response, np.log(copy))})

    with silence_advice():
        for run in range(runs):
            seed = root.child(run).integer()
            plain = Synthesizer(real.formula, standard=Unweighted(), sampling="stratified", seed=seed).fit(
                data
            )
            design = plain._need().start.design
            matrix, response = design.matrix, np.log(design.values)
            add("Unweighted", plain._need().predict()[0])
            try:
                sharp = Synthesizer(real.formula, preset="recommended", epsilon=EPSILON, seed=seed).fit(data)
                add(f"ADP, recommended, ε = {EPSILON:g}", sharp._need().predict()[0])
            except CalibrationError:
                pass  # seen in the table as fewer runs
            low, high = np.log(real.limits)
            share = margin_share(len(response), EPSILON)
            for label, part in (("model only", 0.0), ("with margin", share)):
                if label == "with margin" and not part:
                    continue
                key = root.child(label).child(run)
                recipe = make_recipe(matrix, low=low, high=high, epsilon=EPSILON, margin_share=part)
                copy = release(recipe, response, key.child("noise")).drawn_copy(key.child("copy"))
                add(f"Strict, ε = {EPSILON:g}, {label}", np.exp(copy))
    return rows


def _errors(matrix: Matrix, response: PerRecord, copy: PerRecord) -> Array:
    """`FIGURES`: the fitted means' is the root mean square over the records."""
    (beta, sigma), (new_beta, new_sigma) = line(matrix, response), line(matrix, copy)
    return np.array(
        [
            ecdf_distance(response, copy).maximum,
            abs(float(np.quantile(copy, 0.9) - np.quantile(response, 0.9))),
            float(np.sqrt(((matrix @ (new_beta - beta)) ** 2).mean())),
            abs(new_sigma - sigma),
        ]
    )


def table(names: list[str], runs: int) -> Iterator[str]:
    """What came out, in Markdown."""
    yield f"| table | method | {' | '.join(FIGURES)} | runs |"
    yield "| --- " * (len(FIGURES) + 3) + "|"
    for name in names:
        real = TABLES[name]
        data = real.load()
        y = np.log(data[real.formula.split(" ~ ")[0]].to_numpy(dtype=np.float64))
        rows = pd.DataFrame(measured(name, runs))
        told = f"{name}, n = {len(y)}, skewness of log {stats.skew(y):.1f}"
        for method, part in rows.groupby("method", sort=False):
            means = np.stack(part["errors"].to_list()).mean(axis=0)
            yield f"| {told} | {method} | {' | '.join(f'{mean:.3f}' for mean in means)} | {len(part)} |"
            told = ""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m hedgerow_studies.noisy.tables", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    given = parser.parse_args()
    for text in table(given.tables, given.runs):
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
