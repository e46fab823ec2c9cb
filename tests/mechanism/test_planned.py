"""A weight that is planned without the outcome, and what it promises of tables that the model describes."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import CalibrationError, SettingError
from hedgerow.mechanism.fit import fit
from hedgerow.mechanism.planned import chance_of_refusal, links, planned_weight
from hedgerow.mechanism.planned.links import plan_links
from hedgerow.models.chain import Chain
from hedgerow.numerics import leaves
from hedgerow.privacy.settings import Settings
from hedgerow.randomness import Key
from hedgerow.synthesizer import encode
from hedgerow.tables import design as designs
from hedgerow.tables.chain import ChainDesign
from hedgerow.tables.leaves import Held
from hedgerow.tables.table import Table
from hedgerow.threads import Here


def asked(**settings):
    return Settings.of("x ~ z", **({"preset": "recommended", "epsilon": 2.0} | settings))


def design_of(data):
    return designs.build("x ~ z", Table.of(data))


def price(settings, design, weight):
    """The Rényi price of equal weights, by the formulas that a fit is priced by."""
    power = np.full(design.records, weight)
    posterior = settings.model.posterior(design, power)
    pairs = settings.model.influence(design, power, posterior).neighbours(power)
    return pairs.epsilon(delta=settings.delta, copies=settings.copies)


def test_the_outcome_is_not_read():
    data = hr.datasets.lognormal(150, seed=1)
    other = data.assign(x=np.exp(np.random.default_rng(1).standard_t(2, 150)))
    missing = data.assign(x=np.nan)
    settings = asked()
    found = [planned_weight(settings, design_of(table), 0.05) for table in (data, other)]
    blank = planned_weight(settings, design_of(data).replace_values(missing["x"].to_numpy()), 0.05)
    assert found[0] == found[1] == blank
    assert 0.01 < found[0] < 1


def test_all_records_get_the_planned_weight_with_any_one_of_them_or_without():
    data = hr.datasets.lognormal(200, seed=3)
    synth = hr.Synthesizer("x ~ z", epsilon=2.0, preset="recommended", draws=200, seed=1).fit(data)
    assert set(synth.alpha_) == {planned_weight(synth.settings, synth._need().start.design, 0.05)}
    assert synth.total_epsilon_ < 2.0
    found = synth.audit(riskiest=6, sample=0)
    assert (found.epsilon, found.keys) == (2.0, 1)
    np.testing.assert_allclose(found.recomputed, found.fixed[found.chosen], rtol=1e-6)
    assert not len(found.breaches)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{"epsilon": 2.0}, {"epsilon": 3.0, "copies": 3}, {"epsilon": 1.0, "delta": 1e-3}]
)
def test_as_many_tables_are_refused_as_planned(settings):
    """400 tables of the model, other coefficients and another σ: 0.1 ± 0.015, less what Bonferroni adds."""
    settings, predictors = asked(**settings), hr.datasets.lognormal(120, seed=2)
    design, random = design_of(predictors), np.random.default_rng(7)
    weight = planned_weight(settings, design, 0.1)
    assert chance_of_refusal(settings, design, weight) == pytest.approx(0.1, rel=0.05)
    assert chance_of_refusal(settings, design, 1.05 * weight) > 0.1
    refused = 0
    for _ in range(400):
        values = np.exp(3 - 2 * predictors["z"].to_numpy() + 5 * random.normal(size=120))
        refused += price(settings, design.replace_values(values), weight) > settings.epsilon
    assert 0.05 < refused / 400 < 0.145


def test_a_table_that_the_model_does_not_describe_is_refused_and_no_weight_moves():
    data = hr.datasets.lognormal(200, seed=3)
    data.loc[0, "x"] = np.exp(12.0)
    with pytest.raises(CalibrationError, match="not scaled down for others"):
        hr.Synthesizer("x ~ z", epsilon=2.0, preset="recommended", draws=200, seed=1).fit(data)


def test_a_target_that_no_useful_weight_meets_is_refused_without_the_outcome():
    data = hr.datasets.lognormal(100, seed=3)
    with pytest.raises(CalibrationError, match=r"found without the outcome.*Raise ε"):
        hr.Synthesizer("x ~ z", epsilon=0.2, preset="recommended", draws=200, seed=1).fit(data)
    alone = pd.DataFrame({"x": data["x"], "z": ["a"] * 99 + ["b"]})  # b's record decides its fitted value
    with pytest.raises(CalibrationError, match="found without the outcome"):
        hr.Synthesizer("x ~ z", epsilon=2.0, preset="recommended", draws=200, seed=1).fit(alone)


def test_what_has_no_closed_form_is_refused():
    with pytest.raises(SettingError, match=r"not for 'x' \(gamma\)"):
        asked(family="gamma")
    with pytest.raises(SettingError, match="between 0 and 1"):
        hr.PlannedWeights(0.0)


CHAIN = {"x": hr.Column("x ~ z"), "w": hr.Column("w ~ z + log(x)", "normal")}


def pairs_of(n, seed, slope=1.0):
    random, data = np.random.default_rng(seed), hr.datasets.lognormal(n, seed=2)
    x = np.exp(3 - 2 * data["z"].to_numpy() + 5 * random.normal(size=n))
    return data.assign(x=x, w=slope * np.log(x) - data["z"].to_numpy() + 5 * random.normal(size=n))


def asked_of_chain(columns=CHAIN, **settings):
    return Settings.of(columns, **({"preset": "recommended", "epsilon": 3.0} | settings))


def test_a_chain_of_one_is_planned_as_one_column():
    """By importance sampling here, by quadrature there: 2000 values have a standard error of a tenth."""
    settings, table = asked(), Table.of(hr.datasets.lognormal(150, seed=1))
    design = design_of(table.native)
    chain = replace(settings, model=Chain((settings.model,)))
    plan = plan_links(chain, Held(table, ChainDesign.of([design])), Here())
    weight = planned_weight(settings, design, 0.05)
    assert plan.chance_of_refusal(weight, 0.05) == pytest.approx(0.05, rel=0.3)


def test_nothing_protected_is_read_of_a_chain(monkeypatch):
    monkeypatch.setattr(links, "_MOST", 50)  # simulated values: whatever their number
    monkeypatch.setattr(links, "_FEWEST", 50)
    settings = asked_of_chain()
    tables = [Table.of(pairs_of(120, seed)) for seed in (1, 2)]
    wild = np.exp(np.random.default_rng(1).standard_t(2, 120))
    tables.append(Table.of(tables[0].native.assign(x=wild, w=7.0)))
    found = {planned_weight(settings, encode(table, [settings]), 0.05, table) for table in tables}
    assert len(found) == 1
    assert 0.01 < found.pop() < 1


@pytest.mark.parametrize("classes", [False, True])
def test_a_chain_is_planned_the_same_whatever_the_leaves(classes, monkeypatch):
    """Classes have few leverages, each of which many records share."""
    monkeypatch.setattr(links, "_MOST", 300)
    table = pairs_of(150, 1)
    if classes:
        table["z"] = np.random.default_rng(3).choice(["a", "b", "c"], 150)
    settings, found = asked_of_chain(), set()
    for size in (1000, 64, 7):
        monkeypatch.setattr(leaves, "LEAF", size)
        data = Table.of(table)
        found.add(planned_weight(settings, encode(data, [settings]), 0.05, data))
    assert len(found) == 1
    assert 0.01 < found.pop() < 1


@pytest.mark.slow
@pytest.mark.parametrize(("reads", "slope"), [("z", 0.0), ("z + log(x)", 1.0)])
def test_as_many_tables_of_a_chain_are_refused_as_planned(reads, slope):
    """300 tables of the model: 0.1 ± 0.017, less what Bonferroni adds; a false alarm in about 200.

    σ is large beside the prior's guess of it, which the plan leaves out: a guess that counts is cheaper.
    """
    columns = {"x": hr.Column("x ~ z"), "w": hr.Column(f"w ~ {reads}", "normal")}
    settings, table = asked_of_chain(columns), Table.of(pairs_of(150, 1))
    weight = planned_weight(settings, encode(table, [settings]), 0.1, table)
    power, refused = np.full(150, weight), 0
    for seed in range(300):
        design = encode(Table.of(pairs_of(150, seed + 10, slope)), [settings])
        done = fit(settings.model, design, power, draws=100, key=Key.from_seed(seed))
        refused += done.influence().neighbours(power).epsilon(delta=settings.delta) > settings.epsilon
    assert 0.04 < refused / 300 < 0.145


def test_a_chain_without_a_plan_is_refused_in_a_sentence():
    table = Table.of(pairs_of(60, 1).assign(w=1.0 + np.arange(60)))
    rooted = {"w": hr.Column("w ~ z", "normal"), "x": hr.Column("x ~ sqrt(w)")}
    settings = asked_of_chain(rooted)
    with pytest.raises(SettingError, match="not finite for every value"):
        planned_weight(settings, encode(table, [settings]), 0.05, table)
    with pytest.raises(SettingError, match=r"not for 'w' \(gamma\)"):
        asked_of_chain(CHAIN | {"w": hr.Column("w ~ z", "gamma")})
