"""The numbers and the picture of docs/heavy-tails.md: lognormal against log_student, on data of either kind.

    python examples/heavy_tails.py [--figure docs/figures/heavy-tails.png]

The data are simulated, so that prices may be shown: log x = 0.5 + 0.8 z + 0.5 t with t₃ errors, and with
normal ones of the same standard deviation. Each family is fitted unweighted, with the default linear weights,
and with capped weights that are calibrated to ε = 1 a copy under the oscillation bound.
"""

import argparse
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy import stats

import hedgerow as hr
from hedgerow.drawing import PALETTE, draw_violins

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RECORDS, COPIES, TARGET = 2000, 5, 1.0
FAMILIES = ("lognormal", "log_student")


@dataclass(frozen=True)
class Case:
    """One family on one table: fitted plainly, with default weights, and calibrated."""

    family: str
    plain: hr.Synthesizer
    linear: hr.Synthesizer
    calibrated: hr.Synthesizer


def tables() -> dict[str, pd.DataFrame]:
    """Heavy-tailed data, and ordinary data with the same mean and spread of log x."""
    random = np.random.default_rng(1)
    z = random.normal(2.0, 1.0, RECORDS)
    ordinary = np.exp(0.5 + 0.8 * z + 0.5 * 3**0.5 * random.normal(size=RECORDS))
    return {
        "t₃ errors": hr.datasets.family("log_student", n=RECORDS, seed=1),
        "normal errors": pd.DataFrame({"x": ordinary, "z": z}),
    }


def fitted(family: str, data: pd.DataFrame) -> Case:
    """The three ways."""

    def fit(**settings: object) -> hr.Synthesizer:
        return hr.Synthesizer("x ~ z", family, copies=COPIES, seed=1, **settings).fit(data)  # type: ignore[arg-type]

    return Case(
        family,
        fit(standard=hr.Unweighted()),
        fit(),
        fit(
            weights=hr.CapWeights(1, risk="oscillation"),
            bound="oscillation",
            epsilon=TARGET * COPIES,
        ),
    )


def row(case: Case) -> str:
    """Risks, prices and what is lost, on one line of Markdown."""
    risks = np.sort(case.plain.prices_["oscillation"])
    best = case.calibrated
    data, copies = best.outcome_, best.copied_outcomes()
    lost = best.utility()
    ecdf = lost[(lost["copy"] == "pooled") & (lost["statistic"] == "ecdf_max")]["synthetic"].iloc[0]
    tails = [
        np.mean([np.log(np.quantile(copy, q) / np.quantile(data, q)) for copy in copies])
        for q in (0.01, 0.1, 0.9, 0.99)
    ]
    cells = [
        case.family,
        f"{np.median(risks):.2f}",
        f"{risks[-1]:.2f}",
        f"{case.plain.lipschitz_epsilon_:.1f}",
        f"{case.linear.lipschitz_epsilon_:.1f}",
        f"{best.alpha_.mean():.2f}",
        f"{best.oscillation_epsilon_:.2f}",
        f"{ecdf:.3f}",
        *(f"{tail:+.2f}" for tail in tails),
        f"{_sigma(case.plain):.2f}, {_sigma(best):.2f}",
    ]
    return f"| {' | '.join(cells)} |"


HEAD = """| family | risk: median | risk: largest | ε unweighted | ε linear weights | mean weight at ε = 1 | \
ε calibrated | ECDF maximum | log Q1 | log Q10 | log Q90 | log Q99 | σ unweighted, calibrated |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"""


def _sigma(synth: hr.Synthesizer) -> float:
    draws = synth.to_arviz().posterior
    return float((draws["variance"] ** 0.5 if "variance" in draws else draws["sigma"]).mean())


def figure(cases: dict[str, Case]) -> "Figure":
    """By-record risks, and the copies' quantiles over the data's."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(9.0, 4.0), layout="constrained")
    left, right = drawn.subplots(1, 2, width_ratios=[1.0, 1.4])
    colours = dict(zip(FAMILIES, (PALETTE[1], PALETTE[3]), strict=True))
    risks = {name: case.plain.prices_["oscillation"] for name, case in cases.items()}
    notes = {name: f"ε = {values.max():.2g}" for name, values in risks.items()}
    draw_violins(left, risks, "by-record oscillation, unweighted", log=True, notes=notes, colours=colours)
    shares = 1 / (1 + np.exp(-np.linspace(-6.5, 6.5, 121)))
    for name, case in cases.items():
        data = np.quantile(case.calibrated.outcome_, shares)
        copies = [np.quantile(copy, shares) / data for copy in case.calibrated.copied_outcomes()]
        place = np.log(shares / (1 - shares))
        right.fill_between(
            place, np.min(copies, axis=0), np.max(copies, axis=0), color=colours[name], alpha=0.3, lw=0
        )
        right.plot(place, np.median(copies, axis=0), color=colours[name], lw=2, label=name)
    marks = np.array([0.002, 0.01, 0.1, 0.5, 0.9, 0.99, 0.998])
    right.set_xticks(np.log(marks / (1 - marks)), [f"{mark:g}" for mark in marks], fontsize=9)
    right.set_yscale("log")
    right.set_yticks([0.25, 0.5, 1, 2, 4, 8], ["¼", "½", "1", "2", "4", "8"])
    right.minorticks_off()
    right.axhline(1.0, color="#444444", lw=0.8)
    right.set(xlabel="quantile", ylabel="copy over data, at ε = 1 a copy")
    right.legend(frameon=False, fontsize=9)
    right.spines[["top", "right"]].set_visible(False)
    right.grid(axis="y", linewidth=0.4, alpha=0.5)
    return drawn


def spread_ratios() -> str:
    """(log Q99 − log Q50)/(log Q90 − log Q50) of log-scale errors, which published percentiles show."""
    shapes = {"normal": stats.norm} | {f"t, df {df}": stats.t(df) for df in (10, 5, 3)}
    return ", ".join(f"{name}: {shape.ppf(0.99) / shape.ppf(0.9):.2f}" for name, shape in shapes.items())


def main() -> None:
    """Print the tables; draw the picture where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--figure", type=Path, help="where to save the picture")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(spread_ratios(), end="\n\n")
    for kind, data in tables().items():
        cases = {family: fitted(family, data) for family in FAMILIES}
        print(f"{kind}\n\n{HEAD}", *(row(case) for case in cases.values()), sep="\n", flush=True)
        if given.figure is not None and kind == "t₃ errors":
            figure(cases).savefig(given.figure, dpi=110)
        print()


if __name__ == "__main__":
    main()
