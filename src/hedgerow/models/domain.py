"""What values an outcome may take, and what was publicly declared of them."""

from dataclasses import dataclass
from typing import Any

from hedgerow.tables.design import Design
from hedgerow.tables.table import Table
from hedgerow.tables.values import ANYWHERE, Support


@dataclass(frozen=True)
class Domain:
    """Numbers anywhere on the line, unless said otherwise; public.

    `support` is where copies are kept, in whatever type they are written. `atoms` says whether single values
    may have a probability of their own, so that a range may hold just one.
    """

    support: Support = ANYWHERE
    atoms: bool = False

    def classes(self, table: Table, outcome: str) -> tuple[Any, ...] | None:
        """The classes of an outcome that holds labels, in order; None for an outcome of numbers."""
        return None

    def describe(self, design: Design) -> str:
        """What was declared of the outcome, in words for the guarantee; empty for nothing."""
        return ""
