"""Processes that die, compete or run out of room: nothing partial, nothing unpaid, nothing lost."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import hedgerow as hr

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"


def crasher(*arguments: object, timeout: float) -> dict:
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    done = subprocess.run(
        [sys.executable, HERE / "crasher.py", *map(str, arguments)],
        capture_output=True, text=True, timeout=timeout, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def check(found: dict, trials: int) -> None:
    seen = found["trials"]
    assert len(seen) == trials
    # The moments were not all alike: before the spend, in the draft, and with the folder in place.
    assert any(trial["draft"] for trial in seen)
    assert any(not trial["pending"] and trial["killed"] for trial in seen)
    assert sum(trial["killed"] for trial in seen) > trials / 2


def test_killed_at_random_moments(tmp_path):
    check(crasher("kill", tmp_path, 36, 1, timeout=170), 36)


@pytest.mark.slow
def test_killed_at_200_random_moments(tmp_path):
    found = crasher("kill", tmp_path, 200, 2, timeout=900)
    check(found, 200)
    assert any(trial["whole"] and trial["pending"] for trial in found["trials"])


def test_sixteen_processes_never_overspend(tmp_path):
    found = crasher("compete", tmp_path, 16, timeout=120)
    assert sorted(found["codes"]) == [0] * 5 + [5] * 11
    assert found["spent"] == found["budget"]
    assert found["folders"] == 5
    assert found["longest_wait"] < 5


def test_a_disk_that_fills_up(tmp_path):
    hr.datasets.payroll(n=20_000, seed=1)[["payroll", "employees"]].to_csv(
        tmp_path / "payroll.csv", index=False
    )
    command = [
        sys.executable, "-m", "hedgerow", "synthesize", "payroll.csv", "--formula", "payroll ~ employees",
        "--epsilon", "40", "--draws", "100", "--out", "release",
    ]  # fmt: skip
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "HEDGEROW_LEDGER": "ledger.sqlite"}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "cannot be written (File too large)" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    left = {path.name for path in tmp_path.iterdir()} - {"payroll.csv"}
    assert {name.partition("sqlite")[0] for name in left} == {"ledger."}
    from hedgerow.release.ledger import Ledger

    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        assert ledger.pending() == []
        assert ledger.entries()[-1].event == "void"
