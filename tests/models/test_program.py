"""Programs as models: what is refused, scores and predictions, the health gate, the front door."""

import functools

import arviz as az
import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest
from helpers import programs
from numpyro import handlers
from scipy import stats

import hedgerow as hr
from hedgerow.mechanism import copies as sampling
from hedgerow.models.programs import gate, nuts, scores
from hedgerow.models.programs.laplace import Laplace
from hedgerow.randomness import Key
from hedgerow.release.certificate import Certificate
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table

PAY = {"group": "region", "levels": hr.Levels("region")}


@pytest.fixture(scope="session")
def regions():
    random = np.random.default_rng(8)
    region = random.integers(0, 8, 240)
    effect = random.normal(10, 0.6, 8)
    pay = np.exp(effect[region] + random.normal(0, 0.7, 240))
    return pd.DataFrame({"pay": pay, "region": [f"r{k}" for k in region], "code": region * 5 + 3})


@pytest.fixture(scope="session")
def grouped(regions):
    """One hierarchical fit with a target, shared by the tests that only read it."""
    stages = []
    synth = hr.Synthesizer(
        "pay ~ 1",
        hr.Program(programs.groups, data=PAY),
        weights=hr.SoftmaxWeights(risk="oscillation"),
        draws=1600,  # over fewer, R-hat's own noise may ask for a second try
        copies=2,
        seed=1,
    )
    with hr.watch(lambda stage, done, total: stages.append((stage, done, total))):
        return synth.fit(regions[["pay", "region"]]), stages


def design_of(data, formula="x ~ z", also=()):
    return designs.build(formula, Table.of(data), also)


def mean_only(response):
    """A program with one parameter, around any response distribution."""

    def program(X, y=None):
        level = numpyro.sample("level", dist.Normal(0.0, 1.0))
        numpyro.sample("x", response(level, X.shape[0]), obs=y)

    return program


def normal(level, n):
    return dist.Normal(level, 1.0).expand([n])


def no_observed(X, y=None):
    numpyro.sample("level", dist.Normal(0.0, 1.0))


def two_observed(X, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    numpyro.sample("one", dist.Normal(level, 1.0).expand([X.shape[0]]), obs=y)
    numpyro.sample("two", dist.Normal(level, 2.0).expand([X.shape[0]]), obs=y)


def scaled(X, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    with handlers.scale(scale=0.5):
        numpyro.sample("x", dist.Normal(level, 1.0).expand([X.shape[0]]), obs=y)


def masked(X, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    with handlers.mask(mask=X[:, 1] > 0):
        numpyro.sample("x", dist.Normal(level, 1.0).expand([X.shape[0]]), obs=y)


def discrete(X, y=None):
    k = numpyro.sample("k", dist.Poisson(3.0))
    numpyro.sample("x", dist.Normal(k, 1.0).expand([X.shape[0]]), obs=y)


def subsampled(X, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", X.shape[0], subsample_size=10) as rows:
        numpyro.sample("x", dist.Normal(level, 1.0), obs=None if y is None else y[rows])


def record_level(X, y=None):
    with numpyro.plate("records", X.shape[0]):
        own = numpyro.sample("own", dist.Normal(0.0, 1.0))
        numpyro.sample("x", dist.Normal(own, 1.0), obs=y)


def column_mean(X, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    numpyro.sample("x", dist.Normal((X @ level)[:, None], 1.0), obs=y)


def joint(X, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    n = X.shape[0]
    numpyro.sample("x", dist.MultivariateNormal(jax.numpy.full(n, level), jax.numpy.eye(n)), obs=y)


def leaking_prior(X, y=None):
    centre = 0.0 if y is None else y.mean()
    level = numpyro.sample("level", dist.Normal(centre, 1.0))
    numpyro.sample("x", dist.Normal(level, 1.0).expand([X.shape[0]]), obs=y)


def leaking_mean(X, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    shift = 0.0 if y is None else y.mean()
    numpyro.sample("x", dist.Normal(level + shift, 1.0).expand([X.shape[0]]), obs=y)


def leaking_factor(X, y=None):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    x = numpyro.sample("x", dist.Normal(level, 1.0).expand([X.shape[0]]), obs=y)
    numpyro.factor("more", -((x - level) ** 2).sum())


def optimised(X, y=None):
    level = numpyro.param("level", 0.0)
    numpyro.sample("other", dist.Normal(0.0, 1.0))
    numpyro.sample("x", dist.Normal(level, 1.0).expand([X.shape[0]]), obs=y)


def needs_outcome(X, y):
    level = numpyro.sample("level", dist.Normal(0.0, 1.0))
    with numpyro.plate("records", len(y)):
        numpyro.sample("x", dist.Normal(level, 1.0), obs=y)


class Centred(dist.Normal):
    """Looks like a distribution of single records, but scores each against the mean of all."""

    def log_prob(self, value):
        return super().log_prob(value - value.mean())


REFUSED = {
    mean_only(lambda level, n: Centred(level, 1.0).expand([n])): "when the outcome of another record changes",
    no_observed: "no observed site",
    two_observed: "2 observed sites (one, two)",
    scaled: "inside handlers.scale",
    masked: "is masked",
    discrete: "'k' is discrete",
    subsampled: "remove subsample_size",
    record_level: "own have one value per record",
    column_mean: "one per record",
    joint: "one per record",
    leaking_prior: "uses the outcome 'x' outside its response site",
    leaking_mean: "uses the outcome 'x' outside its response site",
    leaking_factor: "outside its response site",
    optimised: "numpyro.param",
    needs_outcome: "does not run with y=None",
    mean_only(lambda level, n: dist.Uniform(0.0, 0.01).expand([n])): "no finite density",
    mean_only(lambda level, n: dist.Poisson(jax.numpy.exp(level)).expand([n])): "not whole numbers",
}


@pytest.mark.parametrize("program", REFUSED, ids=lambda program: program.__name__)
def test_what_powers_cannot_mean_is_refused(small, program):
    with pytest.raises(hr.HedgerowError) as caught:
        hr.Program(program).check(design_of(small[["x", "z"]]))
    assert REFUSED[program] in str(caught.value)


def test_settings_and_arguments_are_checked_at_the_door():
    cases = {
        "callable": lambda: hr.Program(3),
        "'nutpie' or 'numpyro'": lambda: hr.Program(programs.normal, sampler="hmc"),
        "chains must be": lambda: hr.Program(programs.normal, chains=1),
        "target_accept": lambda: hr.Program(programs.normal, target_accept=1.0),
        "minimum_ess must be a whole number from 400": lambda: hr.Program(programs.normal, minimum_ess=100),
        "no argument 'x' for the outcome": lambda: hr.Program(programs.normal, response="x"),
        "no source for the arguments group, levels": lambda: hr.Program(programs.groups),
        "data names q": lambda: hr.Program(programs.normal, data={"q": "z"}),
        "functools.partial": lambda: hr.Program(programs.groups, data={"group": "g", "levels": 3}),
    }
    for message, act in cases.items():
        with pytest.raises(hr.HedgerowError, match=message):
            act()


def test_the_outcome_cannot_be_an_argument(regions):
    program = hr.Program(programs.groups, data={"group": hr.Codes("pay"), "levels": hr.Levels("pay")})
    with pytest.raises(hr.HedgerowError, match="would publish it"):
        hr.Synthesizer("pay ~ 1", program).fit(regions[["pay", "region"]])


def test_columns_become_codes_levels_or_numbers(regions):
    def program(text, code, count, number, y=None):
        level = numpyro.sample("level", dist.Normal(0.0, 1.0).expand([count]).to_event(1))
        numpyro.sample("pay", dist.LogNormal(level[text] + level[code] + number, 1.0), obs=y)

    sources = {"text": "region", "code": hr.Codes("code"), "count": hr.Levels("code"), "number": "code"}
    model = hr.Program(program, data=sources)
    assert model.columns == ("region", "code")
    design = design_of(regions, "pay ~ 1", model.columns)
    arrays = model._arrays(design)
    # Numbers keep their order (13 after 8), text sorts as text; here both number the same groups.
    np.testing.assert_array_equal(arrays["code"], (regions["code"] - 3) // 5)
    np.testing.assert_array_equal(arrays["text"], arrays["code"])
    np.testing.assert_array_equal(arrays["number"], regions["code"].astype(float))
    assert model._traced(design).fixed == (("count", 8),)
    model.check(design)


def test_constants_can_be_bound(small):
    def program(X, scale, y=None):
        level = numpyro.sample("level", dist.Normal(0.0, scale))
        numpyro.sample("x", dist.LogNormal(level, 1.0).expand([X.shape[0]]), obs=y)

    hr.Program(functools.partial(program, scale=3.0)).check(design_of(small[["x", "z"]]))


def test_masses_are_the_exact_models(small):
    data = small[["x", "z"]]
    design = design_of(data)
    random = np.random.default_rng(3)
    draws = {"beta": random.normal(0.5, 0.3, (20, 2)), "variance": random.uniform(0.3, 2, 20)}
    exact = {"beta": draws["beta"], "sigma": np.sqrt(draws["variance"])}
    ranges = [
        hr.Radius(0.4, 1.8),
        hr.Radius(0.999999, 1.000001),
        hr.Bounds(-np.inf, 1e3),
        hr.Bounds(0.0, np.inf),
    ]
    for model, oracle in ((programs.lognormal, hr.Lognormal()), (programs.normal, hr.Normal())):
        for given in ranges:
            interval = given.interval(design.values, Table.of(data))
            np.testing.assert_allclose(
                hr.Program(model).log_mass(design, draws, interval, slice(None)),
                oracle.log_mass(design, exact, interval, slice(None)),
                rtol=1e-7,
                atol=1e-12,
            )


RESPONSES = {
    "gamma": (
        lambda e, n: dist.Gamma(2.0, jax.numpy.exp(e)).expand([n]),
        stats.gamma(2.0, scale=np.exp(-0.3)),
    ),
    "student": (lambda e, n: dist.StudentT(4.0, e, 1.5).expand([n]), stats.t(4.0, 0.3, 1.5)),
    "weibull": (
        lambda e, n: dist.Weibull(jax.numpy.exp(e), 1.7).expand([n]),
        stats.weibull_min(1.7, scale=np.exp(0.3)),
    ),
    "poisson": (lambda e, n: dist.Poisson(jax.numpy.exp(e)).expand([n]), stats.poisson(np.exp(0.3))),
    "negative binomial": (
        lambda e, n: dist.NegativeBinomial2(jax.numpy.exp(e), 3.0).expand([n]),
        stats.nbinom(3.0, 3.0 / (3.0 + np.exp(0.3))),
    ),
    "bernoulli": (lambda e, n: dist.Bernoulli(logits=e).expand([n]), stats.bernoulli(1 / (1 + np.exp(-0.3)))),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RESPONSES)
def test_masses_and_predictions_of_other_distributions_are_scipys(name):
    response, reference = RESPONSES[name]
    model = hr.Program(mean_only(response))
    uniforms = Key.from_seed(2).stream().uniform(300)
    values = reference.ppf(uniforms[::-1]).astype(float)
    data = pd.DataFrame({"x": values, "z": np.linspace(0, 1, 300)})
    design = design_of(data)
    model.check(design)
    draw = {"level": np.array([0.3])}
    discrete = hasattr(reference.dist, "pmf")
    np.testing.assert_allclose(
        model.predict(design, {"level": np.array(0.3)}, uniforms),
        reference.ppf(uniforms),
        rtol=1e-8,
        atol=1e-10,
    )
    for lower, upper in (
        (values - 0.5, values + 1.2),
        (values, values + 40.0),
        (np.full(300, -np.inf), values),
    ):
        given = hr.Bounds(lower, upper).interval(values, Table.of(data))
        found = np.exp(model.log_mass(design, draw, given, slice(None))[0])
        below = reference.cdf(np.ceil(lower) - 1) if discrete else reference.cdf(lower)
        np.testing.assert_allclose(found, reference.cdf(upper) - below, rtol=1e-7, atol=1e-13)
    plain = model.log_lik(design, draw, slice(None))[0]
    np.testing.assert_allclose(
        plain, reference.logpmf(values) if discrete else reference.logpdf(values), rtol=1e-9
    )


def test_a_distribution_without_cdf_is_sampled_and_has_no_ranges(small):
    data = small[["x", "z"]].assign(x=np.sin(small["x"]))

    class Bare(dist.Normal):
        def cdf(self, value):
            raise NotImplementedError

        icdf = cdf

    model = hr.Program(mean_only(lambda level, n: Bare(level * jax.numpy.ones(n), 1.0)))
    design = design_of(data)
    uniforms = Key.from_seed(2).stream().uniform(60)
    one = model.predict(design, {"level": np.array(0.3)}, uniforms)
    np.testing.assert_array_equal(one, model.predict(design, {"level": np.array(0.3)}, uniforms))
    assert not np.array_equal(one, model.predict(design, {"level": np.array(0.3)}, 1 - uniforms))
    # 60 standard normal values; false alarm 1e-4.
    assert stats.kstest(one - 0.3, "norm").pvalue > 1e-4
    interval = hr.Bounds(-5.0, 5.0).interval(design.values, Table.of(data))
    with pytest.raises(hr.HedgerowError, match="has no cdf"):
        model.log_mass(design, {"level": np.array([0.3])}, interval, slice(None))


UNIT = jax.numpy.ones(60)
ONLY_SAMPLED = {
    "von mises": lambda e, n: dist.VonMises(e * UNIT, 1.0),
    "kumaraswamy": lambda e, n: dist.Kumaraswamy(jax.numpy.exp(e) * UNIT, 2.0),
    "folded": lambda e, n: dist.FoldedDistribution(dist.Normal(e * UNIT, 1.0)),
}
INVERTED = {name: RESPONSES[name][0] for name in ("gamma", "poisson")}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ONLY_SAMPLED, *INVERTED])
def test_stratified_numbers_are_refused_where_they_would_be_ignored(small, name):
    model = hr.Program(mean_only((ONLY_SAMPLED | INVERTED)[name]))
    values = small["z"] > 2 if name == "poisson" else 0.5 + 0.4 * np.sin(small["x"])  # in every support
    design = design_of(small[["z"]].assign(x=values.astype(float)))
    draw, key = {"level": np.array(0.3)}, Key.from_seed(2)
    # Another key alone: what follows its uniforms cannot tell.
    same = [scores.scores(model._traced(design)).quantile(draw, model._arrays(design), UNIT / 3, one)
            for one in map(jax.random.key_data, (jax.random.key(1), jax.random.key(2)))]  # fmt: skip
    assert np.array_equal(*same) == (name in INVERTED)
    assert len(sampling.uniforms("independent", model, design, draw, key=key)) == 60
    if name in INVERTED:
        assert len(sampling.uniforms("stratified", model, design, draw, key=key)) == 60
        return
    for refused in (model, Laplace(model, np.zeros(1))):  # one made from another answers for it
        with pytest.raises(hr.HedgerowError, match="can only be sampled"):
            sampling.uniforms("stratified", refused, design, draw, key=key)


def chains(kind, draws=250):
    random = np.random.default_rng(4)
    positions = random.normal(size=(4, draws, 3))
    if kind == "apart":
        positions += np.arange(4)[:, None, None]
    if kind == "stuck":
        positions[..., 0] = 0.0
    if kind == "not finite":
        positions[0, 0, 0] = np.nan
    return nuts.Chains(positions, 3 if kind == "divergent" else 0)


@pytest.mark.parametrize(
    ("kind", "named"),
    [("apart", "R-hat"), ("divergent", "3 divergent"), ("stuck", "ESS 0"), ("not finite", "not finite")],
)
def test_the_gate_tries_three_times_and_then_refuses(small, monkeypatch, kind, named):
    tried = []

    def sample(potential, settings, **_):
        tried.append(settings)
        return chains(kind)

    monkeypatch.setattr(nuts, "sample", sample)
    design, power = design_of(small[["x", "z"]]), np.ones(60)
    with pytest.raises(hr.HedgerowError, match=named) as caught:
        hr.Program(programs.lognormal).sample(design, power, draws=1000, key=Key.from_seed(1))
    assert "target_accept=" in str(caught.value)
    assert [one.warmup for one in tried] == [400, 800, 1600]
    # Divergences ask for smaller steps, chains that disagree for longer ones.
    assert [one.target_accept for one in tried] == [0.8, 0.95, 0.99 if kind == "divergent" else 0.95]
    assert [one.thin for one in tried] == [2, 4, 8 if kind == "divergent" else 16]
    relaxed = hr.Program(programs.lognormal, allow_unhealthy=True)
    if kind == "not finite":
        with pytest.raises(hr.HedgerowError, match="not finite"):
            relaxed.sample(design, power, draws=1000, key=Key.from_seed(1))
    else:
        assert relaxed.sample(design, power, draws=1000, key=Key.from_seed(1)).health.failed


@pytest.mark.parametrize("attempts", [2, 3])
def test_the_first_attempt_that_passes_is_taken(small, monkeypatch, attempts):
    answers = iter([chains("divergent")] * (attempts - 1) + [chains("fine")])
    monkeypatch.setattr(nuts, "sample", lambda *_, **__: next(answers))
    found = hr.Program(programs.lognormal).sample(
        design_of(small[["x", "z"]]), np.ones(60), draws=1000, key=Key.from_seed(1)
    )
    assert found.health.attempts == attempts
    assert found.health.failed == ()


def test_chains_are_held_against_each_other_by_all_their_draws():
    """R-hat over kept draws is noisy: here they disagree by chance, and all draws of the chains agree."""
    settings = nuts.SamplerSettings("nutpie", 4, 400, 0.8)
    kept, every = chains("apart"), chains("fine", draws=4000)

    def examined(found):
        return gate.examine(
            found, lambda positions: positions.sum(axis=2), settings, needed=1, attempts=1
        ).health.failed

    assert "R-hat" in examined(kept)
    assert "R-hat" not in examined(nuts.Chains(kept.positions, 0, every.positions))
    swapped = nuts.Chains(every.positions[:, :250], 0, chains("apart", draws=4000).positions)
    assert examined(swapped) == ("R-hat",)


@pytest.mark.parametrize(("columns", "thin"), [(8, 2), (14, 4)])
def test_many_parameters_ask_for_more_draws_from_the_first_try(monkeypatch, columns, thin):
    """The largest R-hat of forty parameters was above 1.01 by chance, try after try, and each took longer."""
    tried = []

    def sample(potential, settings, **_):
        tried.append(settings)
        raise hr.HedgerowError("seen")

    monkeypatch.setattr(nuts, "sample", sample)
    random = np.random.default_rng(1)
    frame = pd.DataFrame({f"z{number}": random.normal(size=60) for number in range(columns)})
    frame["x"] = random.integers(0, 2, 60).astype(float)
    family = hr.Family("bernoulli", sampler="nutpie")
    design = design_of(frame, f"x ~ {' + '.join(frame.columns[:-1])}")
    with pytest.raises(hr.HedgerowError, match="seen"):
        family.sample(design, np.ones(60), draws=1000, key=Key.from_seed(1))
    assert [one.thin for one in tried] == [thin]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_scale_that_the_data_hardly_bind_is_sampled(seed):
    """Walls at both ends of log σ: steps must get shorter twice, and the draws are those of the posterior.

    Under σ ~ HalfNormal(1.5) one of 400 prior draws is so small that a window which keeps all of them leaves
    records next to no weight: what remains is the prior, cut off where the windows end.
    """
    table = hr.datasets.lognormal(1000, seed=2)
    synth = hr.Synthesizer(
        "x ~ z", hr.Program(programs.wide), standard=hr.Censored(keep=1.0), epsilon=1.0, seed=seed
    ).fit(table)
    assert synth.health_.divergences == 0
    assert synth.health_.failed == ()
    drawn = synth._need().outcome.fit.parameters
    assert np.mean(drawn["level"]) == pytest.approx(1.0, abs=0.1)
    assert np.quantile(drawn["sigma"], 0.9) == pytest.approx(1.5 * 1.645, rel=0.1)


def test_an_override_is_written_into_the_guarantee_without_numbers(small, monkeypatch):
    monkeypatch.setattr(nuts, "sample", lambda *_, **__: chains("divergent"))
    program = hr.Program(programs.lognormal, allow_unhealthy=True)
    synth = hr.Synthesizer("x ~ z", program, weights=hr.ScalarWeights(0.1), epsilon=1e4, seed=1)
    with pytest.warns(hr.HedgerowWarning, match="flagged_"):  # these draws belong to no posterior
        synth.fit(small[["x", "z"]])
    guarantee = synth.sample().guarantee
    text = " ".join(str(guarantee).split())
    assert "Not certified: the sampler failed its health checks (divergences)" in text
    assert "No ε may be claimed" in text
    assert "3 divergent" not in text
    assert "400" not in guarantee.uncertified
    facts = {"release": "0" * 16, "date": "2026-01-01", "records": 60, "unchanged": ["z"], "plan": "0" * 64}
    empty = dict.fromkeys(("used_not_released", "assumed", "also_not_covered", "copies"), ())
    assert Certificate.build(guarantee, **facts, **empty).epsilon is None  # machines must not read one either


def test_few_draws_are_refused_before_sampling(small):
    with pytest.raises(hr.HedgerowError, match="draws=200 is below the 400"):
        hr.Synthesizer("x ~ z", hr.Program(programs.lognormal), draws=200).fit(small[["x", "z"]])


@pytest.mark.slow
def test_a_hierarchical_program_end_to_end(grouped, regions):
    synth, stages = grouped
    health = synth._fitted.outcome.fit.health
    assert health.r_hat <= 1.01
    assert min(health.ess_bulk, health.ess_tail) >= 400
    assert health.divergences == 0
    assert 0 < synth.oscillation_epsilon_ <= synth.lipschitz_epsilon_
    assert not hasattr(synth, "exact_epsilon_")
    release = synth.sample()
    assert [list(copy.columns) for copy in release.tables] == [["pay", "region"]] * 2
    pd.testing.assert_series_equal(release.tables[0]["region"], regions["region"])
    assert (release.tables[0]["pay"] > 0).all()
    # Synthetic group means follow the groups: eight pairs of log means, about 0.1 apart by chance.
    real = np.log(regions["pay"]).groupby(regions["region"]).mean()
    made = np.log(release.tables[0]["pay"]).groupby(regions["region"]).mean()
    assert np.abs(real - made).max() < 0.8
    assert np.corrcoef(real, made)[0, 1] > 0.6
    assert {stage for stage, _, _ in stages} == {"warm-up", "sampling", "scoring", "fits"}
    assert all(0 <= done <= total for _, done, total in stages)


@pytest.mark.slow
def test_the_statement_rests_on_the_gates_minimum_not_on_the_measured_ess(grouped):
    synth, _ = grouped
    stated = synth._fitted.outcome.statement
    assert stated.draws == 400
    assert stated.delta == pytest.approx(1 - 0.05 ** (1 / 400))
    assert not stated.independent
    assert synth._fitted.outcome.fit.health.effective_draws != 400
    assert "Markov chain" in str(synth.sample().guarantee)


@pytest.mark.slow
def test_draws_can_be_handed_to_arviz(grouped):
    synth, _ = grouped
    data = synth.to_arviz(log_likelihood=True)
    assert data["posterior"]["effect"].shape == (4, 400, 8)
    assert data["log_likelihood"]["pay"].shape == (4, 400, 240)
    assert float(az.rhat(data["posterior"])["spread"]) < 1.02
    # Flattened chain by chain or draw by draw, they are the same draws.
    kept = synth._fitted.outcome.fit.parameters["spread"]
    np.testing.assert_array_equal(np.sort(np.ravel(data["posterior"]["spread"])), np.sort(kept))


@pytest.mark.slow
def test_group_means_agree_with_the_exact_model(small):
    """A conjugate group model is the exact normal model with a column per group.

    8 z-scores of means and standard deviations, beyond 4: p < 5e-4 for normal errors.
    """
    data = small[["x", "group"]]
    program = hr.Program(programs.cells, data={"group": "group", "levels": hr.Levels("group")})
    power = np.random.default_rng(5).uniform(0, 1, 60)
    design = design_of(data, "x ~ 0 + group", program.columns)
    prior = hr.Prior(coefficients=dict.fromkeys(design.columns, (0.0, 10.0)))
    exact = hr.Normal(prior=prior).posterior(design, power).draw(20_000, Key.from_seed(2))
    fitted = program.sample(design, power, draws=1000, key=Key.from_seed(3))
    assert np.abs(programs.scores(fitted, "mean", exact.beta)).max() < 4
    assert np.abs(programs.scores(fitted, "variance", exact.sigma[:, None] ** 2)).max() < 4


@pytest.mark.slow
def test_the_same_seed_gives_the_same_draws(small):
    design, power = design_of(small[["x", "z"]]), np.ones(60)
    program = hr.Program(programs.lognormal)
    one, two, other = (
        program.sample(design, power, draws=1000, key=Key.from_seed(seed)).parameters for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one["beta"], two["beta"])
    assert not np.array_equal(one["beta"], other["beta"])
