"""Axes named in types are checked while the tests run, in every module that is no door."""

import sys

import numpy as np
import pytest
from helpers.axes import COMPILED, DOORS, PACKAGE, checked_modules, modules
from jaxtyping import TypeCheckError

import hedgerow as hr
from hedgerow.privacy.sensitive import sensitive_part


def test_whole_rooms_are_checked():
    found = set(checked_modules())
    assert {f"hedgerow.{name}" for name in ("models.base", "models.exact", "privacy.sensitive")} <= found
    for room in ("numerics", "models", "mechanism"):
        assert any(name.startswith(f"hedgerow.{room}.") for name in found)
    assert not any((PACKAGE / name.removeprefix("hedgerow.").replace(".", "/")).is_dir() for name in found)


def test_what_is_left_out_is_still_there():
    assert modules() >= DOORS
    assert all(any(name.startswith(prefix) for name in modules()) for prefix in COMPILED)


def test_the_hook_came_before_the_modules():
    assert "hedgerow.privacy.sensitive" in sys.modules
    with pytest.raises(TypeCheckError):
        sensitive_part(hr.ADP(), np.ones((2, 3)), np.zeros(3), None)
