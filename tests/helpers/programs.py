"""NumPyro programs that several tests use: ordinary ones, written as their authors would."""

import arviz as az
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax import numpy as jnp

import hedgerow as hr

PRIOR = hr.Prior(residual=0.7, residual_df=3.0, intercept=(0.5, 4.0), coefficients={"z": (0.3, 2.0)})


def _regression(X, y, response):
    """The exact models' prior: β | σ² ~ N(m0, σ² V0), σ² ~ IG(a0, b0)."""
    a0, b0 = 1.5, 1.5 * 0.7**2
    mean, deviation = jnp.array([0.5, 0.3]), jnp.array([4.0, 2.0]) / 0.7
    variance = numpyro.sample("variance", dist.InverseGamma(a0, b0))
    sigma = numpyro.deterministic("sigma", jnp.sqrt(variance))
    beta = numpyro.sample("beta", dist.Normal(mean, sigma * deviation).to_event(1))
    with numpyro.plate("records", X.shape[0]):
        numpyro.sample("x", response(X @ beta, sigma), obs=y)


def lognormal(X, y=None):
    _regression(X, y, dist.LogNormal)


def normal(X, y=None):
    _regression(X, y, dist.Normal)


def wide(X, y=None):
    """The simulation's model with a prior for σ that reaches down to 0."""
    level = numpyro.sample("level", dist.Normal(1.0, 0.5))
    slope = numpyro.sample("slope", dist.Normal(1.0, 0.25))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.5))
    with numpyro.plate("records", X.shape[0]):
        numpyro.sample("x", dist.LogNormal(level + slope * X[:, 1], sigma), obs=y)


def groups(group, levels, y=None):
    """Group effects with a spread of their own; no design matrix."""
    level = numpyro.sample("level", dist.Normal(10.0, 2.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    with numpyro.plate("groups", levels):
        effect = numpyro.sample("effect", dist.Normal(level, spread))
    with numpyro.plate("records", group.shape[0]):
        numpyro.sample("pay", dist.LogNormal(effect[group], sigma), obs=y)


def cells(group, levels, y=None):
    """Group means whose prior makes the exact normal model with one column per group."""
    variance = numpyro.sample("variance", dist.InverseGamma(0.5, 0.5))
    with numpyro.plate("groups", levels):
        mean = numpyro.sample("mean", dist.Normal(0.0, 10.0 * jnp.sqrt(variance)))
    numpyro.sample("x", dist.Normal(mean[group], jnp.sqrt(variance)).to_event(1), obs=y)


def published(X, y=None):
    """The authors' published prior: β normal with LKJ(6) correlation and half-t(3, 0, 1) scales, σ half-t.

    β belongs to raw predictors, in which the posterior is a needle. The same prior is therefore stated for
    b = R β with X = Q R: a change of variables by public numbers, after which NUTS can move.
    """
    width = X.shape[1]
    half_t = dist.FoldedDistribution(dist.StudentT(3.0, 0.0, 1.0))
    scales = numpyro.sample("scales", half_t.expand([width]).to_event(1))
    factor = numpyro.sample("factor", dist.LKJCholesky(width, concentration=6.0))
    Q, R = jnp.linalg.qr(X)
    upper = jnp.linalg.qr((R @ (scales[:, None] * factor)).T, mode="r")
    scale_tril = (upper * jnp.sign(jnp.diag(upper))[:, None]).T
    b = numpyro.sample("b", dist.MultivariateNormal(0.0, scale_tril=scale_tril))
    sigma = numpyro.sample("sigma", half_t)
    with numpyro.plate("records", X.shape[0]):
        numpyro.sample("cycle", dist.LogNormal(Q @ b, sigma), obs=y)


def scores(sample, name, exact):
    """Means and standard deviations of chains against independent draws, in Monte Carlo standard errors."""
    values = sample.parameters[name].reshape(len(sample.parameters[name]), -1)
    chains = sample.health.chains
    kept = len(values) // chains * chains
    by_chain = np.swapaxes(values[:kept].reshape(-1, chains, values.shape[1]), 0, 1)
    data = az.convert_to_dataset({"v": by_chain})
    size = {kind: np.asarray(az.ess(data, method=kind)["v"]) for kind in ("mean", "sd")}
    spread = exact.std(axis=0)
    kurtosis = (((exact - exact.mean(axis=0)) / spread) ** 4).mean(axis=0)
    gap = values.mean(axis=0) - exact.mean(axis=0), values.std(axis=0) - spread
    error = spread, spread * np.sqrt((kurtosis - 1) / 4)
    shrink = [np.sqrt(1 / size[kind] + 1 / len(exact)) for kind in ("mean", "sd")]
    return np.concatenate([gap[k] / (error[k] * shrink[k]) for k in (0, 1)])
