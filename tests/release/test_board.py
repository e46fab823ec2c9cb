"""The sheets for a review board: what they say, who answers for what, and that nothing is cut unsaid."""

import html
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import hedgerow as hr
from hedgerow.errors import ReleaseError
from hedgerow.numerics.rounding import format_figure
from hedgerow.privacy.claims import NEIGHBOURS, SENTENCES, Figures, tabulate_odds, write_plain
from hedgerow.release import make as making
from hedgerow.release.certificate import Assumption
from hedgerow.release.pages import board, printing
from hedgerow.release.pages.board import Findings, write_board, write_board_of
from hedgerow.release.plan import About
from hedgerow.report.html import Html

AUDIT = {"kind": "exact", "epsilon": 2.0, "of_claim": True, "largest_fixed": 1.25, "largest_recomputed": 2.5}
AUDIT |= {
    "largest_reverse": 2.75,
    "records": 60,
    "recomputed": 30,
    "breaches": [3],
    "reverse_breaches": [4, 5],
}
FALSE = shutil.which("false")  # a program that does nothing but fail
ATTACK = {"claimed": 2.0, "of_claim": True, "lower": 2.125, "confidence": 0.95, "breach": True}


def show(page: str) -> str:
    return " ".join(html.unescape(re.sub("(?s)<style>.*</style>|<[^>]*>", " ", page)).split())


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("board")
    hr.datasets.lognormal(n=60, seed=3).to_csv(folder / "t.csv", index=False)
    about = About(purpose="teaching", decided_by="the data board")
    asked = {"epsilon": 80.0, "copies": 2, "draws": 100, "data": folder / "t.csv", "ledger": folder / "l"}
    return hr.make_release(hr.Plan(formula="x ~ z", about=about, **asked), folder / "release").folder


@pytest.fixture
def release(original, tmp_path) -> Path:
    """A copy to add to, or to spoil."""
    shutil.copytree(original, tmp_path / "release")
    return tmp_path / "release"


def test_what_a_board_asks_is_answered(release):
    shown, given = show(write_board_of(release)), hr.verify_release(release).certificate
    for said in ("teaching", "the data board", given.plain, given.claim, given.neighbour, given.unit.covered):
        assert said in shown
    assert "reason for this ε not said (about.epsilon_reason of the plan)" in shown
    assert all(sentence in shown for sentence in given.not_covered)
    assert all(item.what in shown for item in given.assumed_public)
    assert "audit: outcomes withheld one by one not run" in shown
    assert "records' worth of 60" in shown
    inside = release / "confidential"
    for name, found in {"audit": AUDIT, "attack": ATTACK}.items():
        (inside / f"{name}.json").write_text(json.dumps(found))
        (inside / f"{name}.json").chmod(0o600)
    shown = show(write_board_of(release))
    assert (
        "60 records: largest loss 1.25, with weights recomputed for 30 records 2.5; above 2, the stated"
        in shown
    )
    assert "for 1 record, and at draws without them for 2 more, which no bound over draws claims" in shown
    assert (
        "ε is at least 2.125 with 95% confidence, beside 2, the stated ε of one copy: this refutes" in shown
    )
    (inside / "audit.json").write_text("{}")
    with pytest.raises(ReleaseError, match="not what hedgerow writes"):
        write_board_of(release)


def test_what_was_noted_of_the_fit_reaches_the_board(original):
    certificate, given = hr.verify_release(original).certificate, Findings.read(original / "confidential")
    notes = [f"Note {number}." for number in range(5)]
    shown = show(write_board(certificate, replace(given, summary={**given.summary, "warnings": notes})))
    assert "Note 0. Note 1. Note 2. And 2 more in summary.json." in shown


def test_how_far_copies_are_off_reaches_the_board(original):
    """The gauge's distance is of trial copies, and may be much smaller."""
    found = Findings.read(original / "confidential")
    (column,) = json.loads((original / "confidential" / "report.json").read_text())["columns"]
    shown = show(write_board(hr.verify_release(original).certificate, found))
    assert f"distance of copies from the data {column['ecdf_max'][1]:.2g} at most, of 'x'" in shown
    assert "in trial copies" in shown


def test_prices_with_an_outcome_withheld_are_of_one_copy_as_those_beside_them(original):
    """The total of three copies stood beside the price of one with the outcome withheld, which is higher."""
    certificate, found = hr.verify_release(original).certificate, Findings.read(original / "confidential")
    own, bound = found.summary["epsilon"], certificate.bound
    shown = show(write_board(certificate, found))
    assert "withheld altogether" not in shown  # the standard's own price is that
    ranged = found.summary | {"withheld_epsilon": {bound: 1.5 * own}}
    shown = show(write_board(certificate, replace(found, summary=ranged)))
    assert (
        f"; of one copy {format_figure(own)}, with an outcome withheld altogether {format_figure(1.5 * own)}"
        in shown
    )


def test_a_note_of_two_lines_is_not_cut(original):
    found = Findings.read(original / "confidential")
    note = "Columns industry, region are not in the formula: released unchanged and unprotected. " * 3
    noted = Findings(found.summary | {"warnings": [note.strip()]})
    assert note.strip() in show(write_board(hr.verify_release(original).certificate, noted))


def test_tests_that_a_release_does_not_allow_are_not_asked_for(original):
    certificate, refused = hr.verify_release(original).certificate, "audit() leaves out one row."
    found = replace(Findings.read(original / "confidential"), refused={"audit": refused})
    shown = show(write_board(certificate, found))
    assert f"not possible for this release: {refused}" in shown
    assert "hedgerow audit" not in shown
    assert "hedgerow attack DATA" in shown
    assert re.search(r"S_pMSE [\d.]+ by each column \(AUC 0\.\d\d\)", shown)


def test_a_release_that_does_not_match_goes_to_no_board(release):
    (release / "public" / "plan.yaml").write_text("formula: x ~ z\n")
    with pytest.raises(ReleaseError, match="does not match its certificate"):
        write_board_of(release)


def test_what_is_cut_is_said(original):
    given = hr.verify_release(original).certificate
    many = tuple(Assumption(f"assumption {number}", f"{'w' * 100} {number}") for number in range(50))
    shown = show(write_board(replace(given, assumed_public=many), Findings({"clipped": 0.25})))
    listed = shown.count("assumption ")
    rest = int(re.search(r"And (\d+) more: certificate\.md", shown)[1])
    own = sum(board._ANSWERS.get(id) in (board._PLANNER, board._RUNNER) for _, id in board._find_ids(given))
    assert listed + rest == 50 + own
    assert "25.0% of the values were moved to a limit" in shown


def test_who_answers_is_found_by_reasons_that_exist():
    """The owner, for what is taken as public; but not for what the plan declares or the method sets."""
    assert board._find_answer(making._DECLARED) == board._PLANNER
    assert board._find_answer(making._DEFAULT_PRIOR) == board._BOARD
    assert board._find_answer(making._NO_REASON) == board._OWNER
    assert board._find_answer("printed every year") == board._OWNER


@pytest.mark.parametrize(
    ("bound", "label"),
    [
        *((bound, None) for bound in SENTENCES),
        ("statistics", "Strict, replaced"),
        ("statistics", "Strict, in range"),
    ],
)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_odds_are_those_of_the_plain_paragraph(bound, label, epsilon):
    """One row is the paragraph's own example, and the others grow with it."""
    usual = {"statistics": "Strict, withheld", "gaussian": "Strict, replaced"}.get(bound, "ADP")
    figures = Figures(
        neighbour=NEIGHBOURS[label or usual], epsilon=epsilon, copies=2, draws=1000, independent=True,
        delta=1e-3, confidence=0.95,
    )  # fmt: skip
    rows = [tuple(row.values()) for row in tabulate_odds(bound, figures)]
    before, after = rows[1]
    plain = write_plain(bound, figures)
    assert f" {before} " in plain
    assert f"at most {after}" in plain
    limits = [float(most.removesuffix(" %")) for _, most in rows]
    assert limits == sorted(limits)


def test_sheets_are_written_beside_what_they_are_made_of(release, hedgerow, monkeypatch, tmp_path):
    monkeypatch.setattr(board, "print_page", lambda page: None)
    done = hedgerow("report", release, "--board")
    assert (done.code, "print it to PDF on A4" in done.text) == (0, True)
    assert hedgerow("report", release, "--board", "--out", "sheets.pdf").code == 0
    assert (tmp_path / "sheets.html").read_text() == (release / "confidential" / "board.html").read_text()
    monkeypatch.setattr(board, "print_page", lambda page: b"%PDF")
    for _ in range(2):  # a second time in place of the first
        assert hedgerow("report", release, "--board").code == 0
    place = release / "confidential" / "board.pdf"
    assert (place.read_bytes(), place.stat().st_mode & 0o777) == (b"%PDF", 0o600)
    assert hedgerow("report", release, "--board", "--out", release / "public" / "board.pdf").code == 3
    assert hr.verify_release(release).problems == ()


@pytest.mark.parametrize(("room", "taken"), [(300, 200), (120, 115), (70, 57), (10, 57)])
def test_two_sheets_are_filled_with_as_much_as_they_hold(original, tmp_path, monkeypatch, room, taken):
    """Who answers for what was left out beside a third of a sheet that stayed empty."""
    printed = []

    def print_counted(page):
        printed.append(page)
        return page.encode() + b"/Type /Page" * (2 if int(page) <= room else 3)

    monkeypatch.setattr(board, "write_board", lambda certificate, found, lines: Html(lines))
    monkeypatch.setattr(board, "print_page", print_counted)
    place = board.save_board(original, tmp_path / "board.pdf")
    assert place.read_bytes().startswith(str(taken).encode())
    assert len(printed) <= 4


def test_without_a_browser_nothing_is_printed(monkeypatch):
    monkeypatch.setattr(printing.shutil, "which", lambda name: None)
    assert printing.print_page("<p>") is None
    monkeypatch.setattr(printing.shutil, "which", lambda name: FALSE)
    assert printing.print_page("<p>") is None
