"""What undoing the bias is worth: `python -m hedgerow_studies.bias`. Nothing here is confidential.

The paper's simulation at several sizes and targets, and three wrong models. On every sample the same fits and
draws serve with and without correction, with independent and with stratified numbers, so that the columns are
paired. Errors are those of docs/maths.md, "Undoing the bias": the largest difference of the two empirical
distribution functions, and |log of the ratio of the 90 % quantiles|, averaged over copies and samples.
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
from scipy.special import ndtri, stdtrit

from hedgerow.arrays import Array
from hedgerow.errors import CalibrationError
from hedgerow.evidence.utility import ecdf_distance
from hedgerow.fitted import Fitted
from hedgerow.privacy.bounds import LIPSCHITZ
from hedgerow.privacy.standards import ADP, Standard, Unweighted
from hedgerow.privacy.strict import Strict
from hedgerow.randomness import Key, Stream
from hedgerow.synthesizer import Synthesizer
from hedgerow_studies.work import each, jobs_of, processors, silence_advice

SEED = 1
COPIES = 5
UNWEIGHTED, PLAIN, CORRECTED = "Unweighted", "plain", "corrected"
SMOOTH, SMOOTH_UNWEIGHTED = "corrected, stratified", "Unweighted, stratified"
_COLOURS = {UNWEIGHTED: "#999999", PLAIN: "#E69F00", CORRECTED: "#0072B2", SMOOTH: "#009E73"}
METHODS = (UNWEIGHTED, PLAIN, CORRECTED, SMOOTH, SMOOTH_UNWEIGHTED)
_NUMBERS = (float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max))
BOX = {"Intercept": (0.0, 2.0), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}


def normal(stream: Stream, size: int) -> Array:
    """The model holds."""
    return stream.normal(size)


def t3(stream: Stream, size: int) -> Array:
    """Student's t with 3 degrees of freedom, scaled to variance 1."""
    return np.asarray(stdtrit(3.0, stream.uniform(size)) / np.sqrt(3.0), dtype=np.float64)


def laplace(stream: Stream, size: int) -> Array:
    """The double exponential, scaled to variance 1."""
    centred = stream.uniform(size) - 0.5
    return np.asarray(-np.sign(centred) * np.log1p(-2 * np.abs(centred)) / np.sqrt(2.0), dtype=np.float64)


def contaminated(stream: Stream, size: int) -> Array:
    """Normal, and one record in twenty three times as wide."""
    uniforms = stream.uniform((2, size))
    return np.asarray(ndtri(uniforms[0]) * np.where(uniforms[1] < 0.05, 3.0, 1.0), dtype=np.float64)


ERRORS: dict[str, Callable[[Stream, int], Array]] = {
    "normal": normal,
    "t3": t3,
    "laplace": laplace,
    "contaminated": contaminated,
}


@dataclass(frozen=True)
class Setting:
    """A line of the table."""

    records: int
    epsilon: float
    errors: str = "normal"
    strict: bool = False

    @property
    def label(self) -> str:
        """What distinguishes it."""
        kind = " strict" if self.strict else ""
        return f"n = {self.records}, ε = {self.epsilon:g}, {self.errors} errors{kind}"

    @property
    def standard(self) -> Standard:
        """The paper's Weighted with linear weights, or the strict box of docs/maths.md."""
        return Strict(BOX, "chosen before simulating") if self.strict else ADP()


SETTINGS = (
    Setting(2000, 5.7),
    Setting(2000, 1.0),
    Setting(200, 5.7),
    Setting(200, 1.0),
    Setting(20_000, 5.7),
    Setting(20_000, 1.0),
    Setting(2000, 5.7, strict=True),
    Setting(2000, 1.0, strict=True),
    *(Setting(2000, 5.7, errors) for errors in list(ERRORS)[1:]),
)


def sample(setting: Setting, number: int, seed: int) -> tuple[pd.DataFrame, Key]:
    """z ~ Normal(2, 1), log x = z + 1 + an error of the setting's kind."""
    key = Key.from_seed(seed).child("bias").child(setting.errors).child(setting.records).child(number)
    z = 2.0 + key.child("z").stream().normal(setting.records)
    error = ERRORS[setting.errors](key.child("error").stream(), setting.records)
    return pd.DataFrame({"x": np.exp(1.0 + z + error), "z": z}), key


def measured(setting: Setting, number: int, seed: int) -> list[dict[str, Any]]:
    """One row per method: errors on one sample, averaged over copies; none where no fit meets the target."""
    data, key = sample(setting, number, seed)
    confidential = data["x"].to_numpy()
    rows: list[dict[str, Any]] = []
    try:
        methods = _methods(setting, data, key.integer())
    except CalibrationError:
        return rows
    for method, fitted in methods.items():
        # Where hardly a record keeps a weight, draws are nearly the prior's and copies leave the numbers.
        copies = [np.clip(copy, *_NUMBERS) for copy in fitted.predict()]
        gaps = [ecdf_distance(confidential, copy).maximum for copy in copies]
        ends = [abs(_log_q90(copy) - _log_q90(confidential)) for copy in copies]
        rows.append(
            {
                "setting": setting.label,
                "method": method,
                "sample": number,
                "ecdf_max": float(np.mean(gaps)),
                "log_q90": float(np.mean(ends)),
                "sigma": float(np.mean([draw.parameters["sigma"] for draw in fitted.released])),
                "converged": sum(draw.converged for draw in fitted.released),
                "price": LIPSCHITZ.epsilon(fitted.outcome.pricing),
            }
        )
    return rows


def _methods(setting: Setting, data: pd.DataFrame, seed: int) -> dict[str, Fitted]:
    """One fit without weights and one with; draws, and the numbers of independent predictions, are shared."""

    def fitted(**settings: Any) -> Fitted:
        return Synthesizer("x ~ z", copies=COPIES, seed=seed, **settings).fit(data)._need()

    with silence_advice():
        # Copies are there to average over, not to be released together: each has the setting's target.
        target = COPIES * setting.epsilon
        plain, done = (
            fitted(standard=Unweighted()),
            fitted(standard=setting.standard, epsilon=target, debias=True),
        )
    return {
        UNWEIGHTED: plain,
        PLAIN: done.variant(debias=False),
        CORRECTED: done,
        SMOOTH: done.variant(sampling="stratified"),
        SMOOTH_UNWEIGHTED: plain.variant(sampling="stratified"),
    }


def _log_q90(values: Array) -> float:
    return float(np.log(np.quantile(values, 0.9)))


def table(rows: pd.DataFrame) -> Iterator[str]:
    """Means over samples and how they compare with Unweighted's on the same samples, ± a standard error.

    Last, how many draws of how many were corrected.
    """
    for label, here in rows.groupby("setting", sort=False):
        count, spent = here["sample"].nunique(), here[here["method"] == UNWEIGHTED]["price"].mean()
        yield f"\n{label}, {count} samples met the target, {COPIES} copies; Unweighted spends {spent:.1f}"
        heads = f"{'ECDF maximum':>18}{'ratio':>15}{'log Q90 error':>18}{'ratio':>15}{'median':>9}"
        yield f"  {'':24}{heads}{'median σ':>10}"
        best = here[here["method"] == UNWEIGHTED]
        for method in METHODS:
            mine = here[here["method"] == method]
            cells = ""
            for column in ("ecdf_max", "log_q90"):
                values, base = (part[column].to_numpy(dtype=np.float64) for part in (mine, best))
                ratio = values.mean() / base.mean()
                cells += f"{_told(values, values.mean(), 4):>18}"
                cells += f"{_told((values - ratio * base) / base.mean(), ratio, 2):>15}"
            tried = f" ({int(mine['converged'].sum())}/{COPIES * len(mine)})" if "corrected" in method else ""
            cells += f"{mine['log_q90'].median():>9.4f}{mine['sigma'].median():>10.3f}"
            yield f"  {method:24}{cells}{tried}"


def _told(values: Array, mean: float, digits: int) -> str:
    """A figure with the standard error of the mean of these values."""
    error = float(values.std(ddof=1) / np.sqrt(len(values)))
    return f"{mean:.{digits}f} ± {error:.{digits}f}"


def picture(rows: pd.DataFrame, path: Path) -> None:
    """The ECDF maximum by setting and method, a dot the mean and a line two standard errors to each side."""
    from matplotlib.figure import Figure

    settings = list(dict.fromkeys(rows["setting"]))
    figure = Figure(figsize=(8.5, 0.9 + 0.62 * len(settings)), layout="constrained")
    axes = figure.subplots()
    for place, (method, colour) in enumerate(_COLOURS.items()):
        mine = rows[rows["method"] == method].groupby("setting", sort=False)["ecdf_max"]
        heights = np.arange(len(settings)) + 0.15 * (place - 1.5)
        means, errors = mine.mean().reindex(settings), mine.sem().reindex(settings)
        axes.errorbar(
            means, heights, xerr=2 * errors, fmt="o", markersize=4.5, color=colour, label=method, linewidth=1
        )
    axes.set_yticks(range(len(settings)), settings)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xticks([0.01, 0.02, 0.05, 0.1, 0.2], ["0.01", "0.02", "0.05", "0.1", "0.2"])
    axes.minorticks_off()
    axes.grid(axis="x", linewidth=0.4)
    axes.set_xlabel("largest difference of the empirical distribution functions")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def main() -> None:
    """Measure, print, and save the rows."""
    parser = argparse.ArgumentParser(prog="python -m hedgerow_studies.bias", description=__doc__)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the settings, from 0")
    parser.add_argument("--jobs", type=jobs_of)
    parser.add_argument("--out", type=Path, help="a file for the rows, as JSON")
    parser.add_argument("--picture", type=Path, help="a file for the picture")
    parser.add_argument("--rows", type=Path, nargs="*", help="files of --out: tell and draw these instead")
    given = parser.parse_args()
    if given.rows:
        saved: list[dict[str, Any]] = [row for path in given.rows for row in json.loads(path.read_text())]
        order = [setting.label for setting in SETTINGS]
        saved.sort(key=lambda row: order.index(row["setting"]))
        told = pd.DataFrame(saved)
        sys.stdout.write("\n".join(table(told)) + "\n")
        if given.picture is not None:
            picture(told, given.picture)
        return
    chosen = [SETTINGS[k] for k in given.only] if given.only else list(SETTINGS)
    found: list[dict[str, Any]] = []
    for setting in chosen:
        tasks = [(setting, number, given.seed) for number in range(given.samples)]
        rows = [row for some in each(tasks, measured, jobs=processors(given.jobs)) for row in some]
        found += sorted(rows, key=lambda row: (row["sample"], METHODS.index(row["method"])))
        sys.stdout.write("\n".join(table(pd.DataFrame(found[-len(rows) :]))) + "\n")
        sys.stdout.flush()
        if given.out is not None:
            given.out.write_text(json.dumps(found, indent=1) + "\n")
    if given.picture is not None:
        picture(pd.DataFrame(found), given.picture)


if __name__ == "__main__":
    main()
