"""Figures for people: rounded so that a claim never says less than it must, and counted in good English."""

import math
from decimal import ROUND_CEILING, Decimal


def format_rounded_up(value: float, digits: int) -> str:
    """A number to some significant digits, rounded up: `format_rounded_up(10 / 3, 3)` is 3.34."""
    if value == 0 or math.isinf(value):
        return "0" if value == 0 else "∞"
    exact = Decimal(f"{value:.12g}")  # 5.7/3 is a rounding error above 1.9, and means 1.9
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{exact.quantize(step, rounding=ROUND_CEILING).normalize():f}"


def format_count(number: int, word: str) -> str:
    """1 copy, 3 copies; 1 row, 3 rows."""
    plural = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    return f"{number} {word if number == 1 else plural}"


def format_figure(value: object, digits: int = 4) -> str:
    """A value in a table: 276,500 or 9,113 or 0.03366, nothing where there is none, no minus before zero."""
    if value is None or value != value:
        return ""
    if not isinstance(value, float):
        return str(value)
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:,.0f}" if 10**digits <= abs(rounded) < 1e9 else f"{rounded:z,.{digits}g}"
