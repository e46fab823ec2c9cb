"""From risk to the weight α_i in [0, 1]: the riskier the record, the smaller (docs/maths.md)."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from scipy.special import expit

from hedgerow.arrays import Confidential, PerRecord, RecordMask
from hedgerow.errors import SettingError, format_value, is_finite
from hedgerow.models.scored import Risk, RiskKind, check_risk_kind
from hedgerow.numerics.leaves import apply, sum_leaves
from hedgerow.privacy.claims.caveats import write_caveat
from hedgerow.tables.table import Table

Reads = Literal["nothing", "ends", "moments"]  # of the risks of all records

NOT_OF_A_SURVEY = (
    "They say how the mechanism weighs records by their risk. Survey weights are a column of the table: it "
    "is released unchanged, and enters the fit only where the formula names it."
)


def _no_plan(refused: float) -> float:
    raise SettingError("PlannedWeights plan with predictors and a target, and here are none.")


@dataclass(frozen=True, repr=False)
class Overall(Confidential):
    """What rules read of the risks of all records, sums taken leaf by leaf; NaN where a rule reads it not."""

    least: float = np.nan
    largest: float = np.nan
    mean: float = np.nan
    spread: float = np.nan  # standard deviation, with n − 1; 0 for one record

    @classmethod
    def of(cls, risk: PerRecord, reads: Reads, among: RecordMask | None = None) -> "Overall":
        """What rules read of risks that are all at hand; `among` as in `sum_leaves`."""
        if reads == "moments":
            mean = sum_leaves(risk, among) / len(risk)
            squares = sum_leaves((risk - mean) ** 2, among)
            return cls(mean=mean, spread=spread_of(squares, len(risk)))
        return cls(float(risk.min()), float(risk.max())) if reads == "ends" else cls()


def spread_of(squares: float, count: int) -> float:
    """The standard deviation, from the sum of squared distances from the mean."""
    return float(np.sqrt(squares / (count - 1))) if count > 1 else 0.0


@dataclass(frozen=True, repr=False)
class Evidence:
    """What weights may be built from: that of all records or, with what is read of all, of some."""

    risk: Risk
    values: PerRecord
    table: Table
    refit: Callable[[PerRecord], PerRecord]  # weights → by-record bound max_s |d_i| after a weighted fit
    plan: Callable[[float], float] = _no_plan  # chance of a refusal → one weight for all, without the outcome
    whole: Overall | None = None  # of all records' risks, where these are some
    among: RecordMask | None = None  # which of the table's records these are, where others take no part

    def overall(self, kind: RiskKind, reads: Reads) -> Overall:
        """What a rule reads of the risks of all records."""
        return self.whole or Overall.of(self.risk.of(kind), reads, self.among)


class Weights(ABC):
    """A rule that turns risk into weights."""

    joint: ClassVar[bool] = True  # a record's weight depends on other records too, through the fit at least

    @property
    def columns(self) -> tuple[str, ...]:
        """Table columns the weights are read from; never the outcome."""
        return ()

    @property
    def unraised(self) -> "Weights":
        """The rule itself, without the steps that raise its weights afterwards (`Reweighted`)."""
        return self

    def of_rows(self, rows: RecordMask) -> "Weights":
        """The same rule for some of the rows: where weights are given by record, those rows' weights."""
        return self

    @abstractmethod
    def alpha(self, evidence: Evidence) -> PerRecord:
        """α_i for each record."""


@dataclass(frozen=True)
class Normalised(Weights):
    """α = clip(scale · (1 − r) + shift, 0, 1) with r a normalised risk."""

    scale: float = 1.0
    shift: float = 0.0
    risk: RiskKind = "lipschitz"
    reads: ClassVar[Reads] = "ends"

    def __post_init__(self) -> None:
        check_risk_kind(self.risk)
        _check_affine(self.scale, self.shift)

    def alpha(self, evidence: Evidence) -> PerRecord:
        overall = evidence.overall(self.risk, self.reads)

        def weigh(risk: PerRecord) -> PerRecord:
            harmless = 1 - self.normalised(risk, overall)
            return np.clip(self.scale * harmless + self.shift, 0, 1)

        return apply(weigh, evidence.risk.of(self.risk))

    @abstractmethod
    def normalised(self, risk: PerRecord, overall: Overall) -> PerRecord:
        """The risk on a scale from 0 to 1."""


@dataclass(frozen=True)
class LinearWeights(Normalised):
    """r = (Δ − min)/(max − min): the riskiest record gets weight 0 (with shift 0). Reproduces the paper."""

    def normalised(self, risk: PerRecord, overall: Overall) -> PerRecord:
        low, high = overall.least, overall.largest
        return (risk - low) / (high - low) if high > low else np.zeros_like(risk)


@dataclass(frozen=True)
class SoftmaxWeights(Normalised):
    """r = 1/(1 + exp(−1.69897 (Δ − mean)/sd))."""

    reads: ClassVar[Reads] = "moments"

    def normalised(self, risk: PerRecord, overall: Overall) -> PerRecord:
        spread = overall.spread
        standardised = (risk - overall.mean) / spread if spread > 0 else np.zeros_like(risk)
        return np.asarray(expit(1.69897 * standardised))


@dataclass(frozen=True)
class LogisticWeights(Normalised):
    """r = 2/(1 + exp(−Δ/2)) − 1, so that α Δ stays below 1.114 · scale for every record."""

    reads: ClassVar[Reads] = "nothing"

    def normalised(self, risk: PerRecord, overall: Overall) -> PerRecord:
        return np.tanh(risk / 4)  # the same number without overflow


@dataclass(frozen=True)
class InverseWeights(Normalised):
    """α = min Δ / Δ_i, the paper's "α_i ∝ 1/max|f|". One record, the least risky, drives all weights."""

    def normalised(self, risk: PerRecord, overall: Overall) -> PerRecord:
        return 1 - np.where(risk > 0, overall.least / np.where(risk > 0, risk, 1.0), 1.0)


@dataclass(frozen=True)
class CapWeights(Weights):
    """α = min(1, cap/risk_i): only records above the cap are touched."""

    cap: float
    risk: RiskKind = "lipschitz"

    def __post_init__(self) -> None:
        check_risk_kind(self.risk)
        if not is_finite(self.cap) or self.cap <= 0:
            raise SettingError(f"CapWeights: cap must be positive and finite, got {format_value(self.cap)}.")

    def alpha(self, evidence: Evidence) -> PerRecord:
        risk = evidence.risk.of(self.risk)
        return np.minimum(1.0, self.cap / np.maximum(risk, self.cap))


@dataclass(frozen=True)
class ScalarWeights(Weights):
    """One weight for all; 1 gives the plain posterior's definitions."""

    value: float
    joint: ClassVar[bool] = False

    def __init__(self, alpha: float = 1.0) -> None:
        if not is_finite(alpha) or not 0 <= alpha <= 1:
            raise SettingError(f"ScalarWeights: alpha must lie between 0 and 1, got {format_value(alpha)}.")
        object.__setattr__(self, "value", float(alpha))

    def alpha(self, evidence: Evidence) -> PerRecord:
        return np.full(len(evidence.values), self.value)


@dataclass(frozen=True)
class PlannedWeights(Weights):
    """One weight for all, planned from the predictors and the target: the outcome plays no part in it.

    >>> import hedgerow as hr
    >>> asked = {"weights": PlannedWeights(), "bound": "renyi", "epsilon": 8.0, "seed": 1}
    >>> synth = hr.Synthesizer("x ~ z", **asked).fit(hr.datasets.lognormal(n=300, seed=1))
    >>> len(set(synth.alpha_)), synth.total_epsilon_ <= 8.0
    (1, True)

    The largest weight at which a table that the model describes is priced above the target with at most the
    chance `refused`. Such a table leads to no release, since the weight is not scaled down for it: a scale
    that follows the data would give away more than the target allows (docs/honesty.md). For exact models and
    ADP under bound="renyi".
    """

    refused: float = 0.05
    joint: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not is_finite(self.refused) or not 0 < self.refused < 1:
            raise SettingError(
                f"PlannedWeights: refused must lie between 0 and 1, got {format_value(self.refused)}; 0.05 "
                "is usual."
            )

    def alpha(self, evidence: Evidence) -> PerRecord:
        return np.full(len(evidence.values), evidence.plan(self.refused))


@dataclass(frozen=True)
class IdentificationWeights(Weights):
    """Weights from identification risk: the share of records whose value is *not* near this record's.

    B(x) = [x(1−radius), x(1+radius)]. Marginal: IR_i = share of x_h outside B(x_i). Pairwise: averages
    over partners j the share outside both balls. `known` names columns an intruder knows; shares are then
    taken among records with the same pattern. Counted by sorting, never over pairs. Under pairwise
    weights a record alone in its pattern gets weight 0.
    """

    radius: float
    known: Sequence[str] = ()
    pairwise: bool = False
    scale: float = 1.0
    shift: float = 0.0

    def __post_init__(self) -> None:
        _check_affine(self.scale, self.shift)
        if not is_finite(self.radius) or not 0 < self.radius < 1:
            raise SettingError(
                "IdentificationWeights: radius must lie strictly between 0 and 1, got "
                f"{format_value(self.radius)}."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.known)

    def alpha(self, evidence: Evidence) -> PerRecord:
        near = np.empty(len(evidence.values))
        patterns = evidence.table.labels(list(self.known))
        order = np.argsort(patterns, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(patterns[order])) + 1):
            near[rows] = self._near(evidence.values[rows])
        return np.clip(self.scale * near + self.shift, 0, 1)

    def _near(self, values: PerRecord) -> PerRecord:
        """1 − IR for every record of one pattern."""
        count = len(values)
        ordered = np.sort(values)
        ends = values * (1 - self.radius), values * (1 + self.radius)
        first = np.searchsorted(ordered, np.minimum(*ends), side="left")
        last = np.searchsorted(ordered, np.maximum(*ends), side="right")
        own = (last - first).astype(np.float64)
        if not self.pairwise:
            return own / count
        if count == 1:
            return np.zeros(1)
        # Σ_j |B_i ∩ B_j| = Σ over h in B_i of the number of balls that hold x_h.
        covered = np.zeros(count + 1)
        np.add.at(covered, first, 1.0)
        np.add.at(covered, last, -1.0)
        running = np.concatenate([[0.0], np.cumsum(np.cumsum(covered)[:-1])])
        shared = running[last] - running[first]
        union = count * own + own.sum() - shared - own  # Σ_{j≠i} |B_i ∪ B_j|
        return np.asarray(union / (count * (count - 1)))


@dataclass(frozen=True)
class Reweighted(Weights):
    """After a fit with the base weights, raise the weights that did not decide the price.

    α_i ← clip(k · α_i · D/D_i, 0, 1) with D_i the by-record bound max_s |d_i| and D the largest;
    a weight of 0 stays 0.
    """

    base: Weights
    k: float = 0.95

    def __post_init__(self) -> None:
        if not isinstance(self.base, Weights):
            raise SettingError(f"Reweighted: base must be weights, got {type(self.base).__name__}.")
        if not is_finite(self.k) or not 0 < self.k <= 1:
            raise SettingError(
                f"Reweighted: k must lie in (0, 1], got {format_value(self.k)}; 0.95 is usual."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        return self.base.columns

    @property
    def unraised(self) -> Weights:
        return self.base.unraised

    def of_rows(self, rows: RecordMask) -> Weights:
        return replace(self, base=self.base.of_rows(rows))

    def alpha(self, evidence: Evidence) -> PerRecord:
        alpha = self.base.alpha(evidence)
        bound = evidence.refit(alpha)
        return self.raised(alpha, bound, float(bound.max()))

    def raised(self, alpha: PerRecord, bound: PerRecord, largest: float) -> PerRecord:
        """The weights from those before, with D_i and the largest of all records."""
        ratio = np.where(bound > 0, largest / np.where(bound > 0, bound, 1.0), np.inf)
        with np.errstate(invalid="ignore"):
            return np.where(alpha > 0, np.clip(self.k * alpha * ratio, 0, 1), 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class FixedWeights(Weights):
    """Weights given by the caller, one per record. hedgerow cannot know what they were built from."""

    values: PerRecord
    joint: ClassVar[bool] = False

    def of_rows(self, rows: RecordMask) -> Weights:
        return FixedWeights(self.values[rows]) if len(self.values) == len(rows) else self

    def alpha(self, evidence: Evidence) -> PerRecord:
        return np.array(self.values, dtype=np.float64)

    def __repr__(self) -> str:
        return "FixedWeights(confidential)"


@dataclass(frozen=True)
class CallableWeights(Weights):
    """A caller's own function from the risks of all records to their weights."""

    function: Callable[[PerRecord], PerRecord]
    risk: RiskKind = "lipschitz"
    public: bool = False  # True: the caller vouches that the function holds nothing confidential

    def __post_init__(self) -> None:
        check_risk_kind(self.risk)

    def alpha(self, evidence: Evidence) -> PerRecord:
        return np.asarray(self.function(evidence.risk.of(self.risk).copy()), dtype=np.float64)


def as_weights(given: object) -> Weights:
    """Weights, a function from risks to weights, or one number per record."""
    if isinstance(given, Weights):
        return given
    if callable(given):
        return CallableWeights(given)
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or len(values) == 0:
        raise SettingError(
            f"weights must be a weights object such as LinearWeights(), a function from risks to weights, or "
            f"one number per record; got {type(given).__name__}. {NOT_OF_A_SURVEY}"
        )
    return FixedWeights(values)


def moves_with_everyone(weights: Weights) -> bool:
    """Whether, recomputed without a record, these weights were seen to exceed the sharper bounds."""
    return isinstance(weights.unraised, LinearWeights | InverseWeights)


def caveat_if_recomputed(weights: Weights, *, scaled: bool) -> str:
    """What a price under the sharper bounds leaves open, since it holds weights fixed; in words.

    `scaled` says that weights are scaled to a target. Empty for weights that depend on no other record, not
    even through their scale (docs/weights.md, "What the audit says").
    """
    if not weights.joint:
        if not scaled or isinstance(weights, PlannedWeights):
            return ""
        return write_caveat("C35")
    if moves_with_everyone(weights):
        return write_caveat("C14")
    return write_caveat("C15" if isinstance(weights, IdentificationWeights) else "C16")


def compute_alpha(weights: Weights, evidence: Evidence) -> PerRecord:
    """The weights of these records, checked."""
    return check_alpha(weights, weights.alpha(evidence), len(evidence.values))


def check_alpha(weights: Weights, alpha: PerRecord, records: int) -> PerRecord:
    """The weights, after checking that there is one from 0 to 1 for each record."""
    if alpha.shape != (records,):
        raise SettingError(f"{type(weights).__name__} gave shape {alpha.shape} for {records} records.")
    bad = int((~(np.isfinite(alpha) & (alpha >= 0) & (alpha <= 1))).sum())
    if bad:
        raise SettingError(
            f"{type(weights).__name__} gave {bad} of {records} weights outside [0, 1]. Clip them."
        )
    return alpha


def _check_affine(scale: float, shift: float) -> None:
    if not is_finite(scale) or scale < 0:
        raise SettingError(f"scale must be a finite number from 0 up, got {format_value(scale)}.")
    if not is_finite(shift):
        raise SettingError(f"shift must be a finite number, got {format_value(shift)}.")
