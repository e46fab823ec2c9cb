"""synthesize, verify, inspect: making a release, checking one, looking into one."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.cli.options import NewDataset, with_plan, with_screen
from hedgerow.cli.plan import plan_from
from hedgerow.cli.screen import Screen
from hedgerow.errors import ReleaseError

Folder = Annotated[Path, typer.Argument(help="A release folder, or its public part.", show_default=False)]


@with_plan
def synthesize(
    flags: dict[str, Any],
    screen: Screen,
    out: Annotated[Path, typer.Option(help="The release folder to make.", show_default=False)],
    new_dataset: NewDataset = False,
) -> None:
    """Make a release: copies and certificate in OUT/public, everything else in OUT/confidential.

    For instance:

      hedgerow synthesize payroll.csv --formula "payroll ~ employees" --family lognormal
      --standard range-truncated --radius 0.4,1.8 --epsilon 5.7 --copies 3 --out release

      hedgerow synthesize --plan plan.yaml --out release
    """
    from hedgerow.release.make import make_release

    plan = plan_from(flags)
    with screen.progress(5 + plan.settings.copies) as tell:
        made = make_release(plan, out, new_dataset=new_dataset, progress=tell)
    certificate = made.certificate
    for change in certificate.copies[0].changes:
        screen.note(f"Writing the copies: {change}")
    screen.say(f"Release {certificate.release} is in {out}: {out.name}/public may leave the building.")
    screen.facts(certificate.facts())
    screen.say(f"Recorded in {made.ledger} under '{made.relation}'. Check it: hedgerow verify {out}")
    screen.result(
        {
            "release": certificate.release,
            "folder": str(made.folder),
            "files": [copy.file for copy in certificate.copies],
            "epsilon": None if certificate.epsilon is None else certificate.epsilon.total,
            "relation": made.relation,
            "ledger": str(made.ledger),
        }
    )


@with_screen
def verify(
    folder: Folder,
    screen: Screen,
    ledger: Annotated[Path | None, typer.Option(help="Also compare with what this ledger recorded.")] = None,
) -> None:
    """Check that a release is what its certificate says: no file changed, added or missing.

    Example: hedgerow verify release
    """
    from hedgerow.cli.ledger import open_existing
    from hedgerow.release.verify import verify_release

    with nullcontext() if ledger is None else open_existing(ledger) as opened:
        verified = verify_release(folder, ledger=opened)
    release = verified.certificate.release
    screen.result({"release": release, "sound": not verified.problems, "problems": list(verified.problems)})
    if verified.problems:
        raise ReleaseError(f"{folder.name} does not match its certificate. " + " ".join(verified.problems))
    files = len(verified.certificate.copies) + 3
    screen.say(f"{folder.name} matches its certificate: release {release}, {files} files.")


@with_screen
def inspect(
    folder: Folder,
    screen: Screen,
    confidential: Annotated[
        bool, typer.Option("--confidential", help="Also show what was achieved. Not for publication.")
    ] = False,
) -> None:
    """Show what is in a release: its claim, what it does not cover, its columns and files.

    Example: hedgerow inspect release
    """
    from hedgerow.release.folder import CONFIDENTIAL, PUBLIC
    from hedgerow.release.verify import verify_release
    from hedgerow.tables import files as formats

    verified = verify_release(folder)
    certificate = verified.certificate
    result = json.loads(certificate.json()) | {"problems": list(verified.problems)}
    screen.say(f"Release {certificate.release} of {certificate.date}\n\n{certificate.claim}\n")
    screen.facts(certificate.facts())
    for title, lines in (
        ("Not covered", certificate.not_covered),
        ("Assumed to be public", [f"{item.what} ({item.because})" for item in certificate.assumed_public]),
    ):
        screen.say("\n- ".join([f"\n{title}:", *lines]))
    screen.say("")
    if not verified.problems:
        public = folder / PUBLIC if (folder / PUBLIC).is_dir() else folder
        first = formats.read(public / certificate.copies[0].file, format=certificate.copies[0].format).frame
        columns = [{"column": field.name, "type": str(field.type)} for field in first.schema]
        screen.table("Columns of each copy", columns)
        screen.table(
            "Files", [{"file": c.file, "bytes": c.bytes, "sha256": c.sha256} for c in certificate.copies]
        )
        result["columns"] = columns
    if confidential:
        try:
            summary = json.loads((folder / CONFIDENTIAL / "summary.json").read_bytes())
        except (OSError, ValueError):
            summary = None
        if not isinstance(summary, dict):
            raise ReleaseError(
                "The confidential part is not here, or was changed. Pass the whole release folder."
            )
        screen.say("\nConfidential: what was achieved on the data at hand")
        screen.facts(summary.items())
        result["confidential"] = summary
    screen.result(result)
    if verified.problems:
        raise ReleaseError(f"{folder.name} does not match its certificate. " + " ".join(verified.problems))
