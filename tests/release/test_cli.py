"""The command: what it does, what it says, and how it ends."""

import io
import json
import os
import sqlite3
import stat
from datetime import date
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pyarrow as pa
import pyreadstat
import pytest
from rich.console import Console

import hedgerow as hr
from hedgerow.cli import app, screen
from hedgerow.cli.screen import Screen
from hedgerow.evidence.utility import bin_shapes, compare_copies, tabulate
from hedgerow.numerics.rounding import format_figure
from hedgerow.release import make as making
from hedgerow.release.ledger import Ledger
from hedgerow.tables import files as formats

QUICK = ("--formula", "x ~ z", "--draws", 200)
GOOD = (*QUICK, "--epsilon", 40)


def test_from_a_file_to_a_verified_release(hedgerow, table):
    done = hedgerow("synthesize", table, *GOOD, "--copies", 2, "--out", "release")
    assert done.code == 0, done.err
    assert "may leave the building" in done.text
    assert hedgerow("verify", "release").code == 0
    assert hedgerow("verify", "release", "--ledger", "ledger.sqlite").code == 0
    shown = hedgerow("inspect", "release")
    assert shown.code == 0
    assert "Not covered" in shown.out
    summary = json.loads(Path("release/confidential/summary.json").read_text())
    assert f"{summary['epsilon']:.6g}" not in done.text + shown.text  # fewer digits may be in a digest
    confidential = hedgerow("inspect", "release", "--confidential").out
    assert str(summary["epsilon"]) in confidential
    assert "What copies keep. Computed from the data: confidential" in confidential
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in confidential.split("\n")]
    named = {row[0]: row[1:] for row in rows if row}
    median = format_figure(float(pd.read_csv(table)["x"].median()))
    assert named["original"][1] == median
    assert {"copies", "lowest", "highest"} <= set(named)
    # Unasked it is shown to a terminal alone: other output may be a log.
    assert median not in done.text
    assert "hedgerow inspect release --confidential" in done.out
    assert "What copies keep" not in shown.out
    Path("release/confidential/shapes.parquet").unlink()  # as in releases made before there was one
    assert hedgerow("inspect", "release", "--confidential").out == confidential
    Path("release/confidential/utility.parquet").unlink()
    lacking = hedgerow("inspect", "release", "--confidential")
    assert (lacking.code, "utility.parquet is not here" in lacking.text) == (3, True)
    Path("release/public/synthetic-copy-1.csv").write_text("x,z\n1,2\n")
    broken = hedgerow("verify", "release")
    assert (broken.code, "was changed" in broken.text) == (3, True)


def test_a_price_without_draws_from_cost_to_a_verified_release(hedgerow, table):
    renyi = (
        *QUICK,
        "--bound",
        "renyi",
        "--delta",
        1e-7,
        "--copies",
        3,
        "--weights",
        "{kind: scalar, alpha: 1}",
    )
    shown = json.loads(hedgerow("cost", table, *renyi, "--epsilon", 4, "--json").out)
    prices = {row["bound"]: row for row in shown["prices"]}
    assert 3.99 < prices["renyi"]["total"] <= 4 < 3 * prices["renyi"]["epsilon"]
    assert prices["exact"]["total"] == pytest.approx(3 * prices["exact"]["epsilon"])
    assert shown["advice"] == "The price does not depend on draws."
    tried = json.loads(hedgerow("calibrate", table, *renyi, "--at", 4, "--json").out)["targets"]
    assert [row["met"] for row in tried] == ["yes"]
    assert hedgerow("synthesize", table, *renyi, "--epsilon", 4, "--out", "release").code == 0
    assert hedgerow("verify", "release", "--ledger", "ledger.sqlite").code == 0
    certificate = json.loads(Path("release/public/certificate.json").read_text())
    assert certificate["epsilon"] == {"per_copy": None, "total": 4.0}
    assert certificate["delta"] == {"per_copy": None, "total": 1e-7}
    summary = json.loads(Path("release/confidential/summary.json").read_text())
    assert summary["total_epsilon"] == pytest.approx(prices["renyi"]["total"])
    assert summary["epsilon_by_bound"]["renyi"] == summary["epsilon"]
    mixed = hedgerow("synthesize", table, *GOOD, "--delta", 1e-7, "--out", "mixed")
    assert (mixed.code, "delta belongs to bound='renyi'" in mixed.text) == (2, True)


@pytest.mark.parametrize(("encoding", "tallest"), [("utf-8", "█"), ("ascii", "|")])
def test_a_terminal_gets_a_sketch_in_signs_it_has(monkeypatch, encoding, tallest):
    def show(screened: Screen, *, terminal: bool) -> str:
        file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
        console = Console(file=file, force_terminal=terminal, width=80, color_system=None)
        monkeypatch.setattr(screen, "_out", lambda: console)
        screened.utility(rows, shapes)
        file.flush()
        return file.buffer.getvalue().decode(encoding)

    values = np.exp(np.random.default_rng(1).normal(10, 1, 500))
    rows = tabulate({"copy": compare_copies(values, [2 * values])})
    shapes = bin_shapes(values, {"copy": [2 * values]})
    lines = show(Screen(), terminal=True).split("\n")
    assert max(map(len, lines)) <= 80
    drawn = {
        name: next(line for line in lines if line.startswith(f"{name} ")) for name in ("original", "copy")
    }
    assert all(tallest in line for line in drawn.values())
    assert len(drawn["copy"].rstrip()) > len(drawn["original"].rstrip())  # it lies further to the right
    assert "\\u" not in "".join(lines)
    assert "original " in (logged := show(Screen(), terminal=False))
    assert tallest + tallest not in logged
    assert show(Screen(quiet=True), terminal=True) == show(Screen(as_json=True), terminal=True) == ""


def test_figures_in_tables_read_well():
    figures = {-0.0: "0", 276543.21: "276,500", 1e12: "1e+12", 0.03366: "0.03366", None: "", np.nan: ""}
    assert [format_figure(value) for value in figures] == list(figures.values())


def test_json_is_json_and_quiet_is_quiet(hedgerow, table):
    made = json.loads(hedgerow("synthesize", table, *GOOD, "--out", "release", "--json").out)
    assert made["epsilon"] == 40.0
    assert made["files"] == ["synthetic-copy-1.csv"]
    sound = json.loads(hedgerow("verify", "release", "--json").out)
    assert sound == {
        "release": made["release"],
        "sound": True,
        "problems": [],
        "certificate_sha256": made["certificate_sha256"],
        "signed": False,
        "signer": None,
    }
    assert json.loads(hedgerow("inspect", "release", "--json").out)["columns"][0] == {
        "column": "x",
        "type": "int64",
    }
    rows = json.loads(hedgerow("compare", table, *QUICK, "--radius", "0.4,1.8", "--json").out)["standards"]
    assert [row["standard"] for row in rows] == ["unweighted", "adp", "range-averaged", "range-truncated"]
    kept = json.loads(hedgerow("inspect", "release", "--confidential", "--json").out)["confidential"]
    assert [row[""] for row in kept["utility"]] == ["original", "copy"]
    tried = json.loads(hedgerow("calibrate", table, *QUICK, "--at", 5, "--at", 0.001, "--json").out)[
        "targets"
    ]
    assert [row["met"] for row in tried] == ["no", "yes"]
    cost = json.loads(hedgerow("cost", table, *GOOD, "--json").out)
    assert cost["facts"]["spent so far"] == "40"
    assert [row[""] for row in cost["utility"]] == ["original", "copy"]
    assert "utility" not in made
    for command in (
        ("ledger", "list"),
        ("ledger", "verify"),
        ("ledger", "show", made["release"]),
        ("datasets",),
    ):
        json.loads(hedgerow(*command, "--json").out)
    quiet = hedgerow("verify", "release", "--quiet")
    assert (quiet.code, quiet.text) == (0, "")


def test_a_plan_and_its_command_make_the_same(hedgerow, table):
    known = ("--standard", "range-truncated", "--radius", "0.4,1.8", "--because", "printed")
    assert hedgerow("init", table, *GOOD, *known, "--out", "plan.yaml").code == 0
    assert hedgerow("init", "--plan", "plan.yaml", "--out", "plan.yaml").code == 3
    command = hedgerow("init", "--plan", "plan.yaml", "--command").out
    assert command.startswith("hedgerow synthesize ")
    assert hedgerow("synthesize", "--plan", "plan.yaml", "--copies", 2, "--out", "release").code == 0
    public = hr.Plan.load("release/public/plan.yaml")
    assert public.mapping() == hr.Plan.load("plan.yaml").public().mapping() | {"copies": 2}
    # What was published is enough to do it again, for whoever has the data.
    assert hedgerow("synthesize", table, "--plan", "release/public/plan.yaml", "--out", "again").code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--formula", "x ~ z"), 2, "--no-target"),
        (("--epsilon", 1), 2, "--formula is missing"),
        (("--formula", "x ~ z", "--epsilon", "much"), 2, "number"),
        (("--formula", "x ~ z", "--epsilon", 1, "--standrad", "adp"), 2, "standrad"),
        (("--formula", "x ~ z", "--epsilon", 1, "--standard", "apd"), 2, "Did you mean adp?"),
        (("--formula", "x ~ z", "--epsilon", 1, "--radius", "0.4,1.8"), 2, "range standard"),
        (("--formula", "x ~ __import__('os')", "--epsilon", 1), 2, "not allowed"),
        (("--formula", "x ~ z", "--epsilon", 1, "--plan", "absent.yaml"), 2, "absent.yaml"),
        (("--formula", "y ~ z", "--epsilon", 1), 3, "No column named 'y'"),
        (("--formula", "x ~ z", "--epsilon", 0.0001, "--draws", 200), 4, "cannot be met"),
    ],
)
def test_exit_codes_and_one_block(hedgerow, table, tmp_path, arguments, code, told):
    done = hedgerow("synthesize", table, *arguments, "--out", "release")
    assert done.code == code, done.err
    assert told in done.text
    assert "Traceback" not in done.text
    assert not (tmp_path / "release").exists()


def test_a_budget_that_does_not_cover_it(hedgerow, table):
    assert hedgerow("ledger", "budget", 50, "--dataset", "table", "--relation", "withheld").code == 0
    assert hedgerow("synthesize", table, *GOOD, "--dataset", "table", "--out", "first").code == 0
    refused = hedgerow("synthesize", table, *GOOD, "--out", "second")
    assert refused.code == 5
    assert "10.0 of 50.0" in refused.text
    assert hedgerow("cost", table, *GOOD).code == 5
    assert not Path("second").exists()


def test_a_budget_under_another_relation_alone_is_noted(hedgerow, table):
    relation = "range-truncated radius(0.4, 1.8)"
    hedgerow("ledger", "budget", 50, "--dataset", "table", "--relation", relation)
    noted = hedgerow("synthesize", table, *GOOD, "--dataset", "table", "--out", "release")
    assert f"budget under '{relation}', but none under 'withheld'" in noted.text


def test_pending_entries_are_listed_and_settled(hedgerow, table, monkeypatch, tmp_path):
    from hedgerow.errors import LedgerError

    def fail(self, *args, **given):
        raise LedgerError("locked.")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "confirm", fail)
        made = json.loads(hedgerow("synthesize", table, *GOOD, "--out", "release", "--json").out)
    release = made["release"]
    assert "pending" in hedgerow("ledger", "list").text
    assert hedgerow("ledger", "settle", release, "void").code == 2
    assert hedgerow("ledger", "settle", release, "released").code == 2
    assert hedgerow("ledger", "settle", "0" * 16, "spent").code == 3
    settled = (
        "ledger",
        "settle",
        release,
        "released",
        "--release",
        "release",
        "--note",
        "the folder was complete",
    )
    assert hedgerow(*settled).code == 0
    assert hedgerow("verify", "release", "--ledger", "ledger.sqlite").code == 0
    assert hedgerow("ledger", "settle", release, "spent").code == 3
    assert hedgerow("ledger", "export", "--out", "ledger.json").code == 0
    assert len(json.loads(Path("ledger.json").read_text())["entries"]) == 3
    assert hedgerow("ledger", "list", "--ledger", "absent.sqlite").code == 3
    assert not (tmp_path / "absent.sqlite").exists()


def test_a_locked_ledger(hedgerow, table, tmp_path, monkeypatch):
    """What was fitted waits longer than what begins."""
    monkeypatch.setattr(making, "_PATIENCE", 0.5)
    assert hedgerow("ledger", "budget", 100, "--dataset", "t", "--relation", "withheld").code == 0
    holder = sqlite3.connect(tmp_path / "ledger.sqlite", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    done = hedgerow("synthesize", table, *GOOD, "--dataset", "t", "--out", "release")
    holder.close()
    assert (done.code, "locked by another process for more than 0.5 s" in done.text) == (3, True)
    assert [path.name for path in tmp_path.iterdir() if "release" in path.name] == []
    assert hedgerow("synthesize", table, *GOOD, "--dataset", "t", "--out", "release").code == 0


def bad_file(kind: str, table: Path, folder: Path) -> Path:
    lines = table.read_text().splitlines()
    path = folder / "bad.csv"
    match kind:
        case "truncated Parquet":
            path = folder / "bad.parquet"
            formats.write(formats.read(table).frame, path, "parquet")
            path.write_bytes(path.read_bytes()[:-300])
        case "wrong encoding":
            path.write_bytes(
                "\n".join([lines[0] + ",n"] + [line + ",Müller" for line in lines[1:]]).encode("cp1252")
            )
        case "mixed types":
            path.write_text("\n".join([*lines, "many,1.0", "1000,2.0"]))
        case "duplicate headers":
            path.write_text("\n".join(["x,x", *lines[1:]]))
        case "formula cell":
            path.write_text(
                "\n".join([lines[0] + ",n"] + [line + ",=cmd|' /C calc'!A0" for line in lines[1:]])
            )
        case "ragged":
            path.write_text("\n".join([*lines, "1,2,3"]))
        case "empty":
            path.write_text("")
        case "not there":
            return folder / "absent.csv"
        case "a folder":
            path.mkdir()
    return path


@pytest.mark.parametrize(
    "kind",
    ["truncated Parquet", "wrong encoding", "mixed types", "duplicate headers", "formula cell", "ragged",
     "empty", "not there", "a folder"],
)  # fmt: skip
def test_files_that_cannot_be_used(hedgerow, table, tmp_path, kind):
    done = hedgerow("synthesize", bad_file(kind, table, tmp_path), *GOOD, "--out", "release")
    assert done.code == 3, done.text
    assert "Traceback" not in done.text
    assert done.err.count("error:") == 1
    for value in ("Müller", "many", "calc"):
        assert value not in done.text
    assert not any("release" in path.name or "ledger" in path.name for path in tmp_path.iterdir())


def test_formula_cells_can_be_escaped(hedgerow, table, tmp_path):
    bad = bad_file("formula cell", table, tmp_path)
    assert hedgerow("synthesize", bad, *GOOD, "--formulas", "escape", "--out", "release").code == 0
    assert ",'=cmd|" in Path("release/public/synthetic-copy-1.csv").read_text()
    assert hedgerow("synthesize", bad, *GOOD, "--drop", "n", "--out", "dropped").code == 0


@pytest.mark.slow
def test_ten_thousand_columns(hedgerow, tmp_path):
    frame = hr.datasets.lognormal(n=40, seed=3)
    more = pd.DataFrame({f"column{i}": range(i, i + 40) for i in range(9_998)})
    pd.concat([frame, more], axis=1).to_csv(tmp_path / "wide.csv", index=False)
    done = hedgerow("synthesize", "wide.csv", *GOOD, "--out", "release")
    assert done.code == 0, done.text[:2000]
    assert len(done.err) < 1000
    assert hedgerow("verify", "release").code == 0
    with Path("release/public/synthetic-copy-1.csv").open() as file:
        assert len(file.readline().split(",")) == 10_000


def rich_table() -> pa.Table:
    frame = hr.datasets.lognormal(n=60, seed=3)
    days = [date(2020, 1, 1 + i % 28) for i in range(60)]
    return pa.table(
        {
            "x": pa.array((frame["x"] * 100).round().astype("int32")),
            "z": pa.array(frame["z"]),
            "group": pa.array([("a", "b", "c")[i % 3] for i in range(60)]),
            "code": pa.array([i % 5 if i % 7 else None for i in range(60)], pa.int16()),
            "day": pa.array(days, pa.date32()),
            "note": pa.array([f"n{i}" if i % 4 else None for i in range(60)]),
        }
    )


@pytest.mark.parametrize(
    "kind",
    ["csv", "parquet", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("arrow", "stata", "spss"))],
)
def test_round_trips_by_format(hedgerow, tmp_path, kind):
    suffix = formats.Format(kind).suffix
    formats.write(rich_table(), tmp_path / f"in{suffix}", kind)
    formula = ("--formula", "x ~ z + group", "--draws", 200, "--epsilon", 60)
    done = hedgerow("synthesize", f"in{suffix}", *formula, "--out", "release")
    assert done.code == 0, done.text
    before = formats.read(tmp_path / f"in{suffix}")
    after = formats.read(tmp_path / "release" / "public" / f"synthetic-copy-1{suffix}")
    assert after.frame.schema.equals(before.frame.schema)
    for name in before.frame.column_names:
        same = after.frame.column(name).equals(before.frame.column(name))
        assert same == (name != "x"), name
    assert after.dictionary == before.dictionary
    for other in {"csv", "parquet", "arrow", "stata", "spss"} - {kind}:
        assert (
            hedgerow("synthesize", f"in{suffix}", *formula, "--format", other, "--out", f"to-{other}").code
            == 0
        )
        assert hedgerow("verify", f"to-{other}").code == 0


def test_labels_and_declared_missing_codes_come_back(hedgerow, tmp_path):
    frame = rich_table().select(["x", "z"]).to_pandas().assign(code=[1.0, 2.0, -9.0] * 20)
    pyreadstat.write_sav(
        frame, str(tmp_path / "in.sav"), column_labels={"x": "Pay"}, missing_ranges={"code": [-9.0]},
        variable_value_labels={"code": {1.0: "low", 2.0: "high"}},
    )  # fmt: skip
    declared = ("--dictionary", "{label: Pay}")
    assert hedgerow("synthesize", "in.sav", *GOOD, *declared, "--out", "release").code == 0
    _, meta = pyreadstat.read_sav(
        str(tmp_path / "release" / "public" / "synthetic-copy-1.sav"), user_missing=True
    )
    before, _ = pyreadstat.read_sav(str(tmp_path / "in.sav"), user_missing=True)
    after, _ = pyreadstat.read_sav(
        str(tmp_path / "release" / "public" / "synthetic-copy-1.sav"), user_missing=True
    )
    assert meta.column_names_to_labels["x"] == "Pay"
    assert meta.variable_value_labels["code"] == {1.0: "low", 2.0: "high"}
    assert (after["code"] == before["code"]).all()


def test_what_reading_and_writing_decided_is_said(hedgerow, table, tmp_path):
    lines = table.read_text().splitlines()
    rows = [f"{line},0{i}" for i, line in enumerate(lines[1:])]
    (tmp_path / "codes.csv").write_text("\n".join([lines[0] + ",zip", *rows]))
    done = hedgerow("synthesize", "codes.csv", *GOOD, "--out", "release")
    assert "'zip' is kept as text" in done.text
    categories = rich_table()
    coded = categories.set_column(2, "group", categories["group"].dictionary_encode())
    formats.write(coded, tmp_path / "coded.parquet", "parquet")
    done = hedgerow("synthesize", "coded.parquet", *GOOD, "--format", "stata", "--out", "stata")
    assert "categories written as codes" in done.text


def test_sas_in_is_parquet_out(hedgerow, tmp_path):
    frame = rich_table().select(["x", "z"]).to_pandas().astype(float)
    pyreadstat.write_xport(frame, str(tmp_path / "in.xpt"))
    assert hedgerow("synthesize", "in.xpt", *GOOD, "--out", "release").code == 0
    copy = formats.read("release/public/synthetic-copy-1.parquet").frame.to_pandas()
    assert (copy["z"] == frame["z"]).all()


def test_schemas_are_printed(hedgerow):
    for what in ("plan", "certificate"):
        jsonschema.Draft202012Validator.check_schema(json.loads(hedgerow("schema", what).out))
    assert hedgerow("schema", "ledger").code == 2


def test_questions_on_a_terminal(hedgerow, table, monkeypatch):
    answers = iter(["x", "z", "lognormal", "range-truncated", "0.4,1.8", "printed", 5.7, 3])
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer.prompt", lambda *_, **__: next(answers))
    assert hedgerow("init", table, "--out", "plan.yaml").code == 0
    plan = hr.Plan.load("plan.yaml")
    assert (plan.settings.column.formula, plan.settings.epsilon, plan.settings.copies, plan.because) == (
        "x ~ z",
        5.7,
        3,
        "printed",
    )


def answer(monkeypatch, *answers):
    """Typed one after the other; what cannot be is asked again."""
    typed = iter(answers)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer._click.termui.visible_prompt_func", lambda *_: next(typed))
    return typed


def test_answers_that_cannot_be_are_asked_again_at_once(hedgerow, table, monkeypatch):
    typed = answer(
        monkeypatch,
        "X2",
        "x",
        "zz",
        "z",
        "lognormall",
        "",
        "adpp",
        "strict",
        "9,1",
        "1,1e9",
        "known",
        "1",
        "2",
    )
    done = hedgerow("init", table, "--out", "plan.yaml")
    assert (done.code, next(typed, None)) == (0, None)
    for told in (
        "No column named 'X2'",
        "No column named 'zz'. Did you mean z?",
        "got 'lognormall'",
        "got 'adpp'",
    ):
        assert told in done.text
    settings = hr.Plan.load("plan.yaml").settings
    assert settings.column.formula == "x ~ z"
    assert settings.standard == hr.Strict(limits=(1, 1e9), reason="known")


def test_several_columns_may_be_named_in_the_answers(hedgerow, tmp_path, monkeypatch):
    frame = hr.datasets.lognormal(n=60, seed=3).assign(**{"net, €": 1.5})
    frame.to_csv(tmp_path / "two.csv", index=False)
    answer(monkeypatch, "x, `net, €`", "2", "")
    done = hedgerow("init", "two.csv", "--out", "plan.yaml")
    assert done.code == 0
    assert "Nothing says what 'x', 'net, €' can be, so normal is proposed" in done.err
    assert [column.outcome for column in hr.Plan.load("plan.yaml").settings.columns] == ["x", "net, €"]
    missed = hedgerow("init", "two.csv", "--protect", "x,net, €", "--epsilon", 1)
    assert missed.code == 2
    assert "Write `net, €`, in backticks" in missed.text


def test_leaving_the_questions_is_an_interrupt(hedgerow, table, monkeypatch):
    def leave(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("typer._click.termui.visible_prompt_func", leave)
    done = hedgerow("init", table)
    assert done.code == 130
    assert "Interrupted" in done.text


@pytest.mark.parametrize("standard", [["adp"], ["strict", "--limits", "1,1e9"]])
def test_amounts_at_the_end_of_the_doubles_are_released(hedgerow, tmp_path, standard):
    frame = hr.datasets.lognormal(n=60, seed=3)
    frame.loc[:2, "x"] = 1e308
    frame.to_csv(tmp_path / "far.csv", index=False)
    asked = ("--formula", "x ~ z", "--epsilon", 20, "--draws", 200, "--standard", *standard)
    assert hedgerow("synthesize", "far.csv", *asked, "--out", "release").code == 0


def test_an_unforeseen_error_shows_no_data(hedgerow, table, monkeypatch):
    def fail(*_, **__):
        secret = "123456789"
        raise ValueError(f"bad value {secret}")

    monkeypatch.setattr("hedgerow.release.make.prepare", fail)
    done = hedgerow("synthesize", table, *GOOD, "--out", "release")
    assert (done.code, "123456789" in done.text, "Traceback" in done.text) == (1, False, False)
    shown = hedgerow("synthesize", table, *GOOD, "--out", "release", "--debug")
    assert "Traceback" in shown.err
    assert "secret = " not in shown.err.replace(
        'secret = "123456789"', ""
    )  # its source line, never its locals


def test_help_has_examples_and_version_is_told(hedgerow):
    import typer

    group = typer.main.get_command(app)
    names = [(name,) for name in group.commands if name != "ledger"]
    names += [("ledger", name) for name in group.commands["ledger"].commands]
    for name in names:
        done = hedgerow(*name, "--help")
        assert done.code == 0
        assert "hedgerow " + " ".join(name) in done.text, name
    assert hr.__version__ in hedgerow("--version").out
    assert "5 budget" in hedgerow("--help").text


@pytest.mark.slow
def test_audit_and_contraction_print_what_they_found(hedgerow):
    hr.datasets.lognormal(160, seed=1).to_csv("sim.csv", index=False)
    found = json.loads(hedgerow("audit", "sim.csv", "--formula", "x ~ z", "--draws", "200", "--json").out)
    assert found["confidential"]
    assert found["largest_fixed"] < found["epsilon"]
    said = hedgerow("audit", "sim.csv", "--formula", "x ~ z", "--draws", "200", "--riskiest", "2").out
    assert "bounds the loss from below" in said
    drawn = ("audit", "sim.csv", "--formula", "x ~ z", "--draws", "200", "--picture", "audit.png")
    assert "confidential" in hedgerow(*drawn).out
    assert Path("audit.png").read_bytes().startswith(b"\x89PNG")
    assert Path("audit.png").stat().st_mode & 0o077 == 0
    assert hedgerow(*drawn).code == 3
    rows = json.loads(
        hedgerow("contraction", "sim.csv", "--formula", "x ~ z", "--draws", "100", "--json").out
    )
    assert [row["n"] for row in rows["sizes"]] == [10, 20, 40, 80, 160]


def test_attack_prints_a_lower_bound(hedgerow):
    hr.datasets.lognormal(60, seed=1).to_csv("sim.csv", index=False)
    asked = ("attack", "sim.csv", "--formula", "x ~ z", "--draws", "200", "--trials", "300")
    found = json.loads(hedgerow(*asked, "--json").out)
    assert (found["confidential"], found["breach"], found["trials"]) == (True, False, 300)
    assert "bounds ε from below" in hedgerow(*asked, "--record", 3).out


def test_a_strict_release(hedgerow):
    hr.datasets.lognormal(300, seed=1).to_csv("sim.csv", index=False)
    box = "{Intercept: [0, 2], z: [0.5, 1.5], sigma: [0.6, 1.6]}"
    made = hedgerow(
        "synthesize", "sim.csv", "--formula", "x ~ z", "--epsilon", "2", "--draws", "200", "--out", "release",
        "--standard", f"{{kind: strict, box: {box}, reason: published tables}}",
    )  # fmt: skip
    assert made.code == 0, made.err
    certificate = json.loads(Path("release/public/certificate.json").read_text())
    assert "ε-differentially private with ε = 2" in certificate["claim"]
    assert not any("not differential privacy" in caveat for caveat in certificate["not_covered"])
    assert "published tables" in Path("release/public/certificate.md").read_text()
    assert hedgerow("verify", "release").code == 0
    summary = json.loads(Path("release/confidential/summary.json").read_text())
    assert 0 < summary["acceptance"] <= 1
    assert 0 <= summary["edge_mass"] < 0.5
    assert "edge_mass" in hedgerow("inspect", "release", "--confidential").out
    assert "edge_mass" not in made.text + hedgerow("inspect", "release").text
    command = hedgerow("init", "--plan", "release/public/plan.yaml", "--command").out
    assert "box: {Intercept: [0, 2]" in command


def test_a_box_from_public_statements(hedgerow):
    data = hr.datasets.lognormal(300, seed=1)
    data[["z"]].to_csv("public.csv", index=False)
    data.to_csv("sim.csv", index=False)
    points = ("--at", "{z: 0, median: [1.5, 5]}", "--at", "{z: 4, median: [80, 250]}", "--spread", "2,6")
    asked = ("box", "public.csv", "--formula", "x ~ z", *points, "--epsilon", 2)
    found = json.loads(hedgerow(*asked, "--json").out)
    assert [row["factor"] for row in found["cost"]] == [1.0, 1.5, 2.0, 3.0]
    assert found["box"]["Intercept"][0] < 1 < found["box"]["Intercept"][1]
    line = hedgerow(*asked).out.splitlines()[0].removeprefix("--standard '").removesuffix("'")
    cost = ("cost", "sim.csv", "--formula", "x ~ z", "--epsilon", 2, "--standard", line)
    shown = json.loads(hedgerow(*cost, "--json").out)
    assert shown["advice"].startswith("Acceptance")
    assert shown["prices"][0]["bound"] == "strict"
    assert shown["prices"][0]["epsilon"] == pytest.approx(2.0, rel=1e-6)
    assert shown["wider_boxes"][0]["mean_weight"] == pytest.approx(found["cost"][0]["mean_weight"], rel=1e-4)
    assert "effective_records" in hedgerow(*cost).out
    assert "settled" in hedgerow("cost", "sim.csv", "--formula", "x ~ z").out
    priced = hedgerow("box", "public.csv", "--formula", "x ~ z", "--box", json.dumps(found["box"]), "--json")
    assert json.loads(priced.out)["cost"][0]["mean_weight"] < 1
    for wrong in (points[:4], points[4:], ("--box", "{z: 1}"), (*points, "--box", "{}"), ("--at", "[1]")):
        assert hedgerow("box", "public.csv", "--formula", "x ~ z", *wrong).code == 2


def test_a_corrected_release_says_so_and_costs_the_same(hedgerow, table):
    more = ("--debias", "--sampling", "stratified", "--out", "release")
    made = hedgerow("synthesize", table, *GOOD, *more)
    assert made.code == 0, made.err
    certificate = json.loads(Path("release/public/certificate.json").read_text())
    correction, prediction = certificate["processing"]
    assert "corrected by indirect inference" in correction
    assert "post-processing" in correction
    assert "the public columns that the range, the weights or the model read" in correction
    assert "stratified" in prediction
    assert "Processing after the draw" in Path("release/public/certificate.md").read_text()
    assert hr.Plan.load("release/public/plan.yaml").settings.debias
    assert hedgerow("verify", "release").code == 0
    assert hedgerow("synthesize", table, *GOOD, "--out", "plain").code == 0
    plain = json.loads(Path("plain/public/certificate.json").read_text())
    assert plain["processing"] == []
    assert (plain["epsilon"], plain["claim"]) == (certificate["epsilon"], certificate["claim"])
    refused = hedgerow("synthesize", table, *GOOD, "--standard", "unweighted", "--debias", "--out", "other")
    assert refused.code == 2
    assert "no weights whose bias" in refused.text


def test_files_with_confidential_settings_are_for_their_owner_and_outside_releases(hedgerow, table, tmp_path):
    before = os.umask(0)
    try:
        plan = ("init", table, "--formula", "x ~ z", "--epsilon", "40", "--seed", "7")
        assert hedgerow(*plan, "--out", "plan.yaml").code == 0
        assert hedgerow("synthesize", "--plan", "plan.yaml", "--draws", 200, "--out", "release").code == 0
        assert hedgerow("ledger", "export", "--out", "ledger.json").code == 0
    finally:
        os.umask(before)
    for name in ("plan.yaml", "ledger.json", "ledger.sqlite"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, name
    for command in (plan, ("ledger", "export")):
        done = hedgerow(*command, "--out", "release/public/x.json")
        assert done.code == 3
        assert "inside a release" in done.text
    assert hedgerow("verify", "release").code == 0
