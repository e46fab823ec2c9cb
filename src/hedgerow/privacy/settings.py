"""Everything a release is told before it sees the outcome, in one frozen value.

A plan writes it down, a synthesizer is built from it, the procedure runs by it, and the guarantee repeats its
terms. To add a setting, add a field and its check here, or in `terms` if it is a number or a word that the
guarantee repeats, then a keyword to `Synthesizer`, and use it.

    >>> asked = Settings.of("x ~ z", epsilon=6.0, copies=3)
    >>> asked.target, asked.bound.name
    (2.0, 'lipschitz')
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

import numpy as np

from hedgerow.arrays import Mask, PerRecord
from hedgerow.errors import SettingError, format_value, is_count, list_some
from hedgerow.models.base import Domain, Model
from hedgerow.models.chain import Chain
from hedgerow.models.exact import Regression
from hedgerow.models.families import model_named
from hedgerow.models.prior import DEFAULT, Prior
from hedgerow.privacy.bounds import LIPSCHITZ, RENYI, bound_named, per_copy
from hedgerow.privacy.claims.neighbours import WITHHELD
from hedgerow.privacy.columns import Column, Link, Rules, link_columns, marks_of, read_columns
from hedgerow.privacy.presets import preset_settings
from hedgerow.privacy.ranges import Box, Everywhere
from hedgerow.privacy.standards import ADP, Standard
from hedgerow.privacy.strict import Bounded, BoxedChain, Strict, StrictWeights
from hedgerow.privacy.strict.limits import has_whole_numbers, has_words, spike_of
from hedgerow.privacy.terms import Terms
from hedgerow.privacy.weights import (
    IdentificationWeights,
    LinearWeights,
    PlannedWeights,
    ScalarWeights,
    Weights,
    as_weights,
)
from hedgerow.tables.values import Declared

_LEAST_NOISY, _MOST_NOISY = 1e-6, 1e6  # ε for which noise has a scale


class _Unset(Enum):
    UNSET = "unset"

    def __repr__(self) -> str:
        return "<default>"


UNSET: Any = _Unset.UNSET  # a keyword that the caller left out, so that a preset may fill it in


@dataclass(frozen=True, kw_only=True)
class Settings(Terms):
    """The terms, and the parts that the procedure is made of. Public, unless a caller's own part is not.

    A standard that brings its own bound (`Strict`, `Censored`) restricts the model and sets the weights, or
    needs neither (`Strict(limits=…)`).
    """

    columns: tuple[Column, ...]  # what is protected, in the order in which it is synthesized
    standard: Standard = field(default_factory=ADP)
    weights: Weights = field(default_factory=LinearWeights)
    rules: Rules = field(default_factory=Rules)  # columns that follow from others, and checks of copies
    rows_per_unit: int = 1  # noisy statistics protect so many rows of a person together
    design_weight: str | None = None  # a column of survey weights, by which what was lost is measured
    model: Model = UNSET  # made from the columns and the standard

    def __post_init__(self) -> None:
        standard = self.standard
        if isinstance(standard, Bounded):
            object.__setattr__(self, "bound", standard.bound)
            if standard.inside and self.epsilon == 0:
                raise SettingError(
                    "epsilon = 0 leaves nothing for the outcome: hr.copies_from_classes makes copies from "
                    "public classes alone, without reading it. Or give a positive epsilon."
                )
        super().__post_init__()
        if not isinstance(standard, Standard):
            raise SettingError(
                "standard must be Unweighted(), ADP(), RangeAveraged(range), RangeTruncated(range), "
                "Strict(limits=…), Strict(box), Censored() or a Standard of your own, got "
                f"{repr(standard) if isinstance(standard, str) else type(standard).__name__}."
            )
        if not isinstance(self.rules, Rules):
            raise SettingError(
                f"rules must be hr.Rules(derived=…, checks=…), got {format_value(self.rules)}."
            )
        self.rules.check_columns(self.columns)
        if self.design_weight is not None and not isinstance(self.design_weight, str):
            raise SettingError(
                "design_weight must be the name of a column of survey weights, got "
                f"{format_value(self.design_weight)}."
            )
        made: dict[str, Any] = {}
        if self.model is UNSET:
            models = tuple(model_named(link.family, link.prior) for link in self.links)
            made["model"] = models[0] if len(models) == 1 else Chain(models)
        if isinstance(standard, Bounded) and self.epsilon is None:
            why = (
                "its noise follows from ε"
                if standard.by_statistics
                else "its weights are min(1, ε/oscillation)"
            )
            raise SettingError(f"{standard.label} needs a target: {why}. Give epsilon.")
        if self.several:
            self._check_chain()
        self._check_range()
        lone = [column.outcome for column in self.columns if column.shared and self.unit is None]
        if lone and isinstance(standard, Bounded):
            raise SettingError(
                f"shared: {standard.label} prices rows, and has no unit whose rows could share '{lone[0]}'. "
                "Leave shared out."
            )
        if lone:
            raise SettingError(
                f"shared: '{lone[0]}' is shared by the rows of a unit, and none is named. Say unit=…, the "
                "column that says whose row it is."
            )
        if self.unit is not None:
            self._check_unit()
        if not is_count(self.rows_per_unit) or self.rows_per_unit < 1:
            raise SettingError(
                f"rows_per_unit must be a whole number from 1 up, got {format_value(self.rows_per_unit)}."
            )
        if self.noisy is None and self.rows_per_unit > 1:
            raise SettingError(
                "rows_per_unit: only Strict(limits=…) protects several rows of a person together. Others "
                "price each row; a plan has the ledger charge for all of them."
            )
        if self.noisy is not None:
            self._check_noisy(self.noisy, made.get("model", self.model))
        elif isinstance(standard, Bounded):
            if "model" in made:
                made["model"] = self._restrict(standard, made["model"])
            made["weights"] = StrictWeights(per_copy(self.epsilon or 0.0, self.copies))
        if self.noisy is None and self.sampling == "projected":
            raise SettingError(
                "sampling='projected' goes with Strict(limits=…), whose copies follow from released "
                "statistics. Use 'independent' or 'stratified'."
            )
        for name, value in made.items():
            object.__setattr__(self, name, value)
        if isinstance(self.weights, PlannedWeights) and standard.weighted:
            self._require_planned()
        for link, model in zip(self.links, self.models, strict=True):
            if link.column.declared is not None and link.role == "amount":
                link.column.declared.nearest(np.zeros(0), model.domain.support)  # refuses what cannot be kept

    def _check_chain(self) -> None:
        """Refuse what several protected columns have no price for, before any data are seen."""
        unpriced = {
            f"standard={self.standard.label}": isinstance(self.standard, Bounded)
            and not (self.by_name or getattr(self.standard, "by_column", False)),
            "inside": self.standard.inside,
            "known='simulated'": self.known == "simulated",
            "debias": self.debias,
            type(self.weights).__name__: isinstance(self.weights, IdentificationWeights),
        }
        remedy = "Leave it out, or protect one column."
        if self.noisy is not None and not self.by_name:
            remedy = f'Give limits by name: Strict(limits={{"{self.columns[0].outcome}": (low, high), …}}).'
        for what, asked in unpriced.items():
            if asked:
                raise SettingError(
                    f"{what} goes with one protected column and one model of it, got {len(self.links)} "
                    f"models. {remedy}"
                )

    def _restrict(self, standard: Bounded, model: Model) -> Model:
        """The model whose risks are public; of several columns one for each, with its own box."""
        if not isinstance(model, Chain) or not isinstance(standard, Strict):
            return standard.restrict(model, default_prior=self.column.prior is None)
        self._require_plain(self.outcomes, "A box of parameters")
        for name in standard.box or {}:
            if name not in self.outcomes:
                raise SettingError(f"Strict: '{name}' has a box and is not protected. Leave it out.")
        return BoxedChain(
            tuple(
                standard.of(column.outcome).restrict(each, default_prior=column.prior is None)
                for column, each in zip(self.columns, model.models, strict=True)
            )
        )

    def _require_plain(
        self, names: Iterable[str], what: str, remedy: str = "Leave out one or the other."
    ) -> None:
        """Refuse columns of which more than amounts is modelled: what is known of a cell has no price."""
        for column in self.columns:
            if column.outcome in names and not column.is_plain:
                told = [("missing", column.missing != "refused"), ("codes", column.codes)]
                told += [(word, getattr(column, word)) for word in ("share_of", "only_where")]
                has = ", ".join(word for word, given in told if given)
                raise SettingError(
                    f"{what} goes with columns of amounts or classes alone, and '{column.outcome}' has {has}."
                    f" {remedy}"
                )

    def _check_range(self) -> None:
        """Refuse ranges that do not say which column they are of, or that a protected column decides."""
        public_range, outcomes = self.standard.range, self.outcomes
        if not isinstance(public_range, Everywhere):
            self._require_plain(public_range.ranges if isinstance(public_range, Box) else outcomes, "A range")
        if len(outcomes) > 1 and not isinstance(public_range, Box | Everywhere):
            raise SettingError(
                f"A range goes with one protected column, got {len(self.columns)}. Say which have one: "
                f'Box({{"{outcomes[0]}": {type(public_range).__name__}(…)}}).'
            )
        if not isinstance(public_range, Box):
            return
        for named, what in (
            (public_range.ranges, "has a range and is not protected"),
            (public_range.columns, ""),
        ):
            for name in named:
                if (name in outcomes) != bool(what):
                    why = what or "is protected, and a range is read from it, which would make it public"
                    raise SettingError(
                        f"Box: '{name}' {why}. Ranges are of protected columns and from public ones."
                    )

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The names of the columns that are modelled, in the order in which they are synthesized."""
        return tuple(column.outcome for column in self.columns)

    @property
    def protected(self) -> tuple[str, ...]:
        """The columns that copies have anew: those that are modelled, and those that rules derive."""
        return (*self.outcomes, *self.rules.names)

    @property
    def codes(self) -> dict[str, tuple[Any, ...]]:
        """By modelled column, the values that stand for no amount."""
        return {column.outcome: column.codes for column in self.columns}

    @property
    def marks(self) -> dict[str, tuple[str, ...]]:
        """By modelled column, the indicators of the kinds of its cells that later columns read beside it."""
        return marks_of(self.columns)

    @property
    def links(self) -> tuple[Link, ...]:
        """What is modelled, one model each: a column may take several."""
        return link_columns(self.columns)

    @property
    def unpriced_by_unit(self) -> str:
        """Why all rows of a unit have no price together, in a sentence; empty where they have one."""
        if self.noisy is not None:
            return (
                f"unit: {self.standard.label} has noise for so many rows of a unit as rows_per_unit= says. "
                "Say that, and leave unit out."
            )
        if isinstance(self.standard, Bounded):
            return (
                f"unit: {self.standard.label} prices rows, k of which cost k times as much. Leave unit out; "
                "in a plan, rows_per_unit has the ledger charge for them."
            )
        if self.debias or isinstance(self.weights, PlannedWeights):
            return (
                "unit: corrections (debias) and PlannedWeights, which preset='recommended' takes, are made "
                "for single rows. Leave them out, with weights such as ScalarWeights(1)."
            )
        return ""

    def _check_unit(self) -> None:
        """Refuse what has no price for all rows of a unit, before any data are seen."""
        if self.unpriced_by_unit:
            raise SettingError(self.unpriced_by_unit)
        if self.unit in self.protected:
            raise SettingError(
                f"unit: '{self.unit}' is a protected column. Name a public one that says whose row it is."
            )

    @property
    def several(self) -> bool:
        """Whether more than one thing is modelled, so that the model is a chain."""
        return len(self.links) > 1

    @property
    def column(self) -> Column:
        """The only protected column."""
        if len(self.columns) > 1:
            raise SettingError(f"This goes with one protected column, got {len(self.columns)}.")
        return self.columns[0]

    def with_formulas(self, *formulas: str) -> "Settings":
        """These settings with another spelling of each column's formula."""
        pairs = zip(self.columns, formulas, strict=True)
        return replace(self, columns=tuple(replace(column, formula=text) for column, text in pairs))

    @property
    def models(self) -> tuple[Model, ...]:
        """The model of each link."""
        return self.model.models if isinstance(self.model, Chain) else (self.model,)

    @property
    def families(self) -> str:
        """The families, to be shown: that of each column."""
        if not isinstance(self.model, Chain):
            return self.model.name
        families = (column.family for column in self.columns)
        return ", ".join(each if isinstance(each, str) else each.name for each in families)

    def _check_noisy(self, standard: Strict, model: Model) -> None:
        """Refuse what noisy statistics have no use for, before any data are seen."""
        if standard.by_name:
            models = model.models if isinstance(model, Chain) else (model,)
            pairs = zip(self.links, models, strict=True)
            amounts = {link.column.outcome: each for link, each in pairs if link.role != "kind"}
            standard.check_named(list(amounts), list(amounts.values()))
            for column in self.columns:
                if column.kinds_by is not None:
                    raise SettingError(
                        f"'{column.outcome}': kinds_by goes with weights, and under Strict kinds follow the "
                        "column's own formula. Leave it out."
                    )
        else:
            self._require_plain(
                self.outcomes, standard.label,
                f'Give limits by name, Strict(limits={{"{self.columns[0].outcome}": (low, high)}}).',
            )  # fmt: skip
            standard.check_model(model)
        if self.epsilon is not None and not _LEAST_NOISY <= self.epsilon <= _MOST_NOISY:
            raise SettingError(
                f"epsilon must lie between {_LEAST_NOISY:g} and {_MOST_NOISY:g} with Strict(limits=…), got "
                f"{format_value(self.epsilon)}."
            )
        if standard.inside and self.sampling == "projected":
            raise SettingError(
                "sampling='projected' would move copies out of their classes, and inside=True keeps them "
                "there. Use 'independent' or 'stratified'."
            )
        if standard.by_name and self.sampling == "projected":
            raise SettingError(
                "sampling='projected' goes with limits of one column, got limits by column. Use "
                "'independent' or 'stratified'."
            )
        if spike_of(model) is not None and self.sampling == "projected":
            raise SettingError(
                "sampling='projected' needs an amount of every record, and copies of the "
                f"{model.name} family have some at its spike. Use 'independent' or 'stratified'."
            )
        unused = {
            "debias": (self.debias, "there are no weights whose bias could be corrected"),
            "prior": (
                any(
                    one not in (None, Prior(), DEFAULT)
                    for column in self.columns
                    for one in (column.prior, getattr(column.family, "prior", None))
                ),
                "its prior follows from the limits",
            ),
            "known": (self.known != "exact", "no λ is computed"),
        }
        for name, (given, why) in unused.items():
            if given:
                raise SettingError(f"Strict(limits=…) takes no {name}: {why}. Leave it out.")

    @property
    def noisy(self) -> Strict | None:
        """The standard, if copies follow from noisy statistics instead of a weighted posterior."""
        standard = self.standard
        return standard if isinstance(standard, Strict) and standard.by_statistics else None

    @property
    def worded(self) -> tuple[str, ...]:
        """The columns whose declared classes are words."""
        pairs = zip(self.links, self.domains, strict=True)
        return tuple(link.outcome for link, domain in pairs if link.role == "amount" and has_words(domain))

    @property
    def by_name(self) -> bool:
        """Whether noisy statistics are released column by column, with limits that go by name."""
        return self.noisy is not None and self.noisy.by_name

    @property
    def domains(self) -> tuple[Domain, ...]:
        """What values each link may take. Noisy statistics refuse none: what is no number is withheld."""
        domains = (model.domain for model in self.models)
        return tuple(each if self.noisy is None else replace(each, usable=_is_number) for each in domains)

    def _require_planned(self) -> None:
        """A planned weight is one that meets a Rényi price with x_i withheld."""
        if self.bound != RENYI or self.standard.neighbour != WITHHELD or self.epsilon is None:
            raise SettingError(
                "PlannedWeights, which preset='recommended' takes, are planned for ADP() with a target "
                f"under bound='renyi'; got {self.standard.label} with epsilon={self.epsilon!r} and "
                f"bound='{self.bound}'. Give weights of your own (weights=, --weights)."
            )
        pairs = zip(self.links, self.models, strict=True)
        other = [f"{link.named} ({model.name})" for link, model in pairs if not isinstance(model, Regression)]
        if other:
            raise SettingError(
                "preset='recommended' plans one weight (PlannedWeights) for amounts by the normal, lognormal "
                f"and asinh families, and not for {list_some(other)}. Say weights=ScalarWeights(1) and "
                "bound='oscillation' instead."
            )

    @property
    def written_as(self) -> tuple[Declared | None, ...]:
        """What the column of each link is written as in copies; None: in the confidential column's own type.

        A standard whose copies may not depend on the outcome takes no type from it: plain doubles, or whole
        numbers where the declared classes are.
        """
        declared = tuple(link.column.declared for link in self.links)
        if not isinstance(self.standard, Strict):
            return declared
        whole = [self.by_name and has_whole_numbers(domain) for domain in self.domains]
        plain = (Declared("integer" if each else "number") for each in whole)
        return tuple(own or other for own, other in zip(declared, plain, strict=True))

    @property
    def terms(self) -> Terms:
        """The settings without their parts: what a guarantee may hold."""
        return Terms(**{entry.name: getattr(self, entry.name) for entry in fields(Terms)})

    @classmethod
    def of(
        cls,
        formula: str | Mapping[str, Column],
        family: str | Model | None = None,
        *,
        prior: Prior | None = None,
        declared: Declared | None = None,
        standard: Standard | None = None,
        preset: str | None = None,
        epsilon: float | None = None,
        copies: int = 1,
        **asked: Any,
    ) -> "Settings":
        """What a caller said; keywords left out (`UNSET`) take a preset's value, or the default."""
        said = {name: value for name, value in asked.items() if value is not UNSET}
        own = sorted({"bound", "weights"} & set(said))
        if isinstance(standard, Bounded) and own:
            raise SettingError(f"{standard.label} has its own bound and weights; leave out {', '.join(own)}.")
        given = {*said, "weights", "bound"} if isinstance(standard, Bounded) else set(said)
        noisy = bool(getattr(standard, "by_statistics", False))
        filled = {} if preset is None else preset_settings(preset, epsilon=epsilon, given=given, noisy=noisy)
        chosen: dict[str, Any] = filled | said
        if "bound" in chosen:
            chosen["bound"] = bound_named(chosen["bound"])
        if standard is not None:
            chosen["standard"] = standard
        if family is None and not isinstance(formula, Mapping):
            family = "lognormal"
        columns = read_columns(formula, family=family, prior=prior, declared=declared)
        if (
            chosen.get("weights") is None
        ):  # linear ones even out what 2Δ counts, and bias shares (docs/tables.md)
            one = len(columns) > 1 and chosen.get("bound", LIPSCHITZ) != LIPSCHITZ
            chosen["weights"] = ScalarWeights(1) if one else LinearWeights()
        chosen["weights"] = as_weights(chosen["weights"])
        settings = cls(columns=columns, epsilon=epsilon, copies=copies, **chosen)
        if "delta" in said:  # the default too, if somebody said it
            settings._require_delta()
        return settings

    def __repr__(self) -> str:
        return f"Settings({self.described!r}, {self.model.name}, {self.standard.label}, {self.bound})"

    @property
    def described(self) -> str:
        """The formulas, to be shown."""
        return ", ".join(column.formula for column in self.columns)


def _is_number(values: PerRecord) -> Mask:
    return ~np.isnan(values)
