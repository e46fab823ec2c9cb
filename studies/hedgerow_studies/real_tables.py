"""The correction on tables where the model is not exactly right: `python -m hedgerow_studies.real_tables`.

Published tables that ship with statsmodels, chosen before their results were seen: Engel's food expenditure
by income, and the time in extramarital affairs of those who report any (Fair) by years married. 20 fits each
with different keys, one copy a fit, every fit with and without correction and stratified numbers.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from hedgerow.arrays import PerRecord
from hedgerow.errors import CalibrationError
from hedgerow.evidence.utility import ecdf_distance
from hedgerow.fitted import Fitted
from hedgerow.privacy.standards import ADP, Unweighted
from hedgerow.randomness import Key
from hedgerow.synthesizer import Synthesizer
from hedgerow_studies.bias import CORRECTED, PLAIN, SEED, SMOOTH, UNWEIGHTED
from hedgerow_studies.work import silence_advice

METHODS = (UNWEIGHTED, PLAIN, CORRECTED, SMOOTH)
FIGURES = {"ecdf_max": "ECDF maximum", "log_q90": "log Q90", "log_mean": "log mean", "slope": "slope"}


def engel() -> pd.DataFrame:
    """235 Belgian households, 1857; the slope is an elasticity."""
    import statsmodels.api as sm

    data = sm.datasets.engel.load_pandas().data
    return pd.DataFrame({"x": data["foodexp"], "z": np.log(data["income"])})


def fair() -> pd.DataFrame:
    """2053 of 6366 respondents: those with a positive time in affairs, by years married."""
    import statsmodels.api as sm

    data = sm.datasets.fair.load_pandas().data
    some = data[data["affairs"] > 0].reset_index(drop=True)
    return pd.DataFrame({"x": some["affairs"], "z": some["yrs_married"]})


@dataclass(frozen=True)
class Real:
    """A table and its target."""

    name: str
    load: Callable[[], pd.DataFrame]
    epsilon: float


TABLES = (Real("engel", engel, 5.7), Real("fair", fair, 5.7))


def measured(real: Real, number: int, seed: int) -> list[dict[str, Any]]:
    """One row per method for one fit; errors against the table itself. None where the target is not met."""
    data = real.load()
    key = Key.from_seed(seed).child("real").child(real.name).child(number).integer()
    try:
        methods = _methods(real, data, key)
    except CalibrationError:
        return []
    x, z = data["x"].to_numpy(dtype=np.float64), data["z"].to_numpy(dtype=np.float64)
    rows = []
    for method, fitted in methods.items():
        (copy,), (draw,) = fitted.predict(), fitted.released
        rows.append(
            {
                "table": real.name,
                "method": method,
                "fit": number,
                "ecdf_max": ecdf_distance(x, copy).maximum,
                "log_q90": abs(float(np.log(np.quantile(copy, 0.9) / np.quantile(x, 0.9)))),
                "log_mean": abs(float(np.log(copy.mean() / x.mean()))),
                "slope": abs(_slope(copy, z) - _slope(x, z)),
                "sigma": float(draw.parameters["sigma"]),
                "converged": draw.converged,
                "price": fitted.outcome.epsilon,
            }
        )
    return rows


def _methods(real: Real, data: pd.DataFrame, seed: int) -> dict[str, Fitted]:
    """The same seed, so that fits share their random numbers; the corrected ones share the draw too."""
    with silence_advice():
        full = Synthesizer("x ~ z", standard=Unweighted(), seed=seed).fit(data)._need()
        done = Synthesizer("x ~ z", standard=ADP(), epsilon=real.epsilon, debias=True, seed=seed).fit(data)
    corrected = done._need()
    return {
        UNWEIGHTED: full,
        PLAIN: corrected.variant(debias=False),
        CORRECTED: corrected,
        SMOOTH: corrected.variant(sampling="stratified"),
    }


def _slope(x: PerRecord, z: PerRecord) -> float:
    return float(np.polyfit(z, np.log(x), 1)[0])


def diagnosed(real: Real) -> str:
    """How the residuals of least squares on the log scale differ from normal ones."""
    data = real.load()
    y, z = np.log(data["x"].to_numpy(dtype=np.float64)), data["z"].to_numpy(dtype=np.float64)
    residual = y - np.polyval(np.polyfit(z, y, 1), z)
    sigma = float(residual.std(ddof=2))
    far = float(np.mean(np.abs(residual) > 2.5 * sigma))
    curved = float(np.polyfit(z, y, 2)[0] * z.std() ** 2 / sigma)
    widening = float(stats.spearmanr(np.abs(residual), z).statistic)
    return (
        f"n = {len(y)}, {data['x'].nunique()} distinct outcomes; σ = {sigma:.3f}, skewness "
        f"{stats.skew(residual):.2f}, excess kurtosis {stats.kurtosis(residual):.2f}, beyond 2.5 σ {far:.2%} "
        f"(normal: 1.24%), |residual| against z {widening:.2f} (rank correlation), curvature {curved:.2f} σ"
    )


def table(rows: pd.DataFrame) -> Iterator[str]:
    """Means over fits ± a standard error, in Markdown."""
    for real in TABLES:
        here = rows[rows["table"] == real.name]
        if here.empty:
            yield f"\n{real.name}: no fit met ε = {real.epsilon:g}"
            continue
        plain = here[here["method"] == PLAIN]
        settled = int(here[here["method"] == CORRECTED]["converged"].sum())
        spent = here[here["method"] == UNWEIGHTED]["price"].mean()
        yield f"\n{real.name}: {diagnosed(real)}"
        yield f"ε = {real.epsilon:g}: {len(plain)} fits, {settled} corrected; Unweighted spends {spent:.1f}"
        yield f"\n| method | {' | '.join(FIGURES.values())} | σ |"
        yield "| --- " * (len(FIGURES) + 2) + "|"
        for method in METHODS:
            mine = here[here["method"] == method]
            parts = [mine[name].to_numpy(dtype=np.float64) for name in FIGURES]
            cells = [f"{part.mean():.4f} ± {stats.sem(part):.4f}" for part in parts]
            yield f"| {method} | {' | '.join(cells)} | {mine['sigma'].mean():.3f} |"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m hedgerow_studies.real_tables", description=__doc__)
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--out", type=Path, help="a file for the rows, as JSON")
    given = parser.parse_args()
    rows = [row for real in TABLES for k in range(given.fits) for row in measured(real, k, given.seed)]
    if given.out is not None:
        given.out.write_text(json.dumps(rows, indent=1) + "\n")
    sys.stdout.write("\n".join(table(pd.DataFrame(rows))) + "\n")


if __name__ == "__main__":
    main()
