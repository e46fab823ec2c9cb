"""Intervals of any estimand are a function of released and public things, and as wide as they should be."""

import json
import pickle
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from helpers.corrections import CONFIDENTIAL, fitted, secrets
from helpers.reach import leaks

import hedgerow as hr
from hedgerow.errors import ReleaseError, SettingError
from hedgerow.fitted import NoisedColumn
from hedgerow.inference import bootstrap_noisy
from hedgerow.inference.bootstrap import Replay, Replayed, bootstrap, conclude_from, measure
from hedgerow.inference.statistics import write_statistics
from hedgerow.mechanism.noisy.estimate import estimate
from hedgerow.mechanism.noisy.posterior import draw_posterior
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.mechanism.noisy.rounds import release_statistics
from hedgerow.randomness import Key
from hedgerow.release.received import read_folder

LIMITS = (0.01, 1000.0)
TABLES = 20


@pytest.fixture(autouse=True)
def quiet(recwarn):
    """Unused columns and doubtful weights are warned about; here they are wanted."""


def strict(data=None, *, n=120, **changes):
    data = hr.datasets.lognormal(n, seed=2) if data is None else data
    family = changes.pop("family", "lognormal")
    standard = hr.Strict(limits=LIMITS, **changes.pop("standard", {}))
    told = {"epsilon": 2.0, "copies": 2, "draws": 100, "seed": 1} | changes
    return hr.Synthesizer("x ~ z", family, standard=standard, **told).fit(data)


@pytest.fixture(scope="module")
def noisy():
    return strict()


def two_numbers(table):
    x = np.asarray(table["x"])
    return {"mean": x.mean(), "middle": np.median(x)}


def line_of(table):
    """Intercept, slope and σ by least squares on the log scale."""
    z, y = np.asarray(table["z"]), np.log(np.asarray(table["x"]))
    X = np.column_stack([np.ones_like(z), z])
    beta = np.linalg.solve(X.T @ X, X.T @ y)
    return np.append(beta, np.sqrt(np.sum((y - X @ beta) ** 2) / (len(y) - 2)))


@pytest.mark.parametrize(
    ("found", "terms"),
    [
        (3, ["estimate"]),
        (np.float64(3), ["estimate"]),
        ([3, 4.5], ["1", "2"]),
        (np.array([[1.0, 2.0], [3.0, 4.0]]), ["1", "2", "3", "4"]),
        ({"a": 1, "b": np.array(2.0)}, ["a", "b"]),
        (pd.Series([1.0, 2.0], index=["north", "south"]), ["north", "south"]),
    ],
)
def test_an_estimator_returns_a_number_an_array_or_a_mapping(found, terms):
    names, numbers = measure(lambda table: found, None)
    assert names == terms
    assert numbers.dtype == np.float64
    assert len(numbers) == len(terms)


@pytest.mark.parametrize(
    "found",
    [
        np.nan, [1.0, np.inf], {}, "three", None, {"a": "b"}, {"a": (1.0, 0.1)},
        pd.DataFrame({"a": [1.0], "b": [2.0]}), pd.Series([1.0, 2.0], index=["a", "a"]),
    ],
)  # fmt: skip
def test_what_is_no_finite_number_is_refused(found):
    with pytest.raises(hr.HedgerowError, match="finite numbers of every copy"):
        measure(lambda table: found, None)


def test_a_code_is_no_amount_to_an_estimator():
    """As in hr.combine: −8 for a refusal is missing, in released and in simulated tables."""

    @dataclass(frozen=True, repr=False)
    class Coded(Replay):
        method, codes = "bootstrap", {"x": (-8, "refused")}

        def parameters(self, **_):
            return {}

        def runs(self, tables, copies, key):
            for _ in range(tables):
                yield self.copies[0], [self.copies[0]] * copies

    table = pd.DataFrame({"x": [1, 2, -8, 3], "z": [-8, 1, 1, 1]})
    found = conclude_from(Coded(copies=(table, table)), lambda copy: copy.mean().to_dict(), tables=20)
    assert found["estimate"].tolist() == [2.0, -1.25]


def test_what_an_estimator_writes_is_in_no_release(noisy):
    def write(table):
        table["low"] = table["x"].clip(upper=2.0)
        return table["low"].mean()

    before = [list(table.columns) for table in noisy.sample().tables]
    found = hr.intervals(noisy.sample(), write, tables=TABLES)
    same = hr.intervals(noisy.sample(), lambda table: table["x"].clip(upper=2.0).mean(), tables=TABLES)
    assert found.equals(same)
    assert [list(table.columns) for table in noisy.sample().tables] == before


def test_the_errors_of_an_amount_grow_with_it_and_those_of_a_place_do_not():
    """Copies whose spread is a tenth of what they are about, and copies of a constant spread: the interval of
    an amount twice the truth is twice as wide, that of a place as wide. 4000 tables: the ends have an error
    of a few percent, the steepness one of 0.02 of its size; bounds five times that."""
    drawn = np.random.default_rng(1)
    centre, noise = 1 + 0.1 * drawn.normal(size=(4000, 1)), 0.1 * drawn.normal(size=(4000, 8))
    made = np.stack([centre * (1 + noise), centre + noise], axis=2)
    truths = np.ones((4000, 2))
    at_truth, twice = (
        Replayed(["amount", "place"], np.full((1, 2), place), truths, made).ends(level=0.95)
        for place in (1.0, 2.0)
    )
    widths = [upper - lower for _, lower, upper in (at_truth, twice)]
    assert widths[1] / widths[0] == pytest.approx([2, 1], abs=0.2)
    assert widths[0] == pytest.approx(2 * 1.96 * np.sqrt(2) * 0.1, rel=0.1)
    assert at_truth[1][1] == pytest.approx(1 - 1.96 * np.sqrt(2) * 0.1, abs=0.02)


def test_copies_of_a_table_that_agree_count_once():
    """Eight equal copies of each table tell no more than one: ends as far out as one copy's."""
    errors = np.random.default_rng(1).normal(size=(60, 1, 1))
    found = Replayed(["a"], np.zeros((1, 1)), np.zeros((60, 1)), np.repeat(errors, 8, axis=1))
    _, lower, upper = found.ends(level=0.95)
    low, high = np.quantile(errors, [0.025, 0.975], method="weibull")
    assert [lower[0], upper[0]] == pytest.approx([-high, -low])


def test_intervals_come_as_a_table_with_a_row_for_each_term(noisy, monkeypatch):
    monkeypatch.setattr(bootstrap_noisy, "_DRAWS", 64)
    seen = []
    with hr.watch(lambda *told: seen.append(told)):
        found = hr.intervals(noisy.sample(), two_numbers, tables=TABLES)
    assert seen[-1] == ("tables simulated and released again", TABLES, TABLES)
    assert list(found.columns) == ["term", "estimate", "lower", "upper", "method"]
    assert list(found["term"]) == ["mean", "middle"]
    copies = [two_numbers(copy) for copy in noisy.sample().tables]
    assert found["estimate"][0] == pytest.approx(np.mean([copy["mean"] for copy in copies]))
    assert (found["lower"] < found["estimate"]).all()
    assert (found["estimate"] < found["upper"]).all()


def test_nothing_confidential_can_be_reached_from_a_release(noisy):
    done = noisy._fitted
    values = done.design.values
    hidden = {
        "outcome": values,
        "log outcome": np.log(values),
        "response": done.outcomes[0],
        "key": done.key._root,
        "mean": float(values.mean()),
    }
    assert leaks(noisy.sample(), hidden, (NoisedColumn,)) == set()
    weighted = fitted("no target", copies=2)
    assert weighted.sample().replay.corrected
    assert leaks(weighted.sample(), secrets(weighted), CONFIDENTIAL) == set()


def test_a_release_can_be_pickled_and_then_holds_copies_and_guarantee_alone(noisy):
    release = noisy.sample()
    again = pickle.loads(pickle.dumps(release))
    assert again.guarantee == release.guarantee
    assert all(one.equals(other) for one, other in zip(again.tables, release.tables, strict=True))
    with pytest.raises(SettingError, match="does not say how it was made"):
        hr.intervals(again, two_numbers, tables=TABLES)


COLUMNS = {"x": hr.Column("x ~ z"), "y": hr.Column("y ~ age + log(x)")}


@pytest.mark.slow
@pytest.mark.parametrize(("formula", "left_out"), [("x ~ z + age", ["age", "y"]), (COLUMNS, ["age"])])
def test_a_column_left_out_cannot_be_reached_from_a_release(formula, left_out):
    """A predictor that copies do not have is in no replay of theirs, and in no memory behind a table."""
    data = hr.datasets.lognormal(120, seed=2)
    data["age"], data["y"] = (np.random.default_rng(3).uniform(1, 9, (2, 120)) + 0.1) / 3
    limits = LIMITS if isinstance(formula, str) else {"x": LIMITS, "y": LIMITS}
    synth = hr.Synthesizer(formula, standard=hr.Strict(limits=limits), epsilon=2.0, draws=100, seed=1)
    release = synth.fit(data, left_out=left_out).sample()
    assert leaks(release, {name: data[name].to_numpy() for name in left_out}, ()) == set()
    with pytest.raises(SettingError, match="a formula or rule reads 'age', which the copies do not have"):
        hr.intervals(release, two_numbers, tables=TABLES)


@pytest.mark.slow
def test_another_outcome_with_the_same_statistics_gives_the_same_intervals():
    data = hr.datasets.lognormal(n=200, seed=2)
    synth, other = strict(data), strict(data.assign(x=1.0))
    object.__setattr__(other._fitted, "released", synth._fitted.released)
    one, two = (hr.intervals(each, two_numbers, tables=TABLES) for each in (synth, other))
    assert one.equals(two)
    assert one.equals(synth.intervals(two_numbers, tables=TABLES))
    assert one.equals(hr.intervals(synth.sample(), two_numbers, tables=TABLES))


def test_what_cannot_be_replayed_says_why(noisy):
    with pytest.raises(hr.HedgerowError, match="debias=True"):
        hr.intervals(fitted("no target", debias=False).sample(), two_numbers)
    plain = hr.Synthesizer("x ~ z", standard=hr.Unweighted(), seed=1, draws=100)
    with pytest.raises(hr.HedgerowError, match=r"hr\.combine"):
        hr.intervals(plain.fit(hr.datasets.lognormal(100, seed=1)), two_numbers)
    with pytest.raises(hr.HedgerowError, match="a release, a fitted synthesizer or a folder"):
        hr.intervals(pd.DataFrame())
    with pytest.raises(hr.HedgerowError, match="function of a table"):
        hr.intervals(noisy.sample(), "mean")
    for wrong, message in (({"level": 95}, "level must lie"), ({"tables": 19}, "tables must be")):
        with pytest.raises(hr.HedgerowError, match=message):
            hr.intervals(noisy.sample(), two_numbers, **wrong)
    names = iter(["a", "b"])
    with pytest.raises(hr.HedgerowError, match="same terms of every table"):
        hr.intervals(noisy.sample(), lambda table: {next(names): 1.0}, tables=TABLES)


@pytest.mark.slow
def test_a_receiver_needs_the_public_folder_alone(tmp_path):
    """Categories, codes and a spelled-out formula: the folder gives what the release in memory gives."""
    drawn = np.random.default_rng(3)
    data = hr.datasets.lognormal(300, seed=2).assign(
        region=drawn.choice(["north", "south"], 300), code=drawn.choice([1, 2, 9], 300)
    )
    data.to_csv(tmp_path / "data.csv", index=False)
    told = {"standard": hr.Strict(limits=LIMITS), "epsilon": 2.0, "copies": 2, "sampling": "stratified"}
    plan = hr.Plan(
        formula="x ~ z + region + C(code)", data=str(tmp_path / "data.csv"), seed=1,
        outputs=hr.Outputs(statistics=True), **told,
    )  # fmt: skip
    hr.make_release(plan, tmp_path / "out")

    def by_region(table):
        return (
            pd.DataFrame({name: np.asarray(table[name]) for name in ("x", "region")})
            .groupby("region")["x"]
            .mean()
        )

    there = hr.intervals(tmp_path / "out" / "public", by_region, tables=TABLES)
    assert hr.intervals(str(tmp_path / "out"), by_region, tables=TABLES).equals(there)
    again = hr.Synthesizer("x ~ z + region + C(code)", seed=1, **told).fit(pd.read_csv(tmp_path / "data.csv"))
    here = hr.intervals(again.sample(), by_region, tables=TABLES)
    assert list(there["term"]) == ["north", "south"]
    for name in ("estimate", "lower", "upper"):
        assert there[name].to_numpy() == pytest.approx(here[name].to_numpy(), rel=1e-6)
    own = hr.intervals(tmp_path / "out").set_index("parameter")
    assert own["lower"]["z"] < 1 < own["upper"]["z"]
    (tmp_path / "out" / "public" / "statistics.json").unlink()
    with pytest.raises(hr.HedgerowError, match=r"statistics\.json cannot be read"):
        hr.intervals(tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize(("copies", "sampling", "times"), [(1, "independent", 3), (4, "independent", 1.5)])
def test_next_to_no_noise_gives_the_known_width(copies, sampling, times):
    """ε = 500: the statistics are those of least squares, a posterior draw adds their variance V once more
    and a copy's own errors again: V(1 + 2/m) for m copies. 400 tables, the ends' standard error 5 % at most;
    bound four of them, six widths: a false alarm in 3000."""
    synth = strict(n=400, epsilon=500.0, copies=copies, sampling=sampling)
    found = hr.intervals(synth, line_of, tables=400)
    X = np.column_stack([np.ones(400), np.asarray(synth.sample().tables[0]["z"])])
    errors = np.append(np.sqrt(np.diag(np.linalg.inv(X.T @ X))), 1 / np.sqrt(2 * 398))
    sigma = synth.intervals()["estimate"].to_numpy()[2]
    width = (found["upper"] - found["lower"]).to_numpy() / sigma
    assert width / (2 * 1.96 * np.sqrt(times) * errors) == pytest.approx(1, abs=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["zeros", "margin", "projected", "classes", "gaussian"])
def test_every_kind_of_noisy_release_is_replayed(case):
    """The interval of the mean holds the mean of the copies it is about, and not ten times it."""
    data = hr.datasets.lognormal(1000, seed=2)
    told = {
        "zeros": {"family": "zero_lognormal"},
        "margin": {"standard": {"margin": hr.Margin(0.3)}},
        "projected": {"sampling": "projected"},
        "classes": {
            "standard": {
                "relation": "range", "range": hr.Brackets([0.0, 10.0, 1000.0], column="class"),
                "inside": True,
            }
        },
        "gaussian": {"standard": {"noise": "gaussian"}, "delta": 1e-6},
    }[case]  # fmt: skip
    if case == "zeros":
        data["x"] = np.where(np.random.default_rng(1).uniform(size=1000) < 0.2, 0.0, data["x"])
    if case == "classes":
        data["class"] = np.where(data["x"] < 10, 0.0, 10.0)
    synth = strict(data, **told)
    found = hr.intervals(synth, two_numbers, tables=TABLES)
    assert (found["lower"] < found["estimate"]).all()
    assert (found["upper"] < 2 * found["estimate"]).all()
    assert found["lower"][1] < data["x"].median() < found["upper"][1]


@pytest.mark.slow
def test_a_posterior_moves_with_its_estimate():
    """What spares drawing the posterior of each simulated table: over 30 tables its mean and the estimate are
    correlated above 0.97, and differ by less than a third of what either moves."""
    n, drawn = 500, np.random.default_rng(1)
    X = np.column_stack([np.ones(n), drawn.normal(size=n)])
    recipe = make_recipe(X, low=-3.0, high=9.0, epsilon=1.0)
    means, places = [], []
    for number in range(30):
        y, key = 3 + X[:, 1] + drawn.normal(size=n), Key.from_seed(number)
        released = release_statistics(recipe, y, np.ones(n, dtype=bool), key=key)
        found, own = estimate(released), draw_posterior(released, draws=320, key=key).parameters
        means.append([*own["beta"].mean(axis=0), np.log(own["sigma"]).mean()])
        places.append([*found.beta, np.log(found.sigma)])
    means, places = np.array(means), np.array(places)
    for one, two in zip(means.T, places.T, strict=True):
        assert np.corrcoef(one, two)[0, 1] > 0.97
        assert (one - two).std() < one.std() / 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["strict by statistics", "adp"])
def test_intervals_cover_slope_sigma_and_a_group_mean(name):
    """40 samples, n = 400: 95 % intervals for the slope, σ and the mean of x in a public group, two copies.
    Intervals that cover in 93 % of all samples do so in fewer than 30 of 40 with probability 0.0003 a term:
    a false alarm in 500 over the six."""

    def terms(table):
        x, z = np.asarray(table["x"]), np.asarray(table["z"])
        return np.append(line_of(table)[1:], x[z > 2].mean())

    covered = np.zeros(3)
    for seed in range(40):
        data = hr.datasets.lognormal(400, seed=2000 + seed)
        if name == "adp":
            synth = fitted("adp", data, epsilon=11.4, copies=2, draws=300, seed=seed)
        else:
            synth = strict(data, epsilon=1.0, seed=seed)
        found = hr.intervals(synth, terms, tables=40)
        z = data["z"].to_numpy()
        truth = np.array([1.0, 1.0, np.exp(z[z > 2] + 1.5).mean()])
        covered += (found["lower"] <= truth) & (truth <= found["upper"])
    assert (covered >= 30).all()


@pytest.mark.slow
def test_several_columns_are_replayed_from_memory_and_from_a_folder(tmp_path):
    """A slope between two protected columns, which is 0.7: a false alarm in 100 at most at this one seed."""
    drawn = np.random.default_rng(1)
    data = pd.DataFrame({"age": drawn.normal(40, 10, 600)})
    data["wage"] = np.exp(6 + 0.01 * data["age"] + 0.5 * drawn.normal(size=600))
    data["bonus"] = np.exp(0.7 * np.log(data["wage"]) + 0.4 * drawn.normal(size=600))
    columns = {"wage": hr.Column("wage ~ age"), "bonus": hr.Column("bonus ~ age + log(wage)")}
    standard = hr.Strict(limits={"wage": (10.0, 1e5), "bonus": (1.0, 1e4)})
    synth = hr.Synthesizer(columns, standard=standard, epsilon=4.0, copies=4, seed=1).fit(data)
    hidden = {"wage": data["wage"].to_numpy(), "key": synth._fitted.key._root}
    hidden["log bonus"] = np.log(data["bonus"].to_numpy())
    assert leaks(synth.sample(), hidden, ()) == set()

    def slope(table):
        wage, bonus = (np.log(np.asarray(table[name])) for name in ("wage", "bonus"))
        return np.polyfit(wage, bonus, 1)[0]

    found = hr.intervals(synth.sample(), slope, level=0.99, tables=TABLES)
    assert found["lower"][0] < 0.7 < found["upper"][0]
    assert found["upper"][0] - found["lower"][0] < 0.4
    assert list(hr.intervals(synth.sample())["column"].unique()) == ["wage", "bonus"]
    data.to_csv(tmp_path / "data.csv", index=False)
    plan = hr.Plan(
        formula=columns, standard=standard, epsilon=4.0, copies=2, seed=1, data=str(tmp_path / "data.csv"),
        outputs=hr.Outputs(statistics=True),
    )  # fmt: skip
    hr.make_release(plan, tmp_path / "out")
    there = hr.intervals(tmp_path / "out", slope, level=0.99, tables=TABLES)
    assert there["lower"][0] < 0.7 < there["upper"][0]


def test_copies_beyond_those_released_are_not_asked_for(noisy):
    """Sets of as many copies as were released: their number is a multiple of it, eight at least."""
    asked = []

    class Counted(type(noisy.sample().replay)):
        def runs(self, tables, copies, key):
            asked.append((tables, copies))
            for _ in range(tables):
                yield self.copies[0], [self.copies[number % 2] for number in range(copies)]

    replay = noisy.sample().replay
    own = Counted(replay.settings, replay.design, replay.released, copies=replay.copies[:1] * 3)
    found = bootstrap(own, lambda table: 1.0, tables=5, key=Key.from_seed(1))
    assert asked == [(5, 9)]
    assert found.made.shape == (5, 9, 1)


def test_statistics_that_were_tampered_with_have_one_clear_error(noisy, tmp_path):
    told = {"standard": hr.Strict(limits=LIMITS), "epsilon": 2.0, "copies": 2, "draws": 100}
    (tmp_path / "plan.yaml").write_text(hr.Plan(formula="x ~ z", **told).public().text())
    for number, copy in enumerate(noisy.sample().tables, 1):
        copy.to_csv(tmp_path / f"synthetic-copy-{number}.csv", index=False)
    file = tmp_path / "statistics.json"
    whole = write_statistics("x ~ z", "lognormal", noisy.statistics_)
    file.write_text(whole)
    assert isinstance(read_folder(tmp_path), Replay)
    document = json.loads(whole)
    damaged = [{**document, "statistics": 2}, {**document, "basis": [[1.0, 2.0]]}, []]
    damaged += [{key: value for key, value in document.items() if key != left} for left in document]
    refused = []
    for content in (*map(json.dumps, damaged), whole[:200]):
        file.write_text(content)
        try:
            read_folder(tmp_path)
        except ReleaseError as error:
            refused.append(str(error))
    assert "another version" in refused.pop(0)
    assert all("changed or cut short" in said for said in refused)
    assert len(refused) == len(damaged) - 1  # the family stands in the plan as well, and is not read here


def test_a_folder_of_drawn_copies_says_who_has_intervals(tmp_path):
    (tmp_path / "plan.yaml").write_text(hr.Plan(formula="x ~ z", epsilon=2.0).public().text())
    with pytest.raises(hr.HedgerowError, match="drawn from a posterior"):
        hr.intervals(tmp_path)
