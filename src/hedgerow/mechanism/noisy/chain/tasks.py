"""What is settled of every column before a value is read, in the order of release: all of it public.

    >>> [float(part) for part in split_epsilon(1.0, [1.0, 1.0, 2.0])]
    [0.25, 0.25, 0.5]

The unit is the row: all its protected values are withheld, or replaced, together. A column's sums cost what
they would cost alone, and the columns add up (docs/maths.md, "Several columns by noisy statistics").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import PerRecord, RecordMask
from hedgerow.privacy.strict.limits import Relation


class Values(NamedTuple):
    """What a column holds in its rows: confidential, or of a copy."""

    numbers: PerRecord  # responses of amounts, NaN where there is none; or places of classes
    present: RecordMask  # the others are blank
    kinds: NDArray[np.int64] | None = None  # places among the task's kinds, their number for an amount

    def __repr__(self) -> str:
        return "Values(confidential)"

    def read(self, *, kinds: bool) -> PerRecord:
        """What a round sums: numbers, or what kinds cells are."""
        return self.kinds.astype(np.float64) if kinds and self.kinds is not None else self.numbers

    def take(self, rows: slice) -> "Values":
        """The values of some of the rows."""
        kinds = None if self.kinds is None else self.kinds[rows]
        return Values(self.numbers[rows], self.present[rows], kinds)


@dataclass(frozen=True)
class Task:
    """One column: classes, or amounts between limits with kinds of cells that have none. Small."""

    outcome: str
    formula: str  # its public part
    columns: tuple[str, ...]  # of its public predictors
    reads: tuple[int, ...]  # places of the earlier columns in its line
    epsilon: float
    relation: Relation = "withheld"
    low: float = -1.0  # limits of the response; of no account for classes
    high: float = 1.0
    kinds: tuple[str, ...] = ()  # what a cell may be that has no amount
    classes: int = 0  # how many there are; 0 for amounts
    elsewhere: bool = False  # the first kind, or last class, is that a rule over protected columns fixes it
    margin_share: float = 0.0
    rows_per_unit: int = 1
    jointly: bool = True  # whether entries of a column are bounded together, as older statistics have not
    partial: bool = False  # whether some rows have no cell of its own, by what is public


def split_epsilon(epsilon: float, shares: Sequence[float]) -> list[float]:
    """ε in proportion to public shares; what is rounded never adds up to more than ε."""
    whole, total = Fraction(epsilon), sum(Fraction(share) for share in shares)
    parts = [float(whole * Fraction(share) / total) for share in shares]
    while sum(map(Fraction, parts)) > whole:
        largest = max(range(len(parts)), key=parts.__getitem__)
        parts[largest] = math.nextafter(parts[largest], 0.0)
    return parts
