"""How far a column agrees with the outcome: value by value, in its order, level by level, in its classes.

    >>> outcome = Outcome(np.arange(1.0, 41.0), tests=0.0)
    >>> outcome.judge(np.arange(1.0, 41.0)).says
    'equals it'
    >>> outcome.judge_order(np.arange(1.0, 41.0) ** 3).says
    'puts the records in the same order'

Agreement that chance or the commonest value explains does not count.
"""

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from hedgerow.arrays import Mask, PerRecord
from hedgerow.numerics.leaves import leaves_of
from hedgerow.threads import WORTH_SHARING, share_out

ORDERED = 500  # rows looked at by their order
FEW = 20  # so few rows may be in the order of a good predictor by chance: no reason to refuse
EXACT, _NEAR = 1e-6, 0.01  # relative difference that still counts as equal, and as near
_OTHERS = 50  # fewer records outside the commonest class may be parted from it by a good predictor
_COMMON = 0.05  # share of records from which a value is one that many have
_RARE = 0.05  # an outcome that this share of records has or less is one of many values
_MOST, _SOME = 0.5, 0.2  # share of such outcomes recovered from which a column is refused, warned of
_ALL, _MANY = 0.95, 0.8  # the same of common outcomes, of which a good predictor recovers many
_ORDER, _STEPS = 0.9, 0.98  # share of records in order: of many outcomes, of a few classes
_CLASSES = 20.0  # a column of fewer classes than this may be in the outcome's order
_RANKS, _SHARED = 0.98, 0.75  # rank correlation and share of information to warn from
_SEARCHED = 1000  # levels among which a record's own is looked up
_GROUP = 20  # records per level from which a level is a class, no household


@dataclass(frozen=True)
class Finding:
    """What gives the outcome away, how, and whether that is to be refused; names columns, holds no figure."""

    columns: tuple[str, ...]  # none for the index and the order of the rows
    what: str  # "'per_head' × 'employees'"
    says: str  # "equals it"
    refused: bool
    degree: float  # larger is worse

    def __str__(self) -> str:
        return f"{self.what} {self.says}"


@dataclass(frozen=True)
class Verdict:
    """What one column, or one combination, says of the outcome."""

    says: str
    refused: bool
    degree: float


class Levels:
    """The values of a column: how often each occurs, and for each record which one it has, in which class.

    Most columns of numbers in a long table need neither: sorting them is enough to see that, and cheap.
    """

    def __init__(self, cells: PerRecord | NDArray[np.str_]) -> None:
        self._cells = cells
        ordered = np.sort(cells)
        new = np.append(np.ones(min(len(cells), 1), dtype=np.bool_), ordered[1:] != ordered[:-1])
        if cells.dtype.kind == "f" and len(cells) and np.isnan(ordered[-1]):  # what is missing is one value
            new[np.searchsorted(ordered, np.nan) + 1 :] = False
        self.all_differ = bool(new.all())
        if self.all_differ:
            self.values, self.counts = ordered, np.broadcast_to(1, ordered.shape)
            return
        starts = np.flatnonzero(new)
        self.values, self.counts = ordered[starts], np.diff(np.append(starts, len(ordered)))

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The place of each record's value among the levels."""
        if len(self.values) > _SEARCHED:  # sorting once more is quicker
            return np.unique(self._cells, return_inverse=True)[1]
        return np.searchsorted(self.values, self._cells)

    def classes(self, rows: slice) -> NDArray[np.int64]:
        """A few classes of numbers; text has no order to make them by: its rare levels are one."""
        if self._cells.dtype.kind == "U":
            return self._often[self.codes[rows]]
        cells, found = self._cells[rows], np.zeros(len(self._cells[rows]), dtype=np.uint8)
        for edge in self._edges:  # few: quicker than looking each value up among them
            found += cells >= edge
        return found.astype(np.int64)

    @property
    def many(self) -> int:
        """How many classes there are at most."""
        return int(self._often.max()) + 1 if self._cells.dtype.kind == "U" else len(self._edges) + 1

    @cached_property
    def _often(self) -> NDArray[np.int64]:
        often = self.counts >= 5
        return np.where(often, np.cumsum(often), 0)

    @cached_property
    def _edges(self) -> PerRecord | NDArray[np.str_]:
        """The smallest value of every class but the first: of each value, if they are few."""
        return self.values[_class_starts(self.counts, self.all_differ)[1:]]


class Outcome:
    """The outcome on some rows, and what agreement with it is worth."""

    def __init__(self, values: PerRecord, tests: float, levels: Levels | None = None) -> None:
        self.values = values
        self.tests = tests  # log of how much is tried: the more, the more agrees by chance
        self._own = Levels(values) if levels is None else levels
        self.levels, self.counts = self._own.values, self._own.counts
        scarce = len(values) if self._own.all_differ else self.counts[self._scarce].sum()
        self.varied = bool(scarce >= max(5, 0.1 * len(values)))

    @property
    def codes(self) -> NDArray[np.int64]:
        """The place of each record's outcome among the levels."""
        return self._own.codes

    @property
    def _scarce(self) -> Mask:
        return (self.counts == 1) | (self.counts <= _RARE * len(self.values))

    @cached_property
    def rare(self) -> Mask:
        """Whether an outcome is one of many values."""
        return self._scarce[self.codes]

    @cached_property
    def common(self) -> "Outcome | None":
        """Who has the commonest value, zero as a rule, where many have it and others are not all alike."""
        if len(self.levels) <= 2 or self.counts.max() < _COMMON * len(self.values):
            return None
        has = self.values == self.levels[self.counts.argmax()]
        return Outcome(has.astype(np.float64), self.tests)

    @cached_property
    def reaches(self) -> dict[str, PerRecord]:
        """How far off a guess may be, the least first."""
        size = np.abs(self.values)
        tiny = 1e-9 * float(np.median(size[size > 0]))
        exact, near = EXACT * size + tiny, _NEAR * size + tiny
        if self._chance(self.values, near)[self.rare if self.varied else slice(None)].mean() <= 0.2:
            return {"equals it": exact, "is within 1 % of it": near}
        # Where outcomes are within 1 % of each other anyway, that is no agreement.
        step = np.full_like(exact, float(np.diff(self.levels).min()) / 4)
        return {"equals it": exact, "rounds to it": np.maximum(step, exact)}

    def at(self, rows: NDArray[np.int64] | Mask) -> "Outcome":
        """The outcome on some of the rows."""
        return Outcome(self.values[rows], self.tests)

    @cached_property
    def ranks(self) -> PerRecord:
        """Its ranks, from their mean."""
        return _ranks(self.codes, self.counts)

    @cached_property
    def variety(self) -> float:
        """How many values it has, common ones counted more: exp of the entropy."""
        return _variety(self.counts)

    @cached_property
    def surprise(self) -> float:
        """−log of the chance that a column of the same values has them in the same rows."""
        return float(gammaln(len(self.values) + 1) - gammaln(self.counts + 1.0).sum())

    def _chance(self, guess: PerRecord, reach: PerRecord) -> PerRecord:
        """For each record the share of all guesses that would count as its own."""
        ordered = np.sort(guess)
        last = np.searchsorted(ordered, self.values + reach, side="right")
        return np.asarray((last - np.searchsorted(ordered, self.values - reach)) / len(guess))

    def judge(self, guess: PerRecord, form: str = "") -> Verdict | None:
        """Whether a guess at each record's outcome is equal or near to it more often than by chance."""
        parts = [(np.ones_like(self.rare), _ALL, _MANY)]
        parts += [(self.rare, _MOST, _SOME)] if self.varied else []
        verdicts = []
        for words, reach in reversed(self.reaches.items()):
            hits = np.abs(guess - self.values) <= reach
            if np.count_nonzero(hits) < (_SOME * self.rare.sum() if self.varied else _MANY * len(hits)):
                break  # nor is it equal often enough
            exact = words == "equals it"
            for part, refuse, warn in parts:
                share = self._recover(guess, hits, part, reach, whole=exact and bool(hits.all()))
                if share >= warn:
                    refused = share >= refuse and (len(self.levels) >= 5 or self.surprise > 4.5 + self.tests)
                    where = "" if hits.all() else " in most rows" if share >= _MOST else " in some rows"
                    degree = share + 2 * refused + exact - 0.01 * bool(form)
                    verdicts.append(Verdict(f"{words}{form}{where}", bool(refused), degree))
        return max(verdicts, key=lambda verdict: verdict.degree, default=None)

    def _recover(self, guess: PerRecord, hits: Mask, part: Mask, reach: PerRecord, *, whole: bool) -> float:
        """The share of outcomes in a part that a guess gives, beyond chance; 0 if that may be chance."""
        if whole:
            return float(len(self.levels) >= 5 or self.surprise > self.tests - 1)
        share, chance = float(hits[part].mean()), float(self._chance(guess, reach)[part].mean())
        if chance == 1 or not self._is_no_chance(int(hits[part].sum()), chance * int(part.sum())):
            return 0.0
        return (share - chance) / (1 - chance)

    def _is_no_chance(self, hits: int, expected: float) -> bool:
        """Whether so many hits, where fewer were expected, are beyond chance (Chernoff's bound)."""
        if hits <= expected:
            return False
        return bool(hits * np.log(hits / max(expected, 1e-300)) - hits + expected > 10 + self.tests)

    def judge_order(self, numbers: PerRecord) -> Verdict | None:
        """Whether a column orders the records as the outcome does, exactly, nearly or in fine classes."""
        if len(numbers) < FEW / 2 or np.ptp(numbers) == 0:
            return None
        other = _ranks(*np.unique(numbers, return_inverse=True, return_counts=True)[1:])
        size = np.linalg.norm(self.ranks) * np.linalg.norm(other)
        ranks = float(self.ranks @ other / size)
        # Ties limit what the correlation can be: of two classes with numbers it is never near 1.
        if abs(ranks) < 0.8 * (np.sort(self.ranks) @ np.sort(other) / size):
            return None
        few, along = self.at(np.arange(min(ORDERED, len(numbers)))), numbers[:ORDERED] * np.sign(ranks)
        base = few.counts.max() / len(along)
        # The records whose outcome a rising function of the column gives: of a tie one outcome at most.
        given = _longest_rise(few.values[np.lexsort((-few.values, along))]) / len(along)
        needed = 1.0 if len(along) < 30 else _ORDER if base <= _RARE else _STEPS
        if (given - base) / (1 - base) >= needed and few.surprise > 12 + self.tests:
            others = len(along) - few.counts.max()
            refused = len(along) >= FEW and bool(few.varied or others >= _OTHERS)
            nearly = "" if given == 1 else "nearly "
            return Verdict(f"puts the records in {nearly}the same order", refused, 0.9 + 2 * refused)
        _, counts = np.unique(along, return_counts=True)
        in_order = _longest_rise(along[np.lexsort((along, few.values))]) / len(along)
        if in_order >= 0.97 and min(_variety(counts), few.variety) >= _CLASSES:
            return Verdict("puts the records in the same order, in fine classes", True, 2.5)
        if abs(ranks) >= _RANKS:
            return Verdict("puts the records in much the same order", False, abs(ranks))
        return None

    def judge_levels(self, levels: "Levels") -> Verdict | None:
        """Whether records of one level of a column have one outcome, where levels repeat."""
        if levels.all_differ:
            return None
        size, repeated = levels.counts, levels.counts > 1
        records = int(size[repeated].sum())
        # No level has one outcome more often than the commonest outcome is there at all.
        if records < max(10, 0.1 * len(self.values)) or (
            np.minimum(size, self.counts.max()).sum() < _ALL * records
        ):
            return None
        codes = levels.codes
        base = np.bincount(self.codes[repeated[codes]], minlength=1).max() / records
        if base == 1:
            return None
        pairs, count = np.unique(codes * len(self.levels) + self.codes, return_counts=True)
        level = pairs // len(self.levels)
        first, second = np.zeros((2, len(size)), dtype=np.int64)
        np.maximum.at(first, level, count)
        # The second most common outcome of a level: what is left when one of the most common is set aside.
        top = np.zeros(len(pairs), dtype=np.bool_)
        by_count = np.lexsort((count, level))
        top[by_count[np.append(np.diff(level[by_count]) > 0, True)]] = True
        np.maximum.at(second, level[~top], count[~top])
        # From the other records of the level: the most common outcome without the record's own.
        given = int(first[first - 1 > second].sum())
        share = (given / records - base) / (1 - base)
        # Chernoff's bound says little of a rare outcome: where every record agrees, count the ways it could.
        certain = given == len(codes) and self.surprise > 12 + self.tests
        if share < _ALL or not (certain or self._is_no_chance(given, base * records)):
            return None
        recoded = len(self.levels) <= _CLASSES and len(size) <= 2 * len(self.levels)
        refused = bool(recoded or records / repeated.sum() >= _GROUP)
        return Verdict("has one outcome per level", refused, share + 1.4 * refused)

    def judge_common(self, levels: "Levels") -> Verdict | None:
        """Whether a column says who has the commonest value: its owner knows whether that is public."""
        verdict = None if self.common is None else self.common.judge_levels(levels)
        return verdict and Verdict("tells who has the commonest value", False, 0.9)

    def judge_information(self, levels: Levels) -> Verdict | None:
        """Whether a column's classes say most of the outcome's class, one in ten."""
        shape = levels.many, self._own.many

        def count(rows: slice) -> NDArray[np.int64]:
            pairs = levels.classes(rows) * shape[1] + self._own.classes(rows)
            return np.bincount(pairs, minlength=shape[0] * shape[1])

        if levels._cells.dtype.kind == "U":
            levels.codes  # noqa: B018 - looked up once, before threads would all do it
        records = len(self.values)
        both = np.sum(share_out(count, leaves_of(records), worth=records > WORTH_SHARING), axis=0)
        parts = [both.reshape(shape).sum(axis=axis) for axis in (1, 0)]
        excess = np.prod([np.count_nonzero(part) - 1 for part in parts]) / (2 * records)
        entropy = np.log(_variety(parts[1]))
        shared = np.log(_variety(parts[0])) + entropy - np.log(_variety(both)) - excess
        if shared < _SHARED * entropy:
            return None
        return Verdict("shares most of its information, in classes", False, float(shared / entropy) - 0.1)


def _ranks(codes: NDArray[np.int64], counts: NDArray[np.int64]) -> PerRecord:
    """Ranks from their mean, of numbers given as the places of their values."""
    return (np.cumsum(counts) - (counts + counts.sum()) / 2)[codes]


def _class_starts(counts: NDArray[np.int64], all_differ: bool, most: int = 10) -> NDArray[np.int64]:
    """Where classes of values begin: each is its own if they are few, else about ten are equally common."""
    if len(counts) <= 2 * most:
        return np.arange(len(counts))
    ends = np.arange(most) * (counts.sum() / most)
    if all_differ:  # the middle of the value i is i + ½
        return np.ceil(ends - 0.5).astype(np.int64)
    starts = np.searchsorted(np.cumsum(counts) - counts / 2, ends)
    return np.unique(starts[starts < len(counts)])


def _variety(counts: NDArray[np.int64]) -> float:
    """exp of the entropy of counts: how many values there are, if they were equally common."""
    shares = counts[counts > 0] / counts.sum()
    return float(np.exp(-(shares * np.log(shares)).sum()))


def _longest_rise(values: PerRecord) -> int:
    """The length of the longest subsequence that never falls."""
    ends: list[float] = []
    for value in values.tolist():
        place = bisect_right(ends, value)
        ends[place : place + 1] = [value]
    return len(ends)
