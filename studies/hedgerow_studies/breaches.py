"""Where the price is exceeded: weights recomputed without a record, and a category of one.

`python -m hedgerow_studies.breaches` prints both tables of docs/honesty.md, in a few minutes.

The paper's simulation with n = 2000 and n = 200, seeds 1 to 70. Each table is fitted under every family of
weights without a target, and audited: the whole procedure is run again without x_i, for about 20 records of
large risk or loss and 10 others, on the same random numbers, and the exact loss is held against the
Lipschitz price and the oscillation of the same fit, at draws of that fit and at draws of either posterior.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer

from hedgerow import datasets
from hedgerow.errors import HedgerowWarning
from hedgerow.models.prior import Prior
from hedgerow.privacy.standards import Unweighted
from hedgerow.privacy.weights import (
    CapWeights,
    InverseWeights,
    LinearWeights,
    LogisticWeights,
    SoftmaxWeights,
    Weights,
)
from hedgerow.synthesizer import Synthesizer
from hedgerow_studies.work import Jobs, each, processors

SIZES, SEEDS = (2000, 200), tuple(range(1, 71))
FAMILIES: dict[str, Weights] = {
    "linear": LinearWeights(),
    "inverse": InverseWeights(),
    "softmax": SoftmaxWeights(),
    "logistic": LogisticWeights(),
    "cap 1.5 on o": CapWeights(1.5, risk="oscillation"),
    "cap 0.5 on o": CapWeights(0.5, risk="oscillation"),
}
_DRAWS, _FITS = (250, 1000, 4000, 16_000), 20


@dataclass(frozen=True)
class Losses:
    """One audited table under one family of weights."""

    n: int
    family: str
    seed: int
    lipschitz: float
    oscillation: float
    fixed: float
    recomputed: float  # at draws of the fit
    either: float  # at draws of the fit or of the posterior without the record


def losses(n: int, seed: int) -> list[Losses]:
    """One simulated table under every family of weights."""
    data = datasets.lognormal(n, seed=seed)
    found = []
    for family, weights in FAMILIES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", HedgerowWarning)
            synth = Synthesizer("x ~ z", weights=weights, seed=seed).fit(data)
        audit = synth.audit(keys=1)
        again = float(audit.recomputed.max())
        either = max(again, float(audit.reverse.max()))
        prices = synth.lipschitz_epsilon_, synth.oscillation_epsilon_
        found.append(Losses(n, family, seed, *prices, audit.largest_fixed, again, either))
    return found


def breaches(seeds: Sequence[int] = SEEDS, sizes: Sequence[int] = SIZES, *, jobs: Jobs = 1) -> pd.DataFrame:
    """One row per size and family: how many tables exceed either price, and by how much at worst."""
    tasks = [(n, seed) for n in sizes for seed in seeds]
    frame = pd.DataFrame([vars(one) for part in each(tasks, losses, jobs=jobs) for one in part])
    table = []
    for n, family in product(sizes, FAMILIES):
        part = frame[(frame["n"] == n) & (frame["family"] == family)]
        row: dict[str, Any] = {"n": n, "weights": family}
        for name, bound in (("2Δ", "lipschitz"), ("oscillation", "oscillation")):
            for where in ("recomputed", "either"):
                ratio = part[where] / part[bound]
                beside = "" if where == "recomputed" else ", either"
                row[f"above {name}{beside}"] = f"{int((ratio > 1).sum())} ({ratio.max():.2f})"
        row["weights fixed"] = int((part["fixed"] > part["oscillation"]).sum())
        table.append(row)
    return pd.DataFrame(table)


def singleton(draws: Sequence[int] = _DRAWS, fits: int = _FITS) -> pd.DataFrame:
    """A category of one: what draws show about its record, and its exact loss, averaged over fits.

    199 lognormal records in one category, one in the other, whose prior is wide (standard deviation 1000).
    """
    random = np.random.default_rng(8)
    data = pd.DataFrame({"x": np.exp(random.normal(2, 1, 200)), "g": ["many"] * 199 + ["one"]})
    rows = []
    for count in draws:
        shown, exact, below = np.empty(fits), np.empty(fits), 0
        for seed in range(fits):
            settings: dict[str, Any] = {"prior": Prior(slope=(0.0, 1000.0)), "draws": count, "seed": seed}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HedgerowWarning)
                synth = Synthesizer("x ~ g", standard=Unweighted(), **settings).fit(data)
            shown[seed] = synth.prices_["withheld_oscillation"][-1]
            exact[seed] = synth.prices_["withheld_exact"][-1]
            below += bool(shown[seed] < exact[seed])
        rows.append(
            {
                "draws": count,
                "oscillation": float(shown.mean()),
                "exact loss": float(exact.mean()),
                "fits that show too little": f"{below} of {fits}",
            }
        )
    return pd.DataFrame(rows)


def markdown(table: pd.DataFrame) -> str:
    """The table as a page prints it."""
    return "\n".join(_lines(table))


def _lines(table: pd.DataFrame) -> Iterator[str]:
    yield f"| {' | '.join(table.columns)} |"
    yield f"| {' | '.join('---' if table[name].dtype == object else '---:' for name in table)} |"
    for row in table.itertuples(index=False):
        yield f"| {' | '.join(f'{cell:.2f}' if isinstance(cell, float) else str(cell) for cell in row)} |"


def main(jobs: Annotated[int | None, typer.Option(help="Processes; as many as cores.")] = None) -> None:
    """Print both tables."""
    typer.echo(markdown(breaches(jobs=processors(jobs))) + "\n")
    typer.echo(markdown(singleton()))


if __name__ == "__main__":
    typer.run(main)
