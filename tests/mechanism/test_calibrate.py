"""Calibration: a search with a known answer, and certified fits that never exceed their target."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hedgerow as hr
from hedgerow.errors import CalibrationError
from hedgerow.mechanism.calibrate import largest_scale
from hedgerow.models import wrapped
from hedgerow.models.scored import Interval, Linear
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table


@given(st.floats(0.01, 50), st.floats(0.2, 60), st.floats(0.5, 2.0))
def test_the_search_finds_the_inverse_from_below(slope, target, bend):
    calls = []

    def price_at(scale):
        calls.append(scale)
        return slope * scale**bend

    found = largest_scale(price_at, target)
    answer = min(1.0, (target / slope) ** (1 / bend))
    assert price_at(found) <= target
    assert answer / 1.0021 <= found <= answer * (1 + 1e-12)
    assert len(calls) < 60


def test_a_price_that_rises_again_at_small_scales_is_unreachable():
    with pytest.raises(CalibrationError, match="smallest ε reached is 4"):
        largest_scale(lambda scale: 2 * scale + 2 / scale, 3.0)
    assert largest_scale(lambda scale: 4 * scale + 1e-6 / scale, 3.0) == pytest.approx(0.75, rel=3e-3)


@pytest.mark.parametrize("bound", ["lipschitz", "oscillation", "exact"])
@pytest.mark.parametrize("copies", [1, 3])
def test_the_total_never_exceeds_the_target(small, bound, copies):
    data = small[["x", "z"]]
    weights = hr.CapWeights(3.0) if bound == "lipschitz" else hr.CapWeights(0.5, risk="oscillation")
    free = hr.Synthesizer("x ~ z", weights=weights, bound=bound, draws=200, seed=1).fit(data)
    target = 0.5 * copies * free.epsilon_
    synth = hr.Synthesizer(
        "x ~ z", weights=weights, bound=bound, draws=200, seed=1, epsilon=target, copies=copies
    ).fit(data)
    assert synth.total_epsilon_ <= target
    assert copies * synth.certified_epsilon_ <= target
    assert synth.epsilon_ <= synth.certified_epsilon_
    assert 0 < synth.scale_ < 1
    assert copies * synth.certified_epsilon_ > 0.5 * target  # the last rung of the ladder is 0.6
    np.testing.assert_allclose(synth.alpha_, synth.scale_ * free.alpha_, rtol=1e-12)


def test_a_generous_target_changes_nothing_but_the_draws(small):
    synth = hr.Synthesizer("x ~ z", epsilon=1e6, seed=1, draws=200).fit(small[["x", "z"]])
    assert synth.scale_ == 1.0


def test_the_stated_delta_does_not_depend_on_the_data(small):
    delta = {
        synth.sample().guarantee.statement.delta
        for synth in (
            hr.Synthesizer("x ~ z", epsilon=target, seed=seed, draws=500).fit(small[["x", "z"]])
            for target in (2.0, 5.0, 50.0)
            for seed in (1, 2)
        )
    }
    assert len(delta) == 1
    assert delta.pop() == pytest.approx(1 - (0.05 / 8) ** (1 / 500))
    single = (
        hr.Synthesizer("x ~ z", seed=1, draws=500).fit(small[["x", "z"]]).sample().guarantee.statement.delta
    )
    assert single == pytest.approx(1 - 0.05 ** (1 / 500))


@pytest.mark.parametrize(
    "weights", [hr.LinearWeights(), hr.InverseWeights(), hr.Reweighted(hr.LinearWeights())]
)
def test_weights_that_read_everyone_are_warned_about_under_sharper_bounds(small, weights):
    for bound in ("oscillation", "exact"):
        with pytest.warns(hr.HedgerowWarning, match="move with every record") as warned:
            hr.Synthesizer("x ~ z", weights=weights, bound=bound, draws=100, seed=1).fit(small[["x", "z"]])
        assert not any("Softmax" in str(one.message) for one in warned)
        assert any("ScalarWeights, and an audit" in str(one.message) for one in warned)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hedgerow.errors.HedgerowWarning")
def test_two_hundred_random_calibrations(capsys):
    """No certified fit exceeds its target; how far below they stay is printed.

    A target below what any scale reaches is refused; on 60 records that happens, and is counted.
    """
    random = np.random.default_rng(2024)
    kinds = {
        "lipschitz": (hr.LinearWeights(), hr.SoftmaxWeights(), hr.CapWeights(4.0)),
        "oscillation": (hr.CapWeights(0.5, risk="oscillation"), hr.LogisticWeights()),
        "exact": (hr.CapWeights(0.5, risk="oscillation"), hr.SoftmaxWeights()),
    }
    used: dict[str, list[float]] = {bound: [] for bound in kinds}
    unreachable = trial = 0
    while sum(map(len, used.values())) < 200:
        trial += 1
        bound = list(kinds)[trial % 3]
        standards = [hr.ADP(), hr.RangeAveraged(hr.Radius(0.4, 1.8)), hr.RangeTruncated(hr.Radius(0.6, 1.2))]
        standard = standards[int(random.integers(2 if bound == "exact" else 3))]
        weights = kinds[bound][int(random.integers(len(kinds[bound])))]
        data = hr.datasets.lognormal(n=int(random.choice([60, 200, 600])), seed=trial)
        settings = {"standard": standard, "weights": weights, "bound": bound, "draws": 500, "seed": trial}
        free = hr.Synthesizer("x ~ z", **settings).fit(data)
        copies = int(random.integers(1, 4))
        target = copies * free.epsilon_ * float(random.uniform(0.3, 0.95))
        try:
            synth = hr.Synthesizer("x ~ z", **settings, epsilon=target, copies=copies).fit(data)
        except CalibrationError:
            unreachable += 1
            continue
        assert synth.total_epsilon_ <= target
        assert copies * synth.certified_epsilon_ <= target
        used[bound].append(copies * synth.certified_epsilon_ / target)
    assert unreachable <= 20
    with capsys.disabled():
        for bound, shares in used.items():
            low, middle, high = np.quantile(shares, [0.05, 0.5, 0.95])
            sys.stdout.write(
                f"\n{bound}: certified/target, 5 %, median, 95 %: {low:.3f} {middle:.3f} {high:.3f}\n"
            )


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"standard": hr.RangeTruncated(hr.Brackets([0, 1, 4, 1e9]))}])
def test_a_search_by_the_loudest_records_finds_what_one_by_all_finds(settings, monkeypatch):
    """And a release is certified over all: its price is that of the whole table."""
    data = hr.datasets.family("gamma", n=1500, seed=1)

    def fitted():
        return hr.Synthesizer("x ~ z", "gamma", epsilon=3.0, seed=2, **settings).fit(data)

    narrow = fitted()
    assert (narrow.records_["price"] > 0).mean() > 0.99  # the riskiest has no weight
    assert narrow.epsilon_ == narrow.records_["price"].max()
    monkeypatch.setattr(wrapped, "_LOUDEST", 10**6)
    whole = fitted()
    assert (narrow.scale_, narrow.epsilon_) == (whole.scale_, whole.epsilon_)


def test_the_loudest_of_a_table_are_scored_as_within_it():
    """Families with a level of their own centre predictors at the whole table's means."""
    model = hr.Family("ordinal", lower=1, upper=4)
    data = hr.datasets.family("ordinal", n=1100, seed=1)
    design = designs.build("x ~ z", Table.of(data), model.columns, model.domain.classes)
    random = np.random.default_rng(1)
    parameters = {"beta": random.normal(size=(3, 1)), "share": random.dirichlet(np.ones(4), 3)}
    part = Linear(random.uniform(size=1100), np.zeros(1100), np.zeros(1100))
    everywhere = Interval(np.full(1100, -np.inf), np.full(1100, np.inf), np.ones(1100, dtype=bool))
    whole = model.extremes(design, parameters, part, everywhere)
    few = wrapped.score_loudest(model, design, whole.absolute)
    assert isinstance(few, wrapped.Loudest)
    found = few.extremes(design, parameters, part, everywhere)
    np.testing.assert_allclose(found.low[few.rows], whole.low[few.rows], rtol=1e-12)
    assert few.absolute(design, parameters, part, everywhere).max() == pytest.approx(whole.absolute.max())
    assert (np.delete(found.low, few.rows) == 0).all()
