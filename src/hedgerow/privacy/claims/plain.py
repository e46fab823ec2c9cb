"""The same for people: what a claim means in odds, what δ is beside 1/n, and who is meant by one record.

    >>> from hedgerow.privacy.claims import NEIGHBOURS, Figures
    >>> figures = Figures(neighbour=NEIGHBOURS["Strict"], epsilon=1.0, copies=1, draws=1000, independent=True)
    >>> write_plain("strict", figures)[-72:]
    'at most 45.1 %: its odds grow at most by a factor of e^(2ε), with ε = 1.'

Each paragraph says what its formal sentence implies and nothing beyond it (docs/maths.md, "In plain words"):

- pure differential privacy bounds the odds of any statement about an outcome, by e^(2ε), because one value is
  withheld and another put in its place;
- a bound that compares the table at hand with one neighbour bounds how well the two can be told apart, and
  nothing about values that were never compared. A pointwise bound does it in odds, ε at a given δ by what a
  test can reach: (ε, δ) does not say that a loss above ε has probability δ.
"""

import math
from collections.abc import Mapping

from hedgerow.numerics.rounding import format_rounded_up
from hedgerow.privacy.claims import SENTENCES, Figures

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
}


def write_plain(bound: str, figures: Figures, *, records: int | None = None) -> str:
    """The paragraph before the formal sentence; with the number of records it holds δ against 1/n."""
    copies = "the released copy" if figures.copies == 1 else f"the {figures.copies} released copies"
    epsilon = f"ε = {format_rounded_up(figures.epsilon, 6)}" + (" in total" if figures.copies > 1 else "")
    if bound in ("strict", "censored"):
        limit = _raise_odds(2 * figures.epsilon)
        text = (
            f"Whoever knows everything else in the table, and gave 10 % to some statement about one outcome, "
            f"may come by {copies} to at most {_percent(limit)}: its odds grow at most by a factor of "
            f"e^(2ε), with {epsilon}."
        )
        if bound == "censored":
            text = text.replace("Whoever", "If the copies came from exact draws: whoever", 1)
            text += " They come from a Markov chain, and how far its draws are from exact ones is not known."
        return text + (HARDLY if limit >= _LITTLE else "")
    delta = _total_delta(bound, figures)
    chance = format_rounded_up(delta, 2)
    other = figures.neighbour.partition(":")[0]
    if bound == "renyi":
        limit = min(1.0, math.exp(min(figures.epsilon, 100.0)) * FALSE_ALARMS + delta)
        text = (
            f"Somebody who knows everything else tests whether {copies} "
            f"{'was' if figures.copies == 1 else 'were'} made from this very table or from the one in which "
            f"{other}. A test that wrongly says the first in 5 % of the cases rightly says it in at most "
            f"{_percent(limit)}: e^ε × 5 % + δ, with {epsilon} and δ = {chance}."
        )
    else:
        limit = _raise_odds(figures.epsilon)
        confident = f"with {figures.confidence:.0%} confidence"
        come = f"10 % to this very table, and 90 % to the one in which {other}, as what {copies} came from"
        come = f"{come}, may come to at most {_percent(limit)}"
        grown = f"the odds grow at most by a factor of e^ε, with {epsilon}"
        text = (
            f"Whoever knows everything else, and gave {come}, even if shown the parameters behind: {grown}, "
            f"except with probability {chance} over the draws, {confident}."
            if bound == "exact"
            else f"Suppose somebody knows everything else and is told that the parameters behind {copies} "
            f"lie in a certain set, which holds them except with probability {chance}, {confident}. Whoever "
            f"then gives {come} by seeing them: {grown}. What being told so gives away is not covered."
        )
    text += HARDLY if limit >= _LITTLE else ""
    text += (
        " This holds for the table at hand, with its weights held fixed. It compares no other values of the "
        "outcome, and is no limit on what can be guessed about it."
    )
    if records is not None and delta >= 1 / records:
        text += f" δ = {chance} in total is not below 1/n = {1 / records:.2g}: "
        text += (
            "publishing one record of n outright has such a δ too."
            if bound == "renyi"
            else "it is the share of the posterior that nobody looked at, and about it nothing is said."
        )
    return text


def write_unit(bound: str, figures: Figures | None, *, rows: int | None, column: str | None = None) -> str:
    """Who is protected: one row's value, and what follows for a person or firm with several rows.

    `rows` is how many the owner declares at most, None if nothing was declared; `figures` is None where
    nothing is claimed.
    """
    unit = "The unit of privacy is the protected value of one row."
    named = "" if column is None else f", as column '{column}' names them,"
    if rows == 1:
        return f"{unit} The owner declares that no person or firm{named} has more than one."
    unit += (
        " How many rows one person or firm may have was not declared."
        if rows is None
        else f" The owner declares that one person or firm{named} has at most {rows}."
    )
    if figures is None:
        return f"{unit} Nothing is claimed for any number of rows."
    k = "k" if rows is None else str(rows)
    epsilon = "kε" if rows is None else f"{k}ε = {format_rounded_up(rows * figures.epsilon, 6)}"
    if bound in ("strict", "censored"):
        sampler = " up to sampler error" if bound == "censored" else ""
        return (
            f"{unit} For {k} rows together the price is{sampler} {epsilon} over all copies where their "
            "outcomes are withheld, and twice that where they are replaced."
        )
    if bound == "renyi":
        chance = f"δ times {k}e^(({k} − 1)ε)"
        delta = _total_delta(bound, figures)
        if rows is not None and delta > 0:
            log = math.log(rows) + (rows - 1) * figures.epsilon + math.log(delta)
            vacuous = ", which is above 1 and says nothing"
            chance += vacuous if log >= 0 else f" = {format_rounded_up(math.exp(log), 2)}"
        return (
            f"{unit} For {k} rows together nothing is proven: it would be {epsilon} and {chance}, if the "
            "statement held as well for the tables in which some of these outcomes are withheld already, and "
            "those were not priced."
        )
    return (
        f"{unit} For {k} rows together nothing is claimed. Adding up their prices makes {epsilon} over all "
        "copies, which is an account and not a bound."
    )


def _total_delta(bound: str, figures: Figures) -> float:
    return figures.delta if SENTENCES[bound].together else figures.copies * figures.delta


def _raise_odds(loss: float) -> float:
    """What 10 % may become when odds grow by a factor of e^loss."""
    return 1 / (1 + (1 - PRIOR) / PRIOR * math.exp(-loss))


def _percent(share: float) -> str:
    return f"{format_rounded_up(100 * share, 3)} %"
