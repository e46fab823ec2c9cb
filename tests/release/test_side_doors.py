"""What describes the confidential table does not leave with the copies, the plan or the certificate."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pyreadstat
import pytest

import hedgerow as hr
from hedgerow.errors import SettingError
from hedgerow.release.plan import DictionaryEntry, Outputs, Read
from hedgerow.tables import files as formats

SECRET = b"SECRET"
TOP = 93_639


def payroll() -> pd.DataFrame:
    frame = hr.datasets.lognormal(n=60, seed=3)
    x = (frame["x"] * 1000).round().astype("int32")
    x[7] = TOP
    return pd.DataFrame({"x": x, "z": frame["z"], "code": np.tile([1, 2, 3], 20).astype("int8")})


def write_stata(path, frame):
    """One set of labels for the protected and a public column, as Stata users often have it."""
    labels = {1: "low", 2: "middle", 3: "high", TOP: "SECRET Acme Ltd"}
    frame.to_stata(
        path, write_index=False, version=118, data_label="SECRET", value_labels={"x": labels, "code": labels},
        variable_labels={"x": "SECRET pay of Acme", "z": "size"},
    )  # fmt: skip


def write_spss(path, frame):
    labels = {1: "low", 2: "middle", 3: "high", TOP: "SECRET Acme Ltd"}
    pyreadstat.write_sav(
        frame, str(path), column_labels={"x": "SECRET pay", "z": "size"}, note="SECRET note",
        variable_value_labels={"x": labels, "code": labels | {4: "SECRET only in a dropped row"}},
        missing_ranges={"x": [{"lo": 90_000, "hi": 93_638}], "code": [-99, 4]},
        variable_measure={"x": "ordinal"}, variable_display_width={"x": 33}, variable_format={"x": "F31.0"},
    )  # fmt: skip


def public_bytes(folder) -> bytes:
    return b"".join(file.read_bytes() for file in sorted((folder / "public").iterdir()))


@pytest.mark.parametrize("kind", ["stata", "spss"])
@pytest.mark.parametrize("to", [None, "stata", "spss", "parquet", "csv"])
def test_the_dictionary_of_the_protected_column_stays(make, tmp_path, kind, to):
    path = tmp_path / f"in{formats.Format(kind).suffix}"
    {"stata": write_stata, "spss": write_spss}[kind](path, payroll())
    made = make(data=path, outputs=Outputs(format=to))
    content = public_bytes(made.folder)
    assert SECRET not in content
    assert str(TOP).encode() not in content.replace(made.certificate.json().encode(), b"")
    copy = formats.read(made.folder / "public" / made.certificate.copies[0].file)
    told = copy.dictionary
    assert "x" not in {*told.labels, *told.value_labels, *told.missing_ranges}
    assert told.widths.get("x") != 33
    assert told.measures.get("x") != "ordinal"
    assert told.formats.get("x") != "F31.0"
    if (to or kind) in ("stata", "spss"):
        assert told.labels["z"] == "size"
        assert dict(told.value_labels["code"]) == {1: "low", 2: "middle", 3: "high"}
        assert "code" not in told.missing_ranges


@pytest.mark.parametrize("kind", ["stata", "spss"])
def test_what_the_plan_declares_of_the_protected_column_is_written(make, tmp_path, kind):
    path = tmp_path / f"in{formats.Format(kind).suffix}"
    {"stata": write_stata, "spss": write_spss}[kind](path, payroll())
    display = {"stata": "%20.0g", "spss": "F20.0"}[kind]
    entry = DictionaryEntry("Annual pay", {0: "none", 1: "some"}, display)
    made = make(data=path, outputs=Outputs(dictionary=entry))
    assert SECRET not in public_bytes(made.folder)
    told = formats.read(made.folder / "public" / made.certificate.copies[0].file).dictionary
    assert told.labels["x"] == "Annual pay"
    assert dict(told.value_labels["x"]) == {0: "none", 1: "some"}
    assert told.formats["x"] == display
    assert any("data dictionary" in item.what for item in made.certificate.assumed_public)
    assert hr.verify_release(made.folder).problems == ()


def test_the_owner_is_told_what_was_left_out(tmp_path):
    write_spss(tmp_path / "in.sav", payroll())
    plan = hr.Plan(formula="x ~ z", epsilon=40.0, draws=200, data=tmp_path / "in.sav", ledger=tmp_path / "l")
    with pytest.warns(hr.HedgerowWarning) as told:
        hr.make_release(plan, tmp_path / "release")
    words = " ".join(str(each.message) for each in told)
    assert "dictionary says of the protected column 'x'" in words
    assert "do not occur in columns code" in words
    assert "SECRET" not in words


def categories(path):
    """A row without an outcome is dropped, and its region is a level that nobody else has."""
    region = pd.Categorical(["north", "south"] * 30, categories=["north", "south", "SECRET island", "west"])
    table = payroll().assign(region=region, x=lambda f: f["x"].astype("Int64"))
    table.loc[5, "region"], table.loc[5, "x"] = "SECRET island", pd.NA
    formats.write(table, path, formats.format_of(path))


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_levels_of_dropped_rows_stay(make, tmp_path, ending):
    categories(tmp_path / f"in.{ending}")
    made = make(data=tmp_path / f"in.{ending}", missing="drop")
    assert SECRET not in public_bytes(made.folder)
    frame = formats.read(made.folder / "public" / f"synthetic-copy-1.{ending}").frame
    assert frame["region"].combine_chunks().dictionary.to_pylist() == ["north", "south"]


def test_the_plan_keeps_levels(make, tmp_path):
    categories(tmp_path / "in.arrow")
    table = formats.read(tmp_path / "in.arrow").frame
    made = make(data=tmp_path / "in.arrow", missing="drop", outputs=Outputs(keep_levels=("region",)))
    copy = formats.read(made.folder / "public" / "synthetic-copy-1.arrow").frame["region"].combine_chunks()
    assert copy.dictionary.to_pylist() == table["region"].combine_chunks().dictionary.to_pylist()
    assert copy.to_pylist() == [word for place, word in enumerate(table["region"].to_pylist()) if place != 5]
    write_spss(tmp_path / "in.sav", payroll())
    made = make("spss", data=tmp_path / "in.sav", dataset="spss", outputs=Outputs(keep_levels=("code",)))
    told = formats.read(made.folder / "public" / "synthetic-copy-1.sav").dictionary
    assert set(told.value_labels["code"]) == {1, 2, 3, 4, TOP}
    assert [entry["lo"] for entry in told.missing_ranges["code"]] == [-99, 4]


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (Outputs(keep_levels=("x",)), "protected or dropped"),
        (Outputs(keep_levels=("code",), drop=("code",)), "protected or dropped"),
        (Outputs(keep_levels=("code",)), "shares its value labels"),
        (Outputs(dictionary=DictionaryEntry(display="F8.2")), "not a display format of Stata"),
    ],
)
def test_what_would_publish_it_after_all_is_refused(make, tmp_path, outputs, words):
    write_stata(tmp_path / "in.dta", payroll())
    with pytest.raises(SettingError, match=words):
        make(data=tmp_path / "in.dta", outputs=outputs)


def test_labels_that_the_plan_declares_may_be_those_of_other_columns(tmp_path):
    """A survey asks many questions that are answered by yes and no."""
    answers = {0: "no", 1: "yes", -9: "refused"}
    frame = pd.DataFrame({"car": [0.0, 1.0], "bike": [1.0, 1.0]})
    pyreadstat.write_sav(frame, str(tmp_path / "in.sav"), variable_value_labels=dict.fromkeys(frame, answers))
    source = formats.read(tmp_path / "in.sav")
    with pytest.raises(SettingError, match="declare them all"):
        formats.source_of_copies(source, frame.columns, {"car": DictionaryEntry()}, keep=["bike"])
    entry = DictionaryEntry(values=answers)
    like = formats.source_of_copies(source, frame.columns, {"car": entry}, keep=["bike"])
    assert dict(like.dictionary.value_labels["bike"]) == answers


def test_names_of_dropped_columns_and_of_the_dataset_stay(make, tmp_path):
    frame = payroll().assign(SECRETNAME="a", low=0.0)
    frame.to_csv(tmp_path / "in.csv", index=False)
    pyreadstat.write_sav(frame, str(tmp_path / "in.sav"), column_labels={"SECRETNAME": "SECRET label"})
    for name, read in (("in.csv", Read(text=("SECRETNAME",))), ("in.sav", Read())):
        made = make(
            name.replace(".", "-"), data=tmp_path / name, read=read, dataset="SECRET dataset",
            outputs=Outputs(drop=("SECRETNAME",), format="csv"),
        )  # fmt: skip
        assert SECRET not in public_bytes(made.folder)
        verified = hr.verify_release(made.folder)
        assert verified.problems == ()
        assert verified.plan.dataset is None
        assert verified.plan.digest == made.certificate.plan


def test_field_metadata_of_a_file_stays(make, tmp_path):
    table = pa.Table.from_pandas(payroll(), preserve_index=False)
    fields = [field.with_metadata({"note": "SECRET"}) for field in table.schema]
    for name, write in (("in.parquet", pq.write_table), ("in.arrow", pa.feather.write_feather)):
        write(table.cast(pa.schema(fields, {"pandas": "SECRET"})), tmp_path / name)
        made = make(name.replace(".", "-"), data=tmp_path / name)
        assert SECRET not in public_bytes(made.folder)
