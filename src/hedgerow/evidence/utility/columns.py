"""Column by column: distances of distribution functions, mean, median and quantiles, shares of kinds.

    >>> original, copy = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 5.0])
    >>> [row["median"] for row in tabulate({"copy": compare_copies(original, [copy])})]
    [2.0, 3.0]

With survey weights a record counts as often as its weight says. Confidential.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.arrays import PerRecord
from hedgerow.errors import SettingError
from hedgerow.evidence.utility.stack import POOLED, SUMMED_UP, sum_up
from hedgerow.numerics.linearized import weighted_quantiles
from hedgerow.threads import WORTH_SHARING, share_out

QUANTILES = (0.1, 0.25, 0.75, 0.9, 0.99)
SHOWN = {"ecdf_max": "ECDF max", "median": "median", "q90": "Q90", "mean": "mean"}


@dataclass(frozen=True)
class EcdfDistance:
    """Differences of two empirical distribution functions on their merged points."""

    maximum: float
    mean_absolute: float
    mean_squared: float


def ecdf_distance(
    original: PerRecord, copy: PerRecord, weights: tuple[PerRecord, PerRecord] | None = None
) -> EcdfDistance:
    """Compare two empirical distribution functions on the merged 2n points.

    The paper's "average record-level difference" is, in its authors' code, the mean squared one. `weights`
    are those of the original's and of the copy's records; the points are not weighted.
    """
    original, copy = check_column(original), check_column(copy)
    first, second = np.sort(original), np.sort(copy)
    below = np.concatenate([_last_places(first), np.searchsorted(first, second, side="right")])
    under = np.concatenate([np.searchsorted(second, first, side="right"), _last_places(second)])
    if weights is None:
        gap = below / len(first)
        gap -= under / len(second)
    else:
        gap = _shares(original, weights[0])[below] - _shares(copy, weights[1])[under]
    return EcdfDistance(
        maximum=float(np.abs(gap).max()),
        mean_absolute=float(np.abs(gap).mean()),
        mean_squared=float((gap**2).mean()),
    )


def _last_places(ordered: PerRecord) -> PerRecord:
    """For each of the values, in order, how many are at most as large."""
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    return np.repeat(ends + 1, np.diff(ends, prepend=-1))


def _shares(values: PerRecord, weights: PerRecord) -> PerRecord:
    """The share of the weight that the k smallest values have, from k = 0 up."""
    running = np.append(0.0, np.cumsum(weights[np.argsort(values, kind="stable")]))
    return running / running[-1]


def statistics(
    values: PerRecord, quantiles: Sequence[float] = QUANTILES, weights: PerRecord | None = None
) -> dict[str, float]:
    """Mean, median and quantiles (type 7, as in R and NumPy)."""
    values = check_column(values)
    if weights is None:
        mean, median, found = values.mean(), np.median(values), np.quantile(values, quantiles).tolist()
    else:
        mean = np.average(values, weights=weights)
        median, *found = weighted_quantiles(values, weights, [0.5, *quantiles]).tolist()
    named = {f"q{round(100 * q, 6):g}": value for q, value in zip(quantiles, found, strict=True)}
    return {"mean": float(mean), "median": float(median), **named}


def compare_copies(
    original: PerRecord,
    copies: Sequence[PerRecord],
    quantiles: Sequence[float] = QUANTILES,
    weights: Sequence[PerRecord] | None = None,
) -> dict[str, list[object]]:
    """Tidy columns copy, statistic, original, synthetic; then the mean over copies, "pooled", and its ends.

    The ends, of several copies, are the "lowest" and the "highest".

    The ECDF rows compare distributions, so their "original" is 0, the distance of the data to itself.
    `weights` are the survey weights of the original's records, then of each copy's.
    """
    own: Sequence[PerRecord | None] = [None] * (1 + len(copies)) if weights is None else weights

    def describe(given: tuple[PerRecord, PerRecord | None]) -> dict[str, float]:
        copy, weight = given
        both = None if own[0] is None or weight is None else (own[0], weight)
        distance = ecdf_distance(original, copy, both)
        return {
            "ecdf_max": distance.maximum,
            "ecdf_mean_absolute": distance.mean_absolute,
            "ecdf_mean_squared": distance.mean_squared,
            **statistics(copy, quantiles, weight),
        }

    pairs = list(zip(copies, own[1:], strict=True))
    described = share_out(describe, pairs, worth=len(original) > WORTH_SHARING)
    truth = statistics(original, quantiles, own[0])
    by_copy = {str(k): row for k, row in enumerate(described, 1)}
    names = by_copy["1"]
    every = np.array([list(row.values()) for row in described])
    for label, cells in sum_up(every).items():
        by_copy[label] = dict(zip(names, cells.tolist(), strict=True))
    return {
        "copy": [label for label in by_copy for _ in names],
        "statistic": [name for _ in by_copy for name in names],
        "original": [truth.get(name, 0.0) for _ in by_copy for name in names],
        "synthetic": [value for row in by_copy.values() for value in row.values()],
    }


def compare_kinds(
    original: PerRecord, copies: Sequence[PerRecord], kinds: Sequence[str]
) -> dict[str, list[Any]]:
    """The share of each kind of cell, in the columns of `compare_copies`; NaN where a rule leaves no cell."""
    shares = [
        [
            np.count_nonzero(values == place) / len(values) if len(values) else np.nan
            for place in range(len(kinds))
        ]
        for values in (original, *copies)
    ]
    by_copy = {str(number): row for number, row in enumerate(shares[1:], 1)}
    by_copy |= {label: cells.tolist() for label, cells in sum_up(np.array(shares[1:])).items()}
    return {
        "copy": [label for label in by_copy for _ in kinds],
        "statistic": [f"share of {kind}" for _ in by_copy for kind in kinds],
        "original": [share for _ in by_copy for share in shares[0]],
        "synthetic": [share for row in by_copy.values() for share in row],
    }


def stack_columns(parts: Mapping[str, Mapping[str, Sequence[Any]]]) -> dict[str, list[Any]]:
    """Tidy columns of several protected columns below each other, their names before them.

    What one part has and another lacks is empty text there.
    """
    keys = dict.fromkeys(key for part in parts.values() for key in part)
    stacked: dict[str, list[Any]] = {"column": [], **{key: [] for key in keys}}
    for name, part in parts.items():
        rows = len(next(iter(part.values())))
        stacked["column"].extend([name] * rows)
        for key in keys:
            stacked[key].extend(part.get(key, [""] * rows))
    return stacked


def unstack_columns(stacked: Mapping[str, Sequence[Any]]) -> dict[str, dict[str, list[Any]]]:
    """What `stack_columns` put together, by column; all of it under no name where there is one column."""
    if "column" not in stacked:
        return {"": {key: list(cells) for key, cells in stacked.items()}}
    parts: dict[str, dict[str, list[Any]]] = {}
    for place, name in enumerate(stacked["column"]):
        part = parts.setdefault(name, {key: [] for key in stacked if key != "column"})
        for key, cells in part.items():
            cells.append(stacked[key][place])
    return parts


def tabulate(utility: Mapping[str, Mapping[str, Sequence[Any]]]) -> list[dict[str, Any]]:
    """What `compare_copies` found, by label, as a small table for people.

    First the original, then for each label the mean over its copies and, of several, the lowest and the
    highest.
    """
    rows: list[dict[str, Any]] = []
    for label, columns in utility.items():
        values: dict[str, dict[str, list[float]]] = {}
        cells = zip(*(columns[name] for name in ("copy", "statistic", "original", "synthetic")), strict=True)
        for copy, statistic, truth, synthetic in cells:
            one = values.setdefault(statistic, {"original": [truth], "pooled": [], "copies": []})
            if copy == POOLED or copy not in SUMMED_UP:
                one["pooled" if copy == POOLED else "copies"].append(synthetic)
        shown = [(name, values[statistic]) for statistic, name in SHOWN.items() if statistic in values]
        if not shown:  # of a column without amounts
            continue
        if not rows:
            rows.append({"": "original"} | {name: one["original"][0] for name, one in shown})
            rows[0][SHOWN["ecdf_max"]] = None  # the distance of the data to itself says nothing
        rows.append({"": label} | {name: one["pooled"][0] for name, one in shown})
        if len(shown[0][1]["copies"]) > 1:
            rows.append({"": "  lowest"} | {name: min(one["copies"]) for name, one in shown})
            rows.append({"": "  highest"} | {name: max(one["copies"]) for name, one in shown})
    return rows


def check_column(values: PerRecord) -> PerRecord:
    """The values as numbers; refused where one is not finite, or none is there."""
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or len(found) == 0 or not np.isfinite(found).all():
        raise SettingError("Utility compares columns of finite numbers with at least one row.")
    return found
