"""`hedgerow study weights`: argument parsing, and the files it leaves."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(help="Studies on simulated tables; none reads confidential data.")


@app.callback()
def _studies() -> None:
    """Keeps `weights` a command of its own."""


@app.command()
def weights(
    out: Annotated[Path, typer.Option(help="Folder for the results; an unfinished run there goes on.")],
    quick: Annotated[bool, typer.Option("--quick", help="Two small samples, two targets.")] = False,
    seed: Annotated[int, typer.Option(help="Changes the samples.")] = 1,
    jobs: Annotated[int | None, typer.Option(help="Processes; as many as there are cores.")] = None,
    report: Annotated[bool, typer.Option("--report", help="Tell what is there, compute nothing.")] = False,
) -> None:
    """Compare weights, risks and bounds over sizes and targets: tables, JSON and pictures.

    Example: hedgerow study weights --out study --quick
    """
    from hedgerow.studies import weights as study  # slow to import, and --help must be quick
    from hedgerow.studies import weights_report
    from hedgerow.studies.work import processors

    out.mkdir(parents=True, exist_ok=True)
    wanted = study.cells(quick=quick)

    def tell(done: int, total: int) -> None:
        sys.stderr.write(f"\r{done} of {total}" + ("\n" if done == total else ""))
        sys.stderr.flush()

    file = out / "rows.jsonl"
    rows = (
        study.kept_rows(file, wanted, seed=seed)
        if report
        else study.run(file, wanted, seed=seed, jobs=processors(jobs), report=tell)
    )
    told = "\n".join(weights_report.tables(rows))
    (out / "weights.md").write_text(told + "\n", encoding="utf-8")
    summary = weights_report.ratios(rows).to_dict("records")
    (out / "weights.json").write_text(
        json.dumps(summary, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    weights_report.picture(rows, out / "weights.png")
    if not quick:
        weights_report.headline(rows, out / "headline.png")
    typer.echo(told)
