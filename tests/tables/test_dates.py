"""Protected dates: modelled as days since 1970-01-01, written as dates."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import hedgerow as hr
from hedgerow.errors import DataError, SettingError
from hedgerow.tables.table import Table

DAYS = np.array([18_000, 18_400, 19_000])
TYPES = {
    "nanoseconds": lambda days: pd.DataFrame({"day": pd.to_datetime(days.astype("datetime64[ns]"))}),
    "seconds": lambda days: pd.DataFrame({"day": days.astype("datetime64[s]")}),
    "arrow in pandas": lambda days: pd.DataFrame({"day": pd.Series(days, dtype="date32[pyarrow]")}),
    "polars": lambda days: pl.DataFrame({"day": days}).with_columns(pl.col("day").cast(pl.Date)),
    "polars times": lambda days: pl.DataFrame({"day": days.astype("datetime64[us]")}),
    "arrow": lambda days: pa.table({"day": pa.array(days, pa.date32())}),
}


@pytest.mark.parametrize("kind", TYPES)
def test_dates_are_days_and_days_are_dates_of_the_same_type(kind):
    native = TYPES[kind](DAYS.astype("datetime64[D]"))
    table = Table.of(native)
    np.testing.assert_array_equal(table.outcome("day", None), DAYS)
    copy = Table.of(table.with_column("day", np.array([18_000.4, 5.0, 2e9])))
    assert copy.frame["day"].dtype == table.frame["day"].dtype
    assert [str(day)[:10] for day in copy.frame["day"].to_list()[:2]] == ["2019-04-14", "1970-01-06"]
    np.testing.assert_array_equal(copy.outcome("day", None)[:2], [18_000, 5])
    assert copy.outcome("day", None)[2] > 100_000  # as late as the type goes


def test_declared_dates_have_a_type_and_limits_of_their_own():
    limits = hr.Declared("date", range_min="2019-01-01", range_max="2020-12-31")
    assert str(limits) == "type date, at least 2019-01-01, at most 2020-12-31"
    for native in (TYPES["nanoseconds"](DAYS.astype("datetime64[D]")), pa.table({"day": DAYS.astype(float)})):
        days = np.array([0.0, 18_000.0, 99_999.0])
        copy = Table.of(Table.of(native).with_column("day", days, declared=limits))
        found = [str(day)[:10] for day in copy.frame["day"].to_list()]
        assert found == ["2019-01-01", "2019-04-14", "2020-12-31"]


@pytest.mark.parametrize(
    "settings",
    [
        {"range_min": 5}, {"range_min": "soon"}, {"range_min": "2019-1-1"}, {"multiple_of": 7},
        {"decimal_places": 0}, {"range_min": "2020-01-01", "range_max": "2019-01-01"},
    ],
)  # fmt: skip
def test_what_is_no_declaration_of_dates_is_refused(settings):
    with pytest.raises(SettingError, match="Declared"):
        hr.Declared("date", **settings)


def test_times_with_a_zone_and_objects_are_refused():
    zone = pd.to_datetime(["2020-01-01"]).tz_localize("Europe/Zurich")
    for cells in (zone, [datetime.date(2020, 1, 1)]):
        with pytest.raises(DataError, match="must hold numbers"):
            Table.of(pd.DataFrame({"day": cells})).outcome("day", None)


def test_a_protected_date_and_an_amount_that_follows_from_it():
    random = np.random.default_rng(7)
    age = random.integers(20, 60, 400)
    days = np.rint(18_000 + 20 * (age - 40) + 100 * random.normal(size=400)).astype(int)
    wage = np.exp(8 - (days - 18_000) / 500 + 0.2 * random.normal(size=400))
    data = pl.DataFrame({"age": age, "hired": days, "wage": wage}).with_columns(pl.col("hired").cast(pl.Date))
    synth = hr.Synthesizer(
        {"hired": hr.Column("hired ~ age", "normal"), "wage": hr.Column("wage ~ hired")},
        bound="renyi", weights=hr.ScalarWeights(1), seed=1,
    )  # fmt: skip
    with pytest.warns(hr.HedgerowWarning, match="enters the formula as days"):
        synth.fit(data)
    copy = synth.sample().tables[0]
    assert copy.schema == data.schema
    assert (copy["hired"] != data["hired"]).mean() > 0.9
    made = copy["hired"].cast(pl.Int32).to_numpy()
    # Standard errors: 5 days of a mean, 0.03 of a correlation of -0.9; about five of them.
    assert abs(made.mean() - days.mean()) < 40
    pairs = (days, wage), (made, copy["wage"].to_numpy())
    ends = [np.corrcoef(day, np.log(pay))[0, 1] for day, pay in pairs]
    assert abs(ends[0] - ends[1]) < 0.1
