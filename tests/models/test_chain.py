"""A chain of models is one model of several protected columns."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

from hedgerow.errors import DataError, FormulaError, HealthError
from hedgerow.mechanism.fit import fit
from hedgerow.mechanism.price import Pricing
from hedgerow.models.chain import Chain, part_of
from hedgerow.models.exact import Lognormal, Normal
from hedgerow.models.scored import Linear
from hedgerow.models.wrapped import Wrapped
from hedgerow.numerics.scoring import Draws
from hedgerow.privacy.bounds import EXACT, RENYI
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.sensitive import withheld_part
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.chain import ChainDesign, check_links
from hedgerow.tables.formula import parse
from hedgerow.tables.table import Table

PAIR = Chain((Normal(), Normal()))
FORMULAS = ("x ~ z", "y ~ x + z")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    z = rng.normal(size=60)
    x = 1 + z + rng.normal(size=60)
    return Table.of(pd.DataFrame({"z": z, "x": x, "y": 0.5 * x - z + 0.5 * rng.normal(size=60)}))


def chained(table, formulas=FORMULAS):
    outcomes = [formula.split(" ~ ")[0] for formula in formulas]
    return ChainDesign.of([designs.build(formula, table, secret=outcomes) for formula in formulas])


def price_of(design, power, *, draws=200):
    model = Chain((Normal(),) * len(design.links))
    done = fit(model, design, power, draws=draws, key=Key.from_seed(3))
    whole = Everywhere().interval(design.links[0].values, None)
    return done, Pricing(done, withheld_part(power), whole, 1e-6)


def test_two_normals_are_the_bivariate_normal(table):
    design = chained(table)
    done = fit(PAIR, design, np.full(60, 0.7), draws=20, key=Key.from_seed(2))
    found = done.log_lik()
    x, y, z = (table.numbers(name) for name in "xyz")
    for draw in range(20):
        (a, slope), (b, on_x, on_z) = (part_of(done.parameters, place)["beta"][draw] for place in (0, 1))
        s, t = (part_of(done.parameters, place)["sigma"][draw] for place in (0, 1))
        covariance = [[s**2, on_x * s**2], [on_x * s**2, on_x**2 * s**2 + t**2]]
        means = np.column_stack([a + slope * z, b + on_x * (a + slope * z) + on_z * z])
        wanted = multivariate_normal([0, 0], covariance).logpdf(np.column_stack([x, y]) - means)
        np.testing.assert_allclose(found[draw], wanted, rtol=1e-9, atol=1e-9)


def test_the_posterior_is_that_of_the_bivariate_normal(table):
    """Density over prior and weighted likelihood is one constant at all draws."""
    design, power = chained(table), np.linspace(0.2, 1.0, 60)
    done = fit(PAIR, design, power, draws=50, key=Key.from_seed(2))
    x, y, z = (table.numbers(name) for name in "xyz")
    left = np.zeros(50)
    for place, link in enumerate(design.links):
        draws = Draws(*(part_of(done.parameters, place)[name] for name in ("beta", "sigma")))
        left += Normal().posterior(link, power).log_density(draws)
        left -= Normal().posterior(link, np.zeros(60)).log_density(draws)  # the prior
    for draw in range(50):
        (a, slope), (b, on_x, on_z) = (part_of(done.parameters, place)["beta"][draw] for place in (0, 1))
        s, t = (part_of(done.parameters, place)["sigma"][draw] for place in (0, 1))
        covariance = [[s**2, on_x * s**2], [on_x * s**2, on_x**2 * s**2 + t**2]]
        means = np.column_stack([a + slope * z, b + on_x * (a + slope * z) + on_z * z])
        left[draw] -= power @ multivariate_normal([0, 0], covariance).logpdf(np.column_stack([x, y]) - means)
    assert np.ptp(left) < 1e-7 * np.abs(left).max()


def test_the_exact_loss_is_the_log_ratio_of_both_links_posteriors(table):
    design, power, row = chained(table), np.full(60, 0.7), 17
    done, pricing = price_of(design, power)
    without = np.where(np.arange(60) == row, 0.0, power)
    wanted = np.zeros(done.draws)
    for place, link in enumerate(design.links):
        own = part_of(done.parameters, place)
        draws = Draws(own["beta"], own["sigma"])
        wanted += Normal().posterior(link, power).log_density(draws)
        wanted -= Normal().posterior(link, without).log_density(draws)
    loss = 0.7 * done.log_lik()[:, row] - pricing.constant[row]
    np.testing.assert_allclose(loss, wanted, rtol=1e-7, atol=1e-9)
    assert EXACT.by_record(pricing)[row] == pytest.approx(np.abs(wanted).max(), rel=1e-7)


def test_renyi_divergences_of_the_links_add_before_the_maximum(table):
    design, power = chained(table), np.full(60, 0.7)
    pricing = price_of(design, power)[1]
    order = 7.0
    for row in (0, 17, 59):
        without = np.where(np.arange(60) == row, 0.0, power)
        wanted = sum(
            Normal().posterior(link, power).divergences(Normal().posterior(link, without), np.array([order]))
            for link in design.links
        )
        assert pricing.neighbours.divergences(order)[0][row] == pytest.approx(wanted[0], rel=1e-7)
    joint = RENYI.epsilon(pricing)
    assert joint == pytest.approx(pricing.neighbours.by_record(delta=1e-6).max(), rel=1e-12)
    alone = [price_of(chained(table, [formula]), power)[1] for formula in FORMULAS]
    assert joint < sum(RENYI.epsilon(each) for each in alone)


def test_the_order_of_independent_columns_does_not_change_the_price(table):
    power = np.full(60, 0.7)
    prices = [price_of(chained(table, order), power)[1] for order in (("x ~ z", "y ~ z"), ("y ~ z", "x ~ z"))]
    assert RENYI.epsilon(prices[0]) == pytest.approx(RENYI.epsilon(prices[1]), rel=1e-12)


def test_draws_that_cannot_be_trusted_are_told_with_their_column(table):
    class Failing(Normal):
        def sample(self, design, power, *, draws, key):
            raise HealthError("the draws failed")

    with pytest.raises(HealthError, match="Column 'y': the draws failed"):
        Chain((Normal(), Failing())).sample(chained(table), np.ones(60), draws=9, key=Key.from_seed(1))


def test_a_link_that_lacks_a_value_is_left_alone_by_that_row(table):
    gappy = table.native.copy()
    gappy.loc[3, "y"] = np.nan
    usable = np.isfinite
    links = [designs.build("x ~ z", table), designs.build("y ~ z", Table.of(gappy), usable=usable)]
    (both, pricing), (one, alone) = (price_of(ChainDesign.of(links[:many]), np.ones(60)) for many in (2, 1))
    np.testing.assert_array_equal(both.log_lik()[:, 3], one.log_lik()[:, 3])
    assert pricing.neighbours.by_record(delta=1e-6)[3] == pytest.approx(
        alone.neighbours.by_record(delta=1e-6)[3], rel=1e-9
    )


def test_nothing_of_a_prior_is_read_off_a_protected_predictor(table):
    other = table.native.assign(x=lambda frame: 50 * frame["x"])
    here, there = (chained(each).links[1] for each in (table, Table.of(other)))
    prior = Normal().prior
    np.testing.assert_array_equal(prior.moments(here), prior.moments(there))
    np.testing.assert_array_equal(prior.contrasts(here), prior.contrasts(there))  # the level at the means


def test_what_is_public_of_a_chain_has_no_protected_value(table):
    first, second = chained(table).blank().links
    assert np.isnan([first.values, second.values]).all()
    np.testing.assert_array_equal(first.matrix[:, 1], table.numbers("z"))
    assert second.matrix.size == 0
    synthetic = Table.of(table.native.assign(x=range(60)))
    np.testing.assert_array_equal(second.encode(synthetic).matrix[:, 1], np.arange(60))


@pytest.mark.parametrize(
    ("formulas", "says"),
    [
        (("y ~ x + z", "x ~ z"), "'x', which is synthesized later. Put 'x' before 'y'"),
        (("x ~ z", "y ~ scale(x)"), "learn from all values of a column, and 'x' is protected"),
        (("x ~ z", "y ~ C(x)"), "learn from all values of a column, and 'x' is protected"),
        (
            ("word ~ z", "y ~ word"),
            "learn from all values of a column, and 'word' is protected. Give it a fam",
        ),
    ],
)
def test_predictors_that_come_later_or_are_learnt_from_are_refused(table, formulas, says):
    table = Table.of(table.native.assign(word=["a", "b"] * 30))
    with pytest.raises(FormulaError, match=says):
        check_links([parse(formula, table) for formula in formulas], table)


def test_a_column_that_another_link_protects_is_no_public_column_of_a_model(table):
    with pytest.raises(FormulaError, match="asks for the outcome 'y' as a predictor"):
        designs.build("x ~ z", table, ("y",), secret=("x", "y"))


def test_synthetic_values_that_a_transform_has_no_place_for_are_refused(table):
    link = designs.build("y ~ exp(x)", table, secret=("x", "y"))
    with pytest.raises(DataError, match="not finite for every synthetic value"):
        link.encode(Table.of(table.native.assign(x=1e6)))


WORDS = {"word": ("a", "b", "never"), "grade": (1.0, 2.0, 3.0), "flag": (False, True)}


def labelled(table, *, seed=1, **more):
    random = np.random.default_rng(seed)
    columns = {
        "word": random.choice(["a", "b"], 60),
        "grade": random.choice([1, 2], 60),
        "flag": random.uniform(size=60) < 0.2,
    }
    return Table.of(table.native.assign(**columns | more))


@pytest.mark.parametrize(
    ("term", "columns"),
    [
        ("word", ["word[T.b]", "word[T.never]"]),
        ("C(word)", ["C(word)[T.b]", "C(word)[T.never]"]),
        ("C(grade)", ["C(grade)[T.2.0]", "C(grade)[T.3.0]"]),
        ("flag", ["flag[T.True]"]),
        ("word:z", ["word[a]:z", "word[b]:z", "word[never]:z"]),
    ],
)
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_protected_labels_are_encoded_by_their_declared_levels_alone(table, term, columns, kind):
    here = labelled(table)
    constant = labelled(table, word="b", grade=3, flag=True)
    if kind != "pandas":
        import polars as pl

        here, constant = (pl.from_pandas(each.native) for each in (here, constant))
        here, constant = (
            Table.of(each if kind == "polars" else each.to_arrow()) for each in (here, constant)
        )
    links = []
    for each in (here, constant):
        check_links([parse("word ~ z", each), parse(f"y ~ {term}", each)], each, WORDS)
        secret = ("word", "grade", "flag", "y")
        links.append(designs.build(f"y ~ {term}", each, secret=secret, levels_of=WORDS))
    for link in links:
        assert list(link.columns[1:]) == columns
        np.testing.assert_array_equal(link.spread[1:], 1)
        np.testing.assert_array_equal(link.means[1:], 0)
        assert link.notes == ()
    np.testing.assert_array_equal(links[0].encode(constant).matrix, links[1].matrix)
    np.testing.assert_array_equal(_blank_of(links[1]).encode(here).matrix, links[0].matrix)


def _blank_of(link):
    return ChainDesign.of([link]).blank().links[0]


def test_a_label_that_is_not_declared_leaves_nothing_to_predict_from(table):
    words = np.array(["a", "b"] * 30, dtype=object)
    words[[3, 7]] = "c", None
    link = designs.build("y ~ word", labelled(table, word=words), secret=("word",), levels_of=WORDS)
    np.testing.assert_array_equal(np.flatnonzero(~link.present), [3, 7])
    assert np.isfinite(link.matrix).all()


@pytest.mark.parametrize("term", ["C(grade) + grade", "C(grade) + log(grade)", "C(word, ['a', 'b'])"])
def test_protected_labels_are_read_as_categories_or_not_at_all(table, term):
    here = labelled(table)
    formulas = [parse(text, here) for text in ("word ~ z", "grade ~ z", f"y ~ {term}")]
    with pytest.raises(FormulaError, match="classes are declared: write C"):
        check_links(formulas, here, WORDS)
    number = designs.build("y ~ grade", here, secret=("grade",), levels_of=WORDS)
    assert number.columns == ("Intercept", "grade")


def test_a_price_in_one_pass_is_that_of_the_matrix(table):
    gappy = table.native.assign(x=lambda frame: np.exp(frame["x"]))
    gappy.loc[[3, 40], "y"] = np.nan
    here = Table.of(gappy)
    links = [
        designs.build("x ~ z", here),
        designs.build("y ~ z + log(x)", here, usable=np.isfinite, secret=("x", "y")),
    ]
    design, model = ChainDesign.of(links), Chain((Lognormal(), Normal()))
    done = fit(model, design, np.ones(60), draws=33, key=Key.from_seed(3))
    part = Linear(np.linspace(0, 1, 60), np.zeros(60), np.linspace(-1, 1, 60))
    whole = Everywhere().interval(design.links[0].values, None)
    scored = part(slice(None), done.log_lik(), done.log_lik())
    found = done.extremes(part, whole)
    np.testing.assert_allclose(found.low, scored.min(axis=0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.high, scored.max(axis=0), rtol=1e-10, atol=1e-12)


def test_a_link_that_scores_whole_tables_is_asked_once_for_each_draw(table):
    """Blocks of records would have it score the table again for each of them."""
    asked = []

    class Whole(Normal):
        def log_lik(self, design, parameters, records):
            asked.append((len(parameters["sigma"]), records))
            return super().log_lik(design, parameters, slice(None))[:, records]

    class Other(Wrapped):
        def sample(self, design, power, *, draws, key):
            return self.base.sample(design, power, draws=draws, key=key)

    design = chained(table)
    done = fit(Chain((Normal(), Other(Whole()))), design, np.ones(60), draws=100, key=Key.from_seed(3))
    whole, part = Everywhere().interval(design.links[0].values, None), withheld_part(np.ones(60))
    found = done.extremes(part, whole)
    assert asked == [(64, slice(None))] * 2  # the last block repeats a draw, so that one shape is compiled
    np.testing.assert_allclose(found.low, done.log_lik().min(axis=0), rtol=1e-10)
