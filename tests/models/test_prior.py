"""Default priors: what they read of the predictors, and that copies do not show them."""

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.models.prior import DEFAULT
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table


def encode(**columns):
    table = pd.DataFrame({"x": np.ones(len(next(iter(columns.values())))), **columns})
    return designs.build(f"x ~ {' + '.join(columns)}", Table.of(table))


def test_the_spread_is_where_few_records_carry_the_variance():
    rows, random = 4000, np.random.default_rng(1)
    rare, even = np.zeros(rows), np.zeros(rows)
    rare[:4], even[::2] = 1, 1
    normal, tail = random.normal(size=rows), np.append(np.zeros(rows - 2), [50.0, 100.0])
    tail[: rows // 2] += np.linspace(0, 1, rows // 2)
    spread = encode(rare=rare, even=even, normal=normal, tail=tail).spread
    np.testing.assert_allclose(spread[1:3], [1, np.sqrt(1 / 8)], atol=0.01)
    np.testing.assert_allclose(spread[3], normal.std() / np.sqrt(2), rtol=0.1)
    assert 80 < spread[4] < 100


@pytest.mark.parametrize("scale", [1e-70, 1.0, 1e70])
def test_the_spread_goes_with_the_units(scale):
    column = np.array([0.0, 1.0, 2.0, 9.0])
    one, other = encode(z=column), encode(z=column * scale + scale)
    np.testing.assert_allclose(other.spread[1], one.spread[1] * scale)


def test_what_a_prior_leaves_out_is_the_familys_own():
    assert hr.Lognormal().prior == hr.Normal().prior == DEFAULT
    own = hr.Normal(hr.Prior(residual=50.0)).prior
    assert (own.intercept, own.slope) == ((0.0, 50_000.0), (0.0, 50.0))
    gamma = hr.Family("gamma", hr.Prior(residual=0.5))
    assert (gamma.full_prior.intercept, gamma.full_prior.slope) == ((0.0, 20.0), (0.0, 1.0))
    assert gamma.full_prior.residual == 0.5
    assert hr.Prior(slope=(0.0, 3.0)).over(DEFAULT).slope == (0.0, 3.0)


def test_the_level_is_meant_at_the_predictors_means():
    """Dates counted from another day give the same fit: nobody has an opinion of the level on day zero."""
    random = np.random.default_rng(1)
    z = random.normal(size=60)
    model, power = hr.Normal(hr.Prior(intercept=(0.0, 1.0))), np.full(60, 0.1)
    fits = []
    for origin in (0.0, 2000.0):
        table = pd.DataFrame({"x": z, "z": z + origin})
        design = designs.build("x ~ z", Table.of(table))
        fits.append(design.matrix @ model.posterior(design, power).mean)
    np.testing.assert_allclose(*fits, atol=1e-9)


def census(rows=500):
    """Incomes, and categories of which some are rare."""
    random = np.random.default_rng(1)
    chances = np.array([30, 25, 20, 10, 6, 4, 2, 1, 0.6, 0.4, 0.4, 0.3, 0.3])
    educ = random.choice(list("abcdefghijklm"), rows, p=chances / chances.sum())
    level = 9.6 + 0.1 * (ord("g") - np.array([ord(each) for each in educ]))
    income = np.exp(level + 0.8 * random.normal(size=rows))
    return pd.DataFrame({"income": income, "educ": educ, "sex": random.choice(["f", "m"], rows)})


def test_a_target_does_not_turn_rare_categories_into_nonsense():
    """With slopes as vague as normal(0, 100σ) the ECDF maximum was 0.6, with means 10⁷ times as large."""
    settings = {"bound": "renyi", "weights": hr.ScalarWeights(1.0), "epsilon": 3.0, "copies": 2, "draws": 100}
    data = census()
    synth = hr.Synthesizer("income ~ C(educ) + C(sex)", **settings, seed=1).fit(data)
    found = synth.utility().query("copy == 'pooled'").set_index("statistic")
    assert found["synthetic"]["ecdf_max"] < 0.2
    assert found["synthetic"]["q99"] < 10 * found["original"]["q99"]
    assert synth.power_.sum() > 20


@pytest.mark.parametrize(("prior", "told"), [(None, True), (hr.Prior(residual=1e-3), False)])
def test_a_guess_of_the_residual_in_other_units_is_told(prior, told, recwarn):
    """Rates of some thousandths, and a guess of 1: σ came out three times too large."""
    z = np.linspace(0, 1, 200)
    rates = pd.DataFrame({"x": 0.01 * z + 0.002 * np.random.default_rng(1).normal(size=200), "z": z})
    hr.Synthesizer("x ~ z", "normal", prior=prior, standard=hr.Unweighted(), draws=100, seed=1).fit(rates)
    assert any("guess of the residual" in str(each.message) for each in recwarn) == told
