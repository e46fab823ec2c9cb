"""Declared limits move copies, and say so; ends of a family keep to them."""

import warnings

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr

ASKED = {"bound": "oscillation", "weights": hr.ScalarWeights(1), "seed": 1, "copies": 2}


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(1)
    z = random.normal(size=300)
    x = z + random.normal(size=300)
    return pd.DataFrame({"z": z, "x": x, "y": x + random.normal(size=300)})


def chain(x="normal", **limits):
    first = hr.Column("x ~ z", x, declared=hr.Declared("number", **limits) if limits else None)
    return hr.Synthesizer({"x": first, "y": hr.Column("y ~ x", "normal")}, **ASKED)


def test_values_that_declared_limits_move_are_counted_and_told(data):
    free, limited = (chain(**limits).fit(data) for limits in ({}, {"range_min": -1, "range_max": 2.5}))
    plain = np.concatenate([copy["x"] for copy in free.sample().tables])
    with pytest.warns(hr.HedgerowWarning, match=r"of 600 synthetic values of 'x' .* lower= and upper="):
        copies = limited.sample().tables
    moved = np.concatenate([copy["x"] for copy in copies])
    np.testing.assert_array_equal(moved, np.clip(plain, -1, 2.5))
    assert limited._fitted.moved == {"x": int(((plain < -1) | (plain > 2.5)).sum())}
    assert limited._fitted.moved["x"] > 50


def test_nothing_is_told_where_nothing_moved(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error", hr.HedgerowWarning)
        synth = chain(range_min=-1000).fit(data)
        synth.sample()
    assert synth._fitted.moved == {}


@pytest.mark.slow
def test_ends_of_a_family_hold_in_a_chain_without_a_lump(data):
    inside = data[data["x"].between(-2, 3)].reset_index(drop=True)
    synth = chain(hr.Family("normal", lower=-2, upper=3)).fit(inside)
    for copy in synth.sample().tables:
        assert copy["x"].between(-2, 3).all()
        assert copy["x"].nunique() == len(inside)
