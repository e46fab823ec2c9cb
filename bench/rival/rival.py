"""AIM, MST and a plain noisy table by OpenDP, on the tables that `ours` wrote. Runs in its own environment.

Each method sees the pairs (z, log x) in public bins and releases a noisy joint distribution of bins. From
one fit come three copies, all post-processing:

- "z kept, stratified": for the real z's in a bin, bins of log x in the proportions of the fitted model given
  that bin, by stratified uniforms (as mbi itself fills its second column); then uniform within the bin;
- "z kept, independent": the same with independent draws, which is how hedgerow predicts;
- "both made": mbi's own synthetic rows for both columns, n of them, uniform within bins.

OpenDP takes its noise from the operating system and cannot be seeded: a second run differs.
"""

import logging
import time
import warnings
from functools import partial

import numpy as np
import opendp.prelude as dp
import polars as pl
from opendp.extras.mbi import _aim, _fixed, _mst, _table

from bench.rival.plan import DELTA, EPSILONS, GRIDS, Case, Grid, Shelf, arguments, cases, read

dp.enable_features("contrib")
logging.disable(logging.WARNING)
warnings.filterwarnings("ignore", message=".*(rho|epsilon) should be less.*")

# OpenDP looks for every noise scale upwards from 0, where its check raises, and halves a thousand times to
# learn where it no longer does. The same search and check within bounds find the same scale, sooner.
SCALES = (1e-6, 1e6)
for module in (_aim, _fixed, _mst):
    module.binary_search_chain = partial(module.binary_search_chain, bounds=SCALES)
_table.binary_search_param = partial(_table.binary_search_param, bounds=SCALES)

PAIR = ("z", "y")
TWO_WAY = dp.mbi.Fixed(queries=[dp.mbi.Count(PAIR)], oneway="unkeyed")  # the whole ε on one table
# Name, algorithm, guarantee. In the last three noise is Laplace and δ = 0.
METHODS = (
    ("AIM", dp.mbi.AIM(), "approximate"),
    ("MST", dp.mbi.MST(), "approximate"),
    ("AIM, δ = 0", dp.mbi.AIM(), "pure"),
    ("MST, δ = 0", dp.mbi.MST(), "pure"),
    ("two-way table, δ = 0", TWO_WAY, "pure"),
)


def concentrated(epsilon: float, delta: float) -> float:
    """The largest ρ whose zero-concentrated DP gives (ε, δ)-DP, by OpenDP's own conversion."""

    def fits(scale: float) -> bool:
        gaussian = dp.m.make_gaussian(
            dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale
        )
        return dp.c.make_zCDP_to_approxDP(gaussian).map(1.0).epsilon(delta) <= epsilon

    return 1 / (2 * dp.binary_search(fits, bounds=(0.05, 1000.0)) ** 2)


def fit(x: np.ndarray, z: np.ndarray, grid: Grid, algorithm, spend: dict[str, float]):
    """A contingency table released under `spend`; the unit of privacy is one row added or removed."""
    context = dp.Context.compositor(
        data=pl.LazyFrame({"z": z, "y": np.log(x)}),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(**spend),
    )
    # OpenDP's cuts are the inner edges; its first and last bin are open.
    cuts = {"z": grid.z[1:-1].tolist(), "y": grid.y[1:-1].tolist()}
    return context.query(**spend).select(*PAIR).contingency_table(cuts=cuts, algorithm=algorithm).release()


def bins(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """OpenDP's bins: open on the left, closed on the right, the outer ones without end."""
    return np.searchsorted(edges[1:-1], values, side="left")


def within(index: np.ndarray, edges: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return random.uniform(edges[index], edges[index + 1])


def given_z(joint: np.ndarray, z: np.ndarray, grid: Grid, random: np.random.Generator, *, independent: bool):
    """One x for each real z, from the model's bins of log x given the bin of z."""
    index = np.empty(len(z), dtype=int)
    place = bins(z, grid.z)
    for row in np.unique(place):
        members = np.flatnonzero(place == row)
        # A bin of z to which the model gives no mass says nothing about x: take the margin.
        share = joint[row] if joint[row].sum() > 0 else joint.sum(axis=0)
        share = share / share.sum()
        uniform = random.uniform(size=len(members))
        if not independent:
            uniform = (random.permutation(len(members)) + uniform) / len(members)
        index[members] = np.minimum(np.searchsorted(np.cumsum(share), uniform, side="right"), len(share) - 1)
    return np.exp(within(index, grid.y, random))


def release(shelf: Shelf, case: Case, name: str, algorithm, guarantee: str, grid: Grid, rho: float) -> None:
    method = f"{name}, {grid.label}"
    if shelf.has(method, "both made", case):
        return
    x, z = read(case.table(shelf.out))
    spend = {"rho": rho} if guarantee == "approximate" else {"epsilon": case.epsilon}
    start = time.process_time()
    table = fit(x, z, grid, algorithm, spend)
    seconds = time.process_time() - start
    joint = np.asarray(table.project(PAIR), dtype=float)
    if joint.shape != (len(grid.z) - 1, len(grid.y) - 1):
        raise RuntimeError(f"The model's domain is {joint.shape}, not {grid.label}.")
    measured = "; ".join(f"{'·'.join(m.clique)} ±{m.stddev:.3g}" for m in table.marginals.flatten())
    random = np.random.default_rng([case.seed, case.n, len(shelf.copies)])
    made = table.model.synthetic_data(case.n).to_dict()  # bin numbers, n rows
    outputs = {
        "z kept, stratified": (given_z(joint, z, grid, random, independent=False), z),
        "z kept, independent": (given_z(joint, z, grid, random, independent=True), z),
        "both made": (
            np.exp(within(np.asarray(made["y"], dtype=int), grid.y, random)),
            within(np.asarray(made["z"], dtype=int), grid.z, random),
        ),
    }
    shelf.add(method, guarantee, case, outputs, seconds=seconds, detail=measured)


def bins_alone(shelf: Shelf, case: Case, grid: Grid) -> None:
    """What binning costs by itself: the real counts, no noise, no privacy."""
    method = f"bins alone, {grid.label}"
    if shelf.has(method, "z kept, independent", case):
        return
    x, z = read(case.table(shelf.out))
    joint = np.zeros((len(grid.z) - 1, len(grid.y) - 1))
    np.add.at(joint, (bins(z, grid.z), bins(np.log(x), grid.y)), 1)
    random = np.random.default_rng([case.seed, case.n])
    outputs = {
        f"z kept, {'independent' if independent else 'stratified'}": (
            given_z(joint, z, grid, random, independent=independent),
            z,
        )
        for independent in (False, True)
    }
    shelf.add(method, "none", case, outputs, seconds=0.0)


def main() -> None:
    given = arguments(__doc__).parse_args()
    shelf = Shelf(given.out, "rival")
    rho = {epsilon: concentrated(epsilon, DELTA) for epsilon in EPSILONS}
    todo = cases(given)
    for number, case in enumerate(todo, 1):
        for grid in GRIDS:
            bins_alone(shelf, case, grid)
        for name, algorithm, guarantee in METHODS:
            for grid in GRIDS:
                release(shelf, case, name, algorithm, guarantee, grid, rho[case.epsilon])
        print(f"{number}/{len(todo)} {case.name}", flush=True)


if __name__ == "__main__":
    main()
