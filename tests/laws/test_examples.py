"""The examples in docstrings run as they are printed, each in a folder of its own with a release in it."""

import doctest
import shutil
import subprocess
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import hedgerow as hr

SOURCE = Path(hr.__file__).parents[1]
NAMES = sorted(
    ".".join(file.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for file in (SOURCE / "hedgerow").rglob("*.py")
    if ">>> " in file.read_text(encoding="utf-8")
)
SIGNED = ("hedgerow.release.sign", "hedgerow.release.verify.openssh")


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """What the examples find: `plan.yaml`, a `release` made by it, a key and who may sign with it."""
    folder = tmp_path_factory.mktemp("office")
    hr.datasets.payroll(150, seed=3).to_csv(folder / "payroll.csv", index=False)
    asked = {"formula": "payroll ~ log(employees)", "epsilon": 40.0, "draws": 200, "data": "payroll.csv"}
    (folder / "plan.yaml").write_text(hr.Plan(**asked, ledger="ledger.sqlite").text(), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HedgerowWarning)
        hr.make_release(hr.Plan.load(folder / "plan.yaml"), folder / "release", anyway=True)
    if shutil.which("ssh-keygen"):
        key = folder / "id_ed25519"
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        public = key.with_suffix(".pub").read_text(encoding="utf-8")
        (folder / "allowed_signers").write_text(f'office@example.org namespaces="hedgerow" {public}')
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_examples_run_as_printed(name, office, tmp_path, monkeypatch):
    if name in SIGNED and not shutil.which("ssh-keygen"):
        pytest.skip("needs ssh-keygen")
    monkeypatch.chdir(shutil.copytree(office, tmp_path / "office"))
    monkeypatch.setenv("HEDGEROW_LEDGER", "ledger.sqlite")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HedgerowWarning)
        found = doctest.testmod(import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert found.attempted > 0
    assert found.failed == 0
