"""The weighted log density against independent formulas, and the three traps of weighting in NumPyro."""

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from helpers import programs
from numpyro import handlers
from numpyro.infer import log_likelihood
from numpyro.infer.util import potential_energy
from scipy import stats

import hedgerow as hr
from hedgerow.models.programs.potential import Potential, x64
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table

POSITIONS = np.random.default_rng(0).normal(0, 0.7, (5, 3))


def potential(program, data, power=None, formula="x ~ z"):
    design = designs.build(formula, Table.of(data), program.columns)
    power = np.ones(design.records) if power is None else np.asarray(power, dtype=float)
    return Potential.of(program._traced(design), program._arrays(design), design.values, power)


def densities(program, data, power=None, positions=POSITIONS):
    return potential(program, data, power).log_densities(positions)


@pytest.fixture
def data(small):
    return small[["x", "z"]]


def test_it_is_prior_plus_powers_times_likelihood_plus_jacobian(data):
    """By hand, with SciPy: positions are β and log σ², in the order of the site names."""
    power = np.random.default_rng(1).uniform(0, 1, len(data))
    power[3] = 0.0
    Z = np.column_stack([np.ones(len(data)), data["z"]])
    expected = []
    for position in POSITIONS:
        beta, variance = position[:2], np.exp(position[2])
        sigma = np.sqrt(variance)
        likelihood = stats.lognorm(s=sigma, scale=np.exp(Z @ beta)).logpdf(data["x"])
        prior = stats.norm([0.5, 0.3], sigma * np.array([4.0, 2.0]) / 0.7).logpdf(beta).sum()
        prior += stats.invgamma(1.5, scale=1.5 * 0.49).logpdf(variance)
        expected.append(prior + (power * likelihood).sum() + position[2])
    np.testing.assert_allclose(densities(hr.Program(programs.lognormal), data, power), expected, rtol=1e-12)


@pytest.mark.slow
def test_at_power_one_it_is_numpyros_own_potential():
    """For a program with correlation matrices and vectors, where Jacobians are intricate."""
    stress = np.linspace(80.0, 150.0, 19)
    table = pd.DataFrame({"x": np.exp(10 + np.sin(stress)), "stress": stress})
    formula = "x ~ log(stress)"
    found = potential(hr.Program(programs.published), table, formula=formula)
    matrix = designs.build(formula, Table.of(table)).matrix
    positions = np.random.default_rng(2).normal(0, 0.5, (2, found.dimensions))
    traced = found.functions.traced
    x = table["x"].to_numpy()
    with x64(True):
        own = jax.jit(lambda at: -potential_energy(programs.published, (matrix, x), {}, traced._unravel(at)))
        expected = [float(own(position)) for position in positions]
    np.testing.assert_allclose(found.log_densities(positions), expected, rtol=1e-10)


def test_power_zero_is_withholding_and_power_two_is_repetition(data):
    program = hr.Program(programs.lognormal)
    power = np.random.default_rng(0).uniform(0.1, 1, len(data))
    without = np.where(np.arange(len(data)) == 7, 0.0, power)
    whole = densities(program, data, without)
    rest = densities(program, data.drop(index=7), np.delete(power, 7))
    np.testing.assert_allclose(whole, rest, rtol=1e-12)
    changed = data.copy()
    changed.loc[7, "x"] = 1e6
    np.testing.assert_array_equal(densities(program, changed, without), whole)
    twice = np.where(np.arange(len(data)) == 4, 2.0, 1.0)
    repeated = pd.concat([data, data.iloc[[4]]], ignore_index=True)
    np.testing.assert_allclose(densities(program, data, twice), densities(program, repeated), rtol=1e-12)


@pytest.mark.slow
def test_trap_one_scale_refuses_zero_and_scales_priors(data):
    """NumPyro's own way to weight fails twice; ours leaves the prior alone, at zero powers too."""
    with pytest.raises(ValueError, match="positive"):
        handlers.scale(programs.lognormal, scale=np.zeros(len(data)))
    found = densities(hr.Program(programs.lognormal), data, np.zeros(len(data)))
    design = designs.build("x ~ z", Table.of(data))
    traced = hr.Program(programs.lognormal)._traced(design)
    with x64(True):
        prior = [float(traced.log_prior(position, {"X": design.matrix})) for position in POSITIONS]
        half = handlers.scale(programs.lognormal, scale=0.5)
        free = traced._unravel(jax.numpy.asarray(POSITIONS[0]))
        scaled = -float(potential_energy(half, (design.matrix, design.values), {}, free))
    np.testing.assert_allclose(found, prior, rtol=1e-12)
    ours = densities(hr.Program(programs.lognormal), data, np.full(len(data), 0.5))[0]
    assert scaled == pytest.approx(ours - 0.5 * prior[0], rel=1e-10)  # half the prior, half the Jacobian


def test_trap_two_log_likelihood_ignores_scaling(data):
    """So scores must never be taken for weighted ones: ours are plain log densities, whatever the power."""
    draws = {"beta": np.array([[0.2, 0.5]]), "variance": np.array([0.9])}
    design = designs.build("x ~ z", Table.of(data))
    half = handlers.scale(programs.lognormal, scale=0.5)
    with x64(True):
        plain = log_likelihood(programs.lognormal, draws, X=design.matrix, y=design.values)["x"]
        scaled = log_likelihood(half, draws, X=design.matrix, y=design.values)["x"]
    np.testing.assert_array_equal(plain, scaled)
    ours = hr.Program(programs.lognormal).log_lik(design, draws, slice(None))
    np.testing.assert_allclose(ours, plain, rtol=1e-12)
    exact = {"beta": draws["beta"], "sigma": np.sqrt(draws["variance"])}
    np.testing.assert_allclose(ours, hr.Lognormal().log_lik(design, exact, slice(None)), rtol=1e-12)


@pytest.mark.slow
def test_trap_three_hiding_observed_sites_drops_the_jacobian(data):
    """NumPyro's Jacobian terms are observed sites; hidden with the response, σ is biased. Ours keep them.

    That the bias is gone from the draws, too, only the exact model shows: test_agreement.py.
    """
    design = designs.build("x ~ z", Table.of(data))
    hidden = handlers.block(programs.lognormal, hide_fn=lambda site: site.get("is_observed", False))
    traced = hr.Program(programs.lognormal)._traced(design)
    with x64(True):
        for position in POSITIONS:
            free = traced._unravel(jax.numpy.asarray(position))
            naive = -float(potential_energy(hidden, (design.matrix, design.values), {}, free))
            kept = float(traced.log_prior(position, {"X": design.matrix}))
            log_variance = position[2]  # the Jacobian of the logarithm
            assert kept - naive == pytest.approx(log_variance, rel=1e-10)


def test_sixty_four_bits_stay_local(data):
    densities(hr.Program(programs.lognormal), data)
    assert not jax.config.jax_enable_x64
    assert jax.numpy.ones(1).dtype == np.float32


def test_what_a_program_computes_across_records_is_the_same_in_scoring(data, monkeypatch):
    """A predictor centred inside the program must not be centred block by block."""

    def centred(X, y=None):
        slope = numpyro.sample("slope", dist.Normal(0.0, 1.0))
        z = X[:, 1] - X[:, 1].mean()
        numpyro.sample("x", dist.LogNormal(slope * z, 1.0), obs=y)

    monkeypatch.setattr("hedgerow.models.reductions._BLOCK_CELLS", 64)
    design = designs.build("x ~ z", Table.of(data))
    found = hr.Program(centred).log_lik(design, {"slope": np.array([0.7, -0.2, 1.1])}, slice(10, 20))
    z = data["z"] - data["z"].mean()
    expected = [
        stats.lognorm(s=1, scale=np.exp(slope * z)).logpdf(data["x"])[10:20] for slope in (0.7, -0.2, 1.1)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
