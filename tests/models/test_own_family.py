"""A family is one object: declared here, it goes through the front door like those that are shipped."""

import subprocess
import sys

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import DataError, SettingError
from hedgerow.models.families import FAMILIES, definition
from hedgerow.models.families.definition import (
    LOGS,
    FamilyDefinition,
    PositiveNumbers,
    family_names,
    find_definition,
    register,
)
from hedgerow.models.lazy import jnp
from hedgerow.models.programs.response import Positive


class ExponentialResponse(Positive):
    """Mean exp(`log_mean`)."""

    def __init__(self, log_mean):
        self.log_mean = log_mean
        super().__init__(log_mean)

    def log_prob(self, value):
        return -self.log_mean - value * jnp.exp(-self.log_mean)

    def log_mass(self, lower, upper):
        low, high = (jnp.maximum(end, 0.0) * jnp.exp(-self.log_mean) for end in (lower, upper))
        return -low + jnp.log(-jnp.expm1(low - high))


EXPONENTIAL = FamilyDefinition(
    "exponential",
    domain=PositiveNumbers,
    prior=LOGS,
    response=lambda program, eta: ExponentialResponse(eta),
    simulate=lambda random, z: random.exponential(np.exp(0.5 + 0.8 * z)),
)


@pytest.fixture
def exponential(monkeypatch):
    monkeypatch.setattr(definition, "_DEFINITIONS", dict(definition._DEFINITIONS))
    register(EXPONENTIAL)


@pytest.mark.usefixtures("exponential")
def test_a_family_of_ones_own_goes_through_the_synthesizer():
    data = hr.datasets.family("exponential", n=200, seed=1)
    standard = hr.RangeTruncated(hr.Radius(0.5, 2.0))
    synth = hr.Synthesizer("x ~ z", "exponential", standard=standard, draws=1000, seed=1).fit(data)
    copy = synth.sample().tables[0]["x"]
    assert (copy > 0).all()
    assert np.log(copy.mean()) == pytest.approx(np.log(data["x"].mean()), abs=0.7)
    slope = synth.to_arviz().posterior["beta"].values[..., 1].mean()
    assert slope == pytest.approx(0.8, abs=0.25)


@pytest.mark.usefixtures("exponential")
def test_it_has_a_spike_settings_and_refusals():
    plain = [name for name in FAMILIES if not name.startswith("zero_")]
    assert family_names() == (*plain, "exponential", *FAMILIES[len(plain) :], "zero_exponential")
    model = hr.Family("zero_exponential", upper=9.0)
    assert (model.domain.support.upper, model.domain.support.spike, model.domain.atoms) == (9.0, 0.0, True)
    with pytest.raises(SettingError, match="has no setting df; it takes lower, upper"):
        hr.Family("exponential", df=3.0)
    with pytest.raises(DataError, match="it takes positive numbers"):
        hr.Synthesizer("x ~ z", "exponential").fit(hr.datasets.family("normal", n=50, seed=1))
    with pytest.raises(SettingError, match="already"):
        register(EXPONENTIAL)


def test_unknown_families_are_refused_with_all_names():
    for name in ("exponential", "zero_poisson", 3):
        with pytest.raises(SettingError, match=f"one of {', '.join(FAMILIES)}, got {name!r}"):
            find_definition(name)


def test_families_are_known_without_jax():
    code = (
        "import sys; sys.modules['jax'] = sys.modules['numpyro'] = None\n"
        "import hedgerow as hr; from hedgerow.models.families import FAMILIES\n"
        "assert len(FAMILIES) == 24; hr.Family('gamma', upper=3.0); hr.datasets.family('beta', n=5)\n"
        "try: hr.Synthesizer('x ~ z', 'gamma').fit(hr.datasets.family('gamma', n=20))\n"
        "except hr.HedgerowError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs 'jax', which is not installed. Install hedgerow[programs]." in done.stdout
