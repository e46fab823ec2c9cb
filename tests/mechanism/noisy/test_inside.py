"""Strict in range with public classes: copies stay inside them, and no outcome outside its class shows."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import RangeError, SettingError
from hedgerow.mechanism.noisy.run import log_ratio

pytestmark = pytest.mark.filterwarnings("ignore:Columns? .* not in the formula:hedgerow.HedgerowWarning")
EDGES = (0.0, 1.0, 4.0, 20.0, np.inf)
LIMITS = (0.01, 1000.0)
CLASSES = hr.Brackets(EDGES, column="low")
COLUMNS = hr.Bounds("low", "high")


def classed(records=300):
    """The simulation with public columns that hold each record's class."""
    data = hr.datasets.lognormal(records, seed=3)
    lower = np.array(EDGES)[np.searchsorted(EDGES, data["x"], side="right") - 1]
    return data.assign(low=lower, high=np.array(EDGES)[np.searchsorted(EDGES, lower) + 1])


def strict(known=CLASSES, **more):
    return hr.Strict(limits=LIMITS, relation="range", range=known, **{"inside": True, **more})


def fit(data, standard=None, **more):
    asked = {"epsilon": 1.0, "copies": 2, "draws": 200, "seed": 5} | more
    return hr.Synthesizer("x ~ z", standard=standard or strict(), **asked).fit(data)


@pytest.mark.parametrize("known", [CLASSES, COLUMNS])
@pytest.mark.parametrize("sampling", ["independent", "stratified"])
def test_copies_stay_inside_their_classes_and_the_limits(known, sampling):
    data = classed()
    synth = fit(data, strict(known), sampling=sampling)
    for copy in synth.sample().tables:
        assert copy["x"].between(data["low"].clip(*LIMITS), data["high"].clip(*LIMITS)).all()
    assert "drawn inside the record's range" in str(synth.sample().guarantee)
    free = fit(data, strict(known, inside=False), sampling=sampling)
    assert not free.sample().tables[0]["x"].between(data["low"], data["high"]).all()
    assert "drawn inside" not in str(free.sample().guarantee)


def test_copies_follow_the_model_inside_a_class():
    """Their mean in a class is that of the draw's normal restricted to it, which the middle is not."""
    data = classed(4000)
    synth = fit(data, epsilon=20.0, copies=1)
    copy = synth.sample().tables[0]["x"]
    for low in EDGES[:3]:
        own, copied = np.log(data["x"][data["low"] == low]), np.log(copy[data["low"] == low])
        assert abs(own.mean() - copied.mean()) < 4.5 * np.sqrt(2 * own.var() / len(own))


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("known", [CLASSES, COLUMNS])
def test_an_outcome_outside_its_class_is_neither_refused_nor_read_as_it_is(known, inside):
    """It counts as the nearer end of its class, so that ε holds for it too."""
    data, standard = classed(), strict(known, inside=inside)
    record = int(np.flatnonzero(data["low"] == 1.0)[0])
    done, said = [], []
    for x in (2.0, 900.0, 0.0, -np.inf):
        with warnings.catch_warnings(record=True) as told:
            done.append(fit(data.assign(x=data["x"].where(data.index != record, x)), standard)._fitted)
        said.append([str(each.message) for each in told])
    assert said == [said[0]] * 4
    read = [float(each.outcomes[0][record]) for each in done]
    assert read == pytest.approx([np.log(2), np.log(4), 0, 0])
    recipe = done[0].released.recipe
    assert recipe.width >= read[1] - read[2]
    for one in done:
        for other in done:
            assert abs(log_ratio(one.released, one.outcomes, other.outcomes)) <= 1.0


def test_only_classes_that_the_column_names_make_the_width():
    data = classed()
    data = data[data["low"].between(1, 4)]
    wide, narrow = (
        fit(data, strict(known, inside=False))._fitted.released.recipe.width
        for known in (hr.Brackets(EDGES), CLASSES)
    )
    assert narrow == pytest.approx(np.log(5))
    assert wide == pytest.approx(np.log(100))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: strict(hr.Radius(0.4, 1.8)), "Radius as given is not public"),
        (lambda: strict(hr.Brackets(EDGES)), "Brackets as given is not public"),
        (lambda: hr.Strict(limits=LIMITS, inside=True), "Everywhere as given is not public"),
        (lambda: strict(inside="yes"), "inside must be True or False"),
        (lambda: strict(margin=hr.Margin(0.25)), "takes no margin"),
        (lambda: hr.Strict({"z": (0, 1), "sigma": (1, 2)}, inside=True), "inside goes with limits"),
        (lambda: fit(classed(), sampling="projected"), "out of their classes"),
        (lambda: fit(classed(), strict(hr.Bounds("low", "x"))), "copies would show"),
        (lambda: fit(classed(), strict(hr.Bounds("low", "x"), inside=False)), "'x'"),
    ],
)
def test_what_cannot_be_drawn_inside_is_refused(make, words):
    with pytest.raises(SettingError, match=words):
        make()


def test_classes_beyond_the_limits_are_refused_whatever_the_outcome():
    data = classed()
    for values in (data["x"], 5.0, 1e9):
        with pytest.raises(
            RangeError, match=r"of 300 public classes have no width within the limits \(2, 3\)"
        ):
            fit(data.assign(x=values), hr.Strict(limits=(2, 3), relation="range", range=CLASSES, inside=True))


def test_a_release_inside_classes_verifies_and_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEDGEROW_LEDGER", str(tmp_path / "ledger.sqlite"))
    classed().drop(columns="high").to_csv("table.csv", index=False)
    reasons = {"": "a public register"}
    plan = hr.Plan(
        formula="x ~ z", epsilon=1.0, draws=200, data="table.csv", standard=strict(), reasons=reasons
    )
    assert hr.Plan.loads(plan.text()) == plan
    assert "inside" not in hr.Plan(formula="x ~ z", epsilon=1.0, standard=strict(inside=False)).text()
    made = hr.make_release(plan, "release")
    assert hr.verify_release(made.folder).problems == ()
    certificate = json.loads(Path("release/public/certificate.json").read_text())
    assert any("drawn inside" in line for line in certificate["processing"])
    assert any("moved to its nearer end" in each["what"] for each in certificate["assumed_public"])
