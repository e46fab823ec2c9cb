"""A column's cells become links and cells again, and nothing confidential goes round them.

The leaks that gaps, codes and rules open have a test each, which fails when the leak is put in.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.arrays import columns_of
from hedgerow.errors import DataError, FormulaError, SettingError
from hedgerow.mechanism.cells import read_copy, write_column, write_derived
from hedgerow.mechanism.copies import foresee_refusal, predict_copies
from hedgerow.mechanism.debias import Corrected
from hedgerow.mechanism.links import build_links
from hedgerow.mechanism.steps import Start
from hedgerow.models.chain import Chain
from hedgerow.models.exact import Normal
from hedgerow.models.scored import Risk
from hedgerow.privacy.settings import Settings
from hedgerow.randomness import Key
from hedgerow.synthesizer import encode
from hedgerow.tables.chain import ChainDesign
from hedgerow.tables.table import Table

ROWS = 40
COLUMNS = {
    "wage": hr.Column("wage ~ age", missing="synthesized", codes=(-8, -9), filler=2000.0),
    "bonus": hr.Column("bonus ~ age + log(wage)", only_where="status == 'work' and wage > 0", otherwise=0),
    "rent": hr.Column("rent ~ age", missing="public"),
    "net": hr.Column("net ~ log(wage)", "normal", share_of="wage"),
    "hours": hr.Column("hours ~ log(wage) + rent", "normal", missing="withheld"),
}
RULES = hr.Rules(
    derived={"hourly": "wage / hours", "place": {"status": {"work": "office"}}}, checks=["net <= wage"]
)


def people(seed=1, protected=1):
    random = np.random.default_rng(seed)
    public = {"age": random.integers(20, 60, ROWS), "status": random.choice(["work", "rest"], ROWS)}
    gaps = random.uniform(size=ROWS) < 0.2
    random = np.random.default_rng(protected)
    wage = np.exp(7 + random.normal(size=ROWS)).round()
    net = (0.7 * wage).round()
    for value in (np.nan, -8, -9):
        wage[random.choice(ROWS, 4)] = value
    hours = np.where(random.uniform(size=ROWS) < 0.1, np.nan, random.normal(40, 2, ROWS).round())
    rent = np.where(gaps, np.nan, np.exp(6 + random.normal(size=ROWS)).round())
    bonus = np.exp(5 + random.normal(size=ROWS)).round().astype(np.int32)
    own = {"wage": wage, "bonus": bonus, "rent": rent, "net": net, "hours": hours, "hourly": wage / hours}
    return pd.DataFrame({**public, **own, "place": "?"})


class Softmax(Normal):
    """Predicts the kinds of cells as the categorical family does, without being compiled."""

    domain = hr.Family("categorical", levels=COLUMNS["wage"].kinds).domain

    def predict(self, design, parameters, uniforms):
        logits = np.column_stack([np.zeros(design.records), design.matrix @ parameters["beta"].T])
        shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        return (uniforms[:, None] > shares.cumsum(axis=1)).sum(axis=1).astype(float)


def settle(columns, rules):
    asked = Settings.of(columns, standard=hr.Unweighted(), rules=rules)
    return replace(asked, model=Chain((Softmax(), *asked.models[1:])))


@pytest.fixture(scope="module")
def settings():
    return settle(COLUMNS, RULES)


@pytest.fixture(scope="module")
def links(settings):
    return {link.outcome: link for link in build_links(Table.of(people()), [settings])}


def start_of(settings, data):
    table = Table.of(data)
    nothing = np.zeros(ROWS)
    design = encode(table, [settings])
    return Start(table, design, None, Risk(nothing, nothing), np.ones(ROWS, np.bool_))


@pytest.fixture(scope="module")
def draw():
    """Parameters of every link, as a fit would have them."""
    kinds = np.array([[-2.0, 0.0], [-1.5, 0.0], [-1.0, 0.0]])
    return {
        "0.beta": kinds, "1.beta": np.array([7.0, 0.0]), "1.sigma": np.array(1.0),
        "2.beta": np.array([4.0, 0.0, 0.2, 0.0, 0.0, 0.0]), "2.sigma": np.array(1.0),
        "3.beta": np.array([6.0, 0.0]), "3.sigma": np.array(1.0),
        "4.beta": np.array([0.5, 0.0, 0.0, 0.0, 0.0]), "4.sigma": np.array(0.1),
        "5.beta": np.array([40.0, 0.0, 0.0, 9.0, -9.0, 5.0, 1.0]), "5.sigma": np.array(1.0),
    }  # fmt: skip


def copy_of(settings, data, draw):
    """A typed copy, as a release makes it of a draw."""
    start = start_of(settings, data)
    values = predict_copies(settings, start, [Corrected(draw, False, 0)], key=Key.from_seed(3))[0]
    made, parts = start.table, []
    for link, each, column in zip(start.design.links, settings.links, columns_of(values), strict=True):
        parts.append(column)
        if each.role != "kind":
            made, parts = Table.of(write_column(settings, each.column, made, link.levels, parts)), []
    return write_derived(settings, made.native)


@pytest.fixture(scope="module")
def copy(settings, draw):
    return copy_of(settings, people(), draw)


def test_each_column_has_its_links_and_each_link_the_cells_it_is_for(links):
    data = people()
    assert list(links) == ["wage: kind", "wage", "bonus", "rent", "net: share", "hours"]
    kinds = links["wage: kind"]
    assert kinds.levels == ("amount", "-8", "-9", "missing")
    assert kinds.present is None
    wanted = np.select([data["wage"] == -8, data["wage"] == -9, data["wage"].isna()], [1, 2, 3], 0)
    np.testing.assert_array_equal(kinds.values, wanted)
    np.testing.assert_array_equal(links["wage"].present, data["wage"] > 0)
    working = (data["status"] == "work") & (data["wage"] > 0)
    np.testing.assert_array_equal(links["bonus"].present, working)
    np.testing.assert_array_equal(links["rent"].present, data["rent"].notna())
    share = links["net: share"]
    fits = (data["wage"] > 0) & (data["net"] <= data["wage"])
    np.testing.assert_array_equal(share.present, fits)
    np.testing.assert_allclose(share.values[fits], (data["net"] / data["wage"])[fits])
    np.testing.assert_array_equal(links["hours"].present, data["hours"].notna())


def test_later_columns_read_a_filler_and_an_indicator_of_each_kind(links):
    data, hours = people(), links["hours"]
    assert hours.columns == (
        "Intercept", "log(wage)", "rent", "wage: -8", "wage: -9", "wage: missing", "rent: missing",
    )  # fmt: skip
    no_amount = ~(data["wage"] > 0).to_numpy()
    np.testing.assert_allclose(hours.matrix[no_amount, 1], np.log(2000))
    np.testing.assert_array_equal(hours.matrix[:, 5], data["wage"].isna())
    np.testing.assert_array_equal(hours.matrix[:, 6], data["rent"].isna())


def test_copies_have_types_codes_gaps_and_rules_of_the_column(copy):
    data = people()
    assert list(copy.columns) == list(data.columns)
    assert {"-8", "-9", "nan"} <= set(copy["wage"].map("{:g}".format))
    working = (copy["status"] == "work") & (copy["wage"] > 0)
    assert copy["bonus"].dtype == np.int32
    assert (copy["bonus"][~working] == 0).all()
    assert (copy["bonus"][working] > 0).all()
    np.testing.assert_array_equal(copy["rent"].isna(), data["rent"].isna())
    amounts = copy["wage"] > 0
    assert (copy["net"][amounts] <= copy["wage"][amounts]).all()
    assert copy["net"][~amounts].isna().all()
    assert copy["hours"].notna().all()
    np.testing.assert_allclose(copy["hourly"], (copy["wage"] / copy["hours"]).where(amounts))
    assert copy["place"].tolist() == [{"work": "office"}.get(one, np.nan) for one in copy["status"]]


def test_a_later_column_follows_the_synthetic_kind_of_an_earlier_cell(copy):
    for kind, level in ((copy["wage"] == -8, 49), (copy["wage"] == -9, 31), (copy["wage"].isna(), 45)):
        middle = copy["hours"][kind & copy["rent"].notna()].mean()
        assert abs(middle - level) < 4 / np.sqrt(kind.sum()) + 1


def test_copies_depend_on_protected_cells_by_the_draw_alone(settings, draw, copy):
    """Not by the pattern of gaps, a filler, a threshold, where a rule holds, or a derived column."""
    other = copy_of(settings, people(protected=2), draw)
    pd.testing.assert_frame_equal(other, copy)


def test_no_row_is_left_out_or_drawn_again_whatever_the_rules_say(draw, monkeypatch):
    calls = []
    plain = Normal.predict
    monkeypatch.setattr(Normal, "predict", lambda *given: calls.append(len(given[3])) or plain(*given))
    bonus = hr.Column("bonus ~ age + log(wage)", "normal", only_where="age > 99", otherwise=0)
    never = {**COLUMNS, "bonus": bonus}
    data = people()
    data.loc[0, "age"] = 100  # the only row in which there is a bonus
    made = copy_of(settle(never, hr.Rules(checks=["wage > 1e12"])), data, draw)
    assert len(made) == ROWS
    assert (made["bonus"][1:] == 0).all()
    pd.testing.assert_frame_equal(made[["age", "status"]], data[["age", "status"]])
    assert calls == [ROWS] * 3  # bonus, net and hours: once each


def test_nothing_of_a_design_follows_protected_cells(settings, links):
    """Its columns, its prior and what stands for a cell without an amount, also where there is none."""
    data = people()
    no_amount = ~(data["wage"] > 0)
    whole = data.assign(wage=50.0 * data["wage"].where(~no_amount, 7.0))
    larger = data.assign(wage=data["wage"].where(no_amount, 50.0 * data["wage"]))
    here = links["hours"]
    for other in (whole, larger):
        there = build_links(Table.of(other), [settings])[-1]
        assert here.columns == there.columns
        np.testing.assert_array_equal(Normal().prior.moments(here), Normal().prior.moments(there))
        np.testing.assert_array_equal(Normal().prior.contrasts(here), Normal().prior.contrasts(there))
    np.testing.assert_array_equal(here.matrix[no_amount], there.matrix[no_amount])


def test_a_blank_chain_has_no_gap_of_the_confidential_table(links):
    blank = ChainDesign.of(list(links.values())).blank()
    assert all(link.present is None for link in blank.links)
    assert all(np.isnan(link.values).all() for link in blank.links)
    assert blank.present is None


def test_what_breaks_a_rule_is_not_read():
    """A cell where the column has none of its own, and a part that is more than its whole."""
    columns = {
        "bonus": hr.Column("bonus ~ age", only_where="status == 'work'", otherwise=0),
        "net": hr.Column("net ~ age", "normal", share_of="100 * age"),
    }
    data = people().assign(net=1.0)
    rest = data["status"] == "rest"
    there = data.assign(bonus=data["bonus"].where(~rest, 10**6), net=data["net"].where(~rest, 10**6))
    here, there = (build_links(Table.of(each), [Settings.of(columns)]) for each in (data, there))
    np.testing.assert_array_equal(here[0].values, there[0].values)
    np.testing.assert_array_equal(there[1].present, ~rest)
    assert any("count as withheld" in note for note in there[1].notes)


def test_copies_are_read_back_as_they_were_written(settings, copy):
    cells = read_copy(settings, Table.of(copy))
    np.testing.assert_array_equal(cells["wage"].kinds == 3, copy["wage"].isna())
    np.testing.assert_array_equal(cells["rent"].is_kind("missing"), copy["rent"].isna())
    assert cells["net"].present.sum() == (copy["wage"] > 0).sum()


@pytest.mark.parametrize("kind", ["int64", "Int64", "float32", "int64[pyarrow]", "polars", "arrow"])
def test_gaps_and_codes_are_written_in_the_type_of_the_column(kind):
    data = pd.DataFrame({"x": [5, -8, 7, 9], "z": [1.0, 2, 3, 4]})
    frames = {"polars": pl.DataFrame(data), "arrow": pl.DataFrame(data).to_arrow()}
    frame = frames[kind] if kind in frames else data.astype({"x": kind})
    settings = Settings.of({"x": hr.Column("x ~ z", "normal", missing="synthesized", codes=(-8,))})
    values = [np.array([0.0, 1, 2, 0]), np.array([1.2, 3.4, 5.6, 7.8])]
    made = write_column(settings, settings.column, Table.of(frame), None, values)
    column = made["x"].to_pylist() if kind == "arrow" else list(made["x"])
    floats = kind == "float32"
    assert [None if pd.isna(one) else round(float(one), 1) for one in column] == [
        1.2 if floats else 1, -8, None, 7.8 if floats else 8,
    ]  # fmt: skip
    if kind not in frames:
        assert str(made["x"].dtype) == ("Int64" if kind == "int64" else kind)


@pytest.mark.parametrize("kind", ["str", "category", "polars", "enum", "arrow"])
def test_labels_have_codes_and_gaps_too(kind):
    data = pd.DataFrame({"x": ["low", "high", "refused", None], "z": [1.0, 2, 3, 4]})
    small = pl.DataFrame(data, nan_to_null=True)
    frames = {"polars": small, "enum": small.cast({"x": pl.Enum(["low", "high", "refused"])})}
    frames["arrow"] = small.cast({"x": pl.Categorical}).to_arrow()
    frame = frames[kind] if kind in frames else data.astype({"x": kind})
    family = hr.Family("bernoulli", levels=("low", "high"))
    settings = Settings.of({"x": hr.Column("x ~ z", family, missing="synthesized", codes=("refused",))})
    kinds, classes = build_links(Table.of(frame), [settings])
    assert kinds.values.tolist() == [0, 0, 1, 2]
    assert classes.levels == ("low", "high")
    assert classes.values[:2].tolist() == [0, 1]
    values = [np.array([2.0, 1, 0, 0]), np.array([0.0, 0, 0, 1])]
    made = write_column(settings, settings.column, Table.of(frame), classes.levels, values)
    column = made["x"].to_pylist() if kind == "arrow" else list(made["x"])
    assert [None if pd.isna(one) else one for one in column] == [None, "refused", "low", "high"]


def test_public_gaps_are_those_of_missing_cells_and_not_of_codes():
    data = pd.DataFrame({"x": [5.0, -8, None, 9], "z": [1.0, 2, 3, 4]})
    settings = Settings.of({"x": hr.Column("x ~ z", missing="public", codes=(-8,))})
    values = [np.array([1.0, 0, 0, 0]), np.array([1.5, 2.5, 3.5, 4.5])]
    made = write_column(settings, settings.column, Table.of(data), None, values)
    assert list(made["x"].fillna(0)) == [-8, 2.5, 0, 4.5]


def test_a_part_that_is_rounded_does_not_exceed_its_whole():
    data = pd.DataFrame({"gross": [149.0, 160.0, 99.0, 0.0, -5.0], "net": [100, 100, 0, 0, 0], "z": range(5)})
    column = hr.Column(
        "net ~ z", "normal", share_of="gross", declared=hr.Declared("integer", multiple_of=100)
    )
    settings = Settings.of({"net": column})
    made = write_column(settings, column, Table.of(data), None, [np.array([0.99, 0.99, 0.9, 0.5, 0.5])])
    assert made["net"].tolist() == [100, 100, 0, 0, -5]


@pytest.mark.parametrize(
    ("family", "amounts"),
    [
        (hr.Family("lognormal", rounded=50), [50.0, 100.0]),
        (hr.Family("zero_normal", rounded=50), [50.0, 100.0]),
        (hr.Family("normal", rounded=50, lower=-200, upper=-100), [-150.0, -100.0]),
        (hr.Family("beta", rounded=20, upper=100), [20.0, 80.0]),
    ],
)
def test_where_there_is_no_amount_nothing_stands_that_the_family_refuses(family, amounts):
    wage = np.where(np.arange(ROWS) < 5, np.nan, np.tile(amounts, 20))
    settings = Settings.of({"wage": hr.Column("wage ~ age", family, missing="synthesized")})
    link = build_links(Table.of(people().assign(wage=wage)), [settings])[1]
    assert link.present.sum() == ROWS - 5
    settings.models[1].check(link)


def test_withheld_cells_of_an_earlier_column_take_their_readers_with_them():
    data = people().assign(hours=people()["hours"].fillna(40.0))
    columns = {
        "wage": hr.Column("wage ~ age", "normal", missing="withheld"),
        "hours": hr.Column("hours ~ wage", "normal"),
        "rent": hr.Column("rent ~ age", missing="withheld"),
    }
    _, hours, rent = build_links(Table.of(data), [Settings.of(columns)])
    np.testing.assert_array_equal(hours.present, data["wage"].notna())
    np.testing.assert_array_equal(rent.present, data["rent"].notna())


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"missing": "gone"}, "missing must be one of"),
        ({"codes": -8}, "codes must be a list"),
        ({"codes": (-8, -8)}, "different numbers or words"),
        ({"codes": ("missing",)}, "different numbers or words"),
        ({"codes": (float("nan"),)}, "different numbers or words"),
        ({"otherwise": 0}, "together with only_where"),
        ({"only_where": "age"}, "must be a condition"),
        ({"share_of": "age > 3"}, "a column or arithmetic"),
        ({"share_of": "2 * x"}, "cannot read the column itself"),
        ({"filler": float("inf")}, "finite number"),
    ],
)
def test_what_says_nothing_of_a_column_is_refused(told, says):
    with pytest.raises(SettingError, match=says):
        hr.Column("x ~ z", **told)


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        ({"derived": {"x": "z + 1"}}, "derived and protected"),
        ({"derived": {"a": "b", "b": "z"}}, "derived later"),
        ({"derived": {"a": "a + 1"}}, "read by itself"),
        ({"derived": {"a": {"z": {}}}}, "a lookup is"),
        ({"checks": ["x + 1"]}, "must be conditions"),
        ({"checks": "x > 1"}, "must be a list"),
    ],
)
def test_rules_that_cannot_be_kept_are_refused(rules, says):
    with pytest.raises(SettingError, match=says):
        Settings.of("x ~ z", rules=hr.Rules(**rules))


def test_a_rule_reads_nothing_that_is_made_later():
    columns = {"x": hr.Column("x ~ z", only_where="y > 0"), "y": hr.Column("y ~ z")}
    with pytest.raises(SettingError, match="reads 'y', which is made later"):
        Settings.of(columns)
    with pytest.raises(SettingError, match="reads 'h', which is derived and made last"):
        Settings.of({"x": hr.Column("x ~ z", only_where="h > 0")}, rules=hr.Rules({"h": "x / z"}))


def test_a_code_is_one_kind_however_a_plan_writes_its_number():
    column = hr.Column("x ~ z", codes=[-8.0, 2.5, "refused"], only_where="z > 0", otherwise=0.0)
    assert column.kinds == ("amount", "-8", "2.5", "refused")
    assert column == hr.Column("x ~ z", codes=[-8, 2.5, "refused"], only_where="z > 0", otherwise=0)
    assert column.assumptions == (
        "that -8, 2.5, refused in 'x' stand for no amount", "that 'x' is 0 unless z > 0",
    )  # fmt: skip


def test_missing_cells_are_refused_with_the_ways_to_take_them_and_derived_predictors_too():
    data = people()
    for column, says in (
        (hr.Column("wage ~ age", codes=(-8,)), "missing='withheld', 'synthesized' or 'public'"),
        (hr.Column("net ~ hourly"), "reads 'hourly', which is derived"),
    ):
        settings = Settings.of({column.outcome: column}, rules=RULES)
        with pytest.raises((DataError, FormulaError), match=says):
            build_links(Table.of(data), [settings])


def paid(n=150):
    """Wages and bonuses of those who work, and zeros."""
    random = np.random.default_rng(1)
    age, works = random.uniform(20, 60, n), random.uniform(size=n) < 0.7
    wage = np.where(works, np.exp(7 + 0.02 * age + 0.3 * random.normal(size=n)), 0.0)
    bonus = 0.1 * wage * np.exp(0.1 * random.normal(size=n))
    return pd.DataFrame({"age": age, "works": works.astype(int), "wage": wage, "bonus": bonus})


PAID = {
    "wage": hr.Column("wage ~ age", only_where="works == 1", otherwise=0),
    "bonus": hr.Column("bonus ~ log(wage)", only_where="wage > 0", otherwise=0),
}


def test_rows_without_a_cell_may_hold_what_a_transform_cannot_read():
    """log(wage) where a rule sets wage to 0, and where there is no bonus either: refused before."""
    data = paid()
    works = data["works"] == 1
    _, bonus = build_links(Table.of(data), [Settings.of(PAID)])
    assert np.array_equal(bonus.present, works)
    np.testing.assert_allclose(bonus.matrix[:, 1], np.log(data["wage"].where(works, 1.0)))
    used = PAID | {"bonus": hr.Column("bonus ~ log(wage)", "zero_lognormal")}
    with pytest.raises(hr.HedgerowError, match="not finite"):
        build_links(Table.of(data), [Settings.of(used)])


@pytest.mark.parametrize(
    ("family", "bonus", "foreseen"),
    [
        ("normal", {"formula": "bonus ~ log(wage)"}, True),
        ("normal", {"formula": "bonus ~ I(wage**2)"}, False),
        ("normal", {"formula": "bonus ~ log(wage)", "only_where": "wage > 0", "otherwise": 0}, False),
        ("lognormal", {"formula": "bonus ~ log(wage)"}, False),
        ("zero_lognormal", {"formula": "bonus ~ log(wage)"}, True),
        ("zero_lognormal", {"formula": "bonus ~ log1p(wage)"}, False),
    ],
)
def test_a_copy_that_could_be_refused_is_foreseen_from_public_things(family, bonus, foreseen):
    """A wage of zero or below would be found in a copy, when all is fitted, or by chance not at all."""
    data, told = paid() + 1, []
    settings = Settings.of({"wage": hr.Column("wage ~ age", family), "bonus": hr.Column(**bonus)})
    for each in (data, data.assign(wage=2 * data["wage"] + 7, bonus=3 * data["bonus"])):
        table = Table.of(each)
        told.append(foresee_refusal(settings, table, encode(table, [settings])))
    assert told[0] == told[1]
    assert ("log(wage) are not finite" in (told[0] or "")) == (told[0] is not None) == foreseen


@pytest.mark.slow
def test_rows_without_a_cell_have_no_part_in_a_later_column():
    data, asked = paid(), {"standard": hr.Unweighted(), "draws": 100, "seed": 1}
    works = data["works"] == 1
    with pytest.warns(hr.HedgerowWarning, match="'works' tells who has the commonest value"):
        synth = hr.Synthesizer(PAID, **asked).fit(data)
    (copy,) = synth.sample().tables
    assert (copy.loc[~works, ["wage", "bonus"]] == 0).all(axis=None)
    alone = hr.Synthesizer(PAID, **asked).fit(data[works].reset_index(drop=True))
    for name in ("1.beta", "1.sigma"):
        np.testing.assert_allclose(synth._fitted.parameters[name], alone._fitted.parameters[name], rtol=1e-3)
