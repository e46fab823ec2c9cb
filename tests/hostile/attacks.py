"""Attacks on the real command, each run by test_attacks.py in a process that may fork.

    python attacks.py signals FOLDER COUNT SEED      400 in the campaign, at every phase and by the clock
    python attacks.py fresh FOLDER COUNT SEED        the same on processes that are started anew
    python attacks.py settled FOLDER COUNT SEED      stopped, voided by a second process, continued
    python attacks.py limited FOLDER LEVELS          no file may grow beyond a limit (EFBIG)
    python attacks.py refused FOLDER LEVELS          from some moment on no file can be made (ENOSPC)
    python attacks.py full FOLDER LEVELS             a file system of a given size; needs to mount one
    python attacks.py plans FOLDER COUNT SEED        mutated plans, priced and released
    python attacks.py writers FOLDER ROUNDS SEED     16 processes at once, a budget for some of them
    python attacks.py fresh-writers FOLDER           the same, started anew

Prints as JSON what was done and what it broke.
"""

import errno
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from hostile.corpus import quick_plans
from hostile.mutations import mutate_plan
from hostile.scene import (
    HANG,
    PRICE,
    RELATION,
    SYNTHESIZE,
    Done,
    Forked,
    Moments,
    Scene,
    fork,
    list_disclosures,
    list_violations,
    run,
)

import hedgerow as hr
from hedgerow.errors import SettingError
from hedgerow.release.folder import find_drafts
from hedgerow.release.ledger import Ledger

KILL, TERM, HUP, INT, STOP = signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGSTOP
# What is sent to a release that stands still at some line, before it is continued.
SENT = {"kill": (KILL,), "term": (TERM,), "hup": (HUP,), "int": (INT,), "stop": (), "int twice": (INT, INT)}
# Of a hundred signals, how many in which phase, and how many whenever the clock says so.
SHARES = {"before": 15, "reserved": 10, "draft": 25, "visible": 25, "confirmed": 5, "clock": 20}
ENDS = (0, 130, -KILL, -TERM, -HUP)


def counts_of(scene: Scene) -> dict[str, int]:
    """How many lines a release that nothing happens to runs in each phase."""

    def before() -> None:
        moments = Moments(scene)
        moments.watch()
        sys.stdout.flush = lambda flush=sys.stdout.flush: (flush(), report(moments))

    def report(moments: Moments) -> None:
        (scene.folder / "counts").write_text(json.dumps(moments.counts))

    done = run(scene, *SYNTHESIZE, "release", before=before)
    assert done.code == 0, done
    return json.loads((scene.folder / "counts").read_text())


def signals(folder: Path, count: int, seed: int) -> dict:
    choose, template = random.Random(seed), Scene.make(folder / "template").warm()
    lines = counts_of(template.copy(folder / "counted"))
    start = time.perf_counter()
    run(template.copy(folder / "timed"), *SYNTHESIZE, "release")
    usual = time.perf_counter() - start
    plan = [phase for phase, share in SHARES.items() for _ in range(round(share * count / 100))]
    hit, sent, wrong = Counter(), Counter(), []
    for trial, phase in enumerate(plan):
        scene, kind = template.copy(folder / "scene"), list(SENT)[trial % len(SENT)]
        if phase == "clock":
            forked = fork(scene, [*SYNTHESIZE, "release"])
            how = forked.wait(time.monotonic() + choose.uniform(0, 1.2 * usual))
            if how == "running":
                os.kill(forked.pid, STOP)
                how = forked.wait()
            reached = "clock"
        else:
            number = choose.randrange(max(1, lines[phase]))
            moments = Moments(scene, phase, number)
            forked = fork(scene, [*SYNTHESIZE, "release"], moments.watch)
            how = forked.wait()
            reached = forked.shown.decode().rpartition("[")[2].partition("]")[0] if how == "stopped" else ""
        if how == "stopped":
            deliver(forked, SENT[kind], choose.uniform(0, 0.01))
            hit[reached] += 1
            sent[kind] += 1
        done = forked.done()
        found = list_violations(scene, done, allowed=ENDS)
        wrong += [f"trial {trial}, {kind} in {reached or 'no phase'}: {each}" for each in found]
        shutil.rmtree(scene.folder)
    return {"lines": lines, "phases": hit, "signals": sent, "violations": wrong}


def deliver(forked: Forked, sent: tuple[int, ...], pause: float) -> None:
    """Sends signals to a process that is stopped and continues it; a second one comes a little later."""
    for number, each in enumerate(sent):
        if number:
            forked.wait(time.monotonic() + pause)
        if forked.code is None:
            os.kill(forked.pid, each)
            os.kill(forked.pid, signal.SIGCONT)
    if not sent:
        forked.wait(time.monotonic() + pause)
        os.kill(forked.pid, signal.SIGCONT)


def fresh(folder: Path, count: int, seed: int) -> dict:
    """Signals to processes of their own, when something appears on disk, and a little later."""
    choose, template = random.Random(seed), Scene.make(folder / "template").warm()
    command = [sys.executable, "-m", "hedgerow", *SYNTHESIZE, "release"]
    places: dict[str, Callable[[Scene], bool]] = {
        "begun": lambda scene: Path(f"{scene.ledger}-wal").exists(),
        "draft": lambda scene: bool(find_drafts(scene.out)),
        "visible": lambda scene: scene.out.exists(),
        "clock": lambda scene: True,
    }
    kinds = {"kill": KILL, "term": TERM, "int": INT, "stop": STOP}
    hit, wrong = Counter(), []
    for trial in range(count):
        scene = template.copy(folder / "scene")
        place = list(places)[trial % len(places)]
        kind = list(kinds)[trial // len(places) % len(kinds)]
        if place == "clock" and kind == "int":
            kind = "kill"  # Python itself shows where it was interrupted while it starts
        started = subprocess.Popen(
            command, cwd=scene.folder, env=scene.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        limit = time.monotonic() + 30 * HANG  # with everything to be loaded, on a machine with other work
        while not places[place](scene) and started.poll() is None and time.monotonic() < limit:
            time.sleep(0.0002)
        time.sleep(choose.uniform(0, 2.0 if place == "clock" else 0.03 if place != "visible" else 0.002))
        if started.poll() is None:
            hit[place] += 1
            started.send_signal(kinds[kind])
            if kind == "stop":
                time.sleep(0.05)
                started.send_signal(signal.SIGCONT)
        shown = started.communicate(timeout=30 * HANG)[0].decode(errors="replace")
        found = list_violations(scene, Done(started.returncode, shown), allowed=ENDS)
        wrong += [f"trial {trial}, {kind} at {place}: {each}" for each in found]
        shutil.rmtree(scene.folder)
    return {"phases": hit, "violations": wrong}


def settled(folder: Path, count: int, seed: int) -> dict:
    """A release is stopped, voided by a second process, and continued: void and visible is a breach.

    The second process may be refused; then the release goes on. Where it succeeds nothing may be published.
    """
    choose, template = random.Random(seed), Scene.make(folder / "template").warm()
    lines = counts_of(template.copy(folder / "counted"))
    outcomes, wrong = Counter(), []
    for trial in range(count):
        scene, phase = template.copy(folder / "scene"), ("reserved", "draft", "visible")[trial % 3]
        moments = Moments(scene, phase, choose.randrange(max(1, lines[phase])))
        forked = fork(scene, [*SYNTHESIZE, "release"], moments.watch)
        assert forked.wait() == "stopped"
        release = scene.rows()[0][0]
        voided = run(scene, "ledger", "settle", release, "void", "--note", "somebody else: no copy")
        forked.start = time.monotonic()
        if trial % 2:
            os.kill(forked.pid, INT)
        os.kill(forked.pid, signal.SIGCONT)
        done = forked.done()
        outcomes["voided" if voided.code == 0 else "refused"] += 1
        outcomes["published" if scene.out.exists() else "not published"] += 1
        found = list_violations(scene, done, allowed=(0, 3, 130))
        if voided.code not in (0, 3):
            found.append(f"settle ended with {voided.code}: {voided.shown[-300:]}")
        wrong += [f"trial {trial}, voided in {phase}: {each}" for each in found]
        shutil.rmtree(scene.folder)
    return {"outcomes": outcomes, "violations": wrong}


def limited(folder: Path, levels: int) -> dict:
    template = Scene.make(folder / "template", rows=1500).warm()
    whole = template.copy(folder / "whole")
    assert run(whole, *SYNTHESIZE, "release").code == 0
    # Sizes differ a little from run to run: a twentieth more is enough for every file of another one.
    enough = max(place.stat().st_size for place in whole.out.rglob("*")) * 21 // 20

    def attempts() -> Iterator[tuple[Scene, Done]]:
        for level in range(levels):
            scene, limit = template.copy(folder / "scene"), enough * level // (levels - 1)
            limit_files = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit))
            yield scene, run(scene, *SYNTHESIZE, "release", before=limit_files)

    return fill(attempts())


def refused(folder: Path, levels: int) -> dict:
    template = Scene.make(folder / "template").warm()

    def count_and_refuse(first: int, report: Path | None = None) -> None:
        made = 0

        def hook(event: str, given: tuple) -> None:
            nonlocal made
            writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT
            opens = event == "open" and isinstance(given[0], str) and (given[2] or 0) & writes
            if not opens and event not in ("os.mkdir", "os.link"):
                return
            if report is not None and str(given[0]) == str(report):
                return
            made += 1
            if report is not None:
                report.write_text(str(made))
            if made > first:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), given[0])

        sys.addaudithook(hook)

    whole, report = template.copy(folder / "whole"), folder / "made"
    assert run(whole, *SYNTHESIZE, "release", before=lambda: count_and_refuse(10**9, report)).code == 0
    total = int(report.read_text())

    def attempts() -> Iterator[tuple[Scene, Done]]:
        for level in range(levels):
            scene = template.copy(folder / "scene")
            first = total * level // (levels - 1)
            yield (
                scene,
                run(scene, *SYNTHESIZE, "release", before=lambda first=first: count_and_refuse(first)),
            )

    return fill(attempts())


def full(folder: Path, levels: int) -> dict:
    """Mounts in a namespace of its own (unshare -rm), which ends with this process."""
    template = Scene.make(folder / "template", rows=1500).warm()
    disk = folder / "disk"
    disk.mkdir()

    def mount(size: int, *, again: bool = True) -> None:
        options = f"{'remount,' if again else ''}size={size}"
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", disk], check=True)

    def used() -> int:
        place = os.statvfs(disk)
        return (place.f_blocks - place.f_bfree) * place.f_frsize

    mount(1 << 26, again=False)
    whole = template.copy(disk / "whole")
    start = used()
    assert run(whole, *SYNTHESIZE, "release").code == 0
    need = used() - start + (1 << 15)  # what the ledger's log needed before it was closed
    shutil.rmtree(whole.folder)

    def attempts() -> Iterator[tuple[Scene, Done]]:
        for level in range(levels):
            scene = template.copy(disk / "scene")
            mount(max(used() + need * level // (levels - 2), 1 << 12))
            done = run(scene, *SYNTHESIZE, "release")
            mount(1 << 26)
            yield scene, done

    return fill(attempts())


def fill(attempts: Iterator[tuple[Scene, Done]]) -> dict:
    codes, wrong = [], []
    for level, (scene, done) in enumerate(attempts):
        codes.append(done.code)
        found = list_violations(scene, done, allowed=(0, 3))
        wrong += [f"level {level}: {each}" for each in found]
        shutil.rmtree(scene.folder)
    return {"codes": codes, "violations": wrong}


def plans(folder: Path, count: int, seed: int) -> dict:
    """Plans that load and do not ask for long work, and as many that do not load, each given to a command."""
    choose, template = random.Random(seed), Scene.make(folder / "template", budget=None).warm()
    texts = [plan.text() for plan in quick_plans()]
    wanted, codes, wrong = {"runs": count // 2, "refused": count - count // 2}, Counter(), []
    while sum(wanted.values()):
        raw = mutate_plan(choose.choice(texts), choose)
        try:
            asked = hr.Plan.loads(raw).settings
            kind = "runs" if asked.draws <= 1000 and asked.copies <= 10 else "long"
        except SettingError:
            kind = "refused"
        if not wanted.get(kind):
            continue
        wanted[kind] -= 1
        scene = template.copy(folder / "scene")
        (scene.folder / "plan.yaml").write_bytes(raw)
        command = choose.choice((("cost",), ("synthesize", "--out", "release")))
        done = run(scene, *command, "--plan", "plan.yaml")
        codes[done.code] += 1
        found = list_disclosures(scene, done, allowed=(0, 2, 3, 4) if kind == "runs" else (2,))
        if scene.out.exists() != (done.code == 0 and command[0] == "synthesize"):
            found.append(f"a folder is there, or none, after exit code {done.code}")
        if scene.ledger.exists():
            with Ledger.open(scene.ledger) as ledger:
                found += [f"ledger: {problem}" for problem in ledger.verify()]
                found += ["something is pending"] if ledger.pending() else []
        wrong += [f"{command[0]} {raw!r}: {each}" for each in found]
        shutil.rmtree(scene.folder)
    return {"codes": codes, "violations": wrong}


WRITERS = 16


def writers(folder: Path, rounds: int, seed: int) -> dict:
    """Every writer passes the early check of the budget, so that the transaction itself has to decide."""
    choose, template = random.Random(seed), Scene.make(folder / "template", budget=None).warm()
    wrong, granted = [], 0

    def pass_the_check() -> None:
        Ledger.check = lambda self, **given: []

    for number in range(rounds):
        scene, covered = template.copy(folder / "scene"), choose.randrange(WRITERS + 1)
        if number % 4 == 3:
            covered = WRITERS  # no budget: they begin the ledger together
        elif covered:
            set_budget(scene, covered)
        else:
            set_budget(scene, 0.5)
        started = [fork(scene, [*SYNTHESIZE, f"release-{n}"], pass_the_check) for n in range(WRITERS)]
        done = [each.done() for each in started]
        granted += covered
        wrong += [f"round {number}: {each}" for each in contest_problems(scene, done, covered)]
        shutil.rmtree(scene.folder)
    return {"writers": WRITERS * rounds, "granted": granted, "violations": wrong}


def fresh_writers(folder: Path) -> dict:
    scene, covered = Scene.make(folder / "scene", budget=None), 5
    set_budget(scene, covered)
    command = [sys.executable, "-m", "hedgerow", *SYNTHESIZE]
    started = [
        subprocess.Popen(
            [*command, f"release-{number}"], cwd=scene.folder, env=scene.environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for number in range(WRITERS)
    ]  # fmt: skip
    shown = [each.communicate(timeout=300)[0] for each in started]
    done = [Done(each.returncode, text) for each, text in zip(started, shown, strict=True)]
    return {"writers": WRITERS, "granted": covered, "violations": contest_problems(scene, done, covered)}


def set_budget(scene: Scene, releases: float) -> None:
    with Ledger.open(scene.ledger) as ledger:
        ledger.set_budget(releases * PRICE, relation=RELATION, dataset="table")


def contest_problems(scene: Scene, done: list[Done], covered: int) -> list[str]:
    """Exactly as many are granted as the budget covers, and the books agree with the folders."""
    codes = sorted(each.code for each in done)
    wrong = [] if codes == [0] * covered + [5] * (WRITERS - covered) else [f"exit codes {codes}"]
    wrong += [f"traceback: {each.shown[-300:]}" for each in done if "Traceback" in each.shown]
    with Ledger.open(scene.ledger) as ledger:
        wrong += [f"ledger: {problem}" for problem in ledger.verify()]
        wrong += ["something is pending"] if ledger.pending() else []
        spent = sum(balance.spent for balance in ledger.balance(dataset="table"))
        wrong += [] if spent == covered * PRICE else [f"spent {spent} for {covered} releases"]
        entries = {entry.release for entry in ledger.entries() if entry.event == "released"}
    folders = list(scene.folder.glob("release-*"))
    releases = {hr.verify_release(place).certificate.release for place in folders}
    wrong += [] if releases == entries and len(folders) == covered else ["folders and entries differ"]
    return wrong


COMMANDS = {
    "signals": signals, "fresh": fresh, "settled": settled, "limited": limited, "refused": refused,
    "full": full, "plans": plans, "writers": writers, "fresh-writers": fresh_writers,
}  # fmt: skip

if __name__ == "__main__":
    command, where, *numbers = sys.argv[1:]
    json.dump(COMMANDS[command](Path(where), *map(int, numbers)), sys.stdout)
