"""Several protected columns: from a dataframe to three copies, calibrated, normal and lognormal in turn.

Each column reads a number, five categories and the column before it. Work is counted in cells, so that equal
rates mean a cost that is linear in records and in columns.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import hedgerow as hr
from bench.measure import measure
from bench.result import Options, Result

COPIES = 3
DRAWS = 1000
# Below what weights of one cost unscaled, so that calibration has to search; by bound, for ten columns.
EPSILON = {"renyi": 0.5, "lipschitz": 30.0}
SIZES = ((100_000, 10), (50_000, 10), (100_000, 5), (10_000, 60))


def make_table(records: int, columns: int) -> tuple[pd.DataFrame, dict[str, hr.Column]]:
    """A chain in which each column follows the one before it."""
    random = np.random.default_rng(1)
    table: dict[str, Any] = {"age": random.integers(18, 66, records).astype(float)}
    table["sector"] = random.choice(list("abcde"), records)
    before, chain = 0.02 * table["age"], {}
    for place in range(columns):
        lognormal, name = place % 2 == 0, f"v{place}"
        before = 0.5 * before + 0.5 * random.normal(size=records)
        table[name] = np.exp(before) if lognormal else before
        earlier = f" + v{place - 1}" if lognormal else f" + log(v{place - 1})"
        formula = f"{name} ~ age + C(sector){earlier if place else ''}"
        chain[name] = hr.Column(formula, "lognormal" if lognormal else "normal")
    return pd.DataFrame(table), chain


def prepare(bound: str, records: int, columns: int, draws: int) -> Callable[[], object]:
    table, chain = make_table(records, columns)
    warnings.simplefilter("ignore", hr.HedgerowWarning)
    weights = {"weights": hr.ScalarWeights(1.0)} if bound == "renyi" else {}

    def release(data: pd.DataFrame) -> object:
        epsilon = EPSILON[bound] * columns / 10
        asked = hr.Synthesizer(chain, bound=bound, epsilon=epsilon, copies=COPIES, draws=draws, **weights)
        return asked.fit(data).sample()

    make = hr.Synthesizer(chain, bound=bound, draws=100, **weights)
    make.fit(table[:500]).sample()  # loads and compiles
    return lambda: release(table)


def run(options: Options) -> list[Result]:
    draws, results = 200 if options.quick else DRAWS, []
    for bound in EPSILON:
        for records, columns in ((2000, 4),) if options.quick else SIZES:
            case = f"{bound}, {columns} columns, {COPIES} copies"
            print(f"  {case}, {records:,} records", file=sys.stderr, flush=True)
            measured = measure(prepare, bound, records, columns, draws, runs=1)
            results.append(Result(case, records, draws, work=records * columns, unit="cells", **measured))
    return results
