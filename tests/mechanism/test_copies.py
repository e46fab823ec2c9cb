"""Stratified uniforms: each by itself uniform, one in every stratum, neighbours in fitted value together."""

from math import isqrt

import numpy as np
import pytest
from scipy import stats

import hedgerow as hr
from hedgerow.mechanism.copies import stratify
from hedgerow.randomness import Key


def numbers(fitted, seed):
    key = Key.from_seed(seed)
    fresh = key.stream().uniform(len(fitted))
    ties, order = key.child("strata").stream().uniform((2, len(fitted)))
    return stratify(fitted, fresh, ties=ties, order=order)


@pytest.mark.parametrize("records", [1, 2, 7, 130, 2001])
def test_each_stratum_of_each_group_of_neighbours_holds_one_number(records):
    fitted = np.random.default_rng(1).normal(size=records)
    found = numbers(fitted, 2)
    assert ((found > 0) & (found < 1)).all()
    for group in np.array_split(np.argsort(fitted), isqrt(records)):
        strata = np.floor(found[group] * len(group)).astype(int)
        assert sorted(strata) == list(range(len(group)))


@pytest.mark.parametrize("fitted", [np.linspace(0, 1, 12), np.zeros(12), np.arange(120) % 7.0])
def test_each_number_by_itself_is_uniform(fitted):
    """4000 keys; Kolmogorov-Smirnov at 1e-5 for each of three records, nine tests: 1e-4 false alarms."""
    found = np.array([numbers(fitted, seed) for seed in range(4000)])
    for record in (0, 5, len(fitted) - 1):
        assert stats.kstest(found[:, record], "uniform").pvalue > 1e-5


def test_rounding_does_not_reach_the_ends():
    top, even = np.full(5000, 1 - 2.0**-53), np.linspace(0.1, 0.9, 5000)
    assert stratify(np.zeros(5000), top, ties=even, order=even).max() < 1


def settings(**changes):
    return {"seed": 1, "draws": 100, "copies": 2} | changes


def test_copies_are_smoother_and_from_the_same_draws():
    """The ECDF at a point scatters with √(p(1−p)/n) in independent copies and far less in stratified ones."""
    data = hr.datasets.lognormal(400, seed=2)
    plain = hr.Synthesizer("x ~ z", **settings(copies=60)).fit(data)
    smooth = hr.Synthesizer("x ~ z", **settings(copies=60, sampling="stratified")).fit(data)
    draws = plain._need().released, smooth._need().released
    for a, b in zip(*draws, strict=True):
        assert np.array_equal(a.parameters["beta"], b.parameters["beta"])

    def noise(synth):
        model, design = synth.settings.model, synth._need().start.design
        shares = []
        for draw, copy in zip(synth._need().released, synth.sample().tables, strict=True):
            uniform = stats.norm.cdf(
                (np.log(copy["x"]) - design.matrix @ draw.parameters["beta"]) / draw.parameters["sigma"]
            )
            shares.append((uniform < 0.5).mean())
        assert model.name == "lognormal"
        return np.std(shares)

    assert noise(smooth) < 0.2 * noise(plain)


def test_the_guarantee_says_where_they_must_not_be_used():
    data = hr.datasets.lognormal(60, seed=2)
    text = " ".join(
        str(hr.Synthesizer("x ~ z", **settings(sampling="stratified")).fit(data).sample().guarantee).split()
    )
    assert "stratified instead of independent" in text
    assert "assume independent" in text
    assert "stratified" not in str(hr.Synthesizer("x ~ z", **settings()).fit(data).sample().guarantee)


def test_the_same_seed_gives_the_same_bytes():
    data = hr.datasets.lognormal(60, seed=2)
    first, second = (
        hr.Synthesizer("x ~ z", **settings(sampling="stratified")).fit(data).sample() for _ in range(2)
    )
    for a, b in zip(first.tables, second.tables, strict=True):
        assert a["x"].to_numpy().tobytes() == b["x"].to_numpy().tobytes()
