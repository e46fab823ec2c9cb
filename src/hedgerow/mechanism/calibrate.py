"""From weights to the fit that is released: the scale that meets a target, rounded towards privacy.

`settle` is all that decides the powers, and `finish` the whole way to a priced fit: a release, an audit, an
attack and a correction all go through them.

Search freely, then certify: the search looks for the largest scale whose price meets the target, on draws
that are thrown away. The fit that is released is drawn afresh and priced afresh; if it exceeds the target
the scale shrinks and the draws are new again. Nothing above the target is ever returned.

A price that rests on no draws (`RENYI`) is a function of the weights and the scale: the search aims at the
target itself, and which scale it finds depends on the weights alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from hedgerow.arrays import Confidential
from hedgerow.errors import CalibrationError, UnscoredError
from hedgerow.mechanism.steps import FITTING, Outcome, Start, Weighted, run, weigh
from hedgerow.models.correctable import StandIn
from hedgerow.models.wrapped import score_loudest
from hedgerow.privacy.bounds import LIPSCHITZ, Bound
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.weights import PlannedWeights
from hedgerow.progress import phase
from hedgerow.randomness import Key

_TOLERANCE = 0.002  # relative width at which the search for the scale stops
_SURE = 1e-4  # the same for a price without draws
_QUICK_STEPS = 6  # prices tried around a guess before the search starts over
_SMALLEST = 1e-6  # scales below this leave nothing of the data
_AIM = 0.985  # search for a little less than the target: fresh draws differ, and a miss costs another fit
# Certifications allowed, each with its share of the scale found. Fixed beforehand: δ allows for all
# of them, so that it does not depend on the data, and one far draw does not shrink the scale for good.
LADDER = (1.0, 0.985, 0.96, 0.93, 0.89, 0.83, 0.75, 0.6)
TRIES = len(LADDER)
CALIBRATING = "calibrating"


@dataclass(frozen=True, repr=False)
class Settled(Confidential):
    """Weights at the scale that the target asks for, and the certified fit that proved it; confidential."""

    weighted: Weighted
    scale: float = 1.0
    outcome: Outcome | None = None  # None where there was no target to calibrate to


def settle(settings: Settings, start: Start, *, key: Key, near: float | None = None) -> Settled:
    """Weigh the records and scale the weights to the target, if there is one; `near` guesses at the scale."""
    weighted = weigh(settings, start, key=key)
    if settings.target is None:
        return Settled(weighted)
    return calibrate(settings, start, weighted, target=settings.target, key=key, near=near)


def expected_fits(settings: Settings) -> dict[str, int]:
    """About how many fits `begin` and `finish` take, by phase: of a search, what it mostly takes."""
    planned = isinstance(settings.weights, PlannedWeights)
    search = settings.target is not None and settings.standard.weighted and not planned
    return {FITTING: 1, CALIBRATING: 10 if search else 1}


@phase(CALIBRATING)
def finish(settings: Settings, start: Start, *, key: Key) -> tuple[Outcome, float]:
    """The priced fit that is released, and the scale of its weights."""
    settled = settle(settings, start, key=key)
    if settled.outcome is not None:
        return settled.outcome, settled.scale
    return run(settings, start, settled.weighted, key=key.child("certify").child(1)), settled.scale


def largest_scale(price_at: Callable[[float], float], target: float, *, bound: Bound = LIPSCHITZ) -> float:
    """The largest scale in (0, 1] whose price is at most the target, to 0.2 % (0.01 %) and from below.

    The price falls with the scale until so little of the data is left that the prior takes over; below
    that point it may rise again. The search walks down from 1 and stops at the first success.
    """
    failed, cost = 1.0, price_at(1.0)
    if cost <= target:
        return 1.0
    smallest, rising = cost, 0
    while True:
        # Never step by more than a factor of four.
        scale = failed * min(0.97, max(0.25, (target / cost) ** (1 / bound.growth)))
        if scale < _SMALLEST or rising >= 3:
            raise CalibrationError(_unreachable(bound, target, smallest))
        cost = price_at(scale)
        if cost <= target:
            met = scale
            break
        rising = rising + 1 if cost >= smallest < np.inf else 0
        smallest = min(smallest, cost)
        failed = scale
    while failed / met > 1 + (_TOLERANCE if bound.over_draws else _SURE):
        middle = (failed * met) ** 0.5
        if price_at(middle) <= target:
            met = middle
        else:
            failed = middle
    return met


def scale_near(
    price_at: Callable[[float], float], target: float, guess: float, *, bound: Bound = LIPSCHITZ
) -> float:
    """What `largest_scale` looks for, from a guess: a price at most the target and within 0.2 % of it.

    The price is close to a multiple of the scale, or of its root, so that two or three prices do. Where they
    do not, the search starts over from 1.
    """
    scale = min(1.0, guess)
    for _ in range(_QUICK_STEPS):
        cost = price_at(scale)
        if cost <= target and (scale == 1.0 or cost >= (1 - _TOLERANCE) * target):
            return scale
        if cost > 0:
            moved = scale * (1 - _TOLERANCE / 2) * target / cost
            scale = min(1.0, moved * (target / cost) ** (1 / bound.growth - 1))
        else:
            scale = 1.0
    return largest_scale(price_at, target, bound=bound)


def calibrate(
    settings: Settings,
    start: Start,
    weighted: Weighted,
    *,
    target: float,
    key: Key,
    near: float | None = None,
) -> Settled:
    """A certified fit that the bound prices at the target at most; `near` is a guess at the scale."""
    bound, searched = settings.bound, settings

    def price(scale: float, key: Key) -> float:
        nonlocal searched
        try:
            found = run(searched, start, weighted.scaled(scale), key=key)
        except UnscoredError:  # so little of the data is left that draws follow a vague prior
            return float("inf")
        if searched is settings and bound.over_draws:
            model = score_loudest(settings.model, start.design, bound.by_record(found.pricing))
            searched = replace(settings, model=model)
        return found.certified

    def certify(scale: float, key: Key) -> Outcome:
        # Of a stand-in nothing goes out, and the loudest of a simulated table tell its scale.
        terms = searched if isinstance(settings.model, StandIn) else settings
        return run(terms, start, weighted.scaled(scale), key=key, tries=TRIES)

    near = _guess(start, weighted, aim_at(bound, target), bound) if near is None else near
    scale, outcome = find_scale(settings, price, certify, target=target, key=key, near=near)
    return Settled(outcome.weighted, scale, outcome)


@runtime_checkable
class Certified(Protocol):
    """A priced fit that may be released."""

    @property
    def certified(self) -> float:
        """What the target is compared with."""


Found = TypeVar("Found", bound=Certified)


def aim_at(bound: Bound, target: float) -> float:
    """The price that a search looks for."""
    return _AIM * target if bound.over_draws else target


def find_scale(
    settings: Settings,
    price: Callable[[float, Key], float],
    certify: Callable[[float, Key], Found],
    *,
    target: float,
    key: Key,
    near: float | None = None,
) -> tuple[float, Found]:
    """The scale of the weights that meets the target, and the certified fit that shows it.

    `price` prices a fit that is thrown away, `certify` one that may be released.
    """
    bound = settings.bound
    planned = isinstance(settings.weights, PlannedWeights)
    if planned or not settings.standard.weighted:
        found = certify(1.0, key.child("certify").child(1))
        if found.certified > target:
            remedy = _REFUSED if planned else _UNSCALABLE
            raise CalibrationError(_unreachable(bound, target, found.certified, remedy))
        return 1.0, found

    def price_at(scale: float) -> float:
        # The same key at every scale: common random numbers make the price a smooth function of it.
        return price(scale, key.child("search"))

    aim = aim_at(bound, target)
    if near is None:
        largest = largest_scale(price_at, aim, bound=bound)
    else:
        largest = scale_near(price_at, aim, near, bound=bound)
    for attempt, share in enumerate(LADDER, 1):
        found = certify(share * largest, key.child("certify").child(attempt))
        if found.certified <= target:
            return share * largest, found
    raise CalibrationError(
        f"No fit met ε = {target:g} {bound.priced_for} in {TRIES} certifications: the price moves too much "
        "from one set of draws to the next. Use more draws, or weights that cap the riskiest records."
    )


def _guess(start: Start, weighted: Weighted, target: float, bound: Bound) -> float | None:
    """The scale at which the draws of the plain fit would meet the target.

    None for a model with a closed form: its fits take no time, and the search from 1 finds the largest scale.
    """
    if start.fit is None or start.fit.influence is not None:
        return None
    by_record = weighted.alpha * (2 * start.risk.lipschitz if bound == LIPSCHITZ else start.risk.oscillation)
    return target / max(float(by_record.max()), target)


_SCALABLE = (
    "Use more records, a shorter formula, fewer rare categories, a less vague prior, another range or fewer "
    "copies."
)
_UNSCALABLE = "Unweighted has no weights to scale down: use ADP() or a range standard."
_REFUSED = (
    "The weight was planned for tables that the model describes, and is not scaled down for others: a scale "
    "that follows the data gives them away. Without a look at this figure: a family with heavier tails, a "
    "larger ε, or Strict(limits=…)."
)


def _unreachable(bound: Bound, target: float, smallest: float, remedy: str = _SCALABLE) -> str:
    return (
        f"The target ε = {target:g} {bound.priced_for} cannot be met; the smallest ε reached is "
        f"{smallest:.3g} (computed from the data: confidential). {remedy}"
    )
