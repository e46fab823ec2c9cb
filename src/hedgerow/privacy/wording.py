"""Pieces of wording that claims and certificates share: read without any part of the engine."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

NO_REASON = "No reason was given."


@dataclass(frozen=True)
class Assumption:
    """Something the statement takes as public knowledge, and why."""

    what: str
    because: str


def rounded_up(value: float, digits: int) -> str:
    """A number to some significant digits, rounded up, so that a claim never says less than it must.

    >>> rounded_up(5.7 / 3, 6), rounded_up(0.00508, 2)
    ('1.9', '0.0051')
    """
    if value == 0:
        return "0"
    exact = Decimal(f"{value:.12g}")  # 5.7/3 is a rounding error above 1.9, and means 1.9
    step = Decimal(1).scaleb(exact.adjusted() - digits + 1)
    return f"{exact.quantize(step, rounding=ROUND_CEILING).normalize():f}"
