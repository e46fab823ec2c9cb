"""What a transform in a formula is applied to, over leaves: its sums, extremes and exact quantiles.

Order statistics are found among the sorted values of leaves. Splitters, every so-many-th value of each leaf,
cut all values into ranges of about a million; ranges are counted, and those gathered that hold a wanted rank.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.errors import DataError, FormulaError
from hedgerow.numerics.leaves import interpolate
from hedgerow.tables.design import functions
from hedgerow.tables.formula import Formula, shorten
from hedgerow.tables.predictors import settle_predictors
from hedgerow.tables.spool.store import Spooled
from hedgerow.tables.spool.transforms import Numbers, State, Summand, add_parts, sum_parts
from hedgerow.threads import Workers

_EVERY = 4_096  # values of a leaf for each that may become a splitter
_RANGE = 1 << 20  # values that a range has, about
_SORTED = "sorted argument"


@dataclass(frozen=True)
class Argument:
    """The first argument of a call in a formula, which reads public columns."""

    call: str  # as the formula has it
    text: str  # of the argument, under the aliases
    names: tuple[str, ...]  # columns it reads
    aliases: Mapping[str, str]
    states: Mapping[str, State]  # of transforms inside it

    @classmethod
    def of(cls, formula: Formula, call: ast.Call, states: Mapping[str, State]) -> "Argument":
        """The argument of one call of a formula; `states` has those of inner calls, by their text."""
        names = {alias: name for name, alias in formula.aliases.items()}
        said = formula.restore_name(ast.unparse(call), "`")
        if not call.args:
            raise FormulaError(f"'{shorten(said)}' in a formula has no column. Name it first.")
        inside = [ast.unparse(node) for node in ast.walk(call.args[0]) if isinstance(node, ast.Call)]
        known = {text: formula.restore_name(text, "`") for text in inside}
        read = [node.id for node in ast.walk(call.args[0]) if isinstance(node, ast.Name)]
        columns = [names.get(name, name) for name in dict.fromkeys(read)]
        return cls(
            said,
            ast.unparse(call.args[0]),
            tuple(name for name in columns if name in formula.predictors),
            {name: alias for name, alias in formula.aliases.items() if name in columns},
            {text: states[key] for text, key in known.items() if key in states},
        )

    def evaluate(self, leaves: Spooled, leaf: int) -> Numbers:
        """Its values in one leaf."""
        from formulaic import ModelSpec
        from formulaic.materializers import FormulaMaterializer
        from formulaic.utils.stateful_transforms import stateful_eval

        settled, _ = settle_predictors(leaves.table(leaf, self.names), self.names)
        native = settled.rename(self.aliases).native
        context = FormulaMaterializer.for_data(native)(native, functions()).layered_context
        try:
            with np.errstate(all="ignore"):
                states = {text: dict(state) for text, state in self.states.items()}
                found = stateful_eval(self.text, context, {}, states, ModelSpec(formula=[]))
                values: Numbers = np.asarray(found)
                if isinstance(found, dict) or values.ndim != 1 or values.dtype.kind not in "iuf":
                    raise TypeError
        except Exception as problem:  # formulaic's messages may quote data
            raise FormulaError(
                f"'{shorten(self.call)}' could not be applied to the table ({type(problem).__name__}). Check "
                "that it gets one column of numbers."
            ) from None
        return values


@dataclass(frozen=True)
class SumArgument:
    """Σ of what is summed of an argument's values in a leaf."""

    argument: Argument
    summand: Summand

    def __call__(self, leaves: Spooled, leaf: int) -> list[float]:
        return sum_parts(self.summand, self.argument.evaluate(leaves, leaf))


@dataclass(frozen=True)
class FindEnds:
    """The least and the largest of an argument's values in a leaf, NaN where one is not finite."""

    argument: Argument

    def __call__(self, leaves: Spooled, leaf: int) -> tuple[float, float, Any]:
        values = self.argument.evaluate(leaves, leaf)
        finite = np.isfinite(values).all()
        return (*((float(values.min()), float(values.max())) if finite else (np.nan, np.nan)), values.dtype)


@dataclass(frozen=True)
class SortArgument:
    """Keep the sorted values of a leaf that lie between two ends; returns some of them."""

    argument: Argument
    within: tuple[float, float] | None
    distinct: bool

    def __call__(self, leaves: Spooled, leaf: int) -> Numbers:
        values = self.argument.evaluate(leaves, leaf)
        if self.within is not None:
            values = values[(self.within[0] <= values) & (values <= self.within[1])]
        values = np.unique(values) if self.distinct else np.sort(values)
        leaves.keep(_SORTED, leaf, values)
        return np.asarray(values[::_EVERY])


@dataclass(frozen=True)
class OverLeaves:
    """An argument's values in all leaves (`transforms.Ordered`)."""

    leaves: Spooled
    workers: Workers
    argument: Argument

    @property
    def records(self) -> int:
        return self.leaves.records

    @property
    def kind(self) -> Any:
        return self._extremes[2]

    @property
    def ends(self) -> tuple[float, float]:
        return self._extremes[:2]

    @cached_property
    def _extremes(self) -> tuple[float, float, Any]:
        found = self._map(FindEnds(self.argument))
        low, high = min(each[0] for each in found), max(each[1] for each in found)
        if not np.isfinite([each[0] for each in found]).all():
            raise DataError(
                f"'{shorten(self.argument.call)}' in a formula gets values that are not finite, for instance "
                "the log of a value that is not positive. Correct the predictor or choose another transform."
            )
        return low, high, found[0][2]

    def total(self, summand: Summand) -> list[float]:
        return add_parts(self._map(SumArgument(self.argument, summand)))

    def quantiles(self, shares: Numbers, within: tuple[float, float] | None, *, distinct: bool) -> Numbers:
        if not len(shares) or not np.isfinite(self.ends).all():  # which `ends` refuses
            return np.empty(0)
        sample = np.sort(np.concatenate(self._map(SortArgument(self.argument, within, distinct))))
        try:
            return self._select(shares, np.unique(sample[:: max(1, _RANGE // _EVERY)]), distinct=distinct)
        finally:
            self.leaves.forget(_SORTED)

    def _select(self, shares: Numbers, splitters: Numbers, *, distinct: bool) -> Numbers:
        """Quantiles as NumPy interpolates them between order statistics."""
        # Range k has the values above splitter k−1 and up to splitter k; the last those above all.
        starts, ends = list[Numbers](), list[Numbers]()
        for leaf in range(self.leaves.count):
            values = self.leaves.kept(_SORTED, leaf)
            places = np.searchsorted(values, splitters, side="right")
            starts.append(np.concatenate([[0], places]))
            ends.append(np.concatenate([places, [len(values)]]))
        ranges = range(len(splitters) + 1)

        def gather(place: int) -> Numbers:
            parts = [
                self.leaves.kept_part(_SORTED, leaf, slice(int(start[place]), int(end[place])))
                for leaf, (start, end) in enumerate(zip(starts, ends, strict=True))
                if start[place] < end[place]
            ]
            together = np.concatenate(parts) if parts else np.empty(0)
            return np.unique(together) if distinct else np.sort(together)

        if distinct:
            counts = [len(gather(place)) for place in ranges]
        else:
            counts = [sum(int(e[k] - s[k]) for s, e in zip(starts, ends, strict=True)) for k in ranges]
        before = np.concatenate([[0], np.cumsum(counts)])
        if not before[-1]:
            raise FormulaError(
                f"'{shorten(self.argument.call)}' in a formula has no value between its bounds to put knots "
                "at. Give other bounds, or the knots themselves."
            )
        ranks = (int(before[-1]) - 1) * np.asarray(shares)
        lower = np.floor(ranks).astype(np.int64)
        wanted = np.unique(np.concatenate([lower, np.minimum(lower + 1, before[-1] - 1)]))
        found = dict[int, Any]()
        where = np.searchsorted(before, wanted, side="right") - 1
        for place in np.unique(where).tolist():
            values = gather(place)
            found.update({rank: values[rank - before[place]] for rank in wanted[where == place].tolist()})
        a = np.array([found[rank] for rank in lower.tolist()])
        b = np.array([found[min(rank + 1, int(before[-1]) - 1)] for rank in lower.tolist()])
        return interpolate(a, b, ranks - lower)

    def _map(self, task: Any) -> list[Any]:
        return list(self.workers.map(task, self.leaves, range(self.leaves.count)))
