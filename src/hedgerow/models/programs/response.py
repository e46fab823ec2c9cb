"""Response distributions: log density, mass of an interval, quantile, one distribution per record.

NumPyro has most of these densities, but few quantiles and no interval masses that hold in both tails; here
each distribution has all three, as plain functions of JAX. Parameters are per record or single numbers.
Nothing here sees a prior. `programs.potential.ResponseSite` makes one a site of a NumPyro program.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from hedgerow.models.lazy import jax, jnp, masses

_ROUNDING = 1e-9  # steps by which an end may miss the multiple it stands for


class Response(ABC):
    """A distribution that knows the mass of an interval and its own quantiles."""

    discrete: bool = False  # whether it is one on whole numbers or classes

    def __init__(self, *parameters: Any) -> None:
        self.batch_shape = jnp.broadcast_shapes(*(jnp.shape(one) for one in parameters))

    @abstractmethod
    def log_prob(self, value: Any) -> Any:
        """Log density, or log probability of a whole number or class."""

    @abstractmethod
    def log_mass(self, lower: Any, upper: Any) -> Any:
        """log P(lower ≤ X ≤ upper); ends may be infinite or outside the support."""

    @abstractmethod
    def quantile(self, uniforms: Any) -> Any:
        """The smallest value whose distribution function reaches the uniform."""


class Continuous(Response):
    """A density on an interval of the line, `first` to `last`."""

    first: Any = -np.inf
    last: Any = np.inf

    def cdf(self, value: Any) -> Any:
        """The distribution function, for quantiles."""
        return jnp.exp(self.log_mass(jnp.full(jnp.shape(value), self.first), value))

    def place(self, t: Any) -> Any:
        """The support, from the whole line; increasing."""
        return t

    def quantile(self, uniforms: Any) -> Any:
        return self.place(masses.invert(lambda t: self.cdf(self.place(t)), uniforms))


class Positive(Continuous):
    """A density on the positive numbers."""

    first = 0.0

    def place(self, t: Any) -> Any:
        return jnp.exp(t)


class Truncated(Continuous):
    """Another continuous distribution between two ends."""

    def __init__(self, base: Continuous, first: float, last: float) -> None:
        self.base, self.first, self.last = base, jnp.maximum(first, base.first), jnp.minimum(last, base.last)
        batch = jnp.zeros(base.batch_shape)
        self.log_whole = base.log_mass(batch + self.first, batch + self.last)
        super().__init__(batch)

    def log_prob(self, value: Any) -> Any:
        return self.base.log_prob(value) - self.log_whole

    def log_mass(self, lower: Any, upper: Any) -> Any:
        low, high = jnp.maximum(lower, self.first), jnp.minimum(upper, self.last)
        part = self.base.log_mass(low, jnp.maximum(low, high))
        return jnp.minimum(part - self.log_whole, 0.0)

    def place(self, t: Any) -> Any:
        return jnp.clip(self.base.place(t), self.first, self.last)


class Spiked(Response):
    """A point mass at one value, and a continuous distribution apart from it."""

    def __init__(self, base: Any, logit_share: Any, spike: float) -> None:
        self.base, self.logit_share, self.spike = base, logit_share, spike
        super().__init__(logit_share, jnp.zeros(base.batch_shape))

    def log_prob(self, value: Any) -> Any:
        at = value == self.spike
        # A value inside the base's support for the branch that is not taken, so that gradients stay finite.
        apart = jnp.where(at, self.base.place(jnp.zeros(())), value)
        rest = self.base.log_prob(apart) - self.logit_share
        return masses.log_sigmoid(self.logit_share) + jnp.where(at, 0.0, rest)

    def log_mass(self, lower: Any, upper: Any) -> Any:
        holds = (lower <= self.spike) & (self.spike <= upper)
        spike = jnp.where(holds, masses.log_sigmoid(self.logit_share), -jnp.inf)
        low = jnp.maximum(lower, self.base.first)
        rest = self.base.log_mass(low, jnp.maximum(low, jnp.minimum(upper, self.base.last)))
        return jnp.minimum(jnp.logaddexp(spike, masses.log_sigmoid(-self.logit_share) + rest), 0.0)

    def quantile(self, uniforms: Any) -> Any:
        share = jax.nn.sigmoid(self.logit_share)
        spike = jnp.clip(self.spike, self.base.first, self.base.last)
        below = (1 - share) * self.base.cdf(jnp.broadcast_to(spike, jnp.shape(uniforms)))
        under = uniforms < below
        inner = jnp.where(under, uniforms, uniforms - share) / (1 - share)
        apart = self.base.quantile(jnp.clip(inner, 0.0, 1.0))
        return jnp.where(under | (uniforms > below + share), apart, self.spike)


class Rounded(Response):
    """Another distribution, recorded to the nearest multiple of a step: the mass of what is rounded there."""

    def __init__(self, base: Response, step: float) -> None:
        self.base, self.step = base, step
        super().__init__(jnp.zeros(base.batch_shape))

    def log_prob(self, value: Any) -> Any:
        return self.base.log_mass(value - self.step / 2, value + self.step / 2)

    def log_mass(self, lower: Any, upper: Any) -> Any:
        first = self.step * jnp.ceil(lower / self.step - _ROUNDING)
        last = self.step * jnp.floor(upper / self.step + _ROUNDING)
        mass = self.base.log_mass(first - self.step / 2, jnp.maximum(first, last) + self.step / 2)
        return jnp.where(last >= first, mass, -jnp.inf)

    def quantile(self, uniforms: Any) -> Any:
        return self.step * jnp.rint(self.base.quantile(uniforms) / self.step)


def standardise(end: Any, mean: Any, sigma: Any) -> Any:
    """(end − mean)/sigma, where an infinite end stays what it is and has no gradient."""
    finite = jnp.isfinite(end)
    return jnp.where(finite, (jnp.where(finite, end, 0.0) - mean) / sigma, end)


def log_of_end(value: Any) -> Any:
    """log for ends of ranges: −inf at and below zero, without a bad gradient."""
    positive = value > 0
    return jnp.where(positive, jnp.log(jnp.where(positive, value, 1.0)), -jnp.inf)
