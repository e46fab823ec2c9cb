"""Sequential trees, as synthpop's default method: column after column, each from those before. No privacy.

A tree for each protected column, fitted to the real table with at least five records in a leaf; a synthetic
value is that of a random record in the leaf to which the synthetic row falls. So every copied value is some
record's own. Runs in the environment of bench/rival/README.md, which has scikit-learn and polars.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

FITS = 3
LEAF = 5  # records at least, synthpop's minbucket


def synthesize(
    table: pl.DataFrame, public: Sequence[str], protected: Sequence[str], *, seed: int
) -> pl.DataFrame:
    """A copy whose public columns are the table's own."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    random = np.random.default_rng(seed)
    made = table.select(public)
    for name in protected:
        donors = table[name]
        real = _encode(table.select(made.columns), table)
        if _nominal(table, name):
            tree = DecisionTreeClassifier(min_samples_leaf=LEAF, random_state=seed)
            tree.fit(real, donors.cast(pl.String).to_numpy())
        else:
            tree = DecisionTreeRegressor(min_samples_leaf=LEAF, random_state=seed)
            tree.fit(real, donors.to_numpy())
        leaves, falls = tree.apply(real), tree.apply(_encode(made, table))
        order = np.argsort(leaves, kind="stable")
        first = np.searchsorted(leaves[order], falls, side="left")
        many = np.searchsorted(leaves[order], falls, side="right") - first
        drawn = order[first + random.integers(many)]
        made = made.with_columns(donors.gather(drawn).alias(name))
    return made


def _nominal(table: pl.DataFrame, name: str) -> bool:
    return table[name].dtype == pl.String or table[name].n_unique() <= 2  # 0 and 1


def _encode(rows: pl.DataFrame, table: pl.DataFrame) -> np.ndarray:
    """Numbers as they are; labels as dummies for the levels that the real table has."""
    parts = []
    for name in rows.columns:
        if not _nominal(table, name):
            parts.append(rows[name].to_numpy().astype(float))
            continue
        values = rows[name].cast(pl.String).to_numpy()
        levels = sorted(table[name].cast(pl.String).unique())
        parts += [(values == level).astype(float) for level in levels]
    return np.column_stack(parts)


def main() -> None:
    """Write copies."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fits", type=int, default=FITS)
    given = parser.parse_args()
    table = pl.read_csv(given.out / "table.csv", infer_schema_length=None)
    columns = json.loads((given.out / "columns.json").read_text())
    folder = given.out / "copies"
    folder.mkdir(exist_ok=True)
    for number in range(1, given.fits + 1):
        copy = synthesize(table, columns["public"], columns["protected"], seed=number)
        copy.write_csv(folder / f"CART-none-{number}.csv")


if __name__ == "__main__":
    main()
