"""The shapes of a column and of its copies, in bins that fit into a line of a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hedgerow.arrays import PerRecord
from hedgerow.evidence.utility.columns import check_column

_BINS = 60  # what fits beside a label in a terminal of 80 columns
_LOOKED_AT = 100_000  # records are enough for a shape
_WIDE = 30.0  # largest over smallest, or over typical, from which a linear axis shows nothing


PLACES = ("lower", "upper", "level")  # columns that say where a bin is; the others are groups


def bin_shapes(
    original: PerRecord,
    copies: Mapping[str, Sequence[PerRecord]],
    levels: Sequence[object] | None = None,
) -> dict[str, Any]:
    """Columns lower, upper, original and one per label: the share of values in each bin, copies together.

    Where values are places of `levels`, a column `level` names the class of each bin.

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
    named = levels is not None and len(levels) <= _BINS // 2
    names = (
        {"level": [str(levels[round(place)]) for place in edges[:-1].tolist()]} if named and levels else {}
    )
    return {"lower": edges[:-1], "upper": edges[1:], **names, **shares}


def _some(values: PerRecord) -> PerRecord:
    return check_column(values[~np.isnan(values)])[
        :: 1 + (len(values) - 1) // _LOOKED_AT
    ]  # what has an amount


def _find_edges(groups: Mapping[str, PerRecord]) -> PerRecord:
    """Where bins begin, and where the last ends."""
    every = np.concatenate(list(groups.values()))
    distinct = np.unique(every)
    if len(distinct) <= _BINS // 2:
        return np.append(distinct, np.nextafter(distinct[-1], np.inf))
    low = min(float(np.quantile(values, 0.005, method="lower")) for values in groups.values())
    high = max(float(np.quantile(values, 0.995, method="higher")) for values in groups.values())
    scale, near = choose_scale(every, low, high)
    if scale == "log":
        return np.geomspace(low, high, _BINS + 1)
    if scale == "asinh":
        return near * np.sinh(np.linspace(np.arcsinh(low / near), np.arcsinh(high / near), _BINS + 1))
    if (distinct == np.floor(distinct)).all():  # bins that hold equally many whole numbers
        step = np.ceil((high - low + 1) / _BINS)
        return np.arange(low, high + step + 1, step)
    return np.linspace(low, high, _BINS + 1)


def choose_scale(values: PerRecord, low: float, high: float) -> tuple[str, float]:
    """The scale on which values, most of which lie between two ends, show: "log", "asinh" or "linear".

    Beside it, below which size the second is linear.
    """
    typical = float(np.median(np.abs(values[values != 0])))
    if values.min() > 0 and high > _WIDE * low:
        return "log", typical / _WIDE
    return ("asinh" if max(-low, high) > _WIDE * typical else "linear"), typical / _WIDE
