"""The pictures of the owner's report, from the figures of `figures.collect`: one function, one picture.

Each returns what `html.figure` makes: the picture, a line on how to read it, its numbers. Confidential.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from hedgerow.numerics.rounding import format_figure
from hedgerow.report.axes import Axis
from hedgerow.report.charts import Area, Band, Dots, Line, Row, Rule, Violin, dots, plot, violins
from hedgerow.report.html import Html, figure, name, write_out

Figures = Mapping[str, Any]
TONES = {"original": 0, "copies": 1}
_MEAN = ("copies, mean", "copy")
_DECADES = 10.0  # the largest over the smallest, from which an axis is logarithmic
_WORDS = {
    "price": "own price",
    "withheld": "outcome withheld",
    "alpha": "α",
    "power": "α*",
    "known": "λ",
    "risk": "risk",
}


def is_withheld(price: Figures) -> bool:
    """Whether the standard itself compares with the outcome withheld: each bound then has one price."""
    return all(values["own"] == values["withheld"] for values in price["by_bound"].values())


def show_bounds(price: Figures, bound: str, standard: str) -> Html:
    """The price of one copy by bound, under the standard and with the outcome withheld."""
    own, withheld = f"under {standard}", "outcome withheld"
    same = is_withheld(price)
    rows = [
        Row(
            f"{each}{' (chosen)' * (each == bound)}",
            {withheld: values["withheld"]} if same else {own: values["own"], withheld: values["withheld"]},
        )
        for each, values in price["by_bound"].items()
    ]
    missing = any(None in values.values() for values in price["by_bound"].values())
    target = price["target"]
    rules = (
        [Rule(target, f"target of one copy {target:.4g}")] if target is not None and bound != "renyi" else []
    )
    what = "with the outcome withheld" if same else "under the standard, and with the outcome withheld"
    chart = dots(
        "Price of one copy by bound", rows, x=Axis("ε of one copy", zero=True), bars=True, rules=rules,
        tones={withheld: 1} if same else {own: 1, withheld: 3}, describe=f"Bars: the price {what}.",
    )  # fmt: skip
    return figure(
        chart,
        "Price by bound",
        "Shorter is more private. ",
        f"{standard} compares with the table in which a record's value is withheld altogether. "
        if same
        else "The second bar is what is paid when a record's value is withheld altogether and no range is "
        "taken as public. ",
        "Bounds say different things, and only the chosen one is claimed.",
        " Where a bar is missing, that bound has no closed form." if missing else None,
        f" Under renyi copies are priced together: {price['copies']} cost {format_figure(price['total'])}."
        if bound == "renyi" and price["copies"] > 1
        else None,
    )


def show_standards(rows: Sequence[Figures]) -> Html:
    """The price of all copies under each standard that was tried, and how far they are off."""
    own, withheld = "under the standard", "outcome withheld"
    made = [
        Row(
            row["standard"],
            {own: _known(row["total"]), withheld: _known(row["withheld_total"])},
            f"distance {format_figure(row['ecdf_max'], 2)}",
        )
        for row in rows
    ]
    chart = dots(
        "Price by standard", made, x=Axis("ε of all copies", zero=True), bars=True,
        tones={own: 1, withheld: 3},
        describe="Bars: the price under each standard's own comparison, and with the outcome withheld.",
    )  # fmt: skip
    return figure(
        chart,
        "Price by standard",
        "Fits of their own, to the plan's target where it has one. Standards compare with different tables: "
        "a short first bar beside a long second one says little about the value itself. Beside the name, "
        "how far copies are from the original: 0 is best. To choose by this picture is to use the data, and "
        "no ε pays for it.",
    )


def _known(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def show_columns_price(rows: Sequence[Figures]) -> Html:
    """What each protected column would cost alone."""
    made = [
        Row(row["column"], {"alone": row["alone"]}, f"{row['share']:.0%} of the riskiest") for row in rows
    ]
    chart = dots("Price by column", made, x=Axis("ε of all copies", zero=True), tones={"alone": 1}, bars=True)
    return figure(
        chart,
        "Price by column",
        "What all copies of one column would cost alone, at the same weights, its value withheld; and "
        "its part of what the riskiest rows would cost.",
    )


def show_violins(
    records: Figures, which: Sequence[str], title: str, axis: str, *how: object, rule: Any = None
) -> Html:
    """By-record values as violins, with the outermost records as points."""
    there = {key: records[key] for key in which if records.get(key) and records[key].get("at")}
    log = bool(there) and all(each["log"] for each in there.values())
    groups = {
        _WORDS[key]: Violin(
            each["at"],
            each["density"],
            each["lower"],
            each["median"],
            each["upper"],
            [*each["highest"], *each["lowest"]] if key in ("alpha", "power", "known") else each["highest"],
            tone=(1, 3, 4)[place % 3],
        )
        for place, (key, each) in enumerate(there.items())
    }
    rules = [] if rule is None else [rule]
    low = 0.0 if not log and all(each["lowest"][0] >= 0 for each in there.values()) else None
    chart = violins(title, groups, y=Axis(axis, "log" if log else "linear", low=low), rules=rules)
    endless = max((each["infinite"] for each in there.values()), default=0)
    more = f" {endless:,} records have no finite value and are not drawn." if endless else ""
    return figure(chart, title, *how, more)


def show_weights(related: Figures) -> Html:
    """Weights against risks."""
    points, dearest = (
        [point for point in zip(each["risk"], each["alpha"], strict=True) if None not in point]
        for each in (related, related["dearest"])
    )
    bins = [row for row in related["bins"] if None not in row]
    log = all(x > 0 for x, _ in [*points, *dearest]) and all(row[0] > 0 for row in bins)
    marks: list[Any] = []
    if bins:
        marks += [Band([(x, low, high) for x, low, _, high in bins], "lowest to highest", 1)]
        marks += [Line([(x, middle) for x, _, middle, _ in bins], "median", 1)]
    marks += [Dots(points, f"the {len(points)} riskiest" if bins else "records", 3)]
    marks += [Dots(dearest, f"the {len(dearest)} dearest", 2)]
    chart = plot("α against risk", marks, x=Axis("risk", "log" if log else "linear"), y=Axis("α", low=0))
    return figure(
        chart,
        "Weight against risk",
        "Risk is how loudly a record speaks in the fit without weights; α is the share of its likelihood "
        "that it keeps. Weights that fall to the right quiet the riskiest records; the dearest are then "
        "often others, which kept more weight.",
    )


def show_draws(moved: Figures, bound: str) -> Html:
    """The price as draws were added, and what its tail foretells."""
    seen = moved["seen"]
    marks: list[Any] = [
        Line(
            [p for p in zip(seen["draws"], values, strict=True) if None not in p],
            each,
            tone,
            dashed=each != bound,
        )
        for tone, (each, values) in enumerate(((k, v) for k, v in seen.items() if k != "draws"), 1)
    ]
    if "expected" in moved:
        points = zip(moved["expected"]["draws"], moved["expected"]["price"], strict=True)
        marks.append(Line([p for p in points if None not in p], "Lipschitz, expected", 0, dashed=True))
    prices = [price for mark in marks for _, price in mark.points]
    apart = min(prices, default=1.0) > 0 and max(prices, default=1.0) > _DECADES * min(prices, default=1.0)
    y = Axis("ε of one copy", "log") if apart else Axis("ε of one copy", zero=True)
    chart = plot("Price by draws", marks, x=Axis("draws", "log"), y=y)
    advice = moved.get(
        "advice", "What more draws would do was not looked at: too few draws, or too large a table."
    )
    return figure(
        chart,
        "How ε moves with draws",
        "A bound over draws is a maximum, and grows with them. Flat at the right end is what one wants. ",
        advice if bound == "lipschitz" else advice.replace("The price", "The Lipschitz price", 1),
    )


def show_shape(column: Figures) -> Html:
    """Shares of the original and of the copies in bins."""
    title = f"Distribution of {column['column']}"
    rows = [
        {"from": a, **({} if column["few"] else {"to": b}), "original": own, "copies": made}
        for a, b, own, made in zip(
            column["edges"], column["edges"][1:], column["original"], column["copies"], strict=False
        )
    ]
    axis, edges = _axis(column)
    marks = [
        Area(edges, column["original"], "original", 0),
        Area(edges, column["copies"], "copies", 1, filled=False),
    ]
    chart = plot(title, marks, x=axis, y=Axis("share of records", zero=True), rows=rows)
    return figure(
        chart,
        _caption("Distribution of ", column),
        "Grey is the original, the line all copies together. The outermost half percent counts in the "
        "last bins.",
    )


def show_ecdf(column: Figures) -> Html:
    """Both distribution functions."""
    axis, edges = _axis(column)
    ends = edges if column["few"] else column["edges"]
    own, made = column["ecdf"]["original"], column["ecdf"]["copies"]
    spread = list(zip(ends, made["lowest"], made["highest"], strict=True))
    single = made["lowest"] == made["highest"]
    marks: list[Any] = [
        *([] if single else [Band(spread, "copies, lowest to highest", 1)]),
        Line(list(zip(ends, made["mean"], strict=True)), _MEAN[single], 1, steps=column["few"]),
        Line(list(zip(ends, own, strict=True)), "original", 0, dashed=True, steps=column["few"]),
    ]
    rows = [
        {"at most": edge, "original": a, "copies": b, "lowest": low, "highest": high}
        for edge, a, b, low, high in zip(
            column["edges"], own, made["mean"], made["lowest"], made["highest"], strict=True
        )
    ]
    title = f"Distribution function of {column['column']}"
    chart = plot(title, marks, x=axis, y=Axis("share at most as large", low=0, high=1), rows=rows)
    low, mean, high = column["ecdf_max"]
    return figure(
        chart,
        _caption("Distribution function of ", column),
        f"The largest distance between the lines is {mean:.3g} on average over copies ({low:.3g} to "
        f"{high:.3g}): 0 is the same distribution, 1 none in common.",
    )


def show_quantiles(column: Figures) -> Html:
    """Quantiles of the copies against those of the original."""
    own, made = column["quantiles"]["original"], column["quantiles"]["copies"]
    axis, _ = _axis({**column, "few": False})
    points = list(zip(own, made["mean"], strict=True))
    spread = list(zip(own, made["lowest"], made["highest"], strict=True))
    ends = [min(own[0], made["lowest"][0]), max(own[-1], made["highest"][-1])]
    single = made["lowest"] == made["highest"]
    kind: Literal["linear", "log"] = "log" if axis.kind == "knots" and ends[0] > 0 else "linear"
    marks: list[Any] = [
        Line([(ends[0], ends[0]), (ends[1], ends[1])], "the same", 0, dashed=True),
        *([] if single or len(set(own)) == 1 else [Band(spread, "copies, lowest to highest", 1)]),
        Dots(points, _MEAN[single], 1),
    ]
    rows = [
        {"share": share, "original": a, "copies": b, "lowest": low, "highest": high}
        for share, a, b, low, high in zip(
            column["quantiles"]["shares"], own, made["mean"], made["lowest"], made["highest"], strict=True
        )
    ]
    title = f"Quantiles of {column['column']}"
    chart = plot(title, marks, x=Axis("original", kind), y=Axis("copies", kind), rows=rows)
    return figure(
        chart,
        _caption("Quantiles of ", column),
        "On the dashed line a quantile is kept. Points are the quantiles from 0.1 % to 99.9 %; above the "
        "line at the right end, copies have a longer tail than the original.",
    )


def show_statistics(column: Figures) -> Html | None:
    """Statistics of the copies relative to the original's."""
    rows = [
        Row(
            name_statistic(row["statistic"]),
            {"copies": _ratio(row)},
            f"original {format_figure(row['original'], 3)}",
        )
        for row in column["statistics"]
        if None not in (row["original"], *row["copies"]) and row["original"] > 0 and row["copies"][0] > 0
    ]
    if len(rows) < 2:
        return None
    chart = dots(
        f"Statistics of {column['column']}", rows, x=Axis("copies over original", "log"),
        tones={"copies": 1}, rules=[Rule(1.0, "kept")],
    )  # fmt: skip
    return figure(
        chart,
        _caption("Statistics of ", column),
        "Each dot is the mean over copies divided by the original's value, the bar reaches from the "
        "lowest to the highest copy.",
    )


def show_classes(column: Figures) -> Html:
    """The share of each class."""
    rows = [
        Row(row["level"], {"original": row["original"], "copies": tuple(row["copies"])})
        for row in column["levels"]
    ]
    chart = dots(f"Classes of {column['column']}", rows, x=Axis("share of records", zero=True), tones=TONES)
    more = f" {column['left_out']:,} rarer classes are not drawn." if column["left_out"] else ""
    return figure(
        chart,
        _caption("Classes of ", column),
        f"The ring is the original, the dot the mean over copies, the bar their lowest to highest.{more}",
    )


def show_groups(column: Figures, group: Figures) -> Html:
    """Medians, or shares, by public group."""
    what = f"share of {group['share_of']}" if group["share_of"] is not None else "median"
    log = (
        all(row["original"] > 0 and row["copies"][0] > 0 for row in group["rows"])
        and group["share_of"] is None
    )
    high = max(max(row["original"], row["copies"][2]) for row in group["rows"])
    low = min(min(row["original"], row["copies"][0]) for row in group["rows"])
    rows = [
        Row(
            row["level"],
            {"original": row["original"], "copies": tuple(row["copies"])},
            f"n {row['records']:,}",
        )
        for row in group["rows"]
    ]
    axis = Axis(what, "log" if log and high > 10 * low else "linear")
    chart = dots(f"{column['column']} by {group['by']}", rows, x=axis, tones=TONES)
    return figure(
        chart,
        Html(
            f"{name(column['column'])} by {name(group['by'])}: "
            f"{what if group['share_of'] is None else 'share'}"
        ),
        "The ring is the original, the dot the mean over copies. Where a public column is not in the "
        "model, copies lose what it says: rings spread and dots do not.",
    )


def show_pairs(pairs: Sequence[Figures]) -> Html:
    """Rank correlations of pairs of columns."""
    rows = [
        Row(
            f"{_cut(pair['first'])} with {_cut(pair['second'])}",
            {"original": pair["original"], "copies": tuple(pair["copies"])},
        )
        for pair in pairs
    ]
    chart = dots("Pairs of columns", rows, x=Axis("rank correlation", low=-1, high=1), tones=TONES)
    return figure(
        chart,
        "Pairs of columns",
        "Spearman's rank correlation in the original (ring) and in copies (dot: mean, bar: lowest to "
        "highest). The pairs that differ most come first.",
    )


def show_relation(pair: Figures) -> Html:
    """How one column runs along another, in the original and in copies."""
    first, second, rows = _cut(pair["first"]), _cut(pair["second"]), pair["along"]
    marks: list[Any] = [
        Band([(row["at"], row["copies_low"], row["copies_high"]) for row in rows], "copies, 10 % to 90 %", 1),
        Line([(row["at"], row["copies_middle"]) for row in rows], "median", 1),
        *(
            Line(
                [(row["at"], row[f"original_{end}"]) for row in rows],
                "the same of the original" * (end == "middle"),
                0,
                dashed=True,
            )
            for end in ("low", "middle", "high")
        ),
    ]
    numbers = [
        {second: row["at"]}
        | {
            f"{what}, {words}": row[f"{what}_{end}"]
            for what in TONES
            for end, words in (("low", "10 %"), ("middle", "median"), ("high", "90 %"))
        }
        for row in rows
    ]
    values = [row[key] for row in rows for key in row if key != "at"]
    x, y = _pick_axis(second, [row["at"] for row in rows]), _pick_axis(first, values)
    chart = plot(f"{pair['first']} along {pair['second']}", marks, x=x, y=y, rows=numbers)
    return figure(
        chart,
        Html(f"{name(pair['first'])} along {name(pair['second'])}"),
        "Records in ten groups of about equal size along the lower axis. Where the dashed lines leave the "
        "band and its middle, copies lose the relation, its curve or its spread.",
    )


def _pick_axis(label: str, values: Sequence[float]) -> Axis:
    low, high = min(values), max(values)
    return Axis(label, "log" if low > 0 and high > _DECADES * low else "linear")


def name_statistic(statistic: str) -> str:
    """q90 is the 90 % quantile."""
    if statistic == "ecdf_max":
        return "distance of distributions"
    return f"{statistic[1:]} % quantile" if statistic[:1] == "q" and statistic[1:].isdigit() else statistic


def _axis(column: Figures) -> tuple[Axis, Sequence[float]]:
    """The axis of a column's values, and where its bins end on it: equally wide, whatever their scale."""
    edges = column["edges"]
    if column["few"]:
        words = {k + 0.5: f"{edge:g}" for k, edge in enumerate(edges[:-1])}
        return Axis(column["axis"], low=0, high=len(edges) - 1, ticks=words), list(range(len(edges)))
    steps = [b - a for a, b in pairwise(edges)]
    if max(steps) < 1.5 * min(steps):
        return Axis(column["axis"], low=edges[0], high=edges[-1]), edges
    return Axis(column["axis"], "knots", knots=edges), edges


def _caption(words: str, column: Figures) -> Html:
    return Html(f"{words}{name(column['column'])}")


def _ratio(row: Figures) -> tuple[float, float, float]:
    low, mean, high = (value / row["original"] for value in row["copies"])
    return low, mean, high


def _cut(words: str, most: int = 24) -> str:
    words = write_out(words)
    return words if len(words) <= most else f"{words[: most - 1]}…"
