"""Other people's samplers, each fitting one weighted lognormal regression in an environment of its own.

PyStan and nutpie on PyMC run under `.venv-stan/bin/python` (stan/README.md), or the interpreters named by
HEDGEROW_PEER_PYSTAN and HEDGEROW_PEER_PYMC; rstan and brms under the Rscript on the path, or
HEDGEROW_PEER_RSCRIPT. Nothing is installed from here; what is missing is said.
"""

import json
import os
import resource
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import hedgerow as hr

ROOT = Path(__file__).parents[1]
CHAINS, WARMUP = 4, 400
PRIOR = hr.Prior(residual=0.7, residual_df=3.0, intercept=(0.5, 4.0), coefficients={"z": (0.3, 2.0)})

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

# Each script is called with the data; chains, warm-up and draws per chain; where to write draws; the program
# in Stan. It prints seconds of sampling, seconds of compiling and the processor seconds used before sampling.
PYMC = """
import json, os, sys, time
import numpy as np, nutpie, pymc as pm
d = np.load(sys.argv[1]); chains, tune, draws = json.loads(sys.argv[2])
with pm.Model() as model:
    variance = pm.InverseGamma("variance", 1.5, 0.735)
    sigma = variance ** 0.5
    beta = pm.Normal("beta", np.array([0.5, 0.3]), sigma * np.array([4.0, 2.0]) / 0.7, shape=2)
    pm.Potential("x", (d["power"] * pm.logp(pm.LogNormal.dist(d["X"] @ beta, sigma), d["x"])).sum())
t = time.perf_counter(); compiled = nutpie.compile_pymc_model(model); built = time.perf_counter() - t
before = sum(os.times()[:4]); t = time.perf_counter()
r = nutpie.sample(compiled, draws=draws, tune=tune, chains=chains, seed=1, progress_bar=False)
seconds = time.perf_counter() - t; q = r["posterior"]
np.save(sys.argv[3], np.concatenate([q["beta"].values, q["variance"].values[..., None]], -1))
print("RESULT", json.dumps([seconds, built, before]))
"""

PYSTAN = """
import json, os, sys, time
import aiohttp, numpy as np, stan
aiohttp.client.DEFAULT_TIMEOUT = aiohttp.ClientTimeout(total=None)  # compiling may take over 5 minutes
d = np.load(sys.argv[1]); chains, tune, draws = json.loads(sys.argv[2]); code = open(sys.argv[4]).read()
t = time.perf_counter()
m = stan.build(code, data={"n": len(d["x"])} | {k: d[k].tolist() for k in ("X", "x", "power")}, random_seed=1)
built = time.perf_counter() - t
before = sum(os.times()[:4]); t = time.perf_counter()
r = m.sample(num_chains=chains, num_warmup=tune, num_samples=draws)
seconds = time.perf_counter() - t
a = np.vstack([r["beta"], r["variance"]])  # parameter, then draws with chains fastest
np.save(sys.argv[3], a.reshape(3, draws, chains).transpose(2, 1, 0))
print("RESULT", json.dumps([seconds, built, before]))
"""

_R_BEGIN = """
a <- commandArgs(TRUE); options(mc.cores = parallel::detectCores()); now <- function() as.numeric(Sys.time())
d <- read.csv(a[1]); k <- as.integer(strsplit(gsub("[^0-9,]", "", a[2]), ",")[[1]]); t <- now()
"""
_R_END = """
seconds <- now() - t
writeBin(as.vector(aperm(e, c(3, 1, 2))), a[3], size = 8)
cat("RESULT [", seconds, ",", built, ",", before, "]\n")
"""
_R_BUILT = "built <- now() - t; before <- sum(proc.time()[c(1, 2, 4, 5)]); t <- now()"
RSTAN = f"""{_R_BEGIN}
library(rstan); m <- stan_model(a[4])
{_R_BUILT}
r <- sampling(m, data = list(n = nrow(d), X = cbind(1, d$z), x = d$x, power = d$power), chains = k[1],
              warmup = k[2], iter = k[2] + k[3], seed = 1, refresh = 0)
e <- as.array(r)[, , c("beta[1]", "beta[2]", "variance")]
{_R_END}"""
# brms centres predictors and has no priors that grow with sigma; thousands of records outweigh them.
BRMS = f"""{_R_BEGIN}
library(brms)
p <- c(prior(normal(0.5, 4), class = Intercept), prior(normal(0.3, 2), class = b),
       prior(normal(0, 2), class = sigma))
m <- brm(x | weights(power) ~ z, d, family = lognormal(), prior = p, chains = 0)
{_R_BUILT}
r <- update(m, recompile = FALSE, chains = k[1], warmup = k[2], iter = k[2] + k[3], seed = 1, refresh = 0)
e <- as.array(r)[, , c("b_Intercept", "b_z", "sigma")]; e[, , 3] <- e[, , 3]^2
{_R_END}"""

SCRIPTS = {"PyStan": PYSTAN, "nutpie on PyMC": PYMC, "rstan": RSTAN, "brms": BRMS}
_VARIABLES = {"PyStan": "PYSTAN", "nutpie on PyMC": "PYMC", "rstan": "RSCRIPT", "brms": "RSCRIPT"}


class MissingError(Exception):
    """A contender that is not there, or did not finish; says why."""


@dataclass(frozen=True)
class Sampled:
    """Draws by chain of (β₀, β₁, σ²), and what they took: sampling by the clock and in processor seconds."""

    draws: np.ndarray
    seconds: float
    core_seconds: float
    compile_seconds: float


def interpreter_of(name: str) -> str:
    """Who runs the contender's script."""
    variable = f"HEDGEROW_PEER_{_VARIABLES[name]}"
    own = ROOT / ".venv-stan" / "bin" / "python"
    usual = shutil.which("Rscript") if variable.endswith("RSCRIPT") else str(own) if own.exists() else None
    found = os.environ.get(variable) or usual
    if not found:
        raise MissingError(f"no environment for it ({variable} names one)")
    return found


def fit(name: str, x: np.ndarray, z: np.ndarray, power: np.ndarray, draws: int) -> Sampled:
    """`draws` draws per chain of the posterior in which each record's likelihood is raised to its power."""
    interpreter = interpreter_of(name)
    with tempfile.TemporaryDirectory(prefix="hedgerow-bench-") as folder:
        home = Path(folder)
        (home / "model.stan").write_text(STAN)
        in_r = Path(interpreter).name.startswith("Rscript")
        table, script, out = (home / (f"{part}.R" if in_r else f"{part}.py") for part in ("d", "run", "out"))
        out = out.with_suffix(".bin" if in_r else ".npy")
        table = table.with_suffix(".csv" if in_r else ".npz")
        if in_r:
            np.savetxt(table, np.column_stack([x, z, power]), delimiter=",", header="x,z,power", comments="")
        else:
            np.savez(table, X=np.column_stack([np.ones_like(z), z]), x=x, power=power)
        script.write_text(SCRIPTS[name])
        counts = json.dumps([CHAINS, WARMUP, draws])
        used = _children_seconds()
        try:
            done = subprocess.run(
                [interpreter, script, table, counts, out, home / "model.stan"],
                capture_output=True, text=True, check=False, cwd=home,
            )  # fmt: skip
        except OSError as problem:
            raise MissingError(f"{Path(interpreter).name} cannot be run ({problem.strerror})") from None
        used = _children_seconds() - used
        said = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
        if not said:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise MissingError(f"did not finish ({last[:200]})")
        seconds, built, before = json.loads(said[0].removeprefix("RESULT"))
        sampled = np.fromfile(out).reshape(CHAINS, draws, 3) if in_r else np.load(out)
    return Sampled(sampled, seconds, used - before, built)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
