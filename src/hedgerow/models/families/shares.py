"""Shares and other numbers strictly between two public ends."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from hedgerow.arrays import Array, Mask
from hedgerow.models.families.definition import LOGITS, FamilyDefinition, Numbers, format_setting
from hedgerow.models.lazy import jax, jnp, masses, special
from hedgerow.models.programs.response import Continuous, Response
from hedgerow.tables.design import Design
from hedgerow.tables.values import Support


@dataclass(frozen=True)
class BetweenEnds(Numbers):
    """Numbers strictly between two ends, 0 and 1 unless declared; the distribution itself has these ends."""

    least: ClassVar[float] = 0.0
    most: ClassVar[float] = 1.0

    def find_support(self) -> Support:
        return Support(*self.ends, above=True, below=True, spike=self.spike)

    def fits(self, values: Array, design: Design) -> Mask:
        low, high = self.ends
        return (values > low) & (values < high)

    def takes(self, design: Design) -> str:
        low, high = self.ends
        return f"numbers strictly between {format_setting(low)} and {format_setting(high)}"

    def truncate(self, response: Any) -> Response:
        return response


class BetaResponse(Continuous):
    """Mean expit(`logit_mean`) and precision on the interval from `first` to `last`."""

    def __init__(self, logit_mean: Any, precision: Any, first: float, last: float) -> None:
        self.first, self.last = first, last
        self.precision = precision
        self.a, self.b = (share * precision for share in masses.split_by_logit(logit_mean))
        super().__init__(logit_mean, precision)

    def log_prob(self, value: Any) -> Any:
        width = self.last - self.first
        share, rest = (value - self.first) / width, (self.last - value) / width
        return (
            (self.a - 1) * jnp.log(share)
            + (self.b - 1) * jnp.log(rest)
            - masses.log_gamma(self.a)
            - masses.log_gamma(self.b)
            + masses.log_gamma(self.precision)  # a + b, and the same for all records
            - jnp.log(width)
        )

    def log_mass(self, lower: Any, upper: Any) -> Any:
        width = self.last - self.first
        shares = [jnp.clip((end - self.first) / width, 0.0, 1.0) for end in (lower, upper)]
        rests = [jnp.clip((self.last - end) / width, 0.0, 1.0) for end in (lower, upper)]
        shape = jnp.broadcast_shapes(jnp.shape(shares[0]), jnp.shape(self.a))
        a, b = jnp.broadcast_to(self.a, shape), jnp.broadcast_to(self.b, shape)
        below = tuple(special.betainc(a, b, jnp.broadcast_to(end, shape)) for end in shares)
        above = tuple(
            _log_upper_beta(a, b, share, jnp.broadcast_to(rest, shape), under)
            for share, rest, under in zip(shares, rests, below, strict=True)
        )
        ends = jnp.maximum(lower, self.first), jnp.minimum(upper, self.last)
        return masses.mass_between_tails(below, above, lambda: masses.integrate_density(self.log_prob, *ends))

    def cdf(self, value: Any) -> Any:
        ends = (value - self.first, self.last - value)
        share, rest = (jnp.clip(end / (self.last - self.first), 0.0, 1.0) for end in ends)
        return masses.lower_beta(self.a, self.b, share, rest)

    def place(self, t: Any) -> Any:
        # Strictly between the ends, also where a share rounds to 0 or 1: the ends themselves are refused.
        inner = np.nextafter(self.first, self.last) if self.first else np.finfo(float).tiny
        found = self.first + (self.last - self.first) * jax.nn.sigmoid(t)
        return jnp.clip(found, inner, np.nextafter(self.last, self.first))


def _log_upper_beta(a: Any, b: Any, share: Any, rest: Any, below: Any) -> Any:
    """log of the mass above a share, from 1 − share = `rest`, or from the mass `below` it.

    A share near zero has few digits left in its rest. Where the density exceeds one, they cost more than
    the rounding of 1 − below.
    """
    inner = (share > 0) & (share < 1e-3)
    at = jnp.where(inner, share, 0.5)
    dense = (a - 1) * jnp.log(at) + (b - 1) * jnp.log1p(-at) > masses.log_beta(a, b)
    return jnp.where(inner & dense, jnp.log1p(-below), jnp.log(special.betainc(b, a, rest)))


FAMILIES = (
    FamilyDefinition(
        "beta",
        domain=BetweenEnds,
        prior=LOGITS,
        response=lambda program, eta: BetaResponse(
            eta, program.positive("precision", 4 * program.residual**-2), *program.domain.ends
        ),
        simulate=lambda random, z: random.beta(5 * expit(z - 2), 5 * expit(2 - z)),
    ),
)
