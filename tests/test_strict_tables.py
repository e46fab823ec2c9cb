"""Strict by noisy statistics for several protected columns, through the front door."""

import json
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.inference.statistics import conclude, write_statistics
from hedgerow.mechanism.cells import read_parts
from hedgerow.mechanism.noisy.chain.cells import settle_types, shape_columns
from hedgerow.mechanism.noisy.chain.encode import encode_columns
from hedgerow.mechanism.noisy.chain.run import hold_chain, read_columns, tasks_of, write_links
from hedgerow.release.plan import Plan
from hedgerow.release.plan.kinds import write
from hedgerow.synthesizer import encode
from hedgerow.tables.table import Table

GRADES = ["low", "mid", "high"]
COLUMNS = {
    "wage": hr.Column("wage ~ age"),
    "grade": hr.Column("grade ~ log(wage)", hr.Family("categorical", levels=GRADES)),
    "bonus": hr.Column("bonus ~ age + log(wage)", "zero_lognormal"),
    "hours": hr.Column("hours ~ age + log(wage)", "normal", declared=hr.Declared("integer")),
}
LIMITS = {"wage": (100, 1e6), "bonus": (1, 1e5), "hours": (0, 80)}
STRICT = hr.Strict(limits=LIMITS, reason="tariffs")
ASKED = {"standard": STRICT, "epsilon": 8.0, "sampling": "stratified", "seed": 2}


def people(n=1000, seed=4):
    """Wages, grades and hours that hang together beyond age, and bonuses that are zero for many."""
    random = np.random.default_rng(seed)
    age, own = random.integers(18, 66, n), random.normal(size=n)
    wage = np.exp(7 + 0.02 * age + 0.4 * own)
    grade = np.array(GRADES)[np.digitize(own + random.normal(size=n), [-0.6, 0.6])]
    bonus = np.where(own + random.normal(size=n) < -0.3, 0.0, np.exp(5 + 0.6 * own + random.normal(size=n)))
    hours = (38 - 3 * own + 2 * random.normal(size=n)).round()
    return pd.DataFrame(
        {"age": age, "wage": wage, "grade": grade, "bonus": bonus.round(2), "hours": hours.astype(int)}
    )


@pytest.fixture(scope="module")
def synth():
    return hr.Synthesizer(COLUMNS, copies=2, draws=200, **ASKED).fit(people())


def associations(table):
    own = np.log(table["wage"]) - 7 - 0.02 * table["age"]
    paid = table["bonus"] > 0
    return np.array(
        [
            np.corrcoef(own, table["hours"])[0, 1],
            np.corrcoef(own, table["grade"].map(GRADES.index))[0, 1],
            np.corrcoef(own, paid)[0, 1],
            np.corrcoef(own[paid], np.log(table["bonus"][paid]))[0, 1],
            (table["grade"] == "mid").mean(),
            paid.mean(),
        ]
    )


@pytest.mark.slow
def test_copies_keep_how_columns_hang_together(synth):
    data = people()
    for copy in synth.sample().tables:
        assert list(copy.columns) == list(data.columns)
        assert copy["hours"].dtype == np.int64
        assert set(copy["grade"]) == set(GRADES)
        # Standard errors of a difference are about 0.04 at 1000 records: five of them.
        assert np.abs(associations(copy) - associations(data)).max() < 0.2
    assert synth.total_epsilon_ == 8
    told = " ".join(str(synth.sample().guarantee).split())
    assert "wage 100 to 1,000,000; bonus 1 to 100,000; hours 0 to 80" in told
    assert "wage, grade, bonus, hours" in told


@pytest.mark.slow
def test_a_receiver_finds_what_the_owner_does(synth):
    """From the statistics and a copy: the same recipes, and intervals that differ by their draws alone."""
    document = json.loads(write_statistics("", "", synth.statistics_))
    assert [section["outcome"] for section in document["sections"]] == list(COLUMNS)
    assert sum(section["epsilon"] for section in document["sections"]) == pytest.approx(8.0)
    own, theirs = synth.intervals(), conclude(document, synth.sample().tables[1], draws=200)
    assert theirs["parameter"] == list(own["parameter"])
    width = (own["upper"] - own["lower"]).to_numpy()
    assert np.abs(own["estimate"] - np.array(theirs["estimate"])).max() < 0.5 * width.max()
    slope = own.query("column == 'hours' and parameter == 'wage'").iloc[0]
    assert slope["lower"] < -3 / 0.4 < slope["upper"]  # of hours on log wage, age apart


def test_no_cell_changes_what_columns_are_told_nor_is_refused():
    """Gaps, infinities and labels that nobody declared: same predictors, same limits, same noise."""
    data = people(60).astype({"hours": float, "grade": object})
    other = data.copy()
    other.loc[3, ["wage", "bonus", "hours"]] = [np.inf, -5.0, np.nan]
    other.loc[3, "grade"], other.loc[4, "grade"], other.loc[4, "wage"] = "none of them", None, 0.0
    settings = hr.Synthesizer(COLUMNS, **ASKED).settings
    tables = Table.of(data), Table.of(other)
    one, two = (
        hold_chain(settings, table, encode_columns(settings, table), values=False) for table in tables
    )
    assert one.tasks == two.tasks
    for mine, theirs in zip(one.whole.matrices, two.whole.matrices, strict=True):
        assert np.array_equal(mine, theirs)


@pytest.mark.slow
def test_gaps_and_unknown_labels_are_withheld():
    data = people(200).astype({"hours": float, "grade": object})
    data.loc[3, ["wage", "bonus", "hours"]] = [np.inf, -5.0, np.nan]
    data.loc[3, "grade"], data.loc[4, "grade"], data.loc[4, "wage"] = "none of them", None, 0.0
    with pytest.warns(hr.HedgerowWarning, match="missing"):
        copy = hr.Synthesizer(COLUMNS, draws=100, **ASKED).fit(data).sample().tables[0]
    assert copy.notna().all(axis=None)


def test_two_columns_and_their_guarantee():
    """The quick sister of the tests above."""
    few = {"grade": COLUMNS["grade"], "hours": hr.Column("hours ~ age + grade", "normal")}
    columns = few | {"grade": hr.Column("grade ~ age", few["grade"].family)}
    strict = hr.Strict(limits={"hours": (0, 80)})
    data = people(400)[["age", "grade", "hours"]]
    synth = hr.Synthesizer(columns, standard=strict, epsilon=8.0, draws=100, seed=1).fit(data)
    (copy,) = synth.sample().tables
    gaps = [table.groupby("grade")["hours"].mean()[GRADES].diff().sum() for table in (data, copy)]
    assert gaps[0] == pytest.approx(gaps[1], abs=2.0)  # four standard errors
    assert set(synth.intervals()["column"]) == {"grade", "hours"}
    with pytest.raises(hr.HedgerowError, match="one protected column"):
        synth.audit()


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"limits": {"wage": (1, 9)}}, "'bonus' needs limits"),
        (
            {"limits": LIMITS | {"wage": (9, 1)}},
            r"limits of 'wage' must be .* got \(9, 1\)\. Give the lower one",
        ),
        ({"limits": LIMITS | {"wage": 9}}, "limits of 'wage' must be two numbers"),
        ({"limits": LIMITS | {"grade": (0, 2)}}, "'grade' has classes, and no limits"),
        ({"limits": LIMITS | {"pay": (0, 2)}}, "'pay', which is no protected column"),
        ({"shares": {"wage": 1.0}}, "shares have none for 'grade'"),
        ({"shares": {"wage": 0.0}}, "positive numbers by column"),
        ({"noise": "gaussian"}, "noise='gaussian' goes with limits of one column"),
        ({"relation": "range", "range": hr.Radius(0.5, 2)}, "relation='range' goes with limits of one"),
        ({"limits": (1, 9)}, "one protected column"),
    ],
)
def test_what_has_no_price_is_refused_beforehand(changed, says):
    with pytest.raises(hr.HedgerowError, match=says):
        hr.Synthesizer(COLUMNS, epsilon=1.0, standard=hr.Strict(**({"limits": LIMITS} | changed)))


@pytest.mark.parametrize(
    ("formula", "says"),
    [
        ("hours ~ age:log(wage)", "in a term of its own"),
        ("hours ~ I(wage + bonus)", "in a term of its own"),
    ],
)
def test_a_protected_column_stands_by_itself_in_a_formula(formula, says):
    columns = COLUMNS | {"hours": hr.Column(formula, "normal")}
    with pytest.raises(hr.HedgerowError, match=says):
        hr.Synthesizer(columns, **ASKED).fit(people(60))
    back = {name: COLUMNS[name] for name in ("grade", "wage", "bonus", "hours")}
    with pytest.raises(hr.HedgerowError, match="'wage', which is synthesized later"):
        hr.Synthesizer(back, **ASKED).fit(people(60))


def test_limits_of_dates_are_dates(tmp_path):
    days = hr.Strict(limits={"hired": ("1980-01-01", "2023-12-31")})
    assert days.limits["hired"] == (3652.0, 19722.0)
    (tmp_path / "plan.yaml").write_text(
        "version: 1\ndata: x.csv\nepsilon: 1\ncolumns:\n  hired: {formula: hired ~ age, family: normal}\n"
        "standard: {kind: strict, reason: known, limits: {hired: ['1980-01-01', '2023-12-31']}}\n"
    )
    assert Plan.load(tmp_path / "plan.yaml").settings.standard.limits == days.limits
    with pytest.raises(hr.HedgerowError, match="two dates such as '2015-01-31'"):
        hr.Strict(limits={"hired": ("1980", "2023-12-31")})


def test_values_that_limits_moved_are_told_with_their_column():
    """Of the table, and of the copies."""
    data = people(400)[["age", "wage", "hours"]]
    columns = {
        "wage": hr.Column("wage ~ age", missing="synthesized"),
        "hours": hr.Column("hours ~ age", "normal"),
    }
    strict = hr.Strict(limits={"wage": LIMITS["wage"], "hours": (0, data["hours"].median())})
    with pytest.warns(hr.HedgerowWarning, match="Many values of 'hours' lie beyond"):
        synth = hr.Synthesizer(columns, standard=strict, epsilon=8.0, draws=100, seed=1).fit(data)
    with pytest.warns(hr.HedgerowWarning, match=r"of 400 synthetic values of 'hours' lay beyond"):
        (copy,) = synth.sample().tables
    assert synth._done().moved["hours"] == (copy["hours"] == copy["hours"].max()).sum() > 100


def test_plans_have_limits_and_shares_by_column():
    shares = {"wage": 3.0, "grade": 1.0, "bonus": 2.0, "hours": 2.0}
    written = write(hr.Strict(limits=LIMITS, shares=shares), "a standard")
    assert written["limits"] == {name: tuple(map(float, pair)) for name, pair in LIMITS.items()}
    assert written["shares"] == shares
    assert "shares" not in write(hr.Strict(limits=(1, 9)), "a standard")


def test_shares_divide_epsilon_and_classes_may_stand_alone():
    strict = hr.Strict(limits=LIMITS, shares={"wage": 3, "grade": 1, "bonus": 2, "hours": 2})
    settings = hr.Synthesizer(COLUMNS, epsilon=2.0, standard=strict).settings
    table = Table.of(people(60))
    parts = [task.epsilon for task in tasks_of(settings, table, encode_columns(settings, table))]
    assert parts == [0.75, 0.25, 0.5, 0.5]
    alone = hr.Synthesizer(
        "grade ~ age", COLUMNS["grade"].family, standard=hr.Strict(limits={}), epsilon=3.0, draws=100, seed=1
    ).fit(people()[["age", "grade"]])
    shares = alone.sample().tables[0]["grade"].value_counts(normalize=True)
    assert np.abs(shares - people()["grade"].value_counts(normalize=True)).max() < 0.1


def with_gaps(n=1500):
    """Bonuses, none of them zero, and grades, some of them missing: more bonuses where wages are high."""
    data, random = people(n, seed=8), np.random.default_rng(9)
    own = (np.log(data["wage"]) - 7 - 0.02 * data["age"]) / 0.4
    data["bonus"] = np.exp(5 + 0.6 * own + 0.5 * random.normal(size=n))
    data.loc[random.uniform(size=n) < 1 / (1 + np.exp(2 - own)), "bonus"] = np.nan
    data.loc[random.uniform(size=n) < 0.1, "grade"] = None
    return data.drop(columns="hours")


@pytest.mark.slow
def test_gaps_are_synthesized_and_sigma_does_not_grow_by_them():
    """Without missing="synthesized" σ of the bonuses would come out at twice its size."""
    data = with_gaps()
    columns = {
        "wage": COLUMNS["wage"],
        "grade": hr.Column("grade ~ age", COLUMNS["grade"].family, missing="synthesized"),
        "bonus": hr.Column("bonus ~ age + log(wage)", "lognormal", missing="synthesized"),
    }
    strict = hr.Strict(limits={name: LIMITS[name] for name in ("wage", "bonus")})
    synth = hr.Synthesizer(columns, standard=strict, epsilon=9.0, draws=200, seed=1).fit(data)
    (copy,) = synth.sample().tables
    sigma = synth.intervals().query("column == 'bonus' and parameter == 'sigma'").iloc[0]
    assert sigma["lower"] < 0.5 < sigma["upper"] < 0.6
    for name in ("grade", "bonus"):
        # The difference of two shares of 1500 has a standard error of 0.013 at most: four, and noise.
        assert abs(copy[name].isna().mean() - data[name].isna().mean()) < 0.06
    gone = [np.corrcoef(np.log(table["wage"]), table["bonus"].isna())[0, 1] for table in (data, copy)]
    assert abs(gone[0] - gone[1]) < 0.15
    assert set(copy["grade"].dropna()) == set(GRADES)


def test_a_gap_is_a_value_of_its_own():
    columns = {
        "grade": hr.Column("grade ~ age", COLUMNS["grade"].family, missing="synthesized"),
        "bonus": hr.Column("bonus ~ age", missing="synthesized"),
    }
    settings = hr.Synthesizer(columns, epsilon=1.0, standard=hr.Strict(limits={"bonus": (1, 1e5)})).settings
    table = Table.of(with_gaps(80))
    design = encode_columns(settings, table)
    grade, bonus = tasks_of(settings, table, design)
    assert grade.classes == 4
    assert bonus.kinds == ("missing",)
    grades, bonuses = read_columns(settings, table)
    assert grades.present.all() and bonuses.present.all()  # noqa: PT018 - nothing is withheld
    assert np.array_equal(grades.numbers == 3, with_gaps(80)["grade"].isna())
    assert np.array_equal(np.isnan(bonuses.numbers), with_gaps(80)["bonus"].isna())
    cells = write_links(shape_columns(settings, table), [None, None], [grades, bonuses], 80)
    assert [len(cells), *map(len, cells)] == [4, 80, 80, 80, 80]
    assert np.array_equal(cells[2], with_gaps(80)["bonus"].isna())


def test_a_derived_column_is_no_public_predictor():
    """It holds protected values: log(hourly) + log(hours) would be the wage itself, at any ε."""
    data = people(60).assign(hourly=lambda table: table["wage"] / table["age"])
    asked = {"epsilon": 1.0, "standard": hr.Strict(limits={"wage": (100, 1e6)})}
    rules = hr.Rules(derived={"hourly": "wage / age"})
    columns = {"wage": hr.Column("wage ~ log(hourly) + log(age)")}
    with pytest.raises(hr.HedgerowError, match="'hourly', which is derived"):
        hr.Synthesizer(columns, rules=rules, **asked).fit(data)


def test_types_of_copies_follow_from_the_plan_and_from_no_cell():
    """In pandas one gap makes objects of flags and doubles of whole numbers; neither refused nor shown."""
    columns = {"wage": COLUMNS["wage"], "flag": hr.Column("flag ~ age", "bernoulli")}
    rules = hr.Rules(derived={"total": "wage + age", "rich": "wage > 2000"})
    strict = hr.Strict(limits={"wage": (100, 1e6)})
    synth = hr.Synthesizer(columns, standard=strict, epsilon=4.0, rules=rules, draws=100, seed=1)
    data = people(60)[["age", "wage"]].round()
    data = data.assign(flag=data["wage"] % 2 > 0, total=(data["wage"] + data["age"]).astype(int))
    other = data.astype({"wage": object, "flag": object})
    other.loc[3, "wage"], other.loc[3, "flag"] = "no number", None
    kinds = [settle_types(synth.settings, Table.of(table)).native.dtypes for table in (data, other)]
    assert [str(kind) for each in kinds for kind in each[["wage", "flag"]]] == ["float64"] * 4
    design = encode_columns(synth.settings, Table.of(other))
    assert [link.present.sum() for link in design.links] == [59, 59]
    # 0 and 1 as objects are what they are as numbers: flags and whole numbers look alike once a cell is odd.
    whole = data.assign(flag=data["flag"].astype(int))
    odd = whole.astype({"flag": object})
    odd.loc[3, "flag"] = "no flag"
    designs = [encode_columns(synth.settings, Table.of(table)).links[1] for table in (whole, odd)]
    assert np.array_equal(np.delete(designs[0].values, 3), np.delete(designs[1].values, 3))
    assert designs[1].levels is None
    assert designs[1].present.sum() == 59
    (copy,) = synth.fit(data).sample().tables  # total and flag would be Int64 and bool, rich has no type yet
    assert list(copy.columns) == [*data.columns, "rich"]
    assert list(map(str, copy.dtypes.iloc[1:])) == ["float64", "float64", "float64", "boolean"]
    assert np.array_equal(copy["rich"], copy["wage"] > 2000)


def test_classes_that_are_whole_numbers_are_written_as_such():
    data = pd.DataFrame({"age": np.arange(60.0), "grade": np.tile([1.0, 2.0, 3.0], 20)})
    for family in (hr.Family("ordinal", levels=[1, 2, 3]), hr.Family("ordinal", lower=1, upper=3)):
        column = hr.Column("grade ~ age", family, missing="synthesized")
        synth = hr.Synthesizer({"grade": column}, epsilon=9.0, standard=hr.Strict(limits={}), draws=100)
        cells = synth.fit(data).sample().tables[0]["grade"].dropna()
        assert set(map(str, cells)) <= {"1", "2", "3"}


@pytest.mark.parametrize("cell", [30.0, "refused", None, True])
def test_a_column_of_objects_is_read_alike_whatever_its_cells_are(cell):
    """One number among gaps and words makes objects; without it narwhals takes the column for text."""
    columns = {"pay": hr.Column("pay ~ age", missing="withheld")}
    strict = hr.Strict(limits={"pay": (1.0, 1e6)})
    settings = hr.Synthesizer(columns, standard=strict, epsilon=2.0).settings
    cells = pd.Series([cell, None, "n/a", None], dtype=object)
    table = settle_types(settings, Table.of(pd.DataFrame({"age": [20, 30, 40, 50], "pay": cells})))
    assert table.is_numeric("pay")
    (values,) = read_columns(settings, table)
    assert not values.present[1:].any()


def _with_cell(column, cell):
    """A small table as pandas makes it once a cell of a protected column is another."""
    data = people(40)[["age", "wage", "grade"]].round()
    data["net"] = (0.6 * data["wage"]).round()
    cells, plain = [*data[column][:3], cell, *data[column][4:]], isinstance(cell, str) and not cell.isascii()
    return data.assign(**{column: pd.Series(cells, dtype=object if plain else None)})


@pytest.mark.parametrize("cell", ["no number", 3 + 1j, None])
def test_no_cell_is_refused_whichever_column_and_standard_it_is_of(cell):
    """A column alone is read as one of several is, and a part of another as others are."""
    box = {"Intercept": (6, 8), "age": (0, 0.05), "sigma": (0.2, 1)}
    alone = [
        {"standard": hr.Strict(limits=(100, 1e6))},
        {"standard": hr.Strict(box)},
    ]
    for asked in alone:
        synth = hr.Synthesizer("wage ~ age", epsilon=9.0, draws=100, seed=1, **asked)
        design = encode(Table.of(_with_cell("wage", cell)), [synth.settings])
        assert design.present is not None
        assert np.flatnonzero(~design.present).tolist() == [3]
    columns = {"wage": COLUMNS["wage"], "net": hr.Column("net ~ age", "beta", share_of="wage")}
    strict = hr.Strict(limits={"wage": (100, 1e6), "net": (0.1, 0.9)})
    settings = hr.Synthesizer(columns, standard=strict, epsilon=9.0).settings
    (parts,) = read_parts(Table.of(_with_cell("net", cell)), settings.links).values()
    assert np.isfinite(np.delete(parts, 3)).all()


class Wordless:
    def __str__(self):
        raise ValueError("a secret")


ODD = [7, None, 2.5, b"low", b"\xff", "\ud800", Wordless(), Decimal("sNaN")]


@pytest.mark.filterwarnings("ignore::hedgerow.errors.HedgerowWarning")
@pytest.mark.parametrize("cell", ODD)
@pytest.mark.parametrize("outcome", ["wage", "grade"])
def test_nor_whose_gaps_are_public(outcome, cell):
    """Which rows may have a cell is looked up again where released columns are held against the outcome."""
    columns = {outcome: replace(COLUMNS[outcome], formula=f"{outcome} ~ age", missing="public")}
    strict = hr.Strict(limits={"wage": (100, 1e6)} if outcome == "wage" else {})
    synth = hr.Synthesizer(columns, standard=strict, epsilon=9.0, draws=100, seed=1)
    kinds = [synth.fit(_with_cell(outcome, each)).sample().tables[0].dtypes for each in (None, cell)]
    assert (kinds[0] == kinds[1]).all()


@pytest.mark.parametrize("cell", ODD)
def test_words_are_written_in_one_type_whatever_a_cell_is(cell):
    """One cell that is no word makes a column of objects, and copies would have that type."""
    strict = hr.Strict(limits={})
    columns = {"grade": hr.Column("grade ~ age", COLUMNS["grade"].family)}
    settings = hr.Synthesizer(columns, standard=strict, epsilon=9.0).settings
    tables = [Table.of(_with_cell("grade", each)) for each in ("low", cell)]
    kinds = [settle_types(settings, table).native.dtypes["grade"] for table in tables]
    assert kinds[0] == kinds[1]
