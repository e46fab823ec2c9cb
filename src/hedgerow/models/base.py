"""What a model is: four functions, and blocked reductions over them.

Parameters are a mapping from names to arrays whose first axis is the draw, for every model alike.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hedgerow.arrays import Array, LogLik, LogMass, PerRecord
from hedgerow.errors import SettingError
from hedgerow.models.scored import Interval, Risk, Sensitive
from hedgerow.numerics.scoring import Extremes
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table
from hedgerow.tables.values import ANYWHERE, Support

Parameters = Mapping[str, Array]

_BLOCK_CELLS = 1 << 21  # 16 MiB of float64 at a time, whatever the number of draws


@dataclass(frozen=True, repr=False)
class Health:
    """Whether the draws can be trusted; confidential, except for `assured_draws` and `failed`.

    Exact models draw independently, so there is nothing to doubt. For Markov chains the figures are the
    worst over all parameters, and `effective_draws` is the smallest tail ESS.
    """

    sampler: str
    independent: bool
    effective_draws: float
    assured_draws: float | None = None  # the effective draws every accepted fit has; fixed beforehand
    r_hat: float | None = None
    ess_bulk: float | None = None
    ess_tail: float | None = None
    divergences: int = 0
    chains: int = 1
    attempts: int = 1
    failed: tuple[str, ...] = ()  # checks that failed and were overridden by the owner

    @property
    def stated_draws(self) -> float:
        """Effective draws a public statement may use: what was measured would tell about the data."""
        return self.effective_draws if self.assured_draws is None else self.assured_draws

    def __repr__(self) -> str:
        return f"Health({self.sampler}, {self.chains} chains, confidential)"


class Influence(ABC):
    """The fit without a record, or without a part of its likelihood, in closed form."""

    leverage: PerRecord  # how much of its own fitted value each record decides, between 0 and 1
    pull: PerRecord  # how much of the residual sum of squares is each record's, between 0 and 1

    @abstractmethod
    def loss_constant(self, share: PerRecord) -> PerRecord:
        """c_i such that share_i · f_i(θ) − c_i is the exact privacy loss about record i.

        The loss is log ξ(θ | x) − log ξ(θ | neighbour), where the neighbour's power on record i is
        power_i − share_i and everything else, weights included, is held fixed.
        """


@dataclass(frozen=True, repr=False)
class Sample:
    """Draws from a weighted posterior."""

    parameters: Parameters
    health: Health
    influence: Callable[[], Influence] | None = None  # where the posterior has a closed form


class Model(ABC):
    """A Bayesian regression of one outcome on public predictors."""

    name: str
    correctable: ClassVar[bool] = False  # True: draws can be corrected, by the methods from `stand_in` on
    tables: ClassVar[int] = 20  # simulated tables a correction takes; `chance` spares some

    @property
    def columns(self) -> tuple[str, ...]:
        """Public columns the model reads beside the design matrix."""
        return ()

    @property
    def atoms(self) -> bool:
        """Whether single values may have a probability of their own, so that a range may hold just one."""
        return False

    @property
    def support(self) -> Support:
        """Where the outcome may lie, and to which copies keep in whatever type they are written."""
        return ANYWHERE

    def declared(self, design: Design) -> str:
        """What was declared of the outcome, in words for the guarantee; empty for nothing."""
        return ""

    def classes(self, table: Table, outcome: str) -> tuple[Any, ...] | None:
        """The classes of an outcome that holds labels, in order; None for an outcome of numbers."""
        return None

    @abstractmethod
    def check(self, design: Design) -> None:
        """Refuse an outcome the model cannot describe; messages give counts, not values."""

    @abstractmethod
    def sample(self, design: Design, power: PerRecord, *, draws: int, key: Key) -> Sample:
        """Draws from ξ(θ) ∏ p(x_i | z_i, θ)^power_i."""

    @abstractmethod
    def log_lik(self, design: Design, parameters: Parameters, records: slice) -> LogLik:
        """f[s,i] = log p(x_i | z_i, θ_s) for a block of records, never weighted."""

    @abstractmethod
    def log_mass(self, design: Design, parameters: Parameters, interval: Interval, records: slice) -> LogMass:
        """log γ[s,i], the log probability of each record's interval."""

    @abstractmethod
    def predict(self, design: Design, parameters: Parameters, uniforms: PerRecord) -> PerRecord:
        """One synthetic outcome per record at a single draw, by inverse distribution function."""

    def inverts(self, design: Design, parameters: Parameters) -> bool:
        """Whether `predict` follows each record's uniform; False: its distribution can only be sampled."""
        return True

    def stand_in(self, design: Design, near: Parameters) -> "Model":
        """The model that goes through the recipe on simulated tables; a quicker one where sampling is slow.

        `near` is where its posterior will lie, roughly.
        """
        return self

    def free(self, design: Design, parameters: Parameters) -> Array:
        """One draw as a vector in which corrections add up: coefficients, logarithms of scales."""
        raise SettingError(f"debias: draws of the {self.name} model cannot be corrected. Leave debias out.")

    def natural(self, design: Design, free: Array) -> Parameters:
        """Back from `free`."""
        raise SettingError(f"debias: draws of the {self.name} model cannot be corrected. Leave debias out.")

    def centre(self, design: Design, power: PerRecord, *, key: Key) -> Array:
        """The weighted estimate that draws of the weighted posterior scatter about, as `free` writes it."""
        raise SettingError(f"debias: the {self.name} model has no weighted estimate. Leave debias out.")

    def chance(self, design: Design, truth: Parameters) -> Array | None:
        """How far chance alone moved an estimate on a table drawn at `truth`: of mean zero, exactly.

        Taken off weighted estimates it spares simulated tables; None: there is no closed form.
        """
        return None

    def within(self, design: Design, free: Array) -> Array:
        """The nearest parameters that the model allows."""
        return free

    def public_risk(self, design: Design) -> Risk | None:
        """By-record risk that depends on the record and public things alone, where the model has one."""
        return None

    def extremes(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> Extremes:
        """Smallest and largest d over draws for each record, in blocks of records."""
        low, high = np.empty(design.records), np.empty(design.records)
        for records in blocks(design.records, _draws(parameters)):
            log_lik = self.log_lik(design, parameters, records)
            log_mass = (
                self.log_mass(design, parameters, interval, records)
                if sensitive.uses_mass
                else np.zeros_like(log_lik)
            )
            part = sensitive(records, log_lik, log_mass)
            low[records], high[records] = part.min(axis=0), part.max(axis=0)
        return Extremes(low, high)

    def absolute(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> PerRecord:
        """Largest |d| over draws for each record; models may find it without both extremes."""
        return self.extremes(design, parameters, sensitive, interval).absolute

    def mean_mass(self, design: Design, parameters: Parameters, interval: Interval) -> PerRecord:
        """γ averaged over draws, in blocks of records."""
        mean = np.empty(design.records)
        for records in blocks(design.records, _draws(parameters)):
            mean[records] = np.exp(self.log_mass(design, parameters, interval, records)).mean(axis=0)
        return mean


def blocks(records: int, draws: int) -> Iterator[slice]:
    """Slices of records such that a block of all draws stays small."""
    step = max(1, _BLOCK_CELLS // max(1, draws))
    for start in range(0, records, step):
        yield slice(start, min(start + step, records))


def block_rows(records: int, draws: int) -> int:
    """Draws such that a block of all records stays small."""
    return max(1, min(draws, _BLOCK_CELLS // max(1, records)))


def _draws(parameters: Parameters) -> int:
    return len(next(iter(parameters.values())))
