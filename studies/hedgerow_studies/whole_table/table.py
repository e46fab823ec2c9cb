"""The figures of all copies: measured into docs/studies/whole_table/rows.jsonl, and printed as Markdown."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from hedgerow_studies.whole_table.data import decode, encode, load
from hedgerow_studies.whole_table.measures import measure

ROWS = Path("docs/studies/whole_table/rows.jsonl")
KEPT = ("CART", "Unweighted", "ADP", "Strict")  # their copies have the real public columns
ORDER = ("the table, resampled", "CART", "bins alone", "Unweighted", "ADP", "Strict", "AIM", "MST")
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
    yield (
        "the table, resampled-none-1",
        table.sample(len(table), replace=True, random_state=1, ignore_index=True),
    )
    yield "bins alone-none-1", decode(encode(table), seed=1)
    for file in sorted((out / "copies").glob("*.csv")):
        yield file.stem, pd.read_csv(file)
    for file in sorted((out / "binned").glob("*.csv")):
        yield file.stem, decode(pd.read_csv(file), seed=int(file.stem[-1]))


def write_table(rows: pd.DataFrame) -> Iterator[str]:
    """Means over the copies of a method at an ε."""
    yield f"| method | ε | copies | {' | '.join(FIGURES.values())} |"
    yield "| --- " * (len(FIGURES) + 3) + "|"
    for method in ORDER:
        for epsilon, part in rows[rows["method"] == method].groupby(rows["epsilon"].astype(str)):
            digits = {"pmse": ".1f", "pmse_pairs": ".1f"}
            cells = [f"{part[name].mean():{digits.get(name, '.3f')}}" for name in FIGURES]
            target = "" if epsilon == "none" else str(epsilon)
            yield f"| {method} | {target} | {len(part)} | {' | '.join(cells)} |"


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
    print("\n".join(write_table(pd.DataFrame(rows))))  # noqa: T201


if __name__ == "__main__":
    main()
