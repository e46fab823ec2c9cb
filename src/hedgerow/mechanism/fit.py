"""A fit: draws of a weighted posterior, their health, and scores on demand."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.arrays import Array, LogLik, LogMass, Mask, PerRecord
from hedgerow.errors import DataError, RangeError, SettingError
from hedgerow.models import reductions
from hedgerow.models.base import Health, Influence, Model, Parameters, Sample
from hedgerow.models.reductions import Bounded
from hedgerow.models.scored import Interval, Linear, Risk, Sensitive
from hedgerow.numerics.scoring import Extremes
from hedgerow.progress import count_fit
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.threads import one_blas_thread


@dataclass(frozen=True, repr=False)
class Fit:
    """Confidential. Scores are computed in blocks when asked for; draws × records is never held."""

    model: Model
    design: Design
    power: PerRecord  # α*_i
    parameters: Parameters
    health: Health
    influence: Callable[[], Influence] | None = None

    @property
    def draws(self) -> int:
        """Number of draws kept."""
        return len(next(iter(self.parameters.values())))

    def log_lik(self, records: slice = slice(None)) -> LogLik:
        """f[s,i] for a block of records, never weighted."""
        return self.model.log_lik(self.design, self.parameters, records)

    def log_mass(self, interval: Interval, records: slice = slice(None)) -> LogMass:
        """log γ[s,i] for a block of records."""
        return self.model.log_mass(self.design, self.parameters, interval, records)

    def extremes(self, sensitive: Sensitive, interval: Interval) -> Extremes:
        """Smallest and largest d over the draws, for each record."""
        found = reductions.extremes(self.model, self.design, self.parameters, sensitive, interval)
        _check_finite(np.isfinite(found.low) & np.isfinite(found.high))
        return found

    def absolute(self, sensitive: Sensitive, interval: Interval) -> PerRecord:
        """Largest |d| over the draws, for each record."""
        found = reductions.absolute(self.model, self.design, self.parameters, sensitive, interval)
        if found.size and not (found.min() > -np.inf and found.max() < np.inf):  # which NaN is not
            _check_finite(np.isfinite(found))
        return found

    def mean_mass(self, interval: Interval) -> PerRecord:
        """The probability of each record's interval, averaged over the draws."""
        return reductions.mean_mass(self.model, self.design, self.parameters, interval)

    def predict(self, draw: int, uniforms: PerRecord) -> PerRecord:
        """A synthetic outcome for every record from one draw."""
        one = {name: np.asarray(values[draw]) for name, values in self.parameters.items()}
        return self.model.predict(self.design, one, uniforms)

    def to_arviz(self, *, log_likelihood: bool = False) -> Any:
        """The draws as an ArviZ InferenceData, by chain; confidential, as the draws are.

        With `log_likelihood` the draws × records matrix goes with them: unweighted, and held in memory.
        """
        groups: dict[str, Mapping[str, Array]] = {"posterior": self.parameters}
        if log_likelihood:
            groups["log_likelihood"] = {self.design.outcome: self.log_lik()}
        return to_inference_data(groups, self.health.chains)

    def part(self, draws: slice) -> "Fit":
        """The fit with some of its draws."""
        chosen = {name: np.ascontiguousarray(value[draws]) for name, value in self.parameters.items()}
        return replace(self, parameters=chosen)

    def __repr__(self) -> str:
        return f"Fit({self.model.name}, {self.draws} draws of {self.design.records} records, confidential)"


class DrawnRisk(Risk):
    """The risk over the draws of a fit. Weights mostly need the largest |f|: quicker than both ends."""

    def __init__(self, fit: Fit, interval: Interval) -> None:
        nothing, all_of_it = (np.broadcast_to(one, (fit.design.records,)) for one in (0.0, 1.0))
        vars(self).update(fit=fit, asked=(Linear(all_of_it, nothing, nothing), interval))

    fit: Fit
    asked: tuple[Sensitive, Interval]

    @cached_property
    def _extremes(self) -> Extremes:
        return self.fit.extremes(*self.asked)

    @property
    def low(self) -> PerRecord:
        return self._extremes.low

    @property
    def high(self) -> PerRecord:
        return self._extremes.high

    @cached_property
    def absolute(self) -> PerRecord:
        return super().absolute if "_extremes" in vars(self) else self.fit.absolute(*self.asked)

    @property
    def share_above_one(self) -> float:
        model, design = self.fit.model, self.fit.design
        if "_extremes" in vars(self) or not isinstance(model, Bounded):
            return super().share_above_one
        some = np.flatnonzero(model.density_bound(design, self.fit.parameters) > 0)
        if not some.size:
            return 0.0
        few = DrawnRisk(replace(self.fit, design=design.take(some)), self.asked[1].take(some))
        return float((few.high > 0).sum() / design.records)

    def __repr__(self) -> str:
        return f"Risk({self.fit.design.records} records, confidential)"


def to_inference_data(groups: Mapping[str, Mapping[str, Array]], chains: int) -> Any:
    """Draws of several chains in turn as an ArviZ InferenceData."""
    try:
        import arviz
    except ModuleNotFoundError:
        raise SettingError("to_arviz needs ArviZ. Install hedgerow[programs].") from None

    def by_chain(values: Array) -> Array:
        kept = len(values) // chains * chains
        return np.moveaxis(values[:kept].reshape(-1, chains, *values.shape[1:]), 1, 0)

    by_name = {
        group: {name: by_chain(value) for name, value in each.items()} for group, each in groups.items()
    }
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "More chains", UserWarning)  # as there may well be
        return arviz.from_dict(**by_name)


def _check_finite(finite: Mask) -> None:
    if not finite.all():
        raise RangeError(
            f"{int((~finite).sum())} of {len(finite)} records have no finite price: their range is so "
            "narrow, or so far from what the model expects, that its probability is zero in floating point "
            "or, where it is simulated, not known. Widen it; in a box give columns that others read no range."
        )


@one_blas_thread()
def fit(model: Model, design: Design, power: PerRecord, *, draws: int, key: Key) -> Fit:
    """Sample the posterior in which record i's likelihood is raised to power_i."""
    sample = checked_sample(model, model.sample(design, power, draws=draws, key=key))
    count_fit()
    return Fit(model, design, power, sample.parameters, sample.health, sample.influence)


def checked_sample(model: Model, sample: Sample) -> Sample:
    """The draws, after checking that they are numbers."""
    if not all(np.isfinite(value).all() for value in sample.parameters.values()):
        raise DataError(
            f"The {model.name} model gave draws that are not finite. The outcome or a predictor may span too "
            "many orders of magnitude: rescale it, or give a prior in its units."
        )
    return sample
