"""NUTS against the exact models: the only way to see a bias in the draws themselves.

Scores are differences of means and standard deviations in Monte Carlo standard errors. With 6 of them a
score beyond 4 has p < 4e-4 for normal errors; seeds are fixed, so that a pass stays a pass.
"""

import numpy as np
import pandas as pd
import pytest
from helpers import programs

import hedgerow as hr
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table

RADIUS = hr.Radius(0.4, 1.8)


def compared(program, oracle, data, power, draws, seed):
    """Scores of β and σ² for one weighted posterior."""
    design = designs.build("x ~ z", Table.of(data))
    sample = program.sample(design, power, draws=draws, key=Key.from_seed(seed))
    exact = oracle.posterior(design, power).draw(100_000, Key.from_seed(seed + 1))
    return np.concatenate(
        [
            programs.scores(sample, "beta", exact.beta),
            programs.scores(sample, "variance", exact.sigma[:, None] ** 2),
        ]
    )


@pytest.mark.slow
def test_a_weighted_posterior_agrees_with_the_exact_one(small):
    """Quick: 60 records with powers from 0 to 1, some of them 0."""
    power = np.random.default_rng(5).uniform(-0.2, 1, 60).clip(0)
    program, oracle = hr.Program(programs.lognormal), hr.Lognormal(prior=programs.PRIOR)
    assert np.abs(compared(program, oracle, small[["x", "z"]], power, 1200, 3)).max() < 4


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["nutpie", "numpyro"])
@pytest.mark.parametrize("family", ["lognormal", "normal"])
def test_both_families_and_samplers_agree_with_the_exact_models(payroll, family, sampler):
    """n = 2000 with the weights of ADP; 4000 kept draws."""
    data = (
        payroll[["x", "z"]] if family == "lognormal" else payroll.assign(x=np.log(payroll["x"]))[["x", "z"]]
    )
    oracle = {"lognormal": hr.Lognormal, "normal": hr.Normal}[family](prior=programs.PRIOR)
    power = hr.Synthesizer("x ~ z", oracle, seed=1).fit(data).alpha_
    program = hr.Program(getattr(programs, family), sampler=sampler)
    assert np.abs(compared(program, oracle, data, power, 4000, 7)).max() < 4


@pytest.mark.slow
@pytest.mark.parametrize("standard", [hr.ADP(), hr.RangeAveraged(RADIUS), hr.RangeTruncated(RADIUS)])
@pytest.mark.parametrize("family", ["lognormal", "normal"])
def test_prices_agree_with_the_exact_models(payroll, family, standard):
    """ε within 3 %: the means of three runs on each side, since a maximum over draws is noisy by itself."""
    data = payroll[["x", "z"]]
    if family == "normal":
        data = data.assign(x=np.log(data["x"]) + 12.0)  # away from zero, where a radius is empty
    oracle = {"lognormal": hr.Lognormal, "normal": hr.Normal}[family](prior=programs.PRIOR)

    def mean(model):
        runs = [
            hr.Synthesizer("x ~ z", model, standard=standard, draws=2000, seed=seed).fit(data)
            for seed in (1, 2, 3)
        ]
        return np.mean([synth.epsilon_ for synth in runs])

    assert mean(hr.Program(getattr(programs, family))) == pytest.approx(mean(oracle), rel=0.03)


@pytest.mark.slow
def test_the_weighting_laws_hold_for_draws(small):
    """Power 0 is withholding, power 2 is repetition: chains on both sides, 12 scores beyond 4: p < 8e-4."""
    data = small[["x", "z"]]
    program, oracle = hr.Program(programs.lognormal), hr.Lognormal(prior=programs.PRIOR)
    zero = np.where(np.arange(60) == 7, 0.0, 1.0)
    two = np.where(np.arange(60) == 4, 2.0, 1.0)
    repeated = pd.concat([data, data.iloc[[4]]], ignore_index=True)
    pairs = [(data, zero, data.drop(index=7)), (data, two, repeated)]
    for weighted, power, plain in pairs:
        design = designs.build("x ~ z", Table.of(plain))
        exact = oracle.posterior(design, np.ones(len(plain))).draw(100_000, Key.from_seed(2))
        for table, powers in ((weighted, power), (plain, np.ones(len(plain)))):
            own = designs.build("x ~ z", Table.of(table))
            sample = program.sample(own, powers, draws=4000, key=Key.from_seed(5))
            assert np.abs(programs.scores(sample, "beta", exact.beta)).max() < 4
            assert np.abs(programs.scores(sample, "variance", exact.sigma[:, None] ** 2)).max() < 4


@pytest.mark.slow
def test_a_target_is_met_by_a_program(payroll):
    data = payroll.iloc[:400][["x", "z"]]
    synth = hr.Synthesizer("x ~ z", hr.Program(programs.lognormal), epsilon=6.0, seed=4).fit(data)
    assert synth.certified_epsilon_ <= 6.0
    assert synth.epsilon_ > 5.0
    assert "ε = 6 for one copy" in " ".join(str(synth.sample().guarantee).split())


@pytest.mark.slow
def test_the_authors_published_prior_is_an_ordinary_program():
    """19 simulated specimens. The scale of a single coefficient is a funnel, which short chains do not
    explore: the gate must notice, and with the override there are still predictions along the curve."""
    random = np.random.default_rng(3)
    stress = np.sort(random.uniform(80, 150, 19))
    cycle = np.exp(45 - 7.5 * np.log(stress) + random.normal(0, 0.4, 19))
    table = Table.of(pd.DataFrame({"cycle": cycle, "stress": stress}))
    design = designs.build("cycle ~ stress + log(stress)", table)
    program = hr.Program(programs.published, chains=2, warmup=100, thin=1, allow_unhealthy=True)
    program.check(design)
    sample = program.sample(design, np.full(19, 0.8), draws=200, key=Key.from_seed(1))
    assert sample.health.failed
    last = {name: value[-1] for name, value in sample.parameters.items()}
    copy = program.predict(design, last, Key.from_seed(2).stream().uniform(19))
    # With 19 specimens a correlation below 0.5 would take a broken fit.
    assert np.corrcoef(np.log(copy), np.log(cycle))[0, 1] > 0.5
