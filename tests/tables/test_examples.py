"""The examples in the docstrings of the room run as they are printed."""

import doctest
import pkgutil
from importlib import import_module

import pytest

import hedgerow.tables

PARTS = pkgutil.walk_packages(hedgerow.tables.__path__, "hedgerow.tables.")


@pytest.mark.parametrize("name", ["hedgerow.tables", *(part.name for part in PARTS)])
def test_examples_run_as_printed(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert doctest.testmod(import_module(name)).failed == 0
