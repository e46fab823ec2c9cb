"""Log densities, interval masses and quantiles of a program's response, for blocks of draws.

The program always sees the whole table, a few draws at a time: what it computes across records (a centred
predictor, say) is then the same in scoring as in fitting. Nothing of size draws × records is held.
"""

import hashlib
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from hedgerow.arrays import Array, PerRecord
from hedgerow.models.programs import masses
from hedgerow.models.programs.compiled import Keeper
from hedgerow.models.programs.potential import Arrays, Latents, Traced, x64
from hedgerow.models.programs.response import Response


class Scores:
    """Compiled scores of one program."""

    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        keep = Keeper(traced.description).keep
        self.log_lik = keep("log_lik", jax.vmap(self._log_lik, in_axes=(0, None, None)))
        self.extremes = keep("extremes", self._extremes)
        # Draw after draw, so that the costly branch of a mass is taken only where a draw needs it.
        self.log_mass = keep(
            "log_mass", lambda latents, *data: lax.map(lambda one: self._log_mass(one, *data), latents)
        )
        self.quantile = keep("quantile", self._quantile)

    def _log_lik(self, latents: Latents, arrays: Arrays, values: Any) -> Any:
        score = self.traced.distribution(latents, arrays).log_prob(values)
        return jnp.broadcast_to(score, jnp.shape(values))

    def _extremes(self, latents: Latents, arrays: Arrays, values: Any) -> Any:
        """The smallest and the largest log density of each record over a block of draws.

        Draw after draw: a row of records stays in the cache, a block of them does not.
        """

        def widen(ends: tuple[Any, Any], one: Latents) -> tuple[tuple[Any, Any], None]:
            scored = self._log_lik(one, arrays, values)
            return (jnp.minimum(ends[0], scored), jnp.maximum(ends[1], scored)), None

        nothing = jnp.full(jnp.shape(values), jnp.inf)
        return jnp.stack(lax.scan(widen, (nothing, -nothing), latents)[0])

    def _log_mass(self, latents: Latents, arrays: Arrays, values: Any, lower: Any, upper: Any) -> Any:
        response = self.traced.distribution(latents, arrays)
        if isinstance(response, Response):
            return response.log_mass(lower, upper)
        if self.traced.discrete:
            return masses.discrete_log_mass(response, values, lower, upper)
        return masses.continuous_log_mass(response, lower, upper)

    def _quantile(self, latents: Latents, arrays: Arrays, uniforms: Any, seed: Any) -> Any:
        key = jax.random.wrap_key_data(seed)
        response = self.traced.distribution(latents, arrays)
        if isinstance(response, Response):
            return response.quantile(uniforms)
        if self.traced.discrete:
            return masses.discrete_quantile(response, uniforms, key)
        return masses.continuous_quantile(response, uniforms, key)


scores = lru_cache(maxsize=64)(Scores)  # shared by all fits of a program


def in_blocks(
    score: Callable[..., Any], parameters: dict[str, Array], block: int, *data: Any, by_draw: bool = True
) -> Iterator[tuple[slice, Array]]:
    """A score for all records and a few draws at a time; each block has the same shape, to compile once.

    The last block repeats the last draw. What has a row per draw is cut where the draws end.
    """
    draws = len(next(iter(parameters.values())))
    with x64(True):
        placed = jax.tree.map(jnp.asarray, data)
    for start in range(0, draws, block):
        rows = np.minimum(np.arange(start, start + block), draws - 1)
        with x64(True):
            found = np.asarray(score({name: value[rows] for name, value in parameters.items()}, *placed))
        stop = min(start + block, draws)
        yield slice(start, stop), found[: stop - start] if by_draw else found


def inverts(traced: Traced, parameters: dict[str, Any], arrays: Arrays) -> bool:
    """Whether `predict` goes by an inverse distribution function, so that it follows each uniform."""
    with x64(True):
        response = traced.distribution(parameters, arrays)
        return isinstance(response, Response) or masses.inverts(response, discrete=traced.discrete)


def predict(traced: Traced, parameters: dict[str, Any], arrays: Arrays, uniforms: PerRecord) -> PerRecord:
    """One outcome per record at a single draw, by inverse distribution function where there is one.

    A distribution that can only be sampled gets a key hashed from the uniforms: still one value for one
    stream, and as unpredictable as 64 bits of it.
    """
    digest = hashlib.sha256(np.ascontiguousarray(uniforms).tobytes()).digest()
    with x64(True):
        seed = np.frombuffer(digest[:8], dtype=np.uint32)
        found = scores(traced).quantile(parameters, arrays, jnp.asarray(uniforms), seed)
        return np.asarray(found, dtype=np.float64)
