"""What both mechanisms end in: a release, made once."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Confidential, PerLink, RecordMask, join_columns
from hedgerow.errors import list_some
from hedgerow.inference.bootstrap import Replay
from hedgerow.mechanism.cells import read_copy
from hedgerow.mechanism.copies import count_broken, count_moved, write_copy
from hedgerow.models.base import Health, Parameters
from hedgerow.models.chain import Chain
from hedgerow.privacy.bounds import Statement
from hedgerow.privacy.guarantee import Guarantee, Release
from hedgerow.privacy.settings import Settings
from hedgerow.randomness import Key
from hedgerow.tables.chain import Units
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table
from hedgerow.threads import WORTH_SHARING, share_out

_OVERRODE = "the sampler failed its health checks ({}) and the owner overrode them"
DELTA_TOO_LARGE = (
    "delta is not below 1/n, which would allow one record in n to be published. Choose one well below."
)
_WHOLE_UNITS = (
    "{} leaves out one row, and the price is that of all rows of one '{}'. Leave out unit (--unit) to look "
    "at rows."
)
_TOLD = 0.05  # share of synthetic values at limits of Strict, up to which nobody is told
_NOT_IN_COPIES = (
    "intervals: a formula or rule reads {}, which the copies do not have. Release it, or ask for none."
)


@dataclass(frozen=True, repr=False, kw_only=True)
class Finished(Confidential):
    """The settings, and what was made under them: what is released and claimed comes from here."""

    settings: Settings
    key: Key
    seeded: bool
    left_out: tuple[str, ...] = ()  # columns read but not released
    keep: tuple[str, ...] = ()  # columns released even if they give the outcome away

    @property
    @abstractmethod
    def table(self) -> Table:
        """The table that was fitted."""

    @property
    @abstractmethod
    def design(self) -> Design:
        """Its outcome and its predictors."""

    @property
    @abstractmethod
    def present(self) -> RecordMask:
        """Which outcomes were used."""

    @property
    def records(self) -> int:
        """How many records the copies have; `table` and `design` may be a view of some of them."""
        return self.design.records

    @property
    def numbers(self) -> NDArray[np.intp]:
        """Which of the records `table` and `design` have."""
        return np.arange(self.design.records)

    @property
    @abstractmethod
    def epsilon(self) -> float:
        """The price of one copy."""

    @property
    @abstractmethod
    def total_epsilon(self) -> float:
        """The price of all copies."""

    @property
    @abstractmethod
    def statement(self) -> Statement:
        """How far draws support the claim: with which δ and confidence."""

    @property
    @abstractmethod
    def parameters(self) -> Parameters:
        """The draws behind the copies and their neighbours."""

    @property
    @abstractmethod
    def health(self) -> Health:
        """Whether these draws can be trusted."""

    @property
    def failed(self) -> str:
        """Checks of draws that the owner overrode, in words."""
        return ""

    @property
    def moved(self) -> dict[str, int]:
        """How many synthetic values limits moved, over all copies, by column; none: not there.

        They follow from released draws; that a limit moved them is not in the copies, and stays here.
        """
        return dict(self._written[1])

    def tell_moved(self) -> list[str]:
        """What the owner should know of values that limits moved."""
        made, least = self.settings.copies * self.records, 0.0
        remedy = "A family with lower= and upper= keeps to the ends by itself."
        if self.settings.noisy is not None:  # whose limits every column has
            least = _TOLD
            remedy = "Give wider limits, or a family that comes nearer to the column, if that is public."
        return [
            f"{count} of {made} synthetic values of '{name}' lay beyond declared limits and were moved to "
            f"them, where they now recur (confidential). {remedy}"
            for name, count in self.moved.items()
            if count > least * made
        ]

    @property
    def corrected(self) -> int | None:
        """How many released draws were corrected; None where that was not asked for."""
        return None

    @property
    def counted(self) -> bool:
        """Whether copies follow noisy counts, the same for all of them."""
        return False

    @abstractmethod
    def predict(self) -> list[PerLink]:
        """The synthetic columns, copy by copy, before they take the type of the confidential ones."""

    @abstractmethod
    def replay(self, tables: list[Any]) -> Replay | str:
        """How intervals are had from these copies: public things alone; or in words why there are none."""

    def why_no_audit(self) -> str:
        """Why outcomes cannot be withheld one by one; nothing where they can."""
        return self._why_no_rows("audit()")

    def why_no_attack(self) -> str:
        """Why copies cannot be attacked; nothing where they can."""
        return self._why_no_rows("attack()")

    def _why_no_rows(self, what: str) -> str:
        unit = self.settings.unit
        return "" if unit is None else _WHOLE_UNITS.format(what, unit)

    def why_no_replay(self) -> str:
        """What a replay would read and the copies do not have, in words: what is left out may not leave."""
        read = [name for link in self.design.links for name in link.predictors]
        read += [name for column in self.settings.columns for name in column.reads]
        read += [*self.settings.standard.range.columns, *self.settings.weights.columns]
        hidden = [name for name in dict.fromkeys(read) if name in self.left_out]
        return _NOT_IN_COPIES.format(list_some(hidden, quoted=True)) if hidden else ""

    @abstractmethod
    def doubts(self) -> list[str]:
        """What the owner should be warned about: in words without figures."""

    @cached_property
    def release(self) -> Release:
        """What may leave: typed copies and their guarantee, made once."""
        tables, _ = self._written
        return Release(tables, self.guarantee, self._count_broken(tables), self.replay(tables))

    @cached_property
    def guarantee(self) -> Guarantee:
        """What may be claimed of the copies, whether they are made already or not."""
        declared = [
            words
            for link, each, domain in zip(
                self.design.links, self.settings.links, self.settings.domains, strict=True
            )
            for words in (domain.describe(link), str(each.column.declared or "") * (each.role != "kind"))
        ]
        declared += [word for column in self.settings.columns for word in column.assumptions]
        protected = self.settings.protected
        return Guarantee.of(
            self.settings,
            self.statement,
            protected=protected if len(protected) > 1 else protected[0],
            passed_through=[
                other for other in self.table.columns if other not in (*protected, *self.left_out)
            ],
            declared="; ".join(filter(None, declared)),
            atoms=any(domain.atoms for domain in self.settings.domains),
            seeded=self.seeded,
            uncertified=_OVERRODE.format(self.failed) if self.failed else "",
            kept=self.keep,
            corrected=self.corrected,
            counted=self.counted,
            simulated=isinstance(self.settings.model, Chain)
            and self.settings.model.simulates(self.design, self.settings.standard.range.restricts),
        )

    @cached_property
    def _written(self) -> tuple[list[Any], Counter[str]]:
        """Typed copies, and how many values limits moved: what was predicted is not kept."""
        copies = self.predict()
        moved = sum((count_moved(self.settings, copy) for copy in copies), Counter[str]())
        return share_out(self._write_copy, copies, worth=self.table.rows > WORTH_SHARING), moved

    def _write_copy(self, copy: PerLink) -> Any:
        """A typed copy, without the columns that are left out."""
        return self.table.drop(self.left_out, write_copy(self.settings, self.table, self.design, copy))

    def _count_broken(self, tables: Sequence[Any]) -> Any:
        """How many rows of each copy break each check; None without checks."""
        checks = self.settings.rules.conditions
        if not checks:
            return None
        rows = [
            {"check": check.text, "copy": number, "broken": broken}
            for number, copy in enumerate(map(Table.of, tables), 1)
            for check, broken in zip(checks, count_broken(self.settings, copy), strict=True)
        ]
        return self.table.like({name: [row[name] for row in rows] for name in rows[0]})

    @cached_property
    def copied_outcomes(self) -> list[PerLink]:
        """What each link models, of every copy as it is released; NaN where a copy has nothing of it."""
        return [self.read_outcomes(Table.of(copy)) for copy in self.release.tables]

    def read_outcomes(self, copy: Table) -> PerLink:
        """What each link models, of a table: numbers or the places of labels."""
        plain = all(column.is_plain for column in self.settings.columns)
        cells = {} if plain else read_copy(self.settings, copy)
        columns = []
        for link, each in zip(self.design.links, self.settings.links, strict=True):
            if plain:
                columns.append(copy.outcome(link.outcome, link.levels))
            else:
                values, present = cells[each.column.outcome].of_link(each)
                columns.append(np.where(present, values, np.nan))
            if each.column.shared and self.settings.unit is not None:  # one value of each unit
                leads = Units.of(self.table, self.settings.unit).leads
                columns[-1] = np.where(leads, columns[-1], np.nan)
        return join_columns(columns)
