"""What settings carry along: whether an object may hold data without saying so.

A correction may know the settings of a plan (`hedgerow.mechanism.debias`), and settings may be functions and
objects of the owner's, in which a confidential array can hide. What is known to be harmless
passes; all else does not.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType, NoneType
from typing import Any

import numpy as np

from hedgerow.models.base import Model
from hedgerow.models.prior import Prior
from hedgerow.privacy.ranges import Range
from hedgerow.privacy.standards import Standard
from hedgerow.privacy.weights import Weights

_PLAIN = (bool, int, float, str, NoneType, type, ModuleType, np.ufunc, np.generic, Enum)
_PARTS = (Weights, Standard, Range, Model, Prior)


def carries_data(part: object, *, apart_from: Iterable[object] = ()) -> bool:
    """Whether a part of a recipe may carry data: anything but constants, functions and parts made of these.

    In this package's own classes sequences and mappings are settings (edges, sides of a box, levels). In a
    function or a class of the owner's they may be one number per record. What a function reads from its
    module is not seen.
    """
    return _carries(part, True, {id(one) for one in apart_from})


def _carries(value: Any, ours: bool, seen: set[int]) -> bool:
    if isinstance(value, _PLAIN):
        return False
    if id(value) in seen:  # also where something holds itself
        return False
    seen.add(id(value))
    if isinstance(value, BuiltinFunctionType):
        return not isinstance(value.__self__, ModuleType | NoneType)
    if isinstance(value, FunctionType | MethodType | partial):
        return any(_carries(held, False, seen) for held in _bound(value))
    if isinstance(value, tuple | list | frozenset | set | Mapping):
        items = [*value, *value.values()] if isinstance(value, Mapping) else [*value]
        return any(not ours or _carries(item, ours, seen) for item in items)
    if isinstance(value, _PARTS) or _is_ours(type(value)):
        return any(_carries(held, owner, seen) for held, owner in _attributes(value))
    return True


def _bound(function: Any) -> Iterator[Any]:
    """What a function has been given before it is called."""
    if isinstance(function, partial):
        yield from (function.func, *function.args, *function.keywords.values())
    elif isinstance(function, MethodType):
        yield from (function.__func__, function.__self__)
    else:
        yield from function.__defaults__ or ()
        yield from (function.__kwdefaults__ or {}).values()
        for cell in function.__closure__ or ():
            try:
                yield cell.cell_contents
            except ValueError:  # a name that was never set
                continue


def _attributes(value: object) -> Iterator[tuple[Any, bool]]:
    """What an object and the owner's classes behind it hold, and whether a class of this package holds it."""
    ours = _is_ours(type(value))
    for held in getattr(value, "__dict__", {}).values():
        yield held, ours
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            yield getattr(value, name, None), _is_ours(kind)
        if _is_ours(kind) or kind.__module__ in ("builtins", "abc", "typing"):
            continue
        for name, held in vars(kind).items():
            if name == "__call__" or not (name.startswith("__") or name == "_abc_impl"):
                yield from ((one, False) for one in _unwrapped(held))


def _unwrapped(held: Any) -> tuple[Any, ...]:
    if isinstance(held, property):
        return tuple(part for part in (held.fget, held.fset, held.fdel) if part is not None)
    return (held.__func__,) if isinstance(held, classmethod | staticmethod) else (held,)


def _is_ours(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "hedgerow"
