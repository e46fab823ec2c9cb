"""AIM and MST by OpenDP on the table in public bins, in the environment of bench/rival/README.md.

Reads bins.csv, and columns.json for the number of bins, and writes copies of it, binned. AIM is asked for
pairs of columns, the workload that is measured here, and held to a model of 1 MB (instead of 80) and to 24
rounds (192), so that a fit takes minutes. OpenDP takes its noise from the operating system and cannot be
seeded: a second run differs.
"""

import argparse
import json
import logging
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

DELTA = 1e-6
EPSILONS = (1.0, 4.0)
FITS = 3
MODEL_SIZE, ROUNDS = 1.0, 24  # MB; of selecting and measuring a pair, two for each column
SCALES = (1e-6, 1e6)  # where noise scales are looked for; OpenDP would begin at 0, where its check raises


def fit(
    bins: dict[str, np.ndarray], sizes: dict[str, int], algorithm: Any, epsilon: float
) -> tuple[dict[str, np.ndarray], str]:
    """As many synthetic rows as the table has, and which marginals were measured."""
    import opendp.prelude as dp
    import polars as pl

    rho = _concentrated(epsilon)
    context = dp.Context.compositor(
        data=pl.LazyFrame({name: values.astype(float) for name, values in bins.items()}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    cuts = {name: (np.arange(size - 1) + 0.5).tolist() for name, size in sizes.items()}
    query = context.query(rho=rho).select(*bins)
    table = query.contingency_table(cuts=cuts, algorithm=algorithm).release()
    # mbi's default, "round", goes through the rows of every group in the same order, so that columns which
    # the model holds for independent come out associated (pairs off by 0.3 on average here).
    made = table.model.synthetic_data(len(next(iter(bins.values()))), method="sample").to_dict()
    measured = [one.clique for one in table.marginals.flatten() if len(one.clique) > 1]
    return {name: np.asarray(made[name], dtype=int) for name in bins}, "; ".join(
        "·".join(c) for c in measured
    )


def _concentrated(epsilon: float) -> float:
    """The largest ρ whose zero-concentrated DP gives (ε, δ)-DP, by OpenDP's own conversion."""
    import opendp.prelude as dp

    def fits(scale: float) -> bool:
        noise = dp.m.make_gaussian(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale)
        return bool(dp.c.make_zCDP_to_approxDP(noise).map(1.0).epsilon(DELTA) <= epsilon)

    return float(1 / (2 * dp.binary_search(fits, bounds=(0.05, 1000.0)) ** 2))


def main() -> None:
    """Every method, ε and fit that is not there yet."""
    import opendp.prelude as dp
    from opendp.extras.mbi import _aim, _mst, _table

    dp.enable_features("contrib")
    logging.disable(logging.WARNING)
    warnings.filterwarnings("ignore", message=".*(rho|epsilon) should be less.*")
    for module in (_aim, _mst):
        module.binary_search_chain = partial(module.binary_search_chain, bounds=SCALES)
    _mst.prior = lambda loss: (
        loss * (1 - 1e-12)
    )  # eleven shares, rounded up, would exceed what they are shares of
    _table.binary_search_param = partial(_table.binary_search_param, bounds=SCALES)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--fits", type=int, default=FITS)
    parser.add_argument("--only", choices=("MST", "AIM"), nargs="+", default=["MST", "AIM"])
    parser.add_argument("--model-size", type=float, default=MODEL_SIZE, help="of AIM, in MB")
    given = parser.parse_args()
    both = {
        "MST": dp.mbi.MST(),
        "AIM": dp.mbi.AIM(queries=2, max_size=given.model_size, rounds=ROUNDS),
    }
    algorithms = {name: both[name] for name in given.only}
    bins, sizes = _read(given.out / "bins.csv"), json.loads((given.out / "columns.json").read_text())["sizes"]
    for number in range(1, given.fits + 1):
        for name, algorithm in algorithms.items():
            for epsilon in EPSILONS:
                file = given.out / "binned" / f"{name}-{epsilon:g}-{number}.csv"
                if file.exists():
                    continue
                start = time.process_time()
                made, measured = fit(bins, sizes, algorithm, epsilon)
                seconds = time.process_time() - start
                file.parent.mkdir(exist_ok=True)
                _write(file, made)
                print(f"{file.stem}: {seconds:.0f} s", flush=True)  # noqa: T201 - hours pass
                file.with_suffix(".json").write_text(json.dumps({"seconds": seconds, "measured": measured}))


def _read(path: Path) -> dict[str, np.ndarray]:
    names = path.open(encoding="utf-8").readline().strip().split(",")
    values = np.loadtxt(path, delimiter=",", skiprows=1, dtype=int)
    return dict(zip(names, values.T, strict=True))


def _write(path: Path, bins: dict[str, np.ndarray]) -> None:
    rows = np.column_stack(list(bins.values()))
    np.savetxt(path, rows, delimiter=",", header=",".join(bins), comments="", fmt="%d")


if __name__ == "__main__":
    main()
