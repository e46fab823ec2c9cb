"""Whether two sketches are likely to have records in common (see `sketch` for what they are made of)."""

import base64
import json
import math
from dataclasses import dataclass
from functools import lru_cache

from hedgerow.errors import LedgerError

TAIL = 4  # bytes of an item
_SHARED, _FEWEST = 0.25, 5  # of the items both could have sampled: the share beyond chance, and a number


@dataclass(frozen=True)
class Feature:
    """A sample of the values of one column, or of the combinations of several."""

    columns: int
    chance: float  # the share that an unrelated table may have in common with it
    level: int
    counts: tuple[int, ...]  # how many items remain at this level and at each higher one
    items: tuple[bytes, ...]  # those that remain longest first

    def at(self, level: int) -> frozenset[bytes]:
        """The items that a sample at a higher level keeps."""
        above = level - self.level
        return frozenset(self.items[: self.counts[above]] if above < len(self.counts) else ())


@lru_cache(maxsize=1024)
def read_features(sketch: str) -> tuple[Feature, ...]:
    """The features of a sketch as the ledger keeps it."""
    features = []
    try:
        for each in json.loads(sketch)["features"]:
            items = base64.b64decode(each["items"])
            tails = tuple(items[i : i + TAIL] for i in range(0, len(items), TAIL))
            features.append(
                Feature(each["columns"], each["chance"], each["level"], tuple(each["counts"]), tails)
            )
    except (ValueError, KeyError, TypeError):
        raise LedgerError("a sketch in the ledger cannot be read. Run: hedgerow ledger verify") from None
    return tuple(features)


@lru_cache(maxsize=1024)
def _all_items(sketch: str) -> frozenset[bytes]:
    return frozenset(item for feature in read_features(sketch) for item in feature.items)


def share_rows(one: str, other: str) -> bool:
    """Whether in some feature more of the smaller sample is in the larger one than chance explains."""
    if len(_all_items(one) & _all_items(other)) < _FEWEST:  # as for most, so that a long ledger stays quick
        return False
    for mine in read_features(one):
        for theirs in read_features(other):
            if mine.columns == theirs.columns:
                level = max(mine.level, theirs.level)
                a, b = mine.at(level), theirs.at(level)
                chance, count = max(mine.chance, theirs.chance), min(len(a), len(b))
                usual = count * chance + 2 * math.sqrt(count * chance * (1 - chance))
                if len(a & b) >= max(_FEWEST, usual + _SHARED * count):
                    return True
    return False
