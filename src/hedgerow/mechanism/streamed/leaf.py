"""One leaf of records as the steps of the mechanism see it: its start, its weights, its fit.

What is kept with a leaf: `present` where rows may have no value at all, `risk`, of the kind that the weights
read, `known` (λ) where the standard uses it, `alpha` before it is scaled, and at the end `power` and `price`.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pandas as pd

from hedgerow.arrays import Confidential, PerRecord, RecordMask
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
    withheld: tuple[int, ...] = ()  # of each link: cells that are missing, or break its column's rule

    def start(self, leaves: Leaves, leaf: int, plain: Merged | None = None) -> Start:
        """The leaf with the plain fit of all, its risks read where they were kept."""
        design = leaves.design(leaf)
        table = leaves.table(leaf) if _reads_table(self.range) else empty_table(design.records)
        present = np.ones(design.records, np.bool_) if design.present is None else design.present
        risk, power = Risk(np.empty(0), np.empty(0)), present.astype(np.float64)
        fit = None if plain is None else plain.on(self.settings.model, design, power, leaf, RefitRequests())
        return Start(table, design, fit, risk, present)

    def interval(self, start: Start) -> Interval:
        """The ranges of the leaf's records."""
        return find_interval(self.range, start, self.ranged)

    def weighted(self, leaves: Leaves, leaf: int, start: Start, scale: float) -> Weighted:
        """The leaf's weights, as they were kept, times a scale."""
        records, standard = start.design.records, self.settings.standard
        ranged = standard.uses_known and any(self.ranged or ())
        known = leaves.kept("known", leaf) if ranged else np.zeros(records)
        alpha = kept_alpha(self.settings, leaves, leaf)
        return Weighted(alpha, known, self.interval(start), start.present).scaled(scale)

    def part(self, weighted: Weighted, form: Form | None = None) -> Sensitive:
        """What is sensitive of these records, in the form of all."""
        standard = self.settings.standard
        part = sensitive_part(standard, weighted.alpha, weighted.known, weighted.interval)
        return replace(part, whole=form) if isinstance(part, Linear) else part

    def power(self, weighted: Weighted) -> PerRecord:
        """α* of the leaf's records."""
        return power_of(self.settings, weighted)


def kept_present(settings: Settings, leaves: Leaves, leaf: int) -> RecordMask:
    """Which records of a leaf have a value of some link."""
    if all(column.is_plain for column in settings.columns):
        rows = leaves.rows(leaf)
        return np.ones(rows.stop - rows.start, np.bool_)
    return leaves.kept("present", leaf).astype(np.bool_)


def kept_alpha(settings: Settings, leaves: Leaves, leaf: int) -> PerRecord:
    """The weights of a leaf before they are scaled; 0 of a record that has no value."""
    if settings.standard.weighted:
        return leaves.kept("alpha", leaf)
    return kept_present(settings, leaves, leaf).astype(np.float64)


@lru_cache(4)
def empty_table(records: int) -> Table:
    """In place of a leaf's table where nothing is read from it."""
    return Table.of(pd.DataFrame({"": np.zeros(records, np.int8)}))


def _reads_table(public_range: Range) -> bool:
    """Whether ends of a range are read from columns, or count rows."""
    parts = [part for _, part in public_range.parts().values()]
    return bool(public_range.columns) or isinstance(public_range, Bounds) or any(map(_reads_table, parts))
