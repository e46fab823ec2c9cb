"""A release: synthetic copies, and what exactly may be claimed about them.

Everything here is releasable: it is covered by the stated target or does not depend on the confidential
outcome. What the fit achieved, its risks and weights stay with the synthesizer.
"""

import textwrap
from dataclasses import dataclass
from typing import Any

from hedgerow.mechanism.price import SUPREMA, Bound
from hedgerow.numerics.rounding import format_rounded_up

_NOT_COVERED = (
    "It is not differential privacy: over all parameters the loss is unbounded for this model. It speaks of "
    "the draws made for the data at hand, not of every possible table.",
    "Weights, their scale, the shares taken as public and the ranges are held fixed, although they were "
    "computed from all records, and so is the choice of the fit that met the target.",
    "Who is in the table, the number and order of the records, the index and every other column are not "
    "protected.",
    "Replacing an outcome by any other value is not covered.",
    "That a run ended without a release, because the data, the model or the sampler refused, is not covered.",
    "Arithmetic is in floating point; what the last digits of a copy may tell is not covered.",
)
_LEVERAGE = (
    "A record that decides much of its own fit, such as the only one of its category, can lose more than the "
    "draws show."
)
_STRICT_NOT_COVERED = (
    "It rests on the box of parameters having been chosen without the confidential outcome.",
    "Who is in the table, the number and order of the records, the index and every other column are not "
    "protected.",
    "That a run ended without a release, because the model refused an outcome or too few draws fell into the "
    "box, is not covered.",
)
_CENSORED_NOT_COVERED = (
    "The draws are those of a Markov chain. Its health checks do not reveal a region it never visited, and "
    "nothing known bounds how far its draws are from the posterior the statement is about.",
    "It rests on the model, its prior and with them the censoring having been chosen without the "
    "confidential outcome.",
    "Who is in the table, the number and order of the records, the index and every other column are not "
    "protected.",
    "That a run ended without a release, because the model or the sampler refused, is not covered.",
    "Arithmetic is in floating point; what the last digits of a copy may tell is not covered.",
)


@dataclass(frozen=True)
class Guarantee:
    """What may be claimed, in words. Holds public facts only: the target, never what was achieved."""

    standard: str
    neighbour: str
    bound: Bound
    family: str
    epsilon: float | None  # target over all copies; None: no ε may be claimed
    copies: int
    draws: int
    delta: float
    confidence: float
    independent: bool
    protected: str
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
    sampling: str = "independent"
    if_recomputed: str = ""  # what holding weights fixed leaves open under the sharper bounds, in words

    @property
    def epsilon_per_copy(self) -> float | None:
        """The target for one copy."""
        return None if self.epsilon is None else self.epsilon / self.copies

    def claim(self) -> str:
        """The sentence that may be copied into a release note."""
        if self.uncertified:
            return f"No ε may be claimed. Not certified: {self.uncertified}."
        if self.epsilon is None:
            return (
                "No ε may be claimed: the copies were made without a target, and what they cost was "
                "computed from the confidential data."
            )
        one, whole, twice = (
            format_rounded_up(value, 6)
            for value in (self.epsilon / self.copies, self.epsilon, 2 * self.epsilon)
        )
        if self.bound == "strict":
            total = f"; {self.copies} copies compose to {whole} and {twice}" if self.copies > 1 else ""
            return (
                f"Each copy is ε-differentially private with ε = {one} for "
                f"one outcome withheld, and with 2ε for one outcome replaced by any other value{total}. This "
                "is pure differential privacy over the declared box of parameters, up to floating-point "
                "arithmetic."
            )
        if self.bound == "censored":
            total = (
                f"; {self.copies} independent draws compose to {whole} and {twice}" if self.copies > 1 else ""
            )
            return (
                "Approximate, up to sampler error: an exact draw from the posterior with censored likelihood "
                f"would be ε-differentially private with ε = {one} for one "
                f"outcome withheld, and with 2ε for one outcome replaced by any other value{total}. The "
                "copies come from a Markov chain that approximates this posterior; how far its draws are "
                "from it is not known."
            )
        delta = format_rounded_up(self.delta, 2)
        sure = f"{self.confidence:.0%} confidence over {self.draws} {self._draws_kind()} draws"
        price = f"ε = {one} for one copy"
        if self.copies > 1:
            price += f" (in total {whole} and {self.copies}δ for {self.copies} copies)"
        if self.bound == "exact":
            return (
                f"With {sure}, a released parameter draw has probability at most δ = {delta} of a "
                f"privacy loss above {price} about any record, compared with the table in which "
                f"{self.neighbour}. The probability is over draws given the table; the reverse direction is "
                "not covered."
            )
        return (
            f"With {sure}, on a set of parameters that holds all but at most δ = {delta} of the "
            f"fitted posterior, the posterior given the table and the posterior given the table in which "
            f"{self.neighbour} have densities that differ by a factor of at most e^ε, both restricted to "
            f"that set; {price}. How much of the second posterior lies in the set is not covered."
        )

    @property
    def left_open(self) -> str:
        """What a range standard says nothing about; empty for a standard without a range."""
        if self.averaged:
            return (
                "The range-averaged ε compares with a table that still uses the exact outcome in part. It "
                "does not bound what can be learned about an outcome; with the outcome withheld the loss is "
                "larger and is not covered by ε."
            )
        if self.known and self.bound not in SUPREMA:
            return (
                "The ε of a range standard compares with a public that knows the range. With the outcome "
                "withheld altogether the loss may be larger and is not covered by ε."
            )
        return ""

    def processing(self) -> tuple[str, ...]:
        """What was done to the released draws after the mechanism: none of it touches ε."""
        found = []
        if self.corrected is not None:
            left = self.copies - self.corrected
            how_many = (
                f"Of {self.copies} draws {left} did not converge and went out uncorrected, by a rule fixed "
                "beforehand; none was drawn again."
                if left
                else "All draws converged."
            )
            found.append(
                "Each released draw was corrected by indirect inference for the bias of the weights before "
                "prediction. Only the draw, the predictors, the public columns that the range, the weights "
                "or the model read, the number of records, the settings of the plan and independent "
                "randomness entered, so that this is post-processing: it changes neither ε nor what it "
                f"covers. {how_many}"
            )
        if self.sampling == "stratified":
            found.append(
                "Predictions were made from stratified instead of independent random numbers, which is "
                "post-processing too. Rules that combine copies, and standard errors, assume independent "
                "ones and do not hold for these copies."
            )
        return tuple(found)

    def caveats(self) -> tuple[str, ...]:
        """What the claim does not cover."""
        own = {"strict": _STRICT_NOT_COVERED, "censored": _CENSORED_NOT_COVERED}
        found = list(own.get(self.bound, _NOT_COVERED))
        if self.bound in ("lipschitz", "oscillation"):
            found.append(_LEVERAGE)
        if self.if_recomputed and self.bound in ("oscillation", "exact"):
            found.append(self.if_recomputed)
        if self.left_open:
            found.append(self.left_open)
        if self.declared:
            found.append(
                "It rests on what was declared of the outcome (support, levels, spike) not having been read "
                "from the confidential column."
            )
        if self.single_values:
            found.append(
                "Where a range holds a single value, that value is taken as public and is not protected."
            )
        if self.follows_outcome:
            found.append(
                "The ranges are computed from the outcome itself: whoever knew a record's range would know "
                "its outcome. ε does not cover that; classes with public edges support a plainer statement."
            )
        if self.outside_public:
            found.append(
                "Records whose outcome lies outside its range are taken as public: they are not protected at "
                "all, and which records these are is not protected either."
            )
        if self.epsilon is not None and self.bound not in SUPREMA:
            found.append(
                "The confidence holds if the run was made once, not repeated until it met the target."
            )
        if self.corrected is not None:
            found.append(
                "The correction is post-processing if it was decided on before looking at the confidential "
                "data."
            )
        if not self.independent and self.bound not in SUPREMA:
            found.append("The draws come from a Markov chain, so that δ and the confidence are approximate.")
        if self.seeded:
            found.append(
                "The randomness comes from a seed set by hand. With that seed the copies are a function of "
                "the data: it must stay secret, and a release for publication should be made without one."
            )
        return tuple(found)

    def _draws_kind(self) -> str:
        return "independent" if self.independent else "effective"

    def __str__(self) -> str:
        facts = [
            ("standard", self.standard),
            ("bound", self.bound),
            ("model", self.family),
            ("copies", str(self.copies)),
            ("protected", self.protected),
            ("unchanged", ", ".join(self.passed_through) or "no other column"),
        ]
        if self.known:
            facts.append(("assumed public", self.known))
        if self.declared:
            facts.append(("declared", self.declared))
        lines = ["hedgerow guarantee", ""]
        lines += [f"  {name + ':':16}{value}" for name, value in facts]
        lines += ["", *_wrapped("Claim. " + self.claim(), "")]
        for done in self.processing():
            lines += ["", *_wrapped(done, "")]
        lines += ["", "Not covered:"]
        for caveat in self.caveats():
            lines += _wrapped(caveat, "- ")
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class Release:
    """Synthetic copies with their guarantee."""

    tables: list[Any]
    guarantee: Guarantee

    def __repr__(self) -> str:
        target = "no target" if self.guarantee.epsilon is None else f"ε = {self.guarantee.epsilon:g}"
        return f"Release({len(self.tables)} copies, {self.guarantee.standard}, {target})"


def _wrapped(text: str, bullet: str) -> list[str]:
    return textwrap.wrap(text, 100, initial_indent=bullet, subsequent_indent=" " * len(bullet))
