"""What a process takes before its first result: help pages, an import, a first fit with kernels compiled."""

import os
import statistics
import subprocess
import sys
import time

from bench.result import Options, Result

RECORDS, DRAWS = 5000, 1000
FIRST_FIT = f"""
import hedgerow as hr
hr.Synthesizer("x ~ z", epsilon=5.7, draws={DRAWS}).fit(hr.datasets.lognormal({RECORDS}, seed=1))
"""
CASES = {
    "hedgerow --help": ("-m", "hedgerow", "--help"),
    "hedgerow synthesize --help": ("-m", "hedgerow", "synthesize", "--help"),
    "import hedgerow": ("-c", "import hedgerow"),
    "process of a first fit": ("-c", FIRST_FIT),
}


def run(options: Options) -> list[Result]:
    results = []
    for case, arguments in CASES.items():
        print(f"  {case}", file=sys.stderr, flush=True)
        seconds, core_seconds = [], []
        for _ in range(3 if options.quick else 10):
            begun, before = time.perf_counter(), os.times()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            after = os.times()
            seconds.append(time.perf_counter() - begun)
            used = after.children_user - before.children_user
            core_seconds.append(used + after.children_system - before.children_system)
        fits = case.endswith("fit")
        size = {"records": RECORDS if fits else 0, "draws": DRAWS if fits else 0}
        found = {
            "seconds": min(seconds),
            "median": statistics.median(seconds),
            "core_seconds": min(core_seconds),
        }
        results.append(
            Result(
                case, **size, **found, runs=len(seconds), work=1.0, unit="starts", peak_mb=0.0, added_mb=0.0
            )
        )
    return results
