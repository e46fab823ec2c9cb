"""What a receiver concludes from the statistics of several columns."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hedgerow.inference.statistics import conclude

OLD = Path(__file__).parents[1] / "golden" / "statistics_of_columns.json"


@pytest.mark.slow
def test_statistics_that_were_written_before_kinds_are_read_as_they_were():
    """Then a column had one spike, and every entry of a column its own bound: other loadings, same noise."""
    kept = json.loads(OLD.read_text())
    copy = pd.DataFrame({"age": kept["age"]} | dict.fromkeys(("wage", "bonus", "grade", "hours"), 1.0))
    found, then = conclude(kept["document"], copy, draws=100), kept["concluded"]
    columns = np.array(then["column"])
    at_spike = np.array([name.startswith("spike ") for name in then["parameter"]])
    assert found["column"] == then["column"]
    assert [name for name in found["parameter"] if not name.startswith(("kind ", "class "))] == [
        name.replace("bonus at its spike", "bonus: at its spike")
        for name in then["parameter"]
        if not name.startswith(("spike ", "class "))
    ]
    for name in ("estimate", "lower", "upper"):
        own, theirs = np.array(found[name]), np.array(then[name])
        np.testing.assert_allclose(own[~at_spike], theirs[~at_spike], rtol=1e-6)
    # Other random numbers: medians of 100 draws differ by an eighth of an interval at most, as a rule.
    width = (np.array(then["upper"]) - np.array(then["lower"]))[at_spike]
    assert set(columns[at_spike]) == {"bonus"}
    assert (np.abs(np.array(found["estimate"]) - then["estimate"])[at_spike] < 0.25 * width).all()
