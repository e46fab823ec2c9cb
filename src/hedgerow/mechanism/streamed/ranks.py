"""Order statistics of all records: the value of a rank, exactly, from counts that leaves tell.

A number of floating point is found among 2⁶⁴ by narrowing it down: each leaf keeps its values in order and
says how many lie at or below some pivots, sixteen times as narrow after each round.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.arrays import Array, Confidential
from hedgerow.privacy.ranges import Box, Range, Tail
from hedgerow.privacy.settings import Settings
from hedgerow.tables.leaves import Leaves, go_over
from hedgerow.threads import Workers

_PIVOTS = 15  # for each rank and round


@dataclass(frozen=True, repr=False)
class SortOutcomes(Confidential):
    """Keep a link's outcomes in order, those that are there; says the least, the largest and how many."""

    place: int

    def __call__(self, leaves: Leaves, leaf: int) -> tuple[float, float, int]:
        link = leaves.design(leaf).links[self.place]
        values = np.sort(link.values if link.present is None else link.values[link.present])
        leaves.keep("sorted", leaf, values)
        return float(values.min(initial=np.inf)), float(values.max(initial=-np.inf)), len(values)


@dataclass(frozen=True, repr=False)
class CountUpTo(Confidential):
    """How many of the values that a leaf keeps in order are at most each pivot."""

    pivots: Array

    def __call__(self, leaves: Leaves, leaf: int) -> Array:
        return np.searchsorted(leaves.kept("sorted", leaf), self.pivots, side="right").astype(np.float64)


def select_ranks(
    leaves: Leaves, workers: Workers, ranks: Sequence[int], ends: Sequence[tuple[float, float]]
) -> Array:
    """The values of these ranks, from 0 up, among all that leaves keep as `sorted`; `ends` are theirs."""
    low = np.full(len(ranks), min(_as_key(least) for least, _ in ends), dtype=object)
    high = np.full(len(ranks), max(_as_key(largest) for _, largest in ends), dtype=object)
    # The value of a rank is the least at or below which more values lie than the rank counts.
    while (low < high).any():
        keys = [
            [int(a) + (int(b) - int(a)) * step // (_PIVOTS + 1) for step in range(1, _PIVOTS + 1)]
            for a, b in zip(low, high, strict=True)
        ]
        task = CountUpTo(np.array([_as_number(key) for row in keys for key in row]))
        counts = np.zeros(len(ranks) * _PIVOTS)
        for one in go_over(workers, task, leaves, stage="ranks"):
            counts += one  # whole numbers: exact up to 2⁵³
        for place, (rank, row) in enumerate(zip(ranks, keys, strict=True)):
            enough = counts[place * _PIVOTS : (place + 1) * _PIVOTS] > rank
            first = int(np.argmax(enough)) if enough.any() else _PIVOTS
            high[place] = row[first] if first < _PIVOTS else high[place]
            low[place] = max(int(low[place]), row[first - 1] + 1) if first else low[place]
    return np.array([_as_number(int(key)) for key in high])


def _as_key(value: float) -> int:
    """A whole number for each floating-point number, in the same order."""
    bits = int(np.float64(value).view(np.int64))
    return bits if bits >= 0 else -(bits & 0x7FFF_FFFF_FFFF_FFFF) - 1


def _as_number(key: int) -> float:
    bits = key if key >= 0 else -(key + 1) - 2**63
    return float(np.int64(bits).view(np.float64))


def settle_tails(settings: Settings, leaves: Leaves, workers: Workers) -> Range:
    """The range, with the threshold of every tail in it read off all outcomes."""
    public_range = settings.standard.range
    if isinstance(public_range, Box):
        places = {link.column.outcome: place for place, link in enumerate(settings.links)}
        parts = {
            name: _settle(part, leaves, workers, places[name]) for name, part in public_range.ranges.items()
        }
        return replace(public_range, ranges=parts)
    return _settle(public_range, leaves, workers, 0)


def _settle(public_range: Range, leaves: Leaves, workers: Workers, place: int) -> Range:
    inner = {name: _settle(part, leaves, workers, place) for name, (_, part) in public_range.parts().items()}
    settled = replace(public_range, **inner) if inner else public_range  # type: ignore[type-var]  # parts are a dataclass's
    if isinstance(settled, Tail):
        *ends, counts = zip(*go_over(workers, SortOutcomes(place), leaves, stage="ranks"), strict=True)
        (threshold,) = select_ranks(leaves, workers, [settled.rank(sum(counts))], [*zip(*ends, strict=True)])
        return settled.settled(float(threshold))
    return settled
