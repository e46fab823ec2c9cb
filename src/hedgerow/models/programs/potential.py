"""The log density of a NumPyro program with one power per record on its response site.

The program runs under our own handlers, unmodified and always with its outcome argument at None, as for
prediction: the outcome enters only where its log density is taken at the response site. So the powers touch
that site alone, zero powers are allowed, priors keep their weight, and the Jacobian terms of the
unconstraining transforms are always in (docs/programs.md, "What happens inside").
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from numpyro import distributions as dist
from numpyro import handlers
from numpyro.distributions import biject_to, constraints

from hedgerow.arrays import Array
from hedgerow.errors import SettingError
from hedgerow.models.programs.compiled import Described, Keeper
from hedgerow.models.programs.response import Response

_STEP = 1e-4  # of differences of gradients, beside the size of a position

x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
Arrays = Mapping[str, Any]  # argument name -> arrays, most with one row per record
Latents = dict[str, Any]  # site name -> value


class ResponseSite(dist.Distribution):  # type: ignore[misc]  # NumPyro is untyped
    """A `Response` as a NumPyro distribution: only what handlers need, the rest is asked of `base_dist`."""

    def __init__(self, response: Response) -> None:
        self.base_dist = response
        super().__init__(batch_shape=response.batch_shape)

    @property
    def support(self) -> Any:
        return constraints.nonnegative_integer if self.base_dist.discrete else constraints.real

    def log_prob(self, value: Any) -> Any:
        return self.base_dist.log_prob(value)

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        return self.base_dist.quantile(jax.random.uniform(key, (*sample_shape, *self.batch_shape)))


_WRAPPERS = (dist.Independent, dist.ExpandedDistribution, ResponseSite)


@dataclass(frozen=True)
class Site:
    """What a trace says about a sample site, read without any number."""

    name: str
    shape: tuple[int, ...]
    unconstrained: tuple[int, ...]


@dataclass(frozen=True)
class Traced:
    """A program with its fixed arguments; arrays are passed in, so that compiled code is used again."""

    function: Callable[..., Any]
    response_argument: str
    fixed: tuple[tuple[str, int], ...]
    response: str  # name of the observed site
    discrete: bool  # whether the response is a whole number
    latents: tuple[Site, ...]

    @property
    def description(self) -> str | None:
        """All that compiled code depends on but the shapes of its arguments; None for a user's program."""
        program: Any = self.function
        if not isinstance(program, Described) or program.description is None:
            return None
        sites = self.response_argument, self.fixed, self.response, self.discrete, self.latents
        return f"{program.description} {sites}"

    @property
    def dimensions(self) -> int:
        """Number of unconstrained parameters."""
        return sum(int(np.prod(site.unconstrained)) for site in self.latents)

    @cached_property
    def _unravel(self) -> Callable[[Any], Latents]:
        empty = {site.name: np.zeros(site.unconstrained) for site in self.latents}
        with x64(True):
            return ravel_pytree(empty)[1]

    def constrain(self, position: Any, arrays: Arrays) -> Latents:
        """Latent values at a flat unconstrained position."""
        return self._walk(position, arrays)[1]

    def unconstrain(self, latents: Latents, arrays: Arrays) -> Any:
        """The flat unconstrained position of latent values; the inverse of `constrain`."""
        trace = self._trace(handlers.substitute(self._seeded(0.0), data=latents), arrays)
        free = {site.name: biject_to(trace[site.name]["fn"].support).inv(latents[site.name])
                for site in self.latents}  # fmt: skip
        return ravel_pytree(free)[0]

    def log_prior(self, position: Any, arrays: Arrays, placeholder: Any = 0.0) -> Any:
        """Log prior and Jacobian terms at a flat unconstrained position."""
        return self._walk(position, arrays, placeholder)[0]

    def log_density(self, position: Any, arrays: Arrays, values: Any, power: Any, window: Any = None) -> Any:
        """Log prior + Σ power_i log p(x_i) + Jacobian terms.

        A window, a lower and an upper end per record, censors log p(x_i): what is below or is no number
        counts as the lower end, what is above as the upper one.
        """
        prior, _, response = self._walk(position, arrays)
        score = response.log_prob(values)
        if window is not None:
            score = jnp.where(jnp.isnan(score), window[0], jnp.clip(score, *window))
        return prior + jnp.sum(jnp.where(power > 0, power * score, 0.0))

    def from_prior(self, key: Any, arrays: Arrays) -> Latents:
        """Latent values drawn from the program's prior; factors on parameters are left out."""
        trace = self._trace(handlers.seed(self.function, key), arrays)
        return {site.name: trace[site.name]["value"] for site in self.latents}

    def distribution(self, latents: Latents, arrays: Arrays) -> Any:
        """The response's distribution at given latent values, one per record."""
        model = handlers.substitute(self._seeded(0.0), data=latents)
        return unwrap(self._trace(model, arrays)[self.response]["fn"])

    def _walk(self, position: Any, arrays: Arrays, placeholder: Any = 0.0) -> tuple[Any, Latents, Any]:
        free = self._unravel(position)
        values: Latents = {}
        jacobian = []

        def place(site: dict[str, Any]) -> Any:
            name = site["name"]
            if site["type"] != "sample" or name not in free:
                return None
            transform = biject_to(site["fn"].support)
            value = transform(free[name])
            # Not a factor site, as NumPyro does it: a handler that hides observed sites would drop those.
            jacobian.append(jnp.sum(transform.log_abs_det_jacobian(free[name], value)))
            values[name] = value
            return value

        trace = self._trace(handlers.substitute(self._seeded(placeholder), substitute_fn=place), arrays)
        total = sum(jacobian, start=jnp.zeros(()))
        for name, site in trace.items():
            if site["type"] == "sample" and name != self.response:
                score = jnp.sum(site["fn"].log_prob(site["value"]))
                total = total + (score if site["scale"] is None else site["scale"] * score)
        return total, values, unwrap(trace[self.response]["fn"])

    def _seeded(self, placeholder: Any) -> Any:
        """The program with a stand-in for its response, which nothing may depend on."""
        still = handlers.seed(self.function, jax.random.key(0))
        return handlers.substitute(still, data={self.response: jnp.asarray(placeholder)})

    def _trace(self, model: Any, arrays: Arrays) -> dict[str, Any]:
        arguments = {**arrays, **dict(self.fixed), self.response_argument: None}
        return dict(handlers.trace(model).get_trace(**arguments))


def unwrap(distribution: Any) -> Any:
    """The distribution of single records: the wrappers only say how they are laid out."""
    while isinstance(distribution, _WRAPPERS):
        distribution = distribution.base_dist
    return distribution


class Compiled:
    """Compiled functions; arrays, outcome and powers are arguments, so that a new fit compiles nothing."""

    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        density, keep = traced.log_density, Keeper(traced.description).keep
        self.log_density = jax.jit(density)
        # One array: at a few thousand records, moving value and gradient apart costs as much as computing.
        self.value_and_grad = keep(
            "value_and_grad", lambda *given: jnp.hstack(jax.value_and_grad(density)(*given))
        )
        self.hessian = keep("hessian", jax.hessian(density))
        self.unconstrain = keep("unconstrain", traced.unconstrain)
        # Draw after draw: a batch of them would hold draws × records.
        self.log_densities = keep(
            "log_densities",
            lambda positions, *data: jax.lax.map(lambda one: density(one, *data), positions),
        )
        self.constrain = keep("constrain", jax.vmap(traced.constrain, in_axes=(0, None)))
        self.from_prior = jax.jit(jax.vmap(traced.from_prior, in_axes=(0, None)))


compiled = lru_cache(maxsize=64)(Compiled)  # fits of one table share them


@dataclass(frozen=True, repr=False)
class Potential:
    """A weighted posterior as samplers see it; confidential."""

    functions: Compiled
    arrays: Arrays
    values: Any
    power: Any
    window: Any = None  # a lower and an upper end per record that its log density is censored to

    @classmethod
    def of(
        cls,
        traced: Traced,
        arrays: Arrays,
        values: Array,
        power: Array,
        window: tuple[Array, Array] | None = None,
    ) -> "Potential":
        """Put the data where the compiled code runs, once per fit."""
        with x64(True):
            placed = jax.tree.map(jnp.asarray, dict(arrays))
            ends = None if window is None else tuple(jnp.asarray(end) for end in window)
            return cls(compiled(traced), placed, jnp.asarray(values), jnp.asarray(power), ends)

    @property
    def dimensions(self) -> int:
        """Number of unconstrained parameters."""
        return self.functions.traced.dimensions

    @property
    def _data(self) -> tuple[Any, ...]:
        return self.arrays, self.values, self.power, self.window

    def __call__(self, position: Any) -> Any:
        """The potential energy, to be traced by a sampler."""
        return -self.functions.log_density(position, *self._data)

    def value_and_grad(self, position: Array) -> tuple[float, Array]:
        """Log density and gradient on numbers; safe to call from any thread."""
        with x64(True):  # the setting belongs to a thread, and samplers bring their own
            found = np.asarray(self.functions.value_and_grad(position, *self._data))
        return float(found[0]), found[1:]

    def log_densities(self, positions: Array) -> Array:
        """Log density at a batch of flat positions."""
        with x64(True):
            found = self.functions.log_densities(positions, *self._data)
            return np.asarray(found, dtype=np.float64)

    def constrain(self, positions: Array) -> dict[str, Array]:
        """Latent values at a batch of flat positions."""
        with x64(True):
            latents = self.functions.constrain(jnp.asarray(positions), self.arrays)
            return {name: np.asarray(value, dtype=np.float64) for name, value in latents.items()}

    def hessian(self, position: Array) -> Array:
        """Second derivatives of the log density: JAX's, or central differences of the gradient.

        JAX has none of some functions, such as the incomplete gamma function by its shape, which a gamma
        family with a declared end needs.
        """
        try:
            with x64(True):
                found = self.functions.hessian(position, *self._data)
                return np.asarray(found, dtype=np.float64)
        except NotImplementedError:
            steps = _STEP * np.eye(len(position)) * np.maximum(1.0, np.abs(position))
            rows = [
                (self.value_and_grad(position + step)[1] - self.value_and_grad(position - step)[1])
                / (2 * step.max())
                for step in steps
            ]
            return np.asarray(rows + np.transpose(rows), dtype=np.float64) / 2

    def start(self, uniforms: Array) -> Array:
        """The first of these candidate starting points, in units of (−2, 2), with a finite gradient."""
        for candidate in 4 * uniforms - 2:
            value, slope = self.value_and_grad(candidate)
            if np.isfinite(value) and np.isfinite(slope).all():
                return np.asarray(candidate, dtype=np.float64)
        raise SettingError(
            f"The program has no finite log density at any of {len(uniforms)} starting points within 2 of "
            "zero on the unconstrained scale. Rescale the outcome or give priors in its units."
        )

    def __repr__(self) -> str:
        return f"Potential({self.dimensions} parameters, confidential)"
