"""What ranges on two columns do for the price of a row, and what that buys (docs/tables.md).

    python -m hedgerow_studies.box

Wage and bonus of 500 simulated people, both lognormal, bonus given log(wage). For each box: the price of one
unweighted copy under two bounds with the row withheld beside it, and at one target the scale of the weights
that meets it and what copies keep.
"""

import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd

import hedgerow as hr

COLUMNS = {
    "wage": hr.Column("wage ~ age"),
    "bonus": hr.Column("bonus ~ log(wage)"),
}
CLASSES = [0, 1000, 1500, 2000, 3000, 5000, 1e6]
BOXES: dict[str, dict[str, hr.Range]] = {
    "none": {},
    "wage within a factor of 2": {"wage": hr.Radius(0.5, 2)},
    "bonus within a factor of 2": {"bonus": hr.Radius(0.5, 2)},
    "both within a factor of 2": {"wage": hr.Radius(0.5, 2), "bonus": hr.Radius(0.5, 2)},
    "wage in its class, bonus within a factor of 2": {
        "wage": hr.Brackets(CLASSES),
        "bonus": hr.Radius(0.5, 2),
    },
}
TARGET = 2.0  # of the oscillation, one copy
TOLD: dict[str, Any] = {"weights": hr.ScalarWeights(1), "draws": 300}


def people(n: int = 500, seed: int = 1) -> pd.DataFrame:
    """Wages with a few far out, and a bonus that follows them."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 66, n)
    wage = np.exp(6.7 + 0.015 * age + 0.35 * random.standard_t(6, n)).round(2)
    bonus = np.exp(-3 + 1.1 * np.log(wage) + 0.5 * random.normal(size=n)).round(2)
    return pd.DataFrame({"age": age, "wage": wage, "bonus": bonus})


def standard_of(ranges: dict[str, hr.Range]) -> hr.Standard:
    """The range-truncated standard of a box, or ADP without one."""
    return hr.RangeTruncated(hr.Box(ranges)) if ranges else hr.ADP()


def measure(ranges: dict[str, hr.Range], data: pd.DataFrame, seed: int = 2) -> dict[str, float]:
    """Prices of the plain posterior; then scale, distance of the copies and their slope at the target."""
    standard = standard_of(ranges)
    plain = hr.Synthesizer(COLUMNS, standard=standard, bound="oscillation", seed=seed, **TOLD).fit(data)
    asked = hr.Synthesizer(
        COLUMNS, standard=standard, bound="oscillation", epsilon=TARGET, seed=seed, **TOLD
    ).fit(data)
    utility = asked.utility()
    kept = utility[(utility["statistic"] == "ecdf_max") & (utility["copy"] == "pooled")]
    copy = asked.sample().tables[0]
    slopes = [np.polyfit(np.log(each["wage"]), np.log(each["bonus"]), 1)[0] for each in (data, copy)]
    return {
        "lipschitz": plain.lipschitz_epsilon_,
        "oscillation": plain.oscillation_epsilon_,
        "withheld": plain.withheld_epsilon_["oscillation"],
        "scale": asked.scale_,
        "withheld at the target": asked.withheld_epsilon_["oscillation"],
        **{f"ecdf {name}": float(kept[kept["column"] == name]["synthetic"].mean()) for name in COLUMNS},
        "slope error": float(slopes[1] - slopes[0]),
    }


def main() -> None:
    """Print one row per box."""
    warnings.simplefilter("ignore", hr.HedgerowWarning)
    data = people()
    for name, ranges in BOXES.items():
        found = measure(ranges, data)
        sys.stdout.write(f"{name}: {', '.join(f'{key} {value:.3g}' for key, value in found.items())}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
