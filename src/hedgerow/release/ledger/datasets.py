"""Which dataset a release belongs to, and when only its owner can say.

A budget follows a name, and the data recorded under it. A name forgotten or mistyped, a corrected cell or one
more row would open an account without a budget, by accident. So where the ledger cannot tell by itself,
`settle_dataset` refuses, and names both answers: the dataset this is, or that it is a new one.

It asks when data that was not released before

- has rows, keys or columns in common with another dataset, as far as sketches show (see `sketch`);
- comes without a name, or under one that the ledger has not met, while a named budget has nothing recorded
  that it could be compared with.

It is a guard against accidents: whoever says that data is new is believed, and the row says that it was said.
"""

import shlex
from collections.abc import Iterable, Sequence

from hedgerow.errors import LedgerError, list_some
from hedgerow.release.ledger.accounts import LOOKED, match_name
from hedgerow.release.ledger.overlap import read_features, share_rows
from hedgerow.release.ledger.store import Entry

NAMED = "named"  # a row that gives a name to data recorded without one
REQUIRED, OPTIONAL = "names required", "names optional"
_ANSWERS = (
    "If it is a version or a part of it, pass --dataset {name}; if its records are others, pass "
    "--new-dataset (in Python new_dataset=True)."
)


def names_required(rows: Iterable[Entry]) -> bool:
    """Whether data without a name is refused: the last word on it counts."""
    words = [entry.event for entry in rows if entry.event in (REQUIRED, OPTIONAL)]
    return words[-1:] == [REQUIRED]


def settle_dataset(
    rows: Sequence[Entry], dataset: str | None, fingerprint: str, sketch: str | None, *, new: bool
) -> tuple[str, ...]:
    """The fingerprints of unnamed data that the name takes over; raises where the owner must answer first."""
    rows = [entry for entry in rows if entry.event != LOOKED]  # looking at data names nothing
    written = {match_name(e.dataset): e.dataset for e in reversed(rows) if e.dataset is not None}
    owners = {e.fingerprint: match_name(e.dataset) for e in rows if e.fingerprint and e.dataset is not None}
    name = match_name(dataset) if dataset is not None else owners.get(fingerprint)
    if name is None and names_required(rows):
        raise LedgerError(
            "This ledger takes no data without a name. Pass --dataset NAME; hedgerow ledger list shows those "
            "in use."
        )
    if new or owners.get(fingerprint, name) != name:  # a second name for known data is refused elsewhere
        return ()
    sketches: dict[str, set[str]] = {}  # by name, or by the fingerprint of unnamed data
    for entry in rows:
        if entry.sketch is not None and entry.fingerprint is not None:
            sketches.setdefault(owners.get(entry.fingerprint, entry.fingerprint), set()).add(entry.sketch)
    reserved = [entry for entry in rows if entry.event == "reserved"]
    before = max((entry.id for entry in reserved if entry.fingerprint == fingerprint), default=0)
    if name is None or name not in written:
        budgets = {match_name(e.dataset): e.id for e in reversed(rows) if e.event == "budget" and e.dataset}
        # Budgets that were there when this data was last released have been asked about.
        later = [each for each, first in budgets.items() if first > before]
        if unknown := [written[each] for each in later if not _comparable(sketch, sketches.get(each, ()))]:
            raise LedgerError(
                f"A budget is set for {list_some(unknown, quoted=True)}, and the ledger cannot tell whether "
                "this data belongs there. " + _ANSWERS.format(name=shlex.quote(unknown[0]))
            )
    if before or sketch is None:
        return ()
    own = name if name is not None else fingerprint
    alike = [each for each in sketches if each != own and _any_shares(sketch, sketches[each])]
    named_alike = [written[each] for each in alike if each in written]
    if name is not None:
        # A name that has data of its own is doubted only if this data does not look like any of it.
        mine = sketches.get(name, ())
        met = any(owners.get(entry.fingerprint or "") == name for entry in reserved)
        if not named_alike or (met and (not mine or _any_shares(sketch, mine))):
            return tuple(each for each in alike if each not in written)
    elif not alike:
        return ()
    if named_alike:
        what, name = list_some(named_alike, quoted=True), shlex.quote(named_alike[0])
    else:
        last = next(entry for entry in reversed(reserved) if entry.fingerprint in alike)
        what = f"data without a name (release {last.release})"
        name = "NAME, which takes over what that has spent"
    raise LedgerError(
        f"This data has rows, keys or columns in common with what is recorded: {what}. "
        + _ANSWERS.format(name=name)
    )


def _comparable(sketch: str | None, known: Iterable[str]) -> bool:
    """Whether there is evidence on both sides, so that nothing in common says something."""
    return sketch is not None and bool(read_features(sketch)) and any(map(read_features, known))


def _any_shares(sketch: str, known: Iterable[str]) -> bool:
    return any(share_rows(sketch, each) for each in known)
