"""Disclosure measures on copies, as their users know them. Confidential: they compare with the data.

An intruder knows some columns of a record exactly and its outcome to within a radius, and looks for it in a
copy. With B(x) = [x(1−r), x(1+r)] and c_i the number of rows of the copy that share the known columns of
record i and whose synthetic outcome lies in B(x_i):

- expected match risk: Σ T_i / c_i, where T_i says that the record's own row is among them;
- true match rate: the share of records with c_i = 1 and T_i = 1;
- false match rate: among records with c_i = 1, the share with T_i = 0;
- identification risk: the mean of T_i times the share of those rows *outside* B(x_i).

These describe one copy and one intruder. They are not bounds, and small values promise nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.errors import DataError, SettingError, format_value
from hedgerow.tables.table import Table


@dataclass(frozen=True)
class Disclosure:
    """Measures of one copy; confidential."""

    expected_match_risk: float
    true_match_rate: float
    false_match_rate: float  # NaN where no record has exactly one match
    identification_risk: float
    attribute_rate: float  # share of outcomes guessed to within the radius from rows of the same pattern
    attribute_baseline: float  # the same from the whole copy


def disclosure(
    original: object, copy: object, outcome: str, *, radius: float = 0.2, known: Sequence[str] = ()
) -> Disclosure:
    """Measure one copy against the table it was made from."""
    if not np.isfinite(radius) or not 0 < radius < 1:
        raise SettingError(f"radius must lie strictly between 0 and 1, got {format_value(radius)}.")
    table, synthetic = Table.of(original), Table.of(copy)
    if table.rows != synthetic.rows:
        raise DataError(
            f"The copy has {synthetic.rows} rows, the table {table.rows}; they must match by row."
        )
    true, fake = table.numbers(outcome), synthetic.numbers(outcome)
    patterns = table.labels(list(known))
    matches, near, guess = np.empty((3, len(true)))
    ends = true * (1 - radius), true * (1 + radius)
    low, high = np.minimum(*ends), np.maximum(*ends)
    for label in np.unique(patterns):
        rows = np.flatnonzero(patterns == label)
        ordered = np.sort(fake[rows])
        first = np.searchsorted(ordered, low[rows], side="left")
        last = np.searchsorted(ordered, high[rows], side="right")
        matches[rows] = last - first
        near[rows] = (last - first) / len(rows)
        guess[rows] = np.median(ordered)
    own = (fake >= low) & (fake <= high)
    single = matches == 1
    return Disclosure(
        expected_match_risk=float(np.sum(own / np.maximum(matches, 1.0))),
        true_match_rate=float((single & own).mean()),
        false_match_rate=float((single & ~own).sum() / single.sum()) if single.any() else float("nan"),
        identification_risk=float((own * (1 - near)).mean()),
        attribute_rate=float(((guess >= low) & (guess <= high)).mean()),
        attribute_baseline=float(((np.median(fake) >= low) & (np.median(fake) <= high)).mean()),
    )
