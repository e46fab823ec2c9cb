"""Which rows of the ledger pay from which budget, in exact arithmetic.

A dataset is everything recorded under one name, and everything recorded for the same data without a name;
unnamed data is its own dataset. Names are matched without case, and shown as first written. Each neighbour
relation has its own account: prices under different relations bound different things, and a sum of them would
bound nothing.

ε is added up as the decimal number that was typed, not as its binary neighbour: three times 0.1 is 0.3, and
no rounding ever lets a sum pass its budget.
"""

import math
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from hedgerow.errors import LedgerError
from hedgerow.release.ledger.store import Entry

CLOSING = ("released", "spent", "void")


@dataclass(frozen=True)
class Balance:
    """An account: one dataset under one neighbour relation."""

    dataset: str  # its name, or the fingerprint of unnamed data
    relation: str
    budget: float | None
    spent: float  # rounded up; infinite after a release that claims no ε
    remaining: float | None  # rounded down: spending it is always allowed
    releases: int
    pending: int


@lru_cache(maxsize=4096)
def match_name(dataset: str) -> str:
    """What a name is matched by: "Payroll" and "PAYROLL", or "é" in either encoding, are one name."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", dataset).casefold())
    return " ".join(plain.split())


def exact(epsilon: float) -> Fraction:
    """The decimal number that a float is written as."""
    return Fraction(repr(float(epsilon)))


def below(amount: Fraction) -> float:
    """The largest float whose decimal does not exceed the amount."""
    shown = float(amount)
    while exact(shown) > amount:
        shown = math.nextafter(shown, -math.inf)
    return shown


def above(amount: Fraction) -> float:
    """The smallest float whose decimal is not less than the amount."""
    return -below(-amount)


@dataclass(frozen=True)
class Account:
    """The rows of one dataset."""

    name: str
    rows: tuple[Entry, ...]

    def budget(self, relation: str) -> Fraction | None:
        """The tightest of the budgets set on the name and on the data; the last one set on each counts."""
        last = {
            (e.dataset and match_name(e.dataset), e.fingerprint): e
            for e in self.rows
            if e.event == "budget" and e.relation == relation
        }
        limits = [exact(entry.epsilon) for entry in last.values() if entry.epsilon is not None]
        return min(limits, default=None)

    def charged(self, relation: str) -> list[Entry]:
        """Its releases, pending ones included, void ones not."""
        void = {entry.release for entry in self.rows if entry.event == "void"}
        mine = [entry for entry in self.rows if entry.event == "reserved" and entry.relation == relation]
        return [entry for entry in mine if entry.release not in void]

    def spent(self, relation: str) -> Fraction | None:
        """What its releases cost; None (unbounded) if one of them claims no ε."""
        prices = [entry.epsilon for entry in self.charged(relation)]
        return None if None in prices else sum((exact(e) for e in prices if e is not None), Fraction(0))

    def remaining(self, relation: str) -> float:
        """What may still be spent; infinite without a budget."""
        budget, spent = self.budget(relation), self.spent(relation)
        if budget is None:
            return math.inf
        return 0.0 if spent is None else max(0.0, below(budget - spent))

    def balances(self) -> list[Balance]:
        """The accounts of the dataset in figures, one for each relation."""
        waiting = {entry.release for entry in pending(self.rows)}
        balances = []
        for relation in dict.fromkeys(entry.relation for entry in self.rows if entry.relation is not None):
            budget, spent, charged = self.budget(relation), self.spent(relation), self.charged(relation)
            balances.append(
                Balance(
                    dataset=self.name,
                    relation=relation,
                    budget=None if budget is None else float(budget),
                    spent=math.inf if spent is None else above(spent),
                    remaining=None if budget is None else self.remaining(relation),
                    releases=len(charged),
                    pending=sum(entry.release in waiting for entry in charged),
                )
            )
        return balances


def pending(rows: Iterable[Entry]) -> list[Entry]:
    """Reservations that were neither released nor settled: a crash, or a release under way."""
    rows = list(rows)
    closed = {entry.release for entry in rows if entry.event in CLOSING}
    return [entry for entry in rows if entry.event == "reserved" and entry.release not in closed]


def account(rows: list[Entry], dataset: str | None, fingerprint: str | None) -> Account:
    """The dataset that a name or data belongs to.

    Data belongs to the name it was first recorded under: a second name for it would be a second budget for
    the same records, and is refused.
    """
    names = {
        match_name(e.dataset): e.dataset
        for e in rows
        if fingerprint and e.fingerprint == fingerprint and e.dataset is not None
    }
    name = match_name(dataset) if dataset is not None else min(names, default=None)
    if dataset is not None and (other := names.keys() - {name}):
        raise LedgerError(
            f"this data is already recorded as dataset {names[min(other)]!r}, not {dataset!r}. One "
            "dataset has one budget: use the recorded name."
        )
    of_name = [e for e in rows if e.dataset is not None and match_name(e.dataset) == name]
    prints = {e.fingerprint for e in of_name if e.fingerprint} | ({fingerprint} if fingerprint else set())
    ids = {e.id for e in of_name}
    mine = tuple(e for e in rows if e.id in ids or e.fingerprint in prints)
    shown = next((e.dataset for e in of_name), dataset)
    return Account(shown or fingerprint or "", mine)
