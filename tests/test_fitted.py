"""A synthesizer that holds noisy statistics: one price for all copies, and all that follows from them."""

import json

import numpy as np
import pytest

import hedgerow as hr

LIMITS = (0.01, 1000.0)


def fit(data=None, *, epsilon=1.0, copies=1, seed=1, relation="withheld", family="lognormal", **standard):
    data = hr.datasets.lognormal(n=400, seed=2) if data is None else data
    sampling = standard.pop("sampling", "independent")
    strict = hr.Strict(limits=standard.pop("limits", LIMITS), relation=relation, **standard)
    return hr.Synthesizer(
        "x ~ z", family, standard=strict, epsilon=epsilon, copies=copies, sampling=sampling, draws=200,
        seed=seed,
    ).fit(data)  # fmt: skip


def test_any_number_of_copies_costs_what_one_costs():
    one, ten = fit(copies=1), fit(copies=10)
    for synth in (one, ten):
        assert synth.epsilon_ == synth.total_epsilon_ == 1.0
        assert synth.statistics_ == one.statistics_
    guarantee = ten.sample().guarantee
    assert guarantee.shares().epsilon == (None, 1.0)
    assert "The 10 released copies together are ε-differentially private with ε = 1 " in guarantee.claim()
    assert "2ε = 2 for one outcome replaced by any other value" in guarantee.claim()
    copies = [copy["x"].to_numpy() for copy in ten.sample().tables]
    assert len({copy.tobytes() for copy in copies}) == 10
    assert all(np.isfinite(copy).all() and (copy > 0).all() for copy in copies)


def test_copies_follow_from_the_released_statistics_alone():
    """Another outcome with the same statistics gives the same copies: nothing else of it enters."""
    data = hr.datasets.lognormal(n=400, seed=2)
    synth, other = fit(data, copies=2), fit(data.assign(x=1.0), copies=2)
    object.__setattr__(other._fitted, "released", synth._fitted.released)
    for one, two in zip(synth.sample().tables, other.sample().tables, strict=True):
        assert one["x"].tolist() == two["x"].tolist()
    assert synth.intervals().equals(other.intervals())


@pytest.fixture(scope="module")
def spiked():
    """Zeros more often where z is small, and a fit under which whether a value is zero is protected."""
    data = hr.datasets.lognormal(n=2000, seed=2)
    zero = np.random.default_rng(1).uniform(size=2000) < 1 / (1 + np.exp(data["z"] - 1))
    data = data.assign(x=np.where(zero, 0.0, data["x"]))
    return data, fit(data, family="zero_lognormal", copies=2)


def test_zeros_are_kept_as_a_spike(spiked):
    data, synth = spiked
    low = data["z"] < 2
    for copy in synth.sample().tables:
        for rows in (low, ~low):
            share = [(table.loc[rows, "x"] == 0).mean() for table in (data, copy)]
            assert share[0] == pytest.approx(share[1], abs=4.5 * np.sqrt(2 * 0.25 / rows.sum()))
        assert copy["x"].dtype == np.float64
        assert (copy["x"][copy["x"] != 0] >= LIMITS[0]).all()
    found = synth.intervals(level=0.6827).set_index("parameter")
    assert found.index.tolist() == ["Intercept", "z", "sigma", "spike Intercept", "spike z"]
    error = (found["upper"] - found["lower"]) / 2
    assert (np.abs(found["estimate"] - [1.0, 1.0, 1.0, 1.0, -1.0]) < 4.5 * error).all()
    assert (error < 0.2).all()
    assert "values lie between 0.01 and 1,000, or at 0; others" in synth.sample().guarantee.known
    audit = synth.audit()
    assert 0.9 < audit.largest_fixed <= 1.0 + 1e-9
    assert synth.clipped_ < 0.01  # of which zeros are none


def test_which_values_are_zero_enters_by_the_statistics_alone(spiked):
    """Another outcome, without a zero, and the same statistics: the same copies and intervals."""
    data, synth = spiked
    other = fit(data.assign(x=1.0), family="zero_lognormal", copies=2)
    object.__setattr__(other._fitted, "released", synth._fitted.released)
    for one, two in zip(synth.sample().tables, other.sample().tables, strict=True):
        assert one["x"].tolist() == two["x"].tolist()
    assert synth.intervals().equals(other.intervals())


@pytest.mark.parametrize(
    ("relation", "value"),
    [
        ("withheld", 0.0),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in (("withheld", 900.0), ("replaced", 0.0), ("replaced", 900.0))
        ),
    ],
)
def test_an_attack_on_a_spike(relation, value):
    """On a zero, and on the farthest amount, which is taken if no record is named."""
    data = hr.datasets.lognormal(n=20, seed=2)
    data.loc[[3, 5, 8], "x"] = [value, 0.0, 0.0]
    synth = fit(data, epsilon=3.0, relation=relation, family="zero_lognormal")
    found = synth.attack(None if value else 3, trials=200)
    assert not found.breach
    assert found.lower > 0.2


def test_what_a_spike_does_not_go_with():
    for more, message in (
        ({"relation": "range", "range": hr.Radius(0.4, 1.8)}, "leave open which values"),
        ({"sampling": "projected"}, "an amount of every record"),
        ({"family": hr.Family("zero_lognormal", upper=5.0)}, "without lower and upper"),
        ({"family": "zero_gamma"}, "one of them with a spike"),
    ):
        with pytest.raises(hr.HedgerowError, match=message):
            fit(**{"family": "zero_lognormal"} | more)


def test_what_only_weights_have_says_so():
    synth = fit()
    for name in ("risk_", "alpha_", "power_", "records_", "lipschitz_epsilon_", "scale_", "flagged_"):
        assert not hasattr(synth, name)
        with pytest.raises(hr.HedgerowError, match="neither weights nor risks"):
            getattr(synth, name)
    weighted = hr.Synthesizer("x ~ z", seed=1, draws=100).fit(hr.datasets.lognormal(n=50, seed=1))
    assert not hasattr(weighted, "statistics_")
    assert not hasattr(weighted, "clipped_")
    json.dumps(synth.statistics_)
    with pytest.raises(hr.HedgerowError, match="level must lie"):
        synth.intervals(level=2)


@pytest.mark.slow
def test_intervals_hold_the_truth_and_narrow_with_epsilon():
    data = hr.datasets.lognormal(n=2000, seed=4)  # log x = 1 + z + e
    wide, narrow = (fit(data, epsilon=epsilon, seed=3).intervals(level=0.999) for epsilon in (0.1, 5.0))
    assert narrow["parameter"].tolist() == ["Intercept", "z", "sigma"]
    for found in (wide, narrow):
        assert (found["lower"] < [1, 1, 1]).all()
        assert (found["upper"] > [1, 1, 1]).all()
    width = [(found["upper"] - found["lower"]).to_numpy() for found in (wide, narrow)]
    assert (width[1] < width[0]).all()


@pytest.mark.parametrize(
    ("relation", "more"),
    [
        ("withheld", {}),
        ("replaced", {}),
        ("range", {"range": hr.Radius(0.4, 1.8)}),
        ("range", {"range": hr.Brackets([0.1, 1, 10, 100])}),
        ("withheld", {"margin": hr.Margin(0.5)}),
    ],
)
def test_an_audit_finds_no_loss_above_epsilon_and_nearly_that(relation, more):
    """Values all over the limits: the dearest uses nearly all of ε, given the rounds as they came out."""
    rng = np.random.default_rng(5)
    data = hr.datasets.lognormal(n=1000, seed=2).assign(x=np.exp(rng.uniform(-4.6, 6.9, 1000)))
    found = fit(data, relation=relation, epsilon=2.0, **more).audit()
    assert found.breaches.size == 0
    assert 0.75 * 2 < found.largest_fixed <= 2.0
    assert "Nothing to find" in str(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "relation", ["withheld", *(pytest.param(name, marks=pytest.mark.slow) for name in ("replaced", "range"))]
)
def test_an_attack_bounds_epsilon_from_below(relation):
    data = hr.datasets.lognormal(n=20, seed=2)
    more = {"range": hr.Radius(0.01, 50)} if relation == "range" else {}
    data.loc[3, "x"] = 900.0
    found = fit(data, epsilon=3.0, relation=relation, **more).attack(3, trials=200)
    assert found.claimed == 3.0
    assert not found.breach
    assert found.lower > 0.2  # it does see something


@pytest.mark.filterwarnings("ignore::hedgerow.HedgerowWarning")
@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, 1e300])
def test_hostile_outcomes_change_neither_types_nor_shape(value):
    frame = hr.datasets.lognormal(30, seed=5)
    copy = fit(frame.assign(x=[value, *frame["x"][1:]])).sample().tables[0]
    assert (copy["x"].dtype, len(copy)) == (np.float64, 30)
    assert np.isfinite(copy["x"]).all()


def test_many_values_beyond_the_limits_are_told_to_the_owner():
    with pytest.warns(hr.HedgerowWarning, match="beyond the limits"):
        synth = fit(limits=(5.0, 6.0))
    assert synth.clipped_ > 0.5


@pytest.mark.parametrize("sampling", ["independent", "stratified", "projected"])
def test_ways_of_sampling(sampling):
    synth = fit(sampling=sampling)
    copy = synth.sample().tables[0]
    said = " ".join(synth.sample().guarantee.processing())
    found = "from stratified" in said, "were projected off" in said  # by these rules are chosen
    assert found == (sampling == "stratified", sampling == "projected")
    assert len(copy) == 400


def test_that_copies_share_the_counts_of_a_margin_is_said_where_there_are_counts():
    """What copies do not show of the noise no rule that combines them knows."""
    data, columns = hr.datasets.lognormal(n=400, seed=2), {"x": hr.Column("x ~ z", family="lognormal")}
    chained = hr.Strict(limits={"x": LIMITS}, margin=hr.Margin(0.25))
    several = hr.Synthesizer(columns, standard=chained, epsilon=3.0, draws=200, seed=1).fit(data)
    counted, uncounted = fit(epsilon=3.0, margin=hr.Margin(0.25)), fit(epsilon=3.0)
    with pytest.warns(hr.HedgerowWarning, match="no margin"):
        left_out = fit(epsilon=0.5, margin=hr.Margin(0.25))
    said = [
        "noisy counts of a margin" in " ".join(synth.sample().guarantee.processing())
        for synth in (counted, several, uncounted, left_out)
    ]
    assert said == [True, True, False, False]


@pytest.mark.slow
def test_draws_go_to_arviz_and_outcomes_do_not():
    synth = fit()
    posterior = synth.to_arviz().posterior
    assert posterior["beta"].shape == (32, 6, 2)  # of 200 draws those that all chains have
    assert posterior["sigma"].values[:, 0].tolist() == synth._fitted.parameters["sigma"][:32].tolist()
    with pytest.raises(hr.HedgerowError, match="reads every outcome again"):
        synth.to_arviz(log_likelihood=True)


def test_several_rows_of_a_person_are_protected_together():
    data, strict = hr.datasets.lognormal(n=400, seed=2), hr.Strict(limits=LIMITS)
    synth = hr.Synthesizer("x ~ z", standard=strict, epsilon=1.0, seed=1, rows_per_unit=3).fit(data)
    assert sum(each["row_price"] for each in synth.statistics_["rounds"]) == pytest.approx(1 / 3, rel=1e-4)
    with pytest.raises(hr.HedgerowError, match="only Strict"):
        hr.Synthesizer("x ~ z", epsilon=1.0, rows_per_unit=3)


def test_a_strict_row_beside_the_others():
    data = hr.datasets.lognormal(n=300, seed=2)
    standards = {"ADP": hr.ADP(), "strict": hr.Strict(limits=LIMITS)}
    found = hr.compare(
        "x ~ z", data, standards=standards, epsilon=2.0, weights=hr.ScalarWeights(1.0), debias=False, seed=1,
        draws=200,
    )  # fmt: skip
    gaussian = {"ADP": hr.ADP(), "strict": hr.Strict(limits=LIMITS, noise="gaussian")}
    both = hr.compare("x ~ z", data, standards=gaussian, epsilon=2.0, delta=1e-5, seed=1, draws=200)
    assert [one.settings.delta for one in both.synthesizers.values()] == [1e-6, 1e-5]
    table = found.table.set_index("standard")
    assert table.loc["strict", "epsilon"] == 2.0
    assert np.isnan(table.loc["strict", "lipschitz"])
    assert set(found.records["standard"]) == {"ADP"}
    assert set(found.utility["standard"]) == {"ADP", "strict"}


def test_missing_outcomes_under_strict_are_told_with_what_they_do():
    """They cannot be refused, and nothing but the owner's knowledge mends them."""
    data = hr.datasets.lognormal(n=200, seed=1)
    data.loc[:4, "x"] = np.nan
    synth = hr.Synthesizer("x ~ z", standard=hr.Strict(limits=(1e-3, 1e5)), epsilon=1.0, draws=100, seed=1)
    with pytest.warns(hr.HedgerowWarning, match=r"5 of 200 .* come out too wide.* \(--drop-missing"):
        synth.fit(data)
