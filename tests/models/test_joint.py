"""The probability that several columns of a record lie in their ranges at once."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm, poisson

from hedgerow.errors import SettingError
from hedgerow.mechanism.links import build_links
from hedgerow.models import reductions
from hedgerow.models.base import Domain, Model
from hedgerow.models.chain import Chain, part_of
from hedgerow.models.chain.joint import Joint, _bound_mean
from hedgerow.models.exact import Lognormal, Normal
from hedgerow.models.families import Family, model_named
from hedgerow.models.scored import Interval, Linear
from hedgerow.privacy.columns import Column
from hedgerow.privacy.settings import Settings
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.chain import ChainDesign
from hedgerow.tables.table import Table

N = 12
BETAS = {1: [0.3], 2: [0.2, 0.7], 3: [0.1, 0.4, 0.5], 4: [0.1, 0.4, 0.5, -0.2]}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"z": rng.normal(size=N), "s": ["a", "b"] * (N // 2), "x": rng.lognormal(size=N)})
    return Table.of(frame.assign(y=rng.normal(size=N), w=rng.normal(size=N)))


def chained(table, *formulas):
    outcomes = [formula.split(" ~ ")[0] for formula in formulas]
    links = [designs.build(formula, table, secret=outcomes) for formula in formulas]
    return ChainDesign.of(links, table)


def drawn(design, draws=3):
    """A few parameters that are near each other, as draws of a posterior are."""
    rng = np.random.default_rng(3)
    found = {}
    for place, link in enumerate(design.links):
        beta = np.array(BETAS[len(link.columns)])
        found[f"{place}.beta"] = beta + 0.1 * rng.normal(size=(draws, len(beta)))
        found[f"{place}.sigma"] = rng.uniform(0.5, 0.9, draws)
    return found


def boxed(*ends):
    """The same range for every record, by link."""
    lower, upper = (np.tile(np.array(end, float), (N, 1)) for end in zip(*ends, strict=True))
    return Interval(lower, upper, np.ones(N, np.bool_))


WHOLE = (-np.inf, np.inf)
PAIR = Chain((Normal(), Normal()))


def test_a_box_on_two_normals_is_a_rectangle_of_the_bivariate_normal(table):
    design = chained(table, "y ~ z", "w ~ y + z")
    parameters, box = drawn(design), boxed((-1, 0.8), (0.2, np.inf))
    found = PAIR.log_mass(design, parameters, box, slice(None))
    z = table.numbers("z")
    for draw, row in ((0, 0), (1, 5), (2, 11)):
        (a, on), (b, on_y, on_z) = (parameters[f"{place}.beta"][draw] for place in (0, 1))
        s, t = (parameters[f"{place}.sigma"][draw] for place in (0, 1))
        first = a + on * z[row]
        mean = [first, b + on_y * first + on_z * z[row]]
        covariance = [[s**2, on_y * s**2], [on_y * s**2, on_y**2 * s**2 + t**2]]
        wanted = multivariate_normal(mean, covariance).cdf([0.8, np.inf], lower_limit=[-1, 0.2])
        assert found[draw, row] == pytest.approx(np.log(wanted), abs=1e-7)


def test_the_price_of_two_normals_is_that_of_the_bivariate_normal(table):
    design = chained(table, "y ~ z", "w ~ y + z")
    parameters, ends, alpha = drawn(design, draws=5), ((-3, 3), (-2.5, np.inf)), 0.6
    values = np.column_stack([table.numbers(name) for name in "yw"])
    d = np.empty((5, N))
    for draw, row in np.ndindex(5, N):
        (a, on), (b, on_y, on_z) = (parameters[f"{place}.beta"][draw] for place in (0, 1))
        s, t = (parameters[f"{place}.sigma"][draw] for place in (0, 1))
        z = table.numbers("z")[row]
        mean = [a + on * z, b + on_y * (a + on * z) + on_z * z]
        both = multivariate_normal(mean, [[s**2, on_y * s**2], [on_y * s**2, on_y**2 * s**2 + t**2]])
        inside = both.cdf([end[1] for end in ends], lower_limit=[end[0] for end in ends])
        d[draw, row] = alpha * (both.logpdf(values[row]) - np.log(inside))
    form = Linear(np.full(N, alpha), np.full(N, -alpha), np.zeros(N))
    found = reductions.extremes(PAIR, design, parameters, form, boxed(*ends))
    np.testing.assert_allclose(found.oscillation, d.max(axis=0) - d.min(axis=0), rtol=1e-6)
    np.testing.assert_allclose(found.absolute, np.abs(d).max(axis=0), rtol=1e-6)


def test_a_box_holds_for_lognormals_linear_in_the_log_and_for_several_readers(table):
    design = chained(table, "x ~ z", "y ~ log(x) + C(s):log(x)", "w ~ z + log(x)")
    chain, parameters = Chain((Lognormal(), Normal(), Normal())), drawn(design)
    box = boxed((0.5, 4), (-1, 1), (0, 2))
    found = chain.log_mass(design, parameters, box, slice(3, 9))
    assert not Joint(chain.models, design, (True, True, True)).simulated
    z, second = table.numbers("z"), np.array(["a", "b"] * (N // 2)) == "b"
    for draw, row in ((0, 3), (1, 6), (2, 8)):
        first, two, three = (parameters[f"{place}.beta"][draw] for place in range(3))
        sigma = [parameters[f"{place}.sigma"][draw] for place in range(3)]

        def inside(r, *, first=first, two=two, three=three, sigma=sigma, row=row):
            means = two[0] + (two[1] + two[2] * second[row]) * r, three[0] + three[1] * z[row] + three[2] * r
            masses = (
                norm.cdf(high, mean, s) - norm.cdf(low, mean, s)
                for (low, high), mean, s in zip(((-1, 1), (0, 2)), means, sigma[1:], strict=True)
            )
            return norm.pdf(r, first[0] + first[1] * z[row], sigma[0]) * np.prod(list(masses))

        wanted = quad(inside, np.log(0.5), np.log(4), epsabs=1e-13)[0]
        assert found[draw, row - 3] == pytest.approx(np.log(wanted), abs=1e-8)


def test_columns_that_do_not_read_each_other_multiply_whatever_their_order(table):
    ends = (0.1, 3.0), (-1.0, 1.0)
    orders = (
        (("x ~ z", "y ~ z"), (Lognormal(), Normal()), ends),
        (("y ~ z", "x ~ z"), (Normal(), Lognormal()), ends[::-1]),
    )
    found = []
    for formulas, models, sides in orders:
        design = chained(table, *formulas)
        own = (
            drawn(design)
            if not found
            else {f"{1 - int(k[0])}{k[1:]}": v for k, v in drawn(chained(table, *orders[0][0])).items()}
        )
        found.append(Chain(models).log_mass(design, own, boxed(*sides), slice(None)))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-14)
    design = chained(table, "x ~ z", "y ~ z")
    one = Lognormal().log_mass(
        design.links[0],
        {"beta": drawn(design)["0.beta"], "sigma": drawn(design)["0.sigma"]},
        boxed(ends[0]).link(0),
        slice(None),
    )
    alone = Chain((Lognormal(), Normal())).log_mass(design, drawn(design), boxed(ends[0], WHOLE), slice(None))
    np.testing.assert_array_equal(alone, one)


def test_a_range_on_the_last_column_alone_is_that_of_its_marginal(table):
    design = chained(table, "y ~ z", "w ~ y + z")
    parameters = drawn(design)
    found = PAIR.log_mass(design, parameters, boxed(WHOLE, (0, 1)), slice(None))
    beta, (a, on) = parameters["1.beta"][1], parameters["0.beta"][1]
    z = table.numbers("z")
    mean = beta[0] + beta[1] * (a + on * z) + beta[2] * z
    deviation = np.hypot(beta[1] * parameters["0.sigma"][1], parameters["1.sigma"][1])
    wanted = norm.cdf(1, mean, deviation) - norm.cdf(0, mean, deviation)
    np.testing.assert_allclose(np.exp(found[1]), wanted, rtol=1e-10)


@pytest.mark.parametrize("formula", ["w ~ y + z", "w ~ I(y**2) + z"])
def test_an_exact_earlier_value_plays_no_part(table, formula):
    """Another confidential table with the same ranges has the same masses: the leak of a chain's ranges."""
    other = Table.of(table.native.assign(y=lambda frame: 0.5 - frame["y"] / 3))
    box, found = boxed((-5, 5), (0, 1)), []
    for each in (table, other):
        design = chained(each, "y ~ z", formula)
        found.append(PAIR.log_mass_ends(design, drawn(design), box, slice(None)))
    np.testing.assert_array_equal(found[0], found[1])


def test_a_column_that_is_not_linear_in_another_is_integrated_with_its_error(table):
    design = chained(table, "y ~ z", "w ~ I(y**2) + z")
    parameters, box = drawn(design), boxed((-1, 1.5), (0, 1))
    assert not Joint(PAIR.models, design, (True, True)).simulated
    low, high = PAIR.log_mass_ends(design, parameters, box, slice(None))
    assert (high - low).max() <= 0.04
    z = table.numbers("z")
    for draw, row in np.ndindex(low.shape):
        (a, on), (b, on_y, on_z) = (parameters[f"{place}.beta"][draw] for place in (0, 1))
        s, t = (parameters[f"{place}.sigma"][draw] for place in (0, 1))
        y = np.linspace(-1, 1.5, 20_001)
        mean = b + on_y * y**2 + on_z * z[row]
        inside = norm.pdf(y, a + on * z[row], s) * (norm.cdf(1, mean, t) - norm.cdf(0, mean, t))
        wanted = np.log(np.trapezoid(inside, y))
        assert low[draw, row] - 1e-7 <= wanted <= high[draw, row] + 1e-7
        assert (low[draw, row] + high[draw, row]) / 2 == pytest.approx(wanted, abs=1e-3)


def test_what_lies_beyond_a_rule_at_other_draws_is_not_lost(table):
    """The rule is laid out for the second of two draws; at the first an eighth of the mass lies outside."""
    design, box = chained(table, "y ~ z", "w ~ I(y**2) + z"), boxed(WHOLE, (0, 1))
    parameters = drawn(design, draws=2) | {"0.sigma": np.array([2.0, 0.5])}
    low, high = PAIR.log_mass_ends(design, parameters, box, slice(None))
    z, y = table.numbers("z"), np.linspace(-20, 20, 20_001)
    for draw, row in ((0, 0), (0, 5), (1, 0)):
        (a, on), (b, on_y, on_z) = (parameters[f"{place}.beta"][draw] for place in (0, 1))
        s, t = (parameters[f"{place}.sigma"][draw] for place in (0, 1))
        mean = b + on_y * y**2 + on_z * z[row]
        inside = norm.pdf(y, a + on * z[row], s) * (norm.cdf(1, mean, t) - norm.cdf(0, mean, t))
        assert low[draw, row] - 1e-7 <= np.log(np.trapezoid(inside, y)) <= high[draw, row] + 1e-7


def test_simulation_brackets_the_integral_and_says_that_it_is_one(table):
    """Three normals in a row, against the rectangle of the trivariate normal."""
    design = chained(table, "y ~ z", "w ~ y", "x ~ w + y")
    chain, parameters = Chain((Normal(),) * 3), drawn(design, draws=2)
    parameters = {name: np.stack([value[0], value[0] + 0.02]) for name, value in parameters.items()}
    box = boxed((-1, 1), (0, 2), (0, 1))
    assert Joint(chain.models, design, (True,) * 3).simulated
    low, high = chain.log_mass_ends(design, parameters, box, slice(None))
    first, two, three = (parameters[f"{place}.beta"][1] for place in range(3))
    sigma = [parameters[f"{place}.sigma"][1] for place in range(3)]
    into = np.array([[1, 0, 0], [two[1], 1, 0], [three[2] + three[1] * two[1], three[1], 1]])  # of the errors
    root = into * sigma
    for row in (0, 4, 9):
        mean = into @ [first @ [1, table.numbers("z")[row]], two[0], three[0]]
        rectangle = multivariate_normal(mean, root @ root.T, seed=1)
        wanted = np.log(rectangle.cdf([1, 2, 1], lower_limit=[-1, 0, 0]))
        assert low[1, row] <= wanted <= high[1, row]
    # The error goes to the side of privacy: prices take the worse end, and λ the larger probability.
    ones = np.ones(N)
    log_lik = 0.5 * chain.log_lik(design, parameters, slice(None))
    assert (low < high).all()
    extremes = reductions.extremes(chain, design, parameters, Linear(0.5 * ones, -0.5 * ones, 0 * ones), box)
    np.testing.assert_allclose(extremes.low, (log_lik - 0.5 * high).min(axis=0))
    np.testing.assert_allclose(extremes.high, (log_lik - 0.5 * low).max(axis=0))
    np.testing.assert_allclose(
        reductions.mean_mass(chain, design, parameters, box), np.exp(high).mean(axis=0)
    )


def test_a_column_that_is_not_one_link_has_no_mass(table):
    link = designs.build("w ~ y", table, secret=("y",))
    with pytest.raises(SettingError, match="'w' reads 'y', which is not one column of numbers"):
        Joint((Normal(),), ChainDesign.of([link]), (True,)).pieces()


def test_the_ends_of_a_simulation_miss_as_often_as_they_say():
    """Also where points were drawn for other parameters: half of the mass lies where a tenth of them do."""
    random, tables, pairs = np.random.default_rng(1), 2000, 64
    shares = (np.arange(pairs)[:, None] // 2 + random.random((tables, 1, pairs, 2))) / (pairs / 2)
    low, high = -1.5, 2.0
    x = norm.ppf(norm.cdf(low) + shares * (norm.cdf(high) - norm.cdf(low)))
    logs = norm.logpdf(x, 1, 0.7) + np.log(norm.cdf(1 - 2 * x) - norm.cdf(-2 * x))
    ends = _bound_mean(logs - norm.logpdf(x) + np.log(norm.cdf(high) - norm.cdf(low)), 0.05)
    y = np.linspace(low, high, 20_001)
    wanted = np.log(np.trapezoid(norm.pdf(y, 1, 0.7) * (norm.cdf(1 - 2 * y) - norm.cdf(-2 * y)), y))
    for missed in ((wanted < ends[0]).mean(), (wanted > ends[1]).mean()):
        # 5 % and four standard errors of 2000 tables: a false alarm in 30,000.
        assert missed < 0.05 + 4 * np.sqrt(0.05 * 0.95 / tables)


def test_one_far_point_leaves_a_lower_end(table):
    """Nearly all of the mass is in the box, and one point counts for fifty: the end was minus infinity."""
    logs = np.full((1, 1, 256, 2), np.log(0.9))
    logs[..., 1] += 0.1
    logs[0, 0, 7, 0] = np.log(50.0)
    low, high = _bound_mean(logs, 1e-9)
    assert -1 < low[0, 0] < np.log(0.95)
    assert high[0, 0] == 0


def test_wide_ranges_of_three_columns_have_a_price(table):
    """Draws of 12 records lie far apart: points drawn at two of them have far ratios at others."""
    design = chained(table, "y ~ z", "w ~ y", "x ~ w + y")
    chain = Chain((Normal(),) * 3)
    parameters = chain.sample(design, np.full(N, 0.3), draws=40, key=Key.from_seed(2)).parameters
    low, high = chain.log_mass_ends(design, parameters, boxed((-30, 30), (-30, 30), (-30, 30)), slice(0, 1))
    assert np.isfinite(low).all()
    assert np.median(low) > -0.5
    assert high.max() <= 0


def with_classes(records=40):
    """A chain of classes by cells and a normal that reads them; with draws."""
    random = np.random.default_rng(4)
    frame = pd.DataFrame({"s": random.choice(["a", "b"], records), "z": random.normal(size=records)})
    frame["job"] = random.choice(["no", "part", "full"], records)
    frame["y"] = (frame["job"] == "full") + 0.3 * random.normal(size=records)
    jobs = Family("dirichlet", levels=["no", "part", "full"])
    columns = {"job": Column("job ~ s", jobs), "y": Column("y ~ z + C(job)", "normal")}
    settings = Settings.of(columns)
    table = Table.of(frame)
    design = ChainDesign.of(build_links(table, [settings]), table)
    draws = settings.model.sample(design, np.ones(records), draws=20, key=Key.from_seed(1)).parameters
    return settings.model, design, draws, table


def mass_given(model, design, draws, table, place, box, **labels):
    """The probability of a link's range where a protected predictor has some label in all rows."""
    here = Table.of(table.native.assign(**labels))
    link = replace(design.links[place].encode(here), values=design.links[place].values)
    return np.exp(model.models[place].log_mass(link, part_of(draws, place), box.link(place), slice(None)))


@pytest.mark.parametrize("job", [(-np.inf, np.inf), (1, 2)], ids=["whole", "ranged"])
def test_a_column_with_classes_is_summed_over(job):
    """A range on a column that reads classes by cells was an error of NumPy's."""
    model, design, draws, table = with_classes()
    ends = np.array([job, (0.0, 1.0)]).T
    box = Interval(*(np.tile(end, (40, 1)) for end in ends), np.ones(40, np.bool_))
    assert not Joint(model.models, design, (True, True)).simulated
    low, high = model.log_mass_ends(design, draws, box, slice(5, 30))
    shares = draws["0.shares"][:, design.links[0].crossing.codes]
    wanted = sum(
        shares[..., place] * mass_given(model, design, draws, table, 1, box, job=label)
        for place, label in enumerate(["no", "part", "full"])
        if job[0] <= place <= job[1]
    )
    np.testing.assert_array_equal(low, high)
    np.testing.assert_allclose(low, np.log(wanted)[:, 5:30], rtol=1e-12)


class Counts(Model):
    """A Poisson count."""

    name = "counts"
    domain = Domain(atoms=True)

    def check(self, design):
        pass

    def sample(self, design, power, *, draws, key):
        raise NotImplementedError

    def log_lik(self, design, parameters, records):
        return poisson.logpmf(design.values[records], parameters["rate"][:, None])

    def log_mass(self, design, parameters, interval, records):
        ends = np.ceil(interval.lower[records]) - 1, np.floor(interval.upper[records])
        low, high = (poisson.cdf(end, parameters["rate"][:, None]) for end in ends)
        return np.log(high - low)

    def predict(self, design, parameters, uniforms):
        return poisson.ppf(uniforms, parameters["rate"])


def test_counts_are_simulated_without_strata(table):
    """In strata, of which few have two counts, the ends were 2 apart on the log scale, where 0.3 will do."""
    design = chained(Table.of(table.native.assign(x=np.arange(N) % 3.0)), "x ~ 1", "y ~ x")
    rate = np.linspace(0.3, 0.32, 20)
    parameters = {"0.rate": rate, "1.beta": np.tile([0.0, 2.0], (20, 1)), "1.sigma": np.full(20, 0.5)}
    chain = Chain((Counts(), Normal()))
    low, high = chain.log_mass_ends(design, parameters, boxed(WHOLE, (1, 3)), slice(0, 1))
    x = np.arange(30)
    mass = norm.cdf(3, 2 * x, 0.5) - norm.cdf(1, 2 * x, 0.5)
    wanted = np.log((poisson.pmf(x, rate[:, None]) * mass).sum(axis=1))
    assert (low[:, 0] <= wanted).all()
    assert (wanted <= high[:, 0]).all()
    assert np.max(high - low) < 0.6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "family", "second"),
    [
        ("gamma", "lognormal", "log(x)"),
        ("lognormal", "zero_lognormal", "log(x)"),
        ("zero_lognormal", "normal", "x"),
    ],
)
def test_other_families_have_the_mass_that_predictions_have(first, family, second):
    """By 20,000 predicted rows a record; four standard errors of twelve figures: a false alarm in 1,300."""
    random = np.random.default_rng(6)
    z = random.normal(size=80)
    x = np.exp(0.3 * z + 0.5 * random.normal(size=80)) * (random.random(80) < 0.8 if first[0] == "z" else 1)
    y = np.exp(0.3 * x + 0.4 * random.normal(size=80)) * (random.random(80) < 0.7 if family[0] == "z" else 1)
    table = Table.of(pd.DataFrame({"z": z, "x": x, "y": y}))
    design, models = (
        chained(table, "x ~ z", f"y ~ {second}"),
        (model_named(first, None), model_named(family, None)),
    )
    chain = Chain(models)
    parameters = chain.sample(design, np.ones(80), draws=400, key=Key.from_seed(7)).parameters
    lower, upper = np.tile([0.4, 0.5], (80, 1)), np.tile([2.0, 3.0], (80, 1))
    box = Interval(lower, upper, np.ones(80, np.bool_))
    low, high = chain.log_mass_ends(design, parameters, box, slice(10, 14))
    assert Joint(models, design, (True, True)).simulated == (first[0] == "z")
    for row, draw in ((0, 3), (1, 200), (2, 350), (3, 77)):
        drawn_values = np.ones(20_000)
        inside = np.ones(20_000, np.bool_)
        for place, (model, link, own) in enumerate(chain.links(design, parameters)):
            matrix = np.repeat(link.matrix[[10 + row]], 20_000, axis=0)
            if link.secret:
                places, columns = link.encode_secret({"x": drawn_values})
                matrix[:, places] = columns
            many = replace(link, values=np.ones(20_000), matrix=matrix)
            one = {name: value[draw] for name, value in own.items()}
            drawn_values = model.predict(many, one, random.random(20_000))
            inside &= (lower[0, place] <= drawn_values) & (drawn_values <= upper[0, place])
        error = 4 * np.sqrt(inside.mean() * (1 - inside.mean()) / 20_000)
        assert np.exp(low[draw, row]) - error <= inside.mean() <= np.exp(high[draw, row]) + error
