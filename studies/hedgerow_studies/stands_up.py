"""Does ε stand up? The full audit of fresh tables at three targets, and what their copies are worth.

`python -m hedgerow_studies.stands_up` computes what docs/studies/stands_up/rows.jsonl does not hold yet, six
minutes of one core for all, and prints the first table under "Audit" in docs/honesty.md.

The paper's simulation, 20 tables of each size with seeds that were fixed beforehand and used for nothing
else. Each is released at ε = 0.5, 1 and 2, and the whole procedure is run again without each of about 20
records of large risk or loss, calibration included.
"""

import json
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from hedgerow import datasets
from hedgerow.errors import CalibrationError
from hedgerow.evidence.utility import ecdf_distance
from hedgerow.privacy.standards import Unweighted
from hedgerow.privacy.weights import LinearWeights, ScalarWeights
from hedgerow.synthesizer import Synthesizer
from hedgerow_studies.breaches import markdown
from hedgerow_studies.work import silence_advice

SIZES, TARGETS, SEEDS = (200, 2000), (0.5, 1.0, 2.0), tuple(range(3001, 3021))
RISKIEST, KEYS = 20, 2
ROWS = Path("docs/studies/stands_up/rows.jsonl")
UNWEIGHTED, SCALED = "Unweighted", "equal, scaled to ε, Rényi"
FEW = 5  # tables for what need not be counted: nearly every one is above ε
RECIPES: dict[str, dict[str, Any]] = {
    "recommended": {"preset": "recommended"},
    SCALED: {"weights": ScalarWeights(1.0), "bound": "renyi", "sampling": "stratified"},
    "linear, 2Δ": {"weights": LinearWeights(), "bound": "lipschitz"},
}
Row = dict[str, Any]


def measured(recipe: str, n: int, epsilon: float | None, seed: int) -> Row:
    """One table under one recipe: whether it was released, its largest loss, and how far the copy is off."""
    data = datasets.lognormal(n, seed=seed)
    asked = {"standard": Unweighted()} if epsilon is None else RECIPES[recipe] | {"epsilon": epsilon}
    found: Row = {"recipe": recipe, "n": n, "epsilon": epsilon, "seed": seed, "released": False}
    with silence_advice():
        try:
            synth = Synthesizer("x ~ z", seed=seed, **asked).fit(data)
        except CalibrationError as error:
            return found | {"beforehand": "without the outcome" in str(error)}
    copy, original = (np.asarray(table["x"]) for table in (synth.sample().tables[0], data))
    found |= {"released": True, "ecdf": ecdf_distance(original, copy).maximum}
    found["q90"] = float(abs(np.log(np.quantile(copy, 0.9) / np.quantile(original, 0.9))))
    if epsilon is None:
        return found
    audit = synth.audit(riskiest=RISKIEST, sample=0, keys=KEYS)
    return found | {
        "keys": audit.keys,
        "loss": float(audit.recomputed.max()),
        "either": float(max(audit.recomputed.max(), audit.reverse.max())),
        "records": len(audit.breaches),
    }


def cells() -> list[tuple[str, int, float | None, int]]:
    """Table by table, so that an unfinished run is balanced."""
    found: list[tuple[str, int, float | None, int]] = []
    for seed, n in product(SEEDS, SIZES):
        found += [(UNWEIGHTED, n, None, seed)]
        some = [recipe for recipe in RECIPES if recipe != SCALED or seed in SEEDS[:FEW]]
        found += [(recipe, n, epsilon, seed) for recipe, epsilon in product(some, TARGETS)]
    return found


def run(file: Path) -> pd.DataFrame:
    """Compute what the file does not hold yet, one line per table and recipe, and return all of it."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    rows = [json.loads(line) for line in lines if line.endswith("}")]
    known = {(row["recipe"], row["n"], row["epsilon"], row["seed"]) for row in rows}
    for cell in cells():
        if cell not in known:
            rows.append(measured(*cell))
            with file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(rows[-1], ensure_ascii=False) + "\n")
    return pd.DataFrame(rows)


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per recipe, size and target."""
    found = []
    for recipe, n, epsilon in product(RECIPES, SIZES, TARGETS):
        here = rows[(rows["recipe"] == recipe) & (rows["n"] == n) & (rows["epsilon"] == epsilon)]
        plain = rows[(rows["recipe"] == UNWEIGHTED) & (rows["n"] == n)].set_index("seed")
        out = here[here["released"]]
        row: Row = {"weights, bound": recipe, "n": n, "ε": f"{epsilon:g}"}
        row["released"] = f"{len(out)} of {len(here)}"
        if here["beforehand"].eq(True).all():
            row["released"] = "refused beforehand"
        for name, column in (("above ε", "loss"), ("above ε, either", "either")):
            ratio = out[column] / epsilon
            row[name] = f"{int((ratio > 1 + 1e-6).sum())} ({_number(ratio.max())})" if len(out) else ""
        for name, column in (("ECDF maximum", "ecdf"), ("error of log Q90", "q90")):
            beside = plain.loc[out["seed"], column].mean() if len(out) else np.nan
            row[name] = f"{out[column].mean():.3f} ({out[column].mean() / beside:.1f})" if len(out) else ""
        found.append(row)
    return pd.DataFrame(found)


def _number(ratio: float) -> str:
    return f"{ratio:.2f}" if np.isfinite(ratio) else "∞"


def main(rows: Annotated[Path, typer.Option(help="What was computed so far.")] = ROWS) -> None:
    """Compute what is missing, and print the table."""
    rows.parent.mkdir(parents=True, exist_ok=True)
    typer.echo(markdown(table(run(rows))))


if __name__ == "__main__":
    typer.run(main)
