"""Processes that are killed, compete or run out of room: nothing partial, nothing unpaid, nothing lost.

The campaign (slow): 400 signals, of which at least 50 between the rename and the ledger's confirmation, 40 of
the 400 to processes started anew; a disk that is full at 17 levels, in two ways or three; 16 writers at once.
`hostile/scene.py` says what counts as a violation.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hedgerow import cli
from hedgerow.cli import screen

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"


def attack(
    name: str, folder: Path, *numbers: int, timeout: float = 1800, within: tuple[str, ...] = ()
) -> dict:
    """Runs an attack in a process that may fork; no violation is ever allowed."""
    done = subprocess.run(
        [*within, sys.executable, HERE / "attacks.py", name, folder, *map(str, numbers)],
        capture_output=True, text=True, timeout=timeout, check=False,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    print(name, *numbers, {key: value for key, value in found.items() if key != "violations"})  # noqa: T201
    assert found["violations"] == [], "\n".join(found["violations"][:10])
    return found


def check_fills(found: dict, levels: int) -> None:
    """Most levels were too low and one was enough, so that the moments in between were met."""
    assert len(found["codes"]) == levels
    assert found["codes"].count(0) >= 1
    assert found["codes"].count(3) >= levels / 2


@pytest.mark.slow
def test_signals_at_random_moments(tmp_path):
    found = attack("signals", tmp_path, 24, 1, timeout=170)
    assert found["phases"]["visible"] >= 1
    assert found["phases"]["draft"] >= 3


def test_who_interrupts_twice_sees_no_traceback(monkeypatch):
    """The second interrupt comes while the first is being told."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in a job in the background

    def interrupt(*_: object, **__: object) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(cli, "app", interrupt)
    monkeypatch.setattr(screen, "show_error", interrupt)
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main()
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.value.code == 130


def test_who_interrupts_a_command_that_is_done_sees_no_traceback(monkeypatch):
    """Python ends its threads last, and an interrupt there would be told as an exception of theirs."""
    monkeypatch.setattr(cli, "app", lambda **_: sys.exit(0))
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0
    signal.raise_signal(signal.SIGINT)


@pytest.mark.slow
def test_360_signals_at_every_phase(tmp_path):
    """54 before the spend, 36 after it, 90 in the draft, 90 from rename to confirm, 18 later, 72 by clock."""
    found = attack("signals", tmp_path, 360, 2)
    phases = found["phases"]
    assert sum(phases.values()) - phases["clock"] == 288
    assert phases["visible"] >= 50
    assert min(phases.values()) >= 10  # by the clock many come too late where the machine is busy
    assert min(found["signals"].values()) >= 45


@pytest.mark.slow
def test_40_signals_to_processes_started_anew(tmp_path):
    found = attack("fresh", tmp_path, 40, 3)
    assert sum(found["phases"].values()) >= 30


@pytest.mark.slow
def test_a_release_that_was_voided_meanwhile_is_not_published(tmp_path):
    """24 releases are stopped, voided by `hedgerow ledger settle` in a second process, and continued."""
    attack("settled", tmp_path, 24, 4)


@pytest.mark.parametrize("way", ["limited", "refused"])
@pytest.mark.slow
def test_a_disk_that_is_full_at_17_levels(tmp_path, way):
    """limited: no file may grow beyond a size (EFBIG); refused: from one on none can be made (ENOSPC)."""
    check_fills(attack(way, tmp_path, 17), 17)


@pytest.mark.slow
def test_a_file_system_that_is_full_at_17_levels(tmp_path):
    """A real one, mounted where nobody else sees it; who may not do that has the two ways above."""
    alone = ("unshare", "--map-root-user", "--mount")
    probe = f'mount -t tmpfs -o size=64k tmpfs "{tmp_path}"'
    if shutil.which("unshare") is None or subprocess.run([*alone, "sh", "-c", probe], check=False).returncode:
        pytest.skip("no file system can be mounted here; limits on files and refusals are tested without one")
    check_fills(attack("full", tmp_path, 17, within=alone), 17)


@pytest.mark.slow
def test_a_disk_that_fills_up(tmp_path):
    check_fills(attack("limited", tmp_path, 4, timeout=120), 4)


@pytest.mark.slow
def test_sixteen_writers_never_overspend(tmp_path):
    attack("writers", tmp_path, 1, 5, timeout=120)


@pytest.mark.slow
def test_sixteen_writers_in_12_rounds(tmp_path):
    """192 writers under budgets for 0 to 16 of them; in three rounds they begin the ledger together."""
    assert attack("writers", tmp_path, 12, 6)["writers"] == 192


@pytest.mark.slow
def test_sixteen_writers_started_anew(tmp_path):
    assert attack("fresh-writers", tmp_path)["granted"] == 5


@pytest.mark.slow
def test_120_mutated_plans_given_to_the_command(tmp_path):
    """Half of them load: priced or released, they end with a documented code; the others with 2."""
    assert sum(attack("plans", tmp_path, 120, 7)["codes"].values()) == 120
