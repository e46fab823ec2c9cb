"""What a receiver needs, from a public folder alone: in Python without hedgerow, in R, and verified."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyreadstat
import pytest

import hedgerow as hr
from hedgerow import receive
from hedgerow.release.certificate import Certificate

# The same analyses in both languages, of a table with labelled codes, gaps and text that needs quotes.
PYTHON = """
import json, os, sys
sys.dont_write_bytecode = True
sys.path[:0] = ["."]
import receive, numpy as np
assert "hedgerow" not in sys.modules and "scipy" not in sys.modules and "pandas" not in sys.modules
def estimator(table):
    slope = np.polyfit(table["z"], np.log(table["x"]), 1)[0]
    north = table["x"][table["group"] == 'north, "n"'].mean()
    code, flag = (table["code"] == "003").mean(), table["flag"].mean()
    return {"slope": slope, "north": north, "gaps": np.nanmean(table["gaps"]), "code": code, "flag": flag}
found = receive.intervals(".", estimator)
one = receive.intervals(".", lambda t: {"mean": (t["x"].mean(), t["x"].var(ddof=1) / len(t["x"]))}, level=0.8)
q, u = np.array([[1, 1], [3, 1.1], [5, 1.2]]), np.array([[1, 4], [2, 4], [3, 5]])
rules = [receive.combine(q, u, rule=rule, level=0.9, given=u / 3, ratio=0.5) for rule in receive.RULES]
for each in (found, one, *rules):
    for row in zip(*(each[name] for name in ("estimate", "std_error", "df", "lower", "upper"))):
        print(*(repr(float(value)) for value in row))
print(found["rule"], len(receive.verify(".")))
"""
R = """
source("receive.R")
estimator <- function(table) c(
  slope = unname(coef(lm(log(x) ~ z, table))[2]), north = mean(table$x[table$group == 'north, "n"']),
  gaps = mean(table$gaps, na.rm = TRUE), code = mean(table$code == "003"), flag = mean(table$flag)
)
found <- suppressMessages(receive_intervals(".", estimator))
one <- suppressMessages(receive_intervals(
  ".", function(t) list(estimate = c(mean = mean(t$x)), variance = var(t$x) / nrow(t)), level = 0.8
))
for (each in list(found, one)) cat(sprintf("%.17g %.17g %.17g %.17g %.17g\n",
  each$estimate, each$std_error, each$df, each$lower, each$upper), sep = "")
estimates <- cbind(c(1, 3, 5), c(1, 1.1, 1.2))
variances <- cbind(c(1, 2, 3), c(4, 4, 5))
for (rule in RECEIVE_RULES) {
  each <- receive_combine(estimates, variances, rule, 0.9, variances / 3, 0.5)
  cat(sprintf("%.17g %.17g %.17g %.17g %.17g\n",
    each$estimate, each$std_error, each$df, each$lower, each$upper), sep = "")
}
cat(found$rule[1], length(suppressMessages(receive_verify("."))), "\n")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A strict release of a table with text, codes, gaps and flags, with files for its receivers."""
    place = tmp_path_factory.mktemp("received")
    table = hr.datasets.lognormal(n=120, seed=3)
    table["group"] = np.where(np.arange(120) % 3 == 0, 'north, "n"', "süd")
    table["code"] = [f"{row % 7:03d}" for row in range(120)]
    table["gaps"] = [None if row % 11 == 0 else row / 7 for row in range(120)]
    table["flag"] = np.arange(120) % 4 == 0
    table.to_csv(place / "table.csv", index=False)
    plan = hr.Plan(
        formula="x ~ z",
        data=place / "table.csv",
        ledger=place / "ledger.sqlite",
        standard=hr.Strict(limits=(1e-3, 1e4)),
        epsilon=1.0,
        copies=3,
        draws=100,
        outputs=hr.Outputs(receive=True),
    )
    with pytest.warns(hr.HedgerowWarning):
        return hr.make_release(plan, place / "release").folder


def run(*command: str, folder: Path) -> tuple[np.ndarray, str]:
    done = subprocess.run(command, cwd=folder / "public", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *rows, last = done.stdout.strip().splitlines()
    return np.array([[float(word) for word in row.split()] for row in rows]), last.strip()


def test_python_needs_the_folder_and_numpy_alone(folder):
    assert hr.verify_release(folder).problems == ()
    numbers, last = run(sys.executable, "-I", "-c", PYTHON, folder=folder)
    assert last == "noisy 0"
    assert numbers.shape == (6 + 2 * len(receive.RULES), 5)
    found = hr.combine(folder, "mean of x", level=0.8)
    np.testing.assert_allclose(numbers[5, 0], found["estimate"])


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="needs R (r-base-core)")
def test_r_gives_the_same_numbers(folder):
    numbers, last = run(sys.executable, "-I", "-c", PYTHON, folder=folder)
    again, same = run("Rscript", "--vanilla", "-e", R, folder=folder)
    np.testing.assert_allclose(again, numbers, rtol=1e-10)
    assert same == last


def test_what_was_changed_is_found(folder, tmp_path):
    public = shutil.copytree(folder / "public", tmp_path / "public")
    assert receive.verify(public) == [] == list(hr.verify_release(public).problems)
    with (public / "receive.R").open("a") as file:
        file.write("# more\n")
    (public / "synthetic-copy-2.csv").unlink()
    (public / "note.txt").touch()
    copy = public / "synthetic-copy-1.csv"
    copy.write_bytes(copy.read_bytes().replace(b"1", b"2", 1))
    expected = {
        "receive.R was changed",
        "copy-2.csv is missing",
        "note.txt was added",
        "copy-1.csv was changed",
    }
    problems = receive.verify(public)
    assert len(problems) == len(expected)
    assert all(any(words in problem for problem in problems) for words in expected)
    assert any("receive.R was changed" in problem for problem in hr.verify_release(public).problems)


CHECKED = """
source(commandArgs(TRUE)[1])
for (folder in commandArgs(TRUE)[-1]) {
  problems <- tryCatch(suppressMessages(receive_verify(folder)), error = conditionMessage)
  said <- tryCatch({ receive_read(folder); "" }, error = conditionMessage)
  cat(paste(problems, collapse = "|"), "\n", said, "\n", sep = "")
}
"""


def test_r_finds_what_was_changed_as_python_does(folder, tmp_path):
    """Down to a folder of which two files are left: without a list of others to hash no program may wait."""
    if not shutil.which("Rscript"):
        pytest.skip("needs R (r-base-core)")
    told = json.loads((folder / "public/certificate.json").read_bytes())
    places = [shutil.copytree(folder / "public", tmp_path / str(number)) for number in range(11)]
    one, alone, cut, elsewhere, odd, *mangled, deep, sorted_anew, renamed = places
    (one / "synthetic-copy-2.csv").unlink()
    (one / "note.txt").touch()
    (one / "plan.yaml").write_bytes((one / "plan.yaml").read_bytes().replace(b"x", b"y", 1))
    for file in alone.iterdir():
        if file.name not in ("certificate.json", "synthetic-copy-1.csv"):
            file.unlink()
    rows = (alone / "synthetic-copy-1.csv").read_text().splitlines(keepends=True)
    (alone / "synthetic-copy-1.csv").write_text("".join(rows[:-1]))
    (cut / "certificate.json").write_bytes((cut / "certificate.json").read_bytes()[:300])
    for place, changed in zip(
        mangled, ({"unit": {"rows": "x"}}, {"codes": 5}, {"combining": {}}), strict=True
    ):
        (place / "certificate.json").write_text(json.dumps(told | changed))
    (deep / "certificate.json").write_text("[" * 100_000)
    rows = (sorted_anew / "synthetic-copy-3.csv").read_text().splitlines(keepends=True)
    (sorted_anew / "synthetic-copy-3.csv").write_text("".join([rows[0], *rows[:0:-1]]))
    renamed_file = renamed / "synthetic-copy-2.csv"
    renamed_file.write_text(renamed_file.read_text().replace("flag", "flags", 1))
    told["copies"][0]["file"] = ".."
    (elsewhere / "certificate.json").write_text(json.dumps(told))
    (odd / "plan.yaml").unlink()
    (odd / "plan.yaml").mkdir()
    (odd / "synthetic-copy-3.csv").rename(tmp_path / "copy.csv")
    (odd / "synthetic-copy-3.csv").symlink_to(tmp_path / "copy.csv")
    (odd / "synthetic-copy-2.csv").unlink()
    source = Path(receive.__file__).with_name("receive.R")
    command = ["Rscript", "--vanilla", "-e", CHECKED, source, *places]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for place in (one, alone, odd):
        assert {*lines[2 * places.index(place)].split("|")} == {*receive.verify(place)}
        assert len(receive.verify(place)) >= 3
    refused = ["copy-2.csv is missing", "has 119 rows, the certificate says 120"]
    refused += ["lists no copies", "outside its folder", "copy-2.csv is missing", *["lacks something"] * 3]
    refused += ["lists no copies", "copy-3.csv has other public values in 'z', or its rows in another order"]
    refused += ["copy-2.csv has other columns than the first copy"]
    for place, words, said in zip(places, refused, lines[1::2], strict=True):
        assert words in said
        with pytest.raises(receive.ReceiveError, match=words):
            receive.read(place)


def test_the_certificate_names_the_rule_and_cannot_name_another(folder, tmp_path):
    document = json.loads((folder / "public/certificate.json").read_bytes())
    assert tuple(document["combining"].values()) == receive.rule_for(document)
    assert document["combining"]["rule"] == "noisy"
    assert document["combining"]["why"] in (folder / "public/certificate.md").read_text()
    public = shutil.copytree(folder / "public", tmp_path / "public")
    other = Certificate.loads(
        json.dumps(document | {"combining": {"rule": "noisy", "why": "Any rule will do."}}).encode()
    )
    (public / "certificate.json").write_text(other.json())
    (public / "certificate.md").write_text(other.markdown())
    assert any("rule that combines copies" in problem for problem in hr.verify_release(public).problems)
    without = Certificate.loads(json.dumps(document | {"receive": None}).encode())
    (public / "certificate.json").write_text(without.json())
    assert any("files for receivers" in problem for problem in hr.verify_release(public).problems)


def test_certificates_from_before_are_written_as_they_were(folder):
    document = json.loads((folder / "public/certificate.json").read_bytes())
    old = {name: value for name, value in document.items() if name not in ("combining", "receive")}
    content = json.dumps(old, indent=1, ensure_ascii=False) + "\n"
    assert Certificate.loads(content.encode()).json() == content
    assert "Combining" not in Certificate.loads(content.encode()).markdown()
    assert receive.rule_for(old, "noisy").name == "noisy"
    with pytest.raises(receive.ReceiveError, match="Say it: partial"):
        receive.rule_for(old)


DIALECTS = [
    (b"x;y\n1,5;a\n;b\n", [1.5, np.nan]),
    ("x\ty\n1.5\tü\nNA\tb\n".encode("utf-16"), [1.5, np.nan]),
    (b"\xef\xbb\xbfx,y\n01,a\n2,b\n", ["01", "2"]),
    ("x,y\n1.5,ü\n2,b\n".encode("cp1252"), [1.5, 2]),
    (b'\'x,y\nTRUE,"a\n"\nFALSE,"b "\n', [1, 0]),
]
READ = """
told <- commandArgs(TRUE)
source(told[1])
for (folder in told[-1]) {
  table <- receive_read(folder)$tables[[1]]
  cat(ifelse(is.numeric(table$x) & is.na(table$x), "nan", table$x), table$y, sep = "|")
  cat("\\n---\\n")
}
"""


def test_csv_in_any_dialect_is_read_alike_in_both_languages(tmp_path):
    folders, tables = [], []
    for number, (content, expected) in enumerate(DIALECTS):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "copy-1.csv").write_bytes(content)
        copies = [{"file": "copy-1.csv", "format": "csv"}]
        certificate = {"copies": copies, "protected": "x", "unchanged": ["y"]}
        (folder / "certificate.json").write_text(json.dumps(certificate))
        table = receive.read(folder).tables[0]
        pd.testing.assert_series_equal(pd.Series(table["x"]), pd.Series(expected), check_dtype=False)
        folders.append(folder)
        tables.append(table)
    if not shutil.which("Rscript"):
        pytest.skip("needs R (r-base-core)")
    source = Path(receive.__file__).with_name("receive.R")
    command = ["Rscript", "--vanilla", "-e", READ, source, *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *shown, last = done.stdout.split("\n---\n")
    assert last == ""
    for table, one in zip(tables, shown, strict=True):
        words = [f"{value:g}" if isinstance(value, float) else value for value in table["x"].tolist()]
        assert one.split("|") == [*words, *table["y"]]


COUNTED = """
source(commandArgs(TRUE)[1])
found <- suppressMessages(receive_intervals(".", function(table) c(
  wage = mean(table$wage, na.rm = TRUE), income = mean(table$income), age = mean(table$age)
)))
cat(sprintf("%.17g %.17g %.17g\n", found$estimate, found$std_error, found$df), sep = "")
try_out <- function(estimator) cat(paste(tryCatch(
  suppressMessages(receive_intervals(".", estimator)$term), error = conditionMessage
), collapse = "|"), "\n")
try_out(function(table) mean(table$age))
try_out(function(table) tapply(table$age, table$age > 8, mean))
try_out(function(table) setNames(mean(table$age), table$income[1]))
try_out(function(table) list(estimate = c(a = 1, b = 2), variance = 0.1))
try_out(function(table) mean(table$wage))
"""


def test_codes_and_units_are_heeded_alike_in_both_languages(tmp_path):
    """Codes are missing, rows of one unit are left out together: as by `hr.combine`."""
    rng = np.random.default_rng(1)
    homes = np.repeat([f"h{number}" for number in rng.permutation(30)], 4)
    copies, tables = [], []
    for number in (1, 2, 3):
        wage = rng.lognormal(size=120).round(3)
        table = {"home": homes, "age": np.arange(120) % 17, "income": np.repeat(rng.normal(size=30), 4)}
        tables.append(pd.DataFrame(table | {"wage": np.where(np.arange(120) % 7 > 0, wage, -8)}))
        tables[-1].to_csv(tmp_path / f"copy-{number}.csv", index=False)
        copies.append({"file": f"copy-{number}.csv", "format": "csv"})
    certificate = {"copies": copies, "protected": ["income", "wage"], "unchanged": ["home", "age"]}
    certificate |= {"codes": {"wage": [-8, "refused"]}, "combining": {"rule": "noisy", "why": "Because."}}
    certificate |= {"unit": {"rows": None, "column": "home", "covered": "…", "together": True}}
    (tmp_path / "certificate.json").write_text(json.dumps(certificate))

    def means(table):
        return {
            "wage": np.nanmean(table["wage"]),
            "income": table["income"].mean(),
            "age": table["age"].mean(),
        }

    found = receive.intervals(tmp_path, means)
    assert found["why"].startswith("Because. Cells of 'wage' with -8 hold a code")
    assert "Rows with the same 'home' belong together" in found["why"]
    np.testing.assert_allclose(
        found["estimate"][0], np.mean([t["wage"][t["wage"] > 0].mean() for t in tables])
    )
    again = hr.combine(tmp_path, means)
    np.testing.assert_allclose(again["std_error"], found["std_error"], rtol=1e-12)
    by_hand = hr.combine(tables, "mean of income", rule="partial", clusters="home")  # b < 2c here
    np.testing.assert_allclose(found["std_error"][1], by_hand["std_error"][0], rtol=1e-9)
    with pytest.raises(receive.ReceiveError, match=r"as np\.nanmean"):
        receive.intervals(tmp_path, lambda table: table["wage"].mean())
    if not shutil.which("Rscript"):
        pytest.skip("needs R (r-base-core)")
    source = Path(receive.__file__).with_name("receive.R")
    command = ["Rscript", "--vanilla", "-e", COUNTED, source]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *rows, one, two, renamed, short, last = done.stdout.strip().splitlines()
    assert [one.strip(), two.strip()] == ["estimate", "FALSE|TRUE"]
    assert all("same finite numbers by name" in said for said in (renamed, short))
    ours = np.column_stack([found[name] for name in ("estimate", "std_error", "df")])
    np.testing.assert_allclose([[float(word) for word in row.split()] for row in rows], ours, rtol=1e-10)
    assert "as na.rm = TRUE does" in last


def test_other_formats_are_read_by_pandas(tmp_path):
    pd.DataFrame({"x": [1.5, 2.0], "y": ["a", "b"]}).to_parquet(tmp_path / "copy-1.parquet")
    copies = [{"file": "copy-1.parquet", "format": "parquet"}]
    certificate = {"copies": copies, "protected": "x", "unchanged": ["y"]}
    (tmp_path / "certificate.json").write_text(json.dumps(certificate))
    assert receive.read(tmp_path).tables[0]["x"].tolist() == [1.5, 2.0]


def test_other_formats_have_codes_for_labels_and_text_for_text(tmp_path):
    """−8 "refused" of Stata and SPSS is a code as in CSV, 007 of Excel a name, a flag with gaps numbers."""
    table = pd.DataFrame({"x": [-8, 3, 5], "y": ["007", "1", "2"], "flag": [True, None, False]})
    labels = {"x": {-8: "refused"}}
    plain = table.drop(columns="flag")
    plain.to_stata(tmp_path / "copy-1.dta", write_index=False, value_labels=labels)
    pyreadstat.write_sav(plain, tmp_path / "copy-1.sav", variable_value_labels=labels)
    table.to_excel(tmp_path / "copy-1.xlsx", index=False)
    table.to_parquet(tmp_path / "copy-1.parquet")
    certificate = {"protected": "x", "unchanged": ["y"], "codes": {"x": [-8]}}
    certificate |= {"combining": {"rule": "simple", "why": ""}}
    endings = {"stata": "dta", "spss": "sav", "excel": "xlsx", "parquet": "parquet"}
    for kind, ending in endings.items():
        copies = {"copies": [{"file": f"copy-1.{ending}", "format": kind}]}
        (tmp_path / "certificate.json").write_text(json.dumps(certificate | copies))
        found = receive.read(tmp_path).tables[0]
        assert found["x"].tolist() == [-8, 3, 5]
        assert found["y"].tolist() == ["007", "1", "2"]
        assert receive.intervals(tmp_path, lambda table: np.nanmean(table["x"]))["estimate"] == [4]
        if "flag" in found:
            np.testing.assert_array_equal(found["flag"], [1, np.nan, 0])


def test_a_folder_without_a_certificate_and_files_outside_it_are_refused(tmp_path):
    with pytest.raises(receive.ReceiveError, match=r"no certificate\.json"):
        receive.read(tmp_path)
    with pytest.raises(hr.HedgerowError, match=r"no certificate\.json"):
        hr.combine(tmp_path, "mean of x")
    certificate = {"copies": [{"file": "../secret.csv", "format": "csv"}], "protected": "x", "unchanged": []}
    (tmp_path / "certificate.json").write_text(json.dumps(certificate))
    for door in (receive.read, receive.verify):
        with pytest.raises(receive.ReceiveError, match="outside its folder"):
            door(tmp_path)


def test_a_folder_that_was_tampered_with_has_one_clear_error(folder, tmp_path):
    public = folder / "public"
    copy, told = "synthetic-copy-2.csv", (public / "certificate.json").read_text()
    content = (public / "synthetic-copy-2.csv").read_bytes()
    for number, (name, changed, words) in enumerate(
        [
            (copy, None, "synthetic-copy-2.csv is missing"),
            (copy, b"", "no table in the format 'csv'"),
            (copy, content + b"1,2\n", "no table in the format 'csv'"),
            (copy, content[: content.rindex(b"\n", 0, -1) + 1], "rows, the certificate says"),
            ("certificate.json", told[:100].encode(), "lists no copies"),
            ("certificate.json", b"[]", "lists no copies"),
            ("certificate.json", b'{"copies": [{"file": ".."}]}', "outside its folder"),
            ("certificate.json", b'{"copies": [{"file": "a.csv"}]}', "lacks something"),
            ("certificate.json", told.replace('"unchanged"', '"u"').encode(), "lacks something"),
            ("certificate.json", told.replace('"combining": {', '"combining": 5, "c": {').encode(), "lacks"),
            ("certificate.json", told.replace('"combining": {', '"combining": [], "c": {').encode(), "lacks"),
            (
                "certificate.json",
                told.replace('"unit": {', '"unit": {"rows": "x"}, "u": {').encode(),
                "lacks",
            ),
            ("certificate.json", told.replace('"unit": {', '"codes": {"x": 5}, "unit": {').encode(), "lacks"),
        ]
    ):
        place = tmp_path / str(number)
        shutil.copytree(public, place)
        (place / name).unlink()
        if changed is not None:
            (place / name).write_bytes(changed)
        with pytest.raises(receive.ReceiveError, match=words):
            receive.read(place)
        with pytest.raises(hr.HedgerowError, match=words):
            hr.combine(place, "mean of x")
    (place / "certificate.json").write_text(told.replace('"sha256"', '"sha"'))
    assert len(receive.verify(place)) == 3  # of no copy a digest
    (place / copy).unlink()
    (place / copy).mkdir()
    with pytest.raises(receive.ReceiveError, match="cannot be read"):
        receive.read(place)
    if hasattr(os, "mkfifo"):
        (place / copy).rmdir()
        os.mkfifo(place / copy)
        with pytest.raises(receive.ReceiveError, match="cannot be read"):
            receive.read(place)


def test_a_long_cell_is_read_at_once(tmp_path):
    """A hundred thousand digits and a letter: no number, and no time that grows with their square."""
    (tmp_path / "copy-1.csv").write_text("x,y\n" + "1" * 100_000 + "a,1\n")
    copies = [{"file": "copy-1.csv", "format": "csv"}]
    certificate = {"copies": copies, "protected": "x", "unchanged": ["y"]}
    (tmp_path / "certificate.json").write_text(json.dumps(certificate))
    start = time.process_time()
    assert receive.read(tmp_path).tables[0]["y"].tolist() == [1.0]
    assert time.process_time() - start < 5
