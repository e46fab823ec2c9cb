"""The probability of an interval and the quantiles of a NumPyro distribution, one per record.

A `Response` of hedgerow's own (`models.programs.response`) knows both; for the others they are found
from `cdf`, `log_prob` and a finite support.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import log_ndtr
from numpyro import distributions as dist
from numpyro.distributions import biject_to

from hedgerow.errors import SettingError
from hedgerow.models.programs.response import log_of_end

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(48)
_CANCELS = 1e-6  # relative mass below which a difference of distribution functions keeps too few digits
_HALVINGS = 70
_LOG_2PI = float(np.log(2 * np.pi))
_SHIFT = 10  # steps that bring any positive number there
_FAR = 10.0  # from where on Stirling's series has all digits
# R in log(1 + f) = f − f²/2 + s (f²/2 + R(s²)), s = f/(2 + f), for 1 + f from √½ to √2, as in FreeBSD.
_LOG_TERMS = (0.6666666666666735130, 0.3999999999940941908, 0.2857142874366239149, 0.2222219843214978396,
              0.1818357216161805012, 0.1531383769920937332, 0.1479819860511658591)  # fmt: skip
_LOG_2 = (6.93147180369123816490e-01, 1.90821492927058770002e-10)  # in two parts
_HALF_ROOT = 0x3FE6A09E667F3BCD  # √½, its bits
_TABLE = 256  # whole numbers below this have what belongs to them in a table
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)


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


def continuous_log_mass(response: Any, lower: Any, upper: Any) -> Any:
    """log(F(upper) − F(lower)), by quadrature of the density where the difference would cancel."""
    if type(response) in (dist.Normal, dist.LogNormal):
        # A lognormal interval on the scale of its logarithm, where tails are those of the normal.
        ends = (lower, upper) if type(response) is dist.Normal else (log_of_end(lower), log_of_end(upper))
        return normal_log_mass(*((end - response.loc) / response.scale for end in ends))
    # A distribution function may be anything outside the support.
    first = getattr(response.support, "lower_bound", -jnp.inf)
    last = getattr(response.support, "upper_bound", jnp.inf)
    lower, upper = jnp.maximum(lower, first), jnp.minimum(upper, last)
    below, above = lower <= first, upper >= last
    cdf = _cdf(response)
    inner = jnp.where(below, jnp.where(above, response.mean, upper), lower)  # a stand-in in the support
    small = jnp.where(below, 0.0, cdf(inner))
    large = jnp.where(above, 1.0, cdf(jnp.where(above, inner, upper)))
    return mass_between_tails(
        (small, large),
        (jnp.log1p(-small), jnp.where(above, -jnp.inf, jnp.log1p(-jnp.where(above, 0.5, large)))),
        lambda: integrate_density(response.log_prob, lower, upper),
    )


def mass_between_tails(
    below: tuple[Any, Any], log_above: tuple[Any, Any], otherwise: Callable[[], Any]
) -> Any:
    """The log mass between two ends, from whichever tail is the smaller, or `otherwise` where both cancel.

    `below` holds the distribution function at the ends, `log_above` the log of its complement.
    """
    right = below[0] > 0.5
    small = jnp.where(right, log_above[1], log_of_end(below[0]))
    large = jnp.where(right, log_above[0], log_of_end(below[1]))
    real = jnp.isfinite(large)
    gap = jnp.where(jnp.isfinite(small) & real, jnp.where(real, large, 0.0) - small, jnp.inf)
    mass = jnp.where(real, large + log1mexp(gap), -jnp.inf)
    lost = ~real | ~(gap >= _CANCELS)
    mass = lax.cond(lost.any(), lambda: jnp.where(lost, otherwise(), mass), lambda: mass)
    return jnp.minimum(mass, 0.0)


def normal_log_mass(low: Any, high: Any) -> Any:
    """log(Φ(high) − Φ(low)): in the left tail by log Φ, by quadrature for narrow intervals.

    Unlike the kernels of `numerics` it can be differentiated: a truncated family has it in its posterior.
    """
    mirror = low + high > 0
    small, large = jnp.where(mirror, -high, low), jnp.where(mirror, -low, high)
    open_, small = jnp.isneginf(small), jnp.where(jnp.isneginf(small), -1.0, small)
    whole, large = jnp.isposinf(large), jnp.where(jnp.isposinf(large), 1.0, large)
    log_small, log_large = log_ndtr(small), jnp.where(whole, 0.0, log_ndtr(large))
    gap = log_large - log_small
    mass = log_large + jnp.where(open_, 0.0, log1mexp(jnp.where(open_, 1.0, gap)))
    lost = (gap < _CANCELS) & ~open_ & ~whole
    mass = lax.cond(
        lost.any(),
        lambda: jnp.where(lost, integrate_density(lambda x: -0.5 * x**2 - _LOG_2PI / 2, small, large), mass),
        lambda: mass,
    )
    return jnp.minimum(mass, 0.0)


@jax.custom_jvp  # type: ignore[untyped-decorator]  # JAX is untyped
def log_sigmoid(x: Any) -> Any:
    """log(1/(1 + e^−x)), digits kept at both ends: a third of what JAX's own takes."""
    below = x < 0
    odds = jnp.exp(jnp.where(below, x, -x))
    far = odds > math.sqrt(2) - 1
    return jnp.where(below, x, 0.0) - _log_near(
        jnp.where(far, (odds - 1) / 2, odds), jnp.where(far, 1.0, 0.0)
    )


@log_sigmoid.defjvp  # type: ignore[untyped-decorator]  # JAX is untyped
def _slope_of_log_sigmoid(x: tuple[Any], move: tuple[Any]) -> tuple[Any, Any]:
    return log_sigmoid(*x), split_by_logit(-x[0])[0] * move[0]


@jax.custom_jvp  # type: ignore[untyped-decorator]  # JAX is untyped
def log(x: Any) -> Any:
    """The logarithm of numbers that are not subnormal, of their bits: a third of what JAX's own takes."""
    bits = lax.bitcast_convert_type(x, jnp.int64) + (0x3FF0000000000000 - _HALF_ROOT)
    # The exponent as a float by way of its bits, since processors convert whole numbers one by one.
    exponent = lax.bitcast_convert_type(lax.shift_right_logical(bits, 52) | 0x4330000000000000, x.dtype)
    twos = exponent - (2.0**52 + 1023)
    found = _log_near(lax.bitcast_convert_type((bits & 0x000FFFFFFFFFFFFF) + _HALF_ROOT, x.dtype) - 1, twos)
    return jnp.where(
        (x > 0) & (x < jnp.inf), found, jnp.where(x == 0, -jnp.inf, jnp.where(x > 0, x, jnp.nan))
    )


def _log_near(f: Any, twos: Any) -> Any:
    """log(1 + f) + twos · log 2, for 1 + f from √½ to √2."""
    s, half, rest = f / (2 + f), 0.5 * f * f, jnp.zeros(())
    for term in reversed(_LOG_TERMS):
        rest = (rest + term) * (s * s)
    return twos * _LOG_2[0] - ((half - (s * (half + rest) + twos * _LOG_2[1])) - f)


@log.defjvp  # type: ignore[untyped-decorator]  # JAX is untyped
def _slope_of_log(x: tuple[Any], move: tuple[Any]) -> tuple[Any, Any]:
    return log(*x), move[0] / x[0]


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def log_ways(size: Any, value: Any, order: int = 0) -> Any:
    """log Γ(size + value) − log Γ(size) − log value!, for one size and whole numbers; or a derivative of it.

    From a table where all of them are small. The derivative of looking up would be a sum over the table, and
    that of a choice keeps what either branch needs: so a derivative is looked up, too.
    """

    def look_up() -> Any:
        steps = jnp.arange(_TABLE - 1.0)
        terms = -math.factorial(max(order - 1, 0)) * (-1.0) ** order * (size + steps) ** -order
        if not order:
            terms = jnp.log((size + steps) / (steps + 1))
        return jnp.concatenate([jnp.zeros(1), jnp.cumsum(terms)])[jnp.asarray(value, dtype=int)]

    return lax.cond((value < _TABLE).all(), look_up, lambda: _ways_of_large(size, value, order))


def _ways_of_large(size: Any, value: Any, order: int) -> Any:
    if order:
        before = partial(_ways_of_large, value=value, order=order - 1)
        return jax.jvp(before, (size,), (jnp.ones(()),))[1]
    return -log_beta(size, value + 1.0) - jnp.log(size + value)


@log_ways.defjvp  # type: ignore[untyped-decorator]  # JAX is untyped
def _slope_of_log_ways(order: int, given: tuple[Any, Any], moves: tuple[Any, Any]) -> tuple[Any, Any]:
    return log_ways(*given, order), log_ways(*given, order + 1) * moves[0]


def lower_beta(a: Any, b: Any, share: Any, rest: Any) -> Any:
    """The mass of a beta distribution below a share, of which `rest` is what is left; for quantiles.

    By its continued fraction from the smaller tail, to about 14 digits, at as many levels as the largest
    parameter needs: a twentieth of what JAX's betainc takes. It has no derivative.
    """
    right = share * (a + b + 2) > a + 1
    a, b = jnp.where(right, b, a), jnp.where(right, a, b)
    share, rest = jnp.where(right, rest, share), jnp.where(right, share, rest)

    def deepen(step: Any, found: Any) -> Any:
        m = levels - step
        odd = (a + m) * (a + b + m) * share / ((a + 2 * m) * (a + 2 * m + 1))
        even = m * (b - m) * share / ((a + 2 * m - 1) * (a + 2 * m))
        return 1 + even / (1 - odd / found)

    levels = jnp.ceil(20 + 4 * jnp.sqrt(jnp.maximum(a, b).max()))
    found = lax.fori_loop(0, levels.astype(int), deepen, jnp.ones(jnp.shape(share)))
    fraction = 1 - (a + b) * share / (a + 1) / found
    front = a * jnp.log(share) + b * jnp.log(rest) - jnp.log(a) - log_beta(a, b)
    tail = jnp.where(share > 0, jnp.exp(front) / fraction, 0.0)
    return jnp.where(right, 1 - tail, tail)


def split_by_logit(logit: Any) -> tuple[Any, Any]:
    """expit(logit) and expit(−logit), digits of both kept, from one exponential."""
    below = logit < 0
    odds = jnp.exp(jnp.where(below, logit, -logit))
    whole = 1 / (1 + odds)
    return jnp.where(below, odds, 1.0) * whole, jnp.where(below, 1.0, odds) * whole


def log_beta(a: Any, b: Any) -> Any:
    """log B(a, b), to the last digits: jax.scipy.special.betaln is off by 1e-6 between 8 and 40.

    Γ(large)/Γ(small + large) by Stirling's series, its arguments shifted by Γ(x + 1) = x Γ(x) until they are
    large enough: a third of what JAX's special functions and their derivatives cost.
    """
    small, large = jnp.minimum(a, b), jnp.maximum(a, b)
    far = large >= _FAR
    near, less = jnp.where(far, 1.0, large), jnp.where(far, 1.0, small)
    big = jnp.where(far, large, near + _SHIFT)
    return (
        log_gamma(small)
        + jnp.where(far, 0.0, jnp.log(_rising(less + near) / _rising(near)))
        + small * (1 - jnp.log(small + big))
        - (big - 0.5) * jnp.log1p(small / big)
        + _stirling(big)
        - _stirling(small + big)
    )


def log_gamma(x: Any) -> Any:
    """log Γ(x) for positive x, with derivatives that cost as little as itself."""
    far = x >= _FAR
    near = jnp.where(far, 1.0, x)
    big = jnp.where(far, x, near + _SHIFT)
    shift = jnp.where(far, 0.0, log(_rising(near)))
    return (big - 0.5) * log(big) - big + 0.5 * _LOG_2PI + _stirling(big) - shift


def _rising(x: Any) -> Any:
    """x (x + 1) ⋯ (x + 9) = Γ(x + 10)/Γ(x), in pairs of factors from both ends."""
    pair = x * (x + (_SHIFT - 1))
    return pair * (pair + 8) * (pair + 14) * (pair + 18) * (pair + 20)


def _stirling(x: Any) -> Any:
    """log Γ(x) − (x − ½) log x + x − ½ log 2π, for large x."""
    found, inverse = 0.0, 1 / x
    for term in reversed(_STIRLING):
        found = found * (inverse * inverse) + term
    return found * inverse


def log1mexp(gap: Any) -> Any:
    """log(1 − exp(−gap)) for a positive or infinite gap; its gradient stays finite, NaN stays NaN."""
    endless = jnp.isposinf(gap)
    gap = jnp.where(endless, 1.0, gap)
    near = gap < 0.7
    close, far = jnp.where(near, gap, 0.5), jnp.where(near, 1.0, gap)
    return jnp.where(endless, 0.0, jnp.where(near, jnp.log(-jnp.expm1(-close)), jnp.log1p(-jnp.exp(-far))))


def integrate_density(log_prob: Callable[[Any], Any], lower: Any, upper: Any) -> Any:
    """The log integral of a density over a short interval."""
    half, middle = 0.5 * (upper - lower), 0.5 * (upper + lower)
    usable = jnp.isfinite(half)
    half, middle = jnp.where(usable, half, 0.0), jnp.where(usable, middle, 1.0)

    def add(total: Any, node: Any) -> tuple[Any, None]:
        place, weight = node
        return jnp.logaddexp(total, jnp.log(weight) + log_prob(middle + half * place)), None

    nothing = jnp.full(jnp.shape(half), -jnp.inf)
    total, _ = lax.scan(add, nothing, (jnp.asarray(_NODES), jnp.asarray(_NODE_WEIGHTS)))
    return jnp.where(half > 0, total + jnp.log(jnp.where(half > 0, half, 1.0)), -jnp.inf)


def invert(cdf: Callable[[Any], Any], uniforms: Any) -> Any:
    """Where an increasing function of the whole line reaches each uniform.

    Chandrupatla's method: a bracket about the root, inverse quadratic interpolation where that is safe, else
    halves. It takes a fifth of the steps of bisection.
    """

    def height(t: Any) -> Any:
        share = cdf(jnp.sinh(t))  # the whole line, its far ends included, from a bounded search
        return jnp.where(jnp.isnan(share), jnp.where(t > 0, 1.0, 0.0), share) - uniforms

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        count, done, new, last, old, f_last, f_old, move = state
        # `last` and `old` are on either side of the root; `third` is the end that was given up.
        place = last + move * (old - last)
        found = height(place)
        same = jnp.sign(found) == jnp.sign(f_last)
        third, f_third = jnp.where(same, last, old), jnp.where(same, f_last, f_old)
        old, f_old = jnp.where(same, old, last), jnp.where(same, f_old, f_last)
        best = jnp.where(jnp.abs(found) < jnp.abs(f_old), place, old)
        least = 2e-15 * (1 + jnp.abs(best)) / jnp.maximum(jnp.abs(old - place), 1e-300)
        xi, phi = (place - old) / (third - old), (found - f_old) / (f_third - f_old)
        safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi)
        curve = found / (f_old - found) * f_third / (f_old - f_third) + (third - place) / (old - place) * (
            found / (f_third - found) * f_old / (f_third - f_old)
        )
        move = jnp.clip(jnp.where(safe, curve, 0.5), jnp.minimum(least, 0.5), 1 - jnp.minimum(least, 0.5))
        new = jnp.where(done, new, best)
        return count + 1, done | (least > 0.5) | (found == 0), new, place, old, found, f_old, move

    high = jnp.full(jnp.shape(uniforms), 40.0)
    half = jnp.full(jnp.shape(uniforms), 0.5)
    never = jnp.zeros(jnp.shape(uniforms), dtype=bool)
    start = 0, never, high, high, -high, 1 - uniforms, -uniforms, half
    going = lambda state: (state[0] < _HALVINGS) & ~state[1].all()  # noqa: E731 - what the loop asks
    return jnp.sinh(lax.while_loop(going, step, start)[2])


def invert_whole_numbers(cdf: Callable[[Any], Any], uniforms: Any, first: Any, last: Any) -> Any:
    """The smallest whole number from `first` to `last` whose distribution function reaches each uniform."""

    def enough(places: Any) -> Any:
        return (cdf(places) >= uniforms) | (places >= last)

    def reach_out(ends: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        low, high, found = ends
        further = jnp.minimum(jnp.where(found, high, first + 2 * (high - first) + 1), last)
        return jnp.where(found, low, high), further, found | enough(further)

    def halve(ends: tuple[Any, Any]) -> tuple[Any, Any]:
        low, high = ends
        middle = jnp.maximum(jnp.floor(0.5 * (low + high)), low + 1)
        reached = enough(middle)
        return jnp.where(reached, low, middle), jnp.where(reached, middle, high)

    below = jnp.full(jnp.shape(uniforms), first - 1)
    start = below, below + 1, enough(below + 1)
    low, high, _ = lax.while_loop(lambda ends: ~ends[2].all(), reach_out, start)
    return lax.while_loop(lambda ends: (ends[1] - ends[0] > 1).any(), halve, (low, high))[1]


def discrete_log_mass(response: Any, values: Any, lower: Any, upper: Any) -> Any:
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


def inverts(response: Any, *, discrete: bool) -> bool:
    """Whether quantiles come from a distribution function; if not, the response can only be sampled."""
    half = jnp.full(response.batch_shape, 0.5)
    functions = [_discrete_cdf(response)] if discrete else [response.icdf, response.cdf]
    return any(_has(function, half) for function in functions)


def _has(function: Callable[[Any], Any], values: Any) -> bool:
    try:
        jax.eval_shape(function, values)
    except (NotImplementedError, ImportError, SettingError):
        return False
    return True


def continuous_quantile(response: Any, uniforms: Any, key: Any) -> Any:
    if _has(response.icdf, uniforms):
        return _per_record(response.icdf(uniforms), uniforms)
    if not _has(response.cdf, uniforms):
        return _sampled(response, uniforms, key)
    transform = biject_to(response.support)
    sign = jnp.where(transform(jnp.ones(())) > transform(-jnp.ones(())), 1.0, -1.0)
    return transform(sign * invert(lambda t: response.cdf(transform(sign * t)), uniforms))


def discrete_quantile(response: Any, uniforms: Any, key: Any) -> Any:
    """The smallest whole number whose distribution function reaches the uniform."""
    cdf = _discrete_cdf(response)
    if not _has(cdf, uniforms):
        return _sampled(response, uniforms, key)
    first, last = 0.0, 2.0**52
    if response.has_enumerate_support:
        places = response.enumerate_support(expand=False)
        first, last = jnp.min(places) * 1.0, jnp.max(places) * 1.0
    return invert_whole_numbers(cdf, uniforms, first, last)


def _sampled(response: Any, uniforms: Any, key: Any) -> Any:
    missing = jnp.shape(uniforms) if response.batch_shape == () else ()
    return _per_record(response.sample(key, missing), uniforms)
