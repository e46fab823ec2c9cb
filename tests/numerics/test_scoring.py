import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hedgerow
from hedgerow.errors import DataError, RangeError, SettingError
from hedgerow.numerics import scoring
from hedgerow.numerics.normal_mass import log_interval_mass
from hedgerow.numerics.scoring import Draws, Extremes

KINDS = ("radius", "narrow", "lower half", "upper half", "line", "elsewhere", "empty", "hair")


def example(n=700, draws=37, columns=2, seed=0, spread=0.05, sigma=1.0, kinds=KINDS):
    """Records with every kind of interval, some of them outliers of up to 40 standard deviations."""
    rng = np.random.default_rng(seed)
    Z = np.column_stack([np.ones(n), rng.normal(1.0, 1.0, (n, columns - 1))])
    beta = 1.0 + spread * sigma * rng.normal(size=(draws, columns))
    scale = sigma * np.exp(spread * rng.normal(size=draws))
    y = Z @ np.ones(columns) + sigma * rng.normal(size=n)
    outliers = rng.random(n) < 0.1
    y[outliers] += sigma * rng.uniform(-40, 40, outliers.sum())
    offsets = {
        "radius": (np.log(0.4), np.log(1.8)),
        "narrow": (-0.01, 0.013),
        "lower half": (-np.inf, 0.7),
        "upper half": (-0.4, np.inf),
        "line": (-np.inf, np.inf),
        "elsewhere": (1.5, 2.5),
        "empty": (0.3, 0.3),
        "hair": (-1e-12, 2e-12),
    }
    chosen = np.array([offsets[kinds[k]] for k in rng.integers(0, len(kinds), n)]).T * sigma
    return Z, y, chosen[0], chosen[1], Draws(beta, scale)


@pytest.fixture(params=["numba", "jax"])
def either_backend(request, monkeypatch):
    monkeypatch.setenv("HEDGEROW_BACKEND", request.param)


def plain(Z, y, lower, upper, draws):
    """f and log γ as draws × records matrices."""
    scale = draws.sigma[:, None]
    r = (y - draws.beta @ Z.T) / scale
    f = -0.5 * r * r - np.log(scale) - 0.5 * np.log(2 * np.pi)
    with np.errstate(invalid="ignore"):
        return f, plain_log_mass(r, lower / scale, upper / scale)


def plain_log_mass(r, lower, upper):
    """Ends as offsets keep the width of a hair: shift the smaller problem, not the ends."""
    direct = log_interval_mass(r + lower, r + upper)
    hair = (upper - lower) < 1e-6
    width = np.where(hair, upper - lower, 1.0)
    middle = r + np.where(hair, 0.5 * (lower + upper), 0.0)
    by_density = np.log(np.maximum(width, 1e-300)) - 0.5 * middle**2 - 0.5 * np.log(2 * np.pi)
    return np.where(hair & (width > 0), by_density, direct)


def assert_extremes(got: Extremes, values, rtol=1e-12):
    np.testing.assert_allclose(got.low, values.min(axis=0), rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(got.high, values.max(axis=0), rtol=rtol, atol=1e-12)


@pytest.mark.usefixtures("either_backend")
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 7])
def test_density(columns):
    Z, y, lower, upper, draws = example(columns=columns)
    f, _ = plain(Z, y, lower, upper, draws)
    assert_extremes(scoring.density_extremes(Z, y, draws), f)
    np.testing.assert_allclose(
        scoring.density_absolute(Z, y, draws, shift=-y), np.abs(f - y).max(axis=0), rtol=1e-12
    )


@pytest.mark.usefixtures("either_backend")
@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("sigma", [1.0, 1e-6, 1e5])
def test_conditional(columns, sigma):
    Z, y, lower, upper, draws = example(columns=columns, sigma=sigma)
    f, log_mass = plain(Z, y, lower, upper, draws)
    got = scoring.conditional_extremes(Z, y, lower, upper, draws)
    # y/σ reaches 1e7 for σ = 1e-6, and its rounding enters r and, times 40, f − log γ, in either evaluation
    rtol = 1e-12 if sigma >= 1 else 1e-8
    assert_extremes(got, f - log_mass, rtol)


@pytest.mark.usefixtures("either_backend")
def test_combined_and_its_special_cases():
    Z, y, lower, upper, draws = example()
    f, log_mass = plain(Z, y, lower, upper, draws)
    rng = np.random.default_rng(3)
    c, e = rng.uniform(0, 1, y.size), rng.normal(size=y.size)
    c[::5], e[::3] = 0.0, 0.0
    with np.errstate(invalid="ignore"):
        values = np.where(c == 0, 0.0, c * f) + np.where(e == 0, 0.0, e * log_mass)
    got = scoring.combined_extremes(Z, y, lower, upper, draws, c, e)
    assert_extremes(got, values)
    both_zero = (c == 0) & (e == 0)
    assert both_zero.any()
    assert np.all(got.low[both_zero] == 0.0)
    assert np.all(got.high[both_zero] == 0.0)


@pytest.mark.usefixtures("either_backend")
def test_mean_mass():
    Z, y, lower, upper, draws = example()
    _, log_mass = plain(Z, y, lower, upper, draws)
    got = scoring.mean_mass(Z, y, lower, upper, draws)
    np.testing.assert_allclose(got, np.exp(log_mass).mean(axis=0), rtol=1e-12, atol=1e-300)
    assert got.min() >= 0.0
    assert got.max() <= 1.0


@pytest.mark.usefixtures("either_backend")
def test_whole_line_is_the_density():
    Z, y, _, _, draws = example()
    got = scoring.conditional_extremes(Z, y, -np.inf, np.inf, draws)
    want = scoring.density_extremes(Z, y, draws)
    np.testing.assert_allclose(got.low, want.low, rtol=1e-14)
    np.testing.assert_allclose(got.high, want.high, rtol=1e-14)


@pytest.mark.parametrize("count", [1, 255, 256, 257, 5000])
def test_neither_threads_nor_cuts_change_a_bit(count, monkeypatch):
    Z, y, lower, upper, draws = example(n=count)
    results = []
    for threads in ("1", "3"):
        monkeypatch.setenv("HEDGEROW_THREADS", threads)
        results.append(scoring.conditional_extremes(Z, y, lower, upper, draws))
    cut = count // 3
    parts = [
        scoring.conditional_extremes(Z[part], y[part], lower[part], upper[part], draws)
        for part in (slice(0, cut), slice(cut, None))
    ]
    results.append(Extremes(*(np.concatenate([getattr(p, end) for p in parts]) for end in ("low", "high"))))
    for other in results[1:]:
        np.testing.assert_array_equal(results[0].low, other.low)
        np.testing.assert_array_equal(results[0].high, other.high)


@pytest.mark.parametrize("columns", [1, 2])
def test_the_loop_for_an_intercept_gives_the_same_bits(columns):
    Z, y, _, _, draws = example(columns=columns)
    fast = scoring.density_extremes(Z[:-1], y[:-1], draws)
    Z[-1, 0] = 2.0  # no intercept any more
    general = scoring.density_extremes(Z, y, draws)
    np.testing.assert_array_equal(fast.low, general.low[:-1])
    np.testing.assert_array_equal(fast.high, general.high[:-1])


def test_segments_of_draws_merge_to_the_whole():
    Z, y, lower, upper, draws = example(draws=100)
    whole = scoring.conditional_extremes(Z, y, lower, upper, draws)
    parts = [
        scoring.conditional_extremes(Z, y, lower, upper, draws[a:b])
        for a, b in [(0, 13), (13, 50), (50, 100)]
    ]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    np.testing.assert_array_equal(merged.low, whole.low)
    np.testing.assert_array_equal(merged.high, whole.high)


def test_bad_draws_and_back_ends_are_refused(monkeypatch):
    with pytest.raises(SettingError, match="sigma above 0"):
        Draws(np.ones((2, 1)), np.array([1.0, 0.0]))
    with pytest.raises(SettingError, match="shape"):
        Draws(np.ones((2, 1)), np.ones(3))
    Z, y, _, _, draws = example()
    with pytest.raises(SettingError, match="column per coefficient"):
        scoring.density_extremes(Z[:, :1], y, draws)
    monkeypatch.setenv("HEDGEROW_BACKEND", "abacus")
    with pytest.raises(SettingError, match="numba, jax"):
        scoring.density_extremes(Z, y, draws)


@pytest.mark.usefixtures("either_backend")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_missing_values_are_refused_rather_than_skipped(bad):
    Z, y, lower, upper, draws = example()
    with pytest.raises(RangeError, match="lower <= upper"):
        scoring.mean_mass(Z, y, np.where(np.arange(y.size) == 3, bad, lower), np.minimum(upper, 5.0), draws)
    Z[7, 1] = bad
    with pytest.raises(DataError, match="finite"):
        scoring.conditional_extremes(Z, y, -1.0, 1.0, draws)


def test_importing_loads_neither_numba_nor_jax():
    code = (
        "import sys, hedgerow, hedgerow.numerics.scoring; print(sorted({'numba', 'jax'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(hedgerow.__file__).parents[1])}
    command = [sys.executable, "-c", code]
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert out.stdout.strip() == "[]"


@pytest.mark.usefixtures("either_backend")
def test_sums_over_links_are_paired_draw_by_draw():
    links, sums = [], 0.0
    for place, columns in enumerate((1, 3, 6)):
        Z, y, lower, upper, draws = example(n=1300, draws=37, columns=columns, seed=place)
        kept = (np.arange(1300) % (place + 2) > 0).astype(np.float64)
        sums = sums + kept * plain(Z, y, lower, upper, draws)[0]
        links.append((Z, y, draws, kept))
    assert_extremes(scoring.links_extremes(links), sums)
    several = scoring.links_extremes(
        [tuple(x[:1100] if isinstance(x, np.ndarray) else x for x in link) for link in links]
    )
    np.testing.assert_allclose(several.low, sums.min(axis=0)[:1100], rtol=1e-12)


def freeze(*arrays):
    for array in arrays:
        array.flags.writeable = False
    return arrays


@pytest.mark.slow
@pytest.mark.parametrize("columns", [1, 2, 14])
def test_chunks_on_a_device_give_what_numba_gives(monkeypatch, columns):
    from hedgerow.numerics.kernels import scoring_jax

    monkeypatch.setattr(scoring_jax, "_RECORDS", 256)
    rng = np.random.default_rng(columns)
    Z, y = rng.normal(size=(700, columns)), rng.normal(size=700)
    lower, upper, shift = -rng.exponential(size=700), rng.exponential(size=700), rng.normal(size=700)
    lower[:40], upper[40:80], upper[80:120] = -np.inf, np.inf, lower[80:120]
    draws = Draws(0.1 * rng.normal(size=(37, columns)), np.exp(0.1 * rng.normal(size=37)))
    freeze(Z, y, lower)
    found = {}
    for name in ("numba", "jax", "jax"):  # the second time from what is on the device already
        monkeypatch.setenv("HEDGEROW_BACKEND", name)
        extremes = scoring.conditional_extremes(Z, y, lower, upper, draws)
        again = [
            scoring.density_absolute(Z, y, draws, shift=shift),
            scoring.conditional_absolute(
                Z[120:], y[120:], lower[120:], upper[120:], draws, shift=shift[120:]
            ),
            scoring.mean_mass(Z, y, lower, upper, draws),
            scoring.combined_extremes(Z, y, lower, upper, draws, 0.5, -0.2).high[120:],
            extremes.low[120:],
            scoring.links_extremes([(Z, y, draws, 1.0), (Z[:, :1], shift, draws_of_one(draws), 1.0)]).low,
        ]
        for one, other in zip(again, found.setdefault("numba", again), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_what_nobody_may_write_to_stays_on_the_device_as_long_as_it_lives(monkeypatch):
    from hedgerow.numerics.kernels import scoring_jax

    monkeypatch.setenv("HEDGEROW_BACKEND", "jax")
    monkeypatch.setattr(scoring_jax, "_RECORDS", 256)
    rng = np.random.default_rng(4)
    y = next(
        y for y in [rng.normal(size=300) for _ in range(200)] if y.ctypes.data % 64 == 0
    )  # aligned, which
    Z, shift = rng.normal(size=(300, 1)), rng.normal(size=300)  # a processor takes as it is
    freeze(Z, y)
    draws = Draws(rng.normal(size=(20, 1)), np.ones(20))
    first = scoring.density_absolute(Z, y, draws, shift=shift)
    held = {id(Z), id(y)}
    assert set(scoring_jax._HELD) >= held
    assert id(shift) not in scoring_jax._HELD
    sent = []
    monkeypatch.setattr(
        scoring_jax.jax, "device_put", lambda part: sent.append(part.shape) or jnp_array(part)
    )
    shift += 1.0
    again = scoring.density_absolute(Z, y, draws, shift=shift)
    assert sent == [(256,), (256,)]  # the shift alone, in two chunks
    shift -= 1.0
    np.testing.assert_allclose(first, np.abs(plain_density(Z, y, draws) + shift).max(axis=0))
    np.testing.assert_allclose(again, np.abs(plain_density(Z, y, draws) + shift + 1).max(axis=0))
    del Z, y
    gc.collect()
    assert not held & set(scoring_jax._HELD)


def jnp_array(part):
    import jax.numpy as jnp

    return jnp.asarray(part)


def plain_density(Z, y, draws):
    return plain(Z, y, -np.ones_like(y), np.ones_like(y), draws)[0]


def draws_of_one(draws):
    return Draws(draws.beta[:, :1], draws.sigma)


def test_a_device_is_asked_for_as_much_as_it_has(monkeypatch):
    from hedgerow.numerics.kernels import scoring_jax

    assert scoring_jax._cut(2) == scoring_jax._RECORDS
    for memory, records in ((2**27, 2**16), (2**30, 2**19), (10**11, 2**20)):
        monkeypatch.setattr(scoring_jax, "_memory", lambda memory=memory: memory)
        assert scoring_jax._cut(2) == records


def test_what_is_no_number_is_refused_on_either_back_end(monkeypatch):
    draws = Draws(np.zeros((8, 1)), np.ones(8))
    for name in ("numba", "jax"):
        monkeypatch.setenv("HEDGEROW_BACKEND", name)
        with pytest.raises(DataError, match="finite numbers"):
            scoring.density_absolute(np.ones((3, 1)), np.array([0.0, np.nan, 1.0]), draws)
