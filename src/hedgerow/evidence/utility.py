"""What is lost: the confidential outcome beside its copies, in distances, a few statistics and shapes; and
whether a model can tell rows of a table from rows of its copy.

    >>> original, copy = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 5.0])
    >>> [row["median"] for row in tabulate({"copy": compare_copies(original, [copy])})]
    [2.0, 3.0]

Confidential: everything here is computed from the outcome and covered by no price.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from hedgerow.arrays import Matrix, PerRecord
from hedgerow.errors import SettingError
from hedgerow.threads import WORTH_SHARING, share_out

QUANTILES = (0.1, 0.25, 0.75, 0.9, 0.99)
SHOWN = {"ecdf_max": "ECDF max", "median": "median", "q90": "Q90", "mean": "mean"}
CopyMatrix: TypeAlias = Float[np.ndarray, "row column"]
KeptMatrix: TypeAlias = Float[np.ndarray, "record kept"]
_NEWTON, _RIDGE = 50, 1e-6  # steps at most; what keeps coefficients finite where rows can be told apart
_BINS = 60  # what fits beside a label in a terminal of 80 columns
_LOOKED_AT = 100_000  # records are enough for a shape
_WIDE = 30.0  # largest over smallest, or over typical, from which a linear axis shows nothing


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


def compare_kinds(
    original: PerRecord, copies: Sequence[PerRecord], kinds: Sequence[str]
) -> dict[str, list[Any]]:
    """The share of each kind of cell, in the columns of `compare_copies`."""
    shares = [
        [float(np.mean(values == place)) for place in range(len(kinds))] for values in (original, *copies)
    ]
    by_copy = {str(number): row for number, row in enumerate(shares[1:], 1)}
    by_copy["pooled"] = np.mean(shares[1:], axis=0).tolist()
    return {
        "copy": [label for label in by_copy for _ in kinds],
        "statistic": [f"share of {kind}" for _ in by_copy for kind in kinds],
        "original": [share for _ in by_copy for share in shares[0]],
        "synthetic": [share for row in by_copy.values() for share in row],
    }


def compare_associations(
    protected: Mapping[str, PerRecord],
    copies: Sequence[Mapping[str, PerRecord]],
    public: Mapping[str, PerRecord],
) -> dict[str, list[object]]:
    """Tidy columns first, second, copy, original, synthetic: rank correlations of pairs.

    One of a pair is protected at least. A pair's records are those with values of both; public columns are in
    every copy as they are.
    """
    names, found = list(protected), dict[str, list[object]]()
    pairs = [(a, b) for place, a in enumerate(names) for b in (*names[place + 1 :], *public)]
    tables = [{**public, **table} for table in (protected, *copies)]
    ranked = share_out(_rank_all, tables, worth=len(next(iter(protected.values()))) > WORTH_SHARING)
    for a, b in pairs:
        truth, *synthetic = (_rank_correlation(ranks[a], ranks[b]) for ranks in ranked)
        shown = {str(k): value for k, value in enumerate(synthetic, 1)} | {
            "pooled": float(np.mean(synthetic))
        }
        for copy, value in shown.items():
            row = {"first": a, "second": b, "copy": copy, "original": truth, "synthetic": value}
            for name, cell in row.items():
                found.setdefault(name, []).append(cell)
    return found


def _rank_all(table: Mapping[str, PerRecord]) -> dict[str, PerRecord]:
    from scipy.stats import rankdata  # slow to import

    return {name: rankdata(values, nan_policy="omit") for name, values in table.items()}


def _rank_correlation(first: PerRecord, second: PerRecord) -> float:
    """Spearman's, of ranks; NaN where one of them does not vary."""
    there = np.isfinite(first) & np.isfinite(second)
    if not there.all():
        first, second = _rank_all({"first": first[there], "second": second[there]}).values()
    if len(first) < 2 or not np.ptp(first) or not np.ptp(second):
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def stack_columns(parts: Mapping[str, Mapping[str, Sequence[Any]]]) -> dict[str, list[Any]]:
    """Tidy columns of several protected columns below each other, their names before them."""
    stacked: dict[str, list[Any]] = {"column": []}
    for name, part in parts.items():
        stacked["column"].extend([name] * len(next(iter(part.values()))))
        for key, cells in part.items():
            stacked.setdefault(key, []).extend(cells)
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
            one["pooled" if copy == "pooled" else "copies"].append(synthetic)
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


@dataclass(frozen=True)
class Propensity:
    """How well a logistic regression tells copied rows from real ones (Snoke et al. 2018)."""

    mean_squared: float  # pMSE: of the fitted probability about the share of copied rows
    expected: float  # of a copy drawn from the right model, with parameters estimated from the table

    @property
    def ratio(self) -> float:
        """1 where nothing was lost; 2 for one posterior draw, or for another sample, of as many rows."""
        return self.mean_squared / self.expected


def measure_propensity(original: Matrix, copy: CopyMatrix, *, kept: KeptMatrix | None = None) -> Propensity:
    """The propensity score's mean squared error and what is to be expected of it without any loss.

    Rows are records, columns the terms of the regression, without an intercept. `kept` has the terms of
    columns that both tables share row by row: they are in the regression, and since no copy can differ in
    them, they do not count among the k − 1 terms of E[pMSE] = (k − 1)(1 − c)² c/N, c the share of copied
    among N rows.
    """
    if kept is not None and not len(original) == len(copy) == len(kept):
        raise SettingError("Columns that are kept have the same rows in the table and in the copy.")
    terms = np.vstack([original, copy])
    shared = np.empty((len(terms), 0)) if kept is None else np.vstack([kept, kept])
    copied = np.repeat([0.0, 1.0], [len(original), len(copy)])
    share = float(copied.mean())
    basis = _span(np.hstack([shared, terms]))  # fitted probabilities depend on the terms' span alone
    coefficients = np.zeros(basis.shape[1])
    fitted = np.full(len(copied), share)
    for _ in range(_NEWTON):
        spread = fitted * (1 - fitted)
        curvature = basis.T @ (spread[:, None] * basis) + _RIDGE * np.eye(len(coefficients))
        step = np.linalg.solve(curvature, basis.T @ (copied - fitted) - _RIDGE * coefficients)
        coefficients += step
        before, fitted = fitted, expit(np.log(share / (1 - share)) + basis @ coefficients)
        if np.abs(fitted - before).max() < 1e-9:
            break
    free = basis.shape[1] - _span(shared).shape[1]
    return Propensity(
        mean_squared=float(np.mean((fitted - share) ** 2)),
        expected=max(free, 1) * (1 - share) ** 2 * share / len(copied),
    )


def _span(terms: Matrix) -> Matrix:
    """Orthogonal columns of length √N that span the terms and an intercept."""
    spread = terms.std(axis=0)
    centred = (terms - terms.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    scaled = np.hstack([np.ones((len(terms), 1)), centred])
    left, lengths, _ = np.linalg.svd(scaled, full_matrices=False)
    return np.asarray(left[:, lengths > 1e-9 * lengths[0]] * np.sqrt(len(terms)))


def bin_shapes(original: PerRecord, copies: Mapping[str, Sequence[PerRecord]]) -> dict[str, Any]:
    """Columns lower, upper, original and one per label: the share of values in each bin, copies together.

    A few different values have a bin each. The bins of positive values that span decades are equally wide on
    a logarithmic scale, those of others with long tails on one that is linear about zero. What lies beyond
    the outermost half percent of every group counts in the last bins.
    """
    groups = {"original": [original], **copies}
    some = {label: np.concatenate([_some(each) for each in parts]) for label, parts in groups.items()}
    edges = _find_edges(some)
    shares = {}
    for label, values in some.items():
        places = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
        shares[label] = np.bincount(places, minlength=len(edges) - 1) / len(values)
    return {"lower": edges[:-1], "upper": edges[1:], **shares}


def _some(values: PerRecord) -> PerRecord:
    return _column(values[~np.isnan(values)])[:: 1 + (len(values) - 1) // _LOOKED_AT]  # what has an amount


def _find_edges(groups: Mapping[str, PerRecord]) -> PerRecord:
    """Where bins begin, and where the last ends."""
    every = np.concatenate(list(groups.values()))
    distinct = np.unique(every)
    if len(distinct) <= _BINS // 2:
        return np.append(distinct, np.nextafter(distinct[-1], np.inf))
    low = min(float(np.quantile(values, 0.005, method="lower")) for values in groups.values())
    high = max(float(np.quantile(values, 0.995, method="higher")) for values in groups.values())
    typical = float(np.median(np.abs(every[every != 0])))
    if distinct[0] > 0 and high > _WIDE * low:
        return np.geomspace(low, high, _BINS + 1)
    if max(-low, high) > _WIDE * typical:
        near = typical / _WIDE
        return near * np.sinh(np.linspace(np.arcsinh(low / near), np.arcsinh(high / near), _BINS + 1))
    if (distinct == np.floor(distinct)).all():  # bins that hold equally many whole numbers
        step = np.ceil((high - low + 1) / _BINS)
        return np.arange(low, high + step + 1, step)
    return np.linspace(low, high, _BINS + 1)


def _column(values: PerRecord) -> PerRecord:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != 1 or len(found) == 0 or not np.isfinite(found).all():
        raise SettingError("Utility compares columns of finite numbers with at least one row.")
    return found
