"""Risks, weights and prices from log-likelihoods that were computed elsewhere: Stan, PyMC, brms, bambi.

Two rounds, as in the mechanism: an unweighted fit gives risks and weights; its refit, with each record's
likelihood raised to `power`, gives the price. Matrices are draws × records and are read in blocks.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hedgerow.arrays import Confidential, PerRecord
from hedgerow.errors import DataError, SettingError, format_value
from hedgerow.evidence.matrices import DrawMatrix, matrix_of, side_by_side
from hedgerow.mechanism.price import Price
from hedgerow.models.scored import Interval, Linear, Risk, Sensitive
from hedgerow.numerics.scoring import Extremes
from hedgerow.privacy.bounds import LIPSCHITZ, OSCILLATION, bound_named, prices
from hedgerow.privacy.sensitive import sensitive_part, withheld_part
from hedgerow.privacy.standards import ADP, Standard, Unweighted
from hedgerow.privacy.weights import Evidence, LinearWeights, Weights, as_weights, compute_alpha
from hedgerow.progress import report, shown

_NEEDS_MASS = "{} needs log_mass, the log probability of each record's range at each draw."


@dataclass(frozen=True, repr=False)
class Prices(Confidential):
    """The price for both neighbours, and the own one as the draws doubled; confidential."""

    own: Price
    withheld: Price
    by_draws: tuple[tuple[int, Price], ...]


@dataclass(frozen=True, repr=False)
class Assessment:
    """What `assess` found from a matrix of log-likelihoods; all of it is confidential.

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
                f"bound must be 'lipschitz' or 'oscillation', got {format_value(bound)}: a matrix of "
                "log-likelihoods does not determine the exact loss."
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
    if alpha is not None and weights is not None:
        raise SettingError("Give alpha, the weights of this fit, or weights, a rule for new ones; not both.")
    if alpha is None and (already_weighted or known is not None):
        raise SettingError(
            "Without alpha the matrix is an unweighted fit: already_weighted and known go with alpha. Give "
            "the weights of that fit as alpha."
        )
    with shown():
        if alpha is not None:
            return _assess_weighted(density, mass, chosen, alpha, known, already_weighted)
        ones = np.ones(density.records)
        plain = sensitive_part(Unweighted(), ones, np.zeros_like(ones), _whole_line(density.records))
        pricing = _price(density, None, plain, ones, None)
        risk = Risk.from_extremes(pricing.own.extremes)
        share = _share_outside(mass, chosen, density.records)
        found = _alpha(as_weights(LinearWeights() if weights is None else weights), risk, chosen)
        return Assessment(chosen, found, share, chosen.power(found, share), pricing, risk)


def _assess_weighted(
    density: DrawMatrix,
    mass: DrawMatrix | None,
    standard: Standard,
    alpha: Any,
    known: Any,
    already_weighted: bool | None,
) -> Assessment:
    """The price of a fit that was made with weights `alpha`."""
    if not isinstance(already_weighted, bool):
        raise SettingError(
            "already_weighted must be said when alpha is given: True for log-likelihoods from a weighted "
            "brms or rstanarm fit, which contain the weight already; False for plain log densities. Counting "
            "the weight twice understates ε."
        )
    given = _by_record(alpha, "alpha", density)
    if standard.uses_known and known is None:
        raise SettingError(
            f"{standard.label} needs known, the λ_i that assess gave for the unweighted fit "
            "(its .known), beside alpha."
        )
    share = np.zeros_like(given) if known is None else _by_record(known, "known", density)
    power = standard.power(given, share)
    ranged = sensitive_part(standard, given, share, _whole_line(density.records, ranged=True))
    if mass is None and ranged.uses_mass:
        raise SettingError(_NEEDS_MASS.format(standard.label))
    part = sensitive_part(standard, given, share, _whole_line(density.records, ranged=mass is not None))
    lost = isinstance(part, Linear) and not part.density[power == 0].any()
    if already_weighted and (power == 0).any() and not lost:
        raise SettingError(
            f"{standard.label} prices records of power 0 by their log-likelihood, which weighted values no "
            "longer hold. Compute plain log densities and say already_weighted=False."
        )
    return Assessment(
        standard, given, share, power, _price(density, mass, part, power, already_weighted), None
    )


def _price(
    density: DrawMatrix,
    mass: DrawMatrix | None,
    part: Sensitive,
    power: PerRecord,
    already_weighted: bool | None,
) -> Prices:
    """Both neighbours' extremes over draws, block by block, as `price.Pricing` finds them for a fit."""
    parts, every, zero = (part, withheld_part(power)), slice(None), power == 0
    marks = {density.draws // 8, density.draws // 4, density.draws // 2, density.draws} - {0}
    running: list[Price] = []
    by_draws: list[tuple[int, Price]] = []
    silent = True  # whether all values of records with power 0 are exactly zero
    for stop, values, log_mass in side_by_side(density, mass, marks):
        silent = silent and not values[:, zero].any()
        log_lik = values
        if already_weighted:
            log_lik = np.where(power > 0, values / np.where(power > 0, power, 1.0), 0.0)
        scored = (one(every, log_lik, log_mass) for one in parts)
        now = [Price(Extremes(d.min(axis=0), d.max(axis=0))) for d in scored]
        running = [old.join(new) for old, new in zip(running, now, strict=True)] if running else now
        report("scoring", stop, density.draws)
        if stop in marks:
            by_draws.append((stop, running[0]))
    if not running:
        raise DataError("log_lik has no draws.")
    # Records of power 0 tell whether the weight is in: with it, their values are all exactly zero.
    if already_weighted is True and not silent:
        raise DataError(
            "already_weighted=True, but records of weight 0 have log-likelihoods other than 0: these values "
            "do not contain the weights. Say already_weighted=False."
        )
    if already_weighted is False and silent and zero.any():
        raise DataError(
            "already_weighted=False, but all log-likelihoods of records with weight 0 are exactly 0: these "
            "values contain the weights already, and ε would be understated. Say already_weighted=True."
        )
    return Prices(running[0], running[1], tuple(by_draws))


def _alpha(weights: Weights, risk: Risk, standard: Standard) -> PerRecord:
    if not standard.weighted:
        return np.ones_like(risk.low)

    def no_refit(_: PerRecord) -> PerRecord:
        raise SettingError(
            "These weights refit the model, which assess cannot. Refit it yourself with the base weights."
        )

    missing = np.full_like(risk.low, np.nan)  # the outcome is not known here
    evidence = Evidence(risk, missing, _NoTable(), no_refit)  # type: ignore[arg-type]  # refuses every use
    return compute_alpha(weights, evidence)


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
        raise SettingError(_NEEDS_MASS.format(standard.label))
    total = sum((np.exp(block).sum(axis=0) for _, block in mass.blocks()), np.zeros(records))
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
