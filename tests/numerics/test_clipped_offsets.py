"""Moments of clipped normals against sums over a fine grid."""

import numpy as np
import pytest
from scipy import stats

from hedgerow.numerics.sums.clipped_offsets import Clip, clip_normal, clip_normal_twice


@pytest.mark.parametrize("mean", [-6.0, -0.4, 0.0, 2.5])
@pytest.mark.parametrize("sd", [0.05, 0.8, 5.0])
@pytest.mark.parametrize("ends", [(-1.3, 1.3), (-3.7, 0.2), (0.1, 0.1)])
def test_moments_alone_and_together(mean, sd, ends):
    wide, narrow = Clip(0.3, -4.0, 4.0), Clip(0.1, *ends)
    one, two, between = clip_normal_twice(np.array([mean]), np.array([sd]), wide, narrow)
    # Midpoints of equal probability: exact for what is constant, 1e-6 for the rest.
    y = stats.norm.ppf((np.arange(400_000) + 0.5) / 400_000, mean, sd)
    r, s = np.clip(y - 0.3, -4, 4), np.clip(y - 0.1, *ends)
    for power in range(1, 5):
        assert one.moments[power - 1][0] == pytest.approx((r**power).mean(), abs=2e-5 * 4.0**power)
        assert two.moments[power - 1][0] == pytest.approx((s**power).mean(), abs=2e-5 * 4.0**power)

    def covariance(a, b):
        return (a * b).mean() - a.mean() * b.mean()

    assert between.line_line[0] == pytest.approx(covariance(r, s), abs=1e-3)
    assert between.line_square[0] == pytest.approx(covariance(r, s**2), abs=1e-3)
    assert between.square_line[0] == pytest.approx(covariance(r**2, s), abs=1e-3)
    assert between.square_square[0] == pytest.approx(covariance(r**2, s**2), abs=2e-3)


@pytest.mark.parametrize("mean", [-3.0, -0.4, 1.2])
def test_derivatives_by_the_mean(mean):
    clip, sd, step = Clip(0.1, -1.3, 0.9), np.array([0.8]), 1e-4
    back, here, ahead = (clip_normal(np.array([mean + move]), sd, clip) for move in (-step, 0.0, step))
    first, second = ((ahead.moments[k] - back.moments[k]) / (2 * step) for k in (0, 1))
    bend = (ahead.moments[1] - 2 * here.moments[1] + back.moments[1]) / step**2
    assert here.inside == pytest.approx(first, abs=1e-6)
    assert 2 * here.inside_first == pytest.approx(second, abs=1e-6)
    assert here.square_bend == pytest.approx(bend, abs=1e-5)


def test_far_away_everything_lies_at_an_end():
    found = clip_normal(np.array([1e9, -1e9]), np.array([1e-3, 1e-3]), Clip(0.0, -2.0, 3.0))
    assert found.moments[0] == pytest.approx([3.0, -2.0])
    assert found.inside == pytest.approx([0.0, 0.0])
