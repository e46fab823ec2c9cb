"""What a correction asks of a model (`hedgerow.mechanism.debias`): coordinates, and a weighted estimate.

A correction puts simulated tables through the whole recipe and moves a draw until their weighted estimates
come out where the draw was. These are classes to inherit from and not protocols: a model that merely has
methods of the same names, a censored one around a correctable one for instance, must not be corrected.
"""

from abc import abstractmethod
from typing import Any, ClassVar

from hedgerow.arrays import Array, PerRecord
from hedgerow.errors import SettingError
from hedgerow.models.base import Model, Parameters
from hedgerow.randomness import Key
from hedgerow.tables.design import Design


class Correctable(Model):
    """A model whose draws can be corrected."""

    @abstractmethod
    def free(self, design: Design, parameters: Parameters) -> Array:
        """One draw as a vector in which corrections add up: coefficients, logarithms of scales."""

    @abstractmethod
    def natural(self, design: Design, free: Array) -> Parameters:
        """The parameters of one draw from its vector: the reverse of `free`."""

    @abstractmethod
    def stand_in(self, design: Design, near: Parameters) -> "StandIn":
        """The model that goes through the recipe on simulated tables; a quicker one where sampling is slow.

        `near` is where its posterior will lie, roughly.
        """


class Differentiable(Correctable):
    """A correctable model whose weighted posterior is a potential with gradients (`programs.potential`)."""

    @abstractmethod
    def potential(self, design: Design, power: PerRecord) -> Any:
        """The weighted posterior as samplers see it."""


class StandIn(Correctable):
    """A model quick enough to go through the recipe on simulated tables itself."""

    tables: ClassVar[int] = 20  # simulated tables a correction takes; `chance` spares some
    doubted_tables: ClassVar[int] = 0  # as many instead where it turns out to tell little; 0: it always tells

    def stand_in(self, design: Design, near: Parameters) -> "StandIn":
        return self

    @abstractmethod
    def centre(self, design: Design, power: PerRecord, *, key: Key) -> Array:
        """The weighted estimate that draws of the weighted posterior scatter about, as `free` writes it."""

    def chance(self, design: Design, truth: Parameters) -> Array | None:
        """How far chance alone moved an estimate on a table drawn at `truth`: of mean zero, exactly.

        Taken off weighted estimates it spares simulated tables; None: there is no closed form.
        """
        return None

    def within(self, design: Design, free: Array) -> Array:
        """The nearest parameters that the model allows."""
        return free


def require_correctable(model: Model) -> Correctable:
    """The model itself; refused where its draws cannot be corrected."""
    if not isinstance(model, Correctable):
        raise SettingError(
            f"debias: the {model.name} model has no weighted estimate to correct with. Use a named "
            "family or a Program, or leave debias out."
        )
    return model


def require_stand_in(model: Model) -> StandIn:
    """The model itself; refused where it is not one for simulated tables."""
    if not isinstance(model, StandIn):
        raise SettingError(
            f"debias: the {model.name} model takes too long for simulated tables. Use what its stand_in "
            "returns."
        )
    return model
