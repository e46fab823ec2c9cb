"""Releases that are stopped at one step, met by another process, and let go; run by test_stopped.py.

    python stopper.py FOLDER

Prints what happened as JSON. A child is forked with everything loaded, stops itself before or after a step,
and goes on, is interrupted or killed, after this process has tried to settle its entry.
"""

import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

import hedgerow as hr
from hedgerow.release import ledger
from hedgerow.release import make as making
from hedgerow.release.folder import Draft, find_drafts

STEPS = {
    "reserve": (ledger.Ledger, "reserve"),
    "begin": (Draft, "begin"),
    "announce": (ledger.Ledger, "begin_publishing"),
    "rename": (Path, "rename"),
    "confirm": (ledger.Ledger, "confirm"),
}
MOMENTS = (
    "before reserve", "after reserve", "after begin", "before announce", "before rename", "after rename",
    "after confirm",
)  # fmt: skip
# What this process does while the child is stopped, and the signal that then meets the child. "blind" is on a
# disk without locks, where nobody can see that the release is under way.
MEETINGS = {
    "void": ("void", False, None),
    "blind void": ("void", True, None),
    "blind spent": ("spent", True, None),
    "interrupt": (None, False, signal.SIGINT),
    "blind void, interrupt": ("void", True, signal.SIGINT),
    "kill": (None, False, signal.SIGKILL),
}


def plan(folder: Path) -> hr.Plan:
    files = {"data": folder / "table.csv", "ledger": folder / "ledger.sqlite"}
    return hr.Plan(formula="x ~ z", epsilon=20.0, copies=2, draws=100, dataset="table", **files)


def fork(work) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a job in the background
    try:
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def stop_at(moment: str, *, interrupted: bool) -> None:
    """Stop this process there; where an interrupt is to meet it, nothing goes on before it has arrived."""
    when, step = moment.split()
    owner, name = STEPS[step]
    inner = getattr(owner, name)

    def stop():
        os.kill(os.getpid(), signal.SIGSTOP)
        # An interrupt may be handed to another thread, and this one, which has to act on it, would run on.
        late = time.monotonic() + 60
        while interrupted:
            time.sleep(0.01)
            assert time.monotonic() < late, "the interrupt did not arrive"

    def stopping(*args, **given):
        if when == "before":
            stop()
        result = inner(*args, **given)
        if when == "after":
            stop()
        return result

    setattr(owner, name, stopping)


def settle(book: ledger.Ledger, release: str, outcome: str, *, blind: bool = False) -> str:
    seeing = Draft.is_under_way
    if blind:
        Draft.is_under_way = lambda self: False
    try:
        return book.settle(release, outcome, note="test: another process").event
    except hr.HedgerowError as error:
        return str(error)
    finally:
        Draft.is_under_way = seeing


def meet(folder: Path, moment: str, meeting: str) -> dict:
    out = folder / f"{moment}, {meeting}"
    outcome, blind, number = MEETINGS[meeting]

    def work():
        stop_at(moment, interrupted=number == signal.SIGINT)
        try:
            making.make_release(plan(folder), out)
        except (hr.HedgerowError, KeyboardInterrupt):
            return 3
        return 0

    with ledger.Ledger.open(folder / "ledger.sqlite") as book:
        known = {entry.release for entry in book.entries()}
        child = fork(work)
        _, status = os.waitpid(child, os.WUNTRACED)
        assert os.WIFSTOPPED(status), "the step was not reached"
        release = next((entry.release for entry in book.entries() if entry.release not in known), "none yet")
        said = settle(book, release, outcome, blind=blind) if outcome else None
        if number is not None:
            os.kill(child, number)
        if number != signal.SIGKILL:
            os.kill(child, signal.SIGCONT)
        os.waitpid(child, 0)
        release = next((entry.release for entry in book.entries() if entry.release not in known), None)
        left = [settle(book, release, "void")] if number == signal.SIGKILL and release else []
        states = [entry.event for entry in book.entries() if entry.release == release]
        visible = out.exists()
        assert book.verify() == ()
        if visible:
            assert "void" not in states, "copies are out, and their price was given back"
            assert "reserved" in states
            assert hr.verify_release(out).problems == ()
        if "publishing" not in states:
            assert not visible
        if not visible and states:
            assert states[-1] in ("void", "spent"), "nothing was published, and the entry is left open"
        assert find_drafts(out) == [], "a draft is left"
        if visible and states[-1] == "publishing":
            book.confirm(release)
    told = {"moment": moment, "meeting": meeting, "said": said, "left": left}
    return told | {"visible": visible, "states": states}


if __name__ == "__main__":
    place = Path(sys.argv[1])
    hr.datasets.lognormal(n=150, seed=3).to_csv(place / "table.csv", index=False)
    making.make_release(plan(place), place / "warm")
    json.dump([meet(place, moment, meeting) for moment in MOMENTS for meeting in MEETINGS], sys.stdout)
