"""Every sampled family from CSV to release by the command line, with default settings, seed after seed.

    python bench/families.py --out families.jsonl [--seeds 20] [--target] [gamma poisson ...]
    python bench/families.py --ends

Each run writes simulated data of the family's own kind, n = 5,000, and calls `hedgerow synthesize` on it in
this process; whether the release was made, or which checks of the sampler failed, goes to a line of the file
given, together with the seconds. Runs that have a line are skipped, so that a stopped run goes on where it
was. Every family has a process of its own, so that compiled code is used again and none is left over. With
--target the weights are calibrated to ε = 2 under the oscillation bound. The data are simulated, so that the
sampler's figures may be shown. --ends times what declared ends cost: one log density and its gradient.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RECORDS = 5000
TARGET = ("--epsilon", "2", "--bound", "oscillation", "--weights", "{kind: cap, cap: 1, risk: oscillation}")
SETTINGS = (
    {"ordinal": "{kind: ordinal, levels: [1, 2, 3, 4]}"}
    | {"categorical": "{kind: categorical, levels: [1, 2, 3]}"}
    | {  # classes and scales must be declared
        name: f"{{kind: {name}, scale: 1}}" for name in ("student", "zero_student", "zero_asinh")
    }
)


def names() -> tuple[str, ...]:
    """The families that are sampled by NUTS."""
    from hedgerow.models.families import FAMILIES

    return tuple(name for name in FAMILIES if name not in ("normal", "lognormal", "asinh", "dirichlet"))


def once(name: str, seed: int, *, target: bool, records: int = RECORDS) -> dict[str, Any]:
    """One run: from a CSV file to a release, or what the sampler's checks said."""
    import hedgerow as hr
    from hedgerow.cli import app

    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        home = Path(folder)
        hr.datasets.family(name, n=records, seed=seed).to_csv(home / "data.csv", index=False)
        os.environ["HEDGEROW_LEDGER"] = str(home / "ledger.sqlite")
        arguments = ["synthesize", str(home / "data.csv"), "--formula", "x ~ z", "--quiet",
                     "--family", SETTINGS.get(name, name), "--out", str(home / "release"),
                     *(TARGET if target else ("--no-target",))]  # fmt: skip
        said, began = "", time.perf_counter()
        try:
            app(arguments, prog_name="hedgerow", standalone_mode=False)
        except hr.HedgerowError as error:
            said = f"{type(error).__name__}: {error}"
        seconds = time.perf_counter() - began
        made = (home / "release" / "public" / "certificate.json").exists()
    return {"family": name, "seed": seed, "target": target, "records": records, "passed": made,
            "seconds": round(seconds, 2), "said": said}  # fmt: skip


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run_family(name: str, seeds: Sequence[int], path: Path, *, target: bool) -> None:
    """The runs of one family that have no line yet."""
    warnings.simplefilter("ignore")
    done = {(row["family"], row["seed"], row["target"]) for row in _read(path)}
    for seed in seeds:
        if (name, seed, target) in done:
            continue
        row = once(name, seed, target=target)
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Markdown: passed of how many, and the median of the seconds, by family and route."""
    lines = ["| family | target | passed | seconds a run |", "| --- | --- | --- | --- |"]
    for target in (False, True):
        for name in dict.fromkeys(row["family"] for row in rows):
            here = [row for row in rows if row["family"] == name and row["target"] == target]
            if here:
                passed, seconds = sum(row["passed"] for row in here), [row["seconds"] for row in here]
                lines.append(
                    f"| {name} | {'ε = 2' if target else 'none'} | {passed} of {len(here)} | "
                    f"{statistics.median(seconds):.0f} |"
                )
    return "\n".join(lines)


# Where ends restrict a distribution; spiked ones stand for normal and lognormal, which are exact without.
ENDED = ("zero_normal", "zero_lognormal", "gamma", "weibull", "log_student", "lognormal_mixture", "poisson",
         "negative_binomial")  # fmt: skip


def density_seconds(model: Any, data: Any) -> float:
    """Processor seconds of one log density with its gradient, the least of several."""
    import numpy as np

    from hedgerow.models.programs.potential import Potential
    from hedgerow.tables import design as designs
    from hedgerow.tables.table import Table

    design = designs.build("x ~ z", Table.of(data), model.columns, model.domain.classes)
    traced, power = model._traced(design), np.ones(design.records)
    potential = Potential.of(traced, model._arrays(design), model._values(design), power)
    position = np.full(potential.dimensions, 0.1)
    potential.value_and_grad(position)
    seconds = []
    for _ in range(10):
        began = time.process_time()
        for _ in range(50):
            potential.value_and_grad(position)
        seconds.append((time.process_time() - began) / 50)
    return min(seconds)


def ends(records: int = 1000) -> str:
    """Markdown: the cost of an upper end of 100, relative to the family without ends."""
    import hedgerow as hr

    lines = ["| family | plain, ms | upper=100, ms | ratio |", "| --- | --- | --- | --- |"]
    for name in ENDED:
        data = hr.datasets.family(name, n=2 * records, seed=1)
        data = data[data["x"] < 100][:records].reset_index(drop=True)
        plain, ended = hr.Family(name), hr.Family(name, upper=100)
        before, after = (1000 * density_seconds(model, data) for model in (plain, ended))
        lines.append(f"| {name} | {before:.2f} | {after:.2f} | {after / before:.1f} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", nargs="*", help="all that are sampled, unless named")
    parser.add_argument("--out", type=Path, help="a JSON line per run; read again to go on")
    parser.add_argument("--ends", action="store_true", help="time what declared ends cost, and stop")
    parser.add_argument("--seeds", type=int, default=20, help="seeds 1 up to this one")
    parser.add_argument("--target", action="store_true", help="calibrate to ε = 2 instead of claiming none")
    parser.add_argument("--here", action="store_true", help="in this process: used for the runs themselves")
    given = parser.parse_args()
    if given.ends:
        print(ends())
        return
    if given.out is None:
        parser.error("--out is missing")
    chosen = given.families or names()
    if given.here:
        for name in chosen:
            run_family(name, range(1, given.seeds + 1), given.out, target=given.target)
        return
    for name in chosen:
        route = ["--target"] if given.target else []
        again = ("--here", "--out", given.out, "--seeds", str(given.seeds), *route)
        subprocess.run([sys.executable, __file__, name, *again], check=True)
    print(table([row for row in _read(given.out) if row["family"] in chosen]))


if __name__ == "__main__":
    main()
