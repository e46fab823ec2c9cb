"""The functions inside the kernels, against mpmath."""

import mpmath
import numpy as np
import pytest

from hedgerow.numerics import kernels_numba as kernels


def worst(function, exact, points):
    """The largest relative error."""
    with mpmath.workdps(40):
        return max(float(abs(function(float(x)) / exact(mpmath.mpf(float(x))) - 1)) for x in points)


def exact_mills(x):
    return mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(x * x / 2) * mpmath.erfc(x / mpmath.sqrt(2))


def test_exp():
    points = np.concatenate(
        [[0.0, 1e-300, 1e-9, 699.9], np.linspace(0.0, 60.0, 2001), np.linspace(60, 699, 300)]
    )
    assert worst(kernels._exp_minus, lambda x: mpmath.exp(-x), points) < 1e-15
    assert 0.0 < kernels._exp_minus(1e5) < 1e-300
    assert 0.0 < kernels._exp_minus(np.inf) < 1e-300


def test_log():
    rng = np.random.default_rng(0)
    points = np.concatenate(
        [2.0 ** rng.uniform(-1000, 1000, 1000), rng.uniform(0.4, 0.9, 500), rng.uniform(1.1, 3.0, 500)]
    )
    assert worst(kernels._log, mpmath.log, points) < 1e-15
    near_one = 1.0 + np.concatenate([np.linspace(-0.1, 0.1, 500), [1e-15, -1e-15, 1e-9]])
    with mpmath.workdps(40):
        assert max(abs(kernels._log(x) - float(mpmath.log(x))) for x in near_one) < 2e-16
    assert kernels._log(0.0) == -np.inf
    assert kernels._log(1e-310) == -np.inf


def test_mills_ratio():
    points = np.concatenate([np.linspace(0.0, 12.0, 1500), np.geomspace(1e-9, 40.0, 500), [100.0]])
    assert worst(kernels._mills, exact_mills, points) < 2e-15
    assert kernels._mills(1e8) == pytest.approx(1e-8, rel=1e-14)
    assert kernels._mills(np.inf) == 0.0


def test_jax_mills_ratio():
    import jax

    from hedgerow.numerics import kernels_jax

    points = np.geomspace(1e-9, 100.0, 500)
    with kernels_jax._x64(True):
        got = np.asarray(kernels_jax._mills(jax.numpy.asarray(points)))
    want = np.array([kernels._mills(x) for x in points])
    np.testing.assert_allclose(got, want, rtol=4e-15)
