"""Whether ε stands up, as the page on honesty prints it, and README's picture."""

import json
from pathlib import Path

import pandas as pd
import pytest

from hedgerow_studies import breaches, headline, stands_up

ROOT = Path(__file__).parents[2]


def kept(file):
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    return pd.DataFrame([json.loads(line) for line in lines])


def test_the_page_has_the_table_that_the_rows_give():
    rows = kept(stands_up.ROWS)
    wanted = {(recipe, n, epsilon, seed) for recipe, n, epsilon, seed in stands_up.cells() if epsilon}
    found = rows[rows["epsilon"].notna()]
    assert set(zip(*(found[name] for name in ("recipe", "n", "epsilon", "seed")), strict=True)) == wanted
    page = (ROOT / "docs" / "honesty.md").read_text(encoding="utf-8")
    assert breaches.markdown(stands_up.table(rows)) in page


def test_no_loss_of_the_recommended_preset_is_above_epsilon():
    rows = kept(stands_up.ROWS)
    released = rows[(rows["recipe"] == "recommended") & rows["released"]]
    assert len(released) == 74
    assert (released["loss"] <= released["epsilon"]).all()


@pytest.mark.slow
@pytest.mark.parametrize("cell", [("recommended", 200, 2.0, 3002), ("linear, 2Δ", 200, 2.0, 3002)])
def test_a_row_is_computed_again(cell):
    rows = kept(stands_up.ROWS)
    names = ("recipe", "n", "epsilon", "seed")
    same = rows.set_index(list(names)).sort_index().loc[cell]
    again = stands_up.measured(*cell)
    assert again["loss"] == pytest.approx(same["loss"], rel=1e-6)
    assert again["ecdf"] == pytest.approx(same["ecdf"])


def test_the_picture_is_drawn_from_its_rows(tmp_path):
    rows = kept(headline.ROWS)
    assert set(rows["line"]) == {line.label for line in headline.LINES}
    for dark in (False, True):
        headline.picture(rows, tmp_path / f"{dark}.png", dark=dark)
    sizes = [(tmp_path / f"{dark}.png").stat().st_size for dark in (False, True)]
    assert min(sizes) > 10_000
