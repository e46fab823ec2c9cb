"""The questions `init` asks on a terminal, in the order in which an owner thinks."""

from pathlib import Path
from typing import Any

import typer

_RANGE_STANDARDS = ("range-averaged", "range-truncated")


def ask(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags with what was missing asked for."""
    from hedgerow.tables import files as formats

    found = dict(flags)
    if found["data"] is None:
        found["data"] = Path(typer.prompt("Confidential file"))
    columns = formats.read(
        found["data"], encoding=found["encoding"], delimiter=found["delimiter"]
    ).frame.column_names
    typer.echo("Its columns: " + ", ".join(columns[:40]) + (" …" if len(columns) > 40 else ""))
    outcome = typer.prompt("Column to protect")
    predictors = typer.prompt("Public columns that explain it, with + between them", default="1")
    found["formula"] = f"{_quoted(outcome)} ~ {predictors}"
    _fill(found, "family", "Distribution (lognormal, gamma, poisson, …)", "lognormal")
    _fill(found, "standard", "Standard (adp, range-averaged, range-truncated, unweighted)", "adp")
    if found["standard"] in _RANGE_STANDARDS:
        if not any(found[name] for name in ("radius", "brackets", "bounds", "range")):
            found["radius"] = typer.prompt(
                "The public knows each value to within these factors", default="0.4,1.8"
            )
        _fill(found, "because", "Why is that public? (goes into the certificate)", None)
    if found["epsilon"] is None and not found["no_target"]:
        found["epsilon"] = typer.prompt("Target ε over all copies", type=float)
    _fill(found, "copies", "Copies", 1)
    return found


def _fill(found: dict[str, Any], name: str, question: str, default: Any) -> None:
    if found[name] is None:
        found[name] = typer.prompt(question, default=default)


def _quoted(column: str) -> str:
    return column if column.isidentifier() else f"`{column}`"
