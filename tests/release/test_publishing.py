"""What the ledger asks for before it lets a release be published, or gives its price back."""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hedgerow.errors import LedgerError, SettingError
from hedgerow.release.folder import CERTIFICATE, PUBLIC, Draft
from hedgerow.release.ledger import Ledger

DIGEST, OTHER = "d" * 64, "e" * 64
NOTE = "A. Smith: the machine lost power"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.db") as opened:
        yield opened


@pytest.fixture
def draft(ledger: Ledger, tmp_path: Path) -> Draft:
    """Left by a release that died: its entry is open, nobody holds the folder."""
    with Draft(tmp_path / "release", "1" * 16) as begun:
        reserve(ledger, begun.place, begun.release)
        begun.begin()
        begun.write(PUBLIC, CERTIFICATE, json.dumps({"release": begun.release}))
    return begun


def reserve(ledger: Ledger, place: str | None, release: str = "1" * 16) -> None:
    account = {"fingerprint": "a" * 64, "relation": "r", "epsilon": 1.0, "copies": 1, "plan": "p"}
    ledger.reserve(**account, release=release, place=place)  # type: ignore[arg-type]


def reseal(ledger: Ledger) -> None:
    ledger._head_path.unlink()
    ledger.reseal(note="restored")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("ledger.db"))


def test_publishing_takes_an_open_reservation_once(ledger: Ledger, draft: Draft) -> None:
    with pytest.raises(LedgerError, match="not in the ledger"):
        ledger.begin_publishing("unheard", certificate=DIGEST)
    with pytest.raises(SettingError, match="64 hex digits"):
        ledger.begin_publishing(draft.release, certificate="x")
    ledger.begin_publishing(draft.release, certificate=DIGEST)
    with pytest.raises(LedgerError, match="being published already"):
        ledger.begin_publishing(draft.release, certificate=DIGEST)
    assert [entry.release for entry in ledger.pending()] == [draft.release]
    (balance,) = ledger.balance()
    assert (balance.spent, balance.releases, balance.pending) == (1.0, 1, 1)
    with pytest.raises(LedgerError, match="another certificate"):
        ledger.confirm(draft.release, certificate=OTHER)
    assert ledger.confirm(draft.release).certificate == DIGEST
    with pytest.raises(LedgerError, match="closed already, as released"):
        ledger.begin_publishing(draft.release, certificate=DIGEST)


def test_a_spent_entry_keeps_the_digest_of_what_may_be_out(ledger: Ledger, draft: Draft) -> None:
    ledger.begin_publishing(draft.release, certificate=DIGEST)
    assert ledger.settle(draft.release, "spent").certificate == DIGEST
    assert ledger.balance()[0].spent == 1.0


@pytest.mark.parametrize("announced", [False, True])
@pytest.mark.parametrize("resealed", [False, True])
def test_void_withdraws_and_removes_the_draft(
    ledger: Ledger, draft: Draft, tmp_path: Path, announced: bool, resealed: bool
) -> None:
    if announced:
        ledger.begin_publishing(draft.release, certificate=DIGEST)
    if resealed:
        reseal(ledger)
    assert ledger.settle(draft.release, "void", note=NOTE).event == "void"
    assert names(tmp_path) == []
    assert ledger.balance()[0].spent == 0.0


@pytest.mark.parametrize(("announced", "resealed"), [(True, False), (False, True), (True, True)])
def test_void_without_the_draft_is_refused_where_it_may_have_been_published(
    ledger: Ledger, draft: Draft, tmp_path: Path, announced: bool, resealed: bool
) -> None:
    """Moved away after the rename, or on a disk that is not there: nobody can tell."""
    if announced:
        ledger.begin_publishing(draft.release, certificate=DIGEST)
    if resealed:
        reseal(ledger)
    draft.path.rename(tmp_path / "moved")
    with pytest.raises(LedgerError, match=r"copies may be visible.*as spent"):
        ledger.settle(draft.release, "void", note=NOTE)
    ledger.settle(draft.release, "spent")
    assert names(tmp_path) == ["moved"]


def test_a_reservation_that_was_never_announced_needs_no_draft(ledger: Ledger, tmp_path: Path) -> None:
    reserve(ledger, str(tmp_path / "release"))
    assert ledger.settle("1" * 16, "void", note=NOTE).event == "void"


def test_copies_in_place_are_not_void_however_they_came_there(
    ledger: Ledger, draft: Draft, tmp_path: Path
) -> None:
    draft.path.rename(draft.out)  # by hand: the ledger was not told
    with pytest.raises(LedgerError, match="is in place, in release"):
        ledger.settle(draft.release, "void", note=NOTE)
    assert names(tmp_path) == ["release"]


def test_another_release_in_the_place_is_no_obstacle(ledger: Ledger, draft: Draft, tmp_path: Path) -> None:
    (draft.out / PUBLIC).mkdir(parents=True)
    (draft.out / PUBLIC / CERTIFICATE).write_text('{"release": "2222222222222222"}')
    ledger.begin_publishing(draft.release, certificate=DIGEST)
    ledger.settle(draft.release, "void", note=NOTE)
    assert names(tmp_path) == ["release"]


def test_one_who_dies_after_withdrawing_leaves_what_the_next_needs(ledger: Ledger, draft: Draft) -> None:
    ledger.begin_publishing(draft.release, certificate=DIGEST)
    assert Draft(draft.out, draft.release).withdraw()
    assert not draft.path.exists()
    assert ledger.settle(draft.release, "void", note=NOTE).event == "void"


def test_without_a_place_void_rests_on_the_note_until_it_is_announced(ledger: Ledger) -> None:
    """As entries of earlier versions, or of programs that publish by themselves."""
    for release in ("1" * 16, "2" * 16):
        reserve(ledger, None, release)
    assert ledger.settle("1" * 16, "void", note=NOTE).event == "void"
    ledger.begin_publishing("2" * 16, certificate=DIGEST)
    with pytest.raises(LedgerError, match="copies may be visible"):
        ledger.settle("2" * 16, "void", note=NOTE)


def test_a_draft_that_is_held_is_settled_by_its_holder_alone(ledger: Ledger, tmp_path: Path) -> None:
    with Draft(tmp_path / "release", "1" * 16) as draft:
        reserve(ledger, draft.place)
        draft.begin()
        for outcome in ("void", "spent"):
            with pytest.raises(LedgerError, match="is under way"):
                ledger.settle("1" * 16, outcome, note=NOTE)
        other = Draft(tmp_path / "other", "1" * 16)
        with pytest.raises(SettingError, match="not the one"):
            ledger.settle("1" * 16, "void", note=NOTE, draft=other)
        ledger.settle("1" * 16, "void", note=NOTE, draft=draft)
    assert names(tmp_path) == []


def test_no_folder_is_the_release_of_an_entry_that_was_never_announced(ledger: Ledger, draft: Draft) -> None:
    """Else a forged folder would be the one that the ledger recorded, and its maker's the forgery."""
    with pytest.raises(LedgerError, match="never about to be published"):
        ledger.confirm(draft.release, certificate=OTHER)
    assert [entry.release for entry in ledger.pending()] == [draft.release]
    reseal(ledger)  # the row that announced it may be among those that a backup lacks
    assert ledger.confirm(draft.release, certificate=DIGEST).event == "released"


def test_a_pipe_in_the_place_of_a_release_is_not_waited_for(ledger: Ledger, tmp_path: Path) -> None:
    reserve(ledger, Draft(tmp_path / "release", "1" * 16).place)
    os.mkfifo(tmp_path / "release")
    writer = threading.Timer(5, lambda: os.open(tmp_path / "release", os.O_RDWR))  # ends the wait, if any
    writer.start()
    try:
        assert ledger.settle("1" * 16, "void", note="A. Smith: it died").event == "void"
        assert writer.is_alive()
    finally:
        writer.cancel()


def test_nested_json_in_the_place_of_a_release_is_none(ledger: Ledger, tmp_path: Path) -> None:
    reserve(ledger, Draft(tmp_path / "release", "1" * 16).place)
    (tmp_path / "release" / PUBLIC).mkdir(parents=True)
    (tmp_path / "release" / PUBLIC / CERTIFICATE).write_text("[" * 200_000)
    assert ledger.settle("1" * 16, "void", note="A. Smith: it died").event == "void"
