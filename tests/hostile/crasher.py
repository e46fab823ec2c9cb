"""Releases in processes that are killed or compete; run by test_crash.py in a process that may fork.

    python crasher.py kill FOLDER TRIALS SEED
    python crasher.py compete FOLDER PROCESSES

Prints what happened as JSON. A child is forked with everything loaded, so that the moments of a release, not
of starting Python, are the ones that are hit.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from pathlib import Path

import hedgerow as hr
from hedgerow.release import ledger
from hedgerow.release import make as making
from hedgerow.release.folder import drafts

EVENTS = {"open", "os.mkdir", "os.rename", "os.chmod", "os.remove", "sqlite3.connect"}


def plan(folder: Path, epsilon: float = 20.0) -> hr.Plan:
    return hr.Plan(
        formula="x ~ z",
        epsilon=epsilon,
        copies=2,
        draws=100,
        data=folder / "table.csv",
        ledger=folder / "ledger.sqlite",
        dataset="table",
    )


def fork(work) -> int:
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        code = work()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def die_after(events: int) -> list[int]:
    """From the moment the spend is recorded, die at the given event: a file opened, made, renamed …"""
    left = [events]
    started = []
    reserve = ledger.Ledger.reserve

    def watched(self, **given):
        started.append(True)
        return reserve(self, **given)

    ledger.Ledger.reserve = watched

    def hook(event, _):
        if started and event in EVENTS:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return left


def state(folder: Path, out: Path) -> dict:
    """What a death left behind, checked against what must hold, then settled."""
    with ledger.Ledger.open(folder / "ledger.sqlite") as book:
        assert book.verify() == ()
        known = {entry.release for entry in book.entries() if entry.release}
        pending = [entry.release for entry in book.pending()]
        left = drafts(out)
        for draft in left:
            release = draft.name.split("hedgerow-")[1].removesuffix(".partial")
            assert release in pending, "a draft without a ledger entry"
            assert draft.stat().st_mode & 0o777 == 0o700
        whole = out.exists()
        if whole:
            found = hr.verify_release(out)
            assert found.problems == (), found.problems
            assert found.certificate.release in known, "copies without a ledger entry"
        assert len(pending) <= 1
        for release in pending:
            if whole:
                book.confirm(release)
            else:
                book.settle(release, "void", note="test: killed before the rename")
        assert book.pending() == []
        hidden = [p.name for p in folder.iterdir() if p.name.startswith(f".{out.name}")]
        assert hidden == [], hidden
    return {"whole": whole, "pending": len(pending), "draft": len(left)}


def kill(folder: Path, trials: int, seed: int) -> None:
    choose = random.Random(seed)
    making.make_release(plan(folder), folder / "warm")
    start = time.perf_counter()
    making.make_release(plan(folder), folder / "timed")
    usual = time.perf_counter() - start

    def counted():
        left = die_after(10**6)
        making.make_release(plan(folder), folder / "counted")
        (folder / "events").write_text(str(10**6 - left[0]))
        return 0

    os.waitpid(fork(counted), 0)
    total = int((folder / "events").read_text())
    seen = []
    for trial in range(trials):
        out = folder / f"release-{trial}"
        by_event = trial % 2 == 0
        events = choose.randrange(0, total + 2)

        def work(out=out, by_event=by_event, events=events):
            if by_event:
                die_after(events)
            making.make_release(plan(folder), out)
            return 0

        child = fork(work)
        if by_event:
            _, status = os.waitpid(child, 0)
        else:
            time.sleep(choose.uniform(0, 1.2 * usual))
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a release failed by itself"
        found = state(folder, out) | {"killed": os.WIFSIGNALED(status)}
        seen.append(found)
        shutil.rmtree(out, ignore_errors=True)
    json.dump({"usual": usual, "trials": seen}, sys.stdout)


def compete(folder: Path, processes: int) -> None:
    making.make_release(plan(folder), folder / "warm")
    with ledger.Ledger.open(folder / "ledger.sqlite") as book:
        book.set_budget(20 + 5 * 20.1, relation=plan(folder).relation, dataset="table")
    waits = folder / "waits"
    waits.mkdir()

    def work(number):
        waited = 0.0
        for name in ("reserve", "confirm"):
            inner = getattr(ledger.Ledger, name)

            def timed(self, *args, _inner=inner, **given):
                nonlocal waited
                start = time.perf_counter()
                try:
                    return _inner(self, *args, **given)
                finally:
                    waited = max(waited, time.perf_counter() - start)

            setattr(ledger.Ledger, name, timed)
        # All pass the early check, so that the ledger's own transaction has to decide.
        ledger.Ledger.check = lambda self, **given: []
        try:
            making.make_release(plan(folder, 20.1), folder / f"release-{number}")
            code = 0
        except hr.HedgerowError as error:
            code = 5 if type(error).__name__ == "BudgetError" else 3
        (waits / str(number)).write_text(str(waited))
        return code

    children = [fork(lambda number=number: work(number)) for number in range(processes)]
    codes = [os.WEXITSTATUS(os.waitpid(child, 0)[1]) for child in children]
    with ledger.Ledger.open(folder / "ledger.sqlite") as book:
        assert book.verify() == ()
        assert book.pending() == []
        balance = book.balance(dataset="table")[0]
    folders = sorted(path for path in folder.glob("release-*"))
    assert all(hr.verify_release(path).problems == () for path in folders)
    longest = max(float(path.read_text()) for path in waits.iterdir())
    found = {"codes": codes, "spent": balance.spent, "budget": balance.budget, "folders": len(folders)}
    json.dump(found | {"longest_wait": longest}, sys.stdout)


if __name__ == "__main__":
    command, where, number, *rest = sys.argv[1:]
    place = Path(where)
    hr.datasets.lognormal(n=150, seed=3).to_csv(place / "table.csv", index=False)
    if command == "kill":
        kill(place, int(number), int(rest[0]))
    else:
        compete(place, int(number))
