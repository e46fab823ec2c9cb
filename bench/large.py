"""From a Parquet file larger than memory to a release folder: time, time per record and peak of memory.

    python -m bench.large 1e6 1e7 1e8               # x ~ z, range-truncated and strict, one copy
    python -m bench.large 1e6 --cases calibrated    # range-truncated with a target to search for
    python -m bench.large 5e7 --cases table         # 20 columns, of which 12 are protected
    python -m bench.large 1e6 --cases "strict table"    # 12 columns, 4 of them protected, strict

The file is made block by block, each release in a process of its own. `time.process_time` counts what cores
worked, the clock what an owner waits; the peak is that of the process (VmHWM). Results are printed as a
table and, with --json FILE, saved.
"""

import argparse
import json
import multiprocessing
import shutil
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hedgerow as hr
from bench.machine import describe
from bench.measure import peak_mb

BLOCK = 1_000_000
WARM = 1000  # records of the release that loads and compiles
PROTECTED, PUBLIC = {"table": 12, "strict table": 4}, 8


def write_file(path: Path, records: int, case: str) -> None:
    """A table of one of the cases, a block at a time."""
    writer = None
    for block, first in enumerate(range(0, records, BLOCK)):
        random = np.random.default_rng([1, block])
        part = pa.table(_columns(case, min(BLOCK, records - first), random))
        writer = writer or pq.ParquetWriter(path, part.schema)
        writer.write_table(part)
    if writer is not None:
        writer.close()


def _columns(case: str, rows: int, random: np.random.Generator) -> dict[str, Any]:
    if case not in PROTECTED:
        z = random.normal(size=rows)
        return {"x": np.exp(1 + 0.5 * z + random.normal(size=rows)), "z": z}
    columns: dict[str, Any] = {f"z{place}": random.normal(size=rows) for place in range(PUBLIC - 1)}
    columns["region"] = pa.array(random.integers(0, 8, rows).astype("int8"))
    line = 0.3 * columns["z0"]
    for place in range(PROTECTED[case]):
        line = 0.5 * line + 0.2 * columns[f"z{place % (PUBLIC - 1)}"] + 0.5 * random.normal(size=rows)
        columns[f"x{place}"] = np.exp(line)
    return columns


def settings(case: str) -> dict[str, Any]:
    """What is asked for; targets that are met with weights of about a half, so that calibration searches."""
    if case == "strict":
        return {"formula": "x ~ z", "standard": hr.Strict(limits=(0.01, 1e4)), "epsilon": 1.0}
    if case in ("range", "calibrated"):
        target = 3.0 if case == "calibrated" else None
        return {"formula": "x ~ z", "standard": hr.RangeTruncated(hr.Radius(0.4, 1.8)), "epsilon": target}
    protected = range(PROTECTED[case])
    formulas = {f"x{place}": f"x{place} ~ z{place % (PUBLIC - 1)} + z0" for place in protected}
    for place in protected[1:]:
        formulas[f"x{place}"] += f" + log(x{place - 1})"
    columns = {name: hr.Column(formula) for name, formula in formulas.items()}
    if case == "strict table":
        strict = hr.Strict(limits=dict.fromkeys(columns, (1e-4, 1e4)))
        return {"formula": columns, "standard": strict, "epsilon": 4.0}
    return {"formula": columns, "weights": hr.ScalarWeights(0.5), "epsilon": None}


def release(case: str, folder: Path, records: int, draws: int) -> dict[str, float]:
    """One release in this process, after a small one that loads what it needs."""
    warnings.simplefilter("ignore", hr.HedgerowWarning)
    figures: dict[str, float] = {}
    for rows in (WARM, records):
        plan = hr.Plan(
            **settings(case), draws=draws, data=folder / f"{rows}.parquet", dataset=f"{case} {rows}",
            ledger=folder / "ledger.sqlite",
        )  # fmt: skip
        clock, cores = time.perf_counter(), time.process_time()
        made = hr.make_release(plan, folder / f"release-{rows}", stream=True, anyway=True, new_dataset=True)
        figures = {"seconds": time.perf_counter() - clock, "core_seconds": time.process_time() - cores}
    before, clock = peak_mb(), time.perf_counter()
    assert hr.verify_release(made.folder).problems == ()
    return figures | {
        "peak_mb": before,
        "verify_seconds": time.perf_counter() - clock,
        "verified_mb": peak_mb(),
    }


def run(sizes: list[int], cases: list[str], draws: int, place: Path | None) -> Iterator[dict[str, Any]]:
    """One row for each case and size."""
    for case in cases:
        for records in sizes:
            folder = Path(tempfile.mkdtemp(prefix="hedgerow-large-", dir=place))
            try:
                for rows in (WARM, records):
                    write_file(folder / f"{rows}.parquet", rows, case)
                context = multiprocessing.get_context("spawn")
                with ProcessPoolExecutor(1, mp_context=context) as pool:
                    figures = pool.submit(release, case, folder, records, draws).result()
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            yield {"case": case, "records": records, "draws": draws} | figures


def main() -> None:
    parser = argparse.ArgumentParser(description="Releases of large files.")
    parser.add_argument("sizes", nargs="+", type=lambda text: int(float(text)), metavar="RECORDS")
    cases = ("range", "calibrated", "strict", *PROTECTED)
    parser.add_argument("--cases", nargs="+", choices=cases, default=["range", "strict"])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--place", type=Path, help="where files go meanwhile (TMPDIR)")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    rows, smallest = [], dict[str, float]()
    print("| case | records | seconds | core seconds | µs a record | of the smallest | peak MB | verify s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for row in run(asked.sizes, asked.cases, asked.draws, asked.place):
        each = row["core_seconds"] / row["records"]
        ratio = each / smallest.setdefault(row["case"], each)
        print(
            f"| {row['case']} | {row['records']:,} | {row['seconds']:.1f} | {row['core_seconds']:.1f} | "
            f"{1e6 * each:.3g} | {ratio:.2f} | {row['peak_mb']:.0f} | {row['verify_seconds']:.1f} |",
            flush=True,
        )
        rows.append(row | {"ratio": ratio})
        if asked.json:
            asked.json.write_text(json.dumps({"machine": describe(), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
