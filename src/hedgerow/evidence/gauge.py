"""Do the copies still carry the data? For the owner, before anything is spent. Confidential.

    >>> import hedgerow as hr
    >>> synth = hr.Synthesizer("x ~ z", epsilon=6.0, seed=1).fit(hr.datasets.lognormal(n=500, seed=1))
    >>> synth.gauge_.discards
    False

A target can be met by weights near zero: the posterior is then the prior, and copies are nonsense with a
perfectly true price. The verdict is taken from draws of the fit that is released, predicted with random
numbers of their own: it does not ask whether the released copies happen to look well, so that asking again
with fresh randomness is no way around it.

The thresholds were chosen on the tables of docs/maths.md, "Exact models", at ε from 0.5 to 3 for five copies,
where copies were of use from about ten records' worth of information on. In that trial, which stopped at one
far draw instead of two, no released copy of 90 had a quantile beyond ten times the original's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Confidential, PerRecord, columns_of
from hedgerow.errors import HedgerowError
from hedgerow.evidence.utility import ecdf_distance
from hedgerow.mechanism.copies import predict_copies
from hedgerow.mechanism.debias import Corrected, public_draw
from hedgerow.mechanism.fit import Fit
from hedgerow.mechanism.steps import Outcome, Start, run
from hedgerow.models.base import Model
from hedgerow.models.exact import Regression
from hedgerow.models.families.family import Family
from hedgerow.models.prior import Prior
from hedgerow.numerics.rounding import format_figure
from hedgerow.numerics.triangular import weighted_factor
from hedgerow.privacy.bounds import RENYI
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Bounded
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.threads import one_blas_thread

_APART = 0.2  # ECDF maximum beyond that of the unweighted model from which copies show something else
_BEYOND = 10.0  # times the original's quantile
_RARE = 1 / 30  # the share of draws of which that may be so
_OUTER = (0.01, 0.1, 0.9, 0.99)
_ENOUGH = 20.0  # records' worth of information, or as many as coefficients, at which copies are of use
_ROWS = 20_000  # at most so many are compared
_CELLS = 400_000  # values predicted, about
_MOST, _FEWEST = 40, 10  # draws
_HUGE = 1e300


@dataclass(frozen=True, repr=False)
class Gauge(Confidential):
    """What the copies carry of the data; confidential."""

    records: float  # Σα*: how many records' worth of likelihood is in the posterior
    of: int  # records there are
    coefficients: int
    data_share: float | None  # of the coefficients, how much data decide and not the prior; None: not known
    ecdf: float  # largest distance from the original's distribution function, averaged over draws
    plain_ecdf: float  # the same of the model without weights
    beyond: bool  # draws have a quantile beyond ten times the original's, and those without weights do not
    may_stop: bool  # a target was to be met, under a standard that allows for refusals
    column: str = ""  # of several: the one that is worst off, whose figures these are
    columns: "Mapping[str, Gauge]" = field(
        default_factory=dict
    )  # each of several; of kinds and amounts the worse

    @property
    def discards(self) -> bool:
        """Whether the target is met only by discarding the data.

        A few far draws of a heavy tail are no sign of it while most of the records' worth is there.
        """
        far = self.beyond and self.records < self.of / 2
        return self.may_stop and (self.apart > _APART or far)

    @property
    def apart(self) -> float:
        """How much further from the original copies are than those without weights."""
        return self.ecdf - self.plain_ecdf

    @property
    def needed(self) -> float:
        """About how many records' worth of information would do."""
        return max(_ENOUGH, float(self.coefficients))

    @property
    def least_share(self) -> float | None:
        """`data_share` of the column of which data decide the least."""
        shares = [each.data_share for each in self.columns.values() or [self]]
        return min((share for share in shares if share is not None), default=None)

    def facts(self) -> list[tuple[str, str]]:
        """Names and values for the owner."""
        worth = ("records' worth of information", f"{format_figure(self.records, 3)} of {self.of:,}")
        if self.columns:
            each = [
                (f"ECDF maximum of trial copies, {name}", one._words) for name, one in self.columns.items()
            ]
            return [worth, *each]
        share = [] if self.data_share is None else [("decided by data, not prior", f"{self.data_share:.0%}")]
        return [
            worth,
            *share,
            ("ECDF maximum of trial copies", f"{self.ecdf:.2g}, without weights {self.plain_ecdf:.2g}"),
        ]

    @property
    def _words(self) -> str:
        """What there is to say of one of several columns."""
        share = "" if self.data_share is None else f"; {self.data_share:.0%} decided by data, not prior"
        return f"{self.ecdf:.2g}, without weights {self.plain_ecdf:.2g}{share}"


@one_blas_thread()
def measure(
    settings: Settings,
    start: Start,
    outcome: Outcome,
    *,
    key: Key,
    worth: Sequence[tuple[float, int]] | None = None,
) -> Gauge:
    """The gauge of a fit; the outcome that is not there takes no part.

    Where these are some of the records, `worth` has for each link Σα* over all that have a value, and how
    many these are.
    """
    design = start.design
    rows = np.flatnonzero(start.present if start.present.any() else np.ones(design.records, dtype=np.bool_))
    rows = rows[np.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).astype(int)]
    predict = _predict_links if settings.several else _predict
    copies = predict(settings, start, outcome.fit, rows, key.child("weighted"))
    plain = copies if start.fit is None else predict(settings, start, start.fit, rows, key.child("plain"))
    measured = [
        _measure_link(settings, start, outcome, model, link, rows, *made)
        for link, model, *made in zip(design.links, settings.models, copies, plain, strict=True)
    ]
    if worth is not None:
        measured = [
            replace(gauge, records=left, of=of) for gauge, (left, of) in zip(measured, worth, strict=True)
        ]
    if not settings.several:
        return measured[0]
    gauges: dict[str, Gauge] = {}
    for link, gauge in zip(settings.links, measured, strict=True):
        name = link.column.outcome
        gauges[name] = max(gauges.get(name, gauge), gauge, key=_badness)
    worst = max(gauges, key=lambda name: _badness(gauges[name]))
    return replace(gauges[worst], column=worst, columns=gauges)


def _badness(gauge: Gauge) -> tuple[bool, float]:
    return gauge.discards, gauge.apart


def _measure_link(
    settings: Settings,
    start: Start,
    outcome: Outcome,
    model: Model,
    link: Design,
    rows: NDArray[np.intp],
    copies: list[PerRecord],
    plain: list[PerRecord],
) -> Gauge:
    """The gauge of one column, from its copies in these rows."""
    there = link.present_in(start.present)
    if settings.several and there[rows].any():
        here = there[rows]
        rows, copies, plain = rows[here], [one[here] for one in copies], [one[here] for one in plain]
    truth, prior, power = link.values[rows], _prior(model), outcome.fit.power
    power = power if link.present is None else power * link.present
    return Gauge(
        records=float(power.sum()),
        of=int(there.sum()),
        coefficients=len(link.columns),
        data_share=None if prior is None else data_share(link, power, prior),
        ecdf=_gap(truth, copies),
        plain_ecdf=_gap(truth, plain),
        beyond=_is_beyond(truth, copies) and not _is_beyond(truth, plain),
        may_stop=settings.target is not None and not isinstance(settings.standard, Bounded),
    )


def data_share(design: Design, power: PerRecord, prior: Prior) -> float:
    """tr Λ⁻¹Z'AZ/p: 0 where the prior decides every coefficient, 1 where the data do.

    Exact for normal errors; for other families as if each record told as much as one of unit variance.
    """
    _, deviation = prior.moments(design)
    factor = weighted_factor(design.matrix, np.zeros(design.records), power)[:-1, :-1]
    learnt = np.linalg.svd(factor @ np.linalg.inv(prior.contrasts(design)) * deviation, compute_uv=False) ** 2
    return float(np.mean(learnt / (1 + learnt)))


def price_of_enough(
    settings: Settings, start: Start, outcome: Outcome, gauge: Gauge, *, key: Key
) -> float | None:
    """About which ε would leave enough of the records, rounded up to two digits; None: not known.

    One more fit is priced, at weights that are larger by a common factor.
    """
    weighted, target = outcome.weighted, settings.target
    if target is None or settings.epsilon is None or not 0 < gauge.records < gauge.needed:
        return None
    factor = gauge.needed / gauge.records
    alpha = np.minimum(1.0, factor * weighted.alpha)
    try:
        price = run(settings, start, replace(weighted, alpha=alpha), key=key.child("enough")).certified
    except HedgerowError:
        return None
    total = price * settings.epsilon / target
    if not np.isfinite(total) or total <= settings.epsilon:
        return None
    step = 10.0 ** (np.floor(np.log10(total)) - 1)
    return float(np.ceil(total / step) * step)


def remedies(settings: Settings, gauge: Gauge, epsilon: float | None = None) -> str:
    """What would help, in one sentence."""
    several, many = settings.copies > 1, gauge.coefficients > 2
    exact = all(isinstance(model, Regression) for model in settings.models)
    strict = exact and not settings.several
    parts = [
        *(["Strict(limits=…) (--standard strict), under which copies cost nothing more"] if strict else []),
        "a larger ε" + ("" if epsilon is None else f", about {epsilon:g}"),
        *(["fewer copies"] if several else []),
        *(["fewer predictors, or rare categories merged"] if many else []),
        "a prior that says what is known",
        *(["another bound (--preset recommended)"] if exact and settings.bound != RENYI else []),
    ]
    return f"What would help: {'; '.join(parts)}."


def describe_stop(settings: Settings, gauge: Gauge, epsilon: float | None) -> str:
    """Why nothing is released, with figures: confidential."""
    of = f" of '{gauge.column}'" if gauge.column else ""
    if gauge.apart > _APART:
        sign = (
            f"are further from the original (ECDF maximum {gauge.ecdf:.2g}) than the model without weights "
            f"({gauge.plain_ecdf:.2g})"
        )
    else:
        sign = f"have quantiles beyond {_BEYOND:g} times the original's, unlike the model without weights"
    return (
        f"The target ε = {settings.epsilon:g} is met only by discarding the data: {gauge.records:.2g} of "
        f"{gauge.of} records' worth of information is left, and copies{of} {sign}; computed from the data: "
        f"confidential. {remedies(settings, gauge, epsilon)} --anyway (anyway=True) releases it."
    )


def _prior(model: Model) -> Prior | None:
    """The prior of the model in units of its residual, where there is one."""
    if isinstance(model, Family):
        return replace(model.full_prior, residual=1.0)
    return model.prior if isinstance(model, Regression) else None


def _predict(
    settings: Settings, start: Start, fit: Fit, rows: NDArray[np.intp], key: Key
) -> list[list[PerRecord]]:
    """Copies of the only column, in a list for each column."""
    if isinstance(fit.model, Regression):  # others would be compiled anew for fewer records
        part = replace(fit.design, values=fit.design.values[rows], matrix=fit.design.matrix[rows])
        fit, rows = replace(fit, design=part), np.arange(len(rows), dtype=np.intp)
    stream, copies = key.stream(), []
    for draw in _some_draws(fit, fit.design.records):
        with np.errstate(all="ignore"):
            copies.append(_limit(fit.predict(draw, stream.uniform(fit.design.records))[rows]))
    return [copies]


def _predict_links(
    settings: Settings, start: Start, fit: Fit, rows: NDArray[np.intp], key: Key
) -> list[list[PerRecord]]:
    """Copies of several columns, made as a release makes them."""
    if all(isinstance(model, Regression) for model in settings.models):
        design = start.design.take(rows)
        start = replace(start, table=start.table.take(rows), design=design, present=start.present[rows])
        rows = np.arange(len(rows), dtype=np.intp)
    draws = [public_draw(fit.parameters, draw) for draw in _some_draws(fit, start.design.records)]
    with np.errstate(all="ignore"):
        copies = predict_copies(settings, start, [Corrected(draw, False, 0) for draw in draws], key=key)
    return [
        list(each)
        for each in zip(*([_limit(one[rows]) for one in columns_of(copy)] for copy in copies), strict=True)
    ]


def _some_draws(fit: Fit, records: int) -> list[int]:
    number = min(fit.draws, int(np.clip(_CELLS // records, _FEWEST, _MOST)))
    return [int(draw) for draw in np.linspace(0, fit.draws - 1, number).astype(int)]


def _limit(values: PerRecord) -> PerRecord:
    return np.clip(np.nan_to_num(values, nan=_HUGE), -_HUGE, _HUGE)


def _gap(truth: PerRecord, copies: list[PerRecord]) -> float:
    return float(np.mean([ecdf_distance(truth, copy).maximum for copy in copies]))


def _is_beyond(truth: PerRecord, copies: list[PerRecord]) -> bool:
    """Whether outer quantiles of some copies are ten times as far from zero as the original's."""
    own = np.abs(np.quantile(truth, _OUTER))
    limit = _BEYOND * np.maximum(own, np.subtract(*np.quantile(truth, (0.75, 0.25))))
    beyond = [(np.abs(np.quantile(copy, _OUTER)) > limit)[limit > 0].any() for copy in copies]
    return float(np.mean(beyond)) > _RARE
