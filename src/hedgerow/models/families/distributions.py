"""The response distributions of the named families: log density, mass of an interval, quantile.

NumPyro has most of these densities, but few quantiles and no interval masses that hold in both tails; here
each distribution has all three. Parameters are per record or single numbers. Nothing here sees a prior.
"""

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import betainc, gammainc, gammaincc, gammaln, logsumexp
from numpyro import distributions as dist
from numpyro.distributions import constraints

from hedgerow.models.programs import masses

_LOG_2PI = float(np.log(2 * np.pi))
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(64)
_SHORT = 30.0  # ratio of two hazards, as a logarithm, beyond which the smaller is no part of the larger
_LARGEST = 700.0  # whose exponential is finite
_FAINT = 1e-290  # below this products lose digits to underflow
_FAR = 9.0  # standard deviations beyond which a normal kernel adds nothing to a mass that includes the middle


class Response(dist.Distribution):  # type: ignore[misc]  # NumPyro is untyped
    """A distribution that knows the mass of an interval and its own quantiles."""

    support = constraints.real
    places: Any = None  # the values of a distribution with finitely many

    def __init__(self, *parameters: Any) -> None:
        super().__init__(batch_shape=jnp.broadcast_shapes(*(jnp.shape(one) for one in parameters)))

    @abstractmethod
    def log_prob(self, value: Any) -> Any:
        """Log density, or log probability of a whole number or class."""

    @abstractmethod
    def log_mass(self, lower: Any, upper: Any) -> Any:
        """log P(lower ≤ X ≤ upper); ends may be infinite or outside the support."""

    @abstractmethod
    def quantile(self, uniforms: Any) -> Any:
        """The smallest value whose distribution function reaches the uniform."""

    def sample(self, key: Any, sample_shape: tuple[int, ...] = ()) -> Any:
        """One value per record."""
        return self.quantile(jax.random.uniform(key, (*sample_shape, *self.batch_shape)))


class Continuous(Response):
    """A density on an interval of the line, `first` to `last`."""

    first: Any = -jnp.inf
    last: Any = jnp.inf

    def cdf(self, value: Any) -> Any:
        """The distribution function, for bisection."""
        return jnp.exp(self.log_mass(jnp.full(jnp.shape(value), self.first), value))

    def place(self, t: Any) -> Any:
        """The support, from the whole line; increasing."""
        return t

    def quantile(self, uniforms: Any) -> Any:
        return self.place(masses.bisected(lambda t: self.cdf(self.place(t)), uniforms))


class Positive(Continuous):
    """A density on the positive numbers."""

    support = constraints.positive
    first = 0.0

    def place(self, t: Any) -> Any:
        return jnp.exp(t)


class Normal(Continuous):
    """Normal errors about a mean."""

    def __init__(self, mean: Any, sigma: Any) -> None:
        self.mean_, self.sigma = mean, sigma
        super().__init__(mean, sigma)

    def log_prob(self, value: Any) -> Any:
        return _normal(value, self.mean_, self.sigma)

    def log_mass(self, lower: Any, upper: Any) -> Any:
        return masses.normal_log_mass(*(_standard(end, self.mean_, self.sigma) for end in (lower, upper)))


class Lognormal(Positive):
    """Normal errors of the logarithm; several components where `share` is given, last axis theirs."""

    def __init__(self, mean: Any, sigma: Any, log_share: Any = None) -> None:
        self.mean_, self.sigma, self.log_share = mean, sigma, log_share
        super().__init__(mean if log_share is None else mean[..., 0])

    def log_prob(self, value: Any) -> Any:
        log = jnp.log(value)
        return self._mixed(lambda x: _normal(x, self.mean_, self.sigma), log) - log

    def log_mass(self, lower: Any, upper: Any) -> Any:
        low, high = jnp.broadcast_arrays(_safe_log(lower), _safe_log(upper))

        def mass(ends: Any) -> Any:
            return masses.normal_log_mass(*(_standard(end, self.mean_, self.sigma) for end in ends))

        return self._mixed(mass, jnp.stack([low, high]))

    def _mixed(self, score: Any, value: Any) -> Any:
        if self.log_share is None:
            return score(value)
        return logsumexp(self.log_share + score(value[..., None]), axis=-1)


class Gamma(Positive):
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
            - gammaln(shape)
        )

    def log_mass(self, lower: Any, upper: Any) -> Any:
        logs = [_standard(_safe_log(end), self.log_mean, 1.0) for end in (lower, upper)]
        inner = [jnp.isfinite(log) for log in logs]
        ends = [
            jnp.where(fits, self.shape_ * jnp.exp(jnp.where(fits, log, 0.0)), jnp.exp(log))
            for fits, log in zip(inner, logs, strict=True)
        ]
        low, high, shape = jnp.broadcast_arrays(*ends, self.shape_)
        return masses.of_tails(
            (_lower_gamma(shape, low), _lower_gamma(shape, high)),
            (_log_upper_gamma(shape, low), _log_upper_gamma(shape, high)),
            lambda: masses.by_quadrature(self.log_prob, jnp.maximum(lower, 0.0), upper),
        )


class Weibull(Positive):
    """Scale exp(`log_scale`); survival exp(−(x/scale)^shape)."""

    def __init__(self, log_scale: Any, shape: Any) -> None:
        self.log_scale, self.shape_ = log_scale, shape
        super().__init__(log_scale, shape)

    def log_prob(self, value: Any) -> Any:
        log = jnp.log(value)
        power = self.shape_ * (log - self.log_scale)
        return jnp.log(self.shape_) - log + power - jnp.exp(power)

    def log_mass(self, lower: Any, upper: Any) -> Any:
        low, high = (_standard(_safe_log(end), self.log_scale, 1 / self.shape_) for end in (lower, upper))
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


class LogStudent(Positive):
    """Student-t errors of the logarithm."""

    def __init__(self, mean: Any, sigma: Any, df: Any) -> None:
        self.mean_, self.sigma, self.df = mean, sigma, df
        super().__init__(mean, sigma, df)

    def log_prob(self, value: Any) -> Any:
        log = jnp.log(value)
        t = (log - self.mean_) / self.sigma
        return (
            self._log_constant() - jnp.log(self.sigma) - (self.df + 1) / 2 * jnp.log1p(t**2 / self.df) - log
        )

    def log_mass(self, lower: Any, upper: Any) -> Any:
        ends = (_standard(_safe_log(end), self.mean_, self.sigma) for end in (lower, upper))
        low, high = (self._normalised(end) for end in ends)
        # On the scale u the density is a normal kernel times a slowly growing factor, in both tails.
        mirror = low + high > 0
        near, far = jnp.where(mirror, low, -high), jnp.where(mirror, high, -low)  # |near| ≤ far
        start = jnp.maximum(near, -_FAR)
        stop = jnp.minimum(far, jnp.maximum(start, 0.0) + jnp.minimum(_FAR, 40.0 / jnp.maximum(start, 1e-3)))
        half, middle = 0.5 * (stop - start), 0.5 * (stop + start)

        peak = jnp.maximum(start, 0.0) ** 2 / 2  # the kernel is largest where u is nearest to zero

        def add(total: Any, node: Any) -> tuple[Any, None]:
            place, weight = node
            squared = (middle + half * place) ** 2
            return total + weight * jnp.exp(peak - squared / 2 + _log_factor(squared / self.df)), None

        nodes = jnp.asarray(_NODES), jnp.asarray(_NODE_WEIGHTS)
        total, _ = lax.scan(add, jnp.zeros(jnp.shape(half)), nodes, unroll=8)
        wide = half > 0
        total, half = jnp.where(wide, total, 1.0), jnp.where(wide, half, 1.0)
        found = jnp.log(total) + jnp.log(half) - peak + self._log_constant()
        return jnp.where(wide, jnp.minimum(found, 0.0), -jnp.inf)

    def _log_constant(self) -> Any:
        return gammaln((self.df + 1) / 2) - gammaln(self.df / 2) - 0.5 * jnp.log(self.df * jnp.pi)

    def _normalised(self, t: Any) -> Any:
        """u with u² = df · log(1 + t²/df) and the sign of t; smooth through zero."""
        finite = jnp.isfinite(t)
        t = jnp.where(finite, t, jnp.where(t > 0, 1e150, -1e150))
        squared = t**2 / self.df
        small = squared < 1e-6
        ratio = jnp.where(
            small, 1 - squared / 2 + squared**2 / 3, jnp.log1p(squared) / jnp.where(small, 1.0, squared)
        )
        return t * jnp.sqrt(ratio)


class Beta(Continuous):
    """Mean expit(`logit_mean`) and precision on the interval from `first` to `last`."""

    def __init__(self, logit_mean: Any, precision: Any, first: float, last: float) -> None:
        self.first, self.last = first, last
        mean = jax.nn.sigmoid(logit_mean)
        self.a, self.b = mean * precision, jax.nn.sigmoid(-logit_mean) * precision
        super().__init__(logit_mean, precision)

    def log_prob(self, value: Any) -> Any:
        width = self.last - self.first
        share, rest = (value - self.first) / width, (self.last - value) / width
        return (
            (self.a - 1) * jnp.log(share)
            + (self.b - 1) * jnp.log(rest)
            - masses.log_beta(self.a, self.b)
            - jnp.log(width)
        )

    def log_mass(self, lower: Any, upper: Any) -> Any:
        width = self.last - self.first
        shares = [jnp.clip((end - self.first) / width, 0.0, 1.0) for end in (lower, upper)]
        rests = [jnp.clip((self.last - end) / width, 0.0, 1.0) for end in (lower, upper)]
        shape = jnp.broadcast_shapes(jnp.shape(shares[0]), jnp.shape(self.a))
        a, b = jnp.broadcast_to(self.a, shape), jnp.broadcast_to(self.b, shape)
        below = tuple(betainc(a, b, jnp.broadcast_to(end, shape)) for end in shares)
        above = tuple(
            _log_upper_beta(a, b, share, jnp.broadcast_to(rest, shape), under)
            for share, rest, under in zip(shares, rests, below, strict=True)
        )
        ends = jnp.maximum(lower, self.first), jnp.minimum(upper, self.last)
        return masses.of_tails(below, above, lambda: masses.by_quadrature(self.log_prob, *ends))

    def place(self, t: Any) -> Any:
        # Strictly between the ends, also where a share rounds to 0 or 1: the ends themselves are refused.
        inner = np.nextafter(self.first, self.last) if self.first else np.finfo(float).tiny
        found = self.first + (self.last - self.first) * jax.nn.sigmoid(t)
        return jnp.clip(found, inner, np.nextafter(self.last, self.first))


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

    def __init__(self, base: Continuous, logit_share: Any, spike: float) -> None:
        self.base, self.logit_share, self.spike = base, logit_share, spike
        super().__init__(logit_share, jnp.zeros(base.batch_shape))

    def log_prob(self, value: Any) -> Any:
        at = value == self.spike
        # A value inside the base's support for the branch that is not taken, so that gradients stay finite.
        apart = jnp.where(at, self.base.place(jnp.zeros(())), value)
        return jnp.where(
            at,
            jax.nn.log_sigmoid(self.logit_share),
            jax.nn.log_sigmoid(-self.logit_share) + self.base.log_prob(apart),
        )

    def log_mass(self, lower: Any, upper: Any) -> Any:
        holds = (lower <= self.spike) & (self.spike <= upper)
        spike = jnp.where(holds, jax.nn.log_sigmoid(self.logit_share), -jnp.inf)
        low = jnp.maximum(lower, self.base.first)
        rest = self.base.log_mass(low, jnp.maximum(low, jnp.minimum(upper, self.base.last)))
        return jnp.minimum(jnp.logaddexp(spike, jax.nn.log_sigmoid(-self.logit_share) + rest), 0.0)

    def quantile(self, uniforms: Any) -> Any:
        share = jax.nn.sigmoid(self.logit_share)
        spike = jnp.clip(self.spike, self.base.first, self.base.last)
        below = (1 - share) * self.base.cdf(jnp.broadcast_to(spike, jnp.shape(uniforms)))
        under = uniforms < below
        inner = jnp.where(under, uniforms, uniforms - share) / (1 - share)
        apart = self.base.quantile(jnp.clip(inner, 0.0, 1.0))
        return jnp.where(under | (uniforms > below + share), apart, self.spike)


def _normal(value: Any, mean: Any, sigma: Any) -> Any:
    return -0.5 * ((value - mean) / sigma) ** 2 - jnp.log(sigma) - _LOG_2PI / 2


def _standard(end: Any, mean: Any, sigma: Any) -> Any:
    """(end − mean)/sigma, where an infinite end stays what it is and has no gradient."""
    finite = jnp.isfinite(end)
    return jnp.where(finite, (jnp.where(finite, end, 0.0) - mean) / sigma, end)


def _safe_log(value: Any) -> Any:
    """log for ends of ranges: −inf at and below zero, without a bad gradient."""
    positive = value > 0
    return jnp.where(positive, jnp.log(jnp.where(positive, value, 1.0)), -jnp.inf)


def _lower_gamma(shape: Any, value: Any) -> Any:
    """P(shape, value); constant at the ends of the support, so that gradients stay finite there."""
    inner = (value > 0) & ~_is_far(shape, value)
    return jnp.where(inner, gammainc(shape, jnp.where(inner, value, 1.0)), jnp.where(value > 0, 1.0, 0.0))


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
    tail = below * jnp.log(at) - at - gammaln(shape) + jnp.log(jnp.where(far, series, 1.0))
    near = gammaincc(shape, jnp.where(inner & ~far, value, 1.0))
    ordinary = jnp.where(near > 0, jnp.log(jnp.where(near > 0, near, 1.0)), -jnp.inf)
    return jnp.where(far, tail, jnp.where(inner, ordinary, jnp.where(value > 0, -jnp.inf, 0.0)))


def _log_upper_beta(a: Any, b: Any, share: Any, rest: Any, below: Any) -> Any:
    """log of the mass above a share, from 1 − share = `rest`, or from the mass `below` it.

    A share near zero has few digits left in its rest. Where the density exceeds one, they cost more than
    the rounding of 1 − below.
    """
    inner = (share > 0) & (share < 1e-3)
    at = jnp.where(inner, share, 0.5)
    dense = (a - 1) * jnp.log(at) + (b - 1) * jnp.log1p(-at) > masses.log_beta(a, b)
    return jnp.where(inner & dense, jnp.log1p(-below), jnp.log(betainc(b, a, rest)))


def _log_factor(v: Any) -> Any:
    """½ log(v / (1 − e^{−v})): what the normal kernel misses of Student's density on the scale u."""
    small = v < 1e-4
    inner = jnp.where(small, 1.0, v)
    return 0.5 * jnp.where(small, v / 2, jnp.log(inner) - jnp.log(-jnp.expm1(-inner)))
