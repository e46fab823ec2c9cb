"""The lock files: names, versions and hashes of everything that is installed, and nothing else."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
FORM = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[0-9A-Za-z.]+)( +--hash=sha256:[0-9a-f]{64})+")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def locked(file: str) -> dict[str, str]:
    """Versions by name; a line that holds anything else is an error."""
    lines = (ROOT / file).read_text().replace(" \\\n", " ").splitlines()
    assert [line[:60] for line in lines if not FORM.fullmatch(line)] == []
    matches = [FORM.fullmatch(line) for line in lines]
    return {found["name"].lower().replace("_", "-"): found["version"] for found in matches}


@pytest.mark.parametrize(
    ("file", "group"),
    [("requirements.lock", "dev"), ("requirements-docs.lock", "docs")],
)
def test_every_requirement_has_a_version_and_hashes_and_no_line_holds_more(file, group):
    names = set(locked(file))
    wanted = {Requirement(entry).name.lower() for entry in PROJECT["dependency-groups"][group]}
    assert len(names) > 30
    assert wanted <= names
    if group == "dev":
        assert {"numpy", "formulaic", "hatchling", "setuptools"} <= names  # what builds is locked as well


def test_the_site_is_built_in_the_environment_of_the_tests():
    """It is installed on top: what both files name, they name in the same version."""
    tests, site = locked("requirements.lock"), locked("requirements-docs.lock")
    assert {name: version for name, version in site.items() if tests.get(name, version) != version} == {}


def test_make_installs_only_what_a_lock_names():
    installs = [
        line
        for line in (ROOT / "Makefile").read_text().splitlines()
        if re.search(r"-r requirements\S*\.lock", line)
    ]
    assert len(installs) == 2
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


def test_the_conda_recipe_needs_what_the_package_needs():
    recipe = yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))
    project = PROJECT["project"]
    declared = [
        Requirement(entry.replace("matplotlib", "matplotlib-base")) for entry in project["dependencies"]
    ]
    assert recipe["requirements"]["run"] == [
        f"python {project['requires-python']}",
        *(f"{entry.name} {entry.specifier}" for entry in declared),
    ]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert recipe["context"]["version"] == citation["version"] == project["version"]
    assert citation["license"] == recipe["about"]["license"] == project["license"]
