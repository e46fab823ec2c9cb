"""The top of the owner's report: the decision in a sentence and three numbers, what to know before signing.

Confidential. No number stands alone: each has a line on how to read it, and the price of a range the one that
is paid with the outcome withheld beside it.
"""

from collections.abc import Mapping
from typing import Any

from hedgerow.numerics.rounding import format_count, format_figure, format_rounded_up
from hedgerow.privacy.claims import HARDLY
from hedgerow.report.html import Html, bullets, element, join, name, paragraph, reading, shorten, tiles
from hedgerow.report.parts.scrutiny import judge_attack, name_price
from hedgerow.report.parts.structure import expect_by_chance, find_worst

Document = Mapping[str, Any]
_EVERYTHING = "100 %"  # what odds come to where they are bounded by nothing
_SPOILT = 0.1  # how much farther from the original weights take the copies: half of what stops a release
_AT_HAND = "for this very table, its weights held fixed. It is not differential privacy"
_BY_DRAWS = f"How far {{one}} can move the copies, as far as draws show it, {_AT_HAND}"
# What ε is, by bound: no more than its sentence says.
_MEANS = {
    "lipschitz": _BY_DRAWS,
    "oscillation": _BY_DRAWS,
    "exact": _BY_DRAWS,
    "renyi": f"How far {{one}} can move the copies, over all parameters, {_AT_HAND}",
    "strict": "Differential privacy of what is protected, over a public box of parameters",
    "censored": "Differential privacy of what is protected, if the sampler has reached its posterior",
    "statistics": "Differential privacy of what is protected, by noise in sums, for any number of copies",
    "gaussian": "Differential privacy of what is protected, by noise in sums, for any number of copies",
}
# What the odds are about, by bound: no more than its sentence says.
_ODDS = {
    "lipschitz": "Whoever gave {before} to this very table, and the rest to its neighbour, may come to at "
    "most this: for the table at hand and under the conditions below. No limit on what can be guessed about "
    "an outcome.",
    "renyi": "A test that says wrongly in {before} of the cases that it was this very table says so rightly "
    "in at most {after}: for the table at hand, under the conditions below.",
    "gaussian": "A test of one outcome that is wrong in {before} of the cases is right in at most {after}.",
    "strict": "Whoever gave {before} to some statement about one outcome may come to at most this by seeing "
    "the copies.",
    "statistics": "Whoever gave {before} to some statement about one outcome may come to at most this by "
    "seeing the copies.",
    "censored": "Whoever gave {before} to some statement about one outcome may come to at most this by "
    "seeing the copies, if draws were exact.",
}


def show_decision(document: Document, audit: Document | None, attack: Document | None) -> list[Html | None]:
    doubts = _list_doubts(document, audit, attack)
    warned = element("div", element("strong", "Before you sign"), bullets(doubts), class_="warn")
    cells = (_tell_epsilon(document["claim"]), _tell_odds(document["claim"]), _tell_distance(document))
    return [
        paragraph(_ask(document), class_="lead"),
        tiles(cell for cell in cells if cell is not None),
        warned if doubts else None,
        reading(_tell_tests(document, audit, attack)),
    ]


def _ask(document: Document) -> str:
    """The question, with what the fit at hand costs and carries."""
    claim, price, gauge = document["claim"], document.get("price"), document.get("gauge")
    copies = format_count(claim["copies"], "synthetic copy")
    asked = f"To decide: may {copies} of {claim['records']:,} records leave"
    if claim["epsilon"] is None:
        return f"{asked}, for which no ε is claimed?"
    total = format_rounded_up(claim["epsilon"][1], 6)
    asked += f" at ε = {total} in total, under '{claim['standard']}' with the bound '{claim['bound']}'?"
    found = []
    if price is not None and price["total"] is not None:
        found.append(f"costs {format_figure(price['total'])}")
        if price.get("withheld") is not None:  # under a range
            withheld = format_figure(price["withheld"])
            found[-1] += f" (with the outcome withheld {withheld}, which is not claimed)"
    if gauge:
        worth = format_figure(gauge["records"], 3)
        found.append(f"carries {worth} of {gauge['of']:,} records' worth of information")
        found[-1] += f" about '{shorten(gauge['column'])}'" * bool(gauge["column"])
    return f"{asked} The fit at hand {' and '.join(found)}." if found else asked


def _tell_epsilon(claim: Document) -> tuple[object, object, object]:
    if claim["epsilon"] is None:
        return "none", "ε", "Nothing may be claimed about what these copies give away."
    delta = (
        ""
        if claim["delta"] is None
        else f", at δ\N{NO-BREAK SPACE}= {format_rounded_up(claim['delta'][1], 2)}"
    )
    one = f"one '{shorten(claim['unit'])}' with all its records" if claim["unit"] else "one record"
    means = _MEANS.get(claim["bound"], _BY_DRAWS).replace("{one}", one)
    return (
        format_rounded_up(claim["epsilon"][1], 6),
        f"ε over all copies{delta}",
        f"{means}. Smaller is more private.",
    )


def _tell_odds(claim: Document) -> tuple[object, object, object] | None:
    if not claim["odds"]:
        return None
    bound = claim["bound"]
    before, after = claim["odds"][len(claim["odds"]) // 2].values()
    label = f"how sure one can become, at most, from {before}"
    if bound in ("renyi", "gaussian"):
        label = f"how often a test is right, at most, if it is wrong in {before}"
    how = _ODDS.get(bound, _ODDS["lipschitz"]).format(before=before, after=after)
    how += " That is hardly a limit." * (after == _EVERYTHING or HARDLY in claim["plain"])
    return after, *(words.replace(" %", "\N{NO-BREAK SPACE}%") for words in (label, how))


def _tell_distance(document: Document) -> tuple[object, object, object] | None:
    worst = find_worst(document["columns"])
    if worst is None:
        return None
    gap, column = worst
    of = "of the worst column " if len(document["columns"]) > 1 else "of "
    told: list[object] = [
        "Largest difference between the distributions of original and copies, ", of, name(column),
        ": 0 is best, 1 worst.",
    ]  # fmt: skip
    for each in document["columns"]:
        if each["column"] == column and (chance := expect_by_chance(each)) is not None:
            told.append(f" Two samples of this size from one distribution differ by about {chance:.2g}.")
    return f"{gap:.2g}", "distance of copies from the original", join(told)


def _tell_tests(document: Document, audit: Document | None, attack: Document | None) -> str:
    """Which tests were run."""
    told = {
        what: "not possible for this release" if document["refused"][what] else "not run"
        for what in ("audit", "attack")
    }
    if audit is not None:
        above = len(audit["breaches"]) + len(audit["reverse_breaches"])
        told["audit"] = (
            f"{format_count(above, 'record')} above the price" if above else "none above the price"
        )
    if attack is not None:
        told["attack"] = judge_attack(attack)
    return f"Audit: {told['audit']}. Attack: {told['attack']} (Does the price hold?)."


def _list_doubts(document: Document, audit: Document | None, attack: Document | None) -> list[Any]:
    """What stands in the way of signing."""
    records, gauge, found = document.get("records"), document.get("gauge"), list(document["warnings"])
    bound = document["claim"]["bound"]
    if gauge and gauge["discards"]:
        found.insert(0, "The target is met only by discarding the data: copies are the prior's.")
    elif gauge and gauge.get("ecdf") is not None and gauge["ecdf"] - gauge["plain_ecdf"] > _SPOILT:
        of = f" of '{shorten(gauge['column'])}'" if gauge["column"] else ""
        found.insert(
            0,
            f"Weights take the copies away from the data: the distance{of} is {gauge['ecdf']:.2g} in trial "
            f"copies, and {gauge['plain_ecdf']:.2g} without weights.",
        )
    if HARDLY in document["claim"]["plain"]:
        found.append("At this ε the claim is hardly a limit (What could be learned?).")
    if records and records["flagged"]:
        count = format_count(records["flagged"], "record")
        found.append(f"{count} flagged: draws cannot bound the loss about them (Which records decide?).")
    if bound == "lipschitz" and not (document.get("draws") or {}).get("settled", True):
        found.append(
            "The price of the fit still grows with the number of draws (Does the price hold?). What is "
            "claimed is for as many as were made."
        )
    if audit and (above := len(audit["breaches"]) + len(audit["reverse_breaches"])):
        found.append(f"The audit found {format_count(above, 'record')} above {name_price(audit, bound)}.")
    if attack and attack["breach"]:
        found.append(f"The attack {judge_attack(attack)}.")
    if document["claim"]["seeded"]:
        found.append("The randomness comes from a seed: whoever knows it can undo the protection.")
    return list(dict.fromkeys(found))
