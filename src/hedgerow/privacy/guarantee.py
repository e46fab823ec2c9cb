"""What exactly may be claimed about a release. Releasable: it holds public facts only.

Everything said here is covered by the stated target or does not depend on the confidential outcome. What the
fit achieved, its risks and weights stay with the synthesizer. The words of a claim and of the comparison are
those of `privacy.claims`.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hedgerow.cards import card, fold, paragraph
from hedgerow.numerics.rounding import format_count
from hedgerow.privacy.bounds import Shares, Statement
from hedgerow.privacy.claims import (
    CORRECTED,
    COUNTED,
    FILLED,
    NOTHING,
    Figures,
    list_protected,
    write_claim,
    write_plain,
    write_refusal,
)
from hedgerow.privacy.claims.caveats import write_caveat
from hedgerow.privacy.claims.neighbours import join_columns, join_records, whose
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Strict
from hedgerow.privacy.strict.limits import spike_of
from hedgerow.privacy.terms import Terms
from hedgerow.privacy.weights import caveat_if_recomputed


@dataclass(frozen=True, repr=False)
class Guarantee:
    """What may be claimed, in words. Holds public facts only: the target, never what was achieved."""

    terms: Terms
    statement: Statement
    standard: str
    neighbour: str
    family: str
    protected: str | tuple[str, ...]  # a name; of several columns their names, in order
    passed_through: tuple[str, ...]
    known: str  # the range assumed public, as the owner wrote it; empty for none
    averaged: bool
    follows_outcome: bool  # the range's ends are computed from the outcome
    outside_public: bool  # records outside their range are taken as public
    seeded: bool
    declared: str = ""  # what was declared of the outcome, such as its support or its classes
    single_values: bool = False  # ranges may hold one possible value alone
    uncertified: str = ""  # why the fit is not certified, where the owner overrode a check
    corrected: int | None = None  # draws corrected for the bias of the weights; None: it was not asked for
    kept: tuple[str, ...] = ()  # columns released as they are although they may give the outcome away
    inside: bool = False  # copies were drawn inside public ranges
    counted: bool = False  # copies follow the noisy counts of a margin
    simulated: bool = False  # the probability of ranges on several columns is estimated
    gaps: bool = False  # copies have gaps of their own
    filled: bool = False  # copies of draws given the data have values where cells were missing
    if_recomputed: str = ""  # what holding weights fixed leaves open under the sharper bounds, in words
    unit: str | None = None  # whose records the claim is for, all together, in words; None: one record's
    unit_column: str | None = None  # in which they have the same
    codes: Mapping[str, tuple[float | str, ...]] = field(default_factory=dict)  # that stand for no amount

    @classmethod
    def of(
        cls,
        settings: Settings,
        statement: Statement,
        *,
        protected: str | tuple[str, ...],
        passed_through: Sequence[str],
        declared: str = "",
        atoms: bool = False,
        seeded: bool = False,
        uncertified: str = "",
        kept: Sequence[str] = (),
        corrected: int | None = None,
        counted: bool = False,
        simulated: bool = False,
    ) -> "Guarantee":
        """The guarantee of settings and of what the draws made under them support."""
        standard, neighbour = settings.standard, settings.standard.neighbour
        neighbour = neighbour if isinstance(protected, str) else join_columns(neighbour)
        unit = None if settings.unit is None else whose(settings.unit)
        if settings.noisy is not None and settings.rows_per_unit > 1:
            unit = whose(None, settings.rows_per_unit)
        return cls(
            terms=settings.terms,
            statement=statement,
            standard=standard.label,
            neighbour=neighbour if unit is None else join_records(neighbour, unit),
            unit=unit,
            unit_column=settings.unit,
            codes={
                column.outcome: tuple(_plain(code) for code in column.codes)
                for column in settings.columns
                if column.codes
            },
            family=settings.families,
            protected=protected,
            passed_through=tuple(passed_through),
            known=standard.assumption(spike_of(settings.model))
            if isinstance(standard, Strict)
            else standard.assumption(),
            averaged=standard.uses_known,
            follows_outcome=standard.range.follows_outcome,
            outside_public=standard.range.outside == "public",
            seeded=seeded,
            declared=declared,
            single_values=atoms and not isinstance(standard.range, Everywhere),
            uncertified=uncertified,
            kept=tuple(kept),
            corrected=corrected,
            inside=standard.inside,
            counted=counted,
            simulated=simulated,
            gaps=any(column.missing == "synthesized" for column in settings.columns),
            filled=settings.noisy is None and any(c.missing == "withheld" for c in settings.columns),
            if_recomputed=caveat_if_recomputed(settings.weights, scaled=settings.target is not None)
            if standard.weighted
            else "",
        )

    @property
    def epsilon_per_copy(self) -> float | None:
        """The target for one copy; None where copies are priced together."""
        shares = self.shares()
        return None if shares is None else shares.epsilon[0]

    def shares(self) -> Shares | None:
        """ε and δ in numbers; None where none may be claimed."""
        terms = self.terms
        if self.uncertified or terms.epsilon is None:
            return None
        return terms.bound.shares(terms.epsilon, terms.copies, stated=self.statement.delta, asked=terms.delta)

    def figures(self) -> Figures | None:
        """What the words of the claim are made from; None where nothing may be claimed."""
        shares, stated = self.shares(), self.statement
        if shares is None:
            return None
        one, whole = shares.delta or (0.0, 0.0)
        return Figures(
            neighbour=self.neighbour,
            epsilon=shares.epsilon[1],
            copies=self.terms.copies,
            draws=stated.draws,
            independent=stated.independent,
            delta=whole if one is None else one,
            confidence=stated.confidence,
            unit=self.unit,
        )

    def claim(self) -> str:
        """The sentence that may be copied into a release note."""
        figures = self.figures()
        if figures is None:
            return write_refusal(self.uncertified)
        return write_claim(self.terms.bound.name, figures)

    def plain(self, *, records: int | None = None) -> str:
        """The claim for people, to stand before it; with the number of records it holds δ against 1/n."""
        figures = self.figures()
        return NOTHING if figures is None else write_plain(self.terms.bound.name, figures, records=records)

    @property
    def left_open(self) -> str:
        """What a range standard says nothing about; empty for a standard without a range."""
        if self.averaged:
            return write_caveat("C17")
        return write_caveat("C18") if self.known and self.terms.bound.local else ""

    def processing(self) -> tuple[str, ...]:
        """What was done to the released draws after the mechanism: none of it touches ε."""
        done: list[str] = []
        if self.corrected is not None:
            left = self.terms.copies - self.corrected
            how_many = (
                f"Of {self.terms.copies} draws {left} did not converge and went out uncorrected, by a rule "
                "fixed beforehand; none was drawn again."
                if left
                else "All draws converged."
            )
            done.append(
                f"{CORRECTED} before prediction. Only the draw, the predictors, the public columns that the "
                "range, the weights or the model read, the number of records, the settings of the plan and "
                "independent randomness entered, so that this is post-processing: it changes neither ε nor "
                f"what it covers. {how_many}"
            )
        if self.counted:
            done.append(
                f"{COUNTED}, which is post-processing. All copies follow the same counts, so that their "
                "noise does not show in how much copies differ, and rules that combine copies leave it out."
            )
        if self.terms.sampling == "projected":
            done.append(
                "Residuals of each copy were projected off the predictors and rescaled, so that regression "
                "on a copy returns the draw that it comes from, which is post-processing. Rules that combine "
                "copies must leave out the noise of a copy's own: the spread between copies is all of it."
            )
        if self.terms.sampling == "stratified":
            done.append(
                "Predictions were made from stratified instead of independent random numbers, which is "
                "post-processing too. A copy lies nearer to its draw than with independent ones. Rules that "
                "take from the copies how much they differ hold (partial, projected); those that take a "
                "copy's own chance from its standard errors do not: noisy is too narrow, simple and proper "
                "are too wide. Nor do tests of fit, and errors of prediction, that rest on independent rows."
            )
        if self.filled:
            done.append(
                f"{FILLED}: that is post-processing, and does not tell where. Rules that combine copies take "
                "these values for observed ones, except noisy and projected, which read off how much copies "
                "differ."
            )
        if self.inside:
            done.append(
                "Each copy was drawn inside the record's range, which is public and the same in the table "
                "that the release is compared with: the copies show the ranges, and ε does not change."
            )
        return tuple(done)

    def caveats(self) -> tuple[str, ...]:
        """What the claim does not cover."""
        bound = self.terms.bound
        told = {
            self.if_recomputed: self.if_recomputed and bound.sharper,
            self.left_open: self.left_open,
            write_caveat("C19"): self.declared,
            write_caveat("C20"): self.single_values,
            write_caveat("C21"): self.follows_outcome and bound.local,
            write_caveat("C22"): self.outside_public,
            write_caveat("C23", ", ".join(self.kept), list_protected(self.protected)): self.kept,
            write_caveat("C24"): self.terms.epsilon is not None and bound.over_draws,
            write_caveat("C25"): self.corrected is not None,
            write_caveat("C36"): not self.statement.independent and bound.over_draws,
            write_caveat("C27"): self.seeded,
            write_caveat("C37"): self.simulated and bound.local,
            write_caveat("C38"): self.gaps and "withheld" in self.neighbour,
            write_caveat("C34"): self.standard == "Strict, in range",
        }
        return (*bound.not_covered, *(caveat for caveat, applies in told.items() if applies))

    def facts(self) -> dict[str, str]:
        """Standard, bound, model, columns: what the claim is about."""
        return {
            "standard": self.standard,
            "bound": self.terms.bound.name,
            "model": self.family,
            "copies": str(self.terms.copies),
            "protected": list_protected(self.protected),
            "unchanged": ", ".join(self.passed_through) or "no other column",
            "assumed public": self.known,
            "declared": self.declared,
        }

    def __str__(self) -> str:
        lines = [f"  {name + ':':16}{value}" for name, value in self.facts().items() if value]
        claimed = [
            textwrap.fill(text, 100) for text in (self.plain(), f"Claim. {self.claim()}", *self.processing())
        ]
        caveats = [
            textwrap.fill(text, 100, initial_indent="- ", subsequent_indent="  ") for text in self.caveats()
        ]
        parts = ["hedgerow guarantee", "\n".join(lines), *claimed, "\n".join(["Not covered:", *caveats])]
        return "\n\n".join(parts)

    def __repr__(self) -> str:
        epsilon = self.terms.epsilon
        target = "no target" if epsilon is None else f"ε = {epsilon:g}"
        return f"Guarantee({self.standard}, {self.terms.bound.name}, {target}; print it to read it)"

    def _repr_html_(self) -> str:
        """What a notebook shows: public, as everything here."""
        return card("hedgerow guarantee", self.facts().items(), *self.paragraphs())

    def paragraphs(self) -> list[str]:
        """The claim and what it leaves open, for a card."""
        claimed = [self.plain(), f"Claim. {self.claim()}", *self.processing()]
        return [*map(paragraph, claimed), fold("Not covered", self.caveats())]


def _plain(code: Any) -> float | str:
    """A code as JSON has it: -8 for NumPy's -8.0."""
    if isinstance(code, str):
        return code
    number = float(code)
    return int(number) if number.is_integer() else number


@dataclass(frozen=True, repr=False)
class Release:
    """Synthetic copies with their guarantee: all that may leave."""

    tables: list[Any]
    guarantee: Guarantee
    checks: Any = None  # how many rows of each copy break each check, as a dataframe; None without checks
    replay: Any = None  # what `intervals` replays: public things alone; or in words why it cannot

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle holds copies and guarantee alone: what `intervals` replays stays in this process."""
        return type(self), (self.tables, self.guarantee, self.checks)

    def __repr__(self) -> str:
        epsilon = self.guarantee.terms.epsilon
        target = "no target" if epsilon is None else f"ε = {epsilon:g}"
        return f"Release({format_count(len(self.tables), 'copy')}, {self.guarantee.standard}, {target})"

    def _repr_html_(self) -> str:
        """What a notebook shows: the guarantee, and how large the copies are; none of their values."""
        copies, epsilon = format_count(len(self.tables), "copy"), self.guarantee.terms.epsilon
        of = f" of {self.tables[0].shape[0]:,} rows" if self.tables else ""
        target = "none: no ε is claimed" if epsilon is None else f"{epsilon:g} over all copies"
        facts = self.guarantee.facts() | {"copies": f"{copies}{of}", "target ε": target}
        return card("hedgerow release", facts.items(), *self.guarantee.paragraphs(), mark="may leave")
