"""The Rényi price in the procedure: no draws in it, copies priced together, a scale that is no lottery."""

import json

import jsonschema
import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import CalibrationError, SettingError
from hedgerow.privacy.bounds import RENYI
from hedgerow.randomness import Key
from hedgerow.release import certificate as certificates

RADIUS = hr.Radius(0.4, 1.8)


def fitted(data, **settings):
    settings = {"weights": hr.ScalarWeights(1.0), "draws": 200, "seed": 1} | settings
    return hr.Synthesizer("x ~ z", **settings).fit(data[["x", "z"]])


@pytest.mark.parametrize("copies", [1, 5, 20])
def test_the_scale_depends_on_the_weights_alone(payroll, copies):
    made = [
        fitted(payroll, bound="renyi", epsilon=1.0, copies=copies, seed=seed, draws=draws)
        for seed, draws in ((1, 200), (2, 200), (3, 1000))
    ]
    assert len({synth.scale_ for synth in made}) == 1
    for synth in made:
        assert 0.999 < synth.total_epsilon_ <= 1.0
        assert synth.total_epsilon_ == synth.certified_epsilon_
        assert synth.epsilon_ == synth.renyi_epsilon_ == synth.prices_["renyi"].max()


def test_copies_are_priced_together(payroll):
    """About √m, where maxima over draws add up to m; a target for all is not cut into m parts."""
    totals = {m: fitted(payroll, bound="renyi", copies=m).total_epsilon_ for m in (1, 4, 16)}
    assert 2 < totals[4] / totals[1] < 2.3
    assert 4 < totals[16] / totals[1] < 5
    five = fitted(payroll, bound="renyi", epsilon=1.0, copies=5)
    assert five.scale_ > 2 * fitted(payroll, bound="renyi", epsilon=0.2).scale_


@pytest.mark.filterwarnings("ignore:delta is not below:hedgerow.errors.HedgerowWarning")
@pytest.mark.parametrize("standard", [hr.Unweighted(), hr.ADP(), hr.RangeAveraged(RADIUS)])
@pytest.mark.parametrize("copies", [1, 3])
def test_the_statement_holds_in_both_directions(small, standard, copies):
    """δ(ε) of the costliest records by 50,000 draws of either posterior, at a δ that draws can see."""
    delta, alpha = 0.02, np.random.default_rng(1).uniform(0.2, 1, len(small))
    synth = fitted(small, standard=standard, weights=alpha, bound="renyi", delta=delta, copies=copies)
    model, design = synth.settings.model, synth._fitted.start.design
    by_record = synth._fitted.outcome.pricing.neighbours.by_record(delta=delta, copies=copies)
    share = synth.power_ - (synth.known_ if standard.uses_known else 0)
    for record in np.argsort(-by_record)[:2]:
        less = synth.power_.copy()
        less[record] -= share[record]
        pair = model.posterior(design, synth.power_), model.posterior(design, less)
        for one, other in (pair, pair[::-1]):
            loss = np.zeros(50_000)
            for copy in range(copies):
                draws = one.draw(len(loss), Key.from_seed(copy))
                loss += one.log_density(draws) - other.log_density(draws)
            left_open = np.maximum(-np.expm1(by_record[record] - loss), 0).mean()
            assert left_open <= delta
    assert synth.total_epsilon_ == by_record.max()


def test_the_price_stands_beside_the_others(payroll):
    standards = {"averaged": hr.RangeAveraged(RADIUS), "truncated": hr.RangeTruncated(RADIUS)}
    standards |= {"adp": hr.ADP(), "unweighted": hr.Unweighted()}
    compared = hr.compare("x ~ z", payroll, standards=standards, seed=1)
    table = compared.table.set_index("standard")
    for label, synth in compared.synthesizers.items():
        assert 0 < table.loc[label, "withheld_renyi"] == synth.withheld_epsilon_["renyi"]
        if label != "truncated":
            assert table.loc[label, "renyi"] == synth.renyi_epsilon_ <= synth.withheld_epsilon_["renyi"]
            assert synth.exact_epsilon_ < synth.renyi_epsilon_ < synth.oscillation_epsilon_
            assert synth.prices_["renyi"].max() == synth.renyi_epsilon_
    assert np.isnan(table.loc["truncated", "renyi"])
    assert compared.synthesizers["truncated"].renyi_epsilon_ is None


def test_a_neighbour_without_a_closed_form_is_refused(small):
    with pytest.raises(SettingError, match=r"bound='renyi' has no closed form for RangeTruncated"):
        fitted(small, standard=hr.RangeTruncated(RADIUS), bound="renyi")


@pytest.mark.parametrize("delta", [0, 1, -1e-6, float("nan"), "1e-6", True])
def test_a_delta_between_0_and_1(delta):
    with pytest.raises(SettingError, match="delta must lie between 0 and 1"):
        hr.Synthesizer("x ~ z", bound="renyi", delta=delta)


@pytest.mark.parametrize("delta", [1e-5, 1e-6])  # the default is no less asked for
def test_other_bounds_have_their_own_delta(delta):
    for bound in ("lipschitz", "oscillation", "exact"):
        with pytest.raises(SettingError, match="delta belongs to bound='renyi'"):
            hr.Synthesizer("x ~ z", bound=bound, delta=delta)
    with pytest.raises(SettingError, match="delta belongs to bound='renyi'"):
        hr.Plan(formula="x ~ z", epsilon=2.0, delta=delta)
    assert hr.Synthesizer("x ~ z", bound="renyi", delta=1e-5).settings.delta == 1e-5


def rare(n=900, groups=25):
    """Heavy tails, many dummies, and one record that is alone in its category."""
    random = np.random.default_rng(3)
    group = np.append(random.integers(groups - 1, size=n - 1), groups - 1)
    return pd.DataFrame({"x": np.exp(2 + 0.7 * random.standard_t(3, n)), "group": group.astype(str)})


@pytest.mark.filterwarnings("ignore::hedgerow.errors.HedgerowWarning")
def test_a_lone_record_has_an_infinite_price_under_a_vague_prior_and_a_finite_one_otherwise():
    data = rare()
    settings = {"weights": hr.ScalarWeights(1.0), "draws": 200, "seed": 1}
    vague_prior = hr.Prior(slope=(0.0, 100.0))
    vague = hr.Synthesizer("x ~ group", prior=vague_prior, **settings).fit(data)
    assert list(np.flatnonzero(np.isinf(vague.prices_["renyi"]))) == [899]
    assert vague.renyi_epsilon_ == np.inf
    informed = hr.Synthesizer("x ~ group", **settings).fit(data)
    by_record = informed.prices_["renyi"]
    assert by_record.argmax() == 899
    assert 1.5 * np.delete(by_record, 899).max() < by_record[899] < 20
    for kind in (None, vague_prior):
        met = hr.Synthesizer("x ~ group", prior=kind, bound="renyi", epsilon=4.0, **settings).fit(data)
        assert 3.99 < met.total_epsilon_ <= 4.0
    with pytest.raises(CalibrationError, match="over all copies cannot be met"):
        hr.Synthesizer(
            "x ~ group", prior=vague_prior, bound="renyi", epsilon=1e-3, copies=20, **settings
        ).fit(data)


def test_a_lone_record_a_large_delta_and_a_target_that_leaves_nothing_are_told():
    vague = hr.Prior(slope=(0.0, 100.0))
    asked = {"weights": 0.5 * np.ones(200), "bound": "renyi", "draws": 100}
    with pytest.warns(hr.HedgerowWarning, match="the only one of a category"):
        hr.Synthesizer("x ~ group", prior=vague, **asked).fit(rare(200, 4))
    table = hr.datasets.lognormal(n=200, seed=1)
    with pytest.warns(hr.HedgerowWarning, match="delta is not below 1/n"):
        fitted(table, bound="renyi", delta=0.005)
    with pytest.warns(hr.HedgerowWarning, match="the prior decides the copies"):
        fitted(table, bound="renyi", epsilon=0.5)


def test_a_certificate_states_epsilon_and_delta_of_all_copies(payroll):
    synth = fitted(payroll, bound="renyi", epsilon=1.0, delta=1e-7, copies=3)
    guarantee = synth.sample().guarantee
    assert "ε = 1 and δ = 0.0000001" in guarantee.claim()
    assert "the 3 released copies together" in guarantee.claim()
    assert guarantee.epsilon_per_copy is None
    made = certificates.Certificate.build(
        guarantee, assumed=(), also_not_covered=(), release="0" * 16, date="2024-01-01", unchanged=("z",),
        used_not_released=(), records=2000, plan="0" * 64,
        copies=(certificates.Copy("synthetic-copy-1.csv", "csv", "0" * 64, 1, ()),),
    )  # fmt: skip
    jsonschema.validate(json.loads(made.json()), certificates.schema())
    assert certificates.Certificate.loads(made.json().encode()) == made
    assert made.epsilon == certificates.Price(None, 1.0)
    assert made.delta == certificates.Price(None, 1e-7)
    assert made.confidence is None
    assert dict(made.facts())["δ in total"] == "0.0000001"
    assert not {"confidence", "δ for one copy", "target ε for one copy"} & set(dict(made.facts()))
    one = fitted(payroll, bound="renyi", epsilon=1.0).sample().guarantee
    assert one.epsilon_per_copy == 1.0
    assert RENYI.statement(200, synth.health_).confidence == 1.0


def test_a_plan_says_delta_under_its_own_bound_only(payroll):
    plan = hr.Plan(formula="x ~ z", epsilon=1.0, bound="renyi")
    assert plan.mapping()["delta"] == 1e-6
    assert hr.Plan.loads(plan.text()) == plan
    written = "version: 1\nformula: x ~ z\nepsilon: 1\nbound: renyi\ndelta: 1e-7\n"
    assert hr.Plan.loads(written).settings.delta == 1e-7
    assert "delta" not in hr.Plan(formula="x ~ z", epsilon=1.0).mapping()
