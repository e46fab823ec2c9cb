"""The words of a claim, made from its figures alone.

    >>> figures = Figures(neighbour=NEIGHBOURS["Strict"], epsilon=2.0, copies=1, draws=1000, independent=True)
    >>> write_claim("strict", figures)[:54]
    'Each copy is ε-differentially private with ε = 2 for o'

A guarantee writes its claim here, and `release.verify` writes it again from the fields of a certificate, so
that none can say one thing in words and another in figures. Nothing here needs NumPy: a receiver has none of
the engine.

To add a bound, add its row to `SENTENCES`; to add a standard, its row to `NEIGHBOURS`. The sentences belong
to version 1 of certificates, which must be recognised as long as they are about: whoever changes one of them
raises that version and keeps the former sentence for the former version.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hedgerow.numerics.rounding import format_rounded_up

WITHHELD = (
    "the outcome of one record is withheld: treated as missing, while its row, its predictors and the "
    "number of records stay"
)
_IN_RANGE = "the outcome of one record is replaced by the statement that it lies in its range, at {} weight"
# The table that a release is compared with, by the label of its standard.
NEIGHBOURS: Mapping[str, str] = {
    "Unweighted": WITHHELD,
    "ADP": WITHHELD,
    "RangeAveraged": (
        "one record keeps only the share of its likelihood deemed public (λ), still at its exact value"
    ),
    "RangeTruncated": _IN_RANGE.format("the record's own"),
    "RangeTruncated, public weight one": _IN_RANGE.format("full"),
    "Strict": WITHHELD,
    "Censored": WITHHELD,
}
NO_TARGET = (
    "No ε may be claimed: the copies were made without a target, and what they cost was computed from the "
    "confidential data."
)
_NOT_CERTIFIED = "No ε may be claimed. Not certified: "


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What the sentence of a claim is made from. All of it is in the certificate."""

    neighbour: str
    epsilon: float  # over all copies
    copies: int
    draws: int
    independent: bool
    delta: float = 0.0  # of one copy; of all where they are priced together
    confidence: float = 1.0

    @property
    def price(self) -> str:
        """ε for one copy, and for all of them where there are several."""
        price = f"ε = {format_rounded_up(self.epsilon / self.copies, 6)} for one copy"
        if self.copies > 1:
            total, m = format_rounded_up(self.epsilon, 6), self.copies
            price += f" (in total {total} and {m}δ for {m} copies)"
        return price

    @property
    def chance(self) -> str:
        """δ, of one copy or of all."""
        return f"δ = {format_rounded_up(self.delta, 2)}"

    @property
    def support(self) -> str:
        """How sure a statement over draws is."""
        kind = "independent" if self.independent else "effective"
        return f"{self.confidence:.0%} confidence over {self.draws} {kind} draws"

    def write_private(self, composed: str) -> str:
        """What differential privacy says of one copy, and of what is `composed`."""
        values = self.epsilon / self.copies, self.epsilon, 2 * self.epsilon
        one, whole, twice = (format_rounded_up(value, 6) for value in values)
        total = f"; {self.copies} {composed} compose to {whole} and {twice}" if self.copies > 1 else ""
        return (
            f"ε-differentially private with ε = {one} for one outcome withheld, and with 2ε for one outcome "
            f"replaced by any other value{total}."
        )


@dataclass(frozen=True)
class Sentence:
    """How a claim under a bound reads, and which figures it states beside ε."""

    write: Callable[[Figures], str]
    states: tuple[str, ...] = ()
    together: bool = False  # copies have one price, which is not the sum of theirs


def write_claim(bound: str, figures: Figures) -> str:
    """The sentence that may be copied into a release note."""
    return SENTENCES[bound].write(figures)


def write_refusal(uncertified: str = "") -> str:
    """What is said where nothing may be claimed: there was no target, or the owner overrode a check."""
    return f"{_NOT_CERTIFIED}{uncertified}." if uncertified else NO_TARGET


def write_consent(kept: Iterable[str], protected: str) -> str:
    """What is said of columns that are released although they may give the outcome away."""
    return (
        f"The owner keeps {', '.join(kept)} in the copies on purpose, whatever they say about "
        f"'{protected}': what can be computed from them is published."
    )


def write_looks(looks: int) -> str:
    """What a claim does not cover because of looks at the data beforehand."""
    if looks == 0:
        counted = "No look at the confidential data was counted before this release"
        return f"{counted}; choices made by looks that nobody counted are not covered."
    times = "once" if looks == 1 else f"{looks} times"
    return (
        f"The confidential data was looked at {times} before this release, as far as that was counted: "
        "choices made by what was seen are not covered."
    )


def is_refusal(claim: str) -> bool:
    """Whether a text is what `write_refusal` writes: which checks were overridden, and no figure for ε."""
    return claim == NO_TARGET or (
        claim.startswith(_NOT_CERTIFIED) and "ε" not in claim.removeprefix(_NOT_CERTIFIED)
    )


def _write_on_a_set(given: Figures) -> str:
    return (
        f"With {given.support}, on a set of parameters that holds all but at most {given.chance} of the "
        f"fitted posterior, the posterior given the table and the posterior given the table in which "
        f"{given.neighbour} have densities that differ by a factor of at most e^ε, both restricted to "
        f"that set; {given.price}. "
        "How much of the second posterior lies in the set is not covered."
    )


def _write_exact(given: Figures) -> str:
    return (
        f"With {given.support}, a released parameter draw has probability at most {given.chance} of a "
        f"privacy loss above {given.price} about any record, compared with the table in which "
        f"{given.neighbour}. The probability is over draws given the table; the reverse direction is not "
        "covered."
    )


def _write_renyi(given: Figures) -> str:
    whole = "the released copy" if given.copies == 1 else f"the {given.copies} released copies together"
    return (
        f"The release is compared with the one from the table in which {given.neighbour}. Whatever is looked "
        f"for in {whole} has, given either of the two tables, a probability of at most e^ε times the one "
        f"given the other plus δ, with ε = {format_rounded_up(given.epsilon, 6)} and {given.chance}, for any "
        "record. This holds over all parameters and rests on no draws; the table is the one at hand, and its "
        "weights and their scale are held fixed."
    )


def _write_strict(given: Figures) -> str:
    return (
        f"Each copy is {given.write_private('copies')} This is pure differential privacy over the declared "
        "box of parameters, up to floating-point arithmetic."
    )


def _write_censored(given: Figures) -> str:
    return (
        "Approximate, up to sampler error: an exact draw from the posterior with censored likelihood would "
        f"be {given.write_private('independent draws')} The copies come from a Markov chain that "
        "approximates this posterior; how far its draws are from it is not known."
    )


# By the name of the bound.
SENTENCES: Mapping[str, Sentence] = {
    "lipschitz": Sentence(_write_on_a_set, ("delta", "confidence")),
    "oscillation": Sentence(_write_on_a_set, ("delta", "confidence")),
    "exact": Sentence(_write_exact, ("delta", "confidence")),
    "renyi": Sentence(_write_renyi, ("delta",), together=True),
    "strict": Sentence(_write_strict),
    "censored": Sentence(_write_censored),
}
