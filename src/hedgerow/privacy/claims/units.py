"""Who is protected, in words: one row's value, and what follows for whoever has several rows."""

import math

from hedgerow.numerics.rounding import format_count, format_rounded_up
from hedgerow.privacy.claims import Figures, look_up, total_delta

WHOLE_UNIT = ("statistics", "gaussian")  # their ε is the price of all rows that a unit may have


def write_unit(
    bound: str,
    figures: Figures | None,
    *,
    rows: int | None,
    column: str | None = None,
    several: bool = False,
    together: bool = False,
) -> str:
    """Who is protected: one row's value, and what follows for a person or firm with several rows.

    `rows` is how many the owner declares at most, None if nothing was declared; `figures` is None where
    nothing is claimed; `several` columns are protected. `together`: the claim is for all rows of a unit.
    """
    if together and bound not in WHOLE_UNIT:
        count = None if rows is None else format_count(rows, "row")
        most = "" if count is None else f" The owner declares that none has more than {count}."
        price = " Nothing is claimed." if figures is None else " The price is that of all of them together."
        return (
            f"The unit of privacy is one '{column}': the protected values of all rows with the same value of "
            f"that column. Which rows these are is public.{most}{price}"
        )
    unit = "The unit of privacy is the protected value of one row."
    if several:
        unit = "The unit of privacy is one row with its protected values, all of them together."
    named = "" if column is None else f", as column '{column}' names them,"
    if rows == 1:
        than = "than one row" if several else "than one"
        return f"{unit} The owner declares that no person or firm{named} has more {than}."
    if figures is not None and rows is not None and bound in WHOLE_UNIT:
        price = f"ε = {format_rounded_up(figures.epsilon, 6)}"
        price += f" and δ = {format_rounded_up(figures.delta, 2)}" if bound == "gaussian" else ""
        return (
            f"The unit of privacy is one person or firm. The owner declares that none{named} has more than "
            f"{rows} rows, and the noise is that for all of them: {price} is the price over all copies where "
            f"{look_up(_MOVED, figures, '')}."
        )
    unit += (
        " How many rows one person or firm may have was not declared."
        if rows is None
        else f" The owner declares that one person or firm{named} has at most {rows}{' rows' * several}."
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
    moved = look_up(_MOVED, figures, "")
    if bound == "statistics":
        return f"{unit} For {k} rows together the price is {epsilon} over all copies where {moved}."
    if bound in ("renyi", "gaussian"):
        chance = f"δ times {k}e^(({k} − 1)ε)"
        delta = total_delta(bound, figures)
        if rows is not None and delta > 0:
            log = math.log(rows) + (rows - 1) * figures.epsilon + math.log(delta)
            vacuous = ", which is above 1 and says nothing"
            chance += vacuous if log >= 0 else f" = {format_rounded_up(math.exp(log), 2)}"
        if bound == "gaussian":
            return f"{unit} For {k} rows together the price is {epsilon} and {chance}, where {moved}."
        return (
            f"{unit} For {k} rows together nothing is proven: it would be {epsilon} and {chance}, if the "
            "statement held as well for the tables in which some of these outcomes are withheld already, and "
            "those were not priced."
        )
    return (
        f"{unit} For {k} rows together nothing is claimed. Adding up their prices makes {epsilon} over all "
        "copies, which is an account and not a bound."
    )


_MOVED = {
    "Strict, withheld": "their outcomes are withheld",
    "Strict, replaced": "their outcomes are replaced by any others",
    "Strict, in range": "each outcome is replaced by another of its set",
}
