"""What weights leave of rare classes, codes and gaps in a chain of columns (docs/tables.md).

    python -m hedgerow_studies.weights.rare

3,000 people, five protected columns: a class that 3 % have, a code that 2 % have beside zeros and amounts,
gaps in 3 % of the cells, an amount, and a flag. All have closed forms, so that every bound prices them. For
each bound and target over five copies, shares in copies under each kind of weights, as means of the five.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
import pandas as pd

import hedgerow as hr
from hedgerow.privacy.weights import Weights
from hedgerow_studies.work import silence_advice

COPIES = 5
TARGETS = (4.0, 10.0)
Chosen = Literal["renyi", "oscillation", "lipschitz"]
BOUNDS: tuple[Chosen, ...] = ("renyi", "oscillation", "lipschitz")
COLUMNS = {
    "status": hr.Column("status ~ C(sector)", hr.Family("dirichlet", levels=("full", "part", "apprentice"))),
    "wage": hr.Column("wage ~ age + C(status)"),
    "bonus": hr.Column("bonus ~ log(wage)", codes=(0, -8), kinds_by="C(sector)", filler=200),
    "hours": hr.Column("hours ~ C(status)", "normal", missing="synthesized", kinds_by="C(sector)", filler=35),
    "member": hr.Column("member ~ C(sector)", hr.Family("dirichlet", levels=(0, 1))),
}


def people(n: int = 3000, seed: int = 1) -> pd.DataFrame:
    """The table."""
    random = np.random.default_rng(seed)
    age, sector = random.integers(18, 66, n), random.choice(["farm", "shop", "office"], n, p=[0.1, 0.5, 0.4])
    status = random.choice(["full", "part", "apprentice"], n, p=[0.70, 0.27, 0.03])
    level = 7 + 0.01 * age + 0.4 * (status == "full") - 0.5 * (status == "apprentice")
    wage = np.exp(level + 0.4 * random.normal(size=n)).round(2)
    bonus = (0.1 * wage * np.exp(0.8 * random.normal(size=n))).round(2)
    bonus[random.random(n) < 0.6] = 0
    bonus[random.random(n) < 0.02] = -8
    hours = (np.where(status == "part", 20, 38) + 4 * random.normal(size=n)).round(1)
    hours[random.random(n) < 0.03] = np.nan
    member = (random.random(n) < 0.15).astype(int)
    public = {"age": age, "sector": sector}
    return pd.DataFrame(
        {**public, "status": status, "wage": wage, "bonus": bonus, "hours": hours, "member": member}
    )


def describe(table: pd.DataFrame) -> dict[str, float]:
    """Shares of what is rare, and the wage: median, a high quantile, and slope of its log on age."""
    return {
        "class of 3 %": float((table["status"] == "apprentice").mean()),
        "code": float((table["bonus"] == -8).mean()),
        "gap": float(table["hours"].isna().mean()),
        "zero": float((table["bonus"] == 0).mean()),
        "flag": float((table["member"] == 1).mean()),
        "99 % wage": float(table["wage"].quantile(0.99)),
        "slope": float(np.polyfit(table["age"], np.log(table["wage"]), 1)[0]),
    }


def measure(table: pd.DataFrame, weights: Weights, bound: Chosen, epsilon: float) -> dict[str, float]:
    """Means over copies of what they have, and of the weights."""
    with silence_advice():
        synth = hr.Synthesizer(
            COLUMNS, weights=weights, bound=bound, epsilon=epsilon, copies=COPIES, draws=300, seed=1
        ).fit(table)
        copies = [describe(copy) for copy in synth.sample().tables]
    return {"mean weight": float(synth.alpha_.mean()), **dict(pd.DataFrame(copies).mean())}


def write_table() -> Iterator[str]:
    """The figures as Markdown."""
    table = people()
    names = list(describe(table))
    yield f"| bound | ε | weights | mean weight | {' | '.join(names)} |"
    yield "| --- " * (len(names) + 4) + "|"
    yield _row("", "", "the table", {"mean weight": np.nan, **describe(table)})
    for bound in BOUNDS:
        for epsilon in TARGETS:
            risk: Literal["lipschitz", "oscillation"] = "lipschitz" if bound == "lipschitz" else "oscillation"
            kinds = {
                "linear": hr.LinearWeights(),
                "capped": hr.CapWeights(epsilon / COPIES / (2 if bound == "lipschitz" else 1), risk=risk),
                "scalar": hr.ScalarWeights(1),
            }
            for name, weights in kinds.items():
                yield _row(bound, f"{epsilon:g}", name, measure(table, weights, bound, epsilon))


def _row(bound: str, epsilon: str, name: str, figures: dict[str, float]) -> str:
    digits = {"99 % wage": ".0f", "slope": ".4f", "mean weight": ".2f"}
    cells = ["" if np.isnan(each) else f"{each:{digits.get(key, '.3f')}}" for key, each in figures.items()]
    return f"| {bound} | {epsilon} | {name} | {' | '.join(cells)} |"


def main() -> None:
    """Print as it comes."""
    for line in write_table():
        print(line, flush=True)  # noqa: T201 - a table for people


if __name__ == "__main__":
    main()
