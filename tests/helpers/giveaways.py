"""Columns that give a protected outcome away, and columns that do not: written before the check that holds
them apart, and not to be changed to suit it.

Each case is a table of firms with the outcome `payroll`, the formula in use, and the one column (or rows) in
question. `HIDDEN` cases publish the outcome, its order or nearly so; `INNOCENT` cases are what real tables
have, some of them strongly correlated with the outcome.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Case:
    frame: pd.DataFrame
    column: str  # the one in question
    formula: str = "payroll ~ employees"
    family: str = "lognormal"


def firms(seed: int, n: int = 400) -> tuple[pd.DataFrame, np.random.Generator]:
    """A table of firms: payroll follows employees with correlation near 0.9, on the log scale."""
    rng = np.random.default_rng(seed)
    employees = np.ceil(np.exp(rng.normal(2.5, 1.2, n))).astype(int)
    sector = rng.choice(["building", "care", "retail", "transport"], n)
    founded = rng.integers(1950, 2024, n)
    rate = np.exp(rng.normal(3.3, 0.45, n) + 0.1 * (sector == "care"))
    frame = pd.DataFrame(
        {
            "employees": employees,
            "sector": sector,
            "founded": founded,
            "payroll": np.round(employees * rate, 2),
        }
    )
    return frame, rng


HIDDEN: dict[str, Callable[[], Case]] = {}
INNOCENT: dict[str, Callable[[], Case]] = {}


def hidden(make: Callable[[], Case]) -> Callable[[], Case]:
    HIDDEN[make.__name__] = make
    return make


def innocent(make: Callable[[], Case]) -> Callable[[], Case]:
    INNOCENT[make.__name__] = make
    return make


def _with(seed: int, values: Callable[[pd.DataFrame, np.random.Generator], object], **more: str) -> Case:
    frame, rng = firms(seed)
    frame["other"] = values(frame, rng)
    return Case(frame, "other", **more)


# --- thirty ways to publish the outcome ---------------------------------------------------------------------


@hidden
def itself() -> Case:
    return _with(1, lambda f, r: f["payroll"])


@hidden
def itself_with_ties() -> Case:
    frame, _ = firms(2)
    frame["payroll"] = (frame["payroll"] / 500).round() * 500 + 500
    frame["other"] = frame["payroll"]
    return Case(frame, "other")


@hidden
def itself_with_an_empty_cell() -> Case:
    return _with(3, lambda f, r: f["payroll"].where(f.index != 7))


@hidden
def text_with_a_unit() -> Case:
    return _with(4, lambda f, r: f["payroll"].map("{:.2f} EUR".format))


@hidden
def text_with_thousands() -> Case:
    return _with(5, lambda f, r: f["payroll"].map("{:,.2f}".format))


@hidden
def text_with_decimal_comma() -> Case:
    return _with(6, lambda f, r: f["payroll"].map(lambda x: f"{x:.2f}".replace(".", ",")))


@hidden
def a_category() -> Case:
    return _with(7, lambda f, r: pd.Categorical(f["payroll"].astype(str)))


@hidden
def a_date() -> Case:
    start = pd.Timestamp("2000-01-01")
    return _with(8, lambda f, r: start + pd.to_timedelta(f["payroll"].round().astype(int), unit="h"))


@hidden
def a_decimal() -> Case:
    return _with(9, lambda f, r: [Decimal(f"{x:.2f}") for x in f["payroll"]])


@hidden
def a_count_itself() -> Case:
    frame, rng = firms(10)
    frame["payroll"] = rng.poisson(3, len(frame))
    frame["other"] = frame["payroll"]
    return Case(frame, "other", family="poisson")


@hidden
def eight_rows() -> Case:
    frame, _ = firms(11, n=8)
    frame["other"] = frame["payroll"]
    return Case(frame, "other")


@hidden
def one_altered_row() -> Case:
    return _with(12, lambda f, r: f["payroll"].where(f.index != 3, 1.0))


@hidden
def five_altered_rows() -> Case:
    return _with(13, lambda f, r: f["payroll"].where(~f.index.isin([1, 50, 99, 200, 300]), f["employees"]))


@hidden
def a_predictor_per_head() -> Case:
    case = _with(14, lambda f, r: f["payroll"] / f["employees"])
    return Case(case.frame, "other", formula="payroll ~ employees + other")


@hidden
def a_share_of_a_total() -> Case:
    frame, rng = firms(15)
    frame["turnover"] = np.round(frame["payroll"] * rng.uniform(2, 9, len(frame)), 2)
    frame["other"] = frame["payroll"] / frame["turnover"]
    return Case(frame, "other")


@hidden
def what_is_left_of_turnover() -> Case:
    frame, rng = firms(16)
    frame["turnover"] = np.round(frame["payroll"] * rng.uniform(2, 9, len(frame)), 2)
    frame["other"] = frame["turnover"] - frame["payroll"]
    return Case(frame, "other")


@hidden
def total_with_a_public_part() -> Case:
    frame, rng = firms(17)
    frame["material"] = np.round(np.exp(rng.normal(6, 1, len(frame))), 2)
    frame["other"] = frame["payroll"] + frame["material"]
    return Case(frame, "other")


@hidden
def product_with_a_public_rate() -> Case:
    frame, rng = firms(18)
    frame["tax_rate"] = rng.uniform(0.1, 0.4, len(frame)).round(3)
    frame["other"] = frame["payroll"] * frame["tax_rate"]
    return Case(frame, "other")


@hidden
def thousands_of_euros() -> Case:
    return _with(19, lambda f, r: (f["payroll"] / 1000).round(3))


@hidden
def logarithm() -> Case:
    return _with(20, lambda f, r: np.log(f["payroll"]))


@hidden
def negative() -> Case:
    return _with(21, lambda f, r: -f["payroll"])


@hidden
def rank() -> Case:
    return _with(22, lambda f, r: f["payroll"].rank().astype(int))


@hidden
def percentile() -> Case:
    return _with(23, lambda f, r: (100 * f["payroll"].rank(pct=True)).round(0))


@hidden
def rounded_to_two_digits() -> Case:
    return _with(24, lambda f, r: [float(f"{x:.1e}") for x in f["payroll"]])


@hidden
def within_half_a_percent() -> Case:
    return _with(25, lambda f, r: f["payroll"] * (1 + r.uniform(-0.005, 0.005, len(f))))


@hidden
def a_code_for_each_value() -> Case:
    frame, rng = firms(26)
    frame["payroll"] = (frame["payroll"] / 500).round() * 500 + 500
    levels = frame["payroll"].unique()
    codes = dict(zip(levels, rng.permutation(len(levels)), strict=True))
    frame["other"] = frame["payroll"].map(codes).map("band {}".format)
    return Case(frame, "other")


@hidden
def the_order_of_the_rows() -> Case:
    frame, _ = firms(27)
    return Case(frame.sort_values("payroll", ignore_index=True), "the order of the rows")


@hidden
def an_index() -> Case:
    frame, _ = firms(28)
    return Case(frame.set_index(frame["payroll"].rename(None)), "the index")


@hidden
def hidden_in_an_identifier() -> Case:
    return _with(29, lambda f, r: [f"F{i:04d}-{x:.0f}" for i, x in enumerate(f["payroll"])])


@hidden
def hexadecimal() -> Case:
    return _with(30, lambda f, r: (100 * f["payroll"]).round().astype(int).map("{:08x}".format))


# --- thirty columns that real tables have -------------------------------------------------------------------


@innocent
def a_predictor_at_0_9() -> Case:
    frame, _ = firms(101)
    return Case(frame, "employees")


@innocent
def correlated_at_0_95() -> Case:
    return _with(102, lambda f, r: np.round(f["payroll"] * np.exp(r.normal(0, 0.4, len(f))), 2))


@innocent
def last_years_rough_figure() -> Case:
    return _with(103, lambda f, r: np.round(f["payroll"] * np.exp(r.normal(0, 0.2, len(f))), -2))


@innocent
def size_class() -> Case:
    return _with(104, lambda f, r: pd.cut(f["employees"], [0, 9, 49, 249, 10**9], labels=list("SMLX")))


@innocent
def five_bands_of_the_outcome() -> Case:
    return _with(105, lambda f, r: pd.cut(f["payroll"], [0, 200, 500, 2000, 9000, 1e12], labels=False))


@innocent
def a_flag() -> Case:
    return _with(106, lambda f, r: f["payroll"] > 1000)


@innocent
def firm_number() -> Case:
    return _with(107, lambda f, r: np.arange(len(f)))


@innocent
def random_identifier() -> Case:
    return _with(108, lambda f, r: [f"{x:012x}" for x in r.integers(0, 2**48, len(f))])


@innocent
def postcode() -> Case:
    return _with(109, lambda f, r: r.integers(10000, 99999, len(f)).astype(str))


@innocent
def name_of_the_firm() -> Case:
    return _with(110, lambda f, r: [f"{s.title()} {i} Ltd" for i, s in enumerate(f["sector"])])


@innocent
def date_of_registration() -> Case:
    return _with(111, lambda f, r: pd.to_datetime(f["founded"].astype(str) + "-07-01"))


@innocent
def latitude() -> Case:
    return _with(112, lambda f, r: r.uniform(47, 55, len(f)).round(5))


@innocent
def survey_weight() -> Case:
    return _with(113, lambda f, r: (1 + 200 / f["employees"]).round(2))


@innocent
def a_constant() -> Case:
    return _with(114, lambda f, r: 1)


@innocent
def an_empty_column() -> Case:
    return _with(115, lambda f, r: np.full(len(f), np.nan))


@innocent
def mostly_empty() -> Case:
    return _with(116, lambda f, r: np.where(r.uniform(size=len(f)) < 0.95, np.nan, r.normal(size=len(f))))


@innocent
def hours_worked() -> Case:
    return _with(117, lambda f, r: np.round(f["employees"] * r.uniform(25, 40, len(f)), 1))


@innocent
def turnover() -> Case:
    return _with(118, lambda f, r: np.round(f["payroll"] * r.uniform(2, 9, len(f)), 2))


@innocent
def employees_squared() -> Case:
    return _with(119, lambda f, r: f["employees"] ** 2)


@innocent
def log_of_employees() -> Case:
    return _with(120, lambda f, r: np.log(f["employees"]))


@innocent
def another_independent_amount() -> Case:
    return _with(121, lambda f, r: np.round(np.exp(r.normal(6, 1, len(f))), 2))


@innocent
def year_of_founding() -> Case:
    frame, _ = firms(122)
    return Case(frame, "founded")


@innocent
def sector() -> Case:
    frame, _ = firms(123)
    return Case(frame, "sector", formula="payroll ~ employees + C(sector)")


@innocent
def few_rows() -> Case:
    frame, rng = firms(124, n=9)
    frame["other"] = rng.integers(1, 5, 9)
    return Case(frame, "other")


@innocent
def a_binary_outcome_and_its_best_predictor() -> Case:
    frame, rng = firms(125)
    frame["payroll"] = (frame["employees"] + rng.normal(0, 10, len(frame)) > 15).astype(int)
    frame["other"] = frame["employees"] > 15
    return Case(frame, "other", family="bernoulli")


@innocent
def a_count_that_agrees_by_chance() -> Case:
    frame, rng = firms(126)
    frame["payroll"] = rng.poisson(0.3, len(frame))
    frame["other"] = rng.poisson(0.3, len(frame))
    return Case(frame, "other", family="poisson")


@innocent
def a_class_whose_mean_rises() -> Case:
    return _with(127, lambda f, r: np.minimum(np.log2(f["employees"]).astype(int), 7))


@innocent
def working_time_share() -> Case:
    return _with(128, lambda f, r: r.beta(5, 2, len(f)).round(2))


@innocent
def hours_and_a_wage_floor() -> Case:
    frame, rng = firms(129)
    frame["floor"] = rng.choice([11.5, 12.0, 12.41], len(frame))
    frame["other"] = np.round(frame["employees"] * rng.uniform(25, 40, len(frame)), 1)
    return Case(frame, "other")


@innocent
def free_text() -> Case:
    return _with(130, lambda f, r: [f"note {x}" for x in r.integers(1, 60, len(f))])
