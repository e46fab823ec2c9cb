"""The application's other prior: its sampler against integrals, and against NUTS."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from scipy.stats import t as student

import hedgerow as hr
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table
from hedgerow_studies.paper import authors_prior
from hedgerow_studies.paper.application import FORMULA
from hedgerow_studies.paper.authors_prior import AuthorsLognormal, hyperprior


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
def test_agrees_with_importance_sampling(design):
    """Hyperparameters and σ from their prior by other means, β in closed form, weighted by its evidence.

    Quartiles in units of their standard errors, taken from 20 batches of each sample: nine of them beyond
    4.5 by chance have p < 3e-3 with the t distribution of 19 degrees of freedom. NUTS is no reference: on
    a tenth of its draws it diverges, and it misses the heavy tail of the intercept.
    """
    import jax
    from numpyro import distributions as dist

    power, count = np.linspace(0.2, 1, 19), 600_000
    random = np.random.default_rng(11)
    scale, sigma = np.abs(random.standard_t(3, (count, 3))), np.abs(random.standard_t(3, count))
    root = np.asarray(dist.LKJCholesky(3, 6.0).sample(jax.random.PRNGKey(4), (count,)), dtype=np.float64)
    factor = scale[:, :, None] * root
    covariance = factor @ factor.transpose(0, 2, 1)
    Z, y = design.matrix, np.log(design.values)
    gram, cross = (Z * power[:, None]).T @ Z, (Z * power[:, None]).T @ y
    precision = np.linalg.inv(covariance) + gram / sigma[:, None, None] ** 2
    mean = np.linalg.solve(precision, (cross / sigma[:, None] ** 2)[:, :, None])[:, :, 0]
    evidence = (
        -power.sum() * np.log(sigma)
        + (mean @ cross - power @ y**2) / (2 * sigma**2)
        - (np.linalg.slogdet(precision)[1] + np.linalg.slogdet(covariance)[1]) / 2
    )
    weight = np.where(np.isfinite(evidence), np.exp(evidence - np.nanmax(evidence)), 0.0)
    assert weight.sum() ** 2 / (weight**2).sum() > 10_000
    chosen = np.concatenate(
        [
            part[random.choice(len(part), 1000, p=weight[part] / weight[part].sum())]
            for part in np.array_split(np.arange(count), 20)
        ]
    )
    spread = np.linalg.cholesky(np.linalg.inv(precision[chosen]))
    theirs = mean[chosen] + (spread @ random.normal(size=(20_000, 3, 1)))[:, :, 0]
    ours = AuthorsLognormal().sample(design, power, draws=20_000, key=Key.from_seed(3)).parameters
    assert np.median(ours["sigma"]) == pytest.approx(np.median(sigma[chosen]), rel=0.02)

    def quartiles(draws):
        batches = np.quantile(draws.reshape(20, 1000, 3), [0.25, 0.5, 0.75], axis=1)
        return batches.mean(axis=1), batches.std(axis=1, ddof=1) / np.sqrt(20)

    (want, error), (got, own_error) = quartiles(theirs), quartiles(ours["beta"])
    assert (np.abs(got - want) < 4.5 * np.hypot(error, own_error)).all()
