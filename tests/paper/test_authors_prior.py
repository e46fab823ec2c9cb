"""The application's other prior: its sampler against integrals, and against NUTS."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from scipy.stats import t as student

import hedgerow as hr
from hedgerow import design as designs
from hedgerow.keys import Key
from hedgerow.studies import authors_prior
from hedgerow.studies.application import FORMULA
from hedgerow.studies.authors_prior import AuthorsLognormal, hyperprior
from hedgerow.table import Table


@pytest.fixture(scope="module")
def design():
    return designs.build(FORMULA, Table.of(hr.datasets.fatigue(paper=True)))


def test_scales_and_correlations_have_the_stated_law():
    roots = hyperprior(3)
    covariance = roots @ roots.transpose(0, 2, 1)
    scale = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    # half-t(3): the median of |t| is the 75 % quantile of t. Quasi-random points are better than 1/√n.
    assert np.median(scale, axis=0) == pytest.approx(student.ppf(0.75, 3), rel=0.01)
    correlation = covariance / (scale[:, :, None] * scale[:, None, :])
    for i, j in ((0, 1), (0, 2), (1, 2)):
        # LKJ(η) in d dimensions: r ~ 2 Beta(a, a) − 1 with a = η − 1 + d/2, so its variance is 1/(2a + 1).
        assert correlation[:, i, j].mean() == pytest.approx(0, abs=0.01)
        assert correlation[:, i, j].var() == pytest.approx(1 / (2 * (6 - 1 + 1.5) + 1), rel=0.02)


def test_the_weight_of_a_point_is_its_marginal_likelihood(design):
    mixture = AuthorsLognormal().mixture(design, np.ones(19))
    root, y = hyperprior(3), np.log(design.values)

    def direct(k: int, s: int) -> float:
        sigma = authors_prior._SIGMA[s]
        spread = design.matrix @ root[k]
        marginal = multivariate_normal(np.zeros(19), spread @ spread.T + sigma**2 * np.eye(19))
        return float(marginal.logpdf(y) + student.logpdf(sigma, 3) + np.log(sigma))

    pairs = [(k, s) for k in (3, 400, 5000) for s in (50, 60, 75)]
    gaps = [mixture.log_weight[k, s] - direct(k, s) for k, s in pairs]
    assert gaps == pytest.approx([gaps[0]] * len(gaps), abs=1e-6)


def test_weight_zero_is_deletion(design):
    power = np.ones(19)
    power[4] = 0.0
    fewer = hr.datasets.fatigue(paper=True).drop(index=4)
    without = designs.build(FORMULA, Table.of(fewer))
    model, key = AuthorsLognormal(), Key.from_seed(1)
    first = model.sample(design, power, draws=200, key=key).parameters
    second = model.sample(without, np.ones(18), draws=200, key=key).parameters
    assert first["beta"] == pytest.approx(second["beta"], rel=1e-6)
    assert first["sigma"] == pytest.approx(second["sigma"], rel=1e-6)


def test_power_zero_gives_back_the_prior(design):
    sample = AuthorsLognormal().sample(design, np.zeros(19), draws=4000, key=Key.from_seed(2)).parameters
    assert np.median(sample["sigma"]) == pytest.approx(student.ppf(0.75, 3), rel=0.08)
    assert np.median(sample["beta"], axis=0) == pytest.approx(0, abs=0.08)


@pytest.mark.slow
def test_agrees_with_nuts(design):
    """β is heavy-tailed, so its middle is compared; NUTS diverges on a few per cent of these draws."""
    import jax
    import numpyro
    from numpyro import distributions as dist
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)
    power = np.linspace(0.2, 1, 19)

    def program():
        half_t = dist.FoldedDistribution(dist.StudentT(3.0, 0.0, 1.0))
        scale = numpyro.sample("scale", half_t.expand([3]).to_event(1))
        root = numpyro.sample("root", dist.LKJCholesky(3, 6.0))
        raw = numpyro.sample("raw", dist.Normal().expand([3]).to_event(1))
        beta = numpyro.deterministic("beta", scale * (root @ raw))
        sigma = numpyro.sample("sigma", half_t)
        likelihood = dist.Normal(design.matrix @ beta, sigma).log_prob(np.log(design.values))
        numpyro.factor("weighted", (power * likelihood).sum())

    chain = MCMC(NUTS(program, target_accept_prob=0.95), num_warmup=800, num_samples=3000, progress_bar=False)
    chain.run(jax.random.PRNGKey(0))
    theirs = {name: np.asarray(value) for name, value in chain.get_samples().items()}
    ours = AuthorsLognormal().sample(design, power, draws=4000, key=Key.from_seed(3)).parameters
    assert np.median(ours["sigma"]) == pytest.approx(np.median(theirs["sigma"]), rel=0.06)
    for j in range(3):
        low, middle, high = np.quantile(theirs["beta"][:, j], [0.25, 0.5, 0.75])
        assert abs(np.median(ours["beta"][:, j]) - middle) < 0.2 * (high - low)
        assert np.subtract(*np.quantile(ours["beta"][:, j], [0.75, 0.25])) == pytest.approx(
            high - low, rel=0.25
        )
