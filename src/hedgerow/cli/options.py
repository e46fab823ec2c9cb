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

from hedgerow.cli.screen import Screen, show_stopped
from hedgerow.errors import HedgerowWarning

Command = Callable[..., Any]

# By panel of the help, as it lists them. What `_KINDS` does not list takes text; a switch is on or not given.
_HELP: dict[str | None, dict[str, str]] = {
    None: {
        "plan": "A plan file; flags beside it replace what it says.",
        "formula": 'Protected column and predictors: "payroll ~ log(employees)".',
        "family": 'lognormal (default), gamma, poisson, …, or "{kind: beta, upper: 100}".',
        "standard": "unweighted, adp (default), range-averaged, range-truncated, strict or censored.",
        "epsilon": "Target ε over all copies.",
        "delta": "δ over all copies, with --bound renyi or --noise gaussian or auto (1e-6).",
        "no_target": "Make a release that claims no ε at all.",
        "copies": "Number of synthetic tables (1).",
        "draws": "Posterior draws kept (1000).",
        "weights": 'linear (default), or "{kind: cap, cap: 2}".',
        "bound": "lipschitz (default), oscillation, exact or renyi.",
        "known": "How λ is found: exact (default) or simulated.",
        "debias": "Correct released draws for the weights' bias (default: no); decide before you look.",
        "sampling": "independent (default), or stratified: smoother copies; with --limits also projected.",
        "preset": "paper, or recommended: one weight planned beforehand, bound renyi, stratified.",
        "prior": 'Prior of σ and the coefficients: "{residual: 1, slope: [0, 2]}".',
        "declared": 'How the protected column is written: "{type: integer, multiple_of: 100, range_min: 0}".',
        "columns": 'Several protected columns: "{pay: {formula: pay ~ age, family: gamma}, …}".',
        "derived": 'Columns that are computed anew from others in each copy: "{hourly: wage / hours}".',
        "checks": "Conditions to count in the copies: \"['bonus <= wage']\".",
        "seed": "Discouraged, for experiments only; a seed is as confidential as the data.",
        "dataset": "Name under which versions of one dataset share a budget.",
        "ledger": "The ledger file (or HEDGEROW_LEDGER, or the plan's).",
    },
    "Strict": {
        "limits": "Smallest and largest value that matter, chosen without looking: 1000,1e9; several "
        'columns by name: "{wage: [1000, 1e6]}".',
        "relation": "What ε compares: one outcome withheld (default), replaced, or in its range.",
        "margin": "Share of ε for counts that keep the distribution if the model is wrong: 0.25.",
        "noise": "laplace (default): pure ε; gaussian: ε at --delta; or auto: the better one.",
    },
    "What is public": {
        "radius": "Each value is known to within these factors: 0.4,1.8.",
        "brackets": "Public class edges: 0,1000,5000,inf.",
        "bounds": "Columns or numbers: low,high.",
        "range": "Any range as YAML on one line.",
        "because": "Why the range is public, or how the limits are known; printed in the certificate.",
        "public_weight": "alpha (default) or one.",
    },
    "What the certificate says": {
        "unit": "Column that says whose row it is, such as a household; all its rows are priced together.",
        "rows_per_unit": "How many rows one person, firm or household has at most.",
        "about": 'In your words: "{purpose: …, curator: …, contact: …, decided_by: …, epsilon_reason: …}".',
    },
    "Data": {
        "drop_missing": "Drop rows without a value; the certificate says that this is assumed public.",
        "read_format": "Format of the data, where the file's ending does not tell.",
        "encoding": "Encoding of a CSV, Stata, SPSS or SAS file.",
        "delimiter": "Sign between the cells of a CSV file.",
        "decimal": "Decimal sign of a CSV file, where it is not recognised.",
        "missing_word": "A word that stands for a missing value; may be repeated.",
        "text": "A column to read as text; may be repeated.",
        "header": "The first line of a CSV file holds names, though it looks like a record.",
        "sheet": "Sheet of an Excel file (default: the first).",
    },
    "What is lost": {
        "design_weight": "Column of survey weights, by which the loss is measured.",
        "analyses": "Regressions to compare: \"['log(wage) ~ age + C(sector)']\".",
    },
    "Output": {
        "format": "csv, parquet, arrow, stata, spss or excel.",
        "drop": "A column to leave out of the copies; may be repeated.",
        "keep": "A column to release although it gives the protected one away; the certificate says so.",
        "formulas": "Text that a spreadsheet would run: refuse (default), escape or allow.",
        "dictionary": 'What Stata and SPSS copies say of the protected column: "{label: Pay}".',
        "keep_levels": "A public column that keeps the levels and labels that do not occur.",
        "statistics": "With --limits: publish the noisy statistics too, as statistics.json.",
        "receive": "Add receive.py and receive.R, for receivers to read, check and combine copies.",
    },
}
_KINDS: dict[str, Any] = {
    **dict.fromkeys(("plan", "ledger"), Path),
    **dict.fromkeys(("copies", "draws", "seed", "rows_per_unit"), int),
    **dict.fromkeys(("missing_word", "text", "drop", "keep", "keep_levels"), list[str]),
    **{"epsilon": float, "delta": float, "margin": float, "debias": bool},
}
_SWITCHES = {"no_target": "--no-target", "drop_missing": "--drop-missing", "header": "--header",
             "statistics": "--statistics", "receive": "--receive"}  # fmt: skip
PLAN_FLAGS: dict[str, Any] = {
    "data": Annotated[Path | None, typer.Argument(help="The confidential file.", show_default=False)]
} | {
    name: Annotated[bool, typer.Option(_SWITCHES[name], help=help, rich_help_panel=panel)]
    if name in _SWITCHES
    else Annotated[_KINDS.get(name, str) | None, typer.Option(help=help, rich_help_panel=panel)]
    for panel, flags in _HELP.items()
    for name, help in flags.items()
}
NewDataset = Annotated[
    bool,
    typer.Option(
        "--new-dataset", help="These data are new, although they look like a version of a recorded dataset."
    ),
]
_SCREEN_FLAGS: dict[str, Any] = {
    "quiet": Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")],
    "as_json": Annotated[bool, typer.Option("--json", help="Print the result as JSON.")],
    "debug": Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; it may show data.")
    ],
}


def with_screen(command: Command) -> Command:
    """Gives a command --quiet, --json and --debug, which `main` looks for, and passes it a `screen`."""

    def run(*, quiet: bool, as_json: bool, debug: bool, **given: Any) -> Any:
        screen = Screen(quiet, as_json)
        with warnings.catch_warnings():
            # Libraries' own warnings are not for users, and may quote data.
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", HedgerowWarning)
            warnings.showwarning = lambda message, *_, **__: screen.note(str(message))
            try:
                return command(screen=screen, **given)
            except (KeyboardInterrupt, typer.Abort) as stopped:  # of which Typer would say nothing
                show_stopped(stopped, "Interrupted.")
                raise typer.Exit(130) from None
            except SystemExit as ended:  # by a signal, in the middle of a release by blocks
                show_stopped(ended, "Terminated.")
                raise

    return _extend(run, command, _SCREEN_FLAGS, without="screen")


def with_plan(command: Command) -> Command:
    """Gives a command the flags of a plan, passed on as `flags`, and those of `with_screen`."""

    def run(**given: Any) -> Any:
        return command(flags={name: given.pop(name) for name in PLAN_FLAGS}, **given)

    return with_screen(_extend(run, command, PLAN_FLAGS, without="flags"))


def _extend(run: Command, command: Command, flags: dict[str, Any], *, without: str) -> Command:
    keyword = inspect.Parameter.KEYWORD_ONLY
    own = [
        p.replace(kind=keyword) for p in inspect.signature(command).parameters.values() if p.name != without
    ]
    more = [
        inspect.Parameter(name, keyword, annotation=kind, default=False if kind.__args__[0] is bool else None)
        for name, kind in flags.items()
    ]
    parameters = [*more, *own] if flags is PLAN_FLAGS else [*own, *more]  # as the help lists them
    functools.update_wrapper(run, command)
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # Typer reads it
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del run.__wrapped__  # type: ignore[attr-defined]  # Typer would read the command behind it
    return run
