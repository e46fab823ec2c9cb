"""The README's first ten minutes, run exactly as printed."""

import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pandas as pd
import pytest

from hedgerow.cli import main

ROOT = Path(__file__).parents[2]


def scripts() -> list[str]:
    """What the section says to type, block by block."""
    section = (ROOT / "README.md").read_text().split("## First ten minutes")[1].split("\n## ")[0]
    return re.findall(r"```sh\n(.*?)```", section, re.DOTALL)


def test_the_first_screen_has_a_picture_and_two_commands():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    screen = "\n".join(lines[:22])
    assert "It is for\npeople who release data" in screen
    assert re.findall("^make [a-z]+", screen, re.MULTILINE) == ["make demo", "make test"]
    pictures = re.findall(r'(?:src|srcset)="([^"]+)"', screen)
    assert len(pictures) == 2, "light and dark"
    assert all((ROOT / picture).exists() for picture in pictures)


def test_first_ten_minutes(tmp_path):
    first, second = scripts()
    assert first.startswith("pip install .\n")
    command = tmp_path / "bin" / "hedgerow"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m hedgerow "$@"\n')
    command.chmod(0o755)
    script = "set -e\n" + first.removeprefix("pip install .\n") + second
    environment = os.environ | {
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    environment.pop("HEDGEROW_LEDGER", None)
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "release matches its certificate" in done.stdout
    assert "Not covered" in done.stdout
    assert (tmp_path / "state" / "hedgerow" / "ledger.sqlite").exists()
    assert sorted(path.name for path in (tmp_path / "release" / "public").iterdir()) == [
        "certificate.json", "certificate.md", "index.html", "plan.yaml",
        "synthetic-copy-1.csv", "synthetic-copy-2.csv", "synthetic-copy-3.csv",
    ]  # fmt: skip
    assert (tmp_path / "release-2" / "public" / "certificate.md").exists()


@pytest.mark.slow
@pytest.mark.parametrize("which", ["strict", "range-truncated"])
def test_copies_of_the_first_example_are_near_the_original(tmp_path, monkeypatch, capsys, which):
    """Median, Q90 and mean of every copy within 30 % of the original's, in 19 of 20 seeds."""
    lines = "".join(scripts()).replace("\\\n", "").splitlines()
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("hedgerow ")]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEDGEROW_LEDGER", str(tmp_path / "ledger.sqlite"))

    def run(arguments: list[str]) -> None:
        monkeypatch.setattr(sys, "argv", ["hedgerow", *arguments])
        with pytest.raises(SystemExit, match="0"):
            main()

    made = [command for command in commands if command[0] == "synthesize"][which != "strict"]
    for command in commands:
        if command[0] in ("datasets", "init"):
            run(command)
    far = {}
    for seed in range(20):
        folder = tmp_path / f"release-{seed}"
        asked = [str(folder) if before == "--out" else word for before, word in pairwise(["", *made])]
        run([*asked, "--seed", str(seed)])
        tidy = pd.read_parquet(folder / "confidential" / "utility.parquet")
        tidy = tidy[
            tidy["statistic"].isin(["median", "q90", "mean"])
            & ~tidy["copy"].isin(["pooled", "lowest", "highest"])
        ]
        off = (tidy["synthetic"] / tidy["original"] - 1).abs()
        assert len(off) == 9
        if off.max() > 0.3:
            far[seed] = round(off.max(), 2)
    assert len(far) <= 1, far
