"""Ctrl-C in a release, and signals that end it: what the command says of it, and whether that is so."""

import signal
from pathlib import Path

import pytest

from hedgerow import progress
from hedgerow.release import make as making
from hedgerow.release.ledger import Ledger
from hedgerow.release.streamed import prepare as preparing

GOOD = ("--formula", "x ~ z", "--draws", 200, "--epsilon", 40, "--out", "release")
NOTHING = "stopped: Interrupted. Nothing was written or spent.\n"


@pytest.fixture(autouse=True)
def interrupts():
    """The command ignores further interrupts once it was interrupted."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_at(monkeypatch, owner, name, *, after=False, by=signal.SIGINT):
    whole = getattr(owner, name)

    def interrupted(*args, **given):
        if after:
            whole(*args, **given)
        signal.raise_signal(by)

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.parametrize(
    ("owner", "name", "events"),
    [
        (making, "prepare", []),
        (making.Prepared, "fit", []),
        (making, "_write_public", ["reserved", "void"]),
        (making, "write_confidential", ["reserved", "void"]),
    ],
)
def test_until_the_folder_is_there_nothing_was_written_or_spent(
    owner, name, events, hedgerow, table, monkeypatch
):
    interrupt_at(monkeypatch, owner, name)
    done = hedgerow("synthesize", table, *GOOD)
    assert (done.code, done.err.endswith(NOTHING)) == (130, True), done.err
    assert not Path("release").exists()
    with Ledger.open("ledger.sqlite") as ledger:
        assert [entry.event for entry in ledger.entries()] == events
        assert all(balance.spent == 0 for balance in ledger.balance())


def test_once_the_folder_is_there_nobody_is_told_so(hedgerow, table, monkeypatch):
    interrupt_at(monkeypatch, Ledger, "confirm", after=True)
    done = hedgerow("synthesize", table, *GOOD)
    assert done.code == 130
    assert "Nothing was written" not in done.err
    assert "Interrupted." in done.err
    assert Path("release/public/certificate.json").exists()


def test_whoever_ends_a_release_by_blocks_is_told_the_same(hedgerow, table, monkeypatch):
    interrupt_at(monkeypatch, preparing, "fit_leaves", by=signal.SIGTERM)
    done = hedgerow("synthesize", table, *GOOD, "--stream")
    assert (done.code, done.err.endswith(NOTHING.replace("Interrupted", "Terminated"))) == (143, True), (
        done.err
    )
    assert not Path("release").exists()


def test_whoever_ends_it_once_the_folder_is_there_is_told_that_it_ended(hedgerow, table, monkeypatch):
    interrupt_at(monkeypatch, Ledger, "confirm", after=True, by=signal.SIGTERM)
    done = hedgerow("synthesize", table, *GOOD, "--stream")
    assert (done.code, "Nothing was written" in done.err) == (143, False)
    assert done.err.endswith("stopped: Terminated. Nothing is visible that was not complete.\n"), done.err
    assert Path("release/public/certificate.json").exists()


def test_a_line_a_minute_names_the_step_and_quiet_has_none(hedgerow, table, monkeypatch):
    monkeypatch.setattr(progress, "_EVERY", 0.0)
    assert "hedgerow: fitting, 1 of about 11 fits" in hedgerow("synthesize", table, *GOOD).err
    assert hedgerow("synthesize", table, *GOOD[:-1], "again", "--quiet").err == ""
