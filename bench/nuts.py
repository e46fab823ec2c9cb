"""Effective draws per second of the two-fit procedure: hedgerow's samplers, its exact model, and peers.

    python bench/nuts.py --quick --pymc PYTHON --pystan PYTHON --rscript RSCRIPT

Peers live in environments of their own (PyMC pins an older numba): name their interpreters, or set
HEDGEROW_PEER_PYMC, HEDGEROW_PEER_PYSTAN and HEDGEROW_PEER_RSCRIPT. Nothing is installed; what is missing is
said. Each contender fits the lognormal regression unweighted and then with the weights of ADP: the same
table, the same powers, four chains. Counted are seconds of sampling, compilation apart, and the smallest
bulk ESS over the parameters, by ArviZ, summed over the two fits.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

CHAINS, WARMUP, DRAWS = 4, 400, 500  # per chain

STAN = """
data { int n; matrix[n, 2] X; vector[n] x; vector[n] power; }
transformed data { vector[n] y = log(x); }
parameters { vector[2] beta; real<lower=0> variance; }
transformed parameters { real sigma = sqrt(variance); }
model {
  variance ~ inv_gamma(1.5, 0.735);
  beta[1] ~ normal(0.5, sigma * 4.0 / 0.7);
  beta[2] ~ normal(0.3, sigma * 2.0 / 0.7);
  target += dot_product(power, -log(sigma) - 0.5 * square((y - X * beta) / sigma));
}
"""

PYMC = """
import json, sys, time
import numpy as np, nutpie, pymc as pm
d = np.load(sys.argv[1]); chains, tune, draws = json.loads(sys.argv[2])
with pm.Model() as model:
    power = pm.Data("power", np.ones(len(d["x"])))
    variance = pm.InverseGamma("variance", 1.5, 0.735)
    sigma = variance ** 0.5
    beta = pm.Normal("beta", np.array([0.5, 0.3]), sigma * np.array([4.0, 2.0]) / 0.7, shape=2)
    mean = d["X"] @ beta
    pm.Potential("x", (power * pm.logp(pm.LogNormal.dist(mean, sigma), d["x"])).sum())
t = time.perf_counter(); compiled = nutpie.compile_pymc_model(model); built = time.perf_counter() - t
out, seconds = [], 0.0
for p in (np.ones(len(d["x"])), d["power"]):
    now = compiled.with_data(power=p)
    t = time.perf_counter()
    r = nutpie.sample(now, draws=draws, tune=tune, chains=chains, seed=1, progress_bar=False)
    seconds += time.perf_counter() - t
    q = r["posterior"]
    out.append(np.concatenate([q["beta"].values, q["variance"].values[..., None]], -1))
np.save(sys.argv[3], np.stack(out)); print("RESULT", json.dumps([seconds, built]))
"""

PYSTAN = """
import json, sys, time
import numpy as np, stan
d = np.load(sys.argv[1]); chains, tune, draws = json.loads(sys.argv[2]); code = open(sys.argv[4]).read()
out, seconds, built = [], 0.0, 0.0
for p in (np.ones(len(d["x"])), d["power"]):
    t = time.perf_counter()
    m = stan.build(code, data={"n": len(p), "X": d["X"].tolist(), "x": d["x"].tolist(), "power": p.tolist()},
                   random_seed=1)
    built += time.perf_counter() - t; t = time.perf_counter()
    r = m.sample(num_chains=chains, num_warmup=tune, num_samples=draws)
    seconds += time.perf_counter() - t
    a = np.vstack([r["beta"], r["variance"]])  # parameter, then draws with chains fastest
    out.append(a.reshape(3, draws, chains).transpose(2, 1, 0))
np.save(sys.argv[3], np.stack(out)); print("RESULT", json.dumps([seconds, built]))
"""

RSTAN = """
a <- commandArgs(TRUE); library(rstan); options(mc.cores = parallel::detectCores())
d <- read.csv(a[1]); k <- as.integer(strsplit(a[2], ",")[[1]])
t <- Sys.time(); m <- stan_model(a[4]); built <- as.numeric(Sys.time() - t, units = "secs")
secs <- 0; rows <- NULL
for (p in list(rep(1, nrow(d)), d$power)) {
  t <- Sys.time()
  r <- sampling(m, data = list(n = nrow(d), X = cbind(1, d$z), x = d$x, power = p), chains = k[1],
                warmup = k[2], iter = k[2] + k[3], seed = 1, refresh = 0)
  secs <- secs + as.numeric(Sys.time() - t, units = "secs")
  e <- as.array(r)[, , c("beta[1]", "beta[2]", "variance")]
  rows <- c(rows, as.vector(aperm(e, c(3, 1, 2))))
}
writeBin(rows, a[3], size = 8); cat("RESULT [", secs, ",", built, "]\n")
"""


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
    import programs

    import hedgerow as hr
    from hedgerow.tables import design as designs
    from hedgerow.tables.table import Table

    data = hr.datasets.lognormal(n=records, seed=1)
    power = hr.Synthesizer("x ~ z", hr.Lognormal(prior=programs.PRIOR), seed=1).fit(data).alpha_
    return designs.build("x ~ z", Table.of(data)), power, data["z"].to_numpy()


def own(design: object, power: np.ndarray, sampler: str) -> Result:
    """NUTS over hedgerow's potential."""
    import programs

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
    import programs

    import hedgerow as hr
    from hedgerow.randomness import Key

    model, draws = hr.Lognormal(prior=programs.PRIOR), CHAINS * DRAWS
    model.sample(design, power, draws=draws, key=Key.from_seed(0))
    began = time.perf_counter()
    for powers in (np.ones(design.records), power):
        model.sample(design, powers, draws=draws, key=Key.from_seed(1))
    return Result("hedgerow, exact", design.records, time.perf_counter() - began, 0.0, 2.0 * draws)


def peer(name: str, interpreter: str, design: object, power: np.ndarray, z: np.ndarray) -> Result | str:
    """A peer in its own environment, or why there is none."""
    if not interpreter:
        return f"{name}: no environment named (--{name} or HEDGEROW_PEER_{name.upper()})"
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "model.stan").write_text(STAN)
        counts = [CHAINS, WARMUP, DRAWS]
        if name == "rscript":
            table, script = home / "d.csv", home / "run.R"
            np.savetxt(table, np.column_stack([design.values, z, power]), delimiter=",", header="x,z,power",
                       comments="")  # fmt: skip
            script.write_text(RSTAN)
            arguments = [
                str(table),
                ",".join(map(str, counts)),
                str(home / "out.bin"),
                str(home / "model.stan"),
            ]
        else:
            table, script = home / "d.npz", home / "run.py"
            np.savez(table, X=design.matrix, x=design.values, power=power)
            script.write_text(PYMC if name == "pymc" else PYSTAN)
            arguments = [str(table), json.dumps(counts), str(home / "out.npy"), str(home / "model.stan")]
        try:
            done = subprocess.run(
                [interpreter, str(script), *arguments],
                capture_output=True,
                text=True,
                check=False,
                cwd=folder,
            )
        except OSError as problem:
            return f"{name}: {interpreter} cannot be run ({problem.strerror})"
        said = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
        if not said:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return f"{name}: did not finish ({last[:200]})"
        seconds, built = json.loads(said[0].removeprefix("RESULT"))
        if name == "rscript":
            fits = np.fromfile(home / "out.bin").reshape(2, CHAINS, DRAWS, 3)
        else:
            fits = np.load(home / "out.npy")
    label = {"pymc": "nutpie on PyMC", "pystan": "PyStan", "rscript": "rstan"}[name]
    return Result(label, design.records, seconds, built, effective(fits))


def run(
    quick: bool, peers: dict[str, str] | None = None, sizes: tuple[int, ...] = (), skip: tuple[str, ...] = ()
) -> list[Result]:
    """All contenders at n = 2,000 and, unless quick, 100,000; results are told as they come."""
    warnings.simplefilter("ignore")  # ArviZ announces its next version on import
    named = peers or {}
    results = []
    for records in sizes or ((2000,) if quick else (2000, 100_000)):
        design, power, z = prepare(records)
        contenders: dict[str, Callable[[], Result | str]] = {
            "nutpie": lambda design=design, power=power: own(design, power, "nutpie"),
            "exact": lambda design=design, power=power: exact(design, power),
            "numpyro": lambda design=design, power=power: own(design, power, "numpyro"),
        }
        for name in ("pymc", "pystan", "rscript"):
            interpreter = named.get(name) or os.environ.get(f"HEDGEROW_PEER_{name.upper()}", "")
            contenders[name] = lambda name=name, interpreter=interpreter, design=design, power=power, z=z: (
                peer(name, interpreter, design, power, z)
            )
        for name, contend in contenders.items():
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
    parser.add_argument("--skip", nargs="*", default=[], help="nutpie exact numpyro pymc pystan rscript")
    for peer_name in ("pymc", "pystan", "rscript"):
        parser.add_argument(f"--{peer_name}", default="")
    given = vars(parser.parse_args())
    sizes, skip = tuple(given.pop("sizes")), tuple(given.pop("skip"))
    print(table(run(given.pop("quick"), given, sizes, skip)))
