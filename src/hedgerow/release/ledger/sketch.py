"""A few blinded samples of a table, by which other versions and parts of it are recognised.

    >>> import hedgerow as hr
    >>> from hedgerow.release.ledger.overlap import share_rows
    >>> table, other = (hr.datasets.payroll(300, seed=seed) for seed in (1, 2))
    >>> known = sketch(table, "payroll", key=b"of the ledger")
    >>> [share_rows(known, sketch(asked, "payroll", key=b"of the ledger")) for asked in (table[50:], other)]
    [True, False]

A fingerprint tells whether two tables are the same; a sketch tells whether they are likely to have records in
common: after a changed cell, with rows or columns added, dropped, renamed or reordered, in another format. It
samples the values of each column that is a key in effect, and the combinations of other columns that single
out records. What an unrelated table would have as well is no evidence and is left out: see `_Look` and
`_share_of_grid`. Samples are taken by a hash of the value, so that two tables sample the values they share
alike.

Each sampled value is stored as 32 bits of an HMAC under the ledger's secret key. Without the key a sketch
shows about how many values were there to sample, and nobody can test a guess of a value against it.
"""

import base64
import hmac
import json
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from hedgerow.release.ledger.fingerprint import MISSING, cell_words
from hedgerow.release.ledger.overlap import TAIL
from hedgerow.release.ledger.parts import Parts, Words
from hedgerow.tables.files.columns import is_text
from hedgerow.threads import WORTH_SHARING, share_out

_MOST_COLUMNS = 200  # that are looked at
_AT_ONCE = 16  # of which words are held at a time
_MOST_KEYS, _MOST_COMBINED, _JOINED = 16, 8, 6
_ITEMS = 1600  # over all features: a sketch stays below 10 kB
_MOST_ITEMS = 256  # of one feature
_SAMPLED = 4096  # values from which chances are estimated
_LOOKED_AT = 131_072  # values among which a grid is looked for
_FEWEST = 8  # values that are worth a comparison
_MOST_CHANCE = 0.4  # of the values may be in an unrelated table, or a feature is no evidence
_LITTLE_CHANCE = 0.05
_COUNTED = 0.2  # of an even grid is taken: the column counts something


def sketch(frame: Any, *outcomes: str, key: bytes) -> str:
    """The sketch of a table as JSON, at most 10 kB.

    An only outcome is looked at first. Several have no precedence: they would crowd out the columns by which
    a release of another choice of columns of the same table is recognised. `frame` is a dataframe, or the
    parts of a table that is larger than memory, which has the same sketch.
    """
    key = hmac.digest(key, b"hedgerow sketch 1", "sha256")
    table = Parts.of(frame)
    only = outcomes if len(outcomes) == 1 else ()
    others = sorted({*table.names} - {*only}, key=lambda name: (name.casefold(), name))
    names = [*only, *others][:_MOST_COLUMNS]
    look = _Look(table, key)
    keys: list[_Sample] = []
    joined: list[_Column] = []  # the columns with the most values, to be combined
    for first in range(0, len(names), _AT_ONCE):
        for name, found, filled in look.describe(names[first : first + _AT_ONCE]):
            chance = max(found.chance, 2 * filled)
            if found.sample.size >= _FEWEST and chance <= _MOST_CHANCE and len(keys) < _MOST_KEYS:
                keys.append(_Sample(1, chance, found.sample))
            if chance > _LITTLE_CHANCE:  # a true key would be in every combination, and be missed in all
                joined.append(_Column(found.spread, filled > _COUNTED, name))
        joined = sorted(joined, key=lambda each: -each.spread)[:_JOINED]
    samples = keys + _combine(look, joined)
    most = min(_MOST_ITEMS, _ITEMS // max(1, len(samples)))
    features = [_feature(each, most, look.base, key) for each in samples]
    return json.dumps({"version": 1, "features": features}, separators=(",", ":"))


class _Column(NamedTuple):
    spread: int
    counter: bool  # unique and in a row, like the number of a line
    name: str


class _Sample(NamedTuple):
    columns: int
    chance: float  # the share that an unrelated table may have in common
    items: Words


class _Found:
    """What was seen of the items of a column or a combination, part by part."""

    def __init__(self) -> None:
        self._halves: tuple[list[Words], list[Words]] = [], []
        self._few: list[Words] = []

    def add(self, items: Words, half: Any, few: Words) -> None:
        self._halves[0].append(np.unique(items[half]))
        self._halves[1].append(np.unique(items[~half]))
        self._few.append(np.unique(few))

    @cached_property
    def halves(self) -> tuple[Words, Words]:
        first, second = (_unite(parts) for parts in self._halves)
        return first, second

    @property
    def sample(self) -> Words:
        """The distinct items below the threshold, in order."""
        return np.union1d(*self.halves)

    @property
    def spread(self) -> int:
        """How many values there are among some thousand rows."""
        return int(_unite(self._few).size)

    @property
    def chance(self) -> float:
        """Which share of the values is expected in a second sample of the same population.

        Judged by two halves of the rows; a sample of full size has about twice as many values in common.
        """
        first, second = self.halves
        return 2 * _share(first, second) if min(first.size, second.size) else 1.0


class _Look:
    """One table's random splits and secret hash, the same for each of its columns."""

    def __init__(self, table: Parts, key: bytes) -> None:
        seed = hmac.digest(key, b"mix", "sha256")
        self._secret = np.frombuffer(seed, np.uint64)
        self._text_key = base64.b64encode(hmac.digest(key, b"text", "sha256")).decode()[:16]
        # The smallest power of two by which the values must be thinned out.
        self.base = max(0, (max(table.records, 1) - 1) // _SAMPLED).bit_length()
        self._table = table
        self._worth = table.records > WORTH_SHARING

    def describe(self, names: list[str]) -> list[tuple[str, _Found, float]]:
        """Each column: what was found in it, and how much of an even grid its values take."""
        found = {name: _Found() for name in names}
        middle: dict[str, list[Any]] = {name: [] for name in names}

        def look_at(name: str, part: pa.Table, half: Any, order: Any) -> None:
            items, present = self._items(part, name)
            chosen = self._chosen(items) & present
            few, some = order[: self._each(_SAMPLED)], order[: self._each(_LOOKED_AT)]
            found[name].add(items[chosen], half[chosen], items[few])
            if self._table.count > 1:
                middle[name].append(self._positions(part.column(name).take(some))[0])

        for number, part in self._parts():
            half, order = self._split(number)
            share_out(partial(look_at, part=part, half=half, order=order), names, worth=self._worth)
        telling = [name for name in names if found[name].chance <= _MOST_CHANCE]
        windows = {name: self._window(middle[name]) for name in telling}
        filled = self._fill(windows)
        return [(name, found[name], filled.get(name, 0.0)) for name in names]

    def _window(self, values: list[Any]) -> tuple[float, float]:
        """Between which values the grid is looked at: all, or of many rows about so many in the middle."""
        share = min(1.0, _LOOKED_AT / self._table.records)
        if share == 1 or not sum(map(len, values)):
            return -np.inf, np.inf
        low, high = np.quantile(np.concatenate(values), (0.5 - share / 2, 0.5 + share / 2))
        return float(low), float(high)

    def _fill(self, windows: dict[str, tuple[float, float]]) -> dict[str, float]:
        """How much of an even grid the values of each column take, within its window."""
        found: dict[str, list[Any]] = {name: [] for name in windows}

        def look_at(name: str, part: pa.Table) -> None:
            values, numbered, of = self._positions(part.column(name))
            low, high = windows[name]
            found[name].append((values[(values >= low) & (values <= high)], numbered, of))

        for _, part in self._parts() if windows else ():
            share_out(partial(look_at, part=part), windows, worth=self._worth)
        filled = {}
        for name, parts in found.items():
            numbered, of = (sum(each[place] for each in parts) for place in (1, 2))
            filled[name] = (
                _share_of_grid(_unite([each[0] for each in parts])) if numbered >= 0.9 * of else 0.0
            )
        return filled

    def combine(self, choices: list[tuple[str, ...]]) -> list[_Found]:
        """What is found of combinations of columns."""
        found = [_Found() for _ in choices]
        names = list(dict.fromkeys(name for names in choices for name in names))

        def look_at(place: int, columns: dict[str, Words], half: Any) -> None:
            items = self._mix(np.add.reduce([columns[name] for name in choices[place]]))
            chosen = self._chosen(items)
            found[place].add(items[chosen], half[chosen], items[:0])

        for number, part in self._parts():
            made = share_out(partial(self._items, part), names, worth=self._worth)
            columns = {name: items for name, (items, _) in zip(names, made, strict=True)}
            half, _ = self._split(number)
            share_out(partial(look_at, columns=columns, half=half), range(len(choices)), worth=self._worth)
        return found

    def chance_of_shuffle(self, names: tuple[str, ...], sampled: Words) -> float:
        """Which share of the combinations is there again when one of the columns is shuffled; the worst.

        Two surveys of the same places in the same years combine place and year alike, though no combination
        is there twice in either. Of several parts a column comes from another part, since rows that are near
        each other may be alike.
        """
        count = self._table.count
        shuffled: list[list[Words]] = [[] for _ in names[: None if len(names) > 2 else 1]]
        for number, part in self._parts():
            other = part if count == 1 else self._table.part((number + count // 2) % count)
            order = self._split(number)[1] % other.num_rows
            columns = [self._items(part, name)[0] for name in names]
            total = np.add.reduce(columns)
            for place, parts in enumerate(shuffled):
                strange = columns[place] if count == 1 else self._items(other, names[place])[0]
                items = self._mix(total - columns[place] + strange[order])
                parts.append(np.unique(items[self._chosen(items)]))
        return max(_share(_unite(parts), sampled) for parts in shuffled)

    def _split(self, number: int) -> tuple[Any, Any]:
        """Which rows of a part are of the first half, and all in random order: for estimates alone."""
        random, rows = np.random.default_rng(number), self._table.size(number)
        return random.random(rows) < 0.5, random.permutation(rows)

    def _parts(self) -> Iterator[tuple[int, pa.Table]]:
        return ((number, self._table.part(number)) for number in range(self._table.count))

    def _each(self, rows: int) -> int:
        """How many rows of each part make so many in all."""
        return -(-rows // self._table.count)

    def _positions(self, column: pa.ChunkedArray) -> tuple[Any, int, int]:
        """The distinct values as numbers, in order: for text the number at its end, of so many of so many."""
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if is_text(kind):
            texts = column.cast(pa.large_string()).unique()
            ends = pc.struct_field(pc.extract_regex(texts, r"(?P<end>\d{1,15})\s*$"), "end").drop_null()
            return np.unique(ends.cast(pa.int64()).to_numpy().astype(np.float64)), len(ends), len(texts)
        words = cell_words("", column, self._hash_texts)
        words = words[words != MISSING]
        timed = pa.types.is_temporal(kind)
        numbers = words.view(np.int64).astype(np.float64) if timed else words.view(np.float64)
        return np.unique(numbers[np.isfinite(numbers)]), 0, 0

    def _items(self, part: pa.Table, name: str) -> tuple[Words, Any]:
        """A quick keyed hash of each cell, and which of them are there."""
        words = cell_words(name, part.column(name), self._hash_texts)
        return self._mix(words), words != MISSING

    def _hash_texts(self, texts: pa.Array) -> Words:
        """SipHash under a key, in one call: a column may hold a million names."""
        objects = texts.to_numpy(zero_copy_only=False)
        return pd.util.hash_array(objects, hash_key=self._text_key, categorize=False)

    def _mix(self, words: Words) -> Words:
        """A quick keyed hash that decides which values are sampled; what is stored is hashed once more."""
        mixed: Words = words ^ self._secret[0]
        for number in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
            mixed ^= mixed >> np.uint64(33)
            mixed *= np.uint64(number)
            mixed += self._secret[1]
        mixed ^= mixed >> np.uint64(33)
        return mixed

    def _chosen(self, items: Words) -> Any:
        """Where items are below the threshold."""
        return items < np.uint64(1 << 64 - self.base) if self.base else np.ones(items.size, dtype=np.bool_)


def _combine(look: _Look, columns: list[_Column]) -> list[_Sample]:
    """Samples of the combinations of columns that single out records, those of few columns first."""
    best: list[_Sample] = []
    more: list[_Sample] = []
    choices = list(_choices(columns))
    for first in range(0, len(choices), _MOST_COMBINED):
        some = choices[first : first + _MOST_COMBINED]
        for names, found in zip(some, look.combine(some), strict=True):
            chance, sampled = found.chance, found.sample
            if chance <= _MOST_CHANCE and sampled.size >= _FEWEST and len(best) < _MOST_COMBINED:
                chance = max(chance, look.chance_of_shuffle(names, sampled))
                (best if chance <= 2 * _LITTLE_CHANCE else more).append(_Sample(len(names), chance, sampled))
        if len(best) == _MOST_COMBINED:
            break
    more = sorted((each for each in more if each.chance <= _MOST_CHANCE), key=lambda each: each.chance)
    return [*best, *more][:_MOST_COMBINED]


def _choices(columns: list[_Column]) -> Iterator[tuple[str, ...]]:
    """Which columns to combine, in an order in which no column is in all of the first combinations.

    Not two counters: the numbers of lines and consecutive days pair up alike in every table.
    """
    count = len(columns)
    for size in dict.fromkeys(size for size in (2, 3, count - 1, count) if 2 <= size <= count):
        for chosen in sorted(combinations(range(count), size), key=lambda chosen: chosen[::-1]):
            if sum(columns[i].counter for i in chosen) < 2:
                yield tuple(columns[i].name for i in chosen)


def _unite(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))


def _share(some: Words, others: Words) -> float:
    both = np.intersect1d(some, others, assume_unique=True).size
    return both / max(1, min(some.size, others.size))


def _share_of_grid(values: Any) -> float:
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
