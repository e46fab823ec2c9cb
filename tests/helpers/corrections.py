"""Releases whose draws are corrected, in every kind there is, and what of them is secret."""

import numpy as np
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.fitted import Fitted
from hedgerow.mechanism.fit import Fit
from hedgerow.mechanism.price import Price, Pricing
from hedgerow.mechanism.steps import Outcome, Start, Weighted
from hedgerow.models.scored import Interval, Risk

BOX = {"Intercept": (0.0, 2.0), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}
CONFIDENTIAL = (Fit, Start, Weighted, Outcome, Pricing, Price, Interval, Risk, Fitted)
WIDE, WIDER = hr.Radius(0.4, 1.8), hr.Radius(0.2, 2.4)
# A name, the settings, and how the table comes: every standard, kind of range and kind of weights there is.
CASES = {
    "adp": {"standard": hr.ADP()},
    "averaged": {"standard": hr.RangeAveraged(WIDE)},
    "averaged as in the paper": {"standard": hr.RangeAveraged(WIDE), "known": "simulated"},
    "averaged tail": {"standard": hr.RangeAveraged(hr.Tail(0.05, WIDER, WIDE))},
    "truncated": {"standard": hr.RangeTruncated(WIDE)},
    "truncated, printed": {"standard": hr.RangeTruncated(WIDE, "one"), "epsilon": 30.0},
    "where": {"standard": hr.RangeTruncated(hr.Where("big", WIDER, WIDE))},
    "brackets": {"standard": hr.RangeTruncated(hr.Brackets([0, 10, 50, 1e6]))},
    "same bounds": {"standard": hr.RangeTruncated(hr.Bounds(0.0, 1e6))},
    "public outside": {"standard": hr.RangeAveraged(hr.Brackets([0, 50], outside="public"))},
    "strict": {"standard": hr.Strict(BOX, "published")},
    "softmax": {"weights": hr.SoftmaxWeights()},
    "cap": {"weights": hr.CapWeights(0.3, risk="oscillation"), "bound": "oscillation", "epsilon": 2.0},
    "exact": {"weights": hr.LogisticWeights(risk="oscillation"), "bound": "exact", "epsilon": 2.0},
    "inverse": {"weights": hr.InverseWeights()},
    "scalar": {"weights": hr.ScalarWeights(0.5)},
    "identification": {"weights": hr.IdentificationWeights(0.3, known=["group"], pairwise=True)},
    "reweighted": {"weights": hr.Reweighted(hr.LinearWeights())},
    "function": {"weights": hr.weights.CallableWeights(lambda risk: 1 / (1 + risk), public=True)},
    "no target": {"epsilon": None},
}
DRAW = {"beta": np.array([0.9, 1.02]), "sigma": np.array(0.95)}


def table(n=120, seed=5, kind="pandas", factor=1.0):
    data = hr.datasets.lognormal(n, seed=seed)
    data["x"] *= factor
    public = np.random.default_rng(7)  # the same public columns whatever the seed
    data["z"] = public.normal(2, 1, n)
    data["x"] = np.exp(data["z"] + 1) * data["x"] / np.exp(np.log(data["x"]).mean())
    data["big"] = public.uniform(size=n) < 0.3
    data["group"] = public.choice(["a", "b", "c"], n)
    if kind == "polars":
        return pytest.importorskip("polars").from_pandas(data)
    return pa.Table.from_pandas(data) if kind == "arrow" else data


def fitted(name="adp", data=None, **changes):
    settings = {"epsilon": 5.0, "draws": 150, "seed": 3, "debias": True} | CASES[name] | changes
    return hr.Synthesizer("x ~ z", **settings).fit(table() if data is None else data)


def released_rows(found):
    """Which draws of the fit go out: those are not secret."""
    first = found.outcome.fit.parameters["beta"][:, 0]
    order = np.argsort(found.key.child("release").child("draws").stream().uniform(len(first)))
    return np.isin(np.arange(len(first)), order[: found.settings.copies])


def secrets(synth):
    found = synth._need()
    outcome, risk = found.outcome, found.start.risk
    values = {
        "outcome": found.start.design.values,
        "log outcome": np.log(found.start.design.values),
        "draws": outcome.fit.parameters["beta"][~released_rows(found)],
        "key": found.key._root,
        "mean": float(found.start.design.values.mean()),
        "log mean": float(np.log(found.start.design.values).mean()),
        "mean risk": float(risk.lipschitz.mean()),
        "price": float(outcome.epsilon) if found.settings.bound.local else None,
    }
    if found.settings.bound.local:
        values["scale"] = float(found.scale) if found.scale != 1 else None
    by_record = {
        "risk": risk.lipschitz,
        "oscillation": risk.oscillation,
        "alpha": outcome.weighted.alpha,
        "power": outcome.fit.power,
        "known": outcome.weighted.known,
        "lower": outcome.weighted.interval.lower,
        "upper": outcome.weighted.interval.upper,
    }
    # A constant over all records, such as λ = 0 or an infinite bound, is no secret.
    varied = {k: v for k, v in by_record.items() if len(np.unique(v[np.isfinite(v)])) > 10}
    return {k: v for k, v in (values | varied).items() if v is not None}
