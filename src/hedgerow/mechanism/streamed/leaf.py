"""One leaf of records as the steps of the mechanism see it: its start, its weights, its fit.

What is kept with a leaf: `risk`, of the kind that the weights read, `known` (λ) where the standard uses it,
`alpha` before it is scaled, and at the end `power` and `price`.
"""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd

from hedgerow.arrays import Confidential, PerRecord
from hedgerow.errors import DataError
from hedgerow.mechanism.steps import Start, Weighted, find_interval, power_of
from hedgerow.mechanism.streamed.merged import Merged, RefitRequests
from hedgerow.models.scored import Form, Interval, Linear, Risk, Sensitive
from hedgerow.privacy.ranges import Bounds, Range
from hedgerow.privacy.sensitive import sensitive_part
from hedgerow.privacy.settings import Settings
from hedgerow.tables.leaves import Leaves
from hedgerow.tables.table import Table


@dataclass(frozen=True, repr=False)
class Overview(Confidential):
    """What steps on one leaf need to know of all records, beside fits. Small."""

    settings: Settings
    range: Range  # the settings', with what it reads off all outcomes
    ranged: tuple[bool, ...] | None = None  # which links have a range in some record; None: not known yet

    def start(self, leaves: Leaves, leaf: int, plain: Merged | None = None) -> Start:
        """The leaf with the plain fit of all, its risks read where they were kept."""
        table = leaves.table(leaf) if _reads_table(self.range) else empty_table()
        design = leaves.design(leaf)
        if design.present is not None:
            raise DataError(
                "Leaf by leaf: some outcomes are missing, or none that the family describes. Give a table "
                "without gaps, or one that fits into memory."
            )
        ones = np.ones(design.records)
        risk = Risk(np.empty(0), np.empty(0))
        fit = None if plain is None else plain.on(self.settings.model, design, ones, leaf, RefitRequests())
        return Start(table, design, fit, risk, ones.astype(np.bool_))

    def interval(self, start: Start) -> Interval:
        """The ranges of the leaf's records."""
        return find_interval(self.range, start, self.ranged)

    def weighted(self, leaves: Leaves, leaf: int, start: Start, scale: float) -> Weighted:
        """The leaf's weights, as they were kept, times a scale."""
        records, standard = start.design.records, self.settings.standard
        ranged = standard.uses_known and any(self.ranged or ())
        known = leaves.kept("known", leaf) if ranged else np.zeros(records)
        alpha = leaves.kept("alpha", leaf) if standard.weighted else np.ones(records)
        return Weighted(alpha, known, self.interval(start), start.present).scaled(scale)

    def part(self, weighted: Weighted, form: Form | None = None) -> Sensitive:
        """What is sensitive of these records, in the form of all."""
        standard = self.settings.standard
        part = sensitive_part(standard, weighted.alpha, weighted.known, weighted.interval)
        return replace(part, whole=form) if isinstance(part, Linear) else part

    def power(self, weighted: Weighted) -> PerRecord:
        """α* of the leaf's records."""
        return power_of(self.settings, weighted)


@cache
def empty_table() -> Table:
    """In place of a leaf's table where nothing is read from it."""
    return Table.of(pd.DataFrame({"": [0]}))


def _reads_table(public_range: Range) -> bool:
    """Whether ends of a range are read from columns, or count rows."""
    parts = [part for _, part in public_range.parts().values()]
    return bool(public_range.columns) or isinstance(public_range, Bounds) or any(map(_reads_table, parts))
