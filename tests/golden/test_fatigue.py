"""The application's data, against the three numbers the paper prints."""

import pytest

import hedgerow as hr


def test_the_papers_statistics():
    cycles = hr.datasets.fatigue(paper=True)["cycle"]
    assert len(cycles) == 19
    assert [round(value) for value in (cycles.mean(), cycles.median(), cycles.quantile(0.9))] == [
        57771,
        15616,
        165385,
    ]


def test_all_published_specimens():
    table = hr.datasets.fatigue()
    assert table.shape == (22, 2)
    assert list(table.columns) == ["stress", "cycle"]
    assert table["stress"].between(80, 146).all()
    assert round(table["cycle"].mean()) != 57771


@pytest.mark.parametrize("paper", [False, True])
def test_callers_cannot_change_it_for_each_other(paper):
    table = hr.datasets.fatigue(paper)
    table["cycle"] = 0
    assert (hr.datasets.fatigue(paper)["cycle"] > 0).all()
