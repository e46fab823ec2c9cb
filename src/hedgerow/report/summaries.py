"""Columns of any length in a few hundred numbers, never without their extremes. Confidential.

    >>> shape = summarize(np.arange(1.0, 1001.0))
    >>> shape["median"], shape["highest"][0]
    (500.5, 1000.0)

What a page shows of a million records is made here: a density on a grid, quartiles, and the outermost values
one by one, so that no summary hides the record that decides. Numbers keep six digits.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, PerRecord
from hedgerow.evidence.utility import bin_shapes, ecdf_distance, statistics

GRID = 48  # places of a density
HIGHEST, LOWEST = 12, 3  # values that are listed one by one
FEW = 120  # points that are all drawn
_BINS = 40  # of risk, where there are more
_COMPARED = 100_000  # values
_WIDE = 30.0  # largest over smallest, from which a density is one of logarithms
# Of quantiles: closer together where the tails are.
SHARES = (0.001, 0.005, 0.01, 0.025, *(k / 20 for k in range(1, 20)), 0.975, 0.99, 0.995, 0.999)
ALONG = (0.1, 0.5, 0.9)  # of one column in tenths of another
_FEWEST_ALONG, _SHORTEST = 5, 4  # records that have quantiles, and points that make a curve
QUANTILES = (0.01, 0.1, 0.25, 0.75, 0.9, 0.99)


def summarize(values: PerRecord, spread: int | None = None) -> dict[str, Any]:
    """A density on a grid, quartiles, the highest and the lowest values; how many are infinite.

    Of some records of many the first `spread` are evenly spaced: density and quartiles are theirs. Those
    after them stand out, and are among the outermost values alone.
    """
    own, every = values[:spread], np.sort(values[np.isfinite(values)])
    ordered, infinite = np.sort(own[np.isfinite(own)]), len(values) - len(every)
    if not len(ordered):
        return {"count": len(own), "infinite": infinite}
    low, high = float(ordered[0]), float(ordered[-1])
    log = low > 0 and high > _WIDE * low
    if high > low:
        edges = np.geomspace(low, high, GRID + 1) if log else np.linspace(low, high, GRID + 1)
        counts = np.histogram(ordered, edges)[0].astype(np.float64)
        for _ in range(2):  # a light smoothing: a violin is looked at for its shape
            counts = np.convolve(np.pad(counts, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
        at = np.sqrt(edges[1:] * edges[:-1]) if log else (edges[1:] + edges[:-1]) / 2
        at, density = (
            np.concatenate([[low], at, [high]]),
            np.concatenate([[0.0], counts / counts.max(), [0.0]]),
        )
    else:
        at, density = np.array([low]), np.array([0.0])
    quartiles = np.quantile(ordered, (0.25, 0.5, 0.75))
    return {
        "count": len(own),
        "infinite": infinite,
        "log": bool(log),
        "at": round_digits(at),
        "density": round_digits(density, 3),
        **dict(zip(("lower", "median", "upper"), round_digits(quartiles), strict=True)),
        "mean": round_digits([ordered.mean()])[0],
        "highest": round_digits(every[::-1][:HIGHEST]),
        "lowest": round_digits(every[:LOWEST]),
    }


def relate_weights(
    risk: PerRecord, alpha: PerRecord, dearest: NDArray[np.intp], spread: int | None = None
) -> dict[str, Any]:
    """Weights against risks: every record of a few; of many bins of risk, and the riskiest one by one.

    The dearest, which need not be the riskiest, one by one in either case. Bins are those of the first
    `spread` records, as in `summarize`.
    """
    usable = np.flatnonzero(np.isfinite(risk) & np.isfinite(alpha))
    order = usable[np.argsort(risk[usable], kind="stable")]
    shown = order if len(usable) <= FEW else order[::-1][: len(dearest)]
    points: dict[str, Any] = {"risk": round_digits(risk[shown])}
    points |= {"alpha": round_digits(alpha[shown]), "bins": []}
    points["dearest"] = {"risk": round_digits(risk[dearest]), "alpha": round_digits(alpha[dearest])}
    if len(usable) <= FEW:
        return points
    for part in np.array_split(order[order < (spread or len(risk))], _BINS):
        own = alpha[part]
        row = np.median(risk[part]), own.min(), np.median(own), own.max()
        points["bins"].append(round_digits(row))
    return points


def compare_amounts(original: PerRecord, copies: Sequence[PerRecord]) -> dict[str, Any]:
    """A column beside its copies: shares in bins, both distribution functions at their ends, quantiles.

    Of copies there are the lowest, the mean and the highest; `few` says that each value has a bin of its own.
    """
    bins = bin_shapes(original, {"copies": copies})
    edges = np.append(bins["lower"], bins["upper"][-1])
    ordered, made = np.sort(original), [np.sort(copy) for copy in copies]
    shares = [np.searchsorted(copy, edges, side="right") / len(copy) for copy in made]
    quantiles = [np.quantile(copy, SHARES) for copy in made]
    by_copy = [statistics(copy, QUANTILES) for copy in made]
    return {
        "edges": round_digits(edges),
        "few": bool(edges[-1] == np.nextafter(edges[-2], np.inf)),
        "original": round_digits(bins["original"]),
        "copies": round_digits(bins["copies"]),
        "ecdf_max": range_of([ecdf_distance(_some(ordered), _some(copy)).maximum for copy in made]),
        "ecdf": {
            "original": round_digits(np.searchsorted(ordered, edges, side="right") / len(ordered)),
            "copies": _spread(shares),
        },
        "quantiles": {
            "shares": list(SHARES),
            "original": round_digits(np.quantile(ordered, SHARES)),
            "copies": _spread(quantiles),
        },
        "statistics": [
            {
                "statistic": name,
                "original": round_digits([value])[0],
                "copies": range_of([row[name] for row in by_copy]),
            }
            for name, value in statistics(original, QUANTILES).items()
        ],
    }


def _some(ordered: PerRecord) -> PerRecord:
    """As many of the ordered values as tell two distributions apart, equally far apart."""
    if len(ordered) <= _COMPARED:
        return ordered
    return ordered[np.linspace(0, len(ordered) - 1, _COMPARED).astype(int)]


def compare_classes(
    original: PerRecord, copies: Sequence[PerRecord], levels: Sequence[object], most: int = 40
) -> dict[str, Any]:
    """The share of each class in a column and in its copies; the commonest `most` of them."""
    counts = [
        np.bincount(values.astype(int), minlength=len(levels)) / len(values) for values in (original, *copies)
    ]
    order = np.argsort(-counts[0], kind="stable")
    order = np.sort(order[:most]) if len(levels) > most else np.arange(len(levels))
    return {
        "levels": [
            {
                "level": str(levels[k]),
                "original": round_digits([counts[0][k]])[0],
                "copies": range_of([one[k] for one in counts[1:]]),
            }
            for k in order
        ],
        "left_out": len(levels) - len(order),
    }


def relate_pair(
    first: PerRecord, second: PerRecord, copies: Sequence[tuple[PerRecord, PerRecord]]
) -> list[dict[str, float | None]] | None:
    """One column along another: quantiles of the first in tenths of the second, original and copies together.

    None where the second has too few values to show a curve.
    """
    made = tuple(np.concatenate([copy[place] for copy in copies]) for place in (0, 1))
    pairs = []
    for one, other in ((first, second), made):
        there = np.isfinite(one) & np.isfinite(other)
        pairs.append((one[there], other[there]))
    edges = np.unique(np.quantile(pairs[0][1], np.arange(1, 10) / 10)) if len(pairs[0][1]) else np.empty(0)
    places = [np.searchsorted(edges, other, side="left") for _, other in pairs]
    rows = []
    for group in range(len(edges) + 1):
        inside = [place == group for place in places]
        if min(int(part.sum()) for part in inside) < _FEWEST_ALONG:
            continue
        found = [np.quantile(one[part], ALONG) for (one, _), part in zip(pairs, inside, strict=True)]
        figures = round_digits([np.median(pairs[0][1][inside[0]]), *found[0], *found[1]])
        rows.append(dict(zip(("at", *_keys("original"), *_keys("copies")), figures, strict=True)))
    return rows if len(rows) >= _SHORTEST else None


def _keys(what: str) -> tuple[str, str, str]:
    return f"{what}_low", f"{what}_middle", f"{what}_high"


def compare_medians(
    original: PerRecord,
    copies: Sequence[PerRecord],
    group: NDArray[np.int64],
    levels: Sequence[str],
    share: bool,
) -> list[dict[str, Any]]:
    """The median of each public group in a column and its copies; of two classes the share of the second."""
    rows = []
    for place, level in enumerate(levels):
        inside = group == place
        tables = [values[inside & ~np.isnan(values)] for values in (original, *copies)]
        if all(len(values) for values in tables):
            middles = [float(values.mean() if share else np.median(values)) for values in tables]
            row = {"level": level, "records": len(tables[0]), "original": round_digits(middles[:1])[0]}
            rows.append(row | {"copies": range_of(middles[1:])})
    return rows


def round_digits(values: Sequence[Any] | Array, digits: int = 6) -> list[float | None]:
    """Numbers with a few digits, which JSON holds; None for what is not finite."""
    return [
        float(f"{value:.{digits}g}") if np.isfinite(value) else None
        for value in np.asarray(values, float).tolist()
    ]


def range_of(values: Sequence[float]) -> list[float | None]:
    """The lowest, the mean and the highest, over copies."""
    return round_digits([min(values), float(np.mean(values)), max(values)])


def _spread(rows: Sequence[Array]) -> dict[str, list[float | None]]:
    every = np.asarray(rows)
    return {
        "lowest": round_digits(every.min(axis=0)),
        "mean": round_digits(every.mean(axis=0)),
        "highest": round_digits(every.max(axis=0)),
    }
