"""What noisy statistics are told of the outcome beforehand: public limits, and sets of values within them.

    >>> from hedgerow.models.exact import Lognormal
    >>> from hedgerow.privacy.ranges import Radius
    >>> low, high = response_limits(Lognormal(), (1.0, 1e6))
    >>> round(high, 2), round(widest_set(Radius(0.4, 1.8), Lognormal(), (1.0, 1e6)), 2)
    (13.82, 1.5)

Everything here is a function of the plan and of public columns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from hedgerow.arrays import PerRecord
from hedgerow.errors import SettingError, format_value, is_real
from hedgerow.models.base import Domain, Model
from hedgerow.models.exact import Logit, Lognormal, Regression
from hedgerow.models.families.classes import Classes
from hedgerow.models.families.family import Family
from hedgerow.models.families.shares import BetweenEnds
from hedgerow.privacy.ranges import Bounds, Brackets, Radius, Range
from hedgerow.tables.design import LARGEST
from hedgerow.tables.table import Table
from hedgerow.tables.values import count_days, is_day

Relation = Literal["withheld", "replaced", "range"]
Noise = Literal["laplace", "gaussian", "auto"]
Limits = tuple[float, float] | Mapping[str, tuple[float, float]]  # of one column, or by name


@dataclass(frozen=True)
class Margin:
    """Spend a share of ε on noisy counts: copies keep the outcome's distribution where the model is wrong.

    >>> import hedgerow as hr
    >>> hr.Strict(limits=(1e3, 1e9), margin=hr.Margin(share=0.25)).margin
    Margin(share=0.25)

    Where records × share × ε is below 200 the counts would add more noise than they take away, and the
    whole of ε goes to the statistics.
    """

    share: float = 0.25

    def __post_init__(self) -> None:
        if not is_real(self.share) or not 0 < self.share < 1:
            raise SettingError(
                f"Margin: share must lie between 0 and 1, got {format_value(self.share)}; 0.25 is usual."
            )


def check_limits(given: object) -> Limits:
    """Two finite numbers in order, or two dates, or such by column."""
    if isinstance(given, Mapping):
        return MappingProxyType(
            {str(name): _check_pair(pair, f" of '{name}'") for name, pair in given.items()}
        )
    return _check_pair(given)


def check_shares(given: object) -> Mapping[str, float] | None:
    """Positive numbers by column, or nothing."""
    if given is None:
        return None
    if not isinstance(given, Mapping) or not all(is_real(one) and 0 < one < np.inf for one in given.values()):
        raise SettingError(
            'Strict: shares must be positive numbers by column, for instance shares={"wage": 2, "bonus": 1}.'
        )
    return MappingProxyType({str(name): float(one) for name, one in given.items()})


def _check_pair(given: object, whose: str = "") -> tuple[float, float]:
    """Two finite numbers in order; of dates their days since 1970-01-01."""
    ends = list(given) if isinstance(given, tuple | list) else []
    ends = [count_days(end) if isinstance(end, str) and is_day(end) else end for end in ends]
    if len(ends) != 2 or not all(is_real(end) for end in ends):
        raise SettingError(
            f"Strict: limits{whose} must be two numbers, for instance (1000, 1e9), or two dates such as "
            "'2015-01-31'."
        )
    low, high = map(float, ends)
    if not -LARGEST <= low < high <= LARGEST:
        raise SettingError(
            f"Strict: limits{whose} must be two numbers in order, between ±{LARGEST:g}, got ({low:g}, "
            f"{high:g}). Give the lower one first."
        )
    return low, high


def check_policy(public_range: Range) -> None:
    """Refuse a range that is no public set of values which an outcome may be replaced within."""
    name = type(public_range).__name__
    if public_range.outside != "error":
        raise SettingError(
            f"Strict: {name} takes values outside their range as public, and Strict protects every value. "
            "Leave out outside='public'."
        )
    if isinstance(public_range, Radius):
        if not public_range.a or not np.isfinite(public_range.b):
            raise SettingError(
                f"Strict: Radius({public_range.a:g}, {public_range.b:g}) lets values be any number of times "
                "apart. Give a above 0 and a finite b, or relation='replaced'."
            )
    elif isinstance(public_range, Bounds):
        if not all(isinstance(end, str) or is_real(end) for end in (public_range.lower, public_range.upper)):
            raise SettingError(
                "Strict: bounds by record are known to their owner alone, and a policy is public. Name "
                "public columns or numbers, or use Brackets."
            )
    elif not isinstance(public_range, Brackets):
        raise SettingError(
            f"Strict: relation='range' needs public sets of values, and {name} makes none. Use Brackets, "
            "Bounds on public columns, or Radius with the lognormal or the asinh family."
        )


def amounts_of(model: Model) -> Regression | None:
    """The regression of the outcome, or with a spike of what does not lie there; None: no sums would do.

    Numbers between two ends (the beta family) are summed as logits.
    """
    if isinstance(model, Family):
        if isinstance(model.domain, BetweenEnds) and model.domain.rounded is None:
            low, high = model.domain.ends
            return Logit(low=low, high=high)
        return None if model.spike_at is None else model.exact_model
    return model if isinstance(model, Regression) else None


def is_of_classes(model: Model) -> bool:
    """Whether a model's outcomes are declared classes, of which noisy sums can be made."""
    return isinstance(model, Family) and isinstance(model.domain, Classes)


def has_words(domain: Domain) -> bool:
    """Whether an outcome's declared classes are words."""
    levels = domain.setting("levels") if isinstance(domain, Classes) else None
    return levels is not None and isinstance(levels[0], str)


def has_whole_numbers(domain: Domain) -> bool:
    """Whether an outcome's declared classes are whole numbers."""
    if not isinstance(domain, Classes):
        return False
    if domain.lower is not None and domain.upper is not None:  # all from one to the other
        return True
    levels = domain.setting("levels")
    return levels is not None and not has_words(domain) and all(float(level).is_integer() for level in levels)


def spike_of(model: Model) -> float | None:
    """Where values may recur; None for a family without a spike."""
    return model.spike_at if isinstance(model, Family) else None


def response_limits(model: Regression, limits: tuple[float, float]) -> tuple[float, float]:
    """The limits on the scale where errors are normal."""
    if isinstance(model, Lognormal) and limits[0] <= 0:
        raise SettingError(
            f"Strict: the lognormal family needs positive limits, got ({limits[0]:g}, {limits[1]:g}). Give "
            "the smallest amount that matters as the lower one: smaller values, zero too, are moved up to it."
        )
    if isinstance(model, Logit) and not model.low < limits[0] < limits[1] < model.high:
        raise SettingError(
            f"Strict: the beta family needs limits strictly between {model.low:g} and {model.high:g}, got "
            f"({limits[0]:g}, {limits[1]:g}). Of shares give the smallest and the largest one that matter, "
            "such as (0.01, 0.99): others are moved to the nearer."
        )
    low, high = model.response(np.array(limits))
    return float(low), float(high)


def widest_set(
    public_range: Range, model: Regression, limits: tuple[float, float], table: Table | None = None
) -> float:
    """d: how far apart two values of one set may be, within the limits and on the response's scale.

    Sets that a table's columns say need the table. What lies below the first or above the last edge of
    `Brackets` without a column is a set as well.
    """
    low, high = response_limits(model, limits)
    if isinstance(public_range, Radius):
        width = model.apart(public_range.b / public_range.a)
        if not np.isfinite(width):
            raise SettingError(
                f"Strict: Radius needs the lognormal or the asinh family, on whose scale its sets have a "
                f"known width; the {model.name} family needs classes: Brackets, or Bounds on public columns."
            )
        return min(width, high - low)
    if isinstance(public_range, Brackets) and (public_range.column is None or table is None):
        edges = np.clip(np.array(public_range.edges), *limits)
        ends = model.response(np.unique([limits[0], *edges, limits[1]]))
        return float(np.diff(ends).max())
    if not public_range.ends_public:
        check_policy(public_range)
    if table is None:
        return high - low
    lower, upper = public_sets(public_range, table)
    return float((_respond(model, upper, limits) - _respond(model, lower, limits)).max())


def public_sets(public_range: Range, table: Table) -> tuple[PerRecord, PerRecord]:
    """Both ends of every record's set, which public columns or numbers say."""
    return public_range.ends(np.full(table.rows, np.nan), table)


def _respond(model: Regression, values: PerRecord, limits: tuple[float, float]) -> PerRecord:
    return model.response(np.clip(values, *limits))
