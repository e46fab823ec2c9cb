"""Public names, help pages and JSON Schemas are those that are kept in tests/golden/public."""

import os
import subprocess
import sys
from pathlib import Path

import hedgerow as hr

SCRIPT = Path(__file__).with_name("public.py")


def test_names_help_and_schemas_are_as_kept():
    """In a process of its own, since help is laid out by variables that are read once."""
    source = str(Path(hr.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, SCRIPT],
        env={**os.environ, "PYTHONPATH": source, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, (
        f"{done.stdout}{done.stderr}\nIf this is meant: python tests/golden/public.py --write"
    )
