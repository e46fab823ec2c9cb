import mpmath
import numpy as np
import pytest
from scipy.stats import norm

from hedgerow.numerics.normal_mass import (
    interval_moments,
    interval_quantile,
    log_interval_mass,
    log_star_mass,
)


def exact_log_mass(lower, upper):
    """log(Φ(upper) − Φ(lower)) from the left tail, where mpmath keeps relative precision."""
    with mpmath.workdps(60):
        lower, upper = mpmath.mpf(float(lower)), mpmath.mpf(float(upper))
        if lower > 0:
            lower, upper = -upper, -lower
        return mpmath.log(mpmath.ncdf(upper) - mpmath.ncdf(lower))


def relative_mass_error(lower, upper):
    """|γ / exact γ − 1|, in extended precision because the exact γ may underflow."""
    got = log_interval_mass(np.asarray(lower, float), np.asarray(upper, float))
    with mpmath.workdps(30):
        return np.array(
            [
                float(abs(mpmath.expm1(mpmath.mpf(float(g)) - exact_log_mass(a, b))))
                for g, a, b in zip(got, lower, upper, strict=True)
            ]
        )


def random_intervals(count, seed):
    rng = np.random.default_rng(seed)
    lower = rng.uniform(-40, 40, count)
    width = 10.0 ** rng.uniform(-12, 1.9, count)
    upper = np.minimum(lower + width, 40.0)
    flip = rng.random(count) < 0.5
    return np.where(flip, -upper, lower), np.where(flip, -lower, upper)


def test_random_intervals_match_high_precision():
    lower, upper = random_intervals(400, seed=1)
    keep = upper > lower
    assert relative_mass_error(lower[keep], upper[keep]).max() < 1e-10


@pytest.mark.parametrize("end", [0.0, 1e-9, 0.3, 1.0, 4.5, 9.0, 25.0, 37.5, 40.0])
@pytest.mark.parametrize("width", [1e-12, 1e-8, 1e-3, 0.009, 0.02, 0.1, 0.19, 0.21, 1.0, 10.0])
def test_every_branch_on_either_side(end, width):
    lower = np.array([end, -end, -end - width, -0.5 * width, end - 0.3 * width])
    upper = lower + width
    keep = upper > lower
    assert relative_mass_error(lower[keep], upper[keep]).max() < 1e-10


def test_both_sides_of_the_narrow_threshold():
    middle = np.repeat([0.0, 0.5, 3.0, 20.0, 39.0], 2)
    half = 0.1 / (middle + 1.0) * np.tile([1 - 1e-6, 1 + 1e-6], 5)
    assert relative_mass_error(middle - half, middle + half).max() < 1e-13


def test_infinite_ends():
    ends = np.array([-40.0, -8.0, -1.0, 0.0, 0.5, 3.0, 40.0])
    infinite = np.full_like(ends, np.inf)
    for lower, upper in [(-infinite, ends), (ends, infinite)]:
        assert relative_mass_error(lower, upper).max() < 1e-10
    assert log_interval_mass(np.array([-np.inf]), np.array([np.inf]))[0] == 0.0


def test_degenerate_intervals():
    ends = np.array([-np.inf, -3.0, 0.0, 50.0, np.inf])
    np.testing.assert_array_equal(log_interval_mass(ends, ends), np.full(5, -np.inf))
    assert np.isnan(log_interval_mass(np.array([1.0, np.nan]), np.array([0.0, 1.0]))).all()


def test_beyond_forty_the_logarithm_stays_finite_and_accurate():
    lower = np.array([45.0, 1e3, 1e8, -1e100])
    upper = np.array([46.0, np.inf, 1e8 + 1.0, -9e99])
    got = log_interval_mass(lower, upper)
    near = np.array([45.0, 1e3, 1e8, 9e99])
    leading = -0.5 * near**2 - np.log(near) - 0.5 * np.log(2 * np.pi)  # log of φ(near)/near
    np.testing.assert_allclose(got, leading, rtol=1e-6)
    np.testing.assert_allclose(got[0], float(exact_log_mass(45.0, 46.0)), rtol=1e-14)


def test_reflection_and_additivity():
    lower, upper = random_intervals(5000, seed=2)
    np.testing.assert_array_equal(log_interval_mass(lower, upper), log_interval_mass(-upper, -lower))
    cut = lower + 0.37 * (upper - lower)
    parts = np.logaddexp(log_interval_mass(lower, cut), log_interval_mass(cut, upper))
    wide = upper - lower > 1e-3  # for narrower ones the cut itself is rounded
    np.testing.assert_allclose(parts[wide], log_interval_mass(lower, upper)[wide], rtol=1e-13, atol=1e-11)


def test_shapes_broadcast():
    assert log_interval_mass(np.zeros((3, 1)), np.ones(4)).shape == (3, 4)


@pytest.mark.parametrize(
    ("lower", "upper"),
    [(-1, 2), (0.3, 0.31), (-9, 40), (3, 3.5), (10.5, 11), (700, 701), (4e4, 4e4 + 1e-5), (-60, -59)],
)
def test_moments_and_quantiles_of_a_restricted_normal(lower, upper):
    """Against 60 digits, in the middle, in narrow pieces and far out."""
    with mpmath.workdps(60):
        low, high = mpmath.mpf(lower), mpmath.mpf(upper)

        def mass(a, b):
            flip = a + b < 0
            a, b = (-b, -a) if flip else (a, b)
            return (mpmath.erfc(a / mpmath.sqrt(2)) - mpmath.erfc(b / mpmath.sqrt(2))) / 2

        whole = mass(low, high)
        hazards = [mpmath.npdf(low) / whole, mpmath.npdf(high) / whole]
        mean = hazards[0] - hazards[1]
        variance = 1 + low * hazards[0] - high * hazards[1] - mean**2
        moments = interval_moments(np.array([float(lower)]), np.array([float(upper)]))
        assert moments.mean[0] == pytest.approx(float(mean), rel=1e-13)
        assert moments.variance[0] == pytest.approx(float(variance), rel=1e-9)
        assert moments.lower_hazard[0] == pytest.approx(float(hazards[0]), rel=1e-11, abs=1e-300)
        assert moments.upper_hazard[0] == pytest.approx(float(hazards[1]), rel=1e-11, abs=1e-300)
        for share in (1e-9, 0.1, 0.5, 0.999):
            value = interval_quantile(*np.array([[lower], [upper], [share]], dtype=float))[0]
            assert lower <= value <= upper
            # The spacing of doubles out there, and of probabilities, is all that is lost.
            lost = max(np.spacing(abs(value)) * float(max(hazards)) * 4, 4e-16)
            assert float(mass(low, mpmath.mpf(value)) / whole) == pytest.approx(share, rel=1e-9, abs=lost)


def test_far_out_and_steep_boxes_keep_their_digits():
    rng = np.random.default_rng(5)
    for _ in range(12):
        slope, centre = rng.choice([0.1, 1, 5, 20]), 3 * rng.normal()
        low, high = centre - rng.random(), centre + rng.choice([0.05, 1, 6])
        lower, upper = slope * centre - rng.random() + 3, slope * centre + 4
        t = np.linspace(low, high, 20_001)
        logs = norm.logpdf(t) + log_interval_mass(lower - slope * t, upper - slope * t)
        weights = np.ones(20_001)
        weights[1:-1:2], weights[2:-1:2] = 4, 2
        wanted = logs.max() + np.log(np.sum(weights * np.exp(logs - logs.max())) * (t[1] - t[0]) / 3)
        given = [np.full((1, 1), float(each)) for each in (low, high, lower, upper, slope)]
        assert log_star_mass(*given[:2], [tuple(given[2:])])[0, 0] == pytest.approx(wanted, abs=1e-6)
