"""Leave-one-out privacy loss: what withholding one outcome does to the posterior (docs/maths.md, "Audit").

With weights fixed the loss of an exact model is known in closed form for every record. With weights
recomputed the whole procedure is run again without the record's outcome, calibration to the target included,
and the loss is the log ratio of the two densities that a released draw has. Where the procedure takes random
numbers both are mixtures over them, estimated from a few (`evidence.without`). For models without a closed
form losses are estimated by importance weights, which cannot certify anything: with weights fixed such a loss
never exceeds the oscillation over the same draws.

Under the Rényi bound losses are what that bound prices: ε at the stated δ, over all parameters and copies and
in both directions, between the release and what the whole procedure releases without the record.

An audit bounds the loss from below: it looks at the data at hand, at some records and, but for the Rényi
bound, at finitely many draws. A loss above the stated ε is a finding, and is reported as one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Confidential, LogLik, PerRecord
from hedgerow.drawing import losses
from hedgerow.errors import CalibrationError, SettingError, format_value, is_count
from hedgerow.evidence.without import (
    KEYS,
    Mixture,
    claimed_epsilon,
    closed_draws,
    is_claimed,
    is_closed,
    keys_and_powers,
    powers_without,
)
from hedgerow.mechanism.calibrate import expected_fits
from hedgerow.mechanism.importance import Importance, importance
from hedgerow.mechanism.steps import Outcome, Start
from hedgerow.models.reductions import blocks
from hedgerow.numerics.pareto import TRUSTED
from hedgerow.numerics.rounding import format_count
from hedgerow.privacy.bounds import EXACT, RENYI
from hedgerow.privacy.settings import Settings
from hedgerow.progress import foresee, job, phase
from hedgerow.randomness import Key

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_RISKIEST, _SAMPLE = 20, 10  # records to recompute weights for, where a refit takes no time
_AUDITING = "auditing"
_ROUNDING = 1 + 1e-6  # more than two ways to compute one number differ by


@dataclass(frozen=True, repr=False)
class Audit:
    """Losses about records, x_i withheld; confidential.

    `fixed` holds max_s |L_i| over the fit's draws for every record with weights fixed and `delta` the
    matching δ_i(ε). `chosen` names the records for which weights were recomputed, `recomputed` and
    `recomputed_delta` their losses. `reverse` holds those losses over draws of the posterior without the
    record: either table may be the real one, but no draw-based statement covers that direction. A table
    that leads to no release without the record's outcome, because it meets no target, has an infinite loss.
    `importance` is there where the model has no closed form: all losses are then estimates.

    Under the Rényi bound (`renyi_delta` is its δ, else None) `fixed` and `recomputed` are ε at that δ of all
    copies together, in whichever direction is larger, and `reverse` repeats the second.
    """

    epsilon: float  # what losses are held against: of one copy, under the Rényi bound of all
    fixed: PerRecord
    delta: PerRecord
    chosen: NDArray[np.int64]
    recomputed: PerRecord
    recomputed_delta: PerRecord
    reverse: PerRecord  # NaN for estimates: importance weights cannot see where no draw is
    importance: Importance | None = None
    recomputed_k: PerRecord | None = None  # Pareto k̂ of the estimates with weights recomputed
    own_weights: bool = False  # each weight depends on its own record alone: recomputing changes nothing
    keys: int = 1  # sets of random numbers that stand for those of the calibration; 1: it has none, or one
    renyi_delta: float | None = None
    of_claim: bool = True  # whether ε is the stated one; else the price with x_i withheld, which is no claim

    @property
    def kind(self) -> str:
        """Whether losses are exact, or estimates that cannot certify."""
        return "exact" if self.importance is None else "estimate, cannot certify"

    @property
    def largest_fixed(self) -> float:
        """The largest loss found with weights fixed."""
        return float(self.fixed.max())

    @property
    def largest_recomputed(self) -> float | None:
        """The largest loss found with weights recomputed; None where that was done for no record."""
        return float(self.recomputed.max()) if len(self.recomputed) else None

    @property
    def largest_reverse(self) -> float | None:
        """The largest loss at draws of the posterior without the record; None where none was looked at."""
        seen = self.reverse[~np.isnan(self.reverse)]
        return float(seen.max()) if len(seen) else None

    @property
    def breaches(self) -> NDArray[np.int64]:
        """Records whose loss exceeded the stated price, with weights fixed or recomputed."""
        most = self.epsilon * _ROUNDING
        return np.union1d(np.flatnonzero(self.fixed > most), self.chosen[self.recomputed > most])

    @property
    def reverse_breaches(self) -> NDArray[np.int64]:
        """Further records whose loss exceeded it only at draws of the posterior without them."""
        return np.setdiff1d(self.chosen[self.reverse > self.epsilon * _ROUNDING], self.breaches)

    def columns(self) -> dict[str, Any]:
        """Tidy columns, one row per record: losses and δ; NaN where weights were not recomputed."""
        again = np.full((3, len(self.fixed)), np.nan)
        again[:, self.chosen] = self.recomputed, self.recomputed_delta, self.reverse
        columns = {
            "record": np.arange(len(self.fixed)),
            "kind": [self.kind] * len(self.fixed),
            "loss_fixed": self.fixed,
            "delta_fixed": self.delta,
            **dict(zip(("loss_recomputed", "delta_recomputed", "loss_reverse"), again, strict=True)),
            "breach": np.isin(np.arange(len(self.fixed)), self.breaches),
        }
        if self.importance is not None:
            columns |= {"pareto_k": self.importance.pareto_k, "effective_draws": self.importance.effective}
        return columns

    def plot(self) -> "Figure":
        """Losses against the stated price, by record; confidential."""
        return losses(
            self.fixed, self.chosen, self.recomputed, self.reverse, epsilon=self.epsilon, kind=self.kind
        )

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        records, found, more = len(self.fixed), len(self.breaches), len(self.reverse_breaches)
        # The first line has the verdict: whoever reads no further must not take a finding for a pass.
        price = "the stated ε" if self.of_claim else "the price with the outcome withheld"
        verdict = f"a loss above {price} was found" if found or more else f"no loss above {price} found"
        yield f"hedgerow audit (confidential), {self.kind}: {verdict}\n"
        whose, beside = "of one copy:", ""
        if self.renyi_delta is not None:
            whose, beside = "of all copies:", f"  (and losses, at δ = {self.renyi_delta:g})"
        what = "stated ε" if self.of_claim else "price withheld,"
        yield f"  {f'{what} {whose}':36}{self.epsilon:.3f}{beside}"
        count = format_count(records, "record")
        yield f"  largest loss, weights fixed:        {self.largest_fixed:.3f}  ({count})"
        if self.largest_recomputed is not None:
            count = format_count(len(self.chosen), "record")
            yield f"  largest loss, weights recomputed:   {self.largest_recomputed:.3f}  ({count})"
            if self.renyi_delta is None and self.largest_reverse is not None:
                yield f"  the same, at draws without them:    {self.largest_reverse:.3f}"
            if self.keys > 1:
                yield f"  randomness of the calibration:      mixed, estimated from {self.keys} sets of it"
            yield ""
        else:
            why = "for no record"
            if self.own_weights:
                why = "as fixed: each weight depends on its own record alone"
            elif self.importance is not None:
                why += ": each takes a fit by Markov chain; ask for some with riskiest= or sample="
            yield f"  weights recomputed:                 {why}\n"
        if found:
            yield f"Finding: the loss about {format_count(found, 'record')} exceeds {price}."
        if more:
            yield (
                f"Finding: at draws of the posterior without the record, the loss about "
                f"{format_count(more, 'record')} {'more ' * bool(found)}exceeds {price}. No draw-based "
                "statement covers that direction."
            )
        if not self.of_claim:
            yield "Nothing is claimed about an outcome withheld: that price is what this fit costs."
        yield "An audit bounds the loss from below: other records, draws or data may show a larger one."
        if self.importance is None or self.recomputed_k is None:
            return
        yield (
            "These losses are estimates by importance weights. With weights fixed they lie below the "
            "oscillation by construction, so that they cannot certify it."
        )
        yield (
            f"Pareto k̂ above {TRUSTED} (no trust): {int(self.importance.untrusted.sum())} of {records} "
            f"records; fewest effective draws of any record: {self.importance.effective.min():.0f}."
        )
        if len(self.recomputed_k):
            doubtful = int((self.recomputed_k > TRUSTED).sum())
            yield f"With weights recomputed: {doubtful} of {len(self.recomputed_k)} records."

    def __repr__(self) -> str:
        return (
            f"Audit({self.kind}: {len(self.fixed)} records, {len(self.chosen)} with weights recomputed, "
            "confidential)"
        )


def audit(
    settings: Settings,
    start: Start,
    outcome: Outcome,
    *,
    key: Key,
    epsilon: float | None = None,
    riskiest: int | None = None,
    sample: int | None = None,
    keys: int | None = None,
) -> Audit:
    """Audit a fit against ε, by default the one that is claimed. `key` is the one the procedure ran with.

    `riskiest` and `sample` count the records for which weights are recomputed: 20 and 10 for the exact
    models, none for others unless asked for, since every one of them takes fits by Markov chain. `keys`
    counts the sets of random numbers that stand for those of the calibration, where it has any: 4 for the
    exact models, which takes 4 times as long, and the release's own alone for others.
    """
    model, epsilon = settings.model, claimed_epsilon(settings, outcome) if epsilon is None else epsilon
    closed = is_closed(model)
    own_weights = start.fit is None
    if own_weights and (riskiest or sample):
        raise SettingError(
            f"{settings.standard.label}: each weight depends on its own record alone, so that there is "
            "nothing to recompute. Leave out riskiest and sample."
        )
    first = (_RISKIEST if closed else 0) if riskiest is None else riskiest
    others = (_SAMPLE if closed else 0) if sample is None else sample
    if not all(is_count(count) and count >= 0 for count in (first, others)):
        raise SettingError(
            f"riskiest and sample must be counts, got {format_value(riskiest)} and {format_value(sample)}."
        )
    if keys is not None and (not is_count(keys) or keys < 1 or (keys > 1 and not closed)):
        raise SettingError(
            f"keys must be a count from 1 up, for exact models alone; got {format_value(keys)}."
        )
    fixed, delta = _fixed(outcome, epsilon)
    if settings.bound == RENYI:
        neighbours = RENYI.neighbours(outcome.pricing.withheld)
        fixed = neighbours.by_record(delta=settings.delta, copies=settings.copies)
    chosen = _choose(start, fixed, first, others, key.child("audit"))
    again, powers, rows = [key], [outcome.fit.power], []
    count = KEYS if keys is None else keys
    each = sum(expected_fits(settings).values())
    with job({_AUDITING: each * (1 + len(chosen)) * (count if closed else 1)}), phase(_AUDITING):
        if len(chosen) and closed:
            again, powers = keys_and_powers(settings, start, outcome.fit.power, key=key, keys=count)
            audited = _Audited(settings, outcome, epsilon, Mixture.of(model, start.design, powers))
        for done, record in enumerate(chosen.tolist(), 1):
            without: list[PerRecord] = []
            refused = 0
            for one in again:
                try:
                    without.append(powers_without(settings, start, record, key=one))
                except CalibrationError:
                    refused += 1
            if refused:  # that no release comes of it tells the two tables apart
                rows.append((np.inf, refused / len(again), np.inf if closed else np.nan))
            elif closed:
                other = Mixture.of(model, start.design, without)
                rows.append(audited.against(other, key.child("audit").child(record)))
            else:
                rows.append(_estimated_again(outcome, without[0], epsilon))
            foresee(done / len(chosen))
    losses, deltas, last = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return Audit(
        epsilon,
        fixed,
        delta,
        chosen,
        losses,
        deltas,
        last if closed else np.full(len(chosen), np.nan),
        importance=None if closed else outcome.pricing.importance,
        recomputed_k=None if closed else last,
        own_weights=own_weights,
        keys=len(powers),
        renyi_delta=settings.delta if settings.bound == RENYI else None,
        of_claim=is_claimed(settings),
    )


def _fixed(outcome: Outcome, epsilon: float) -> tuple[PerRecord, PerRecord]:
    """max |L| and δ(ε) with weights fixed; draws from the other posterior by importance weights."""
    withheld = outcome.pricing.withheld
    constant = outcome.pricing.importance.constant if withheld.constant is None else withheld.constant
    delta = np.empty(outcome.fit.design.records)
    for records in blocks(len(delta), outcome.fit.draws):
        loss = outcome.fit.power[records] * outcome.fit.log_lik(records) - constant[records]
        delta[records] = _estimated_delta(loss, epsilon)
    return EXACT.by_record(replace(withheld, constant=constant)), delta


@dataclass(frozen=True, repr=False)
class _Audited(Confidential):
    """What is released, and what its losses are held against."""

    settings: Settings
    outcome: Outcome
    epsilon: float
    released: Mixture

    def against(self, other: Mixture, key: Key) -> tuple[float, float, float]:
        """The loss, δ(ε) and the loss in reverse, beside what would be released without the record."""
        settings, fit = self.settings, self.outcome.fit
        parts = len(self.released.parts)
        own = closed_draws(fit.model, fit.parameters) if parts == 1 else None
        draws = self.released.draw(fit.draws, key.child("released")) if own is None else own
        here = self.released.log_density(draws) - other.log_density(draws)
        fresh = other.draw(fit.draws, key)
        there = self.released.log_density(fresh) - other.log_density(fresh)
        delta = float(max(_excess(here, self.epsilon), _excess(-there, self.epsilon)))
        if settings.bound == RENYI:
            loss = self.released.epsilon(other, delta=settings.delta, copies=settings.copies)
            return loss, delta, loss
        return float(np.abs(here).max()), delta, float(np.abs(there).max())


def _estimated_again(outcome: Outcome, power: PerRecord, epsilon: float) -> tuple[float, float, float]:
    """An estimate by importance weights, from one sum over records per draw; last, their Pareto k̂."""
    fit = outcome.fit
    moved = np.zeros(fit.draws)
    for records in blocks(fit.design.records, fit.draws):
        moved += fit.log_lik(records) @ (fit.power - power)[records]
    weighed = importance(moved[:, None])
    loss = moved[:, None] - weighed.constant
    return float(np.abs(loss).max()), float(_estimated_delta(loss, epsilon)[0]), float(weighed.pareto_k[0])


def _estimated_delta(loss: LogLik, epsilon: float) -> PerRecord:
    """δ(ε) of each record, draws from the other posterior by importance weights exp(−L)."""
    with np.errstate(over="ignore"):
        backward = np.maximum(np.exp(-loss) - np.exp(epsilon), 0.0).mean(axis=0)
    return np.clip(np.maximum(_excess(loss, epsilon), backward), 0.0, 1.0)


def _excess(loss: Array, epsilon: float) -> Array:
    """E (1 − e^{ε − L})₊ over the draws, the first axis."""
    with np.errstate(over="ignore"):
        return np.asarray(np.maximum(-np.expm1(epsilon - loss), 0.0).mean(axis=0))


def _choose(start: Start, fixed: PerRecord, riskiest: int, sample: int, key: Key) -> NDArray[np.int64]:
    """The records with the largest risk or fixed loss, the least risky one, and a random sample of the rest.

    The least risky record is there because normalised weights hang on both ends: inverse weights on it alone.
    """
    records = start.design.records
    order = np.argsort(-start.risk.lipschitz, kind="stable")
    by_risk = np.concatenate([order[: (riskiest + 1) // 2], order[-1:] if riskiest > 1 else order[:0]])
    by_loss = np.argsort(-fixed, kind="stable")[: riskiest // 2]
    order = np.argsort(key.child("sample").stream().uniform(records))[:sample]
    return np.unique(np.concatenate([by_risk, by_loss, order])).astype(np.int64)


@dataclass(frozen=True, repr=False)
class StatisticsAudit(Audit):
    """Losses about records through noisy statistics, given the rounds as they came out; confidential.

    There is nothing to find: the noise's scale was set so that no table has a loss above ε. What is shown is
    how much of ε the records at hand use.
    """

    @property
    def kind(self) -> str:
        return "exact, of noisy statistics"

    def _lines(self) -> Iterator[str]:
        found = format_count(len(self.breaches), "record")
        verdict = "a loss above ε was found" if len(self.breaches) else "no loss above ε"
        yield f"hedgerow audit (confidential), {self.kind}: {verdict}\n"
        yield f"  ε of the statistics, for any number of copies:  {self.epsilon:.3f}"
        yield f"  largest loss about a record at hand:            {self.largest_fixed:.3f}"
        yield f"  median loss:                                    {np.median(self.fixed):.3f}\n"
        if len(self.breaches):
            yield f"Finding: the loss about {found} exceeds ε, which is a fault of hedgerow."
        else:
            yield "Nothing to find: the noise keeps every loss at or below ε, whatever the table."
