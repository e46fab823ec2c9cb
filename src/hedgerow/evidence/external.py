"""Risks, weights and prices from log-likelihoods that were computed elsewhere: Stan, PyMC, brms, bambi.

Two rounds, as in the mechanism: an unweighted fit gives risks and weights; its refit, with each record's
likelihood raised to `power`, gives the price. Matrices are draws × records and are read in blocks.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.arrays import PerRecord
from hedgerow.errors import DataError, SettingError
from hedgerow.evidence.matrices import DrawMatrix, matrix_of, side_by_side
from hedgerow.mechanism.price import Price
from hedgerow.models.scored import Interval, Linear, Risk, Sensitive
from hedgerow.numerics.scoring import Extremes
from hedgerow.privacy.bounds import LIPSCHITZ, OSCILLATION, bound_named, prices
from hedgerow.privacy.sensitive import sensitive_part, withheld_part
from hedgerow.privacy.standards import ADP, Standard, Unweighted
from hedgerow.privacy.weights import Evidence, LinearWeights, Weights, as_weights, checked_alpha
from hedgerow.progress import report, shown


@dataclass(frozen=True, repr=False)
class Prices:
    """The price for both neighbours, and the own one as the draws doubled; confidential."""

    own: Price
    withheld: Price
    by_draws: tuple[tuple[int, Price], ...]

    def __repr__(self) -> str:
        return f"Prices({len(self.own.sensitivity)} records, confidential)"


@dataclass(frozen=True, repr=False)
class Assessment:
    """What the matrix says; confidential, all of it.

    After an unweighted fit: risks, the weights they lead to and the powers to refit with, and what the
    unweighted posterior itself would cost. After a weighted fit: its price under the standard.
    """

    standard: Standard
    alpha: PerRecord
    known: PerRecord  # λ_i; zero where the standard does not use it
    power: PerRecord  # α*_i, the exponent to put on each record's likelihood
    pricing: Prices
    risk: Risk | None  # None after a weighted fit: risks belong to the unweighted one

    def epsilon(self, bound: str = "lipschitz") -> float:
        """The price of one copy under the standard's own neighbour."""
        chosen = bound_named(bound)
        if not chosen.has(self.pricing.own):
            raise SettingError(
                f"bound must be 'lipschitz' or 'oscillation', got {bound!r}: a matrix of log-likelihoods "
                "does not determine the exact loss."
            )
        return chosen.epsilon(self.pricing.own)

    @property
    def withheld_epsilon(self) -> dict[str, float]:
        """By bound: the price of one copy with x_i withheld altogether."""
        return prices(self.pricing.withheld)

    @property
    def by_draws(self) -> dict[str, list[float]]:
        """How the price moved as the number of draws doubled."""
        steps = self.pricing.by_draws
        columns: dict[str, list[float]] = {"draws": [count for count, _ in steps]}
        return columns | {b.name: [b.epsilon(p) for _, p in steps] for b in (LIPSCHITZ, OSCILLATION)}

    def __repr__(self) -> str:
        stage = "weighted fit" if self.risk is None else "unweighted fit"
        return f"Assessment({len(self.alpha)} records, {self.standard.label}, {stage}, confidential)"


def assess(
    log_lik: Any,
    log_mass: Any = None,
    *,
    alpha: Any = None,
    known: Any = None,
    standard: Standard | None = None,
    weights: Any = None,
    already_weighted: bool | None = None,
    variable: str | None = None,
) -> Assessment:
    """Risks, weights and prices from a draws × records matrix of log-likelihoods.

    Parameters
    ----------
    log_lik, log_mass
        log p(x_i | θ_s), and the log probability of each record's range for a range standard: an array, a
        path to a .npy or .parquet file, or an ArviZ InferenceData with a log_likelihood group.
    alpha
        None: the matrix is from an unweighted fit. Otherwise the weights of the fit it is from.
    known
        λ_i, as an earlier assessment of the unweighted fit gave them; for RangeAveraged after the refit.
    standard, weights
        As in `Synthesizer`. Weights that refit or look at the outcome are not available here.
    already_weighted
        With alpha, must be said: True if the values already contain the weight, as those of brms and
        rstanarm do. Counting the weight twice understates ε.
    variable
        Which variable of the log_likelihood group, where there are several.
    """
    chosen = standard if standard is not None else ADP()
    if not isinstance(chosen, Standard):
        raise SettingError(f"standard must be a standard such as ADP(), got {type(chosen).__name__}.")
    density = matrix_of(log_lik, "log_lik", variable)
    mass = None if log_mass is None else matrix_of(log_mass, "log_mass", variable)
    if mass is not None and (mass.draws, mass.records) != (density.draws, density.records):
        raise DataError(
            f"log_mass has {mass.draws} draws of {mass.records} records, log_lik {density.draws} of "
            f"{density.records}; they must match."
        )
    with shown():
        if alpha is None:
            return _unweighted(density, mass, chosen, weights, known, already_weighted)
        return _weighted(density, mass, chosen, weights, alpha, known, already_weighted)


def _unweighted(
    density: DrawMatrix,
    mass: DrawMatrix | None,
    standard: Standard,
    weights: Any,
    known: Any,
    already_weighted: bool | None,
) -> Assessment:
    if already_weighted or known is not None:
        raise SettingError(
            "Without alpha the matrix is an unweighted fit: already_weighted and known go with alpha. Give "
            "the weights of that fit as alpha."
        )
    ones = np.ones(density.records)
    whole = _whole_line(density.records)
    plain = sensitive_part(Unweighted(), ones, np.zeros_like(ones), whole)
    pricing = _priced(density, None, plain, ones, None)
    risk = Risk.from_extremes(pricing.own.extremes)
    share = _share_outside(mass, standard, density.records)
    found = _alpha(as_weights(LinearWeights() if weights is None else weights), risk, standard)
    return Assessment(standard, found, share, standard.power(found, share), pricing, risk)


def _weighted(
    density: DrawMatrix,
    mass: DrawMatrix | None,
    standard: Standard,
    weights: Any,
    alpha: Any,
    known: Any,
    already_weighted: bool | None,
) -> Assessment:
    if not isinstance(already_weighted, bool):
        raise SettingError(
            "already_weighted must be said when alpha is given: True for log-likelihoods from a weighted "
            "brms or rstanarm fit, which contain the weight already; False for plain log densities. Counting "
            "the weight twice understates ε."
        )
    if weights is not None:
        raise SettingError("Give alpha, the weights of this fit, or weights, a rule for new ones; not both.")
    given = _by_record(alpha, "alpha", density)
    if standard.uses_known and known is None:
        raise SettingError(
            f"{standard.label} needs known, the λ_i that assess gave for the unweighted fit "
            "(its .known), beside alpha."
        )
    share = np.zeros_like(given) if known is None else _by_record(known, "known", density)
    power = standard.power(given, share)
    part = sensitive_part(standard, given, share, _whole_line(density.records, ranged=mass is not None))
    if mass is None and (not isinstance(part, Linear) or _uses_mass(standard, given, share)):
        raise SettingError(
            f"{standard.label} needs log_mass, the log probability of each record's range at each draw."
        )
    lost = isinstance(part, Linear) and not part.density[power == 0].any()
    if already_weighted and (power == 0).any() and not lost:
        raise SettingError(
            f"{standard.label} prices records of power 0 by their log-likelihood, which weighted values no "
            "longer hold. Compute plain log densities and say already_weighted=False."
        )
    pricing = _priced(density, mass, part, power, already_weighted)
    return Assessment(standard, given, share, power, pricing, None)


def _priced(
    density: DrawMatrix,
    mass: DrawMatrix | None,
    part: Sensitive,
    power: PerRecord,
    already_weighted: bool | None,
) -> Prices:
    """Both neighbours' extremes over draws, block by block, as `price.Pricing` finds them for a fit."""
    apart = withheld_part(power)
    marks = {density.draws // 8, density.draws // 4, density.draws // 2, density.draws} - {0}
    running: tuple[Price, Price] | None = None
    silent = np.zeros(density.records)  # largest |value| in the columns of records with power 0
    by_draws: list[tuple[int, Price]] = []
    every = slice(None)
    for stop, values, log_mass in side_by_side(density, mass, marks):
        silent = np.maximum(silent, np.where(power == 0, np.abs(values).max(axis=0), 0.0))
        log_lik = (
            np.where(power > 0, values / np.where(power > 0, power, 1.0), 0.0) if already_weighted else values
        )
        scored = (one(every, log_lik, log_mass) for one in (part, apart))
        own, withheld = (Price(Extremes(d.min(axis=0), d.max(axis=0))) for d in scored)
        now = own, withheld
        running = now if running is None else (running[0].join(now[0]), running[1].join(now[1]))
        report("scoring", stop, density.draws)
        if stop in marks:
            by_draws.append((stop, running[0]))
    if running is None:
        raise DataError("log_lik has no draws.")
    if already_weighted is not None:
        _check_said(already_weighted, silent, power)
    return Prices(running[0], running[1], tuple(by_draws))


def _check_said(already_weighted: bool, silent: PerRecord, power: PerRecord) -> None:
    """Records of power 0 tell whether the weight is in: with it, their values are all exactly zero."""
    zero = power == 0
    if not zero.any():
        return
    if already_weighted and (silent[zero] > 0).any():
        raise DataError(
            "already_weighted=True, but records of weight 0 have log-likelihoods other than 0: these values "
            "do not contain the weights. Say already_weighted=False."
        )
    if not already_weighted and not (silent[zero] > 0).any():
        raise DataError(
            "already_weighted=False, but all log-likelihoods of records with weight 0 are exactly 0: these "
            "values contain the weights already, and ε would be understated. Say already_weighted=True."
        )


def _alpha(weights: Weights, risk: Risk, standard: Standard) -> PerRecord:
    if not standard.weighted:
        return np.ones_like(risk.low)

    def no_refit(_: PerRecord) -> PerRecord:
        raise SettingError(
            "These weights refit the model, which assess cannot. Refit it yourself with the base weights."
        )

    missing = np.full_like(risk.low, np.nan)  # the outcome is not known here
    evidence = Evidence(risk, missing, _NoTable(), no_refit)  # type: ignore[arg-type]  # refuses every use
    return checked_alpha(weights, evidence)


class _NoTable:
    """Stands where a table would be; a rule that asks for it gets an answer."""

    def __getattr__(self, name: str) -> Any:
        raise SettingError(
            "These weights look at the table, which assess does not have. Compute them and give alpha."
        )


def _share_outside(mass: DrawMatrix | None, standard: Standard, records: int) -> PerRecord:
    """λ_i = 1 − mean_s γ_i, where the standard uses it."""
    if not standard.uses_known:
        return np.zeros(records)
    if mass is None:
        raise SettingError(
            f"{standard.label} needs log_mass, the log probability of each record's range at each draw."
        )
    total = np.zeros(records)
    for _, block in mass.blocks():
        total += np.exp(block).sum(axis=0)
    return np.clip(1 - total / mass.draws, 0, 1)


def _by_record(given: Any, name: str, density: DrawMatrix) -> PerRecord:
    values = np.asarray(given, dtype=np.float64)
    if values.shape != (density.records,):
        hint = " The matrix looks transposed." if values.shape == (density.draws,) else ""
        raise DataError(
            f"{name} has shape {values.shape} for {density.draws} draws of {density.records} records.{hint}"
        )
    bad = int((~(np.isfinite(values) & (values >= 0) & (values <= 1))).sum())
    if bad:
        raise DataError(f"{name} has {bad} of {density.records} values outside [0, 1].")
    return values


def _whole_line(records: int, *, ranged: bool = False) -> Interval:
    """Ranges are in log_mass; here it only matters whether there are any."""
    end = np.full(records, 0.0 if ranged else np.inf)
    return Interval(-end, end, np.ones(records, dtype=np.bool_))


def _uses_mass(standard: Standard, alpha: PerRecord, known: PerRecord) -> bool:
    part = sensitive_part(standard, alpha, known, _whole_line(len(alpha), ranged=True))
    return not isinstance(part, Linear) or bool(part.mass.any())
