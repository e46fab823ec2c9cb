"""The README's first ten minutes, run exactly as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_first_ten_minutes(tmp_path):
    readme = (ROOT / "README.md").read_text()
    section = readme.split("## First ten minutes")[1].split("\n## ")[0]
    first, second = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
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
        "certificate.json", "certificate.md", "plan.yaml",
        "synthetic-copy-1.csv", "synthetic-copy-2.csv", "synthetic-copy-3.csv",
    ]  # fmt: skip
    assert (tmp_path / "release-2" / "public" / "certificate.md").exists()
