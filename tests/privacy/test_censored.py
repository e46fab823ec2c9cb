"""The censored likelihood: every factor within ε at any parameter, and words that stay below "strict"."""

import gc

import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from helpers import programs
from scipy import stats

import hedgerow as hr
from hedgerow.models.programs.potential import Potential
from hedgerow.models.scored import Linear
from hedgerow.privacy.censored import Clipped
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.strict import StrictWeights
from hedgerow.privacy.weights import Evidence
from hedgerow.randomness import Key
from hedgerow.release.certificate import Certificate, Copy
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table


def regression(X, y=None):
    level = numpyro.sample("level", dist.Normal(1.0, 0.5))
    slope = numpyro.sample("slope", dist.Normal(1.0, 0.25))
    sigma = numpyro.sample("sigma", dist.LogNormal(0.0, 0.25))
    with numpyro.plate("records", X.shape[0]):
        numpyro.sample("x", dist.LogNormal(level + slope * X[:, 1], sigma), obs=y)


def counts(X, y=None):
    level = numpyro.sample("level", dist.Normal(1.0, 0.5))
    with numpyro.plate("records", X.shape[0]):
        numpyro.sample("x", dist.Poisson(np.e**level), obs=y)


def one_parameter(X, y=None):
    level = numpyro.sample("level", dist.Normal(1.0, 0.5))
    with numpyro.plate("records", X.shape[0]):
        numpyro.sample("x", dist.LogNormal(level, 1.0), obs=y)


def improper(X, y=None):
    level = numpyro.sample("level", dist.ImproperUniform(dist.constraints.real, (), ()))
    with numpyro.plate("records", X.shape[0]):
        numpyro.sample("x", dist.LogNormal(level, 1.0), obs=y)


def tables():
    plain = hr.datasets.lognormal(40, seed=3)
    outlier = plain.copy()
    outlier.loc[0, "x"], outlier.loc[1, "x"] = np.exp(35.0), np.exp(-30.0)
    return {"plain": plain, "30 sigma": outlier, "units": plain.assign(x=plain["x"] * 1e6)}


def design_of(data, formula="x ~ z"):
    return designs.build(formula, Table.of(data))


def alpha_of(model, design, epsilon):
    risk = model.public_risk(design)
    return StrictWeights(epsilon).alpha(Evidence(risk, design.values, None, None))


@pytest.mark.parametrize("name", tables())
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.7])
@pytest.mark.parametrize("keep", [0.3, 1.0])
def test_each_factor_oscillates_by_at_most_epsilon(name, epsilon, keep):
    """20,000 random parameters, most far from anything sensible, no tolerance."""
    design = design_of(tables()[name])
    model = Clipped(hr.Program(regression), keep)
    alpha = alpha_of(model, design, epsilon)
    assert (alpha > 0).all()
    random = np.random.default_rng(9)
    reach = 10.0 ** random.uniform(-2, 4, 20_000)
    wild = {
        "level": 1 + reach * random.normal(size=20_000),
        "slope": 1 + reach * random.normal(size=20_000),
        "sigma": np.exp(random.normal(0, 4, 20_000)),
    }
    factor = alpha * model.log_lik(design, wild, slice(None))
    assert (np.ptp(factor, axis=0) <= epsilon).all()
    # Not only an upper bound: wild parameters reach both ends of a window.
    low, high = model.window(design)
    assert (np.ptp(factor, axis=0) / (alpha * (high - low))).max() > 0.999


def test_a_density_that_is_no_number_counts_as_the_worst():
    design = design_of(tables()["plain"])
    model = Clipped(hr.Program(regression))
    low, _ = model.window(design)
    broken = {"level": np.array([np.nan, 1e200]), "slope": np.ones(2), "sigma": np.array([1.0, 1e-200])}
    np.testing.assert_array_equal(model.log_lik(design, broken, slice(None)), np.stack([low, low]))


def test_no_outcome_moves_another_records_window():
    data = tables()["plain"]
    model = Clipped(hr.Program(regression))
    before = model.window(design_of(data))
    for value in (1e-6, 1e9):
        changed = data.copy()
        changed.loc[5, "x"] = value
        after = model.window(design_of(changed))
        for one, two in zip(before, after, strict=True):
            np.testing.assert_array_equal(np.delete(one, 5), np.delete(two, 5))
        assert after[0][5] != before[0][5]


def test_the_sampler_sees_the_censored_density():
    design = design_of(tables()["30 sigma"])
    program = hr.Program(regression)
    model = Clipped(program)
    power = alpha_of(model, design, 1.0)
    power[3] = 0.0
    potentials = [
        Potential.of(
            program._traced(design), program._arrays(design), design.values, powers, model.window(design)
        )
        for powers in (power, np.zeros_like(power))
    ]
    points = np.random.default_rng(1).normal(0, 2, (5, 3))
    whole, prior = (potential.log_densities(points) for potential in potentials)
    parameters = potentials[0].constrain(points)
    np.testing.assert_allclose(
        whole - prior, model.log_lik(design, parameters, slice(None)) @ power, rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_posteriors_differ_by_at_most_epsilon_on_a_grid(epsilon):
    """Both posteriors normalised numerically, for x withheld and x replaced by anything."""
    data = hr.datasets.lognormal(8, seed=2)
    model = Clipped(hr.Program(one_parameter))
    grid = {"level": np.linspace(-8, 8, 4001)}
    prior = stats.norm(1.0, 0.5).logpdf(grid["level"])

    def log_posterior(frame, skip=None):
        design = design_of(frame, "x ~ 1")
        alpha = alpha_of(model, design, epsilon)
        if skip is not None:
            alpha[skip] = 0.0
        total = prior + model.log_lik(design, grid, slice(None)) @ alpha
        return total - np.log(np.exp(total - total.max()).sum()) - total.max()

    whole = log_posterior(data)
    for record in range(8):
        assert np.abs(whole - log_posterior(data, skip=record)).max() <= epsilon
        for value in (1e-9, 0.3, 1e6, np.exp(60.0)):
            replaced = data.copy()
            replaced.loc[record, "x"] = value
            assert np.abs(whole - log_posterior(replaced)).max() <= 2 * epsilon


@pytest.fixture(scope="module")
def censored():
    synth = hr.Synthesizer(
        "x ~ 1", hr.Program(one_parameter), standard=hr.Censored(reason="published"), epsilon=4.0, copies=2,
        seed=1, draws=1000,
    )  # fmt: skip
    return synth.fit(hr.datasets.lognormal(40, seed=2)[["x"]])


def test_draws_follow_the_censored_posterior(censored):
    """Mean and standard deviation of NUTS against quadrature: two z-scores, beyond 4: p < 2e-4."""
    design, model = censored._fitted.start.design, censored.settings.model
    grid = np.linspace(-4, 6, 20_001)
    total = (
        stats.norm(1.0, 0.5).logpdf(grid)
        + model.log_lik(design, {"level": grid}, slice(None)) @ censored.alpha_
    )
    weight = np.exp(total - total.max())
    exact = np.interp((np.arange(20_000) + 0.5) / 20_000, np.cumsum(weight) / weight.sum(), grid)
    assert np.abs(programs.scores(censored._fitted.outcome.fit, "level", exact[:, None])).max() < 4


def test_prices_and_audit(censored):
    assert censored.total_epsilon_ <= 4.0
    assert censored.epsilon_ == pytest.approx(2.0, rel=1e-6)
    assert censored.oscillation_epsilon_ <= censored.epsilon_
    found = censored.audit()
    assert found.largest_fixed <= 2.0
    assert "cannot certify" in str(found)
    assert "own record alone" in str(found)
    assert len(censored.flagged_) == 0
    assert len(censored.records_) == 40


def test_words(censored):
    guarantee = censored.sample().guarantee
    text = " ".join(str(guarantee).split())
    assert "Approximate, up to sampler error" in text
    assert "2 independent draws compose to 4 and 8" in text
    assert "published" in text
    for word in ("strict", "pure", "proven"):
        assert word not in text.lower()
    certificate = Certificate.build(
        guarantee, release="0" * 16, date="2026-01-01", records=40, unchanged=[], used_not_released=[],
        assumed=[], also_not_covered=[], plan="0" * 64,
        copies=[Copy("synthetic-copy-1.csv", "csv", "0" * 64, 1, ())],
    )  # fmt: skip
    assert certificate.delta is None
    again = Certificate.loads(certificate.json().encode())
    assert "Approximate, up to sampler error" in again.markdown()
    assert "strict" not in again.markdown().lower()


@pytest.mark.slow
def test_counts_are_censored_too():
    data = pd.DataFrame({"x": np.random.default_rng(1).poisson(3.0, 40)})
    model = Clipped(hr.Program(counts))
    design = design_of(data, "x ~ 1")
    model.check(design)
    alpha = alpha_of(model, design, 0.5)
    factor = alpha * model.log_lik(design, {"level": np.linspace(-700, 700, 2001)}, slice(None))
    assert (np.ptp(factor, axis=0) <= 0.5).all()


def test_windows_are_forgotten_with_their_data():
    model = Clipped(hr.Program(one_parameter))
    design = design_of(tables()["plain"], "x ~ 1")
    again = model.window(design) is model.window(design)
    assert len(model._windows) == 1
    del design
    gc.collect()
    assert again
    assert len(model._windows) == 0
    assert "window" not in repr(model)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: hr.Censored(keep=0.0), "keep must lie"),
        (lambda: hr.Synthesizer("x ~ z", standard=hr.Censored(), epsilon=1.0), r"Strict\(limits"),
        (lambda: hr.Synthesizer("x ~ z", hr.Program(regression), standard=hr.Censored()), "needs a target"),
        (
            lambda: hr.Synthesizer(
                "x ~ z", hr.Program(regression), standard=hr.Strict({"sigma": (1, 2)}), epsilon=1.0
            ),
            r"there is Censored\(\)",
        ),
        (
            lambda: hr.Synthesizer(
                "x ~ z", hr.Program(regression), standard=hr.Censored(), epsilon=1.0, bound="oscillation"
            ),
            "leave out bound",
        ),
        (
            lambda: hr.Synthesizer("x ~ 1", hr.Program(improper), standard=hr.Censored(), epsilon=1.0).fit(
                tables()["plain"][["x"]]
            ),
            "does not run",
        ),
    ],
)
def test_refusals(act, message):
    with pytest.raises(hr.HedgerowError, match=message):
        act()


@pytest.mark.slow
def test_what_was_declared_of_a_family_stays_in_the_guarantee():
    family = hr.Family("poisson", upper=60, prior=hr.Prior(intercept=(1.0, 0.5)))
    data = pd.DataFrame({"x": np.random.default_rng(1).poisson(3.0, 40)})
    synth = hr.Synthesizer("x ~ 1", family, standard=hr.Censored(), epsilon=4.0, seed=1, draws=1000).fit(data)
    guarantee = synth.sample().guarantee
    assert guarantee.declared == "upper 60"
    assert not guarantee.single_values  # a caveat on ranges, and there are none


def test_prices_are_made_from_the_censored_density():
    data = tables()["30 sigma"]
    design, interval = design_of(data), Everywhere().interval(data["x"].to_numpy(), Table.of(data))
    model = Clipped(hr.Program(regression))
    wild = {"level": np.array([1.0, 900.0]), "slope": np.ones(2), "sigma": np.array([1.0, 0.01])}
    none = np.zeros(design.records)
    sensitive = Linear(none + 1, none, none)
    low, high = model.window(design)
    largest = np.maximum(np.abs(low), np.abs(high))
    assert (model.absolute(design, wild, sensitive, interval) <= largest).all()
    assert (model.base.absolute(design, wild, sensitive, interval) > largest).any()


def test_key_of_the_reference_draws_is_public():
    """The same windows whatever the seed of the fit: they are no part of its randomness."""
    design = design_of(tables()["plain"])
    one, two = (Clipped(hr.Program(regression)).window(design) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    drawn = hr.Program(regression).from_prior(design, draws=4000, key=Key.from_seed(5))
    # 4000 draws from Normal(1, 0.5); false alarm 1e-4.
    assert stats.kstest(drawn["level"], stats.norm(1.0, 0.5).cdf).pvalue > 1e-4


def test_a_plan_holds_a_censored_standard_for_a_family():
    standard = hr.Censored(keep=0.8, reason="last year's table")
    prior = hr.Prior(intercept=(0.0, 1.0))
    plan = hr.Plan(formula="x ~ z", epsilon=1.0, family="gamma", prior=prior, standard=standard)
    assert hr.Plan.loads(plan.text()) == plan
    with pytest.raises(hr.HedgerowError, match="Strict"):
        hr.Synthesizer("x ~ z", "lognormal", standard=standard, epsilon=1.0)
