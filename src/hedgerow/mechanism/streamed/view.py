"""Some rows with the fit of all: what evidence and reports are made of where the table is too large for them.

Formal guarantee: the rows come to where this runs. They are as confidential as the table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Confidential, PerRecord
from hedgerow.mechanism.fit import Fit
from hedgerow.mechanism.price import Pricing
from hedgerow.mechanism.steps import Outcome, Start, Weighted
from hedgerow.mechanism.streamed.fit import StreamedFit
from hedgerow.mechanism.streamed.merged import Merged, RefitRequests, Row
from hedgerow.mechanism.streamed.run import PricedFit, Runner
from hedgerow.models.conjugate import Left, Places
from hedgerow.models.scored import Interval, Risk
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.sensitive import withheld_part
from hedgerow.tables.chain import ChainDesign
from hedgerow.tables.design import Design
from hedgerow.tables.leaves import Leaves, go_over
from hedgerow.tables.table import Table
from hedgerow.threads import Workers, one_blas_thread


@dataclass(frozen=True, repr=False)
class TakeRows(Confidential):
    """Some rows of a leaf, with what is kept of them."""

    fit: StreamedFit
    rows: dict[int, NDArray[np.int64]]  # by leaf, places there

    def __call__(self, leaves: Leaves, leaf: int) -> tuple[Table, Design, Weighted]:
        rows, overview = self.rows[leaf].astype(np.intp), self.fit.overview
        start = overview.start(leaves, leaf)
        weighted = overview.weighted(leaves, leaf, start, self.fit.scale)
        interval = weighted.interval
        some = Weighted(
            weighted.alpha[rows], weighted.known[rows],
            Interval(interval.lower[rows], interval.upper[rows], interval.inside[rows], interval.ranged),
            weighted.present[rows],
        )  # fmt: skip
        return leaves.table(leaf).take(rows), take_rows(start.design, rows), some


@dataclass(repr=False)
class RefitAtOnce(RefitRequests):
    """Answers at once what records of a view request, by passes over all leaves."""

    runner: Runner | None = None
    priced: PricedFit | None = None
    places: tuple[tuple[int, int], ...] = ()  # leaf and place of each row of the view

    def of_link(self, merged: Merged, place: int, leaf: int) -> Callable[[PerRecord, Places], list[Left]]:
        def refit(share: PerRecord, rows: Places) -> list[Left]:
            names: list[Row] = [(*self.places[row], float(share[row])) for row in map(int, rows)]
            known = dict(merged.left[place]) if merged.left else {}
            missing = [name for name in names if name not in known]
            if missing and self.runner is not None and self.priced is not None:
                requests = {(place, self.occasion): missing}
                known |= self.runner.answer(self.priced, [requests]).merged.left[place]
            return [known[name] for name in names]

        return refit


@one_blas_thread()
def view(fit: StreamedFit, leaves: Leaves, workers: Workers, rows: Sequence[int]) -> tuple[Start, Outcome]:
    """The start and the outcome of these rows, in their order in the table, with the fit of all records.

    Prices are those of the rows: the largest is that of the table where its dearest record is among them.
    """
    where = np.unique(np.asarray(rows, dtype=np.int64))
    size = leaves.rows(0).stop
    by_leaf = {int(leaf): where[where // size == leaf] % size for leaf in np.unique(where // size)}
    found = list(go_over(workers, TakeRows(fit, by_leaf), leaves, list(by_leaf), stage="rows"))
    table = _join_tables([part for part, _, _ in found])
    design = join_designs([part for _, part, _ in found])
    weighted = join_weighted([part for _, _, part in found])
    overview, settings, priced = fit.overview, fit.settings, fit.priced
    places = tuple((int(row // size), int(row % size)) for row in where)
    present = weighted.present
    plain = fit.plain.on(settings.model, design, present.astype(np.float64), 0, RefitRequests())
    nowhere = Everywhere().interval(design.values, table)
    risk = Risk.from_extremes(plain.extremes(withheld_part(np.ones(design.records)), nowhere))
    start = Start(table, design, plain, risk, present)
    requests = RefitAtOnce(runner=Runner(overview, leaves, workers), priced=priced, places=places)
    second: Fit = priced.merged.on(settings.model, design, overview.power(weighted), 0, requests)
    pricing = Pricing(second, overview.part(weighted, priced.form), weighted.interval, settings.delta)
    outcome = Outcome(weighted, second, pricing, fit.statement, settings.bound, fit.certified)
    vars(outcome)["epsilon"] = fit.epsilon  # of all records
    return start, outcome


def take_rows(design: Design, rows: Places) -> Design:
    """Some rows of a design, whose columns keep what is known of the whole table's."""
    part = design.take(rows)
    for own, link in zip(part.links, design.links, strict=True):
        own.keep_moments(link.moments)
    return part


def join_designs(parts: Sequence[Design]) -> Design:
    """The rows of several parts of one table."""
    first = parts[0]
    if isinstance(first, ChainDesign):
        links = [join_designs(links) for links in zip(*(part.links for part in parts), strict=True)]
        given = [part.table for part in parts if isinstance(part, ChainDesign)]
        tables = [table for table in given if table is not None]
        return ChainDesign.of(links, _join_tables(tables) if tables else None)
    there = [np.ones(part.records, np.bool_) if part.present is None else part.present for part in parts]
    present = np.concatenate(there)
    crossings = [part.crossing for part in parts if part.crossing is not None]
    joined = replace(
        first,
        values=np.concatenate([part.values for part in parts]),
        matrix=np.concatenate([part.matrix for part in parts]),
        present=None if present.all() else present,
        crossing=replace(crossings[0], codes=np.concatenate([each.codes for each in crossings]))
        if crossings
        else None,
    )
    joined.keep_moments(first.moments)
    return joined


def join_weighted(parts: Sequence[Weighted]) -> Weighted:
    """Weights and ranges of several parts of one table."""
    intervals = [part.interval for part in parts]
    interval = Interval(
        np.concatenate([one.lower for one in intervals]),
        np.concatenate([one.upper for one in intervals]),
        np.concatenate([one.inside for one in intervals]),
        intervals[0].ranged,
    )
    alpha = np.concatenate([part.alpha for part in parts])
    known = np.concatenate([part.known for part in parts])
    return Weighted(alpha, known, interval, np.concatenate([part.present for part in parts]))


def _join_tables(parts: Sequence[Table]) -> Table:
    return Table(nw.maybe_reset_index(nw.concat([part.frame for part in parts])))
