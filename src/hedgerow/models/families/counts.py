"""Counts: Poisson and negative binomial. Interval masses are sums of probabilities."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hedgerow.arrays import Array, Mask
from hedgerow.errors import DataError, SettingError, format_value
from hedgerow.models.families.definition import FamilyDefinition, Numbers
from hedgerow.models.lazy import jax, jnp, lax, masses, special
from hedgerow.models.prior import Prior
from hedgerow.models.programs.response import Response
from hedgerow.tables.design import Design

_TERMS = 256  # probabilities summed one by one where a difference of distribution functions cancels
_TABLE = 256  # records from which on a part of a log probability comes from a table, one per draw
_COUNTED_UP = 2000  # whole numbers whose probabilities are summed for a quantile
_LEAST_LOG = -600.0  # log probability of 0 below which such a sum would start from too few digits
_LEVELS = 100  # pairs of levels of a continued fraction; at numbers up to 2,000 fewer than 60 are needed
_MOST_TERMS = 2000  # whole numbers a truncated count may range over: its mass is a sum of so many terms
_MOST_COUNTED = 10**9  # counts beyond it have log probabilities that are small differences of huge terms
_PRIOR = Prior(intercept=(0.0, 10.0), slope=(0.0, 1.0))


@dataclass(frozen=True)
class WholeNumbers(Numbers):
    """Whole numbers from 0 up, or between declared ends."""

    words: ClassVar[str] = "whole numbers from 0 up"
    whole: ClassVar[bool] = True
    least: ClassVar[float] = 0.0
    log_scale: ClassVar[bool] = True

    def check_ends(self, low: float, high: float) -> None:
        super().check_ends(low, high)
        terms = high - low if np.isfinite(high) else low
        if low < 0:
            raise SettingError(
                f"Family '{self.family}': lower must be 0 or more, got {format_value(self.lower)}."
            )
        if terms > _MOST_TERMS and self.upper is None:
            raise SettingError(
                f"Family '{self.family}': lower may be at most {_MOST_TERMS} where no upper is given, got "
                f"{low:g}. Declare upper, too, if it is public, or a smaller lower."
            )
        if terms > _MOST_TERMS:
            raise SettingError(
                f"Family '{self.family}': lower and upper may span at most {_MOST_TERMS} whole numbers, "
                f"got {terms:g}. Leave upper out."
            )

    def fits(self, values: Array, design: Design) -> Mask:
        return super().fits(values, design) & (values >= 0) & (values == np.rint(values))

    def remedy(self) -> str:
        return "Round them, or choose a family for continuous values."

    def check_values(self, design: Design) -> None:
        super().check_values(design)
        huge = int((design.values > _MOST_COUNTED).sum())
        if huge:
            raise DataError(
                f"Column '{design.outcome}' has {huge} values in {design.records} rows above "
                f"{_MOST_COUNTED:,}; the {self.family} family takes counts up to that. Count in thousands or "
                "millions, or choose a family for continuous values."
            )

    def truncate(self, response: Any) -> Response:
        if self.lower is None and self.upper is None:
            return response
        return Between(response, int(self.lower or 0), None if self.upper is None else int(self.upper))


class Counted(Response):
    """Whole numbers from 0 up."""

    discrete = True

    @abstractmethod
    def below(self, value: Any) -> Any:
        """P(X ≤ value) for a whole number from 0 up."""

    @abstractmethod
    def above(self, value: Any) -> Any:
        """P(X > value) for a whole number from 0 up."""

    @abstractmethod
    def log_from(self, first: Any) -> tuple[Any, Any]:
        """log P(X ≥ first) for a first above 0 in the right tail, and whether it lies there.

        Elsewhere the number says nothing. Differentiable in every parameter, also where the tail underflows.
        """

    def log_mass(self, lower: Any, upper: Any) -> Any:
        low, high = jnp.broadcast_arrays(jnp.maximum(jnp.ceil(lower), 0.0), jnp.floor(upper))
        inner = jnp.where(jnp.isfinite(high), jnp.maximum(high, 0.0), low)
        ends = jnp.isposinf(high)
        before = jnp.maximum(low - 1, 0.0)
        below = jnp.where(low > 0, self.below(before), 0.0), jnp.where(ends, 1.0, self.below(inner))
        above = jnp.where(low > 0, self.above(before), 1.0), jnp.where(ends, 0.0, self.above(inner))
        found = masses.mass_between_tails(
            below,
            tuple(jnp.log(one) for one in above),
            lambda: self._summed(low, jnp.where(ends, jnp.inf, inner)),
        )
        return jnp.where(high >= low, found, -jnp.inf)

    def quantile(self, uniforms: Any) -> Any:
        return masses.invert_whole_numbers(self.below, uniforms, 0.0, 2.0**52)

    def _summed(self, low: Any, high: Any) -> Any:
        """The mass term by term from the end where it is larger; wide ones from a tail or by quadrature."""
        finite = jnp.where(jnp.isfinite(high), high, low)
        down = self.log_prob(finite) > self.log_prob(low)
        start, step = jnp.where(down, finite, low), jnp.where(down, -1.0, 1.0)

        def add(term: int, total: Any) -> Any:
            place = start + step * term
            score = jnp.where(
                (place >= low) & (place <= high), self.log_prob(jnp.maximum(place, 0.0)), -jnp.inf
            )
            return jnp.logaddexp(total, score)

        total = lax.fori_loop(0, _TERMS, add, jnp.full(jnp.shape(low), -jnp.inf))
        wide = jnp.isfinite(high) & (high - low >= _TERMS)
        smooth = masses.integrate_density(self.log_prob, low - 0.5, jnp.where(wide, finite, low) + 0.5)
        found = jnp.where(wide, jnp.maximum(smooth, total), total)
        tail, fits = self.log_from(jnp.maximum(low, 1.0))
        beyond, _ = self.log_from(finite + 1)
        whole = tail + masses.log1mexp(jnp.where(wide, tail - beyond, jnp.inf))
        return jnp.where(fits & (low > 0) & (wide | jnp.isposinf(high)), whole, found)


class Poisson(Counted):
    """Mean exp(`log_mean`)."""

    def __init__(self, log_mean: Any) -> None:
        self.log_mean, self.rate = log_mean, jnp.exp(log_mean)
        super().__init__(log_mean)

    def log_prob(self, value: Any) -> Any:
        return value * self.log_mean - self.rate - special.gammaln(value + 1)

    def quantile(self, uniforms: Any) -> Any:
        return _count_up(self, uniforms, lambda count: self.rate / (count + 1))

    def below(self, value: Any) -> Any:
        return special.gammaincc(value + 1, self.rate)

    def above(self, value: Any) -> Any:
        return special.gammainc(value + 1, self.rate)

    def log_from(self, first: Any) -> tuple[Any, Any]:
        fits = self.rate < first + 1
        rate = jnp.where(fits, self.rate, 0.5)
        ratio = _fraction(first, lambda m: (first + m) * rate, lambda m: m * rate)
        return self.log_prob(first) - jnp.log(ratio), fits


class NegativeBinomial(Counted):
    """Mean exp(`log_mean`), variance mean + mean²/size."""

    def __init__(self, log_mean: Any, size: Any) -> None:
        self.log_mean, self.size_ = log_mean, size
        self.logit = log_mean - jnp.log(size)
        super().__init__(log_mean, size)

    def log_prob(self, value: Any) -> Any:
        log_failure = masses.log_sigmoid(-self.logit)
        return value * self.logit + (value + self.size_) * log_failure + self._log_ways(value)

    def _log_ways(self, value: Any) -> Any:
        """log Γ(size + value) − log Γ(size) − log value!: from a table where all values of many are small."""
        if jnp.ndim(self.size_) or jnp.size(value) < _TABLE:
            return -masses.log_beta(self.size_, value + 1.0) - jnp.log(self.size_ + value)
        return masses.log_ways(self.size_, value)

    def quantile(self, uniforms: Any) -> Any:
        share = jax.nn.sigmoid(self.logit)
        return _count_up(self, uniforms, lambda count: share * (self.size_ + count) / (count + 1))

    def below(self, value: Any) -> Any:
        return special.betainc(*jnp.broadcast_arrays(self.size_, value + 1.0, jax.nn.sigmoid(-self.logit)))

    def above(self, value: Any) -> Any:
        return special.betainc(*jnp.broadcast_arrays(value + 1.0, self.size_, jax.nn.sigmoid(self.logit)))

    def log_from(self, first: Any) -> tuple[Any, Any]:
        size, share = self.size_, jax.nn.sigmoid(self.logit)
        fits = share * (first + size + 2) < first + 1
        size, share = jnp.where(fits, size, 1.0), jnp.where(fits, share, 0.5)
        ratio = _fraction(
            first, lambda m: (first + m) * (first + size + m) * share, lambda m: m * (size - m) * share
        )
        return self.log_prob(first) - jnp.log(ratio), fits


class Between(Counted):
    """Another count distribution between two whole numbers, its mass a sum of probabilities."""

    def __init__(self, base: Counted, first: int, last: int | None) -> None:
        self.base, self.first, self.last = base, first, last
        self.log_whole = self._whole()
        super().__init__(jnp.zeros(base.batch_shape))

    def log_prob(self, value: Any) -> Any:
        return self.base.log_prob(value) - self.log_whole

    def log_mass(self, lower: Any, upper: Any) -> Any:
        high = upper if self.last is None else jnp.minimum(upper, float(self.last))
        return jnp.minimum(
            self.base.log_mass(jnp.maximum(lower, float(self.first)), high) - self.log_whole, 0.0
        )

    def below(self, value: Any) -> Any:
        return jnp.exp(self.log_mass(jnp.full(jnp.shape(value), -jnp.inf), value))

    def above(self, value: Any) -> Any:
        return 1 - self.below(value)

    def log_from(self, first: Any) -> tuple[Any, Any]:
        tail, fits = self.base.log_from(first)
        return tail - self.log_whole, fits & (self.last is None)

    def quantile(self, uniforms: Any) -> Any:
        last = 2.0**52 if self.last is None else float(self.last)
        return masses.invert_whole_numbers(self.below, uniforms, float(self.first), last)

    def _whole(self) -> Any:
        """Differentiable in every parameter, unlike an incomplete beta function: plain sums and fractions."""
        if self.last is not None:
            return self._sum(self.first, self.last + 1)
        if not self.first:
            return jnp.zeros(self.base.batch_shape)
        # In the right tail what is left out rounds to one; elsewhere what remains is no small part.
        tail, fits = self.base.log_from(jnp.asarray(float(self.first)))
        left_out = self._sum(0, self.first)
        return jnp.where(fits, tail, masses.log1mexp(jnp.where(fits, 1.0, -left_out)))

    def _sum(self, start: int, stop: int) -> Any:
        def add(total: Any, place: Any) -> tuple[Any, None]:
            return jnp.logaddexp(total, self.base.log_prob(place)), None

        nothing = jnp.full(self.base.batch_shape, -jnp.inf)
        return lax.scan(add, nothing, jnp.arange(start, stop, dtype=float))[0]


def _count_up(response: Counted, uniforms: Any, ratio: Callable[[Any], Any]) -> Any:
    """Quantiles by summing probabilities from 0 up, each `ratio` times the last; large ones by a search."""

    def add(state: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        count, found, term, total = state
        term = term * ratio(count)
        return count + 1, found + (total < uniforms), term, total + term

    def short(state: tuple[Any, Any, Any, Any]) -> Any:
        return (state[0] < _COUNTED_UP) & (state[3] < uniforms).any()

    nothing = jnp.zeros(jnp.shape(uniforms))
    log_first = response.log_prob(nothing)
    first = jnp.exp(log_first)
    _, found, _, total = lax.while_loop(short, add, (0.0, nothing, first, first))
    reached = (total >= uniforms).all() & (log_first > _LEAST_LOG).all()
    return lax.cond(reached, lambda: found, lambda: Counted.quantile(response, uniforms))


def _fraction(first: Any, odd: Callable[[Any], Any], even: Callable[[Any], Any]) -> Any:
    """P(X = first) / P(X ≥ first): the continued fraction of an incomplete beta or gamma function.

    Its levels are 1 − odd(m)/((a + 2m)(a + 2m + 1)) and 1 + even(m)/((a + 2m − 1)(a + 2m)), a being `first`.
    All of them are positive in the right tail, so nothing cancels there.
    """

    def level(found: Any, m: Any) -> tuple[Any, None]:
        place = first + 2 * m
        inner = 1 - odd(m) / (place * (place + 1)) / found
        return 1 + even(m) / ((place - 1) * place) / inner, None

    start = jnp.ones(jnp.shape(odd(0.0)))
    found, _ = lax.scan(level, start, jnp.arange(_LEVELS, 0, -1, dtype=float))
    return 1 - odd(0.0) / (first * (first + 1)) / found


FAMILIES = (
    FamilyDefinition(
        "poisson",
        domain=WholeNumbers,
        prior=_PRIOR,
        response=lambda program, eta: Poisson(eta),
        simulate=lambda random, z: random.poisson(np.exp(0.5 + 0.4 * z)),
    ),
    FamilyDefinition(
        "negative_binomial",
        domain=WholeNumbers,
        prior=_PRIOR,
        response=lambda program, eta: NegativeBinomial(eta, program.positive("size", program.residual**-2)),
        simulate=lambda random, z: random.negative_binomial(2.0, 2 / (2 + np.exp(0.5 + 0.4 * z))),
    ),
)
