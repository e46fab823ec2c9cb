"""Files as people have them: labelled codes, rounded amounts, spreadsheets, decimal commas, an index."""

from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pyreadstat
import pytest

from hedgerow.cli.screen import format_figure
from hedgerow.tables import files

GOOD = ("--epsilon", 60, "--draws", 200, "--out", "release")
ROWS = 120
TABLE = pd.DataFrame(
    {
        "pay": np.exp(np.random.default_rng(1).normal(8, 1, ROWS)).round(2),
        "region": np.random.default_rng(2).choice([1.0, 2.0, 11.0], ROWS),
        "hours": np.random.default_rng(3).uniform(1, 60, ROWS).round(1),
    }
)
REGIONS = {1: "north", 2: "south", 11: "overseas"}


def _plan() -> str:
    return Path("release/public/plan.yaml").read_text()


@pytest.mark.parametrize("ending", [".sav", ".dta"])
def test_labelled_codes_are_categories_and_copies_keep_codes_and_labels(hedgerow, ending):
    writer = pyreadstat.write_sav if ending == ".sav" else pyreadstat.write_dta
    writer(TABLE, f"pay{ending}", variable_value_labels={"region": REGIONS})
    done = hedgerow("synthesize", f"pay{ending}", "--formula", "pay ~ region + hours", *GOOD)
    assert done.code == 0, done.err
    assert "the 3 codes of 'region' have value labels and enter the formula as categories" in done.text
    assert "formula: pay ~ 1 + C(region) + hours" in _plan()
    copy = files.read(f"release/public/synthetic-copy-1{ending}")
    assert copy.frame["region"].to_pylist() == TABLE["region"].tolist()
    assert copy.dictionary.value_labels["region"] == REGIONS
    assert hedgerow("verify", "release").code == 0
    said = hedgerow("compare", f"pay{ending}", "--formula", "pay ~ region + hours", "--draws", 200)
    assert (said.code, "as categories, C(region)" in said.text) == (0, True)
    numbers = hedgerow("compare", f"pay{ending}", "--formula", "pay ~ I(region) + hours", "--draws", 200)
    assert (numbers.code, "categories" in numbers.text) == (0, False)


def test_a_box_is_asked_for_the_same_columns_as_a_release(hedgerow):
    pyreadstat.write_sav(TABLE[["region", "hours"]], "pay.sav", variable_value_labels={"region": REGIONS})
    box = "{Intercept: [5, 9], 'C(region)[T.2.0]': [-1, 1], 'C(region)[T.11.0]': [-1, 1], sigma: [0.5, 2]}"
    done = hedgerow("box", "pay.sav", "--formula", "pay ~ region", "--box", box)
    assert done.code == 0, done.err
    assert "as categories, C(region)" in done.text


def test_copies_keep_a_declared_rounding_and_the_certificate_says_so(hedgerow):
    TABLE.to_csv("pay.csv", index=False)
    declared = "{type: integer, multiple_of: 100}"
    done = hedgerow("synthesize", "pay.csv", "--formula", "pay ~ hours", "--declared", declared, *GOOD)
    assert done.code == 0, done.err
    pay = pd.read_csv("release/public/synthetic-copy-1.csv")["pay"]
    assert pay.dtype == np.int64
    assert pay.min() > 0
    assert (pay % 100 == 0).all()
    certificate = Path("release/public/certificate.md").read_text()
    assert "type integer, multiple of 100" in certificate
    assert hedgerow("verify", "release").code == 0


def test_no_minus_is_shown_before_zero():
    assert [format_figure(value) for value in (-0.0, 0.0, -1.5)] == ["0", "0", "-1.5"]


def test_a_copy_of_a_spreadsheet_is_one_and_says_what_it_is(hedgerow):
    with pd.ExcelWriter("pay.xlsx") as book:
        pd.DataFrame({"note": ["read me"]}).to_excel(book, sheet_name="about", index=False)
        TABLE.assign(who="a&b").to_excel(book, sheet_name="2024 secret survey")  # with its index
    done = hedgerow(
        "synthesize", "pay.xlsx", "--sheet", "2024 secret survey", "--formula", "pay ~ hours", *GOOD
    )
    assert done.code == 0, done.err
    assert "an index without a name" in done.text
    copy = Path("release/public/synthetic-copy-1.xlsx")
    book = openpyxl.load_workbook(copy)
    assert book.properties.description.startswith("Synthetic, not real records: hedgerow release ")
    assert book.sheetnames == ["data"]
    assert "secret survey" not in _plan()
    frame = pd.read_excel(copy)
    assert frame["hours"].tolist() == TABLE["hours"].tolist()
    assert (frame["pay"] > 0).all()
    assert hedgerow("verify", "release").code == 0
    assert hedgerow("verify", "release", "--ledger", "ledger.sqlite").code == 0


def test_a_file_with_decimal_commas_needs_no_flag_and_copies_have_them(hedgerow):
    TABLE.to_csv("pay.csv", index=False, sep=";", decimal=",")
    done = hedgerow("synthesize", "pay.csv", "--formula", "pay ~ hours", *GOOD)
    assert done.code == 0, done.err
    assert "read with a decimal comma" in done.text
    copy = pd.read_csv("release/public/synthetic-copy-1.csv", sep=";", decimal=",")
    assert copy["hours"].tolist() == TABLE["hours"].tolist()
    assert hedgerow("verify", "release").code == 0
