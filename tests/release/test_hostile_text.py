"""Text that is no text, numbers too small to divide, streams that cannot be written: one clear end each.

Nothing is spent on what is refused, and no certificate is written that does not verify.
"""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import hedgerow as hr
from hedgerow.errors import DataError, ReleaseError, SettingError
from hedgerow.release.certificate import Certificate

LONE = "a\udcffb"  # a byte of an argument that is not UTF-8
QUICK = ("--formula", "x ~ z", "--draws", 200, "--epsilon", 40)
STRICT = hr.Strict({"Intercept": (0, 20), "z": (-1, 1), "sigma": (0.5, 2)}, reason="r")


@pytest.mark.parametrize("flag", ["dataset", "ledger", "because", "encoding", "text", "drop", "formula"])
def test_settings_that_are_no_text_are_refused_before_anything_is_read(hedgerow, table, flag):
    ranged = ("--standard", "range-truncated", "--radius", "0.1,9") if flag == "because" else ()
    done = hedgerow("synthesize", table, *QUICK, *ranged, f"--{flag}", LONE, "--out", "release")
    assert done.code == 2
    assert "is not UTF-8 text" in done.text
    assert sorted(path.name for path in Path().iterdir()) == ["table.csv"]


@pytest.mark.parametrize("name", [LONE, "x" * 240, "x" * 2000])
def test_a_folder_name_that_cannot_be_kept_is_refused_before_the_spend(hedgerow, table, name):
    done = hedgerow("synthesize", table, *QUICK, "--out", name)
    assert done.code == 3
    assert "too long, or not UTF-8" in done.text
    assert not Path("ledger.sqlite").exists()


def test_a_folder_above_may_have_any_name(hedgerow, table):
    Path(LONE).mkdir()
    for command in (("synthesize", table, *QUICK, "--out"), ("verify",), ("inspect", "--json"), ("inspect",)):
        done = hedgerow(*command, f"{LONE}/release")
        assert done.code == 0, done.err
    assert hedgerow("init", table, *QUICK, "--out", f"{LONE}.yaml").code == 0


@pytest.mark.parametrize("flag", ["dataset", "relation", "note"])
def test_a_ledger_keeps_text_only(hedgerow, flag):
    given = {"dataset": "d", "relation": "withheld", "note": "n"} | {flag: LONE}
    done = hedgerow("ledger", "budget", 1, *(f"--{name}={value}" for name, value in given.items()))
    assert done.code == (2 if flag == "dataset" else 3)
    assert ("printable characters" if flag == "dataset" else "not UTF-8 text") in done.text
    assert hedgerow("ledger", "budget", 1, "--dataset", "d", "--relation", "withheld").code == 0
    assert hedgerow("ledger", "verify").code == 0


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_column_names_that_are_no_text_are_refused(hedgerow, tmp_path, kind):
    frame = pa.table({"x": np.arange(1.0, 30), "z": np.arange(29) % 7, "abcd": np.arange(29)})
    path = tmp_path / f"t.{kind}"
    if kind == "parquet":
        pa.parquet.write_table(frame, path)
    else:
        pa.feather.write_feather(frame, path, compression="uncompressed")
    path.write_bytes(path.read_bytes().replace(b"abcd", b"ab\xff\xfe"))
    done = hedgerow("synthesize", path, *QUICK, "--out", "release")
    assert done.code == 3
    assert "not a whole" in done.text


def test_column_names_must_fit_into_a_certificate(make, tmp_path):
    names = {"N" * 2**19 + str(place): np.arange(150) for place in range(3)}
    frame = hr.datasets.lognormal(n=150, seed=3).to_dict("list")
    pa.parquet.write_table(pa.table({**frame, **names}), tmp_path / "long.parquet")
    with pytest.raises(DataError, match="column names have"):
        make(data=tmp_path / "long.parquet")


def test_a_certificate_that_is_no_text_is_refused(make):
    content = json.loads(make().certificate.json())

    def places(value, path=()):
        if isinstance(value, dict):
            return [place for key in value for place in places(value[key], (*path, key))]
        if isinstance(value, list):
            return [place for key, item in enumerate(value) for place in places(item, (*path, key))]
        return [path] if isinstance(value, str) else []

    for *way, last in places(content):
        changed = json.loads(json.dumps(content))
        inner = changed
        for key in way:
            inner = inner[key]
        inner[last] += "\ud800"
        with pytest.raises(ReleaseError):
            Certificate.loads(json.dumps(changed).encode())
    for changed in (content | {"\ud800": 1}, content | {"software": {"\ud800": "1"}}):
        with pytest.raises(ReleaseError):
            Certificate.loads(json.dumps(changed).encode())


@pytest.mark.parametrize(("epsilon", "copies"), [(5e-324, 1), (5e-324, 3), (1e-310, 3), (3e-308, 3)])
def test_an_epsilon_too_small_to_divide_is_refused(make, tmp_path, epsilon, copies):
    with pytest.raises(SettingError, match=r"at least 2\.22507e-308"):
        make(epsilon=epsilon, copies=copies, standard=STRICT)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_the_smallest_epsilon_makes_a_certificate_that_verifies(make):
    made = make(epsilon=7e-308, copies=3, standard=STRICT)
    assert hr.verify_release(made.folder).problems == ()


def test_a_reason_that_is_no_text_is_refused(make, tmp_path):
    standard = hr.Strict({"Intercept": (0, 20), "z": (-1, 1), "sigma": (0.5, 2)}, reason=LONE)
    with pytest.raises(SettingError, match="not UTF-8 text"):
        make(standard=standard)
    assert not (tmp_path / "ledger.sqlite").exists()


def test_numbers_beyond_all_bounds_are_refused(hedgerow, table):
    for flag in ("--draws", "--copies"):
        for digits in (25, 400):
            done = hedgerow("synthesize", table, *QUICK, flag, "9" * digits, "--out", "release")
            assert done.code == 2
            assert "at most" in done.text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
def test_streams_that_are_closed_or_full(tmp_path):
    def run(redirected: str, arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            ["sh", "-c", f'exec "{sys.executable}" -m hedgerow {arguments} {redirected}'],
            capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False,
            env=os.environ | {"HEDGEROW_LEDGER": "ledger.sqlite", "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    for arguments in ("schema plan", "--help", "--version", "ledger --help"):
        code, said = run(">/dev/full", arguments)
        told = "Standard output or error cannot be written (No space left" in said
        assert (code, told, "Traceback" in said) == (3, True, False)
    # The ledger's files would take the numbers of the closed streams, and what is printed would go into them.
    budget = "ledger budget 1 --dataset d --relation withheld"
    assert run(">&- 2>&- <&-", budget) == (0, "")
    assert run("2>&-", "verify nothing") == (3, "")
    assert run("2>/dev/full", "verify nothing") == (3, "")
    code, said = run("", "ledger verify")
    assert (code, "sound" in said) == (0, True)
    # Whoever reads one line, as `| head -1` does, ends nothing and hears of nothing.
    reader = f'{sys.executable} -c "import os, time; os.close(0); time.sleep(3)"'
    for arguments in ("ledger list", "schema plan", "ledger list --json"):
        code, said = run(f"| {reader}", arguments)
        assert (code, said) == (0, "")


def test_a_disk_without_room_is_not_called_a_stream(hedgerow, monkeypatch):
    """A write to an open file fails without the file's name."""

    def fail(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("hedgerow.release.verify.verify_release", fail)
    done = hedgerow("verify", "release")
    assert done.code == 3
    assert "does not name cannot be read or written (No space left on device)" in done.text
    assert "Standard output" not in done.text
