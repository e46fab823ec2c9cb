"""A small office under attack: one table, one ledger with a budget for one release, and what must hold.

A `Scene` is a folder of its own, made anew for each attack. `fork` runs the real command line in a forked
process, in which everything is loaded already, so that an attack meets the moments of a release and not those
of starting Python. `list_violations` says what an attack broke: an empty list, or a fault of hedgerow.
"""

import math
import os
import re
import selectors
import shutil
import signal
import sqlite3
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import hedgerow as hr
from hedgerow.cli import main
from hedgerow.errors import BudgetError
from hedgerow.release.folder import find_drafts
from hedgerow.release.ledger import Ledger

HANG = 10.0  # seconds after which a command counts as hanging, not counting those it waits for a processor
PRICE = 20.0
SYNTHESIZE = (
    "synthesize", "table.csv", "--formula", "x ~ z", "--epsilon", str(PRICE), "--copies", "2", "--draws",
    "100", "--dataset", "table", "--out",
)  # fmt: skip
RELATION = "withheld"


@dataclass(frozen=True)
class Done:
    """How a command ended: its exit code, or minus the signal that ended it, and all that it showed."""

    code: int
    shown: str


@dataclass(frozen=True)
class Scene:
    folder: Path

    @classmethod
    def make(cls, folder: Path, rows: int = 150, budget: float | None = 1.5 * PRICE) -> "Scene":
        """The scene that others are copied from. The outcome's values have nine digits or more: canaries."""
        folder.mkdir()
        frame = hr.datasets.lognormal(n=rows, seed=3)
        frame = frame.assign(x=(frame["x"] * 1e9).round().astype("int64") + 10**8, z=frame["z"].round(3))
        frame.to_csv(folder / "table.csv", index=False)
        scene = cls(folder)
        if budget is not None:
            with Ledger.open(scene.ledger) as ledger:
                ledger.set_budget(budget, relation=RELATION, dataset="table")
        return scene

    def warm(self) -> "Scene":
        """Makes a release in this process, so that forked ones find everything loaded."""
        plan = hr.Plan(
            formula="x ~ z", epsilon=PRICE, copies=2, draws=100, data=self.folder / "table.csv",
            ledger=self.folder / "warm.sqlite", dataset="table",
        )  # fmt: skip
        hr.make_release(plan, self.folder / "warm")
        shutil.rmtree(self.folder / "warm")
        for place in self.folder.glob("warm.sqlite*"):
            place.unlink()
        return self

    def copy(self, folder: Path) -> "Scene":
        shutil.copytree(self.folder, folder)
        return Scene(folder)

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.sqlite"

    @property
    def out(self) -> Path:
        return self.folder / "release"

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"HEDGEROW_LEDGER": str(self.ledger)}

    @property
    def canaries(self) -> re.Pattern[bytes]:
        lines = (self.folder / "table.csv").read_text().splitlines()
        place = lines[0].split(",").index("x")
        return re.compile("|".join(line.split(",")[place] for line in lines[1:]).encode())

    def rows(self) -> list[tuple[str, str]]:
        """Release and event of each row that is about a release, read behind hedgerow's back."""
        with closing(sqlite3.connect(self.ledger)) as connection:
            query = "SELECT release, event FROM entries WHERE release IS NOT NULL ORDER BY id"
            return list(connection.execute(query))


@dataclass
class Forked:
    """A command in a forked process, and the pipe with what it shows."""

    pid: int
    pipe: int
    shown: bytes = b""
    code: int | None = None  # when it has ended; 1000 for one that hung and was killed
    start: float = field(default_factory=time.monotonic)

    def wait(self, until: float = math.inf) -> str:
        """Waits for the end, for a stop, or until a moment: "ended", "stopped" or "running"."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.pipe, selectors.EVENT_READ)
            while self.code is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG | os.WUNTRACED)
                if selector.select(0):
                    self.shown += os.read(self.pipe, 1 << 16)
                now = time.monotonic()
                if pid and os.WIFSTOPPED(status):
                    return "stopped"
                if pid:
                    self.code = os.waitstatus_to_exitcode(status)
                elif now >= until:
                    return "running"
                elif now - self.start >= HANG and now - self.start - _queued(self.pid) >= HANG:
                    os.kill(self.pid, signal.SIGKILL)
                    os.waitpid(self.pid, 0)
                    self.code = 1000
                else:
                    time.sleep(0.001)
        return "ended"

    def done(self) -> Done:
        """How it ended, with everything that it showed."""
        self.wait()
        while chunk := os.read(self.pipe, 1 << 16):
            self.shown += chunk
        os.close(self.pipe)
        return Done(self.code or 0, self.shown.decode(errors="replace"))


def _queued(pid: int) -> float:
    """For how many seconds a process was ready to run and others had the processors; 0 if nobody counts."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def fork(scene: Scene, arguments: Iterable[object], before: Callable[[], object] = lambda: None) -> Forked:
    """Starts `hedgerow ARGUMENTS` in a forked process, after a call of `before` there."""
    pipe, inlet = os.pipe()
    pid = os.fork()
    if pid:
        os.close(inlet)
        return Forked(pid, pipe)
    code = 99  # the attack's own fault
    try:
        os.dup2(inlet, 1)
        os.dup2(inlet, 2)
        os.closerange(3, 256)  # also the ends of pipes of others, which would stay open
        os.chdir(scene.folder)
        os.umask(0)  # what must be closed to others is closed by hedgerow, not by the umask
        os.environ["HEDGEROW_LEDGER"] = str(scene.ledger)
        sys.argv = ["hedgerow", *map(str, arguments)]
        signal.signal(signal.SIGINT, _interrupt_main)
        before()
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        code = 130
    finally:
        sys.settrace(None)
        sys.stdout.flush()
        os._exit(code)


def _interrupt_main(number: int, frame: FrameType | None) -> None:
    """Interrupts the command, and nothing of what runs before and after it here."""
    while frame is not None:
        if frame.f_code is main.__code__:
            raise KeyboardInterrupt
        frame = frame.f_back


def run(scene: Scene, *arguments: object, before: Callable[[], object] = lambda: None) -> Done:
    return fork(scene, arguments, before).done()


PHASES = ("before", "reserved", "draft", "visible", "confirmed")


class Moments:
    """Counts the lines of hedgerow's release that run in each phase, and stops the process at one of them.

    before: nothing is recorded; reserved: the spend is; draft: files are being written; visible: the folder
    is renamed and not confirmed; confirmed: the ledger knows.
    """

    def __init__(self, scene: Scene, phase: str | None = None, number: int = 0) -> None:
        self.scene, self.phase, self.number = scene, phase, number
        self.counts = dict.fromkeys(PHASES, 0)
        self._places = (str(scene.folder), f"{scene.ledger}-wal")
        self._seen: tuple[int, ...] = ()
        self._now = PHASES[0]

    def watch(self) -> None:
        sys.settrace(self._enter)

    def _enter(self, frame, event, argument):
        file = frame.f_code.co_filename
        return self._line if "/hedgerow/release/" in file or "/tables/files/" in file else None

    def _line(self, frame, event, argument):
        if event == "line":
            now = self.current()
            self.counts[now] += 1
            wanted = self.phase is not None and PHASES.index(now) >= PHASES.index(self.phase)
            if wanted and (now != self.phase or self.counts[now] > self.number):
                self.phase = None
                sys.stderr.write(f"[{now}]\n")
                sys.stderr.flush()
                os.kill(os.getpid(), signal.SIGSTOP)
        return self._line

    def current(self) -> str:
        """The phase at this moment; the ledger is asked only where its log has changed."""
        seen = self._times()
        if seen != self._seen:
            events = {event for _, event in self.scene.rows()}
            if self.scene.out.exists():
                self._now = "confirmed" if "released" in events else "visible"
            elif find_drafts(self.scene.out):
                self._now = "draft"
            else:
                self._now = "reserved" if events else "before"
            self._seen = self._times()  # asking may have touched the log
        return self._now

    def _times(self) -> tuple[int, ...]:
        times = []
        for place in self._places:  # text: this is done at every line
            try:
                times.append(os.stat(place).st_mtime_ns)  # noqa: PTH116
            except FileNotFoundError:
                times.append(0)
        return tuple(times)


def list_violations(scene: Scene, done: Done, *, allowed: Iterable[int]) -> list[str]:
    """What must never be, and is; then closes what is open as docs/release.md says, and looks again."""
    wrong = list_disclosures(scene, done, allowed=allowed)
    left, visible = find_drafts(scene.out), os.path.lexists(scene.out)
    with Ledger.open(scene.ledger) as ledger:
        wrong += [f"ledger: {problem}" for problem in ledger.verify()]
        pending = {entry.release for entry in ledger.pending()}
        last = {entry.release: entry.event for entry in ledger.entries() if entry.release}
        counts = any(event != "void" for event in last.values())
        wrong += [] if _counted(ledger) == counts else ["the budget does not follow the entries"]
    wrong += ["several entries"] if len(last) > 1 else []
    told = "is pending; close it with" in " ".join(done.shown.split())  # out of room at the very end
    if done.code == 0 and not (visible and ("released" in last.values() or (pending and told))):
        wrong.append("said to be done, but not released")
    for draft in left:
        release = draft.name.split("hedgerow-")[1].partition(".")[0]
        if release not in pending:
            wrong.append(f"a draft whose entry is {last.get(release)}")
    if visible:
        wrong += _folder_problems(scene, last)
    hidden = {place.name for place in scene.folder.glob(".release*")} - {draft.name for draft in left}
    wrong += [f"left behind: {name}" for name in hidden]
    if not wrong:
        wrong += _settle(scene, pending, visible)
    return wrong


def list_disclosures(scene: Scene, done: Done, *, allowed: Iterable[int]) -> list[str]:
    """What a command, however it ended, must not show or leave open."""
    wrong = [] if done.code in allowed else [f"exit code {done.code}: {done.shown[-300:]}"]
    if "Traceback" in done.shown or "internal error" in done.shown:
        wrong.append(f"traceback: {done.shown[-500:]}")
    return wrong + _leaks(scene, done) + _open_files(scene)


def _leaks(scene: Scene, done: Done) -> list[str]:
    texts = {"output": done.shown.encode()}
    public = [place for place in scene.out.glob("public/*") if not place.name.startswith("synthetic-copy-")]
    for place in [*public, *scene.folder.glob("*ledger*")]:
        texts[place.name] = place.read_bytes()
    return [
        f"a value of the outcome in {name}" for name, text in texts.items() if scene.canaries.search(text)
    ]


def _open_files(scene: Scene) -> list[str]:
    confidential = scene.out / "confidential"
    closed = [*scene.folder.glob("*ledger*"), *scene.folder.glob(".release*")]
    closed += [confidential, *confidential.rglob("*")] if confidential.exists() else []
    return [f"open to others: {place.name}" for place in closed if place.lstat().st_mode & 0o077]


def _counted(ledger: Ledger) -> bool:
    """Whether the one release that the budget allows is taken."""
    try:
        ledger.check(fingerprint="0" * 64, relation=RELATION, epsilon=PRICE, dataset="table")
    except BudgetError:
        return True
    return False


def _folder_problems(scene: Scene, last: dict[str, str]) -> list[str]:
    try:
        verified = hr.verify_release(scene.out)
    except hr.HedgerowError as error:
        return [f"half a folder: {error}"]
    event = last.get(verified.certificate.release)
    wrong = [f"half a folder: {problem}" for problem in verified.problems]
    return wrong + ([f"visible copies whose entry is {event}"] if event in (None, "void") else [])


def _settle(scene: Scene, pending: set[str], visible: bool) -> list[str]:
    """Does by hand what the attack kept hedgerow from doing; then the books must be closed."""
    wrong = []
    for release in pending:
        how = ("released", "--release", "release") if visible else ("void", "--note", "the attack: no copy")
        settled = run(scene, "ledger", "settle", release, *how)
        wrong += [f"cannot be settled: {settled.shown[-300:]}"] if settled.code else []
    for draft in find_drafts(scene.out):
        shutil.rmtree(draft)
    with Ledger.open(scene.ledger) as ledger:
        wrong += [f"ledger, settled: {problem}" for problem in ledger.verify()]
        wrong += ["still pending"] if ledger.pending() else []
        wrong += [] if _counted(ledger) == visible else ["settled, and the budget does not follow"]
    return wrong
