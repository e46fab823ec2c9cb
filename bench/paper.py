"""The paper's studies by one command, `--quick` and in full, on the cores there are."""

import resource
import subprocess
import sys
import tempfile
import time

from bench.result import Options, Result
from hedgerow_studies.paper import setup


def _one(case: str, samples: int, *flags: str) -> Result:
    print(f"  {case}", file=sys.stderr, flush=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        subprocess.run(
            [sys.executable, "-m", "hedgerow_studies", "--out", out, *flags],
            check=True,
            stdout=subprocess.DEVNULL,
        )
    seconds = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    peak = after.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)  # of the largest process
    return Result(
        case,
        setup.RECORDS,
        1000,
        seconds=seconds,
        median=seconds,
        core_seconds=used,
        runs=1,
        work=samples,
        unit="samples a study",
        peak_mb=peak,
        added_mb=peak,
    )


def run(options: Options) -> list[Result]:
    """Both runs from nothing; with --quick the quick one only."""
    results = [_one("reproduce --quick", setup.QUICK.samples, "--quick")]
    if not options.quick:
        results.append(_one("reproduce", setup.FULL.samples))
    return results
