"""What the owner's report says of copies beside the original, and of what they are worth. Confidential."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hedgerow.report import pictures
from hedgerow.report.html import Html, details, element, figures, name, paragraph, reading, table
from hedgerow.report.parts.lost import show_lost

Document = Mapping[str, Any]
_FULL, _SHAPES = 6, 20  # columns with every picture, and with one
_BY_CHANCE = math.sqrt(math.pi / 2) * math.log(2)  # the mean of Kolmogorov's distribution
SPREAD = ("lowest copy", "mean of copies", "highest copy")


def show_structure(document: Document) -> list[Html | None]:
    columns = sorted(document["columns"], key=lambda column: -_find_gap(column))
    body: list[Html | None] = []
    if len(columns) > 1:
        rows = [
            {
                "column": name(column["column"]),
                "records": column["records"],
                "distance": _find_gap(column),
            }
            for column in columns
        ]
        shown = table(rows, caption="Distance of copies from the original", digits=2)
        body += [
            shown,
            reading(
                "The largest difference of the two distribution functions, 0 is best; of classes half the "
                "sum of all differences. The kind of a cell is whether it holds an amount, a gap or a code."
            ),
        ]
    for place, column in enumerate(columns[:_SHAPES]):
        made = [pictures.show_classes(column) if "levels" in column else pictures.show_shape(column)]
        if place < _FULL and "levels" not in column:
            made += [pictures.show_ecdf(column), pictures.show_quantiles(column)]
        if place < _FULL:
            made += [pictures.show_groups(column, group) for group in column.get("groups", ())]
        body += [element("h3", name(column["column"])) if len(columns) > 1 else None, figures(*made)]
    if len(columns) > _SHAPES:
        body.append(reading(f"Of {len(columns)} columns the {_SHAPES} that differ most are drawn."))
    if document["pairs"]:
        along = [pictures.show_relation(pair) for pair in document["pairs"] if pair.get("along")]
        body += [element("h3", "Pairs"), figures(pictures.show_pairs(document["pairs"]), *along)]
    return body or [paragraph("Copies have no values of the protected columns to compare.")]


def show_worth(document: Document, utility: Document | None) -> list[Html | None]:
    single = document["claim"]["copies"] == 1
    columns = [column for column in document["columns"] if "statistics" in column]
    rows = [
        {
            **({"column": name(column["column"])} if len(columns) > 1 else {}),
            "statistic": pictures.name_statistic(row["statistic"]),
            "original": row["original"],
            **({"copy": row["copies"][1]} if single else dict(zip(SPREAD, row["copies"], strict=True))),
        }
        for column in columns
        for row in column["statistics"]
    ]
    body: list[Html | None] = []
    made = [
        picture for column in columns[:_FULL] if (picture := pictures.show_statistics(column)) is not None
    ]
    if made:
        body.append(figures(*made))
    if rows:
        shown = table(rows, label="Statistics of original and copies")
        body.append(shown if len(rows) <= 12 else details("All statistics", shown))
        body.append(
            reading(
                "Lowest and highest are over copies: how much a receiver's result depends on which it is."
            )
        )
    body += [element("h3", "pMSE and named analyses")]
    if utility is None:
        return [*body, paragraph("Not run.")]
    return [*body, *show_lost(utility)]


def find_worst(columns: Sequence[Document]) -> tuple[float, str] | None:
    """How far the column that copies keep worst is from the original, and its name."""
    return max(((_find_gap(column), column["column"]) for column in columns), default=None)


def expect_by_chance(column: Document) -> float | None:
    """The mean distance of two samples as large as the column from one continuous distribution."""
    if "ecdf_max" not in column or column["few"]:
        return None
    return _BY_CHANCE * math.sqrt(2 / column["records"])


def _find_gap(column: Document) -> float:
    """How far the copies of a column are from the original; of classes the total variation distance."""
    if "ecdf_max" in column:
        return float(column["ecdf_max"][1])
    return sum(abs(row["original"] - row["copies"][1]) for row in column["levels"]) / 2
