"""The figures of all copies: measured into docs/studies/whole_table/rows.jsonl, and printed as Markdown."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from hedgerow_studies.whole_table.data import decode, encode, load
from hedgerow_studies.whole_table.measures import measure

ROWS = Path("docs/studies/whole_table/rows.jsonl")
OURS = ("Unweighted", "Unweighted with product", "ADP", "ADP with product", "Strict")
KEPT = ("CART", *OURS)  # their copies have the real public columns
ORDER = ("the table, resampled", "CART", "bins alone", *OURS, "AIM", "MST")
SEEDS = range(1, 4)  # of the two that cost nothing
FIGURES = {
    "margin_mean": "columns",
    "margin_max": "worst",
    "pair_mean": "pairs",
    "pair_max": "worst pair",
    "overlap_weeks": "weeks",
    "overlap_wage": "wage",
    "overlap_hospital": "hospital",
    "effect": "effect",
    "pmse": "pMSE",
    "pmse_pairs": "pMSE, pairs",
}


def find_copies(out: Path, table: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The name of each copy, method-ε-number, and the copy. The first two cost nothing but bins or chance."""
    for seed in SEEDS:
        drawn = table.sample(len(table), replace=True, random_state=seed, ignore_index=True)
        yield f"the table, resampled-none-{seed}", drawn
        yield f"bins alone-none-{seed}", decode(encode(table), seed=seed)
    for file in sorted((out / "copies").glob("*.csv")):
        yield file.stem, pd.read_csv(file)
    for file in sorted((out / "binned").glob("*.csv")):
        yield file.stem, decode(pd.read_csv(file), seed=int(file.stem[-1]))


def write_table(rows: pd.DataFrame) -> Iterator[str]:
    """Means over the copies of a method at an ε, and their standard deviation where there are several."""
    yield f"| method | ε | copies | {' | '.join(FIGURES.values())} |"
    yield "| --- " * (len(FIGURES) + 3) + "|"
    for method in ORDER:
        for epsilon, part in rows[rows["method"] == method].groupby(rows["epsilon"].astype(str)):
            cells = [_write(part[name], 1 if name.startswith("pmse") else 3) for name in FIGURES]
            target = "" if epsilon == "none" else str(epsilon)
            yield f"| {method} | {target} | {len(part)} | {' | '.join(cells)} |"


def _write(values: pd.Series, digits: int) -> str:
    spread = f" ± {values.std():.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread}"


def main() -> None:
    """Measure the copies that are not measured yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    lines = ROWS.read_text(encoding="utf-8").splitlines() if ROWS.exists() else []
    rows = [json.loads(line) for line in lines]
    known = {(row["method"], row["epsilon"], row["copy"]) for row in rows}
    table = load()
    ROWS.parent.mkdir(parents=True, exist_ok=True)
    for name, copy in find_copies(out, table):
        method, epsilon, number = name.rsplit("-", 2)
        if (method, epsilon, number) in known:
            continue
        found = {key: round(value, 5) for key, value in measure(table, copy, kept=method in KEPT).items()}
        rows.append({"method": method, "epsilon": epsilon, "copy": number} | found)
        with ROWS.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(rows[-1]) + "\n")
    print("\n".join(write_table(pd.DataFrame(rows))))  # noqa: T201 - a table for people


if __name__ == "__main__":
    main()
