"""Copies from public classes alone: none is read, each lies in its class, the regression is there."""

import numpy as np
import pytest

import hedgerow as hr

EDGES = [0.0, 3.0, 10.0, 20.0, 40.0, 80.0, np.inf]
KNOWN = hr.Brackets(EDGES, column="class")
TOLD = {"range": KNOWN, "limits": (0.01, 1e4), "draws": 100}


@pytest.fixture(scope="module")
def table():
    data = hr.datasets.lognormal(n=1500, seed=4)  # log x = 1 + z + e
    return data.assign(**{"class": np.array(EDGES)[np.searchsorted(EDGES, data["x"], side="right") - 1]})


def test_copies_lie_in_their_classes_and_have_the_regression(table):
    made = hr.copies_from_classes("x ~ z", table[["z", "class"]], **TOLD, copies=2, seed=1)
    assert len(made) == 2
    assert made[0]["x"].tolist() != made[1]["x"].tolist()
    for copy in made:
        upper = np.array(EDGES)[np.searchsorted(EDGES, copy["class"], side="right")]
        assert ((copy["x"] >= copy["class"]) & (copy["x"] <= upper)).all()
        X = np.column_stack([np.ones(1500), copy["z"]])
        assert np.linalg.lstsq(X, np.log(copy["x"]), rcond=None)[0] == pytest.approx([1, 1], abs=0.2)
        assert (copy["z"] == table["z"]).all()


def test_the_outcome_is_not_read(table):
    """Whatever the protected column holds, or whether it is there: the same copies."""
    tables = [table[["x", "z", "class"]], table.assign(x="secret")[["x", "z", "class"]]]
    one, two = (hr.copies_from_classes("x ~ z", each, **TOLD, seed=2)[0] for each in tables)
    assert one.equals(two)
    (three,) = hr.copies_from_classes("x ~ z", table[["z", "class"]], **TOLD, seed=2)
    assert three["x"].tolist() == one["x"].tolist()


def test_what_is_no_public_class_is_refused(table):
    for known, message in ((hr.Radius(0.4, 1.8), "not public"), (hr.Brackets(EDGES), "not public")):
        with pytest.raises(hr.HedgerowError, match=message):
            hr.copies_from_classes("x ~ z", table, range=known, limits=(0.01, 1e4))
    with pytest.raises(hr.HedgerowError, match="Name other columns"):
        hr.copies_from_classes("x ~ z", table, range=hr.Bounds("x", 1e3), limits=(0.01, 1e4))


def test_epsilon_zero_leads_here():
    strict = hr.Strict(limits=(0.01, 1e4), relation="range", range=KNOWN, inside=True)
    with pytest.raises(hr.HedgerowError, match="copies_from_classes"):
        hr.Synthesizer("x ~ z", standard=strict, epsilon=0)
