"""What the machine can do at most, and how near the scoring kernels come to it.

The triad a = b + s·c moves 24 bytes per element, as STREAM counts; dgemm is NumPy's product of two square
matrices on all cores. Kernels stand beside dgemm by `FLOPS`, counted in `numerics.kernels.scoring_numba` for
an intercept and one predictor: additions, multiplications and divisions are one each, a fused multiply-add
is two; comparisons, selections, conversions and whole numbers are not counted.
"""

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numba import njit
from threadpoolctl import threadpool_limits

from bench import kernels
from bench.measure import measure
from bench.result import Options, Result
from hedgerow.threads import share_out, threads

ELEMENTS = 16_000_000  # 128 MB an array: beyond every cache
ORDER = 2000
RECORDS, DRAWS = 100_000, 1000

FLOPS = {
    # Residual 4; −r²/2 + constant 3.
    "density": 7,
    # Residual 5; both ends, their exponents and distance 13; two exponentials 56; two Mills ratios with their
    # products 96; the mass between the ends 14; its logarithm and the rest 27.
    "conditional": 211,
}


@njit(nogil=True)
def _triad(a, b, c, scale):  # type: ignore[no-untyped-def]
    for place in range(a.size):
        a[place] = b[place] + scale * c[place]


def prepare_triad(elements: int) -> Callable[[], object]:
    arrays = [np.full(elements, value) for value in (0.0, 1.0, 2.0)]
    parts = [tuple(np.array_split(array, threads())) for array in arrays]

    def call() -> None:
        share_out(lambda part: _triad(*part, 3.0), zip(*parts, strict=True))

    call()
    return call


def prepare_dgemm(order: int) -> Callable[[], object]:
    a, b = np.random.default_rng(1).normal(size=(2, order, order))
    out = np.empty((order, order))

    def call() -> None:
        with threadpool_limits(threads(), user_api="blas"):
            np.matmul(a, b, out=out)

    call()
    return call


def run(options: Options) -> list[Result]:
    smaller = 10 if options.quick else 1
    print("  triad, dgemm, kernels", file=sys.stderr, flush=True)
    elements, records = ELEMENTS // smaller, RECORDS // smaller
    order = ORDER // (2 if options.quick else 1)  # a smaller product is mostly overhead
    triad = measure(prepare_triad, elements)
    dgemm = measure(prepare_dgemm, order)
    results = [
        Result("triad", elements, 0, work=24.0 * elements, unit="bytes", **triad),
        Result("dgemm", order, 0, work=2.0 * order**3, unit="flops", **dgemm),
    ]
    peak = results[-1].rate_per_core  # of processor seconds, which hold on a busy machine as well
    for case, flops in FLOPS.items():
        found = measure(kernels.prepare, case, records, DRAWS)
        result = Result(case, records, DRAWS, work=float(records) * DRAWS, unit="record-draws", **found)
        results.append(replace(result, of_peak=result.rate_per_core * flops / peak))
    return results
