"""Boxes from public statements."""

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.advice.elicit import box_cost, box_from_medians, widen_box

PREDICTORS = hr.datasets.lognormal(200, seed=1)[["z"]]


def test_the_box_holds_what_the_statements_allow():
    truth = (1.0, 1.0)
    points = [
        ({"z": at}, (0.7 * np.exp(truth[0] + truth[1] * at), 1.5 * np.exp(truth[0] + truth[1] * at)))
        for at in (0.0, 4.0)
    ]
    box = box_from_medians("x ~ z", PREDICTORS, points, top_decile_ratio=(2.0, 6.0))
    assert set(box) == {"Intercept", "z", "sigma"}
    assert box["Intercept"][0] < 1 < box["Intercept"][1]
    assert box["z"][0] < 1 < box["z"][1]
    assert box["sigma"] == pytest.approx((np.log(2) / 1.2815516, np.log(6) / 1.2815516))
    # Every line through points inside the statements lies in the box.
    random = np.random.default_rng(0)
    for _ in range(200):
        ends = [np.log(random.uniform(*median)) for _, median in points]
        slope = (ends[1] - ends[0]) / 4.0
        assert box["z"][0] <= slope <= box["z"][1]
        assert box["Intercept"][0] <= ends[0] <= box["Intercept"][1]
    hr.Synthesizer("x ~ z", standard=hr.Strict(box, "published medians"), epsilon=2.0, seed=1, draws=100).fit(
        hr.datasets.lognormal(200, seed=1)
    )


def test_the_outcome_is_not_read():
    data = hr.datasets.lognormal(50, seed=1)
    points = [({"z": 0.0}, (1.0, 5.0)), ({"z": 4.0}, (50.0, 400.0))]
    boxes = [
        box_from_medians("x ~ z", frame, points, top_decile_ratio=(2.0, 6.0))
        for frame in (data, data.assign(x=data["x"] * 1e6), data[["z"]], data.assign(x="secret"))
    ]
    assert all(box == boxes[0] for box in boxes)


def test_the_normal_family_and_categories():
    predictors = pd.DataFrame({"g": ["a", "b"] * 10})
    box = box_from_medians(
        "x ~ g", predictors, [({"g": "a"}, (10, 20)), ({"g": "b"}, (30, 50))], top_decile_gap=(1.0, 4.0),
        family="normal",
    )  # fmt: skip
    assert box["Intercept"] == pytest.approx((10, 20))
    assert box["g[T.b]"] == pytest.approx((10, 40))


def test_wider_boxes_cost_more():
    box = {"Intercept": (0.0, 2.0), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}
    cost = box_cost("x ~ z", PREDICTORS, box, epsilon=1.0)
    assert cost["factor"] == [1.0, 1.5, 2.0, 3.0]
    assert (np.diff(cost["mean_weight"]) < 0).all()
    assert widen_box(box, 2.0)["z"] == (0.0, 2.0)
    assert widen_box(box, 1.0)["sigma"] == pytest.approx((0.6, 1.6))


@pytest.mark.parametrize(
    ("points", "settings", "message"),
    [
        ([({"z": 0.0}, (1, 2))], {"top_decile_ratio": (2, 3)}, "2 coefficients"),
        ([({"z": 0.0}, (1, 2))] * 2, {"top_decile_ratio": (2, 3)}, "do not determine"),
        ([({"z": 0.0}, (-1, 2)), ({"z": 1.0}, (1, 2))], {"top_decile_ratio": (2, 3)}, "median must be"),
        ([({"z": 0.0}, (1, 2)), ({"z": 1.0}, (1, 2))], {}, "top_decile_ratio"),
        ([({"z": 0.0}, (1, 2)), ({"z": 1.0}, (1, 2))], {"top_decile_ratio": (0.5, 3)}, "above 1"),
    ],
)
def test_bad_statements(points, settings, message):
    with pytest.raises(hr.HedgerowError, match=message):
        box_from_medians("x ~ z", PREDICTORS, points, **settings)
