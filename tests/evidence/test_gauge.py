"""Whether a target is met only by discarding the data, and that nothing is spent then."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import CalibrationError, SettingError
from hedgerow.evidence.gauge import describe_stop
from hedgerow.release.ledger import open_ledger

SMALL = {"draws": 200, "seed": 1}


@pytest.fixture(scope="module")
def data():
    return hr.datasets.lognormal(n=300, seed=1)


@pytest.fixture(scope="module")
def nonsense(data):
    """Five copies for ε = 0.5 of 300 records: a tenth of a record's worth is left."""
    with pytest.warns(hr.HedgerowWarning, match="met only by discarding the data.*--preset recommended"):
        return hr.Synthesizer("x ~ z", epsilon=0.5, copies=5, **SMALL).fit(data)


def test_nonsense_is_told_and_good_copies_are_not(nonsense, data, recwarn):
    gauge = nonsense.gauge_
    assert gauge.discards
    assert gauge.records == nonsense.power_.sum() < 2
    assert gauge.ecdf > gauge.plain_ecdf + 0.2
    good = hr.Synthesizer("x ~ z", epsilon=12.0, copies=3, **SMALL).fit(data).gauge_
    assert not [each for each in recwarn if "discarding" in str(each.message)]
    assert not good.discards
    assert good.records > 20
    assert good.ecdf < 0.12
    assert repr(good) == "Gauge(confidential)"


def test_the_stop_names_a_larger_target_that_passes(nonsense, data):
    told = nonsense.describe_stop()
    assert "of 300 records' worth" in told
    assert "confidential" in told
    epsilon = float(told.split("a larger ε, about ")[1].split(";")[0])
    assert 1 < epsilon < 20
    assert not hr.Synthesizer("x ~ z", epsilon=epsilon, copies=5, **SMALL).fit(data).gauge_.discards


@pytest.mark.filterwarnings("ignore::hedgerow.HedgerowWarning")
def test_the_share_of_the_data_is_that_of_the_closed_form(data):
    """tr Λ⁻¹Z'AZ is what the records' leverages add up to."""
    fitted = hr.Synthesizer("x ~ z", weights=hr.ScalarWeights(0.02), **SMALL).fit(data)
    leverage = fitted._need().outcome.fit.influence().leverage
    assert fitted.gauge_.data_share == pytest.approx(leverage.sum() / 2)
    assert not fitted.gauge_.discards  # no target: nothing was discarded to meet it


def test_a_model_that_does_not_fit_is_not_taken_for_discarded_data():
    """Two far groups and a normal model: bad copies, with or without weights."""
    random = np.random.default_rng(1)
    table = hr.datasets.lognormal(n=300, seed=1).assign(
        x=np.exp(random.choice([0.0, 9.0], 300) + 0.1 * random.normal(size=300))
    )
    settings = {"bound": "renyi", "weights": hr.ScalarWeights(1.0), "epsilon": 2.0}
    gauge = hr.Synthesizer("x ~ z", **settings, **SMALL).fit(table).gauge_
    assert gauge.plain_ecdf > 0.2
    assert not gauge.discards


def test_far_draws_stop_only_where_records_are_lost(nonsense):
    """Two draws of a heavy tail are no discarded data while most of the records' worth is there."""
    far = replace(nonsense.gauge_, ecdf=0.14, plain_ecdf=0.14, beyond=True, of=60)
    assert not replace(far, records=45.0).discards
    lost = replace(far, records=3.0)
    assert lost.discards
    told = describe_stop(nonsense.settings, lost, None)
    assert "beyond 10 times the original's" in told
    assert "further" not in told


def test_a_release_stops_before_anything_is_spent(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    data.to_csv("table.csv", index=False)
    plan = hr.Plan(
        formula="x ~ z", data="table.csv", epsilon=0.5, copies=5, draws=200, seed=1, ledger="l.sqlite"
    )
    with (
        pytest.warns(hr.HedgerowWarning),
        pytest.raises(CalibrationError, match="What would help") as stopped,
    ):
        hr.make_release(plan, "release")
    assert stopped.value.__notes__ == ["Nothing was written or spent."]
    assert not list(Path().glob("*release*"))
    with open_ledger("l.sqlite") as ledger:
        assert [(entry.event, entry.look) for entry in ledger.entries()] == [("looked", "synthesize")]
    with pytest.warns(hr.HedgerowWarning):
        made = hr.make_release(plan, "release", anyway=True)
    assert made.certificate.looks == 1
    assert json.loads(Path("release/confidential/summary.json").read_text())["gauge"]["beyond"] is True
    assert "records' worth" not in "".join(path.read_text() for path in Path("release/public").iterdir())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*lay beyond declared limits")  # of much noise, now and then
def test_a_strict_release_does_not_stop_and_expects_from_public_things(tmp_path, monkeypatch, data):
    monkeypatch.chdir(tmp_path)
    data.to_csv("table.csv", index=False)
    standard = hr.Strict(limits=(1e-3, 1e6))
    plan = hr.Plan(
        formula="x ~ z", data="table.csv", standard=standard, epsilon=0.05, draws=200, ledger="l.sqlite"
    )
    made = hr.make_release(plan, "release")
    title, facts = made.expectation()
    assert "public things" in title
    assert "without noise" in dict(facts)["ECDF maximum of stand-ins"]
    noised = hr.Synthesizer("x ~ z", standard=standard, epsilon=1.0, draws=200).fit(data)
    with pytest.raises(SettingError, match="neither weights"):
        _ = noised.gauge_


def test_a_box_does_not_stop(data):
    """Whether there is a release may not depend on the data."""
    box = {"Intercept": (-2, 3), "z": (-1, 2), "sigma": (0.4, 2.5)}
    fitted = hr.Synthesizer("x ~ z", standard=hr.Strict(box), epsilon=0.01, **SMALL).fit(data)
    assert not fitted.gauge_.may_stop


def test_a_box_is_released_whatever_the_outcomes_are(tmp_path, monkeypatch):
    """With nothing that the model describes, too: its neighbour has one such outcome."""
    monkeypatch.chdir(tmp_path)
    data = pd.DataFrame({"x": 0.0, "z": np.linspace(0, 1, 30)})
    data.to_csv("table.csv", index=False)
    box = {"Intercept": (8, 12), "z": (-1, 1), "sigma": (0.5, 2)}
    told = {"standard": hr.Strict(box), "epsilon": 1.0, "draws": 200, "ledger": "l.sqlite"}
    with pytest.warns(hr.HedgerowWarning, match="none that the lognormal family describes"):
        made = hr.make_release(hr.Plan(formula="x ~ z", data="table.csv", **told), "release")
    assert made.certificate.epsilon.total == 1.0
