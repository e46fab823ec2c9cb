"""Noisy statistics of several columns, one after the other, and everything that follows from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.arrays import Array, PerLink, RecordMask, join_columns
from hedgerow.errors import SettingError
from hedgerow.evidence.attack import Attack
from hedgerow.evidence.audit import StatisticsAudit
from hedgerow.fitted.noised import Noised
from hedgerow.fitted.replay import ChainReplay
from hedgerow.inference.bootstrap import Replay
from hedgerow.inference.columns import describe_columns, summarize_columns
from hedgerow.mechanism.cells import codes_of, find_fixed, write_column
from hedgerow.mechanism.noisy.chain.cells import Shape, settle_types, shape_columns
from hedgerow.mechanism.noisy.chain.draws import draw_column, predict_chain
from hedgerow.mechanism.noisy.chain.release import ReleasedColumn, release_chain
from hedgerow.mechanism.noisy.chain.run import halve_replaced, read_columns, tasks_of, write_links
from hedgerow.mechanism.noisy.chain.tasks import Task, Values
from hedgerow.mechanism.noisy.posterior import PosteriorDraws
from hedgerow.models.base import Health, Parameters
from hedgerow.privacy.settings import Settings
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table

_NOT_YET = "{} is for one protected column under Strict, and limits go by column. ε holds for every table."


@dataclass(frozen=True, repr=False, kw_only=True)
class NoisedChain(Noised):
    """Of all protected columns of a row together."""

    released: tuple[ReleasedColumn, ...]

    @classmethod
    def of(cls, settings: Settings, table: Table, design: Design, *, key: Key, **more: Any) -> "NoisedChain":
        """The mechanism: column by column clip, sum and add noise, once."""
        table = settle_types(settings, table)
        tasks, values = tasks_of(settings, table, design), read_columns(settings, table)
        released = release_chain(tasks, values, key=key.child("statistics"))
        return cls(settings=settings, key=key, source=table, encoded=design, released=released, **more)

    @cached_property
    def values(self) -> list[Values]:
        """What each column holds in the rows of its task; confidential."""
        return read_columns(self.settings, self.table)

    @property
    def tasks(self) -> list[Task]:
        """What was told of each column beforehand."""
        return [column.task for column in self.released]

    @property
    def present(self) -> RecordMask:
        pairs = zip(self.tasks, self.values, strict=True)
        return np.any([task.spread(values.present) for task, values in pairs], axis=0)

    @property
    def epsilon(self) -> float:
        return float(self.settings.epsilon or 0.0)

    @cached_property
    def drawn(self) -> tuple[PosteriorDraws, ...]:
        """The posterior of each column given what was released."""
        key, draws = self.key.child("posterior"), self.settings.draws
        return tuple(
            draw_column(column, draws=draws, key=key.child(place))
            for place, column in enumerate(self.released)
        )

    @property
    def parameters(self) -> Parameters:
        return {
            f"{place}.{name}": values
            for place, drawn in enumerate(self.drawn)
            for name, values in drawn.parameters.items()
        }

    @property
    def health(self) -> Health:
        effective = min(drawn.effective for drawn in self.drawn)
        return Health("given noisy statistics", False, effective_draws=effective, chains=1)

    @property
    def clipped(self) -> float:
        """The largest share of any column's amounts that were moved to a limit; confidential."""
        shares = [0.0]
        for task, values in zip(self.tasks, self.values, strict=True):
            amounts = values.numbers[values.present & ~np.isnan(values.numbers)]
            if amounts.size and not task.classes:
                shares.append(float(((amounts <= task.low) | (amounts >= task.high)).mean()))
        return max(shares)

    def predict(self) -> list[PerLink]:
        key, drawn = self.key.child("release").child("predict"), [one.parameters for one in self.drawn]
        shapes, copies = shape_columns(self.settings, self.table), []
        for copy, place in enumerate(self.places):
            made = predict_chain(
                self.released, drawn, place, sampling=self.settings.sampling, key=key.child(copy),
                applies=_Written(self.settings, shapes, self.tasks, self.table).applies,
            )  # fmt: skip
            copies.append(join_columns(write_links(shapes, self.tasks, made, self.table.rows)))
        return copies

    def replay(self, tables: list[Any]) -> Replay | str:
        if reason := self.why_no_replay():
            return reason
        return ChainReplay(NoisedChain, self.settings, self.released, copies=tuple(tables))

    def intervals(self, level: float) -> dict[str, Any]:
        return summarize_columns(self.released, [one.parameters for one in self.drawn], level)

    def statistics(self) -> dict[str, Any]:
        return describe_columns(self.released, self.epsilon)

    def why_no_audit(self) -> str:
        return _NOT_YET.format("audit()")

    def why_no_attack(self) -> str:
        return _NOT_YET.format("attack()")

    def audit(self) -> StatisticsAudit:
        raise SettingError(self.why_no_audit())

    def attack(self, record: int | None, *, trials: int, confidence: float) -> Attack:
        raise SettingError(self.why_no_attack())

    def withheld_epsilon(self) -> float:
        return halve_replaced(self.settings)

    def divergences(self, orders: Array, *, withheld: bool) -> Array:
        """Pure ε, column by column: min(ε, ε²o/2) (Bun and Steinke 2016, proposition 15)."""
        times = (self.withheld_epsilon() if withheld else self.epsilon) / self.epsilon
        parts = [times * column.task.epsilon for column in self.released]
        return np.sum([np.minimum(part, part**2 * orders / 2) for part in parts], axis=0)


@dataclass
class _Written:
    """A copy as far as it is made, written as it will be released: what rules of later columns read."""

    settings: Settings
    shapes: list[Shape]
    tasks: list[Task]
    table: Table
    done: int = 0

    def applies(self, made: Sequence[Values]) -> RecordMask:
        """In which rows the next column has a cell of its own."""
        for shape, task, values in list(zip(self.shapes, self.tasks, made, strict=False))[self.done :]:
            cells = write_links([shape], [task], [values], self.table.rows)
            self.table = Table.of(write_column(self.settings, shape.column, self.table, shape.levels, cells))
        self.done = len(made)
        column = self.shapes[len(made)].column
        return find_fixed(column, self.table, codes_of(self.settings.columns))[0]
