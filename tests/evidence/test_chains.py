"""Audit and attack of several protected columns: a row's values are withheld together."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.evidence.attack import attack
from hedgerow.evidence.without import powers_without

FIXED = hr.Prior(coefficients={"Intercept": (0.0, 10.0), "z": (0.0, 10.0)})  # the default reads predictors
COLUMNS = {
    "x": hr.Column("x ~ z", prior=FIXED),
    "y": hr.Column(
        "y ~ z + log(x)", "normal", prior=hr.Prior(coefficients=FIXED.coefficients | {"log(x)": (0.0, 1.0)})
    ),
}
WITHOUT = 7


def pairs(n=200):
    random, data = np.random.default_rng(99), hr.datasets.lognormal(n, seed=1)
    return data.assign(y=np.log(data["x"]) - data["z"] + random.normal(size=n))


def test_without_a_row_the_whole_procedure_runs_as_on_a_table_that_never_had_it():
    settings = {"epsilon": 7.0, "weights": hr.LinearWeights(), "draws": 100, "seed": 1}
    asked = hr.Synthesizer(COLUMNS, **settings)
    whole = asked.fit(pairs())._need()
    power = powers_without(asked.settings, whole.start, WITHOUT, key=whole.key)
    fresh = hr.Synthesizer(COLUMNS, **settings).fit(pairs().drop(index=WITHOUT))
    assert power[WITHOUT] == 0
    np.testing.assert_allclose(np.delete(power, WITHOUT), fresh.power_, rtol=1e-9)
    assert fresh.scale_ != asked.scale_


def test_losses_add_over_links_with_weights_fixed_and_recomputed():
    """Equal weights do not move: recomputed losses are those with weights fixed, at the same draws."""
    synth = hr.Synthesizer(COLUMNS, weights=hr.ScalarWeights(0.3), bound="exact", draws=200, seed=1)
    found = synth.fit(pairs()).audit(riskiest=4, sample=0)
    assert (found.kind, found.keys) == ("exact", 1)
    np.testing.assert_allclose(found.fixed, synth.prices_["withheld_exact"])
    np.testing.assert_allclose(found.recomputed, found.fixed[found.chosen], rtol=1e-6)
    assert not len(found.breaches)
    pricing = hr.Synthesizer(COLUMNS, weights=hr.ScalarWeights(0.3), bound="renyi", draws=200, seed=1)
    found = pricing.fit(pairs()).audit(riskiest=4, sample=0)
    np.testing.assert_allclose(found.recomputed, found.fixed[found.chosen], rtol=1e-6)


@pytest.mark.slow
def test_weights_that_move_with_a_row_are_found_out():
    """Linear weights under the oscillation bound, as for one column; mixed over sets of random numbers."""
    data = pairs(60)
    data.loc[0, "y"] = 12.0
    told = {"weights": hr.LinearWeights(), "bound": "oscillation", "epsilon": 1.0}
    synth = hr.Synthesizer(COLUMNS, **told, draws=300, seed=1)
    with pytest.warns(hr.HedgerowWarning, match="move with every"):
        found = synth.fit(data).audit(riskiest=6, sample=0)
    assert found.keys > 1
    assert found.largest_recomputed > found.largest_fixed


@pytest.fixture(scope="module")
def outlying():
    data = pairs(30)
    data.loc[0, ["x", "y"]] = np.exp(6.0), -4.0
    return hr.Synthesizer(COLUMNS, weights=hr.ScalarWeights(1.0), draws=200, seed=1).fit(data)


def attacked(synth, power, **told):
    start, gone = synth._need().start, np.where(np.arange(30) == 0, 0.0, power)
    return attack(synth.settings, start, powers=[power], without=[gone], key=synth._need().key, **told)


@pytest.mark.slow
def test_an_attack_on_a_row_finds_what_is_there_and_no_more(outlying):
    """A row of which nothing is used is not found; with all of it used a claim of 0.5 is refuted."""
    assert attacked(outlying, np.ones(30), claimed=0.5, trials=240).breach
    ignored = np.where(np.arange(30) == 0, 0.0, 1.0)
    assert attacked(outlying, ignored, claimed=0.0, trials=200).lower == 0.0


@pytest.mark.slow
def test_the_front_door_attacks_a_row(outlying):
    found = (
        hr.Synthesizer(COLUMNS, epsilon=12.0, copies=2, draws=200, seed=1).fit(pairs(30)).attack(trials=200)
    )
    assert found.claimed == 6.0
    assert not found.breach
