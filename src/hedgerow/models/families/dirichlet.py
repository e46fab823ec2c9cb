"""Classes by public cells: exact Dirichlet–multinomial (docs/maths.md, "Cells").

Each cell of the predictors' categories has shares of the classes of its own, uniform beforehand unless
`concentration` says otherwise. A record adds its power to its class in its cell, so that the weighted
posterior is Dirichlet, its draws are independent and exact, and so are losses and Rényi divergences.

    >>> from hedgerow.models.families import model_named
    >>> model_named("dirichlet", None).name
    'dirichlet'
"""

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, LogLik, LogMass, PerRecord
from hedgerow.errors import SettingError, is_finite
from hedgerow.models.base import Domain, Health, Influence, Model, Parameters, Sample, Units
from hedgerow.models.families.classes import Classes
from hedgerow.models.families.definition import LOGITS, FamilyDefinition, format_setting
from hedgerow.models.reductions import blocked_extremes
from hedgerow.models.scored import Interval, Linear, Sensitive
from hedgerow.numerics.blocks import CellBlockNeighbours
from hedgerow.numerics.dirichlet import DirichletNeighbours, log_gamma_step
from hedgerow.numerics.leaves import leaves_of
from hedgerow.numerics.renyi import Neighbours
from hedgerow.numerics.scoring import Extremes
from hedgerow.randomness import Key, Stream
from hedgerow.tables.design import Design

_MOST_NUMBERS = 100_000_000  # 0.8 GB of draws
_BLOCK = 1 << 16  # numbers drawn at once
_ENDS = 0.1, 1e6  # below it shares underflow, above it the data say nothing


@dataclass(frozen=True)
class CellClasses(Classes):
    """Declared classes, whose shares are those of a cell."""

    crossed: ClassVar[bool] = True

    @property
    def concentration(self) -> float:
        """Records of each class in each cell beforehand."""
        given = self.setting("concentration")
        return 1.0 if given is None else float(given)

    def describe(self, design: Design) -> str:
        said = super().describe(design)
        if "concentration" in dict(self.settings):
            return said
        return f"{said}, concentration 1".removeprefix(", ")


@dataclass(frozen=True, repr=False)
class CellInfluence(Influence):
    """A record's class in its cell: what it adds is its power, and the rest stays."""

    power: PerRecord
    own: PerRecord  # of its class in its cell: prior and powers
    whole: PerRecord  # of all classes of its cell

    @property
    def leverage(self) -> PerRecord:  # type: ignore[override]  # derived, where others have a field
        return self.power / self.whole

    @property
    def pull(self) -> PerRecord:  # type: ignore[override]  # likewise
        return self.power / self.own

    def loss_constant(self, share: PerRecord) -> PerRecord:
        own, whole = self.own - share, self.whole - share
        with np.errstate(invalid="ignore"):
            constant = log_gamma_step(own, share) - log_gamma_step(whole, share)
        return np.where(own > 0, constant, -np.inf)

    def neighbours(self, share: PerRecord) -> Neighbours:
        return DirichletNeighbours(share, self.own - share, self.whole - share)


@dataclass(frozen=True)
class Dirichlet(Model):
    """The classes of a domain, with shares by cell; parameters: `shares`, a row of classes for each cell."""

    classes: CellClasses
    name: str = "dirichlet"

    @property
    def domain(self) -> Domain:
        return self.classes

    def check(self, design: Design) -> None:
        self.classes.check_values(design)

    def _places(self, design: Design) -> Array:
        return np.array(self.classes.places(design))

    def _cells(self, design: Design) -> tuple[NDArray[np.int64], int]:
        if design.crossing is None:
            raise SettingError("The dirichlet family needs a design whose predictors make cells.")
        return design.crossing.codes, design.crossing.count

    def _classes_of(self, design: Design) -> NDArray[np.intp]:
        """The number of each record's class; any, where its value is not there."""
        places = self._places(design)
        return np.minimum(np.searchsorted(places, design.values), len(places) - 1)

    def concentrations(self, design: Design, power: PerRecord) -> Array:
        """Prior and powers of each class in each cell: the parameters of the posterior."""
        places = self._flat_places(design)
        sums = [self._count(design, places[rows], power[rows]) for rows in leaves_of(design.records)]
        return self.posterior_of(reduce(self.merge_sums, sums))

    def _flat_places(self, design: Design) -> NDArray[np.int64]:
        """The place of each record's class in its cell, among all of them."""
        return self._cells(design)[0] * len(self._places(design)) + self._classes_of(design)

    def _count(self, design: Design, places: NDArray[np.int64], power: PerRecord) -> Array:
        shape = self._cells(design)[1], len(self._places(design))
        added = np.bincount(places, weights=power, minlength=shape[0] * shape[1])
        return np.asarray(added.reshape(shape), dtype=np.float64)

    def sum_leaf(self, design: Design, power: PerRecord, *, first: bool) -> Array:
        """The powers of each class in each cell."""
        return self._count(design, self._flat_places(design), power)

    def merge_sums(self, one: Array, other: Array) -> Array:
        return one + other

    def posterior_of(self, merged: Array, power: float = np.nan) -> Array:
        """The concentrations, to which powers alone are added."""
        return np.asarray(self.classes.concentration + merged, dtype=np.float64)

    def sample(self, design: Design, power: PerRecord, *, draws: int, key: Key) -> Sample:
        found = self.concentrations(design, power)
        sample = self.draw(found, draws=draws, key=key)
        return replace(sample, influence=lambda: self.influence(design, power, found))

    def draw(self, posterior: Array, *, draws: int, key: Key) -> Sample:
        """Draws of the shares; what records do to them is left open."""
        found = posterior
        if draws * found.size > _MOST_NUMBERS:
            raise SettingError(
                f"{len(found)} cells of {found.shape[1]} classes in {draws} draws are {draws * found.size} "
                f"numbers; at most {_MOST_NUMBERS} are held. Use fewer predictors, or fewer draws."
            )
        shares = draw_gammas(found, draws, key.child("shares").stream())
        shares /= shares.sum(axis=2, keepdims=True)
        health = Health(sampler="exact", independent=True, effective_draws=float(draws))
        return Sample({"shares": shares}, health)

    def influence(self, design: Design, power: PerRecord, posterior: Array, refit: Any = None) -> Influence:
        """What records do to a posterior of them, or of more than them."""
        codes = self._cells(design)[0]
        own = posterior[codes, self._classes_of(design)]
        return CellInfluence(power, own, posterior.sum(axis=1)[codes])

    def without_units(
        self, design: Design, power: PerRecord, share: PerRecord, unit: Units
    ) -> tuple[Neighbours, PerRecord]:
        """Powers less in each class and cell of a unit, and in each of its cells' totals."""
        full, cells = self.concentrations(design, power), self._cells(design)[0]
        places = cells * full.shape[1] + self._classes_of(design)
        terms = []
        for sign, place, base in ((1.0, places, full.ravel()), (-1.0, cells, full.sum(axis=1))):
            pairs, member = np.unique(np.column_stack([unit, place]), axis=0, return_inverse=True)
            added = np.bincount(member.ravel(), share, minlength=len(pairs)).astype(np.float64)
            terms.append((np.full(len(pairs), sign), base[pairs[:, 1]] - added, added, pairs[:, 0]))
        signs, bases, powers, owners = (np.concatenate(part) for part in zip(*terms, strict=True))
        found = CellBlockNeighbours(signs, bases, powers, owners, unit, np.bincount(unit, share)[unit])
        return found, found.loss_constant()[unit]

    def log_lik(self, design: Design, parameters: Parameters, records: slice) -> LogLik:
        codes = self._cells(design)[0][records]
        return np.log(parameters["shares"][:, codes, self._classes_of(design)[records]])

    def log_mass(self, design: Design, parameters: Parameters, interval: Interval, records: slice) -> LogMass:
        inside = self._inside(design, interval)[records]
        shares = parameters["shares"][:, self._cells(design)[0][records]]
        with np.errstate(divide="ignore"):
            mass = np.log(np.minimum((shares * inside).sum(axis=2), 1.0))
        return np.where(inside.all(axis=1), 0.0, mass)

    def _inside(self, design: Design, interval: Interval) -> NDArray[np.bool_]:
        places = self._places(design)
        return (places >= interval.lower[:, None]) & (places <= interval.upper[:, None])

    def predict(self, design: Design, parameters: Parameters, uniforms: PerRecord) -> PerRecord:
        below = np.cumsum(parameters["shares"], axis=1)[self._cells(design)[0], :-1]
        return self._places(design)[(uniforms[:, None] > below).sum(axis=1)]

    def extremes(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> Extremes:
        if not isinstance(sensitive, Linear) or sensitive.form.uses_mass:
            return blocked_extremes(self, design, parameters, sensitive, interval)
        own = self._cells(design)[0], self._classes_of(design)
        ends = [np.log(end(parameters["shares"], axis=0)[own]) for end in (np.min, np.max)]
        low, high = (sensitive.density * end + sensitive.constant for end in ends)
        return Extremes(np.minimum(low, high), np.maximum(low, high))

    def absolute(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> PerRecord:
        return self.extremes(design, parameters, sensitive, interval).absolute

    def mean_mass(self, design: Design, parameters: Parameters, interval: Interval) -> PerRecord:
        shares = parameters["shares"].mean(axis=0)[self._cells(design)[0]]
        return np.minimum((shares * self._inside(design, interval)).sum(axis=1), 1.0)


def draw_gammas(shapes: Array, draws: int, stream: Stream) -> Array:
    """Independent gamma numbers of rate 1 for each shape: Marsaglia and Tsang's rejection, exact.

    A shape below 1 takes a number of one more, times a power of a uniform.
    """
    raised = np.where(shapes < 1, shapes + 1, shapes).ravel() - 1 / 3
    found = np.empty((draws, shapes.size))
    step = max(1, _BLOCK // shapes.size)
    for start in range(0, draws, step):
        block = found[start : start + step].reshape(-1)  # a view
        scale = np.tile(raised, len(block) // len(raised))
        left = np.arange(len(block))
        while left.size:
            normal, uniform = stream.normal(left.size), stream.uniform(left.size)
            d = scale[left]
            cube = (1 + normal / np.sqrt(9 * d)) ** 3
            positive = cube > 0
            log_cube = np.log(np.where(positive, cube, 1.0))
            kept = positive & (np.log(uniform) < normal**2 / 2 + d * (1 - cube + log_cube))
            block[left[kept]] = (d * cube)[kept]
            left = left[~kept]
    low = np.flatnonzero(shapes.ravel() < 1)
    if low.size:
        found[:, low] *= stream.uniform((draws, low.size)) ** (1 / shapes.ravel()[low])
    return found.reshape(draws, *shapes.shape)


def _check_concentration(family: str, value: Any) -> None:
    low, high = _ENDS
    if not is_finite(value) or not low <= value <= high:
        raise SettingError(
            f"Family '{family}': concentration must lie between {low:g} and {high:g}, got "
            f"{format_setting(value)}."
        )


def _no_program(program: Any, eta: Any) -> Any:
    raise SettingError("The dirichlet family has a closed form and no program.")


FAMILIES = (
    FamilyDefinition(
        "dirichlet",
        domain=CellClasses,
        prior=LOGITS,
        options=("lower", "upper", "levels", "concentration"),
        checks={"concentration": _check_concentration},
        response=_no_program,
        simulate=lambda random, z: (
            1 + np.argmax(np.outer(z - 2, [0.0, 1.0, -0.5]) + random.gumbel(size=(len(z), 3)), axis=1)
        ),
    ),
)
