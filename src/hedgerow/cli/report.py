"""report: the page on which an owner decides, and the sheets for a review board."""

from pathlib import Path
from typing import Annotated

import typer

from hedgerow.cli.options import with_screen
from hedgerow.cli.screen import CONFIDENTIAL, Screen


@with_screen
def report(
    folder: Annotated[Path, typer.Argument(help="The whole release folder.", show_default=False)],
    screen: Screen,
    out: Annotated[
        Path | None, typer.Option(help="File to write it to (default: FOLDER/confidential/report.html).")
    ] = None,
    board: Annotated[
        bool,
        typer.Option(
            "--board", help="Write two sheets for a review board instead (FOLDER/confidential/board.pdf)."
        ),
    ] = False,
) -> None:
    """Write the owner's report of a release again, with what was run since. Confidential.

    For instance:

      hedgerow audit payroll.csv --plan plan.yaml --json > release/confidential/audit.json

      hedgerow report release

      hedgerow report release --board
    """
    if board:
        from hedgerow.release.pages.board import save_board
        from hedgerow.release.pages.printing import BY_HAND

        place = save_board(folder, out)
        how = f" {BY_HAND}" if place.suffix == ".html" else ""
        screen.say(f"The sheets for the board are in {place}.{how} {CONFIDENTIAL}")
        screen.result({"confidential": True, "board": str(place)})
        return
    from hedgerow.release.report import rewrite

    place = rewrite(folder, out)
    screen.say(f"The report is in {place}. {CONFIDENTIAL}")
    screen.result({"confidential": True, "report": str(place)})
