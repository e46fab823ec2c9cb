"""Functions that densities and quantiles are made of, against SciPy's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from hedgerow.models.families.counts import NegativeBinomial, Poisson
from hedgerow.models.programs import masses
from hedgerow.models.programs.potential import x64


@pytest.mark.slow
def test_logarithms_have_all_digits():
    random = np.random.default_rng(1)
    x = np.concatenate([10 ** random.uniform(-300, 300, 1000), random.uniform(0.5, 2, 1000)])
    t = random.normal(0, 20, 1000)
    with x64(True):
        np.testing.assert_allclose(masses.log(jnp.asarray(x)), np.log(x), rtol=4e-16)
        np.testing.assert_array_equal(
            masses.log(jnp.array([0, 1, np.inf, np.nan, -1])), [-np.inf, 0, np.inf, np.nan, np.nan]
        )
        np.testing.assert_allclose(masses.log_sigmoid(jnp.asarray(t)), special.log_expit(t), rtol=1e-15)
        curve = jax.vmap(jax.grad(jax.grad(masses.log_sigmoid)))(jnp.array([-800.0, 0.0, 1.0, 800.0]))
    np.testing.assert_allclose(curve, [0, -0.25, -0.19661193324148185, 0], rtol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("largest", [255, 2000])
def test_ways_and_their_derivatives(largest):
    """From the table, and beyond it."""
    value = np.append(np.random.default_rng(1).integers(0, largest, 300), largest).astype(float)
    with x64(True):
        of_size = lambda size: masses.log_ways(size, jnp.asarray(value)).sum()  # noqa: E731
        found = of_size(2.5), jax.grad(of_size)(2.5), jax.hessian(of_size)(2.5)
    ways = special.gammaln(2.5 + value) - special.gammaln(2.5) - special.gammaln(value + 1)
    slopes = (special.polygamma(k, 2.5 + value) - special.polygamma(k, 2.5) for k in (0, 1))
    np.testing.assert_allclose(found, [ways.sum(), *(slope.sum() for slope in slopes)], rtol=1e-11)


@pytest.mark.slow
def test_beta_masses_for_quantiles():
    random = np.random.default_rng(1)
    a, b = 10 ** random.uniform(-2, 4, (2, 2000))
    share = np.clip(stats.beta.rvs(a, b, random_state=random), 1e-300, 1 - 1e-16)
    with x64(True):
        found = np.asarray(masses.lower_beta(a, b, share, 1 - share))
    np.testing.assert_allclose(found, special.betainc(a, b, share), atol=1e-11)
    with x64(True):
        ends = masses.lower_beta(2.0, 3.0, jnp.array([0.0, 1.0]), jnp.array([1.0, 0.0]))
    np.testing.assert_array_equal(ends, [0, 1])


@pytest.mark.slow
@pytest.mark.parametrize("mean", [3.0, 1e5])
def test_counts_are_the_smallest_that_reach_their_uniform(mean):
    """By summing, and from 1e5 on by a search; neighbours where the uniform is within rounding of a step."""
    uniforms = np.append(np.random.default_rng(1).uniform(size=300), [2.0**-53, 1 - 2.0**-53])
    with x64(True):
        log_mean = jnp.full(302, np.log(mean))
        pairs = (
            (Poisson(log_mean), stats.poisson(mean)),
            (NegativeBinomial(log_mean, jnp.asarray(0.7)), stats.nbinom(0.7, 0.7 / (0.7 + mean))),
        )
        for response, oracle in pairs:
            found = np.asarray(response.quantile(jnp.asarray(uniforms)))
            assert (oracle.cdf(found) >= uniforms * (1 - 1e-9)).all()
            inner = (found > 0) & (uniforms < 1 - 1e-9)
            assert (oracle.cdf(found - 1) < uniforms * (1 + 1e-9))[inner].all()
