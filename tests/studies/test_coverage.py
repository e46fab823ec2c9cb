"""The study of coverage counts what it says, goes on where it stopped and fills its page."""

import json

import numpy as np
import pytest

from hedgerow.randomness import Key
from hedgerow_studies.coverage import report
from hedgerow_studies.coverage.measure import TERMS, Setting, estimate, simulate, variances

SETTING = Setting("strict", 200, 1.0, 3, 4)


def rows(covered):
    """Intervals of width 1 that hold the truth or lie beside it."""
    return [
        {
            "setting": SETTING.label,
            "sample": number,
            "seed": 1,
            "truth": [0.5] * len(TERMS),
            "found": {"rule": [[0.0 + 2 * (not inside), 1.0 + 2 * (not inside)]] * len(TERMS)},
        }
        for number, inside in enumerate(covered)
    ]


def test_coverage_is_counted_and_what_falls_short_is_bold():
    (count,) = report.count_rows(SETTING, [*rows([True, False, False, True]), *[{"setting": "another"}]])
    assert count["met"] == 4
    assert count["covered"] == dict.fromkeys(TERMS, 2)
    assert count["width"]["slope"] == 1.0
    text = "\n".join(report.tabulate([count]))
    assert "4 samples; standard error 0.109 at 0.95" in text
    assert "**0.500** (1)" in text
    (whole,) = report.count_rows(SETTING, rows([True] * 4))
    assert "| 1.000 (1) |" in "\n".join(report.tabulate([whole]))


def test_a_line_that_was_cut_short_is_measured_again(tmp_path):
    file = tmp_path / "rows.jsonl"
    file.write_text(json.dumps(rows([True])[0]) + "\n" + '{"setting": "str')
    assert len(report.read_rows(file, 1)) == 1
    assert file.read_text().count("\n") == 1
    assert report.read_rows(file, 2) == []


def test_truths_are_those_of_the_public_columns():
    """A table of 100,000 records gives its own truths within five standard errors; seven terms, a false alarm
    in 200,000."""
    table, truth = simulate(100_000, Key.from_seed(1))
    found = (estimate(table) - truth) / np.sqrt(variances(table))
    assert np.abs(found).max() < 5


@pytest.mark.slow
def test_variances_are_those_of_estimates_given_the_public_columns():
    """300 tables of 400 records: the mean square of errors in standard errors is 1, with an error of 0.08,
    twice that where errors have heavy tails; the bound is four of these, seven terms: a false alarm in 1000
    at most."""
    errors = []
    for number in range(300):
        table, truth = simulate(400, Key.from_seed(number))
        errors.append((estimate(table) - truth) ** 2 / variances(table))
    assert np.mean(errors, axis=0) == pytest.approx([1] * 7, abs=0.33)


@pytest.mark.slow
def test_a_quick_run_goes_on_and_fills_a_page(tmp_path, monkeypatch):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    (tmp_path / "figures").mkdir()
    text = report.write_report(tmp_path / "study", quick=True, jobs=1)
    assert "combining rule, 3 copies" in text
    assert "posterior" in text
    assert "bootstrap, 1 copy" in text
    monkeypatch.setattr(report, "measure", None)  # nothing is left to measure
    assert report.write_report(tmp_path / "study", quick=True, jobs=1) == text
    report.fill_page(tmp_path / "study", page)
    assert "old" not in page.read_text()
    assert text.strip() in page.read_text()
    assert (tmp_path / "figures" / "coverage.png").stat().st_size > 1000
