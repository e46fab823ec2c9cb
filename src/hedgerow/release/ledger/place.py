"""Where the ledger is: named on the command line or in the plan, by the environment, or the user's own."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.errors import LedgerError, reason_of

if TYPE_CHECKING:
    from hedgerow.release.ledger import Ledger

VARIABLE = "HEDGEROW_LEDGER"


def ledger_path(named: str | None) -> Path:
    """The ledger that is named, else the environment's, else one for all data of this user.

    Not one beside the data: the same data under another name or in another folder must meet the same budget.
    """
    found = named or os.environ.get(VARIABLE)
    if found:
        return Path(found)
    state = os.environ.get("XDG_STATE_HOME") or os.environ.get("LOCALAPPDATA")
    return (Path(state) if state else Path.home() / ".local" / "state") / "hedgerow" / "ledger.sqlite"


def open_ledger(named: str | None) -> "Ledger":
    """Opens it, or begins it; the folder of the user's own ledger is made when it is first needed."""
    from hedgerow.release.ledger import Ledger

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
