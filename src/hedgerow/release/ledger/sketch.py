"""A few blinded samples of a table, by which other versions and parts of it are recognised.

    >>> known, asked = (sketch(frame, "payroll", key=key) for frame in (this_year, corrected))
    >>> share_rows(known, asked)
    True

A fingerprint tells whether two tables are the same; a sketch tells whether they are likely to have records in
common: after a changed cell, with rows or columns added, dropped, renamed or reordered, in another format. It
samples the values of each column that is a key in effect, and the combinations of other columns that single
out records. What an unrelated table would have as well is no evidence and is left out: see `_Look` and
`_filled`. Samples are taken by a hash of the value, so that two tables sample the values they share alike.

Each sampled value is stored as 32 bits of an HMAC under the ledger's secret key. Without the key a sketch
shows about how many values were there to sample, and nobody can test a guess of a value against it.
"""

import base64
import hmac
import json
from collections.abc import Iterator
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.release.ledger.fingerprint import MISSING, Words, cell_words
from hedgerow.release.ledger.overlap import TAIL
from hedgerow.tables.files.columns import is_text, to_arrow
from hedgerow.threads import WORTH_SHARING, share_out

_MOST_COLUMNS = 200  # that are looked at
_AT_ONCE = 16  # of which words are held at a time
_MOST_KEYS, _MOST_COMBINED, _JOINED = 16, 8, 6
_ITEMS = 1600  # over all features: a sketch stays below 10 kB
_MOST_ITEMS = 256  # of one feature
_SAMPLED = 4096  # values from which chances are estimated
_FEWEST = 8  # values that are worth a comparison
_MOST_CHANCE = 0.4  # of the values may be in an unrelated table, or a feature is no evidence
_LITTLE_CHANCE = 0.05
_COUNTED = 0.2  # of an even grid is taken: the column counts something


def sketch(frame: Any, *outcomes: str, key: bytes) -> str:
    """The sketch of a table as JSON, at most 10 kB.

    An only outcome is looked at first. Several have no precedence: they would crowd out the columns by which
    a release of another choice of columns of the same table is recognised.
    """
    key = hmac.digest(key, b"hedgerow sketch 1", "sha256")
    table = to_arrow(frame)
    only = outcomes if len(outcomes) == 1 else ()
    others = sorted({*table.column_names} - {*only}, key=lambda name: (name.casefold(), name))
    names = [*only, *others][:_MOST_COLUMNS]
    look = _Look(table.num_rows, key)
    keys: list[_Sample] = []
    joined: list[_Column] = []  # the columns with the most values, to be combined

    def describe(name: str) -> tuple[Words, Words, float, float]:
        column = table.column(name)
        words = cell_words(name, column, look.hash_texts)
        items, present = look.mix(words), words != MISSING
        rows = slice(None) if present.all() else present
        chance = look.chance_of_split(items[rows], rows)
        filled = _filled(_positions(column, words[rows])) if chance <= _MOST_CHANCE else 0.0
        return items, look.sample(items[rows]), max(chance, 2 * filled), filled

    for first in range(0, len(names), _AT_ONCE):
        described = share_out(describe, names[first : first + _AT_ONCE], worth=table.num_rows > WORTH_SHARING)
        for items, alone, chance, filled in described:
            if alone.size >= _FEWEST and chance <= _MOST_CHANCE and len(keys) < _MOST_KEYS:
                keys.append(_Sample(1, chance, alone))
            if chance > _LITTLE_CHANCE:  # a true key would be in every combination, and be missed in all
                joined.append(_Column(look.spread(items), filled > _COUNTED, items))
        joined = sorted(joined, key=lambda each: -each.spread)[:_JOINED]
    samples = keys + _combine(look, joined)
    most = min(_MOST_ITEMS, _ITEMS // max(1, len(samples)))
    features = [_feature(each, most, look.base, key) for each in samples]
    return json.dumps({"version": 1, "features": features}, separators=(",", ":"))


class _Column(NamedTuple):
    spread: int
    counter: bool  # unique and in a row, like the number of a line
    items: Words


class _Sample(NamedTuple):
    columns: int
    chance: float  # the share that an unrelated table may have in common
    items: Words


class _Look:
    """One table's random splits and secret hash, the same for each of its columns."""

    def __init__(self, rows: int, key: bytes) -> None:
        seed = hmac.digest(key, b"mix", "sha256")
        self._secret = np.frombuffer(seed, np.uint64)
        self._text_key = base64.b64encode(hmac.digest(key, b"text", "sha256")).decode()[:16]
        # The smallest power of two by which the values must be thinned out.
        self.base = max(0, (max(rows, 1) - 1) // _SAMPLED).bit_length()
        random = np.random.default_rng(0)  # for estimates alone
        self._half = random.random(rows) < 0.5
        self._order = random.permutation(rows)
        self._few = self._order[:_SAMPLED]

    def hash_texts(self, texts: pa.Array) -> Words:
        """SipHash under a key, in one call: a column may hold a million names."""
        objects = texts.to_numpy(zero_copy_only=False)
        return pd.util.hash_array(objects, hash_key=self._text_key, categorize=False)

    def mix(self, words: Words) -> Words:
        """A quick keyed hash that decides which values are sampled; what is stored is hashed once more."""
        mixed: Words = words ^ self._secret[0]
        for number in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            mixed ^= mixed >> np.uint64(33)
            mixed *= np.uint64(number)
            mixed += self._secret[1]
        mixed ^= mixed >> np.uint64(33)
        return mixed

    def sample(self, items: Words) -> Words:
        """The distinct items below a threshold, in order."""
        return np.unique(items[self._chosen(items)])

    def _chosen(self, items: Words) -> Any:
        """Where items are below the threshold."""
        return np.flatnonzero(items < np.uint64(1 << 64 - self.base)) if self.base else slice(None)

    def spread(self, items: Words) -> int:
        """How many values there are among some thousand rows."""
        return int(np.unique(items[self._few]).size)

    def chance_of_split(self, items: Words, rows: Any = slice(None)) -> float:
        """Which share of the values is expected in a second sample of the same population.

        Judged by two halves of the rows; a sample of full size has about twice as many values in common.
        """
        chosen = self._chosen(items)
        half, items = self._half[rows][chosen], items[chosen]
        first, second = np.unique(items[half]), np.unique(items[~half])
        return 2 * _share(first, second) if min(first.size, second.size) else 1.0

    def chance_of_shuffle(self, columns: list[Words], sampled: Words) -> float:
        """Which share of the combinations is there again when one of the columns is shuffled; the worst.

        Two surveys of the same places in the same years combine place and year alike, though no combination
        is there twice in either.
        """
        total = _add(columns)
        return max(
            _share(self.sample(self.mix(total - column + column[self._order])), sampled)
            for column in columns[: None if len(columns) > 2 else 1]
        )


def _combine(look: _Look, columns: list[_Column]) -> list[_Sample]:
    """Samples of the combinations of columns that single out records, those of few columns first."""
    best: list[_Sample] = []
    more: list[_Sample] = []
    for chosen in _choices(columns):
        parts = [column.items for column in chosen]
        items = look.mix(_add(parts))
        chance, sampled = look.chance_of_split(items), look.sample(items)
        if chance <= _MOST_CHANCE and sampled.size >= _FEWEST:
            chance = max(chance, look.chance_of_shuffle(parts, sampled))
            (best if chance <= 2 * _LITTLE_CHANCE else more).append(_Sample(len(chosen), chance, sampled))
        if len(best) == _MOST_COMBINED:
            break
    more = sorted((each for each in more if each.chance <= _MOST_CHANCE), key=lambda each: each.chance)
    return [*best, *more][:_MOST_COMBINED]


def _choices(columns: list[_Column]) -> Iterator[tuple[_Column, ...]]:
    """Which columns to combine, in an order in which no column is in all of the first combinations.

    Not two counters: the numbers of lines and consecutive days pair up alike in every table.
    """
    count = len(columns)
    for size in dict.fromkeys(size for size in (2, 3, count - 1, count) if 2 <= size <= count):
        for chosen in sorted(combinations(range(count), size), key=lambda chosen: chosen[::-1]):
            if sum(columns[i].counter for i in chosen) < 2:
                yield tuple(columns[i] for i in chosen)


def _add(columns: list[Words]) -> Words:
    """One item for each row, whatever the order of the columns."""
    return np.add.reduce(columns)


def _share(some: Words, others: Words) -> float:
    both = np.intersect1d(some, others, assume_unique=True).size
    return both / max(1, min(some.size, others.size))


def _positions(column: pa.ChunkedArray, words: Words) -> Any:
    """The distinct values as numbers, in order: for text the number at its end, if nearly all have one."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if is_text(kind):
        texts = column.cast(pa.large_string()).unique()
        ends = pc.struct_field(pc.extract_regex(texts, r"(?P<end>\d{1,15})\s*$"), "end").drop_null()
        if len(ends) < 0.9 * len(texts):
            return np.array([])
        return np.unique(ends.cast(pa.int64()).to_numpy().astype(np.float64))
    timed = pa.types.is_temporal(kind)
    numbers = words.view(np.int64).astype(np.float64) if timed else words.view(np.float64)
    return np.unique(numbers[np.isfinite(numbers)])


def _filled(values: Any) -> float:
    """How much of an even grid the middle half of the values takes; 0 if they lie on none.

    Row numbers, consecutive days and prices to the cent are unique in many tables and the same in all.
    """
    quarter = values.size // 4 if values.size >= 40 else 0
    steps = np.diff(values[quarter : values.size - quarter])
    if steps.size == 0:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # steps between the smallest and largest of floats
        ratios = steps / steps.min()
        on_grid = np.abs(ratios - np.rint(ratios)) < 1e-3
    return float(steps.size / ratios.sum()) if on_grid.mean() > 0.99 else 0.0


def _feature(sample: _Sample, most: int, level: int, key: bytes) -> dict[str, Any]:
    """Items below 2^(64 - level): how many remain at this and each higher level, and the tail of each."""

    def count(level: int) -> int:
        return int(np.searchsorted(sample.items, np.uint64(1 << 64 - level))) if level else sample.items.size

    while count(level) > most:
        level += 1
    counts: list[int] = []
    while level + len(counts) <= 64 and (kept := count(level + len(counts))):
        counts.append(kept)
    tails = (
        hmac.digest(key, b"%d %d" % (sample.columns, item), "sha256")[:TAIL]
        for item in sample.items[: counts[0]].tolist()
    )
    text = base64.b64encode(b"".join(tails)).decode()
    chance = round(sample.chance, 2)
    return {"columns": sample.columns, "chance": chance, "level": level, "counts": counts, "items": text}
