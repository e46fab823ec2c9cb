"""The lock file: names, versions and hashes of everything that is installed, and nothing else."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_requirement_has_a_version_and_hashes_and_no_line_holds_more():
    lines = (ROOT / "requirements.lock").read_text().replace(" \\\n", " ").splitlines()
    form = re.compile(r"[A-Za-z0-9._-]+==[0-9A-Za-z.]+( +--hash=sha256:[0-9a-f]{64})+")
    assert len(lines) > 50
    assert [line[:60] for line in lines if not form.fullmatch(line)] == []
    names = {line.partition("==")[0].lower().replace("_", "-") for line in lines}
    assert {"numpy", "formulaic", "hatchling", "setuptools"} <= names  # what builds is locked as well


def test_make_installs_only_what_the_lock_names():
    installs = [
        line for line in (ROOT / "Makefile").read_text().splitlines() if "-r requirements.lock" in line
    ]
    assert installs
    assert all("--require-hashes" in line for line in installs)


def test_make_tells_an_old_python_in_one_line(tmp_path):
    old = tmp_path / "python3.9"
    fake = "import sys; sys.version_info = (3, 9, 18); exec(sys.argv[2])"
    old.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{fake}" "$@"\n')
    old.chmod(0o755)
    asked = ["make", "-C", ROOT, "demo", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if not line.startswith("make")]
    assert said == [
        f"hedgerow needs Python 3.11 or newer, and {old} is 3.9. Name another: make PYTHON=python3.11 demo"
    ]
    assert done.returncode == 2
    assert not (tmp_path / "venv").exists()
