"""Columns that give the outcome away are told from columns that real tables have."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers.giveaways import HIDDEN, INNOCENT, Case, firms

import hedgerow as hr
from hedgerow.errors import DataError, HedgerowWarning, SettingError
from hedgerow.evidence.giveaways import _choose_rows, find_combined, find_giveaways
from hedgerow.evidence.giveaways.agreement import Levels
from hedgerow.tables.table import Table


def findings(case: Case):
    table = Table.of(case.frame)
    released = [name for name in table.columns if name != "payroll"]
    return find_giveaways(table, table.numbers("payroll"), released)


@pytest.mark.parametrize("name", HIDDEN)
def test_ways_to_hide_the_outcome_are_refused_by_name(name):
    case = HIDDEN[name]()
    worst = findings(case)[0]
    assert worst.refused
    assert case.column in (*worst.columns, worst.what)


@pytest.mark.parametrize("name", INNOCENT)
def test_columns_that_real_tables_have_are_not_refused(name):
    assert not [str(finding) for finding in findings(INNOCENT[name]()) if finding.refused]


def test_one_innocent_column_in_thirty_is_warned_about():
    assert [name for name, make in INNOCENT.items() if findings(make())] == ["last_years_rough_figure"]


# --- other tables, made after the check ---------------------------------------------------------------------


def outcomes(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    z = rng.normal(size=n)
    amounts = np.round(np.exp(6 + z), 2)
    return {
        "amount": amounts,
        "heavy tail": rng.standard_cauchy(n),
        "zeros": np.where(rng.uniform(size=n) < 0.6, 0.0, amounts),
        "binary": rng.integers(0, 2, n).astype(float),
        "rare": (np.arange(n) % 31 == 7).astype(float),
        "ordinal": np.clip(np.floor(2.5 + 1.3 * z), 0, 4),
        "count": rng.poisson(2, n).astype(float),
        "narrow": np.round(37 + 0.4 * z, 1),
        "thousands": np.round(np.exp(8 + z), -3),
    }


def ordinary_columns(rng: np.random.Generator, outcome: np.ndarray) -> pd.DataFrame:
    n = len(outcome)
    columns = {f"dummy{k}": rng.uniform(size=n) < rng.uniform(0.01, 0.6) for k in range(25)}
    days = pd.to_timedelta(rng.integers(0, 8000, n), unit="D")
    columns |= {
        "age": rng.integers(0, 100, n),
        "temperature": np.round(rng.normal(37, 0.4, n), 1),
        "turnover": np.round(np.exp(rng.normal(6, 1, n)), 2),
        "material": np.round(np.exp(rng.normal(6, 1, n)), 2),
        "phone": [f"+49 {a} {b}" for a, b in rng.integers(100, 10**6, (n, 2))],
        "since": pd.Timestamp("2001-01-01") + days,
        "day": (pd.Timestamp("2001-01-01") + days).strftime("%Y-%m-%d"),
        "household": rng.permutation(n) // 3,
        "gaps": np.where(rng.uniform(size=n) < 0.97, np.nan, rng.normal(size=n)),
    }
    if len(np.unique(outcome)) > 12:
        columns["other_amount"] = np.where(outcome == 0, 0, np.round(np.exp(rng.normal(6, 1, n)), 2))
        columns["quarter"] = np.searchsorted(np.quantile(outcome, [0.25, 0.5, 0.75]), outcome)
    return pd.DataFrame(columns)


def disguises(rng: np.random.Generator, outcome: np.ndarray) -> dict[str, dict[str, object]]:
    n = len(outcome)
    heads, part, share = rng.integers(2, 60, n), np.exp(rng.normal(6, 1, n)).round(2), rng.uniform(size=n)
    swapped = str.maketrans(",.", ".,")
    return {
        "itself": {"hidden": outcome},
        "for half": {"hidden": np.where(share < 0.5, outcome, np.nan)},
        "monthly": {"hidden": -outcome / 12},
        "another scale": {"hidden": 1.8 * outcome + 32},
        "words": {"hidden": [f"EUR {value:,.2f}".translate(swapped) for value in outcome]},
        "a file number": {"hidden": [f"K{k}/{value:.2f}/x" for k, value in zip(heads, outcome, strict=True)]},
        "its cube": {"hidden": outcome**3},
        "per head": {"hidden": np.round(outcome / heads, 4), "heads": heads},
        "a percentage": {"hidden": 100 * outcome / part, "part": part},
        "the rest": {"hidden": 3 * part - outcome, "part": 3 * part},
        "two parts": {"hidden": outcome * share, "second": outcome - outcome * share},
    }


@pytest.mark.parametrize("kind", outcomes(np.random.default_rng(0), 62))
@pytest.mark.parametrize("n", [124, 900])
def test_other_outcomes_are_told_from_what_is_around_them(kind, n):
    """Twenty-five dummies, zero-inflated and few-valued outcomes, heavy tails: no refusal, and no escape."""
    rng = np.random.default_rng([n, 2024])
    outcome = outcomes(rng, n)[kind]
    around = ordinary_columns(rng, outcome)
    assert not [str(f) for f in find_giveaways(Table.of(around), outcome, around.columns) if f.refused]
    few = around[["age", "turnover", "phone", "dummy3"]]
    for name, columns in disguises(rng, outcome).items():
        frame = pd.DataFrame({**few, **columns})
        worst = find_giveaways(Table.of(frame), outcome, frame.columns)[:1]
        assert worst, name
        assert "hidden" in worst[0].columns, name
        assert worst[0].refused or kind == "rare", name


def test_an_outcome_that_hardly_anybody_has_is_found_in_a_large_table():
    rng = np.random.default_rng(6)
    case = np.isin(np.arange(30_000), rng.choice(30_000, 12, replace=False)).astype(float)
    columns = {"ill": np.where(case == 1, "yes", "no"), "age": rng.integers(0, 90, 30_000)}
    frame = pd.DataFrame(columns | {f"dummy{k}": rng.uniform(size=30_000) < 0.001 for k in range(5)})
    (finding,) = find_giveaways(Table.of(frame), case, frame.columns)
    assert (finding.columns, finding.refused) == (("ill",), True)


def test_a_rare_outcome_under_another_code_is_refused():
    rare = (np.arange(900) % 31 == 7).astype(float)
    frame = pd.DataFrame({"code": 7 - 2 * rare, "age": np.random.default_rng(8).integers(0, 90, 900)})
    (finding,) = find_giveaways(Table.of(frame), rare, frame.columns)
    assert (finding.columns, finding.refused) == (("code",), True)


@pytest.mark.parametrize("edges", [[0.0], [1.9], [-1.0, -0.3, 0.3, 1.0]], ids=["binary", "rare", "ordinal"])
def test_a_good_predictor_of_classes_in_a_small_table_is_not_refused(edges):
    """It parts the classes without an error in many of these tables, and is another variable all the same."""
    for seed in range(12):
        rng = np.random.default_rng([seed, 7])
        latent = rng.normal(size=40)
        classes = np.searchsorted(edges, latent).astype(float)
        frame = pd.DataFrame({"score": 0.97 * latent + 0.243 * rng.normal(size=40)})
        assert not [str(f) for f in find_giveaways(Table.of(frame), classes, frame.columns) if f.refused]


@pytest.mark.parametrize("text", [False, True])
def test_a_column_that_only_one_class_has_is_refused_by_its_gaps(text):
    """The day on which a benefit began, say, beside the protected answer whether there is one."""
    rng = np.random.default_rng(4)
    has = rng.uniform(size=300) < 0.4
    began = np.where(has, rng.integers(1, 31, 300).astype(float), np.nan)
    frame = pd.DataFrame({"began": began, "other": began[rng.permutation(300)]})
    if text:
        frame = frame.map(lambda day: None if np.isnan(day) else f"day {day:.0f}")
    (finding,) = find_giveaways(Table.of(frame), has.astype(float), ["began", "other"])
    told = finding.columns, finding.says, finding.refused
    assert told == (("began",), "has one outcome per level, by its gaps", True)
    amounts = np.where(has, np.exp(rng.normal(size=300)).round(3), 0.0)
    (finding,) = find_giveaways(Table.of(frame), amounts, ["began", "other"])
    told = finding.columns, finding.says, finding.refused
    assert told == (("began",), "tells who has the commonest value, by its gaps", False)


@pytest.mark.parametrize("n", [60, 5000])
def test_a_column_that_says_who_has_nothing_is_noted(n):
    """Amounts of the others are as hidden as before; of these the outcome itself is published."""
    rng = np.random.default_rng(n)
    has = rng.uniform(size=n) < 0.5
    amounts = np.where(has, np.exp(rng.normal(size=n)).round(3), 0.0)
    ways = np.where(has, rng.choice(["cash", "card"], n), "none")
    frame = pd.DataFrame({"has": has, "ways": ways, "other": rng.permutation(ways)})
    found = find_giveaways(Table.of(frame), amounts, list(frame))
    assert sorted((finding.columns, finding.says, finding.refused) for finding in found) == [
        ((name,), "tells who has the commonest value", False) for name in ("has", "ways")
    ]


@pytest.mark.parametrize(("only_where", "noted"), [("kids > 0", False), (None, True)])
def test_where_a_public_rule_says_that_there_is_nothing_its_column_tells_nothing(only_where, noted):
    """In rows that a public rule fixes the outcome is public; without the rule the same zeros are not."""
    random = np.random.default_rng(3)
    kids = random.integers(0, 3, 400)
    care = np.where(kids > 0, np.exp(random.normal(size=400)), 0.0)
    frame = pd.DataFrame({"kids": kids, "care": care, "rent": np.exp(random.normal(size=400))})
    ruled = {} if only_where is None else {"only_where": only_where, "otherwise": 0.0}
    columns = {
        "care": hr.Column("care ~ 1", "lognormal" if ruled else "zero_lognormal", **ruled),
        "rent": hr.Column("rent ~ 1"),
    }
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        strict = hr.Strict(limits={"care": (0.01, 100), "rent": (0.01, 100)})
        hr.Synthesizer(columns, standard=strict, epsilon=5, draws=100, seed=1).fit(frame)
    assert any("'kids' tells who has the commonest value" in str(note.message) for note in told) is noted


def test_members_of_a_household_with_one_income_are_noted_and_not_refused():
    rng = np.random.default_rng(5)
    household = np.repeat(np.arange(200), rng.integers(1, 5, 200))
    income = np.round(np.exp(rng.normal(8, 1, 200)))[household]
    frame = pd.DataFrame({"household": household, "age": rng.integers(0, 90, len(income))})
    (finding,) = find_giveaways(Table.of(frame), income, frame.columns)
    assert (str(finding), finding.refused) == ("'household' has one outcome per level", False)


def test_a_noted_column_is_noted_once_and_not_with_every_number_beside_it():
    rng = np.random.default_rng(8)
    ill = rng.integers(0, 2, 800)
    treated = np.where(rng.random(800) < 0.06, 1 - ill, ill)
    frame = pd.DataFrame({"treated": treated, "pressure": 140 + rng.integers(-9, 9, 800)})
    findings = find_giveaways(Table.of(frame), ill.astype(float), frame.columns)
    assert [str(finding) for finding in findings] == ["'treated' equals it in most rows"]


# --- what is done about them --------------------------------------------------------------------------------

BOX = hr.Strict({"Intercept": (0, 8), "log(employees)": (-1, 2), "sigma": (0.2, 3)})


def fit(frame, standard=None, **columns):
    formula = "payroll ~ log(employees)"
    synth = hr.Synthesizer(formula, standard=standard or hr.ADP(), epsilon=60.0, draws=100, seed=1)
    return synth.fit(frame, **columns)


@pytest.fixture
def telling() -> pd.DataFrame:
    frame, _ = firms(41, n=80)
    frame = frame[["employees", "payroll"]]
    return frame.assign(copy=frame["payroll"], per_head=frame["payroll"] / frame["employees"])


def test_the_worst_comes_first_and_both_ways_out_are_named(telling):
    with pytest.raises(DataError) as refused:
        fit(telling)
    words = str(refused.value)
    assert words.index("'copy' equals it") < words.index("'employees' × 'per_head' equals it")
    assert "leave out these columns: --drop copy --drop per_head (left_out= in Python)" in words
    assert "--drop employees" not in words, "the predictor stays"
    assert words.index("'copy' equals it") < words.index("per_head"), "the worst first"
    assert "--protect" not in words
    assert "--keep copy --keep employees --keep per_head, keep=" in words
    assert not any(str(value) in words for value in telling["payroll"])
    fit(telling, left_out=["copy", "per_head"])
    fit(telling, keep=["copy", "employees", "per_head"])


def test_the_order_of_rows_is_no_column_to_leave_out():
    rng = np.random.default_rng(2)
    employees = np.sort(rng.integers(1, 400, 300))
    frame = pd.DataFrame({"employees": rng.integers(1, 50, 300), "payroll": employees * 30.0})
    frame["payroll"] *= np.exp(rng.normal(0, 0.1, 300))
    with pytest.warns(HedgerowWarning, match=r"the order of the rows .* public, shuffle the rows\.$"):
        fit(frame)


def test_a_pair_is_kept_only_if_both_are(telling):
    pair = telling.drop(columns="copy")
    with pytest.raises(DataError, match="per_head"):
        fit(pair, keep=["per_head"])
    kept = fit(pair, keep=["per_head", "employees"]).sample()
    assert any("keeps per_head, employees in the copies on purpose" in c for c in kept.guarantee.caveats())
    assert list(kept.tables[0].columns) == ["employees", "payroll", "per_head"]
    with pytest.raises(DataError, match="per_head"):
        hr.compare("payroll ~ log(employees)", pair, draws=100, keep=["per_head"])
    assert not any(
        "on purpose" in c for c in fit(telling[["payroll", "employees"]]).sample().guarantee.caveats()
    )


def test_what_is_kept_must_be_there_to_keep(telling):
    for keep, left_out, words in (
        (["payroll"], [], "is protected; it cannot"),
        (["copy"], ["copy"], "kept and left out"),
        (["cpy"], [], "No column named 'cpy'"),
    ):
        with pytest.raises((SettingError, DataError), match=words):
            fit(telling, keep=keep, left_out=left_out)


def test_a_strict_release_does_not_depend_on_what_is_found(telling):
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always", HedgerowWarning)
        told = fit(telling, BOX).sample()
    assert sum("'copy' equals it" in str(warning.message) for warning in shown) == 1
    quiet = fit(telling, BOX, keep=["copy", "per_head", "employees"]).sample()
    pd.testing.assert_frame_equal(told.tables[0], quiet.tables[0])
    assert [c for c in quiet.guarantee.caveats() if c not in told.guarantee.caveats()] == [
        "The owner keeps copy, per_head, employees in the copies on purpose, whatever they say about "
        "'payroll': what can be computed from them is published."
    ]


def test_any_kind_of_column_can_be_looked_at():
    frame, _ = firms(42, n=60)
    payroll = frame["payroll"].to_numpy()
    odd = pl.DataFrame(
        {
            "lists": [[1, k] for k in range(60)],
            "structs": [{"a": k, "b": None} for k in range(60)],
            "bytes": [bytes([k, 255]) for k in range(60)],
            "nothing": [None] * 60,
            "mixed": pl.Series([None, "", "-", "1e999", "−5", "9" * 400] * 10),
            "long": pl.Series([None, *range(59)]).cast(pl.Duration("ms")),
            "time": pl.Series(range(60)).cast(pl.Time),
            "infinite": [float("inf"), float("-inf"), float("nan"), 0.0, 5e-324, 1e308] * 10,
            "big": pl.Series([2**62 + k for k in range(60)]),
            "flag": [True, None, False] * 20,
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_giveaways(Table.of(odd), payroll, odd.columns) == []
        day = pd.date_range("2020-01-01", periods=59, tz="Europe/Paris")
        more = pd.DataFrame(
            {
                "whole": pd.array([None, *range(59)], dtype="Int64"),
                "real": pd.array([None, *np.sin(range(59))], dtype="Float64"),
                "flag": pd.array([None, *[True, False] * 29, True], dtype="boolean"),
                "kind": pd.Categorical([None, *"abcabcabc" * 6, *"abcde"]),
                "zone": [pd.NaT, *day],
                "month": [pd.NaT, *day.tz_localize(None).to_period("M")],
            }
        )
        for table in (more, pa.Table.from_pandas(more.drop(columns="month"))):
            assert find_giveaways(Table.of(table), payroll, Table.of(table).columns) == []
        one = odd.with_columns(list=pl.Series(payroll.reshape(-1, 1).tolist()))
        assert [f.columns for f in find_giveaways(Table.of(one), payroll, one.columns)] == [("list",)]


@pytest.mark.parametrize("digits", [0, 1, 9])
def test_levels_and_classes_of_a_column_are_those_of_its_sorted_values(digits):
    cells = np.round(np.random.default_rng(digits).normal(size=5000), digits) + 0.0
    levels, codes, counts = np.unique(cells, return_inverse=True, return_counts=True)
    found = Levels(cells)
    assert np.array_equal(found.counts, counts)
    assert np.array_equal(found.codes, codes)
    classes = found.classes(slice(None))
    share = (np.cumsum(counts) - counts / 2) / 5000  # of the records below the middle of each value
    tenths = np.arange(len(counts)) if len(counts) <= 20 else np.floor(10 * share)
    assert np.array_equal(classes, np.unique(tenths, return_inverse=True)[1][codes])
    assert np.array_equal(found.classes(slice(100, 300)), classes[100:300])
    assert found.many == classes.max() + 1
    text = Levels(cells.astype(np.str_))  # whose rare levels are one class
    assert np.array_equal(text.codes, np.unique(cells.astype(np.str_), return_inverse=True)[1])
    assert np.array_equal(text.classes(slice(None)) == 0, (counts < 5)[codes])
    assert len(levels) <= 20 or set(np.bincount(classes) // 400) <= {0, 1, 2}


def test_missing_values_are_one_level():
    found = Levels(np.array([2.0, np.nan, 1.0, np.nan, 2.0]))
    assert found.counts.tolist() == [1, 2, 2]
    assert found.codes.tolist() == [1, 2, 0, 2, 1]


def test_rows_that_a_long_table_is_judged_by_have_the_rare_outcomes():
    values = np.zeros(100_000)
    values[::1000] = np.arange(1, 101)
    rows = _choose_rows(values, 0.0)
    assert len(rows) == len(set(rows.tolist())) == 2000
    assert np.count_nonzero(values[rows]) == 100
    usual = _choose_rows(np.arange(100_000.0), 0.0)
    assert len(set(usual.tolist())) == 2000
    assert usual.max() > 90_000


def combined(**public):
    """What is found of three protected columns in public ones."""
    random = np.random.default_rng(5)
    wage, bonus, tax = np.exp(random.normal(7, 0.5, (3, 800))).round(2)
    columns = {name: make(wage, bonus, tax) for name, make in public.items()}
    table = Table.of(pd.DataFrame({"age": random.integers(18, 66, 800), **columns}))
    return find_combined(table, {"wage": wage, "bonus": bonus, "tax": tax}, table.columns)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda wage, bonus, tax: wage + bonus, "'total' equals 'wage' + 'bonus'"),
        (lambda wage, bonus, tax: wage - tax, "'total' equals 'wage' − 'tax'"),
        (lambda wage, bonus, tax: bonus / wage, "'total' equals 'bonus' / 'wage'"),
        (lambda wage, bonus, tax: 12 * (bonus + tax), "equals 'bonus' + 'tax' up to a constant factor"),
        (lambda wage, bonus, tax: wage + bonus + tax, "'total' equals the sum of the protected columns"),
    ],
)
def test_a_public_total_or_rate_of_protected_columns_is_refused_by_name(make, says):
    (finding,) = combined(total=make)
    assert finding.refused
    assert finding.columns == ("total",)
    assert says in str(finding)


def test_a_public_column_that_goes_with_protected_ones_is_not_refused():
    def index(wage, bonus, tax):
        return wage * np.exp(np.random.default_rng(6).normal(0, 0.2, len(wage)))

    assert not combined(index=index, large=lambda wage, bonus, tax: (wage + bonus > 2500).astype(int))
