"""What counts as a number at the door."""

import math

import numpy as np


def is_real(value: object) -> bool:
    """A plain number, not a boolean; may be infinite or NaN."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_finite(value: object) -> bool:
    """A plain number that is finite as a float64."""
    try:
        return is_real(value) and math.isfinite(float(value))  # type: ignore[arg-type]  # is_real has checked
    except OverflowError:  # a whole number beyond the largest float64
        return False


def is_count(value: object) -> bool:
    """A whole number."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
