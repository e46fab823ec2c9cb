"""What is lost: distances between the confidential outcome and its copies. Confidential."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.arrays import PerRecord
from hedgerow.errors import SettingError
from hedgerow.threads import WORTH_SHARING, share_out

QUANTILES = (0.1, 0.25, 0.75, 0.9, 0.99)


@dataclass(frozen=True)
class EcdfDistance:
    """Differences of two empirical distribution functions on their merged points."""

    maximum: float
    mean_absolute: float
    mean_squared: float


def ecdf_distance(original: PerRecord, copy: PerRecord) -> EcdfDistance:
    """Compare two empirical distribution functions on the merged 2n points.

    The paper's "average record-level difference" is, in its authors' code, the mean squared one.
    """
    first, second = np.sort(_column(original)), np.sort(_column(copy))
    gap = np.concatenate([_last_places(first), np.searchsorted(first, second, side="right")]) / len(first)
    gap -= np.concatenate([np.searchsorted(second, first, side="right"), _last_places(second)]) / len(second)
    return EcdfDistance(
        maximum=float(np.abs(gap).max()),
        mean_absolute=float(np.abs(gap).mean()),
        mean_squared=float((gap**2).mean()),
    )


def _last_places(ordered: PerRecord) -> PerRecord:
    """For each of the values, in order, how many are at most as large."""
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    return np.repeat(ends + 1, np.diff(ends, prepend=-1))


def statistics(values: PerRecord, quantiles: Sequence[float] = QUANTILES) -> dict[str, float]:
    """Mean, median and quantiles (type 7, as in R and NumPy)."""
    values = _column(values)
    found = np.quantile(values, quantiles).tolist()
    named = {f"q{round(100 * q, 6):g}": value for q, value in zip(quantiles, found, strict=True)}
    return {"mean": float(values.mean()), "median": float(np.median(values)), **named}


def compare_copies(
    original: PerRecord, copies: Sequence[PerRecord], quantiles: Sequence[float] = QUANTILES
) -> dict[str, list[object]]:
    """Tidy columns copy, statistic, original, synthetic; then the mean over copies as copy "pooled".

    The ECDF rows compare distributions, so their "original" is 0, the distance of the data to itself.
    """

    def describe(copy: PerRecord) -> dict[str, float]:
        distance = ecdf_distance(original, copy)
        return {
            "ecdf_max": distance.maximum,
            "ecdf_mean_absolute": distance.mean_absolute,
            "ecdf_mean_squared": distance.mean_squared,
            **statistics(copy, quantiles),
        }

    described = share_out(describe, copies, worth=len(original) > WORTH_SHARING)
    truth, by_copy = statistics(original, quantiles), {str(k): row for k, row in enumerate(described, 1)}
    names = by_copy["1"]
    by_copy["pooled"] = {name: float(np.mean([row[name] for row in by_copy.values()])) for name in names}
    return {
        "copy": [label for label in by_copy for _ in names],
        "statistic": [name for _ in by_copy for name in names],
        "original": [truth.get(name, 0.0) for _ in by_copy for name in names],
        "synthetic": [value for row in by_copy.values() for value in row.values()],
    }


def _column(values: PerRecord) -> PerRecord:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or len(found) == 0 or not np.isfinite(found).all():
        raise SettingError("Utility compares columns of finite numbers with at least one row.")
    return found
