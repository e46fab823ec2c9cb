"""A release that another process tries to void while it is stopped: never both void and visible."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
DRAFTED = ("after begin", "before announce", "before rename")


@pytest.fixture(scope="module")
def trials(tmp_path_factory) -> dict[tuple[str, str], dict]:
    """Every kind of meeting at every moment of a release: 42 releases."""
    done = subprocess.run(
        [sys.executable, HERE / "stopper.py", tmp_path_factory.mktemp("stopped")],
        capture_output=True, text=True, timeout=250, check=False,
        env=os.environ | {"PYTHONPATH": str(HERE.parents[1] / "src")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return {(trial["meeting"], trial["moment"]): trial for trial in json.loads(done.stdout)}


def test_a_release_under_way_is_not_voided(trials):
    for moment in (*DRAFTED, "after rename"):
        trial = trials["void", moment]
        assert "is under way" in trial["said"], trial
        assert (trial["states"], trial["visible"]) == (["reserved", "publishing", "released"], True), trial
    assert "not in the ledger" in trials["void", "before reserve"]["said"]
    assert "closed already, as released" in trials["void", "after confirm"]["said"]


def test_a_voided_release_is_not_published(trials):
    voided = [trials[kind, moment] for kind in ("blind void", "blind void, interrupt") for moment in DRAFTED]
    for trial in (trials["void", "after reserve"], *voided):
        assert trial["said"] == "void", trial
        announced = ["publishing"] if trial["moment"] == "before rename" else []
        assert (trial["states"], trial["visible"]) == (["reserved", *announced, "void"], False), trial


def test_a_published_release_is_not_voided(trials):
    for meeting in ("blind void", "blind void, interrupt"):
        assert "is in place" in trials[meeting, "after rename"]["said"]
    assert "is in place" in trials["kill", "after rename"]["left"][0]
    assert trials["interrupt", "after rename"]["states"] == ["reserved", "publishing"]
    assert all(trial["visible"] for (_, moment), trial in trials.items() if moment == "after rename")


def test_nothing_is_published_under_an_entry_settled_as_spent(trials):
    for moment in ("after reserve", "after begin", "before announce"):
        trial = trials["blind spent", moment]
        assert (trial["states"], trial["visible"]) == (["reserved", "spent"], False), trial


def test_one_that_ends_before_the_rename_gives_its_price_back(trials):
    for moment in ("after reserve", *DRAFTED):
        assert trials["interrupt", moment]["states"][-1] == "void", moment
        assert trials["kill", moment]["left"] == ["void"], moment
