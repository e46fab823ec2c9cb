"""Ten made-up tables with the troubles of real ones, from plan to release.

    python -m hedgerow_studies.first_hour

Each goes through `hedgerow init` and `hedgerow synthesize --plan` with default settings, in processes of
their own as an owner would run them. What must hold: no copy has a quantile of |x| beyond ten times the
original's, or the run stopped before anything was charged or published, and said why
(`Result.fit_to_leave`).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import hedgerow
from hedgerow.arrays import Array
from hedgerow.tables import files

SHARES = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
FARTHEST = 10.0  # times the original's quantile
EPSILON = 3.0


@dataclass(frozen=True)
class Trouble:
    """A table that real ones look like, and how its owner would ask for copies of it."""

    name: str
    file: str
    make: Callable[[np.random.Generator], pd.DataFrame]
    formula: str
    write: Callable[[pd.DataFrame, Path], object] = lambda frame, path: frame.to_csv(path, index=False)
    flags: tuple[str, ...] = ()

    @property
    def outcome(self) -> str:
        """The protected column."""
        return self.formula.split("~")[0].strip()


@dataclass(frozen=True)
class Result:
    """How a table fared: which quantile went farthest, or what was said instead of a release."""

    name: str
    code: int
    farthest: float  # the largest quantile of |x| in a copy over the original's; NaN without a release
    charged: float  # ε in the ledger
    published: bool
    said: str

    @property
    def fit_to_leave(self) -> bool:
        """Whether the copies may leave, or it stopped in time and said why."""
        if self.published:
            return self.code == 0 and self.farthest <= FARTHEST
        explained = "error: " in self.said and "internal error" not in self.said
        return self.code != 0 and self.charged == 0 and explained


def _pay(random: np.random.Generator, n: int, level: Array | float = 0.0) -> Array:
    """Skewed amounts in whole dollars about 25,000."""
    return np.maximum(1, np.rint(25_000 * np.exp(level + 0.8 * random.normal(size=n)))).astype(np.int64)


def dummies(random: np.random.Generator) -> pd.DataFrame:
    """A census extract of 882 incomes with 25 dummies, some of them for very few."""
    n, age = 882, random.integers(18, 80, 882)
    educ = random.choice(16, n, p=np.r_[np.full(3, 0.02), np.full(12, 0.07), 0.1])
    race = random.choice(["a", "b", "c", "d", "e"], n, p=[0.75, 0.15, 0.06, 0.035, 0.005])
    married = random.choice(["never", "married", "divorced", "widowed", "apart", "other"], n)
    sex = random.choice(["f", "m"], n)
    level = 0.08 * (educ - 8) + 0.01 * (age - 45) + 0.3 * (sex == "m")
    columns = {"age": age, "sex": sex, "educ": educ, "race": race, "married": married}
    return pd.DataFrame({"income": _pay(random, n, level), **columns})


def labelled(random: np.random.Generator) -> pd.DataFrame:
    """Sixteen regions as labelled codes, as Stata keeps them."""
    region = random.integers(1, 17, 1200)
    labels = pd.Index([f"region {code}" for code in range(1, 17)])
    level = random.normal(0, 0.4, 16)[region - 1]
    coded = pd.Categorical.from_codes(region - 1, labels)
    return pd.DataFrame({"wage": _pay(random, 1200, level), "region": coded})


def households(random: np.random.Generator) -> pd.DataFrame:
    """Up to four persons of a household, whose incomes are alike."""
    household = np.sort(random.integers(1, 500, 1500))
    place = pd.Series(household).groupby(household).cumcount().to_numpy()
    household, place = household[place < 4], place[place < 4]
    level = random.normal(0, 0.6, 501)[household]
    age = np.where(place < 2, random.integers(20, 70, len(place)), random.integers(1, 20, len(place)))
    return pd.DataFrame({"household": household, "income": _pay(random, len(place), level), "age": age})


def brackets(random: np.random.Generator) -> pd.DataFrame:
    """The income beside its own class, which gives most of it away."""
    age = random.integers(18, 80, 900)
    income = _pay(random, 900, np.asarray(0.01 * (age - 45), dtype=np.float64))
    classes = np.searchsorted([10_000, 20_000, 40_000, 80_000], income)
    return pd.DataFrame({"income": income, "income_class": classes, "age": age})


def commas(random: np.random.Generator) -> pd.DataFrame:
    """Decimal commas and semicolons."""
    area = np.round(np.exp(random.normal(4, 0.5, 800)), 1)
    return pd.DataFrame(
        {"rent": np.round(12 * area * np.exp(0.3 * random.normal(size=800)), 2), "area": area}
    )


def profits(random: np.random.Generator) -> pd.DataFrame:
    """Profits with losses, and a quarter of the firms at exactly zero."""
    employees = 1 + np.floor(np.exp(random.normal(2, 1, 1000))).astype(np.int64)
    amount = 5_000 * np.sinh(0.3 + 0.4 * (np.log(employees) - 2) + random.normal(size=1000))
    return pd.DataFrame(
        {"profit": np.where(random.uniform(size=1000) < 0.25, 0.0, np.rint(amount)), "employees": employees}
    )


def unused(random: np.random.Generator) -> pd.DataFrame:
    """A category with levels that no row has."""
    kinds = pd.Index([f"kind {place}" for place in range(30)])
    chosen = random.integers(0, 12, 900)
    level = random.normal(0, 0.3, 30)[chosen]
    return pd.DataFrame(
        {"turnover": _pay(random, 900, level), "kind": pd.Categorical.from_codes(chosen, kinds)}
    )


def dates(random: np.random.Generator) -> pd.DataFrame:
    """A date of hiring as a predictor."""
    days = random.integers(0, 12_000, 900)
    hired = pd.Timestamp("1990-01-01") + pd.to_timedelta(days, unit="D")
    return pd.DataFrame({"salary": _pay(random, 900, -days / 12_000), "hired": hired.strftime("%Y-%m-%d")})


def indexed(random: np.random.Generator) -> pd.DataFrame:
    """A column without a name that counts the rows, as an index written by accident, and -8 beside -8.0."""
    frame = pd.DataFrame({"payroll": _pay(random, 900), "size": random.integers(1, 5, 900).astype(str)})
    frame.loc[::9, "size"], frame.loc[::18, "size"] = "-8", "-8.0"
    return frame


def missing(random: np.random.Generator) -> pd.DataFrame:
    """26 % of the outcome and some of a predictor are missing."""
    frame = pd.DataFrame({"wealth": _pay(random, 1200).astype(float), "age": random.integers(18, 90, 1200)})
    frame.loc[random.uniform(size=1200) < 0.26, "wealth"] = np.nan
    return frame


TROUBLES = (
    Trouble(
        "25 dummies", "census.csv", dummies,
        "income ~ age + C(sex) + C(educ) + C(race) + C(married)", flags=("--copies", "5"),
    ),
    Trouble(
        "labelled codes", "wages.dta", labelled, "wage ~ region",
        write=lambda frame, path: frame.to_stata(path, write_index=False),
    ),
    Trouble(
        "households", "persons.csv", households, "income ~ age",
        flags=("--unit", "household", "--rows-per-unit", "4"),
    ),
    Trouble("brackets of the outcome", "incomes.csv", brackets, "income ~ age"),
    Trouble(
        "decimal commas", "rents.csv", commas, "rent ~ log(area)",
        write=lambda frame, path: frame.to_csv(path, index=False, sep=";", decimal=","),
    ),
    Trouble(
        "spikes and negatives", "profits.csv", profits, "profit ~ log(employees)",
        flags=("--family", "{kind: zero_asinh, scale: 5000}"),
    ),
    Trouble(
        "unused levels", "firms.parquet", unused, "turnover ~ kind",
        write=lambda frame, path: frame.to_parquet(path),
    ),
    Trouble("dates", "staff.csv", dates, "salary ~ hired"),
    Trouble(
        "an index", "firms.csv", indexed, "payroll ~ C(size)",
        write=lambda frame, path: frame.to_csv(path),
    ),
    Trouble("26 % missing", "survey.csv", missing, "wealth ~ age", flags=("--drop-missing",)),
)  # fmt: skip


def release(trouble: Trouble, folder: Path, *, epsilon: float = EPSILON, seed: int = 1) -> Result:
    """One table from file to release, by the command, in a folder of its own."""
    frame = trouble.make(np.random.default_rng([seed, *trouble.name.encode()]))
    data, plan, out = folder / trouble.file, folder / "plan.yaml", folder / "release"
    trouble.write(frame, data)
    asked = ("--formula", trouble.formula, "--epsilon", f"{epsilon:g}", *trouble.flags)
    said = _command("init", data, *asked, "--ledger", folder / "ledger.sqlite", "--out", plan)
    if said.returncode == 0:
        said = _command("synthesize", "--plan", plan, "--seed", seed, "--out", out)
    published = (out / "public").exists()
    return Result(
        trouble.name,
        said.returncode,
        _farthest(trouble, frame, out) if published else np.nan,
        _charged(folder / "ledger.sqlite"),
        published,
        " ".join(said.stderr.split()),
    )


def _command(*words: object) -> subprocess.CompletedProcess[str]:
    """`hedgerow WORDS`, as installed beside this package."""
    source = str(Path(hedgerow.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, "COLUMNS": "200", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "hedgerow", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)  # noqa: S603 - our own words


def _charged(ledger: Path) -> float:
    if not ledger.exists():
        return 0.0
    shown = _command("ledger", "list", "--ledger", ledger, "--json")
    spent = [account["spent"] for account in json.loads(shown.stdout)["accounts"]]
    return float(sum(np.inf if one is None else one for one in spent))


def _farthest(trouble: Trouble, frame: pd.DataFrame, out: Path) -> float:
    """The largest ratio of a copy's quantile of |x| to the original's.

    The original's counts as at least a tenth of the median apart from zeros.
    """
    size = frame[trouble.outcome].abs().dropna()
    wanted = np.maximum(size.quantile(SHARES), size[size > 0].median() / FARTHEST)
    ratios = []
    for path in sorted((out / "public").glob("synthetic-copy-*")):
        copy = files.read(path).frame[trouble.outcome].to_numpy().astype(np.float64)
        ratios.append(np.quantile(np.abs(copy), SHARES) / wanted)
    return float(np.max(ratios))


def main() -> int:
    """Print how each table fares; 1 where one does not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--epsilon", type=float, default=EPSILON)
    given = parser.parse_args()
    failed = 0
    for trouble in TROUBLES:
        with tempfile.TemporaryDirectory() as folder:
            result = release(trouble, Path(folder), epsilon=given.epsilon)
        failed += not result.fit_to_leave
        verdict = "fits" if result.fit_to_leave else "DOES NOT"
        how = f"farthest {result.farthest:.3g}" if result.published else f"stopped ({result.code})"
        sys.stdout.write(
            f"{trouble.name:24} {verdict:9} {how:18} charged {result.charged:g}: {result.said}\n"
        )
        sys.stdout.flush()
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
