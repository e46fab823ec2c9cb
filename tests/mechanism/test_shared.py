"""What all rows of a unit share is modelled once, written to all of them, and read by what comes after."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.errors import DataError, FormulaError, SettingError
from hedgerow.mechanism.copies import predict_copies, released_draws
from hedgerow.privacy.bounds import RENYI
from hedgerow.tables.chain import Units
from hedgerow.tables.table import Table

INCOME = hr.Column("income ~ region", shared=True)
COLUMNS = {"income": INCOME, "wage": hr.Column("wage ~ log(income) + age")}
ASKED = {
    "unit": "home",
    "bound": "renyi",
    "weights": hr.ScalarWeights(0.6),
    "seed": 1,
    "draws": 200,
    "copies": 2,
}
ORDERS = np.array([1.3, 4.0, 9.0])


def households(homes=50, seed=4):
    """Sizes from 1 to 7, rows in no order, and one public column that differs within a home."""
    random = np.random.default_rng(seed)
    home = np.repeat(np.arange(homes), random.integers(1, 8, homes))
    region = random.choice(["n", "s"], homes)[home]
    age = random.integers(18, 90, len(home))
    income = np.exp(10 + 0.4 * (region == "s") + 0.5 * random.normal(size=homes)[home])
    wage = np.exp(0.7 * np.log(income) + 0.01 * age + 0.4 * random.normal(size=len(home)))
    table = pd.DataFrame({"home": home, "region": region, "age": age, "income": income, "wage": wage})
    return table.sample(frac=1, random_state=seed).reset_index(drop=True)


@pytest.fixture(scope="module")
def synth():
    return hr.Synthesizer(COLUMNS, **ASKED).fit(households())


def test_a_unit_costs_its_shared_cell_once_and_each_of_its_rows(synth):
    """Against fits in which a whole home is withheld: of incomes one row a home, of wages all rows."""
    table = households()
    first = table.groupby("home").head(1).index.to_numpy()
    fit, (incomes, wages) = synth._need().outcome.fit, synth._need().design.links
    pricing = synth._need().outcome.pricing
    models, once = synth.settings.models, np.isin(np.arange(len(table)), first)
    for home in (0, 7, 23):
        wanted = np.zeros((2, len(ORDERS)))
        for model, link, counted in ((models[0], incomes, once), (models[1], wages, True)):
            power = fit.power * counted
            there = model.posterior(link, np.where(table["home"] == home, 0, power))
            here = model.posterior(link, power)
            wanted += [here.divergences(there, ORDERS), there.divergences(here, ORDERS)]
        own = np.flatnonzero(table["home"] == home)
        for place, order in enumerate(ORDERS):
            found = np.array(pricing.neighbours.divergences(order))[:, own]
            np.testing.assert_allclose(found, np.repeat(wanted[:, [place]], len(own), axis=1), rtol=1e-7)
    assert synth.total_epsilon_ == pytest.approx(RENYI.total(pricing, 2))


def test_a_copy_has_one_cell_for_all_rows_of_a_unit_and_later_columns_read_it(synth):
    for copy in synth.sample().tables:
        assert (copy.groupby("home")["income"].nunique() == 1).all()
        assert copy["income"].nunique() == copy["home"].nunique()
        left = np.log(copy["wage"]) - 0.01 * copy["age"]
        # With fifty homes and seven tenths of log income in it, its correlation is far from chance.
        assert np.corrcoef(left, np.log(copy["income"]))[0, 1] > 0.35
    told = synth.utility()
    original = told[(told["column"] == "income") & (told["statistic"] == "mean")]["original"].iloc[0]
    assert original == pytest.approx(households().groupby("home")["income"].first().mean())


@pytest.mark.parametrize("sampling", ["independent", "stratified"])
def test_copies_follow_from_released_draws_and_public_columns_alone(synth, sampling):
    done = synth._need()
    settings = replace(done.settings, sampling=sampling)
    draws = released_draws(settings, done.start, done.outcome, key=done.key)
    other = done.start.table.native.assign(income=1.0, wage=2.0)
    links = [replace(link, values=np.full(link.records, 7.0)) for link in done.design.links]
    changed = replace(done.start, table=Table.of(other), design=replace(done.design, parts=tuple(links)))
    made = [predict_copies(settings, start, draws, key=done.key)[0] for start in (done.start, changed)]
    np.testing.assert_array_equal(*made)


def test_one_shared_column_alone():
    synth = hr.Synthesizer({"income": INCOME}, **ASKED).fit(households(), left_out=["wage", "age"])
    table = households()
    assert (synth.power_ > 0).sum() == table["home"].nunique()
    assert (synth.sample().tables[0].groupby("home")["income"].nunique() == 1).all()


@pytest.mark.slow
def test_gaps_codes_and_classes_may_be_shared():
    table = households(200)
    random = np.random.default_rng(1)
    tenure = random.choice(["own", "rent"], 200)[table["home"]]
    gone = (random.uniform(size=200) < 0.2)[table["home"]]
    table = table.assign(tenure=tenure, income=table["income"].mask(gone))
    columns = {
        "tenure": hr.Column("tenure ~ region", hr.Family("dirichlet", levels=["own", "rent"]), shared=True),
        "income": hr.Column("income ~ C(tenure)", missing="synthesized", kinds_by="region", shared=True),
        "wage": hr.Column("wage ~ log(income) + age"),
    }
    copy = hr.Synthesizer(columns, **ASKED | {"bound": "exact"}).fit(table).sample().tables[0]
    for name in ("tenure", "income"):
        assert (copy.groupby("home")[name].nunique(dropna=False) == 1).all()
    assert 0.1 < copy.groupby("home")["income"].first().isna().mean() < 0.3  # three standard errors
    assert not copy["wage"].isna().any()


def test_units_are_told_by_a_public_order():
    table = Table.of(
        pd.DataFrame({"home": ["b", "a", "b", "a"], "x": [1.0, 2.0, 3.0, 4.0]}, index=[9, 8, 7, 6])
    )
    units = Units.of(table, "home")
    assert units.leads.tolist() == [True, True, False, False]
    assert units.share(table, ["x"]).native["x"].tolist() == [1.0, 2.0, 1.0, 2.0]
    assert units.share(table, ["x"]).native.index.tolist() == [9, 8, 7, 6]
    assert units.differs(table, "x")
    gappy = Table.of(pd.DataFrame({"home": [1, 1, 2, 2], "x": [np.nan, np.nan, 1.0, 1.0]}))
    assert not Units.of(gappy, "home").differs(gappy, "x")


@pytest.mark.parametrize(
    ("columns", "changed", "says"),
    [
        ({"income": hr.Column("income ~ age", shared=True)}, {}, "its predictor 'age' is not the same"),
        ({"income": hr.Column("income ~ region", shared=True, only_where="age > 3")}, {}, "'age' is not the"),
        ({"wage": hr.Column("wage ~ 1", shared=True)}, {}, "'wage' is shared, and some 'home' has rows"),
        (
            {"wage": hr.Column("wage ~ age"), "income": hr.Column("income ~ wage", shared=True)},
            {}, "reads 'wage', which each row has for itself",
        ),
        (
            COLUMNS,
            {"standard": hr.RangeTruncated(hr.Box({"wage": hr.Radius(0.5, 2)})), "bound": "lipschitz"},
            "'wage' has a range and follows from a column",
        ),
    ],
)  # fmt: skip
def test_what_is_not_a_units_own_is_refused_before_a_fit(columns, changed, says):
    with pytest.raises((DataError, FormulaError, SettingError), match=says):
        hr.Synthesizer(columns, **ASKED | changed).fit(
            households(), left_out=["age"] if "age" in says else []
        )


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({}, "'income' is shared by the rows of a unit, and none is named"),
        (
            {"unit": None, "standard": hr.Strict(limits={"income": (1, 1e6)})},
            "no unit whose rows could share",
        ),
    ],
)
def test_a_shared_column_needs_a_unit(changed, says):
    with pytest.raises(SettingError, match=says):
        hr.Synthesizer({"income": INCOME}, epsilon=1.0, **changed)
    with pytest.raises(SettingError, match="True or False"):
        hr.Column("income ~ region", shared="home")


@pytest.mark.slow
@pytest.mark.parametrize("standard", [hr.RangeTruncated, hr.RangeAveraged])
def test_ranges_of_shared_columns_that_nobody_reads(standard):
    """One range for a unit: the rows that follow have none of their own."""
    columns = {"income": INCOME, "wage": hr.Column("wage ~ age")}
    asked = ASKED | {"bound": "lipschitz", "standard": standard(hr.Box({"income": hr.Radius(0.5, 2)}))}
    synth = hr.Synthesizer(columns, **asked).fit(households())
    interval = synth._need().outcome.pricing.interval.link(0)
    leads = Units.of(synth._need().table, "home").leads
    assert np.isfinite(interval.lower[leads]).all()
    assert np.isneginf(interval.lower[~leads]).all()
    assert synth.epsilon_ < synth.withheld_epsilon_["lipschitz"]
