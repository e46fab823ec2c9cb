"""Weights, risk and bound as one choice, and what that choice loses on a table that is not confidential.

`usual(epsilon)` lists the choices worth comparing at a target; `trial` puts one table through one of them,
plain, corrected and with stratified predictions, all from the same draws. Both `hr.weights.advise` and
`hedgerow study weights` are made of these. The tables are simulated or public: nothing here is confidential,
and on a confidential table it would be a use of the data that ε does not cover.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hedgerow.errors import CalibrationError
from hedgerow.evidence.utility import ecdf_distance
from hedgerow.fitted import Fitted
from hedgerow.privacy.bounds import EXACT, LIPSCHITZ, OSCILLATION, RENYI, STRICT, Bound
from hedgerow.privacy.standards import ADP, Standard, Unweighted
from hedgerow.privacy.strict import Strict
from hedgerow.privacy.weights import (
    CapWeights,
    LinearWeights,
    LogisticWeights,
    PlannedWeights,
    ScalarWeights,
    SoftmaxWeights,
    Weights,
)
from hedgerow.synthesizer import Synthesizer

PLAIN, CORRECTED, SMOOTH = "plain", "corrected", "corrected, stratified"
METHODS = (PLAIN, CORRECTED, SMOOTH)
STATISTICS = ("ecdf_max", "log_q90")
_NUMBERS = (float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max))


@dataclass(frozen=True)
class Candidate:
    """A choice of weights, their risk and the bound that ε is asked for under."""

    label: str
    bound: Bound
    weights: Weights | None = None  # None: the standard brings its own
    standard: Standard = field(default_factory=ADP)

    def settings(self) -> dict[str, Any]:
        """The keywords of `Synthesizer` for this candidate."""
        own = {"weights": self.weights, "bound": self.bound.name} if self.bound.local else {}
        return {"standard": self.standard, **own}


def usual(epsilon: float, *, box: Mapping[str, tuple[float, float]] | None = None) -> tuple[Candidate, ...]:
    """The choices that docs/weights.md compares, for a target of one copy; strict mode where there is a box.

    Linear and inverse weights are not there under the sharper bounds: recomputed without a record they were
    seen to exceed them (docs/honesty.md). Caps are shares of the target, which is public.
    """
    cap = CapWeights(epsilon, risk="oscillation")
    rules: dict[str, Weights] = {
        "softmax": SoftmaxWeights(risk="oscillation"),
        "logistic": LogisticWeights(risk="oscillation"),
        "scalar": ScalarWeights(1.0),
        "cap ε/4": CapWeights(epsilon / 4, risk="oscillation"),
        "cap ε/2": CapWeights(epsilon / 2, risk="oscillation"),
        "cap ε": cap,
    }
    return (
        Candidate("linear, 2Δ", LIPSCHITZ, LinearWeights()),
        *(Candidate(f"{name}, oscillation", OSCILLATION, weights) for name, weights in rules.items()),
        Candidate("cap ε, exact", EXACT, cap),
        Candidate("planned, Rényi", RENYI, PlannedWeights()),
        *([] if box is None else [Candidate("strict", STRICT, None, Strict(box, "public, as given"))]),
    )


@dataclass(frozen=True)
class Loss:
    """How far copies are from the table they were made from, averaged over them, and what an audit found."""

    method: str
    ecdf_max: float  # the largest difference of the empirical distribution functions
    log_q90: float  # |difference of the 90 % quantiles| on the model's scale: log x for the lognormal
    corrected: int  # draws for which the search settled
    loss_recomputed: float | None = None  # largest privacy loss with weights recomputed, over the target
    loss_either: float | None = None  # the same at draws of either posterior


def trial(
    candidate: Candidate,
    formula: str,
    data: Any,
    *,
    epsilon: float,
    audited: tuple[int, int] | None = None,
    copies: int = 1,
    **settings: Any,
) -> list[Loss]:
    """The losses of one candidate on one table, one per method; none where no fit meets the target.

    Copies are there to average over, not to be released together: each has the target `epsilon`, and there
    is one where copies are priced together. `audited` says for how many records of large risk or loss, and
    how many others, weights are recomputed. A planned weight has no bias to correct.
    """
    copies = 1 if candidate.bound == RENYI else copies
    asked: dict[str, Any] = {"copies": copies, "debias": not isinstance(candidate.weights, PlannedWeights)}
    synth = Synthesizer(formula, epsilon=copies * epsilon, **asked, **candidate.settings(), **settings)
    try:
        done = synth.fit(data)._need()
    except CalibrationError:
        return []
    losses: dict[str, Any] = {}
    if audited is not None and candidate.bound.local:  # else each weight is its own record's
        audit = synth.audit(riskiest=audited[0], sample=audited[1], keys=1)  # for speed: one set of numbers
        again, there = float(audit.recomputed.max()), float(audit.reverse.max())
        losses = {"loss_recomputed": again / epsilon, "loss_either": max(again, there) / epsilon}
    smooth = done.variant(sampling="stratified")
    methods = {PLAIN: done.variant(debias=False), CORRECTED: done, SMOOTH: smooth}
    return [replace(_loss(name, fitted), **losses) for name, fitted in methods.items()]


def unweighted(formula: str, data: Any, *, copies: int, **settings: Any) -> list[Loss]:
    """What the plain posterior loses, which meets no target: independent and stratified predictions."""
    done = Synthesizer(formula, standard=Unweighted(), copies=copies, **settings).fit(data)._need()
    return [_loss(PLAIN, done), _loss(SMOOTH, done.variant(sampling="stratified"))]


def _loss(method: str, fitted: Fitted) -> Loss:
    model: Any = fitted.settings.model
    scale = getattr(model, "base", model).response  # a boxed model's is its base's
    original = fitted.start.design.values
    # Where hardly a record keeps a weight, draws are nearly the prior's and copies leave the numbers.
    ends = _NUMBERS if model.name == "lognormal" else (-_NUMBERS[1], _NUMBERS[1])
    copies = [np.clip(copy, *ends) for copy in fitted.predict()]
    gaps = [ecdf_distance(original, copy).maximum for copy in copies]
    tails = [abs(np.quantile(scale(copy), 0.9) - np.quantile(scale(original), 0.9)) for copy in copies]
    settled = sum(draw.converged for draw in fitted.released)
    return Loss(method, float(np.mean(gaps)), float(np.mean(tails)), settled)
