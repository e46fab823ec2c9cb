"""What undoing the bias is worth, on the paper's simulation and on models that are wrong."""

import numpy as np
import pandas as pd
import pytest

from hedgerow.randomness import Key
from hedgerow_studies import bias


@pytest.mark.parametrize("name", ["normal", "laplace", "t3", "contaminated"])
def test_errors_have_the_spread_they_are_said_to_have(name):
    """A million errors. Variance 1 (contaminated: 0.95 + 0.05 · 9 = 1.4) within 5 standard errors by the
    fourth moment; t3 has none, and its middle half is compared instead."""
    drawn = bias.ERRORS[name](Key.from_seed(1).stream(), 1_000_000)
    assert abs(np.median(drawn)) < 0.01
    if name == "t3":
        assert np.quantile(drawn, 0.75) == pytest.approx(0.76489 / np.sqrt(3), rel=0.01)
        return
    wanted = 1.4 if name == "contaminated" else 1.0
    assert drawn.var() == pytest.approx(wanted, abs=5 * drawn.var() * np.sqrt(8 / 1e6))


@pytest.mark.slow
def test_every_method_is_measured_and_told():
    rows = bias.measured(bias.Setting(80, 8.0), 0, seed=1) + bias.measured(bias.Setting(80, 8.0), 1, seed=1)
    assert [row["method"] for row in rows] == [*bias.METHODS, *bias.METHODS]
    text = "\n".join(bias.table(pd.DataFrame(rows)))
    assert all(method in text for method in bias.METHODS)
    by_method = {row["method"]: row for row in rows[:5]}
    assert by_method[bias.CORRECTED]["price"] == by_method[bias.PLAIN]["price"]
    assert by_method[bias.CORRECTED]["sigma"] > by_method[bias.PLAIN]["sigma"]
    assert by_method[bias.CORRECTED]["sigma"] == by_method[bias.SMOOTH]["sigma"]


@pytest.mark.slow
def test_the_papers_simulation_reaches_unweighted():
    """docs/bias.md: n = 2000, ε = 5.7, 20 samples. The measured ratios are 1.09 and 1.17 with standard errors
    of about 0.02 and 0.06; the bounds are those of the project's goal."""
    setting = bias.Setting(2000, 5.7)
    rows = pd.DataFrame([row for number in range(20) for row in bias.measured(setting, number, bias.SEED)])
    mean = rows.groupby("method")[["ecdf_max", "log_q90"]].mean()
    assert mean.loc[bias.CORRECTED, "ecdf_max"] < 1.15 * mean.loc[bias.UNWEIGHTED, "ecdf_max"]
    assert mean.loc[bias.CORRECTED, "log_q90"] < 1.30 * mean.loc[bias.UNWEIGHTED, "log_q90"]
    assert mean.loc[bias.PLAIN, "ecdf_max"] > 1.5 * mean.loc[bias.UNWEIGHTED, "ecdf_max"]
