"""What is told beforehand of every column, in the order in which they are released: all of it public.

    >>> [float(part) for part in split_epsilon(1.0, [1.0, 1.0, 2.0])]
    [0.25, 0.25, 0.5]

The unit is the row: all its protected values are withheld, or replaced, together. A column's sums cost what
they would cost alone, and the columns add up (docs/maths.md, "Several columns by noisy statistics").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hedgerow.arrays import Matrix
from hedgerow.privacy.strict.limits import Relation


@dataclass(frozen=True, eq=False)
class Task:
    """One column: amounts between limits, with a spike or without, or classes."""

    outcome: str
    formula: str  # its public part
    matrix: Matrix  # public predictors
    columns: tuple[str, ...]  # their names
    reads: tuple[int, ...]  # places of the earlier columns in its line
    epsilon: float
    relation: Relation = "withheld"
    low: float = -1.0  # limits of the response; of no account for classes
    high: float = 1.0
    spiked: bool = False
    classes: int = 0  # how many there are; 0 for amounts
    margin_share: float = 0.0
    rows_per_unit: int = 1


def split_epsilon(epsilon: float, shares: Sequence[float]) -> list[float]:
    """ε in proportion to public shares; what is rounded never adds up to more than ε."""
    whole, total = Fraction(epsilon), sum(Fraction(share) for share in shares)
    parts = [float(whole * Fraction(share) / total) for share in shares]
    while sum(map(Fraction, parts)) > whole:
        largest = max(range(len(parts)), key=parts.__getitem__)
        parts[largest] = math.nextafter(parts[largest], 0.0)
    return parts
