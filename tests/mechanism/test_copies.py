"""Stratified uniforms: each by itself uniform, one in every stratum, neighbours in fitted value together."""

from math import isqrt

import numpy as np
import pytest
from scipy import stats

import hedgerow as hr
from hedgerow.errors import RangeError, SettingError
from hedgerow.mechanism.copies import stratify
from hedgerow.randomness import Key
from hedgerow.release.plan import Plan


def numbers(fitted, seed):
    key = Key.from_seed(seed)
    fresh = key.stream().uniform(len(fitted))
    ties, order = key.child("strata").stream().uniform((2, len(fitted)))
    return stratify(fitted, fresh, ties=ties, order=order)


@pytest.mark.parametrize("records", [1, 2, 7, 130, 2001])
def test_each_stratum_of_each_group_of_neighbours_holds_one_number(records):
    fitted = np.random.default_rng(1).normal(size=records)
    found = numbers(fitted, 2)
    assert ((found > 0) & (found < 1)).all()
    for group in np.array_split(np.argsort(fitted), isqrt(records)):
        strata = np.floor(found[group] * len(group)).astype(int)
        assert sorted(strata) == list(range(len(group)))


@pytest.mark.parametrize("fitted", [np.linspace(0, 1, 12), np.zeros(12), np.arange(120) % 7.0])
def test_each_number_by_itself_is_uniform(fitted):
    """4000 keys; Kolmogorov-Smirnov at 1e-5 for each of three records, nine tests: 1e-4 false alarms."""
    found = np.array([numbers(fitted, seed) for seed in range(4000)])
    for record in (0, 5, len(fitted) - 1):
        assert stats.kstest(found[:, record], "uniform").pvalue > 1e-5


def test_rounding_does_not_reach_the_ends():
    top, even = np.full(5000, 1 - 2.0**-53), np.linspace(0.1, 0.9, 5000)
    assert stratify(np.zeros(5000), top, ties=even, order=even).max() < 1


def settings(**changes):
    return {"seed": 1, "draws": 100, "copies": 2} | changes


def test_copies_are_smoother_and_from_the_same_draws():
    """The ECDF at a point scatters with √(p(1−p)/n) in independent copies and far less in stratified ones."""
    data = hr.datasets.lognormal(400, seed=2)
    plain = hr.Synthesizer("x ~ z", **settings(copies=60)).fit(data)
    smooth = hr.Synthesizer("x ~ z", **settings(copies=60, sampling="stratified")).fit(data)
    draws = plain._need().released, smooth._need().released
    for a, b in zip(*draws, strict=True):
        assert np.array_equal(a.parameters["beta"], b.parameters["beta"])

    def noise(synth):
        model, design = synth.settings.model, synth._need().start.design
        shares = []
        for draw, copy in zip(synth._need().released, synth.sample().tables, strict=True):
            uniform = stats.norm.cdf(
                (np.log(copy["x"]) - design.matrix @ draw.parameters["beta"]) / draw.parameters["sigma"]
            )
            shares.append((uniform < 0.5).mean())
        assert model.name == "lognormal"
        return np.std(shares)

    assert noise(smooth) < 0.2 * noise(plain)


def test_the_guarantee_says_where_they_must_not_be_used():
    data = hr.datasets.lognormal(60, seed=2)
    text = " ".join(
        str(hr.Synthesizer("x ~ z", **settings(sampling="stratified")).fit(data).sample().guarantee).split()
    )
    assert "stratified instead of independent" in text
    assert "too narrow" in text or "too wide" in text
    assert "stratified" not in str(hr.Synthesizer("x ~ z", **settings()).fit(data).sample().guarantee)


def test_the_same_seed_gives_the_same_bytes():
    data = hr.datasets.lognormal(60, seed=2)
    first, second = (
        hr.Synthesizer("x ~ z", **settings(sampling="stratified")).fit(data).sample() for _ in range(2)
    )
    for a, b in zip(first.tables, second.tables, strict=True):
        assert a["x"].to_numpy().tobytes() == b["x"].to_numpy().tobytes()


# Class columns are no predictors here, of which a fit warns.
beside = pytest.mark.filterwarnings(
    "ignore:Columns? .* not in the formula", "ignore:What is released unchanged"
)
EDGES = [0.0, 1.0, 3.0, 10.0, np.inf]


def classed(records=300, seed=3):
    """The simulation with a public column that holds each record's class, as its lower edge."""
    data = hr.datasets.lognormal(records, seed=seed)
    lower = np.array(EDGES)[np.searchsorted(EDGES, data["x"], side="right") - 1]
    return data.assign(low=lower, high=np.array(EDGES)[np.searchsorted(EDGES, lower) + 1])


INSIDE = hr.RangeTruncated(hr.Brackets(EDGES, column="low"), inside=True)


@pytest.mark.parametrize("standard", [INSIDE, hr.RangeTruncated(hr.Bounds("low", "high"), inside=True)])
@pytest.mark.parametrize("sampling", ["independent", "stratified"])
@beside
def test_copies_stay_inside_public_classes(standard, sampling):
    data = classed()
    synth = hr.Synthesizer("x ~ z", standard=standard, **settings(sampling=sampling)).fit(data)
    for copy in synth.sample().tables:
        assert ((data["low"] <= copy["x"]) & (copy["x"] <= data["high"])).all()
    free = hr.Synthesizer("x ~ z", standard=hr.RangeTruncated(standard.range), **settings()).fit(data)
    assert not (free.sample().tables[0]["x"] >= data["low"]).all()
    # The price is that of the draw: where copies are drawn does not touch it.
    if sampling == "independent":
        assert free.prices_["lipschitz"] == pytest.approx(synth.prices_["lipschitz"], rel=1e-12)


@beside
def test_copies_inside_depend_on_the_class_alone():
    """Given the draw, another outcome of the same class gives the same copies, bit by bit."""
    one = hr.Synthesizer("x ~ z", standard=INSIDE, **settings()).fit(classed())._need()
    moved = classed()
    moved["x"] = moved.groupby("low")["x"].transform(lambda x: np.roll(x, 1))
    other = hr.Synthesizer("x ~ z", standard=INSIDE, **settings()).fit(moved)._need()
    other.__dict__["released"] = one.released
    for mine, theirs in zip(one.predict(), other.predict(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@beside
def test_copies_inside_follow_the_truncated_law():
    """F(x | class) of each copy is uniform: Kolmogorov-Smirnov at 1e-4 over 300 records and 20 draws."""
    data = classed()
    synth = hr.Synthesizer("x ~ z", standard=INSIDE, **settings(copies=20)).fit(data)
    design, found = synth._need().start.design, []
    for draw, copy in zip(synth._need().released, synth._need().predict(), strict=True):
        mean, sigma = design.matrix @ draw.parameters["beta"], draw.parameters["sigma"]
        with np.errstate(divide="ignore"):
            low, x, high = (
                stats.norm.cdf((np.log(v) - mean) / sigma) for v in (data["low"], copy, data["high"])
            )
        found.append((x - low) / (high - low))
    assert stats.kstest(np.concatenate(found), "uniform").pvalue > 1e-4


@pytest.mark.parametrize(
    "known",
    [
        hr.Radius(0.4, 1.8),
        hr.Brackets(EDGES),
        hr.Bounds(np.zeros(3), np.ones(3)),
        hr.Bounds("low", np.ones(3)),
        hr.Everywhere(),
        hr.Tail(0.1, hr.Bounds("low", "high"), hr.Bounds("low", "high")),
        hr.Where("big", hr.Bounds("low", "high"), hr.Radius(0.4, 1.8)),
        hr.Brackets(EDGES, column="low", outside="public"),
    ],
)
def test_copies_are_not_drawn_inside_ranges_that_are_not_public(known):
    with pytest.raises(SettingError, match="inside=True"):
        hr.RangeTruncated(known, inside=True)


@beside
def test_where_of_public_ranges_is_public():
    data = classed()
    known = hr.Where("big", hr.Brackets(EDGES, column="low"), hr.Everywhere())
    data["big"] = data["z"] > 1
    synth = hr.Synthesizer("x ~ z", standard=hr.RangeTruncated(known, inside=True), **settings()).fit(data)
    above = synth.sample().tables[0]["x"] >= data["low"]
    assert above[data["big"]].all()
    assert not above[~data["big"]].all()


def test_bounds_that_the_owner_keeps_and_the_outcome_itself_are_refused():
    data = classed()
    with pytest.raises(SettingError, match=r"'low'.*not released as it is"):
        hr.Synthesizer("x ~ z", standard=INSIDE, **settings()).fit(data, left_out=["low"])
    own = hr.RangeTruncated(hr.Bounds("low", "x"), inside=True)
    with pytest.raises(SettingError, match=r"'x'.*not released as it is"):
        hr.Synthesizer("x ~ z", standard=own, **settings()).fit(data)


@beside
def test_a_record_outside_its_class_is_refused():
    data = classed()
    data.loc[0, "low"] = EDGES[0] if data.loc[0, "low"] else EDGES[1]
    with pytest.raises(RangeError, match="1 of 300 values lie outside"):
        hr.Synthesizer("x ~ z", standard=INSIDE, **settings()).fit(data)
    with pytest.raises(RangeError, match="lower edge of no class in 1 of 300 rows"):
        hr.Synthesizer("x ~ z", standard=INSIDE, **settings()).fit(
            data.assign(low=data["low"].where(data.index > 0, 0.5))
        )


def test_a_family_that_cannot_draw_inside_is_refused_before_any_data():
    with pytest.raises(SettingError, match="gamma family cannot"):
        hr.Synthesizer("x ~ z", "gamma", standard=INSIDE)


@beside
def test_the_guarantee_and_the_plan_say_that_copies_are_inside():
    guarantee = hr.Synthesizer("x ~ z", standard=INSIDE, **settings()).fit(classed()).sample().guarantee
    text = " ".join(str(guarantee).split())
    assert "drawn inside the record's range" in text
    assert "which the column 'low' says" in text
    plan = Plan(formula="x ~ z", epsilon=1.0, standard=INSIDE)
    assert Plan.loads(plan.text()).settings.standard == INSIDE
    before = Plan(formula="x ~ z", epsilon=1.0, standard=hr.RangeTruncated(hr.Brackets(EDGES)))
    assert "inside" not in before.text()
    assert "column" not in before.text()
    assert before.relation == "range-truncated brackets([0, 1, 3, 10, inf])"
