"""Run the benchmarks, print a table, save the numbers with a description of the machine.

Without a subject: limits, scale and peers, which `python -m bench.show` makes the table and the picture of.
"""

import argparse
import importlib
import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bench.machine import describe
from bench.result import Options, table

USUAL = ("limits", "scale", "peers")
SUBJECTS = (
    *USUAL,
    "start",
    "kernels",
    "procedure",
    "debias",
    "sampling",
    "release",
    "tables",
    "paper",
)  # modules of this package
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "subjects", nargs="*", default=USUAL, metavar="subject", help=f"of {', '.join(SUBJECTS)}"
    )
    parser.add_argument("--quick", action="store_true", help="small tables, for a look at whether all runs")
    parser.add_argument("--most", type=float, help="records of the largest table, 1e6 unless told")
    parser.add_argument("--resume", type=Path, help="a saved run of scale to go on with, in its file")
    arguments = parser.parse_args()
    now = datetime.now(UTC)
    RESULTS.mkdir(exist_ok=True)
    path = arguments.resume or RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    saved = {"when": now.isoformat(timespec="seconds"), "machine": describe(), "results": []}
    if arguments.resume:
        saved = json.loads(path.read_text())
        again = set(arguments.subjects) - {"scale"}
        saved["results"] = [row for row in saved["results"] if row["subject"] not in again]
    options = Options(
        quick=arguments.quick,
        most=int(arguments.most or (10_000 if arguments.quick else 1_000_000)),
        done=frozenset(
            (row["case"], row["records"]) for row in saved["results"] if row["subject"] == "scale"
        ),
    )
    print("  ".join(f"{name}: {value}" for name, value in saved["machine"].items() if name != "versions"))
    for subject in arguments.subjects:
        results = []
        for result in importlib.import_module(f"bench.{subject}").run(options):
            results.append(result)
            saved["results"].append({"subject": subject, **asdict(result)})
            path.write_text(json.dumps(saved, indent=1) + "\n")  # after each, as large ones take an hour
        print(f"\n{subject}\n{table(results)}", flush=True)
    if set(USUAL) & set(arguments.subjects):
        from bench.show import draw, write_table

        picture = path.with_suffix(".svg")
        draw(saved, picture)
        print(f"\n{write_table(saved)}\nsaved as bench/results/{picture.name}")
    print(f"\nsaved as bench/results/{path.name}")


if __name__ == "__main__":
    main()
