"""Replaying a release of several columns by noisy statistics: simulate all, release them again, draw, copy.

Unlike one column's (`inference.bootstrap_noisy`) the posterior of each simulated table is drawn: what a
column reads of those before it moves with them, and no estimate stands for that. It takes about half a second
for each column and table.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hedgerow.inference.bootstrap import Replay
from hedgerow.mechanism.noisy.chain.encode import encode_columns
from hedgerow.mechanism.noisy.chain.release import ReleasedColumn
from hedgerow.mechanism.noisy.posterior import PosteriorDraws
from hedgerow.privacy.settings import Settings
from hedgerow.randomness import Key
from hedgerow.tables.table import Table

_DRAWS = 100  # of each simulated table's posterior


@dataclass(frozen=True, repr=False)
class ChainReplay(Replay):
    """A replay of a release of several columns by noisy statistics."""

    kind: Any  # NoisedChain, which needs this module
    settings: Settings
    released: tuple[ReleasedColumn, ...]

    method = "bootstrap through noisy statistics"

    @property
    def codes(self) -> dict[str, tuple[Any, ...]]:
        return self.settings.codes

    @cached_property
    def chain(self) -> Any:
        """What was released, as if a copy were the table: without a confidential value."""
        table = Table.of(self.copies[0])
        design, key = encode_columns(self.settings, table), Key.from_seed(0)
        return self.kind(
            settings=self.settings, key=key, seeded=True, source=table, encoded=design, released=self.released
        )

    def runs(self, tables: int, copies: int, key: Key) -> Iterator[tuple[Any, list[Any]]]:
        chain = replace(self.chain, key=key.child("posterior"))
        means = tuple(PosteriorDraws(_mean(one.parameters), 1.0, one.acceptance, 1) for one in chain.drawn)
        alone = replace(chain.settings, copies=1, draws=_DRAWS, sampling="independent")
        several = replace(chain.settings, copies=copies, draws=_DRAWS)
        for number in range(tables):
            own = key.child("table").child(number)
            truth = replace(chain, settings=alone, key=own.child("values"))
            vars(truth)["drawn"] = means
            (table,) = truth.release.tables
            design = encode_columns(several, Table.of(table))
            again = self.kind.of(several, Table.of(table), design, key=own.child("again"), seeded=True)
            yield table, again.release.tables

    def parameters(self, *, level: float, tables: int, key: Key) -> dict[str, Any]:
        found: dict[str, Any] = replace(self.chain, key=key).intervals(level)
        return found


def _mean(drawn: Any) -> dict[str, Any]:
    """The mean of draws, of σ on the log scale, in every draw's place."""
    mean = {
        name: np.exp(np.log(each).mean(axis=0)) if name == "sigma" else each.mean(axis=0)
        for name, each in drawn.items()
    }
    return {name: np.broadcast_to(each, (_DRAWS, *np.shape(each))) for name, each in mean.items()}
