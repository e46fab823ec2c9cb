"""The exact models against closed forms, brute force and refitting."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import hedgerow as hr
from hedgerow.models.conjugate import _log_gamma_drop
from hedgerow.models.exact import Asinh
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table

PRIOR = hr.Prior(residual=0.7, residual_df=3.0, intercept=(0.5, 4.0), coefficients={"z": (0.3, 2.0)})

MODELS = (hr.Lognormal(prior=PRIOR), hr.Normal(prior=PRIOR), Asinh(prior=PRIOR, scale=0.7))


def example(n=40, seed=0):
    random = np.random.default_rng(seed)
    z = random.normal(size=n)
    table = Table.of(pd.DataFrame({"x": np.exp(0.4 + z + random.normal(size=n)), "z": z}))
    return designs.build("x ~ z", table), random.uniform(0, 1, n)


def naive(model, design, power):
    """The textbook formulas, with explicit inverses."""
    y = model.response(design.values)
    level, deviation = model.prior.moments(design)
    C = model.prior.contrasts(design)
    V0_inverse, mean = C.T @ np.diag(1 / deviation**2) @ C, np.linalg.solve(C, level)
    A = np.diag(power)
    Z = design.matrix
    precision = V0_inverse + Z.T @ A @ Z
    centre = np.linalg.solve(precision, V0_inverse @ mean + Z.T @ A @ y)
    shape = model.prior.shape + power.sum() / 2
    rate = model.prior.rate + 0.5 * (mean @ V0_inverse @ mean + y @ A @ y - centre @ precision @ centre)
    return precision, centre, shape, rate


def log_evidence(model, design, power):
    """log ∫ ξ(θ) ∏ N(y_i)^power_i, without the Jacobian."""
    precision, _, shape, rate = naive(model, design, power)
    _, deviation = model.prior.moments(design)
    from scipy.special import gammaln

    return (
        -power.sum() / 2 * np.log(2 * np.pi)
        - np.log(deviation).sum()
        - np.linalg.slogdet(precision)[1] / 2
        + model.prior.shape * np.log(model.prior.rate)
        - shape * np.log(rate)
        + gammaln(shape)
        - gammaln(model.prior.shape)
    )


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
def test_posterior_is_the_textbook_one(model):
    design, power = example()
    found = model.posterior(design, power)
    precision, centre, shape, rate = naive(model, design, power)
    np.testing.assert_allclose(found.factor.T @ found.factor, precision, rtol=1e-12)
    np.testing.assert_allclose(found.mean, centre, rtol=1e-12)
    np.testing.assert_allclose([found.shape, found.rate], [shape, rate], rtol=1e-12)


def test_the_rate_survives_a_large_offset():
    """b from summed squares would lose all its digits here; from the triangular factor it does not."""
    random = np.random.default_rng(1)
    z = random.normal(size=500)
    error = random.normal(size=500)
    offset = 1e8
    rates = []
    for shift in (0.0, offset):
        table = Table.of(pd.DataFrame({"x": shift + z + error, "z": z}))
        model = hr.Normal(prior=hr.Prior(intercept=(shift, 1000.0)))
        rates.append(model.posterior(designs.build("x ~ z", table), np.ones(500)).rate)
    assert rates[1] == pytest.approx(rates[0], rel=1e-6)


def test_draws_have_the_closed_form_moments():
    """40,000 independent draws; seven z-scores beyond 4.5 in absolute value have p < 5e-5 together."""
    model = hr.Lognormal(prior=PRIOR)
    design, power = example()
    precision, centre, shape, rate = naive(model, design, power)
    count = 40_000
    draws = model.posterior(design, power).draw(count, Key.from_seed(11))
    variance = rate / (shape - 1)
    covariance = variance * np.linalg.inv(precision)
    scores = [
        *((draws.beta.mean(axis=0) - centre) / np.sqrt(np.diag(covariance) / count)),
        (np.mean(draws.sigma**2) - variance) / (np.std(draws.sigma**2) / np.sqrt(count)),
        (np.mean(1 / draws.sigma**2) - shape / rate) / np.sqrt(shape / rate**2 / count),
    ]
    sample = np.cov(draws.beta.T)
    spread = np.sqrt((covariance**2 + np.outer(np.diag(covariance), np.diag(covariance))) / count)
    scores += list(((sample - covariance) / spread)[np.triu_indices(2)])
    # The t marginals make second moments noisier than the normal formula says.
    assert np.abs(scores[:4]).max() < 4.5
    assert np.abs(scores[4:]).max() < 4.5 * 1.5
    # σ² ~ IG(shape, rate) as a distribution; false alarm 1e-4.
    assert stats.kstest(draws.sigma**2, stats.invgamma(shape, scale=rate).cdf).pvalue > 1e-4


def test_log_lik_and_mass_are_scipys():
    model = hr.Lognormal(prior=PRIOR)
    design, power = example()
    sample = model.sample(design, power, draws=100, key=Key.from_seed(2))
    table = Table.of(pd.DataFrame({"x": design.values}))
    interval = hr.Radius(0.4, 1.8).interval(design.values, table)
    mean = sample.parameters["beta"] @ design.matrix.T
    reference = stats.lognorm(s=sample.parameters["sigma"][:, None], scale=np.exp(mean))
    every = slice(None)
    np.testing.assert_allclose(
        model.log_lik(design, sample.parameters, every), reference.logpdf(design.values), rtol=1e-10
    )
    mass = reference.cdf(1.8 * design.values) - reference.cdf(0.4 * design.values)
    found = np.exp(model.log_mass(design, sample.parameters, interval, every))
    np.testing.assert_allclose(found, mass, rtol=1e-8, atol=1e-14)


def test_predictions_follow_their_distribution():
    """Kolmogorov–Smirnov on 20,000 values, false alarm 1e-4."""
    design, _ = example(n=20_000)
    model = hr.Lognormal()
    parameters = {"beta": np.array([0.2, 0.9]), "sigma": np.array(1.3)}
    values = model.predict(design, parameters, Key.from_seed(5).stream().uniform(20_000))
    residual = (np.log(values) - design.matrix @ parameters["beta"]) / parameters["sigma"]
    assert stats.kstest(residual, "norm").pvalue > 1e-4


@pytest.mark.parametrize("model", MODELS, ids=lambda m: m.name)
@pytest.mark.parametrize("kept", [0.0, 0.6], ids=["withheld", "share kept"])
def test_exact_loss_is_brute_force_refitting(model, kept):
    """log ξ(θ|x) − log ξ(θ|neighbour) from two evidences, for every record and draw."""
    design, power = example()
    share = (1 - kept) * power
    sample = model.sample(design, power, draws=100, key=Key.from_seed(3))
    constant = sample.influence().loss_constant(share)
    log_lik = model.log_lik(design, sample.parameters, slice(None))
    loss = share * log_lik - constant
    bare = log_lik - model.jacobian(design)
    whole = log_evidence(model, design, power)
    for i in range(design.records):
        other = power.copy()
        other[i] -= share[i]
        expected = share[i] * bare[:, i] - (whole - log_evidence(model, design, other))
        np.testing.assert_allclose(loss[:, i], expected, rtol=0, atol=1e-8)


def test_exp_of_minus_loss_averages_to_one():
    """Importance identity, for records where its variance is finite. z beyond 4.5 in 40: p < 3e-4."""
    model = hr.Lognormal(prior=PRIOR)
    design, power = example()
    posterior = model.posterior(design, power)
    count = 20_000
    draws = posterior.draw(count, Key.from_seed(4))
    parameters = {"beta": draws.beta, "sigma": draws.sigma}
    influence = model.influence(design, power, posterior)
    loss = power * model.log_lik(design, parameters, slice(None)) - influence.loss_constant(power)
    leverage = influence.leverage
    residual = model.response(design.values) - design.matrix @ posterior.mean
    # Finite third moments too, so that the normal approximation to the mean is a fair one.
    finite = (3 * leverage < 1) & (posterior.rate > 3 * power * residual**2 / 2 / (1 - 3 * leverage))
    assert finite.sum() > 20
    ratio = np.exp(-loss[:, finite])
    score = (ratio.mean(axis=0) - 1) / (ratio.std(axis=0) / np.sqrt(count))
    assert np.abs(score).max() < 4.5


@pytest.mark.parametrize("shape", [0.6, 3.0, 49.9, 50.1, 1e3, 1e6])
def test_gamma_drop_keeps_its_digits(shape):
    import mpmath

    half = np.array([0.0, 1e-9, 0.01, 0.3, 0.5])
    with mpmath.workdps(50):
        expected = [float(mpmath.loggamma(shape) - mpmath.loggamma(mpmath.mpf(shape) - h)) for h in half]
    np.testing.assert_allclose(_log_gamma_drop(shape, half), expected, rtol=1e-11, atol=1e-13)


def test_priors_do_not_see_the_outcome():
    design, _ = example()
    moved = design.replace_values(design.values * 1e6)
    for one, two in zip(hr.Prior().moments(design), hr.Prior().moments(moved), strict=True):
        np.testing.assert_array_equal(one, two)
