"""Strict(limits=…): what is settled and refused before any data are seen."""

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.models.exact import Asinh, Lognormal, Normal
from hedgerow.privacy.strict.limits import response_limits, widest_set
from hedgerow.tables.table import Table

LIMITS = (1.0, 1e6)


def ask(family="lognormal", *, epsilon=1.0, limits=LIMITS, standard=None, **settings):
    strict = hr.Strict(limits=limits, **(standard or {}))
    return hr.Synthesizer("x ~ z", family, standard=strict, epsilon=epsilon, **settings)


def test_limits_are_told_with_all_of_their_digits():
    """A statement rests on them: 1.23457e+06 is another limit."""
    assert "between 0.05 and 1,234,567;" in hr.Strict(limits=(0.05, 1234567)).described()
    several = hr.Strict(limits={"wage": (1000, 12345678), "bonus": (1, 20.5)}).described()
    assert "(wage 1,000 to 12,345,678; bonus 1 to 20.5)" in several


BOX = {"z": (0, 1), "sigma": (1, 2)}
RANGE = {"relation": "range"}


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: hr.Strict(), "needs limits .* or a box"),
        (lambda: hr.Strict(BOX, limits=LIMITS), "needs limits .* or a box"),
        (lambda: hr.Strict(limits=(5, 1)), "two numbers in order"),
        (lambda: hr.Strict(limits=(0, np.inf)), "two numbers in order"),
        (lambda: hr.Strict(limits=3), "two numbers"),
        (lambda: hr.Strict(limits=LIMITS, relation="added"), "relation must be one of"),
        (lambda: hr.Strict(limits=LIMITS, noise="uniform"), "noise must be one of"),
        (lambda: hr.Strict(limits=LIMITS, margin=0.25), r"Use Margin\(0.25\)"),
        (lambda: hr.Margin(1.5), "share must lie between 0 and 1"),
        (lambda: hr.Strict(BOX, relation="replaced"), "relation goes with limits"),
        (lambda: hr.Strict(BOX, range=hr.Radius(0.4, 1.8)), "range goes with limits"),
        (lambda: hr.Strict(limits=LIMITS, relation="range"), "go together"),
        (lambda: hr.Strict(limits=LIMITS, range=hr.Radius(0.4, 1.8)), "go together"),
        (lambda: hr.Strict(limits=LIMITS, range=hr.Radius(0.0, 1.8), **RANGE), "any number of times apart"),
        (lambda: hr.Strict(limits=LIMITS, range=hr.Radius(0.4, 2, outside="public"), **RANGE), "every value"),
        (
            lambda: hr.Strict(limits=LIMITS, range=hr.Bounds(np.ones(3), np.full(3, 2.0)), **RANGE),
            "their owner alone",
        ),
        (
            lambda: hr.Strict(
                limits=LIMITS, range=hr.Tail(0.1, hr.Radius(0.1, 3), hr.Radius(0.4, 1.8)), **RANGE
            ),
            "Tail makes none",
        ),
        (lambda: ask("gamma"), "needs the family normal, lognormal or asinh"),
        (lambda: ask(limits=(0, 10)), "positive limits"),
        (lambda: ask("normal", standard={"range": hr.Radius(0.4, 1.8), **RANGE}), "needs classes"),
        (lambda: ask(epsilon=None), "needs a target: its noise"),
        (lambda: ask(epsilon=1e-9), "between 1e-06 and 1e\\+06"),
        (lambda: ask(bound="exact"), "leave out bound"),
        (lambda: ask(weights=hr.LinearWeights()), "leave out weights"),
        (lambda: ask(debias=True), "takes no debias"),
        (lambda: ask(known="simulated"), "takes no known"),
        (lambda: ask(prior=hr.Prior(residual=2.0)), "takes no prior"),
        (lambda: ask(hr.Lognormal(hr.Prior(residual=2.0))), "takes no prior"),
        (lambda: ask(delta=1e-5), "delta belongs to"),
        (lambda: hr.Synthesizer("x ~ z", sampling="projected"), r"goes with Strict\(limits=…\)"),
    ],
)
def test_what_does_not_fit_is_refused_before_data_are_seen(make, words):
    with pytest.raises(hr.HedgerowError, match=words):
        make()


def test_a_preset_says_nothing_of_weights_that_are_not_there():
    assert ask(preset="recommended").settings.sampling == "stratified"
    assert ask(preset="paper").settings.known == "exact"
    assert ask(delta=1e-5, standard={"noise": "gaussian"}).settings.delta == 1e-5


def test_limits_are_on_the_scale_of_the_response():
    assert response_limits(Lognormal(), (1.0, np.e)) == pytest.approx((0, 1))
    assert response_limits(Normal(), (-2.0, 5.0)) == (-2.0, 5.0)


def test_the_widest_set_is_found_within_the_limits():
    table = Table.of(pd.DataFrame({"low": [1.0, 10.0, 0.0], "high": [20.0, 40.0, np.inf]}))
    assert widest_set(hr.Radius(0.4, 1.8), Lognormal(), LIMITS) == pytest.approx(np.log(4.5))
    assert widest_set(hr.Radius(0.4, 1.8), Lognormal(), (1.0, 2.0)) == pytest.approx(np.log(2))
    # On the asinh scale sets are narrower near zero; wherever they lie, they are no wider than said.
    signed, x = Asinh(scale=100.0), np.r_[-np.geomspace(1e9, 1e-9, 300), np.geomspace(1e-9, 1e9, 300)]
    width = widest_set(hr.Radius(0.4, 1.8), signed, (-1e9, 1e9))
    found = np.abs(signed.response(1.8 * x) - signed.response(0.4 * x))
    assert 0.999 * width < found.max() <= width == pytest.approx(np.log(4.5))
    # From 1000 up to the limit is the widest; what lies beyond the edges is a set too.
    edges = hr.Brackets([0, 10, 1000, np.inf])
    assert widest_set(edges, Lognormal(), LIMITS) == pytest.approx(np.log(1000))
    assert widest_set(hr.Brackets([4, 5, 6]), Normal(), (0.0, 8.0)) == 4
    columns = hr.Bounds("low", "high")
    assert widest_set(columns, Normal(), (0.0, 100.0), table) == 100
    assert widest_set(columns, Normal(), (0.0, 35.0), table) == 35
    assert widest_set(hr.Bounds(3, 7), Normal(), (0.0, 35.0), table) == 4
