"""Public names, help pages and JSON Schemas are those that are kept in tests/golden/public."""

import os
import subprocess
import sys
from pathlib import Path

import hedgerow as hr

SCRIPT = Path(__file__).with_name("public.py")
ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(hr.__file__).parents[1]), "PYTHONIOENCODING": "utf-8"}


def test_names_help_and_schemas_are_as_kept():
    """In a process of its own, since help is laid out by variables that are read once."""
    done = subprocess.run(
        [sys.executable, SCRIPT],
        env=ENVIRONMENT,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, (
        f"{done.stdout}{done.stderr}\nIf this is meant: python tests/golden/public.py --write"
    )


def test_import_loads_none_of_our_modules():
    """Names load when first used."""
    script = "import hedgerow, sys; sys.exit(' '.join(m for m in sys.modules if m.startswith('hedgerow.')))"
    done = subprocess.run([sys.executable, "-c", script], env=ENVIRONMENT, capture_output=True, text=True)
    assert done.stderr.strip() == ""


def test_weights_are_one_thing_by_either_name():
    shared = set(hr.weights.__all__) & set(hr.__all__)
    assert {name for name in hr.__all__ if name.endswith("Weights")} <= shared
    assert all(getattr(hr, name) is getattr(hr.weights, name) for name in shared)
    assert callable(hr.weights.advise)
