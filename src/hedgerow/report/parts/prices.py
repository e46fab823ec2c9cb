"""What a fit costs, in pictures: by bound, by standard, by column and by record. Confidential."""

from collections.abc import Mapping
from typing import Any

from hedgerow.numerics.rounding import format_figure
from hedgerow.report import pictures
from hedgerow.report.charts import Rule
from hedgerow.report.html import Html, element, figures, reading

Document = Mapping[str, Any]


def show_prices(document: Document, compare: Document | None) -> list[Html | None]:
    """Pictures of the price; `compare` has the other standards on the same data, where they were tried."""
    claim, price, made = document["claim"], document.get("price"), list[Html]()
    if price is not None:
        made.append(pictures.show_bounds(price, claim["bound"], claim["standard"]))
    if compare is not None:
        made.append(pictures.show_standards(compare["standards"]))
    if price is not None:
        if price.get("by_column"):
            made.append(pictures.show_columns_price(price["by_column"]))
        made.append(_show_records(document["records"], price, claim["records"]))
    return [figures(*made) if made else None, _ask_for_standards(document) if compare is None else None]


def _show_records(records: Document, price: Document, every: int) -> Html:
    total, held = price["one"], records["price"]["count"]
    same = pictures.is_withheld(price)
    rule = None if total is None else Rule(total, f"price of one copy {format_figure(total)}")
    some, dearest = (
        ("every record", "records") if held == every else (f"{held:,} of {every:,} records", "of all")
    )
    return pictures.show_violins(
        records,
        ("price",) if same else ("price", "withheld"),
        "Price by record",
        "ε of one copy",
        f"{'The' if same else 'Each'} violin holds {some}; the ring is the median, the thick line the middle "
        f"half, dots the dearest {dearest} one by one. The price is the dearest record's.",
        rule=rule,
    )


def _ask_for_standards(document: Document) -> Html | None:
    """How to see other standards beside this one."""
    if "release" not in document:
        return reading("Other standards on the same data: ", element("code", "hr.compare"), ".")
    run = "hedgerow compare DATA --plan confidential/plan.yaml --json > confidential/compare.json"
    return reading(
        "Other standards on the same data were not compared. In the release folder ", element("code", run),
        " does it, and ", element("code", "hedgerow report ."), " shows them here; it counts as a look.",
    )  # fmt: skip
