"""Strict differential privacy: for every table, not for the one at hand (docs/strict.md).

`Strict(limits=…)` releases sums of clipped outcomes with noise, once, and any number of copies follow from
them (`limits`; the mechanism is `mechanism.noisy`). `Strict(box)` samples a posterior over a public box of
parameters, with weights that bound each record's factor (`box`).

    >>> Strict(limits=(1000, 1e9)).described()
    'values lie between 1,000 and 1,000,000,000; others are moved to the nearer limit'
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, get_args

import numpy as np

from hedgerow.arrays import PerRecord
from hedgerow.errors import SettingError, format_value, is_real
from hedgerow.models.base import Model
from hedgerow.models.exact import Regression
from hedgerow.models.families.family import Family
from hedgerow.models.wrapped import Restricted
from hedgerow.privacy.bounds import GAUSSIAN, STATISTICS, STRICT, Bound
from hedgerow.privacy.claims.neighbours import NEIGHBOURS, WITHHELD
from hedgerow.privacy.ranges import Everywhere, Radius, Range
from hedgerow.privacy.standards import Standard, require_public
from hedgerow.privacy.strict.box import OUTWARD, Boxed, BoxedChain, StrictWeights
from hedgerow.privacy.strict.limits import (
    Limits,
    Margin,
    Noise,
    Relation,
    amounts_of,
    check_limits,
    check_policy,
    check_shares,
    is_of_classes,
    response_limits,
    widest_set,
)

__all__ = ["OUTWARD", "Bounded", "Boxed", "BoxedChain", "Margin", "Strict", "StrictWeights"]

_LABELS = {"withheld": "Strict, withheld", "replaced": "Strict, replaced", "range": "Strict, in range"}


class Bounded(Standard):
    """A standard with a bound of its own that holds for every table: weights min(1, ε/o_i), or noise."""

    bound: ClassVar[Bound]
    neighbour: ClassVar[str] = WITHHELD

    @property
    def by_statistics(self) -> bool:
        """Whether copies follow from noisy statistics, without weights."""
        return False

    @abstractmethod
    def restrict(self, model: Model, *, default_prior: bool) -> Restricted:
        """The model whose log likelihood of each record oscillates by a known o_i (`public_risk`)."""

    def power(self, alpha: PerRecord, known: PerRecord) -> PerRecord:
        return alpha

    def sensitive(self, alpha: PerRecord, known: PerRecord, log_lik: Any, log_mass: Any) -> Any:
        return alpha * log_lik


@dataclass(frozen=True)
class Strict(Bounded):
    """Pure differential privacy: by noisy statistics within public `limits`, or over a public `box`.

    `limits` are the smallest and the largest value of the outcome that matter, in its own units: others are
    moved to the nearer one. For several protected columns they go by name, {"wage": (1000, 1e7)}, and classes
    have none; `shares` say how ε is divided among columns, evenly unless given. `relation` says which tables
    ε compares: one outcome "withheld" (blank), one "replaced" by any other value, or replaced by another
    value of the same public set of `range` ("range": Blowfish privacy). Where public columns or numbers say
    every record's set (`Bounds`, `Brackets` with a column), a value outside it is moved to its nearer end,
    and `inside=True` draws copies inside them. `margin` spends a share of ε on the outcome's distribution,
    `noise="gaussian"` gives (ε, δ) instead of pure ε, and "auto" whichever promises the smaller error of the
    line, from public things.

    `box` gives a lower and an upper end for every design column and for "sigma", on the model's scale
    (log x for the lognormal): {"Intercept": (0, 2), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}. Several
    protected columns have one each, by name: {"wage": {"Intercept": (5, 9), …}, "bonus": {…}}. `reason` says
    why the owner may know limits or box without the data; it is printed in the guarantee.

    Formal guarantees
    -----------------
    By statistics: all copies together are ε-differentially private under the relation, for every table with
    these predictors and this number of records; what is ε withheld is 2ε replaced. With Gaussian noise they
    are (ε, δ)-differentially private instead, and what is (ε, δ) withheld is (2ε, (1 + e^ε)δ) replaced.
    By a box: one copy is ε-differentially private for one outcome withheld and 2ε for one outcome replaced by
    any value, where ε is the target per copy, up to the floating-point arithmetic of the sampler.
    Predictors, membership and the number of records are public. Neither whether there is a copy nor its type
    depends on the outcome: a missing one counts as withheld, one that the model does not describe (zero for
    the lognormal, but not for its `zero_` form) is moved to a limit or, with a box, counts as withheld, and
    copies hold doubles unless something else is declared (`Declared`). It rests on limits or box having been
    chosen without the outcome, which only the owner can vouch for.
    """

    box: Mapping[str, Any] | None = None
    reason: str = ""
    limits: Limits | None = field(default=None, kw_only=True)
    relation: Relation = field(default="withheld", kw_only=True)
    range: Range = field(default_factory=Everywhere, kw_only=True)
    margin: Margin | None = field(default=None, kw_only=True)
    noise: Noise = field(default="laplace", kw_only=True)
    inside: bool = field(default=False, kw_only=True)
    shares: Mapping[str, float] | None = field(default=None, kw_only=True)
    label: ClassVar[str] = "Strict"
    bound: ClassVar[Bound] = STRICT

    def __post_init__(self) -> None:
        object.__setattr__(self, "range", self.range or Everywhere())  # None: no range
        if (self.box is None) == (self.limits is None):
            raise SettingError(
                "Strict needs limits (--limits 1000,1e9, limits=(1000, 1e9)), for the normal, lognormal and "
                "asinh families, or a box of parameters."
            )
        if self.box is not None:
            self._check_box(self.box)
            return
        object.__setattr__(self, "limits", check_limits(self.limits))
        object.__setattr__(self, "shares", check_shares(self.shares))
        for name, kind in (("relation", Relation), ("noise", Noise)):
            if getattr(self, name) not in get_args(kind):
                words = ", ".join(map(repr, get_args(kind)))
                raise SettingError(
                    f"Strict: {name} must be one of {words}, got {format_value(getattr(self, name))}."
                )
        if self.margin is not None and not isinstance(self.margin, Margin):
            raise SettingError(
                f"Strict: margin must be a Margin, got {format_value(self.margin)}. Use Margin(0.25)."
            )
        if not isinstance(self.range, Range):
            raise SettingError(f"Strict: range must be a Range, got {type(self.range).__name__}.")
        if (self.relation == "range") == isinstance(self.range, Everywhere):
            raise SettingError(
                "Strict: relation='range' and a range go together: which values may an outcome be replaced "
                "within? For instance relation='range', range=Radius(0.4, 1.8)."
            )
        if self.relation == "range":
            check_policy(self.range)
        self._check_inside()
        if self.by_name:
            self._check_named()
        elif self.shares is not None:
            raise SettingError("Strict: shares divide ε among columns. Give limits by column as well.")
        # Another relation and another noise make another claim.
        object.__setattr__(self, "label", _LABELS[self.relation])
        object.__setattr__(self, "neighbour", NEIGHBOURS[self.label])
        object.__setattr__(self, "weighted", False)
        object.__setattr__(self, "bound", STATISTICS if self.noise == "laplace" else GAUSSIAN)

    def _check_inside(self) -> None:
        if not isinstance(self.inside, bool):
            raise SettingError(f"inside must be True or False, got {format_value(self.inside)}.")
        if not self.inside:
            return
        require_public(self.range)
        if self.margin is not None:
            raise SettingError(
                "Strict: inside=True takes no margin: the public classes say how values are distributed. "
                "Leave one of them out."
            )

    def _check_named(self) -> None:
        """What sums of several columns have no price for."""
        for what, asked in {
            "relation='range'": self.relation == "range",
            "inside=True": self.inside,
            f"noise='{self.noise}'": self.noise != "laplace",
        }.items():
            if asked:
                raise SettingError(
                    f"Strict: {what} goes with limits of one column, got limits by column. Leave it out, or "
                    "protect one column with limits=(low, high)."
                )

    def _check_box(self, box: Mapping[str, Any]) -> None:
        usual = {
            name: Strict.__dataclass_fields__[name].default
            for name in ("relation", "margin", "noise", "inside", "shares")
        }
        given = [name for name, value in usual.items() if getattr(self, name) != value]
        if given or not isinstance(self.range, Everywhere):
            raise SettingError(
                f"Strict: {(given or ['range'])[0]} goes with limits, not with a box. Use "
                "Strict(limits=(low, high), …)."
            )
        if any(isinstance(part, Mapping) for part in box.values()):
            alone = [name for name, part in box.items() if not isinstance(part, Mapping)]
            if alone:
                raise SettingError(f"Strict: '{alone[0]}' needs a box of its own, as the other columns have.")
            ends: Mapping[str, Any] = {str(name): _read_box(part) for name, part in box.items()}
        else:
            ends = _read_box(box)
        object.__setattr__(self, "box", MappingProxyType(ends))

    def of(self, outcome: str) -> "Strict":
        """The standard with the box of one of several columns."""
        box = self.box or {}
        if not isinstance(box.get(outcome), Mapping):
            raise SettingError(
                f"Strict: '{outcome}' needs a box of its own, as every protected column does: "
                f'{{"{outcome}": {{"Intercept": (low, high), …, "sigma": (low, high)}}, …}}.'
            )
        return Strict(box[outcome], self.reason)

    @property
    def by_column(self) -> bool:
        """Whether the box is one of several columns."""
        return any(isinstance(part, Mapping) for part in (self.box or {}).values())

    @property
    def by_statistics(self) -> bool:
        return self.limits is not None

    @property
    def by_name(self) -> bool:
        """Whether limits go by column, as those of several do."""
        return isinstance(self.limits, Mapping)

    @property
    def pair(self) -> tuple[float, float] | None:
        """The limits of the only column; None where there are none, or they go by name."""
        return None if self.limits is None or isinstance(self.limits, Mapping) else self.limits

    def described(self, spike: float | None = None) -> str:
        """Limits or box in words."""
        if isinstance(self.limits, Mapping):
            sides = "; ".join(
                f"{name} {_say(low)} to {_say(high)}" for name, (low, high) in self.limits.items()
            )
            moved = f"amounts lie between limits ({sides}); others are moved to the nearer limit"
            parts = ", ".join(f"{name} {share:g}" for name, share in (self.shares or {}).items())
            return (moved if sides else "no limits") + (f"; shares of ε: {parts}" if parts else "")
        if self.limits is not None:
            (low, high), apart = self.limits, "" if spike is None else f", or at {spike:g}"
            between = f"values lie between {_say(low)} and {_say(high)}{apart}"
            return f"{between}; others are moved to the nearer limit"
        if self.by_column:
            boxes = (f"of '{name}': {self.of(name).described()}" for name in self.box or {})
            return "; ".join(boxes)
        sides = ", ".join(f"{name} in [{low:g}, {high:g}]" for name, (low, high) in (self.box or {}).items())
        return f"parameters lie in the box {sides}"

    def policy(self) -> str:
        """Which values relation="range" keeps apart, in words; empty for the other relations."""
        if self.relation != "range":
            return ""
        if isinstance(self.range, Radius):
            ratio = self.range.b / self.range.a
            return f"two values belong to one set if neither is more than {ratio:g} times the other"
        moved = "; others are moved to its nearer end" if self.range.ends_public else ""
        return f"the set of an outcome holds the values {self.range.lies()}{moved}"

    def assumption(self, spike: float | None = None) -> str:
        said = [self.described(spike), self.policy(), f"reason: {self.reason or 'none given'}"]
        return "; ".join(filter(None, said))

    def restrict(self, model: Model, *, default_prior: bool) -> Boxed:
        """The model on the box; its default prior is centred on the box, which is public."""
        if self.box is None:
            raise SettingError(
                "Strict(limits=…) restricts no model: its copies follow from noisy statistics."
            )
        if self.by_column:
            raise SettingError(
                "Strict: a box by columns goes with several protected columns. Give its inside."
            )
        if not isinstance(model, Regression):
            raise SettingError(
                f"Strict needs a model with a closed form (normal, lognormal, asinh), not {model.name}. For "
                "others there is Censored(), which holds up to the sampler's error."
            )
        return Boxed(model, self.box, default_prior)

    def check_model(self, model: Model, outcome: str | None = None) -> None:
        """Refuse a family without noisy statistics, and limits or sets that do not fit it."""
        amounts = amounts_of(model)
        if amounts is None:
            of = "" if outcome is None else f" of '{outcome}'"
            told = model.settings() if isinstance(model, Family) else {}
            told = {name: told[name] for name in ("lower", "upper", "rounded") if name in told}
            given = f" with {', '.join(f'{name}={value:g}' for name, value in told.items())}" if told else ""
            raise SettingError(
                f"Strict(limits=…){of} needs the family normal, lognormal or asinh, without lower and upper "
                "ends or rounding (Declared has range_min, range_max, multiple_of), or beta, or one of them "
                f"with a spike (zero_lognormal), not {model.name}{given}; by name also classes (bernoulli, "
                "ordinal, categorical). Counts may be zero_lognormal with Declared('integer'). For others "
                "there is Censored(), which holds up to the sampler's error."
            )
        if self.relation == "range" and amounts is not model:
            raise SettingError(
                "Strict: relation='range' keeps amounts of one set apart, and would leave open which values "
                f"of the {model.name} family lie at its spike. Use relation='withheld' or 'replaced'."
            )
        if self.pair is not None:
            response_limits(amounts, self.pair)
            if self.relation == "range":
                widest_set(self.range, amounts, self.pair)

    def check_named(self, outcomes: Sequence[str], models: Sequence[Model]) -> None:
        """Refuse columns without noisy sums, and limits or shares that are nobody's or missing."""
        limits = self.limits if isinstance(self.limits, Mapping) else {}
        for told, given in (("limits", limits), ("shares", self.shares or {})):
            if unknown := [name for name in given if name not in outcomes]:
                raise SettingError(f"Strict: {told} name '{unknown[0]}', which is no protected column.")
        if self.shares is not None and (left := [name for name in outcomes if name not in self.shares]):
            raise SettingError(f"Strict: shares have none for '{left[0]}'. Give one for every column.")
        for outcome, model in zip(outcomes, models, strict=True):
            if is_of_classes(model):
                if outcome in limits:
                    raise SettingError(f"Strict: '{outcome}' has classes, and no limits. Leave them out.")
                continue
            self.check_model(model, outcome)
            if outcome not in limits:
                raise SettingError(
                    f"Strict: '{outcome}' needs limits: the smallest and the largest amount that matter, "
                    "from public knowledge."
                )
            amounts = amounts_of(model)
            if amounts is not None:
                response_limits(amounts, limits[outcome])

    def __hash__(self) -> int:
        limits = tuple(self.limits.items()) if isinstance(self.limits, Mapping) else self.limits
        return hash((str(self.box), self.reason, limits, self.relation, self.margin, self.noise))


def _say(limit: float) -> str:
    """A limit with all of its digits: a statement rests on it."""
    return f"{limit:,.15g}"


def _read_box(box: Mapping[str, Any]) -> Mapping[str, Any]:
    """The ends of every side, after checking them."""
    ends: dict[str, tuple[float, float]] = {}
    for name, pair in dict(box).items():
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not all(is_real(end) for end in pair):
            raise SettingError(f"Strict: the box needs a lower and an upper end for '{name}'.")
        low, high = (float(end) for end in pair)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise SettingError(
                f"Strict: the box needs two finite ends in order for '{name}', got ({low}, {high})."
            )
        ends[str(name)] = (low, high)
    if "sigma" not in ends or ends["sigma"][0] <= 0:
        raise SettingError(
            "Strict: the box needs positive ends for 'sigma', the residual standard deviation, for "
            "instance 'sigma': (0.5, 2)."
        )
    return MappingProxyType(ends)
