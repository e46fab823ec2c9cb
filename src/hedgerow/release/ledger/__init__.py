"""The ledger: what has been spent on which data.

    >>> with Ledger.open("ledger.sqlite") as ledger:
    ...     _ = ledger.set_budget(10, relation="withheld", dataset="payroll")
    ...     ledger.balance(dataset="payroll")[0].remaining
    10.0

A release is paid in three steps, each one transaction that no other process can interleave. `reserve` checks
the budget and records the spend before a copy is written; `begin_publishing` records, under a reservation
that is still open, that the copies are about to become visible; `confirm` records that they are. A crash in
between leaves a reservation that counts as spent until it is settled, as spent or as void. Nothing is ever
updated or deleted: a change of state is a new row.

Formal guarantee: for each dataset and neighbour relation with a budget, the ε of all reservations that are
not void sums, in exact decimal arithmetic, to at most the budget in force when each was made, whatever the
number of processes. Under the relation "withheld" the sum is over all releases, those under other relations
at their price with an outcome withheld (see `charges`). And the price of every release of the same data is in
one account (see `fingerprint` for what the same data is). Other versions of the data are in one account as
far as they carry one name. Where the name is left out or new, a version or part is recognised and asked about
if enough of what singles out its records is unchanged (see `sketch`); one in which nothing is, by chance or
intent, is other data to the ledger, and whoever answers that data is new is believed.

And no release is void of which hedgerow made a copy visible, however processes are stopped, killed or
interleaved. The copies appear by one rename of a draft, after `begin_publishing`. If void is recorded first,
`begin_publishing` is refused, and the rename is never reached. If `begin_publishing` is first, void is
refused unless `Draft.withdraw` succeeds, after which the rename can only fail. Where rows may be missing
between the two (a ledger restored from a backup, see `reseal`) the draft has to be withdrawn as well. For a
reservation that names no place, as those of earlier versions, void rests on the statement in its note.
"""

import getpass
import math
import os
import re
import secrets
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hedgerow.errors import BudgetError, LedgerError, SettingError, format_value, reason_of
from hedgerow.release.folder import Draft, check_outside_releases
from hedgerow.release.ledger.accounts import (
    CLOSING,
    LOOKED,
    Account,
    Balance,
    account,
    exact,
    match_name,
    pending,
)
from hedgerow.release.ledger.charges import WITHHELD
from hedgerow.release.ledger.datasets import NAMED, OPTIONAL, REQUIRED, names_required, settle_dataset
from hedgerow.release.ledger.store import Entry, Store, format_head

__all__ = ["Balance", "Entry", "Ledger", "format_head", "ledger_path", "open_ledger"]

VARIABLE, OVERRIDE = "HEDGEROW_LEDGER", "HEDGEROW_LEDGER_OVERRIDE"
_LEAST = 5e-324  # a price before it is known
_OUTCOMES = ("spent", "void")
_DIGEST = re.compile("[0-9a-f]{64}")


class Ledger(Store):
    """An open ledger. Use it as a context manager, one for each thread."""

    def fingerprint(self, frame: Any, columns: Sequence[str] | None = None) -> str:
        """What the ledger knows the confidential columns by; reveals nothing without its key."""
        # With it comes pyarrow, which listing does not need.
        from hedgerow.release.ledger.fingerprint import fingerprint

        return fingerprint(frame, columns, key=self._data_key)

    def sketch(self, frame: Any, *outcomes: str) -> str:
        """What other versions and parts of the data are recognised by; blinded like a fingerprint."""
        from hedgerow.release.ledger.sketch import sketch

        return sketch(frame, *outcomes, key=self._data_key)

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
        place: str | None = None,
        bound: str | None = None,
        delta: float | None = None,
        curve: str | None = None,
        withheld: float | None = None,
        note: str = "",
    ) -> Entry:
        """Records a spend before its copies become visible, or raises `BudgetError` with what remains.

        `epsilon` is the price of all copies together. None says that nothing is claimed: it is refused under
        a budget, and uses up any budget that is set later. `place` is where the release folder will be.
        `bound`, `delta`, `curve` and `withheld` come from `charges.charge_of`: with them a release under
        another relation than "withheld" has to be covered by that relation's budget too.
        `new_dataset` answers what is asked about data that looks like another dataset (see `datasets`).
        """
        if epsilon is not None:
            epsilon = _amount(epsilon, "a price")
        if isinstance(copies, bool) or not isinstance(copies, int) or copies < 1:
            raise SettingError(f"copies must be a whole number from 1 up, got {format_value(copies)}.")
        _check_names(relation, dataset, fingerprint)
        release = release or secrets.token_hex(8)
        with self._transaction() as rows:
            if any(entry.release == release for entry in rows):
                raise LedgerError(f"release {release!r} is in the ledger already. Choose another identifier.")
            for unnamed in settle_dataset(rows, dataset, fingerprint, sketch, new=new_dataset):
                name = _as_written(rows, dataset)
                self._add(rows, NAMED, dataset=name, fingerprint=unnamed, note="taken over: it looks alike")
            holder = account(rows, dataset, fingerprint)
            _check_budgets(holder, relation, epsilon, bound, withheld)
            # Data that is known under a name stays with it, also when the name is left out.
            name = holder.name if holder.name != fingerprint else None
            if any(entry.fingerprint == fingerprint and entry.sketch == sketch for entry in rows):
                sketch = None  # once is enough
            if new_dataset:
                note = "; ".join([*filter(None, [note]), "said to be a new dataset"])
            price = {"relation": relation, "epsilon": epsilon, "copies": copies, "bound": bound}
            price |= {"delta": delta, "curve": curve, "withheld": withheld}
            which = {"dataset": name, "fingerprint": fingerprint, "plan": plan, "release": release}
            return self._add(rows, "reserved", **price, **which, sketch=sketch, place=place, note=note)

    def check(
        self,
        *,
        fingerprint: str,
        relation: str,
        epsilon: float | None,
        dataset: str | None = None,
        sketch: str | None = None,
        new_dataset: bool = False,
        bound: str | None = None,
        withheld: float | None = None,
    ) -> list[Balance]:
        """Raises what `reserve` would say about the budget, and returns the data's accounts.

        Nothing is recorded: ask before a long fit, and reserve after it all the same. Before it the price
        with an outcome withheld is not known; a budget of which nothing remains refuses it all the same.
        """
        _check_names(relation, dataset, fingerprint)
        rows = self.entries()
        unnamed = settle_dataset(rows, dataset, fingerprint, sketch, new=new_dataset)
        named = [Entry(-1, "", NAMED, dataset=dataset, fingerprint=each) for each in unnamed]
        holder = account([*rows, *named], dataset, fingerprint)
        if bound is None:
            bound, withheld = "unknown yet", _LEAST
        _check_budgets(holder, relation, epsilon, bound, withheld)
        return holder.balances()

    def look(self, what: str, *, fingerprint: str, dataset: str | None = None, plan: str = "") -> Entry:
        """Records that somebody is about to be shown something of the data, by which command."""
        _check_names(WITHHELD, dataset, fingerprint)
        with self._transaction() as rows:
            which = {"dataset": _as_written(rows, dataset), "fingerprint": fingerprint, "plan": plan or None}
            return self._add(rows, LOOKED, **which, look=what, who=_user_name())

    def looks(self, *, dataset: str | None = None, fingerprint: str | None = None) -> list[Entry]:
        """The looks at a dataset or at data that were counted, oldest first."""
        return account(self.entries(), dataset, fingerprint).looks

    def begin_publishing(self, release: str, *, certificate: str) -> Entry:
        """Records that copies are about to become visible; raises if their reservation is not open."""
        _check_digest(certificate)
        with self._transaction() as rows:
            states = _open_states(rows, release)
            if len(states) > 1:
                raise LedgerError(f"release {release!r} is being published already. Reserve another.")
            return self._add(rows, "publishing", **_repeat_fields(states), certificate=certificate)

    def confirm(self, release: str, *, certificate: str | None = None, note: str = "") -> Entry:
        """Records that the copies of a reserved release are visible, and the digest of their certificate."""
        if certificate is not None:
            _check_digest(certificate)
        with self._transaction() as rows:
            states = _open_states(rows, release)
            announced = states[-1].certificate
            if len(states) == 1 and states[0].place is not None and not _was_resealed(rows, states):
                raise LedgerError(
                    f"release {release!r} was never about to be published, so that no folder is its release. "
                    "Settle it as void, or as spent."
                )
            if certificate and announced and certificate != announced:
                raise LedgerError(
                    f"release {release!r} was to be published with another certificate than this one. Pass "
                    "the folder as hedgerow made it, or settle the entry as spent."
                )
            digest = certificate or announced
            return self._add(rows, "released", **_repeat_fields(states), certificate=digest, note=note)

    def settle(self, release: str, outcome: str, *, note: str = "", draft: Draft | None = None) -> Entry:
        """Closes a reservation without copies: "spent" keeps its price, "void" gives it back.

        Void is refused where a copy may have become visible, and removes the draft; the note must say who
        states that nobody saw the copies, and why. A release under way is settled by its maker alone, who
        passes its draft.
        """
        if outcome not in _OUTCOMES:
            raise SettingError(f"outcome {outcome!r} is not one of {', '.join(_OUTCOMES)}.")
        if outcome == "void" and not note.strip():
            raise SettingError(
                "void needs a note that says who states that no copy became visible, and why. Pass --note "
                "(note=)."
            )
        with self._transaction() as rows:
            states = _open_states(rows, release)
            place = states[0].place
            if draft is not None and (draft.release, draft.place) != (release, place):
                raise SettingError(
                    f"draft {draft.path.name} is not the one of release {release!r}. Leave it out."
                )
            if draft is None and place is not None:
                draft = Draft.at(place, release)
                if draft.is_under_way():
                    raise LedgerError(
                        f"release {release!r} is under way: the process that makes it has not ended. Wait "
                        "for it, or end it first."
                    )
            if outcome == "void":
                _check_unseen(states, rows, draft)
                if draft is not None:
                    draft.remove()  # first: whoever dies in between leaves a pending entry, not a void draft
            digest = states[-1].certificate if outcome == "spent" else None
            return self._add(rows, outcome, **_repeat_fields(states), certificate=digest, note=note)

    def state(self, release: str) -> str | None:
        """The last event of a release; None where the ledger does not know it."""
        return next((entry.event for entry in reversed(self.entries()) if entry.release == release), None)

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
        balances = [
            {name: None if value == math.inf else value for name, value in asdict(balance).items()}
            for balance in self.balance()
        ]
        return {
            "version": 1,
            "head": {"count": count, "hash": last},
            "entries": [asdict(entry) for entry in self.entries()],
            "accounts": balances,
        }


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
    check_outside_releases(path)
    if not (named or os.environ.get(VARIABLE)):
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise LedgerError(
                f"{path.name}: its folder cannot be made ({reason_of(error)}). Name a ledger: "
                f"--ledger FILE, or {VARIABLE}."
            ) from None
    return Ledger.open(path)


def _check_budgets(
    holder: Account, relation: str, epsilon: float | None, bound: str | None, withheld: float | None
) -> None:
    asked = "a release that claims no ε" if epsilon is None else f"ε {epsilon!r}"
    _check_budget(holder, relation, epsilon, asked)
    if relation != WITHHELD and bound is not None:  # the price is confidential, so that it is not named
        _check_budget(holder, WITHHELD, withheld, "the price of this release with an outcome withheld")


def _check_budget(holder: Account, relation: str, epsilon: float | None, asked: str) -> None:
    budget, spent = holder.budget(relation), holder.spent(relation)
    if budget is not None and (epsilon is None or spent is None or spent + exact(epsilon) > budget):
        left = holder.remaining(relation)
        raise BudgetError(
            f"{asked} exceeds what remains for {holder.name!r} under {relation!r}: {left!r} of "
            f"{float(budget)!r}. Ask for less, or have the budget raised.",
            remaining=left,
        )


def _as_written(rows: list[Entry], dataset: str | None) -> str | None:
    """The name as the ledger first had it."""
    names = (e.dataset for e in rows if e.dataset is not None and e.event != LOOKED)
    return next((n for n in names if dataset and match_name(n) == match_name(dataset)), dataset)


def _user_name() -> str:
    """Who runs this process, by the operating system and not by a variable that anybody sets."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except ImportError:  # not on this system
        return getpass.getuser()
    except KeyError:  # a user without a name
        return f"user {os.getuid()}"


def _open_states(rows: list[Entry], release: str) -> list[Entry]:
    """The rows of a release whose reservation is still open."""
    states = [entry for entry in rows if entry.release == release]
    if not states:
        raise LedgerError(f"release {release!r} is not in the ledger. Reserve it first.")
    if states[-1].event in CLOSING:
        raise LedgerError(f"release {release!r} is closed already, as {states[-1].event}. It cannot change.")
    return states


def _repeat_fields(states: list[Entry]) -> dict[str, Any]:
    """What every row of a release repeats."""
    same = ("dataset", "fingerprint", "relation", "epsilon", "copies", "plan", "release", "bound", "delta")
    return {name: getattr(states[0], name) for name in same}


def _check_unseen(states: list[Entry], rows: list[Entry], draft: Draft | None) -> None:
    """Raises unless no copy of a release became visible, and none can; withdraws its draft."""
    release = states[0].release
    if draft is not None and draft.is_visible():
        raise LedgerError(
            f"release {release!r} is in place, in {draft.out.name}. Settle it as released: --release FOLDER."
        )
    withdrawn = draft is not None and draft.withdraw()
    lost = draft is not None and _was_resealed(rows, states)
    if not withdrawn and (len(states) > 1 or lost):
        raise LedgerError(
            f"release {release!r} was about to be published, or may have been, and its draft is not where it "
            "was: copies may be visible. Settle it as released with its folder, or as spent."
        )


def _was_resealed(rows: list[Entry], states: list[Entry]) -> bool:
    """Whether rows of a release may be missing: the ledger was restored since it was reserved."""
    return any(entry.event == "resealed" for entry in rows[states[0].id :])


def _amount(value: float, what: str) -> float:
    if not 0 < float(value) < math.inf:
        raise SettingError(f"{what} must be a finite ε above 0, got {format_value(value)}.")
    return float(value)


def _check_digest(certificate: str) -> None:
    if not _DIGEST.fullmatch(certificate):
        raise SettingError(f"certificate {certificate!r} is no SHA-256 of certificate.json (64 hex digits).")


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
