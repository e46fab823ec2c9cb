"""Correcting one released draw: a copy's share of the time that debias=True adds."""

import sys
from collections.abc import Callable
from dataclasses import replace

import hedgerow as hr
from bench.measure import measure
from bench.result import Options, Result

DRAWS = 1000
BOX = {"Intercept": (0.0, 2.0), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}
STANDARDS = {
    "ADP": hr.ADP(),
    "RangeTruncated": hr.RangeTruncated(hr.Radius(0.4, 1.8)),
    "RangeAveraged": hr.RangeAveraged(hr.Radius(0.4, 1.8)),
    "Strict": hr.Strict(BOX, "chosen before simulating"),
}


def prepare(standard: str, records: int) -> Callable[[], object]:
    data = hr.datasets.lognormal(records, seed=1)
    synth = hr.Synthesizer(
        "x ~ z", standard=STANDARDS[standard], epsilon=5.7, draws=DRAWS, debias=True, seed=1
    )
    fitted = synth.fit(data)._need()
    return lambda: replace(fitted).released  # a new value, so that nothing is remembered


def run(options: Options) -> list[Result]:
    results = []
    for standard in STANDARDS:
        for records in [500] if options.quick else [2000, 20_000]:
            print(f"  {standard}, {records:,} records", file=sys.stderr, flush=True)
            found = measure(prepare, standard, records)
            results.append(
                Result(f"debias {standard}", records, DRAWS, work=1.0, unit="corrections", **found)
            )
    return results
