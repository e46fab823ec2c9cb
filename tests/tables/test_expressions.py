"""Conditions and arithmetic over columns, by a whitelist."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from hedgerow.errors import FormulaError
from hedgerow.tables.expressions import parse_expression
from hedgerow.tables.table import Table

CELLS = {
    "status": ["work", "rest", None, "work"],
    "pay": [10.0, None, 3.0, -8.0],
    "the hours": [2, 0, 1, 4],
    "flag": [True, False, True, True],
}
FRAMES = (pd.DataFrame(CELLS), pl.DataFrame(CELLS), pl.DataFrame(CELLS).to_arrow())
CODES = {"pay": (-8,)}


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "arrow"])
@pytest.mark.parametrize(
    ("text", "holds", "may_hold"),
    [
        ("status == 'work'", "1001", "1011"),
        ("not status == 'work'", "0100", "0110"),
        ("status in ('rest', 'work')", "1101", "1111"),
        ("status not in ['rest']", "1001", "1011"),
        ("status is None", "0010", "0010"),
        ("pay > 2", "1010", "1111"),  # a code is no amount, and nobody knows what is missing
        ("pay == -8", "0001", "0101"),
        ("0 < `the hours` <= 2", "1010", "1010"),
        ("pay / `the hours` >= 3 or flag == False", "1110", "1111"),
        ("pay is not None and max(pay, 5) > 5", "1000", "1001"),
    ],
)
def test_conditions_are_true_false_or_doubtful_where_something_is_missing(frame, text, holds, may_hold):
    rule, table = parse_expression(text), Table.of(frame)
    for doubt, wanted in ((False, holds), (True, may_hold)):
        assert "".join(map(str, rule.holds(table, CODES, doubt=doubt).astype(int))) == wanted


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars", "arrow"])
def test_arithmetic_has_no_result_where_a_part_is_missing_a_code_or_not_finite(frame):
    table = Table.of(frame)
    found = parse_expression("2 * pay - sqrt(`the hours`) ** 2").numbers(table, CODES)
    np.testing.assert_allclose(found, [18, np.nan, 5, np.nan])
    np.testing.assert_allclose(parse_expression("1 / `the hours`").numbers(table), [0.5, np.nan, 1, 0.25])


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')", "pay.real", "pay[0]", "[x for x in pay]", "lambda: 1",
        "pay if 1 else 2", "pay and status", "pay > (yield)", "f(pay)", "abs(pay, out=pay)", "pay ** 99",
        "pay ** pay", "'a' + 'b'", "(pay := 3)", "pay == {}", "", "pay ==", "`pay", "+".join(["pay"] * 200),
        "pay" * 1000, 3,
    ],
)  # fmt: skip
def test_what_is_not_on_the_list_is_refused_before_anything_is_read(text):
    with pytest.raises(FormulaError):
        parse_expression(text)


@pytest.mark.parametrize("text", ["status > 3", "pay == 'a'", "status / 2 > 1", "nobody > 2"])
def test_words_are_not_compared_with_numbers(text):
    with pytest.raises(Exception, match=r"words|no numbers|No column"):
        parse_expression(text).holds(Table.of(FRAMES[0]))
