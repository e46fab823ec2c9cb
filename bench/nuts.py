"""Effective draws per second of the two-fit procedure: hedgerow's samplers, its exact model, and peers.

    python -m bench.nuts --quick

Peers live in environments of their own (`bench.contenders`). Each contender fits the lognormal regression
unweighted and then with the weights of ADP: the same table, the same powers, four chains. Counted are seconds
of sampling, compilation apart, and the smallest bulk ESS over the parameters, by ArviZ, summed over the fits.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench import contenders
from bench.contenders import CHAINS, PRIOR, WARMUP

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # for `helpers`

DRAWS = 500  # per chain


@dataclass(frozen=True)
class Result:
    """One contender at one size."""

    name: str
    records: int
    seconds: float
    compile_seconds: float
    effective: float

    @property
    def rate(self) -> float:
        """Effective draws per second of sampling."""
        return self.effective / self.seconds


def effective(fits: np.ndarray) -> float:
    """Smallest bulk ESS of each fit (fit, chain, draw, parameter), summed."""
    import arviz

    sets = (arviz.convert_to_dataset({"v": fit}) for fit in fits)
    return float(sum(float(arviz.ess(data, method="bulk")["v"].min()) for data in sets))


def prepare(records: int) -> tuple[object, np.ndarray, np.ndarray]:
    """Design, powers of ADP from the exact model, and the table's predictor."""
    import hedgerow as hr
    from hedgerow.tables import design as designs
    from hedgerow.tables.table import Table

    data = hr.datasets.lognormal(n=records, seed=1)
    power = hr.Synthesizer("x ~ z", hr.Lognormal(prior=PRIOR), seed=1).fit(data).alpha_
    return designs.build("x ~ z", Table.of(data)), power, data["z"].to_numpy()


def own(design: object, power: np.ndarray, sampler: str) -> Result:
    """NUTS over hedgerow's potential."""
    from helpers import programs

    import hedgerow as hr
    from hedgerow.models.programs import nuts
    from hedgerow.models.programs.potential import Potential
    from hedgerow.randomness import Key

    program = hr.Program(programs.lognormal)
    traced = program._traced(design)
    settings = nuts.SamplerSettings(sampler, CHAINS, WARMUP, 0.8)
    fits, seconds, compiling = [], 0.0, 0.0
    for k, powers in enumerate((np.ones(design.records), power)):
        potential = Potential.of(traced, program._arrays(design), design.values, powers)
        began = time.perf_counter()
        potential.value_and_grad(np.zeros(potential.dimensions))
        compiling += time.perf_counter() - began
        began = time.perf_counter()
        found = nuts.sample(potential, settings, draws=DRAWS, key=Key.from_seed(k))
        seconds += time.perf_counter() - began
        fits.append(found.positions)
    return Result(f"hedgerow, {sampler}", design.records, seconds, compiling, effective(np.stack(fits)))


def exact(design: object, power: np.ndarray) -> Result:
    """The exact model: every draw is an effective one."""
    import hedgerow as hr
    from hedgerow.randomness import Key

    model, draws = hr.Lognormal(prior=PRIOR), CHAINS * DRAWS
    model.sample(design, power, draws=draws, key=Key.from_seed(0))
    began = time.perf_counter()
    for powers in (np.ones(design.records), power):
        model.sample(design, powers, draws=draws, key=Key.from_seed(1))
    return Result("hedgerow, exact", design.records, time.perf_counter() - began, 0.0, 2.0 * draws)


def peer(name: str, design: object, power: np.ndarray, z: np.ndarray) -> Result | str:
    """A peer in its own environment, or why there is none."""
    try:
        powers = (np.ones(design.records), power)
        fits = [contenders.fit(name, design.values, z, one, DRAWS) for one in powers]
    except contenders.MissingError as reason:
        return f"{name}: {reason}"
    seconds, built = sum(one.seconds for one in fits), sum(one.compile_seconds for one in fits)
    return Result(name, design.records, seconds, built, effective(np.stack([one.draws for one in fits])))


def run(quick: bool, sizes: tuple[int, ...] = (), skip: tuple[str, ...] = ()) -> list[Result]:
    """All contenders at n = 2,000 and, unless quick, 100,000; results are told as they come."""
    warnings.simplefilter("ignore")  # ArviZ announces its next version on import
    results = []
    for records in sizes or ((2000,) if quick else (2000, 100_000)):
        design, power, z = prepare(records)
        runs: dict[str, Callable[[], Result | str]] = {
            "nutpie": lambda design=design, power=power: own(design, power, "nutpie"),
            "exact": lambda design=design, power=power: exact(design, power),
            "numpyro": lambda design=design, power=power: own(design, power, "numpyro"),
        } | {
            name: lambda name=name, design=design, power=power, z=z: peer(name, design, power, z)
            for name in ("nutpie on PyMC", "PyStan", "rstan")
        }
        for name, contend in runs.items():
            found = f"{name}: skipped as asked" if name in skip else contend()
            print(f"missing: {found}" if isinstance(found, str) else found, file=sys.stderr, flush=True)
            results += [] if isinstance(found, str) else [found]
    return results


def table(results: list[Result]) -> str:
    """Markdown; ratios are to PyStan where it ran, else to the slowest."""
    lines = ["| n | contender | sampling s | compiling s | effective draws | per second | ratio |",
             "| --- | --- | --- | --- | --- | --- | --- |"]  # fmt: skip
    for records in sorted({result.records for result in results}):
        here = [result for result in results if result.records == records]
        stan = [result.rate for result in here if result.name in ("PyStan", "rstan")]
        base = stan[0] if stan else min(result.rate for result in here)
        lines += [
            f"| {records:,} | {r.name} | {r.seconds:.2f} | {r.compile_seconds:.1f} | {r.effective:.0f} | "
            f"{r.rate:,.0f} | {r.rate / base:,.1f} |"
            for r in here
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sizes", type=int, nargs="*", default=[], help="numbers of records")
    parser.add_argument("--skip", nargs="*", default=[], help="nutpie, exact, numpyro, PyStan, ...")
    given = parser.parse_args()
    print(table(run(given.quick, tuple(given.sizes), tuple(given.skip))))
