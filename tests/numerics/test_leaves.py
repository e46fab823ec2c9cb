"""What is said of all records is the same bits as what leaves say, merged in their order."""

import functools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.mechanism.fit import DrawnRisk, fit
from hedgerow.mechanism.price import Pricing
from hedgerow.models.exact import Lognormal, Normal
from hedgerow.models.scored import Interval, Linear, Opaque, Risk
from hedgerow.numerics import leaves, triangular
from hedgerow.numerics.triangular import leverages
from hedgerow.privacy.sensitive import sensitive_part
from hedgerow.randomness import Key
from hedgerow.tables.design import build, find_spread
from hedgerow.tables.leaves import Held
from hedgerow.tables.table import Table

RECORDS = 64 * 4 + 17
MODEL = Lognormal()


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(leaves, "LEAF", 64)
    monkeypatch.setattr(triangular, "ROWS", 24)


def make_held():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "z": 40 + rng.normal(size=RECORDS),
            "w": rng.exponential(size=RECORDS),
            "g": rng.integers(0, 3, RECORDS),
        }
    )
    frame["x"] = np.exp(0.1 * frame.z + 0.3 * frame.w + rng.normal(size=RECORDS))
    table = Table.of(frame)
    return Held(table, build("x ~ z + w + C(g)", table))


def test_a_sum_is_that_of_its_leaves_in_order():
    values = np.random.default_rng(0).exponential(size=RECORDS) * 10.0 ** np.arange(RECORDS).clip(0, 12)
    by_leaf = [float(values[first : first + 64].sum()) for first in range(0, RECORDS, 64)]
    assert leaves.sum_leaves(values) == leaves.add_in_order(by_leaf)
    assert leaves.sum_leaves(values[:50]) == values[:50].sum()


@given(st.integers(1, 9), st.integers(1, 400), st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_columns_are_summarized_leaf_by_leaf(width, records, seed):
    Z = 1e6 + np.random.default_rng(seed).standard_t(2, size=(records, width))
    parts = [Z[first : first + 64].copy() for first in range(0, records, 64)]
    merged, whole = (
        leaves.merge_columns(map(leaves.summarize_leaf, parts)),
        leaves.summarize_columns(Z),
    )
    for name in ("low", "high", "total"):
        np.testing.assert_array_equal(getattr(merged, name), getattr(whole, name))
    means = whole.total / records
    reach = whole.reach(means)
    np.testing.assert_array_equal(reach, np.abs(Z - means).max(axis=0))
    sums = sum(leaves.sum_leaf_powers(part, means, reach) for part in parts)
    np.testing.assert_array_equal(sums, leaves.sum_powers(Z, means, reach))
    np.testing.assert_allclose(means, Z.mean(axis=0), rtol=1e-14)


def test_means_and_spread_of_a_design_follow_from_its_leaves():
    held = make_held()
    design, count = held.encoded, held.records
    parts = [held.design(leaf).matrix for leaf in range(held.count)]
    summary = leaves.merge_columns(map(leaves.summarize_leaf, parts))
    means = summary.total / count
    powers = sum(leaves.sum_leaf_powers(part, means, summary.reach(means)) for part in parts)
    np.testing.assert_array_equal(design.means, means)
    np.testing.assert_array_equal(design.spread, find_spread(summary, summary.reach(means), powers / count))
    away = design.matrix[:, 1] - design.matrix[:, 1].mean()
    m2, m4 = np.mean(away**2), np.mean(away**4)
    assert design.spread[1] == pytest.approx(np.sqrt(max(m4 / m2 - 3 * m2, m2 / 2)))
    assert design.spread[0] == 1.0  # a constant column has its size


def test_the_posterior_and_the_influence_of_each_record_follow_from_leaves():
    held = make_held()
    design, power = held.encoded, np.random.default_rng(1).uniform(0.1, 1.0, RECORDS)
    posterior = MODEL.posterior(design, power)
    parts = [held.design(leaf) for leaf in range(held.count)]
    powers = [power[held.rows(leaf)] for leaf in range(held.count)]
    said = [
        MODEL.sum_leaf(part, own, first=leaf == 0)
        for leaf, (part, own) in enumerate(zip(parts, powers, strict=True))
    ]
    merged = MODEL.posterior_of(
        functools.reduce(MODEL.merge_sums, said), leaves.add_in_order([float(own.sum()) for own in powers])
    )
    assert (merged.shape, merged.rate) == (posterior.shape, posterior.rate)
    np.testing.assert_array_equal(merged.factor, posterior.factor)
    np.testing.assert_array_equal(merged.mean, posterior.mean)
    whole = MODEL.influence(design, power, posterior)
    for leaf, (part, own) in enumerate(zip(parts, powers, strict=True)):
        rows, here = held.rows(leaf), MODEL.influence(part, own, posterior)
        for name in ("leverage", "pull", "spread", "squared"):
            np.testing.assert_array_equal(getattr(here, name), getattr(whole, name)[rows])
        np.testing.assert_array_equal(here.loss_constant(own), whole.loss_constant(power)[rows])
        np.testing.assert_array_equal(leverages(part.matrix, posterior.factor), whole.spread[rows])


def by_standard(held, power):
    values = held.encoded.values
    inside = np.ones(RECORDS, np.bool_)
    interval = Interval(values * 0.4, values * 1.8, inside)
    linear = [
        sensitive_part(standard, power, np.full(RECORDS, 0.2), interval)
        for standard in (hr.ADP(), hr.RangeTruncated(hr.Radius(0.4, 1.8)))
    ]
    combined = Linear(power, -0.5 * power, np.zeros(RECORDS))
    opaque = Opaque(lambda records, log_lik, log_mass: power[records] * np.tanh(log_lik) - log_mass)
    return [*linear, combined, opaque], interval


@pytest.mark.parametrize("which", range(4))
def test_prices_of_a_leafs_records_are_those_of_the_whole(which):
    held = make_held()
    power = np.random.default_rng(1).uniform(0.1, 1.0, RECORDS)
    forms, interval = by_standard(held, power)
    whole = fit(MODEL, held.encoded, power, draws=120, key=Key.from_seed(2))
    price = Pricing(whole, forms[which], interval)
    masses = whole.mean_mass(interval)
    uniforms = Key.from_seed(5).stream().uniform(RECORDS)
    synthetic = whole.predict(7, uniforms)
    for leaf in range(held.count):
        rows = held.rows(leaf)
        part = replace(whole, design=held.design(leaf), power=power[rows], influence=None)
        form = forms[which]
        if isinstance(form, Linear):
            form = Linear(form.density[rows], form.mass[rows], form.constant[rows])
        else:
            form = Opaque(
                lambda records, log_lik, log_mass, power=power[rows]: (
                    power[records] * np.tanh(log_lik) - log_mass
                )
            )
        here = Pricing(part, form, interval[rows])
        np.testing.assert_array_equal(here.sensitivity, price.sensitivity[rows])
        np.testing.assert_array_equal(here.extremes.low, price.extremes.low[rows])
        np.testing.assert_array_equal(here.extremes.high, price.extremes.high[rows])
        np.testing.assert_array_equal(part.mean_mass(interval[rows]), masses[rows])
        np.testing.assert_array_equal(part.predict(7, uniforms[rows]), synthetic[rows])


@pytest.mark.parametrize("unit", [1.0, 1e-4], ids=["amounts", "densities above one"])
def test_risk_is_the_same_found_by_its_size_alone(unit):
    held = make_held()
    design = held.encoded.replace_values(held.encoded.values * unit)
    whole = fit(MODEL, design, np.ones(RECORDS), draws=120, key=Key.from_seed(2))
    nowhere = Interval(np.full(RECORDS, -np.inf), np.full(RECORDS, np.inf), np.ones(RECORDS, np.bool_))
    ones, zeros = np.ones(RECORDS), np.zeros(RECORDS)
    want = Risk.from_extremes(whole.extremes(Linear(ones, zeros, zeros), nowhere))
    assert DrawnRisk(whole, nowhere).share_above_one == want.share_above_one
    risk = DrawnRisk(whole, nowhere)
    np.testing.assert_array_equal(risk.lipschitz, want.lipschitz)
    np.testing.assert_array_equal(risk.oscillation, want.oscillation)
    assert risk.share_above_one == want.share_above_one
    assert (want.share_above_one > 0.5) == (unit < 1)


def test_what_a_design_keeps_is_that_of_the_model_that_asks():
    design = make_held().encoded
    design = design.replace_values(design.values.copy())
    log, plain = MODEL.responses(design), Normal().responses(design)
    np.testing.assert_array_equal(log, np.log(design.values))
    np.testing.assert_array_equal(plain, design.values)
    assert MODEL.responses(design) is MODEL.responses(design)
    assert design.values.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        plain[0] = 0.0
