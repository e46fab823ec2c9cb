"""What a model is: a check and four functions, `sample`, `log_lik`, `log_mass` and `predict`.

Parameters are a mapping from names to arrays whose first axis is the draw, for every model alike; `predict`
gets a single draw, without that axis.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, LogLik, LogMass, Mask, PerRecord
from hedgerow.models.scored import Interval
from hedgerow.numerics.renyi import Neighbours
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table
from hedgerow.tables.values import ANYWHERE, Support

Parameters = Mapping[str, Array]
Units = NDArray[np.int64]  # the number of each record's unit


@dataclass(frozen=True)
class Domain:
    """Numbers anywhere on the line, unless said otherwise; public.

    `support` is where copies are kept, in whatever type they are written. `atoms` says whether single values
    may have a probability of their own, so that a range may hold just one. `usable` is for models that may
    refuse no outcome: it says which ones they describe, and the others count as withheld. `declared` is what
    the owner said of the outcome, in words.
    """

    crossed: ClassVar[bool] = False  # whether the model reads cells of categorical predictors, not a matrix
    support: Support = ANYWHERE
    atoms: bool = False
    usable: Callable[[PerRecord], Mask] | None = field(default=None, kw_only=True)
    declared: str = field(default="", kw_only=True)

    def classes(self, table: Table, outcome: str) -> tuple[Any, ...] | None:
        """The classes of an outcome that holds labels, in order; None for an outcome of numbers."""
        return None

    def levels(self, table: Table, outcome: str) -> tuple[Any, ...] | None:
        """The public classes, labels or numbers, by which later columns may encode it; None: it has none."""
        return self.classes(table, outcome)

    def describe(self, design: Design) -> str:
        """What was declared of the outcome, in words for the guarantee; empty for nothing."""
        return self.declared


@dataclass(frozen=True, repr=False)
class Health:
    """Whether the draws can be trusted; confidential, except for `assured_draws` and `failed`.

    Exact models draw independently, so there is nothing to doubt. For Markov chains the figures are the
    worst over all parameters, and `effective_draws` is the smallest tail ESS. Where the data decide between
    independent draws and a chain, both state what `assured_draws` says.
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
    overridden: bool = False  # whether the owner goes on with draws that fail a check

    @property
    def stated_draws(self) -> float:
        """Effective draws a public statement may use: what was measured would tell about the data."""
        return self.effective_draws if self.assured_draws is None else self.assured_draws

    @property
    def in_doubt(self) -> bool:
        """Whether a statement rests on more than was checked: on a chain that passed a gate."""
        return not self.independent and self.assured_draws is not None

    @property
    def stated_independent(self) -> bool:
        """Whether a public statement may call the draws independent: where they always are."""
        return self.independent and self.assured_draws is None

    def __repr__(self) -> str:
        return "Health(confidential)"


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

    @abstractmethod
    def neighbours(self, share: PerRecord) -> Neighbours:
        """The pairs of posteriors that `loss_constant` compares, for their Rényi divergence."""


@dataclass(frozen=True, repr=False)
class Sample:
    """Draws from a weighted posterior."""

    parameters: Parameters
    health: Health
    influence: Callable[[], Influence] | None = None  # where the posterior has a closed form


class Model(ABC):
    """A Bayesian regression of one outcome on public predictors: a check and four functions.

    What else a model may offer has classes of its own: faster reductions (`models.reductions.Reducing`),
    corrected draws (`models.correctable`), a risk that is public (`models.wrapped.PublicRisk`).
    docs/programs.md, "A model of your own", has one to run.
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


@runtime_checkable
class Confining(Protocol):
    """A model that can draw each outcome inside a range of its own, however far out that lies."""

    def predict_inside(
        self, design: Design, parameters: Parameters, interval: Interval, uniforms: PerRecord
    ) -> PerRecord:
        """One synthetic outcome per record from p(x | z, θ, x in its interval), at a single draw."""


@runtime_checkable
class Mergeable(Protocol):
    """A model whose weighted posterior follows from what leaves of records add up to: it goes leaf by leaf.

    `sample` is `draw` of `posterior_of` what all leaves say, merged from the first to the last.
    """

    name: str

    def sum_leaf(self, design: Design, power: PerRecord, *, first: bool) -> Array:
        """What one leaf of records says of the posterior; the first one may go on from the prior."""

    def merge_sums(self, one: Array, other: Array) -> Array:
        """What two parts of a table say together."""

    def posterior_of(self, merged: Array, power: float) -> Any:
        """The posterior that all leaves make, given the sum of their powers; small and picklable."""

    def draw(self, posterior: Any, *, draws: int, key: Key) -> Sample:
        """Draws of a posterior; what records do to it is left open."""

    def influence(self, design: Design, power: PerRecord, posterior: Any, refit: Any = None) -> Influence:
        """What some of the records do to a posterior; `refit` as in `models.conjugate`."""


@runtime_checkable
class Blockwise(Protocol):
    """A model whose posterior without several records at once has a closed form (docs/maths.md, "Units")."""

    def without_units(
        self, design: Design, power: PerRecord, share: PerRecord, unit: Units
    ) -> tuple[Neighbours, PerRecord]:
        """For each record the neighbour that lacks all shares of its unit, and c of its unit's exact loss."""
