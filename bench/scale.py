"""From 10³ to 10⁸ records: every standard, every bound and strict, in memory and from file to file.

In memory: from a dataframe to the price and one synthetic copy. Streamed: from a Parquet file to a release
folder with one copy, leaf by leaf. Every measurement has a process of its own, so that its peak of memory is
its own. Weights are not calibrated, so that each case makes its two fits and no more.
"""

import inspect
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import hedgerow as hr
from bench.machine import describe
from bench.measure import measure
from bench.result import Options, Result

DRAWS = 1000
SIZES = (1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
STREAMED_FROM = 1_000_000  # smaller files say nothing about streaming
BYTES = 600  # of memory per record that a fit in memory may take; more records than fit are streamed alone
BLOCK = 1_000_000
_RADIUS = hr.Radius(0.4, 1.8)
_STANDARDS = {
    "Unweighted": hr.Unweighted(),
    "ADP": hr.ADP(),
    "RangeAveraged": hr.RangeAveraged(_RADIUS),
    "RangeTruncated": hr.RangeTruncated(_RADIUS),
}
CASES: dict[str, dict[str, Any]] = (
    {name: {"standard": standard} for name, standard in _STANDARDS.items()}
    | {f"ADP, {bound}": {"standard": hr.ADP(), "bound": bound} for bound in ("oscillation", "exact", "renyi")}
    | {"Strict": {"standard": hr.Strict(limits=(0.01, 1e5)), "epsilon": 1.0}}
)
CAN_STREAM = "stream" in inspect.signature(hr.make_release).parameters
STREAMED = ", streamed"  # ends the name of a case from file to file


def prepare_held(case: str, records: int, draws: int) -> Callable[[], object]:
    warnings.simplefilter("ignore", hr.HedgerowWarning)
    data = hr.datasets.lognormal(records, seed=1)

    def make(rows: int) -> object:
        synth = hr.Synthesizer("x ~ z", draws=draws, seed=1, **CASES[case]).fit(data.iloc[:rows])
        return synth.epsilon_, synth.sample()

    make(1000)  # loads and compiles
    return lambda: make(records)


def write_file(path: Path, records: int) -> None:
    """The same simulation as `datasets.lognormal`, a block at a time."""
    random = np.random.default_rng(1)
    with pq.ParquetWriter(path, pa.schema({"x": pa.float64(), "z": pa.float64()})) as writer:
        for first in range(0, records, BLOCK):
            z = random.normal(2.0, 1.0, min(BLOCK, records - first))
            x = np.exp(1.0 + z + random.normal(size=z.size))
            writer.write_table(pa.table({"x": x, "z": z}))


def prepare_streamed(case: str, records: int, draws: int, folder: Path) -> Callable[[], object]:
    warnings.simplefilter("ignore", hr.HedgerowWarning)
    for rows in (1000, records):
        write_file(folder / f"{rows}.parquet", rows)

    def make(rows: int) -> None:
        data, ledger = folder / f"{rows}.parquet", folder / "ledger.sqlite"
        plan = hr.Plan(formula="x ~ z", draws=draws, data=data, ledger=ledger, **CASES[case])
        made = hr.make_release(plan, folder / "release", stream=True)
        shutil.rmtree(made.folder)

    make(1000)
    return lambda: make(records)


def _measure(name: str, records: int, draws: int) -> dict[str, float]:
    if not name.endswith(STREAMED):
        return measure(prepare_held, name, records, draws, runs=5, limit=4.0)
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        case = name.removesuffix(STREAMED)
        return measure(prepare_streamed, case, records, draws, Path(folder), runs=3, limit=4.0)


def run(options: Options) -> Iterator[Result]:
    draws = 200 if options.quick else DRAWS
    memory = (describe()["memory_gb"] or 8.0) * 2**30
    for records in (size for size in SIZES if size <= options.most):
        held = CASES if records * BYTES <= memory else {}
        streamed = CASES if CAN_STREAM and records >= min(STREAMED_FROM, options.most) else {}
        for name in [*held, *(case + STREAMED for case in streamed)]:
            if (name, records) in options.done:
                continue
            print(f"  {name}, {records:,} records", file=sys.stderr, flush=True)
            try:
                found = _measure(name, records, draws)
            except hr.HedgerowError as error:
                print(f"  left out: {error}", file=sys.stderr, flush=True)
                continue
            yield Result(name, records, draws, work=float(records) * draws, unit="record-draws", **found)
