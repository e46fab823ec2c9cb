"""The ledger: what has been spent on which data.

    >>> with Ledger.open("ledger.sqlite") as ledger:
    ...     _ = ledger.set_budget(10, relation="withheld", dataset="payroll")
    ...     ledger.balance(dataset="payroll")[0].remaining
    10.0

A release is paid in two steps. `reserve` checks the budget and records the spend, in one transaction that no
other process can interleave, before anything becomes visible; `confirm` records that the copies are out. A
crash between the two leaves a reservation that counts as spent until it is settled: as spent, or as void by
someone who states that no copy became visible. Nothing is ever updated or deleted: a change of state is a new
row.

Formal guarantee: for each dataset and neighbour relation with a budget, the ε of all reservations that are
not void sums, in exact decimal arithmetic, to at most the budget in force when each was made, whatever the
number of processes; and the price of every release of the same data is in one account (see `fingerprint` for
what the same data is). Other versions of the data are in one account as far as they carry one name. Where the
name is left out or new, a version or part is recognised and asked about if enough of what singles out its
records is unchanged (see `sketch`); one in which nothing is, by chance or intent, is other data to the
ledger, and whoever answers that data is new is believed.
"""

import math
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hedgerow.errors import BudgetError, LedgerError, SettingError, reason_of
from hedgerow.release.ledger.accounts import Account, Balance, account, exact, match_name, pending
from hedgerow.release.ledger.datasets import NAMED, OPTIONAL, REQUIRED, names_required, settle_dataset
from hedgerow.release.ledger.store import Entry, Store

__all__ = ["Balance", "Entry", "Ledger", "ledger_path", "open_ledger"]

VARIABLE, OVERRIDE = "HEDGEROW_LEDGER", "HEDGEROW_LEDGER_OVERRIDE"
_OUTCOMES = ("spent", "void")
_DIGEST = re.compile("[0-9a-f]{64}")


class Ledger(Store):
    """An open ledger. Use it as a context manager, one for each thread."""

    def fingerprint(self, frame: Any, columns: Sequence[str] | None = None) -> str:
        """What the ledger knows the confidential columns by; reveals nothing without its key."""
        # With it comes pyarrow, which listing does not need.
        from hedgerow.release.ledger.fingerprint import fingerprint

        return fingerprint(frame, columns, key=self._data_key)

    def sketch(self, frame: Any, outcome: str) -> str:
        """What other versions and parts of the data are recognised by; blinded like a fingerprint."""
        from hedgerow.release.ledger.sketch import sketch

        return sketch(frame, outcome, key=self._data_key)

    def set_budget(
        self,
        epsilon: float,
        *,
        relation: str,
        dataset: str | None = None,
        fingerprint: str | None = None,
        note: str = "",
    ) -> Entry:
        """Sets what may be spent on a dataset under a neighbour relation; a later budget replaces it."""
        epsilon = _amount(epsilon, "a budget")
        _check_names(relation, dataset, fingerprint)
        if (dataset is None) == (fingerprint is None):
            raise SettingError(
                "a budget belongs to a dataset's name or to a fingerprint. Pass one of the two."
            )
        with self._transaction() as rows:
            dataset = _as_written(rows, dataset)
            values = {"dataset": dataset, "fingerprint": fingerprint, "relation": relation, "note": note}
            return self._add(rows, "budget", epsilon=epsilon, **values)

    def require_dataset(self, required: bool = True, *, note: str = "") -> Entry:
        """From now on data without a name is refused; or, with False, taken again."""
        with self._transaction() as rows:
            return self._add(rows, REQUIRED if required else OPTIONAL, note=note)

    def requires_dataset(self) -> bool:
        """Whether data without a name is refused."""
        return names_required(self.entries())

    def reserve(
        self,
        *,
        fingerprint: str,
        relation: str,
        epsilon: float | None,
        copies: int,
        plan: str,
        dataset: str | None = None,
        sketch: str | None = None,
        new_dataset: bool = False,
        release: str | None = None,
        note: str = "",
    ) -> Entry:
        """Records a spend before its copies become visible, or raises `BudgetError` with what remains.

        `epsilon` is the price of all copies together. None says that nothing is claimed: it is refused under
        a budget, and uses up any budget that is set later. `new_dataset` answers what is asked about data
        that looks like another dataset (see `datasets`).
        """
        if epsilon is not None:
            epsilon = _amount(epsilon, "a price")
        if isinstance(copies, bool) or not isinstance(copies, int) or copies < 1:
            raise SettingError(f"copies must be a whole number from 1 up, got {copies!r}.")
        _check_names(relation, dataset, fingerprint)
        release = release or secrets.token_hex(8)
        with self._transaction() as rows:
            if any(entry.release == release for entry in rows):
                raise LedgerError(f"release {release!r} is in the ledger already. Choose another identifier.")
            for unnamed in settle_dataset(rows, dataset, fingerprint, sketch, new=new_dataset):
                name = _as_written(rows, dataset)
                self._add(rows, NAMED, dataset=name, fingerprint=unnamed, note="taken over: it looks alike")
            holder = account(rows, dataset, fingerprint)
            _check_budget(holder, relation, epsilon)
            # Data that is known under a name stays with it, also when the name is left out.
            name = holder.name if holder.name != fingerprint else None
            if any(entry.fingerprint == fingerprint and entry.sketch == sketch for entry in rows):
                sketch = None  # once is enough
            if new_dataset:
                note = "; ".join([*filter(None, [note]), "said to be a new dataset"])
            price = {"relation": relation, "epsilon": epsilon, "copies": copies}
            which = {"dataset": name, "fingerprint": fingerprint, "plan": plan, "release": release}
            return self._add(rows, "reserved", **price, **which, sketch=sketch, note=note)

    def check(
        self,
        *,
        fingerprint: str,
        relation: str,
        epsilon: float | None,
        dataset: str | None = None,
        sketch: str | None = None,
        new_dataset: bool = False,
    ) -> list[Balance]:
        """Raises what `reserve` would say about the budget, and returns the data's accounts.

        Nothing is recorded: ask before a long fit, and reserve after it all the same.
        """
        _check_names(relation, dataset, fingerprint)
        rows = self.entries()
        unnamed = settle_dataset(rows, dataset, fingerprint, sketch, new=new_dataset)
        named = [Entry(-1, "", NAMED, dataset=dataset, fingerprint=each) for each in unnamed]
        holder = account([*rows, *named], dataset, fingerprint)
        _check_budget(holder, relation, epsilon)
        return holder.balances()

    def confirm(self, release: str, *, certificate: str | None = None, note: str = "") -> Entry:
        """Records that the copies of a reserved release are visible, and the digest of their certificate."""
        if certificate is not None and not _DIGEST.fullmatch(certificate):
            raise SettingError(
                f"certificate {certificate!r} is no SHA-256 of certificate.json (64 hex digits)."
            )
        return self._close(release, "released", note, certificate)

    def settle(self, release: str, outcome: str, *, note: str = "") -> Entry:
        """Closes a reservation without copies: "spent" keeps its price, "void" gives it back.

        Void is right only if no copy became visible to anybody; the note must say who states that and why.
        """
        if outcome not in _OUTCOMES:
            raise SettingError(f"outcome {outcome!r} is not one of {', '.join(_OUTCOMES)}.")
        if outcome == "void" and not note.strip():
            raise SettingError(
                "void needs a note that says who states that no copy became visible, and why. Pass note."
            )
        return self._close(release, outcome, note)

    def pending(self) -> list[Entry]:
        """Reservations that were neither confirmed nor settled."""
        return pending(self.entries())

    def balance(
        self, *, dataset: str | None = None, fingerprint: str | None = None, relation: str | None = None
    ) -> list[Balance]:
        """The accounts, or those of one dataset or relation."""
        rows, keys = self.entries(), {(dataset, fingerprint): None}
        if dataset is None and fingerprint is None:
            keys = dict.fromkeys(
                (e.dataset, None if e.dataset else e.fingerprint) for e in rows if e.relation
            )
        holders = {holder.name: holder for holder in (account(rows, *key) for key in keys)}
        balances = [balance for holder in holders.values() for balance in holder.balances()]
        return [balance for balance in balances if relation in (None, balance.relation)]

    def export(self) -> dict[str, Any]:
        """Rows and accounts as JSON can hold them."""
        count, last = self.head()
        balances = [asdict(b) | {"spent": None if math.isinf(b.spent) else b.spent} for b in self.balance()]
        return {
            "version": 1,
            "head": {"count": count, "hash": last},
            "entries": [asdict(entry) for entry in self.entries()],
            "accounts": balances,
        }

    def _close(self, release: str, event: str, note: str, certificate: str | None = None) -> Entry:
        with self._transaction() as rows:
            states = [entry for entry in rows if entry.release == release]
            if not states:
                raise LedgerError(f"release {release!r} is not in the ledger. Reserve it first.")
            if len(states) > 1:
                raise LedgerError(
                    f"release {release!r} is closed already, as {states[-1].event}. It cannot change."
                )
            same = ("dataset", "fingerprint", "relation", "epsilon", "copies", "plan", "release")
            values = {name: getattr(states[0], name) for name in same}
            return self._add(rows, event, **values, certificate=certificate, note=note)


def ledger_path(named: str | None) -> Path:
    """The environment's ledger, else the one that is named, else one for all data of this user.

    Not one beside the data: the same data under another name or in another folder must meet the same budget.
    For the same reason a plan or a flag does not lead away from the environment's ledger. Who sets that
    variable decides for everybody on the machine, and so does who sets the second one, which allows it: a
    plan is handed on, and a flag comes out of a shell's history.
    """
    if not (ruling := os.environ.get(VARIABLE)):
        if named:
            return Path(named)
        state = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
        return (Path(state) if state else Path.home() / ".local" / "state") / "hedgerow" / "ledger.sqlite"
    chosen = Path(named or ruling)
    if chosen.resolve() != Path(ruling).resolve() and os.environ.get(OVERRIDE) != "allow":
        raise LedgerError(
            f"{chosen.name}: the plan or --ledger names this ledger, but {VARIABLE} names another one "
            f"({Path(ruling).name}), whose budgets hold here. Leave it out, or set {OVERRIDE}=allow."
        )
    return chosen


def open_ledger(named: str | None) -> Ledger:
    """Opens it, or begins it; the folder of the user's own ledger is made when it is first needed."""
    path = ledger_path(named)
    if not (named or os.environ.get(VARIABLE)):
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise LedgerError(
                f"{path.name}: its folder cannot be made ({reason_of(error)}). Name a ledger: "
                f"--ledger FILE, or {VARIABLE}."
            ) from None
    return Ledger.open(path)


def _check_budget(holder: Account, relation: str, epsilon: float | None) -> None:
    budget, spent = holder.budget(relation), holder.spent(relation)
    if budget is not None and (epsilon is None or spent is None or spent + exact(epsilon) > budget):
        left = holder.remaining(relation)
        asked = "a release that claims no ε" if epsilon is None else f"ε {epsilon!r}"
        raise BudgetError(
            f"{asked} exceeds what remains for {holder.name!r} under {relation!r}: {left!r} of "
            f"{float(budget)!r}. Ask for less, or have the budget raised.",
            remaining=left,
        )


def _as_written(rows: list[Entry], dataset: str | None) -> str | None:
    """The name as the ledger first had it."""
    same = (e.dataset for e in rows if dataset and e.dataset and match_name(e.dataset) == match_name(dataset))
    return next(same, dataset)


def _amount(value: float, what: str) -> float:
    if not 0 < float(value) < math.inf:
        raise SettingError(f"{what} must be a finite ε above 0, got {value!r}.")
    return float(value)


def _check_names(relation: str, dataset: str | None, fingerprint: str | None) -> None:
    if not relation or relation != relation.strip():
        raise SettingError(
            f"relation {relation!r} must name the neighbour relation, without blanks around it."
        )
    if dataset is not None:
        name = match_name(dataset)
        if not name or dataset != dataset.strip() or not name.isprintable() or _DIGEST.fullmatch(name):
            raise SettingError(
                f"dataset {dataset!r} must be a name of printable characters, without blanks around it and "
                "no fingerprint."
            )
    if fingerprint is not None and not _DIGEST.fullmatch(fingerprint):
        raise SettingError("a fingerprint has 64 hex digits. Use Ledger.fingerprint(frame, columns).")
