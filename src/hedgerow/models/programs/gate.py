"""The health gate: chains that have not converged are not released (docs/programs.md, "Health").

Looked at are all unconstrained parameters and the log density, by ArviZ: rank-normalised R-hat, bulk and
tail effective sample sizes; and, of the fit that is released, the maxima that are priced. Every figure is
computed from the confidential data.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from hedgerow.arrays import Array, PerDraw
from hedgerow.errors import HealthError
from hedgerow.models.base import Health
from hedgerow.models.programs.nuts import Chains, SamplerSettings

LARGEST_R_HAT = 1.01
SMALLEST_ESS = 400
_UPPER = 0.95  # beyond this quantile too few draws are left to estimate an ESS from


@dataclass(frozen=True, repr=False)
class Examined:
    """A fit's health, and what is wrong with it in words; confidential."""

    health: Health
    complaints: tuple[str, ...]
    hopeless: bool  # values that are not finite: no override helps

    def __repr__(self) -> str:
        return f"Examined({self.health!r})"


def examine(
    chains: Chains,
    densities: Callable[[Array], Array],
    settings: SamplerSettings,
    *,
    needed: int,
    attempts: int,
) -> Examined:
    """Judge the kept draws; `densities` gives the log density of positions, chain by draw.

    R-hat is taken over all draws after the warm-up, those that thinning leaves out included. Over 250 draws
    per chain its own noise, the largest of a dozen parameters, reaches 1.01 now and then though the chains
    have converged; more draws tell chains that have not the better.
    """
    values = _join_densities(chains.positions, densities)
    name = f"{settings.sampler} NUTS"
    if not np.isfinite(values).all():
        health = Health(
            name, False, 0.0, chains=settings.chains, attempts=attempts, failed=("finite values",)
        )
        return Examined(health, ("draws or log densities that are not finite",), True)
    r_hat, bulk, tail = _diagnose(values)
    if chains.unthinned is not None:
        r_hat, _, _ = _diagnose(_join_densities(chains.unthinned, densities))
    checks = {
        "R-hat": (r_hat > LARGEST_R_HAT, f"R-hat {r_hat:.3f} (at most {LARGEST_R_HAT})"),
        "bulk ESS": (bulk < needed, f"bulk ESS {bulk:.0f} (at least {needed:g})"),
        "tail ESS": (tail < needed, f"tail ESS {tail:.0f} (at least {needed:g})"),
        "divergences": (chains.divergences > 0, f"{chains.divergences} divergent transitions (none)"),
    }
    health = Health(
        sampler=name,
        independent=False,
        effective_draws=tail,
        assured_draws=float(needed),
        r_hat=r_hat,
        ess_bulk=bulk,
        ess_tail=tail,
        divergences=chains.divergences,
        chains=settings.chains,
        attempts=attempts,
        failed=tuple(check for check, (bad, _) in checks.items() if bad),
    )
    return Examined(health, tuple(text for bad, text in checks.values() if bad), False)


def examine_maxima(health: Health, maxima: PerDraw) -> Health:
    """The health of a fit after a look at what is priced: one number per draw, chains alternating.

    A statement says how rarely a draw exceeds the largest of them. So what counts are the effective draws of
    their upper tail, which no parameter by itself need show; there must be as many as the statement says.
    """
    import arviz

    chains = health.chains
    by_chain = maxima[: len(maxima) // chains * chains].reshape(-1, chains).T
    found = np.nan_to_num(float(arviz.ess(np.ascontiguousarray(by_chain), method="quantile", prob=_UPPER)))
    seen = replace(health, effective_draws=min(health.effective_draws, found))
    if found >= health.stated_draws:
        return seen
    if not health.overridden:
        raise HealthError(
            f"The largest scores of the draws, which the price is made from, have an ESS of {found:.0f} "
            f"(at least {health.stated_draws:g}; computed from the data: confidential). Use more draws, or a "
            "larger thin=. allow_unhealthy=True goes on, and the release says it is not certified."
        )
    return replace(seen, failed=(*health.failed, "ESS of the price"))


def _join_densities(positions: Array, densities: Callable[[Array], Array]) -> Array:
    return np.concatenate([positions, densities(positions)[:, :, None]], axis=2)


def _diagnose(values: Array) -> tuple[float, float, float]:
    """Largest R-hat, smallest bulk and tail ESS; a value that never moves counts as not converged."""
    import arviz

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # about constant chains, which the nan below reports
        data = arviz.convert_to_dataset({"value": values})
        r_hat = np.asarray(arviz.rhat(data)["value"], dtype=np.float64)
        bulk = np.asarray(arviz.ess(data, method="bulk")["value"], dtype=np.float64)
        tail = np.asarray(arviz.ess(data, method="tail")["value"], dtype=np.float64)
    stuck = np.ptp(values, axis=(0, 1)) == 0
    return (
        float(np.where(stuck | np.isnan(r_hat), np.inf, r_hat).max()),
        float(np.where(stuck | np.isnan(bulk), 0.0, bulk).min()),
        float(np.where(stuck | np.isnan(tail), 0.0, tail).min()),
    )
