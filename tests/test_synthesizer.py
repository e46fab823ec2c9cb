"""The front door: names, kinds of dataframe, and what is never shown."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.fitted import weighted as module


def synth(**settings):
    return hr.Synthesizer("x ~ z", **{"draws": 200, "seed": 1, **settings})


def test_the_names_scripts_rely_on(small):
    fitted = synth(standard=hr.RangeAveraged(hr.Radius(0.4, 1.8)), copies=2, epsilon=6.0).fit(
        small[["x", "z"]]
    )
    for name in ("epsilon_", "total_epsilon_", "lipschitz_epsilon_", "oscillation_epsilon_", "exact_epsilon_",
                 "sensitivity_", "scale_"):  # fmt: skip
        assert isinstance(getattr(fitted, name), float), name
    for name in ("risk_", "alpha_", "power_", "known_"):
        assert getattr(fitted, name).shape == (60,), name
    assert set(fitted.withheld_epsilon_) == {"lipschitz", "oscillation", "exact", "renyi"}
    assert list(fitted.records_.columns) == ["record", "risk", "alpha", "power", "known", "price", "share"]
    assert fitted.records_["share"].max() == 1.0
    assert fitted.total_epsilon_ == 2 * fitted.epsilon_ <= 6.0
    assert fitted.known_.min() >= 0
    assert fitted.known_.max() <= 1
    release = fitted.sample()
    assert isinstance(release, hr.Release)
    assert len(release.tables) == 2
    assert not release.tables[0]["x"].equals(release.tables[1]["x"])


def test_results_need_a_fit():
    for name in ("epsilon_", "records_", "alpha_"):
        with pytest.raises(hr.HedgerowError, match="fit"):
            getattr(synth(), name)
    with pytest.raises(hr.HedgerowError, match="fit"):
        synth().sample()


def test_pandas_keeps_index_order_and_types(small):
    frame = pd.DataFrame(
        {
            "z": small["z"].astype("float32").to_numpy(),
            "x": np.rint(small["x"] * 100).astype("int32").to_numpy(),
            "g": small["group"].astype("category").array,
            "when": pd.date_range("2020-01-01", periods=60),
            "maybe": pd.array([1, None] * 30, dtype="Int64"),
        },
        index=pd.Index([f"id{i}" for i in range(60)], name="key"),
    )
    with pytest.warns(hr.HedgerowWarning, match="when, maybe"):
        fitted = hr.Synthesizer("x ~ z + g", draws=200, seed=1).fit(frame)
    copy = fitted.sample().tables[0]
    assert isinstance(copy, pd.DataFrame)
    pd.testing.assert_index_equal(copy.index, frame.index)
    assert list(copy.columns) == list(frame.columns)
    assert (copy.dtypes == frame.dtypes).all()
    pd.testing.assert_frame_equal(copy.drop(columns="x"), frame.drop(columns="x"))
    assert not copy["x"].equals(frame["x"])
    assert frame["x"].equals(np.rint(small["x"] * 100).astype("int32").set_axis(frame.index))


@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "Int64", "Float64", "uint16"])
def test_outcome_types_are_kept(small, dtype):
    frame = pd.DataFrame({"x": np.rint(small["x"] * 50 + 1).astype(dtype), "z": small["z"]})
    copy = synth().fit(frame).sample().tables[0]
    assert copy["x"].dtype == frame["x"].dtype
    assert copy["x"].notna().all()


def test_polars_and_arrow_give_what_pandas_gives(small):
    data = small[["x", "z"]]
    expected = synth().fit(data).sample().tables[0]["x"].to_numpy()
    from_polars = synth().fit(pl.from_pandas(data))
    copy = from_polars.sample().tables[0]
    assert isinstance(copy, pl.DataFrame)
    assert isinstance(from_polars.records_, pl.DataFrame)
    assert copy.schema == pl.from_pandas(data).schema
    np.testing.assert_array_equal(copy["x"].to_numpy(), expected)
    table = pa.Table.from_pandas(data, preserve_index=False)
    from_arrow = synth().fit(table).sample().tables[0]
    assert isinstance(from_arrow, pa.Table)
    assert from_arrow.schema.equals(table.schema)
    np.testing.assert_array_equal(from_arrow["x"].to_numpy(), expected)


def test_values_beyond_a_type_become_its_ends(small):
    frame = pd.DataFrame({"x": np.full(60, 120, dtype="int8"), "z": small["z"]})
    frame.loc[::2, "x"] = 2
    copy = synth(family="normal").fit(frame).sample().tables[0]["x"]
    assert copy.dtype == "int8"
    assert copy.max() == 127


def test_objects_say_confidential_and_show_no_value(small):
    data = small[["x", "z"]]
    fitted = synth(epsilon=5.0).fit(data)
    inner = fitted._fitted
    shown = " ".join(
        repr(thing)
        for thing in (fitted, inner.start, inner.outcome, inner.outcome.fit, inner.outcome.pricing,
                      inner.outcome.pricing.withheld, inner.start.risk, inner.start.design, inner.start.table,
                      inner.outcome.weighted, inner.outcome.weighted.interval, inner.key)
    )  # fmt: skip
    assert shown.count("confidential") >= 9
    secrets = [*data["x"], fitted.epsilon_, fitted.scale_, *fitted.alpha_, *fitted.risk_]
    for value in secrets:
        if value not in (0.0, 1.0):
            assert f"{value:.4g}" not in shown


def test_the_guarantee_states_the_target_and_nothing_achieved(small):
    fitted = synth(standard=hr.RangeAveraged(hr.Radius(0.4, 1.8)), epsilon=6.0, copies=2).fit(
        small[["x", "z"]]
    )
    text = " ".join(str(fitted.sample().guarantee).split())
    assert "ε = 3 for one copy" in text
    assert "does not bound what can be learned about an outcome" in text
    for value in (fitted.epsilon_, fitted.scale_, fitted.withheld_epsilon_["lipschitz"]):
        for digits in (3, 4, 6):
            assert f"{value:.{digits}g}" not in text
    assert "seed" in text
    assert "seed" not in str(synth(seed=None).fit(small[["x", "z"]]).sample().guarantee)
    assert "No ε may be claimed" in str(synth().fit(small[["x", "z"]]).sample().guarantee)


def test_the_release_comes_from_the_settings_of_the_fit(small):
    fitted = synth(epsilon=6.0, copies=3).fit(small[["x", "z"]])
    fitted.copies, fitted.epsilon = 10, 0.1
    fitted.standard = hr.RangeAveraged(hr.Radius(0.4, 1.8))
    release = fitted.sample()
    assert len(release.tables) == 3
    assert release.guarantee.terms.epsilon == 6.0
    assert release.guarantee.standard == "ADP"


def test_refitting_without_a_seed_takes_fresh_randomness(small):
    """Two fits on the same noise would cancel it: y1 − q·y2 would be linear in the predictors."""
    again = hr.Synthesizer("x ~ z", weights=hr.ScalarWeights(0.3), draws=200)
    one = again.fit(small[["x", "z"]]).sample().tables[0]
    two = again.fit(small[["x", "z"]]).sample().tables[0]
    Z = np.column_stack([np.ones(60), small["z"]])
    residuals = [np.linalg.lstsq(Z, np.log(t["x"]), rcond=None)[0] for t in (one, two)]
    noise = [np.log(t["x"]) - Z @ beta for t, beta in zip((one, two), residuals, strict=True)]
    # Independent noise: |correlation| of 60 pairs exceeds 0.6 with p < 1e-6.
    assert abs(np.corrcoef(noise)[0, 1]) < 0.6


def test_what_gives_the_order_of_the_outcome_away_is_refused(small):
    data = small[["x", "z"]]
    shuffled = data.reset_index(drop=True)
    for telling, words in (
        (data.assign(log_x=np.log(data["x"])), "log_x"),
        (data.assign(minus=-data["x"]), "minus"),
        (data.set_index("x", drop=False).rename_axis("id"), "the index"),
        (data.sort_values("x", ignore_index=True), "the order of the rows"),
        (pl.from_pandas(data.sort_values("x")), "the order of the rows"),
    ):
        with pytest.raises(hr.HedgerowError, match=words):
            synth().fit(telling)
        with pytest.raises(hr.HedgerowError, match=words):
            hr.compare("x ~ z", telling, draws=100)
    synth().fit(shuffled)


def test_copies_share_neither_memory_nor_notes_with_the_table(small):
    data = small[["x", "z"]].copy()
    data.attrs["note"] = "secret"
    copy = synth().fit(data).sample().tables[0]
    assert not np.shares_memory(copy["z"].to_numpy(), data["z"].to_numpy())
    assert not copy.attrs
    table = pa.Table.from_pandas(data, preserve_index=False).replace_schema_metadata({"secret": "1"})
    assert synth().fit(table).sample().tables[0].schema.metadata is None


def test_public_outside_and_radius_are_named_in_the_guarantee(small):
    data = small[["x", "z"]]
    top = float(data["x"].quantile(0.9))
    public = hr.RangeTruncated(hr.Bounds(0.0, top, outside="public"))
    text = " ".join(str(synth(standard=public, epsilon=6.0).fit(data).sample().guarantee).split())
    assert "they are not protected at all" in text
    radius = hr.RangeTruncated(hr.Radius(0.4, 1.8))
    text = " ".join(str(synth(standard=radius, epsilon=6.0).fit(data).sample().guarantee).split())
    assert "whoever knew a record's range would know its outcome" in text
    brackets = hr.RangeTruncated(hr.Brackets([0, 5, float("inf")]))
    text = " ".join(str(synth(standard=brackets, epsilon=6.0).fit(data).sample().guarantee).split())
    assert "whoever knew" not in text
    assert "not protected at all" not in text


def test_claims_are_rounded_up():
    from hedgerow.numerics.rounding import format_rounded_up

    assert format_rounded_up(10 / 3, 6) == "3.33334"
    assert format_rounded_up(0.004603, 2) == "0.0047"
    assert format_rounded_up(2.0, 6) == "2"
    assert format_rounded_up(150.0, 2) == "150"
    assert format_rounded_up(5.7 / 3, 6) == "1.9"


def test_unknown_ways_of_making_copies_are_refused_plainly():
    with pytest.raises(hr.HedgerowError, match="debias"):
        synth(debias="yes")
    with pytest.raises(hr.HedgerowError, match="sampling"):
        synth(sampling="sobol")


def test_the_paper_preset_fills_in_what_was_left_unset():
    assert synth(preset="paper").settings.known == "simulated"
    assert synth(preset="paper", known="exact").settings.known == "exact"
    assert hr.Synthesizer("x ~ z", preset="paper").settings.draws == 1000
    with pytest.raises(hr.HedgerowError, match="paper"):
        synth(preset="none")


def test_units_that_make_densities_exceed_one_are_warned_about(small):
    tiny = small[["x", "z"]].assign(x=small["x"] / 1000)
    with pytest.warns(hr.HedgerowWarning, match="density above 1"):
        synth().fit(tiny)
    synth(weights=hr.LinearWeights(risk="oscillation")).fit(tiny)


def test_import_is_light():
    """Heavy parts load when first used."""
    heavy = ["pandas", "scipy", "numba", "jax", "formulaic", "narwhals", "matplotlib", "pyarrow", "polars"]
    script = f"import sys, hedgerow; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_public_name_exists():
    for name in hr.__all__:
        assert getattr(hr, name) is not None
    with pytest.raises(AttributeError):
        _ = hr.nonsense
    assert set(hr.__all__) <= set(dir(hr))


def test_whole_numbers_beyond_doubles_are_no_trouble(small):
    """Arrow casts them to floats only when told to, and quotes the value when it refuses."""
    large = np.rint(small["x"] * 1e17).astype("int64")
    table = pa.table({"x": large, "z": small["z"]})
    copy = synth().fit(table).sample().tables[0]
    assert copy["x"].type == pa.int64()


def test_copies_are_predicted_once_however_often_they_are_used(small, monkeypatch):
    calls = []
    predict = module.predict_copies
    monkeypatch.setattr(module, "predict_copies", lambda *a, **k: calls.append(1) or predict(*a, **k))
    fitted = synth(epsilon=5.0, copies=2).fit(small[["x", "z"]])
    first = fitted.sample()
    fitted.utility()
    assert fitted.sample() is first
    first.tables[0]["x"] = 0.0  # the caller's own business: what was made stays what it was
    assert min(fitted.copied_outcomes()[0]) > 0
    assert len(calls) == 1


def test_warnings_point_at_the_callers_line(small):
    for act in (
        lambda: hr.Synthesizer("x ~ z", draws=100, seed=1).fit(small),
        lambda: hr.compare("x ~ z", small, draws=100, seed=1),
    ):
        with pytest.warns(hr.HedgerowWarning, match="not in the formula") as caught:
            act()
        assert all(warning.filename == __file__ for warning in caught)


def test_a_column_that_ranges_are_read_from_is_no_column_to_leave_out(recwarn):
    data = hr.datasets.lognormal(n=200, seed=1)
    edges = [0.0, 1.0, 10.0, np.inf]
    data["class"] = np.array(edges)[np.searchsorted(edges, data["x"], side="right") - 1]
    standard = hr.RangeTruncated(hr.Brackets(edges, column="class"))
    hr.Synthesizer("x ~ z", standard=standard, draws=100, seed=1).fit(data)
    assert not [note for note in recwarn if "not in the formula" in str(note.message)]
