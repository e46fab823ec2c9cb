import mpmath
import numpy as np
import pytest

from hedgerow.errors import SettingError
from hedgerow.numerics import triangular
from hedgerow.numerics.triangular import leverages, weighted_factor


def badly_scaled(n=500, seed=0):
    """Columns over twelve orders of magnitude, an outcome with a mean a million times its noise."""
    rng = np.random.default_rng(seed)
    Z = np.column_stack([np.ones(n), 1e8 + 1e6 * rng.normal(size=n), 1e-6 * rng.normal(size=n)])
    y = 1e6 + Z @ np.array([2.0, 1e-6, 1e5]) + rng.normal(size=n)
    return Z, y, rng.uniform(0.0, 1.0, n)


def residual_root(Z, y, power):
    """The root of the weighted residual sum of squares, at 60 digits."""
    with mpmath.workdps(60):
        rows = mpmath.matrix((np.sqrt(power)[:, None] * np.column_stack([Z, y])).tolist())
        A, b = rows[:, : Z.shape[1]], rows[:, Z.shape[1]]
        solution = mpmath.lu_solve(A.T * A, A.T * b)
        return float(mpmath.norm(b - A * solution))


def plain(Z, y, power):
    R = np.linalg.qr(np.sqrt(power)[:, None] * np.column_stack([Z, y]), mode="r")
    return R * np.sign(np.diag(R))[:, None]


@pytest.fixture(params=["narrow", "wide"])
def small_blocks(request, monkeypatch):
    monkeypatch.setattr(triangular, "ROWS", 64)
    monkeypatch.setattr(triangular, "_SHORT_ROWS", 32)
    monkeypatch.setattr(triangular, "_NARROW", 8 if request.param == "narrow" else 0)


@pytest.mark.usefixtures("small_blocks")
def test_streamed_equals_whole():
    Z, y, power = badly_scaled()
    R, want = weighted_factor(Z, y, power), plain(Z, y, power)
    scale = np.linalg.norm(want, axis=0)
    np.testing.assert_allclose(R / scale, want / scale, atol=1e-13)
    assert np.all(np.diag(R) >= 0.0)
    assert np.all(np.tril(R, -1) == 0.0)


@pytest.mark.usefixtures("small_blocks")
def test_residual_survives_a_large_mean():
    Z, y, power = badly_scaled()
    # √(y'Ay) is 1e6 times the residual root: sums of squares keep four digits, the factor keeps nine or more
    assert weighted_factor(Z, y, power)[-1, -1] == pytest.approx(residual_root(Z, y, power), rel=1e-9)


@pytest.mark.usefixtures("small_blocks")
def test_a_factor_continues_from_another_in_any_order():
    Z, y, power = badly_scaled()
    whole = weighted_factor(Z, y, power)
    scale = np.linalg.norm(whole, axis=0)
    cuts = [slice(0, 2), slice(2, 130), slice(130, 500)]
    for order in (cuts, cuts[::-1], [cuts[2], cuts[0], cuts[1]]):
        factor = None
        for c in order:
            factor = weighted_factor(Z[c], y[c], power[c], start=factor)
        np.testing.assert_allclose(factor / scale, whole / scale, atol=1e-13)


def test_weight_zero_is_deletion_and_two_is_repetition():
    Z, y, _ = badly_scaled()
    keep = np.arange(y.size) % 3 > 0
    scale = np.linalg.norm(weighted_factor(Z, y), axis=0)
    removed = weighted_factor(Z[keep], y[keep])
    np.testing.assert_allclose(weighted_factor(Z, y, keep * 1.0) / scale, removed / scale, atol=1e-13)
    twice = weighted_factor(np.vstack([Z, Z]), np.concatenate([y, y]))
    np.testing.assert_allclose(weighted_factor(Z, y, 2.0) / scale, twice / scale, atol=1e-13)


def test_fewer_rows_than_columns():
    Z, y, power = badly_scaled()
    R = weighted_factor(Z[:2], y[:2], power[:2])
    rows = np.sqrt(power[:2])[:, None] * np.column_stack([Z[:2], y[:2]])
    scale = np.linalg.norm(rows, axis=0)
    np.testing.assert_allclose(
        (R.T @ R) / np.outer(scale, scale), rows.T @ rows / np.outer(scale, scale), atol=1e-12
    )


@pytest.mark.usefixtures("small_blocks")
def test_leverages():
    Z, y, power = badly_scaled()
    R = weighted_factor(Z, y, power)
    got = leverages(Z, R)
    Q, _ = np.linalg.qr(np.sqrt(power)[:, None] * Z)
    np.testing.assert_allclose(power * got, np.sum(Q * Q, axis=1), rtol=1e-8, atol=1e-12)
    assert np.sum(power * got) == pytest.approx(Z.shape[1], rel=1e-10)


def test_refusals():
    Z, y, power = badly_scaled()
    with pytest.raises(SettingError, match="negative"):
        weighted_factor(Z, y, -power)
    with pytest.raises(SettingError, match="dependent"):
        leverages(np.ones((4, 2)), np.zeros((3, 3)))
