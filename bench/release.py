"""From a Parquet file to a verified release: read, fit, calibrate, certify, write copies, record the spend.

Beside each case stands what Arrow alone takes to read the file and write as many copies of it, so that the
ratio says how much a release adds to that. `errors to expect` is what `hedgerow cost` answers beforehand.
"""

import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

import hedgerow as hr
from bench.measure import measure
from bench.result import Options, Result
from hedgerow.advice.elicit import expected_errors

DRAWS = 1000
COPIES = 3
PREDICTORS = {"ADP": 1, "RangeTruncated": 1, "Strict": 10}
SMALL = 500


def _table(standard: str, records: int) -> pd.DataFrame:
    if standard != "Strict":
        return hr.datasets.lognormal(records, seed=1)
    random = np.random.default_rng(1)
    table = {f"z{place}": random.normal(size=records) for place in range(PREDICTORS[standard])}
    line = sum(0.02 * place * column for place, column in enumerate(table.values()))
    return pd.DataFrame(table | {"x": np.exp(5 + line + 0.7 * random.normal(size=records))})


def _settings(standard: str) -> dict[str, Any]:
    if standard == "Strict":
        line = " + ".join(f"z{place}" for place in range(PREDICTORS[standard]))
        return {"formula": f"x ~ {line}", "standard": hr.Strict(limits=(1, 1e6)), "epsilon": 1.0}
    # The target per copy, 5.7, lies below what the weights give unscaled, so that calibration has to search.
    chosen = hr.ADP() if standard == "ADP" else hr.RangeTruncated(hr.Radius(0.4, 1.8))
    return {"formula": "x ~ z", "standard": chosen, "epsilon": 5.7 * COPIES}


def _folder(standard: str, records: int) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="hedgerow-bench-"))
    for rows in (SMALL, records):
        _table(standard, rows).to_parquet(folder / f"{rows}.parquet", index=False)
    return folder


def prepare(standard: str, records: int, draws: int) -> Callable[[], object]:
    folder = _folder(standard, records)
    warnings.simplefilter("ignore", hr.HedgerowWarning)

    def release(rows: int) -> object:
        plan = hr.Plan(
            **_settings(standard),
            copies=COPIES,
            draws=draws,
            data=folder / f"{rows}.parquet",
            ledger=folder / "ledger.sqlite",
        )
        made = hr.make_release(plan, folder / "release")
        verified = hr.verify_release(made.folder)
        shutil.rmtree(made.folder)
        return verified

    release(SMALL)  # loads and compiles what a first release needs
    return lambda: release(records)


def prepare_plain(standard: str, records: int) -> Callable[[], object]:
    folder = _folder(standard, records)

    def copy() -> None:
        table = pq.read_table(folder / f"{records}.parquet")
        for number in range(COPIES):
            pq.write_table(table, folder / f"copy-{number}.parquet")

    return copy


def prepare_expected(records: int) -> Callable[[], object]:
    table, asked = _table("Strict", records).drop(columns="x"), _settings("Strict")
    synth = hr.Synthesizer(asked["formula"], standard=asked["standard"], epsilon=asked["epsilon"])
    return lambda: expected_errors(synth.settings, table)


def _one(case: str, records: int, draws: int, prepared: Callable[..., Any], *arguments: Any) -> Result:
    print(f"  {case}, {records:,} records", file=sys.stderr, flush=True)
    return Result(case, records, draws, work=float(records), unit="records",
                  **measure(prepared, *arguments, runs=3, limit=30.0))  # fmt: skip


def run(options: Options) -> list[Result]:
    draws = 200 if options.quick else DRAWS
    results = []
    for records in [20_000] if options.quick else [1_000_000] + [10_000_000] * options.large:
        for standard, predictors in PREDICTORS.items():
            plain = _one(f"Arrow, {predictors + 1} columns", records, 0, prepare_plain, standard, records)
            case = f"release {standard}, {COPIES} copies"
            result = _one(case, records, draws, prepare, standard, records, draws)
            results += [plain, replace(result, ratio=plain.seconds / result.seconds)]
        results.append(_one("errors to expect", records, 0, prepare_expected, records))
    return results
