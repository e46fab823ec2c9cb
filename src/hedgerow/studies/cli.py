"""`hedgerow reproduce`: argument parsing only."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from hedgerow.errors import HedgerowError


def reproduce(
    out: Annotated[Path, typer.Option(help="Folder for the results; an unfinished run there goes on.")],
    quick: Annotated[bool, typer.Option("--quick", help="Few replicates, still every figure.")] = False,
    only: Annotated[
        str, typer.Option(help="Studies, separated by commas: story1,story2,story3,application.")
    ] = "",
    seed: Annotated[int | None, typer.Option(help="Changes the samples, never the layout.")] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes; as many as there are cores.")] = None,
) -> None:
    """Run every experiment of the paper and tell, claim by claim, what holds."""
    from hedgerow.studies.paper import SEED
    from hedgerow.studies.paper import reproduce as run  # slow to import, and --help must be quick

    chosen = [name.strip() for name in only.split(",") if name.strip()] if only else None
    try:
        done = run(out, quick=quick, only=chosen, seed=SEED if seed is None else seed, jobs=jobs)
    except HedgerowError as error:
        sys.stderr.write(f"{error}\n")
        raise typer.Exit(2) from None
    verdicts = ", ".join(f"{count} {kind}" for kind, count in done.verdicts.items())
    typer.echo(f"{len(done.figures)} figures. Claims: {verdicts}. See {out / 'claims.md'}.")


def main() -> None:
    """`python -m hedgerow.studies`."""
    typer.run(reproduce)
