"""The study of surveys: its population, its rules, and one survey."""

import numpy as np
import pytest

from hedgerow_studies import survey


def test_a_survey_estimates_its_population():
    population = survey.build_population()
    table = survey.draw_survey(population, 3)
    assert abs(len(table) - survey.SAMPLED) < 5 * np.sqrt(survey.SAMPLED)
    assert table["w"].sum() == pytest.approx(survey.FIRMS, rel=0.1)
    row = survey.measure(survey.ITSELF, False, 3)
    truth = population.groupby("sector")["x"].sum()
    figures = np.array(row["figures"])[:4]
    assert (np.abs(figures[:, 0] - truth) < 5 * np.sqrt(figures[:, 1])).all()
    assert "the survey itself | – | 1 |" in list(survey.tabulate([row]))[2]


def test_rules_by_hand():
    figures = np.array([[10.0, 4.0, 5.0, 1.0]])  # mean, within, between, given
    low, high = survey.find_ends(figures, "none", 5)
    assert (high - low) / 2 == pytest.approx(1.959964 * 2, rel=1e-6)
    low, high = survey.find_ends(figures, "partial", 5)  # T = 4 + 1, df = 4 · 25
    assert (high - low) / 2 == pytest.approx(1.983972 * np.sqrt(5), rel=1e-6)
    low, high = survey.find_ends(figures, "noisy", 5)  # T = 4 + 3 + 1, df = 4 · (8/6)²
    assert (high - low) / 2 == pytest.approx(2.357155 * np.sqrt(8), rel=1e-5)


@pytest.mark.slow
def test_copies_of_one_survey():
    rows = [survey.measure(survey.ITSELF, False, 1)]
    rows += [survey.measure("Unweighted", protected, 1) for protected in (False, True)]
    given = [np.array(row["figures"])[:, 3] for row in rows]
    assert (given[0] == 0).all()
    assert given[2][:4].sum() > given[1][:4].sum()  # weights of their own add to what copies differ by
    assert len(list(survey.tabulate(rows))) == 5
