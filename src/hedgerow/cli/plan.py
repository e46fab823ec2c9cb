"""init, schema, datasets: plan files, the shapes of our files, and tables to try things on."""

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hedgerow.cli.options import with_plan, with_screen
from hedgerow.cli.screen import Screen
from hedgerow.errors import FileError, SettingError, reason_of

if TYPE_CHECKING:
    from hedgerow.release.plan import Plan


def plan_from(flags: dict[str, Any], *, target_needed: bool = True) -> "Plan":
    """The plan of a command line: a plan file, flags, or flags on top of a file."""
    from hedgerow.release.plan import Plan
    from hedgerow.release.plan.flags import from_flags

    given = {name: str(value) if isinstance(value, Path) else value for name, value in flags.items()}
    file = given.pop("plan")
    base = Plan.load(file) if file is not None else None
    return from_flags(given, base=base, target_needed=target_needed)


@with_screen
@with_plan
def init(
    flags: dict[str, Any],
    screen: Screen,
    out: Annotated[Path | None, typer.Option(help="The plan file to write; else it is printed.")] = None,
    command: Annotated[bool, typer.Option("--command", help="Print the command that says the same.")] = False,
) -> None:
    """Write a commented plan file, from flags or, on a terminal, from questions.

    For instance:

      hedgerow init payroll.csv --formula "payroll ~ employees" --epsilon 5.7 --out plan.yaml

      hedgerow init --plan plan.yaml --command
    """
    from dataclasses import replace

    from hedgerow.release.plan.commented import commented_text
    from hedgerow.release.plan.flags import command as as_command

    if flags["formula"] is None and flags["plan"] is None and sys.stdin.isatty():
        flags = _ask(flags)
    plan = plan_from(flags)
    if command:
        screen.say(as_command(plan))
        screen.result({"command": as_command(plan)})
        return
    if out is None:
        screen.say(commented_text(plan).rstrip())
        screen.result(plan.mapping())
        return
    paths: dict[str, Any] = {  # as a plan file at `out` should name them: relative to itself
        name: os.path.relpath(path, out.parent)
        for name in ("data", "ledger")
        if (path := getattr(plan, name)) is not None and not Path(path).is_absolute()
    }
    write_new(out, commented_text(replace(plan, **paths)).encode())
    screen.say(f"{out} is written. Check it, then: hedgerow synthesize --plan {out} --out release")
    screen.result({"plan": str(out)})


def _ask(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags with what was missing asked for, in the order in which an owner thinks."""
    from hedgerow.tables import files as formats

    answers = dict(flags)

    def fill(name: str, question: str, default: Any = None, **kind: Any) -> None:
        if answers[name] is None:
            answers[name] = typer.prompt(question, default=default, **kind)

    fill("data", "Confidential file", type=Path)
    read = formats.read(answers["data"], encoding=answers["encoding"], delimiter=answers["delimiter"])
    columns = read.frame.column_names
    typer.echo("Its columns: " + ", ".join(columns[:40]) + (" …" if len(columns) > 40 else ""))
    outcome = typer.prompt("Column to protect")
    predictors = typer.prompt("Public columns that explain it, with + between them", default="1")
    answers["formula"] = f"{outcome if outcome.isidentifier() else f'`{outcome}`'} ~ {predictors}"
    fill("family", "Distribution (lognormal, gamma, poisson, …)", "lognormal")
    fill("standard", "Standard (adp, range-averaged, range-truncated, unweighted)", "adp")
    if answers["standard"] in ("range-averaged", "range-truncated"):
        if not any(answers[name] for name in ("brackets", "bounds", "range")):
            fill("radius", "The public knows each value to within these factors", "0.4,1.8")
        fill("because", "Why is that public? (goes into the certificate)")
    if not answers["no_target"]:
        fill("epsilon", "Target ε over all copies", type=float)
    fill("copies", "Copies", 1)
    return answers


@with_screen
def schema(
    what: Annotated[str, typer.Argument(help="plan or certificate.", show_default=False)], screen: Screen
) -> None:
    """Print the JSON Schema of plans or of certificates.

    Example: hedgerow schema plan > plan.schema.json
    """
    from hedgerow.release import certificate
    from hedgerow.release.plan import parts

    shapes = {"plan": parts.schema, "certificate": certificate.schema}
    if what not in shapes:
        raise SettingError(f"schema {what!r} is not one of {', '.join(shapes)}.")
    sys.stdout.write(json.dumps(shapes[what](), indent=1, ensure_ascii=False) + "\n")


@with_screen
def datasets(
    screen: Screen,
    name: Annotated[str | None, typer.Argument(help="Leave out for a list.", show_default=False)] = None,
    out: Annotated[Path | None, typer.Option(help="The file to write; its ending is its format.")] = None,
    rows: Annotated[int | None, typer.Option(help="How many rows.")] = None,
) -> None:
    """Write a made-up table to try things on; none is confidential.

    Example: hedgerow datasets payroll --out payroll.csv
    """
    from hedgerow import datasets as tables
    from hedgerow.models.families import FAMILIES
    from hedgerow.tables import files as formats

    known: dict[str, Callable[..., Any]] = {"payroll": tables.payroll, "lognormal": tables.lognormal}
    if name is None:
        about = [{"dataset": k, "about": (make.__doc__ or "").split("\n")[0]} for k, make in known.items()]
        about.append({"dataset": "gamma, poisson, …", "about": "Simulated data of any family, by its name."})
        screen.facts([(row["dataset"], row["about"]) for row in about])
        screen.result({"datasets": about})
        return
    known = {family: partial(tables.family, family) for family in FAMILIES} | known
    if name not in known:
        raise SettingError(f"dataset {name!r} is not one of {', '.join(known)}.")
    if out is None:
        raise SettingError(f"--out is missing: the file to write, for instance --out {name}.csv")
    frame = known[name](**({} if rows is None else {"n": rows}))
    written = formats.write(frame, out, formats.format_of(out))
    screen.say(f"{out}: {len(frame)} rows, columns {', '.join(frame.columns)}.")
    screen.result({"file": str(out), "rows": len(frame), "bytes": written.size})


def write_new(out: Path, content: bytes, *, mode: int = 0o666) -> None:
    """Writes a file that does not exist yet, with this mode less the umask."""
    try:
        with os.fdopen(os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
    except FileExistsError:
        raise FileError(f"{out.name}: exists already. Choose another name, or remove it first.") from None
    except OSError as error:
        raise FileError(f"{out.name}: cannot be written ({reason_of(error)}).") from None
