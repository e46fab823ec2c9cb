"""What `verify` refuses: folders in folders, files that are none, certificates that contradict themselves."""

import hashlib
import json
import os
import shutil
import socket
import struct
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.errors import ReleaseError, SettingError
from hedgerow.models.families import FAMILIES
from hedgerow.privacy.bounds import LOCAL
from hedgerow.privacy.claims import NO_TARGET
from hedgerow.privacy.claims.caveats import write_caveat
from hedgerow.privacy.claims.neighbours import NEIGHBOURS
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.weights import caveat_if_recomputed
from hedgerow.release.certificate import Certificate, Price
from hedgerow.release.ledger import Ledger
from hedgerow.release.plan import Read
from hedgerow.release.plan.kinds import write
from hedgerow.release.verify.consistency import (
    ATOMS,
    ENDINGS,
    SHARPER,
    USUAL,
    certificate_problems,
    find_recomputed,
)
from hedgerow.release.verify.files import count_records, open_file, read_columns
from hedgerow.tables import files as formats

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("original")
    hr.datasets.lognormal(n=150, seed=3).to_csv(folder / "t.csv", index=False)
    plan = hr.Plan(
        formula="x ~ z", epsilon=80.0, copies=2, draws=200, data=folder / "t.csv", ledger=folder / "l"
    )
    return hr.make_release(plan, folder / "release").folder


@pytest.fixture
def release(original, tmp_path) -> Path:
    """A copy to spoil."""
    shutil.copytree(original, tmp_path / "release")
    return tmp_path / "release"


def rewrite(public: Path, **changes) -> None:
    """A certificate with other contents, as somebody writes it who keeps text and digests in step.

    Its page, which says what was claimed before, is left out.
    """
    shutil.rmtree(public.parent / "confidential", ignore_errors=True)
    (public / "index.html").unlink(missing_ok=True)
    given = Certificate.loads((public / "certificate.json").read_bytes())
    certificate = replace(given, **{"page": None, **changes})
    (public / "certificate.json").write_text(certificate.json())
    (public / "certificate.md").write_text(certificate.markdown())


def test_a_release_is_not_looked_for_inside_another(release, hedgerow):
    shutil.copytree(release / "public", release / "public" / "public")
    (release / "public" / "synthetic-copy-1.csv").write_text("x,z\n1,2\n")
    with pytest.raises(ReleaseError, match="of its own and one in public"):
        hr.verify_release(release / "public")
    assert hedgerow("inspect", release / "public").code == 3
    problems = hr.verify_release(release).problems
    assert "added, and not known to the certificate: public." in problems
    assert any(problem.startswith("synthetic-copy-1.csv was changed") for problem in problems)
    # Nor where the outer folder's certificate is gone: the inner one is not the release's.
    (release / "public" / "certificate.json").unlink()
    with pytest.raises(ReleaseError, match=r"certificate\.json is missing"):
        hr.verify_release(release)


def test_what_lies_beside_public_is_reported(release):
    (release / "original.csv").write_text("x,z\n")
    (release / "more\x1b[2J").mkdir()
    assert hr.verify_release(release).problems == (
        "beside public, and no part of a release: 'more\\x1b[2J', original.csv.",
    )
    assert hr.verify_release(release / "public").problems == ()
    shutil.rmtree(release / "confidential")
    (release / "confidential").write_text("")
    assert "confidential is not a folder." in hr.verify_release(release).problems


PARTS = [
    "public/synthetic-copy-1.csv", "public/certificate.json", "public/certificate.md", "public/plan.yaml",
    "public/certificate.json.sig", "confidential/summary.json",
]  # fmt: skip


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("kind", ["pipe", "socket", "folder"])
def test_what_is_no_file_is_neither_read_nor_waited_for(release, monkeypatch, name, kind):
    place = release / name
    place.unlink(missing_ok=True)
    monkeypatch.chdir(place.parent)
    if kind == "pipe":
        os.mkfifo(place, 0o600)
    elif kind == "socket":
        socket.socket(socket.AF_UNIX).bind(place.name)  # by a short name: its path may have 107 bytes
        place.chmod(0o600)
    else:
        place.mkdir(0o700)
    try:
        problems = hr.verify_release(release).problems
    except ReleaseError as error:
        problems = (str(error),)
    assert any("is not a file" in problem or "summary.json is missing" in problem for problem in problems)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("content", [None, "[" * 200_000])
def test_inspecting_waits_for_no_pipe_and_falls_into_no_depth(release, hedgerow, content):
    place = release / "confidential" / "summary.json"
    place.unlink()
    writer = threading.Timer(20, lambda: place.write_text(""))  # ends the wait, if any
    if content is None:
        os.mkfifo(place, 0o600)
        writer.start()
    else:
        place.write_text(content)
    done = hedgerow("inspect", release, "--confidential")
    waited = content is None and not writer.is_alive()
    writer.cancel()
    assert (done.code, "is not here, or was changed" in done.text, waited) == (3, True, False)


def test_what_was_opened_is_checked_not_what_lay_there_before(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    for name in ("pipe", "link", ".", "/dev/null"):
        with pytest.raises(ReleaseError, match="is not a file"), open_file(tmp_path / name):
            pass


@pytest.mark.timeout(20)
def test_a_file_of_another_size_is_not_read(release):
    os.truncate(release / "public" / "synthetic-copy-1.csv", 100 << 30)  # sparse: it takes no room
    size = Certificate.loads((release / "public" / "certificate.json").read_bytes()).copies[0].bytes
    assert hr.verify_release(release).problems == (
        f"synthetic-copy-1.csv was changed: it has {100 << 30} bytes, not {size}.",
    )


STRICT = {"standard": "Strict", "neighbour": NEIGHBOURS["Strict"]}
CONTRADICTIONS = {
    "ε of a copy above the total": ({"epsilon": Price(100.0, 80.0)}, "2 copies at ε = 100.0"),
    "ε of the copies below the total": ({"epsilon": Price(10.0, 80.0)}, "do not make 80.0"),
    "δ": ({"delta": Price(0.02, 0.01)}, "2 copies at δ = 0.02"),
    "δ below what draws support": ({"delta": Price(1e-9, 2e-9)}, "draws support no δ below"),
    "draws beyond the plan's": ({"draws": 10**6}, "counts 1000000 draws"),
    "draws without end": ({"draws": 10**400}, "a number of more than 20 digits"),
    "no δ": ({"delta": None}, "needs δ"),
    "no confidence": ({"confidence": None}, "needs confidence"),
    "certainty": ({"confidence": 1.0}, "must be below 1"),
    "words": ({"claim": "Each copy is ε-differentially private with ε = 0.1."}, "the claim is not the one"),
    "words without figures": ({"epsilon": None, "delta": None}, "states no ε, but claims something"),
    "no claim, but δ": ({"epsilon": None, "claim": NO_TARGET}, "has no δ"),
    "no claim, but a target": (
        {"epsilon": None, "delta": None, "claim": NO_TARGET}, "target ε: 80 and nothing",
    ),
    "figures": ({"epsilon": Price(2.0, 4.0)}, "the claim is not the one"),
    "a standard of its own": ({"standard": "Total", "claim": "Safe."}, "standard 'Total' is not known"),
    "another neighbour": ({"neighbour": NEIGHBOURS["RangeAveraged"]}, "neighbour is not that of"),
    "another standard": ({"standard": "Unweighted"}, "standard: 'adp' and 'unweighted'"),
    "a strict bound": ({"bound": "strict"}, "does not go with the bound strict"),
    "a strict standard": (STRICT, "does not go with the bound lipschitz"),
    "bound": ({"bound": "oscillation"}, "bound: 'lipschitz' and 'oscillation'"),
    "family": ({"family": "magic"}, "model: 'lognormal' and 'magic'"),
    "protected": ({"protected": "z"}, "protected column: 'x' and 'z'"),
    "protected and passed through": ({"unchanged": ("x", "z")}, "is among those passed through"),
    "in and out": ({"used_not_released": ("z",)}, "both released and not released"),
    "records": ({"records": 149}, "synthetic-copy-1.csv has 150 records, the certificate says 149"),
}  # fmt: skip


@pytest.mark.parametrize("how", CONTRADICTIONS)
def test_a_certificate_that_contradicts_itself(release, how):
    changes, told = CONTRADICTIONS[how]
    assert hr.verify_release(release / "public").problems == ()
    rewrite(release / "public", **changes)
    assert told in " ".join(hr.verify_release(release).problems)


@pytest.mark.parametrize("change", [{"bytes": 7}, {"format": "parquet"}, {"format": "exe"}, {"twice": True}])
def test_a_certificate_that_says_other_things_of_its_files(release, change):
    first, second = Certificate.loads((release / "public" / "certificate.json").read_bytes()).copies
    copies = (first, first) if "twice" in change else (first, replace(second, **change))
    rewrite(release / "public", copies=copies)
    told = {"bytes": "not 7", "twice": "copy 2 of format csv is named synthetic-copy-1.csv"}
    wanted = told.get(next(iter(change)), "synthetic-copy-2.csv has the format")
    assert wanted in " ".join(hr.verify_release(release).problems)


@pytest.mark.parametrize(
    ("line", "instead", "told"),
    [
        ("epsilon: 80", "epsilon: 4", "target ε: 4 and 80.0"),
        ("epsilon: 80", "epsilon: no-target", "target ε: nothing and 80.0"),
        ("copies: 2", "copies: 1", "number of copies: 1 and 2"),
        ("copies: 2\n", "", "number of copies: 1 and 2"),
        ("formula: x ~ z", "formula: '`pay day` ~ z'", "protected column: 'pay day' and 'x'"),
        ("formula: x ~ z", "formula: [x]", "protected column: nothing and 'x'"),
        ("kind: adp", "kind: unweighted", "standard: 'unweighted' and 'adp'"),
        ("kind: adp", "kind: censored", "bound: 'censored' and 'lipschitz'"),
        ("kind: adp", "kind: adp\n  public_weight: one", "public weight"),
        ("family: lognormal", "family: {kind: gamma}", "model: 'gamma' and 'lognormal'"),
        ("draws: 200", "draws: 100", "counts 200 draws, plan.yaml 100"),
        ("draws: 200", "draws: many", "counts 200 draws, plan.yaml 'many'"),
        ("version: 1", "version: 1\noutputs: {drop: [z]}", "drops a column"),
        ("version: 1", "version: 1\noutputs: {keep: [z]}", "keeps columns on purpose"),
    ],
)
def test_a_plan_that_says_other_things_than_its_certificate(release, line, instead, told):
    place = release / "public" / "plan.yaml"
    content = place.read_text().replace(line, instead)
    assert content != place.read_text()
    place.write_text(content)
    rewrite(release / "public", plan=hashlib.sha256(content.encode()).hexdigest())
    assert told in " ".join(hr.verify_release(release).problems)


def test_the_delta_of_a_renyi_price_is_the_plans(tmp_path):
    hr.datasets.lognormal(n=150, seed=3).to_csv(tmp_path / "t.csv", index=False)
    settings = {"formula": "x ~ z", "epsilon": 80.0, "bound": "renyi", "draws": 200}
    plan = hr.Plan(**settings, weights=hr.weights.ScalarWeights(0.5), data=tmp_path / "t.csv")
    public = (
        hr.make_release(replace(plan, ledger=str(tmp_path / "l")), tmp_path / "release").folder / "public"
    )
    assert hr.verify_release(public).problems == ()
    given = Certificate.loads((public / "certificate.json").read_bytes())
    words = {
        name: getattr(given, name).replace("δ = 0.000001", "δ = 0.000000000001")
        for name in ("claim", "plain")
    }
    rewrite(public, delta=Price(1e-12, 1e-12), **words)
    assert hr.verify_release(public).problems == (
        "plan.yaml and certificate.json differ in the δ: 1e-06 and 1e-12.",
    )


def test_a_certificate_of_line_breaks_is_read_in_no_time(release):
    assumed = Certificate.loads((release / "public" / "certificate.json").read_bytes()).assumed_public
    start = time.process_time()
    rewrite(release / "public", assumed_public=(replace(assumed[0], because="x" + "\n" * 300_000 + "# x"),))
    assert hr.verify_release(release).problems == ()
    assert time.process_time() - start < 5  # by the square it would be an hour
    assert "\n\\# x\n" in (release / "public" / "certificate.md").read_text()


def test_many_missing_files_are_told_in_one_line(release):
    copy = Certificate.loads((release / "public" / "certificate.json").read_bytes()).copies[0]
    copies = tuple(replace(copy, file=f"synthetic-copy-{n}.csv") for n in range(1, 2000))
    rewrite(release / "public", copies=copies)
    problems = hr.verify_release(release).problems
    assert problems[0].startswith("missing: synthetic-copy-10.csv, ")
    assert max(map(len, problems)) < 300


def test_an_infinite_figure_is_refused(release):
    place = release / "public" / "certificate.json"
    place.write_text(place.read_text().replace('"total": 80.0', '"total": 1e999'))
    with pytest.raises(ReleaseError, match=r"epsilon\.total"):
        hr.verify_release(release)


def test_formats_and_defaults_are_those_of_the_engine():
    written = [kind for kind in formats.Format if kind.writable]
    assert {kind.value: kind.suffix.removeprefix(".") for kind in written} == ENDINGS
    settings = hr.Plan(formula="x ~ z", epsilon=1.0).settings
    assert settings.column.family == USUAL["family"]
    for name in ("copies", "draws", "delta"):
        assert getattr(settings, name) == USUAL[name]
    assert (settings.bound.name, settings.standard) == (USUAL["bound"], hr.ADP())
    assert USUAL["standard"] == "adp"


@pytest.mark.parametrize(
    "weights",
    [
        hr.LinearWeights(),
        hr.SoftmaxWeights(),
        hr.LogisticWeights(),
        hr.InverseWeights(),
        hr.CapWeights(2.0),
        hr.ScalarWeights(0.5),
        hr.PlannedWeights(),
        hr.IdentificationWeights(0.1),
        hr.Reweighted(hr.LinearWeights()),
        hr.Reweighted(hr.ScalarWeights(0.5)),
        hr.Reweighted(hr.Reweighted(hr.InverseWeights())),
        hr.Reweighted(hr.IdentificationWeights(0.1)),
    ],
)
def test_what_weights_leave_uncovered_is_what_the_engine_says(weights):
    due = find_recomputed(write(weights, "weights"))
    assert ("" if due is None else write_caveat(due)) == caveat_if_recomputed(weights, scaled=True)


def test_bounds_and_families_that_plans_are_judged_by_are_those_of_the_engine():
    assert {bound.name for bound in LOCAL if bound.sharper} == {*SHARPER}
    plain = {name for name in FAMILIES if not name.startswith(("zero_", "student", "asinh"))}
    assert {name for name in plain if Settings.of("x ~ z", name).model.domain.atoms} == {*ATOMS}


@pytest.mark.parametrize("format", list(ENDINGS))
def test_records_are_counted_without_reading_them(tmp_path, format):
    frame = pd.DataFrame(
        {"x": np.arange(70_001.0), "n": ['say "a\nb"', "", "é", "d", "e", "f", "g"] * 10_000 + [""]}
    )
    path = tmp_path / f"copy.{ENDINGS[format]}"
    formats.write(frame, path, format)
    with open_file(path) as file:
        assert count_records(file, format) == 70_001
    path.write_bytes(b"nothing of the kind")
    with open_file(path) as file:
        if format == "csv":
            assert count_records(file, format) == -1  # not even the line of a header
        else:
            with pytest.raises(ReleaseError, match=f"cannot be read as {format}"):
                count_records(file, format)


def test_a_small_file_is_not_unpacked_to_be_counted(tmp_path):
    schema, path = pa.schema([("x", pa.float64())]), tmp_path / "copy-1.arrow"
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(path, schema, options=options) as writer:
        for rows in (20_000_000, 0, 5):
            writer.write_batch(pa.record_batch([np.zeros(rows)], schema))
    assert path.stat().st_size < 100_000
    usual = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(usual)  # counts from here on
    pa.set_memory_pool(pool)
    try:
        with open_file(path) as file:
            assert count_records(file, "arrow") == 20_000_005
    finally:
        pa.set_memory_pool(usual)
    assert pool.max_memory() < 1_000_000


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "cp1252", "shift_jis"])
def test_lines_are_counted_in_any_encoding(tmp_path, encoding):
    words = (
        "\u010a\u0a0a\U0001f40a" if encoding.startswith("utf") else "表" if encoding == "shift_jis" else "é"
    )
    (tmp_path / "copy.csv").write_bytes(("x,n\r\n" + f'1,"{words}\r\n"\r\n' * 1000).encode(encoding))
    with open_file(tmp_path / "copy.csv") as file:
        assert count_records(file, "csv") == 1000


def test_releases_of_version_1_still_verify(tmp_path):
    shutil.copytree(HERE / "release_version_1", tmp_path / "public")
    for folder in (tmp_path, tmp_path / "public"):
        assert hr.verify_release(folder).problems == ()
    for kept in json.loads((HERE / "certificates_version_1.json").read_text(encoding="utf-8")):
        certificate = Certificate.loads(json.dumps(kept).encode())
        assert certificate_problems(certificate) == [], certificate.standard


@pytest.mark.parametrize(
    ("state", "told"),
    [("pending", "its entry is pending"), ("spent", "its entry is spent"), ("void", "never became visible")],
)
def test_the_ledger_must_know_the_certificate_of_a_release(release, tmp_path, state, told):
    certificate = hr.verify_release(release).certificate
    with Ledger.open(tmp_path / "other.sqlite") as ledger:
        ledger.reserve(
            fingerprint="0" * 64, relation="withheld", epsilon=certificate.epsilon.total, copies=1,
            plan=certificate.plan, release=certificate.release,
        )  # fmt: skip
        if state != "pending":
            ledger.settle(certificate.release, state, note="test")
        problems = " ".join(hr.verify_release(release, ledger=ledger).problems)
    assert told in problems
    assert "recorded no certificate" in problems


def test_a_release_that_was_never_confirmed_is_held_against_the_certificate_announced(
    make, monkeypatch, tmp_path
):
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "confirm", lambda *_, **__: None)
        made = make()
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        problems = hr.verify_release(made.folder, ledger=ledger).problems
        assert "its entry is pending" in " ".join(problems)
        path = made.folder / "public" / "certificate.json"
        path.write_bytes(path.read_bytes().replace(made.certificate.date.encode(), b"2001-01-01"))
        problems = hr.verify_release(made.folder, ledger=ledger).problems
    assert "certificate.json is not the one the ledger recorded." in problems


def test_a_certificate_told_by_another_channel(release, hedgerow):
    sha256 = hashlib.sha256((release / "public" / "certificate.json").read_bytes()).hexdigest()
    assert hr.verify_release(release, certificate_sha256=sha256.upper()).problems == ()
    (problem,) = hr.verify_release(release, certificate_sha256="0" * 64).problems
    assert f"has the SHA-256 {sha256}, not the one" in problem
    with pytest.raises(SettingError, match="64 hex digits"):
        hr.verify_release(release, certificate_sha256=sha256[:-1])
    shown = hedgerow("verify", release)
    assert sha256 in shown.text
    assert "anybody may have made them" in shown.text
    assert hedgerow("verify", release, "--certificate-sha256", "0" * 64).code == 3
    assert "anybody" not in hedgerow("verify", release, "--certificate-sha256", sha256).text


def test_the_format_of_a_copy_is_shown_without_its_controls(release):
    path = release / "public" / "certificate.json"
    path.write_bytes(path.read_bytes().replace(b'"format": "csv"', b'"format": "csv\\u0007"', 1))
    problems = hr.verify_release(release).problems
    assert any("csv" in problem for problem in problems)
    assert all(problem.isprintable() for problem in problems)


ODD = {
    "csv": ["x", "z", 'a "b", c', " edge ", "=cmd", "größe", "two\nlines", "a;b"],
    "parquet": ["x", "z", 'a "b", c', " edge ", "größe", "", "a.b"],
    "arrow": ["x", "z", 'a "b", c', " edge ", "größe", ""],
    "stata": ["x", "z", "class", "größe", "a" * 32, "text"],
    "spss": ["x", "z", "CLASS", "größe", "a" * 64, "long_text_of_many_segments", "text"],
}


@pytest.fixture
def make_odd(tmp_path, monkeypatch):
    """A release whose columns have names that their format may just have."""

    def release(format, delimiter=",", encoding="utf-8", **more):
        monkeypatch.setenv("HEDGEROW_LEDGER", str(tmp_path / "l.sqlite"))
        frame = hr.datasets.lognormal(n=60, seed=3)
        for name in ODD[format][2:]:
            frame[name] = "w" * 700 if name.startswith("long") else "w" if name == "text" else range(60)
        if format == "csv":
            frame.to_csv(tmp_path / "t.csv", index=False, sep=delimiter, encoding=encoding)
            more["read"] = Read(encoding=encoding, delimiter=None if delimiter in ",;" else delimiter)
        else:
            frame.to_parquet(tmp_path / "t.parquet", index=False)
        outputs = hr.Outputs(format=format, formulas="escape", **more.pop("outputs", {}))
        plan = hr.Plan(formula="x ~ z", epsilon=60.0, draws=200, outputs=outputs, **more)
        place = tmp_path / ("t.csv" if format == "csv" else "t.parquet")
        return hr.make_release(replace(plan, data=str(place)), tmp_path / "release").folder / "public"

    return release


@pytest.mark.filterwarnings("ignore::hedgerow.HedgerowWarning")
@pytest.mark.parametrize(
    ("format", "dialect"),
    [
        *((format, {}) for format in ODD),
        ("csv", {"delimiter": ";"}),
        ("csv", {"delimiter": "~", "encoding": "cp1252"}),
        ("csv", {"delimiter": ";", "encoding": "utf-16"}),
        ("csv", {"encoding": "utf-8-sig"}),
    ],
)
def test_the_columns_of_a_copy_are_those_that_the_certificate_names(make_odd, format, dialect):
    public = make_odd(format, outputs={"drop": (ODD[format][2],)}, **dialect)
    assert hr.verify_release(public).problems == ()
    given = Certificate.loads((public / "certificate.json").read_bytes())
    assert len(given.unchanged) == len(ODD[format]) - 2
    rewrite(public, unchanged=given.unchanged[1:])
    assert "has columns that the certificate does not name: 'z'." in problems(public)
    rewrite(public, unchanged=(*given.unchanged, "w"))
    assert "lacks columns that the certificate names: 'w'." in problems(public)
    rewrite(public, unchanged=given.unchanged[::-1])
    assert "columns in another order" in problems(public)
    rewrite(public, unchanged=given.unchanged)
    assert hr.verify_release(public).problems == ()


def problems(public):
    return " ".join(hr.verify_release(public).problems)


def test_a_dictionary_that_leads_back_to_itself_is_left(tmp_path):
    """An SPSS record of negative length would be read for ever."""
    head = b"$FL2" + bytes(60) + struct.pack("<3i", 2, 1, 0) + bytes(100)
    path = tmp_path / "copy-1.sav"
    path.write_bytes(head[:176] + struct.pack("<4i", 7, 4, -16, 1))
    with path.open("rb") as file, pytest.raises(ReleaseError, match="cannot be read as spss"):
        read_columns(file, "spss", {"x"}, {})
