"""What undoing the bias is worth: `python -m hedgerow.studies.bias`. Nothing here is confidential.

The paper's simulation at several sizes and targets, and three wrong models. On every sample the same fits and
draws serve with and without correction, with independent and with stratified numbers, so that the columns are
paired. Errors are those of docs/maths.md, "Undoing the bias": the largest difference of the two empirical
distribution functions, and |log of the ratio of the 90 % quantiles|, averaged over copies and samples.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from hedgerow.axes import Array
from hedgerow.keys import Key, Stream
from hedgerow.sampling import Sampling
from hedgerow.standards import ADP, Standard, Unweighted
from hedgerow.strict import Strict
from hedgerow.studies.samples import quiet
from hedgerow.studies.work import each, processors
from hedgerow.synthesizer import Synthesizer
from hedgerow.utility import ecdf_distance

SEED = 1
COPIES = 4
UNWEIGHTED, PLAIN, CORRECTED = "Unweighted", "plain", "corrected"
SMOOTH, SMOOTH_UNWEIGHTED = "corrected, stratified", "Unweighted, stratified"
METHODS = (UNWEIGHTED, PLAIN, CORRECTED, SMOOTH, SMOOTH_UNWEIGHTED)
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
    """A row a method: errors on one sample, averaged over its copies."""
    data, key = sample(setting, number, seed)
    confidential = data["x"].to_numpy()
    rows = []
    for method in METHODS:
        weighted = method not in (UNWEIGHTED, SMOOTH_UNWEIGHTED)
        smooth: Sampling = "stratified" if "stratified" in method else "independent"
        with quiet():
            synth = Synthesizer(
                "x ~ z",
                standard=setting.standard if weighted else Unweighted(),
                # One copy's target each: copies are there to average over, not one release.
                epsilon=COPIES * setting.epsilon if weighted else None,
                copies=COPIES,
                sampling=smooth,
                debias="corrected" in method,
                seed=key.integer(),
            ).fit(data)
            began = time.process_time()
            copies = [np.asarray(copy["x"]) for copy in synth.sample().tables]
            seconds = (time.process_time() - began) / COPIES
        rows.append(
            {
                "setting": setting.label,
                "method": method,
                "sample": number,
                "ecdf_max": float(np.mean([ecdf_distance(confidential, c).maximum for c in copies])),
                "log_q90": float(np.mean([abs(_log_q90(c) - _log_q90(confidential)) for c in copies])),
                "sigma": float(np.mean([draw.parameters["sigma"] for draw in synth._need().released])),
                "converged": sum(draw.converged for draw in synth._need().released),
                "price": synth.lipschitz_epsilon_,
                "seconds": seconds,
            }
        )
    return rows


def _log_q90(values: Array) -> float:
    return float(np.log(np.quantile(values, 0.9)))


def table(rows: pd.DataFrame) -> Iterator[str]:
    """The means over samples, and how they compare with Unweighted's; ± is a standard error."""
    for label, here in rows.groupby("setting", sort=False):
        yield f"\n{label}, {here['sample'].nunique()} samples of {COPIES} copies"
        yield f"  {'':24}{'ECDF maximum':>20}{'ratio':>7}{'log Q90 error':>20}{'ratio':>7}{'σ':>8}{'s':>7}"
        best = here[here["method"] == UNWEIGHTED]
        for method in METHODS:
            mine = here[here["method"] == method]
            cells = ""
            for column in ("ecdf_max", "log_q90"):
                values = mine[column].to_numpy(dtype=np.float64)
                mean, error = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
                ratio = mean / best[column].to_numpy(dtype=np.float64).mean()
                cells += f"{f'{mean:.4f} ± {error:.4f}':>20}{ratio:>7.2f}"
            tried = f" ({int(mine['converged'].sum())}/{COPIES * len(mine)})" if "corrected" in method else ""
            cells += f"{mine['sigma'].mean():>8.3f}{mine['seconds'].mean():>7.2f}"
            yield f"  {method:24}{cells}{tried}"


def main() -> None:
    """Measure, print, and save the rows."""
    parser = argparse.ArgumentParser(prog="python -m hedgerow.studies.bias", description=__doc__)
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of the settings, from 0")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--out", type=Path, help="a file for the rows, as JSON")
    given = parser.parse_args()
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


if __name__ == "__main__":
    main()
