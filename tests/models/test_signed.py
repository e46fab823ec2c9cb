"""Amounts of either sign: the exact asinh model beside its sampled form, declared scales, ranges, spikes."""

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.models.exact import Asinh
from hedgerow.models.families import model_named
from hedgerow.models.scored import Interval
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table

ASINH = hr.Family("asinh", scale=2000)


def profits(n=300, seed=1, spike=0.0):
    """Profits in dollars, some of them losses, in steps of 10; perhaps some at zero."""
    random = np.random.default_rng(seed)
    z = random.normal(size=n)
    x = 2000 * np.sinh(0.4 + 0.5 * z + random.normal(size=n))
    x = np.sign(x) * np.maximum(10, np.round(np.abs(x), -1))
    return pd.DataFrame({"x": np.where(random.uniform(size=n) < spike, 0.0, x), "z": z})


def built(data):
    return designs.build("x ~ z", Table.of(data))


def test_a_declared_scale_alone_is_a_closed_form():
    """With an end, a spike or another sampler asked for there is none."""
    prior = hr.Prior(residual=0.5)
    assert model_named(ASINH, prior) == Asinh(prior=prior, scale=2000.0)
    assert isinstance(hr.Synthesizer("x ~ z", ASINH).settings.model, Asinh)
    for other in ({"upper": 1e6}, {"sampler": "nutpie"}):
        assert isinstance(model_named(hr.Family("asinh", scale=2000, **other), None), hr.Family)
    assert isinstance(model_named(hr.Family("zero_asinh", scale=2000), None), hr.Family)
    assert isinstance(model_named(hr.Family("student", scale=2000), None), hr.Family)
    with pytest.raises(hr.HedgerowError, match="brings its own prior"):
        model_named(hr.Family("asinh", prior, scale=2000), prior)


@pytest.mark.slow
def test_the_closed_form_scores_as_the_sampled_one_does():
    """The same density, the same masses and the same quantiles at the same parameters, in both tails."""
    data = profits(60)
    design, table = built(data), Table.of(data)
    exact, sampled = model_named(ASINH, None), ASINH
    draws = {"beta": np.array([[0.3, 0.6], [-2.0, 1.0]]), "sigma": np.array([1.1, 0.2])}
    every = slice(None)
    np.testing.assert_allclose(
        exact.log_lik(design, draws, every), sampled.log_lik(design, draws, every), rtol=1e-9
    )
    x = data["x"].to_numpy() + 5.0  # never zero
    interval = hr.Radius(0.4, 1.8).interval(x, table)
    interval = Interval(
        np.r_[interval.lower[:-2], -np.inf, 1e7], np.r_[interval.upper[:-2], -1e7, np.inf], interval.inside
    )
    masses = [model.log_mass(design, draws, interval, every) for model in (exact, sampled)]
    np.testing.assert_allclose(*masses, rtol=1e-7, atol=1e-12)
    one = {name: value[0] for name, value in draws.items()}
    uniforms = np.linspace(1e-6, 1 - 1e-6, 60)
    np.testing.assert_allclose(
        exact.predict(design, one, uniforms), sampled.predict(design, one, uniforms), rtol=1e-6, atol=1e-6
    )


@pytest.mark.slow
def test_draws_of_the_sampled_form_follow_the_closed_form():
    """800 records, where the priors, which differ, hardly matter: a fifth of a standard error is allowed."""
    data = profits(800)
    design, power = built(data), np.full(800, 0.7)
    exact = model_named(ASINH, None).sample(design, power, draws=4000, key=Key.from_seed(1)).parameters
    sampled = ASINH.sample(design, power, draws=4000, key=Key.from_seed(2)).parameters
    for name, draws in exact.items():
        apart = (draws.mean(axis=0) - sampled[name].mean(axis=0)) / draws.std(axis=0)
        assert np.abs(apart).max() < 0.2
        assert np.abs(np.log(draws.std(axis=0) / sampled[name].std(axis=0))).max() < 0.1


def test_it_is_the_lognormal_of_another_outcome():
    """With one prior, all that does not depend on units is the lognormal's of exp(asinh(x / scale))."""
    data = profits(80)
    other = data.assign(x=np.exp(np.arcsinh(data["x"] / 2000)))
    settings = {"draws": 200, "seed": 1, "prior": hr.Prior(), "weights": hr.ScalarWeights(0.4)}
    one = hr.Synthesizer("x ~ z", ASINH, **settings).fit(data)
    two = hr.Synthesizer("x ~ z", "lognormal", **settings).fit(other)
    for price in ("oscillation_epsilon_", "exact_epsilon_", "renyi_epsilon_"):
        assert getattr(one, price) == pytest.approx(getattr(two, price), rel=1e-9)
    copies = [fit.copied_outcomes()[0] for fit in (one, two)]
    np.testing.assert_allclose(np.arcsinh(copies[0] / 2000), np.log(copies[1]), rtol=1e-9, atol=1e-9)


def test_units_do_not_matter_where_the_scale_goes_with_them():
    """Prices but Lipschitz's and copies are those of the same table in cents."""
    data = profits(80)
    fits = [
        hr.Synthesizer("x ~ z", hr.Family("asinh", scale=20 * unit), draws=200, seed=1).fit(
            data.assign(x=data["x"] * unit)
        )
        for unit in (1.0, 100.0)
    ]
    assert fits[1].oscillation_epsilon_ == pytest.approx(fits[0].oscillation_epsilon_, rel=1e-9)
    np.testing.assert_allclose(fits[1].copied_outcomes()[0], 100 * fits[0].copied_outcomes()[0], rtol=1e-9)


@pytest.mark.parametrize(
    "standard", [hr.ADP(), hr.RangeTruncated(hr.Radius(0.4, 1.8))], ids=["adp", "radius"]
)
def test_copies_have_losses_too_and_keep_what_is_declared(standard):
    data = profits()
    synth = hr.Synthesizer(
        "x ~ z", ASINH, standard=standard, seed=2, declared=hr.Declared("number", multiple_of=10)
    ).fit(data)
    copy = synth.sample().tables[0]["x"]
    assert 0.1 < (copy < 0).mean() < 0.6
    assert (copy % 10 == 0).all()
    spread, wanted = (np.quantile(column, [0.1, 0.9]) for column in (copy, data["x"]))
    np.testing.assert_allclose(np.arcsinh(spread / 2000), np.arcsinh(wanted / 2000), atol=0.5)
    assert "scale 2000" in str(synth.sample().guarantee)


def test_a_radius_is_times_itself_on_either_side_and_empty_at_zero():
    data = profits(spike=0.2)
    with pytest.raises(hr.HedgerowError, match="values are zero, for which a radius is empty"):
        hr.Synthesizer("x ~ z", ASINH, standard=hr.RangeTruncated(hr.Radius(0.4, 1.8))).fit(data)
    known = hr.Brackets([-np.inf, -1000, 0, 1000, np.inf])
    synth = hr.Synthesizer("x ~ z", ASINH, standard=hr.RangeTruncated(known), draws=200, seed=1).fit(data)
    assert np.isfinite(synth.epsilon_)


def test_a_box_of_parameters_keeps_the_scale():
    """Its prior is moved onto the box; a model without its scale would be another one."""
    box = {"Intercept": (-2, 3), "z": (-1, 2), "sigma": (0.4, 2.5)}
    synth = hr.Synthesizer("x ~ z", ASINH, standard=hr.Strict(box), epsilon=2.0, draws=200, seed=1)
    copy = synth.fit(profits()).sample().tables[0]["x"]
    assert synth.settings.model._centred(built(profits())).scale == 2000
    assert 1000 < np.quantile(np.abs(copy), 0.5) < 8000


def test_noisy_statistics_of_signed_amounts():
    """The distribution at ε = 3 with 1,500 records: quantiles within a quarter on the asinh scale."""
    data = profits(1500)
    strict = hr.Strict(limits=(-1e5, 1e5), reason="published")
    copy = hr.Synthesizer("x ~ z", ASINH, standard=strict, epsilon=3.0, seed=1).fit(data).sample().tables[0]
    shares = [0.05, 0.25, 0.5, 0.75, 0.95]
    one, two = (np.arcsinh(np.quantile(frame["x"], shares) / 2000) for frame in (copy, data))
    np.testing.assert_allclose(one, two, atol=0.25)
    with pytest.raises(hr.HedgerowError, match="takes no prior"):
        hr.Synthesizer("x ~ z", ASINH, standard=strict, epsilon=3.0, prior=hr.Prior(residual=2.0))


@pytest.mark.slow
def test_weights_by_oscillation_keep_the_share_of_zeros():
    """Where the default weights, which shrink with |f|, have half as many again: families.md says so."""
    data = profits(600, spike=0.25)
    settings = {"family": hr.Family("zero_asinh", scale=2000), "epsilon": 3.0, "seed": 1}
    even = {"weights": hr.CapWeights(1, risk="oscillation"), "bound": "oscillation"}
    shares = [
        (hr.Synthesizer("x ~ z", **settings, **chosen).fit(data).copied_outcomes()[0] == 0).mean()
        for chosen in (even, {})
    ]
    zeros = (data["x"] == 0).mean()
    assert abs(shares[0] - zeros) < 0.08  # four standard errors of a draw and a copy of 600 records
    assert shares[1] > 1.3 * zeros


def test_a_plan_holds_the_scale():
    for model in (ASINH, hr.Family("zero_student", scale=1000.0, df=4)):
        plan = hr.Plan(formula="x ~ z", epsilon=2.0, family=model)
        assert hr.Plan.loads(plan.text()).settings.column.family == model
    with pytest.raises(hr.HedgerowError, match="needs a public scale"):
        hr.Plan.loads("version: 1\nformula: x ~ z\nepsilon: 1\nfamily: student\n")
