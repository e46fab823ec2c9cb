"""Several standards side by side, and their pictures."""

import numpy as np
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.randomness import Key

STANDARDS = {
    "Unweighted": hr.Unweighted(),
    "(-Inf, Inf)": hr.ADP(),
    "(0.4, 1.8) avg": hr.RangeAveraged(hr.Radius(0.4, 1.8)),
    "(0.4, 1.8) trunc": hr.RangeTruncated(hr.Radius(0.4, 1.8)),
}


@pytest.fixture(scope="module")
def comparison(small):
    return hr.compare("x ~ z", small[["x", "z"]], standards=STANDARDS, copies=3, draws=200, seed=1)


def test_frames_are_tidy(comparison):
    table, records, utility = comparison.table, comparison.records, comparison.utility
    assert list(table["standard"]) == list(STANDARDS)
    assert len(records) == 4 * 60
    assert set(records["standard"]) == set(STANDARDS)
    assert {"copy", "statistic", "original", "synthetic", "standard"} == set(utility.columns)
    assert len(utility) == 4 * 6 * 10  # three copies, their mean, the lowest and the highest
    top = records.groupby("standard")["lipschitz"].max()
    for row in table.itertuples():
        assert 2 * top[row.standard] == pytest.approx(row.lipschitz)


def test_the_unweighted_fit_is_shared_and_equal_to_a_synthesizers(comparison):
    starts = {id(synth._fitted.start) for synth in comparison.synthesizers.values()}
    assert len(starts) == 1


def test_polars_in_polars_out(small):
    found = hr.compare("x ~ z", pl.from_pandas(small[["x", "z"]]), draws=100, seed=1)
    assert isinstance(found.table, pl.DataFrame)
    assert isinstance(found.records, pl.DataFrame)
    assert isinstance(found.utility, pl.DataFrame)


def test_settings_reach_every_synthesizer(small):
    found = hr.compare(
        "x ~ z", small[["x", "z"]], standards={"ADP": hr.ADP()}, epsilon=4.0, copies=2, draws=100, seed=1
    )
    assert found.table["epsilon"][0] <= 2.0
    with pytest.raises(hr.HedgerowError):
        hr.compare("x ~ z", small[["x", "z"]], standards={})


def test_strict_beside_others_is_what_it_is_alone(small):
    """Its weights come from the box, never from the draws that the other standards share."""
    box = {"Intercept": (0.0, 2.0), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}
    settings = {"epsilon": 3.0, "draws": 100, "seed": 1}
    strict, data = hr.Strict(box, "published"), small[["x", "z"]]
    for prior in (None, hr.Prior(intercept=(1.0, 1.0), slope=(0.0, 1.0))):
        alone = hr.Synthesizer("x ~ z", standard=strict, prior=prior, **settings).fit(data)
        beside = hr.compare(
            "x ~ z", data, standards={"ADP": hr.ADP(), "Strict": strict}, prior=prior, **settings
        ).synthesizers["Strict"]
        assert beside.alpha_.min() < 0.5
        np.testing.assert_array_equal(beside.alpha_, alone.alpha_)
        assert beside.epsilon_ == alone.epsilon_
        assert beside.sample().tables[0].equals(alone.sample().tables[0])


def test_weights_of_a_restricted_model_refuse_other_risks(comparison):
    start = next(iter(comparison.synthesizers.values()))._fitted.start
    strict = hr.Strict({"Intercept": (0.0, 2.0), "z": (0.5, 1.5), "sigma": (0.6, 1.6)})
    with pytest.raises(hr.HedgerowError, match="own model"):
        hr.Synthesizer("x ~ z", standard=strict, epsilon=3.0).fit_from(
            start, key=Key.from_seed(1), seeded=True
        )


def test_a_preset_reaches_every_standard_that_has_weights(small):
    found = hr.compare(
        "x ~ z", small[["x", "z"]], standards={"Unweighted": hr.Unweighted(), "ADP": hr.ADP()}, epsilon=None,
        seed=1, preset="paper",
    ).synthesizers  # fmt: skip
    assert {synth.settings.known for synth in found.values()} == {"simulated"}
    one = hr.compare("x ~ z", small[["x", "z"]], standards={"ADP": hr.ADP()}, epsilon=8.0, seed=1, draws=100,
                     preset="recommended").synthesizers["ADP"]  # fmt: skip
    assert (one.settings.debias, one.settings.sampling, one.settings.bound.name) == (
        False,
        "stratified",
        "renyi",
    )
    with pytest.raises(hr.HedgerowError, match="debias must be"):
        hr.compare("x ~ z", small[["x", "z"]], debias="no")


@pytest.mark.parametrize("what", ["lipschitz", "alpha", "known", "data", "utility"])
def test_pictures(comparison, what, tmp_path):
    figure = comparison.plot(what)
    labels = [tick.get_text().replace("\n", " ") for tick in figure.axes[0].get_xticklabels()]
    assert [label for label in labels if label != "Data"] == list(STANDARDS)
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5000


def test_plots_take_a_synthesizer(comparison):
    synth = comparison.synthesizers["(-Inf, Inf)"]
    assert hr.plot.lipschitz(synth).axes[0].get_xticklabels()[0].get_text() == "ADP"
    with pytest.raises(hr.HedgerowError, match="ecdf_max"):
        hr.plot.utility(synth, statistic="nonsense")
    with pytest.raises(hr.HedgerowError, match="lipschitz"):
        comparison.plot("nonsense")


def test_repr_shows_no_value(comparison):
    assert "confidential" in repr(comparison)
    assert not any(f"{value:.3g}" in repr(comparison) for value in comparison.table["epsilon"])
    assert np.isfinite(comparison.table["lipschitz"]).all()
