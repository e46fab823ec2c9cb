"""hedgerow ledger: what was spent on which data, and what may still be."""

import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.options import with_screen
from hedgerow.cli.screen import Screen, json_text
from hedgerow.errors import LedgerError, SettingError

if TYPE_CHECKING:
    from hedgerow.release.ledger import Balance, Entry, Ledger

app = typer.Typer(help="What was spent on which data: list, show, budget, settle, verify, …")
Place = Annotated[Path | None, typer.Option("--ledger", help="The ledger file (or HEDGEROW_LEDGER).")]
Head = Annotated[
    str | None, typer.Option("--head", help="COUNT:HASH, as 'hedgerow ledger head' printed it earlier.")
]
Release = Annotated[str, typer.Argument(help="Identifier of a release.", show_default=False)]


def open_existing(place: Path | None) -> "Ledger":
    """The ledger at that place, also if it is not the environment's; one that does not exist is not begun."""
    from hedgerow.release.ledger import Ledger, ledger_path

    path = place or ledger_path(None)
    if not path.exists():
        raise LedgerError(f"{path.name}: no ledger here. Nothing was released yet, or pass --ledger FILE.")
    return Ledger.open(path)


@app.command("list")
@with_screen
def list_(screen: Screen, ledger: Place = None) -> None:
    """List accounts and releases.

    Example: hedgerow ledger list --ledger ledger.sqlite
    """
    from hedgerow.release.ledger.accounts import LOOKED
    from hedgerow.release.ledger.charges import WITHHELD

    with open_existing(ledger) as opened:
        balances, entries, required = opened.balance(), opened.entries(), opened.requires_dataset()
        looks = [entry for entry in entries if entry.event == LOOKED]
        pending = {entry.release for entry in opened.pending()}
    last = {entry.release: entry for entry in entries if entry.release is not None}
    amounts = ("dataset", "relation", "spent", "budget", "remaining")
    screen.table(
        "Accounts",
        [
            {name: getattr(balance, name) for name in amounts}
            | {"releases": str(balance.releases), "pending": str(balance.pending)}
            for balance in balances
        ],
    )
    by_bound = [row for balance in balances for row in _by_bound(balance)]
    screen.table("Spent, by bound", by_bound)
    recorded = ("release", "time", "dataset", "relation", "epsilon", "bound")
    releases = [
        {name: getattr(entry, name) for name in recorded}
        | {"dataset": entry.dataset or "(no name)"}
        | {"state": "pending" if entry.release in pending else entry.event}
        for entry in last.values()
    ]
    screen.table("Releases", releases)
    counted = _count_looks(looks)
    screen.table("Looks at data", counted)
    if any(len(balance.by_bound) > 1 for balance in balances):
        screen.note(
            "ε under different bounds says different things: they do not add up to a claim. A budget counts "
            "their plain sum all the same."
        )
    if unpriced := sum(balance.unpriced for balance in balances):
        screen.note(
            f"{unpriced} releases by earlier versions of hedgerow, under other relations, are not counted "
            f"under {WITHHELD!r}: their price there is not known. Lower that budget by what they may cost."
        )
    if pending:
        screen.note(
            "pending: a release under way, or one that died. Leave its hidden folder .*.hedgerow-ID.partial "
            "where it is: it proves that nobody saw the copies, and settling as void removes it. If the "
            "release folder is there, settle as released."
        )
    if required:
        screen.note("Data without a name is refused (hedgerow ledger require-dataset).")
    # JSON has no infinity: null stands for an unbounded spend, as in an export.
    accounts = [{k: None if v == math.inf else v for k, v in asdict(each).items()} for each in balances]
    screen.result({"accounts": accounts, "releases": releases, "looks": counted})


def _by_bound(balance: "Balance") -> list[dict[str, Any]]:
    """What was spent under each bound, and what all of it composes to."""
    account = {"dataset": balance.dataset, "relation": balance.relation}
    rows = [
        account | asdict(spent) | {"bound": spent.bound or "not recorded", "releases": str(spent.releases)}
        for spent in balance.by_bound
    ]
    if balance.composed is not None:
        figures = {"epsilon": balance.composed, "delta": balance.delta, "releases": str(balance.releases)}
        rows.append(account | {"bound": "all, composed (renyi)", **figures})
    return rows


def _count_looks(looks: Iterable["Entry"]) -> list[dict[str, Any]]:
    """How often who looked at what, and when last."""
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for entry in looks:
        what = {"dataset": entry.dataset or entry.fingerprint or "", "look": entry.look, "who": entry.who}
        row = rows.setdefault(tuple(map(str, what.values())), what | {"times": 0})
        row |= {"times": row["times"] + 1, "last": entry.time}
    return list(rows.values())


@app.command()
@with_screen
def show(release: Release, screen: Screen, ledger: Place = None) -> None:
    """Show everything that was recorded about one release.

    Example: hedgerow ledger show 1f2e3d4c5b6a7988
    """
    with open_existing(ledger) as opened:
        states = [entry for entry in opened.entries() if entry.release == release]
        if not states:
            raise LedgerError(f"release {release!r} is not in the ledger. See: hedgerow ledger list")
        first = states[0]
        looks = opened.looks(dataset=first.dataset, fingerprint=first.fingerprint)
    rows, counted = [asdict(entry) for entry in states], _count_looks(e for e in looks if e.id < first.id)
    for row in rows:
        facts = row | {n: row[n] and f"{len(row[n])} characters" for n in ("sketch", "curve")}
        screen.facts([(name, "" if value is None else str(value)) for name, value in facts.items()])
        screen.say("")
    screen.table("Looks at its data before it", counted)
    screen.result({"entries": rows, "looks": counted})


@app.command()
@with_screen
def export(
    screen: Screen,
    ledger: Place = None,
    out: Annotated[
        Path | None, typer.Option(help="The file to write; without it the ledger is printed.")
    ] = None,
) -> None:
    """Write all rows and accounts as JSON.

    Example: hedgerow ledger export --out ledger.json
    """
    from hedgerow.cli.plan import write_new

    with open_existing(ledger) as opened:
        content = json_text(opened.export())
    if out is None:
        typer.echo(content, nl=False)
        return
    write_new(out, content.encode())
    screen.say(f"{out} is written.")


@app.command("verify")
@with_screen
def verify_ledger(screen: Screen, ledger: Place = None, head: Head = None) -> None:
    """Check that no row was changed, removed, reordered or, with --head, lost.

    Example: hedgerow ledger verify --head "$(cat kept-elsewhere.txt)"
    """
    with open_existing(ledger) as opened:
        problems = opened.verify(kept=head)
        count, last = opened.head()
    screen.result({"sound": not problems, "problems": list(problems), "rows": count, "head": last})
    if problems:
        raise LedgerError("The ledger does not verify: " + " ".join(problems))
    screen.say(
        f"The ledger is sound: {count} rows, head {last}. Keep elsewhere what hedgerow ledger head prints."
    )


@app.command("head")
@with_screen
def print_head(screen: Screen, ledger: Place = None) -> None:
    """Print what to keep elsewhere, for verify and reseal: number of rows and last hash.

    Example: hedgerow ledger head > kept-elsewhere.txt
    """
    from hedgerow.release.ledger import format_head

    with open_existing(ledger) as opened:
        if problems := opened.verify():
            raise LedgerError("The ledger does not verify: " + " ".join(problems))
        head = format_head(opened.head())
    screen.say(head)
    screen.result({"head": head})


@app.command()
@with_screen
def reseal(
    screen: Screen,
    note: Annotated[str, typer.Option(help="Who does this, and why.", show_default=False)],
    ledger: Place = None,
    head: Head = None,
) -> None:
    """Take up a ledger that was restored from its database and key, without its .head file.

    Refused if a head shows that rows are missing. A row of the ledger records it.

    Example: hedgerow ledger reseal --note "A. Smith: backup of Monday" --head "$(cat kept-elsewhere.txt)"
    """
    with open_existing(ledger) as opened:
        entry = opened.reseal(note=note, kept=head)
    screen.say(f"The ledger is sound and resealed; row {entry.id} says so.")
    screen.result({"rows": entry.id, "compared": head is not None})


@app.command()
@with_screen
def settle(
    release: Release,
    outcome: Annotated[str, typer.Argument(help="released, spent or void.", show_default=False)],
    screen: Screen,
    ledger: Place = None,
    note: Annotated[str, typer.Option(help="Who states this, and why; needed for void.")] = "",
    folder: Annotated[
        Path | None, typer.Option("--release", help="The release folder, for released.")
    ] = None,
) -> None:
    """Close an entry that a crash left pending.

    released: its folder is there and verifies. spent: keep the price. void: no copy became visible.

    Example: hedgerow ledger settle 1f2e3d4c5b6a7988 void --note "A. Smith: the machine lost power"
    """
    from hedgerow.release.folder import name_folder
    from hedgerow.release.verify import verify_release

    with open_existing(ledger) as opened:
        if outcome != "released":
            entry = opened.settle(release, outcome, note=note)
        elif folder is None:
            raise SettingError("released needs the folder: --release FOLDER. Without it, settle as spent.")
        else:
            verified = verify_release(folder)
            certificate = verified.certificate
            if verified.problems or certificate.release != release:
                raise SettingError(
                    f"{name_folder(folder)} is not release {release}, or does not match its certificate."
                )
            entry = opened.confirm(release, certificate=certificate.digest, note=note)
    screen.say(f"Release {release} is settled as {entry.event}.")
    screen.result({"release": release, "state": entry.event})


@app.command()
@with_screen
def budget(
    epsilon: Annotated[float, typer.Argument(help="What may be spent in all.", show_default=False)],
    screen: Screen,
    ledger: Place = None,
    dataset: Annotated[str | None, typer.Option(help="The dataset's name.")] = None,
    fingerprint: Annotated[str | None, typer.Option(help="Fingerprint of data without a name.")] = None,
    relation: Annotated[str | None, typer.Option(help="Neighbour relation: withheld, …")] = None,
    plan: Annotated[Path | None, typer.Option(help="Take relation and dataset from a plan.")] = None,
    note: Annotated[str, typer.Option(help="Who decided, and why.")] = "",
) -> None:
    """Set what may be spent on a dataset under a neighbour relation.

    For instance:

      hedgerow ledger budget 10 --dataset payroll --relation withheld

      hedgerow ledger budget 10 --plan plan.yaml
    """
    from hedgerow.release.ledger import open_ledger

    named = None if ledger is None else str(ledger)
    if plan is not None:
        from hedgerow.release.plan import Plan

        read = Plan.load(plan)
        relation, dataset, named = relation or read.relation, dataset or read.dataset, named or read.ledger
    if relation is None:
        raise SettingError("--relation is missing: withheld for adp, or take it from a plan with --plan.")
    with open_ledger(named) as opened:
        opened.set_budget(epsilon, relation=relation, dataset=dataset, fingerprint=fingerprint, note=note)
    screen.say(f"Budget of {dataset or fingerprint} under '{relation}': {epsilon:g}.")
    screen.result({"dataset": dataset, "fingerprint": fingerprint, "relation": relation, "budget": epsilon})


@app.command()
@with_screen
def require_dataset(
    screen: Screen,
    ledger: Place = None,
    off: Annotated[bool, typer.Option("--off", help="Accept data without a name again.")] = False,
    note: Annotated[str, typer.Option(help="Who decided, and why.")] = "",
) -> None:
    """Refuse releases of data without a name, from now on.

    Example: hedgerow ledger require-dataset --note "A. Smith: every file is in the register"
    """
    from hedgerow.release.ledger import open_ledger

    with open_ledger(None if ledger is None else str(ledger)) as opened:
        opened.require_dataset(not off, note=note)
    screen.say("Data without a name is taken." if off else "Data without a name is refused.")
    screen.result({"required": not off})
