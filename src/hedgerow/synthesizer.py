"""The front door: a confidential table in, a certified fit and its release out.

>>> import hedgerow as hr
>>> table = hr.datasets.lognormal(n=200, seed=1)
>>> synth = hr.Synthesizer("x ~ z", epsilon=8.0, seed=1).fit(table)
>>> synth.sample()
Release(1 copy, ADP, ε = 8)
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from hedgerow import cards, progress
from hedgerow.errors import DataError, HedgerowWarning, SettingError, list_some
from hedgerow.evidence.giveaways.released import check_released
from hedgerow.evidence.utility import tabulate
from hedgerow.fitted import Finished, Fitted, NoisedChain, NoisedColumn
from hedgerow.mechanism.calibrate import expected_fits, finish
from hedgerow.mechanism.copies import check_inside, foresee_refusal
from hedgerow.mechanism.debias import check as check_debias
from hedgerow.mechanism.links import build_links
from hedgerow.mechanism.noisy.chain.cells import settle_types
from hedgerow.mechanism.noisy.chain.encode import encode_columns
from hedgerow.mechanism.steps import Start, begin
from hedgerow.models.base import Model
from hedgerow.models.prior import Prior
from hedgerow.models.programs.sampled import Sampled
from hedgerow.privacy.bounds import EXACT, RENYI
from hedgerow.privacy.columns import Column, Rules
from hedgerow.privacy.settings import UNSET, Settings
from hedgerow.privacy.standards import Standard
from hedgerow.privacy.strict import Bounded, Strict
from hedgerow.privacy.strict.limits import is_of_classes
from hedgerow.privacy.terms import Known, Sampling
from hedgerow.randomness import Key
from hedgerow.results import Results
from hedgerow.tables import design as designs
from hedgerow.tables.chain import ChainDesign
from hedgerow.tables.table import Table
from hedgerow.tables.values import Declared

_NAMED = 5  # columns that a message names

_TOO_WIDE = (
    " How many there are is protected too, so that each adds to the sum of squares as a value far out would: "
    "σ, intervals and copies come out too wide, σ by a tenth for 1 % of the values and twofold for 5 %. If "
    "it is public which rows these are, drop them (--drop-missing, missing: drop); else give limits by "
    "column, and its Column missing='synthesized' (in a plan missing: synthesized): copies then have gaps as "
    "well, and σ is right at the same ε."
)


class Synthesizer(Results):
    """Synthesizes one column of a table, or several, under a privacy standard.

    Parameters
    ----------
    formula
        "outcome ~ terms" in the language of R, with a fixed list of transforms. Several protected columns: a
        mapping from their names to `Column(formula, family=…)`, in the order in which they are synthesized.
    family
        A name, for instance "lognormal", "gamma" or "poisson" (docs/families.md), or a model object.
    standard
        Which exponent the mechanism uses and what of it is sensitive.
    weights
        How a risk becomes a weight: an object, a function of the risks, or one number per record. By default
        linear in risk, as in the paper; with several protected columns under another bound than "lipschitz"
        one weight for all rows.
    bound
        "lipschitz", "oscillation", "exact" or "renyi": how the privacy loss is bounded (`privacy.bounds`).
    epsilon
        Target over all copies: the weights are scaled down until a fresh fit meets it. None: no calibration.
    delta
        The δ at which ε holds, over all copies, with bound="renyi" or Gaussian noise; well below 1/n.
    copies
        Number of synthetic tables. Each costs the price of one draw; under bound="renyi" several cost less
        than their sum, and under `Strict(limits=…)` all of them cost ε once.
    draws
        Posterior draws kept, over all chains.
    known
        How λ is found: "exact" from distribution functions, "simulated" as in the paper.
    prior
        A `Prior` in natural units; proper and blind to the outcome by default.
    declared
        `Declared(type, …)`: type, rounding and limits of the outcome in the copies, chosen without looking at
        it. None: the type of the confidential column; under `Strict` doubles.
    sampling
        "independent", or "stratified" for smoother copies, which need the rule that the certificate names
        (docs/combine.md). Under `Strict(limits=…)` also "projected": regression on a copy returns its draw.
    debias
        Correct each released draw for the bias of the weights, from public things alone (`mechanism.debias`).
        Decide on it before you look at the confidential data. It assumes that the model is right.
    rules
        `Rules(derived=…, checks=…)`: columns that are computed from others, and conditions that are counted.
    rows_per_unit
        Under `Strict(limits=…)`: the most rows of one person or firm, which ε protects as a whole (1).
    unit
        A public column that says whose row it is, such as a household: all rows with the same value of it
        are withheld together, and the price is that of the whole unit. Not under `Strict` and `Censored`. The
        column is released as it is, unless it is left out. A `Column(…, shared=True)` has one value for all
        rows of a unit.
    design_weight
        A column of survey weights, public or one of the protected ones. The fit does not use it, unless a
        formula names it; `utility` and the like weigh records by it, each copy's by its own.
    preset
        What to take for settings that you leave out: "paper", what the paper did; "recommended", settings
        whose ε stands up to an audit (docs/honesty.md): one weight planned beforehand, bound="renyi",
        stratified.
    seed
        For tests and studies only. A seed is as confidential as the data, and may serve for one table only:
        copies of two tables from the same seed share their noise. None takes fresh operating-system entropy
        for every fit.

    Formal guarantees
    -----------------
    With a target, the fit that `sample` releases was priced on its own draws, after calibration, at no more
    than epsilon/copies; under bound="renyi" without draws, all copies together at no more than epsilon. Under
    `Strict(limits=…)` noisy statistics are released once at epsilon, and copies follow from them. What that
    price does and does not mean is printed by `sample().guarantee`.
    Attributes with a trailing underscore are computed from the confidential data and are confidential.
    """

    def __init__(
        self,
        formula: str | Mapping[str, Column],
        family: str | Model | None = None,  # lognormal
        *,
        standard: Standard | None = None,
        weights: Any = UNSET,
        bound: Literal["lipschitz", "oscillation", "exact", "renyi"] = UNSET,  # lipschitz
        epsilon: float | None = None,
        delta: float = UNSET,  # 1e-6
        copies: int = 1,
        draws: int = UNSET,  # 1000
        known: Known = UNSET,  # exact
        prior: Prior | None = None,
        declared: Declared | None = None,
        sampling: Sampling = UNSET,  # independent
        debias: bool = UNSET,  # False
        rules: Rules = UNSET,  # none
        rows_per_unit: int = UNSET,  # 1
        unit: str | None = None,
        design_weight: str | None = None,
        preset: Literal["paper", "recommended"] | None = None,
        seed: int | None = None,
    ) -> None:
        self.settings = Settings.of(
            formula,
            family,
            standard=standard,
            weights=weights,
            bound=bound,
            epsilon=epsilon,
            delta=delta,
            copies=copies,
            draws=draws,
            known=known,
            prior=prior,
            declared=declared,
            sampling=sampling,
            debias=debias,
            rules=rules,
            rows_per_unit=rows_per_unit,
            unit=unit,
            design_weight=design_weight,
            preset=preset,
        )
        self._check(seed, asked_to_correct=debias is not UNSET)

    @classmethod
    def of(cls, settings: Settings, *, seed: int | None = None) -> "Synthesizer":
        """A synthesizer of settings that are at hand, such as a plan's."""
        made = cls.__new__(cls)
        made.settings = settings
        made._check(seed)
        return made

    def _check(self, seed: int | None, *, asked_to_correct: bool = True) -> None:
        """Refuse what cannot be corrected, and a bad seed, before any data are seen."""
        check_inside(self.settings)
        if self.settings.debias:
            try:
                check_debias(self.settings)
            except SettingError as error:
                if asked_to_correct:
                    raise
                raise SettingError(
                    f"{error} It was the preset that asked for it: say debias=False."
                ) from None
        Key.from_seed(seed)
        self._seed = seed
        self._fitted: Finished | None = None

    def fit(self, data: Any, *, left_out: Sequence[str] = (), keep: Sequence[str] = ()) -> "Synthesizer":
        """Fit, weigh, refit and price. Returns the synthesizer itself.

        `left_out` names columns that may be read but are not in the copies, such as bounds by record. `keep`
        names columns that are to be released even if they give the outcome away (`evidence.giveaways`); the
        guarantee says so.
        """
        table = Table.of(data)
        design = encode(table, [self.settings])
        self._look_over(table, design, left_out=left_out, keep=keep)
        # Fresh entropy for every fit: two fits on the same random numbers would cancel each other's noise.
        key = Key.from_seed(self._seed)
        told: dict[str, Any] = {
            "key": key,
            "seeded": self._seed is not None,
            "left_out": left_out,
            "keep": keep,
        }
        if self.settings.noisy is not None:
            fitted = self.fit_noisy(table, design, **told)
        else:
            self._check_closed()
            with progress.job(expected_fits(self.settings)):
                start = begin(self.settings.model, table, design, draws=self.settings.draws, key=key)
                fitted = self.fit_from(start, **told)
        for doubt in fitted.doubts():
            warnings.warn(doubt, HedgerowWarning, stacklevel=2)
        return self

    def _look_over(
        self, table: Table, design: designs.Design, *, left_out: Sequence[str] = (), keep: Sequence[str] = ()
    ) -> None:
        """Refuse what may not be released of a table or of some of its rows; warn of what is doubtful."""
        standard = self.settings.standard
        hidden = (*self.settings.protected, *left_out)
        shown = [name for name in standard.range.columns if name in hidden]
        if standard.inside and shown:
            raise SettingError(
                f"inside=True: copies would show what is in {list_some(shown, quoted=True)}, which is not "
                "released as it is. Read the ranges from columns that are, or leave inside out."
            )
        for link, each in zip(design.links, self.settings.links, strict=True):
            if link.levels is not None and each.role != "kind" and each.column.declared is not None:
                raise SettingError(
                    f"declared: the {each.family} family takes '{link.outcome}' as classes, which have no "
                    "type, decimals or limits. Leave declared out."
                )
        _check_design_weight(table, self.settings, left_out)
        strict = isinstance(standard, Bounded)
        for note in (
            *design.notes,
            *check_released(
                table,
                design,
                self.settings,
                left_out=left_out,
                keep=keep,
                strict=strict,
                read=[
                    *standard.range.columns,
                    *filter(None, [self.settings.design_weight]),
                    *(name for each in self.settings.columns for name in each.reads),
                ],
            ),
        ):
            warnings.warn(note, HedgerowWarning, stacklevel=3)
        if self.settings.noisy is None and (doubt := foresee_refusal(self.settings, table, design)):
            warnings.warn(doubt, HedgerowWarning, stacklevel=3)
        for link, each, own in zip(design.links, self.settings.links, self.settings.models, strict=True):
            # The others' gaps are in their notes, and of a shared column most rows take no part.
            plain = each.column.is_plain and not each.column.shared
            gaps = int((~link.present).sum()) if plain and link.present is not None else 0
            if gaps:
                words = " Classes that are words need declared levels." if is_of_classes(own) else _TOO_WIDE
                warnings.warn(
                    f"{gaps} of {design.records} values of '{link.outcome}' are missing or none that the "
                    f"{own.name} family describes. They count as withheld, and their rows get synthetic "
                    f"values like any other (confidential).{words if self.settings.noisy else ''}",
                    HedgerowWarning,
                    stacklevel=3,
                )

    def _check_closed(self) -> None:
        """Refuse a bound that needs closed forms before models that have none are sampled."""
        asked = self.settings
        pairs = zip(asked.links, asked.models, strict=True)
        sampled = [(link, f"{link.named} ({each.name})") for link, each in pairs if isinstance(each, Sampled)]
        if sampled and asked.bound in (EXACT, RENYI):
            kinds = " (gaps and codes: kinds_by)" if any(link.role == "kind" for link, _ in sampled) else ""
            raise SettingError(
                f"bound='{asked.bound}' has no closed form for "
                f"{list_some([said for _, said in sampled], _NAMED)}. Use bound='oscillation' (--bound "
                f"oscillation), or the normal, lognormal, asinh and dirichlet families{kinds}."
            )

    def fit_from(
        self, start: Start, *, key: Key, seeded: bool, left_out: Sequence[str] = (), keep: Sequence[str] = ()
    ) -> Finished:
        """Go on from an unweighted fit of the same model that several synthesizers share."""
        outcome, scale = finish(self.settings, start, key=key)
        self._fitted = Fitted(
            settings=self.settings, key=key, seeded=seeded, left_out=tuple(left_out), keep=tuple(keep),
            start=start, outcome=outcome, scale=scale,
        )  # fmt: skip
        return self._fitted

    def fit_noisy(
        self,
        table: Table,
        design: designs.Design,
        *,
        key: Key,
        seeded: bool,
        left_out: Sequence[str] = (),
        keep: Sequence[str] = (),
    ) -> Finished:
        """Release noisy statistics of the outcome, from which everything else follows."""
        columns = {"left_out": tuple(left_out), "keep": tuple(keep)}
        kind = NoisedChain if self.settings.by_name else NoisedColumn
        self._fitted = kind.of(self.settings, table, design, key=key, seeded=seeded, **columns)
        return self._fitted

    def __repr__(self) -> str:
        asked, state = self.settings, "not fitted" if self._fitted is None else "fitted, confidential"
        return f"Synthesizer({asked.described!r}, {asked.model.name}, {asked.standard.label}, {state})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the settings; once fitted, marked as confidential, what was achieved.

        What copies keep is there once they are made, by `sample()` or `utility()`: showing makes none.
        """
        asked = self.settings
        target = "no target" if asked.epsilon is None else f"{asked.epsilon:g} over all copies"
        facts: dict[str, object] = {"formula": asked.described, "family": asked.model.name}
        facts |= {"standard": asked.standard.label, "bound": asked.bound.name, "target ε": target}
        facts |= {"copies": str(asked.copies), "state": "not fitted" if self._fitted is None else "fitted"}
        if self._fitted is None:
            return cards.card("hedgerow synthesizer", facts.items())
        facts |= {"rows": f"{self._fitted.design.records:,}", "ε as fitted": f"{self.total_epsilon_:.4g}"}
        parts = [cards.paragraph("sample() makes the copies; then this shows what they keep.")]
        if "release" in vars(self._fitted):
            parts = [
                cards.table(f"What copies keep of {name}", tabulate({self.copies_label: columns}))
                for name, columns in self.utility_by_column().items()
            ]
            parts += [cards.shapes(shapes) for shapes in self.shapes_by_column().values()]
        return cards.card("hedgerow synthesizer", facts.items(), *parts, mark=cards.CONFIDENTIAL)


def encode(
    table: Table, settings: Sequence[Settings], learnt: designs.Learnt | None = None
) -> designs.Design:
    """Outcome and predictors of a table, for settings that differ in their standards alone.

    An outcome that is missing, or none that the model describes, counts as withheld where every standard
    takes it so. `learnt` is for a table that comes in parts (`tables.design.build`).
    """
    if settings[0].by_name:
        return encode_columns(settings[0], table, learnt)
    if isinstance(settings[0].standard, Strict):
        table = settle_types(settings[0], table)
    links = build_links(table, settings, learnt)
    if len(links) > 1:
        return ChainDesign.of(links, table)
    design = links[0]
    if any(each.noisy is None for each in settings):
        return design
    # Noisy statistics take infinite values as well, and move them to a limit.
    return replace(design, values=np.clip(design.values, -designs.LARGEST, designs.LARGEST))


def _check_design_weight(table: Table, settings: Settings, left_out: Sequence[str]) -> None:
    """Refuse survey weights that copies do not have; and public ones that are not positive numbers."""
    name = settings.design_weight
    if name is None:
        return
    table.require([name])
    if name in left_out:
        raise SettingError(
            f"design_weight: '{name}' is left out of the copies, whose users could not weigh them. Keep the "
            "column, or leave design_weight out."
        )
    if name not in settings.protected and not (table.numbers(name) > 0).all():
        raise DataError(
            f"design_weight: '{name}' must hold positive numbers in every row. Drop rows that count for "
            "nobody."
        )
