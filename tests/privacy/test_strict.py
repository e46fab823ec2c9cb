"""Strict mode: every factor within ε over the box, weights that see one record, exact samples."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import hedgerow as hr
from hedgerow.privacy.strict import Boxed
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table

BOX = {"Intercept": (0.0, 2.0), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}


def strict(data, epsilon=1.0, box=BOX, **settings):
    settings = {"draws": 200, "seed": 1, **settings}
    return hr.Synthesizer("x ~ z", standard=hr.Strict(box, "published"), epsilon=epsilon, **settings).fit(
        data
    )


def tables():
    random = np.random.default_rng(3)
    plain = hr.datasets.lognormal(60, seed=3)
    outlier = plain.copy()
    outlier.loc[0, "x"] = np.exp(35.0)
    outlier.loc[1, "x"] = np.exp(-30.0)
    units = plain.assign(x=plain["x"] * 1e6)
    wild = pd.DataFrame({"x": np.exp(random.normal(0, 8, 60)), "z": random.normal(0, 5, 60)})
    return {"plain": plain, "30 sigma": outlier, "units": units, "wild": wild}


def test_a_predictor_named_sigma_is_refused():
    """Its side of the box would be that of the residual's deviation too."""
    data = hr.datasets.lognormal(30, seed=1).rename(columns={"z": "sigma"})
    strict = hr.Strict({"Intercept": (0.0, 2.0), "sigma": (0.5, 1.5)})
    with pytest.raises(hr.HedgerowError, match="sigma"):
        hr.Synthesizer("x ~ sigma", standard=strict, epsilon=1.0, seed=1).fit(data)
    plain = hr.Synthesizer("x ~ sigma", epsilon=20.0, draws=100, seed=1, debias=True).fit(data)
    with pytest.raises(hr.HedgerowError, match="sigma"):
        plain.intervals(tables=20)


@pytest.mark.parametrize("name", tables())
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.7])
def test_each_weighted_log_likelihood_oscillates_by_at_most_epsilon(name, epsilon):
    """100,000 random parameters in the box, corners and edges included, no tolerance."""
    data = tables()[name]
    table = Table.of(data)
    design = designs.build("x ~ z", table)
    model = Boxed(hr.Lognormal(), BOX)
    alpha = np.minimum(1.0, epsilon * (1 - 1e-15) / model.oscillation(design))
    random = np.random.default_rng(9)
    low, high = np.array(list(BOX.values())).T
    unit = random.uniform(size=(100_000, 3))
    unit[:30_000] = np.round(unit[:30_000])  # corners
    unit[30_000:60_000, :2] = np.round(unit[30_000:60_000, :2])  # corners of β, any σ
    points = low + unit * (high - low)
    parameters = {"beta": points[:, :2], "sigma": points[:, 2]}
    for start in range(0, len(data), 10):
        f = alpha[start : start + 10] * model.log_lik(design, parameters, slice(start, start + 10))
        assert (f.max(axis=0) - f.min(axis=0) <= epsilon).all()


def test_the_oscillation_is_attained():
    """Not only an upper bound: a fine grid reaches 99.9 % of it."""
    data = tables()["plain"]
    design = designs.build("x ~ z", Table.of(data))
    model = Boxed(hr.Lognormal(), BOX)
    grid = np.stack(np.meshgrid(*(np.linspace(*side, 41) for side in BOX.values())), -1).reshape(-1, 3)
    f = model.log_lik(design, {"beta": grid[:, :2], "sigma": grid[:, 2]}, slice(None))
    ratio = (f.max(axis=0) - f.min(axis=0)) / model.oscillation(design)
    assert ratio.min() > 0.99
    assert ratio.max() <= 1


def test_no_outcome_moves_another_records_weight():
    data = tables()["plain"]
    before = strict(data).alpha_
    for value in (1e-6, 1e9):
        changed = data.copy()
        changed.loc[5, "x"] = value
        after = strict(changed).alpha_
        np.testing.assert_array_equal(np.delete(after, 5), np.delete(before, 5))
    shorter = strict(data.drop(index=5).reset_index(drop=True)).alpha_
    np.testing.assert_array_equal(shorter, np.delete(before, 5))


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_posteriors_differ_by_at_most_epsilon_on_a_grid(epsilon):
    """Both posteriors normalised numerically on a grid of the box, for x withheld and x replaced."""
    data = hr.datasets.lognormal(8, seed=2)
    model = Boxed(hr.Lognormal(), BOX)
    grid = np.stack(np.meshgrid(*(np.linspace(*side, 31) for side in BOX.values())), -1).reshape(-1, 3)
    parameters = {"beta": grid[:, :2], "sigma": grid[:, 2]}

    def log_posterior(frame, skip=None):
        design = designs.build("x ~ z", Table.of(frame))
        alpha = np.minimum(1.0, epsilon * (1 - 1e-15) / model.oscillation(design))
        if skip is not None:
            alpha[skip] = 0.0
        total = (alpha * model.log_lik(design, parameters, slice(None))).sum(axis=1)
        return total - np.log(np.exp(total - total.max()).sum()) - total.max()

    whole = log_posterior(data)
    for record in range(8):
        assert np.abs(whole - log_posterior(data, skip=record)).max() <= epsilon
        for value in (1e-9, 0.3, 1e6, np.exp(60.0)):
            replaced = data.copy()
            replaced.loc[record, "x"] = value
            assert np.abs(whole - log_posterior(replaced)).max() <= 2 * epsilon


def test_samples_follow_the_truncated_posterior():
    """Kolmogorov–Smirnov of σ² for an intercept-only model against its marginal; false alarm 1e-4.

    With β free over the box, the exact marginal of σ² is IG times the probability of β's side.
    """
    random = np.random.default_rng(4)
    data = pd.DataFrame({"x": np.exp(random.normal(1.0, 1.0, 12))})
    box = {"Intercept": (0.4, 1.6), "sigma": (0.8, 1.5)}
    synth = hr.Synthesizer("x ~ 1", standard=hr.Strict(box), epsilon=3.0, draws=4000, seed=3).fit(data)
    design, power = synth._fitted.start.design, synth.power_
    posterior = synth.settings.model._centred(design).posterior(design, power)
    sigma = np.linspace(0.8, 1.5, 20_001)
    spread = sigma / posterior.factor[0, 0]
    side = stats.norm.cdf((1.6 - posterior.mean[0]) / spread) - stats.norm.cdf(
        (0.4 - posterior.mean[0]) / spread
    )
    density = stats.invgamma(posterior.shape, scale=posterior.rate).pdf(sigma**2) * 2 * sigma * side
    cumulative = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    drawn = synth._fitted.outcome.fit.parameters["sigma"]
    assert stats.kstest(drawn, lambda s: np.interp(s, sigma, cumulative / cumulative[-1])).pvalue > 1e-4
    assert drawn.min() >= 0.8
    assert drawn.max() <= 1.5


def test_price_and_words(payroll):
    synth = strict(payroll, epsilon=3.0, copies=3)
    assert synth.total_epsilon_ <= 3.0
    assert synth.epsilon_ == pytest.approx(1.0, rel=1e-6)
    text = " ".join(str(synth.sample().guarantee).split())
    assert "ε-differentially private with ε = 1 for one outcome withheld" in text
    assert "published" in text
    assert "asymptotic" not in text
    assert "not differential privacy" not in text
    assert "not differential privacy" in str(
        hr.Synthesizer("x ~ z", epsilon=9.0, seed=1).fit(payroll).sample().guarantee
    )
    assert synth.acceptance_ > 0.5
    assert synth.edge_mass_ < 0.1


def test_more_draws_do_not_move_the_price():
    with pytest.raises(hr.HedgerowError, match="does not depend on draws"):
        strict(tables()["plain"]).outlook()


def test_only_a_box_has_an_edge(payroll):
    synth = hr.Synthesizer("x ~ z", seed=1, draws=100).fit(payroll)
    for name in ("acceptance_", "edge_mass_"):
        with pytest.raises(AttributeError, match="only a fit under Strict"):
            getattr(synth, name)


def test_a_box_that_the_data_contradict_is_warned_about(payroll):
    """The slope is 1; a side that ends at 0.9 holds only the tail of its posterior."""
    narrow = {"Intercept": (0.0, 2.0), "z": (0.4, 0.9), "sigma": (0.6, 1.6)}
    with pytest.warns(hr.HedgerowWarning, match="at the edge of the box") as caught:
        synth = strict(payroll, epsilon=20.0, box=narrow)
    assert synth.edge_mass_ > 0.5
    assert f"{synth.edge_mass_:.2f}" not in str(caught[0].message)


@pytest.mark.parametrize("away", [3.0, 90.0, 1e4])
def test_a_box_that_the_data_contradict_is_sampled_all_the_same(away):
    """That it could not be would tell of the data: no failure may depend on them."""
    box = {**BOX, "Intercept": (away, away + 1.0)}
    with pytest.warns(hr.HedgerowWarning, match="at the edge of the box"):
        synth = strict(tables()["plain"], epsilon=50.0, box=box, prior=hr.Prior(), copies=2)
    first = synth._fitted.outcome.fit.parameters["beta"][:, 0]
    assert ((first >= away) & (first <= away + 1)).all()
    assert synth.acceptance_ == 0


def test_acceptance_and_edge_are_shares_of_draws():
    """Under a tiny ε the prior decides: normal of half a side about the centre, for each coefficient."""
    data = hr.datasets.lognormal(50, seed=1)
    synth = strict(data, epsilon=1e-9, draws=4000)
    inside = synth._fitted.outcome.fit.parameters
    low, high = np.array(list(BOX.values())).T
    place = (np.column_stack([inside["beta"], inside["sigma"]]) - low) / (high - low)
    assert synth.edge_mass_ == np.mean(((place < 0.02) | (place > 0.98)).any(axis=1))
    posterior = synth.settings.model._centred(synth._fitted.start.design)
    some = posterior.posterior(synth._fitted.start.design, synth.power_).draw(40_000, Key.from_seed(7))
    points = np.column_stack([some.beta, some.sigma])
    share = ((points >= low) & (points <= high)).all(axis=1).mean()
    # A share of 4000 proposals; four standard errors, false alarm 1e-4.
    assert synth.acceptance_ == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 4000))


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: hr.Strict({"z": (0, 1)}), "sigma"),
        (lambda: hr.Strict({"z": (1, 0), "sigma": (1, 2)}), "in order for 'z'"),
        (lambda: hr.Strict({"z": (0, np.inf), "sigma": (1, 2)}), "finite"),
        (lambda: hr.Strict({"sigma": (0, 2)}), "positive"),
        (lambda: hr.Strict({"z": 1, "sigma": (1, 2)}), "a lower and an upper end for 'z'"),
        (lambda: hr.Strict({"z": ("a", 2), "sigma": (1, 2)}), "a lower and an upper end for 'z'"),
        (lambda: hr.Synthesizer("x ~ z", standard=hr.Strict(BOX)), "needs a target"),
        (
            lambda: hr.Synthesizer("x ~ z", standard=hr.Strict(BOX), epsilon=1, bound="exact"),
            "leave out bound",
        ),
        (lambda: strict(tables()["plain"], box={"sigma": (1, 2)}), "must name Intercept, z, sigma"),
        (
            lambda: strict(tables()["plain"], prior=hr.Prior(coefficients={"z": (9.0, 1e-6)})),
            "prior lies more than 100000 of its standard deviations away from the box's side of 'z'",
        ),
    ],
)
def test_bad_boxes(act, message):
    with pytest.raises(hr.HedgerowError, match=message):
        act()
