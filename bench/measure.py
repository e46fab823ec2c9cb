"""Time and peak memory of one case, in a process of its own."""

import multiprocessing
import resource
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

# A case builds its data and returns what to time; it has to be importable, because a new process runs it.
Case = Callable[..., Callable[[], object]]


def peak_mb() -> float:
    """The highest resident memory so far. Linux's own line, as its rusage survives from before the exec."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
            2**20 if sys.platform == "darwin" else 2**10
        )
    return next(float(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**10


def _timed(
    case: Case, arguments: tuple[Any, ...], runs: int, limit: float
) -> tuple[list[float], float, float]:
    call = case(*arguments)
    before = peak_mb()
    seconds: list[float] = []
    core_seconds: list[float] = []
    while len(seconds) < runs and (not seconds or sum(seconds) < limit):
        start, core_start = time.perf_counter(), time.process_time()
        call()
        core_seconds.append(time.process_time() - core_start)
        seconds.append(time.perf_counter() - start)
    return seconds, core_seconds, peak_mb(), before


def measure(case: Case, *arguments: Any, runs: int = 7, limit: float = 10.0) -> dict[str, float]:
    """Best and median of up to `runs` runs within about `limit` seconds, at least one, and peak memory."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        seconds, core_seconds, peak, before = pool.submit(_timed, case, arguments, runs, limit).result()
    return {
        "seconds": min(seconds),
        "median": statistics.median(seconds),
        "core_seconds": min(core_seconds),
        "runs": len(seconds),
        "peak_mb": peak,
        "added_mb": peak - before,
    }
