"""The lock file: names, versions and hashes of everything that is installed, and nothing else."""

import re
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
