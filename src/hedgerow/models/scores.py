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
from jax.scipy.special import log_ndtr
from numpyro import distributions as dist
from numpyro.distributions import biject_to

from hedgerow.axes import Array, PerRecord
from hedgerow.errors import SettingError
from hedgerow.models.potential import Arrays, Latents, Traced, x64

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(48)
_CANCELS = 1e-6  # relative mass below which a difference of distribution functions keeps too few digits
_HALVINGS = 70


class Scores:
    """Compiled scores of one program."""

    def __init__(self, traced: Traced) -> None:
        self.traced = traced
        self.log_lik = jax.jit(jax.vmap(self._log_lik, in_axes=(0, None, None)))
        # Draw after draw, so that the costly branch of a mass is taken only where a draw needs it.
        self.log_mass = jax.jit(
            lambda latents, *data: lax.map(lambda one: self._log_mass(one, *data), latents)
        )
        self.quantile = jax.jit(self._quantile)

    def _log_lik(self, latents: Latents, arrays: Arrays, values: Any) -> Any:
        return _per_record(self.traced.distribution(latents, arrays).log_prob(values), values)

    def _log_mass(self, latents: Latents, arrays: Arrays, values: Any, lower: Any, upper: Any) -> Any:
        response = self.traced.distribution(latents, arrays)
        if self.traced.discrete:
            return _discrete_log_mass(response, values, lower, upper)
        return _continuous_log_mass(response, lower, upper)

    def _quantile(self, latents: Latents, arrays: Arrays, uniforms: Any, key: Any) -> Any:
        response = self.traced.distribution(latents, arrays)
        if self.traced.discrete:
            return _discrete_quantile(response, uniforms, key)
        return _continuous_quantile(response, uniforms, key)


@lru_cache(maxsize=64)
def scores(traced: Traced) -> Scores:
    """Compiled scores, shared by all fits of a program."""
    return Scores(traced)


def in_blocks(
    score: Callable[..., Any], parameters: dict[str, Array], block: int, *data: Any
) -> Iterator[tuple[slice, Array]]:
    """A score for all records and a few draws at a time; each block has the same shape, to compile once."""
    draws = len(next(iter(parameters.values())))
    with x64(True):
        placed = jax.tree.map(jnp.asarray, data)
    for start in range(0, draws, block):
        rows = np.minimum(np.arange(start, start + block), draws - 1)
        with x64(True):
            found = np.asarray(score({name: value[rows] for name, value in parameters.items()}, *placed))
        stop = min(start + block, draws)
        yield slice(start, stop), found[: stop - start]


def predict(traced: Traced, parameters: dict[str, Any], arrays: Arrays, uniforms: PerRecord) -> PerRecord:
    """One outcome per record at a single draw, by inverse distribution function where there is one.

    A distribution that can only be sampled gets a key hashed from the uniforms: still one value for one
    stream, and as unpredictable as 64 bits of it.
    """
    digest = hashlib.sha256(np.ascontiguousarray(uniforms).tobytes()).digest()
    with x64(True):
        key = jax.random.wrap_key_data(np.frombuffer(digest[:8], dtype=np.uint32))
        found = scores(traced).quantile(parameters, arrays, jnp.asarray(uniforms), key)
        return np.asarray(found, dtype=np.float64)


def _per_record(score: Any, values: Any) -> Any:
    return jnp.broadcast_to(score, jnp.shape(values))


def _cdf(response: Any) -> Callable[[Any], Any]:
    def cdf(values: Any) -> Any:
        try:
            return response.cdf(values)
        except (NotImplementedError, ImportError):
            raise SettingError(
                f"The program's response distribution {type(response).__name__} has no cdf, so the "
                "probability of a range is not available. Use ADP(), or a distribution with a cdf."
            ) from None

    return cdf


def _continuous_log_mass(response: Any, lower: Any, upper: Any) -> Any:
    """log(F(upper) − F(lower)), by quadrature of the density where the difference would cancel."""
    if type(response) is dist.LogNormal:
        return _continuous_log_mass_of_logs(response, lower, upper)
    first, last = _support_ends(response)
    lower, upper = jnp.maximum(lower, first), jnp.minimum(upper, last)
    below, above = lower <= first, upper >= last
    if type(response) is dist.Normal:
        low, high = (lower - response.loc) / response.scale, (upper - response.loc) / response.scale
        mirror = low + high > 0
        small, large = jnp.where(mirror, -high, low), jnp.where(mirror, -low, high)
        log_small, log_large = log_ndtr(small), log_ndtr(large)
    else:
        cdf = _cdf(response)
        inner = jnp.where(below, jnp.where(above, response.mean, upper), lower)  # a stand-in in the support
        log_small = jnp.where(below, -jnp.inf, jnp.log(cdf(inner)))
        log_large = jnp.where(above, 0.0, jnp.log(cdf(jnp.where(above, inner, upper))))
    mass = log_large + jnp.log(-jnp.expm1(log_small - log_large))
    cancels = (log_large - log_small < _CANCELS) & ~below & ~above
    mass = lax.cond(
        cancels.any(),
        lambda: jnp.where(cancels, _by_quadrature(response, lower, upper), mass),
        lambda: mass,
    )
    return jnp.minimum(mass, 0.0)


def _support_ends(response: Any) -> tuple[Any, Any]:
    """Where the support begins and ends; a distribution function may be anything outside it."""
    support = response.support
    return getattr(support, "lower_bound", -jnp.inf), getattr(support, "upper_bound", jnp.inf)


def _continuous_log_mass_of_logs(response: Any, lower: Any, upper: Any) -> Any:
    """A lognormal interval on the scale of its logarithm, where tails are those of the normal."""
    low = jnp.where(lower > 0, jnp.log(jnp.where(lower > 0, lower, 1.0)), -jnp.inf)
    high = jnp.where(upper > 0, jnp.log(jnp.where(upper > 0, upper, 1.0)), -jnp.inf)
    return _continuous_log_mass(dist.Normal(response.loc, response.scale), low, high)


def _by_quadrature(response: Any, lower: Any, upper: Any) -> Any:
    half, middle = 0.5 * (upper - lower), 0.5 * (upper + lower)
    usable = jnp.isfinite(half)
    half, middle = jnp.where(usable, half, 0.0), jnp.where(usable, middle, 0.0)

    def add(total: Any, node: Any) -> tuple[Any, None]:
        place, weight = node
        return jnp.logaddexp(total, jnp.log(weight) + response.log_prob(middle + half * place)), None

    nothing = jnp.full(jnp.shape(lower), -jnp.inf)
    total, _ = lax.scan(add, nothing, (jnp.asarray(_NODES), jnp.asarray(_NODE_WEIGHTS)))
    return total + jnp.log(half)


def _discrete_log_mass(response: Any, values: Any, lower: Any, upper: Any) -> Any:
    """log P(lower ≤ X ≤ upper). The value itself lies in its range, so its own probability is a floor."""
    below, above = jnp.isneginf(lower), jnp.isposinf(upper)
    cdf = _discrete_cdf(response)
    first = jnp.ceil(jnp.where(below, 0.0, lower)) - 1
    mass = jnp.where(above, 1.0, cdf(jnp.floor(jnp.where(above, 0.0, upper))))
    mass = mass - jnp.where(below, 0.0, cdf(first))
    floor = _per_record(response.log_prob(values), lower)
    return jnp.minimum(jnp.maximum(jnp.log(jnp.maximum(mass, 0.0)), floor), 0.0)


def _discrete_cdf(response: Any) -> Callable[[Any], Any]:
    if not response.has_enumerate_support:
        return lambda values: jnp.where(values < 0, 0.0, _cdf(response)(jnp.maximum(values, 0.0)))
    places = response.enumerate_support(expand=False)

    def cdf(values: Any) -> Any:
        shares = jnp.exp(jnp.stack([_per_record(response.log_prob(place), values) for place in places]))
        flat = jnp.reshape(places, (-1,) + (1,) * jnp.ndim(values))
        return jnp.sum(jnp.where(flat <= values, shares, 0.0), axis=0)

    return cdf


def _continuous_quantile(response: Any, uniforms: Any, key: Any) -> Any:
    try:
        return _per_record(response.icdf(uniforms), uniforms)
    except (NotImplementedError, ImportError):
        pass
    try:
        cdf = response.cdf
        jax.eval_shape(cdf, uniforms)
    except (NotImplementedError, ImportError):
        return _sampled(response, uniforms, key)
    transform = biject_to(response.support)
    sign = jnp.where(transform(jnp.ones(())) > transform(-jnp.ones(())), 1.0, -1.0)

    def place(t: Any) -> Any:  # the whole support, its far ends included, from a bounded search
        return transform(sign * jnp.sinh(t))

    def halve(_: int, ends: tuple[Any, Any]) -> tuple[Any, Any]:
        low, high = ends
        middle = 0.5 * (low + high)
        share = cdf(place(middle))
        share = jnp.where(jnp.isnan(share), jnp.where(middle > 0, 1.0, 0.0), share)
        return jnp.where(share < uniforms, middle, low), jnp.where(share < uniforms, high, middle)

    reach = jnp.full(jnp.shape(uniforms), 40.0)
    low, high = lax.fori_loop(0, _HALVINGS, halve, (-reach, reach))
    return place(0.5 * (low + high))


def _discrete_quantile(response: Any, uniforms: Any, key: Any) -> Any:
    """The smallest whole number whose distribution function reaches the uniform."""
    try:
        cdf = _discrete_cdf(response)
        jax.eval_shape(cdf, uniforms)
    except SettingError:
        return _sampled(response, uniforms, key)

    def halve(_: int, ends: tuple[Any, Any]) -> tuple[Any, Any]:
        low, high = ends
        middle = jnp.floor(0.5 * (low + high))
        enough = cdf(middle) >= uniforms
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    first, last = 0.0, 2.0**52
    if response.has_enumerate_support:
        places = response.enumerate_support(expand=False)
        first, last = jnp.min(places) * 1.0, jnp.max(places) * 1.0
    ends = jnp.full(jnp.shape(uniforms), first - 1), jnp.full(jnp.shape(uniforms), last)
    return lax.fori_loop(0, 60, halve, ends)[1]


def _sampled(response: Any, uniforms: Any, key: Any) -> Any:
    missing = jnp.shape(uniforms) if response.batch_shape == () else ()
    return _per_record(response.sample(key, missing), uniforms)
