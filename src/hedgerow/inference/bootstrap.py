"""Intervals for any estimand by replaying a release on simulated tables (docs/maths.md, "Intervals").

What a release gave out says how such tables can be simulated, released again by the same public recipe and
copied. How far the estimates from those copies lie from the truth they were simulated from is how far the
estimate from the released copies may lie from its own.

    estimate = lambda copy: {"mean": copy["x"].mean(), "90 %": copy["x"].quantile(0.9)}
    estimates, lower, upper = bootstrap(replay, estimate, key=key).ends(level=0.95)

The truth is what the estimator gives on average on tables as the confidential one may have been: with its
predictors, as many records, outcomes from the model.

Formal guarantee: a `Replay` holds released and public things alone, and what is done with them is
post-processing. ε stays what it was.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import narwhals as nw
import numpy as np

from hedgerow import receive
from hedgerow.arrays import Array
from hedgerow.errors import SettingError, format_value, is_count, is_real
from hedgerow.progress import report, shown
from hedgerow.randomness import Key
from hedgerow.tables.kinds import blank_codes
from hedgerow.tables.table import Table

Estimator = Callable[[Any], Any]

TABLES = 100
FEWEST = 20  # simulated tables below which the ends are noise
_COPIES = 8  # of each simulated table at least: cheap beside its release; they smooth the ends
_STEEPEST = 0.5  # change of the log spread with a standard deviation of the estimate: more is noise
_NARROWEST = 0.2  # spread, beside that at the truth
_STAGE = "tables simulated and released again"


@dataclass(frozen=True, repr=False)
class Replay(ABC):
    """A release that can be made again on simulated tables. Everything reachable from here is public."""

    copies: tuple[Any, ...] = field(kw_only=True)  # the released tables

    @property
    @abstractmethod
    def method(self) -> str:
        """What the intervals rest on, in a few words."""

    @property
    def codes(self) -> Mapping[str, Sequence[Any]]:
        """Values that stand for no amount, by column: missing in the tables that an estimator gets."""
        return {}

    @abstractmethod
    def runs(self, tables: int, copies: int, key: Key) -> Iterator[tuple[Any, list[Any]]]:
        """Tables simulated at what was released, each with so many copies of its own release."""

    @abstractmethod
    def parameters(self, *, level: float, tables: int, key: Key) -> dict[str, Any]:
        """Intervals of the model's own parameters, as columns."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.copies)} copies)"


def check_level(level: float) -> None:
    """Refuse a level of intervals that is no probability."""
    if not is_real(level) or not 0 < level < 1:
        raise SettingError(f"level must lie between 0 and 1, got {format_value(level)}; 0.95 is usual.")


def check_sizes(level: float, tables: int) -> None:
    """Refuse a level and a number of tables that make no interval."""
    check_level(level)
    if not is_count(tables) or tables < FEWEST:
        raise SettingError(
            f"tables must be a whole number from {FEWEST} up, got {format_value(tables)}; {TABLES} is usual."
        )


@dataclass(frozen=True, eq=False)
class Replayed:
    """What an estimator says of the released copies, of simulated tables, and of the copies of these."""

    terms: list[str]
    released: Array  # copies × terms
    truths: Array  # tables × terms
    made: Array  # tables × copies × terms: as many as were released, or several sets of so many

    def ends(self, *, level: float, copies: int | None = None) -> tuple[Array, Array, Array]:
        """Estimates and both ends of their intervals, from all released copies or from the first few."""
        number = len(self.released) if copies is None else copies
        estimate, truth = self.released[:number].mean(axis=0), self.truths.mean(axis=0)
        ends = [
            _ends(estimate[place], truth[place], self.made[:, :, place], number, level)
            for place in range(len(self.terms))
        ]
        return estimate, *np.array(ends).T


def bootstrap(replay: Replay, estimator: Estimator, *, tables: int = TABLES, key: Key) -> Replayed:
    """The estimator on the released copies, and on those of tables simulated and released again."""
    # What an estimator writes into its table is not written into a release.
    own = (nw.from_native(copy, eager_only=True).clone().to_native() for copy in replay.copies)
    terms, first = measure(estimator, next(own))
    number = len(replay.copies)
    released = [first, *(_again(estimator, copy, terms) for copy in own)]
    truths, made = [], []
    with shown():
        runs = replay.runs(tables, ceil(_COPIES / number) * number, key)
        for done, (table, copies) in enumerate(runs, 1):
            truths.append(_again(estimator, table, terms))
            made.append([_again(estimator, copy, terms) for copy in copies])
            report(_STAGE, done, tables)
    return Replayed(terms, np.array(released), np.array(truths), np.array(made))


def measure(estimator: Estimator, table: Any) -> tuple[list[str], Array]:
    """What an estimator says of a table: names and numbers."""
    found = estimator(table)
    try:
        named = receive.name_values(found)
        numbers = np.array([float(value) for value in named.values()])
    except (TypeError, ValueError):
        named, numbers = {}, np.empty(0)
    if not len(numbers) or not np.isfinite(numbers).all():
        raise SettingError(
            "intervals: the estimator must return finite numbers of every copy, and of every table like it: "
            "one, an array, or some by name, no name twice. Leave gaps out, as np.nanmean does; codes that "
            "stand for no amount are gaps there. Leave out what rests on very few rows."
        )
    return list(named), numbers


def _again(estimator: Estimator, table: Any, terms: list[str]) -> Array:
    others, numbers = measure(estimator, table)
    if others != terms:
        raise SettingError(
            f"intervals: the estimator returned {len(terms)} terms of the first copy and others of another "
            "table, which is made like it. Return the same terms of every table."
        )
    return numbers


def _ends(estimate: float, truth: float, found: Array, number: int, level: float) -> tuple[float, float]:
    """Both ends by the studentised bootstrap: `found` has each simulated table's copies, sets of `number`.

    Errors are divided by the spread that copies of one table have, as a straight line in the estimate tells
    it, so that an amount's errors grow with it and those of a place do not.
    """
    sets = found.shape[1] // number
    means = found[:, : sets * number].reshape(len(found), sets, number).mean(axis=2)
    steepness = _find_steepness(found)

    def spread(at: Any) -> Any:
        return np.maximum(1 + steepness * (at - truth), _NARROWEST)

    # The k-th of B ordered errors is exceeded with probability k/(B + 1): set by set, since copies of one
    # table share its chance and are not as many independent ones.
    ends = [(1 - level) / 2, (1 + level) / 2]
    low, high = np.quantile((means - truth) / spread(means), ends, axis=0, method="weibull").mean(axis=1)
    return float(estimate - spread(estimate) * high), float(estimate - spread(estimate) * low)


def _find_steepness(found: Array) -> float:
    """How the log spread of a table's copies moves with their estimate.

    From different copies, whose chances are independent: among the same ones a skewed estimate's mean and
    spread move together by chance.
    """
    halves = found[:, ::2], found[:, 1::2]
    spreads = [half.std(axis=1, ddof=1) for half in halves]
    if not min(spread.min() for spread in spreads) > 0:  # nor where one copy has none
        return 0.0
    (one, two), means = (np.log(spread) for spread in spreads), [half.mean(axis=1) for half in halves]
    shared = float(np.cov(*means)[0, 1])
    if shared <= 0:
        return 0.0
    both = (np.cov(one, means[1])[0, 1] + np.cov(two, means[0])[0, 1]) / 2
    most = _STEEPEST / np.sqrt(shared)
    return float(np.clip(both / shared, -most, most))


def conclude_from(
    replay: Replay | str,
    estimator: Estimator | None,
    *,
    level: float = 0.95,
    tables: int = TABLES,
    seed: int = 0,
) -> Any:
    """Intervals of an estimator's numbers, or without one of the model's own parameters: in a table.

    A `replay` in words says why there are none.
    """
    if not isinstance(replay, Replay):
        raise SettingError(replay or "intervals: this release does not say how it was made.")
    if estimator is not None and not callable(estimator):
        raise SettingError(
            "intervals: the estimator must be a function of a table, for instance "
            "lambda copy: copy['x'].mean(); without one the model's own parameters are meant."
        )
    key = Key.from_seed(seed)
    if estimator is None:
        columns = replay.parameters(level=level, tables=tables, key=key)
    else:
        check_sizes(level, tables)
        codes, own = replay.codes, estimator
        found = bootstrap(replay, lambda table: own(blank_codes(table, codes)), tables=tables, key=key)
        estimate, lower, upper = found.ends(level=level)
        columns = {"term": found.terms, "estimate": estimate, "lower": lower, "upper": upper}
        columns["method"] = [replay.method] * len(found.terms)
    return Table.of(replay.copies[0]).like(columns)
