"""From 10³ to 10⁸ records: every standard, every bound and strict, in memory and from file to file.

In memory: from a dataframe to the price and one synthetic copy. Streamed: from a Parquet file to a release
folder with one copy, leaf by leaf. Every measurement has a process of its own, so that its peak of memory is
its own. Weights are not calibrated, so that each case makes its two fits and no more.
"""

import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hedgerow as hr
from bench.large import write_file
from bench.machine import describe
from bench.measure import measure
from bench.result import Options, Result

DRAWS = 1000
SIZES = (1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)
STREAMED_FROM = 1_000_000  # smaller files say nothing about streaming
BYTES = 600  # of memory per record that a fit in memory may take; more records than fit are streamed alone
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
STREAMED = ", streamed"  # ends the name of a case from file to file


def prepare_held(case: str, records: int, draws: int) -> Callable[[], object]:
    warnings.simplefilter("ignore", hr.HedgerowWarning)
    data = hr.datasets.lognormal(records, seed=1)

    def make(rows: int) -> object:
        synth = hr.Synthesizer("x ~ z", draws=draws, seed=1, **CASES[case]).fit(data.iloc[:rows])
        return synth.epsilon_, synth.sample()

    make(1000)  # loads and compiles
    return lambda: make(records)


def prepare_streamed(case: str, records: int, draws: int, folder: Path) -> Callable[[], object]:
    warnings.simplefilter("ignore", hr.HedgerowWarning)
    for rows in (1000, records):
        write_file(folder / f"{rows}.parquet", rows, "range")

    def make(rows: int) -> None:
        data, ledger = folder / f"{rows}.parquet", folder / "ledger.sqlite"
        plan = hr.Plan(formula="x ~ z", draws=draws, data=data, ledger=ledger, **CASES[case])
        made = hr.make_release(plan, folder / "release", stream=True, anyway=True, new_dataset=True)
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
        streamed = CASES if records >= min(STREAMED_FROM, options.most) else {}
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
