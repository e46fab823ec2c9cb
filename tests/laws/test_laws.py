"""Laws that hold for every exact model and every standard."""

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.models.families import model_named
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table

RADIUS = hr.Radius(0.4, 1.8)
STANDARDS = {
    "unweighted": hr.Unweighted(),
    "adp": hr.ADP(),
    "averaged": hr.RangeAveraged(RADIUS),
    "truncated": hr.RangeTruncated(RADIUS),
    "truncated-one": hr.RangeTruncated(RADIUS, public_weight="one"),
}
FAMILIES = {"lognormal": "lognormal", "normal": "normal", "asinh": hr.Family("asinh", scale=3.0)}
every_standard = pytest.mark.parametrize("standard", STANDARDS.values(), ids=STANDARDS)
every_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)


def fitted(data, family="lognormal", **settings):
    settings = {"draws": 200, "seed": 3, **settings}
    return hr.Synthesizer("x ~ z", family, **settings).fit(data[["x", "z"]])


def posterior(data, power, family="lognormal"):
    # The default prior uses means and spread of the public predictors, which deleting a row would move.
    model = model_named(family, hr.Prior(coefficients={"Intercept": (0.0, 1000.0), "z": (0.0, 50.0)}))
    table = Table.of(data)
    return model.posterior(designs.build("x ~ z", table), np.asarray(power, dtype=float))


def same_posterior(one, two, rtol=1e-10):
    np.testing.assert_allclose(one.mean, two.mean, rtol=rtol)
    np.testing.assert_allclose(one.factor, two.factor, rtol=rtol, atol=1e-12)
    np.testing.assert_allclose([one.shape, one.rate], [two.shape, two.rate], rtol=rtol)


@every_family
def test_power_zero_is_withholding_the_outcome(small, family):
    data = small[["x", "z"]]
    power = np.random.default_rng(0).uniform(0.1, 1, len(data))
    without = np.where(np.arange(len(data)) == 7, 0.0, power)
    rest = data.drop(index=7)
    same_posterior(posterior(data, without, family), posterior(rest, np.delete(power, 7), family))
    # With the outcome withheld its value cannot matter.
    changed = data.copy()
    changed.loc[7, "x"] = 1e6
    same_posterior(posterior(changed, without, family), posterior(data, without, family))


@every_family
def test_power_two_is_repetition(small, family):
    data = small[["x", "z"]]
    power = np.ones(len(data))
    power[4] = 2.0
    repeated = pd.concat([data, data.iloc[[4]]], ignore_index=True)
    same_posterior(posterior(data, power, family), posterior(repeated, np.ones(len(repeated)), family))


@every_family
@every_standard
def test_permuting_records_permutes_results(small, family, standard):
    order = np.random.default_rng(1).permutation(len(small))
    one = fitted(small, family, standard=standard)
    two = fitted(small.iloc[order].reset_index(drop=True), family, standard=standard)
    for name in ("risk_", "alpha_", "power_", "known_", "lipschitz_"):
        np.testing.assert_allclose(getattr(one, name)[order], getattr(two, name), rtol=1e-8, atol=1e-10)
    assert one.epsilon_ == pytest.approx(two.epsilon_, rel=1e-8)


@every_family
@pytest.mark.parametrize("make", [hr.RangeAveraged, hr.RangeTruncated])
def test_a_range_that_covers_everything_is_adp(small, family, make):
    plain, covered = fitted(small, family), fitted(small, family, standard=make(hr.Everywhere()))
    assert covered.epsilon_ == plain.epsilon_
    assert covered.exact_epsilon_ == plain.exact_epsilon_
    np.testing.assert_array_equal(covered.power_, plain.power_)
    pd.testing.assert_frame_equal(covered.sample().tables[0], plain.sample().tables[0])


def test_nothing_known_is_adp():
    alpha, known = np.array([0.2, 1.0, 0.0]), np.zeros(3)
    log_lik = np.array([[-1.0, 2.0, -30.0]])
    averaged = hr.RangeAveraged(RADIUS)
    np.testing.assert_array_equal(averaged.power(alpha, known), alpha)
    np.testing.assert_array_equal(averaged.sensitive(alpha, known, log_lik, -log_lik), alpha * log_lik)


@every_family
def test_weight_one_gives_the_plain_posteriors_definitions(small, family):
    one = hr.ScalarWeights(1.0)
    unweighted = fitted(small, family, standard=hr.Unweighted())
    adp = fitted(small, family, weights=one)
    assert adp.epsilon_ == unweighted.epsilon_
    averaged = fitted(small, family, standard=hr.RangeAveraged(RADIUS), weights=one)
    np.testing.assert_allclose(averaged.power_, 1.0, rtol=1e-15)
    np.testing.assert_allclose(averaged.lipschitz_, (1 - averaged.known_) * unweighted.lipschitz_, rtol=1e-12)
    truncated = [
        fitted(small, family, standard=hr.RangeTruncated(RADIUS, public_weight=form), weights=one)
        for form in ("alpha", "one")
    ]
    np.testing.assert_allclose(truncated[0].lipschitz_, truncated[1].lipschitz_, rtol=1e-9)


@every_family
def test_adp_and_truncated_release_the_same_copies(small, family):
    one = fitted(small, family, copies=2)
    two = fitted(small, family, copies=2, standard=hr.RangeTruncated(RADIUS))
    for first, second in zip(one.sample().tables, two.sample().tables, strict=True):
        pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_units_move_the_lipschitz_price_and_not_the_oscillation(small):
    alpha = np.random.default_rng(2).uniform(0, 1, len(small))
    priors = {1: hr.Prior(), 1000: hr.Prior(intercept=(np.log(1000.0), 1000.0))}
    found = {}
    for unit, prior in priors.items():
        data = small.assign(x=small["x"] * unit)
        found[unit] = fitted(data, weights=alpha, prior=prior)
    assert found[1000].oscillation_epsilon_ == pytest.approx(found[1].oscillation_epsilon_, rel=1e-9)
    assert found[1000].exact_epsilon_ == pytest.approx(found[1].exact_epsilon_, rel=1e-9)
    assert found[1000].renyi_epsilon_ == pytest.approx(found[1].renyi_epsilon_, rel=1e-9)
    assert found[1000].lipschitz_epsilon_ > 1.5 * found[1].lipschitz_epsilon_


def test_units_of_the_normal_model(small):
    alpha = np.random.default_rng(2).uniform(0, 1, len(small))
    one = fitted(small, "normal", weights=alpha)
    scaled = hr.Prior(residual=1000.0)  # what it leaves out is in its units
    two = fitted(small.assign(x=small["x"] * 1000), "normal", weights=alpha, prior=scaled)
    assert two.oscillation_epsilon_ == pytest.approx(one.oscillation_epsilon_, rel=1e-9)
    assert two.lipschitz_epsilon_ != pytest.approx(one.lipschitz_epsilon_, rel=0.1)


def test_withholding_under_range_averaged_costs_nearly_what_unweighted_costs(payroll):
    unweighted = fitted(payroll, standard=hr.Unweighted())
    averaged = fitted(payroll, standard=hr.RangeAveraged(hr.Radius(0.6, 1.2)))
    for bound in ("lipschitz", "oscillation", "exact", "renyi"):
        assert averaged.withheld_epsilon_[bound] == pytest.approx(
            unweighted.withheld_epsilon_[bound], rel=0.1
        )
    assert averaged.epsilon_ < 0.15 * averaged.withheld_epsilon_["lipschitz"]


@every_family
@every_standard
def test_bounds_are_ordered(small, family, standard):
    synth = fitted(small, family, standard=standard)
    assert synth.oscillation_epsilon_ <= synth.lipschitz_epsilon_
    assert synth.lipschitz_epsilon_ == 2 * synth.sensitivity_ == synth.epsilon_


@every_standard
def test_more_draws_never_lower_the_price(small, standard):
    steps = fitted(small, standard=standard).by_draws_
    assert list(steps["draws"]) == [25, 50, 100, 200]
    assert (np.diff(steps["lipschitz"]) >= 0).all()
    assert (np.diff(steps["oscillation"]) >= 0).all()


def test_the_same_seed_gives_the_same_bytes(small):
    one, two, other = fitted(small), fitted(small), fitted(small, seed=4)
    pd.testing.assert_frame_equal(one.sample().tables[0], two.sample().tables[0], check_exact=True)
    assert not one.sample().tables[0]["x"].equals(other.sample().tables[0]["x"])


def test_without_a_seed_every_run_differs(small):
    one, two = fitted(small, seed=None), fitted(small, seed=None)
    assert not one.sample().tables[0]["x"].equals(two.sample().tables[0]["x"])
    pd.testing.assert_frame_equal(one.sample().tables[0], one.sample().tables[0], check_exact=True)


@every_family
def test_simulated_known_agrees_with_exact(small, family):
    standard = hr.RangeAveraged(RADIUS)
    exact = fitted(small, family, standard=standard, draws=1000).known_
    simulated = fitted(small, family, standard=standard, draws=1000, known="simulated").known_
    # 60 binomial frequencies of 1000: the largest of 60 standardised gaps exceeds 4.5 with p < 5e-4.
    error = np.sqrt(np.maximum(exact * (1 - exact), 1e-3) / 1000)
    assert (np.abs(exact - simulated) / error).max() < 4.5
    assert (simulated * 1000 == np.rint(simulated * 1000)).all()


def test_keys_are_named_and_independent():
    root = Key.from_seed(1)
    streams = {name: root.child(name).stream().uniform(4) for name in ("a", "b")}
    assert not np.array_equal(streams["a"], streams["b"])
    np.testing.assert_array_equal(streams["a"], Key.from_seed(1).child("a").stream().uniform(4))
