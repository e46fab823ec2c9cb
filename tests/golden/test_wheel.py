"""The wheel alone: made by `python -m build` from a clean checkout, in an environment of its own.

Shown: a wheel can be made of the source distribution and is complete, the dependencies it declares are enough
for README's first ten minutes (no extra, no development tool, no studies), and its commands are installed.
Not shown: that a package index resolves those dependencies, since they are linked from the environment that
runs the tests, at its versions.
"""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / ".git").exists() or not shutil.which("git"), reason="needs a checkout"),
]


def run(*command: object, **settings) -> subprocess.CompletedProcess:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def link_dependencies(requirements: list[str], site: Path) -> None:
    """Links what these requirements need, and what that needs in turn, into site-packages."""
    pending, seen = list(requirements), set()
    while pending:
        requirement = Requirement(pending.pop())
        if requirement.name in seen or (
            requirement.marker and not requirement.marker.evaluate({"extra": ""})
        ):
            continue
        seen.add(requirement.name)
        try:
            installed = distribution(requirement.name)
        except PackageNotFoundError:
            continue  # needed on another system, or the commands below say that it is missing
        pending += installed.requires or []
        for name in {path.parts[0] for path in installed.files or []} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(installed.locate_file(name))


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The folder with the source distribution and the wheel that was made of it, not of the checkout."""
    work = tmp_path_factory.mktemp("built")
    run("git", "-C", ROOT, "archive", "--format=tar", "-o", work / "checkout.tar", "HEAD")
    shutil.unpack_archive(work / "checkout.tar", work / "checkout", filter="data")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", work / "dist", work / "checkout")
    return work / "dist"


@pytest.fixture(scope="module")
def environment(built, tmp_path_factory) -> dict[str, str]:
    """Variables under which `hedgerow` and `python` are those of the new environment."""
    work = tmp_path_factory.mktemp("wheel")
    (wheel,) = built.glob("*.whl")
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    venv.create(work / "env", symlinks=True)
    python = work / "env" / "bin" / "python"
    run(*pip, "--python", python, "install", "--no-deps", "--no-index", wheel)
    site = next((work / "env" / "lib").glob("python*/site-packages"))
    metadata = next(site.glob("hedgerow-*.dist-info/METADATA")).read_text(encoding="utf-8")
    link_dependencies(re.findall(r"^Requires-Dist: (.*)$", metadata, re.MULTILINE), site)
    variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "HEDGEROW_LEDGER")}
    return variables | {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_STATE_HOME": str(work / "state"),
    }


def test_the_source_distribution_has_what_a_stranger_needs(built):
    """Package, tests, studies, pages and both lock files; nothing that a build or a release leaves behind."""
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {
        "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md", "docs/conf.py",
        "docs/index.md", "pyproject.toml", "requirements.lock", "requirements-docs.lock",
        "recipe/recipe.yaml", "src/hedgerow/__init__.pyi", "studies/pyproject.toml",
        "tests/golden/test_wheel.py",
    } <= names  # fmt: skip
    assert not [
        name for name in names if name.endswith((".pyc", ".sqlite", ".key")) or "/confidential/" in name
    ]


def test_the_first_ten_minutes_run_from_the_wheel(environment, tmp_path):
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("## First ten minutes")[1]
    first, second = re.findall(r"```sh\n(.*?)```", section.split("\n## ")[0], re.DOTALL)
    script = "set -e\n" + first.removeprefix("pip install .\n") + second
    done = run("bash", "-c", script, cwd=tmp_path, env=environment)
    assert "release matches its certificate" in done.stdout
    assert (tmp_path / "release-2" / "public" / "certificate.md").exists()


def test_only_the_package_is_in_it(environment, tmp_path):
    where = "import hedgerow, sys; sys.stdout.write(hedgerow.__file__)"
    assert "site-packages" in run("python", "-c", where, cwd=tmp_path, env=environment).stdout
    for name in ("hedgerow_studies", "pytest", "jax"):
        done = subprocess.run(["python", "-c", f"import {name}"], cwd=tmp_path, env=environment, check=False)
        assert done.returncode != 0, name


def test_the_studies_are_asked_for(environment, tmp_path):
    done = subprocess.run(
        ["hedgerow", "reproduce", "--out", "results"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "pip install ./studies" in done.stderr
    assert not (tmp_path / "results").exists()
