"""Run the benchmarks, print a table, save the numbers with a description of the machine."""

import argparse
import importlib
import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from bench.machine import describe
from bench.result import Options, table

SUBJECTS = (
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
        "subjects", nargs="*", default=SUBJECTS, metavar="subject", help=f"of {', '.join(SUBJECTS)}"
    )
    parser.add_argument("--quick", action="store_true", help="small tables, for a look at whether all runs")
    parser.add_argument("--large", action="store_true", help="add tables of 10 million records")
    arguments = parser.parse_args()
    options = Options(quick=arguments.quick, large=arguments.large)
    machine = describe()
    print("  ".join(f"{name}: {value}" for name, value in machine.items() if name != "versions"))
    saved = []
    for subject in arguments.subjects:
        results = importlib.import_module(f"bench.{subject}").run(options)
        print(f"\n{subject}\n{table(results)}", flush=True)
        saved += [asdict(result) for result in results]
    now = datetime.now(UTC)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{now:%Y%m%dT%H%M%SZ}.json"
    content = {"when": now.isoformat(timespec="seconds"), "machine": machine, "results": saved}
    path.write_text(json.dumps(content, indent=1) + "\n")
    print(f"\nsaved as bench/results/{path.name}")


if __name__ == "__main__":
    main()
