"""`hedgerow init --protect`: a first plan from types and declared metadata, never from protected values."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.errors import SettingError
from hedgerow.release.plan import Plan
from hedgerow.release.plan.propose import propose, read_metadata

PROTECT = ("--protect", "wage,bonus,status", "--epsilon", 6)
METADATA = {
    "wage": {"sdtype": "numerical", "range_min": 1, "decimal_places": 2},
    "bonus": {"range_min": 0},
    "status": {"sdtype": "categorical", "range_values": ["employed", "retired", "other"]},
}


def people(seed=1, n=200):
    """A table whose public columns are the same whatever the seed."""
    public, random = np.random.default_rng(0), np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "row": np.arange(n),
            "age": public.integers(18, 66, n),
            "sector": public.choice(list("abc"), n),
            "firm": public.integers(1, 150, n).astype(str) + "x",
            "size": np.exp(public.normal(5, 3, n)),
            "score": np.where(public.random(n) < 0.1, np.nan, public.normal(size=n)),
            "twice": 0.0,
            "wage": np.exp(random.normal(7, seed, n)).round(2) + 0.001,
            "bonus": random.choice([0.5, -3.0, 1e9], n),
            "status": random.choice(["employed", "retired", "other"][: seed + 1], n),
        }
    ).assign(twice=lambda frame: 2.0 * frame["age"])


def test_protected_values_play_no_part(hedgerow):
    """Two tables of the same types and of other protected values, as files: one plan."""
    texts = []
    for seed in (1, 2):
        people(seed).to_csv("people.csv", index=False)
        done = hedgerow("init", "people.csv", *PROTECT, "--metadata", json.dumps(METADATA))
        assert done.code == 0, done.text
        texts.append(done.out)
    assert texts[0] == texts[1]
    assert "status" in texts[0]


def test_families_formulas_and_order_are_proposed_and_the_plan_says_what_to_change(hedgerow):
    people().to_csv("people.csv", index=False)
    Path("metadata.json").write_text(json.dumps({"columns": METADATA}))
    done = hedgerow("init", "people.csv", *PROTECT, "--metadata", "metadata.json", "--out", "plan.yaml")
    assert done.code == 0, done.text
    plan = Plan.load("plan.yaml")
    wage, bonus, status = plan.settings.columns
    assert wage == hr.Column(
        "wage ~ age + sector + log(size)", declared=hr.Declared("number", decimal_places=2, range_min=1)
    )
    assert bonus.formula == "bonus ~ age + sector + log(size) + log(wage)"
    assert bonus.family == "zero_lognormal"
    assert status.formula == "status ~ age + sector + log(size) + log(wage) + log1p(bonus)"
    assert status.family == hr.Family("categorical", levels=("employed", "retired", "other"))
    remarks = " ".join(Path("plan.yaml").read_text().replace("\n# ", " ").split())
    for words in ("type follows from the cells, protected ones too", "'row': it counts the rows",
                  "'score': it has missing", "limits of 'wage' is moved to them",
                  "'firm': one of its", "'twice': it repeats what the columns before it say"):  # fmt: skip
        assert words in remarks


def test_identifiers_are_no_predictors_unless_they_are_named():
    n = 60
    public = {
        "hid": [7 * (row // 2) ** 2 + 1 for row in range(n)],
        "size": [3 * row**2 + 5 for row in range(n)],
    }
    table = pa.table({**public, "aid": [row % 9 for row in range(n)], "wage": [1.5] * n})
    found = propose(table, ["wage"], {"wage": {"range_min": 1}})
    assert found.columns["wage"].formula == "wage ~ aid"
    told = " ".join(found.remarks)
    for name in public:
        assert f"'{name}': it looks like an identifier (name it in --predictors if it is an amount)" in told
    named = propose(table, ["wage"], {"wage": {"range_min": 1}}, ["size"])
    assert named.columns["wage"].formula == "wage ~ log(size)"


@pytest.mark.parametrize(
    ("kind", "said", "family", "declared"),
    [
        (pa.float64(), {}, "normal", None),
        (pa.float64(), {"range_min": 0.01}, "lognormal", hr.Declared("number", range_min=0.01)),
        (pa.float64(), {"range_min": -5}, "normal", hr.Declared("number", range_min=-5)),
        (pa.float64(), {"range_min": 0, "range_max": 1}, "zero_beta", None),
        (pa.float64(), {"range_min": 0, "decimal_places": 0}, "zero_lognormal", None),
        (pa.int64(), {}, "normal", hr.Declared("integer")),
        (pa.int64(), {"range_min": 0, "range_max": 30}, "negative_binomial", None),
        (pa.int64(), {"range_min": 0}, "zero_lognormal", None),
        (pa.bool_(), {}, "bernoulli", None),
        (pa.int8(), {"range_values": [2, 1, 3]}, hr.Family("ordinal", levels=(1, 2, 3)), None),
        (pa.int8(), {"sdtype": "ordinal", "range_min": 1, "range_max": 5},
         hr.Family("ordinal", lower=1, upper=5), None),
        (pa.string(), {"range_values": ["no", "yes"]}, hr.Family("bernoulli", levels=("no", "yes")), None),
        (pa.string(), {"sdtype": "ordinal", "range_values": ["low", "mid", "high"]},
         hr.Family("ordinal", levels=("low", "mid", "high")), None),
        (pa.dictionary(pa.int8(), pa.string()), {}, "categorical", None),
    ],
)  # fmt: skip
def test_a_family_for_each_type(kind, said, family, declared):
    table = pa.table({"x": pa.array([], kind), "z": pa.array([], pa.float64())})
    column = propose(table, ["x", "z"], {"x": said}).columns["x"]
    assert column.family == family
    if declared is not None:
        assert column.declared == declared
    hr.Synthesizer({"x": column, "z": hr.Column("z ~ 1")})  # what is declared goes with the family


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--protect", "wage,wage"), "--protect names 'wage' twice"),
        (("--protect", " , "), "--protect names no column"),
        (("--protect", "wages"), "the table has no column 'wages'. Did you mean wage?"),
        (("--protect", "wage,status"), "'status' holds labels, whose classes must be public"),
        (("--protect", "status,firm"), "'status', 'firm' hold labels, whose"),
        (("--protect", "wage", "--formula", "wage ~ age"), "--protect and --formula exclude each other"),
        (("--protect", "wage", "--metadata", "{wage: {range_mim: 1}}"), "Did you mean range_min?"),
        (("--protect", "wage", "--metadata", "{wage: {range_min: low}}"), "2015-01-31, got 'low'"),
        (("--protect", "wage", "--metadata", "{wage: {least: 1}}"), "wage.least is not known. Known"),
        (("--protect", "wage", "--metadata", "{wage: {decimal_places: 0.5}}"), "a whole number, got 0.5"),
        (("--protect", "wage", "--metadata", "{wage: {range_is_nullable: 1}}"), "true or false, got 1"),
        (("--protect", "status", "--metadata", "{status: {range_values: [a, 1]}}"), "words or of numbers"),
        (("--protect", "wage", "--metadata", "{pay: {range_min: 1}}"), "the table has no column 'pay'"),
        (("--protect", "wage", "--metadata", "nowhere.json"), "nowhere.json: cannot be read"),
        (("--protect", "wage", "--predictors", "wage"), "'wage' is protected. Name public columns"),
        (("--protect", "wage", "--predictors", "score"), "'score': it has missing values"),
        (("--metadata", "{}"), "go with --protect"),
    ],
)  # fmt: skip
def test_what_cannot_be_proposed_is_refused_in_a_sentence(hedgerow, arguments, told):
    people().to_csv("people.csv", index=False)
    done = hedgerow("init", "people.csv", "--epsilon", 6, *arguments)
    assert done.code in (2, 3)
    assert told in done.text


def test_predictors_are_those_that_are_named_and_one_column_is_a_plan_of_one(hedgerow):
    people().to_csv("people.csv", index=False)
    done = hedgerow(
        "init", "people.csv", "--protect", "wage", "--predictors", "age", "--epsilon", 6, "--json"
    )
    assert json.loads(done.out)["formula"] == "wage ~ age"


def test_metadata_of_one_table_in_sdvs_form():
    said = {"columns": {"wage": {"sdtype": "numerical", "range_min": 0, "range_is_nullable": False}}}
    wanted = {"wage": {"sdtype": "numerical", "range_min": 0, "range_is_nullable": False}}
    whole = {"METADATA_SPEC_VERSION": "V2", "tables": {"t": said}}
    assert read_metadata(said) == read_metadata(whole) == wanted
    with pytest.raises(SettingError, match="it describes 2 tables"):
        read_metadata({"tables": {"t": said, "u": said}})
    with pytest.raises(SettingError, match="takes a file"):
        read_metadata({"wage": 7})


def test_columns_that_may_be_null_have_gaps_and_dates_are_read_as_their_format_spells_them():
    table = pa.table({"paid": pa.array([], pa.float64()), "hired": pa.array([], pa.date32())})
    said = {
        "paid": {"sdtype": "numerical", "range_min": 1, "range_is_nullable": True},
        "hired": {"sdtype": "datetime", "datetime_format": "%d %b %Y", "range_min": "27 Dec 2020"},
    }
    found = propose(table, ["paid", "hired"], read_metadata(said)).columns
    assert found["paid"].missing == "synthesized"
    assert found["hired"] == hr.Column(
        "hired ~ log(paid)", "normal", declared=hr.Declared("date", range_min="2020-12-27")
    )
    hr.Synthesizer(found)


def test_sixty_columns_are_proposed_and_read_back():
    random = np.random.default_rng(1)
    frame = pa.table({f"c{n}": random.normal(size=80) for n in range(62)})
    protect = [f"c{n}" for n in range(2, 62)]
    found = propose(frame, protect, {})
    plan = Plan(formula=found.columns, epsilon=5.0)
    assert Plan.loads(plan.text()) == plan
    assert found.columns["c61"].formula.count("+") == 60


def test_limits_by_column_and_dates(hedgerow):
    dated = people().assign(hired=pd.date_range("2020-01-01", periods=200).strftime("%Y-%m-%d"))
    dated.to_csv("people.csv", index=False)
    metadata = {"wage": {"range_min": 1}, "hired": {"range_min": "2019-01-01"}}
    done = hedgerow(
        "init", "people.csv", "--protect", "wage,hired", "--predictors", "age", "--epsilon", 6,
        "--standard", "strict", "--limits", "{wage: [100, 1e6], hired: [17000, 19000]}",
        "--metadata", json.dumps(metadata), "--out", "plan.yaml",
    )  # fmt: skip
    assert done.code == 0, done.text
    settings = Plan.load(Path("plan.yaml")).settings
    assert settings.standard.limits["hired"] == (17000, 19000)
    assert settings.columns[1].declared == hr.Declared("date", range_min="2019-01-01")
