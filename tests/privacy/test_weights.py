"""Weights against their formulas and brute force."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.errors import SettingError
from hedgerow.models.scored import Risk
from hedgerow.privacy.weights import Evidence, as_weights, caveat_if_recomputed, compute_alpha
from hedgerow.tables.table import Table

LOW = np.array([-8.0, -4.0, -2.0, -1.0])
HIGH = np.array([-3.0, -3.5, -1.0, -0.5])


def evidence(low=LOW, high=HIGH, values=None, **columns):
    values = np.arange(1.0, len(low) + 1) if values is None else np.asarray(values, dtype=float)
    table = Table.of(pd.DataFrame({"x": values, **columns}))
    return Evidence(Risk(low, high), values, table, lambda alpha: alpha * -low)


def test_formulas():
    risk = -LOW
    cases = {
        hr.LinearWeights(): (risk.max() - risk) / (risk.max() - risk.min()),
        hr.LinearWeights(scale=0.5, shift=0.25): 0.5 * (risk.max() - risk) / 7 + 0.25,
        hr.SoftmaxWeights(): 1 - 1 / (1 + np.exp(-1.69897 * (risk - risk.mean()) / risk.std(ddof=1))),
        hr.LogisticWeights(): 1 - (2 / (1 + np.exp(-risk / 2)) - 1),
        hr.InverseWeights(): risk.min() / risk,
        hr.CapWeights(2.0): np.array([0.25, 0.5, 1.0, 1.0]),
        hr.CapWeights(1.0, risk="oscillation"): np.array([0.2, 1.0, 1.0, 1.0]),
        hr.ScalarWeights(0.3): np.full(4, 0.3),
        hr.ScalarWeights(alpha=0.3): np.full(4, 0.3),
    }
    for weights, expected in cases.items():
        np.testing.assert_allclose(weights.alpha(evidence()), expected, rtol=1e-12, err_msg=repr(weights))


def test_the_riskiest_record_gets_exactly_zero_under_linear_weights():
    assert hr.LinearWeights().alpha(evidence())[0] == 0.0


def test_logistic_weights_keep_every_product_below_its_bound():
    risk = np.linspace(0, 60, 10_000)
    product = hr.LogisticWeights().alpha(evidence(-risk, -risk, np.ones(len(risk)))) * risk
    assert 1.113 < product.max() <= 1.114


def test_equal_risks_are_not_an_error():
    same = np.full(3, -2.0)
    for weights in (hr.LinearWeights(), hr.SoftmaxWeights(), hr.InverseWeights()):
        assert np.isfinite(weights.alpha(evidence(same, same))).all()


def test_reweighting_equalises_what_did_not_decide_the_price():
    base = hr.LinearWeights(scale=0.5, shift=0.1)
    alpha = base.alpha(evidence())
    bound = alpha * -LOW
    expected = np.clip(0.95 * alpha * bound.max() / bound, 0, 1)
    np.testing.assert_allclose(hr.Reweighted(base).alpha(evidence()), expected, rtol=1e-12)
    assert hr.Reweighted(hr.LinearWeights()).alpha(evidence())[0] == 0.0


def brute_identification(values, radius, pairwise):
    n = len(values)
    inside = np.array([[min(a, b) <= h <= max(a, b) for h in values] for a, b in
                       ((v * (1 - radius), v * (1 + radius)) for v in values)])  # fmt: skip
    if not pairwise:
        return inside.sum(axis=1) / n
    union = np.array([[(inside[i] | inside[j]).sum() / n for j in range(n)] for i in range(n)])
    return (union.sum(axis=1) - np.diag(union)) / (n - 1)


@given(
    st.lists(st.floats(-50, 50).filter(lambda v: abs(v) > 1e-3), min_size=2, max_size=25),
    st.floats(0.01, 0.9),
    st.booleans(),
)
def test_identification_risk_is_the_brute_force_count(values, radius, pairwise):
    values = np.round(np.array(values), 1)
    found = hr.IdentificationWeights(radius, pairwise=pairwise).alpha(
        evidence(-np.ones(len(values)), np.ones(len(values)), values)
    )
    np.testing.assert_allclose(found, brute_identification(values, radius, pairwise), rtol=1e-12)


def test_identification_risk_runs_over_records_of_the_same_pattern():
    values = np.array([10.0, 11.0, 10.5, 99.0])
    rows = evidence(-np.ones(4), np.ones(4), values, town=["a", "a", "b", "a"])
    found = hr.IdentificationWeights(0.2, known=["town"]).alpha(rows)
    np.testing.assert_allclose(found, [2 / 3, 2 / 3, 1.0, 1 / 3])


def test_own_function_and_fixed_numbers():
    np.testing.assert_allclose(as_weights(lambda risk: 1 / (1 + risk)).alpha(evidence()), 1 / (1 - LOW))
    np.testing.assert_allclose(as_weights([0.1, 0.2, 0.3, 0.4]).alpha(evidence()), [0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (hr.ScalarWeights(0.5), ""),
        (as_weights(np.ones(3)), ""),
        (hr.LinearWeights(), "was seen above this bound"),
        (hr.Reweighted(hr.InverseWeights()), "was seen above this bound"),
        (hr.CapWeights(1.0, risk="oscillation"), "in simulations it was seen to"),
        (hr.SoftmaxWeights(), "in simulations it was seen to"),
        (hr.LogisticWeights(), "in simulations it was seen to"),
        (as_weights(lambda risk: 1 / (1 + risk)), "in simulations it was seen to"),
        (hr.Reweighted(hr.ScalarWeights(0.5)), "in simulations it was seen to"),
        (hr.IdentificationWeights(0.2), "can exceed ε."),
    ],
    ids=lambda given: type(given).__name__,
)
def test_weights_that_hang_on_other_records_say_so(weights, words):
    assert (caveat_if_recomputed(weights, scaled=False) == "") == (words == "")
    assert words in caveat_if_recomputed(weights, scaled=False)
    # Scaled to a target, no weight depends on its own record alone, but for one that is planned.
    assert caveat_if_recomputed(weights, scaled=True) != ""
    assert caveat_if_recomputed(hr.PlannedWeights(), scaled=True) == ""


@pytest.mark.parametrize(
    "weights", [lambda risk: risk * 0 + 1.5, lambda risk: risk * np.nan, lambda risk: risk[:2], [0.5, 0.5]]
)
def test_what_is_not_a_weight_is_refused(weights):
    with pytest.raises(SettingError):
        compute_alpha(as_weights(weights), evidence())


@pytest.mark.parametrize(
    "make",
    [
        lambda: hr.LinearWeights(scale=-1.0),
        lambda: hr.LinearWeights(risk="loud"),
        lambda: hr.CapWeights(0.0),
        lambda: hr.ScalarWeights(1.5),
        lambda: hr.Reweighted(hr.LinearWeights(), k=0.0),
        lambda: hr.IdentificationWeights(1.0),
        lambda: as_weights("linear"),
    ],
)
def test_bad_settings_are_refused(make):
    with pytest.raises(SettingError):
        make()


def test_reweighting_in_the_simulation(payroll):
    """ε stays about the same while the mean weight rises (maths: 8.1 → 8.0, 0.71 → 0.83)."""
    plain = hr.Synthesizer("x ~ z", seed=1).fit(payroll)
    again = hr.Synthesizer("x ~ z", weights=hr.Reweighted(hr.LinearWeights()), seed=1).fit(payroll)
    assert again.epsilon_ == pytest.approx(plain.epsilon_, rel=0.1)
    assert again.alpha_.mean() > plain.alpha_.mean() + 0.05
