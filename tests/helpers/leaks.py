"""A search for confidential figures in public text."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq


def numbers(text: str) -> set[str]:
    """Every number in a text, digests, dates and versions of software apart."""
    text = re.sub("(?s)<style>.*</style>", " ", text)  # the same for every page
    text = re.sub(r"\b[0-9a-f]{64}\b|\b[0-9a-f]{16}\b|\b\d{4}-\d{2}-\d{2}\b|\b\d+\.\d+\.\d+\b", " ", text)
    return set(re.findall(r"\d+\.?\d*(?:[eE][-+]?\d+)?", text))


def spellings(value: float, least: int = 3) -> set[str]:
    """A value as it may be printed, from few digits to all of them."""
    shown = {f"{value:.{digits}g}" for digits in range(least, 18)} | {repr(float(value))}
    shown |= {f"{value:.{places}f}" for places in range(2, 8)}
    words = {word.lstrip("-") for word in shown}
    # With fewer digits it is anybody's figure: 10 is also a count.
    return {word for word in words if len(re.sub(r"e.*|\.", "", word).lstrip("0")) >= least}


def confidential_values(release: Path, x: np.ndarray) -> dict[str, list[float]]:
    """What a release folder keeps inside, by kind; `x` is the outcome."""
    inside = release / "confidential"
    summary = json.loads((inside / "summary.json").read_text())
    found: dict[str, list[float]] = {"summary": []}

    def collect(value):
        if isinstance(value, dict):
            for inner in value.values():
                collect(inner)
        elif isinstance(value, float):
            found["summary"].append(value)

    collect({k: v for k, v in summary.items() if k not in ("health", "rows")})
    records = pq.read_table(inside / "records.parquet")
    for name in ("risk", "alpha", "power", "known", "price", "share"):
        found[name] = records[name].to_pylist()
    utility = pq.read_table(inside / "utility.parquet").to_pylist()
    found["utility"] = [row["synthetic"] for row in utility if "ecdf" in row["statistic"]]
    found["utility"] += [row["original"] for row in utility]
    if (inside / "shapes.parquet").exists():
        shapes = pq.read_table(inside / "shapes.parquet")
        found["shapes"] = shapes["lower"].to_pylist() + shapes["original"].to_pylist()
    found["report"] = report_figures(json.loads((inside / "report.json").read_text()))
    draws = pq.read_table(inside / "draws.parquet")
    found["draws"] = [value for column in draws.columns for value in column.to_pylist()]
    found["range ends"] = [float(end) for factor in (0.2, 0.4, 1.8, 2.4) for end in factor * x]
    return found


def report_figures(report: dict) -> list[float]:
    """Prices, weights, risks and correlations of an owner's report.

    Its columns hold hundreds of amounts, which meet the size of a file by chance: `shapes` stand for them.
    """
    found: list[float] = []

    def collect(value):
        if isinstance(value, dict):
            for name, inner in value.items():
                if name != "target":
                    collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)
        elif isinstance(value, float):
            found.append(value)

    collect({part: report.get(part) for part in ("price", "records", "draws", "gauge", "pairs")})
    return found
