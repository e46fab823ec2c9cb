"""Positive numbers: gamma, Weibull, Student-t errors of the logarithm, and several lognormals at once."""

from typing import Any

import numpy as np

from hedgerow.errors import SettingError, format_value, is_count
from hedgerow.models.families.definition import LOGS, FamilyDefinition, PositiveNumbers
from hedgerow.models.families.normal import LognormalResponse
from hedgerow.models.families.signed import StudentResponse, check_df, student_df
from hedgerow.models.lazy import dist, jnp, masses, numpyro, special
from hedgerow.models.programs.response import Positive, log_of_end, standardise

_SHORT = 30.0  # ratio of two hazards, as a logarithm, beyond which the smaller is no part of the larger
_LARGEST = 700.0  # whose exponential is finite
_FAINT = 1e-290  # below this products lose digits to underflow


class GammaResponse(Positive):
    """Mean exp(`log_mean`), variance mean²/shape."""

    def __init__(self, log_mean: Any, shape: Any) -> None:
        self.log_mean, self.shape_ = log_mean, shape
        super().__init__(log_mean, shape)

    def log_prob(self, value: Any) -> Any:
        shape, log = self.shape_, jnp.log(value)
        return (
            shape * (jnp.log(shape) + log - self.log_mean)
            - log
            - shape * jnp.exp(log - self.log_mean)
            - special.gammaln(shape)
        )

    def log_mass(self, lower: Any, upper: Any) -> Any:
        logs = [standardise(log_of_end(end), self.log_mean, 1.0) for end in (lower, upper)]
        inner = [jnp.isfinite(log) for log in logs]
        ends = [
            jnp.where(fits, self.shape_ * jnp.exp(jnp.where(fits, log, 0.0)), jnp.exp(log))
            for fits, log in zip(inner, logs, strict=True)
        ]
        low, high, shape = jnp.broadcast_arrays(*ends, self.shape_)
        return masses.mass_between_tails(
            (_lower_gamma(shape, low), _lower_gamma(shape, high)),
            (_log_upper_gamma(shape, low), _log_upper_gamma(shape, high)),
            lambda: masses.integrate_density(self.log_prob, jnp.maximum(lower, 0.0), upper),
        )

    def cdf(self, value: Any) -> Any:
        scaled = self.shape_ * jnp.exp(log_of_end(value) - self.log_mean)
        return _lower_gamma(*jnp.broadcast_arrays(self.shape_, scaled))


def _lower_gamma(shape: Any, value: Any) -> Any:
    """P(shape, value); constant at the ends of the support, so that gradients stay finite there."""
    inner = (value > 0) & ~_is_far(shape, value)
    return jnp.where(
        inner, special.gammainc(shape, jnp.where(inner, value, 1.0)), jnp.where(value > 0, 1.0, 0.0)
    )


def _is_far(shape: Any, value: Any) -> Any:
    """So far in the right tail of a gamma distribution that all but e^-100 of it lies below."""
    return value > jnp.maximum(300.0, 10 * shape)


def _log_upper_gamma(shape: Any, value: Any) -> Any:
    """log Q(shape, value), by its asymptotic series where Q itself would underflow."""
    inner = (value > 0) & jnp.isfinite(value)
    far = inner & _is_far(shape, value)
    at = jnp.where(far, value, 1e6)
    below = shape - 1
    series = 1 + below / at * (1 + (below - 1) / at * (1 + (below - 2) / at * (1 + (below - 3) / at)))
    tail = below * jnp.log(at) - at - special.gammaln(shape) + jnp.log(jnp.where(far, series, 1.0))
    near = special.gammaincc(shape, jnp.where(inner & ~far, value, 1.0))
    ordinary = jnp.where(near > 0, jnp.log(jnp.where(near > 0, near, 1.0)), -jnp.inf)
    return jnp.where(far, tail, jnp.where(inner, ordinary, jnp.where(value > 0, -jnp.inf, 0.0)))


class WeibullResponse(Positive):
    """Scale exp(`log_scale`); survival exp(−(x/scale)^shape)."""

    def __init__(self, log_scale: Any, shape: Any) -> None:
        self.log_scale, self.shape_ = log_scale, shape
        super().__init__(log_scale, shape)

    def log_prob(self, value: Any) -> Any:
        log = jnp.log(value)
        power = self.shape_ * (log - self.log_scale)
        return jnp.log(self.shape_) - log + power - jnp.exp(power)

    def log_mass(self, lower: Any, upper: Any) -> Any:
        low, high = (standardise(log_of_end(end), self.log_scale, 1 / self.shape_) for end in (lower, upper))
        start = jnp.exp(low)
        # H(upper) − H(lower) for the cumulative hazard H, without cancellation and without overflow.
        starts, ends = low > -jnp.inf, high < jnp.inf
        gap = jnp.where(starts & ends, high - jnp.where(starts, low, 0.0), 0.0)
        short = starts & (gap < _SHORT)
        whole = jnp.exp(jnp.minimum(jnp.where(ends & ~short, high, 0.0), _LARGEST))
        rest = whole - jnp.minimum(start, whole)
        rise = jnp.where(short, start * jnp.expm1(jnp.where(short, gap, 0.0)), rest)
        # Where the rise itself underflows, 1 − exp(−rise) is the rise, and its logarithm is known.
        faint = ends & (rise < _FAINT)
        log_rise = jnp.where(faint, high, 0.0) + masses.log1mexp(jnp.where(faint & starts, gap, jnp.inf))
        mass = jnp.where(faint, log_rise, masses.log1mexp(jnp.where(ends & ~faint, rise, 1.0)))
        return -start + jnp.where(ends, mass, 0.0)

    def quantile(self, uniforms: Any) -> Any:
        found = jnp.exp(self.log_scale + jnp.log(-jnp.log1p(-uniforms)) / self.shape_)
        return jnp.clip(found, np.finfo(float).tiny, np.finfo(float).max)  # zero itself is refused


class LogStudentResponse(Positive):
    """Student-t errors of the logarithm."""

    def __init__(self, mean: Any, sigma: Any, df: Any) -> None:
        self.of_log = StudentResponse(mean, sigma, df)
        super().__init__(mean, sigma, df)

    def log_prob(self, value: Any) -> Any:
        log = jnp.log(value)
        return self.of_log.log_prob(log) - log

    def log_mass(self, lower: Any, upper: Any) -> Any:
        return self.of_log.log_mass(log_of_end(lower), log_of_end(upper))

    def cdf(self, value: Any) -> Any:
        return self.of_log.cdf(log_of_end(value))


def _log_student(program: Any, eta: Any) -> LogStudentResponse:
    df = student_df(program)
    return LogStudentResponse(eta, program.positive("sigma", program.residual), df)


def _lognormal_mixture(program: Any, eta: Any) -> LognormalResponse:
    """Lognormals with the same slopes and locations of their own."""
    size = program.domain.setting("components") or 2
    first = numpyro.sample("location", dist.Normal(*program.level))
    # Gaps that stay away from zero keep the components, and so the chains, in one order.
    gaps = numpyro.sample("gaps", dist.LogNormal(jnp.zeros(size - 1), 1.0).to_event(1))
    places = first + jnp.concatenate([jnp.zeros(1), jnp.cumsum(gaps)])
    # The likelihood of a component on a few equal values has no bound as its spread goes to zero. The prior
    # of its variance, an inverse gamma with the rate of the exact models', falls faster than that rises.
    half = program.residual_df / 2
    variance = dist.InverseGamma(jnp.full(size, 1 + half), half * program.residual**2)
    root = dist.transforms.PowerTransform(0.5)
    sigma = numpyro.sample("sigma", dist.TransformedDistribution(variance, root))
    share = numpyro.sample("share", dist.Dirichlet(jnp.full(size, 2.0)))
    return LognormalResponse(eta[:, None] + places, sigma, jnp.log(share))


def _check_components(name: str, components: Any) -> None:
    if not is_count(components) or not 2 <= components <= 10:
        raise SettingError(
            f"Family '{name}': components must be a whole number from 2 to 10, got "
            f"{format_value(components)}. One component is family='lognormal'."
        )


FAMILIES = (
    FamilyDefinition(
        "gamma",
        domain=PositiveNumbers,
        prior=LOGS,
        response=lambda program, eta: GammaResponse(eta, program.positive("shape", program.residual**-2)),
        simulate=lambda random, z: random.gamma(2.0, np.exp(0.5 + 0.8 * z) / 2),
    ),
    FamilyDefinition(
        "weibull",
        domain=PositiveNumbers,
        prior=LOGS,
        response=lambda program, eta: WeibullResponse(eta, program.positive("shape", 1 / program.residual)),
        simulate=lambda random, z: np.exp(0.5 + 0.8 * z) * random.weibull(1.5, len(z)),
    ),
    FamilyDefinition(
        "log_student",
        domain=PositiveNumbers,
        prior=LOGS,
        options=("lower", "upper", "df"),
        checks={"df": check_df},
        response=_log_student,
        simulate=lambda random, z: np.exp(0.5 + 0.8 * z + 0.5 * random.standard_t(3, len(z))),
    ),
    FamilyDefinition(
        "lognormal_mixture",
        domain=PositiveNumbers,
        prior=LOGS,
        options=("lower", "upper", "components"),
        checks={"components": _check_components},
        own_level=True,
        response=_lognormal_mixture,
        simulate=lambda random, z: np.exp(
            0.8 * z + 2.0 * (random.uniform(size=len(z)) < 0.7) + 0.5 * random.normal(size=len(z))
        ),
    ),
)
