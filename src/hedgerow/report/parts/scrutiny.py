"""What the owner's report says of its price: draws, audit, attack, sampler, box. Confidential."""

from collections.abc import Mapping
from typing import Any

from hedgerow.numerics.rounding import format_figure
from hedgerow.privacy.claims import SENTENCES
from hedgerow.report import pictures
from hedgerow.report.html import Html, element, facts, figures, paragraph, reading

Document = Mapping[str, Any]
_NOT_RUN = "Not run."
_ANEW = " The price is that of the fit which was made for it, and so not quite the one above."


def show_tests(document: Document, audit: Document | None, attack: Document | None) -> list[Html | None]:
    body: list[Html | None] = []
    if document.get("draws"):
        body.append(figures(pictures.show_draws(document["draws"], document["claim"]["bound"])))
    else:
        body.append(paragraph("This bound rests on no draws: ε stays the same however many are made."))
    body.append(element("h3", "Audit: outcomes withheld one by one"))
    if audit is None:
        body.append(_not_run("audit", document))
    else:
        reverse, bound = audit["reverse_breaches"], document["claim"]["bound"]
        looked = audit["largest_reverse"] is not None
        loss = "how far the log densities with and without one outcome lie apart"
        if bound == "renyi":
            loss = "the ε of all copies, at the stated δ, between the releases with and without one outcome"
        body += [
            facts(
                [
                    ("losses are", audit["kind"]),
                    ("outcomes withheld", f"{audit['records']:,}"),
                    ("and everything run again for", f"{audit['recomputed'] or 'none'} of them"),
                    ("largest loss, weights fixed", format_figure(audit["largest_fixed"])),
                    ("largest loss, weights recomputed", format_figure(audit["largest_recomputed"])),
                    ("the same at draws without the record", format_figure(audit["largest_reverse"])),
                    ("held against", name_price(audit, bound)),
                    ("records above it", f"{len(audit['breaches']):,}"),
                    ("further ones, at draws without them", f"{len(reverse):,}" if looked else None),
                ]
            ),
            reading(
                f"A loss is {loss}; ∞ where the target is not met without it, so that there would be no "
                "release. None above the price is what one wants; an audit bounds the loss from below, and "
                "finds no breach rather than proving that there is none.",
                " At draws without the record a bound over draws claims nothing." if looked else None,
                None if audit["of_claim"] else _ANEW,
            ),
        ]
    body.append(element("h3", "Attack: copies with one outcome, and without"))
    if attack is None:
        body.append(_not_run("attack", document))
    else:
        body += [
            facts(
                [
                    ("ε that the attack shows, at least", format_figure(attack["lower"], 3)),
                    ("with confidence", f"{attack['confidence']:.0%}"),
                    ("its estimate", format_figure(attack["estimate"], 3)),
                    ("held against", name_price(attack, document["claim"]["bound"])),
                    ("copies from each table", f"{attack['trials']:,}"),
                    ("verdict", judge_attack(attack)),
                ]
            ),
            reading(
                "An attack bounds ε from below: another one may do better.",
                None if attack["of_claim"] else _ANEW,
            ),
        ]
    health = document["health"]
    rows = [
        ("sampler", health["sampler"]),
        ("draws are independent", "yes" if health["independent"] else "no"),
        ("effective draws", f"{health['effective_draws']:,.0f}"),
        ("R-hat, the worst", format_figure(health["r_hat"]) if "r_hat" in health else None),
        ("chains", health["chains"] if not health["independent"] else None),
        ("divergences", f"{health['divergences']}" if "r_hat" in health else None),
        ("fits that were tried", health["attempts"] if health["attempts"] > 1 else None),
        ("checks that were overridden", ", ".join(health["failed"]) if "failed" in health else None),
    ]
    body += [
        element("h3", "Sampler"),
        facts(rows),
        reading(
            "What is claimed does not rest on this sampler, which draws from what the noisy sums leave open: "
            "few effective draws make copies poorer, not less private."
            if "strict" in document
            else _explain_sampler(health)
        ),
    ]
    if "box" in document:
        shares = {
            "acceptance": "posterior without the box that lies in it",
            "edge_mass": "draws at the box's edge",
        }
        body += [
            element("h3", "Box of parameters"),
            facts(
                (words, f"{document['box'][key]:.1%}")
                for key, words in shares.items()
                if key in document["box"]
            ),
            reading(
                "A box that holds little of the posterior, or draws that crowd its edge, decide the copies."
            ),
        ]
    return body


def _explain_sampler(health: Document) -> str:
    """What there is to doubt about draws, by how they were made."""
    told, named = [], health["sampler"].split(", ")
    if "independent" in named:
        told.append(
            "Independent draws were kept of proposals from a wider distribution: a part of the posterior "
            "where no proposal fell is missed."
        )
    if "normal approximation" in named:
        told.append("A normal approximation stands for the posterior: how far it is off is in no figure.")
    if not health["independent"]:
        told.append("Of a chain R-hat should be below 1.01, divergences 0.")
    return " ".join(told) or "Independent draws of the posterior itself: there is no chain to doubt."


def name_price(found: Document, bound: str) -> str:
    """What an audit or an attack is held against: the claim, or a price of which nothing is claimed."""
    price = format_figure(found["epsilon"] if "epsilon" in found else found["claimed"])
    of = "all copies" if SENTENCES[bound].together else "one copy"
    if found["of_claim"]:
        return f"{price}, the stated ε of {of}"
    return f"{price}, the price of {of} with the outcome withheld, which is not claimed"


def judge_attack(attack: Document) -> str:
    """What an attack says of what it was held against."""
    if attack["of_claim"]:
        return "refutes the claim" if attack["breach"] else "does not refute the claim"
    price = "the price with the outcome withheld"
    return f"shows more than {price}" if attack["breach"] else f"shows no more than {price}"


def _not_run(what: str, document: Document) -> Html:
    """That nothing was run, and how it would be."""
    if reason := document["refused"][what]:
        return paragraph("Not possible for this release. ", reason)
    if "release" not in document:
        return paragraph(_NOT_RUN, " In Python: ", element("code", f"synth.{what}()"), ".")
    run = f"hedgerow {what} DATA --plan confidential/plan.yaml --json > confidential/{what}.json"
    then = element("code", "hedgerow report .")
    return paragraph(
        _NOT_RUN, " In the release folder ", element("code", run), " runs it, and ", then, " tells it here."
    )
