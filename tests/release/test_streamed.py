"""A release read block by block is the release of the table in memory, and leaves nothing else behind."""

import json
import os
import signal
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hedgerow as hr
from hedgerow import progress
from hedgerow.numerics import leaves
from hedgerow.release import make as making
from hedgerow.release.folder import Draft, find_drafts
from hedgerow.release.ledger import Ledger
from hedgerow.release.plan import Outputs
from hedgerow.release.streamed import copies as parts
from hedgerow.release.streamed import prepare as preparing
from hedgerow.tables.files import growing

ROWS, LEAF = 300, 64


@pytest.fixture(autouse=True)
def small_leaves(monkeypatch):
    monkeypatch.setattr(leaves, "LEAF", LEAF)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    random = np.random.default_rng(5)
    table = hr.datasets.lognormal(n=ROWS, seed=3)
    places = pd.Categorical(random.choice(["north", "south"], ROWS), categories=["north", "nowhere", "south"])
    key, notes = random.permutation(10**6)[:ROWS], random.choice(["a", "b", None], ROWS)
    pay = np.exp(1 + 0.5 * np.log(table["x"]) + 0.4 * random.normal(size=ROWS))
    return table.assign(place=places, key=key, note=notes, pay=pay, day=pd.Timestamp("2024-02-29"))


@pytest.fixture
def make(frame, tmp_path):
    """Makes a release of the table, from memory or block by block, both with the same ledger."""
    frame.to_parquet(tmp_path / "table.parquet", index=False, row_group_size=70)
    frame.to_csv(tmp_path / "table.csv", index=False)

    def release(name: str, *, stream: bool, **changes):
        asked = {"formula": "x ~ z + place", "epsilon": 40.0, "draws": 100, "seed": 3, "copies": 2}
        asked |= {"data": tmp_path / "table.parquet", "ledger": tmp_path / "ledger.sqlite", "dataset": "pay"}
        asked |= {"outputs": Outputs(drop=("key", "pay", "day"))} | changes
        asked["data"] = tmp_path / asked["data"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hr.HedgerowWarning)
            return hr.make_release(hr.Plan(**asked), tmp_path / name, anyway=True, stream=stream)

    return release


def read(made) -> list[pa.Table]:
    files = sorted((made.folder / "public").glob("synthetic-copy-*"))
    assert files
    if files[0].suffix == ".csv":
        return [file.read_bytes() for file in files]
    return [pq.read_table(file).replace_schema_metadata(None) for file in files]


def near(one: float | None, other: float | None) -> bool:
    return one == other if one is None or other is None else bool(np.isclose(one, other, rtol=1e-12, atol=0))


def left_over(folder: Path) -> list[str]:
    """Hidden things beside the release: drafts and scratch folders."""
    return sorted(place.name for place in folder.iterdir() if place.name.startswith("."))


COLUMNS = {
    "x": hr.Column("x ~ z + place"),
    "pay": hr.Column("pay ~ log(x) + z", declared=hr.Declared("number", multiple_of=0.1, range_max=4.0)),
}
SETTINGS = {
    "adp": {},
    "range": {
        "standard": hr.RangeTruncated(hr.Radius(0.4, 1.8)),
        "epsilon": 60.0,
        "weights": hr.CapWeights(4.0),
    },
    "renyi": {"preset": "recommended", "debias": False, "epsilon": 20.0},
    "strict": {"standard": hr.Strict(limits=(0.01, 1e4)), "epsilon": 5.0},
    "chain": {
        "formula": COLUMNS,
        "epsilon": 400.0,
        "rules": hr.Rules(derived={"twice": "2 * pay"}, checks=["pay <= x"]),
        "outputs": Outputs(drop=("key", "day")),
    },
    "recommended chain": {
        **{"formula": COLUMNS, "preset": "recommended", "epsilon": 20.0},
        "outputs": Outputs(drop=("key", "day")),
    },
    "strict chain": {
        "formula": COLUMNS,
        "standard": hr.Strict(limits={"x": (0.01, 1e4), "pay": (0.1, 1e3)}, margin=hr.Margin()),
        "epsilon": 60.0,
        "rules": hr.Rules(derived={"twice": "2 * pay"}, checks=["pay <= x"]),
        "outputs": Outputs(drop=("key", "day"), statistics=True),
    },
    "strict cells": {
        "formula": {
            "place": hr.Column("place ~ z", hr.Family("categorical", levels=["south", "north"])),
            "x": hr.Column("x ~ z + place", only_where="place != 'south'", otherwise=-1),
            "note": hr.Column(
                "note ~ log(x)", hr.Family("categorical", levels=["a", "b"]), missing="synthesized"
            ),
            "pay": hr.Column("pay ~ x", "beta", share_of="x"),
        },
        "standard": hr.Strict(limits={"x": (0.01, 1e4), "pay": (0.02, 0.98)}),
        "epsilon": 60.0,
        "sampling": "stratified",
        "outputs": Outputs(drop=("key", "day"), statistics=True),
    },
    "strict cells from csv": {
        "data": "table.csv",
        "formula": {"note": hr.Column("note ~ z", hr.Family("categorical", levels=["a", "b"]))},
        "standard": hr.Strict(limits={}),
        "epsilon": 8.0,
        "outputs": Outputs(drop=("key", "pay", "x")),
    },
    "cells": {
        "formula": {
            "note": hr.Column(
                "note ~ place",
                hr.Family("dirichlet", levels=["a", "b"]),
                missing="synthesized",
                kinds_by="place",
            ),
            "x": hr.Column("x ~ z + C(note)", only_where="note != 'b'", otherwise=-1, filler=2.0),
            "key": hr.Column("key ~ z", codes=(7,), kinds_by="1", declared=hr.Declared("integer")),
            "pay": hr.Column("pay ~ z", "normal", share_of="key", missing="withheld"),
        },
        "epsilon": 900.0,
        "rules": hr.Rules(derived={"twice": "2 * pay"}, checks=["pay <= x"]),
        "outputs": Outputs(drop=("day",)),
    },
    "classes from csv": {
        "data": "table.csv",
        "formula": {
            "note": hr.Column(
                "note ~ place + C(day)", hr.Family("dirichlet", levels=["a", "b"]), missing="public"
            )
        },
        **{"bound": "renyi", "weights": hr.ScalarWeights(0.5), "epsilon": None},
        "outputs": Outputs(drop=("key", "pay")),
    },
    "csv": {"outputs": Outputs(format="csv", drop=("key", "pay"))},
    "from csv": {"data": "table.csv", "outputs": Outputs(drop=("key", "pay"))},
}


def test_a_release_by_blocks_verifies_and_leaves_nothing_else(make, tmp_path):
    made = make("release", stream=True, formula="x ~ z", copies=1)
    assert hr.verify_release(made.folder).problems == ()
    (copy,) = read(made)
    assert (copy.num_rows, copy.column_names) == (ROWS, ["x", "z", "place", "note"])
    assert left_over(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_a_release_by_blocks_is_that_of_the_table_in_memory(name, make, tmp_path):
    held, streamed = (
        make(f"{name}-{word}", stream=word == "streamed", **SETTINGS[name]) for word in ("held", "streamed")
    )
    assert read(streamed) == read(held)
    assert hr.verify_release(streamed.folder).problems == ()
    certificates = [replace(made.certificate, release="", copies=(), page="") for made in (held, streamed)]
    assert certificates[0] == certificates[1]
    assert streamed.checks == held.checks
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        one, two = [entry for entry in ledger.entries() if entry.event == "reserved"]
    same = ("fingerprint", "relation", "epsilon", "bound", "delta", "plan", "dataset")
    assert [getattr(one, key) for key in same] == [getattr(two, key) for key in same]
    assert two.sketch is None  # the ledger had that very one already
    assert near(two.withheld, one.withheld)
    curves = [json.loads(entry.curve) if entry.curve else {} for entry in (one, two)]
    assert curves[0].keys() == curves[1].keys()
    for key in curves[0]:
        assert np.allclose(
            *(np.array(curve[key], dtype=float) for curve in curves), rtol=1e-12, equal_nan=True
        )
    summaries = [
        json.loads((made.folder / "confidential" / "summary.json").read_text()) for made in (held, streamed)
    ]
    for key in ("epsilon", "total_epsilon", "certified_epsilon", "scale", "clipped", "rows", "mean_alpha"):
        assert near(summaries[0].get(key), summaries[1].get(key)), key
    assert summaries[0]["moved_to_declared_limits"] == summaries[1]["moved_to_declared_limits"]
    inside = [made.folder / "confidential" for made in (held, streamed)]
    assert sorted(place.name for place in inside[0].iterdir()) == sorted(
        place.name for place in inside[1].iterdir()
    )
    statistics = [made.folder / "public" / "statistics.json" for made in (held, streamed)]
    published = [file.read_bytes() if file.exists() else None for file in statistics]
    assert published[0] == published[1]
    assert (published[0] is None) == (name not in ("strict chain", "strict cells"))
    if (inside[0] / "records.parquet").exists():
        assert pq.read_table(inside[0] / "records.parquet") == pq.read_table(inside[1] / "records.parquet")
    assert left_over(tmp_path) == []


@pytest.mark.slow
def test_a_folder_of_files_is_always_read_by_blocks(make, frame, tmp_path):
    whole = make("whole", stream=False)
    (tmp_path / "parts").mkdir()
    for number, first in enumerate(range(0, ROWS, 90)):
        frame.iloc[first : first + 90].to_parquet(tmp_path / "parts" / f"{number}.parquet", index=False)
    assert read(make("parts-made", stream=False, data=tmp_path / "parts")) == read(whole)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"family": "gamma"}, "gamma family .*without --stream, or use the normal"),
        ({"debias": True}, "debias"),
        ({"unit": "key", "rows_per_unit": 1}, "unit"),
        ({"outputs": Outputs(format="stata")}, "stata is not written"),
        ({"weights": hr.weights.IdentificationWeights(0.1, ["place"])}, "IdentificationWeights"),
        ({"data": "table.dta"}, "table.dta"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_read(changes, words, make, monkeypatch, tmp_path):
    monkeypatch.setattr(preparing, "spool", lambda *_, **__: pytest.fail("it was read"))
    with pytest.raises(hr.HedgerowError, match=words):
        make("release", stream=True, **changes)
    assert left_over(tmp_path) == []
    assert not (tmp_path / "ledger.sqlite").exists()


def test_a_sheet_or_a_scratch_folder_that_would_go_unused_is_refused(hedgerow, make, tmp_path):
    """`make` writes the tables."""
    asked = ("--formula", "x ~ z", "--epsilon", 40, "--out", "release")
    for name in ("table.parquet", "table.csv"):
        done = hedgerow("synthesize", name, *asked, "--stream", "--sheet", "one")
        assert (done.code, "Leave --sheet out" in done.err) == (2, True)
    done = hedgerow("synthesize", "table.csv", *asked, "--scratch", ".")
    assert (done.code, "Say --stream, or leave it out" in done.text) == (2, True)
    done = hedgerow("synthesize", "table.csv", *asked, "--workers", 0)
    assert (done.code, "--workers: 0 processes" in done.text) == (2, True)
    nobody = ("--cluster", "tls://127.0.0.1:9")  # who is not asked before the plan is known to be good
    done = hedgerow("synthesize", "table.csv", *asked, "--format", "stata", *nobody)
    assert (done.code, "stata is not written" in done.text) == (2, True)
    assert left_over(tmp_path) == []
    assert not (tmp_path / "ledger.sqlite").exists()


def test_cells_that_a_spreadsheet_would_run_are_counted_in_all_rows(make, frame, tmp_path):
    """Not in those alone by which a plan is settled."""
    frame.assign(note="=1+1").to_parquet(tmp_path / "run.parquet", index=False)
    csv = Outputs(format="csv", drop=("key", "pay", "day"))
    for stream in (False, True):
        with pytest.raises(hr.HedgerowError, match=rf"{ROWS} text cells would run .* 'note' \({ROWS}\)"):
            make(f"release-{stream}", stream=stream, data="run.parquet", outputs=csv)
    assert left_over(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("data", ["gaps.parquet", "gaps.csv"])
@pytest.mark.parametrize("name", ["adp", "chain", "strict"])
def test_rows_that_lack_a_value_are_dropped_as_in_memory(name, data, make, frame, tmp_path):
    """Others' gaps stay, and so do levels that only dropped rows have; the file's gaps are counted."""
    random = np.random.default_rng(8)
    gaps = frame.assign(
        x=frame["x"].where(random.random(ROWS) > 0.1), place=frame["place"].where(random.random(ROWS) > 0.1)
    )
    gaps.loc[:69, "x"] = None
    gaps.to_parquet(tmp_path / "gaps.parquet", index=False, row_group_size=70)
    gaps.to_csv(tmp_path / "gaps.csv", index=False)
    asked = SETTINGS[name] | {"data": data, "missing": "drop"}
    held, streamed = (make(f"{data}-{word}", stream=word, **asked) for word in (False, True))
    assert read(held) == read(streamed)
    assert held.certificate.assumed_public == streamed.certificate.assumed_public
    one, two = (
        json.loads((made.folder / "confidential" / "summary.json").read_text()) for made in (held, streamed)
    )
    for key in ("rows", "dropped_rows", "missing"):
        assert one[key] == two[key], key
    assert one["dropped_rows"] > 70


def test_a_file_of_incomplete_rows_alone_is_refused(make, frame, tmp_path):
    frame.assign(x=np.nan).to_parquet(tmp_path / "none.parquet", index=False)
    for stream in (False, True):
        with pytest.raises(hr.HedgerowError, match="All 300 rows lack a value"):
            make("release", stream=stream, data="none.parquet", missing="drop")
    assert left_over(tmp_path) == []


def test_a_label_that_nobody_declared_is_said_to_be_in_its_rows(make, frame, tmp_path):
    frame.assign(note="a").assign(note=lambda t: t["note"].where(t.index != 70, "c")).to_parquet(
        tmp_path / "odd.parquet", index=False
    )
    family = hr.Family("dirichlet", levels=["a", "b"])
    with pytest.raises(hr.HedgerowError, match="In rows 65 to 128: Column 'note' has 1 values in 64 rows"):
        make("release", stream=True, data="odd.parquet", formula="note ~ place", family=family)
    assert left_over(tmp_path) == []


class StopError(Exception):
    """Something unforeseen."""


PHASES = {
    "spooling": (preparing, "spool", []),
    "looking": (preparing, "settle", []),
    "fingerprint": (Ledger, "fingerprint", []),
    "fitting": (preparing, "fit_leaves", []),
    "before the spend": (Ledger, "reserve", []),
    "after the spend": (Draft, "begin", ["reserved", "void"]),
    "writing": (parts.WritePart, "take", ["reserved", "void"]),
    "confidential": (making, "write_confidential", ["reserved", "void"]),
    "before the rename": (Draft, "publish", ["reserved", "publishing", "void"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(
    "error", [StopError(), OSError(28, "No space left on device"), KeyboardInterrupt()], ids=repr
)
def test_a_failure_in_any_phase_leaves_nothing_and_spends_nothing(phase, error, make, monkeypatch, tmp_path):
    owner, name, events = PHASES[phase]

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(owner, name, fail)
    with pytest.raises(BaseException) as raised:
        make("release", stream=True)
    assert "Nothing was written or spent." in getattr(raised.value, "__notes__", [])
    assert left_over(tmp_path) == []
    assert not (tmp_path / "release").exists()
    if (tmp_path / "ledger.sqlite").exists():
        with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
            assert [entry.event for entry in ledger.entries()] == events
            assert all(balance.spent == 0 for balance in ledger.balance())


@pytest.mark.slow
def test_a_full_disk_is_said_in_one_sentence(make, monkeypatch, tmp_path):
    write, room = growing.Growing.write, 3000

    def fill(self, content):
        nonlocal room
        room -= len(content)
        if room < 0:
            raise OSError(28, "No space left on device", str(tmp_path))
        return write(self, content)

    monkeypatch.setattr(growing.Growing, "write", fill)
    with pytest.raises(hr.HedgerowError, match="cannot be written") as told:
        make("release", stream=True)
    assert str(tmp_path) not in str(told.value)
    assert left_over(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name
)
@pytest.mark.parametrize(
    ("phase", "events"),
    [
        ("looking", []),
        ("fitting", []),
        ("after the spend", ["reserved"]),
        ("writing", ["reserved"]),
        ("before the rename", ["reserved", "publishing"]),
    ],
)
def test_what_a_killed_process_leaves_is_removed_by_the_next(
    number, phase, events, make, monkeypatch, tmp_path
):
    owner, name, _ = PHASES[phase]
    make("warm", stream=True, ledger=tmp_path / "warm.sqlite")  # so that the child only has to go on
    child = os.fork()
    if not child:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        setattr(owner, name, lambda *_, **__: signal.raise_signal(number))
        try:
            make("release", stream=True)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    killed = number is signal.SIGKILL
    assert os.WIFSIGNALED(status) == killed
    assert not (tmp_path / "release").exists()
    scratch = [name for name in left_over(tmp_path) if "spool" in name]
    assert len(scratch) == killed
    assert all(not place.stat().st_mode & 0o077 for place in tmp_path.glob(".*"))
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        if killed:
            assert [entry.event for entry in ledger.pending()] == events[:1]
        for entry in ledger.pending():
            assert ledger.settle(entry.release, "void", note="test: it was killed").event == "void"
        assert all(balance.spent == 0 for balance in ledger.balance())
    assert find_drafts(tmp_path / "release") == []
    make("release", stream=True)
    assert left_over(tmp_path) == []


@pytest.mark.slow
def test_parts_hold_what_is_released_and_nothing_else(make, monkeypatch):
    take, seen = parts.WritePart.take, []

    def look(self, leaf):
        part = take(self, leaf)
        seen.append((part.column_names, part.column("place").chunk(0).dictionary.to_pylist()))
        return part

    monkeypatch.setattr(parts.WritePart, "take", look)
    make("release", stream=True)
    assert len(seen) == 2 * -(-ROWS // LEAF)
    assert all(names == ["x", "z", "place", "note"] for names, _ in seen)
    assert all(levels == ["north", "south"] for _, levels in seen)


@pytest.mark.slow
def test_the_owner_is_told_what_was_looked_at_on_some_rows(make, monkeypatch):
    monkeypatch.setattr(preparing, "COMPARED", 100)
    made = make("release", stream=True)
    inside = made.folder / "confidential"
    page, summary = (inside / "report.html").read_text(), json.loads((inside / "summary.json").read_text())
    assert "evenly spaced" in page
    assert f"The violin holds 100 of {ROWS} records" in page
    assert f"None of {ROWS} records is flagged" in page  # all were asked
    assert summary["rows"] == summary["gauge"]["of"] == ROWS
    report = json.loads((inside / "report.json").read_text())
    records = pq.read_table(inside / "records.parquet").to_pandas()
    dearest = records.sort_values("price", ascending=False, kind="stable")
    assert [row["record"] for row in report["records"]["riskiest"]] == dearest["record"].head(20).tolist()
    drawn = report["records"]  # the dearest and the riskiest of all, which need not be among the hundred
    close = partial(np.testing.assert_allclose, rtol=1e-5)
    close(drawn["price"]["highest"], dearest["price"].head(12))
    close(drawn["alpha_by_risk"]["dearest"]["risk"], dearest["risk"].head(20))
    close(drawn["alpha_by_risk"]["risk"], records["risk"].sort_values(ascending=False).head(20))
    close(drawn["alpha"]["lowest"], records["alpha"].sort_values().head(3))
    assert drawn["price"]["count"] == 100
    assert report["columns"][0]["records"] == 100
    assert report["claim"]["records"] == ROWS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adp", "chain"])
def test_the_worth_of_what_is_left_is_that_of_all_records(name, make, monkeypatch):
    monkeypatch.setattr(preparing, "COMPARED", 100)
    inside = make("release", stream=True, **SETTINGS[name]).folder / "confidential"
    gauge = json.loads((inside / "summary.json").read_text())["gauge"]
    worth = pq.read_table(inside / "records.parquet")["power"].to_numpy().sum()
    for one in (gauge, *gauge["columns"].values()):
        assert near(one["records"], worth)
        assert one["of"] == ROWS


@pytest.mark.slow
def test_of_cells_it_is_that_of_the_rows_that_have_one(make, monkeypatch):
    monkeypatch.setattr(preparing, "COMPARED", 100)
    made = [make(f"release-{stream}", stream=stream, **SETTINGS["cells"]) for stream in (False, True)]
    inside = [each.folder / "confidential" / "summary.json" for each in made]
    held, streamed = (json.loads(file.read_text())["gauge"]["columns"] for file in inside)
    assert held.keys() == streamed.keys() == {"note", "x", "key", "pay"}
    for name, one in held.items():
        assert near(one["records"], streamed[name]["records"])
        assert one["of"] == streamed[name]["of"]
    assert held["x"]["of"] < ROWS


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["truncated", "changing", "gone"])
def test_a_file_that_is_not_whole_is_refused(kind, make, monkeypatch, tmp_path):
    data = tmp_path / "table.parquet"
    if kind == "truncated":
        data.write_bytes(data.read_bytes()[:-500])
    elif kind == "gone":
        data.unlink()
    else:
        batches = pq.ParquetFile.iter_batches

        def change(self, *args, **given):
            for batch in batches(self, *args, **given):
                data.touch()
                yield batch

        monkeypatch.setattr(pq.ParquetFile, "iter_batches", change)
    with pytest.raises(hr.HedgerowError, match="table") as told:
        make("release", stream=True)
    assert "Nothing was written or spent." in told.value.__notes__
    assert left_over(tmp_path) == []


@pytest.mark.slow
def test_a_messy_table_gives_the_same_release_by_blocks(make, tmp_path):
    """Codes, gaps in public columns, ranges in columns that are dropped, heavy tails, many dummies."""
    random, rows = np.random.default_rng(7), 900
    sector = random.integers(0, 25, rows)
    x = np.exp(2 + 0.1 * sector + 0.8 * random.standard_t(3, rows))
    table = pd.DataFrame(
        {
            "x": x,
            "sector": pd.Categorical([f"s{code:02d}" for code in sector]),
            "low": x * random.uniform(0.2, 0.9, rows),
            "high": x * random.uniform(1.1, 5.0, rows),
            "age": pd.array(
                np.where(random.random(rows) < 0.1, None, random.integers(18, 90, rows)), "Int64"
            ),
            "free text": random.choice(["=no formula", "b, c", None], rows),
            "weight": random.uniform(1, 9, rows),
        }
    )
    table.to_parquet(tmp_path / "messy.parquet", index=False, row_group_size=101)
    asked = {"formula": "x ~ sector", "data": tmp_path / "messy.parquet", "dataset": "messy", "epsilon": 90.0}
    asked |= {"standard": hr.RangeTruncated(hr.Bounds("low", "high")), "design_weight": "weight"}
    asked |= {"outputs": Outputs(drop=("low", "high")), "sampling": "stratified"}
    held, streamed = (make(word, stream=word == "streamed", **asked) for word in ("held", "streamed"))
    assert read(held) == read(streamed)
    assert streamed.certificate.used_not_released == ("low", "high")


def test_a_line_says_how_long_writing_will_take(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    lines = progress._Lines()
    lines.begin_step("writing copy 1 of 2")
    lines._begun -= 100
    lines.update(progress.WRITING, 1, 4)
    assert "writing copy 1 of 2, blocks written 1 of 4, about 5 min left" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_signals_that_end_a_process_are_exceptions_meanwhile(number):
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with preparing._ending_by_exceptions():
            end = signal.getsignal(number)
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    with pytest.raises(SystemExit):
        end(number, None)
