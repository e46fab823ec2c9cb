"""The functions inside the kernels, against mpmath."""

import os
import subprocess
import sys
import textwrap

import mpmath
import numpy as np
import pytest
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

from hedgerow.numerics.kernels import renyi
from hedgerow.numerics.kernels import scoring_numba as kernels


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

    from hedgerow.numerics.kernels import scoring_jax as kernels_jax

    points = np.geomspace(1e-9, 100.0, 500)
    with kernels_jax._x64(True):
        got = np.asarray(kernels_jax._mills(jax.numpy.asarray(points)))
    want = np.array([kernels._mills(x) for x in points])
    np.testing.assert_allclose(got, want, rtol=4e-15)


def test_set_up_compiles_every_kernel_as_a_fit_calls_it():
    compiled = [
        kernel
        for kernel in (*vars(kernels).values(), *vars(renyi).values())
        if isinstance(kernel, Dispatcher) and not isinstance(kernel._cache, NullCache)
    ]
    kernels.compile_all()
    renyi.compile_all()
    assert len(compiled) == 9
    assert [len(kernel.signatures) for kernel in compiled] == [1] * 9

    Z, x = np.random.default_rng(1).normal(size=(400, 2)), np.ones(400)
    Z.flags.writeable = False
    interval, draws = (-x, x), (np.ones((5, 2)), np.ones(5))
    kernels.density_extremes(Z, x, *draws)
    kernels.density_extremes(np.ones((400, 2)), x, *draws)
    kernels.conditional_extremes(Z, x, *interval, *draws)
    kernels.combined_extremes(Z, x, *interval, *draws, x, x)
    kernels.mean_mass(Z, x, *interval, *draws)
    kernels.links_extremes([(Z, x, x, *draws), (Z, x, x, *draws)])
    links = (np.ones((400, 3)),) * 5
    renyi.divergences(*links, np.full((2, 400), 2.0))
    renyi.least_epsilon(*links, np.arange(2.0, 5.0), np.ones(3), 2)
    assert [len(kernel.signatures) for kernel in compiled] == [1] * 9


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_threads_are_started_once_and_anew_after_a_fork():
    script = """
        import os, signal, threading
        import numpy as np
        from hedgerow.numerics.kernels import scoring_numba as kernels

        def score():
            return kernels.density_extremes(np.ones((5000, 1)), x, np.ones((200, 1)), np.ones(200))[0]

        x = np.linspace(0, 1, 5000)
        expected, running = score(), threading.active_count()
        assert running > 1
        score()
        assert threading.active_count() == running
        if os.fork() == 0:
            signal.alarm(30)  # ends a wait for threads that are not there
            os._exit(0 if np.array_equal(score(), expected) else 1)
        assert os.wait()[1] == 0
    """
    environment = os.environ | {"HEDGEROW_THREADS": "2"}
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], env=environment, check=True, timeout=60)
