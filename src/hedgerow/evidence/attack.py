"""A membership attack: can a released copy tell whether one outcome was used? (docs/maths.md, "Attack")

The attacker knows everything but whether x_i was withheld: the other records, the weights, the model. For the
exact models the probability of a copy given either table has a closed form, and their ratio is the best
test there is. It is run against many fresh copies from both tables; its error rates give a lower bound on ε.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, gammaln

from hedgerow.arrays import Array, PerDraw, PerRecord
from hedgerow.errors import SettingError
from hedgerow.mechanism.noisy.recipe import Recipe
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.mechanism.noisy.run import Outcomes, log_ratio
from hedgerow.models.base import Model
from hedgerow.models.exact import Posterior, Regression
from hedgerow.privacy.strict import Boxed
from hedgerow.randomness import Key
from hedgerow.tables.design import Design


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

    @property
    def breach(self) -> bool:
        """Whether the claimed ε is refuted at this confidence."""
        return self.lower > self.claimed

    def __str__(self) -> str:
        verdict = "refutes the claim" if self.breach else "does not refute the claim"
        return (
            f"Membership attack (confidential): {self.trials} copies from each table; empirical ε "
            f"{self.estimate:.3f}, at least {self.lower:.3f} with {self.confidence:.0%} confidence (this "
            f"test's own ratio at most {self.upper:.3f}), against {self.claimed:.3f} claimed: {verdict}. An "
            "attack bounds ε from below."
        )

    def __repr__(self) -> str:
        return f"Attack({self.trials} copies from each table, confidential)"


def attack(
    model: Model,
    design: Design,
    power: PerRecord,
    record: int,
    *,
    claimed: float,
    key: Key,
    trials: int = 2000,
    confidence: float = 0.95,
    without: PerRecord | None = None,
) -> Attack:
    """Attack one record's outcome through single copies.

    `power` is the mechanism's exponent on each record and `without` its exponents on the table in which the
    outcome is withheld; by default the same with 0 for the record, which holds the other weights fixed.
    """
    _check_trials(trials)
    base = model.base if isinstance(model, Boxed) else model
    if not isinstance(base, Regression):
        raise SettingError(f"The attack needs a model with a closed form, not {model.name}.")
    if without is None:
        without = power.copy()
        without[record] = 0.0
    exact = model._centred(design) if isinstance(model, Boxed) else base
    rivals = [exact.posterior(design, exponents) for exponents in (power, without)]
    gram = design.matrix.T @ design.matrix

    def log_ratios(exponents: PerRecord, own: Key) -> PerDraw:
        """The log likelihood ratio of each of many copies."""
        draws = model.sample(design, exponents, draws=trials, key=own.child("draws")).parameters
        ratios = np.empty(trials)
        for k in range(trials):
            uniforms = own.child("copy").child(k).stream().uniform(design.records)
            one = {name: value[k] for name, value in draws.items()}
            response = base.response(base.predict(design, one, uniforms))
            sums = design.matrix.T @ response, float(response @ response)
            used, withheld = (_log_marginal(rival, gram, *sums, design.records) for rival in rivals)
            ratios[k] = used - withheld
        return ratios

    present, absent = log_ratios(power, key.child("with")), log_ratios(without, key.child("without"))
    return decide(present, absent, claimed, trials, confidence)


def _log_marginal(posterior: Posterior, gram: Array, cross: Array, square: float, records: int) -> float:
    """log density of a copy with these sums, parameters integrated out, up to a common constant."""
    precision = posterior.factor.T @ posterior.factor
    joint = precision + gram
    shifted = precision @ posterior.mean + cross
    centre = np.linalg.solve(joint, shifted)
    shape = posterior.shape + records / 2
    rate = posterior.rate + 0.5 * (square + posterior.mean @ precision @ posterior.mean - centre @ shifted)
    return float(
        np.log(np.diag(posterior.factor)).sum()
        - np.linalg.slogdet(joint)[1] / 2
        + posterior.shape * np.log(posterior.rate)
        - gammaln(posterior.shape)
        + gammaln(shape)
        - shape * np.log(rate)
    )


def decide(present: PerDraw, absent: PerDraw, claimed: float, trials: int, confidence: float) -> Attack:
    """Choose thresholds on one half of the copies, count on the other: the interval stays honest."""
    half = trials // 2
    candidates = np.quantile(np.concatenate([present[:half], absent[:half]]), np.linspace(0.02, 0.98, 49))
    best: tuple[float, float, bool] = (-np.inf, 0.0, True)
    for cut in candidates:
        for upward in (True, False):
            hit, miss = _rates(present[:half], absent[:half], float(cut), upward)
            score = np.log((hit + 1) / (half + 2)) - np.log((miss + 1) / (half + 2))
            best = max(best, (float(score), float(cut), upward))
    hits, misses = _rates(present[half:], absent[half:], best[1], best[2])
    rest = trials - half
    error = 1 - confidence
    # One-sided Clopper–Pearson bounds, half the error each: the ratio's lower bound holds with `confidence`.
    used, withheld = _interval(hits, rest, error / 2), _interval(misses, rest, error / 2)
    lower = float(np.log(used[0] / withheld[1])) if used[0] > 0 else 0.0
    upper = float(np.log(used[1] / withheld[0])) if withheld[0] > 0 else float("inf")
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

    def log_ratios(table: Outcomes, own: Key) -> PerDraw:
        fresh = (release_statistics(recipe, *table, key=own.child(k)) for k in range(trials))
        return np.array([log_ratio(released, one, other) for released in fresh])

    present, absent = log_ratios(one, key.child("with")), log_ratios(other, key.child("without"))
    return decide(present, absent, claimed, trials, confidence)


def _check_trials(trials: int) -> None:
    if trials < 200:
        raise SettingError(f"trials must be at least 200 for an interval to mean anything, got {trials}.")
