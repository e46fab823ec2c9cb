"""Everything that can be reached from an object, for the proof that a correction sees public things only."""

import gc
from collections.abc import Iterator
from types import BuiltinFunctionType, FunctionType, GetSetDescriptorType, MethodType, ModuleType
from typing import Any
from weakref import ReferenceType

import numpy as np
import pyarrow as pa

# Code is public: classes, modules and what functions find in their module. Data that a function carries
# along (closure, defaults, bound object) is followed.
_CODE = (type, ModuleType, BuiltinFunctionType, GetSetDescriptorType, np.dtype, np.ufunc)


def reachable(start: object) -> Iterator[object]:
    """Every object that can be reached from `start`, itself included, each once."""
    waiting, seen = [start], {}
    while waiting:
        here = waiting.pop()
        if id(here) in seen or isinstance(here, _CODE):
            continue
        seen[id(here)] = here  # held, so that no other object gets its id
        yield here
        waiting.extend(_next(here))


def _next(here: object) -> list[object]:
    if isinstance(here, FunctionType):
        return [here.__closure__, here.__defaults__, here.__kwdefaults__, here.__dict__]
    if isinstance(here, MethodType):
        return [here.__self__, here.__func__]
    if isinstance(here, ReferenceType):
        return [here()]
    if isinstance(here, np.ndarray):
        return [here.base, *(here.ravel().tolist() if here.dtype == object else [])]
    if isinstance(here, memoryview):
        return [here.obj]
    if isinstance(here, pa.ChunkedArray):
        return list(here.chunks)
    if isinstance(here, pa.Table):
        return list(here.columns)
    if isinstance(here, pa.Array):
        return [_bytes(buffer) for buffer in here.buffers() if buffer is not None]
    if type(here).__module__.startswith("polars") and hasattr(here, "to_arrow"):
        return [here.to_arrow()]
    return list(gc.get_referents(here))


def _bytes(buffer: pa.Buffer) -> np.ndarray:
    """The whole memory behind a buffer, parents included, as numbers."""
    while buffer.parent is not None:
        buffer = buffer.parent
    return np.frombuffer(buffer, dtype=np.float64, count=buffer.size // 8)


def leaks(start: object, secrets: dict[str, Any], kinds: tuple[type, ...]) -> set[str]:
    """Names of the secrets, and of the confidential kinds of object, that can be reached."""
    found = set()
    for here in reachable(start):
        if isinstance(here, kinds):
            found.add(type(here).__name__)
        for name, secret in secrets.items():
            if _holds(here, secret):
                found.add(name)
    return found


def _holds(here: object, secret: Any) -> bool:
    if isinstance(secret, np.ndarray):
        if not isinstance(here, float | np.floating | np.ndarray) or np.asarray(here).dtype.kind != "f":
            return False
        if isinstance(here, np.ndarray) and np.shares_memory(here, secret):
            return True
        values = secret.ravel()[np.isfinite(secret.ravel())]
        values = values[values * 1e6 % 1 != 0]  # 0, 1 and edges of a public range are no secret
        return bool(np.isin(np.ravel(here), values).any())  # one value is one too many
    if isinstance(secret, float):
        if isinstance(here, np.ndarray) and here.dtype.kind == "f":
            return bool((here == secret).any())
        return isinstance(here, float | np.floating) and float(here) == secret
    return isinstance(here, type(secret)) and here == secret
