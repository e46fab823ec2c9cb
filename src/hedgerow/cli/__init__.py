"""The command `hedgerow`: argument parsing only.

One module per group of commands: `release` (synthesize, sign, verify, certificate, inspect), `report`,
`trial` (cost, calibrate, compare, audit, attack, contraction), `plan` (init, box, schema, datasets),
`ledger`, `study` (reproduce, study). `options` has the flags that several share, `screen` what is shown. What
a command needs is imported when it runs, so that --help is quick.

Exit codes: 0 done; 1 an error nobody foresaw; 2 usage: a flag, a plan or a formula; 3 data, a file, a ledger
or a release that cannot be used as it is; 4 not converged: the target cannot be met, or only by discarding
the data, or a sampler failed its checks; 5 the budget does not cover it.
"""

import gc
import os
import sys
import traceback
from typing import Annotated

import typer

from hedgerow import __version__
from hedgerow.cli import ledger, plan, release, report, study, trial
from hedgerow.cli.screen import let_python_end, open_streams, show_error, show_stopped
from hedgerow.errors import (
    BudgetError,
    CalibrationError,
    HealthError,
    HedgerowError,
    SettingError,
    reason_of,
    show_controls,
)

_CODES = ((BudgetError, 5), (CalibrationError, 4), (HealthError, 4), (SettingError, 2), (HedgerowError, 3))
_SHOWING = ("rich", "typer", "click")
_EPILOG = (
    "Exit codes: 0 done, 2 usage, 3 data or file, 4 target not met, 5 budget. First steps: hedgerow datasets "
    "payroll --out payroll.csv, then hedgerow synthesize --help."
)

# Rich tracebacks print local variables, and those hold data.
app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, epilog=_EPILOG, rich_markup_mode="rich",
    help="Synthetic copies of a confidential table, with a formal privacy statement.",
)  # fmt: skip
for command in (
    *(release.synthesize, release.sign, release.verify, release.certificate, release.inspect),
    report.report,
    *(trial.cost, trial.calibrate, trial.compare, trial.audit, trial.attack, trial.contraction),
    *(plan.box, study.reproduce, plan.init, plan.schema, plan.datasets),
):
    app.command()(command)
app.add_typer(ledger.app, name="ledger", no_args_is_help=True)
app.add_typer(study.app, name="study", no_args_is_help=True)
gc.freeze()  # what is imported by now stays: going through it again and again took a fifth of --help


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hedgerow {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Takes what stands before the name of a command."""


def main() -> None:
    """Runs the command line of this process, and ends it with the code of what happened."""
    open_streams()
    try:
        try:
            app(prog_name="hedgerow")
        finally:
            sys.stdout.flush()
    except SystemExit:
        let_python_end()
        raise
    except KeyboardInterrupt as stopped:
        show_stopped(stopped, "Interrupted.")
        sys.exit(130)
    except Exception as error:  # whatever goes wrong, nothing that may quote data is shown unasked
        if "--debug" in sys.argv:
            for line in traceback.format_exc().split("\n"):
                sys.stderr.write(show_controls(line) + "\n")
        if isinstance(error, HedgerowError):
            show_error("error", str(error))
            sys.exit(next(code for kind, code in _CODES if isinstance(error, kind)))
        if isinstance(error, OSError) and error.filename is None:  # files explain their own
            what = "A file that the system does not name cannot be read or written"
            if _comes_from_a_stream(error):
                what = "Standard output or error cannot be written"
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left goes nowhere when Python ends
            show_error(
                "error",
                f"{what} ({reason_of(error)}). What was done until then stands: see hedgerow ledger list.",
            )
            sys.exit(3)
        show_error(  # the message of any other may quote data, so that only its kind is shown
            "internal error",
            f"{type(error).__name__}. This is a fault of hedgerow. --debug shows the traceback; look through "
            "it before you pass it on, since it may show data.",
        )
        sys.exit(1)


def _comes_from_a_stream(error: OSError) -> bool:
    """Whether it was raised where something is shown: by this room, or by what it shows it with."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    module = "" if last is None else str(last.tb_frame.f_globals.get("__name__"))
    return any(module == room or module.startswith(f"{room}.") for room in (__name__, *_SHOWING))
