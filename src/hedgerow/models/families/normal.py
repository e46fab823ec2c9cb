"""Normal errors, of the outcome or of its logarithm."""

from typing import Any

import numpy as np

from hedgerow.models.exact import Lognormal, Normal
from hedgerow.models.families.definition import LOGS, FamilyDefinition, Numbers, PositiveNumbers
from hedgerow.models.lazy import jnp, masses, special
from hedgerow.models.prior import Prior
from hedgerow.models.programs.response import Continuous, Positive, log_of_end, standardise

_LOG_2PI = float(np.log(2 * np.pi))


class NormalResponse(Continuous):
    """Normal errors about a mean."""

    def __init__(self, mean: Any, sigma: Any) -> None:
        self.mean_, self.sigma = mean, sigma
        super().__init__(mean, sigma)

    def log_prob(self, value: Any) -> Any:
        return _normal_log_density(value, self.mean_, self.sigma)

    def log_mass(self, lower: Any, upper: Any) -> Any:
        return masses.normal_log_mass(*(standardise(end, self.mean_, self.sigma) for end in (lower, upper)))

    def cdf(self, value: Any) -> Any:
        return special.ndtr((value - self.mean_) / self.sigma)


class LognormalResponse(Positive):
    """Normal errors of the logarithm; several components where `share` is given, last axis theirs."""

    def __init__(self, mean: Any, sigma: Any, log_share: Any = None) -> None:
        self.mean_, self.sigma, self.log_share = mean, sigma, log_share
        super().__init__(mean if log_share is None else mean[..., 0])

    def log_prob(self, value: Any) -> Any:
        log = jnp.log(value)
        return self._mixed(lambda x: _normal_log_density(x, self.mean_, self.sigma), log) - log

    def log_mass(self, lower: Any, upper: Any) -> Any:
        low, high = jnp.broadcast_arrays(log_of_end(lower), log_of_end(upper))

        def mass(ends: Any) -> Any:
            return masses.normal_log_mass(*(standardise(end, self.mean_, self.sigma) for end in ends))

        return self._mixed(mass, jnp.stack([low, high]))

    def cdf(self, value: Any) -> Any:
        log = log_of_end(value)
        if self.log_share is None:
            return special.ndtr((log - self.mean_) / self.sigma)
        parts = special.ndtr((log[..., None] - self.mean_) / self.sigma)
        return jnp.sum(jnp.exp(self.log_share) * parts, axis=-1)

    def _mixed(self, score: Any, value: Any) -> Any:
        if self.log_share is None:
            return score(value)
        return special.logsumexp(self.log_share + score(value[..., None]), axis=-1)


def _normal_log_density(value: Any, mean: Any, sigma: Any) -> Any:
    return -0.5 * ((value - mean) / sigma) ** 2 - jnp.log(sigma) - _LOG_2PI / 2


FAMILIES = (
    FamilyDefinition(
        "normal",
        domain=Numbers,
        prior=Prior(),
        exact=Normal,
        response=lambda program, eta: NormalResponse(eta, program.positive("sigma", program.residual)),
        simulate=lambda random, z: 0.5 + 0.8 * z + random.normal(size=len(z)),
    ),
    FamilyDefinition(
        "lognormal",
        domain=PositiveNumbers,
        prior=LOGS,
        exact=Lognormal,
        response=lambda program, eta: LognormalResponse(eta, program.positive("sigma", program.residual)),
        simulate=lambda random, z: np.exp(0.5 + 0.8 * z + random.normal(size=len(z))),
    ),
)
