"""The audit against brute force, and the breaches it must find."""

import dataclasses
import warnings

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evidence.audit import audit
from hedgerow.evidence.without import Mixture, keys_and_powers, powers_without
from hedgerow.numerics.scoring import Draws
from hedgerow.randomness import Key


def audited(data, bound="lipschitz", seed=1, **settings):
    """An audit on the release's own random numbers; `keys` asks for more."""
    limits = {name: settings.pop(name) for name in ("riskiest", "sample", "keys") if name in settings}
    synth = hr.Synthesizer("x ~ z", seed=seed, **{"draws": 300, **settings}).fit(data)
    fitted = synth._fitted
    price = getattr(synth, f"{bound}_epsilon_")
    return synth, audit(
        synth.settings,
        fitted.start,
        fitted.outcome,
        epsilon=price,
        key=fitted.key,
        **{"keys": 1, **limits},
    )


def test_log_density_is_the_posteriors_own(small):
    """Differences of log densities equal differences of log joint densities."""
    synth = hr.Synthesizer("x ~ z", seed=1, draws=200).fit(small[["x", "z"]])
    fit = synth._fitted.outcome.fit
    posterior = synth.settings.model.posterior(fit.design, fit.power)
    draws = Draws(fit.parameters["beta"], fit.parameters["sigma"])
    mean, deviation = synth.settings.model.prior.moments(fit.design)
    contrasts = synth.settings.model.prior.contrasts(fit.design)
    variance = draws.sigma**2
    prior = (
        -np.sum((draws.beta @ contrasts.T - mean) ** 2 / deviation**2, axis=1) / (2 * variance)
        - np.log(variance) * len(mean) / 2
        - (synth.settings.model.prior.shape + 1) * np.log(variance)
        - synth.settings.model.prior.rate / variance
    )
    joint = prior + (fit.power * fit.log_lik()).sum(axis=1)
    found = posterior.log_density(draws)
    np.testing.assert_allclose(found - found[0], joint - joint[0], rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_fixed_losses_are_the_exact_withheld_price(small):
    synth, found = audited(small[["x", "z"]], riskiest=4, sample=2)
    assert found.largest_fixed == pytest.approx(synth.withheld_epsilon_["exact"])
    assert found.fixed.shape == (60,)
    assert 4 <= len(found.chosen) <= 7  # four by risk or loss, the least risky one, two at random


def test_weights_that_depend_on_nothing_lose_the_same_recomputed(small):
    """Under one weight for all, recomputing changes nothing but the record itself."""
    synth, found = audited(small[["x", "z"]], weights=hr.ScalarWeights(0.5), riskiest=6, sample=4)
    np.testing.assert_allclose(found.recomputed, found.fixed[found.chosen], rtol=1e-8)
    for record in found.chosen:
        power = powers_without(synth.settings, synth._fitted.start, int(record), key=synth._fitted.key)
        np.testing.assert_array_equal(power, np.where(np.arange(60) == record, 0.0, synth.power_))


def test_the_reverse_is_over_draws_without_the_record(small):
    """By brute force, with the log densities of both posteriors at the draws of both."""
    synth, found = audited(small[["x", "z"]], riskiest=3, sample=0)
    fitted = synth._fitted
    fit = fitted.outcome.fit
    here = Draws(fit.parameters["beta"], fit.parameters["sigma"])
    for record, loss, reverse in zip(found.chosen, found.recomputed, found.reverse, strict=True):
        power = powers_without(synth.settings, fitted.start, int(record), key=fitted.key)
        one, two = (
            synth.settings.model.posterior(fit.design, fit.power),
            synth.settings.model.posterior(fit.design, power),
        )
        there = two.draw(300, fitted.key.child("audit").child(int(record)))
        ratios = [np.abs(one.log_density(d) - two.log_density(d)).max() for d in (here, there)]
        assert [loss, reverse] == ratios
    tight = dataclasses.replace(found, epsilon=(found.recomputed.max() + found.reverse.max()) / 2)
    assert (len(tight.reverse_breaches) > 0) == (found.reverse.max() > found.recomputed.max())
    assert ("No draw-based statement covers" in str(tight)) == (len(tight.reverse_breaches) > 0)
    assert not set(tight.breaches) & set(tight.reverse_breaches)


def test_delta_is_zero_where_no_loss_exceeds_and_one_sided_otherwise(small):
    _, found = audited(small[["x", "z"]], riskiest=4, sample=2)
    assert (found.delta[found.fixed <= found.epsilon] == 0).all()
    _, tight = audited(small[["x", "z"]], bound="exact", riskiest=4, sample=2)
    assert ((tight.delta >= 0) & (tight.delta <= 1)).all()


@pytest.mark.slow
def test_linear_weights_breach_the_oscillation_when_recomputed():
    """Over 8 samples of 200 records; weights held fixed nothing is breached."""
    audits = [audited(hr.datasets.lognormal(200, seed=s), "oscillation", seed=s)[1] for s in range(8)]
    assert sum(one.largest_recomputed > one.epsilon for one in audits) >= 2
    assert all(one.largest_fixed <= one.epsilon for one in audits)
    assert "Finding" in str(max(audits, key=lambda one: one.largest_recomputed / one.epsilon))


def test_the_singleton_category_is_a_breach_with_weights_fixed():
    random = np.random.default_rng(8)
    import pandas as pd

    data = pd.DataFrame({"x": np.exp(random.normal(2, 1, 200)), "g": ["many"] * 199 + ["one"]})
    with pytest.warns(hr.HedgerowWarning):
        synth = hr.Synthesizer(
            "x ~ g", standard=hr.Unweighted(), prior=hr.Prior(slope=(0.0, 1000.0)), seed=1
        ).fit(data)
    fitted = synth._fitted
    found = audit(
        synth.settings, fitted.start, fitted.outcome, epsilon=synth.oscillation_epsilon_,
        key=Key.from_seed(1), riskiest=2, sample=0, keys=1,
    )  # fmt: skip
    assert 199 in found.breaches


def test_the_picture_shows_both_kinds_of_loss_and_the_price(small):
    _, found = audited(small[["x", "z"]], "oscillation", riskiest=4, sample=2)
    axes = found.plot().axes[0]
    fixed, again, reverse, price = axes.get_lines()
    np.testing.assert_array_equal(reverse.get_ydata(), found.reverse)
    assert sorted(fixed.get_ydata()) == sorted(found.fixed)
    np.testing.assert_array_equal(again.get_ydata(), found.recomputed)
    assert set(price.get_ydata()) == {found.epsilon}
    height = dict(zip(found.chosen, found.recomputed, strict=True))
    named = [int(text.get_text()) for text in axes.texts]
    assert max(height, key=height.get) in named
    assert "confidential" in axes.get_title(loc="left")
    assert hr.plot.audit(audited(small[["x", "z"]], riskiest=0, sample=0)[1]).axes


def test_columns_and_repr(small):
    _, found = audited(small[["x", "z"]], riskiest=4, sample=2)
    columns = found.columns()
    assert {len(values) for values in columns.values()} == {60}
    assert np.isfinite(columns["loss_recomputed"]).sum() == len(found.chosen)
    assert "confidential" in repr(found)
    assert f"{found.largest_fixed:.3f}" not in repr(found)
    assert "bounds the loss from below" in str(found)


WITHOUT = 7
FIXED = hr.Prior(coefficients={"Intercept": (0.0, 10.0), "z": (0.0, 10.0)})  # the default reads predictors


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 3.0, "weights": hr.LinearWeights()},
        {"epsilon": 1.0, "weights": hr.CapWeights(0.5, risk="oscillation"), "bound": "oscillation"},
        pytest.param(
            {"epsilon": 4.0, "standard": hr.RangeTruncated(hr.Radius(0.4, 1.8))}, marks=pytest.mark.slow
        ),
        {"weights": hr.Reweighted(hr.SoftmaxWeights())},
        {
            "epsilon": 0.3,
            "standard": hr.RangeAveraged(hr.Tail(0.1, hr.Radius(0.2, 3.0), hr.Radius(0.4, 1.8))),
        },
    ],
)
def test_without_an_outcome_the_whole_procedure_runs_as_on_a_table_without_its_row(small, settings):
    """Calibration included: the powers of the others are those of a fresh fit that never had the record."""
    data = small[["x", "z"]]
    settings = {"seed": 1, "draws": 300, "prior": FIXED} | settings
    asked = hr.Synthesizer("x ~ z", **settings)
    whole = asked.fit(data)._need()
    power = powers_without(asked.settings, whole.start, WITHOUT, key=whole.key)
    fresh = hr.Synthesizer("x ~ z", **settings).fit(data.drop(index=WITHOUT))
    assert power[WITHOUT] == 0
    np.testing.assert_allclose(np.delete(power, WITHOUT), fresh.power_, rtol=1e-9)
    if "epsilon" in settings:
        assert fresh.scale_ != asked.scale_


@pytest.mark.slow
def test_weights_and_bounds_by_record_can_be_audited(small):
    """One per record: without a record its own are left out, and the others keep theirs."""
    data = small[["x", "z"]]
    weights = np.linspace(0.2, 0.9, len(data))
    lower, upper = data["x"].to_numpy() * 0.5, data["x"].to_numpy() * 2
    for standard in (hr.ADP(), hr.RangeTruncated(hr.Bounds(lower, upper))):
        synth = hr.Synthesizer("x ~ z", seed=1, draws=200, weights=weights, standard=standard).fit(data)
        found = synth.audit(riskiest=4, sample=2)
        np.testing.assert_allclose(found.recomputed, found.fixed[found.chosen], rtol=1e-8)


def test_simulated_shares_are_audited_as_they_were_fitted(small):
    """With α = 0 the power is λ alone: a count of simulated values over the number of draws."""
    synth = hr.Synthesizer(
        "x ~ z", seed=1, draws=200, known="simulated", weights=hr.ScalarWeights(0.0),
        standard=hr.RangeAveraged(hr.Radius(0.4, 1.8)),
    ).fit(small[["x", "z"]])  # fmt: skip
    whole = synth._need()
    counts = 200 * powers_without(synth.settings, whole.start, WITHOUT, key=whole.key)
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-9)
    assert (counts[np.arange(60) != WITHOUT] > 0).all()


def test_a_table_that_meets_no_target_without_the_record_has_an_infinite_loss(small, monkeypatch):
    from hedgerow.errors import CalibrationError

    synth = hr.Synthesizer("x ~ z", seed=1, draws=200, epsilon=5.0).fit(small[["x", "z"]])

    def refuse(*_, **__):
        raise CalibrationError("no target")

    monkeypatch.setattr("hedgerow.evidence.without.settle", refuse)
    found = synth.audit(riskiest=2, sample=0, keys=1)
    assert np.isinf(found.recomputed).all()
    assert set(found.chosen) <= set(found.breaches)
    assert found.plot().axes


def renyi(data, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HedgerowWarning)
        return hr.Synthesizer("x ~ z", **{"bound": "renyi", "seed": 1, "draws": 200} | settings).fit(data)


def test_the_divergence_of_two_posteriors_is_that_of_a_record_held_fixed(small):
    """Against the formulas that price a record, which come from another derivation."""
    synth = renyi(small[["x", "z"]], weights=hr.ScalarWeights(0.7))
    fit, model = synth._need().outcome.fit, synth.settings.model
    pairs = synth._need().outcome.pricing.neighbours
    orders = np.array([1.05, 1.5, 2.0, 8.0, 60.0, 900.0])
    here = model.posterior(fit.design, fit.power)
    for record in (3, 20, 41):
        there = model.posterior(fit.design, np.where(np.arange(60) == record, 0.0, fit.power))
        found = here.divergences(there, orders), there.divergences(here, orders)
        wanted = np.transpose([[side[record] for side in pairs.divergences(float(o))] for o in orders])
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert np.isinf(wanted[1]).any()  # an order that does not exist is among them


def test_the_divergence_of_two_posteriors_that_differ_everywhere(small):
    """Against 400,000 draws: (o − 1) D_o = log E_Q (p/q)^o."""
    synth = renyi(small[["x", "z"]])
    design, model = synth._need().start.design, synth.settings.model
    here, there = (
        model.posterior(design, np.full(60, 0.6)),
        model.posterior(design, np.linspace(0.4, 0.9, 60)),
    )
    draws = here.draw(400_000, Key.from_seed(3))
    loss = here.log_density(draws) - there.log_density(draws)
    for order in (1.2, 1.7):
        found = float(here.divergences(there, np.array([order]))[0])
        assert np.log(np.mean(np.exp((order - 1) * loss))) / (order - 1) == pytest.approx(found, rel=0.02)


def test_under_the_renyi_bound_losses_are_what_it_prices(small):
    """ε at δ of all copies. Weights held fixed it is the price itself; a scale that moves is part of it."""
    data = small[["x", "z"]]
    alike = renyi(data, weights=hr.ScalarWeights(0.5), copies=3)
    found = alike.audit(riskiest=4, sample=2)
    assert found.epsilon == pytest.approx(alike.total_epsilon_)
    assert found.largest_fixed == pytest.approx(alike.total_epsilon_)
    np.testing.assert_allclose(found.recomputed, found.fixed[found.chosen], rtol=1e-6)
    assert not len(found.breaches)
    assert found.keys == 1  # nothing random decides the powers
    assert "of all copies" in str(found)
    assert "δ = 1e-06" in str(found)
    scaled = renyi(hr.datasets.lognormal(200, seed=101), weights=hr.ScalarWeights(1.0), epsilon=1.0)
    moved = scaled.audit(riskiest=4, sample=0)
    assert moved.keys == 1
    assert moved.largest_fixed == pytest.approx(1.0, rel=1e-3)
    assert moved.largest_recomputed > 3.0  # one record decides the scale of all
    assert len(moved.breaches)


def test_what_the_calibration_draws_is_a_mixture(small):
    """By brute force: the log ratio of the mean densities over the keys, at draws of both mixtures."""
    synth, found = audited(small[["x", "z"]], epsilon=3.0, riskiest=2, sample=0, keys=3)
    done, model = synth._need(), synth.settings.model
    keys, powers = keys_and_powers(synth.settings, done.start, synth.power_, key=done.key, keys=3)
    assert found.keys == len(keys) == 3
    assert not np.array_equal(powers[0], powers[1])
    assert "estimated from 3 sets" in str(found)
    record = int(found.chosen[0])
    without = [powers_without(synth.settings, done.start, record, key=key) for key in keys]
    sides = [Mixture.of(model, done.start.design, side) for side in (powers, without)]
    draws = sides[1].draw(300, done.key.child("audit").child(record))
    assert len(draws.sigma) == 300
    densities = [
        np.mean(
            [np.exp(model.posterior(done.start.design, power).log_density(draws)) for power in side], axis=0
        )
        for side in (powers, without)
    ]
    assert found.reverse[0] == pytest.approx(np.abs(np.log(densities[0] / densities[1])).max())


def test_a_mixtures_divergence_is_bounded_by_its_parts(small):
    """At most the largest over pairs of parts, and that of one part where all are alike."""
    synth = renyi(small[["x", "z"]])
    design, model = synth._need().start.design, synth.settings.model
    one, two, three = (Mixture.of(model, design, [np.full(60, power)]) for power in (0.5, 0.55, 0.6))
    asked = {"delta": 1e-6, "copies": 2}
    both = Mixture((*one.parts, *two.parts)), Mixture((*three.parts, *three.parts))
    apart = [side.epsilon(three, **asked) for side in (one, two)]
    assert min(apart) < both[0].epsilon(both[1], **asked) < max(apart)
    assert both[1].epsilon(one, **asked) == pytest.approx(three.epsilon(one, **asked))


def test_losses_with_x_withheld_are_held_against_a_price_of_that(small):
    """A range standard's target is for another neighbour; the price with x_i withheld stands beside it."""
    synth = hr.Synthesizer(
        "x ~ z", standard=hr.RangeTruncated(hr.Radius(0.4, 1.8)), epsilon=6.0, seed=1, draws=200
    ).fit(small[["x", "z"]])
    assert synth.audit(riskiest=1, sample=0, keys=1).epsilon == synth.withheld_epsilon_["lipschitz"]
    plain = hr.Synthesizer("x ~ z", epsilon=6.0, copies=2, seed=1, draws=200).fit(small[["x", "z"]])
    assert plain.audit(riskiest=1, sample=0, keys=1).epsilon == 3.0


@pytest.mark.parametrize(
    ("settings", "of_claim"),
    [
        ({"epsilon": 40.0}, True),
        ({}, False),
        ({"epsilon": 40.0, "standard": hr.RangeTruncated(hr.Radius(0.4, 1.8))}, False),
    ],
)
def test_what_losses_are_held_against_is_called_a_claim_where_it_is_one(small, settings, of_claim):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HedgerowWarning)
        synth = hr.Synthesizer("x ~ z", seed=1, draws=100, **settings).fit(small[["x", "z"]])
    found = synth.audit(riskiest=0, sample=0)
    assert (found.of_claim, found.largest_reverse) == (of_claim, None)
    if not of_claim:
        assert found.epsilon == pytest.approx(synth.withheld_epsilon_["lipschitz"])
    assert synth.attack(0, trials=200).of_claim == of_claim
