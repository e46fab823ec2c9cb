"""Several protected columns through the front door."""

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.report.sketch import draw_shapes

COLUMNS = {
    "wage": hr.Column("wage ~ age + C(sector)"),
    "hours": hr.Column("hours ~ age + log(wage)", "normal", declared=hr.Declared("integer")),
}
TOLD = {"bound": "renyi", "weights": hr.ScalarWeights(1), "sampling": "stratified", "seed": 3}


BOX = hr.Box({"wage": hr.Radius(0.5, 2), "hours": hr.Brackets([0, 30, 40, 50, 168])})


def people(n=600, seed=1):
    random = np.random.default_rng(seed)
    age, sector = random.integers(18, 66, n), random.choice(list("abc"), n)
    wage = np.exp(7 + 0.02 * age + 0.4 * random.normal(size=n)).round(2)
    hours = (20 + 3 * np.log(wage) + random.normal(size=n)).round().astype(int)
    return pd.DataFrame({"age": age, "wage": wage, "sector": sector, "hours": hours})


@pytest.fixture(scope="module")
def synth():
    return hr.Synthesizer(COLUMNS, epsilon=6.0, copies=2, **TOLD).fit(people())


def test_copies_have_the_types_and_the_association_of_the_original(synth):
    data = people()
    for copy in synth.sample().tables:
        assert list(copy.columns) == list(data.columns)
        pd.testing.assert_frame_equal(copy[["age", "sector"]], data[["age", "sector"]])
        assert copy["hours"].dtype == np.int64
        assert not (copy["wage"] == data["wage"]).any()
        ends = [np.corrcoef(np.log(table["wage"]), table["hours"])[0, 1] for table in (data, copy)]
        # Of 600 records a correlation has a standard error of about 0.02; five of the difference.
        assert abs(ends[0] - ends[1]) < 0.15


def test_later_columns_follow_the_synthetic_values_of_earlier_ones(synth):
    """The original's wage explains nothing more of a copy's hours than chance does."""
    data, copy = people(), synth.sample().tables[0]
    design = np.column_stack([np.ones(600), data["age"], np.log(copy["wage"])])
    left = copy["hours"] - design @ np.linalg.lstsq(design, copy["hours"], rcond=None)[0]
    own = np.log(data["wage"]) - np.polyval(np.polyfit(data["age"], np.log(data["wage"]), 1), data["age"])
    assert abs(np.corrcoef(left, own)[0, 1]) < 0.16  # 4 standard errors: a false alarm in 16,000


def test_the_price_is_that_of_the_row_and_the_guarantee_says_so(synth):
    assert synth.total_epsilon_ <= 6
    assert sorted(synth.utility()["column"].unique()) == ["hours", "wage"]
    told = " ".join(str(synth.sample().guarantee).split())
    assert "wage, hours" in told
    assert "the outcome of one record, all its protected columns together, is withheld" in told


def test_what_is_not_there_for_several_columns_is_refused_in_a_sentence(synth):
    assert "What copies keep of hours" in synth._repr_html_()
    for settings in (
        {"standard": hr.Strict(limits=(1, 9))}, {"standard": hr.RangeTruncated(hr.Radius(0.5, 2))},
        {"debias": True},
        {"standard": hr.RangeAveraged(BOX), "known": "simulated"},
    ):  # fmt: skip
        with pytest.raises(hr.HedgerowError, match="one protected column"):
            hr.Synthesizer(COLUMNS, epsilon=2.0, **settings)


@pytest.mark.slow
def test_one_weight_is_planned_for_all_columns():
    planned = hr.Synthesizer(COLUMNS, preset="recommended", epsilon=2.0, draws=200, seed=1).fit(people())
    assert len(set(planned.alpha_)) == 1
    assert 1 < planned.total_epsilon_ <= 2


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({}, "No column is named"),
        ({"wage": "wage ~ age"}, "give hr.Column"),
        ({"pay": hr.Column("wage ~ age")}, "'pay': its formula protects 'wage'"),
    ],
)
def test_columns_that_are_none_are_refused(columns, says):
    with pytest.raises(hr.HedgerowError, match=says):
        hr.Synthesizer(columns)


def test_family_prior_and_declared_belong_to_each_column():
    with pytest.raises(hr.HedgerowError, match="family, prior: with several columns each has its own"):
        hr.Synthesizer(COLUMNS, "gamma", prior=hr.Prior())


@pytest.fixture(scope="module")
def ranged():
    """Prices of unweighted rows, all on the same draws, by standard."""
    told = {"weights": hr.ScalarWeights(1), "bound": "oscillation", "draws": 100, "seed": 3}
    standards = {"none": hr.ADP(), "box": hr.RangeTruncated(BOX), "averaged": hr.RangeAveraged(BOX)}
    return {
        name: hr.Synthesizer(COLUMNS, standard=standard, **told).fit(people(200))
        for name, standard in standards.items()
    }


def test_ranges_on_both_columns_lower_the_price_of_the_row(ranged):
    none, box, averaged = (ranged[name].epsilon_ for name in ("none", "box", "averaged"))
    assert averaged < box < none
    assert ranged["box"].withheld_epsilon_["oscillation"] == pytest.approx(none, rel=1e-12)


def test_the_guarantee_names_every_range_and_what_is_replaced(ranged):
    told = " ".join(str(ranged["box"].sample().guarantee).split())
    assert "each value of 'wage' is known to lie between 0.5 and 2 times itself" in told
    assert "each value of 'hours' is known to lie in its class" in told
    assert "estimated by simulation" not in told


def test_a_box_of_one_column_is_the_plain_range():
    data, made = people(200)[["age", "wage"]], []
    for known in (hr.Radius(0.5, 2), hr.Box({"wage": hr.Radius(0.5, 2)})):
        synth = hr.Synthesizer(
            "wage ~ age", standard=hr.RangeTruncated(known), epsilon=4.0, draws=100, seed=3
        )
        made.append(synth.fit(data))
    assert made[0].epsilon_ == made[1].epsilon_
    pd.testing.assert_frame_equal(*(each.sample().tables[0] for each in made))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: hr.Box({}), "at least one column"),
        (lambda: hr.Box({"wage": 3}), "must have a range of one column, got int"),
        (lambda: hr.Box({"wage": BOX}), "must have a range of one column, got Box"),
        (lambda: hr.Box({"wage": hr.Radius(0.5, 2, outside="public")}), "whole row public"),
        (lambda: hr.RangeTruncated(BOX, inside=True), "inside=True"),
        (lambda: asked(hr.Box({"age": hr.Radius(0.5, 2)})), "'age' has a range and is not protected"),
        (lambda: asked(hr.Box({"hours": hr.Bounds(0, "wage")})), "'wage' is protected, and a range is read"),
        (lambda: asked(BOX, bound="renyi").fit(people(60)), "no closed form for RangeTruncated"),
        (
            lambda: asked(hr.Box({"hours": hr.Brackets([0, 30])})).fit(people(60)),
            "'hours': Brackets: .* lie outside",
        ),
    ],
)
def test_boxes_that_say_nothing_or_too_much_are_refused(make, says):
    with pytest.raises(hr.HedgerowError, match=says):
        make()


@pytest.mark.parametrize("standard", [hr.RangeTruncated, hr.RangeAveraged])
@pytest.mark.parametrize("range_of", ["bonus", "hours"])
def test_a_range_on_what_follows_from_cells_that_a_rule_fixes_is_refused(standard, range_of):
    """Its probability was that of amounts in every row: 3e-8 of the class of a row without wage."""
    random = np.random.default_rng(1)
    works = random.random(200) < 0.5
    wage = np.where(works, np.exp(random.normal(3, 0.3, 200)), 0.0)
    bonus = np.exp(1 + np.log1p(wage) + random.normal(0, 0.2, 200))
    table = pd.DataFrame({"works": works.astype(int), "wage": wage, "bonus": bonus, "hours": bonus})
    columns = {
        "wage": hr.Column("wage ~ 1", only_where="works == 1", otherwise=0, filler=20.0),
        "bonus": hr.Column("bonus ~ log1p(wage)"),
        "hours": hr.Column("hours ~ log(bonus)"),
    }
    box = hr.Box({range_of: hr.Brackets([0, 8, 1e9])})
    with pytest.raises(hr.errors.SettingError, match=f"'{range_of}' has a range and follows from"):
        hr.Synthesizer(columns, standard=standard(box), epsilon=50.0, draws=100, seed=1).fit(table)
    others = {"plain": hr.ADP(), "range": standard(box)}  # nor if it is not the first that has the range
    with pytest.raises(hr.errors.SettingError, match="the probability of the range is not known"):
        hr.compare(columns, table, standards=others, epsilon=None, draws=100, seed=1)


def asked(box, **settings):
    return hr.Synthesizer(COLUMNS, standard=hr.RangeTruncated(box), draws=100, seed=3, **settings)


def test_a_gauge_looks_at_each_column(synth, monkeypatch):
    monkeypatch.setattr("hedgerow.evidence.gauge._MOST", 10)
    good = synth.gauge_
    assert sorted(good.columns) == ["hours", "wage"]
    assert not good.discards
    assert all(abs(each.apart) < 0.05 for each in good.columns.values())
    assert [name for name, _ in good.facts()][1:] == [
        f"ECDF maximum of trial copies, {name}" for name in COLUMNS
    ]


@pytest.mark.slow
def test_a_column_that_is_lost_is_named():
    with pytest.warns(hr.HedgerowWarning, match="met only by discarding the data"):
        lost = hr.Synthesizer(COLUMNS, epsilon=0.3, copies=3, draws=200, **TOLD).fit(people(200))
    assert lost.gauge_.discards
    assert f"copies of '{lost.gauge_.column}' are further" in lost.describe_stop()


@pytest.mark.slow
def test_pictures_and_comparisons_show_each_column(synth):
    """By-record pictures are of the row's price; what is compared with copies has a panel for each column."""
    assert [axes.get_ylabel() for axes in hr.plot.data(synth).axes] == ["wage", "hours"]
    assert len(hr.plot.utility(synth).axes) == 2
    assert len(hr.plot.lipschitz(synth).axes) == 1
    lines = draw_shapes(synth.shape_columns(), width=60)
    assert [line for line in lines if line in COLUMNS] == ["wage", "hours"]
    told = {name: value for name, value in TOLD.items() if name != "sampling"} | {"draws": 100}
    found = hr.compare(COLUMNS, people(100), standards={"ADP": hr.ADP(), "plain": hr.Unweighted()}, **told)
    assert list(found.table["standard"]) == ["ADP", "plain"]
    assert {(row["column"], row[""]) for row in found.shown_utility} >= {("wage", "ADP"), ("hours", "plain")}
    assert found._repr_html_().count("<svg") == 2
    one = hr.Synthesizer("wage ~ age")
    with pytest.raises(hr.HedgerowError, match="the same protected columns, got wage; wage, hours"):
        hr.plot.data({"several": synth, "one": one})


def test_default_weights_follow_from_the_number_of_columns_and_the_bound():
    linear, one = hr.LinearWeights(), hr.ScalarWeights(1)
    single = {"wage": COLUMNS["wage"]}
    for columns, bound, wanted in (
        (COLUMNS, "renyi", one), (COLUMNS, "oscillation", one), (COLUMNS, "lipschitz", linear),
        (single, "renyi", linear), (single, "lipschitz", linear),
    ):  # fmt: skip
        assert hr.Synthesizer(columns, bound=bound).settings.weights == wanted
    assert hr.Synthesizer(COLUMNS).settings.weights == linear
    assert hr.Synthesizer(COLUMNS, bound="renyi", weights=linear).settings.weights == linear


def test_each_column_s_part_of_the_price_is_told(synth):
    """At equal weights a column alone costs what a release of it alone would, and less than the row."""
    told = synth.price_by_column().set_index("column")
    assert list(told.index) == ["wage", "hours"]
    assert told["share"].sum() == pytest.approx(1)
    assert (told["alone"] < synth.total_epsilon_).all()
    assert told["alone"].sum() > synth.total_epsilon_
    scale = hr.ScalarWeights(float(synth.alpha_[0]))
    one = hr.Synthesizer("wage ~ age + C(sector)", bound="renyi", copies=2, weights=scale, seed=3).fit(
        people(), left_out=["hours"]
    )
    assert told["alone"]["wage"] == pytest.approx(one.total_epsilon_, rel=1e-6)
    with pytest.raises(hr.HedgerowError, match="riskiest must be a count"):
        synth.price_by_column(riskiest=0)


def test_associations_of_pairs_are_compared(synth):
    table = synth.associations()
    assert sorted(set(zip(table["first"], table["second"], strict=True))) == [
        ("hours", "age"), ("wage", "age"), ("wage", "hours"),
    ]  # fmt: skip
    pooled = table[table["copy"] == "pooled"].set_index(["first", "second"])
    pair = people()[["wage", "hours"]].corr("spearman").iloc[0, 1]
    assert pooled.loc[("wage", "hours"), "original"] == pytest.approx(pair)
    assert abs(pooled["original"] - pooled["synthetic"]).max() < 0.2  # 0.04 and the weights' noise, of 600


def test_a_bound_without_a_closed_form_is_refused_before_any_sampling(monkeypatch):
    columns = {"wage": hr.Column("wage ~ age"), "hours": hr.Column("hours ~ age", "gamma")}
    monkeypatch.setattr("hedgerow.synthesizer.begin", None)
    with pytest.raises(hr.HedgerowError, match=r"no closed form for 'hours' \(gamma\)"):
        hr.Synthesizer(columns, epsilon=5.0, bound="renyi").fit(people(60)[["age", "wage", "hours"]])
