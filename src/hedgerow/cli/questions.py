"""The questions `init` asks on a terminal, in the order in which an owner thinks."""

from pathlib import Path
from typing import Any

import typer

_RANGE_STANDARDS = ("range-averaged", "range-truncated")


def ask(flags: dict[str, Any]) -> dict[str, Any]:
    """The flags with what was missing asked for."""
    from hedgerow.tables import files as formats

    answers = dict(flags)
    if answers["data"] is None:
        answers["data"] = Path(typer.prompt("Confidential file"))
    columns = formats.read(
        answers["data"], encoding=answers["encoding"], delimiter=answers["delimiter"]
    ).frame.column_names
    typer.echo("Its columns: " + ", ".join(columns[:40]) + (" …" if len(columns) > 40 else ""))
    outcome = typer.prompt("Column to protect")
    predictors = typer.prompt("Public columns that explain it, with + between them", default="1")
    answers["formula"] = f"{_quote(outcome)} ~ {predictors}"
    _fill(answers, "family", "Distribution (lognormal, gamma, poisson, …)", "lognormal")
    _fill(answers, "standard", "Standard (adp, range-averaged, range-truncated, unweighted)", "adp")
    if answers["standard"] in _RANGE_STANDARDS:
        if not any(answers[name] for name in ("radius", "brackets", "bounds", "range")):
            answers["radius"] = typer.prompt(
                "The public knows each value to within these factors", default="0.4,1.8"
            )
        _fill(answers, "because", "Why is that public? (goes into the certificate)", None)
    if answers["epsilon"] is None and not answers["no_target"]:
        answers["epsilon"] = typer.prompt("Target ε over all copies", type=float)
    _fill(answers, "copies", "Copies", 1)
    return answers


def _fill(answers: dict[str, Any], name: str, question: str, default: Any) -> None:
    if answers[name] is None:
        answers[name] = typer.prompt(question, default=default)


def _quote(column: str) -> str:
    return column if column.isidentifier() else f"`{column}`"
