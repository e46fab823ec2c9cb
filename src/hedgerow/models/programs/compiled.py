"""Compiled code that outlives its process: a family is compiled once for a shape of table, not at each start.

    functions = Keeper(description)           # of everything that the code may depend on
    density = functions.keep("density", log_density)
    density(position, arrays, values)         # compiled, or read from the folder, at the first call

Code lies in `hedgerow` in the user's cache folder (`XDG_CACHE_HOME`, usually `~/.cache`), or where
`HEDGEROW_CACHE` says; `HEDGEROW_CACHE=off` keeps none. Where it cannot be written everything works as before.

What is kept holds shapes and public settings. Tables, powers and parameters are arguments of the code and no
part of it. Only hedgerow's own families have a description: a user's program may hold confidential numbers as
constants, and is compiled anew in every process.

Reading code runs it, so that a folder which others may write to is left alone.
"""

import hashlib
import os
import pickle
import platform
import stat
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import serialize_executable

VARIABLE = "HEDGEROW_CACHE"
_LARGEST = 256 * 2**20  # bytes in the folder: what was not used for longest goes first
_ENDING = ".code"


class Described(ABC):
    """A program that says what it is made of."""

    @property
    @abstractmethod
    def description(self) -> str | None:
        """All its settings, which are public, in words; None where it holds what it cannot describe."""


class Keeper:
    """Compiles functions of arrays; with a description of what they depend on, it keeps their code."""

    def __init__(self, description: str | None) -> None:
        self.description = description

    def keep(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, compiled at its first call for each shape of its arguments."""
        plain = jax.jit(function)
        if self.description is None or folder() is None or not _one_processor():
            return plain
        return Kept(f"{name} of {self.description}", plain)


class Kept:
    """A function whose compiled code is on disk; arguments are positional, arrays or containers of them."""

    def __init__(self, description: str, plain: Any) -> None:
        self.description, self.plain = description, plain
        self._code: dict[Any, Any] = {}

    def __call__(self, *arguments: Any) -> Any:
        leaves, tree = jax.tree.flatten(arguments)
        if not all(hasattr(leaf, "dtype") for leaf in leaves):
            leaves = [np.asarray(leaf) for leaf in leaves]
            arguments = jax.tree.unflatten(tree, leaves)
        key = tree, *((leaf.shape, leaf.dtype) for leaf in leaves)
        code = self._code.get(key)
        if code is None:
            code = self._code[key] = self._find(arguments, f"{key} {self.description}")
        return code(*arguments)

    def _find(self, arguments: tuple[Any, ...], description: str) -> Any:
        """The code for such arguments: read, or compiled and written."""
        home = folder()
        if home is None:
            return self.plain
        path = home / (hashlib.sha256(f"{description} {surroundings()}".encode()).hexdigest() + _ENDING)
        code = _read(path)
        if code is None:
            lowered = self.plain.lower(*arguments)
            code = lowered.compile()
            if (
                "custom_call" in lowered.as_text()
            ):  # LAPACK, which a process that lowers nothing has not loaded
                return code
            with suppress(NotImplementedError, ValueError, TypeError):  # code that JAX cannot write down
                _write(path, pickle.dumps(serialize_executable.serialize(code)))
        return code


def folder() -> Path | None:
    """Where code is kept; None where it is not, or where others could put code of theirs."""
    asked = os.environ.get(VARIABLE, "")
    if asked == "off":
        return None
    try:
        base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
        home = Path(asked) if asked else Path(base) / "hedgerow"
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = home.stat()
    except (OSError, RuntimeError):  # a home that is read-only, or none
        return None
    if hasattr(os, "getuid") and (
        found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    ):
        return None
    return home


@cache
def surroundings() -> str:
    """What compiled code depends on beside its description: our source, versions, settings, the processor."""
    from llvmlite import binding  # type: ignore[import-untyped]  # numba's, which must know the same

    source = hashlib.sha256()
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        source.update(file.read_bytes())
    versions = (platform.python_version(), *map(version, ("jax", "jaxlib", "numpyro", "numpy")))
    processor = binding.get_host_cpu_name(), sorted(binding.get_host_cpu_features().items())
    settings = sorted((name, str(value)) for name, value in jax.config.values.items())
    flags = os.environ.get("XLA_FLAGS", "")
    return f"{source.hexdigest()} {sys.platform} {versions} {processor} {settings} {flags}"


def _one_processor() -> bool:
    """Whether JAX runs on one device, the processor: code for others is not kept."""
    return jax.default_backend() == "cpu" and len(jax.devices()) == 1


def _read(path: Path) -> Any:
    """Code as it was written; None where there is none, or where it is damaged."""
    try:
        digest, content = (whole := path.read_bytes())[:32], whole[32:]
        if hashlib.sha256(content).digest() != digest:
            return None
        code = serialize_executable.deserialize_and_load(*pickle.loads(content))  # noqa: S301 - our own folder
    except Exception:  # whatever a version of JAX may raise: it is then compiled, as if there were none
        return None
    with suppress(OSError):
        os.utime(path)
    return code


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all, and others never see a part."""
    with suppress(OSError):
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        Path(name).replace(path)
        kept = sorted(path.parent.glob(f"*{_ENDING}"), key=lambda one: one.stat().st_mtime, reverse=True)
        sizes = np.cumsum([one.stat().st_size for one in kept])
        for one, size in zip(kept, sizes, strict=True):
            if size > _LARGEST:
                one.unlink(missing_ok=True)
