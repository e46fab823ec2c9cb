"""The two-fit lognormal procedure under ADP by hedgerow, plain NumPy, Stan, nutpie and brms, in one run.

Fit, score, weigh, fit again with the weights in the likelihood, score and price: 1,000 draws, the others' in
four chains after 400 draws of warm-up each. Compiling is left out, and so is everything that carries data
from one process to another. The samplers' draws are scored by plain NumPy, which is quicker than a matrix of
log likelihoods from the sampler itself. Prices are maxima over draws and differ by seed: hedgerow's mean and
standard deviation over `SEEDS` seeds say by how much.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

import hedgerow as hr
from bench import contenders
from bench.measure import measure
from bench.procedure import plain_procedure, with_numpy
from bench.result import Options, Result
from hedgerow.numerics.scoring import Draws

DRAWS = 1000
SEEDS = 100
SIZES = {"PyStan": (10_000, 100_000), "nutpie on PyMC": (10_000, 100_000), "brms": (10_000,)}


def _columns(records: int) -> tuple[np.ndarray, np.ndarray]:
    data = hr.datasets.lognormal(records, seed=1)
    return data["x"].to_numpy(), data["z"].to_numpy()


def prepare(case: str, records: int) -> Callable[[], object]:
    data = hr.datasets.lognormal(records, seed=1)
    x, z = _columns(records)

    def price() -> float:
        if case == "NumPy":
            return with_numpy("ADP", x, z, DRAWS)
        return _price(data, 1)

    price()
    return price


def _price(data: object, seed: int) -> float:
    return (
        hr.Synthesizer("x ~ z", hr.Lognormal(prior=contenders.PRIOR), draws=DRAWS, seed=seed)
        .fit(data)
        .epsilon_
    )


def by_sampler(name: str, records: int) -> dict[str, float]:
    """The procedure with somebody else's draws."""
    x, z = _columns(records)
    sampled: list[contenders.Sampled] = []
    waited = [0.0, 0.0]  # by the clock and in processor seconds, here, while the sampler ran

    def fit(power: np.ndarray) -> Draws:
        began = time.perf_counter(), time.process_time()
        sampled.append(contenders.fit(name, x, z, power, DRAWS // contenders.CHAINS))
        rows = sampled[-1].draws.reshape(-1, 3)
        waited[0] += time.perf_counter() - began[0]
        waited[1] += time.process_time() - began[1]
        return Draws(rows[:, :2].copy(), np.sqrt(rows[:, 2]))

    began = time.perf_counter(), time.process_time()
    epsilon = plain_procedure("ADP", x, z, fit)
    seconds = time.perf_counter() - began[0] - waited[0] + sum(one.seconds for one in sampled)
    core_seconds = time.process_time() - began[1] - waited[1] + sum(one.core_seconds for one in sampled)
    return {"seconds": seconds, "median": seconds, "core_seconds": core_seconds, "epsilon": epsilon}


def run(options: Options) -> Iterator[Result]:
    for records in (1000,) if options.quick else (10_000, 100_000):
        work = {"work": float(records) * DRAWS, "unit": "record-draws"}
        data = hr.datasets.lognormal(records, seed=1)
        prices = [_price(data, seed) for seed in range(SEEDS)]
        agreed = {"epsilon": statistics.mean(prices), "epsilon_sd": statistics.stdev(prices)}
        yield Result("hedgerow", records, DRAWS, **work, **measure(prepare, "hedgerow", records), **agreed)
        numpy_price = {"epsilon": with_numpy("ADP", *_columns(records), DRAWS)}
        yield Result("NumPy", records, DRAWS, **work, **measure(prepare, "NumPy", records), **numpy_price)
        for name, sizes in SIZES.items():
            if records not in sizes and not options.quick:
                continue
            print(f"  {name}, {records:,} records", file=sys.stderr, flush=True)
            try:
                found = by_sampler(name, records)
            except contenders.MissingError as reason:
                print(f"  left out, {name}: {reason}", file=sys.stderr, flush=True)
                continue
            yield Result(name, records, DRAWS, runs=1, peak_mb=0.0, added_mb=0.0, **work, **found)
