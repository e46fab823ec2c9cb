"""What the owner's report says of a fit, in plain numbers and words that JSON holds. Confidential.

    >>> import hedgerow as hr
    >>> synth = hr.Synthesizer("x ~ z", epsilon=6.0, seed=1).fit(hr.datasets.lognormal(n=100, seed=1))
    >>> sorted(collect(synth))[:4]
    ['broken', 'claim', 'columns', 'draws']

A release writes it as `confidential/report.json`; `owner` makes the page of it and of nothing else. Its size
does not grow with the number of records (`summaries`).
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import PerRecord, columns_of
from hedgerow.errors import FormulaError
from hedgerow.evidence.utility import compare_associations
from hedgerow.evidence.utility.stack import SUMMED_UP
from hedgerow.fitted import Fitted, Noised
from hedgerow.mechanism.steps import Outcome
from hedgerow.numerics.rounding import format_figure
from hedgerow.privacy.bounds import LIPSCHITZ, LOCAL
from hedgerow.privacy.claims import tabulate_odds
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.strict import Boxed, BoxedChain
from hedgerow.report.owner import VERSION
from hedgerow.report.summaries import (
    compare_amounts,
    compare_classes,
    compare_medians,
    range_of,
    relate_pair,
    relate_weights,
    round_digits,
    summarize,
)
from hedgerow.synthesizer import Synthesizer
from hedgerow.tables.table import Table

RISKIEST = 20
_GROUPS, _LEVELS = 2, 12  # public columns by which copies are compared, and how many values one may have
_DAYS = "days since 1970-01-01"
_COLUMNS = 40  # protected columns that are shown in full
_PAIRED, _PAIRS, _DRAWN = 20_000, 24, 4  # records whose ranks are compared, pairs that are listed, and drawn
_SCORED = 50_000_000  # draws × records up to which prices are looked at more closely
_FEWEST = 500  # draws from which the tail of the price is looked at


def collect(synth: Synthesizer) -> dict[str, Any]:
    """The figures of a fitted synthesizer."""
    done = synth._done()
    columns = [*_compare_columns(synth), *_compare_derived(synth)]
    figures: dict[str, Any] = {
        "report": VERSION,
        "claim": _describe_claim(synth),
        "columns": columns,
        "pairs": _compare_pairs(synth),
        "health": {name: value for name, value in asdict(synth.health_).items() if value not in (None, ())},
        "warnings": done.doubts(),
        "moved": done.moved,
        "broken": _compare_checks(synth),
        "refused": {"audit": done.why_no_audit(), "attack": done.why_no_attack()},
    }
    if isinstance(done, Noised):
        figures["strict"] = {"clipped": synth.clipped_, "withheld": done.withheld_epsilon()}
        return figures
    return figures | _collect_prices(synth, synth._need())


def _describe_claim(synth: Synthesizer) -> dict[str, Any]:
    """What may be claimed: public facts."""
    guarantee, done = synth._done().guarantee, synth._done()
    figures, shares = guarantee.figures(), guarantee.shares()
    bound, protected = guarantee.terms.bound, guarantee.protected
    return {
        "standard": guarantee.standard,
        "bound": bound.name,
        "family": guarantee.family,
        "protected": [protected] if isinstance(protected, str) else list(protected),
        "unchanged": list(guarantee.passed_through),
        "assumed": guarantee.known,
        "neighbour": guarantee.neighbour,
        "copies": guarantee.terms.copies,
        "records": done.records,
        "epsilon": None if shares is None else list(shares.epsilon),
        "delta": None if shares is None or shares.delta is None else list(shares.delta),
        "confidence": guarantee.statement.confidence if bound.over_draws else None,
        "draws": guarantee.statement.draws,
        "plain": guarantee.plain(records=done.records),
        "formal": guarantee.claim(),
        "odds": [] if figures is None else tabulate_odds(bound.name, figures),
        "processing": list(guarantee.processing()),
        "caveats": list(guarantee.caveats()),
        "seeded": guarantee.seeded,
        "unit": guarantee.terms.unit,
    }


def _collect_prices(synth: Synthesizer, done: Fitted) -> dict[str, Any]:
    """What the fit costs, by bound and by record, and what decides it."""
    settings, pricing = done.settings, done.outcome.pricing
    bound, copies = settings.bound, settings.copies
    shown = bound if bound.local else LIPSCHITZ
    ranged = settings.unit is None and not isinstance(settings.standard.range, Everywhere)
    priced = {each.name: (done.epsilon_by(each), done.epsilon_by(each, withheld=True)) for each in LOCAL}
    by_bound = {
        name: {
            "own": None if own is None else _finite(own),
            "withheld": None if withheld is None else _finite(withheld),
        }
        for name, (own, withheld) in priced.items()
        if own is not None or withheld is not None
    }
    # Of a view of some records those that stand out join them: pictures show the dearest of all.
    parts = [done.outcome, done.extreme.outcome]
    beside = np.flatnonzero(~np.isin(done.extreme.numbers, done.numbers))
    spread = len(done.outcome.weighted.alpha)

    def join(values: Callable[[Outcome], PerRecord]) -> PerRecord:
        own, others = map(values, parts)
        return np.concatenate([own, others[beside]])

    price = join(lambda one: bound.by_record(one.pricing))
    risk = np.concatenate([done.risk, done.extreme.risk[beside]])
    alpha = join(lambda one: one.weighted.alpha)
    dearest = np.argsort(-price, kind="stable")[:RISKIEST]
    by_record = {"price": summarize(price, spread)}
    if shown.has(pricing.withheld):
        withheld = join(lambda one: shown.by_record(one.pricing.withheld))
        by_record["withheld"] = summarize(withheld, spread)
    figures: dict[str, Any] = {
        "price": {
            "target": settings.target,
            "one": _finite(done.epsilon),
            "total": _finite(done.total_epsilon),
            "withheld": _finite(done.withheld_total()) if ranged else None,
            "certified": _finite(done.outcome.certified),
            "by_bound": by_bound,
            "scale": done.scale,
            "copies": copies,
        },
        "records": {
            **by_record,
            "alpha": summarize(alpha, spread),
            "power": summarize(join(lambda one: one.fit.power), spread),
            "risk": summarize(risk, spread),
            "known": summarize(join(lambda one: one.weighted.known), spread)
            if settings.standard.uses_known
            else None,
            "alpha_by_risk": relate_weights(risk, alpha, dearest, spread),
            "riskiest": _list_riskiest(done.extreme),
            "flagged": done.flagged,
        },
        "draws": _follow_draws(synth, done),
        "gauge": _collect_gauge(done) if bound.local else None,
    }
    cells = settings.draws * done.extreme.design.records * len(done.design.links)
    if settings.several and settings.unit is None and cells <= _SCORED:
        figures["price"]["by_column"] = [
            {"column": row["column"], "alone": _finite(row["alone"]), "share": float(row["share"])}
            for row in rows_of(synth.price_by_column())
        ]
    if isinstance(settings.model, Boxed | BoxedChain):
        figures["box"] = {"edge_mass": done.edge_mass}
        if isinstance(settings.model, Boxed):
            figures["box"]["acceptance"] = synth.acceptance_
    return figures


def _list_riskiest(done: Fitted) -> list[dict[str, Any]]:
    price, flagged, risk = done.settings.bound.by_record(done.outcome.pricing), done.untrusted, done.risk
    rows = np.argsort(-price, kind="stable")[:RISKIEST]
    weighted, known, largest = done.outcome.weighted, done.settings.standard.uses_known, float(price[rows[0]])
    interval = weighted.interval
    lower, upper = columns_of(interval.lower), columns_of(interval.upper)
    names = [link.outcome for link in done.design.links]
    riskiest = []
    for row in rows.tolist():
        ends = [
            f"{names[place] + ': ' if len(lower) > 1 else ''}{format_figure(float(a[row]), 6)} to "
            f"{format_figure(float(b[row]), 6)}"
            for place, (a, b) in enumerate(zip(lower, upper, strict=True))
            if np.isfinite(a[row]) or np.isfinite(b[row])
        ]
        share = _finite(price[row] / largest) if np.isfinite(largest) and largest > 0 else None
        record: dict[str, Any] = {"record": int(done.numbers[row]), "price": _finite(price[row])}
        record |= {"share": share, "risk": _finite(risk[row]), "alpha": _finite(weighted.alpha[row])}
        record |= {"power": _finite(done.outcome.fit.power[row])}
        record |= {"known": _finite(weighted.known[row])} if known else {}
        riskiest.append(record | {"range": "; ".join(ends), "flagged": bool(flagged[row])})
    return riskiest


def _follow_draws(synth: Synthesizer, done: Fitted) -> dict[str, Any] | None:
    """Each bound as draws were added; where it is cheap, what the tail of the Lipschitz price foretells."""
    if not done.settings.bound.over_draws:
        return None
    table = Table.of(synth.by_draws_)
    seen = {name: round_digits(table.frame[name].to_numpy()) for name in table.columns}
    fit, records = done.outcome.fit, done.extreme.design.records
    if done.settings.unit is not None or fit.draws < _FEWEST or fit.draws * records > _SCORED:
        return {"seen": seen}
    tail = synth.outlook()
    columns = {name: round_digits(values) for name, values in tail.columns().items()}
    return {"seen": seen, "expected": columns, "settled": tail.settled, "advice": tail.advice()}


def _collect_gauge(done: Fitted) -> dict[str, Any]:
    gauge = done.gauge
    size = {"records": gauge.records, "of": gauge.of, "column": gauge.column}
    size |= {"ecdf": _finite(gauge.ecdf), "plain_ecdf": _finite(gauge.plain_ecdf)}
    return size | {"facts": gauge.facts(), "discards": gauge.discards}


def _compare_columns(synth: Synthesizer) -> Iterator[dict[str, Any]]:
    """Each thing that is modelled beside its copies, and by public groups."""
    done = synth._done()
    originals, cells, copies = synth.originals, synth.copies_by_column(), synth.copied_outcomes()
    groups = list(_find_groups(synth))
    for place, link in enumerate(done.design.links[:_COLUMNS]):
        original, own = originals[link.outcome], cells[link.outcome]
        if not len(original) or not all(len(copy) for copy in own):
            continue
        dates = link.outcome in done.table.columns and done.table.is_temporal(link.outcome)
        column: dict[str, Any] = {"column": link.outcome, "records": len(original), "axis": _DAYS * dates}
        levels = link.levels
        column |= compare_amounts(original, own) if levels is None else compare_classes(original, own, levels)
        if levels is None or len(levels) == 2:
            share_of = None if levels is None else str(levels[1])
            made = [columns_of(copy)[place] for copy in copies]
            column["groups"] = [
                {"by": by, "share_of": share_of, "rows": rows}
                for by, codes, words in groups
                if (rows := compare_medians(link.gappy_values, made, codes, words, share_of is not None))
            ]
        yield column


def _compare_derived(synth: Synthesizer) -> Iterator[dict[str, Any]]:
    """Columns that copies have computed anew, beside those that stand in the confidential table."""
    names = synth.settings.rules.names
    if not names:
        return
    stack = synth.stack()
    for name in names:
        if name not in stack.columns:  # the confidential table has no such column
            continue
        cells, there = stack.columns[name], stack.columns[name].there
        values = cells.places if cells.numbers is None else cells.numbers
        parts = [values[rows][there[rows]] for rows in map(stack.part, range(len(stack.sizes)))]
        if not all(map(len, parts)):
            continue
        original, copies = parts[0].astype(np.float64), [part.astype(np.float64) for part in parts[1:]]
        compared = (
            compare_classes(original, copies, cells.labels[:-1])
            if cells.numbers is None
            else compare_amounts(original, copies)
        )
        yield {"column": name, "records": len(original), "axis": "", **compared}


def _compare_checks(synth: Synthesizer) -> list[dict[str, Any]]:
    """Which share of rows breaks each check: of the original, where it has the columns, of copies."""
    done, checks = synth._done(), synth.sample().checks
    if checks is None:
        return []
    codes, rows = synth.settings.codes, rows_of(checks)
    found = []
    for check in synth.settings.rules.conditions:
        own = None
        if set(check.names) <= set(done.table.columns):
            with suppress(FormulaError):  # words that were read as numbers, since the copies' are made anew
                own = float((~check.holds(done.table, codes, doubt=True)).mean())
        shares = [row["broken"] / done.records for row in rows if row["check"] == check.text]
        found.append({"check": check.text, "original": own, "copies": range_of(shares)})
    return found


def _find_groups(synth: Synthesizer) -> Iterator[tuple[str, NDArray[np.int64], list[str]]]:
    """Public columns with a few levels: name, the place of each record's level, the levels."""
    done, count = synth._done(), 0
    hidden = (*done.settings.protected, *done.left_out)
    for name in done.table.columns:
        if name in hidden or count == _GROUPS:
            continue
        series = done.table.frame[name]
        if series.null_count() or not 2 <= done.table.levels(name) <= _LEVELS:
            continue
        codes, _ = done.table.codes(name)
        cells, firsts = series.to_list(), np.unique(codes, return_index=True)[1]
        count += 1
        yield name, codes, [str(cells[place]) for place in firsts]


def _compare_pairs(synth: Synthesizer) -> list[dict[str, Any]]:
    """Rank correlations of protected columns with each other and with public numbers, worst kept first.

    Of a few pairs also how one column runs along the other (`along`).
    """
    done = synth._done()
    links = [
        (k, link) for k, link in enumerate(done.design.links) if link.levels is None or len(link.levels) == 2
    ]
    hidden = (*synth.settings.protected, *done.left_out)
    rows = np.linspace(0, done.design.records - 1, min(done.design.records, _PAIRED)).astype(int)
    public = {
        name: done.table.numbers_or_flags(name)[rows]
        for name in done.table.number_columns()
        if name not in hidden
    }
    protected = {link.outcome: link.gappy_values[rows] for _, link in links}
    copies = [
        {link.outcome: columns_of(copy)[k][rows] for k, link in links} for copy in synth.copied_outcomes()
    ]
    columns = compare_associations(protected, copies, public) if protected else {}
    if not columns:  # one column, and no public numbers
        return []
    by_pair: dict[tuple[Any, Any], dict[str, Any]] = {}
    cells = zip(
        *(columns[name] for name in ("first", "second", "copy", "original", "synthetic")), strict=True
    )
    for first, second, copy, truth, value in cells:
        one = by_pair.setdefault((first, second), {"original": truth, "copies": []})
        if copy not in SUMMED_UP:
            one["copies"].append(value)
    pairs: list[dict[str, Any]] = [
        {
            "first": first,
            "second": second,
            "original": _finite(one["original"]),
            "copies": range_of(one["copies"]),
        }
        for (first, second), one in by_pair.items()
        if np.isfinite([one["original"], *one["copies"]]).all()
    ]
    pairs.sort(key=lambda pair: -abs(pair["original"] - pair["copies"][1]))
    shown, tables = pairs[:_PAIRS], [protected | public, *(copy | public for copy in copies)]
    amounts = {link.outcome for _, link in links if link.levels is None}
    strongest = sorted(shown, key=lambda pair: -abs(pair["original"]))
    drawn = 0
    for pair in [*shown[: _DRAWN // 2], *strongest]:  # those that differ most, then those that matter most
        if drawn == _DRAWN or "along" in pair or pair["first"] not in amounts:
            continue
        own, *made = [(table[pair["first"]], table[pair["second"]]) for table in tables]
        pair["along"] = relate_pair(*own, made)
        drawn += pair["along"] is not None
    return shown


def _finite(value: float) -> float | None:
    """A number with a few digits; None without end."""
    return round_digits([value])[0]


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """A dataframe of any kind as rows; none of nothing."""
    if frame is None:
        return []
    table = Table.of(frame)
    return [dict(zip(table.columns, cells, strict=True)) for cells in table.frame.iter_rows()]
