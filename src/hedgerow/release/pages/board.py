"""Two sheets for a disclosure review board: what is asked, what is promised, who answers, what was tested.

    >>> sheets = write_board_of(Path("release"))
    >>> "For the disclosure review board" in sheets
    True

What is promised and what it leaves open are the certificate's own sentences; who answers for each is said
here. What was found on the confidential data is marked as such, and makes the sheets confidential. Long lists
are cut to what two sheets hold, and say where the rest is.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from itertools import accumulate
from pathlib import Path
from typing import Any, Self, TypeVar

from hedgerow.errors import ReleaseError
from hedgerow.numerics.rounding import format_count, format_figure, format_rounded_up
from hedgerow.privacy.claims import tabulate_odds
from hedgerow.privacy.claims.caveats import find_id
from hedgerow.release.certificate import LARGEST, Certificate
from hedgerow.release.folder import CERTIFICATE_TEXT, CONFIDENTIAL, name_folder, write_private
from hedgerow.release.pages.printing import count_sheets, print_page
from hedgerow.release.pages.public import list_names
from hedgerow.release.report import put_inside
from hedgerow.release.verify import verify_release
from hedgerow.release.verify.consistency import make_figures
from hedgerow.release.verify.files import read_file
from hedgerow.report.html import (
    Html,
    bullets,
    element,
    facts,
    page,
    paragraph,
    reading,
    section,
    shorten,
    table,
    text,
)
from hedgerow.report.parts.lost import MODELS
from hedgerow.report.parts.scrutiny import judge_attack, name_price
from hedgerow.report.parts.structure import find_worst

Item = TypeVar("Item")
MARK = "CONFIDENTIAL: FOR THE REVIEW BOARD"
_OWNER, _PLANNER, _RUNNER, _BOARD = "data owner", "plan's author", "operator", "board"
# Who answers for a sentence of what is not covered; for any other it is the board, which accepts the method.
_ANSWERS: Mapping[str, str] = {
    **dict.fromkeys(("C4", "C20", "C21", "C22", "C23", "C28", "C29"), _OWNER),
    **dict.fromkeys(("C9", "C12", "C19", "C25", "C33"), _PLANNER),
    **dict.fromkeys(("C24", "C27", "C31", "C32"), _RUNNER),
}
# The same of an assumption, by how its reason begins; for any other it is the owner.
_REASONS = {"The plan says so": _PLANNER, "It is the same for every table": _BOARD}
_LINES = 87  # of facts, paragraphs, lists and tables: what two sheets hold beside headings and lines to sign
# The most of these that fit on two sheets once printed are taken.
_TRIED = (200, 130, 115, 107, 99, _LINES, 72, 57)
_SHEETS = 2
_FEWEST = 8  # of them for assumptions, at least
_ACROSS, _WHOLE = 95, 112  # signs of a line beside a name or a bullet, and from edge to edge
_WHAT, _WHY = 56, 28  # of a column of the assumptions
_TEST, _FOUND = 26, 80  # of a column of the tests
_NOTES = 3  # that are quoted
_BETWEEN = 0.35  # of a line, between rows of a table
_LONGEST = 160  # signs of somebody's words


@dataclass(frozen=True)
class Findings:
    """What was found on the confidential data, as the release and the commands wrote it; confidential."""

    summary: Mapping[str, Any] = field(repr=False)
    audit: Mapping[str, Any] | None = field(default=None, repr=False)
    attack: Mapping[str, Any] | None = field(default=None, repr=False)
    utility: Mapping[str, Any] | None = field(default=None, repr=False)
    refused: Mapping[str, str] = field(
        default_factory=dict
    )  # tests that this release does not allow, and why
    worst: tuple[float, str] | None = field(default=None, repr=False)  # how far copies are off, and of what

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Those in the confidential part of a release; a test that was not run has none."""
        summary, audit, attack, utility, report = (
            _read_json(folder / f"{name}.json")
            for name in ("summary", "audit", "attack", "utility", "report")
        )
        if summary is None:
            raise ReleaseError(
                "The confidential part is not here, or was changed. Pass the whole release folder."
            )
        report = report or {}
        worst = find_worst(report.get("columns", ()))
        return cls(summary, audit, attack, utility, report.get("refused", {}), worst)


def _read_json(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(read_file(path, LARGEST))
    except (OSError, ReleaseError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def save_board(folder: Path, out: Path | None = None) -> Path:
    """Writes the sheets of a release as PDF where a browser prints them, else as HTML; returns where.

    They go into the confidential part, as board.pdf or board.html, unless `out` names another file, which is
    HTML if its name ends so. One that ends in .pdf becomes .html where nothing prints.
    """
    certificate, found = _read(folder)
    wanted = out is None or out.suffix != ".html"
    pdf = _print_most(certificate, found) if wanted else None
    page = _write(certificate, found, _LINES)
    content = page.encode() if pdf is None else pdf
    if out is None:
        return put_inside(folder / CONFIDENTIAL, "board.html" if pdf is None else "board.pdf", content)
    place = out if pdf is not None or not wanted else out.with_suffix(".html")
    write_private(place, content)
    return place


def _print_most(certificate: Certificate, found: Findings) -> bytes | None:
    """With as many lines as two sheets hold, which hangs on how wide signs are; None where nothing prints."""
    printed = print_page(_write(certificate, found, _TRIED[0]))
    if printed is None or count_sheets(printed) <= _SHEETS:
        return printed
    first, last = 1, len(_TRIED)  # the first place that may fit, and one that is taken in any case
    while first < last:
        middle = (first + last) // 2
        pdf = print_page(_write(certificate, found, _TRIED[middle]))
        if pdf is None:
            return None
        if fits := count_sheets(pdf) <= _SHEETS:
            last = middle
        else:
            first = middle + 1
        if fits or middle == len(_TRIED) - 1:
            printed = pdf
    return printed


def write_board_of(folder: Path) -> Html:
    """The sheets of a release on disk, which must match its certificate."""
    return _write(*_read(folder), _LINES)


def _read(folder: Path) -> tuple[Certificate, Findings]:
    """What the sheets are made of; the release must match its certificate."""
    verified = verify_release(folder)
    if verified.problems:
        raise ReleaseError(
            f"{name_folder(folder)} does not match its certificate. {' '.join(verified.problems)}"
        )
    return verified.certificate, Findings.read(folder / CONFIDENTIAL)


def _write(certificate: Certificate, found: Findings, lines: int) -> Html:
    try:
        return write_board(certificate, found, lines)
    except (KeyError, TypeError, ValueError):
        raise ReleaseError(
            f"{CONFIDENTIAL}: summary.json, report.json, audit.json or attack.json is not what hedgerow "
            "writes. Restore it, or remove what was added."
        ) from None


def write_board(certificate: Certificate, found: Findings, lines: int = _LINES) -> Html:
    """The sheets, as one page, with about so many lines."""
    asked, promised = _ask(certificate), _promise(certificate)
    tested, taken = _list_tests(certificate, found)
    risks, left = _list_risks(certificate, lines - _FEWEST - taken - _count_lines(asked + promised))
    rests = _name_answers(certificate, left + _FEWEST)
    sections = (asked, promised, rests, tested, risks, _leave_lines())
    title = f"For the disclosure review board: release {certificate.release}"
    return page(title, element("div", *sections, class_="board"), mark=MARK)


def _ask(certificate: Certificate) -> Html:
    about = certificate.owner_says

    def say(key: str) -> str:
        return _cut(about[key]) if key in about else f"not said (about.{key} of the plan)"

    copies = format_count(len(certificate.copies), "synthetic copy")
    pairs: list[tuple[object, object]] = [
        ("asked", f"May public/ leave the building: {copies} of a table with {certificate.records:,} rows?"),
        ("purpose", say("purpose")),
        ("answers for it", say("curator")),
        ("ε decided by", say("decided_by")),
        ("reason for this ε", say("epsilon_reason")),
        ("synthetic columns", list_names(certificate.outcomes, 6)),
        ("as in the original", list_names(certificate.unchanged, 6)),
    ]
    return section("What is asked", facts(pairs), id="asked")


def _promise(certificate: Certificate) -> Html:
    pairs: list[tuple[object, object]] = [
        (
            "unit",
            "not declared" if certificate.unit is None else _cut(certificate.unit.covered, 3 * _LONGEST),
        ),
        ("compared with", f"the table in which {certificate.neighbour}"),
        ("standard, bound", f"{certificate.standard}, {certificate.bound}"),
    ]
    for name, price, digits in (("ε", certificate.epsilon, 6), ("δ", certificate.delta, 2)):
        if price is not None:
            one = f"; {format_rounded_up(price.per_copy, digits)} for one copy" if price.per_copy else ""
            pairs.append((name, f"{format_rounded_up(price.total, digits)} for all copies{one}"))
    if certificate.confidence is not None and certificate.delta is not None:
        pairs.append(("confidence", f"{certificate.confidence:.0%} over {certificate.draws:,} draws"))
    figures = make_figures(certificate)
    return section(
        "What is promised",
        facts(pairs),
        element("h3", "In plain words"),
        paragraph(certificate.plain or "This certificate has no plain paragraph."),
        None if figures is None else table(tabulate_odds(certificate.bound, figures), label="Odds"),
        element("h3", "Formally"),
        paragraph(certificate.claim),
        id="promised",
    )


def _name_answers(certificate: Certificate, lines: float) -> Html:
    """What the claim rests on, with who answers for it: a row for all that have the same reason."""
    together: dict[str, list[str]] = {}
    for item in certificate.assumed_public:
        together.setdefault(item.because, []).append(item.what)
    rows = [
        {
            "assumed": _cut("; ".join(whats), 2 * _LONGEST),
            "why": _cut(because),
            "answers": _find_answer(because),
        }
        for because, whats in together.items()
    ]
    rows += [
        {"assumed": sentence, "why": id, "answers": _ANSWERS[id]}
        for sentence, id in _find_ids(certificate)
        if _ANSWERS.get(id) in (_PLANNER, _RUNNER)
    ]
    rows.sort(key=lambda row: row["answers"] == _BOARD)  # last, should there be no room: it is the method's
    heights = [_measure(row["assumed"], _WHAT, row["why"], _WHY) for row in rows]
    shown = _take(rows, heights, lines)
    whole = [{key: text(words) for key, words in row.items()} for row in shown]
    made = element("div", table(whole, label="Assumptions"), class_="rests")
    body = (made, _count_rest(len(rows) - len(shown)))
    return section("What it rests on, and who answers for it", *body, id="rests")


def _find_answer(because: str) -> str:
    return next((who for start, who in _REASONS.items() if because.startswith(start)), _OWNER)


def _list_tests(certificate: Certificate, found: Findings) -> tuple[Html, float]:
    """Tests that were run on the confidential data and what they found, and how many lines they take."""
    tests = {
        **dict(_describe_fit(certificate, found.summary)),
        **dict(_describe_utility(found)),
        "audit: outcomes withheld one by one": _describe_audit(found, certificate.bound),
        "attack: copies with one outcome and without": _describe_attack(found, certificate.bound),
    }
    rows = [{"test": text(test), "found": text(words)} for test, words in tests.items()]
    note = "Confidential: computed from the data, and covered by no ε. Not to be quoted outside the board."
    made = table(rows, label="Tests and what they found")
    lines = sum(_measure(test, _TEST, words, _FOUND) for test, words in tests.items())
    return section("What was tested, and found", paragraph(note, class_="warn"), made, id="tested"), lines


def _describe_fit(certificate: Certificate, summary: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    figure, withheld = format_figure, summary.get("withheld_epsilon")
    if certificate.epsilon is not None and isinstance(withheld, Mapping):
        price = f"ε = {figure(summary['total_epsilon'])} of {figure(certificate.epsilon.total)}"
        own, other = (figure(each) for each in (summary["epsilon"], withheld.get(certificate.bound)))
        if certificate.bound in withheld and other != own:  # under a range
            price += f"; of one copy {own}, with an outcome withheld altogether {other}"
        yield f"price of this fit, under {certificate.bound}", price
    if isinstance(gauge := summary.get("gauge"), Mapping):
        of = f" of '{shorten(gauge['column'])}', the worst off," if gauge.get("column") else ""
        yield (
            "gauge: do copies carry the data",
            f"{figure(gauge['records'], 3)} records' worth of {gauge['of']:,}; distance{of} "
            f"in trial copies {gauge['ecdf']:.2g}, without weights {gauge['plain_ecdf']:.2g}",
        )
    if "clipped" in summary:
        yield "limits", f"{summary['clipped']:.1%} of the values were moved to a limit"
    if "acceptance" in summary:
        inside = (
            f"{summary['acceptance']:.0%} of the posterior lies in it, {summary['edge_mass']:.0%} at its edge"
        )
        yield "box of parameters", inside
    if "flagged_records" in summary:
        count = format_count(summary["flagged_records"], "record")
        yield "records whose loss draws cannot bound", f"{count} flagged"
    if notes := summary.get("warnings"):
        more = f" And {len(notes) - _NOTES} more in summary.json." if len(notes) > _NOTES else ""
        words = " ".join(note if len(note) <= 2 * _LONGEST else _cut(note) for note in notes[:_NOTES])
        yield "what was noted meanwhile", words + more


def _describe_utility(found: Findings) -> Iterator[tuple[str, str]]:
    if found.worst is not None:
        gap, column = found.worst
        said = f"{gap:.2g} at most, of '{shorten(column)}': 0 is the same distribution, 1 none in common"
        yield "distance of copies from the data", said
    utility = found.utility
    rows = [] if utility is None else [row for row in utility["propensity"] if row["copy"] == "pooled"]
    scores = [
        f"{format_figure(row['S_pMSE'], 3)} by {MODELS.get(row['by'], row['by'])} (AUC {row['AUC']:.2f})"
        for row in rows
        if row["S_pMSE"] is not None and row["AUC"] is not None
    ]
    if scores:
        yield "pMSE: can copies be told from the data", f"S_pMSE {', '.join(scores)}; about 2 is right"


def _describe_audit(found: Findings, bound: str) -> str:
    audit = found.audit
    if audit is None:
        if reason := found.refused.get("audit"):
            return f"not possible for this release: {reason}"
        return "not run: hedgerow audit DATA --plan confidential/plan.yaml --json > confidential/audit.json"
    again, recomputed = audit["largest_recomputed"], ""
    if again is not None:
        count = format_count(audit["recomputed"], "record")
        recomputed = f", with weights recomputed for {count} {format_figure(again)}"
    more = len(audit["reverse_breaches"])
    also = f", and at draws without them for {more} more, which no bound over draws claims" if more else ""
    above = format_count(len(audit["breaches"]), "record")
    return (
        f"{audit['records']:,} records: largest loss {format_figure(audit['largest_fixed'])}{recomputed}; "
        f"above {name_price(audit, bound)}, for {above}{also} ({audit['kind']})"
    )


def _describe_attack(found: Findings, bound: str) -> str:
    attack = found.attack
    if attack is None:
        if reason := found.refused.get("attack"):
            return f"not possible for this release: {reason}"
        return "not run: hedgerow attack DATA --plan confidential/plan.yaml --json > confidential/attack.json"
    return (
        f"ε is at least {format_figure(attack['lower'])} with {attack['confidence']:.0%} confidence, beside "
        f"{name_price(attack, bound)}: this {judge_attack(attack)}"
    )


def _list_risks(certificate: Certificate, lines: float) -> tuple[Html, float]:
    """What is not covered, and how many lines it leaves: a board must see all of it, if there is room."""
    body: list[object] = []
    for who, title in (
        (_BOARD, "Not covered, which the board accepts"),
        (_OWNER, "Not covered, for the data owner to judge"),
    ):
        said = [
            f"{_cut(sentence, 3 * _LONGEST)} [{id}]"
            for sentence, id in _find_ids(certificate)
            if _ANSWERS.get(id, _BOARD) == who
        ]
        heights = [-(-len(each) // _ACROSS) for each in said]
        shown = _take(said, heights, lines)
        lines -= sum(heights[: len(shown)])
        if said:
            body += [element("h3", title), bullets(shown), _count_rest(len(said) - len(shown))]
    body.append(reading("What stands behind an id: ", element("code", "hedgerow verify --why C4"), "."))
    return section("What stays open", *body, id="open"), lines


def _leave_lines() -> Html:
    rows = [
        {"for": who, "name": "", "date": "", "signature": ""} for who in (_OWNER, _PLANNER, _RUNNER, _BOARD)
    ]
    asked = "Released as it is ☐ / released on these conditions ☐ / not released ☐"
    lines = element("div", table(rows, label="Lines to sign"), class_="sign")
    conditions = paragraph("Conditions:", class_="fill")
    return section("Decision", paragraph(asked), conditions, lines, id="decision")


def _find_ids(certificate: Certificate) -> list[tuple[str, str]]:
    return [(sentence, find_id(sentence) or "no id") for sentence in certificate.not_covered]


def _count_lines(made: str) -> int:
    """About how many lines the facts and paragraphs of a section take."""
    found = re.findall("<(dd|p)[ >](.*?)</(?:dd|p)>", made)
    texts = ((tag, unescape(re.sub("<[^>]*>", "", each))) for tag, each in found)
    return sum(-(-len(each) // (_ACROSS if tag == "dd" else _WHOLE)) for tag, each in texts)


def _measure(first: str, across: int, second: str, over: int) -> float:
    """How many lines a row of a table takes, with what is between rows."""
    return max(-(-len(first) // across), -(-len(second) // over)) + _BETWEEN


def _take(items: Sequence[Item], lengths: Sequence[float], room: float) -> list[Item]:
    """As many as there is room for, at least one."""
    ends = accumulate(lengths)
    return [item for item, end in zip(items, ends, strict=True) if end <= room] or [*items[:1]]


def _count_rest(more: int) -> Html | None:
    return reading(f"And {more} more: {CERTIFICATE_TEXT} has all of them.") if more else None


def _cut(words: str, most: int = _LONGEST) -> str:
    """Somebody's words in one line that is not too long."""
    return shorten(" ".join(words.split()), most)
