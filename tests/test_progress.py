"""How far a job has come: counted over all its fits, told once, and to nobody who wants silence."""

import re
import sys

import pytest

import hedgerow as hr
from hedgerow import progress
from hedgerow.cli.screen import Screen

LINE = re.compile(r"hedgerow: (?:(.+), )?(\d+) of about (\d+) fits(?:, about \d+ (?:s|min|h) left)?")


def calibrated(**settings):
    return hr.Synthesizer("x ~ z", epsilon=6.0, draws=100, seed=1, **settings)


def counts(job):
    """What a watcher is told of the fits."""
    told = []
    with hr.watch(lambda stage, done, total: told.append((stage, done, total))):
        job()
    return [(done, total) for stage, done, total in told if stage == progress.FITS]


def test_a_fit_counts_its_calibration_and_ends_where_it_expected(small):
    told = counts(lambda: calibrated().fit(small[["x", "z"]]))
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert told[0] == (1, 11)  # the plain fit, and what a search mostly takes
    assert len(told) > 4
    assert all(done <= total for done, total in told)


@pytest.mark.slow
def test_a_correction_learns_from_the_copies_that_are_done(small):
    synth = calibrated(debias=True, copies=4).fit(small[["x", "z"]])
    told = counts(synth.sample)
    assert len(told) > 40
    assert told[0][1] == 4 * 6 * 2 * 5
    third = told[len(told) * 3 // 4]  # three of four copies are done, or nearly
    assert abs(third[1] - len(told)) < 0.3 * len(told) < abs(told[0][1] - len(told))
    assert all(done <= total for done, total in told)


def counts_to_the_end(job):
    """Fits are counted one by one, and the guess at the first of them is of the right size."""
    told = counts(job)
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert len(told) / 3 < told[0][1] < 3 * len(told)


def test_an_audit_is_one_job(small):
    synth = calibrated().fit(small[["x", "z"]])
    counts_to_the_end(lambda: synth.audit(riskiest=2, sample=0, keys=1))


@pytest.mark.slow
@pytest.mark.parametrize("debias", [False, True])
def test_an_attack_is_one_job(small, debias):
    synth = calibrated(debias=debias).fit(small[["x", "z"]])
    counts_to_the_end(lambda: synth.attack(trials=200))


def test_a_release_is_one_job(tmp_path):
    hr.datasets.lognormal(n=80, seed=3).to_csv(tmp_path / "t.csv", index=False)
    settings = {
        "epsilon": 60.0,
        "draws": 100,
        "debias": True,
        "copies": 2,
        "ledger": tmp_path / "ledger.sqlite",
    }
    plan = hr.Plan(formula="x ~ z", data=tmp_path / "t.csv", **settings)
    told = counts(lambda: hr.make_release(plan, tmp_path / "release"))
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert told[0][1] == 1 + 10 + 2 * 6 * 2 * 5


def test_standards_that_are_compared_are_one_job(small):
    told = counts(lambda: hr.compare("x ~ z", small[["x", "z"]], draws=100, seed=1))
    assert told == [(1, 3), (2, 3), (3, 3)]  # the plain fit is shared


def test_without_a_terminal_a_line_a_minute(small, capsys, monkeypatch):
    clock = iter(range(0, 100_000, 25))  # each look at the clock finds it 25 seconds later
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    calibrated().fit(small[["x", "z"]])
    lines = capsys.readouterr().err.splitlines()
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found)
    done = [int(match[2]) for match in found]
    assert done == list(range(3, 3 * len(done) + 1, 3))  # of fits 25 seconds apart every third one is told
    assert lines[0] == "hedgerow: 3 of about 11 fits, about 3 min left"


def test_what_is_over_within_a_minute_says_nothing(small, capsys):
    calibrated().fit(small[["x", "z"]])
    assert capsys.readouterr().err == ""


def test_nobody_listening_stops_no_job(small, monkeypatch):
    class Closed:
        def isatty(self):
            return False

        def write(self, text):
            raise BrokenPipeError

    monkeypatch.setattr(progress, "_EVERY", 0.0)
    monkeypatch.setattr(sys, "stderr", Closed())
    assert calibrated().fit(small[["x", "z"]]).total_epsilon_ <= 6.0


@pytest.mark.parametrize("quiet", [True, False])
def test_on_a_terminal_bars_unless_silence_is_asked_for(quiet, small, capsys, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    job = calibrated()
    if quiet:
        with hr.watch(None):
            job.fit(small[["x", "z"]])
    else:
        job.fit(small[["x", "z"]])
    assert ("fits" in capsys.readouterr().err) is not quiet


def test_notes_stand_above_the_bars_and_steps_promise_no_time(capsys, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    screen = Screen()
    with screen.progress(3) as begin:
        for step in ("reading", "fitting", "writing"):
            begin(step)
        progress.report(progress.FITS, 1, 11)
        screen.note("mind this")
        begin("done")
        screen.note("and that")
    err = capsys.readouterr().err
    # a line that is cleared before each note, and bars that are drawn anew after it
    assert re.search(r"\x1b\[2K(?:\x1b\[33m)?note: mind this", err)
    assert "fits" not in err.rpartition("done")[2]  # stages of a step go with it
    assert not re.search(r"writing.*(?:-:--:--|\d:\d\d:\d\d \d:\d\d:\d\d)", err)


@pytest.mark.parametrize(("seconds", "words"), [(4.4, "4 s"), (89, "89 s"), (95, "2 min"), (7200, "2 h")])
def test_durations_read_well(seconds, words):
    assert progress.format_duration(seconds) == words
