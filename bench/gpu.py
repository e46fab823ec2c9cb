"""Kernels and whole fits on a GPU, beside the same on all cores: `python -m bench.gpu --out results.json`.

Needs NumPy, SciPy and JAX. Fits need pandas and formulaic as well, and what they are compared with needs
numba; what is not installed is left out and said so. Prints

- kernels: record-draws a second with the records on the device and with their way there, and how far results
  are from plain NumPy's on some records;
- fits from a dataframe to the price, with and without a range, on each back end: the first, which compiles,
  and the best of several; how far prices by record are from plain NumPy's and from the other back end's;
- a calibrated fit of ten million records.
"""

import argparse
import cProfile
import importlib.util
import io
import json
import os
import pstats
import statistics
import time
import warnings
from pathlib import Path

import jax
import numpy as np

from bench import bare, plain  # noqa: F401 - bare comes before hedgerow
from bench.machine import describe
from hedgerow.numerics import scoring
from hedgerow.numerics.kernels import scoring_jax
from hedgerow.numerics.scoring import Draws

SAMPLE = 2000
RADIUS = (0.4, 1.8)


def data(records, draws, columns=2):
    rng = np.random.default_rng(records)
    Z = np.ones((records, columns))
    Z[:, 1:] = rng.normal(2.0, 1.0, (records, columns - 1))
    y = Z.sum(axis=1) + rng.normal(size=records)
    beta = 1.0 + 0.02 * rng.normal(size=(draws, columns))
    return Z, y, Draws(beta, np.exp(0.02 * rng.normal(size=draws)))


def seconds(call, runs):
    """The first run, which compiles, the best of the others, and their median."""
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return times[0], min(times[1:]), statistics.median(times[1:])


def resident(values, Z, y, draws, **per_record):
    """The reduction alone, on one chunk that is already on the device."""
    cut = scoring_jax._cut(Z.shape[1])
    with scoring_jax._x64(True):
        theta = scoring_jax._draws(draws.beta, draws.sigma)
        records = next(scoring_jax._chunks(cut, Z, y, **per_record))

        def call():
            jax.block_until_ready(scoring_jax._extremes(values, records, theta))

        _, best, _ = seconds(call, 5)
    return min(cut, y.size) * len(draws) / best


def time_kernels(records, draws, runs):
    Z, y, theta = data(records, draws)
    lower, upper = np.full(records, np.log(RADIUS[0])), np.full(records, np.log(RADIUS[1]))
    ones, some = np.ones(records), slice(0, SAMPLE)
    ends = {"lower": lower, "upper": upper}
    few = Z[some], y[some], lower[some], upper[some], theta
    cases = {
        "density": (
            lambda: scoring.density_extremes(Z, y, theta),
            resident(scoring_jax._density_values, Z, y, theta),
            plain.density_extremes(*few[:2], theta),
        ),
        "conditional": (
            lambda: scoring.conditional_extremes(Z, y, **ends, draws=theta),
            resident(scoring_jax._conditional_values, Z, y, theta, **ends),
            plain.conditional_extremes(*few),
        ),
        "combined": (
            lambda: scoring.combined_extremes(Z, y, **ends, draws=theta, density_coef=ones, mass_coef=-ones),
            resident(scoring_jax._combined_values, Z, y, theta, **ends, density_coef=ones, mass_coef=-ones),
            plain.conditional_extremes(*few),
        ),
    }
    for case, (call, on_device, want) in cases.items():
        _, best, _ = seconds(call, runs)
        got = call()
        deviation = max(np.abs(got.low[some] - want[0]).max(), np.abs(got.high[some] - want[1]).max())
        rate = records * draws / best
        print(
            f"{case:12s} {records:>11,} records  {best:8.4f} s  {rate:.3g}/s with transfers, "
            f"{on_device:.3g}/s on the device, deviation {deviation:.1e}",
            flush=True,
        )
        yield {
            "case": case, "records": records, "draws": draws, "seconds": best, "rate": rate,
            "rate_on_device": on_device, "deviation": float(deviation),
        }  # fmt: skip


def tune(records, draws):
    """Rates on the device by how many draws are evaluated before a reduction."""
    Z, y, theta = data(records, draws)
    ends = {"lower": np.full(records, np.log(RADIUS[0])), "upper": np.full(records, np.log(RADIUS[1]))}
    usual = scoring_jax._DRAWS
    for together in (8, 16, 32, 64):
        scoring_jax._DRAWS = together
        rates = {
            "density": resident(scoring_jax._density_values, Z, y, theta),
            "conditional": resident(scoring_jax._conditional_values, Z, y, theta, **ends),
        }
        print(
            f"{together:3d} draws at a time: {rates['density']:.3g}/s, {rates['conditional']:.3g}/s",
            flush=True,
        )
        yield {"case": "draws at a time", "together": together, "records": records, **rates}
    scoring_jax._DRAWS = usual


def missing(*names):
    return [name for name in names if importlib.util.find_spec(name) is None]


def fit_of(records, draws, *, ranged, epsilon=None):
    """A synthesizer's fit of a dataframe, by its name and the number of records."""
    import hedgerow as hr

    table = hr.datasets.lognormal(records, seed=1)
    standard = hr.RangeTruncated(hr.Radius(*RADIUS)) if ranged else hr.ADP()

    def call():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return hr.Synthesizer("x ~ z", standard=standard, draws=draws, epsilon=epsilon, seed=1).fit(table)

    return call


def deviation_from_plain(fitted):
    """How far the price of some records is from that of plain NumPy over the same draws, relatively."""
    pricing = fitted._need().outcome.pricing
    parameters, design = pricing.fit.parameters, pricing.fit.design
    theta, some = Draws(parameters["beta"], parameters["sigma"]), slice(0, SAMPLE)
    Z, y = design.matrix[some], np.log(design.values[some])
    if pricing.part.uses_mass:
        ends = (np.log(end[some]) - y for end in (pricing.interval.lower, pricing.interval.upper))
        low, high = plain.conditional_extremes(Z, y, *ends, theta)
    else:
        low, high = plain.density_extremes(Z, y, theta)
    want = pricing.part.density[some] * np.maximum(np.abs(low - y), np.abs(high - y))
    return float(np.max(np.abs(pricing.sensitivity[some] - want) / np.maximum(want, 1e-3)))


def where_time_goes(call):
    """The main thread's own seconds, function by function."""
    profile = cProfile.Profile()
    profile.runcall(call)
    text = io.StringIO()
    pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(25)
    return [line for line in text.getvalue().splitlines() if line.strip()][4:]


def time_fits(records, draws, runs, *, epsilon=None, backends=("jax", "numba"), ranges=(False, True)):
    for ranged in ranges:
        call, by_backend = fit_of(records, draws, ranged=ranged, epsilon=epsilon), {}
        for name in backends:
            if name == "numba" and missing("numba"):
                print("fits with numba: left out, it is not installed", flush=True)
                continue
            os.environ["HEDGEROW_BACKEND"] = name
            first, best, median = seconds(call, runs)
            fitted = call()
            by_backend[name] = fitted._need().outcome.pricing.sensitivity
            row = {
                "case": "fit with a range" if ranged else "fit", "backend": name, "records": records,
                "draws": draws, "target": epsilon, "first": first, "seconds": best, "median": median,
                "epsilon": fitted.epsilon_, "deviation_from_numpy": deviation_from_plain(fitted),
                "profile": where_time_goes(call),
            }  # fmt: skip
            if len(by_backend) > 1:
                one, other = by_backend["jax"], by_backend["numba"]
                row["deviation_from_jax"] = float(np.max(np.abs(one - other) / np.maximum(other, 1e-3)))
            print(
                f"{row['case']:17s} {name:6s} {records:>11,} records{', calibrated' * bool(epsilon)}: first "
                f"{first:.3f} s, best {best:.3f} s, median {median:.3f} s, epsilon {row['epsilon']:.12g}, "
                f"from NumPy {row['deviation_from_numpy']:.1e}"
                + (f", from jax {row['deviation_from_jax']:.1e}" if "deviation_from_jax" in row else ""),
                flush=True,
            )
            print("\n".join(row["profile"]), flush=True)
            yield row


def main():
    parser = argparse.ArgumentParser(prog="python -m bench.gpu", description=__doc__)
    parser.add_argument("--records", type=int, nargs="*", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--fits", type=int, nargs="*", default=[1_000_000, 5_000_000])
    parser.add_argument("--calibrated", type=int, nargs="*", default=[10_000_000])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tune", action="store_true", help="rates by draws evaluated at a time as well")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    device = jax.devices()[0]
    machine = {**describe(), "accelerator": device.device_kind}
    print(
        f"{device.platform}: {device.device_kind}, jax {jax.__version__}, {machine['cores']} cores",
        flush=True,
    )
    rows = []

    def keep(found):
        for row in found:  # saved as they come: a run that is cut short leaves what it has
            rows.append(row)
            if arguments.out:
                content = {"machine": machine, "results": rows}
                arguments.out.write_text(json.dumps(content, indent=1) + "\n")

    os.environ["HEDGEROW_BACKEND"] = "jax"
    for records in arguments.records:
        keep(time_kernels(records, arguments.draws, arguments.runs))
    if arguments.tune:
        keep(tune(max(arguments.records), arguments.draws))
    absent = missing("pandas", "narwhals", "formulaic", "lazy_loader", "threadpoolctl")
    if absent:
        print(f"fits: left out, {', '.join(absent)} not installed", flush=True)
        return
    for records in arguments.fits:
        keep(time_fits(records, arguments.draws, arguments.runs))
    for records in arguments.calibrated:
        keep(time_fits(records, arguments.draws, 1, epsilon=5.7, backends=("jax",)))


if __name__ == "__main__":
    main()
