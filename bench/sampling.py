"""Families without a closed form: a fit and the same by NUTS, a calibrated fit (ε = 2), a corrected copy.

Compilation is left out: it comes once per process, family and number of records. Only ratios within one run
mean something on a busy machine.
"""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import hedgerow as hr
from bench.measure import measure
from bench.result import Options, Result
from hedgerow.models.families import FAMILIES
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table

DRAWS = 1000
NAMES = tuple(name for name in FAMILIES if name not in ("normal", "lognormal", "asinh", "dirichlet"))
SETTINGS: dict[str, dict[str, Any]] = {
    "ordinal": {"lower": 1, "upper": 4},
    "categorical": {"lower": 1, "upper": 3},
} | {name: {"scale": 1.0} for name in ("student", "zero_student", "zero_asinh")}


def prepare_fit(name: str, sampler: str, records: int) -> Callable[[], object]:
    """One fit of the plain posterior."""
    model = hr.Family(name, sampler=sampler, **SETTINGS.get(name, {}))
    table = Table.of(hr.datasets.family(name, n=records, seed=1))
    design = designs.build("x ~ z", table, model.columns, model.domain.classes)
    power = np.ones(records)

    def fit(*, draws: int = DRAWS) -> object:
        return model.sample(design, power, draws=draws, key=Key.from_seed(1))

    if sampler == "independent":
        fit()
    else:  # what NUTS calls: a whole fit to compile would take as long as the one that is timed
        potential = model.potential(design, power)
        potential.value_and_grad(np.full(potential.dimensions, 0.1))
        potential.log_densities(np.full((DRAWS, potential.dimensions), 0.1))
    return fit


def _synthesizer(name: str, **settings: Any) -> hr.Synthesizer:
    model = hr.Family(name, **SETTINGS.get(name, {}))
    return hr.Synthesizer("x ~ z", model, epsilon=2.0, draws=DRAWS, seed=1, **settings)


def prepare_calibrated(name: str, records: int) -> Callable[[], object]:
    """The whole way to a certified fit, the target well below the price at full weights."""
    data = hr.datasets.family(name, n=records, seed=1)
    prepare_fit(name, "independent", records)
    return lambda: _synthesizer(name).fit(data)


def prepare_corrected(name: str, records: int) -> Callable[[], object]:
    """One released draw, corrected; its capped weights may meet the target without a search."""
    synth = _synthesizer(name, weights=hr.CapWeights(1, risk="oscillation"), bound="oscillation", debias=True)
    fitted = synth.fit(hr.datasets.family(name, n=records, seed=1))._need()
    return lambda: replace(fitted).released  # a new value, so that nothing is remembered


def run(options: Options) -> list[Result]:
    records = 500 if options.quick else 5000
    results = []
    for name in NAMES[:2] if options.quick else NAMES:
        cases = {
            "fit": (prepare_fit, name, "independent", records),
            "fit by NUTS": (prepare_fit, name, "nutpie", records),
            "calibrated": (prepare_calibrated, name, records),
            "corrected copy": (prepare_corrected, name, records),
        }
        for case, given in cases.items():
            print(f"  {name}, {case}", file=sys.stderr, flush=True)
            found = measure(*given, runs=3, limit=5.0)
            results.append(Result(f"{name}, {case}", records, DRAWS, work=1.0, unit="runs", **found))
    return results
