"""Several protected columns through a plan: one release, one certificate, one entry of the ledger."""

import hashlib
import json
import re
import shutil
import warnings
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from helpers.leaks import confidential_values, numbers, spellings

import hedgerow as hr
from hedgerow.errors import DataError, LedgerError, SettingError
from hedgerow.privacy.claims.neighbours import NEIGHBOURS, join_columns
from hedgerow.release import certificate as certificates
from hedgerow.release.certificate import Certificate
from hedgerow.release.ledger import Ledger
from hedgerow.release.make import list_assumptions
from hedgerow.release.plan import DictionaryEntry, Outputs
from hedgerow.release.prepare import prepare
from hedgerow.release.registry import write_record

COLUMNS = {
    "wage": hr.Column("wage ~ age + C(sector)"),
    "hours": hr.Column("hours ~ age + log(wage)", "normal", declared=hr.Declared("integer")),
}
ASKED = {"formula": COLUMNS, "epsilon": 17.0, "copies": 2, "draws": 100, "bound": "renyi"}
SEED = 918273645


def people(n=90):
    random = np.random.default_rng(3)
    age, sector = random.integers(18, 66, n), random.choice(list("abc"), n)
    wage = np.exp(7 + 0.02 * age + 0.4 * random.normal(size=n)).round(2)
    hours = (20 + 3 * np.log(wage) + random.normal(size=n)).round().astype(int)
    return pd.DataFrame({"age": age, "wage": wage, "sector": sector, "hours": hours})


def release_of(folder: Path, name="release", frame=None, **changes):
    (people() if frame is None else frame).to_csv(folder / "t.csv", index=False)
    asked = ASKED | {"data": folder / "t.csv", "ledger": folder / "l", "weights": hr.ScalarWeights(1.0)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HedgerowWarning)
        return hr.make_release(hr.Plan(**asked | changes), folder / name)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return release_of(tmp_path_factory.mktemp("several"), seed=SEED)


@pytest.fixture
def spoiled(made, tmp_path) -> Path:
    """The public part, to be spoiled."""
    shutil.copytree(made.folder / "public", tmp_path / "public")
    return tmp_path / "public"


def rewrite(public: Path, **changes) -> None:
    given = Certificate.loads((public / "certificate.json").read_bytes())
    certificate = replace(given, **{"page": None, **changes})
    (public / "index.html").unlink(missing_ok=True)
    (public / "certificate.json").write_text(certificate.json())
    (public / "certificate.md").write_text(certificate.markdown())


def test_declared_dates_of_a_file_are_read_as_days_under_strict(tmp_path):
    frame = people().assign(hired=pd.date_range("2015-01-01", periods=90, freq="D").strftime("%Y-%m-%d"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    column = hr.Column("hired ~ age", "normal", declared=hr.Declared("date"))
    strict = hr.Strict(limits={"hired": (16000, 17000)}, reason="the firm was founded then")
    plan = hr.Plan(data=tmp_path / "t.csv", formula={"hired": column}, standard=strict, epsilon=5.0)
    hired = prepare(plan).table["hired"]
    assert (str(hired.type), hired.null_count) == ("date32[day]", 0)


def test_one_release_with_one_certificate_and_one_entry(made):
    with Ledger.open(made.ledger) as ledger:
        assert hr.verify_release(made.folder, ledger=ledger).problems == ()
        assert len({entry.release for entry in ledger.entries() if entry.release}) == 1
    document = json.loads((made.folder / "public" / "certificate.json").read_text())
    jsonschema.validate(document, certificates.schema())
    assert document["protected"] == ["wage", "hours"]
    assert document["unchanged"] == ["age", "sector"]
    assert document["family"] == "lognormal, normal"
    assert document["neighbour"] == join_columns(NEIGHBOURS["ADP"])
    assert "all of them together" in document["unit"]["covered"]
    assumed = [item["what"] for item in document["assumed_public"]]
    assert any(what.endswith("all columns but 'wage', 'hours'") for what in assumed)
    assert sum(what.startswith("the prior of") for what in assumed) == 2
    assert "the type of 'wage' (double)" in assumed
    assert "what the plan declares of 'hours': type integer" in assumed
    assert "columns 'wage', 'hours' are synthetic" in " ".join(write_record(made.certificate).split())


def test_copies_have_every_column_in_its_place_and_no_protected_value(made):
    data, copy = people(), pd.read_csv(made.folder / "public" / "synthetic-copy-1.csv")
    assert list(copy.columns) == list(data.columns)
    pd.testing.assert_frame_equal(copy[["age", "sector"]], data[["age", "sector"]])
    assert not (copy["wage"] == data["wage"]).any()
    assert copy["hours"].dtype == np.int64
    assert (copy["hours"] == data["hours"]).mean() < 0.5  # of about eight values one in four agrees


def test_public_holds_no_confidential_value(made):
    """As for one column: draws, prices, weights, utility, the seed, paths, and the wages themselves."""
    values = confidential_values(made.folder, people()["wage"].to_numpy())
    values["wage"] = people()["wage"].tolist()
    copies = [pd.read_csv(path) for path in (made.folder / "public").glob("synthetic-copy-*")]
    own = {wage for copy in copies for wage in copy["wage"]}
    values["shapes"] = [edge for edge in values["shapes"] if edge not in own]  # a bin may begin at a copy's
    assert all(len(found) >= 9 for found in values.values())
    for path in (made.folder / "public").iterdir():
        text = path.read_text()
        for secret in (str(SEED), str(made.folder.parent), "t.csv"):
            assert secret not in text, path.name
        shown, is_copy = numbers(text), path.name.startswith("synthetic-copy-")
        for kind, found in values.items():
            for value in set(found) - {0.0, 1.0}:
                # Copies hold doubles with all their digits: that a few of them agree is a coincidence.
                for word in spellings(value, 7 if is_copy else 4):
                    if not is_copy or len(word.partition(".")[2]) > 3:
                        assert word not in shown, (path.name, kind, word)


def test_draws_and_utility_are_kept_by_column(made):
    inside = made.folder / "confidential"
    draws = pq.read_table(inside / "draws.parquet").column_names
    assert {"wage: beta[age]", "wage: sigma", "hours: beta[log(wage)]", "hours: sigma"} <= {*draws}
    assert {*pq.read_table(inside / "utility.parquet")["column"].to_pylist()} == {"wage", "hours"}


FORGED = {
    "fewer columns": ({"protected": "wage"}, "protected columns: ('wage', 'hours') and 'wage'"),
    "another order": ({"protected": ("hours", "wage")}, "differ in the protected columns"),
    "one twice": ({"protected": ("wage", "wage")}, "it names a protected column twice"),
    "one public": ({"unchanged": ("age", "hours", "sector")}, "'hours' is among those passed through"),
    "one left out": ({"used_not_released": ("hours",)}, "'hours' is among those not released"),
    "another model": ({"family": "lognormal, gamma"}, "'lognormal, normal' and 'lognormal, gamma'"),
    "the neighbour of one column": ({"neighbour": NEIGHBOURS["ADP"]}, "neighbour is not that of"),
}


@pytest.mark.parametrize("how", FORGED)
def test_a_certificate_that_says_other_things_of_its_columns(spoiled, how):
    changes, told = FORGED[how]
    assert hr.verify_release(spoiled).problems == ()
    rewrite(spoiled, **changes)
    assert told in " ".join(hr.verify_release(spoiled).problems)


@pytest.mark.parametrize(
    ("line", "instead", "told"),
    [
        ("formula: hours ~", "formula: overtime ~", "columns that its formulas protect"),
        ("  hours:\n", "  days:\n", "protected columns: ('wage', 'days')"),
        ("family: normal", "family: gamma", "model: 'lognormal, gamma'"),
        ("  wage:\n", "  wage: 7\n  x:\n", "differ in the protected columns"),
    ],
)
def test_a_plan_that_says_other_things_than_its_certificate(spoiled, line, instead, told):
    content = (spoiled / "plan.yaml").read_text().replace(line, instead)
    assert content != (spoiled / "plan.yaml").read_text()
    (spoiled / "plan.yaml").write_text(content)
    rewrite(spoiled, plan=hashlib.sha256(content.encode()).hexdigest())
    assert told in " ".join(hr.verify_release(spoiled).problems)


def test_a_copy_with_a_protected_column_twice_or_not_at_all_is_found(spoiled):
    copy = spoiled / "synthetic-copy-1.csv"
    content = copy.read_bytes().replace(b"age,wage,", b"age,hours,", 1)
    copy.write_bytes(content)
    given = Certificate.loads((spoiled / "certificate.json").read_bytes())
    first = replace(given.copies[0], sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
    rewrite(spoiled, copies=(first, *given.copies[1:]))
    assert "lacks columns that the certificate names: 'wage'" in " ".join(hr.verify_release(spoiled).problems)


def test_releases_of_one_and_of_several_columns_of_a_table_meet_in_the_ledger(made):
    with pytest.raises(LedgerError, match="has rows, keys or columns in common with what is recorded"):
        release_of(made.folder.parent, "again", formula="wage ~ age", outputs=Outputs(drop=("hours",)))


@pytest.mark.parametrize("protected", [["c00"], [f"c{n:02}" for n in range(20, 50)], ["c49", "c48"]])
def test_whichever_of_fifty_columns_are_protected_the_table_is_recognised(tmp_path, protected):
    from hedgerow.release.ledger.overlap import share_rows

    random = np.random.default_rng(1)
    frame = pd.DataFrame({f"c{n:02}": random.normal(size=300) for n in range(50)})
    with Ledger.open(tmp_path / "l") as ledger:
        assert share_rows(ledger.sketch(frame, "c49"), ledger.sketch(frame, *protected))
        other = frame + 1.5
        assert not share_rows(ledger.sketch(frame, "c49"), ledger.sketch(other, *protected))


def test_the_order_of_the_columns_makes_no_other_dataset(tmp_path):
    with Ledger.open(tmp_path / "l") as ledger:
        prints = {ledger.fingerprint(people(), names) for names in (["wage", "hours"], ["hours", "wage"])}
        assert len(prints) == 1
        assert ledger.fingerprint(people(), ["wage"]) not in prints


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (
            {"pay_text": people()["wage"].map("{:,} EUR".format)},
            "the outcome 'wage' or nearly so.*'pay_text'",
        ),
        ({"minutes": people()["hours"] * 60}, "the outcome 'hours' or nearly so.*'minutes'"),
        ({"per_hour": people()["wage"] / people()["hours"]}, "'per_hour' equals 'wage' / 'hours'"),
    ],
)
def test_a_hidden_copy_of_any_protected_column_is_refused_by_name(tmp_path, column, told):
    with pytest.raises(DataError, match=told):
        release_of(tmp_path, frame=people().assign(**column))
    assert not (tmp_path / "release").exists()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"outputs": Outputs(drop=("hours",))}, "'hours' is protected and cannot be dropped"),
        ({"unit": "wage"}, "unit: 'wage' is a protected column"),
        ({"outputs": Outputs(keep_levels=("hours",))}, "keep_levels: 'hours' is protected"),
        ({"outputs": Outputs(keep=("wage",))}, "Column 'wage' is protected; it cannot be kept as it is"),
        ({"formula": dict(reversed(COLUMNS.items()))}, "'wage', which is synthesized later"),
        ({"formula": COLUMNS | {"rent": hr.Column("rent ~ age")}}, "rent"),
    ],
)
def test_what_a_protected_column_cannot_be_is_refused_before_anything_is_spent(tmp_path, changes, told):
    with pytest.raises((SettingError, DataError), match=told):
        release_of(tmp_path, **changes)
    with Ledger.open(tmp_path / "l") as ledger:
        assert ledger.entries() == []


def test_dictionaries_say_what_the_plan_declares_of_each_column(tmp_path):
    frame = people().drop(columns="sector").assign(grade=np.arange(90) % 3)
    labels = {"wage": "Pay of the mayor", "hours": "Hours of the mayor", "age": "Age"}
    codes = {"hours": {40: "the mayor's"}, "grade": {0: "low", 1: "middle", 2: "high"}}
    frame.to_stata(tmp_path / "t.dta", write_index=False, variable_labels=labels, value_labels=codes)
    columns = {
        "wage": hr.Column("wage ~ age + grade"),
        "hours": hr.Column("hours ~ age + log(wage)", "normal"),
    }
    plan = hr.Plan(formula=columns, epsilon=9.0, data=tmp_path / "t.dta",
                   dictionaries={"wage": DictionaryEntry(label="Pay")})  # fmt: skip
    prepared = prepare(plan)
    assert dict(prepared.like.dictionary.labels) == {"wage": "Pay", "age": "Age"}
    assert set(prepared.like.dictionary.value_labels) == {"grade"}
    assert prepared.plan.settings.columns[0].formula == "wage ~ 1 + age + C(grade)"
    (note,) = [note for note in prepared.like.notes if "dictionary" in note]
    assert "protected column 'hours' (its label" in note


def test_labelled_codes_that_are_protected_stay_as_the_formula_has_them(tmp_path):
    """Whether all codes that occur have labels would be read off protected values."""
    frame = people().drop(columns="sector").assign(grade=np.arange(90) % 3)
    frame.to_stata(
        tmp_path / "t.dta", write_index=False, value_labels={"grade": {0: "low", 1: "middle", 2: "high"}}
    )
    columns = {"grade": hr.Column("grade ~ age", "poisson"), "wage": hr.Column("wage ~ age + grade")}
    prepared = prepare(hr.Plan(formula=columns, epsilon=9.0, data=tmp_path / "t.dta"))
    assert prepared.plan.settings.columns[1].formula == "wage ~ age + grade"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("missing", ["refuse", "drop"])
def test_no_row_is_dropped_or_refused_for_a_gap_that_a_rule_makes(tmp_path, strict, missing):
    """The rows that stayed would be those in which the protected hours are long."""
    frame = people().assign(bonus=lambda each: each["wage"].where(each["hours"] > 43))
    columns = {
        "hours": hr.Column("hours ~ age", "normal"),
        "bonus": hr.Column("bonus ~ age", only_where="hours > 43"),
    }
    limits = {"hours": (0, 80), "bonus": (1, 1e5)}
    asked = {"standard": hr.Strict(limits=limits)} if strict else {"weights": hr.ScalarWeights(1.0)}
    frame.to_csv(tmp_path / "t.csv", index=False)
    plan = hr.Plan(formula=columns, epsilon=9.0, data=tmp_path / "t.csv", missing=missing, **asked)
    prepared = prepare(plan)
    assert 0 < frame["bonus"].isna().sum() < prepared.records == 90
    dropped = [item.what for item in list_assumptions(prepared) if "dropped" in item.what]
    assert dropped == ["which rows lack a value in 'hours' or in a predictor; such rows were dropped"] * (
        missing == "drop"
    )


def test_rules_of_cells_derived_columns_and_checks_go_through_a_release(tmp_path):
    frame = people().assign(per_hour=lambda each: each["wage"] / each["hours"])
    frame.loc[::9, "wage"] = np.nan
    columns = {
        "wage": hr.Column("wage ~ age", missing="public", filler=2000.0),
        "hours": hr.Column("hours ~ age", "normal", only_where="sector != 'a'", otherwise=0),
    }
    rules = hr.Rules({"per_hour": "wage / hours", "double": "2 * wage"}, ["hours > 30", "wage > 0"])
    made = release_of(tmp_path, frame=frame, formula=columns, rules=rules)
    assert hr.verify_release(made.folder).problems == ()
    assert made.certificate.protected == ("wage", "hours", "per_hour", "double")
    assert made.certificate.unchanged == ("age", "sector")
    assumed = [item.what for item in made.certificate.assumed_public]
    assert "which cells of 'wage' are missing or cannot be read" in assumed
    assert "that 'hours' is 0 unless sector != 'a'" in assumed
    assert "the type of 'per_hour' (double)" in assumed
    assert not [what for what in assumed if "type of 'double'" in what]  # the copies alone have it
    copy = pd.read_csv(made.folder / "public" / "synthetic-copy-1.csv")
    assert list(copy.columns) == [*frame.columns, "double"]
    assert (copy["wage"].isna() == frame["wage"].isna()).all()
    assert (copy.loc[frame["sector"] == "a", "hours"] == 0).all()
    np.testing.assert_allclose(copy["double"], 2 * copy["wage"])
    assert {row["check"] for row in made.checks} == {"hours > 30", "wage > 0"}
    summary = json.loads((made.folder / "confidential" / "summary.json").read_text())
    assert summary["checks"] == list(made.checks)
    forged = replace(made.certificate, protected=("wage", "hours", "per_hour"))
    (made.folder / "public" / "certificate.json").write_text(forged.json())
    assert "differ in the protected columns" in " ".join(hr.verify_release(made.folder).problems)


def test_init_does_not_look_at_columns_that_are_derived(hedgerow):
    """They hold protected values: whether one has gaps, or repeats others, is nobody's to know."""
    texts = []
    for gap in (0, 5):
        frame = people().assign(per_hour=lambda each: each["wage"] / each["hours"])
        frame.loc[: gap - 1, "per_hour"] = np.nan
        frame.to_csv("t.csv", index=False)
        derived = ("--derived", "{per_hour: wage / hours}")
        done = hedgerow("init", "t.csv", "--protect", "wage,hours", *derived, "--epsilon", 6)
        assert done.code == 0, done.text
        texts.append(done.out)
    assert texts[0] == texts[1]
    assert "per_hour: wage / hours" in texts[0]


def test_cost_shows_what_each_column_costs_alone(hedgerow):
    people().to_csv("t.csv", index=False)
    plan = hr.Plan(**ASKED, data="t.csv", weights=hr.ScalarWeights(1.0))
    Path("plan.yaml").write_text(plan.text())
    done = hedgerow("cost", "--plan", "plan.yaml", "--json")
    assert done.code == 0, done.text
    wage, hours, together = json.loads(done.out)["columns"]
    assert (wage["column"], hours["column"], together["column"]) == ("wage", "hours", "all together")
    assert max(wage["alone"], hours["alone"]) < together["alone"] < wage["alone"] + hours["alone"]
    assert wage["share"] + hours["share"] == pytest.approx(1)


@pytest.mark.slow
def test_compare_shows_what_each_standard_keeps_of_each_column(hedgerow):
    people().to_csv("t.csv", index=False)
    Path("plan.yaml").write_text(hr.Plan(**ASKED, data="t.csv", weights=hr.ScalarWeights(1.0)).text())
    done = hedgerow("compare", "--plan", "plan.yaml", "--json")
    assert done.code == 0, done.text
    assert {row["column"] for row in json.loads(done.out)["utility"]} == {"wage", "hours"}


def test_labels_of_a_strict_plan_are_read_as_labels_and_numbers_as_numbers(tmp_path):
    """As numbers all labels would be missing, and copies nothing but noise."""
    frame = people().assign(status=np.where(np.arange(90) % 3, "on", "7"))
    frame.astype({"hours": str}).replace({"hours": {"40": "forty"}}).to_csv(tmp_path / "t.csv", index=False)
    columns = {
        "status": hr.Column("status ~ sector", hr.Family("bernoulli", levels=("7", "on"))),
        "hours": hr.Column("hours ~ age", "normal"),
    }
    standard = hr.Strict(limits={"hours": (0, 100)})
    prepared = prepare(hr.Plan(formula=columns, epsilon=3.0, standard=standard, data=tmp_path / "t.csv"))
    assert prepared.table["status"].to_pylist() == frame["status"].tolist()
    assert str(prepared.table["hours"].type) == "double"


def test_the_page_on_tables_has_a_plan_and_synthesizers_that_can_be_made():
    page = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
    plan, *_ = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert [column.outcome for column in hr.Plan.loads(plan).settings.columns] == ["status", "wage", "bonus"]
    names: dict[str, object] = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        names.pop("synth", None)
        exec(code, names)
        assert "not fitted" in repr(names["synth"])


def test_a_column_that_kinds_of_cells_follow_may_be_dropped(tmp_path):
    """It was taken for one that nobody uses, and the fit did not find it."""
    frame = people()
    frame.loc[::7, "wage"] = -8
    columns = {"wage": hr.Column("wage ~ age", codes=(-8,), kinds_by="C(sector)")}
    made = release_of(
        tmp_path, frame=frame, formula=columns, epsilon=None, outputs=Outputs(drop=("sector", "hours"))
    )
    assert made.certificate.used_not_released == ("sector",)
    frame.loc[3, "sector"] = None
    with pytest.raises(DataError, match="Values are missing in columns of the formula: 'sector' in 1"):
        release_of(tmp_path, "gaps", frame=frame, formula=columns, epsilon=None)
