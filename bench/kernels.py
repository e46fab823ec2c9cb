"""The scoring kernels and the streamed factor, on the paper's simulated data."""

import sys
from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from bench import plain
from bench.measure import measure
from bench.result import Options, Result
from hedgerow.numerics import scoring, triangular
from hedgerow.numerics.renyi import Neighbours
from hedgerow.numerics.scoring import Draws

DRAWS = 1000
PLAIN_RECORDS = 100_000  # plain NumPy's rate does not depend on the number of records
_WARM = 1000

# How each case is called, the plain version its rate is compared with, and its unit of work.
CASES = {
    "density": ("density", "record-draws"),
    "density, minimum pruned": ("density", "record-draws"),
    "density, absolute pruned": ("density", "record-draws"),
    "conditional": ("conditional", "record-draws"),
    "conditional, minimum pruned": ("conditional", "record-draws"),
    "combined": ("conditional", "record-draws"),
    "mean mass": (None, "record-draws"),
    "factor": (None, "records"),
    "renyi": (None, "records"),
    "renyi, largest alone": (None, "records"),
}


def data(records: int, draws: int, columns: int = 2):
    """Draws scattered as an exact posterior given this many records would be."""
    rng = np.random.default_rng(records)
    Z = np.ones((records, columns))
    Z[:, 1:] = rng.normal(2.0, 1.0, (records, columns - 1))
    y = Z.sum(axis=1) + rng.normal(size=records)
    root = np.linalg.cholesky(np.linalg.inv(Z.T @ Z))
    sigma = 1.0 + rng.normal(size=draws) / np.sqrt(2.0 * records)
    beta = 1.0 + sigma[:, None] * rng.normal(size=(draws, columns)) @ root.T
    return Z, y, Draws(beta, sigma)


def prepare(case: str, records: int, draws: int) -> Callable[[], object]:
    """Build the data, compile on a few records, and return the call to time."""
    Z, y, theta = data(records, draws)
    lower, upper = np.full(records, np.log(0.4)), np.full(records, np.log(1.8))
    alpha, minus = np.full(records, 0.7), np.full(records, -1.0)
    calls = {
        "density": lambda n: scoring.density_extremes(Z[:n], y[:n], theta),
        "density, minimum pruned": lambda n: scoring.density_low(Z[:n], y[:n], _fresh(theta), prune=True),
        "density, absolute pruned": lambda n: scoring.density_absolute(
            Z[:n], y[:n], _fresh(theta), shift=-y[:n], prune=True
        ),
        "conditional": lambda n: scoring.conditional_extremes(Z[:n], y[:n], lower[:n], upper[:n], theta),
        "conditional, minimum pruned": lambda n: scoring.conditional_low(
            Z[:n], y[:n], lower[:n], upper[:n], _fresh(theta), prune=True
        ),
        "combined": lambda n: scoring.combined_extremes(
            Z[:n], y[:n], lower[:n], upper[:n], theta, alpha[:n], minus[:n]
        ),
        "mean mass": lambda n: scoring.mean_mass(Z[:n], y[:n], lower[:n], upper[:n], theta),
        "factor": lambda n: triangular.weighted_factor(Z[:n], y[:n], alpha[:n]),
        "renyi": lambda n: neighbours(Z[:n], y[:n]).by_record(delta=1e-6),
        "renyi, largest alone": lambda n: neighbours(Z[:n], y[:n]).epsilon(delta=1e-6),
        "plain density": lambda n: plain.density_extremes(Z[:n], y[:n], theta),
        "plain conditional": lambda n: plain.conditional_extremes(Z[:n], y[:n], lower[:n], upper[:n], theta),
    }
    call = calls[case]
    call(_WARM)
    return lambda: call(records)


def neighbours(Z, y) -> Neighbours:
    """Every record against the fit without it, unweighted: leverages and residuals included."""
    R = triangular.weighted_factor(Z, y)
    spread = triangular.leverages(Z, R)
    squared = (y - Z @ solve_triangular(R[:-1, :-1], R[:-1, -1])) ** 2
    left, shape, rate = 1 - spread, y.size / 2, R[-1, -1] ** 2 / 2
    one = np.ones(y.size)
    return Neighbours(one, spread / left, squared / left**2, (shape - 0.5) * one, rate - squared / left / 2)


def _fresh(draws: Draws) -> Draws:
    """The same draws without their remembered hull, so that finding it is part of the time."""
    return Draws(draws.beta, draws.sigma)


def _one(case: str, records: int, draws: int, unit: str) -> Result:
    print(f"  {case}, {records:,} records", file=sys.stderr, flush=True)
    work = float(records) if unit == "records" else float(records) * draws
    return Result(case, records, draws if unit != "records" else 0, work=work, unit=unit,
                  **measure(prepare, case, records, draws))  # fmt: skip


def run(options: Options) -> list[Result]:
    draws = 200 if options.quick else DRAWS
    sizes = [20_000] if options.quick else [100_000, 1_000_000] + [10_000_000] * options.large
    baseline = {
        name: _one(f"plain {name}", min(PLAIN_RECORDS, sizes[0]), draws, "record-draws")
        for name in ("density", "conditional")
    }
    results = list(baseline.values())
    for records in sizes:
        for case, (against, unit) in CASES.items():
            result = _one(case, records, draws, unit)
            ratio = None if against is None else result.rate / baseline[against].rate
            results.append(Result(**{**result.__dict__, "ratio": ratio}))
    return results
