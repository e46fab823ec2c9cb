"""From a Parquet file to a release folder: read, fit, calibrate, certify, write copies, record the spend."""

import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import hedgerow as hr
from bench.measure import measure
from bench.result import Options, Result

DRAWS = 1000
COPIES = 3
# The target per copy, 5.7, lies below what the weights give unscaled, so that calibration has to search.
STANDARDS = {"ADP": hr.ADP(), "RangeTruncated": hr.RangeTruncated(hr.Radius(0.4, 1.8))}


def prepare(standard: str, records: int, draws: int) -> Callable[[], object]:
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    warnings.simplefilter("ignore", hr.HedgerowWarning)
    for rows in (500, records):
        hr.datasets.lognormal(rows, seed=1).to_parquet(folder / f"{rows}.parquet", index=False)

    def release(rows: int) -> object:
        plan = hr.Plan(
            formula="x ~ z",
            epsilon=5.7 * COPIES,
            copies=COPIES,
            draws=draws,
            standard=STANDARDS[standard],
            data=folder / f"{rows}.parquet",
            ledger=folder / "ledger.sqlite",
        )
        made = hr.make_release(plan, folder / "release")
        shutil.rmtree(made.folder)
        return made.certificate

    release(500)  # loads and compiles what a first release needs
    return lambda: release(records)


def _one(standard: str, records: int, draws: int) -> Result:
    print(f"  release {standard}, {records:,} records", file=sys.stderr, flush=True)
    return Result(f"release {standard}, {COPIES} copies", records, draws, work=float(records), unit="records",
                  **measure(prepare, standard, records, draws, runs=3, limit=30.0))  # fmt: skip


def run(options: Options) -> list[Result]:
    draws = 200 if options.quick else DRAWS
    sizes = [20_000] if options.quick else [1_000_000] + [10_000_000] * options.large
    return [_one(standard, records, draws) for standard in STANDARDS for records in sizes]
