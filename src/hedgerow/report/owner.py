"""The owner's report: one page on which to decide, in the order a disclosure board asks. Confidential.

    >>> import json
    >>> from pathlib import Path
    >>> page = write_page(json.loads(Path("release/confidential/report.json").read_text()))
    >>> MARK in page
    True

Is it labelled, what could be learned, does it have the structure, is it documented? The page is a function of
one document (`figures`), which a release keeps as `confidential/report.json`, and of what was run later: an
audit, an attack, named analyses.
"""

from collections.abc import Mapping
from typing import Any

from hedgerow import __version__
from hedgerow.numerics.rounding import format_count, format_figure, format_rounded_up
from hedgerow.report import pictures
from hedgerow.report.charts import Rule
from hedgerow.report.html import (
    LONGEST,
    Html,
    bullets,
    contents,
    details,
    element,
    facts,
    figures,
    join,
    name,
    names,
    page,
    paragraph,
    prose,
    reading,
    section,
    shorten,
    table,
    tiles,
)
from hedgerow.report.parts.scrutiny import judge_attack, name_price, show_tests
from hedgerow.report.parts.structure import find_worst, show_structure, show_worth

VERSION = 2  # of the document
MARK = "CONFIDENTIAL: not for publication"
_SECTIONS = {
    "labelled": "Is it labelled?",
    "learned": "What could be learned?",
    "riskiest": "Which records decide?",
    "tested": "Does the price hold?",
    "structure": "Does it have the structure?",
    "kept": "What is it worth?",
    "documented": "Is it documented?",
}
_LONG_LABEL = 100  # signs of what stands beside a fact
_LONG_NAMES = 10  # that are given in full, so that a page stays small
_LONGEST_NOTE = 1000  # signs of a note, or of what is assumed
_EVERYTHING = "100 %"  # what odds come to where they are bounded by nothing
_AT_HAND = "for this very table, its weights held fixed. It is not differential privacy"
_BY_DRAWS = f"How far one record can move the copies, as far as draws show it, {_AT_HAND}"
# What ε is, by bound: no more than its sentence says.
_MEANS = {
    "lipschitz": _BY_DRAWS,
    "oscillation": _BY_DRAWS,
    "exact": _BY_DRAWS,
    "renyi": f"How far one record can move the copies, over all parameters, {_AT_HAND}",
    "strict": "Differential privacy of what is protected, over a public box of parameters",
    "censored": "Differential privacy of what is protected, if the sampler has reached its posterior",
    "statistics": "Differential privacy of what is protected, by noise in sums, for any number of copies",
    "gaussian": "Differential privacy of what is protected, by noise in sums, for any number of copies",
}
# What the odds are about, by bound: no more than its sentence says.
_ODDS = {
    "lipschitz": "Whoever gave {before} to this very table, and not its neighbour, may come to at most this: "
    "for the table at hand and under the conditions below. No limit on what can be guessed about an outcome.",
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

Document = Mapping[str, Any]


def write_page(
    document: Document,
    *,
    audit: Document | None = None,
    attack: Document | None = None,
    utility: Document | None = None,
) -> Html:
    """The page of a document; what was run later may be added."""
    claim, release = document["claim"], document.get("release", {})
    title = (
        f"Report on release {release['id']}"
        if release
        else f"Report on a fit of {shorten(', '.join(claim['protected']))}"
    )
    parts: dict[str, list[Html | None]] = {
        "labelled": _label(claim, release),
        "learned": _learn(document),
        "riskiest": _risk(document),
        "tested": show_tests(document, audit, attack),
        "structure": show_structure(document),
        "kept": show_worth(document, utility),
        "documented": _document(document),
    }
    return page(
        title,
        *_decide(document, audit, attack),
        contents(_SECTIONS.items()),
        *(section(_SECTIONS[id], *body, id=id) for id, body in parts.items()),
        element(
            "footer",
            f"Written by hedgerow {__version__} for the owner of the data. Everything here is computed "
            "from the confidential data and covered by no ε: keep it with the data.",
        ),
        mark=MARK,
    )


def _decide(document: Document, audit: Document | None, attack: Document | None) -> list[Html | None]:
    """The decision in three numbers and a sentence."""
    claim, price = document["claim"], document.get("price")
    copies = format_count(claim["copies"], "synthetic copy")
    if claim["epsilon"] is None:
        said = f"{copies.capitalize()} of {claim['records']:,} records, for which no ε is claimed."
        epsilon = ("none", "ε", "Nothing may be claimed about what these copies give away.")
    else:
        total = format_rounded_up(claim["epsilon"][1], 6)
        said = (
            f"{copies.capitalize()} of {claim['records']:,} records at ε = {total} in total, "
            f"under '{claim['standard']}' with the bound '{claim['bound']}'"
        )
        if price is not None and price["total"] is not None:
            said += f"; the fit at hand costs {format_figure(price['total'])}"
        if document.get("gauge"):
            gauge = document["gauge"]
            worth = format_figure(gauge["records"], 3)
            said += f" and carries {worth} of {gauge['of']:,} records' worth of information"
            said += f" about '{shorten(gauge['column'])}'" * bool(gauge["column"])
        said += "."
        delta = "" if claim["delta"] is None else f", at δ = {format_rounded_up(claim['delta'][1], 2)}"
        epsilon = (
            total,
            f"ε over all copies{delta}",
            f"{_MEANS.get(claim['bound'], _BY_DRAWS)}. Smaller is more private.",
        )
    cells = [epsilon]
    if claim["odds"]:
        before, after = claim["odds"][len(claim["odds"]) // 2].values()
        how = _ODDS.get(claim["bound"], _ODDS["lipschitz"]).format(before=before, after=after)
        how += " That is hardly a limit." * (after == _EVERYTHING)
        cells.append((after, f"at most, from {before}", how.replace(" %", "\N{NO-BREAK SPACE}%")))
    worst = find_worst(document["columns"])
    if worst is not None:
        gap, column = worst
        of = "of the worst column " if len(document["columns"]) > 1 else "of "
        words = ["Largest difference between the distributions of original and copies, ", of, name(column)]
        cells.append(
            (f"{gap:.2g}", "distance of copies from the original", join([*words, ": 0 is best, 1 worst."]))
        )
    doubts = _list_doubts(document, audit, attack)
    return [
        paragraph(said, class_="lead"),
        tiles(cells),
        element("div", element("strong", "Before you sign"), bullets(doubts), class_="warn")
        if doubts
        else None,
    ]


def _list_doubts(document: Document, audit: Document | None, attack: Document | None) -> list[Any]:
    """What stands in the way of signing."""
    records, gauge, found = document.get("records"), document.get("gauge"), list(document["warnings"])
    if gauge and gauge["discards"]:
        found.insert(0, "The target is met only by discarding the data: copies are the prior's.")
    if records and records["flagged"]:
        count = format_count(records["flagged"], "record")
        found.append(f"{count} flagged: draws cannot bound the loss about them (Which records decide?).")
    if audit and (above := len(audit["breaches"]) + len(audit["reverse_breaches"])):
        bound = document["claim"]["bound"]
        found.append(f"The audit found {format_count(above, 'record')} above {name_price(audit, bound)}.")
    if attack and attack["breach"]:
        found.append(f"The attack {judge_attack(attack)}.")
    if document["claim"]["seeded"]:
        found.append("The randomness comes from a seed: whoever knows it can undo the protection.")
    return list(dict.fromkeys(found))


def _label(claim: Document, release: Document) -> list[Html | None]:
    rows: list[tuple[object, object]] = [
        ("protected and synthetic", names(claim["protected"])),
        ("as in the original", names(claim["unchanged"]) if claim["unchanged"] else "no column"),
        ("model", claim["family"]),
    ]
    if release:
        rows += [
            ("release, made on", f"{release['id']}, {release['date']}"),
            ("files", names(release["files"])),
            ("SHA-256 of the certificate", element("code", release["certificate"])),
            *((label, prose(text)) for label, text in release["about"]),
        ]
    long = [whole for whole in (*claim["protected"], *claim["unchanged"]) if len(whole) > LONGEST]
    return [
        facts(rows),
        details("Long names in full", bullets(long[:_LONG_NAMES]), class_="long") if long else None,
        reading(
            "Every row of a copy is synthetic in the protected columns and real in the others. Files are "
            "named synthetic-copy, and their certificate and page say so first; whoever passes them on "
            "should too."
        ),
    ]


def _learn(document: Document) -> list[Html | None]:
    claim, price, strict = document["claim"], document.get("price"), document.get("strict")
    body: list[Html | None] = [
        paragraph(claim["plain"]),
        details("The formal sentence", paragraph(claim["formal"])),
    ]
    if claim["odds"]:
        body += [
            element("h3", "Odds"),
            table(claim["odds"], label="Odds"),
            reading("Under the conditions of the paragraph above; the formal sentence is what holds."),
        ]
    if price is not None:
        made = [pictures.show_bounds(price, claim["bound"])]
        if price.get("by_column"):
            made.append(pictures.show_columns_price(price["by_column"]))
        records, total = document["records"], price["one"]
        rule = None if total is None else Rule(total, f"price of one copy {format_figure(total)}")
        held, every = records["price"]["count"], claim["records"]
        some, dearest = ("every record", "records")
        if held != every:
            some, dearest = (f"{held:,} of {every:,} records", "of all")
        made.append(
            pictures.show_violins(
                records,
                ("price", "withheld"),
                "Price by record",
                "ε of one copy",
                f"Each violin holds {some}; the ring is the median, the thick line the middle half, "
                f"dots the dearest {dearest} one by one. The price is the dearest record's.",
                rule=rule,
            )
        )
        body.append(figures(*made))
    if strict is not None:
        body += [
            element("h3", "Why there is no price by record"),
            paragraph(
                "Noise was added to sums of clipped values, by an amount set before the data were read. ε "
                "holds for every table and every record alike: there are no weights, no risks and no "
                "riskiest record."
            ),
            facts(
                [
                    ("ε for one outcome withheld, at most", format_figure(strict["withheld"])),
                    ("values moved to a limit", f"{strict['clipped']:.2%}"),
                ]
            ),
            reading("A share above a few percent means that copies miss what lies beyond the limits."),
        ]
    return body


def _risk(document: Document) -> list[Html | None]:
    records, claim = document.get("records"), document["claim"]
    if records is None:
        return [
            paragraph("None: under this standard every record has the same price (What could be learned?).")
        ]
    shown = [
        {
            "record": row["record"],
            "price": row["price"],
            "% of largest": None if row["share"] is None else 100 * row["share"],
            "risk": row["risk"],
            "α": row["alpha"],
            "α*": row["power"],
            **({"λ": row["known"]} if "known" in row else {}),
            **({"range": row["range"]} if any(one["range"] for one in records["riskiest"]) else {}),
            **({"flagged": row["flagged"]} if records["flagged"] else {}),
        }
        for row in records["riskiest"]
    ]
    made = [pictures.show_weights(records["alpha_by_risk"])]
    made.append(
        pictures.show_violins(
            records,
            ("alpha", "power"),
            "Weights",
            "share of the likelihood that is kept",
            "α is the weight of a record, α* the exponent on its likelihood. Near 0 a record is hardly "
            "heard, at 1 it counts in full.",
        )
    )
    if records.get("known"):
        made.append(
            pictures.show_violins(
                records,
                ("known",),
                "λ by record",
                "λ",
                "The probability that a fresh value falls outside the record's public range: near 0 the "
                "range says little, near 1 the public knows most of it already.",
            )
        )
    unit = f" Records of one {shorten(claim['unit'])} share a price." if claim["unit"] else ""
    gauge = document.get("gauge")
    return [
        table(shown, caption=f"The {len(shown)} dearest records"),
        reading(
            "Records are rows of the table that was fitted, counted from 0. Shares are of the largest "
            "price, which is the price of a copy; a few records far above the rest are worth a look "
            f"before ε is raised.{unit}"
        ),
        paragraph(
            f"{_count(records['flagged'], claim['records'])} flagged. Draws cannot bound the loss about a "
            "record that decides much of its own fit."
        ),
        figures(*made),
        *(
            [
                facts((shorten(label, _LONG_LABEL), value) for label, value in gauge["facts"]),
                reading(
                    "Σα* counts how many records' worth of likelihood the copies carry. Trial copies are "
                    "made before anything is spent, and compared where the original has such a cell: a "
                    "distance far above that of the model without weights means that the weights, not the "
                    "model, spoil the copies."
                ),
            ]
            if gauge
            else []
        ),
    ]


def _count(some: int, of: int) -> str:
    return (
        f"{some:,} of {of:,} records {'is' if some == 1 else 'are'}" if some else f"None of {of:,} records is"
    )


def _document(document: Document) -> list[Html | None]:
    claim, release = document["claim"], document.get("release", {})
    body: list[Html | None] = []
    if release:
        looks = [
            {"when": look["time"], "command": look["look"] or "not said", "by": look["who"] or "not said"}
            for look in release["looks"]
        ]
        body.append(element("h3", "Who looked at the data before"))
        body.append(
            table(looks[-20:], label="Looks") if looks else paragraph("No look was counted in the ledger.")
        )
        body.append(
            reading(
                "Whoever chose by what was shown has used the data, and no ε pays for it. The certificate "
                f"says how many looks were counted: {len(looks)}."
            )
        )
        if release["unit"]:
            body += [element("h3", "Who is protected"), paragraph(release["unit"])]
        if release["checks"]:
            body += [
                table(release["checks"], caption="Checks of the plan: rows of each copy that break them"),
                reading("None was changed: a copy that breaks a rule shows that the model does not know it."),
            ]
        at_top = {*document["warnings"]}
        notes = [
            shorten(note, _LONGEST_NOTE)
            for note in [*release["reading"], *release["notes"]]
            if note not in at_top
        ]
        body += [element("h3", "What was noted while it was made"), bullets(notes)] if notes else []
        assumed = [
            {key: prose(shorten(words, _LONGEST_NOTE)) for key, words in row.items()}
            for row in (
                {"assumed to be public": each["what"], "because": each["because"]}
                for each in release["assumed"]
            )
        ]
        body += [details(f"Assumed to be public ({len(assumed)})", table(assumed, label="Assumptions"))]
    moved = [
        f"{count:,} synthetic values of '{shorten(key)}' were moved to a declared limit."
        for key, count in document["moved"].items()
    ]
    caveats = release.get("caveats") or claim["caveats"]
    body += [
        bullets(moved),
        details(f"Not covered by the claim ({len(caveats)})", bullets(caveats)),
        details("Processing after the draw", bullets(claim["processing"])) if claim["processing"] else None,
    ]
    if release:
        software = ", ".join(f"{key} {value}" for key, value in release["software"].items())
        body.append(reading(f"Made with {software}."))
    return body
