"""A release: synthetic copies, and what exactly may be claimed about them.

Everything here is releasable: it is covered by the stated target or does not depend on the confidential
outcome. What the fit achieved, its risks and weights stay with the synthesizer.
"""

import textwrap
from dataclasses import dataclass
from typing import Any

from hedgerow.price import Bound

_NOT_COVERED = (
    "It is not differential privacy: over all parameters the loss is unbounded for this model. It speaks of "
    "the draws made for the data at hand, not of every possible table.",
    "Weights, their scale and the ranges are held fixed, although they were computed from all records.",
    "Who is in the table, the number of records and every other column are not protected.",
    "Replacing an outcome by a value that does not occur in the table is not covered.",
)
_LEVERAGE = (
    "A record that decides much of its own fit, such as the only one of its category, can lose more than the "
    "draws show."
)
_REVERSE = (
    "The loss is that of draws made given the table; draws made given the table it is compared with are not "
    "covered."
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
    seeded: bool

    @property
    def epsilon_per_copy(self) -> float | None:
        """The target for one copy."""
        return None if self.epsilon is None else self.epsilon / self.copies

    def claim(self) -> str:
        """The sentence that may be copied into a release note."""
        if self.epsilon is None:
            return (
                "No ε may be claimed: the copies were made without a target, and what they cost was "
                "computed from the confidential data."
            )
        sure = f"{self.confidence:.0%} confidence over {self.draws} {self._draws_kind()} draws"
        price = f"ε = {self.epsilon / self.copies:g} for one copy"
        if self.copies > 1:
            price += f" (in total {self.epsilon:g} and {self.copies}δ for {self.copies} copies)"
        if self.bound == "exact":
            return (
                f"With {sure}, a released parameter draw has probability at most δ = {self.delta:.2g} of a "
                f"privacy loss above {price} about any record, compared with the table in which "
                f"{self.neighbour}."
            )
        return (
            f"With {sure}, on a set of parameters that holds all but at most δ = {self.delta:.2g} of the "
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
        if self.known:
            return (
                "The ε of a range standard compares with a public that knows the range. With the outcome "
                "withheld altogether the loss may be larger and is not covered by ε."
            )
        return ""

    def caveats(self) -> tuple[str, ...]:
        """What the claim does not cover."""
        found = list(_NOT_COVERED)
        found.append(_REVERSE if self.bound == "exact" else _LEVERAGE)
        if self.left_open:
            found.append(self.left_open)
        if not self.independent:
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
        lines = ["hedgerow guarantee", ""]
        lines += [f"  {name + ':':16}{value}" for name, value in facts]
        lines += ["", *_wrapped("Claim. " + self.claim(), ""), "", "Not covered:"]
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
