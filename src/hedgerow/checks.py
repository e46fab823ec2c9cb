"""What counts as a number at the door."""

import numpy as np


def is_real(value: object) -> bool:
    """A plain number, not a boolean; may be infinite or NaN."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_finite(value: object) -> bool:
    """A plain finite number."""
    return is_real(value) and bool(np.isfinite(value))  # type: ignore[call-overload]  # is_real has checked


def is_count(value: object) -> bool:
    """A whole number."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
