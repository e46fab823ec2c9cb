"""The words of a claim, formal and plain, made from its figures alone.

    >>> figures = Figures(neighbour=NEIGHBOURS["Strict"], epsilon=1.0, copies=1, draws=1000, independent=True)
    >>> write_claim("strict", figures)[:54]
    'Each copy is ε-differentially private with ε = 1 for o'
    >>> write_plain("strict", figures)[-72:]
    'at most 45.1 %: its odds grow at most by a factor of e^(2ε), with ε = 1.'

A guarantee writes its claim here, and `release.verify` writes it again from the fields of a certificate, so
that none can say one thing in words and another in figures. Whom a claim protects is in `units`, what it
leaves open in `caveats`. Nothing here needs NumPy: a receiver has none of the engine.

A plain paragraph says what its formal sentence implies and nothing beyond it (docs/maths.md, "In plain
words"). Pure differential privacy bounds the odds of any statement about an outcome, by e^(2ε), because one
value is withheld and another put in its place. A bound that compares the table at hand with one neighbour
bounds how well the two can be told apart: in odds where it holds draw by draw, and ε at a given δ by what a
test can reach, since (ε, δ) does not say that a loss above ε has probability δ.

To add a bound, add its row to `SENTENCES`; to add a standard, its row to `neighbours`. The sentences belong
to versions 1 and 2 of certificates, the plain ones to version 2, and must be recognised as long as such
certificates are about: whoever changes one of them raises that version and keeps the former sentence for the
former version.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from hedgerow.numerics.rounding import format_rounded_up
from hedgerow.privacy.claims.neighbours import ALL, ALL_THEIR, NEIGHBOURS, join_columns, join_records

T = TypeVar("T")


def list_protected(protected: str | tuple[str, ...]) -> str:
    """The protected column or columns, to be shown."""
    return protected if isinstance(protected, str) else ", ".join(protected)


# Standards that bring their own bound: its name, by the label of the standard.
OWN_BOUNDS: Mapping[str, tuple[str, ...]] = {
    "Strict": ("strict",),
    "Censored": ("censored",),
    **dict.fromkeys(("Strict, withheld", "Strict, replaced", "Strict, in range"), ("statistics", "gaussian")),
}
NO_TARGET = (
    "No ε may be claimed: the copies were made without a target, and what they cost was computed from the "
    "confidential data."
)
_NOT_CERTIFIED = "No ε may be claimed. Not certified: "
CORRECTED = "Each released draw was corrected by indirect inference for the bias of the weights"
COUNTED = "Copies were tilted towards the noisy counts of a margin"
FILLED = "Copies have predicted values also where a cell was missing, which counts as withheld"

PRIOR, FALSE_ALARMS = 0.1, 0.05  # of the examples
_LITTLE = 0.995  # a limit from here on limits nothing
NOTHING = "Nothing is promised about how much these copies tell of one outcome."
HARDLY = " At this ε that is hardly a limit."

# What is chosen by looking at the confidential data, by the name of the bound.
_SCALE = "the scale of the weights, until a fresh fit met the target"
_BEFOREHAND = "nothing: a record's weight follows from ε, its own value and public things"
TUNED: Mapping[str, str] = {
    **dict.fromkeys(("lipschitz", "oscillation", "exact", "renyi"), _SCALE),
    **dict.fromkeys(("strict", "censored"), _BEFOREHAND),
    **dict.fromkeys(
        ("statistics", "gaussian"), "nothing: the noise follows from ε, the limits and public things"
    ),
}


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
    unit: str | None = None  # as `whose` has it, where all records of a unit are priced together

    @property
    def several(self) -> bool:
        """Whether several columns are protected, and a record's values of them moved together."""
        return ALL in self.neighbour or ALL_THEIR in self.neighbour

    @property
    def anybody(self) -> str:
        """Whom the price is for."""
        return "record" if self.unit is None else f"{self.unit.removeprefix('one ')} with all its records"

    @property
    def outcome(self) -> str:
        """What two tables differ in."""
        if self.unit is not None:
            return f"the outcomes of all records of {self.unit}{f', {ALL_THEIR},' if self.several else ''}"
        return f"the outcome of one record, {ALL}," if self.several else "one outcome"

    @property
    def others(self) -> str:
        """What it may be replaced by."""
        return "any other values" if self.several or self.unit is not None else "any other value"

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
            f"ε-differentially private with ε = {one} for {self.outcome} withheld, and with 2ε for "
            f"{self.outcome} replaced by {self.others}{total}."
        )


@dataclass(frozen=True)
class Sentence:
    """How a claim under a bound reads, and which figures it states beside ε."""

    write: Callable[[Figures], str]  # the formal sentence
    plain: Callable[[Figures], tuple[str, float]]  # the paragraph, and the limit on a probability in it
    states: tuple[str, ...] = ()
    together: bool = False  # copies have one price, which is not the sum of theirs
    at_hand: bool = False  # it compares the table at hand with one neighbour


def write_claim(bound: str, figures: Figures) -> str:
    """The sentence that may be copied into a release note."""
    return SENTENCES[bound].write(figures)


def write_refusal(uncertified: str = "") -> str:
    """What is said where nothing may be claimed: there was no target, or the owner overrode a check."""
    return f"{_NOT_CERTIFIED}{uncertified}." if uncertified else NO_TARGET


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
        f"that set; {given.price}{'' if given.unit is None else f', for any {given.anybody}'}. "
        "How much of the second posterior lies in the set is not covered."
    )


def _write_exact(given: Figures) -> str:
    return (
        f"With {given.support}, a released parameter draw has probability at most {given.chance} of a "
        f"privacy loss above {given.price} about any {given.anybody}, compared with the table in which "
        f"{given.neighbour}. The probability is over draws given the table; the reverse direction is not "
        "covered."
    )


def _write_renyi(given: Figures) -> str:
    whole = "the released copy" if given.copies == 1 else f"the {given.copies} released copies together"
    return (
        f"The release is compared with the one from the table in which {given.neighbour}. Whatever is looked "
        f"for in {whole} has, given either of the two tables, a probability of at most e^ε times the one "
        f"given the other plus δ, with ε = {format_rounded_up(given.epsilon, 6)} and {given.chance}, for any "
        f"{given.anybody}. This holds over all parameters and rests on no draws; the table is the one at "
        "hand, and its weights and their scale are held fixed."
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


def _write_statistics(given: Figures) -> str:
    epsilon, twice = _once_and_twice(given)
    return (
        f"{_all_copies(given)} ε-differentially private with ε = {epsilon} for "
        f"{_compared(given, f'with 2ε = {twice}')}. This is pure differential privacy for every table with "
        f"these predictors. {_BY_NOISE}"
    )


def _write_gaussian(given: Figures) -> str:
    epsilon, twice = _once_and_twice(given)
    return (
        f"{_all_copies(given)} (ε, δ)-differentially private with ε = {epsilon} and {given.chance} for "
        f"{_compared(given, f'with ε = {twice} and (1 + e^ε)δ')}. This is differential privacy for every "
        f"table with these predictors. {_BY_NOISE}"
    )


def _once_and_twice(given: Figures) -> tuple[str, str]:
    one, two = (format_rounded_up(share * given.epsilon, 6) for share in (1, 2))
    return one, two


def _compared(given: Figures, replaced_at: str) -> str:
    """What two tables differ in, by the relation; withheld also says at which price one is replaced."""
    replaced = f"{given.outcome} replaced by {given.others}"
    sets = "other values of the same public sets"
    if not given.several and given.unit is None:
        sets = "another value of the same public set"
    also = {
        "Strict, withheld": f"{given.outcome} withheld, and {replaced_at} for {replaced}",
        "Strict, replaced": f"{replaced}, or withheld",
    }
    return look_up(also, given, f"{given.outcome} replaced by {sets} (Blowfish privacy)")


def look_up(words: Mapping[str, T], figures: Figures, otherwise: T) -> T:
    """What is said under a standard, by what its releases are compared with."""
    for label, value in words.items():
        for neighbour in (NEIGHBOURS[label], join_columns(NEIGHBOURS[label])):
            unit = figures.unit
            if figures.neighbour == (neighbour if unit is None else join_records(neighbour, unit)):
                return value
    return otherwise


_BY_NOISE = (
    "It rests on the noise of the sums that were released, and on no model, weights or draws; copies are "
    "computed from these sums alone, so that further ones cost nothing."
)


def _all_copies(given: Figures) -> str:
    return "The released copy is" if given.copies == 1 else f"The {given.copies} released copies together are"


def _plain_strict(given: Figures) -> tuple[str, float]:
    text, limit = _write_odds(given, 2)
    return f"{text}.", limit


def _plain_censored(given: Figures) -> tuple[str, float]:
    text, limit = _write_odds(given, 2)
    text = text.replace("Whoever", "If the copies came from exact draws: whoever", 1)
    text += ". They come from a Markov chain, and how far its draws are from exact ones is not known."
    return text, limit


def _plain_statistics(given: Figures) -> tuple[str, float]:
    knows, power = look_up(_KNOWS, given, ("", 1))
    if knows and given.unit is not None:
        knows = ", and the public sets that hold these outcomes"
    text, limit = _write_odds(given, power, knows)
    return f"{text}, however many copies there are.", limit


def _write_odds(given: Figures, power: int, knows: str = "") -> tuple[str, float]:
    """What may become of 10 %, where odds grow by e^ε to this power."""
    limit, about = _raise_odds(power * given.epsilon), given.outcome.removesuffix(",")
    return (
        f"Whoever knows everything else in the table{knows}, and gave 10 % to some statement about {about}, "
        f"may come by {_copies(given)} to at most {_percent(limit)}: its odds grow at most by a factor of "
        f"e^{'(2ε)' if power == 2 else 'ε'}, with {_total(given)}"
    ), limit


def _plain_gaussian(given: Figures) -> tuple[str, float]:
    other = _other_table(given).partition(", while")[0]
    text, limit = _write_test(given, "some table", other)
    return f"{text}, however many copies there are.", limit


def _plain_renyi(given: Figures) -> tuple[str, float]:
    text, limit = _write_test(given, "this very table", _other_table(given))
    return f"{text}.", limit


def _write_test(given: Figures, first: str, other: str) -> tuple[str, float]:
    """What a test of the first table against the other can reach; δ is that of all copies."""
    limit = min(1.0, math.exp(min(given.epsilon, 100.0)) * FALSE_ALARMS + given.delta)
    return (
        f"Somebody who knows everything else tests whether {_copies(given)} "
        f"{'was' if given.copies == 1 else 'were'} made from {first} or from the one in which {other}. A "
        "test that wrongly says the first in 5 % of the cases rightly says it in at most "
        f"{_percent(limit)}: e^ε × 5 % + δ, with {_total(given)} and {given.chance}"
    ), limit


def _plain_exact(given: Figures) -> tuple[str, float]:
    limit, chance = _raise_odds(given.epsilon), format_rounded_up(given.copies * given.delta, 2)
    return (
        f"Whoever knows everything else, and gave {_may_come(given, limit)}, even if shown the parameters "
        f"behind: the odds grow at most by a factor of e^ε, with {_total(given)}, except with probability "
        f"{chance} over the draws, with {given.confidence:.0%} confidence."
    ), limit


def _plain_on_a_set(given: Figures) -> tuple[str, float]:
    limit, chance = _raise_odds(given.epsilon), format_rounded_up(given.copies * given.delta, 2)
    return (
        f"Suppose somebody knows everything else and is told that the parameters behind {_copies(given)} "
        f"lie in a certain set, which holds them except with probability {chance}, with "
        f"{given.confidence:.0%} confidence. Whoever then gives {_may_come(given, limit)} by seeing them: "
        f"the odds grow at most by a factor of e^ε, with {_total(given)}. What being told so gives away is "
        "not covered."
    ), limit


def _may_come(given: Figures, limit: float) -> str:
    return (
        f"10 % to this very table, and 90 % to the one in which {_other_table(given)}, as what "
        f"{_copies(given)} came from, may come to at most {_percent(limit)}"
    )


def _copies(given: Figures) -> str:
    return "the released copy" if given.copies == 1 else f"the {given.copies} released copies"


def _total(given: Figures) -> str:
    return f"ε = {format_rounded_up(given.epsilon, 6)}" + (" in total" if given.copies > 1 else "")


def _other_table(given: Figures) -> str:
    """The neighbour without what follows its colon; a column's name may have a colon too."""
    return given.neighbour.partition(":" if given.unit is None else ": treated as missing")[0]


# By the name of the bound.
SENTENCES: Mapping[str, Sentence] = {
    "lipschitz": Sentence(_write_on_a_set, _plain_on_a_set, ("delta", "confidence"), at_hand=True),
    "oscillation": Sentence(_write_on_a_set, _plain_on_a_set, ("delta", "confidence"), at_hand=True),
    "exact": Sentence(_write_exact, _plain_exact, ("delta", "confidence"), at_hand=True),
    "renyi": Sentence(_write_renyi, _plain_renyi, ("delta",), together=True, at_hand=True),
    "strict": Sentence(_write_strict, _plain_strict),
    "censored": Sentence(_write_censored, _plain_censored),
    "statistics": Sentence(_write_statistics, _plain_statistics, together=True),
    "gaussian": Sentence(_write_gaussian, _plain_gaussian, ("delta",), together=True),
}


def write_plain(bound: str, figures: Figures, *, records: int | None = None) -> str:
    """The paragraph before the formal sentence; with the number of records it holds δ against 1/n."""
    sentence, delta = SENTENCES[bound], total_delta(bound, figures)
    text, limit = sentence.plain(figures)
    text += HARDLY if limit >= _LITTLE else ""
    if sentence.at_hand:
        text += (
            " This holds for the table at hand, with its weights held fixed. It compares no other values of "
            "the outcome, and is no limit on what can be guessed about it."
        )
    if records is not None and "delta" in sentence.states and delta >= 1 / records:
        part = Decimal(f"{1 / records:.2g}")
        text += f" δ = {format_rounded_up(delta, 2)} in total is not below 1/n = {part:f}: "
        text += (
            "publishing one record of n outright has such a δ too."
            if sentence.together
            else "it is the share of the posterior that nobody looked at, and about it nothing is said."
        )
    return text


# What somebody knows beside the other records, and by which multiple of ε odds then grow.
_KNOWS = {
    "Strict, withheld": ("", 2),
    "Strict, replaced": ("", 1),
    "Strict, in range": (", and a public set that holds the outcome of one record", 1),
}


def total_delta(bound: str, figures: Figures) -> float:
    """δ of all copies together."""
    return figures.delta if SENTENCES[bound].together else figures.copies * figures.delta


def _raise_odds(loss: float, prior: float = PRIOR) -> float:
    """What a probability, 10 % if nothing is said, may become when odds grow by a factor of e^loss."""
    return 1 / (1 + (1 - prior) / prior * math.exp(-loss))


def _percent(share: float) -> str:
    return f"{format_rounded_up(100 * share, 3)} %"


def tabulate_odds(bound: str, figures: Figures) -> list[dict[str, str]]:
    """What the plain paragraph says of 10 % (of a test: 5 %), for other shares too: before, and at most."""
    if bound in ("renyi", "gaussian"):
        delta = total_delta(bound, figures)
        factor = math.exp(min(figures.epsilon, 100.0))
        before, after = "a test says wrongly that it was the first table in", "and rightly in at most"
        pairs = [(share, min(1.0, factor * share + delta)) for share in (0.01, FALSE_ALARMS, 0.1)]
    else:
        about = "this very table, not the one it is compared with"
        if bound not in ("lipschitz", "oscillation", "exact"):
            about = f"a statement about {figures.outcome.removesuffix(',')}"
        power = 2 if "e^(2ε)" in write_plain(bound, figures) else 1  # one source for what odds grow by
        before, after = f"chance given beforehand to {about}", "and afterwards, at most"
        pairs = [(prior, _raise_odds(power * figures.epsilon, prior)) for prior in (0.01, PRIOR, 0.5)]
    return [{before: f"{100 * one:g} %", after: _percent(other)} for one, other in pairs]
