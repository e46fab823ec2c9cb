"""Gaps, codes, shares and rules through the front door: what went in comes out, where nothing is hidden."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr

ROWS = 3000
COLUMNS = {
    "status": hr.Column(
        "status ~ age", hr.Family("categorical", levels=["work", "study", "home"]), codes=("refused",),
        missing="synthesized",
    ),
    "wage": hr.Column(
        "wage ~ age + C(sector)", codes=(-8, -9), missing="synthesized", filler=3000.0,
        declared=hr.Declared("number", decimal_places=2),
    ),
    "bonus": hr.Column("bonus ~ log(wage)", "zero_lognormal", only_where="wage > 0", otherwise=0),
    "rent": hr.Column("rent ~ log(wage)", "beta", share_of="gross"),
    "food": hr.Column("food ~ age", "beta", share_of="gross - rent"),
    "children": hr.Column("children ~ age", "poisson", missing="public"),
    "savings": hr.Column("savings ~ age + log(wage)", hr.Family("student", scale=1000), missing="withheld"),
}  # fmt: skip
RULES = hr.Rules(
    derived={"other": "gross - rent - food", "area": {"sector": {"a": "north", "b": "south", "c": "south"}}},
    checks=["rent + food <= gross", "bonus <= wage"],
)


def people(n=ROWS, seed=1):
    random = np.random.default_rng(seed)
    age, sector = random.integers(18, 66, n), random.choice(list("abc"), n, p=[0.5, 0.3, 0.2])
    status = np.array(["work", "study", "home"])[
        (random.uniform(size=n) * 3 * (age / 66) ** 0.3).astype(int) % 3
    ]
    wage = np.exp(6.8 + 0.02 * age + 0.3 * (sector == "b") + 0.4 * random.normal(size=n)).round(2)
    kinds = random.choice(4, n, p=[0.8, 0.08, 0.05, 0.07])
    wage = np.select([kinds == 1, kinds == 2, kinds == 3], [-8, -9, np.nan], wage)
    amount = wage > 0
    usual = np.where(amount, wage, 3000.0)
    bonus = np.exp(1 + 0.7 * np.log(usual) + 0.3 * random.normal(size=n)) * (random.uniform(size=n) < 0.6)
    gross = np.exp(8 + 0.3 * random.normal(size=n)).round()
    rent = (gross * random.beta(4, 8, n)).round().astype(int)
    food = ((gross - rent) * random.beta(3, 9, n)).round().astype(int)
    children = np.where(random.uniform(size=n) < 0.1, np.nan, random.poisson(np.exp(-2 + 0.05 * age)))
    savings = 300 * (age - 30) + 400 * np.log(usual) + 3000 * random.standard_t(4, size=n)
    savings[random.uniform(size=n) < 0.05] = np.nan
    status = np.where(random.uniform(size=n) < 0.06, "refused", status).astype(object)
    status[random.uniform(size=n) < 0.04] = None
    return pd.DataFrame({
        "age": age, "sector": sector, "status": status, "wage": wage, "gross": gross,
        "bonus": np.where(amount, bonus, 0).round(), "rent": rent, "food": food, "other": gross - rent - food,
        "children": pd.array(children, "Int64"), "savings": savings.round(), "area": "?",
    })  # fmt: skip


@pytest.fixture(scope="module")
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return hr.Synthesizer(COLUMNS, standard=hr.Unweighted(), rules=RULES, seed=1).fit(people())


def kinds_of(column, codes):
    """The share of each code and of missing cells."""
    return np.array([*((column == code).mean() for code in codes), column.isna().mean()])


@pytest.mark.slow
def test_types_supports_codes_gaps_and_rules_come_out_as_they_went_in(fitted):
    data, release = people(), fitted.sample()
    copy = release.tables[0]
    assert list(copy.columns) == list(data.columns)
    assert (copy.dtypes == data.dtypes).all()
    assert set(copy["status"].dropna()) == {"work", "study", "home", "refused"}
    np.testing.assert_allclose(copy["wage"], copy["wage"].round(2))
    assert (copy["bonus"][~(copy["wage"] > 0)] == 0).all()
    np.testing.assert_array_equal(copy["children"].isna(), data["children"].isna())
    assert copy["savings"].notna().all()
    assert (copy["rent"] + copy["food"] <= copy["gross"]).all()
    np.testing.assert_allclose(copy["other"], copy["gross"] - copy["rent"] - copy["food"])
    assert set(zip(copy["sector"], copy["area"], strict=True)) == {
        ("a", "north"),
        ("b", "south"),
        ("c", "south"),
    }
    assert release.checks["broken"].tolist() == [
        0,
        int((copy["bonus"] > copy["wage"])[copy["wage"] > 0].sum()),
    ]


@pytest.mark.slow
def test_shares_of_kinds_margins_and_associations_come_out_as_they_went_in(fitted):
    """Each difference within five standard errors of two samples of 3,000: a false alarm in a million.

    The draw behind the copy adds as much noise again to parameters, for which √3 stands in place of √2.
    """
    data, copy = people(), fitted.sample().tables[0]
    for name, codes in (("wage", (-8, -9)), ("status", ("refused",))):
        share = kinds_of(data[name], codes)
        allowed = 5 * np.sqrt(3 * share * (1 - share) / ROWS)
        assert (np.abs(kinds_of(copy[name], codes) - share) < allowed).all(), name
    zeros = [(table["bonus"][table["wage"] > 0] == 0).mean() for table in (data, copy)]
    assert abs(zeros[0] - zeros[1]) < 5 * np.sqrt(3 * 0.24 / (0.8 * ROWS))
    amounts = {
        "wage": lambda t: np.log(t["wage"][t["wage"] > 0]), "rent": lambda t: t["rent"] / t["gross"],
        "food": lambda t: t["food"] / (t["gross"] - t["rent"]), "children": lambda t: t["children"].dropna(),
        "savings": lambda t: t["savings"].dropna().clip(-30000, 40000),
    }  # fmt: skip
    for name, of in amounts.items():
        here, there = (of(table).to_numpy(dtype=float) for table in (data, copy))
        assert abs(here.mean() - there.mean()) < 5 * here.std() * np.sqrt(3 / len(here)), name
        assert 0.85 < there.std() / here.std() < 1.15, name
    for one, two in (("age", "wage"), ("age", "children"), ("wage", "bonus"), ("age", "savings")):
        found = []
        for table in (data, copy):
            both = table[(table["wage"] > 0) & (table["bonus"] > 0)][[one, two]].dropna().astype(float)
            found.append(both.corr(method="spearman").iloc[0, 1])
        assert abs(found[0] - found[1]) < 5 * np.sqrt(3 / (0.45 * ROWS)), (one, two)


@pytest.mark.slow
def test_gaps_of_a_copy_are_no_more_in_the_places_of_the_original_than_by_chance(fitted):
    data, copy = people(), fitted.sample().tables[0]
    for name in ("wage", "status"):
        found = np.corrcoef(data[name].isna(), copy[name].isna())[0, 1]
        assert abs(found) < 4.5 / np.sqrt(ROWS), name  # two: a false alarm in 70,000


@pytest.mark.slow
def test_utility_has_the_share_of_each_kind_and_then_the_amounts(fitted):
    table = fitted.utility()
    wage = table[(table["column"] == "wage") & (table["copy"] == "1")].set_index("statistic")
    assert list(wage.index[:4]) == ["share of amount", "share of -8", "share of -9", "share of missing"]
    copy = fitted.sample().tables[0]["wage"]
    assert wage.loc["share of missing", "synthetic"] == pytest.approx(copy.isna().mean())
    assert wage.loc["median", "synthetic"] == pytest.approx(copy[copy > 0].median())
    assert "What copies keep of wage" in fitted._repr_html_()


@pytest.mark.slow
def test_with_a_small_epsilon_the_kinds_are_nearly_those_of_the_prior():
    """What is lost: at ε = 0.2 a share of 7 % comes out anywhere between 0 and 1."""
    data = people(400)
    columns = {"wage": COLUMNS["wage"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        synth = hr.Synthesizer(columns, epsilon=0.2, seed=2).fit(data)
    assert synth.total_epsilon_ <= 0.2
    share = kinds_of(synth.sample().tables[0]["wage"], (-8, -9))
    assert np.abs(share - kinds_of(data["wage"], (-8, -9))).max() > 0.05


@pytest.mark.parametrize(
    ("column", "rules", "says"),
    [
        ({"only_where": "sex == 'male'"}, {}, "no amount .* in any of 60 rows.*only_where, sex == 'male'"),
        ({"missing": "synthesized", "codes": (1,)}, {}, "no amount .* in any of 60 rows.*Leave it out"),
        ({"only_where": "sex == 1"}, {}, "words with numbers. Put words in quotes"),
        ({}, {"checks": ["wages > 1"]}, "No column named 'wages'"),
        ({}, {"checks": ["(" * 3000]}, "at most 2000 characters .* got 3000 characters"),
    ],
)
def test_rules_that_fit_no_row_or_no_column_are_refused_before_any_fit(monkeypatch, column, rules, says):
    monkeypatch.setattr("hedgerow.synthesizer.begin", None)
    data = pd.DataFrame({"sex": ["m", "f"] * 30, "wage": np.ones(60)})
    with pytest.raises(hr.HedgerowError, match=says):
        hr.Synthesizer({"wage": hr.Column("wage ~ 1", **column)}, rules=hr.Rules(**rules)).fit(data)


def test_a_column_alone_may_have_a_rule_and_gaps_that_are_public():
    """One link, fitted in closed form: the price is for the row, and the certificate says what is public."""
    data = people(300)
    column = hr.Column("rent ~ age", only_where="age < 60", missing="public")
    data["rent"] = data["rent"].where(np.arange(300) % 7 > 0, np.nan).astype(float) + 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        synth = hr.Synthesizer(
            {"rent": column}, epsilon=3.0, bound="renyi", weights=hr.ScalarWeights(1), seed=1
        )
        release = synth.fit(data[["age", "rent"]]).sample()
    copy = release.tables[0]
    gone = data["rent"].isna() | (data["age"] >= 60)
    np.testing.assert_array_equal(copy["rent"].isna(), gone)
    assert synth.total_epsilon_ <= 3
    told = " ".join(str(release.guarantee).split())
    assert (
        "which cells of 'rent' are missing or cannot be read; that 'rent' is missing unless age < 60" in told
    )


@pytest.mark.parametrize(
    ("rule", "read"),
    [({"only_where": "wage > 1000"}, "wage"), ({"share_of": "wage - 1", "family": "beta"}, "wage")],
)
def test_public_gaps_beside_a_rule_over_protected_columns_are_refused(rule, read):
    """Copies would have a rent where the confidential wage is above 1000, and nowhere else."""
    columns = {"wage": hr.Column("wage ~ age"), "rent": hr.Column("rent ~ age", missing="public", **rule)}
    with pytest.raises(hr.HedgerowError, match=f"would publish where its rule holds, .* '{read}'"):
        hr.Synthesizer(columns, epsilon=3.0)


KINDS = {
    "wage": hr.Column(
        "wage ~ age", codes=(-8, -9), missing="synthesized", kinds_by="C(sector)", filler=3000.0
    ),
    "bonus": hr.Column("bonus ~ log(wage)", codes=(0,), kinds_by="1", only_where="wage > 0", otherwise=0),
}


def test_kinds_by_public_cells_have_a_price_in_closed_form():
    """Zeros of amounts as well, if they are a code."""
    data = people(600)[["age", "sector", "wage", "bonus"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        synth = hr.Synthesizer(KINDS, epsilon=20.0, bound="renyi", weights=hr.ScalarWeights(1), seed=1).fit(
            data
        )
    copy = synth.sample().tables[0]
    assert synth.total_epsilon_ <= 20
    # A column's kinds and amounts are its own: one row, one gauge.
    assert list(synth.price_by_column()["column"]) == list(synth.gauge_.columns) == ["wage", "bonus"]
    share = kinds_of(data["wage"], (-8, -9))
    # Five standard errors of two samples and of a draw that has a weight: a false alarm in 10,000.
    assert (np.abs(kinds_of(copy["wage"], (-8, -9)) - share) < 5 * np.sqrt(4 * share / 600)).all()
    assert (copy["bonus"][~(copy["wage"] > 0)] == 0).all()
    zeros = [(table["bonus"][table["wage"] > 0] == 0).mean() for table in (data, copy)]
    assert abs(zeros[0] - zeros[1]) < 5 * np.sqrt(4 * 0.24 / 480)
    protected = {**KINDS, "wage": replace(KINDS["wage"], kinds_by="C(bonus)")}
    with pytest.raises(hr.HedgerowError, match="kinds_by of 'wage' reads 'bonus', which is protected"):
        hr.Synthesizer(protected).fit(data)
    with pytest.raises(hr.HedgerowError, match="together with codes"):
        hr.Column("wage ~ age", kinds_by="C(sector)")


@pytest.mark.filterwarnings("ignore::hedgerow.HedgerowWarning")
def test_standards_are_compared_on_columns_with_kinds_and_shares():
    data = people(200)[["age", "sector", "wage", "bonus"]].assign(part=lambda frame: 0.4 * frame["wage"])
    columns = {**KINDS, "part": hr.Column("part ~ age", "normal", share_of="wage")}
    standards = {"ADP": hr.ADP(), "plain": hr.Unweighted()}
    found = hr.compare(columns, data, standards=standards, bound="renyi", draws=100, seed=1)
    assert list(dict.fromkeys(row["column"] for row in found.shown_utility)) == [*columns]
    assert found._repr_html_().count("<svg") > 2


@pytest.mark.parametrize(
    ("column", "what"),
    [
        (hr.Column("wage ~ age", missing="synthesized"), r"gaps and codes of 'wage' \(bernoulli\)"),
        (hr.Column("wage ~ age", "zero_lognormal"), r"'wage' \(zero_lognormal\)"),
        (hr.Column("wage ~ sector", hr.Family("dirichlet", levels=(1, 2))), r"'wage' \(dirichlet\)"),
    ],
)
def test_the_recommended_preset_says_which_columns_it_is_not_for(column, what):
    with pytest.raises(hr.HedgerowError, match=rf"preset='recommended' plans .* not for {what}\. Say "):
        hr.Synthesizer({"wage": column}, preset="recommended", epsilon=4.0)
    if "gaps" in what:
        data = people(60)[["age", "sector", "wage"]]
        with pytest.raises(hr.HedgerowError, match=f"bound='renyi' has no closed form for {what}"):
            hr.Synthesizer({"wage": column}, bound="renyi").fit(data, left_out=["sector"])


def test_what_gives_the_kind_of_a_cell_or_the_amount_behind_a_share_away_is_refused():
    data = people(300)
    flagged = data[["age", "wage"]].assign(seen=data["wage"].notna().astype(int))
    flagged["wage"] = flagged["wage"].replace([-8, -9], 9.0)
    with pytest.raises(hr.HedgerowError, match="publish the outcome 'wage: kind'"):
        hr.Synthesizer({"wage": hr.Column("wage ~ age", missing="synthesized")}).fit(flagged)
    copied = data[["age", "gross", "rent"]].assign(again=data["rent"])
    with pytest.raises(hr.HedgerowError, match="publish the outcome 'rent: share'"):
        hr.Synthesizer({"rent": hr.Column("rent ~ age", "beta", share_of="gross")}).fit(copied)


def test_classes_that_are_numbers_have_gaps_and_cells_read_them():
    """The type of the column says what its classes are: its cells are gaps too."""
    random = np.random.default_rng(1)
    data = pd.DataFrame({"g": random.choice(list("ab"), 200), "flag": random.choice([0.0, 1.0], 200)})
    data["status"] = random.choice(["on", "off"], 200)
    data.loc[::9, "flag"] = np.nan
    classes = {
        "flag": hr.Family("dirichlet", lower=0, upper=1),
        "status": hr.Family("dirichlet", levels=("on", "off")),
    }
    columns = {
        "flag": hr.Column("flag ~ C(g)", classes["flag"], missing="synthesized", kinds_by="C(g)"),
        "status": hr.Column("status ~ C(flag)", classes["status"]),
    }
    copy = hr.Synthesizer(columns, standard=hr.Unweighted(), draws=100, seed=1).fit(data).sample().tables[0]
    assert set(copy["flag"].dropna()) == {0.0, 1.0}
    assert 0 < copy["flag"].isna().mean() < 0.3
    assert set(copy["status"]) == {"on", "off"}
