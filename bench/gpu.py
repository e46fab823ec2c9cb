"""The scoring kernels on a GPU: `python -m bench.gpu`. Needs NumPy, SciPy and JAX, neither numba nor pip.

Prints rates by case and number of records, with and without the transfers, the largest deviation
from plain NumPy on a sample, and saves them as JSON where --out says.
"""

import argparse
import importlib.util
import json
import os
import statistics
import sys
import time
import types
from pathlib import Path

os.environ["HEDGEROW_BACKEND"] = "jax"
if importlib.util.find_spec("jaxtyping") is None:
    # Only names axes in annotations; on a bare machine any subscriptable name will do.
    stand_in = types.ModuleType("jaxtyping")
    stand_in.Float = stand_in.Bool = stand_in.Int = dict  # type: ignore[attr-defined]
    sys.modules["jaxtyping"] = stand_in

import jax
import numpy as np

from bench import plain
from bench.machine import describe
from hedgerow.numerics import kernels_jax, scoring
from hedgerow.numerics.scoring import Draws

SAMPLE = 2000


def data(records, draws, columns=2):
    rng = np.random.default_rng(records)
    Z = np.ones((records, columns))
    Z[:, 1:] = rng.normal(2.0, 1.0, (records, columns - 1))
    y = Z.sum(axis=1) + rng.normal(size=records)
    beta = 1.0 + 0.02 * rng.normal(size=(draws, columns))
    return Z, y, Draws(beta, np.exp(0.02 * rng.normal(size=draws)))


def seconds(call, runs):
    call()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times), statistics.median(times)


def resident(values, Z, y, draws, **per_record):
    """The reduction alone, on one chunk that is already on the device."""
    with kernels_jax._x64(True):
        theta = kernels_jax._draws(draws.beta, draws.sigma)
        part, records = next(kernels_jax._chunks(Z, y, **per_record))

        def call():
            jax.block_until_ready(kernels_jax._extremes(values, records, theta))

        best, _ = seconds(call, 5)
    return (part.stop - part.start) * len(draws) / best


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("--records", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = jax.devices()[0]
    print(f"{device.platform}: {device.device_kind}, jax {jax.__version__}", flush=True)
    rows = []
    for records in arguments.records:
        Z, y, draws = data(records, arguments.draws)
        lower, upper = np.full(records, np.log(0.4)), np.full(records, np.log(1.8))
        ones = np.ones(records)
        interval = {"lower": lower, "upper": upper}
        sample = slice(0, SAMPLE)
        few = Z[sample], y[sample], lower[sample], upper[sample], draws
        cases = {
            "density": (
                lambda Z=Z, y=y, draws=draws: scoring.density_extremes(Z, y, draws),
                resident(kernels_jax._density_values, Z, y, draws),
                plain.density_extremes(few[0], few[1], draws),
            ),
            "conditional": (
                lambda Z=Z, y=y, draws=draws, ends=interval: scoring.conditional_extremes(
                    Z, y, **ends, draws=draws
                ),
                resident(kernels_jax._conditional_values, Z, y, draws, **interval),
                plain.conditional_extremes(*few),
            ),
            "combined": (
                lambda Z=Z, y=y, draws=draws, ends=interval, e=-ones: scoring.combined_extremes(
                    Z, y, **ends, draws=draws, density_coef=-e, mass_coef=e
                ),
                resident(
                    kernels_jax._combined_values, Z, y, draws, **interval, density_coef=ones, mass_coef=-ones
                ),
                plain.conditional_extremes(*few),
            ),
        }
        for case, (call, on_device, want) in cases.items():
            best, median = seconds(call, arguments.runs)
            got = call()
            deviation = max(np.abs(got.low[sample] - want[0]).max(), np.abs(got.high[sample] - want[1]).max())
            work = records * arguments.draws
            row = {
                "case": case,
                "records": records,
                "draws": arguments.draws,
                "seconds": best,
                "median": median,
                "rate": work / best,
                "rate_on_device": on_device,
                "deviation": float(deviation),
            }
            rows.append(row)
            print(
                f"{case:12s} {records:>11,} records  {best:8.4f} s  {row['rate']:.3g}/s with transfers, "
                f"{on_device:.3g}/s on the device, deviation {deviation:.1e}",
                flush=True,
            )
    if arguments.out:
        machine = {**describe(), "accelerator": device.device_kind}
        arguments.out.write_text(json.dumps({"machine": machine, "results": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
