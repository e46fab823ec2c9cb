"""How a sentence of the paper is put to the test: checks with their Monte Carlo error, and the verdict.

A claim is a set of checks. Each check compares a measured number with its Monte Carlo error under one
condition (a form of the sensitivity, a prior, a metric …; empty where there is only one). The verdict follows
from the checks alone: it holds if all do, under every condition; holds only under the conditions for which
all do; and otherwise does not hold.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hedgerow.arrays import Array, Mask
from hedgerow_studies.paper import setup

ERRORS = 2.0  # a difference counts when it exceeds this many standard errors

USED = "the form α(f − log γ)"
PRINTED = "the printed form αf − log γ"


@dataclass(frozen=True)
class Check:
    """One measured number and whether it agrees with the claim."""

    quantity: str
    estimate: float
    error: float | None  # Monte Carlo standard error; None where nothing is random
    agrees: bool
    condition: str = ""
    detail: str = ""

    def under(self, condition: str) -> "Check":
        """The same check under a further condition."""
        joined = f"{condition}, {self.condition}" if self.condition else condition
        return Check(self.quantity, self.estimate, self.error, self.agrees, joined, self.detail)

    def __str__(self) -> str:
        error = "" if self.error is None else f" ± {_readable(self.error, 2)}"
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.quantity} {_readable(self.estimate, 4)}{error}{detail}"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, and what was measured."""

    id: str
    location: str
    statement: str
    statistic: str
    checks: tuple[Check, ...]

    @property
    def verdict(self) -> str:
        """Decided from the checks alone."""
        agrees: dict[str, bool] = {}
        for check in self.checks:
            agrees[check.condition] = agrees.get(check.condition, True) and check.agrees
        good = [condition for condition, ok in agrees.items() if ok]
        if len(good) == len(agrees):
            return "holds"
        return f"holds only under {'; '.join(good)}" if good else "does not hold"


def lower(wide: pd.DataFrame, first: str, second: str, *, what: str = "ε") -> Check:
    """That the first is below the second: the paired difference over replicates and its standard error."""
    gap = _gap(wide, first, second)
    mean, error = _mean(gap)
    return Check(
        f"{what} of {first} minus {second}:",
        mean,
        error,
        bool(mean + ERRORS * error < 0),
        detail=f"below in {int((gap < 0).sum())} of {len(gap)}",
    )


def same(wide: pd.DataFrame, first: str, second: str, *, what: str) -> Check:
    """That the two do not differ beyond Monte Carlo error."""
    gap = _gap(wide, first, second)
    mean, error = _mean(gap)
    detail = "identical" if not gap.any() else f"largest {np.abs(gap).max():.2g}"
    return Check(
        f"{what} of {first} minus {second}:", mean, error, bool(abs(mean) <= ERRORS * error), detail=detail
    )


def lower_once(wide: pd.DataFrame, first: str, second: str, *, what: str = "ε") -> Check:
    """That the first is below the second in the one sample drawn; how it goes in the others beside it."""
    gap = _gap(wide, first, second)
    spread = float(gap.std(ddof=1)) if len(gap) > 1 else None
    return Check(
        f"{what} of {first} minus {second} in this sample:",
        float(gap[0]),
        spread,
        bool(gap[0] < 0),
        detail=f"below in {int((gap < 0).sum())} of {len(gap)} samples; ± is the spread over samples",
    )


def steadier(wide: pd.DataFrame, first: str, second: str, *, what: str) -> Check:
    """That the first spreads less over its copies than the second; error by leaving out single copies."""
    pairs = wide[[first, second]].to_numpy(dtype=np.float64)

    def ratio(rows: Array) -> float:
        spread = rows.std(axis=0, ddof=1)
        return float(np.log(spread[0] / spread[1]))

    count = len(pairs)
    left_out = np.array([ratio(np.delete(pairs, copy, axis=0)) for copy in range(count)])
    error = float(np.sqrt((count - 1) / count * ((left_out - left_out.mean()) ** 2).sum()))
    found = ratio(pairs)
    return Check(
        f"log ratio of the copies' spread of the {what}, {first} over {second}:",
        found,
        error,
        bool(found + ERRORS * error < 0),
    )


def near(values: Array, target: float, *, what: str, within: float) -> Check:
    """That the mean over replicates agrees with a printed number up to its rounding and its error."""
    mean, error = _mean(values)
    sd = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    # The paper's own number comes from one sample, so it may lie anywhere samples do.
    return Check(
        f"{what}:",
        mean,
        error,
        bool(abs(mean - target) <= within + ERRORS * sd),
        detail=f"the paper has {target:g}; samples spread by {sd:.2g}",
    )


def counted(wide: pd.DataFrame, order: Sequence[str], *, what: str) -> Check:
    """In how many replicates values fall strictly along the given order; agrees from 95 % up."""
    falls: Mask = np.asarray((np.diff(wide[list(order)].to_numpy(), axis=1) < 0).all(axis=1), dtype=np.bool_)
    share = float(falls.mean())
    error = math.sqrt(max(share * (1 - share), 0.25 / len(falls)) / len(falls))
    return Check(what, share, error, share >= 0.95, detail=f"{int(falls.sum())} of {len(falls)}")


def forms(prices: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """The prices with the truncated columns in either form."""
    yield USED, prices
    swapped = prices.drop(columns=list(setup.AS_PRINTED))
    yield PRINTED, swapped.rename(columns={new: old for old, new in setup.AS_PRINTED.items()})


def in_both_forms(
    prices: pd.DataFrame,
    pairs: Sequence[tuple[str, str]],
    compare: Callable[[pd.DataFrame, str, str], Check] | None = None,
) -> tuple[Check, ...]:
    """A comparison for each pair, under either form; paired over replicates unless told otherwise."""
    found: list[Check] = []
    for form, prices_in_form in forms(prices):
        found += [(compare or lower)(prices_in_form, *pair).under(form) for pair in pairs]
    return tuple(found)


def wide(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """One row per replicate, one column per synthesizer."""
    return rows.pivot(index="replicate", columns="standard", values=column)


def pooled(utility: pd.DataFrame, name: str) -> pd.DataFrame:
    """A statistic averaged over the copies of each replicate."""
    rows = utility[utility["statistic"] == name]
    mean = rows.groupby(["replicate", "standard"], sort=False)["synthetic"].mean().reset_index()
    return wide(mean, "synthetic")


def relative_error(utility: pd.DataFrame, name: str) -> pd.DataFrame:
    """How far a pooled statistic lies from the confidential one, as a share of it."""
    rows = utility[utility["statistic"] == name]
    truth = rows.groupby("replicate")["original"].first()
    return (pooled(utility, name).div(truth, axis=0) - 1).abs()


def _gap(wide: pd.DataFrame, first: str, second: str) -> Array:
    return np.asarray(wide[first].to_numpy() - wide[second].to_numpy(), dtype=np.float64)


def _mean(values: Array) -> tuple[float, float]:
    error = float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.inf
    return float(values.mean()), error


def _readable(value: float, digits: int) -> str:
    """A number with so many significant digits, never in powers of ten when it is large."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.{digits}g}"
