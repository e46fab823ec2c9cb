"""What is lost, by whole tables: pMSE, analyses, groups, tables of two columns; directions and nulls."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import hedgerow as hr
from hedgerow.errors import FormulaError
from hedgerow.evidence.utility import groups, pairs, propensity
from hedgerow.evidence.utility.analyses import fit_regression
from hedgerow.evidence.utility.stack import pool_copies, stack_tables
from hedgerow.evidence.utility.terms import build_terms

U = hr.utility


def make_table(random, n, shift=0.0):
    region = random.choice(["north", "south", "west"], n, p=[0.5, 0.3, 0.2])
    size = random.normal(size=n)
    wage = np.exp(1 + 0.5 * size + 0.3 * (region == "west") + shift + random.normal(size=n))
    return pd.DataFrame({"wage": wage, "size": size, "region": region, "bonus": wage > 4})


@pytest.fixture(scope="module")
def fitted():
    table = make_table(np.random.default_rng(3), 200)
    table["weight"] = np.random.default_rng(4).uniform(1, 5, 200)
    columns = {
        "wage": hr.Column("wage ~ size + C(region)"),
        "bonus": hr.Column("bonus ~ C(region)", family="dirichlet"),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        synth = hr.Synthesizer(columns, standard=hr.Unweighted(), copies=2, seed=1, design_weight="weight")
        return synth.fit(table)


def test_everything_is_best_where_the_copy_is_the_table():
    table = make_table(np.random.default_rng(1), 300)
    rows = U.compare_rows(table, table)
    assert rows["pMSE"].iloc[0] == pytest.approx(0, abs=1e-12)
    assert rows["SPECKS"].iloc[0] == pytest.approx(0, abs=1e-12)
    assert rows["PO50"].iloc[0] == pytest.approx(0, abs=1e-12)
    assert rows["AUC"].iloc[0] == pytest.approx(0.5)
    assert U.compare_rows(table, table, protected=["wage"])["S_pMSE"].iloc[0] == pytest.approx(0, abs=1e-9)
    tables = U.compare_two_way(table, table)
    assert (tables[["TVD", "VW", "S_VW"]] == 0).all(axis=None)
    lines = U.compare_analyses(table, table, ["log(wage) ~ size + region"])
    assert lines["overlap"].tolist() == pytest.approx([1.0] * len(lines))
    assert lines["std_difference"].tolist() == pytest.approx([0.0] * len(lines))
    apart = U.compare_groups(table, table, "region")
    assert (apart["error"] == 0).all()


def test_everything_is_worse_the_farther_the_copy_is():
    random = np.random.default_rng(2)
    table = make_table(random, 400)
    near, far = (table.assign(wage=table["wage"] * factor) for factor in (1.2, 3.0))
    rows = U.compare_rows(table, [near, far], protected=["wage", "bonus"])
    one, two = rows.iloc[0], rows.iloc[1]
    for name in ("pMSE", "S_pMSE", "SPECKS", "PO50", "AUC"):
        assert one[name] < two[name], name
    shown = U.compare_two_way(table, [near, far], protected=["wage", "bonus"])
    shown = shown[(shown["first"] == "wage") & (shown["second"] == "region")]
    assert shown["TVD"].iloc[0] < shown["TVD"].iloc[1] <= 1
    assert shown["S_VW"].iloc[0] < shown["S_VW"].iloc[1]
    lines = U.compare_analyses(table, [near, far], ["log(wage) ~ size"])
    intercept = lines[lines["term"] == "Intercept"]
    assert intercept["overlap"].iloc[0] > intercept["overlap"].iloc[1]
    error = (
        np.log([1.2, 3.0])
        / fit_regression(
            np.column_stack([np.ones(400), table["size"]]), np.log(table["wage"].to_numpy())
        ).error[0]
    )
    assert intercept["std_difference"].iloc[:2].tolist() == pytest.approx(error.tolist())
    assert intercept["copy"].tolist() == ["1", "2", "pooled", "lowest", "highest"]
    means = U.compare_groups(table, [near, far], "region", protected=["wage"])
    means = means[(means["statistic"] == "mean") & (means["copy"] == "2")]
    assert means["error"].tolist() == pytest.approx((2 * means["original"]).tolist())


def test_interval_overlap_by_hand():
    assert U.overlap((0.0, 4.0), (3.0, 5.0)) == pytest.approx((1 / 4 + 1 / 2) / 2)
    assert U.overlap((0.0, 4.0), (1.0, 2.0)) == pytest.approx((1 / 4 + 1) / 2)  # one inside the other
    assert U.overlap((0.0, 1.0), (2.0, 4.0)) == pytest.approx((-1 - 1 / 2) / 2)  # a gap of 1
    # y = 1, 3 at x = 0 and y = 2, 4 at x = 1: intercept 2, slope 1, σ² = 2, errors 1 and √2, t(2) = 4.302653
    table = pd.DataFrame({"x": [0, 0, 1, 1], "y": [1.0, 3.0, 2.0, 4.0]})
    copy = table.assign(y=[2.0, 4.0, 3.0, 5.0])  # both intervals one higher
    found = U.compare_analyses(table, copy, ["y ~ x"])
    reach = 4.302653
    assert found["original_low"].tolist()[::2] == pytest.approx([2 - reach, 1 - reach * 2**0.5], abs=1e-5)
    assert found["overlap"].tolist()[::2] == pytest.approx([(2 * reach - 1) / (2 * reach), 1.0], abs=1e-6)
    assert found["std_difference"].tolist()[::2] == pytest.approx([1.0, 0.0], abs=1e-9)


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson"])
@pytest.mark.parametrize("weighted", [False, True])
def test_regressions_are_those_of_statsmodels(family, weighted):
    """By statsmodels; weighted ones by its score covariance, HC0, with n/(n − 1)."""
    sm = pytest.importorskip("statsmodels.api")
    random = np.random.default_rng(5)
    terms = np.column_stack([np.ones(120), random.normal(size=(120, 2))])
    line = terms @ [0.3, 0.8, -0.5]
    outcome = {
        "gaussian": line + random.normal(size=120),
        "binomial": (random.uniform(size=120) < 1 / (1 + np.exp(-line))).astype(float),
        "poisson": random.poisson(np.exp(line)).astype(float),
    }[family]
    weights = random.uniform(1, 6, 120) if weighted else None
    found = fit_regression(terms, outcome, family, weights)
    kind = {"gaussian": "Gaussian", "binomial": "Binomial", "poisson": "Poisson"}[family]
    fit = sm.GLM(outcome, terms, family=getattr(sm.families, kind)(), freq_weights=weights)
    if weighted:
        plain = fit.fit()
        scores = (weights * plain.resid_response)[:, None] * terms
        mean = plain.fittedvalues
        spread = {"gaussian": 1.0, "binomial": mean * (1 - mean), "poisson": mean}[family]
        bread = np.linalg.inv(terms.T @ ((weights * spread)[:, None] * terms))
        assert found.estimate == pytest.approx(plain.params, rel=1e-6)
        covariance = bread @ scores.T @ scores @ bread * 120 / 119
        assert found.error == pytest.approx(np.sqrt(np.diag(covariance)), rel=1e-6)
        return
    other = sm.OLS(outcome, terms).fit() if family == "gaussian" else fit.fit()
    assert found.estimate == pytest.approx(other.params, rel=1e-6)
    assert found.error == pytest.approx(other.bse, rel=1e-5)
    assert np.column_stack(found.ends()) == pytest.approx(other.conf_int(), rel=1e-5)


def test_terms_that_a_copy_does_not_determine_are_no_numbers():
    table = pd.DataFrame({"y": np.arange(8.0) ** 2, "k": list("aabbccaa")})
    copy = table.assign(k=list("aabbbbaa"))
    found = U.compare_analyses(table, copy, ["y ~ C(k)"])
    assert np.isnan(found.loc[found["term"].str.contains("c]"), "synthetic"]).all()
    assert np.isfinite(found.loc[~found["term"].str.contains("c]"), "overlap"]).all()


def test_analyses_with_gaps_codes_two_labels_and_types():
    random = np.random.default_rng(6)
    table = make_table(random, 200)
    table.loc[:20, "wage"] = np.nan
    table.loc[21:30, "wage"] = -8.0
    yes = pd.Series(np.where(random.uniform(size=200) < 0.5, "yes", "no"))
    table["member"] = yes.where(table.index > 10)
    lines = ["wage ~ size", U.Analysis("member ~ size + log(wage)", "binomial")]
    found = U.compare_analyses(table, table, lines, codes={"wage": [-8]})
    assert set(found["overlap"].round(9)) == {1.0}
    used = table[table["wage"] > 0]
    assert found["original"].iloc[2] == pytest.approx(np.polyfit(used["size"], used["wage"], 1)[0])
    again = U.compare_analyses(pl.from_pandas(table), pl.from_pandas(table), lines, codes={"wage": [-8]})
    assert isinstance(again, pl.DataFrame)
    assert again["original"].to_list() == pytest.approx(found["original"].tolist())


@pytest.mark.parametrize(
    ("formula", "told"),
    [
        ("wage", "formula such as"),
        ("wage ~ __import__('os').system('true')", "__import__"),
        ("__import__('os') ~ size", "__import__"),
        ("wage ~ nothing", "copies do not have. They have 'wage', 'size', 'region', 'bonus'."),
        ("region ~ size", "makes 3 columns"),
    ],
)
def test_what_is_no_analysis_is_refused_and_runs_nothing(formula, told):
    table = make_table(np.random.default_rng(7), 30)
    with pytest.raises(hr.HedgerowError, match=told.replace("(", r"\(")):
        U.compare_analyses(table, table, [formula])


def test_families_refuse_outcomes_that_are_none_of_theirs():
    table = make_table(np.random.default_rng(7), 30)
    for given in (U.Analysis("wage ~ size", "binomial"), U.Analysis("size ~ wage", "poisson")):
        with pytest.raises(hr.HedgerowError, match="needs an outcome"):
            U.compare_analyses(table, table, [given])
    with pytest.raises(hr.HedgerowError, match="one of gaussian"):
        U.Analysis("wage ~ size", "probit")


def test_total_variation_and_its_statistic_by_hand():
    table = pd.DataFrame({"a": list("xxxxyyyy"), "b": list("pppqpqqq")})
    copy = table.assign(b=list("ppqqppqq"))
    found = U.compare_two_way(table, copy, protected=["b"]).iloc[0]
    # Cells xp, xq, yp, yq: 3, 1, 1, 3 and 2, 2, 2, 2.
    assert found["TVD"] == pytest.approx(4 / 8 / 2)
    assert found["VW"] == pytest.approx(2 / 2.5 + 2 / 1.5)
    assert found["df"] == 2  # rows of each class of the kept column are given
    assert U.compare_two_way(table, copy).iloc[0]["df"] == 3
    weighted = U.compare_two_way(
        table.assign(w=[5.0] * 4 + [1.0] * 4), copy.assign(w=[5.0] * 4 + [1.0] * 4), weight="w",
        protected=["b"],
    ).iloc[0]  # fmt: skip
    assert weighted["TVD"] == pytest.approx((5 + 5 + 1 + 1) / 24 / 2)


@pytest.mark.slow
def test_two_way_ratio_has_its_null_expectation():
    """Copies by the right model, shares estimated: VW is near χ²(df), of another sample near 2χ²(df).

    A mean of 200 ratios with 2 · 3 df has a standard error of 0.041, twice that of another sample; at 4.5 of
    them a false alarm has probability 7e-6.
    """
    random, ratios, another = np.random.default_rng(8), [], []
    public = np.repeat(["u", "v"], 300)
    share = np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])

    def draw(chance):
        return np.concatenate([random.choice(4, 300, p=row) for row in chance])

    for _ in range(200):
        made = draw(share)
        fitted = [np.bincount(made[public == side], minlength=4) / 300 for side in "uv"]
        table = pd.DataFrame({"public": public, "x": made.astype(str)})
        copies = [table.assign(x=draw(chance).astype(str)) for chance in (fitted, share)]
        one, two = pairs.two_way_of_copies(stack_tables(table, copies, protected=["x"]), None)
        ratios.append(one["S_VW"])
        another.append(two["S_VW"])
    error = 4.5 * np.sqrt(2 / 6 / 200)
    assert np.mean(ratios) == pytest.approx(1.0, abs=error)
    assert np.mean(another) == pytest.approx(2.0, abs=2 * error)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["main", "pairs"])
def test_ratio_of_whole_tables_has_its_null_expectation(by):
    """One posterior draw of the right model, and a public column: S_pMSE is near 2 (docs/utility.md).

    Of main effects two terms are free, of pairs five: over 300 tables a standard error of 0.12 at most; at
    4.5 of them a false alarm has probability 7e-6.
    """
    random, ratios = np.random.default_rng(9), []
    n = 300
    for _ in range(300):
        z = random.normal(size=n)
        table = pd.DataFrame({"z": z, "x": z + random.normal(size=n)})
        table["y"] = 0.5 * table["x"] - z + random.normal(size=n)
        copy = table.copy()
        for name, terms in (("x", ["z"]), ("y", ["z", "x"])):
            real, made = (np.column_stack([np.ones(n), each[terms]]) for each in (table, copy))
            line, rest, *_ = np.linalg.lstsq(real, table[name], rcond=None)
            free = n - real.shape[1]
            sigma = np.sqrt(rest[0] / random.chisquare(free))
            line = random.multivariate_normal(line, sigma**2 * np.linalg.inv(real.T @ real))
            copy[name] = made @ line + sigma * random.normal(size=n)
        rows = propensity.rows_of_copies(stack_tables(table, copy, protected=["x", "y"]), by=by)
        ratios.append(rows[0]["S_pMSE"])
    terms = {"main": 2, "pairs": 5}[by]
    assert np.mean(ratios) == pytest.approx(2.0, abs=4.5 * 2 * np.sqrt(2 / terms / 300))


def test_columns_of_every_kind_make_terms():
    table = pd.DataFrame(
        {
            "money": [0.0] * 20 + list(np.geomspace(1, 1e6, 80)),
            "code": [-8.0] * 10 + [np.nan] * 5 + list(np.arange(85.0)),
            "label": [None] * 10 + ["a"] * 50 + ["b"] * 38 + ["c", "d"],
            "when": pd.date_range("2020-01-01", periods=100),
            "flag": [True, False] * 50,
            "same": 1,
            "name": [f"person {k}" for k in range(100)],
        }
    )
    stack = stack_tables(table, table, codes={"code": [-8]})
    widths = {name: build_terms(column).shape[1] for name, column in stack.columns.items()}
    # money and its zeros; code, -8 and missing; a, b and missing of label, c and d being too few apart
    assert widths == {"money": 2, "code": 3, "label": 3, "when": 1, "flag": 1, "same": 1, "name": 0}
    for column in stack.columns.values():
        assert np.isfinite(build_terms(column)).all()
    assert np.ptp(build_terms(stack.columns["money"])[:, 0]) < 30  # not as it is


def test_groups_may_be_numbers_flags_or_labels():
    table = pd.DataFrame({"x": np.arange(6.0), "code": [2, 2, 11, 11, None, 2], "flag": [True, False] * 3})
    found = U.compare_groups(table, table, "code", protected=["x"])
    means = found[(found["statistic"] == "mean") & (found["copy"] == "1")]
    assert means["group"].tolist() == ["2", "11", "missing"]
    assert means["original"].tolist() == pytest.approx([2.0, 2.5, 4.0])
    found = U.compare_groups(table, table, "flag", protected=["x"])
    assert set(found["group"]) == {"0", "1"}
    assert groups.few_groups(stack_tables(table, table, protected=["x"])) == ["code", "flag"]
    many = pd.DataFrame({"x": np.arange(60.0), "place": np.arange(60)})
    with pytest.raises(hr.HedgerowError, match="'place' has 60 different values, and at most 50 groups"):
        U.compare_groups(many, many, "place", protected=["x"])
    for name, told in (("x", "protected"), ("none", "no column")):
        with pytest.raises(hr.HedgerowError, match=told):
            U.compare_groups(table, table, name, protected=["x"])


def test_what_cannot_be_compared_is_refused():
    random = np.random.default_rng(10)
    wide = pd.DataFrame(random.normal(size=(100, 8)), columns=list("abcdefgh"))
    with pytest.raises(hr.HedgerowError, match="36 terms of 200 rows"):
        U.compare_rows(wide, wide, by="pairs")
    with pytest.raises(hr.HedgerowError, match="main, pairs, cart"):
        U.compare_rows(wide, wide, by="forest")
    with pytest.raises(hr.HedgerowError, match="different numbers of rows"):
        U.compare_rows(wide, wide.head(50), protected=["a"])
    with pytest.raises(hr.HedgerowError, match="no column in common"):
        U.compare_rows(wide, wide.add_prefix("other "))
    with pytest.raises(hr.HedgerowError, match="none"):
        U.compare_rows(wide, [])
    with pytest.raises(hr.HedgerowError, match="positive numbers"):
        U.compare_analyses(wide, wide, ["a ~ b"], weight="c")


def test_trees_are_asked_of_scikit_learn():
    table = make_table(np.random.default_rng(11), 150)
    copy = table.assign(wage=table["wage"].to_numpy()[::-1] * 3)
    try:
        import sklearn  # noqa: F401
    except ModuleNotFoundError:
        with pytest.raises(hr.HedgerowError, match=r"Install hedgerow\[models\]"):
            U.compare_rows(table, copy, by="cart")
        return
    far = U.compare_rows(table, copy, by="cart", permutations=10, protected=["wage"]).iloc[0]
    near = U.compare_rows(table, make_table(np.random.default_rng(12), 150), by="cart", permutations=10).iloc[
        0
    ]
    # A tree fits rows that are alike to 0.1 or so of 0.25, the most there is: a ratio has little room.
    assert far["S_pMSE"] > 1.35 > near["S_pMSE"] > 0.65


def test_trees_find_nothing_in_copies_by_the_right_model():
    """Rows in pairs and a public column of 20 classes: no single split says much, those below it do.

    Over 100 such copies the ratio had a mean of 0.99 and a standard deviation of 0.05; the bound is five of
    these. Trees that stop at a split of little gain had one of 0.54, some of them with no split at all.
    """
    pytest.importorskip("sklearn")
    random = np.random.default_rng(13)
    place, age = random.choice([f"place {k:02d}" for k in range(20)], 1000), random.normal(size=1000)

    def draw():
        wage, job = np.exp(age + random.normal(size=1000)), random.uniform(size=1000) < 0.4
        return pd.DataFrame({"wage": wage, "job": job, "age": age, "place": place})

    found = U.compare_rows(
        draw(), [draw(), draw(), draw()], by="cart", permutations=12, protected=["wage", "job"]
    )
    assert found["S_pMSE"].iloc[:3].tolist() == pytest.approx([1, 1, 1], abs=0.25)


def test_pooling_keeps_comparisons_apart():
    rows = [
        {"what": what, "copy": str(k), "value": float(k * size)}
        for what, size in (("a", 1), ("b", 10))
        for k in (1, 3)
    ]
    found = pool_copies(rows, ["value"])
    assert [row["value"] for row in found if row["what"] == "b"] == [10, 30, 20, 10, 30]
    assert [row["copy"] for row in found][:5] == ["1", "3", "pooled", "lowest", "highest"]
    assert [row["copy"] for row in pool_copies(rows[:1], ["value"])] == ["1", "pooled"]


def test_weights_count_records_as_often_as_they_say():
    random = np.random.default_rng(13)
    values, copy = random.normal(size=40), random.normal(size=30)
    often, other = random.integers(1, 4, 40), random.integers(1, 4, 30)
    repeated = [np.repeat(values, often), np.repeat(copy, other)]
    far = U.ecdf_distance(values, copy, (often.astype(float), other.astype(float)))
    assert far.maximum == pytest.approx(U.ecdf_distance(*repeated).maximum)
    found = U.statistics(values, weights=often.astype(float))
    assert found["mean"] == pytest.approx(repeated[0].mean())
    plain = U.statistics(values, weights=np.full(40, 2.5))
    assert plain == pytest.approx(U.statistics(values))


def test_a_fitted_synthesizer_has_every_comparison(fitted):
    for found in (
        fitted.utility(),
        fitted.associations(),
        fitted.propensity(),
        fitted.propensity(by="pairs"),
        fitted.analyses(["log(wage) ~ size", U.Analysis("bonus ~ size", "binomial")]),
        fitted.two_way(),
        fitted.utility_by_group("region"),
    ):
        assert set(found["copy"]) == {"1", "2", "pooled", "lowest", "highest"}
    # The kept columns are in the regression, and are not counted: about two of six terms are free.
    assert 1 / 8 / 400 < fitted.propensity()["expected"].iloc[0] < 2.5 / 8 / 400
    table, copies = fitted._done().table.native, fitted.sample().tables
    frame = fitted.utility()
    mean = frame[(frame["statistic"] == "mean") & (frame["column"] == "wage") & (frame["copy"] == "2")].iloc[
        0
    ]
    assert mean["original"] == pytest.approx(np.average(table["wage"], weights=table["weight"]))
    assert mean["synthetic"] == pytest.approx(np.average(copies[1]["wage"], weights=table["weight"]))


def test_an_overview_is_plain_json(fitted):
    lines = [U.Analysis("log(wage) ~ size"), U.Analysis("region ~ size")]
    found = json.loads(json.dumps(fitted.utility_overview(lines), allow_nan=False))
    assert {row["by"] for row in found["propensity"]} == {"main", "pairs"}
    assert {row["term"] for row in found["analyses"]} == {"Intercept", "size"}
    assert {row["by"] for row in found["groups"]} == {"region"}
    assert {(row["first"], row["second"]) for row in found["two_way"]} == {
        ("wage", "bonus"), ("wage", "size"), ("wage", "region"), ("bonus", "size"), ("bonus", "region"),
    }  # fmt: skip
    assert found["left_out"] == [next(iter(found["left_out"]))]
    assert "region ~ size" in found["left_out"][0]
    assert fitted.utility_overview(most=70)["rows"] == 67


def test_rows_whose_gap_was_withheld_are_compared_with_nothing():
    table = hr.datasets.lognormal(n=120, seed=1)
    table.loc[::12, "x"] = np.nan
    columns = {"x": hr.Column("x ~ z", missing="withheld")}
    with pytest.warns(hr.HedgerowWarning, match="withheld"):
        synth = hr.Synthesizer(columns, standard=hr.Unweighted(), seed=1).fit(table)
    assert synth.stack().sizes == (110, 110)
    assert synth.propensity()["S_pMSE"].iloc[0] < 12  # a gap would give every such row away


def test_a_protected_weight_weighs_each_copy_by_its_own():
    table = hr.datasets.lognormal(n=80, seed=2).rename(columns={"x": "w"})
    table["x"] = table["w"] * np.exp(table["z"] - 1)
    columns = {"w": hr.Column("w ~ z"), "x": hr.Column("x ~ log(w)")}
    synth = hr.Synthesizer(columns, standard=hr.Unweighted(), seed=1, design_weight="w").fit(table)
    copy, found = synth.sample().tables[0], synth.utility()
    means = found[(found["statistic"] == "mean") & (found["copy"] == "1")].set_index("column")
    assert means.loc["x", "original"] == pytest.approx(np.average(table["x"], weights=table["w"]))
    assert means.loc["x", "synthetic"] == pytest.approx(np.average(copy["x"], weights=copy["w"]))
    assert means.loc["w", "original"] == pytest.approx(table["w"].mean())  # weights are not weighed
    assert set(synth.two_way()["first"]) == {"w", "x"}
    total = hr.survey.estimate_totals(copy, "x", weight="w")["estimate"].iloc[0]
    assert total == pytest.approx(copy["x"] @ copy["w"])


def test_survey_weights_are_a_released_column_of_positive_numbers():
    table = hr.datasets.lognormal(n=60, seed=1)
    table["w"] = 1.0
    asked = hr.Synthesizer("x ~ z", standard=hr.Unweighted(), seed=1, design_weight="w")
    with pytest.raises(hr.HedgerowError, match="could not weigh"):
        asked.fit(table, left_out=["w"])
    with pytest.raises(hr.HedgerowError, match="positive"):
        asked.fit(table.assign(w=0.0))
    with pytest.raises(hr.HedgerowError, match="No column named 'w'"):
        asked.fit(table.drop(columns="w"))
    with pytest.raises(hr.HedgerowError, match="name of a column"):
        hr.Synthesizer("x ~ z", design_weight=table["w"])
    asked.fit(table)  # without a word of it: the tests take warnings for errors


@pytest.mark.parametrize("formula", ["log(x - 1e9) ~ z", "x ~ log(0 * z)"])
def test_an_analysis_without_a_row_is_refused_in_words(formula):
    """As left_out then, so that whether a release is made does not depend on what an analysis finds."""
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0], "z": [1.0, 2.0, 4.0]})
    with pytest.raises(FormulaError, match="no row with a value in each of its terms"):
        hr.utility.compare_analyses(table, [table], [formula])
