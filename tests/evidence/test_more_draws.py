"""More draws, more records."""

from dataclasses import replace

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evidence.more_draws import Outlook, outlook
from hedgerow.evidence.more_records import contraction


def test_maxima_are_the_brute_force_ones(small):
    for standard in (hr.ADP(), hr.RangeTruncated(hr.Radius(0.4, 1.8))):
        synth = hr.Synthesizer("x ~ z", standard=standard, seed=1, draws=150).fit(small[["x", "z"]])
        pricing = synth._fitted.outcome.pricing
        every = slice(None)
        fit = pricing.fit
        d = pricing.part(every, fit.log_lik(), fit.log_mass(pricing.interval))
        found = outlook(pricing)
        np.testing.assert_allclose(found.maxima, np.abs(d).max(axis=1), rtol=1e-12)
        assert 2 * found.maxima.max() == pytest.approx(synth.lipschitz_epsilon_, rel=1e-9)


def test_maxima_are_the_same_without_a_closed_form(small):
    """The path of models that score whole tables, on draws of one that need not."""
    synth = hr.Synthesizer("x ~ z", standard=hr.RangeTruncated(hr.Radius(0.4, 1.8)), seed=1, draws=150)
    pricing = synth.fit(small[["x", "z"]])._fitted.outcome.pricing
    other = replace(pricing, fit=replace(pricing.fit, influence=None))
    np.testing.assert_allclose(outlook(other).maxima, outlook(pricing).maxima, rtol=1e-12)


def test_pictures(small):
    synth = hr.Synthesizer("x ~ z", standard=hr.RangeTruncated(hr.Radius(0.4, 1.8)), seed=1, draws=150)
    found = synth.fit(small[["x", "z"]]).outlook()
    seen, foretold = found.plot().axes[0].get_lines()[:2]
    assert seen.get_ydata()[-1] == pytest.approx(2 * found.maxima.max())
    assert len(foretold.get_ydata()) == 60
    columns = contraction(
        lambda: hr.Synthesizer("x ~ z", seed=1, draws=100), small[["x", "z"]], sizes=[30, 60]
    )
    assert len(hr.plot.contraction(columns).axes[0].get_lines()) == 4


def test_a_known_tail_is_extrapolated():
    """Exponential tails: the expected price at n draws is the threshold plus scale times log(n/5)."""
    maxima = np.random.default_rng(1).exponential(1.0, 20_000)
    known = Outlook(maxima, 2.0, 0.0, 1.0, float(np.log(5)))
    assert known.price_at(1000) == pytest.approx(2 * np.log(1000))
    assert not Outlook(maxima, 1.0, 0.5, 1.0, 1.0).settled
    assert "heavy" in Outlook(maxima, 1.0, 0.5, 1.0, 1.0).advice()
    assert Outlook(maxima, 1.0, -0.5, 0.01, 10.0).settled


def test_the_outlook_foretells_more_draws(payroll):
    """Price at ten times the draws, foretold from 500, within 10 % of what 5000 draws cost."""
    few = hr.Synthesizer("x ~ z", seed=1, draws=500).fit(payroll)
    many = hr.Synthesizer("x ~ z", seed=2, draws=5000).fit(payroll)
    foretold = outlook(few._fitted.outcome.pricing).price_at(5000)
    assert foretold == pytest.approx(many.epsilon_, rel=0.1)


def test_bounds_without_a_tail(small):
    synth = hr.Synthesizer("x ~ z", seed=1, draws=100).fit(small[["x", "z"]])
    with pytest.raises(hr.HedgerowError, match="lipschitz"):
        outlook(synth._fitted.outcome.pricing, bound="oscillation")
    assert "confidential" in repr(outlook(synth._fitted.outcome.pricing, bound="exact"))


def test_contraction(payroll):
    found = contraction(lambda: hr.Synthesizer("x ~ z", seed=1, draws=200), payroll, seed=1)
    assert found["n"] == [125, 250, 500, 1000, 2000]
    assert found["oscillation"][-1] < found["oscillation"][0]
    with pytest.raises(hr.HedgerowError, match="2000 rows"):
        contraction(lambda: hr.Synthesizer("x ~ z"), payroll, sizes=[3000])
