"""Noisy statistics of several columns, one after the other, and everything that follows from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.arrays import Array, PerLink, RecordMask
from hedgerow.errors import SettingError
from hedgerow.evidence.attack import Attack
from hedgerow.evidence.audit import StatisticsAudit
from hedgerow.fitted.noised import Noised
from hedgerow.fitted.replay import ChainReplay
from hedgerow.inference.bootstrap import Replay
from hedgerow.inference.columns import describe_columns, summarize_columns
from hedgerow.mechanism.noisy.chain.cells import settle_types
from hedgerow.mechanism.noisy.chain.draws import draw_columns
from hedgerow.mechanism.noisy.chain.release import ReleasedColumn, release_chain
from hedgerow.mechanism.noisy.chain.rows import HeldChain, Piece
from hedgerow.mechanism.noisy.chain.run import (
    chain_withheld_epsilon,
    count_clipped,
    hold_chain,
    read_columns,
    write_piece,
)
from hedgerow.mechanism.noisy.chain.streamed import plan_copies
from hedgerow.mechanism.noisy.chain.tasks import Task, Values
from hedgerow.mechanism.noisy.posterior import PosteriorDraws
from hedgerow.mechanism.noisy.released import Released
from hedgerow.models.base import Health, Parameters
from hedgerow.privacy.settings import Settings
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table
from hedgerow.threads import one_blas_thread

_NOT_YET = (
    "Under Strict {} is for one protected column whose limits are a pair, not by name. ε holds for every "
    "table."
)


@dataclass(frozen=True, repr=False, kw_only=True)
class NoisedChain(Noised):
    """Noisy statistics of several protected columns: a row's values are protected together."""

    released: tuple[ReleasedColumn, ...]

    @classmethod
    def of(cls, settings: Settings, table: Table, design: Design, *, key: Key, **more: Any) -> "NoisedChain":
        """The mechanism: column by column clip, sum and add noise, once."""
        table = settle_types(settings, table)
        chain = hold_chain(settings, table, design, values=True)
        released = release_chain(chain, key=key.child("statistics"))
        return cls(settings=settings, key=key, source=table, encoded=design, released=released, **more)

    @cached_property
    def values(self) -> list[Values]:
        """What each column holds in its own rows; confidential."""
        return read_columns(self.settings, self.table)

    @cached_property
    def chain(self) -> HeldChain:
        """What is public of all columns' rows."""
        return hold_chain(self.settings, self.table, self.design, values=False)

    @property
    def tasks(self) -> list[Task]:
        """What was told of each column beforehand."""
        return [column.task for column in self.released]

    @property
    def present(self) -> RecordMask:
        whole = self.chain.whole
        present = [whole.spread(place, values.present) for place, values in enumerate(self.values)]
        return np.any(present, axis=0)

    @property
    def epsilon(self) -> float:
        return float(self.settings.epsilon or 0.0)

    @property
    def counted(self) -> bool:
        each = (column.released for column in self.released)
        return any(isinstance(one, Released) and one.counts is not None for one in each)

    @cached_property
    def drawn(self) -> tuple[PosteriorDraws, ...]:
        """The posterior of each column given what was released."""
        return draw_columns(self.released, draws=self.settings.draws, key=self.key.child("posterior"))

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
    def clipped_amounts(self) -> Sequence[tuple[int, int]]:
        """By column, how many amounts there are and how many limits moved; confidential."""
        return count_clipped(self.tasks, self.values)

    @property
    def clipped_shares(self) -> dict[str, float]:
        pairs = zip(self.settings.outcomes, self.clipped_amounts, strict=True)
        return {name: moved / there for name, (there, moved) in pairs if there}

    @one_blas_thread()
    def predict(self) -> list[PerLink]:
        pieces = self.chain.pieces
        return [
            np.concatenate([write_piece(self.settings, copying, self._cut(piece), piece) for piece in pieces])
            for copying in plan_copies(self.settings, self.released, self.drawn, key=self.key)
        ]

    def _cut(self, piece: Piece) -> Table:
        """The records of a piece."""
        if piece.records == self.table.rows:
            return self.table
        return self.table.take(np.arange(piece.where.start, piece.where.stop))

    def replay(self, tables: list[Any]) -> Replay | str:
        if reason := self.why_no_replay():
            return reason
        return ChainReplay(NoisedChain, self.settings, self.released, copies=tuple(tables))

    def intervals(self, level: float) -> dict[str, Any]:
        return summarize_columns(self.released, [one.parameters for one in self.drawn], level)

    def statistics(self) -> dict[str, Any]:
        omitted = [() if one is None else np.flatnonzero(~one) for one in self.chain.whole.masks]
        return describe_columns(self.released, self.epsilon, self.records, omitted)

    def why_no_audit(self) -> str:
        return _NOT_YET.format("audit()")

    def why_no_attack(self) -> str:
        return _NOT_YET.format("attack()")

    def audit(self) -> StatisticsAudit:
        raise SettingError(self.why_no_audit())

    def attack(self, record: int | None, *, trials: int, confidence: float) -> Attack:
        raise SettingError(self.why_no_attack())

    def withheld_epsilon(self) -> float:
        return chain_withheld_epsilon(self.settings)

    def divergences(self, orders: Array, *, withheld: bool) -> Array:
        """Pure ε, column by column: min(ε, ε²o/2) (Bun and Steinke 2016, proposition 15)."""
        times = (self.withheld_epsilon() if withheld else self.epsilon) / self.epsilon
        parts = [times * column.task.epsilon for column in self.released]
        return np.sum([np.minimum(part, part**2 * orders / 2) for part in parts], axis=0)
