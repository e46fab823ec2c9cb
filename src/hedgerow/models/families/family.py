"""The named families that have no closed form: one word, or `Family(word, ...)` with public settings.

Each is a regression of one parameter (a mean, a scale, a logit) on the design matrix, written as a NumPyro
program. Its draws are independent where proposals about the mode are good enough, and those of NUTS
elsewhere. docs/families.md has a section for each.

>>> import hedgerow as hr
>>> hr.Family("gamma", upper=100.0).domain.support
Support(lower=0.0, upper=100.0, above=True, below=False, spike=None)
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, PerRecord
from hedgerow.errors import SettingError
from hedgerow.models.base import Domain, Health, Parameters, Sample
from hedgerow.models.exact import Regression
from hedgerow.models.families.definition import SPIKE, FamilyDefinition, Numbers, find_definition
from hedgerow.models.families.dirichlet import CellClasses, Dirichlet
from hedgerow.models.prior import Prior, is_intercept
from hedgerow.models.programs.sampled import Sampled
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.tables.values import Declared

if TYPE_CHECKING:
    from hedgerow.models.programs.nuts import SamplerName
    from hedgerow.models.programs.potential import Potential, Traced

OPTIONS = ("scale", "lower", "upper", "spike", "components", "levels", "df", "concentration", "rounded")


@dataclass(frozen=True)
class Family(Sampled):
    """A family by name, with what is publicly known about its outcome.

    Parameters
    ----------
    name
        One of docs/families.md, for instance "gamma", "zero_lognormal" or "ordinal".
    prior
        A `Prior` on the scale of the regression; its intercept is meant at the predictors' means.
    scale
        The usual size of amounts that "student" and "asinh" are for, in the outcome's units.
    lower, upper
        Public ends of the support. The distribution is restricted to them; for "beta" they are its ends
        (0 and 1 by default), for "ordinal" the first and last class.
    spike
        Where a `zero_` family has its point mass: 0 unless said otherwise.
    components
        How many lognormals "lognormal_mixture" has; 2 unless said otherwise.
    levels
        The classes of "ordinal" in order, or the two of "bernoulli": public, not read from the data.
    df
        Degrees of freedom of "student" and "log_student"; estimated unless given.
    concentration
        How many records of each class "dirichlet" adds to each cell beforehand; 1 unless given.
    rounded
        The step to which continuous values are known to be rounded, such as 100: a value stands for the
        interval that is rounded to it, and copies are rounded in the same way.
    sampler
        "independent": independent draws by rejection, and those of nutpie's NUTS where the proposals do not
        pass the rule for them. "nutpie" or "numpyro": that NUTS in any case.

    Formal guarantees
    -----------------
    Priors, supports and levels never look at the outcome. An ordered category brings its classes with its
    type, which is public only if it was not made from the data: the guarantee then names them and says that
    it rests on that. Which way the draws came about depends on the confidential data, so that statements
    read the same either way: as approximate ones, resting on the draws that every Markov chain must have.
    """

    name: str
    prior: Prior | None = None
    scale: float | None = field(default=None, kw_only=True)
    lower: float | None = field(default=None, kw_only=True)
    upper: float | None = field(default=None, kw_only=True)
    spike: float | None = field(default=None, kw_only=True)
    components: int | None = field(default=None, kw_only=True)
    levels: tuple[Any, ...] | None = field(default=None, kw_only=True)
    df: float | None = field(default=None, kw_only=True)
    concentration: float | None = field(default=None, kw_only=True)
    rounded: float | None = field(default=None, kw_only=True)
    _samplers: ClassVar[tuple[str, ...]] = ("independent", "nutpie", "numpyro")
    sampler: "SamplerName" = field(default="independent", kw_only=True)
    _domain: Numbers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        family = self._definition
        if self.prior is not None and not isinstance(self.prior, Prior):
            raise SettingError(f"prior must be a Prior, got {type(self.prior).__name__}.")
        if family.uniform_level and self.prior is not None and self.prior.intercept is not None:
            raise SettingError(
                f"Family '{self.name}' has shares of its classes in place of an intercept, all alike likely "
                "beforehand. Leave intercept= out of its prior."
            )
        spiked = self.name != family.name
        allowed = (*family.options, *(("spike",) if spiked else ()))
        allowed += () if family.domain.whole else ("rounded",)
        given = self.settings()
        wrong = [name for name in given if name not in allowed]
        if wrong:
            raise SettingError(
                f"Family '{self.name}' has no setting {', '.join(wrong)}; it takes {', '.join(allowed)}."
            )
        if family.exact is not None and not family.exact_options and not spiked and not given:
            raise SettingError(
                f"Family('{self.name}') is for a declared lower=, upper= or rounded=. Without them it has a "
                f"closed form: say family='{self.name}'."
            )
        self._check_sampler()
        for name, check in family.checks.items():
            if name in given:
                check(self.name, given[name])
        domain = family.domain(family=self.name, spiked=spiked, settings=tuple(given.items()))
        if self.levels is not None:
            levels = tuple(self.levels)
            object.__setattr__(self, "levels", levels)
            domain = replace(domain, settings=tuple((given | {"levels": levels}).items()))
        object.__setattr__(self, "_domain", domain)

    @property
    def domain(self) -> Domain:
        return self._domain

    @property
    def exact_model(self) -> Regression | None:
        """The closed form of its values apart from a spike; None where these settings have none."""
        family, given = self._definition, self.settings()
        if family.exact is None or set(given) - {"spike", *family.exact_options}:
            return None
        numbers = {name: float(given[name]) for name in family.exact_options}
        return family.exact(prior=self.prior or Prior(), **numbers)

    @property
    def by_cells(self) -> Dirichlet | None:
        """The closed form of classes by cells; None for other families."""
        if not isinstance(self._domain, CellClasses):
            return None
        if self.prior is not None or self.sampler != "independent":
            raise SettingError(
                f"Family '{self.name}' takes no prior and no sampler: it has a closed form, and "
                "concentration= says what is known beforehand. Leave them out."
            )
        return Dirichlet(self._domain)

    def settings(self) -> dict[str, Any]:
        """What was declared, by name: the part of a plan that goes with the family's name."""
        return {name: getattr(self, name) for name in OPTIONS if getattr(self, name) is not None}

    @property
    def spike_at(self) -> float | None:
        """Where a `zero_` family has its point mass; None for others."""
        return self._domain.spike

    def check(self, design: Design) -> None:
        own_level = self._definition.own_level
        if own_level and not any(is_intercept(design, j) for j in range(len(design.columns))):
            raise SettingError(
                f"The {self.name} family has a level of its own and needs a formula with an intercept. Leave "
                "out the '0 +' or '- 1'."
            )
        self.full_prior.moments(_centre_predictors(design) if own_level else design)
        self._domain.check_values(design)

    def part_of(self, design: Design, rows: NDArray[np.int64]) -> Design:
        """Some of the records, about the whole table's means."""
        present = None if design.present is None else design.present[rows]
        part = replace(design, values=design.values[rows], matrix=design.matrix[rows], present=present)
        vars(part)["means"] = design.means
        return part

    def _draw(self, potential: "Potential", draws: int, key: Key) -> Sample:
        """Independent draws where the rule trusts them, else NUTS.

        A censored posterior always takes NUTS: it has edges, and its claim holds for every table alike.
        """
        if self.sampler == "independent" and potential.window is None:
            from hedgerow.models.families import independent

            positions = independent.draw(potential, draws=draws, key=key.child("independent"))
            if positions is not None:
                assured = float(self.minimum_ess)
                health = Health("independent", True, float(draws), assured_draws=assured)
                return Sample(potential.constrain(positions), health)
        return super()._draw(potential, draws, key)

    @property
    def _definition(self) -> FamilyDefinition:
        return find_definition(self.name)

    @property
    def full_prior(self) -> Prior:
        """What was given, and the family's default where nothing was."""
        default = self._definition.prior
        return default if self.prior is None else self.prior.over(default)

    def _traced(self, design: Design) -> "Traced":
        try:
            from hedgerow.models.families.program import RESPONSE, FamilyProgram
            from hedgerow.models.programs import inspection
        except ModuleNotFoundError as missing:
            raise SettingError(
                f"family='{self.name}' needs '{missing.name}', which is not installed. Install "
                "hedgerow[programs]."
            ) from None
        prior, public = self.full_prior, (self._definition, self._domain, self._domain.places(design))
        program = FamilyProgram(*public, prior.pair("intercept"), prior.residual, prior.residual_df)
        shapes = tuple(
            (name, tuple(one.shape for one in value) if isinstance(value, tuple) else value.shape)
            for name, value in self._arrays(design).items()
        )
        return inspection.read_own(program, RESPONSE, shapes)

    def _arrays(self, design: Design) -> dict[str, Any]:
        from hedgerow.models.families.program import coefficient_arrays

        regressed = _centre_predictors(design) if self._definition.own_level else design
        arrays: dict[str, Any] = {"X": regressed.matrix}
        if regressed.columns:
            arrays["beta"] = coefficient_arrays(self.full_prior, regressed)
        if self._domain.spiked:
            arrays |= {"W": design.matrix, "spike": coefficient_arrays(SPIKE, design)}
        return arrays

    def _values(self, design: Design) -> Array:
        return design.values

    def predict(self, design: Design, parameters: Parameters, uniforms: PerRecord) -> PerRecord:
        values = super().predict(design, parameters, uniforms)
        if self._domain.rounded is None:
            return values
        step = Declared("number", multiple_of=self._domain.rounded)
        return step.nearest(values, self._domain.support)  # in as many digits as the step is written with


def _centre_predictors(design: Design) -> Design:
    """The predictors about their means, without an intercept: for models with a level of their own."""
    kept = [j for j in range(len(design.columns)) if not is_intercept(design, j)]
    matrix = design.matrix[:, kept] - design.means[kept]
    centred = replace(design, matrix=matrix, columns=tuple(design.columns[j] for j in kept))
    vars(centred)["hidden"] = frozenset(place for place, j in enumerate(kept) if j in design.hidden)
    return centred
