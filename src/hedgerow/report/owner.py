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

from collections.abc import Mapping, Sequence
from typing import Any

from hedgerow import __version__
from hedgerow.numerics.rounding import format_figure
from hedgerow.report import pictures
from hedgerow.report.html import (
    LONGEST,
    Html,
    bullets,
    contents,
    details,
    element,
    facts,
    figures,
    names,
    page,
    paragraph,
    prose,
    reading,
    section,
    shorten,
    table,
)
from hedgerow.report.parts.decision import show_decision
from hedgerow.report.parts.prices import show_prices
from hedgerow.report.parts.scrutiny import show_tests
from hedgerow.report.parts.structure import SPREAD, show_structure, show_worth

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

Document = Mapping[str, Any]


def write_page(
    document: Document,
    *,
    audit: Document | None = None,
    attack: Document | None = None,
    compare: Document | None = None,
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
        "learned": _learn(document, compare),
        "riskiest": _risk(document),
        "tested": show_tests(document, audit, attack),
        "structure": show_structure(document),
        "kept": show_worth(document, utility),
        "documented": _document(document),
    }
    return page(
        title,
        *show_decision(document, audit, attack),
        contents(_SECTIONS.items()),
        *(section(_SECTIONS[id], *body, id=id) for id, body in parts.items()),
        element(
            "footer",
            f"Written by hedgerow {__version__} for the owner of the data. Everything here is computed "
            "from the confidential data and covered by no ε: keep it with the data.",
        ),
        mark=MARK,
    )


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
            *((label, prose(shorten(said, _LONGEST_NOTE))) for label, said in release["about"]),
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


def _learn(document: Document, compare: Document | None) -> list[Html | None]:
    claim, strict = document["claim"], document.get("strict")
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
    return [*body, *show_prices(document, compare)]


def _risk(document: Document) -> list[Html | None]:
    records, claim = document.get("records"), document["claim"]
    if records is None:
        return [
            paragraph("None: under this standard every record has the same price (What could be learned?).")
        ]
    same = records["power"] == records["alpha"]  # but for standards that leave a share to the public
    shown = [
        {
            "record": row["record"],
            "price": row["price"],
            "% of largest": None if row["share"] is None else 100 * row["share"],
            "risk": row["risk"],
            "α": row["alpha"],
            **({} if same else {"α*": row["power"]}),
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
            ("alpha",) if same else ("alpha", "power"),
            "Weights",
            "share of the likelihood that is kept",
            "α is the weight of a record"
            + (", and the exponent on its likelihood" if same else ", α* the exponent on its likelihood")
            + ". Near 0 a record is hardly heard, at 1 it counts in full.",
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
                    "made before anything is spent, and compared where the original has such a cell. The "
                    "ECDF maximum is the largest difference of two distribution functions: one far above "
                    "that of the model without weights means that weights, not the model, spoil the copies."
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
        if document.get("broken"):
            body += _show_broken(document["broken"], claim["copies"])
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


def _show_broken(broken: Sequence[Document], copies: int) -> list[Html | None]:
    """Which share of rows breaks a check of the plan."""
    rows = [
        {"check": row["check"], "original": None if row["original"] is None else 100 * row["original"]}
        | {words: 100 * share for words, share in zip(SPREAD, row["copies"], strict=True)}
        for row in broken
    ]
    if copies == 1:
        rows = [{"check": row["check"], "original": row["original"], "copy": row[SPREAD[1]]} for row in rows]
    return [
        table(rows, caption="Checks of the plan: per cent of rows that break them", digits=3),
        reading(
            "No row was changed. Where copies break what the original keeps, the model does not know it."
        ),
    ]
