"""Which rows of the ledger pay from which budget, in exact arithmetic.

A dataset is everything recorded under one name, and everything recorded for the same data without a name;
unnamed data is its own dataset. Names are matched without case, and shown as first written. Each neighbour
relation has its own account: prices under different relations bound different things, and a sum of them would
bound nothing. The account "withheld" is charged for every release, under whatever relation (see `charges`);
rows of earlier versions under other relations have no price there, and are counted as `unpriced`.

ε under different bounds says different things too. A budget counts their plain sum, which needs no δ and is
at least the sum under each of them; what was spent is also told bound by bound, and composed where every
release has a Rényi curve. A look at data is counted with its dataset, and gives data no name.

ε is added up as the decimal number that was typed, not as its binary neighbour: three times 0.1 is 0.3, and
no rounding ever lets a sum pass its budget.
"""

import math
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from hedgerow.errors import LedgerError
from hedgerow.release.ledger.charges import WITHHELD, compose
from hedgerow.release.ledger.store import Entry

LOOKED = "looked"
USUAL_DELTA = 1e-6  # that curves are converted at where no release has a δ of the same kind
CLOSING = ("released", "spent", "void")


class Charge(NamedTuple):
    """What a release costs one account."""

    entry: Entry
    epsilon: float | None  # None: unbounded


@dataclass(frozen=True)
class Spent:
    """What releases under one bound cost an account together: plain sums."""

    bound: str | None  # None: the rows do not say
    epsilon: float | None  # rounded up; None: unbounded
    delta: float | None
    releases: int


@dataclass(frozen=True)
class Balance:
    """An account: one dataset under one neighbour relation."""

    dataset: str  # its name, or the fingerprint of unnamed data
    relation: str
    budget: float | None
    spent: float  # over all bounds, as a budget counts it; rounded up, infinite after one that claims no ε
    remaining: float | None  # rounded down: spending it is always allowed
    releases: int
    pending: int
    by_bound: tuple[Spent, ...] = ()
    composed: float | None = None  # ε of all together at `delta`, where each has a Rényi curve
    delta: float | None = None
    unpriced: int = 0  # releases of earlier versions that this account does not count


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
    return 0.0 - below(-amount)  # of nothing 0.0, not -0.0


def charge_unit(charge: Mapping[str, Any], rows: int | None) -> dict[str, Any]:
    """What is charged for so many rows of one person or firm together, from the charge for one row.

    ε is k-fold. Under the strict bounds that is the price of the k rows; under others it is an account, and
    so is δ: k-fold, or by what (ε, δ) would give for k rows where copies are priced together. A Rényi curve
    is of one row, and says nothing about several. Noisy statistics are priced for all rows of a unit and not
    charged by this.
    """
    k = rows or 1
    if k == 1:
        return dict(charge)
    prices = {name: charge.get(name) for name in ("epsilon", "withheld", "delta")}
    whole = {name: above(k * exact(price)) for name, price in prices.items() if price is not None}
    if charge.get("bound") == "renyi" and "delta" in whole:
        growth = (k - 1) * charge["epsilon"]
        whole["delta"] = min(1.0, whole["delta"] * math.exp(growth)) if growth < 700 else 1.0
    return {**charge, **whole, **({"curve": None} if "curve" in charge else {})}


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

    @property
    def releases(self) -> list[Entry]:
        """Its releases, pending ones included, void ones not."""
        void = {entry.release for entry in self.rows if entry.event == "void"}
        return [entry for entry in self.rows if entry.event == "reserved" and entry.release not in void]

    @property
    def looks(self) -> list[Entry]:
        """When somebody was shown something of its data that no release paid for."""
        return [entry for entry in self.rows if entry.event == LOOKED]

    def charged(self, relation: str) -> list[Charge]:
        """What its releases cost under a relation."""
        own = [Charge(entry, entry.epsilon) for entry in self.releases if entry.relation == relation]
        if relation != WITHHELD:
            return own
        others = [entry for entry in self.releases if entry.relation != WITHHELD and entry.bound is not None]
        return [*own, *(Charge(entry, entry.withheld) for entry in others)]

    def spent(self, relation: str) -> Fraction | None:
        """What its releases cost; None (unbounded) if one of them claims no ε."""
        return _sum(self.charged(relation))

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
        relations = [entry.relation for entry in self.rows if entry.relation is not None]
        if self.charged(WITHHELD):
            relations.append(WITHHELD)
        for relation in dict.fromkeys(relations):
            budget, spent, charged = self.budget(relation), self.spent(relation), self.charged(relation)
            entries = [charge.entry for charge in charged]
            delta = min(
                (e.delta for e in entries if e.bound in ("renyi", "gaussian") and e.delta),
                default=USUAL_DELTA,
            )
            composed = compose([entry.curve for entry in entries], relation, delta=delta)
            balances.append(
                Balance(
                    dataset=self.name,
                    relation=relation,
                    budget=None if budget is None else float(budget),
                    spent=math.inf if spent is None else above(spent),
                    remaining=None if budget is None else self.remaining(relation),
                    releases=len(charged),
                    pending=sum(entry.release in waiting for entry in entries),
                    by_bound=_by_bound(charged),
                    composed=composed,
                    delta=None if composed is None else delta,
                    unpriced=len(self.releases) - len(charged) if relation == WITHHELD else 0,
                )
            )
        return balances


def _sum(charges: Iterable[Charge]) -> Fraction | None:
    prices = [charge.epsilon for charge in charges]
    return None if None in prices else sum((exact(e) for e in prices if e is not None), Fraction(0))


def _by_bound(charges: Iterable[Charge]) -> tuple[Spent, ...]:
    groups: dict[str | None, list[Charge]] = {}
    for charge in charges:
        groups.setdefault(charge.entry.bound, []).append(charge)
    spent = []
    for bound, mine in groups.items():
        deltas, total = [exact(c.entry.delta) for c in mine if c.entry.delta is not None], _sum(mine)
        delta = above(sum(deltas, Fraction(0))) if deltas else None
        spent.append(Spent(bound, None if total is None else above(total), delta, len(mine)))
    return tuple(spent)


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
    deeds = [e for e in rows if e.event != LOOKED]
    names = {
        match_name(e.dataset): e.dataset
        for e in deeds
        if fingerprint and e.fingerprint == fingerprint and e.dataset is not None
    }
    name = match_name(dataset) if dataset is not None else min(names, default=None)
    if dataset is not None and (other := names.keys() - {name}):
        raise LedgerError(
            f"this data is already recorded as dataset {names[min(other)]!r}, not {dataset!r}. One "
            "dataset has one budget: use the recorded name."
        )
    of_name = [e for e in rows if e.dataset is not None and match_name(e.dataset) == name]
    prints = {e.fingerprint for e in of_name if e.fingerprint and e.event != LOOKED}
    prints |= {fingerprint} if fingerprint else set()
    ids = {e.id for e in of_name}
    mine = tuple(e for e in rows if e.id in ids or e.fingerprint in prints)
    shown = next((e.dataset for e in of_name if e.event != LOOKED), dataset)
    return Account(shown or fingerprint or "", mine)
