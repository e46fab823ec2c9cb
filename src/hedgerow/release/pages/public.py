"""The releasable page, `public/index.html`: what this is, what may be claimed, what is kept, how to use it.

    page = write_page(certificate, plan.public(), Layout.of(copy.schema, like))

It says what a receiver needs and nothing else, and is a function of public things alone: the certificate, the
published plan and how the copies are laid out. So it can hold none of what stays in `confidential/`, and
whoever has a release and hedgerow can write it again. Its digest is in the certificate; `verify` also looks
for the certificate's claim in it.
"""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from hedgerow.numerics.rounding import format_count
from hedgerow.privacy.claims import CORRECTED, COUNTED
from hedgerow.privacy.columns import Column, Rules
from hedgerow.privacy.weights import PlannedWeights, ScalarWeights
from hedgerow.release.certificate import ABOUT, Certificate
from hedgerow.release.folder import CERTIFICATE, CERTIFICATE_TEXT, PAGE, SIGNATURE
from hedgerow.release.pages.layout import Layout
from hedgerow.release.pages.usage import explain_usage
from hedgerow.release.plan import Plan
from hedgerow.report.html import (
    Html,
    bullets,
    code,
    contents,
    details,
    element,
    facts,
    join,
    link,
    name,
    names,
    page,
    paragraph,
    prose,
    section,
    shorten,
    table,
    text,
)
from hedgerow.tables.formula import parse
from hedgerow.tables.table import Table

MARK = "SYNTHETIC DATA, NOT REAL RECORDS"
_MOST_ROWS = 500  # of the table of columns; the certificate names all
_LONGEST_FORMULA = 300
_LONGEST_SENTENCE = 2000  # of what is assumed; the certificate has all of it


def write_page(certificate: Certificate, plan: Plan, layout: Layout) -> str:
    """The page of a release; `plan` is the published one."""
    sections = {
        "what": ("What this is", _introduce(certificate, plan)),
        "claim": ("What may be claimed", _claim(certificate)),
        "kept": ("What is kept, and what is not", _compare(certificate, plan)),
        "analyse": ("How to analyse it", explain_usage(certificate, plan, layout)),
        "columns": ("Columns", _list_columns(certificate, plan, layout)),
        "verify": ("How to verify it", _verify(certificate)),
    }
    return page(
        "Synthetic copies of a confidential table",
        paragraph("Synthetic", class_="stamp"),
        paragraph(
            f"Release {certificate.release} of {certificate.date}, made with hedgerow "
            f"{certificate.software.get('hedgerow', '')}.",
            class_="quiet",
        ),
        contents((id, title) for id, (title, _) in sections.items()),
        *(section(title, *body, id=id) for id, (title, body) in sections.items()),
        mark=MARK,
        about="Synthetic copies of a table: what they are, what may be claimed, how to use them.",
    )


def _introduce(certificate: Certificate, plan: Plan) -> list[object]:
    copies, derived = len(certificate.copies), plan.settings.rules.names
    drawn = [outcome for outcome in certificate.outcomes if outcome not in derived]
    there = "is one synthetic copy" if copies == 1 else f"are {copies} synthetic copies"
    body: list[object] = [
        paragraph(
            f"Here {there} of a confidential table with {certificate.records:,} "
            f"row{'s' * (certificate.records != 1)}. The "
            f"values of {'these columns' if len(drawn) > 1 else 'one column'} were drawn anew from a "
            "statistical model: ", list_names(drawn), ". A row with such a value is nobody's record.",
            class_="lead",
        ),
    ]  # fmt: skip
    if derived:
        body.append(paragraph("Computed from other columns of the copy: ", list_names(derived), "."))
    if certificate.unchanged:
        body.append(
            paragraph(
                element("strong", "Real, not synthetic"),
                ", row by row as in the confidential table: ", list_names(certificate.unchanged), ".",
            )
        )  # fmt: skip
    given = certificate.owner_says
    if given:
        body.append(element("h3", "In the owner's words"))
        body.append(facts((words, prose(given[key])) for key, words in ABOUT.items() if key in given))
    return body


def _claim(certificate: Certificate) -> list[object]:
    plain = certificate.plain or "This certificate has no plain paragraph."
    sides = (("In plain words", plain), ("Formally", certificate.claim))
    beside = [element("div", element("h3", title), paragraph(said)) for title, said in sides]
    body: list[object] = [element("div", *beside, class_="figures")]
    if certificate.unit is not None:
        body += [element("h3", "Who is protected"), paragraph(certificate.unit.covered)]
    if certificate.left_open is not None:
        body += [element("h3", "What the range leaves open"), paragraph(certificate.left_open)]
    body += [
        element("h3", "What the claim does not cover"),
        bullets(certificate.describe_caveats()),
        paragraph("What stands behind a sentence: ", code("hedgerow verify --why C4"), class_="reading"),
        element("h3", "What it takes as public"),
        bullets(
            join((shorten(item.what, _LONGEST_SENTENCE), ". ", element("em", "Why: "), prose(item.because)))
            for item in certificate.assumed_public
        ),
    ]
    if certificate.processing:
        body += [element("h3", "What was done after the draw"), bullets(certificate.processing)]
    return body


def _compare(certificate: Certificate, plan: Plan) -> list[object]:
    columns, rules = plan.settings.columns, plan.settings.rules
    known = relate(columns, rules, (*certificate.unchanged, *certificate.used_not_released))
    others = (*certificate.unchanged, *certificate.outcomes)
    rows = []
    for column in columns:
        own = known[column.outcome]
        family = column.family if isinstance(column.family, str) else column.family.name
        rows.append(
            {
                "column": name(column.outcome),
                "drawn from": join(
                    (
                        f"{family}: ",
                        code(shorten(column.formula, _LONGEST_FORMULA)),
                        *_describe_cells(column),
                    )
                ),
                "relation kept, as modelled, to": list_names(own, 6) if own else "nothing",
                "relation not kept to": list_names(
                    [other for other in others if other not in own and other != column.outcome], 6
                ),
            }
        )
    for derived in rules.names:
        rows.append(
            {
                "column": name(derived),
                "drawn from": "nothing: computed from others",
                "relation kept, as modelled, to": list_names(rules.reads_of(derived), 6),
                "relation not kept to": "all others",
            }
        )
    return [
        paragraph(
            "The copies keep what the model below holds, as far as the model is right and the data decide it "
            "at this price. Whatever else is found in a synthetic column comes from the model or from chance."
        ),
        table(rows, label="Relations that are kept"),
        element("h3", "Kept"),
        bullets(_list_kept(certificate, plan)),
        element("h3", "Not kept"),
        bullets(_list_lost(certificate, plan)),
    ]


def relate(columns: Sequence[Column], rules: Rules, public: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """For each modelled column those that its model relates it to: it reads them, or is read by theirs."""
    protected = [column.outcome for column in columns]
    there = Table.of(pa.table({each: [0.0] for each in dict.fromkeys([*protected, *public])}))
    reads = {}
    for column in columns:
        formulas = [column.formula]
        if column.kinds_by is not None:
            formulas.append(f"{column.formula.partition('~')[0]}~ {column.kinds_by}")
        terms = [each for formula in formulas for each in parse(formula, there).predictors]
        reads[column.outcome] = tuple(dict.fromkeys([*terms, *column.reads]))
    return {
        one: tuple(
            dict.fromkeys(
                [*reads[one], *(other for other in protected if one in reads[other])]
                + [derived for derived in rules.names if one in rules.reads_of(derived)]
            )
        )
        for one in protected
    }


def _describe_cells(column: Column) -> list[object]:
    """What cells of a column hold beside amounts."""
    said: list[object] = []
    if column.share_of is not None:
        said += ["; as a share of ", code(column.share_of)]
    if column.only_where is not None:
        said += ["; only where ", code(column.only_where)]
    if column.missing == "public":
        said.append("; gaps where the original has them")
    elif column.missing == "synthesized":
        said.append("; gaps are synthetic too")
    if column.codes:
        said += [
            "; some cells hold a code, not an amount: ",
            code(shorten(", ".join(map(str, column.codes)), _LONGEST_FORMULA)),
        ]
    if column.shared:
        said.append("; the same in all rows of a unit")
    return said


def _list_kept(certificate: Certificate, plan: Plan) -> list[object]:
    said: list[object] = ["The number of rows, and their order."]
    if certificate.unchanged:
        said.append("Every column that is not synthetic, and every relation among these columns.")
    if _is_counted(certificate):
        which = ", where it was counted" if plan.settings.several else ""
        said.append(
            f"The distribution of synthetic amounts{which}, as far as noisy counts in classes tell it."
        )
    if plan.settings.standard.inside:
        said.append("The public class of each row: its synthetic value was drawn inside it.")
    return said


def _list_lost(certificate: Certificate, plan: Plan) -> list[object]:
    said: list[object] = [
        "Single records: a synthetic value is one that the model has for such a row, not what stood there.",
        "A relation to columns that the formula does not name, beyond what follows from those that it names.",
        "Curves, thresholds and interactions that the formula does not spell out.",
        _describe_shapes(certificate, plan),
        "What rows have in common beyond what is said above, such as a household, or a firm over the years.",
    ]
    if any(done.startswith(CORRECTED) for done in certificate.processing):
        said.append(
            "Records at risk counted less in the fit. A correction undoes the bias of that where the model "
            "is right; where it is not, tails are too short."
        )
    elif certificate.bound in ("statistics", "gaussian"):
        said.append(
            "Noise was added to the sums that the copies are made from, and values beyond the limits were "
            "moved to them: copies scatter more than the original would."
        )
    elif certificate.standard == "Unweighted":
        pass
    elif isinstance(plan.settings.weights, ScalarWeights | PlannedWeights):
        said.append(
            "All records had the same weight in the fit, which may be below 1: copies then scatter more than "
            "the original would, and the prior counts for more."
        )
    else:
        said.append(
            "Records at risk counted less in the fit, those in the tails first: tails may be shorter in the "
            "copies than in the original, and relations weaker."
        )
    return said


def _describe_shapes(certificate: Certificate, plan: Plan) -> str:
    """What shapes copies do not have; of several columns counts may pay for some alone."""
    if not _is_counted(certificate):
        return "Shapes that the family does not have: heaps, second peaks, outliers, rounding."
    if not plan.settings.several:
        return "Shapes that the counted classes are too wide for: heaps, outliers, rounding."
    return (
        "Shapes that the counted classes are too wide for, or, of amounts that were too few to be counted, "
        "that the family does not have: heaps, second peaks, outliers, rounding."
    )


def _is_counted(certificate: Certificate) -> bool:
    """Whether copies follow noisy counts of a margin, whatever the family's shape."""
    return any(done.startswith(COUNTED) for done in certificate.processing)


def _list_columns(certificate: Certificate, plan: Plan, layout: Layout) -> list[object]:
    derived, labels = plan.settings.rules.names, plan.dictionary
    rows: list[dict[str, object]] = []
    for column, kind in layout.types.items():
        made = "synthetic" if column in certificate.outcomes else "real, as in the original"
        row: dict[str, object] = {"column": name(column), "type": kind}
        row["values"] = "computed from others" if column in derived else made
        row["meaning"] = labels[column].label if column in labels and labels[column].label else None
        rows.append(row)
    if all(row["meaning"] is None for row in rows):
        rows = [{key: value for key, value in row.items() if key != "meaning"} for row in rows]
    shown = table(rows[:_MOST_ROWS], label="Columns of each copy")
    body: list[object] = [shown if len(rows) <= 30 else details(format_count(len(rows), "column"), shown)]
    if len(rows) > _MOST_ROWS:
        body.append(paragraph(f"The first {_MOST_ROWS} of {len(rows)}; ", link(CERTIFICATE), " names all."))
    changes = dict.fromkeys(change for copy in certificate.copies for change in copy.changes)
    if changes:
        body += [paragraph("What the format could not hold as it was:"), bullets(changes)]
    return body


def _verify(certificate: Certificate) -> list[object]:
    files: list[dict[str, object]] = [
        {"file": link(copy.file), "bytes": copy.bytes, "SHA-256": code(copy.sha256)}
        for copy in certificate.copies
    ]
    others = {name: sha256 for name, sha256 in certificate.digests.items() if name != PAGE}
    files += [{"file": link(name), "SHA-256": code(sha256)} for name, sha256 in others.items()]
    contact = " Ask the owner for it: see the contact above." if "contact" in certificate.owner_says else ""
    return [
        paragraph(
            "With hedgerow, ", code("hedgerow verify ."), " in the folder that holds this page compares "
            "every file with ", link(CERTIFICATE), ", this page included, and writes the claim "
            "again from its figures. ", link(CERTIFICATE_TEXT), " has all of the certificate to read.",
        ),
        paragraph(
            "Without it: ", code("sha256sum *"), " (on Windows ", code("Get-FileHash *"), ") must print "
            "these digests.",
            None
            if not certificate.receive
            else join((
                " The files for receivers compare them: ", code('receive.verify(".")'), " in Python, ",
                code('receive_verify(".")'), " in R.",
            )),
        ),
        table(files, label="Files and their digests"),
        paragraph(
            "That shows that the files belong together, and not who made them. Two things do: a signature (",
            code(SIGNATURE), ", checked by ", code("hedgerow verify . --signers allowed_signers"), "), "
            f"and the SHA-256 of {CERTIFICATE}, told by another channel.{contact}",
        ),
    ]  # fmt: skip


def list_names(listed: Sequence[str], most: int = 12) -> Html:
    """The first few names, and how many more there are."""
    if not listed:
        return text("none")
    more = len(listed) - most
    return join((names(listed[:most]), f" and {more:,} more" if more > 0 else None))
