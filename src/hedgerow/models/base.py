"""What a model is: a check and four functions, `sample`, `log_lik`, `log_mass` and `predict`.

Parameters are a mapping from names to arrays whose first axis is the draw, for every model alike; `predict`
gets a single draw, without that axis.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from hedgerow.arrays import Array, LogLik, LogMass, PerRecord
from hedgerow.models.domain import Domain
from hedgerow.models.scored import Interval
from hedgerow.randomness import Key
from hedgerow.tables.design import Design

Parameters = Mapping[str, Array]


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
    """A Bayesian regression of one outcome on public predictors: a check and four functions.

    What else a model may offer has classes of its own: faster reductions (`models.reductions.Reducing`),
    corrected draws (`models.correctable`), a risk that is public (`models.wrapped.Restricted`).

    Example
    -------
    A model of one's own goes where a family's name does; this one takes the spread as known.

    >>> from scipy.special import ndtri
    >>> from scipy.stats import norm
    >>> from hedgerow.models.base import Health, Model, Sample
    >>> from hedgerow.numerics.normal_mass import log_interval_mass
    >>> class Level(Model):
    ...     name = "level"
    ...     def check(self, design):
    ...         pass
    ...     def sample(self, design, power, *, draws, key):
    ...         total = 0.01 + power.sum()
    ...         noise = key.stream().normal(draws) / total**0.5
    ...         health = Health("exact", independent=True, effective_draws=float(draws))
    ...         return Sample({"level": (power * design.values).sum() / total + noise}, health)
    ...     def log_lik(self, design, parameters, records):
    ...         return norm.logpdf(design.values[records] - parameters["level"][:, None])
    ...     def log_mass(self, design, parameters, interval, records):
    ...         level, ends = parameters["level"][:, None], interval[records]
    ...         return log_interval_mass(ends.lower - level, ends.upper - level)
    ...     def predict(self, design, parameters, uniforms):
    ...         return parameters["level"] + ndtri(uniforms)
    >>> import hedgerow as hr
    >>> data = hr.datasets.family("normal", n=50)[["x"]]
    >>> synth = hr.Synthesizer("x ~ 1", Level(), draws=200, seed=1).fit(data)
    >>> len(synth.sample().tables[0])
    50
    """

    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        """Public columns the model reads beside the design matrix."""
        return ()

    @property
    def domain(self) -> Domain:
        """What values its outcome may take."""
        return Domain()

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


@runtime_checkable
class Inverting(Protocol):
    """A model that says whether its `predict` follows each record's uniform; the others' always does."""

    def inverts(self, design: Design, parameters: Parameters) -> bool:
        """False where the distribution of the outcome can only be sampled."""
