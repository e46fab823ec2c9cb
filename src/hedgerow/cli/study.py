"""reproduce, study: what hedgerow was measured by. None of it reads confidential data.

The studies are a package of their own, `hedgerow_studies`, installed from a checkout. It is imported when one
of these commands runs, and only then.
"""

import sys
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.errors import SettingError

app = typer.Typer(help="Studies on simulated tables; none reads confidential data.")
Out = Annotated[Path, typer.Option(help="Folder for the results; an unfinished run in it is continued.")]
Jobs = Annotated[int | None, typer.Option(help="Number of processes (default: as many as there are cores).")]
Address = Annotated[
    str | None, typer.Option("--cluster", help="Address of a Dask scheduler, in place of processes here.")
]


def _import_study(module: str) -> Any:
    """A module of the studies, or how to get them where they are not installed."""
    try:
        return import_module(f"hedgerow_studies.{module}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "hedgerow_studies":
            raise
        raise SettingError(
            "This command needs the studies, which are not part of hedgerow's wheel. Install them from a "
            "checkout of hedgerow, in its folder: pip install ./studies"
        ) from None


def reproduce(
    out: Out,
    quick: Annotated[bool, typer.Option("--quick", help="Few replicates, still every figure.")] = False,
    only: Annotated[
        str, typer.Option(help="Studies, separated by commas: story1,story2,story3,application.")
    ] = "",
    seed: Annotated[int | None, typer.Option(help="Changes the samples, never the layout.")] = None,
    jobs: Jobs = None,
    cluster: Address = None,
) -> None:
    """Run every experiment of the paper and tell, claim by claim, what holds."""
    paper = _import_study("paper.reproduce")
    studies = [name.strip() for name in only.split(",") if name.strip()] if only else None
    told = {"quick": quick, "only": studies, "seed": paper.SEED if seed is None else seed}
    with _spread(jobs, cluster) as spread:
        done = paper.reproduce(out, **told, jobs=spread)
    verdicts = ", ".join(f"{count} {kind}" for kind, count in done.verdicts.items())
    typer.echo(f"{len(done.figures)} figures. Claims: {verdicts}. See {out / 'claims.md'}.")


@app.callback()
def _studies() -> None:
    """Keeps `weights` a command of its own."""


@app.command()
def weights(
    out: Out,
    quick: Annotated[bool, typer.Option("--quick", help="Two small samples, two targets.")] = False,
    seed: Annotated[int, typer.Option(help="Changes the samples.")] = 1,
    jobs: Jobs = None,
    cluster: Address = None,
    report: Annotated[
        bool, typer.Option("--report", help="Report the results that are there, compute nothing.")
    ] = False,
) -> None:
    """Compare weights, risks and bounds over sizes and targets: tables, JSON and pictures.

    Example: hedgerow study weights --out study --quick
    """
    study = _import_study("weights.report")
    told = {"quick": quick, "seed": seed, "compute": not report, "progress": _tell}
    with _spread(jobs, cluster) as spread:
        typer.echo(study.write_report(out, **told, jobs=spread))


@app.command()
def coverage(
    out: Out,
    quick: Annotated[bool, typer.Option("--quick", help="Two small samples of two settings.")] = False,
    only: Annotated[
        str, typer.Option(help="Only settings whose name contains this, such as 'strict, n = 200,'.")
    ] = "",
    samples: Annotated[
        int | None, typer.Option(help="How many replicates of each setting, instead of 500 to 50.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Changes the samples.")] = 1,
    jobs: Jobs = None,
    cluster: Address = None,
    report: Annotated[
        bool, typer.Option("--report", help="Report the results that are there, compute nothing.")
    ] = False,
) -> None:
    """How often intervals cover the truth, by standard, size and method (docs/coverage.md).

    Example: hedgerow study coverage --out study --only 'strict, n = 2000,' --samples 50
    """
    study = _import_study("coverage.report")
    told = {"quick": quick, "only": only, "samples": samples, "seed": seed, "compute": not report}
    with _spread(jobs, cluster) as spread:
        typer.echo(study.write_report(out, **told, jobs=spread, progress=_tell))


def _spread(jobs: int | None, cluster: str | None) -> AbstractContextManager[Any]:
    """Where replicates are computed: here, or by the workers of a cluster."""
    if cluster is None:
        return nullcontext(jobs)
    if jobs is not None:
        raise SettingError("--jobs are processes here, --cluster is elsewhere. Say one of them.")
    from hedgerow.cluster.connect import connect

    return connect(cluster)


def _tell(done: int, total: int) -> None:
    sys.stderr.write(f"\r{done} of {total}" + ("\n" if done == total else ""))
    sys.stderr.flush()
