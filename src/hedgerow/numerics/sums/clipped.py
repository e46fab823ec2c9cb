"""Moments of a centred normal variable that is clipped to a symmetric window, in closed form."""

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from hedgerow.arrays import Array


class ClippedMoments(NamedTuple):
    """Moments of clip(e, −w, w), e ~ Normal(0, 1), at a window w."""

    slope: Array  # η: how fast the mean follows an offset
    curvature: Array  # e: how fast the second moment follows σ², and the square of an offset
    second: Array
    fourth: Array


def clipped_moments(window: Array | float) -> ClippedMoments:
    """At each window, in standard deviations of the normal variable before it was clipped."""
    a = np.asarray(window, dtype=np.float64)
    density, beyond = np.exp(-(a**2) / 2) / np.sqrt(2 * np.pi), ndtr(-a)
    slope = 1 - 2 * beyond
    curvature = slope - 2 * a * density
    fourth = 3 * slope - 2 * a**3 * density - 6 * a * density + 2 * a**4 * beyond
    return ClippedMoments(slope, curvature, curvature + 2 * a**2 * beyond, fourth)
