"""Classes by cells: the closed form against the densities it is made of."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.special import gammaln
from scipy.stats import beta, chisquare, dirichlet, kstest

import hedgerow as hr
from hedgerow.errors import DataError, FormulaError, SettingError
from hedgerow.mechanism.fit import fit
from hedgerow.mechanism.price import Pricing
from hedgerow.models.chain import Chain
from hedgerow.models.exact import Normal
from hedgerow.models.families import model_named
from hedgerow.models.families.dirichlet import draw_gammas
from hedgerow.numerics.dirichlet import DirichletNeighbours, log_gamma_step
from hedgerow.numerics.renyi import Neighbours
from hedgerow.privacy.bounds import EXACT, RENYI
from hedgerow.privacy.ranges import Brackets, Everywhere
from hedgerow.privacy.sensitive import withheld_part
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.chain import ChainDesign
from hedgerow.tables.table import Table

LEVELS = ("low", "high", "never")
MODEL = model_named(hr.Family("dirichlet", levels=LEVELS), None)
POWER = np.full(80, 0.6)


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(5)
    sex, job = random.choice(["f", "m"], 80), random.choice(["a", "b"], 80)
    x = np.where(random.uniform(size=80) < np.where(sex == "f", 0.3, 0.7), "high", "low")
    y = random.normal(size=80) + (x == "high")
    return Table.of(pd.DataFrame({"sex": sex, "job": job, "x": x, "y": y}))


def built(table, formula="x ~ sex + job", **settings):
    return designs.build(formula, table, (), MODEL.domain.classes, crossed=True, **settings)


def priced(model, design, power=POWER, draws=200):
    done = fit(model, design, power, draws=draws, key=Key.from_seed(1))
    return done, Pricing(done, withheld_part(power), Everywhere().interval(np.zeros(80), None), 1e-6)


def test_the_posterior_is_the_cells_weighted_counts(table):
    design, frame = built(table), table.native
    found = MODEL.concentrations(design, POWER)
    assert found.shape == (4, 3)
    for cell, (_, rows) in enumerate(frame.groupby(["sex", "job"])):
        counts = [(rows["x"] == level).sum() for level in LEVELS]
        np.testing.assert_allclose(found[cell], 1 + 0.6 * np.array(counts))


def test_gamma_numbers_have_their_law():
    """Kolmogorov–Smirnov on 20,000 numbers of four shapes: a false alarm in 2,500 seeds."""
    shapes = np.array([[0.1, 0.9], [1.0, 40.0]])
    found = draw_gammas(shapes, 20_000, Key.from_seed(3).stream())
    for place in np.ndindex(2, 2):
        assert kstest(found[:, *place], "gamma", args=(shapes[place],)).pvalue > 1e-4


def test_losses_are_the_log_ratio_of_both_posteriors(table):
    design = built(table)
    done, pricing = priced(MODEL, design)
    shares, row = done.parameters["shares"], 11
    cell = design.crossing.codes[row]
    here = MODEL.concentrations(design, POWER)[cell]
    there = MODEL.concentrations(design, np.where(np.arange(80) == row, 0.0, POWER))[cell]
    wanted = dirichlet.logpdf(shares[:, cell].T, here) - dirichlet.logpdf(shares[:, cell].T, there)
    loss = 0.6 * done.log_lik()[:, row] - pricing.constant[row]
    np.testing.assert_allclose(loss, wanted, rtol=1e-9, atol=1e-9)
    assert EXACT.by_record(pricing)[row] == pytest.approx(np.abs(wanted).max(), rel=1e-9)


@pytest.mark.parametrize(("own", "whole", "share"), [(1.0, 3.0, 1.0), (0.5, 40.0, 0.2), (30.0, 31.0, 0.7)])
@pytest.mark.parametrize("order", [1.2, 1.9, 6.0])
def test_divergences_are_those_of_the_beta_marginals(own, whole, share, order):
    """A Dirichlet pair that differs in one class has the divergence of that class's beta marginal."""
    pair = DirichletNeighbours(*(np.array([one]) for one in (share, own, whole)))
    ends = beta(own + share, whole - own), beta(own, whole - own)
    for found, (p, q) in zip(pair.divergences(order), (ends, ends[::-1]), strict=True):
        if own <= (order - 1) * share and p is ends[1]:
            assert found[0] == np.inf
            continue
        moment = quad(_ratio, 0, 1, args=(p, q, order), limit=200)[0]
        assert found[0] == pytest.approx(np.log(moment) / (order - 1), rel=1e-5, abs=1e-9)


def _ratio(x, p, q, order):
    return np.exp(order * p.logpdf(x) + (1 - order) * q.logpdf(x))


def test_steps_of_log_gamma_keep_their_digits():
    start, step = np.array([0.3, 19.0, 25.0, 1e3]), np.array([0.5, 3.0, -7.0, 0.25])
    np.testing.assert_allclose(
        log_gamma_step(start, step), gammaln(start + step) - gammaln(start), rtol=1e-11
    )
    far = log_gamma_step(np.array([1e12]), np.array([0.5]))[0]
    assert far == pytest.approx(0.5 * np.log(1e12), rel=1e-12)


@pytest.mark.slow
def test_the_search_over_orders_finds_what_all_orders_give(table):
    from hedgerow.numerics.renyi import ORDERS, conversion

    pairs = priced(MODEL, built(table))[1].neighbours
    added = conversion(ORDERS, 1e-6)
    every = np.array([[3 * side for side in pairs.divergences(order)] for order in ORDERS])
    wanted = (every + added[:, None, None]).min(axis=0).max(axis=0)
    np.testing.assert_allclose(pairs.by_record(delta=1e-6, copies=3), wanted, rtol=1e-7)
    assert pairs.epsilon(delta=1e-6, copies=3) == pytest.approx(wanted.max(), rel=1e-7)


def test_a_price_asks_for_few_orders_and_a_search_for_one_price_a_scale(table, monkeypatch):
    """A scale of five such columns once took a second: every eighth order, both prices, each time."""
    asked = {"orders": 0, "one copy": 0}
    divergences, epsilon = DirichletNeighbours._divergences, type(RENYI).epsilon

    def count(name, function):
        def counted(*given):
            asked[name] += 1
            return function(*given)

        return counted

    monkeypatch.setattr(DirichletNeighbours, "_divergences", count("orders", divergences))
    priced(MODEL, built(table), POWER * np.linspace(0.1, 1, 80))[1].neighbours.by_record(delta=1e-6, copies=3)
    assert asked["orders"] < 25
    monkeypatch.setattr(type(RENYI), "epsilon", count("one copy", epsilon))
    told = {"bound": "renyi", "epsilon": 1.0, "copies": 2, "draws": 100, "seed": 1}
    family = hr.Family("dirichlet", levels=LEVELS)
    hr.Synthesizer("x ~ sex", family, weights=hr.ScalarWeights(1), **told).fit(table.native[["sex", "x"]])
    assert asked["one copy"] <= 1


def test_a_chain_of_both_closed_forms_adds_divergences_and_losses(table):
    first, second = built(table), designs.build("y ~ sex", table)
    pairs = [priced(model, link)[1] for model, link in ((MODEL, first), (Normal(), second))]
    for order in ((0, 1), (1, 0)):
        links = [(first, second)[place] for place in order]
        chain = Chain(tuple((MODEL, Normal())[place] for place in order))
        joint = priced(chain, ChainDesign.of(links))[1]
        for mine, *parts in zip(
            joint.neighbours.divergences(3.0),
            *(each.neighbours.divergences(3.0) for each in pairs),
            strict=True,
        ):
            np.testing.assert_allclose(mine, sum(parts), rtol=1e-9)
        np.testing.assert_allclose(joint.constant, pairs[0].constant + pairs[1].constant, rtol=1e-9)
        assert RENYI.epsilon(joint) <= sum(RENYI.epsilon(each) for each in pairs)
        assert type(joint.neighbours) is not Neighbours


def test_reductions_agree_with_scores(table):
    design = built(table)
    done, _ = priced(MODEL, design)
    scores = done.log_lik()
    found = done.extremes(withheld_part(POWER), Everywhere().interval(design.values, table))
    np.testing.assert_allclose(found.low, 0.6 * scores.min(axis=0))
    np.testing.assert_allclose(found.high, 0.6 * scores.max(axis=0))
    known = Brackets([-0.5, 0.5, 2.5]).interval(design.values, table)
    masses = np.exp(done.log_mass(known))
    np.testing.assert_allclose(done.mean_mass(known), masses.mean(axis=0))
    alone = design.values == 0
    np.testing.assert_allclose(masses[:, alone], np.exp(scores[:, alone]))


def test_predictions_have_the_shares_of_their_cell(table):
    """χ² with two degrees of freedom in each of four cells: a false alarm in 2,500 seeds."""
    design = built(table)
    shares = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]])
    many = [
        MODEL.predict(design, {"shares": shares}, Key.from_seed(k).stream().uniform(80)) for k in range(100)
    ]
    for cell in range(4):
        values = np.concatenate([each[design.crossing.codes == cell] for each in many])
        counts = np.bincount(values.astype(int), minlength=3)
        assert chisquare(counts, shares[cell] * len(values)).pvalue > 1e-4


def test_cells_of_protected_labels_are_those_declared(table):
    """A later column may ask for a cell that no record is in: synthetic values make any of them."""
    known = {"job": ("a", "b", "c")}
    link = built(table, "x ~ sex + job", secret=("x", "job"), levels_of=known)
    other = Table.of(table.native.assign(job="c"))
    again = built(other, "x ~ sex + job", secret=("x", "job"), levels_of=known)
    assert link.crossing.count == again.crossing.count == 6
    blank = ChainDesign.of([link]).blank().links[0]
    assert blank.crossing.codes.size == 0
    np.testing.assert_array_equal(blank.encode(other).crossing.codes, again.crossing.codes)
    assert MODEL.concentrations(link, POWER)[2].tolist() == [1, 1, 1]


def test_what_has_no_cells_is_refused(table):
    numbers = Table.of(table.native.assign(age=range(80)))
    with pytest.raises(FormulaError, match=r"'age' is read as numbers. Write C\(age\)"):
        built(numbers, "x ~ age")
    assert built(numbers, "x ~ C(age)").crossing.count == 80
    assert built(numbers, "x ~ 1").crossing.count == 1
    with pytest.raises(DataError, match="no cell for"):
        built(table, "x ~ sex").encode(Table.of(table.native.assign(sex="d")))
    with pytest.raises(SettingError, match="concentration must lie between"):
        hr.Family("dirichlet", concentration=0.01)
    with pytest.raises(SettingError, match="takes no prior"):
        hr.Synthesizer("x ~ sex", "dirichlet", prior=hr.Prior())
    with pytest.raises(SettingError, match="numbers; at most"):
        MODEL.sample(built(numbers, "x ~ C(age)"), POWER, draws=10**6, key=Key.from_seed(1))


@pytest.fixture(scope="module")
def people():
    random = np.random.default_rng(2)
    sector = random.choice(["farm", "shop", "office"], 900, p=[0.1, 0.5, 0.4])
    kind = np.where(random.uniform(size=900) < np.where(sector == "farm", 0.8, 0.2), "part", "full")
    wage = np.exp(7 + 0.8 * (kind == "full") + 0.3 * random.normal(size=900)).round(2)
    return pd.DataFrame({"sector": sector, "kind": kind, "wage": wage})


@pytest.mark.slow
def test_labels_and_an_amount_that_follows_from_them_are_synthesized_together(people):
    synth = hr.Synthesizer(
        {
            "kind": hr.Column("kind ~ sector", hr.Family("dirichlet", levels=["full", "part", "none"])),
            "wage": hr.Column("wage ~ C(kind)"),
        },
        bound="renyi", epsilon=6.0, weights=hr.ScalarWeights(1), seed=4, draws=200,
    ).fit(people)  # fmt: skip
    assert synth.total_epsilon_ <= 6
    copy = synth.sample().tables[0]
    assert set(copy["kind"]) <= {"full", "part", "none"}
    assert list(copy["sector"]) == list(people["sector"])
    for table in (people, copy):  # a share of 90 has a standard error of 0.04; five of them
        assert abs((table["kind"][table["sector"] == "farm"] == "part").mean() - 0.8) < 0.25
        logs = np.log(table["wage"]).groupby(table["kind"]).mean()
        assert abs(logs["full"] - logs["part"] - 0.8) < 0.25
    told = " ".join(str(synth.sample().guarantee).split())
    assert "concentration 1" in told
