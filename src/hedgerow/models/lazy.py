"""JAX and NumPyro, imported when one of their names is first used.

A family is declared in one place, its formulas beside its name, its prior and its settings, and the latter
must be known without hedgerow[programs]. So the modules that declare families take `jnp` and its kin from
here.
"""

from importlib import import_module
from typing import Any


class _Later:
    """A module that is imported by the first look into it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


jax: Any = _Later("jax")
jnp: Any = _Later("jax.numpy")
lax: Any = _Later("jax.lax")
special: Any = _Later("jax.scipy.special")
numpyro: Any = _Later("numpyro")
dist: Any = _Later("numpyro.distributions")
masses: Any = _Later("hedgerow.models.programs.masses")
