"""All records of a unit are withheld together, and priced together."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln
from scipy.stats import dirichlet, multivariate_normal

import hedgerow as hr
from hedgerow.errors import DataError, SettingError
from hedgerow.mechanism.fit import fit
from hedgerow.mechanism.price import Pricing, UnitPricing
from hedgerow.models.chain import Chain
from hedgerow.models.exact import Lognormal, Normal
from hedgerow.models.families import model_named
from hedgerow.models.scored import Interval, Linear
from hedgerow.numerics.scoring import Draws
from hedgerow.privacy.bounds import EXACT, LIPSCHITZ, RENYI
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.sensitive import sensitive_part, withheld_part
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.chain import ChainDesign
from hedgerow.tables.table import Table

CELLS = model_named(hr.Family("dirichlet", levels=["a", "b", "c"]), None)
POWER = np.linspace(0.3, 0.9, 60)
UNIT = np.r_[np.zeros(9), np.repeat(np.arange(1, 8), 3), np.arange(8, 38)].astype(np.int64)[:60]
ORDERS = np.array([1.5, 4.0, 9.0])


@pytest.fixture(scope="module")
def table():
    random = np.random.default_rng(3)
    z, job = random.normal(size=60), random.choice(["f", "m"], 60)
    x, kind = np.exp(1 + z + random.normal(size=60)), random.choice(["a", "b"], 60)
    return Table.of(pd.DataFrame({"z": z, "job": job, "x": x, "kind": kind, "home": UNIT.astype(str)}))


def priced(model, design, unit=UNIT, power=POWER, draws=100):
    done = fit(model, design, power, draws=draws, key=Key.from_seed(1))
    whole = Everywhere().interval(np.zeros(60), None)
    told = done, withheld_part(power), whole, 1e-6
    return Pricing(*told) if unit is None else UnitPricing(*told, unit)


def designs_of(table):
    cells = designs.build("kind ~ job", table, (), CELLS.domain.classes, crossed=True)
    return [designs.build("x ~ z + job", table), cells]


@pytest.mark.parametrize("home", [0, 3, 12])
@pytest.mark.parametrize("model", [Normal(), Lognormal()])
def test_a_units_neighbour_is_the_fit_without_all_its_records(table, model, home):
    """Nine records, more than there are coefficients; three; and one."""
    link, rows = designs_of(table)[0], np.flatnonzero(home == UNIT)
    pricing = priced(model, link)
    here = model.posterior(link, POWER)
    there = model.posterior(link, np.where(home == UNIT, 0.0, POWER))
    for order, wanted in zip(ORDERS, here.divergences(there, ORDERS), strict=True):
        np.testing.assert_allclose(pricing.neighbours.divergences(order)[0][rows], wanted, rtol=1e-8)
    for order, wanted in zip(ORDERS, there.divergences(here, ORDERS), strict=True):
        np.testing.assert_allclose(pricing.neighbours.divergences(order)[1][rows], wanted, rtol=1e-8)
    own = pricing.fit.parameters
    draws = Draws(own["beta"], own["sigma"])
    loss = here.log_density(draws) - there.log_density(draws)
    found = (POWER * pricing.fit.log_lik())[:, rows].sum(axis=1) - pricing.constant[rows[0]]
    np.testing.assert_allclose(found, loss, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(EXACT.by_record(pricing)[rows], np.abs(loss).max(), rtol=1e-7)


def test_cells_lose_all_records_of_a_unit_at_once(table):
    link, rows = designs_of(table)[1], np.flatnonzero(UNIT == 0)
    pricing = priced(CELLS, link)
    shares = pricing.fit.parameters["shares"]
    ends = [CELLS.concentrations(link, power) for power in (POWER, np.where(UNIT == 0, 0.0, POWER))]
    here, there = (sum(dirichlet.logpdf(shares[:, cell].T, end[cell]) for cell in range(2)) for end in ends)
    found = (POWER * pricing.fit.log_lik())[:, rows].sum(axis=1) - pricing.constant[0]
    np.testing.assert_allclose(found, here - there, rtol=1e-8, atol=1e-9)

    def normaliser(one):
        return (gammaln(one).sum(axis=1) - gammaln(one.sum(axis=1))).sum()

    for order in (1.2, 3.0):
        ahead, back = (each[0] for each in pricing.neighbours.divergences(order))
        for found, (p, q) in ((ahead, ends), (back, ends[::-1])):
            mixed = order * p - (order - 1) * q
            wanted = normaliser(mixed) - order * normaliser(p) + (order - 1) * normaliser(q)
            exists = (mixed > 0).all()
            assert found == pytest.approx(wanted / (order - 1) if exists else np.inf, rel=1e-8)


@pytest.mark.slow
def test_units_of_one_record_are_records(table):
    links = designs_of(table)
    chain = Chain((Lognormal(), CELLS))
    alone, single = (priced(chain, ChainDesign.of(links), unit) for unit in (None, np.arange(60)))
    np.testing.assert_allclose(single.constant, alone.constant, rtol=1e-8)
    np.testing.assert_allclose(single.sensitivity, alone.sensitivity, rtol=1e-10)
    for order in ORDERS:
        for mine, theirs in zip(*(one.neighbours.divergences(order) for one in (single, alone)), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-7)
    assert RENYI.epsilon(single) == pytest.approx(RENYI.epsilon(alone), rel=1e-7)


def test_a_unit_adds_before_the_maximum_over_draws(table):
    pricing = priced(Lognormal(), designs_of(table)[0])
    sums = POWER * pricing.fit.log_lik()
    for home in (0, 5, 20):
        whole = sums[:, home == UNIT].sum(axis=1)
        assert LIPSCHITZ.by_record(pricing)[home == UNIT] == pytest.approx(2 * np.abs(whole).max(), rel=1e-10)
    centre = np.zeros(60)
    by_draw = np.max([np.abs(sums[:, home == UNIT].sum(axis=1)) for home in range(UNIT.max() + 1)], axis=0)
    np.testing.assert_allclose(pricing.largest_by_draw(centre), by_draw, rtol=1e-10)


def test_a_unit_that_decides_the_fit_has_one_of_its_own(table):
    """All records of a category, far out: what is left of the fit has too few digits to subtract from."""
    job = np.where(UNIT == 0, "rare", "usual")
    odd = Table.of(table.native.assign(job=job, x=np.where(UNIT == 0, 1e9, table.native["x"])))
    link, model = designs.build("x ~ z + job", odd), Normal(hr.Prior(slope=(0.0, 1e6)))
    here, there = (model.posterior(link, power) for power in (POWER, np.where(UNIT == 0, 0.0, POWER)))
    found = priced(model, link).neighbours.divergences(1.5)[0][0]
    assert found == pytest.approx(here.divergences(there, np.array([1.5]))[0], rel=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Columns job, kind")
def test_a_release_by_unit_costs_more_and_says_whom_it_protects(table):
    asked = {"bound": "renyi", "weights": hr.ScalarWeights(0.2), "seed": 1}
    rows, homes = (hr.Synthesizer("x ~ z", unit=unit, **asked).fit(table.native) for unit in (None, "home"))
    assert homes.total_epsilon_ > 1.5 * rows.total_epsilon_
    assert homes.records_["price"][UNIT == 0].nunique() == 1
    calibrated = hr.Synthesizer("x ~ z", unit="home", epsilon=6.0, **asked).fit(table.native)
    assert calibrated.total_epsilon_ <= 6
    for ask in (calibrated.audit, calibrated.attack):
        with pytest.raises(SettingError, match="leaves out one row"):
            ask()
    told = " ".join(str(calibrated.sample().guarantee).split())
    assert "the outcomes of all records of one 'home' are withheld together" in told
    assert "for any 'home' with all its records" in told
    assert "any record" not in told


def test_a_unit_that_is_not_there_is_found_before_a_fit(table, monkeypatch):
    monkeypatch.setattr("hedgerow.mechanism.steps.fit", lambda *_, **__: pytest.fail("a fit was made"))
    with pytest.raises(DataError, match="No column named 'house'"):
        hr.Synthesizer("x ~ z", unit="house").fit(table.native)


def test_a_plan_does_not_lose_the_unit():
    asked = hr.Synthesizer("x ~ z", unit="home", epsilon=1.0).settings
    plan = hr.Plan(settings=asked)
    assert hr.Plan.loads(plan.text()) == plan == hr.Plan(formula="x ~ z", epsilon=1.0, unit="home")
    assert (plan.unit, plan.settings, plan.rows, plan.rows_charged) == ("home", asked, None, 1)
    assert plan.relation == "withheld by home"
    single = hr.Plan(formula="x ~ z", epsilon=1.0, unit="home", rows_per_unit=1)
    assert (single.settings.unit, single.rows, single.relation) == (None, 1, "withheld")
    for more in ({"preset": "recommended"}, {"standard": hr.Strict(limits=(1, 9))}):  # priced row by row
        plan = hr.Plan(formula="x ~ z", epsilon=1.0, unit="home", **more)
        assert (plan.settings.unit, plan.rows, plan.mapping()["unit"]) == (None, 1, "home")


@pytest.mark.parametrize(
    "settings",
    [
        {"unit": "x"}, {"unit": 3}, {"unit": "home", "rules": hr.Rules(derived={"home": "x > 1"})},
        {"unit": "home", "debias": True, "epsilon": 2.0},
        {"unit": "home", "standard": hr.Strict(limits=(1, 9)), "epsilon": 1.0},
        {"unit": "home", "standard": hr.Censored(), "epsilon": 1.0},
        {"unit": "home", "preset": "recommended", "epsilon": 2.0},
    ],
)  # fmt: skip
def test_what_has_no_price_for_units_is_refused(settings):
    with pytest.raises(SettingError, match="unit"):
        hr.Synthesizer("x ~ z", **settings)


def test_rows_of_nobody_are_not_taken_for_those_of_one(table):
    data = table.native.assign(home=table.native["home"].mask(np.arange(60) < 3))
    asked = {"bound": "exact", "weights": hr.ScalarWeights(0.2), "draws": 100, "seed": 1}
    with pytest.raises(DataError, match="'home' has 3 missing values"):
        hr.Synthesizer("x ~ z", unit="home", **asked).fit(data)


def test_a_unit_lies_in_its_boxes_with_the_product_of_its_rows_probabilities(table):
    """Of two normals each row's is a rectangle of the bivariate normal."""
    data = table.native.assign(y=lambda t: np.log(t["x"]) + t["z"])
    chain = Chain((Normal(), Normal()))
    links = [designs.build(text, Table.of(data), secret=["y", "x"]) for text in ("y ~ z", "x ~ y")]
    design = ChainDesign.of(links, Table.of(data))
    ends = np.column_stack([data["y"], data["x"]])
    interval = Interval(ends - np.array([1.0, 4.0]), ends + np.array([0.5, 9.0]), np.ones(60, np.bool_))
    done = fit(chain, design, POWER, draws=4, key=Key.from_seed(1))
    part = sensitive_part(hr.RangeTruncated(), POWER, np.zeros(60), interval)
    pricing = UnitPricing(done, part, interval, 1e-6, UNIT)
    home, draw, whole = 0, 2, []
    own = done.part(slice(draw, draw + 1)).parameters
    for row in np.flatnonzero(home == UNIT):
        first = own["0.beta"][0] @ [1, data["z"][row]]
        slope, spread = own["1.beta"][0, 1], (own["0.sigma"][0], own["1.sigma"][0])
        mean = [first, own["1.beta"][0] @ [1, first]]
        covariance = spread[0] ** 2 * np.array([[1, slope], [slope, slope**2]]) + np.diag([0, spread[1] ** 2])
        joint = multivariate_normal(mean, covariance)
        mass = joint.cdf(interval.upper[row], lower_limit=interval.lower[row], rng=1)
        whole.append(POWER[row] * (joint.logpdf(ends[row]) - np.log(mass)))
    found = pricing.extremes_of(done.part(slice(draw, draw + 1)), part)
    assert found.low[home] == pytest.approx(sum(whole), rel=1e-4)
    assert found.high[home] == pytest.approx(sum(whole), rel=1e-4)


def test_a_unit_takes_the_worse_ends_of_all_its_rows_where_a_box_is_estimated(table, monkeypatch):
    links = [designs.build("x ~ z", table), designs.build("z ~ 1", table)]
    chain, design = Chain((Lognormal(), Normal())), ChainDesign.of(links)
    random = np.random.default_rng(1)
    low = -random.uniform(0.5, 2.0, size=(100, 60))
    high = low + random.uniform(0.1, 0.4, size=(100, 60))
    monkeypatch.setattr(Chain, "log_mass_ends", lambda *_: (low, high))
    done = fit(chain, design, POWER, draws=100, key=Key.from_seed(1))
    here = Everywhere().interval(np.zeros(60), None)
    part = Linear(POWER, -POWER, np.zeros(60))
    pricing = UnitPricing(done, part, here, 1e-6, UNIT)
    found = pricing.extremes_of(done, part)
    least, most = ((POWER * (done.log_lik() - end))[:, UNIT == 0].sum(axis=1) for end in (high, low))
    assert (found.low[0], found.high[0]) == pytest.approx((least.min(), most.max()))
    maxima = pricing.largest_by_draw(np.where(UNIT == 0, 5.0, found.low))
    assert (maxima >= np.maximum(abs(least - 5), abs(most - 5)) - 1e-9).all()


def test_a_row_may_cost_more_than_its_unit(table):
    """Two residuals of opposite sign: without both the line stays where it was, without one it moves."""
    value = np.r_[1.0, -1.0, np.tile([1.0, -1.0], 29)]
    data = Table.of(table.native.assign(x=value, z=np.r_[0.0, 0.0, table.native["z"][2:]]))
    link, pair = designs.build("x ~ z", data), np.r_[0, np.arange(59)]
    rows, units = (priced(Normal(), link, unit, np.ones(60)) for unit in (None, pair))
    one, whole = (each.neighbours.divergences(2.0)[0][0] for each in (rows, units))
    assert one > whole


def test_nobody_is_told_to_drop_the_unit(table):
    """Warnings are errors here: of a column that is used nobody is told that no formula reads it."""
    data = table.native[["x", "z", "home"]]
    asked = {"bound": "oscillation", "weights": hr.ScalarWeights(0.2), "draws": 100, "seed": 1}
    compared = hr.compare("x ~ z", data, standards={"adp": hr.ADP()}, unit="home", **asked)
    assert compared.table["epsilon"][0] > 0
