"""δ of a Markov chain rests on the effective draws of the very maxima that are priced."""

import numpy as np
import pytest

import hedgerow as hr
from hedgerow.errors import HealthError
from hedgerow.models.base import Health
from hedgerow.models.programs import gate

HEALTH = Health("nutpie NUTS", False, 900.0, assured_draws=400.0, chains=4)


def maxima(stays):
    """Four chains of 250 draws, alternating, each of which stays where it is with this probability."""
    random = np.random.default_rng(1)
    fresh = random.exponential(size=(250, 4))
    for draw in range(1, 250):
        same = random.uniform(size=4) < stays
        fresh[draw] = np.where(same, fresh[draw - 1], fresh[draw])
    return fresh.ravel()


def test_maxima_that_move_from_draw_to_draw_pass():
    assert gate.examine_maxima(HEALTH, maxima(0.0)).failed == ()


def test_maxima_that_hardly_move_are_refused_though_all_parameters_do():
    """900 effective draws of every parameter, a tenth as many of what is priced."""
    with pytest.raises(HealthError, match="made from, have an ESS of "):
        gate.examine_maxima(HEALTH, maxima(0.9))


def test_an_override_goes_on_and_is_remembered():
    allowed = Health("nutpie NUTS", False, 900.0, assured_draws=400.0, chains=4, overridden=True)
    found = gate.examine_maxima(allowed, maxima(0.9))
    assert found.failed == ("ESS of the price",)
    assert found.effective_draws < 400


@pytest.mark.slow
@pytest.mark.parametrize("bound", ["lipschitz", "oscillation"])
def test_a_certified_fit_is_examined_by_the_maximum_that_it_is_priced_by(monkeypatch, bound):
    """Twice the largest of the numbers looked at is what the target is held against; a refusal stands."""
    seen = []
    monkeypatch.setattr(gate, "examine_maxima", lambda health, values: seen.append(values) or health)
    data = hr.datasets.family("gamma", n=60, seed=1)
    settings = {"standard": hr.Unweighted(), "bound": bound, "epsilon": 1000.0, "draws": 1000, "seed": 1}
    synth = hr.Synthesizer("x ~ z", hr.Family("gamma", sampler="nutpie"), **settings).fit(data)
    assert seen[0].shape == (1000,)
    assert 2 * seen[0].max() == pytest.approx(synth.certified_epsilon_, rel=1e-12)
