"""What a column is to a formula: labelled codes, dates, levels that do not occur."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyreadstat
import pytest

import hedgerow as hr
from hedgerow.errors import FormulaError, HedgerowWarning
from hedgerow.models.families import on_log_scale
from hedgerow.tables import files
from hedgerow.tables.design import build
from hedgerow.tables.predictors import hint_at_logs, spell_categories
from hedgerow.tables.table import Table

FRAMES = [
    pytest.param(lambda frame: frame, id="pandas"),
    pytest.param(lambda frame: frame.set_index(np.arange(100, 100 + len(frame))), id="pandas with an index"),
    pytest.param(pl.from_pandas, id="polars"),
    pytest.param(lambda frame: pa.Table.from_pandas(frame, preserve_index=False), id="arrow"),
]
TABLE = pd.DataFrame(
    {
        "pay": [9.0, 11.0, 12.0, 8.0, 10.0, 13.0, 7.0, 9.5],
        "region": [1.0, 2.0, 10.0, 2.0, 1.0, 10.0, 2.0, 1.0],
        "trade": [1.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 2.0],
        "age": [18.0, 30.0, 42.0, 51.0, 67.0, 33.0, 29.0, 71.0],
    }
)
LABELS = {"region": {1: "Wien", 2: "Graz", 10: "Linz"}, "trade": {1: "a", 2: "b", 3: "c"}, "age": {18: "18"}}
WRITERS = {".sav": pyreadstat.write_sav, ".dta": pyreadstat.write_dta}


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize(
    ("formula", "spelled", "columns"),
    [
        ("pay ~ region + age", "pay ~ 1 + C(region) + age", ["region"]),
        ("pay ~ region * age", "pay ~ 1 + C(region) + age + C(region):age", ["region"]),
        ("pay ~ 0 + `region`:log(age)", "pay ~ 0 + C(`region`):log(age)", ["region"]),
        ("pay ~ .", "pay ~ 1 + C(region) + C(trade) + age", ["region", "trade"]),
        # What the formula says itself stays: numbers, or categories.
        ("pay ~ I(region)", "pay ~ I(region)", []),
        ("pay ~ region + I(region**2)", "pay ~ region + I(region**2)", []),
        ("pay ~ C(region) + age", "pay ~ C(region) + age", []),
        ("pay ~ age", "pay ~ age", []),  # one of its codes has a label
    ],
)
def test_labelled_codes_are_categories_unless_the_formula_says_otherwise(
    tmp_path, ending, formula, spelled, columns
):
    path = tmp_path / f"table{ending}"
    WRITERS[ending](TABLE, str(path), variable_value_labels=LABELS)
    found, notes = spell_categories(formula, files.read(path))
    assert found == spelled
    assert [note.split("'")[1] for note in notes] == columns
    assert all(f"write I({name})" in note for note, name in zip(notes, columns, strict=True))


def test_codes_are_in_the_order_of_numbers_and_a_scale_of_spss_stays_one(tmp_path):
    path = tmp_path / "table.sav"
    measures = {"region": "ordinal", "trade": "scale"}
    pyreadstat.write_sav(TABLE, str(path), variable_value_labels=LABELS, variable_measure=measures)
    source = files.read(path)
    formula, _ = spell_categories("pay ~ region + trade", source)
    columns = ("Intercept", "C(region)[T.2.0]", "C(region)[T.10.0]", "trade")
    assert build(formula, Table.of(source.frame)).columns == columns


@pytest.mark.parametrize("convert", FRAMES)
@pytest.mark.parametrize("formula", ["pay ~ when", "pay ~ center(when)", "pay ~ bs(when, df=4)"])
def test_dates_are_days_since_1970_in_every_dataframe(convert, formula):
    days = np.array([-3.0, 18261, 18262.5, 19000, 20000, 20001, 20002, 20003])
    when = pd.to_datetime(days, unit="D")
    expected = build(formula, Table.of(TABLE.assign(when=days)))
    design = build(formula, Table.of(convert(TABLE.assign(when=when))))
    np.testing.assert_allclose(design.matrix, expected.matrix, rtol=1e-12)
    assert expected.notes == ()
    assert design.notes == (
        "Column 'when' enters the formula as days, a date as days since 1970-01-01. C(when) makes each of "
        "its values a category.",
    )


def test_dates_kept_as_objects_and_durations_are_days_and_classes_of_dates_stay_classes():
    when = pd.to_datetime(["2020-01-01", "2020-01-03"] * 4)
    frame = TABLE.assign(when=when.date, span=when - pd.Timestamp("2020-01-01"))
    assert build("pay ~ when", Table.of(frame)).matrix[:2, 1].tolist() == [18262, 18264]
    assert build("pay ~ span", Table.of(frame)).matrix[:2, 1].tolist() == [0, 2]
    classes = build("pay ~ C(when)", Table.of(frame))
    assert classes.columns == ("Intercept", "C(when)[T.2020-01-03]")
    assert classes.notes == ()
    assert build("pay ~ 1", Table.of(frame[["when", "pay"]])).notes == ()


def test_the_owner_is_told_of_days_and_copies_keep_the_dates():
    frame = TABLE.assign(when=pd.date_range("2020-01-01", periods=8))[["pay", "when"]]
    with pytest.warns(HedgerowWarning, match="'when' enters the formula as days"):
        synth = hr.Synthesizer("pay ~ when", draws=100, seed=1).fit(frame)
    pd.testing.assert_series_equal(synth.sample().tables[0]["when"], frame["when"])


@pytest.mark.parametrize("convert", FRAMES)
def test_levels_that_do_not_occur_make_no_columns(convert):
    grade = pd.Categorical(["low", "high"] * 4, categories=["low", "high", "none has it"])
    design = build("pay ~ grade", Table.of(convert(TABLE.assign(grade=grade))))
    assert len(design.columns) == 2


def test_many_levels_that_do_not_occur_do_not_count_against_the_largest_design():
    firms = pd.Categorical(["f1", "f2"] * 4, categories=[f"f{i}" for i in range(20_000)])
    assert len(build("pay ~ firm", Table.of(TABLE.assign(firm=firms))).columns) == 2


@pytest.mark.parametrize("left", ["pay + age", "cbind(pay, age)", "(pay, `age in years`)", "pay | age"])
def test_two_outcomes_are_told_how(left):
    with pytest.raises(
        FormulaError,
        match=r"names 2 columns, and a formula has one outcome\. Several .* one price: hedgerow init",
    ):
        build(f"{left} ~ region", Table.of(TABLE))


def test_a_predictor_that_spans_decades_hints_at_its_logarithm():
    random = np.random.default_rng(1)
    size = np.exp(random.normal(3, 1.5, 200))
    data = pd.DataFrame({"pay": size, "size of firm": size, "age": random.uniform(18, 80, 200)})
    data = data.assign(zero=np.where(data["age"] < 20, 0, size), code=np.repeat([1, 1000], 100))
    table = Table.of(data)
    (hint,) = hint_at_logs("pay ~ `size of firm` + age + zero + C(code)", table)
    assert hint == (
        "'size of firm' spans 4 decades and enters a family on the log scale as it is: try "
        "log(`size of firm`)."
    )
    assert hint_at_logs("pay ~ log(`size of firm`) + age", table) == []


@pytest.mark.parametrize(("family", "told"), [("lognormal", True), ("normal", False)])
def test_the_hint_is_for_families_on_the_log_scale(family, told, recwarn):
    hr.Synthesizer("payroll ~ employees", family, draws=100, seed=1).fit(hr.datasets.payroll(100, seed=1))
    assert any("try log(employees)" in str(each.message) for each in recwarn) == told


@pytest.mark.parametrize("name", ["gamma", "zero_weibull", "poisson"])
def test_which_sampled_families_are_on_the_log_scale(name):
    assert on_log_scale(hr.Family(name))
    assert not on_log_scale(hr.Family("beta"))


@pytest.mark.parametrize("convert", FRAMES)
def test_a_column_of_one_word_is_told(convert):
    design = build("pay ~ age + word", Table.of(convert(TABLE.assign(word="a"))))
    assert design.columns == ("Intercept", "age")
    assert design.notes == ("Column 'word' has one value in all rows: it adds nothing to the formula.",)


@pytest.mark.parametrize("formula", ["pay ~ size", "pay ~ C(size)"])
def test_the_first_level_of_a_category_is_the_reference_in_arrow_and_polars_too(formula):
    sizes = pd.Categorical(["small", "large", "tiny", "large"] * 2, ["tiny", "small", "large", "none"])
    frame = TABLE.assign(size=sizes)
    enum = pl.from_pandas(frame).with_columns(pl.col("size").cast(pl.Enum(list(sizes.categories))))
    for table in (frame, pa.Table.from_pandas(frame), enum):
        columns = build(formula, Table.of(table)).columns
        assert [name.split("[")[1] for name in columns[1:]] == ["T.small]", "T.large]"]
