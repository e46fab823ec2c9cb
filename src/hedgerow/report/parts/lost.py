"""The part of the owner's report on whole tables: pMSE, named analyses, tables of two columns. Confidential.

It shows a release's `confidential/utility.json`, of which every comparison has rows for copies and, as copies
called "pooled", "lowest" and "highest", for all of them.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hedgerow.report.axes import Axis
from hedgerow.report.charts import Row, Rule, dots
from hedgerow.report.html import (
    Html,
    bullets,
    details,
    element,
    figure,
    figures,
    name,
    paragraph,
    reading,
    table,
)
from hedgerow.report.pictures import name_statistic

Rows = Sequence[Mapping[str, Any]]
MODELS = {"main": "each column", "pairs": "columns and pairs", "cart": "a tree"}
_TABLES = 12  # of two columns that are drawn
_PRINTED = 40  # rows of a table that go on paper
_NORMAL = 1.96  # a 95 % interval reaches so many standard errors to each side


def show_lost(utility: Mapping[str, Any]) -> list[Html | None]:
    """Pictures and tables of what was lost, and why something is not among them."""
    made, left_out = [], list(utility.get("left_out", ()))
    if utility.get("propensity"):
        made.append(_show_propensity(utility["propensity"]))
    if utility.get("two_way"):
        made.append(_show_tables(utility["two_way"]))
    body: list[Html | None] = [figures(*made)] if made else []
    analyses = utility.get("analyses", ())
    if analyses:
        body.append(
            figures(*(_show_analysis(title, rows) for title, rows in _split(analyses, "analysis").items()))
        )
    else:
        body.append(paragraph("No analysis is named in the plan (analyses)."))
    if utility.get("groups"):
        pooled = [row for row in utility["groups"] if row["copy"] == "pooled"]
        rows = [
            {
                "column": name(row["column"]),
                "by": name(row["by"]),
                "group": name(row["group"]),
                "records": row["records"],
                "statistic": name_statistic(row["statistic"]),
                "original": None if row["statistic"] == "ecdf_max" else row["original"],
                "copies": row["synthetic"],
                "copies less original": None if row["statistic"] == "ecdf_max" else row["error"],
            }
            for row in pooled
        ]
        shown = table(rows, label="Statistics by group, means over copies")
        how = reading(
            "Within each group. The distance of distributions is the largest difference of the two "
            "distribution functions, 0 at best; the other figures are in the column's own units."
        )
        title = f"Statistics by public group ({len(rows)} rows, means over copies)"
        body.append(details(title, shown, how, class_="long" if len(rows) > _PRINTED else None))
    if left_out:
        body += [element("h3", "Not compared"), bullets(left_out)]
    return body


def _show_propensity(rows: Rows) -> Html:
    made = [
        Row(MODELS.get(model, model), {"copies": _spread(own, "S_pMSE")}, _note(own, "AUC"))
        for model, own in _split(rows, "by").items()
    ]
    chart = dots(
        "Can rows be told apart?",
        made,
        x=Axis("S_pMSE", zero=True),
        tones={"copies": 1},
        rules=[Rule(2.0, "about right")],
    )
    return figure(
        chart,
        "Can rows be told apart?",
        "pMSE of a model that tells real rows from synthetic ones, over what is expected without any "
        "loss: about 2 for draws from the right model, more where it misses something. AUC is its chance "
        "of telling two rows apart, 0.5 for none.",
    )


def _show_tables(rows: Rows) -> Html:
    pairs = sorted(
        _split(rows, "first", "second").items(), key=lambda pair: -(_of(pair[1], "pooled", "TVD") or 0.0)
    )
    made = [Row(words, {"copies": _spread(own, "TVD")}) for words, own in pairs[:_TABLES]]
    chart = dots("Tables of two columns", made, x=Axis("TVD", low=0), tones={"copies": 1})
    more = (
        f" Of {len(pairs)} tables the {_TABLES} that differ most are drawn." if len(pairs) > _TABLES else ""
    )
    return figure(
        chart,
        "Tables of two columns",
        "Total variation distance: the share of rows that would have to move to another cell. 0 is "
        f"best.{more}",
    )


def _show_analysis(title: str, rows: Rows) -> Html:
    made = []
    for term, own in _split(rows, "term").items():
        first = own[0]
        error = ((first["original_high"] or 0.0) - (first["original_low"] or 0.0)) / (2 * _NORMAL)
        ends = [_of(own, "pooled", key) for key in ("synthetic_low", "synthetic", "synthetic_high")]
        if error > 0 and None not in ends:
            low, middle, high = ((end - first["original"]) / error for end in ends)
            made.append(Row(term, {"copies": (low, middle, high)}, _note(own, "overlap")))
    rules = [Rule(0.0, "original"), Rule(-_NORMAL), Rule(_NORMAL)]
    axis = Axis("standard errors of the original from its estimate")
    chart = dots(f"Analysis: {title}", made, x=axis, tones={"copies": 1}, rules=rules)
    return figure(
        chart,
        Html(f"Analysis {name(title)}"),
        "Dots are coefficients of the copies, bars their 95 % intervals (means over copies); dotted "
        "lines are the original's estimate and interval. An overlap of 1 is the same interval; below 0 "
        "they do not meet.",
    )


def _split(rows: Rows, *keys: str) -> dict[str, list[Mapping[str, Any]]]:
    """Rows by what they compare."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(" with ".join(str(row[key]) for key in keys), []).append(row)
    return found


def _of(rows: Rows, copy: str, key: str) -> float | None:
    return next((row[key] for row in rows if row["copy"] == copy), None)


def _spread(rows: Rows, key: str) -> float | tuple[float, float, float] | None:
    """The lowest, the mean and the highest over copies; of one copy its value."""
    mean, low, high = (_of(rows, copy, key) for copy in ("pooled", "lowest", "highest"))
    return mean if mean is None or low is None or high is None else (low, mean, high)


def _note(rows: Rows, key: str) -> str:
    value = _of(rows, "pooled", key)
    return "" if value is None else f"{key} {value:.2f}"
