"""Flags that several commands share: those of a plan, and those about what is shown.

Typer reads a function's signature. The decorators here extend it, so that each flag is described once.
"""

import functools
import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.cli.screen import Screen
from hedgerow.errors import HedgerowWarning

Command = Callable[..., Any]
_RANGE, _DATA, _OUT = "What is public", "Data", "Output"
_state = {"debug": False}


def _option(kind: Any, *names: str, help: str, panel: str | None = None, **more: Any) -> Any:
    return Annotated[kind | None, typer.Option(*names, help=help, rich_help_panel=panel, **more)]


PLAN_FLAGS: dict[str, Any] = {
    "data": Annotated[Path | None, typer.Argument(help="The confidential file.", show_default=False)],
    "plan": _option(Path, "--plan", help="A plan file; flags beside it replace what it says."),
    "formula": _option(str, "--formula", help='Protected column and predictors: "payroll ~ employees".'),
    "family": _option(
        str, "--family", help='lognormal (default), gamma, poisson, …, or "{kind: beta, upper: 100}".'
    ),
    "standard": _option(
        str,
        "--standard",
        help="unweighted, adp (default), range-averaged, range-truncated, strict or censored.",
    ),
    "epsilon": _option(float, "--epsilon", help="Target ε over all copies."),
    "no_target": Annotated[bool, typer.Option("--no-target", help="Claim no ε at all.")],
    "copies": _option(int, "--copies", help="Number of synthetic tables (1)."),
    "draws": _option(int, "--draws", help="Posterior draws kept (1000)."),
    "weights": _option(str, "--weights", help='linear (default), or "{kind: cap, cap: 2}".'),
    "bound": _option(str, "--bound", help="lipschitz (default), oscillation or exact."),
    "known": _option(str, "--known", help="How λ is found: exact (default) or simulated."),
    "debias": _option(
        bool,
        "--debias/--no-debias",
        help="Correct released draws for the weights' bias (no); decide beforehand.",
    ),
    "sampling": _option(str, "--sampling", help="independent (default), or stratified: smoother copies."),
    "preset": _option(
        str, "--preset", help="paper, or recommended: cap weights on oscillation, corrected, stratified."
    ),
    "prior": _option(str, "--prior", help='"{residual: 1, slope: [0, 100]}".'),
    "seed": _option(int, "--seed", help="Discouraged: for experiments; as confidential as the data."),
    "radius": _option(
        str, "--radius", help="Each value is known to within these factors: 0.4,1.8.", panel=_RANGE
    ),
    "brackets": _option(str, "--brackets", help="Public class edges: 0,1000,5000,inf.", panel=_RANGE),
    "bounds": _option(str, "--bounds", help="Columns or numbers: low,high.", panel=_RANGE),
    "range": _option(str, "--range", help="Any range as YAML on one line.", panel=_RANGE),
    "because": _option(
        str, "--because", help="Why the range is public; goes into the certificate.", panel=_RANGE
    ),
    "public_weight": _option(str, "--public-weight", help="alpha (default) or one.", panel=_RANGE),
    "drop_missing": Annotated[
        bool,
        typer.Option(
            "--drop-missing",
            help="Drop rows without a value; the certificate says that this is assumed public.",
            rich_help_panel=_DATA,
        ),
    ],
    "read_format": _option(str, "--read-format", help="Where the file's ending does not say.", panel=_DATA),
    "encoding": _option(str, "--encoding", help="Of a CSV, Stata, SPSS or SAS file.", panel=_DATA),
    "delimiter": _option(str, "--delimiter", help="Of a CSV file.", panel=_DATA),
    "decimal": _option(str, "--decimal", help="Decimal sign of a CSV file.", panel=_DATA),
    "missing_word": _option(list[str], "--missing-word", help="Stands for a missing value.", panel=_DATA),
    "text": _option(list[str], "--text", help="A column to keep as text.", panel=_DATA),
    "format": _option(str, "--format", help="csv, parquet, arrow, stata or spss.", panel=_OUT),
    "drop": _option(list[str], "--drop", help="A column to leave out of the copies.", panel=_OUT),
    "formulas": _option(
        str,
        "--formulas",
        help="Cells a spreadsheet would run: refuse (default), escape or allow.",
        panel=_OUT,
    ),
    "dataset": _option(str, "--dataset", help="Name under which versions of one dataset share a budget."),
    "ledger": _option(Path, "--ledger", help="The ledger file (or HEDGEROW_LEDGER, or the plan's)."),
}
_SCREEN_FLAGS: dict[str, Any] = {
    "quiet": Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")],
    "as_json": Annotated[bool, typer.Option("--json", help="Print the result as JSON.")],
    "debug": Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; it may show data.")
    ],
}


def debugging() -> bool:
    """Whether the command at hand was asked to show tracebacks."""
    return _state["debug"]


def with_screen(command: Command) -> Command:
    """Gives a command --quiet, --json and --debug, and passes it a `screen`."""

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        chosen = {name: given.pop(name) for name in _SCREEN_FLAGS}
        _state["debug"] = chosen["debug"]
        screen = Screen(**chosen)
        with warnings.catch_warnings():
            # Libraries' own warnings are not for users, and may quote data.
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", HedgerowWarning)
            warnings.showwarning = lambda message, *_, **__: screen.note(str(message))
            return command(screen=screen, **given)

    return _extend(run, command, _SCREEN_FLAGS, without="screen")


def with_plan(command: Command) -> Command:
    """Gives a command the flags of a plan, and passes them on as `flags`."""

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        return command(flags={name: given.pop(name) for name in PLAN_FLAGS}, **given)

    return _extend(run, command, PLAN_FLAGS, without="flags")


def _extend(run: Command, command: Command, flags: dict[str, Any], *, without: str) -> Command:
    own = [p for name, p in inspect.signature(command).parameters.items() if name != without]
    more = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=kind,
            default=False if kind.__args__[0] is bool else None,
        )
        for name, kind in flags.items()
    ]
    first = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
    # The data file comes first on the line, as on the line that is typed.
    parameters = (
        sorted([*more, *first], key=lambda p: p.name != "data") if "data" in flags else [*first, *more]
    )
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Typer reads it
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del run.__wrapped__  # type: ignore[attr-defined]  # set by functools.wraps
    return run
