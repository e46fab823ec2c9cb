"""The page on honesty: its examples run as printed, and its tables are what the scripts print."""

import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import hedgerow as hr
from hedgerow_studies import breaches, strict_utility
from hedgerow_studies.work import processors

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "honesty.md").read_text(encoding="utf-8")


def cells(first):
    """The rows of the table that starts with these column names."""
    start = PAGE.index("| " + " | ".join(first))
    lines = PAGE[start:].split("\n\n")[0].strip().splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in (lines[0], *lines[2:])]


def close(found, printed):
    """Text and counts the same, figures to a twentieth or a unit of the last digit."""
    numbers = r"-?\d+\.\d+"
    assert re.sub(numbers, "#", found) == re.sub(numbers, "#", printed)
    for one, two in zip(re.findall(numbers, found), re.findall(numbers, printed), strict=True):
        unit = 10.0 ** -len(two.split(".")[1])
        assert float(one) == pytest.approx(float(two), rel=0.05, abs=1.01 * unit)


def compare(table):
    rows = [
        list(table.columns),
        *(line.strip("|").split("|") for line in breaches.markdown(table).splitlines()[2:]),
    ]
    printed = cells(list(table.columns))
    for found, row in zip(rows, printed, strict=True):
        for one, two in zip(found, row, strict=True):
            close(one.strip(), two)


@pytest.mark.slow
def test_python_runs_as_printed(capsys):
    script = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL))
    with warnings.catch_warnings():
        warnings.simplefilter("error", hr.HedgerowWarning)
        exec(compile(script, "honesty.md", "exec"), {"__name__": "page"})
    said = " ".join(capsys.readouterr().out.split())
    for words in ("pure differential privacy", "up to sampler error", "cannot certify", "attack bounds ε"):
        assert words in said


@pytest.mark.slow
def test_shell_runs_as_printed(tmp_path):
    script = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)[1]
    command = tmp_path / "hedgerow"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m hedgerow "$@"\n')
    command.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "XDG_STATE_HOME": str(tmp_path / "state"),  # the ledger counts looks
    }
    done = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [row for row in done.stdout.splitlines() if row.startswith("│")][:4]
    left = [float(row.split("│")[3]) for row in rows]
    assert f"{left[0]:.0f}, {left[1]:.0f}, {left[2]:.0f} and {left[3]:.1f} of 1000" in PAGE
    assert "Acceptance" in done.stdout


@pytest.mark.slow
def test_the_singleton_is_as_printed():
    compare(breaches.singleton())


def test_the_edge_is_as_printed():
    compare(strict_utility.edge())


@pytest.mark.slow
def test_breaches_are_as_printed():
    """Linear and inverse weights recomputed exceed both prices; softmax, logistic and a light cap do not."""
    table = breaches.breaches(jobs=processors(None))
    compare(table)
    large = table[table["n"] == 2000].set_index("weights")
    count = {name: large[name].str.split().str[0].astype(int) for name in ("above 2Δ", "above oscillation")}
    assert count["above oscillation"]["linear"] > 35
    assert count["above 2Δ"]["inverse"] > 20
    for gentle in ("softmax", "logistic", "cap 1.5 on o"):
        assert count["above 2Δ"][gentle] == count["above oscillation"][gentle] == 0


@pytest.mark.slow
def test_strict_utility_is_as_printed():
    compare(strict_utility.table(jobs=processors(None)))


@pytest.mark.slow
def test_the_censored_table_is_as_printed():
    compare(strict_utility.censored())
