"""Replaying a release of corrected draws: simulate, fit, weigh, draw and correct again, copy.

Tables are simulated at the mean of the corrected draws and go through the whole recipe, calibration included;
`intervals.find_errors` says how far their corrected draws lie from there. Copies are predicted from these.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hedgerow.arrays import PerRecord
from hedgerow.inference.bootstrap import Replay, check_sizes
from hedgerow.inference.intervals import find_errors, intervals
from hedgerow.mechanism.copies import public_interval, uniforms, write_copy
from hedgerow.mechanism.debias import Corrected, Public, keep_inside
from hedgerow.models.base import Confining
from hedgerow.models.correctable import require_stand_in
from hedgerow.randomness import Key
from hedgerow.tables.table import Table


@dataclass(frozen=True, repr=False)
class DrawsReplay(Replay):
    """Of one column, whose draws were corrected for the bias of the weights."""

    public: Public
    corrected: tuple[Corrected, ...]  # one per copy

    method = "bootstrap through weights and correction"

    @cached_property
    def table(self) -> Table:
        """The public columns, and a synthetic one for its type."""
        return Table.of(self.copies[0])

    def runs(self, tables: int, copies: int, key: Key) -> Iterator[tuple[Any, list[Any]]]:
        public, number = replace(self.public, key=key.child("replay")), len(self.corrected)
        model, design = require_stand_in(public.settings.model), public.design
        here, errors = find_errors(public, self.corrected, tables=tables, sets=copies // number)
        truth = Corrected(model.natural(design, here), True, 0)
        for place, sets in enumerate(errors):
            own, made = key.child("table").child(place), []
            table = self._predict(truth, "independent", own.child("values"))
            for copy, error in enumerate(sets.reshape(copies, -1)):
                draw = model.natural(design, model.within(design, here + error))
                moved = Corrected(draw, self.corrected[copy % number].converged, 0)
                made.append(self._predict(moved, public.settings.sampling, own.child("copy").child(copy)))
            yield self._write(table), [self._write(one) for one in made]

    def parameters(self, *, level: float, tables: int, key: Key) -> dict[str, Any]:
        check_sizes(level, tables)
        found = intervals(replace(self.public, key=key), self.corrected, level=level, tables=tables)
        columns = {"parameter": list(found.parameters), "estimate": found.estimate, "lower": found.lower}
        return {**columns, "upper": found.upper, "corrected": [found.corrected] * len(found.parameters)}

    def _predict(self, draw: Corrected, sampling: Any, key: Key) -> PerRecord:
        """As `predict_copies` does, from what is public."""
        settings, design = self.public.settings, self.public.design
        model, own = settings.model, draw.parameters
        numbers = uniforms(sampling, model, design, own, key=key)
        interval = public_interval(settings, self.table)
        if interval is not None and isinstance(model, Confining):
            return model.predict_inside(design, own, interval, numbers)
        values = model.predict(design, own, numbers)
        if not draw.converged:
            return values
        return keep_inside(self.public, own, values, key.child("inside"))[0]

    def _write(self, values: PerRecord) -> Any:
        return write_copy(self.public.settings, self.table, self.public.design, values)
