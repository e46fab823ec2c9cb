"""The families' response distributions against SciPy, in both tails, and against themselves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from scipy import special, stats

from hedgerow.models.families import counts
from hedgerow.models.families.classes import Ordered
from hedgerow.models.families.normal import LognormalResponse, NormalResponse
from hedgerow.models.families.positive import GammaResponse, LogStudentResponse, WeibullResponse
from hedgerow.models.families.shares import BetaResponse
from hedgerow.models.families.signed import AsinhResponse, InUnits, StudentResponse
from hedgerow.models.programs import masses as masses_of
from hedgerow.models.programs.potential import x64
from hedgerow.models.programs.response import Spiked, Truncated


class LogOf:
    """A SciPy distribution of the logarithm."""

    def __init__(self, base):
        self.base = base

    def logpdf(self, x):
        return self.base.logpdf(np.log(x)) - np.log(x)

    def cdf(self, x):
        with np.errstate(divide="ignore"):
            return self.base.cdf(np.log(np.maximum(x, 0)))

    def sf(self, x):
        with np.errstate(divide="ignore"):
            return self.base.sf(np.log(x))


class SinhOf:
    """Three times the hyperbolic sine of a SciPy distribution."""

    def __init__(self, base):
        self.base = base

    def logpdf(self, x):
        return self.base.logpdf(np.arcsinh(x / 3)) - 0.5 * np.log(9 + x**2)

    def cdf(self, x):
        return self.base.cdf(np.arcsinh(x / 3))

    def sf(self, x):
        return self.base.sf(np.arcsinh(x / 3))


class Mixed:
    """Two SciPy distributions, the first with a share of 0.3."""

    def __init__(self, *parts):
        self.parts = parts

    def logpdf(self, x):
        return np.log(0.3 * np.exp(self.parts[0].logpdf(x)) + 0.7 * np.exp(self.parts[1].logpdf(x)))

    def cdf(self, x):
        return 0.3 * self.parts[0].cdf(x) + 0.7 * self.parts[1].cdf(x)

    def sf(self, x):
        return 0.3 * self.parts[0].sf(x) + 0.7 * self.parts[1].sf(x)


def mixture():
    places, sigma = jnp.array([0.2, 1.5]), jnp.array([0.4, 0.9])
    return LognormalResponse(places[None, :], sigma, jnp.log(jnp.array([0.3, 0.7])))


CONTINUOUS = {
    "normal": (lambda: NormalResponse(0.3, 1.1), stats.norm(0.3, 1.1)),
    "lognormal": (lambda: LognormalResponse(0.3, 1.1), stats.lognorm(1.1, scale=np.exp(0.3))),
    "gamma": (lambda: GammaResponse(jnp.log(2.0), 1.7), stats.gamma(1.7, scale=2 / 1.7)),
    "gamma, small shape": (lambda: GammaResponse(jnp.log(2.0), 0.2), stats.gamma(0.2, scale=10)),
    "weibull": (lambda: WeibullResponse(jnp.log(2.0), 1.7), stats.weibull_min(1.7, scale=2)),
    "log_student": (lambda: LogStudentResponse(0.3, 0.5, 3.0), LogOf(stats.t(3, 0.3, 0.5))),
    "log_student, df 1.5": (
        lambda: LogStudentResponse(0.3, 0.5, 1.5),
        LogOf(stats.t(1.5, 0.3, 0.5)),
    ),
    "log_student, df 80": (lambda: LogStudentResponse(0.3, 0.5, 80.0), LogOf(stats.t(80, 0.3, 0.5))),
    "student": (lambda: InUnits(StudentResponse(0.1, 0.5, 3.0), 3.0), stats.t(3, 0.3, 1.5)),
    "asinh": (lambda: InUnits(AsinhResponse(0.1, 1.1), 3.0), SinhOf(stats.norm(0.1, 1.1))),
    "beta": (
        lambda: BetaResponse(0.5, 4.0, 0.0, 50.0),
        stats.beta(4 / (1 + np.exp(-0.5)), 4 / (1 + np.exp(0.5)), scale=50),
    ),
    "lognormal_mixture": (
        mixture,
        Mixed(stats.lognorm(0.4, scale=np.exp(0.2)), stats.lognorm(0.9, scale=np.exp(1.5))),
    ),
}
SIGNED = ("student", "asinh")
INTERVALS = [(0.5, 2.0), (1.9999, 2.0), (1e-9, 1e-3), (30.0, 45.0), (12.0, np.inf), (-np.inf, 3.0)]
COUNTS = {
    "poisson": (lambda: counts.Poisson(jnp.log(3.7)), stats.poisson(3.7)),
    "poisson, large": (lambda: counts.Poisson(jnp.log(2000.0)), stats.poisson(2000)),
    "negative_binomial": (
        lambda: counts.NegativeBinomial(jnp.log(3.7), 1.3),
        stats.nbinom(1.3, 1.3 / (1.3 + 3.7)),
    ),
    "negative_binomial, even": (
        lambda: counts.NegativeBinomial(jnp.log(40.0), 1e6),
        stats.nbinom(1e6, 1e6 / (1e6 + 40)),
    ),
}


def run(function, *arrays):
    """Compiled as a whole: operation by operation JAX compiles each of them apart."""
    return np.asarray(jax.jit(function)(*(jnp.asarray(array, dtype=float) for array in arrays)))


def masses(make, intervals):
    """The log masses of several intervals."""
    low, high = np.array(intervals, dtype=float).T
    return run(lambda a, b: make().log_mass(a, b), low, high)


def reference(oracle, low, high):
    """SciPy's mass from whichever tail is the smaller."""
    if oracle.cdf(low) > 0.5:
        return np.log(oracle.sf(low) - oracle.sf(high))
    return np.log(oracle.cdf(high) - oracle.cdf(low))


@pytest.mark.slow
def test_the_logarithm_of_the_beta_function_keeps_its_digits():
    """Around 8 to 40, where jax.scipy's is off by 1e-6, with its slope; far beyond, where SciPy's loses more
    and more digits (1e-12 at 1000, being a difference of log Γ), by B(a + 1, b) = B(a, b)·a/(a + b)."""
    middle = np.linspace(7, 45, 60)
    with x64(True):
        small, large = np.meshgrid(np.logspace(-3, 3, 60), np.append(middle, np.logspace(2, 3, 10)))
        for a, b in ((small, large), (large, small)):
            found = np.asarray(masses_of.log_beta(a, b))
            np.testing.assert_allclose(found, special.betaln(a, b), rtol=1e-13, atol=5e-12)
        slope = jax.vmap(jax.grad(lambda b: masses_of.log_beta(2.5, b)))(middle)
        small, large = np.meshgrid(np.logspace(-2, 4, 60), np.logspace(3, 9, 20))
        step = masses_of.log_beta(small + 1, large) - masses_of.log_beta(small, large)
    np.testing.assert_allclose(slope, special.digamma(middle) - special.digamma(middle + 2.5), rtol=1e-11)
    np.testing.assert_allclose(step, np.log(small / (small + large)), rtol=1e-10)


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if name not in SIGNED])
def test_continuous_densities_and_masses_match_scipy(name):
    make, oracle = CONTINUOUS[name]
    x = np.array([0.01, 0.3, 1.0, 4.0, 30.0])
    with x64(True):
        scores, found = run(lambda v: make().log_prob(v), x), masses(make, INTERVALS)
    np.testing.assert_allclose(scores, oracle.logpdf(x), rtol=1e-10, atol=1e-10)
    # SciPy's own difference keeps about eight digits for the narrow interval.
    np.testing.assert_allclose(found, [reference(oracle, *ends) for ends in INTERVALS], rtol=1e-8)


@pytest.mark.parametrize("name", SIGNED)
def test_signed_amounts_match_scipy_on_either_side_of_zero(name):
    make, oracle = CONTINUOUS[name]
    x = np.array([-1e4, -30.0, -0.2, 0.0, 7.0])
    ends = [*INTERVALS, (-np.inf, -300.0), (-40.0, -39.9), (-2.0, 5.0), (-1e4, -0.5), (-np.inf, np.inf)]
    with x64(True):
        scores, found = run(lambda v: make().log_prob(v), x), masses(make, ends)
    np.testing.assert_allclose(scores, oracle.logpdf(x), rtol=1e-10)
    np.testing.assert_allclose(found, [reference(oracle, *each) for each in ends], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    "name", [pytest.param(k, marks=[pytest.mark.slow] * k.startswith("negative")) for k in COUNTS]
)
def test_count_probabilities_and_masses_match_scipy(name):
    make, oracle = COUNTS[name]
    x = np.array([0.0, 1.0, 5.0, 30.0, 80.0])
    ends = [(0, 0), (2, 5), (2, 4.999), (20, 40), (80, 90), (1900, 2100), (2000, 2000)]
    with x64(True):
        scores = run(lambda v: make().log_prob(v), x)
        *found, whole, tail = masses(make, [*ends, (-np.inf, np.inf), (3.0, np.inf)])
    np.testing.assert_allclose(scores, oracle.logpmf(x), rtol=1e-7)
    wanted = [np.logaddexp.reduce(oracle.logpmf(np.arange(np.ceil(a), np.floor(b) + 1))) for a, b in ends]
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)
    assert whole == 0
    np.testing.assert_allclose(tail, oracle.logsf(2), rtol=1e-8, atol=1e-12)


@pytest.mark.slow
def test_masses_hold_where_distribution_functions_underflow():
    with x64(True):
        # P(X > 5000) at mean 1 is e^-5000.
        far = masses(lambda: GammaResponse(0.0, 1.0), [(5000.0, np.inf)])
        np.testing.assert_allclose(far, [-5000], rtol=1e-12)
        rare = masses(lambda: counts.Poisson(0.0), [(400.0, 420.0)])
        wanted = np.logaddexp.reduce(stats.poisson(1).logpmf(np.arange(400, 421)))
        np.testing.assert_allclose(rare, [wanted], rtol=1e-10)


@pytest.mark.parametrize("name", ["poisson", pytest.param("negative_binomial", marks=pytest.mark.slow)])
def test_counts_from_a_declared_lower_end_match_scipy(name):
    """What is left out rounds to one where the mean is far below: the rest must come from the tail itself."""
    first, value, few = 50, 53.0, name == "poisson"
    mean, size = np.array([0.01, 10.0, 30.0, 48.0, 70.0, 900.0]), np.array([0.5, 3.0, 40.0, 1e5, 3.0, 3.0])
    oracle = stats.poisson(mean) if few else stats.nbinom(size, size / (size + mean))
    wanted = oracle.logpmf(value) - oracle.logsf(first - 1)
    with x64(True):

        def score(p):
            base = counts.Poisson(p[0]) if few else counts.NegativeBinomial(p[0], jnp.exp(p[1]))
            return counts.Between(base, first, None).log_prob(jnp.full(6, value))

        point, step = np.log([mean, size]), np.array([[1e-5], [2e-5]])
        both = jax.jit(lambda p: (score(p), jax.grad(lambda q: score(q).sum())(p)))
        found, slope = (np.asarray(one) for one in both(point))
        change = np.asarray(both(point + step)[0] - both(point - step)[0]) / 2
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose((slope * step).sum(axis=0), change, rtol=1e-4, atol=1e-9)


@pytest.mark.slow
def test_a_far_tail_of_counts_is_the_sum_of_all_its_terms():
    """The distribution function underflows there, and hundreds of thousands of terms matter."""
    low, high, mean, size = 3e7, 3.1e7, 1e4, np.array([0.3, 1.0, 1.3])
    oracle = stats.nbinom(size, size / (size + mean))
    wanted = np.logaddexp.reduce(oracle.logpmf(np.arange(low, high + 1)[:, None]), axis=0)
    with x64(True):
        response = counts.NegativeBinomial(jnp.full(3, jnp.log(mean)), jnp.asarray(size))
        for end in (high, np.inf):
            found = run(response.log_mass, np.full(3, low), np.full(3, end))
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)


def test_weibull_masses_hold_for_shapes_up_to_a_hundred():
    """Against the same mass on the scale of logarithms, where nothing overflows; three values from SciPy."""
    random = np.random.default_rng(12)
    shape = np.exp(random.uniform(np.log(0.05), np.log(100), 2000))
    low, high = np.sort(np.exp(random.normal(0, 3, (2, 2000))), axis=0)
    low, high = np.where(np.arange(2000) % 7 == 0, 0.0, low), np.where(np.arange(2000) % 5 == 0, np.inf, high)
    shape[:3], low[:3], high[:3] = 60.0, [1e-6, 1e-4, 0.5], [1.0, 0.97, 1.01]
    with np.errstate(divide="ignore", over="ignore"):
        first, last = shape * np.log(low), shape * np.log(high)
        log_rise = last + np.log(-np.expm1(first - last))
        wanted = -np.exp(first) + np.where(
            log_rise < -40, log_rise, np.log(-np.expm1(-np.exp(np.maximum(log_rise, -40))))
        )
    known = np.isfinite(wanted)
    assert known.sum() > 1500
    oracle = stats.weibull_min(60)
    np.testing.assert_allclose(wanted[:3], np.log(oracle.cdf(high[:3]) - oracle.cdf(low[:3])), rtol=1e-10)
    with x64(True):

        def mass(one):
            return WeibullResponse(0.0, one).log_mass(jnp.asarray(low), jnp.asarray(high))

        found, slope = run(mass, shape), run(jax.grad(lambda one: mass(one).sum()), shape)
    np.testing.assert_allclose(found[known], wanted[known], rtol=1e-10, atol=1e-12)
    assert np.isfinite(slope[known]).all()


def test_what_is_no_number_has_no_logarithm_either():
    with x64(True):
        found = run(masses_of.log1mexp, [np.nan, np.inf, 1.0])
    np.testing.assert_allclose(found, [np.nan, 0.0, np.log1p(-np.exp(-1))], rtol=1e-12)


def test_a_weibull_value_never_rounds_to_zero_or_infinity():
    """Both are refused in the data, so that a copy could not be fitted again."""
    with x64(True):
        values = run(lambda u: WeibullResponse(0.0, 0.001).quantile(u), [1e-4, 0.9999])
    assert (values > 0).all()
    assert np.isfinite(values).all()


def test_beta_masses_next_to_zero_match_scipy():
    """There 1 − share has no digit left of the share."""
    logit, precision = np.array([-2.51, -2.51, 0.0, -9.0]), np.array([0.0989, 0.0989, 0.02, 0.5])
    low, high = np.array([8e-18, 1e-30, 1e-40, 1e-25]), np.array([1.05e-16, 0.4, 1.0, 1e-3])
    oracle = stats.beta(precision / (1 + np.exp(-logit)), precision / (1 + np.exp(logit)))
    wanted = np.log(oracle.cdf(high) - oracle.cdf(low))
    with x64(True):
        found = run(lambda *ends: BetaResponse(logit, precision, 0.0, 1.0).log_mass(*ends), low, high)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_ordered_classes_sum_to_one_and_match_the_logistic_differences():
    with x64(True):
        shift = jnp.array([-30.0, -1.0, 0.0, 2.0, 40.0])
        cuts, places = jnp.array([-1.0, 0.4, 3.0]), np.array([1.0, 2.0, 5.0, 9.0])
        ours = Ordered(shift, cuts, places)
        scores = np.stack([ours.log_prob(jnp.full(5, place)) for place in places])
        np.testing.assert_allclose(np.logaddexp.reduce(scores, axis=0), 0, atol=1e-12)
        below = stats.logistic.cdf(np.asarray(cuts)[:, None] - np.asarray(shift))
        np.testing.assert_allclose(np.exp(scores[0]), below[0], rtol=1e-12)
        np.testing.assert_allclose(np.exp(scores[1])[1:4], (below[1] - below[0])[1:4], rtol=1e-10)
        two = ours.log_mass(jnp.full(5, 1.5), jnp.full(5, 5.0))
        np.testing.assert_allclose(two, np.logaddexp(scores[1], scores[2]), rtol=1e-12, atol=1e-12)
        assert np.isneginf(ours.log_mass(jnp.full(5, 5.5), jnp.full(5, 8.0))).all()


RESPONSES = {name: make for name, (make, _) in CONTINUOUS.items()} | {
    "truncated gamma": lambda: Truncated(GammaResponse(0.5, 1.3), 0.2, 4.0),
    "truncated normal": lambda: Truncated(NormalResponse(0.5, 1.3), 0.0, jnp.inf),
    "truncated student": lambda: Truncated(InUnits(StudentResponse(0.5, 1.3, 3.0), 7.0), -20.0, 8.0),
    "truncated asinh": lambda: Truncated(InUnits(AsinhResponse(0.5, 1.3), 7.0), -20.0, jnp.inf),
    "truncated log_student": lambda: Truncated(LogStudentResponse(0.5, 1.3, 3.0), 0.0, 8.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RESPONSES)
def test_quantiles_invert_the_distribution_function(name):
    with x64(True):
        ours = RESPONSES[name]()
        uniforms = jnp.asarray(np.r_[1e-4, np.linspace(0.01, 0.99, 41), 1 - 1e-4])
        below = run(lambda u: ours.log_mass(jnp.full(43, -jnp.inf), ours.quantile(u)), uniforms)
        np.testing.assert_allclose(np.exp(below), uniforms, rtol=1e-6)


SPIKED = {
    "at zero": lambda: Spiked(LognormalResponse(0.5, 1.0), jnp.array(-1.0), 0.0),
    "inside": lambda: Spiked(GammaResponse(0.5, 2.0), jnp.array(-0.5), 1.5),
    "below everything": lambda: Spiked(BetaResponse(0.2, 3.0, 0.0, 1.0), jnp.array(0.3), -9.0),
    "asinh at zero": lambda: Spiked(InUnits(AsinhResponse(0.5, 2.0), 3.0), jnp.array(-0.5), 0.0),
    "gamma at zero": lambda: Spiked(GammaResponse(0.5, 2.0), jnp.array(-0.5), 0.0),
}
WHOLE = {name: make for name, (make, _) in COUNTS.items()} | {
    "between": lambda: counts.Between(counts.NegativeBinomial(1.0, 1.3), 1, 12),
    "from one": lambda: counts.Between(counts.Poisson(0.3), 1, None),
    "ordered": lambda: Ordered(jnp.zeros(199), jnp.array([-1.0, 0.5]), np.array([1.0, 2.0, 4.0])),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", (SPIKED | WHOLE).values(), ids=SPIKED | WHOLE)
def test_quantiles_are_the_smallest_values_that_reach_the_uniform(make):
    with x64(True):
        ours = make()
        uniforms = jnp.asarray(np.linspace(0.0026, 0.9976, 199))
        values = run(ours.quantile, uniforms)
        everything = jnp.full(199, -jnp.inf)
        below = jax.jit(lambda top: jnp.exp(ours.log_mass(everything, top)))
        at, under = np.asarray(below(values)), np.asarray(below(values - 1e-12 * (1 + np.abs(values))))
    assert (at >= np.asarray(uniforms) * (1 - 1e-9) - 1e-9).all()
    assert (under <= np.asarray(uniforms) * (1 + 1e-9) + 1e-9).all()


@pytest.mark.parametrize("name", ["gamma", "log_student", "weibull", "lognormal_mixture"])
def test_predictions_pass_a_goodness_of_fit_test_against_scipy(name):
    """Kolmogorov–Smirnov with 4000 values; false-alarm rate 1e-3 for each of the four."""
    make, oracle = CONTINUOUS[name]
    uniforms = np.random.default_rng(8).uniform(size=4000)
    with x64(True):
        values = run(lambda u: make().quantile(u), uniforms)
    assert stats.kstest(values, oracle.cdf).pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["poisson", "negative_binomial"])
def test_predicted_counts_pass_a_chi_square_test_against_scipy(name):
    """False-alarm rate 1e-3 each; counts from 12 up are one class."""
    make, oracle = COUNTS[name]
    uniforms = np.random.default_rng(9).uniform(size=4000)
    with x64(True):
        values = np.minimum(run(lambda u: make().quantile(u), uniforms), 12).astype(int)
    shares = np.append(oracle.pmf(np.arange(12)), oracle.sf(11))
    assert stats.chisquare(np.bincount(values, minlength=13), 4000 * shares).pvalue > 1e-3


FINITE_GRADIENTS = {
    "gamma": lambda p: Truncated(GammaResponse(p[0], jnp.exp(p[1])), 0.0, 5.0),
    "gamma far away": lambda p: Truncated(GammaResponse(p[0], jnp.exp(p[1])), 1000.0, jnp.inf),
    "weibull": lambda p: Truncated(WeibullResponse(p[0], jnp.exp(p[1])), 0.5, jnp.inf),
    "normal": lambda p: Truncated(NormalResponse(p[0], jnp.exp(p[1])), 0.0, jnp.inf),
    "lognormal": lambda p: Truncated(LognormalResponse(p[0], jnp.exp(p[1])), 0.0, 4.0),
    "log_student": lambda p: Truncated(LogStudentResponse(p[0], 0.7, jnp.exp(p[1])), 0.0, 4.0),
    "counts": lambda p: counts.Between(counts.NegativeBinomial(p[0], jnp.exp(p[1])), 1, 9),
    "spike": lambda p: Spiked(GammaResponse(p[0], jnp.exp(p[1])), p[0], 2.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", FINITE_GRADIENTS.values(), ids=FINITE_GRADIENTS)
def test_gradients_of_restricted_densities_match_differences(make):
    value = 1200.0 if make is FINITE_GRADIENTS["gamma far away"] else 2.0
    with x64(True):
        point = jnp.array([0.3, 0.2])

        def score(p):
            return jnp.sum(make(p).log_prob(jnp.array(value)))

        both = jax.jit(jax.value_and_grad(score))
        steps = [jnp.array([1e-6, 0.0]), jnp.array([0.0, 1e-6])]
        slope = both(point)[1]
        wanted = [float(both(point + step)[0] - both(point - step)[0]) / 2e-6 for step in steps]
    np.testing.assert_allclose(slope, wanted, rtol=2e-5, atol=1e-6)


def _compiled(response):
    def both(parameters, value, low, high):
        ours = response(parameters)
        return ours.log_prob(value), ours.log_mass(low, high)

    return jax.jit(both)


DISCRETE = {
    "poisson": _compiled(lambda p: counts.Poisson(p[0])),
    "negative_binomial": _compiled(lambda p: counts.NegativeBinomial(p[0], jnp.exp(p[1]))),
    "ordinal": _compiled(lambda p: Ordered(p[0], jnp.array([-1.0, 0.5]), np.array([0.0, 1.0, 2.0]))),
}


@pytest.mark.parametrize(
    "name", ["poisson", "ordinal", pytest.param("negative_binomial", marks=pytest.mark.slow)]
)
@given(
    eta=some.floats(-6, 8),
    log_size=some.floats(-3, 8),
    value=some.integers(0, 400),
    under=some.integers(0, 50),
    over=some.integers(0, 50),
)
def test_a_value_is_never_likelier_than_its_class(name, eta, log_size, value, under, over):
    """So that |f − log γ| ≤ |f|: knowing a class never raises the Lipschitz price of a discrete outcome."""
    value = value % 3 if name == "ordinal" else value
    with x64(True):
        at, of = DISCRETE[name](
            jnp.array([eta, log_size]), float(value), float(value - under), value + over + 0.5
        )
    assert float(at) <= float(of) + 1e-9 * (1 + abs(float(at)))
    assert float(of) <= 0


@pytest.mark.parametrize("ends", [(0.0, 1.0), (5.0, 100.0)])
def test_a_beta_value_never_rounds_to_an_end(ends):
    """An end itself is refused in the data, so that a copy could not be fitted again."""
    with x64(True):
        extreme = BetaResponse(jnp.array([-30.0, 30.0]), 0.01, *ends)
        values = np.asarray(extreme.quantile(jnp.array([1e-9, 1 - 1e-9])))
    assert (values > ends[0]).all()
    assert (values < ends[1]).all()


@pytest.mark.parametrize("largest", [counts._TABLE - 1, counts._TABLE + 40])
def test_log_probabilities_of_many_counts_come_from_a_table_with_all_their_digits(largest):
    """With the derivative by the size, on either side of the largest count that the table has."""
    values = np.random.default_rng(1).integers(0, 40, 300)
    values[0] = largest

    def total(log_mean, size):
        return counts.NegativeBinomial(jnp.full(300, log_mean), size).log_prob(jnp.asarray(values)).sum()

    with x64(True):
        found, slope = jax.jit(jax.value_and_grad(total, argnums=1))(1.2, 1.7)
    share = 1.7 / (1.7 + np.exp(1.2))
    np.testing.assert_allclose(float(found), stats.nbinom(1.7, share).logpmf(values).sum(), rtol=1e-13)
    by_size = special.psi(1.7 + values) - special.psi(1.7) + np.log(share) + 1 - share * (1 + values / 1.7)
    np.testing.assert_allclose(float(slope), by_size.sum(), rtol=1e-11)


def test_a_log_share_has_its_digits_and_derivatives_everywhere():
    logits = np.array([-745.0, -40.0, -1e-9, 0.0, 1e-9, 3.0, 700.0])
    with x64(True):
        found = np.asarray(masses_of.log_sigmoid(jnp.asarray(logits)))
        slope, bend = (
            np.asarray(jax.jit(jax.vmap(one))(jnp.asarray(logits)))
            for one in (jax.grad(masses_of.log_sigmoid), jax.hessian(masses_of.log_sigmoid))
        )
        shares = [np.asarray(share) for share in masses_of.split_by_logit(jnp.asarray(logits))]
    np.testing.assert_allclose(found, special.log_expit(logits), rtol=1e-15)
    np.testing.assert_allclose(slope, special.expit(-logits), rtol=1e-15)
    np.testing.assert_allclose(bend, -special.expit(logits) * special.expit(-logits), rtol=1e-15, atol=1e-320)
    np.testing.assert_allclose(
        shares, [special.expit(logits), special.expit(-logits)], rtol=1e-15, atol=1e-320
    )
