"""A membership attack: can a released copy tell whether one outcome was used? (docs/maths.md, "Attack")

The attacker knows everything but whether x_i was withheld: the other records, the weights, the model. It is
run against many fresh copies from both tables, made as the settings say: stratified and corrected where the
release is. Two tests compete, and one half of the copies decides between them and on a threshold, the other
half is counted; the error rates give a lower bound on ε.

- The probability of a copy under either table, in closed form. Of independent predictions from uncorrected
  draws no test is better.
- The privacy loss at the draw that a copy is guessed to come from. Stratified predictions give their draw
  away more clearly, and a correction moves it: a regression on the first half takes that back.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import betaincinv, gammaln

from hedgerow.arrays import Array, Confidential, PerDraw, PerRecord, columns_of
from hedgerow.errors import SettingError
from hedgerow.evidence.without import KEYS, JointDraws, JointPosterior, Mixture, is_closed
from hedgerow.mechanism.calibrate import expected_fits
from hedgerow.mechanism.copies import CORRECTING, expected_corrections, predict_copies
from hedgerow.mechanism.debias import Corrected, correct, public_draw, public_view
from hedgerow.mechanism.noisy.recipe import Recipe
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.mechanism.noisy.run import Outcomes, log_ratio
from hedgerow.mechanism.steps import Start
from hedgerow.models.base import Model, Parameters
from hedgerow.models.chain import Chain, part_of
from hedgerow.models.conjugate import Posterior
from hedgerow.models.correctable import require_correctable
from hedgerow.models.exact import Regression
from hedgerow.numerics.rounding import format_count
from hedgerow.numerics.scoring import Draws
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Boxed
from hedgerow.progress import foresee, phase, report
from hedgerow.randomness import Key
from hedgerow.tables.table import Table

REFITTING = "refitting"
_SEARCHES = 12  # draws that are corrected as a release would be; the others follow a line through these


@dataclass(frozen=True, repr=False)
class Attack:
    """What the attack found; confidential. `lower` and `upper` hold with the stated confidence each.

    `lower` is a lower bound on ε. `upper` bounds the log ratio of this test's two rates from above, and
    nothing else: another test may do better.
    """

    claimed: float
    estimate: float
    lower: float
    upper: float
    confidence: float
    trials: int
    made: str = ""  # how the copies were made, beyond plain ones
    of_claim: bool = True  # else `claimed` is the price with the outcome withheld, and no claim

    @property
    def breach(self) -> bool:
        """Whether the claimed ε is refuted at this confidence."""
        return self.lower > self.claimed

    def __str__(self) -> str:
        verdict = "refutes the claim" if self.breach else "does not refute the claim"
        against = f"{self.claimed:.3f} claimed"
        if not self.of_claim:
            against = f"a price of {self.claimed:.3f} with the outcome withheld, which is not claimed"
            verdict = "exceeds it" if self.breach else "does not exceed it"
        copies = format_count(self.trials, "copy")
        return (
            f"Membership attack (confidential): {copies} from each table{self.made}; empirical ε "
            f"{self.estimate:z.3f}, at least {self.lower:z.3f} with {self.confidence:.0%} confidence (this "
            f"test's own ratio at most {self.upper:z.3f}), against {against}: {verdict}. An "
            "attack bounds ε from below."
        )

    def __repr__(self) -> str:
        return f"Attack({format_count(self.trials, 'copy')} from each table, confidential)"


def attack(
    settings: Settings,
    start: Start,
    *,
    powers: Sequence[PerRecord],
    without: Sequence[PerRecord],
    claimed: float,
    delta: float = 0.0,
    key: Key,
    trials: int = 2000,
    confidence: float = 0.95,
) -> Attack:
    """Attack one record's outcome through single copies, against ε with this δ.

    `powers` are the mechanism's exponents on the records and `without` those on the table in which the
    outcome is withheld: one set each, or one for every set of random numbers of the calibration.
    """
    _check_trials(trials)
    model, design = settings.model, start.design
    if reason := why_not_closed(model):
        raise SettingError(reason)
    base = _base(model)
    exact = model._centred(design) if isinstance(model, Boxed) else base
    rivals = [Mixture.of(exact, design, exponents) for exponents in (powers, without)]
    sampled = [
        _sample(settings, start, one, trials, key.child(name))
        for name, one in (("with", powers), ("without", without))
    ]
    line = (
        _Line.through(
            settings, start, [draws[k] for draws in sampled for k in range(_SEARCHES)], key.child("line")
        )
        if settings.debias
        else None
    )
    models = [
        one for one in (base.models if isinstance(base, Chain) else (base,)) if isinstance(one, Regression)
    ]
    sums: list[list[tuple[Any, ...]]] = [[] for _ in models]  # Z'Z, Z'y and y'y of each link and copy
    grams = [None if link.secret else link.matrix.T @ link.matrix for link in design.links]
    for name, draws in zip(("with", "without"), sampled, strict=True):
        for k, draw in enumerate(draws):
            own = key.child(name).child("copy").child(k)
            released = Corrected(draw, False, 0) if line is None else line.correct(draw, own)
            copy = columns_of(predict_copies(settings, start, [released], key=own)[0])
            matrices = _read_links(settings, start, copy)
            for link, (one, values, matrix) in enumerate(zip(models, copy, matrices, strict=True)):
                response = one.response(values)
                gram = matrix.T @ matrix if grams[link] is None else grams[link]
                sums[link].append((gram, matrix.T @ response, float(response @ response)))
            report("copies", len(sums[0]), 2 * trials)
    copies = []
    for of_link in sums:
        gram, cross, square = (np.array(part) for part in zip(*of_link, strict=True))
        copies.append(_Copies(gram, cross, square, design.records))
    ratios = joint_density(copies, rivals[0]) - joint_density(copies, rivals[1])
    truths = [draw for draws in sampled for draw in draws]
    half = trials // 2
    first = np.r_[:half, trials : trials + half]
    places = []
    for link, each in enumerate(copies):
        own_truths = [part_of(draw, link) if isinstance(base, Chain) else draw for draw in truths]
        meant = np.array([np.append(draw["beta"], np.log(draw["sigma"])) for draw in own_truths])
        guess = _regress(each.least_squares(), meant, first)
        places.append(Draws(np.ascontiguousarray(guess[:, :-1]), np.exp(guess[:, -1])))
    there = JointDraws(tuple(places)) if isinstance(base, Chain) else places[0]
    losses = rivals[0].log_density(there) - rivals[1].log_density(there)
    tests = np.array([ratios, losses]).reshape(2, 2, trials)
    made = ", ".join(["corrected"] * settings.debias + ["stratified"] * (settings.sampling == "stratified"))
    found = _decide(tests[:, 0], tests[:, 1], claimed, delta, trials, confidence)
    return replace(found, made=f" ({made})" if made else "")


def why_not_closed(model: Model) -> str:
    """Why copies of this model cannot be attacked; nothing where they can."""
    base = _base(model)
    if is_closed(base):
        return ""
    parts = base.models if isinstance(base, Chain) else (base,)
    others = dict.fromkeys(one.name for one in parts if not isinstance(one, Regression))
    return (
        "The attack needs the density of a copy, which normal, lognormal and asinh columns have in closed "
        f"form, not {' and '.join(others)}."
    )


def _base(model: Model) -> Model:
    return model.base if isinstance(model, Boxed) else model


def _read_links(settings: Settings, start: Start, copy: Sequence[PerRecord]) -> Iterator[Array]:
    """What each link reads of a copy: of earlier columns their synthetic values, typed as in the release."""
    links = start.design.links
    if not any(link.secret for link in links):
        yield from (link.matrix for link in links)
        return
    outcomes = [link.outcome for link in links]
    public = [name for name in start.design.predictors if name not in outcomes]
    made = start.table.select(public) if public else None
    for place, (link, values) in enumerate(zip(links, copy, strict=True)):
        yield link.encode(made).matrix if link.secret and made is not None else link.matrix
        if place + 1 < len(copy):
            typed = start.table.select([link.outcome]).with_column(
                link.outcome, values, link.levels, settings.domains[place].support, settings.written_as[place]
            )
            made = Table.of(typed) if made is None else made.beside(Table.of(typed))


def expected_attack(settings: Settings) -> dict[str, int]:
    """About how many fits an attack takes by phase, those for powers with and without a record included."""
    refits = 2 * KEYS * sum(expected_fits(settings).values())
    return {REFITTING: refits, **expected_corrections(replace(settings, copies=2 * _SEARCHES))}


def _sample(
    settings: Settings, start: Start, powers: Sequence[PerRecord], trials: int, key: Key
) -> list[Parameters]:
    """Draws of the weighted posterior, of each set of powers in turn."""
    parts = [
        settings.model.sample(
            start.design, power, draws=-(-trials // len(powers)), key=key.child("draws").child(k)
        )
        for k, power in enumerate(powers)
    ]
    return [public_draw(parts[k % len(parts)].parameters, k // len(parts)) for k in range(trials)]


@dataclass(frozen=True, repr=False)
class _Line(Confidential):
    """What a correction does to a draw: a line through some that were corrected, and how far these lie off.

    To correct takes seconds, and an attack needs thousands.
    """

    settings: Settings
    start: Start
    slope: Array
    off: Array  # residuals, one row per corrected draw
    settled: float  # share of the searches that settled

    @classmethod
    def through(cls, settings: Settings, start: Start, draws: Sequence[Parameters], key: Key) -> "_Line":
        """The line through the corrections of these draws."""
        found = []
        with phase(CORRECTING):
            for k, draw in enumerate(draws):
                found.append(correct(public_view(settings, start, draw, key.child(k))))
                foresee(len(found) / len(draws))
        free = require_correctable(settings.model).free
        pairs = [
            (free(start.design, draw), free(start.design, one.parameters))
            for draw, one in zip(draws, found, strict=True)
            if one.converged
        ]
        width = len(pairs[0][0]) if pairs else 0
        if len(pairs) < width + 2:  # too few to lay a line through: nearly all go out as they are
            return cls(settings, start, np.zeros((0, 0)), np.zeros((0, 0)), 0.0)
        before, after = (np.array(side) for side in zip(*pairs, strict=True))
        known = np.column_stack([np.ones(len(before)), before])
        slope = np.linalg.lstsq(known, after, rcond=None)[0]
        return cls(settings, start, slope, after - known @ slope, len(pairs) / len(draws))

    def correct(self, draw: Parameters, key: Key) -> Corrected:
        """The draw as a correction would probably leave it."""
        chance, which = key.child("line").stream().uniform(2)
        if chance >= self.settled:
            return Corrected(draw, False, 0)
        model = require_correctable(self.settings.model).stand_in(self.start.design, draw)
        here = np.append(1.0, model.free(self.start.design, draw)) @ self.slope
        there = model.within(self.start.design, here + self.off[int(which * len(self.off))])
        return Corrected(model.natural(self.start.design, there), True, 0)


def _regress(seen: Array, meant: Array, first: Array) -> Array:
    """What is meant by what is seen, by a regression on the first half of the copies."""
    known = np.column_stack([np.ones(len(seen)), seen])
    return np.asarray(known @ np.linalg.lstsq(known[first], meant[first], rcond=None)[0])


@dataclass(frozen=True, repr=False)
class _Copies(Confidential):
    """What a test reads of copies: sums of their responses y, which are sufficient for the model."""

    gram: Array  # Z'Z, of all copies or one for each
    cross: Array  # Z'y, one row per copy
    square: PerDraw  # y'y
    records: int

    def least_squares(self) -> Array:
        """β̂ and log σ̂, one row per copy."""
        beta = np.linalg.solve(self.gram, self.cross[..., None])[..., 0]
        left = self.square - (self.cross * beta).sum(axis=1)
        return np.column_stack([beta, np.log(np.maximum(left, np.finfo(np.float64).tiny)) / 2])

    def log_density(self, posterior: Posterior) -> PerDraw:
        """The log density of each copy, parameters integrated out, up to a common constant."""
        precision = posterior.factor.T @ posterior.factor
        joint = precision + self.gram
        shifted = precision @ posterior.mean + self.cross
        centre = np.linalg.solve(joint, shifted[..., None])[..., 0]
        shape = posterior.shape + self.records / 2
        moved = self.square + posterior.mean @ precision @ posterior.mean - (centre * shifted).sum(axis=1)
        return np.asarray(
            np.log(np.diag(posterior.factor)).sum()
            - np.linalg.slogdet(joint)[1] / 2
            + posterior.shape * np.log(posterior.rate)
            - gammaln(posterior.shape)
            + gammaln(shape)
            - shape * np.log(posterior.rate + 0.5 * moved)
        )


def joint_density(copies: Sequence[_Copies], rival: Mixture) -> PerDraw:
    """The log density of each copy under a mixture: in each part those of the links add."""
    each = []
    for part in rival.parts:
        links = part.links if isinstance(part, JointPosterior) else (part,)
        each.append(np.sum([one.log_density(own) for one, own in zip(copies, links, strict=True)], axis=0))
    return np.asarray(np.logaddexp.reduce(each, axis=0) - np.log(len(each)))


def _decide(
    present: Array, absent: Array, claimed: float, delta: float, trials: int, confidence: float
) -> Attack:
    """Choose test and threshold on one half of the copies, count on the other: the interval stays honest.

    One row per test.
    """
    half = trials // 2
    best: tuple[float, int, float, bool] = (-np.inf, 0, 0.0, True)
    for test, (used, withheld) in enumerate(zip(present, absent, strict=True)):
        joined = np.concatenate([used[:half], withheld[:half]])
        for cut in np.quantile(joined, np.linspace(0.02, 0.98, 49)).tolist():
            for upward in (True, False):
                hit, miss = _rates(used[:half], withheld[:half], cut, upward)
                score = np.log((hit + 1) / (half + 2)) - np.log((miss + 1) / (half + 2))
                best = max(best, (float(score), test, cut, upward))
    _, test, cut, upward = best
    hits, misses = _rates(present[test, half:], absent[test, half:], cut, upward)
    rest = trials - half
    error = 1 - confidence
    # One-sided Clopper–Pearson bounds, half the error each: the ratio's lower bound holds with `confidence`.
    most, least = _interval(hits, rest, error / 2), _interval(misses, rest, error / 2)
    lower = float(np.log((most[0] - delta) / least[1])) if most[0] > delta else 0.0
    upper = float(np.log(most[1] / least[0])) if least[0] > 0 else float("inf")
    estimate = float(np.log((hits + 0.5) / (misses + 0.5)))
    return Attack(claimed, max(estimate, 0.0), max(lower, 0.0), max(upper, 0.0), confidence, trials)


def _interval(count: int, trials: int, error: float) -> tuple[float, float]:
    """Clopper–Pearson: each end misses the true rate with probability at most `error`."""
    low = float(betaincinv(count, trials - count + 1, error)) if count else 0.0
    high = float(betaincinv(count + 1, trials - count, 1 - error)) if count < trials else 1.0
    return low, high


def _rates(present: PerDraw, absent: PerDraw, cut: float, upward: bool) -> tuple[int, int]:
    """How many copies of each kind fall on the side that says "used" (upward) or "withheld"."""
    if upward:
        return int((present > cut).sum()), int((absent > cut).sum())
    return int((absent <= cut).sum()), int((present <= cut).sum())


def attack_statistics(
    recipe: Recipe,
    one: Outcomes,
    other: Outcomes,
    *,
    claimed: float,
    key: Key,
    trials: int,
    confidence: float,
) -> Attack:
    """Attack noisy statistics themselves, from which copies are computed: one table against its neighbour.

    The ratio of their probabilities is the best test there is, of the statistics and so of any copies.
    """
    _check_trials(trials)
    recipe = recipe.afresh()

    def log_ratios(table: Outcomes, own: Key) -> PerDraw:
        fresh = (release_statistics(recipe, *table, key=own.child(k)) for k in range(trials))
        return np.array([log_ratio(released, one, other) for released in fresh])

    present, absent = log_ratios(one, key.child("with")), log_ratios(other, key.child("without"))
    return _decide(present[None], absent[None], claimed, recipe.delta, trials, confidence)


def _check_trials(trials: int) -> None:
    if trials < 200:
        raise SettingError(f"trials must be at least 200 for an interval to mean anything, got {trials}.")
