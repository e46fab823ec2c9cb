"""Ten tables with the troubles of real ones, by the command: copies that may leave, or a stop in time."""

from dataclasses import replace

import numpy as np
import pytest

from hedgerow_studies import first_hour
from hedgerow_studies.first_hour import TROUBLES, Result

BY_NAME = {trouble.name: trouble for trouble in TROUBLES}


@pytest.mark.slow
@pytest.mark.parametrize("trouble", TROUBLES, ids=BY_NAME)
def test_copies_may_leave_or_the_run_stopped_in_time(trouble, tmp_path):
    result = first_hour.release(trouble, tmp_path)
    assert result.fit_to_leave, result


STOPS = {
    "spikes and negatives": 'family="student" or family="asinh"',
    "26 % missing": "--drop-missing",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", STOPS)
def test_a_run_that_cannot_go_on_says_what_would_help(name, tmp_path):
    result = first_hour.release(replace(BY_NAME[name], flags=()), tmp_path)
    assert not result.published
    assert result.fit_to_leave
    assert STOPS[name] in result.said


def test_what_counts_as_fit_to_leave():
    """Nonsense, a charge without copies and a crash do not."""
    good = Result("a", 0, 1.2, 3.0, True, "")
    stopped = Result("a", 4, np.nan, 0.0, False, "error: The target is met by discarding the data.")
    assert good.fit_to_leave
    assert stopped.fit_to_leave
    for bad in (
        replace(good, farthest=11.0), replace(good, farthest=np.nan), replace(good, farthest=np.inf),
        replace(stopped, charged=3.0), replace(stopped, code=0), replace(stopped, said=""),
        replace(stopped, said="internal error: ValueError."),
    ):  # fmt: skip
        assert not bad.fit_to_leave, bad
