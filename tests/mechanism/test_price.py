"""Bounds in the simulation, the documented exception, and the draw-based statement."""

import warnings

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.mechanism.price import shares_of_largest


def test_exact_oscillation_lipschitz_are_ordered_in_the_simulation(payroll):
    standards = {
        "unweighted": hr.Unweighted(),
        "adp": hr.ADP(),
        "averaged": hr.RangeAveraged(hr.Radius(0.4, 1.8)),
        "truncated": hr.RangeTruncated(hr.Radius(0.4, 1.8)),
    }
    table = hr.compare("x ~ z", payroll, standards=standards, seed=1).table.set_index("standard")
    for label in standards:
        row = table.loc[label]
        assert row["oscillation"] < row["lipschitz"]
        assert row["withheld_exact"] < row["withheld_oscillation"] < row["withheld_lipschitz"]
        if label != "truncated":
            assert row["exact"] < row["oscillation"]
            assert 0.4 < row["exact"] / row["oscillation"] < 0.7  # about half
    assert np.isnan(table.loc["truncated", "exact"])


def singleton():
    random = np.random.default_rng(8)
    group = np.array(["many"] * 199 + ["one"])
    x = np.exp(random.normal(2.0, 1.0, 200))
    return pd.DataFrame({"x": x, "group": group})


def test_a_singleton_category_breaks_the_draw_based_bounds_and_the_user_is_told():
    """The draws miss the posterior without the record, so the exact loss exceeds the oscillation.

    Without the record its coefficient has its prior alone: the vaguer the prior, the larger the loss, while
    the draws, and so the oscillation, hardly notice.
    """
    data = singleton()
    with pytest.warns(hr.HedgerowWarning, match="flagged_"):
        synth = hr.Synthesizer(
            "x ~ group", standard=hr.Unweighted(), prior=hr.Prior(slope=(0.0, 1000.0)), seed=1
        ).fit(data)
    assert synth.exact_epsilon_ > synth.oscillation_epsilon_
    flagged = synth.flagged_
    assert list(flagged["record"]) == [199]
    assert flagged["leverage"][0] > 0.99
    assert flagged["exact"][0] > flagged["oscillation"][0]


def test_a_far_outlier_is_flagged_whatever_its_leverage():
    """Leverage is small, but the record decides σ: the loss is far above what the draws show."""
    random = np.random.default_rng(3)
    data = pd.DataFrame({"x": random.normal(size=200), "z": random.normal(size=200)})
    data.loc[17, "x"] = 1000.0
    with pytest.warns(hr.HedgerowWarning, match="flagged_"):
        synth = hr.Synthesizer("x ~ z", "normal", weights=hr.ScalarWeights(0.2), seed=1).fit(data)
    assert synth.exact_epsilon_ > synth.lipschitz_epsilon_
    assert list(synth.flagged_["record"]) == [17]
    assert synth.flagged_["leverage"][0] < 0.05


def test_no_record_is_flagged_in_the_simulation(payroll):
    assert len(hr.Synthesizer("x ~ z", seed=1).fit(payroll).flagged_) == 0


def test_exact_is_absent_where_there_is_no_closed_form(small):
    synth = hr.Synthesizer("x ~ z", standard=hr.RangeTruncated(hr.Radius(0.4, 1.8)), seed=1, draws=100)
    synth.fit(small[["x", "z"]])
    assert not hasattr(synth, "exact_epsilon_")
    assert "exact" in synth.withheld_epsilon_
    assert "exact" not in synth.by_draws_.columns


@pytest.mark.slow
def test_the_statement_covers_fresh_draws(small):
    """At most δ of 4,000 fresh draws exceed the certified Lipschitz and exact prices.

    The statement holds with 95 % confidence per fit, so a run of 40 fits may fail it up to 7 times
    (binomial(40, 0.05) exceeds 7 with p < 5e-4).
    """
    from hedgerow.mechanism.fit import fit
    from hedgerow.randomness import Key

    data = small[["x", "z"]]
    failures = {"lipschitz": 0, "exact": 0}
    for seed in range(40):
        synth = hr.Synthesizer("x ~ z", weights=hr.CapWeights(3.0), draws=100, seed=seed).fit(data)
        outcome = synth._fitted.outcome
        design, power = outcome.fit.design, outcome.fit.power
        constant = outcome.pricing.constant
        exceed = {"lipschitz": 0, "exact": 0}
        count = 4000
        fresh = fit(synth.settings.model, design, power, draws=count, key=Key.from_seed(seed).child("fresh"))
        d = power * fresh.log_lik()
        exceed["lipschitz"] = int((2 * np.abs(d).max(axis=1) > synth.lipschitz_epsilon_).sum())
        exceed["exact"] = int((np.abs(d - constant).max(axis=1) > synth.exact_epsilon_).sum())
        delta = 1 - 0.05 ** (1 / 100)
        for bound in failures:
            failures[bound] += exceed[bound] / count > delta
    assert max(failures.values()) <= 7


def test_the_oscillation_is_certified_about_centres_fixed_beforehand(small):
    synth = hr.Synthesizer(
        "x ~ z", weights=hr.CapWeights(0.5, risk="oscillation"), bound="oscillation", draws=300, seed=1
    ).fit(small[["x", "z"]])
    assert synth.epsilon_ == synth.oscillation_epsilon_
    assert synth.epsilon_ <= synth.certified_epsilon_ < 1.5 * synth.epsilon_


def test_a_record_that_decides_the_fit_to_the_last_digit_has_no_bounded_loss():
    data = pd.DataFrame({"x": [0.0, 9.5e15], "z": [0.0, 1.0]})
    synth = hr.Synthesizer("x ~ z", "normal", standard=hr.Unweighted(), draws=100, seed=1)
    with pytest.warns(hr.HedgerowWarning, match="flagged_"):
        synth.fit(data, keep=["z"])  # of two records any column is the outcome
    assert np.isfinite(synth.oscillation_epsilon_)
    assert synth.exact_epsilon_ == np.inf
    assert 1 in list(synth.flagged_["record"])


def test_shares_of_the_largest_price_are_quiet_where_it_has_no_end():
    assert shares_of_largest(np.array([1.0, 4.0]), 4.0).tolist() == [0.25, 1.0]
    assert shares_of_largest(np.zeros(2), 0.0).tolist() == [0.0, 0.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        finite, endless = shares_of_largest(np.array([1.0, np.inf]), np.inf)
    assert finite == 0
    assert np.isnan(endless)
