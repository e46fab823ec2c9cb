"""Combining copies: the rules against synthpop's figures, by hand and by simulation; analyses; refusals."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats

import hedgerow as hr
from hedgerow import receive
from hedgerow.errors import DataError, SettingError
from hedgerow.inference.combine import choose_rule_of
from hedgerow.privacy.bounds import Statement
from hedgerow.privacy.guarantee import Guarantee
from hedgerow.privacy.settings import Settings
from hedgerow_studies.combining import SAMPLED, cover, cover_missing, cover_sampled, cover_strict

LIMITED = hr.Strict(limits=(1e-3, 1e4))

# Standard errors that synthpop's summary(fit, population.inference = TRUE) has for lm(y ~ x) on the copies of
# `fixed`: its lines of arithmetic, from its published source, run in R 4.2.2 on the fits of R's lm (synthpop
# itself was not installed). By rows of the original and kind of synthesis: intercept, x.
SYNTHPOP = {
    (20, "simple"): (0.1197737525918062, 0.0999851968483167),
    (20, "proper"): (0.133911126357760, 0.111786848448267),
    (20, "partial"): (0.1131959796836426, 0.0905018510016492),
    (30, "simple"): (0.1037271124510964, 0.0865897204730301),
    (30, "proper"): (0.114674637529096, 0.095728537836932),
    (30, "partial"): (0.0960567117075055, 0.0754408717972264),
}


# What mice 3.15.0 (Reiter's rule in its pool.syn, R 4.2.2) prints for lm(y ~ x) on the copies of `fixed`:
# std.error, df, 2.5 % and 97.5 % of intercept and x.
MICE = [
    (0.11319597968364258, 77.82988318091827, 0.7523744179460977, 1.2031017042168692),
    (0.09050185100164919, 279.53576794976772, 0.3346152128753851, 0.6909185911671163),
]

# The example of Raghunathan, Reiter and Rubin's rule that the manual of gFormulaMI 1.0.0 prints, ten tables
# (https://jwb133.github.io/gFormulaMI/reference/syntheticPool.html, by J. Bartlett): estimate, within
# and between variance, then total, df and ends of the 95 % interval.
PRINTED = [
    (-0.02071539, 0.0008125695, 0.001763004, 0.001126735, 3.038045, -0.1267874, 0.08535658),
    (2.96593502, 0.0016251389, 0.004203106, 0.002998278, 3.784951, 2.8104386, 3.12143146),
]


@pytest.fixture(scope="module")
def fixed() -> list[pd.DataFrame]:
    rows = np.arange(1, 21)
    return [
        pd.DataFrame({"x": rows / 10, "y": 1 + 0.05 * rows + 0.3 * np.sin(7 * rows + 3 * copy)})
        for copy in (1, 2, 3)
    ]


def promise(copies: int, *, corrected: int | None = None, counted: bool = False, **asked) -> Guarantee:
    """The guarantee of a plan, without a fit."""
    settings = Settings.of("x ~ z", copies=copies, **asked)
    statement = Statement(delta=0.0, confidence=0.95, draws=100, independent=True)
    told = {"protected": "x", "passed_through": ["z"], "corrected": corrected, "counted": counted}
    return Guarantee.of(settings, statement, **told)


@pytest.fixture(scope="module")
def strict() -> hr.Release:
    """Five copies of a small table with two public groups, made here by the law of strict ones."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=300)
    public = {
        "z": z,
        "group": np.where(np.arange(300) % 3 == 0, "north", "south"),
        "w": np.linspace(0.5, 2, 300),
    }
    slopes = 0.8 + 0.1 * rng.normal(size=5)
    tables = [
        pd.DataFrame({"x": np.exp(slope * z + 0.7 * rng.normal(size=300)), **public}) for slope in slopes
    ]
    return hr.Release(tables, promise(5, standard=LIMITED, epsilon=1.0))


@pytest.mark.parametrize(("rows", "rule"), SYNTHPOP)
def test_rules_give_synthpops_standard_errors(fixed, rows, rule):
    fits = [hr.combine([table], "y ~ x", rule="simple") for table in fixed]
    estimates = [fit["estimate"] for fit in fits]
    variances = [fit["std_error"] ** 2 / 2 for fit in fits]  # of one copy: T = 2u
    found = receive.combine(estimates, variances, rule=rule, ratio=20 / rows)
    np.testing.assert_allclose(found["estimate"], (0.977738061081484, 0.512766902021251), rtol=1e-12)
    np.testing.assert_allclose(found["std_error"], SYNTHPOP[rows, rule], rtol=1e-12)
    if rows == 20:
        again = hr.combine(fixed, "y ~ x", rule=rule)
        np.testing.assert_allclose(again["std_error"], SYNTHPOP[rows, rule], rtol=1e-12)


def test_partial_is_the_rule_of_mice(fixed):
    found = hr.combine(fixed, "y ~ x", rule="partial")
    np.testing.assert_allclose(found[["std_error", "df", "lower", "upper"]], MICE, rtol=1e-11)


@pytest.mark.parametrize("printed", PRINTED)
def test_full_is_the_rule_of_a_published_example(printed):
    mean, within, between, *expected = printed
    apart = np.tile([-1.0, 1.0], 5)
    found = receive.combine(
        mean + apart * np.sqrt(between / apart.var(ddof=1)), np.full(10, within), rule="full"
    )
    told = [found["std_error"] ** 2, found["df"], found["lower"], found["upper"]]
    np.testing.assert_allclose(np.ravel(told), expected, rtol=1e-5)  # of seven digits


@pytest.mark.parametrize(
    ("rule", "given", "total", "df"),
    [  # q = 1, 3, 5, u = 1, 2, 3: ū = 2, b = 4, m = 3
        ("partial", None, 2 + 4 / 3, 2 * (1 + 2 / (4 / 3)) ** 2),
        ("full", None, 4 * 4 / 3 - 2, 2 * (1 - 2 / (16 / 3)) ** 2),
        ("noisy", None, 2 + 4 / 3, 2 * 2.5**2),  # b = 2c: no noise to be seen
        ("noisy", 1.0, 2 + (4 - 2) + 4 / 3, 2 * (1 + 0 / (16 / 3)) ** 2),
        ("noisy", 1.5, 2 + (4 - 3) + 4 / 3, 2 * ((13 / 3) / (16 / 3)) ** 2),
        ("projected", None, 16 / 3, 2),
        ("projected", 0.5, 1.5 + 16 / 3, 2 * ((1.5 + 16 / 3) / (16 / 3)) ** 2),
        ("simple", None, 2 * (1 + 1 / 3), np.inf),
        ("proper", None, 2 * (1 + 2 / 3), np.inf),
    ],
)
def test_rules_by_hand(rule, given, total, df):
    parts = None if given is None else [given] * 3
    found = receive.combine([1, 3, 5], [1, 2, 3], rule=rule, level=0.9, given=parts)
    assert found["estimate"] == [3]
    np.testing.assert_allclose(found["std_error"] ** 2, total)
    np.testing.assert_allclose(found["df"], df)
    reach = stats.t.ppf(0.95, df) * np.sqrt(total)
    np.testing.assert_allclose([found["lower"][0], found["upper"][0]], [3 - reach, 3 + reach], rtol=1e-10)


def test_full_synthesis_has_no_negative_variance():
    found = receive.combine([1, 1.1, 1.2], [4, 4, 4], rule="full", ratio=0.5)  # Reiter 2002: ū k/n instead
    assert (found["std_error"], found["df"]) == (np.sqrt([2]), [2])


def test_quantiles_of_t_are_scipys():
    for df in (0.4, 1, 2.5, 7, 30, 400, 1000, 1001, 1e5, 1e9):
        for share in (0.55, 0.8, 0.95, 0.975, 0.9995):
            assert receive.t_quantile(share, df) == pytest.approx(stats.t.ppf(share, df), rel=1e-10)
    assert receive.t_quantile(0.975, np.inf) == pytest.approx(stats.norm.ppf(0.975), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "copies", "noise", "least", "most"),
    [  # 4000 tables: a standard error of 0.0035; ends are four of them from what is promised or was found
        ("partial", 5, 0, 0.936, 0.964),
        ("simple", 1, 0, 0.93, 0.964),  # a normal quantile, and 40 rows
        ("simple", 5, 0, 0.93, 0.964),
        ("proper", 1, 0, 0.93, 0.964),
        ("proper", 5, 0, 0.93, 0.964),
        ("full", 20, 0, 0.98, 1),  # few degrees of freedom, and no negative variance: cautious
        ("projected", 3, 1, 0.936, 0.964),  # exact
        ("projected", 10, 1, 0.936, 0.964),
        ("noisy", 5, 0, 0.936, 0.975),
        ("noisy", 10, 0, 0.936, 0.982),
        ("noisy", 10, 0.25, 0.936, 0.975),
        ("noisy", 10, 1, 0.936, 0.97),
        ("noisy", 10, 4, 0.936, 0.97),
        ("noisy", 5, 1, 0.926, 0.958),
        ("partial", 10, 4, 0.6, 0.8),  # what the rule for noisy copies is for
    ],
)
def test_intervals_cover_in_a_normal_model(rule, copies, noise, least, most):
    assert least <= cover(rule, copies, noise) <= most


@pytest.mark.slow
def test_strict_copies_cover_what_the_model_has_and_what_it_has_not():
    """Over 100 tables, a standard error of 0.022: for each of six false alarm 0.0015 at a true 0.95."""
    inside = pd.DataFrame([cover_strict(seed, rows=400, sigma=False) for seed in range(100)]).mean()
    assert set(inside.index) >= {"z", "C(group)[T.b]", "b", "pooled slope"}
    assert (inside >= 0.88).all(), inside


@pytest.mark.slow
def test_reiters_rule_holds_for_stratified_copies():
    """Over 100 tables, a standard error of 0.022: for each of five false alarm 0.0015 at a true 0.95."""
    inside = pd.DataFrame([cover_sampled(seed, "stratified") for seed in range(100)]).mean()
    measured = inside[inside.index.str.startswith("partial")]
    assert len(measured) == 5
    assert (measured >= 0.88).all(), inside


@pytest.mark.parametrize(
    ("asked", "rule", "words"),
    [
        ({"standard": hr.Unweighted(), "copies": 2}, "partial", "Reiter"),
        ({"standard": hr.Unweighted(), "copies": 1}, "proper", "the one copy"),
        ({"standard": LIMITED, "epsilon": 1.0, "copies": 1}, "noisy", "ask for more"),
        ({"copies": 2}, "partial", "bias that copies do not show"),
        ({"copies": 1}, "partial", "One copy does not show"),
        ({"copies": 2, "debias": True, "corrected": 2}, "partial", "draws were corrected"),
        (
            {"standard": LIMITED, "epsilon": 1.0, "copies": 5},
            "noisy",
            "which shows in how much copies differ",
        ),
        ({"standard": LIMITED, "epsilon": 1.0, "copies": 2}, "noisy", "2 copies show it poorly"),
        (
            {"standard": LIMITED, "epsilon": 1.0, "sampling": "projected", "copies": 5},
            "projected",
            "of their own",
        ),
        (
            {"standard": LIMITED, "epsilon": 1.0, "sampling": "stratified", "copies": 5},
            "projected",
            "of their own",
        ),
        (
            {"standard": LIMITED, "epsilon": 1.0, "counted": True, "copies": 5},
            "noisy",
            "counts of the margin is the same in all copies",
        ),
    ],
)
def test_a_release_says_which_rule_fits(asked, rule, words):
    tables = [pd.DataFrame({"x": np.arange(5.0) + copy}) for copy in range(asked["copies"])]
    release = hr.Release(tables, promise(**asked))
    fitting = choose_rule_of(release)
    assert fitting.rule == rule
    assert words in fitting.why
    assert f"({rule})" in fitting.why
    if len(tables) > 1:
        found = hr.combine(release, "mean of x")
        assert (set(found["rule"]), found.attrs["why"]) == ({rule}, fitting.why)
        asked_for = hr.combine(release, "mean of x", rule="simple").attrs["why"]
        assert asked_for == f"The rule simple was asked for. {fitting.why}"


@pytest.mark.parametrize(
    ("asked", "rule", "words"),
    [
        ({"standard": hr.Unweighted(), "copies": 5}, "noisy", "also where cells were missing"),
        ({"standard": hr.Unweighted(), "copies": 3}, "noisy", "3 copies show it poorly"),
        ({"standard": hr.Unweighted(), "copies": 5, "sampling": "stratified"}, "projected", "of their own"),
        ({"standard": hr.Unweighted(), "copies": 1}, "proper", "taken for observed ones"),
        ({"copies": 5}, "partial", "taken for observed ones"),
    ],
)
def test_values_in_place_of_missing_ones_are_no_observed_ones(asked, rule, words):
    """Reiter's rule would take them for such."""
    column = hr.Column("x ~ z", missing="withheld")
    settings = Settings.of({"x": column}, **asked)
    statement = Statement(delta=0.0, confidence=0.95, draws=100, independent=True)
    guarantee = Guarantee.of(settings, statement, protected="x", passed_through=["z"])
    fitting = choose_rule_of(hr.Release([pd.DataFrame({"x": [1.0]})] * asked["copies"], guarantee))
    assert fitting.rule == rule
    assert words in fitting.why
    assert "also where a cell was missing" in " ".join(guarantee.processing())
    strict = Settings.of({"x": column}, standard=hr.Strict(limits={"x": (1e-3, 1e4)}), epsilon=1.0, copies=5)
    assert Guarantee.of(strict, statement, protected="x", passed_through=["z"]).processing() == ()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::hedgerow.HedgerowWarning")  # of how many are missing
def test_missing_outcomes_are_covered_as_often_as_observed_ones():
    """Over 100 tables, a standard error of 0.022: for each of ten false alarm 0.0015 at a true 0.95."""
    inside = pd.DataFrame(
        [
            pd.concat([cover_missing(seed, way).add_prefix(f"{way}, ") for way in SAMPLED])
            for seed in range(100)
        ]
    ).mean()
    measured = inside[~inside.index.str.contains("partial")]
    assert len(measured) == 10
    assert (measured >= 0.88).all(), inside


def test_variance_of_protected_values_is_told_from_that_of_public_columns(strict):
    """By influence and by exchanging rows: nearly the same, and 0 for what is public."""
    tables = strict.tables
    n = len(tables[0])
    x = np.stack([table["x"] for table in tables])
    expected = x.var(axis=0, ddof=1).sum() / n**2

    def means(table):
        return {"x": table["x"].mean(), "z": table["z"].mean()}

    columns = [{name: table[name].to_numpy() for name in ("x", "z")} for table in tables]
    found = receive.estimate(columns, means, given=True)
    assert found.given.mean(axis=0)[0] == pytest.approx(expected, rel=0.25)  # 50 groups, a heavy tail
    np.testing.assert_array_equal(found.given[:, 1], 0)
    # A group of one row each: exactly, up to the centring at the mean change.
    few = [{"x": table["x"].to_numpy()[:40]} for table in tables[:2]]
    change = (few[1]["x"] - few[0]["x"]) / 40
    alone = receive.estimate(few, lambda table: table["x"].mean(), given=True)
    np.testing.assert_allclose(alone.given[0], change.var(ddof=1) * 40 / 2)


def test_leaving_out_rows_gives_the_variance_of_a_mean(strict):
    columns = [{"x": table["z"].to_numpy()[:50]} for table in strict.tables]
    found = receive.estimate(columns, lambda table: table["x"].mean(), given=False)
    np.testing.assert_allclose(found.variances[0], columns[0]["x"].var(ddof=1) / 50)  # groups of one row
    assert found.given is None


def test_functions_tables_and_formulas_agree(strict):
    mean = hr.combine(strict, "mean of x")
    line = hr.combine(strict, "x ~ 1")
    own = hr.combine(strict, lambda table: {"m": (table["x"].mean(), table["x"].var() / len(table))})
    for found in (line, own):
        np.testing.assert_allclose(found["estimate"], mean["estimate"])
    np.testing.assert_allclose(line["std_error"], mean["std_error"])
    np.testing.assert_allclose(own["std_error"], mean["std_error"], rtol=0.1)  # exchanged rows, not influence
    given = hr.combine(strict, (line["estimate"].to_numpy() * np.ones((5, 1)), np.full((5, 1), 0.1)))
    assert given["std_error"][0] == pytest.approx(np.sqrt(0.1))
    parts = hr.combine(strict, ([1, 3, 5], [1, 2, 3], [1.5, 1.5, 1.5]))  # as by hand above
    assert parts["std_error"][0] == pytest.approx(np.sqrt(13 / 3))


def test_a_series_has_names_and_a_group_is_compared_with_itself_alone(strict):
    found = hr.combine(strict, lambda table: table.groupby("group")["x"].mean())
    by_name = hr.combine(strict, lambda table: table.groupby("group")["x"].mean().to_dict())
    assert list(found["term"]) == ["north", "south"]
    pd.testing.assert_frame_equal(found, by_name)
    assert list(hr.combine(strict, lambda table: table["x"].mean())["term"]) == ["estimate"]
    renamed = [strict.tables[0], strict.tables[1].replace({"group": {"south": "west"}})]
    with pytest.raises(SettingError, match="other terms on another copy"):
        hr.combine(renamed, lambda table: table.groupby("group")["x"].mean(), rule="partial")
    with pytest.raises(SettingError, match="by name"):
        hr.combine(strict, lambda table: pd.Series([1.0, 2.0], index=["a", "a"]))


def test_what_a_function_writes_into_its_table_stays_there(strict):
    def cap(table):
        table["low"] = table["x"].clip(upper=2.0)
        table.loc[table["z"] > 0, "x"] = 0.0
        return table["low"].mean()

    before = [table.copy() for table in strict.tables]
    found = hr.combine(strict, cap)
    same = hr.combine(strict, lambda table: table["x"].clip(upper=2.0).mean())
    pd.testing.assert_frame_equal(found, same)
    for table, other in zip(strict.tables, before, strict=True):
        pd.testing.assert_frame_equal(table, other)


def test_weighted_means_totals_and_shares(fixed):
    table = pd.DataFrame(
        {"x": [1.0, 2, 4, np.nan], "g": ["a", "a", "b", "b"], "w": [1.0, 3, 2, 1], "h": [1, 1, 1, 0]}
    )
    found = hr.combine([table], "mean of x", rule="simple", weights="w").iloc[0]
    assert found.estimate == 15 / 6
    added = np.array([1, 3, 2]) * (np.array([1, 2, 4]) - 2.5) / 6
    assert found.std_error**2 / 2 == pytest.approx(4 / 3 * added @ added)  # of four rows, one without a value
    totals = hr.combine([table], "total of x by g", rule="simple", weights="w")
    assert list(totals["term"]) == ["a", "b"]
    assert list(totals["estimate"]) == [7, 8]
    shares = hr.combine([table], "share of h", rule="simple", weights="w")
    assert list(shares["term"]) == ["h = 0", "h = 1"]
    np.testing.assert_allclose(shares["estimate"], [1 / 7, 6 / 7])


def test_generalised_linear_models_are_those_of_statsmodels(strict):
    import statsmodels.formula.api as smf
    from statsmodels.api import families

    tables = [table.assign(high=table["x"] > 3) for table in strict.tables]
    found = hr.combine(tables, "high ~ z", rule="partial", family="binomial")
    fits = [smf.glm("high ~ z", t.assign(high=t.high * 1), family=families.Binomial()).fit() for t in tables]
    q, u = np.array([fit.params for fit in fits]), np.array([fit.bse**2 for fit in fits])
    np.testing.assert_allclose(found["estimate"], q.mean(axis=0))
    np.testing.assert_allclose(found["std_error"] ** 2, u.mean(axis=0) + q.var(axis=0, ddof=1) / 5)
    noisy = hr.combine(tables, "high ~ z", rule="noisy", family="binomial")
    assert (noisy["std_error"] >= found["std_error"] * 0.999).all()
    for outcome in ("x > 3", "I(x > 3)", "I(1 * (x > 3))"):  # the log odds of yes, however it is written
        same = hr.combine(strict, f"{outcome} ~ z", rule="partial", family="binomial")
        np.testing.assert_allclose(same["estimate"], found["estimate"])
    assert list(hr.combine(strict, "log(x) ~ z + C(group)", weights="w")["term"])[1] == "C(group)[T.south]"


@pytest.mark.parametrize(
    ("what", "more", "kind", "words"),
    [
        ("mean of y", {}, DataError, "no column 'y'"),
        ("mean of group", {}, DataError, "holds no numbers"),
        ("median of x", {}, SettingError, "neither a formula nor a table"),
        ("mean of x", {"weights": "v"}, DataError, "no column 'v'"),
        ("mean of x", {"family": "poisson"}, SettingError, "family goes with a formula"),
        ("x ~ y", {}, SettingError, "name 'y' is not defined"),
        ("group ~ z", {"family": "binomial"}, SettingError, "left side has classes"),
        ("x ~ z", {"family": "posson"}, SettingError, "not one of gaussian"),
        ("mean of x", {"level": 1.2}, SettingError, "between 0 and 1"),
        ("mean of x", {"rule": "rubin"}, SettingError, "'rubin' is not one of partial"),
        (lambda table: {"a": np.nan}, {}, SettingError, "finite number by name"),
        (lambda table: 1.0, {"weights": "w"}, SettingError, "weights go with a formula"),
        (([1, 2], [1, 1, 1]), {}, SettingError, "Give one for each"),
        (([1, 2],), {}, SettingError, "Give estimates and variances"),
        (([1, 2, [3]], [1, 1, 1]), {}, SettingError, "must be numbers"),
        (([], []), {}, SettingError, "Give one for each"),
        ((np.ones((2, 2, 2)), np.ones((2, 2, 2))), {}, SettingError, "a row for each copy"),
        ("mean of x", {"level": "high"}, SettingError, "between 0 and 1"),
        ("z ~ x", {"family": "binomial"}, DataError, "from 0 to 1, and a copy has others"),
        ("z ~ x", {"family": "poisson"}, DataError, "from 0 up, and a copy has others"),
    ],
)
def test_what_cannot_be_combined_is_refused_in_words(strict, what, more, kind, words):
    with pytest.raises(kind, match=words):
        hr.combine(strict, what, **more)


def test_tables_alone_need_a_rule_and_one_copy_another(strict):
    with pytest.raises(SettingError, match="do not say how they were made"):
        hr.combine(strict.tables, "mean of x")
    with pytest.raises(SettingError, match="there is one"):
        hr.combine(strict.tables[:1], "mean of x", rule="noisy")
    rare = [strict.tables[0].assign(k="a"), strict.tables[1].assign(k="b")]
    with pytest.raises(DataError, match="other terms than the first"):
        hr.combine(rare, "mean of x by k", rule="partial")


@pytest.mark.parametrize(
    ("what", "more", "kind", "words"),
    [
        (lambda table: "abc", {}, SettingError, "finite number by name"),
        (lambda table: {"a": "abc"}, {}, SettingError, "finite number by name"),
        (lambda table: {"a": (1.0, "abc")}, {}, SettingError, "finite number by name"),
        (lambda table: {"a": (1.0, 2.0, 3.0)}, {}, SettingError, "finite number by name"),
        (lambda table: None, {}, SettingError, "finite number by name"),
        (5, {}, SettingError, "int is neither"),
        ("mean of x", {"weights": "group"}, DataError, "'group' holds no survey weights"),
        ("x ~ z", {"weights": "z"}, DataError, "'z' holds no survey weights"),
        ("log(0 * x) ~ z", {}, DataError, "no row with a value"),
    ],
)
def test_what_estimators_and_weights_may_not_be_is_said_in_words(strict, what, more, kind, words):
    with pytest.raises(kind, match=words):
        hr.combine(strict, what, **more)


def test_no_tables_at_all_are_refused(strict):
    with pytest.raises(SettingError, match="no tables"):
        hr.combine([], "mean of x", rule="partial")
    for other in (strict.tables[0], [np.ones(3)], [{"x": [1.0, 2.0]}]):
        with pytest.raises(SettingError, match="a list of tables"):
            hr.combine(other, "mean of x", rule="partial")
    for rows in (0, 1):
        with pytest.raises(SettingError, match="shows no variance"):
            hr.combine([table.head(rows) for table in strict.tables], len, rule="partial")
    with pytest.raises(DataError, match="A copy has one row with a value of 'x', which"):
        hr.combine([table.head(1) for table in strict.tables], "mean of x", rule="partial")


def test_copies_that_were_changed_are_combined_where_that_means_something(strict):
    """Other columns never, another order of columns always, fewer rows by rules that compare no rows."""
    first, *others = strict.tables
    with pytest.raises(DataError, match="different columns"):
        hr.combine([first, others[0].drop(columns="w")], "mean of x", rule="partial")
    turned = [first, *(table[table.columns[::-1]] for table in others)]
    for what in ("mean of x", lambda table: table["x"].mean()):
        expected = hr.combine(strict, what)
        pd.testing.assert_frame_equal(hr.combine(turned, what, rule="noisy"), expected)
    some = [table[table["x"] > 1] for table in strict.tables]
    assert len({*map(len, some)}) > 1
    variances = [table["x"].var() / len(table) for table in some]
    mean = hr.combine(some, "mean of x", rule="partial")
    by_hand = hr.combine(some, ([table["x"].mean() for table in some], variances), rule="partial")
    np.testing.assert_allclose(mean["std_error"], by_hand["std_error"])
    own = hr.combine(some, lambda table: {"n": len(table), "m": table["x"].mean()}, rule="partial")
    np.testing.assert_allclose(own["estimate"], [np.mean([*map(len, some)]), mean["estimate"][0]])
    out = hr.combine(some, lambda table: table["x"].mean(), rule="partial")  # parts of its own rows for each
    np.testing.assert_allclose(out["std_error"], mean["std_error"], rtol=0.1)
    for what in ("mean of x", "x ~ z", lambda table: table["x"].mean()):
        with pytest.raises(hr.HedgerowError, match="row by row"):
            hr.combine(some, what, rule="noisy")


def test_a_name_that_is_no_word_of_python_stands_in_backticks(strict):
    tables = [table.rename(columns={"z": "größe €", "x": "pay'"}) for table in strict.tables]
    found = hr.combine(tables, "log(`pay'`) ~ `größe €` * C(group)", rule="noisy")
    same = hr.combine(strict, "log(x) ~ z * C(group)")
    assert list(found["term"]) == [term.replace("z", "größe €") for term in same["term"]]
    np.testing.assert_allclose(found["std_error"], same["std_error"])


def test_a_gap_is_neither_above_nor_below(strict):
    """NaN > 1 is false to NumPy: such rows leave formulas, unless these are about gaps."""
    gaps = [table.assign(x=table["x"].where(np.arange(300) % 7 > 0)) for table in strict.tables]
    short = [table.dropna() for table in gaps]
    found, same = (hr.combine(tables, "I(x > 1) ~ z", rule="partial") for tables in (gaps, short))
    np.testing.assert_allclose(found["estimate"], same["estimate"])
    about = hr.combine(gaps, "x.isna() ~ 1", rule="partial")
    np.testing.assert_allclose(about["estimate"], np.mean(np.arange(300) % 7 == 0))


@pytest.mark.filterwarnings("error")
def test_rows_without_a_finite_term_are_left_out_of_formulas(strict):
    """The log of a zero, as of a wage that nobody has: as gaps, with its influence at its place."""
    zeros = [table.assign(x=table["x"].where(np.arange(300) % 7 > 0, 0.0)) for table in strict.tables]
    gaps = [table.assign(x=table["x"].where(np.arange(300) % 7 > 0)) for table in strict.tables]
    found, same = (hr.combine(tables, "log(x) ~ z", rule="noisy", weights="w") for tables in (zeros, gaps))
    pd.testing.assert_frame_equal(found, same)


@pytest.fixture(scope="module")
def households() -> list[pd.DataFrame]:
    """Three copies of 40 households of three rows: one income each, a wage a row, −8 for refused."""
    rng = np.random.default_rng(5)
    home, age = np.repeat(np.arange(40), 3), rng.integers(20, 60, 120)
    tables = []
    for _ in range(3):
        wage = np.exp(0.02 * age + rng.normal(size=120)).round(2)
        wage[::10] = -8
        tables.append(
            pd.DataFrame({"home": home, "age": age, "income": rng.normal(size=40)[home], "wage": wage})
        )
    return tables


def test_tables_have_the_standard_errors_of_surveys(households):
    """Small cells and clusters too: hr.survey is R's survey and svy (tests/inference/test_survey.py)."""
    table = households[0].assign(w=households[0]["age"] / 10.0, cell=np.arange(120) % 55 // 2, kind="a")
    table.loc[::3, "kind"] = "b"
    asked = {"mean of income": hr.survey.estimate_means, "total of income": hr.survey.estimate_totals}
    for what, estimate in (asked | {"share of kind": hr.survey.estimate_shares}).items():
        for clusters in (None, "home"):
            more = {"by": ["cell"], "weight": "w", "clusters": clusters}
            theirs = estimate(table, what.split()[-1], **more)
            keys = [theirs["cell"].map(str), *([theirs["kind"]] if "kind" in theirs else [])]
            theirs = theirs.iloc[np.lexsort(keys[::-1])]  # in the order of words, as ours
            found = hr.combine([table], f"{what} by cell", rule="simple", weights="w", clusters=clusters)
            error = found["std_error"] / np.sqrt(2)
            np.testing.assert_allclose(error, theirs["std_error"], rtol=1e-10, atol=1e-12)


def test_rows_of_a_unit_belong_together(households):
    """By what the release says of its unit, for formulas, tables and functions; else by a name."""
    import statsmodels.formula.api as smf

    asked = {"unit": "home", "standard": hr.Unweighted()}
    release = hr.Release(households, promise(3, **asked))
    ours = hr.combine(release, "income ~ age")
    fits = [
        smf.ols("income ~ age", table).fit(cov_type="cluster", cov_kwds={"groups": table["home"]})
        for table in households
    ]
    u, q = np.array([fit.bse**2 for fit in fits]), np.array([fit.params for fit in fits])
    np.testing.assert_allclose(ours["std_error"] ** 2, u.mean(axis=0) + q.var(axis=0, ddof=1) / 3)
    assert "Rows with the same 'home' belong together" in ours.attrs["why"]
    named = hr.combine(households, "income ~ age", rule="partial", clusters="home")
    pd.testing.assert_frame_equal(named, ours)
    alone = hr.combine(households, "mean of income", rule="simple")
    both = hr.combine(households, "mean of income", rule="simple", clusters="home")
    assert both["std_error"][0] > 1.6 * alone["std_error"][0]  # √3 of equal rows
    own = hr.combine(households, lambda table: table["income"].mean(), rule="simple", clusters="home")
    np.testing.assert_allclose(own["std_error"], both["std_error"])  # forty groups of a household each
    noisy = hr.combine(households, "mean of income", rule="noisy", clusters="home")
    between = np.var([table["income"].mean() for table in households], ddof=1)
    added = [(table["income"][::3] - table["income"].mean()) / 40 for table in households]
    given = np.var(added, axis=0, ddof=1).sum()
    within = both["std_error"][0] ** 2 / (4 / 3)
    expected = within + max(between - 2 * given, 0) + between / 3  # cells that are shared differ together
    np.testing.assert_allclose(noisy["std_error"] ** 2, expected)
    hidden = hr.Release([table.drop(columns="home") for table in households], promise(3, **asked))
    assert "copies do not say which" in hr.combine(hidden, "mean of income").attrs["why"]


def test_codes_are_no_amounts(households):
    """−8 for a refusal: missing to means, formulas and functions of it, a value of its own to shares."""
    column = hr.Column("wage ~ age", codes=[-8], missing="synthesized")
    settings = Settings.of({"wage": column}, copies=3, standard=hr.Unweighted())
    statement = Statement(delta=0.0, confidence=0.95, draws=100, independent=True)
    guarantee = Guarantee.of(settings, statement, protected="wage", passed_through=["age", "home", "income"])
    release = hr.Release(households, guarantee)
    gaps = [table.assign(wage=table["wage"].where(table["wage"] != -8)) for table in households]
    for what in (
        "mean of wage",
        "wage ~ age",
        "I(wage > 2) ~ age",
        lambda table: {"mean": table["wage"].mean()},
    ):
        found = hr.combine(release, what)
        assert "Cells of 'wage' with -8 hold a code" in found.attrs["why"]
        np.testing.assert_allclose(
            found["std_error"], hr.combine(gaps, what, rule="partial")["std_error"], rtol=1e-12
        )
    shares = hr.combine(release, "share of wage").set_index("term")
    assert "hold a code" not in shares.attrs["why"]
    assert shares.loc["wage = -8", "estimate"] == pytest.approx(0.1)
    polars = hr.Release([pl.from_pandas(table) for table in households], guarantee)
    mean = hr.combine(polars, lambda table: {"mean": table["wage"].mean()})
    np.testing.assert_allclose(mean["estimate"], hr.combine(gaps, "mean of wage", rule="partial")["estimate"])
    with pytest.raises(SettingError, match=r"as np\.nanmean"):
        hr.combine(release, lambda table: {"mean": table["wage"].to_numpy().mean()})


@pytest.mark.parametrize(
    ("name", "what", "words"),
    [
        ("street", "mean of wage", "no column 'street'"),
        ("wage", "mean of income", "differs between copies"),
        ("one", "mean of wage", "same in all rows"),
        ("gaps", "mean of wage", "'gaps' has gaps"),
        ("home", ([1.0, 2.0, 3.0], [1.0, 1.0, 1.0]), "clusters go with an analysis"),
    ],
)
def test_clusters_that_are_none_are_refused(households, name, what, words):
    tables = [table.assign(one=1, gaps=table["income"].where(table.index > 3)) for table in households]
    with pytest.raises(hr.HedgerowError, match=words):
        hr.combine(tables, what, rule="partial", clusters=name)
