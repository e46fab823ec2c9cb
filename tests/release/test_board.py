"""The sheets for a review board: what they say, who answers for what, and that nothing is cut unsaid."""

import html
import json
import re
from dataclasses import replace

import pytest

import hedgerow as hr
from hedgerow.errors import ReleaseError
from hedgerow.privacy.claims import NEIGHBOURS, SENTENCES, Figures, tabulate_odds, write_plain
from hedgerow.release import make as making
from hedgerow.release.certificate import Assumption
from hedgerow.release.pages import board
from hedgerow.release.pages.board import Findings, write_board, write_board_of
from hedgerow.release.plan import About

AUDIT = {"kind": "exact", "epsilon": 2.0, "largest_fixed": 1.25, "largest_recomputed": 2.5, "breaches": [3]}
ATTACK = {"claimed": 2.0, "lower": 2.125, "confidence": 0.95, "breach": True}


def show(page: str) -> str:
    return " ".join(html.unescape(re.sub("(?s)<style>.*</style>|<[^>]*>", " ", page)).split())


def test_what_a_board_asks_is_answered(make):
    made = make(about=About(purpose="teaching", decided_by="the data board"), copies=2)
    shown = show(write_board_of(made.folder))
    given = made.certificate
    for said in ("teaching", "the data board", given.plain, given.claim, given.neighbour, given.unit.covered):
        assert said in shown
    assert "reason for this ε not said (about.epsilon_reason of the plan)" in shown
    assert all(sentence in shown for sentence in given.not_covered)
    assert all(item.what in shown for item in given.assumed_public)
    assert "audit: outcomes withheld one by one not run" in shown
    assert "records' worth of 150" in shown
    inside = made.folder / "confidential"
    for name, found in {"audit": AUDIT, "attack": ATTACK}.items():
        (inside / f"{name}.json").write_text(json.dumps(found))
        (inside / f"{name}.json").chmod(0o600)
    shown = show(write_board_of(made.folder))
    assert "largest loss 1.25, with weights recomputed 2.5; above 2, the price, for 1 record (exact)" in shown
    assert "ε is at least 2.125 with 95% confidence; this refutes 2" in shown
    (inside / "audit.json").write_text("{}")
    with pytest.raises(ReleaseError, match="not what hedgerow writes"):
        write_board_of(made.folder)


def test_a_release_that_does_not_match_goes_to_no_board(make):
    made = make()
    (made.folder / "public" / "plan.yaml").write_text("formula: x ~ z\n")
    with pytest.raises(ReleaseError, match="does not match its certificate"):
        write_board_of(made.folder)


def test_what_is_cut_is_said(make):
    made = make(standard=hr.Strict(limits=(10, 1e6), reason="r"), epsilon=2.0)
    many = tuple(Assumption(f"assumption {number}", "w" * 100) for number in range(50))
    shown = show(write_board(replace(made.certificate, assumed_public=many), Findings({"clipped": 0.25})))
    listed = shown.count("assumption ")
    rest = int(re.search(r"And (\d+) more: certificate\.md", shown)[1])
    own = sum(
        board._ANSWERS.get(id) in (board._PLANNER, board._RUNNER)
        for _, id in board._find_ids(made.certificate)
    )
    assert listed + rest == 50 + own
    assert "25.0% of the values were moved to a limit" in shown


def test_who_answers_is_found_by_reasons_that_exist():
    """The owner, for what is taken as public; but not for what the plan declares or the method sets."""
    assert board._find_answer(making._DECLARED) == board._PLANNER
    assert board._find_answer(making._DEFAULT_PRIOR) == board._BOARD
    assert board._find_answer(making._NO_REASON) == board._OWNER
    assert board._find_answer("printed every year") == board._OWNER


@pytest.mark.parametrize("bound", SENTENCES)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_odds_are_those_of_the_plain_paragraph(bound, epsilon):
    """One row is the paragraph's own example, and the others grow with it."""
    label = {"statistics": "Strict, withheld", "gaussian": "Strict, replaced"}.get(bound, "ADP")
    figures = Figures(
        neighbour=NEIGHBOURS[label], epsilon=epsilon, copies=2, draws=1000, independent=True,
        delta=1e-3, confidence=0.95,
    )  # fmt: skip
    rows = [tuple(row.values()) for row in tabulate_odds(bound, figures)]
    before, after = rows[1]
    plain = write_plain(bound, figures)
    assert f" {before} " in plain
    assert f"at most {after}" in plain
    limits = [float(most.removesuffix(" %")) for _, most in rows]
    assert limits == sorted(limits)
