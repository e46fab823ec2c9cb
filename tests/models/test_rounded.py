"""Values that are known to be rounded are intervals."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import gamma, lognorm, norm

import hedgerow as hr
from hedgerow.errors import DataError, SettingError
from hedgerow.models.scored import Interval
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table


def design_of(values):
    n = len(values)
    table = Table.of(pd.DataFrame({"x": values, "z": np.linspace(-1, 1, n)}))
    return designs.build("x ~ z", table)


def between(law, lower, upper):
    right = law.cdf(lower) > 0.5
    return np.where(right, law.sf(lower) - law.sf(upper), law.cdf(upper) - law.cdf(lower))


PARAMETERS = {"beta": np.array([[5.0, 0.5]]), "sigma": np.array([0.7])}
MEAN = 5 + 0.5 * np.linspace(-1, 1, 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "parameters", "law"),
    [
        ("normal", {"beta": np.array([[150.0, 9.0]]), "sigma": np.array([60.0])},
         norm(150 + 9 * np.linspace(-1, 1, 5), 60)),
        ("lognormal", PARAMETERS, lognorm(0.7, scale=np.exp(MEAN))),
        ("gamma", {"beta": PARAMETERS["beta"], "shape": np.array([2.0])}, gamma(2, scale=np.exp(MEAN) / 2)),
    ],
)  # fmt: skip
def test_the_log_likelihood_is_the_log_mass_of_what_is_rounded_to_the_value(family, parameters, law):
    model = hr.Family(family, rounded=100)
    values = np.array([0.0, 100.0, 200.0, 300.0, 400.0])
    design = design_of(values)
    model.check(design)
    found = model.log_lik(design, parameters, slice(None))[0]
    np.testing.assert_allclose(np.exp(found), between(law, values - 50, values + 50), rtol=1e-9)
    interval = Interval(values - 130, values + 130, np.ones(5, dtype=bool))  # holds three multiples
    mass = np.exp(model.log_mass(design, parameters, interval, slice(None))[0])
    np.testing.assert_allclose(mass, between(law, values - 150, values + 150), rtol=1e-9)
    one = {name: value[0] for name, value in parameters.items()}
    uniforms = np.linspace(0.06, 0.93, 5)  # none falls between two multiples
    wanted = 100 * np.rint(law.ppf(uniforms) / 100)
    np.testing.assert_array_equal(model.predict(design, one, uniforms), wanted)


def test_what_contradicts_the_rounding_is_refused():
    with pytest.raises(DataError, match=r"1 values in 3 rows .* positive numbers, in multiples of 100\."):
        hr.Family("lognormal", rounded=100).check(design_of([100.0, 250.0, 300.0]))
    with pytest.raises(DataError, match="1 values in 3 rows"):
        hr.Family("lognormal", rounded=100).check(design_of([-100.0, 0.0, 300.0]))
    with pytest.raises(SettingError, match="upper must be a multiple of rounded=100, got 250"):
        hr.Family("lognormal", rounded=100, upper=250)
    with pytest.raises(SettingError, match="rounded must be a positive number"):
        hr.Family("gamma", rounded=-1)
    with pytest.raises(SettingError, match="has no setting rounded"):
        hr.Family("poisson", rounded=5)
    hr.Family("beta", rounded=0.1).check(design_of([0.0, 0.3, 1.0]))


@pytest.mark.slow
def test_a_coarse_step_does_not_widen_the_spread():
    """σ = 0.3 recorded in whole numbers: taken as they are they show 0.42, as intervals 0.3.

    With 800 records σ has a standard error of about 0.012; four of them: a false alarm in 16,000.
    """
    random = np.random.default_rng(3)
    z = random.normal(2.0, 1.0, 800)
    data = pd.DataFrame({"x": np.rint(1 + z + 0.3 * random.normal(size=800)), "z": z})
    asked = {"weights": hr.ScalarWeights(1), "bound": "oscillation", "seed": 1}
    plain = hr.Synthesizer("x ~ z", "normal", **asked).fit(data)
    rounded = hr.Synthesizer("x ~ z", hr.Family("normal", rounded=1), **asked).fit(data)
    sigmas = [synth._fitted.parameters["sigma"].mean() for synth in (plain, rounded)]
    assert sigmas[0] > 0.38
    assert abs(sigmas[1] - 0.3) < 0.05
    copy = rounded.sample().tables[0]
    assert (copy["x"] == np.rint(copy["x"])).all()
    left = [np.std(table["x"] - 1 - table["z"]) for table in (data, copy)]
    assert abs(left[0] - left[1]) < 0.06


@pytest.mark.slow
def test_rounded_amounts_with_a_spike_and_ends_are_synthesized_as_they_are_recorded():
    random = np.random.default_rng(4)
    z = random.normal(size=600)
    amounts = np.minimum(np.exp(5.5 + 0.5 * z + 0.8 * random.normal(size=600)), 2000)
    data = pd.DataFrame(
        {"x": np.where(random.uniform(size=600) < 0.3, 0, 50 * np.rint(amounts / 50)), "z": z}
    )
    family = hr.Family("zero_lognormal", rounded=50, upper=2000)
    synth = hr.Synthesizer("x ~ z", family, weights=hr.ScalarWeights(1), bound="oscillation", seed=1).fit(
        data
    )
    copy = synth.sample().tables[0]["x"]
    assert (copy % 50 == 0).all()
    assert copy.min() == 0
    assert copy.max() <= 2000
    assert abs((copy == 0).mean() - (data["x"] == 0).mean()) < 0.1  # 3.8 standard errors of a difference
    assert abs(copy.median() - data["x"].median()) <= 100
