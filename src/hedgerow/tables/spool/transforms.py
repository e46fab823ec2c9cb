"""Transforms that learn from all values of a column: means and recurrences summed by leaves, knots selected.

formulaic keeps what a transform has learnt in a state, and applies that to other data. Here states are made
by the same functions of a column in memory, for transforms whose sums must run as they do over leaves
(`by_leaves`), and of one that comes leaf by leaf (`learn`). Quantiles are exact order statistics either way,
so that formulaic may find the knots of a column in memory by itself. Of a table of one leaf every digit is
formulaic's own.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import FormulaError
from hedgerow.numerics.leaves import add_in_order, leaves_of

Numbers = NDArray[Any]
Summand = Callable[[Numbers], tuple[Numbers, ...]]  # what is summed of a leaf's values; picklable
State = Mapping[str, Any]

_SUMMED = ("center", "scale", "standardize", "poly")
_CUBIC = ("cr", "cs", "cc")


class Values(Protocol):
    """What a transform is applied to, leaf by leaf."""

    @property
    def records(self) -> int:
        """How many there are."""

    @property
    def kind(self) -> Any:
        """NumPy's type."""

    def total(self, summand: Summand) -> list[float]:
        """Σ over all records of each column of a summand, in the order of the leaves."""


class Ordered(Values, Protocol):
    """Values of which extremes and quantiles are known as well."""

    @property
    def ends(self) -> tuple[float, float]:
        """The least and the largest."""

    def quantiles(self, shares: Numbers, within: tuple[float, float] | None, *, distinct: bool) -> Numbers:
        """Quantiles of the values between two ends, or of the distinct ones among them."""


@dataclass(frozen=True, repr=False)
class InMemory:
    """Values that are all there."""

    values: Numbers

    @property
    def records(self) -> int:
        return len(self.values)

    @property
    def kind(self) -> Any:
        return self.values.dtype

    @property
    def ends(self) -> tuple[float, float]:
        return float(self.values.min()), float(self.values.max())

    def total(self, summand: Summand) -> list[float]:
        return add_parts([sum_parts(summand, self.values[rows]) for rows in leaves_of(self.records)])

    def quantiles(self, shares: Numbers, within: tuple[float, float] | None, *, distinct: bool) -> Numbers:
        among = self.values
        if within is not None:
            among = among[(within[0] <= among) & (among <= within[1])]
        return np.quantile(np.unique(among) if distinct else among, shares)


def sum_parts(summand: Summand, values: Numbers) -> list[float]:
    """Σ of each column over one leaf."""
    return [float(total) for part in summand(values) for total in np.atleast_1d(part.sum(axis=0))]


def add_parts(sums: list[list[float]]) -> list[float]:
    """Σ of each column over all leaves."""
    return [add_in_order(each) for each in zip(*sums, strict=True)]


@cache
def by_leaves() -> dict[str, Any]:
    """Formulaic's transforms that sum over all records, summing by leaves."""
    from formulaic.transforms import TRANSFORMS
    from formulaic.utils.stateful_transforms import stateful_transform

    def summing(name: str) -> Any:
        original = TRANSFORMS[name]
        signature = inspect.signature(original)

        def transform(data: Any, *args: Any, _state: Any = None, **settings: Any) -> Any:
            asked = signature.bind(None, *args, **settings)
            asked.apply_defaults()
            said = dict([*asked.arguments.items()][1:])  # the first are the data
            values = np.asarray(data)
            sums = name in _SUMMED or said.get("constraints") is not None
            if not sums or values.ndim != 1 or values.dtype.kind not in "iuf" or np.isnan(values).any():
                return original(data, *args, _state=_state, **settings)
            if not _state:
                _state.update(_LEARNERS[name](InMemory(values), **said))
            if name in _SUMMED:
                return original(data, *args, _state=_state, **settings)
            # Constraints multiply the matrix by another, whose digits depend on how many rows it has.
            parts = [
                original(values[rows], *args, _state=_state, **settings) for rows in leaves_of(len(values))
            ]
            columns = {column: np.concatenate([part[column] for part in parts]) for column in parts[0]}
            return type(parts[0])(columns, metadata=parts[0].__formulaic_metadata__)

        return stateful_transform(transform)

    return {name: summing(name) for name in (*_SUMMED, *_CUBIC)}


def learn(name: str, values: Ordered, settings: Mapping[str, Any]) -> State:
    """The state of a transform of some values, called with these settings."""
    from formulaic.transforms import TRANSFORMS

    positional, named = settings.get("", ()), {k: v for k, v in settings.items() if k}
    try:
        asked = inspect.signature(TRANSFORMS[name]).bind(None, *positional, **named)
    except TypeError:
        raise FormulaError(f"'{name}' does not take these settings. Check how they are spelled.") from None
    asked.apply_defaults()
    said = dict([*asked.arguments.items()][1:])
    with np.errstate(all="ignore"):
        return _LEARNERS[name](values, **said)


def _themselves(values: Numbers) -> tuple[Numbers]:
    return (values,)


def _squares(centre: Any, values: Numbers) -> tuple[Numbers]:
    return ((values if centre is None else values - centre) ** 2,)


def _learn_scale(
    values: Values, center: Any = True, scale: Any = True, ddof: float = 1, **_: Any
) -> dict[str, Any]:
    """`scale`: a mean, then the root of the mean square around it."""
    kind = values.kind.type if values.kind.kind == "f" else np.float64
    state: dict[str, Any] = {"ddof": ddof, "center": None, "scale": None}
    if center is True:
        state["center"] = kind(np.float64(values.total(_themselves)[0]) / values.records)
    elif center is not False:
        state["center"] = np.array(center)
    if scale is True:
        (squares,) = values.total(partial(_squares, state["center"]))
        state["scale"] = np.sqrt(kind(np.float64(squares) / (values.records - ddof)))
    elif scale is not False:
        state["scale"] = np.array(scale)
    return state


def _learn_center(values: Values, **_: Any) -> dict[str, Any]:
    return _learn_scale(values, scale=False)


def _learn_standardize(
    values: Values, center: Any = True, rescale: Any = True, ddof: float = 0, **_: Any
) -> dict[str, Any]:
    return _learn_scale(values, center, rescale, ddof)


def _powers(alpha: tuple[float, ...], norms: tuple[float, ...], values: Numbers) -> tuple[Numbers, ...]:
    """x P² and P² of the polynomial after those whose coefficients are known."""
    x = np.asarray(values, dtype=np.float64)
    before, here = np.zeros_like(x), np.ones_like(x)
    for degree, shift in enumerate(alpha):
        after = (x - shift) * here
        if degree:
            after -= norms[degree] / norms[degree - 1] * before
        before, here = here, after
    return x * here**2, here**2


def _learn_poly(values: Values, degree: int = 1, raw: bool = False, **_: Any) -> dict[str, Any]:
    """`poly`: the coefficients of the three-term recurrence, one degree after the other."""
    if raw:
        return {}
    alpha, norms = list[Any](), list[Any]()
    for _degree in range(degree + 1):
        shift, norm = values.total(partial(_powers, tuple(alpha), tuple(norms)))
        alpha.append(np.float64(shift) / np.float64(norm))
        norms.append(np.float64(norm))
    return {"alpha": dict(enumerate(alpha[:-1])), "norms2": dict(enumerate(norms))}


def _learn_bs(
    values: Ordered,
    df: Any = None,
    knots: Any = None,
    degree: int = 3,
    include_intercept: bool = False,
    lower_bound: Any = None,
    upper_bound: Any = None,
    extrapolation: str = "raise",
    **_: Any,
) -> dict[str, Any]:
    """`bs`: between its ends, knots at quantiles of the values."""
    inner = df - degree - bool(include_intercept) if df else 0
    if df and knots is None and inner > 0:
        within = None
        if extrapolation in ("clip", "na", "zero"):
            within = _between(values, lower_bound, upper_bound)
        knots = values.quantiles(np.linspace(0, 1, inner + 2)[1:-1], within, distinct=False).tolist()
        df = None
    return _fill("bs", values, df, knots, degree, include_intercept, lower_bound, upper_bound, extrapolation)


def _learn_cubic(
    name: str,
    values: Ordered,
    df: Any = None,
    knots: Any = None,
    lower_bound: Any = None,
    upper_bound: Any = None,
    constraints: Any = None,
    extrapolation: str = "extend",
    **_: Any,
) -> dict[str, Any]:
    """`cr`, `cs` and `cc`: between its ends, knots at quantiles of the distinct values; perhaps centred."""
    cyclic, given = name == "cc", np.empty((0, 0))
    if constraints is not None and constraints != "center":
        given = np.atleast_2d(np.asarray(constraints, dtype=np.float64))
    held = 1 if isinstance(constraints, str) else len(given)
    if df is not None and knots is None and df >= (1 if cyclic or held else 2):
        within = _between(values, lower_bound, upper_bound)
        shares = np.linspace(0, 100, df - 2 + held + cyclic + 2)[1:-1] / 100
        knots, df = values.quantiles(shares, within, distinct=True).tolist(), None
    state = _fill(name, values, df, knots, lower_bound, upper_bound, extrapolation=extrapolation)
    if constraints == "center":
        clip = extrapolation if extrapolation in ("clip", "raise") else "extend"
        sums = values.total(partial(_free_matrix, name, dict(state), clip))
        given = np.array([[np.float64(total) / values.records for total in sums]])
    if held:
        state["constraints"] = given
        _fill(name, values, extrapolation=extrapolation, state=state)  # refuses what does not go with it
    return state


def _free_matrix(name: str, state: State, extrapolation: str, values: Numbers) -> tuple[Numbers]:
    """The matrix of a spline without constraints."""
    from formulaic.transforms import TRANSFORMS

    columns = TRANSFORMS[name](values, extrapolation=extrapolation, _state=dict(state))
    return (np.stack([*columns.values()], axis=1),)


def _between(values: Ordered, lower: Any, upper: Any) -> tuple[float, float]:
    low, high = values.ends
    return low if lower is None else lower, high if upper is None else upper


def _fill(
    name: str, values: Ordered, *args: Any, state: dict[str, Any] | None = None, **settings: Any
) -> dict[str, Any]:
    """The state that formulaic itself makes of the extremes, once the knots are known."""
    from formulaic.transforms import TRANSFORMS

    state = {} if state is None else state
    try:
        TRANSFORMS[name](np.array(values.ends), *args, _state=state, **settings)
    except ValueError:  # its message may quote data
        raise FormulaError(
            f"'{name}' in the formula could not be applied to the table. Check that splines stay inside "
            "their bounds, and that the column has enough different values for its knots."
        ) from None
    return state


_LEARNERS: dict[str, Callable[..., dict[str, Any]]] = {
    "center": _learn_center,
    "scale": _learn_scale,
    "standardize": _learn_standardize,
    "poly": _learn_poly,
    "bs": _learn_bs,
    "cr": partial(_learn_cubic, "cr"),
    "cs": partial(_learn_cubic, "cs"),
    "cc": partial(_learn_cubic, "cc"),
}
