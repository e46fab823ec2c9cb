"""The whole two-fit procedure, from a dataframe to its price, against the same steps in plain NumPy."""

import sys
from collections.abc import Callable

import numpy as np

import hedgerow as hr
from bench import plain
from bench.measure import measure
from bench.result import Options, Result
from hedgerow.numerics.scoring import Draws

DRAWS = 1000
RADIUS = (0.4, 1.8)
STANDARDS = {
    "ADP": hr.ADP(),
    "RangeTruncated": hr.RangeTruncated(hr.Radius(*RADIUS)),
    "RangeAveraged": hr.RangeAveraged(hr.Radius(*RADIUS)),
}


def _posterior(Z, y, power, draws, rng):
    """Conjugate draws with a vague prior, by the textbook formulas."""
    precision = 1e-6 * np.eye(Z.shape[1]) + Z.T @ (power[:, None] * Z)
    mean = np.linalg.solve(precision, Z.T @ (power * y))
    shape = 0.5 + power.sum() / 2
    rate = 0.5 + 0.5 * (y @ (power * y) - mean @ precision @ mean)
    sigma = np.sqrt(rate / rng.gamma(shape, size=draws))
    root = np.linalg.cholesky(np.linalg.inv(precision))
    return Draws(mean + sigma[:, None] * (rng.normal(size=(draws, Z.shape[1])) @ root.T), sigma)


def _mean_mass(Z, y, lower, upper, draws):
    from scipy.special import ndtr

    total = np.zeros(y.size)
    for part, r, scale, _ in plain._blocks(Z, y, draws):
        total[part] += (ndtr(r + scale * upper[part]) - ndtr(r + scale * lower[part])).sum(axis=0)
    return total / len(draws)


def plain_procedure(standard: str, x, z, fit: Callable[[np.ndarray], Draws]) -> float:
    """Fit, risk, linear weights, refit, price: a statistician's script, blocked with care.

    `fit` gives draws of β and σ when each record's likelihood is raised to a power.
    """
    y = np.log(x)
    Z = np.column_stack([np.ones_like(z), z])
    lower, upper = np.full(y.size, np.log(RADIUS[0])), np.full(y.size, np.log(RADIUS[1]))
    first = fit(np.ones(y.size))
    low, high = plain.density_extremes(Z, y, first)
    risk = np.maximum(np.abs(low - y), np.abs(high - y))
    alpha = 1 - (risk - risk.min()) / (risk.max() - risk.min())
    known = 1 - _mean_mass(Z, y, lower, upper, first) if standard == "RangeAveraged" else 0.0
    second = fit(known + (1 - known) * alpha)
    if standard == "RangeTruncated":
        low, high = plain.conditional_extremes(Z, y, lower, upper, second)
    else:
        low, high = plain.density_extremes(Z, y, second)
    return float(2 * np.max((1 - known) * alpha * np.maximum(np.abs(low - y), np.abs(high - y))))


def with_numpy(standard: str, x, z, draws: int, seed: int = 1) -> float:
    """The same from beginning to end, draws included."""
    rng = np.random.default_rng(seed)
    Z = np.column_stack([np.ones_like(z), z])
    return plain_procedure(standard, x, z, lambda power: _posterior(Z, np.log(x), power, draws, rng))


def prepare(case: str, standard: str, records: int, draws: int) -> Callable[[], object]:
    """hedgerow does more: both neighbours, three bounds, four prefixes of the draws, all checks."""
    data = hr.datasets.lognormal(records, seed=1)
    x, z = data["x"].to_numpy(), data["z"].to_numpy()

    def with_hedgerow(rows: int) -> object:
        synth = hr.Synthesizer("x ~ z", standard=STANDARDS[standard], draws=draws, seed=1)
        return synth.fit(data.iloc[:rows]).epsilon_

    def plainly(rows: int) -> object:
        return with_numpy(standard, x[:rows], z[:rows], draws)

    call = with_hedgerow if case == "procedure" else plainly
    call(500)
    return lambda: call(records)


def _one(case: str, standard: str, records: int, draws: int) -> Result:
    print(f"  {case} {standard}, {records:,} records", file=sys.stderr, flush=True)
    return Result(f"{case} {standard}", records, draws, work=float(records) * draws, unit="record-draws",
                  **measure(prepare, case, standard, records, draws))  # fmt: skip


def run(options: Options) -> list[Result]:
    draws = 200 if options.quick else DRAWS
    sizes = [20_000] if options.quick else [100_000, 1_000_000] + [10_000_000] * options.large
    results = []
    for standard in STANDARDS:
        baseline = _one("plain procedure", standard, sizes[0], draws)
        results.append(baseline)
        for records in sizes:
            result = _one("procedure", standard, records, draws)
            results.append(Result(**{**result.__dict__, "ratio": result.rate / baseline.rate}))
    return results
