"""The audit against brute force, and the breaches it must find."""

import dataclasses

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evidence.audit import audit, powers_without
from hedgerow.numerics.scoring import Draws
from hedgerow.randomness import Key


def audited(data, bound="lipschitz", seed=1, **settings):
    limits = {name: settings.pop(name) for name in ("riskiest", "sample") if name in settings}
    synth = hr.Synthesizer("x ~ z", seed=seed, **{"draws": 300, **settings}).fit(data)
    fitted = synth._fitted
    price = getattr(synth, f"{bound}_epsilon_")
    return synth, audit(
        synth.settings,
        fitted.start,
        fitted.outcome,
        epsilon=price,
        key=fitted.key,
        **limits,
    )


def test_log_density_is_the_posteriors_own(small):
    """Differences of log densities equal differences of log joint densities."""
    synth = hr.Synthesizer("x ~ z", seed=1, draws=200).fit(small[["x", "z"]])
    fit = synth._fitted.outcome.fit
    posterior = synth.settings.model.posterior(fit.design, fit.power)
    draws = Draws(fit.parameters["beta"], fit.parameters["sigma"])
    mean, deviation = synth.settings.model.prior.moments(fit.design)
    variance = draws.sigma**2
    prior = (
        -np.sum((draws.beta - mean) ** 2 / deviation**2, axis=1) / (2 * variance)
        - np.log(variance) * len(mean) / 2
        - (synth.settings.model.prior.shape + 1) * np.log(variance)
        - synth.settings.model.prior.rate / variance
    )
    joint = prior + (fit.power * fit.log_lik()).sum(axis=1)
    found = posterior.log_density(draws)
    np.testing.assert_allclose(found - found[0], joint - joint[0], rtol=1e-9, atol=1e-9)


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
    assert ("no draw-based statement covers" in str(tight)) == (len(tight.reverse_breaches) > 0)
    assert not set(tight.breaches) & set(tight.reverse_breaches)


def test_delta_is_zero_where_no_loss_exceeds_and_one_sided_otherwise(small):
    _, found = audited(small[["x", "z"]], riskiest=4, sample=2)
    assert (found.delta[found.fixed <= found.epsilon] == 0).all()
    _, tight = audited(small[["x", "z"]], bound="exact", riskiest=4, sample=2)
    assert ((tight.delta >= 0) & (tight.delta <= 1)).all()


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
        key=Key.from_seed(1), riskiest=2, sample=0,
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
        {"epsilon": 4.0, "standard": hr.RangeTruncated(hr.Radius(0.4, 1.8))},
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

    monkeypatch.setattr("hedgerow.evidence.audit.settle", refuse)
    found = synth.audit(riskiest=2, sample=0)
    assert np.isinf(found.recomputed).all()
    assert set(found.chosen) <= set(found.breaches)
    assert found.plot().axes
