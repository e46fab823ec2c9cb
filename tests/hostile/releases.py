"""Real releases to be forged: several standards, families, formats, with a target and without."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hedgerow as hr
from hedgerow.release.plan import Outputs

_RANGE = {"standard": hr.RangeTruncated(hr.Radius(0.4, 1.8)), "reasons": {"": "printed yearly"}}
_BOX = {"Intercept": (0, 20), "z": (-2, 4), "sigma": (0.4, 2.5)}
SETTINGS: dict[str, dict[str, Any]] = {
    "adp": {"copies": 2},
    "truncated": _RANGE | {"outputs": Outputs(format="parquet"), "copies": 3},
    "averaged": {"standard": hr.RangeAveraged(hr.Brackets([0, 1000, 10**9])), "outputs": Outputs("stata")},
    "strict": {"standard": hr.Strict(_BOX, "published"), "epsilon": 2.0, "copies": 2},
    "unclaimed": {"standard": hr.Unweighted(), "epsilon": None, "family": "normal"},
    "seeded": {"seed": 5, "outputs": Outputs("spss"), "weights": hr.CapWeights(20.0, risk="oscillation"),
               "bound": "oscillation"},
    "smooth": {"sampling": "stratified", "outputs": Outputs("arrow"), "family": "normal", "epsilon": 200.0},
}  # fmt: skip


@dataclass(frozen=True)
class Made:
    name: str
    folder: Path
    ledger: Path


def make_releases(folder: Path) -> list[Made]:
    """One release for each of the settings, in one ledger."""
    frame = hr.datasets.lognormal(n=120, seed=3)
    frame = frame.assign(x=(frame["x"] * 1000).round().astype("int64"), z=frame["z"].round(3))
    frame.to_csv(folder / "table.csv", index=False)
    ledger, releases = folder / "ledger.sqlite", []
    for name, settings in SETTINGS.items():
        given = {"formula": "x ~ z", "epsilon": 60.0, "draws": 200, "data": folder / "table.csv"} | settings
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hr.HedgerowWarning)
            hr.make_release(hr.Plan(**given, ledger=ledger, dataset="table"), folder / name)
        releases.append(Made(name, folder / name, ledger))
    return releases
