"""synthesize, sign, verify, certificate, inspect: making a release, signing, checking, showing one."""

import json
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from hedgerow.cli.options import NewDataset, with_plan, with_screen
from hedgerow.cli.plan import plan_from
from hedgerow.cli.screen import Screen
from hedgerow.errors import ReleaseError, SettingError
from hedgerow.numerics.rounding import format_rounded_up

Folder = Annotated[Path, typer.Argument(help="A release folder, or its public part.", show_default=False)]


@with_plan
def synthesize(
    flags: dict[str, Any],
    screen: Screen,
    out: Annotated[Path, typer.Option(help="The release folder to make.", show_default=False)],
    new_dataset: NewDataset = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Release even if the target is met by discarding the data.")
    ] = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Read the data block by block: for files larger than memory.")
    ] = False,
    scratch: Annotated[
        Path | None,
        typer.Option(help="Folder for temporary files with --stream (default: beside the release)."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Share the work among this many processes; implies --stream.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="Share it among the workers of the Dask scheduler at this address: tls://host:8786."
        ),
    ] = None,
) -> None:
    """Make a release: copies and certificate in OUT/public, everything else in OUT/confidential.

    For instance:

      hedgerow synthesize payroll.csv --formula "payroll ~ log(employees)" --family lognormal
      --standard range-truncated --radius 0.4,1.8 --epsilon 5.7 --copies 3 --out release

      hedgerow synthesize --plan plan.yaml --out release

      hedgerow synthesize --plan plan.yaml --out release --stream
    """
    from hedgerow.release.confidential import read_utility
    from hedgerow.release.make import make_release

    plan = plan_from(flags)
    if workers is not None or cluster is not None:  # before anybody is waited for
        from hedgerow.release.streamed.prepare import check_plan

        check_plan(plan)
    told: dict[str, Any] = {
        "new_dataset": new_dataset,
        "anyway": anyway,
        "stream": stream,
        "scratch": scratch,
    }
    with screen.progress(5 + plan.settings.copies) as tell, _connect(workers, cluster) as crew:
        made = make_release(plan, out, **told, workers=crew, progress=tell)
    certificate = made.certificate
    for change in certificate.copies[0].changes:
        screen.note(f"Writing the copies: {change}")
    screen.say(f"Release {certificate.release} is in {out}: {out.name}/public may leave the building.")
    screen.facts(certificate.facts())
    if screen.private or (plan.settings.noisy is not None and not (screen.quiet or screen.as_json)):
        title, facts = made.expectation()
        if facts:
            screen.say(title)
            screen.facts(facts)
    screen.table("Checks of the plan: rows of each copy that break them. None was changed", made.checks)
    spend = "a release without ε" if made.charged is None else f"ε {format_rounded_up(made.charged, 6)}"
    rows = "" if (plan.rows or 1) == 1 else f", for {plan.rows} rows of one person or firm"
    screen.say(f"Recorded in {made.ledger}: {spend} under '{made.relation}'{rows}.")
    screen.say(f"Check it: hedgerow verify {out}")
    screen.say(f"For you, confidential: {out}/confidential/report.html")
    screen.say(f"SHA-256 of its certificate, to tell by another channel: {certificate.digest}")
    screen.result(
        {
            "release": certificate.release,
            "folder": str(made.folder),
            "files": [copy.file for copy in certificate.copies],
            "epsilon": None if certificate.epsilon is None else certificate.epsilon.total,
            "charged": made.charged,
            "relation": made.relation,
            "ledger": str(made.ledger),
            **({"checks": list(made.checks)} if made.checks else {}),
            "certificate_sha256": certificate.digest,
        }
    )
    if screen.private:
        screen.utility(*read_utility(made.folder))
    else:
        screen.say(f"What copies keep, confidential: hedgerow inspect {out} --confidential")


def _connect(workers: int | None, cluster: str | None) -> AbstractContextManager[Any]:
    if workers is None and cluster is None:
        return nullcontext()
    if workers is not None and cluster is not None:
        raise SettingError("--workers are processes here, --cluster is elsewhere. Say one of them.")
    if workers is not None and workers < 1:
        raise SettingError(f"--workers: {workers} processes share no work. Say 1 or more, or leave it out.")
    from hedgerow.cluster.connect import connect

    return connect(workers if cluster is None else cluster)


@with_screen
def sign(
    folder: Folder,
    screen: Screen,
    key: Annotated[
        Path,
        typer.Option(
            help="OpenSSH key; the public one, if an agent holds the private one.", show_default=False
        ),
    ],
) -> None:
    """Sign a release that verifies: ssh-keygen writes a signature beside its certificate.

    Example: hedgerow sign release --key ~/.ssh/id_ed25519
    """
    from hedgerow.release.folder import SIGNATURE
    from hedgerow.release.sign import sign_release

    signed = sign_release(folder, key=key)
    screen.say(f"Release {signed.certificate.release} is signed: {signed.public / SIGNATURE}")
    screen.result({"release": signed.certificate.release, "signature": str(signed.public / SIGNATURE)})


@with_screen
def verify(
    screen: Screen,
    folder: Annotated[
        Path | None, typer.Argument(help="A release folder, or its public part.", show_default=False)
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="Also compare with what this ledger recorded.")] = None,
    signers: Annotated[
        Path | None,
        typer.Option(help="Require a signature by one of these signers (OpenSSH's allowed_signers file)."),
    ] = None,
    certificate_sha256: Annotated[
        str | None, typer.Option(help="SHA-256 of the certificate, as the owner gave it to you.")
    ] = None,
    why: Annotated[
        str | None,
        typer.Option(help="Only print what a sentence of a certificate rests on, by its id: C3."),
    ] = None,
) -> None:
    """Check that a release is what its certificate says: no file changed, added or missing.

    For instance:

      hedgerow verify release

      hedgerow verify release --signers allowed_signers

      hedgerow verify --why C3
    """
    if why is not None:
        _explain(why, screen)
        return
    if folder is None:
        raise SettingError("RELEASE is missing: the folder to verify. For a sentence of it, say --why ID.")
    from hedgerow.cli.ledger import open_existing
    from hedgerow.release.folder import name_folder
    from hedgerow.release.verify import verify_release

    with nullcontext() if ledger is None else open_existing(ledger) as opened:
        verified = verify_release(
            folder, ledger=opened, signers=signers, certificate_sha256=certificate_sha256
        )
    release, signed = verified.certificate.release, verified.signature is not None
    screen.result(
        {
            "release": release,
            "sound": not verified.problems,
            "problems": list(verified.problems),
            "certificate_sha256": verified.sha256,
            "signed": signed,
            "signer": verified.signer,
        }
    )
    if verified.problems:
        raise ReleaseError(
            f"{name_folder(folder)} does not match its certificate. " + " ".join(verified.problems)
        )
    files = sum(1 for _ in verified.public.iterdir())  # those that the certificate knows, and a signature
    screen.say(f"{name_folder(folder)} matches its certificate: release {release}, {files} files.")
    screen.say(f"SHA-256 of its certificate: {verified.sha256}")
    if verified.signer is not None:
        screen.say(f"Signed by {verified.signer}.")
    elif signed:
        screen.note("Its signature was not checked, so that anybody may have made it. Pass --signers FILE.")
    elif ledger is None and certificate_sha256 is None:
        screen.say("It is not signed: its files belong together, but anybody may have made them.")


def _explain(id: str, screen: Screen) -> None:
    from hedgerow.privacy.claims.caveats import find_reason

    reason = find_reason(id)
    measured = f"docs/{reason.measured}" if reason.measured else "nothing to measure"
    screen.say(f"{reason.id}. {reason.text.replace('{}', '…')}", "")
    facts = {"proof": f"docs/maths.md, {reason.proof}", "test": f"tests/{reason.test}", "measured": measured}
    screen.facts(list(facts.items()))
    screen.result({"id": reason.id, "sentence": reason.text, **facts})


@with_screen
def certificate(
    folder: Folder,
    screen: Screen,
    registry: Annotated[
        bool, typer.Option("--registry", help="Print it as YAML for OpenDP's registry of deployments.")
    ] = False,
) -> None:
    """Print the certificate of a release that verifies.

    For instance:

      hedgerow certificate release

      hedgerow certificate release --registry > deployment.yaml
    """
    from hedgerow.release.folder import name_folder
    from hedgerow.release.registry import write_record
    from hedgerow.release.verify import verify_release

    verified = verify_release(folder)
    if verified.problems:
        raise ReleaseError(
            f"{name_folder(folder)} does not match its certificate. " + " ".join(verified.problems)
        )
    text = write_record(verified.certificate) if registry else verified.certificate.markdown()
    screen.say(*text.rstrip("\n").split("\n"))
    screen.result({"record": text} if registry else json.loads(verified.certificate.json()))


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
    from hedgerow.release.certificate import LARGEST
    from hedgerow.release.confidential import read_utility
    from hedgerow.release.folder import CONFIDENTIAL, name_folder
    from hedgerow.release.verify import verify_release
    from hedgerow.release.verify.files import read_file
    from hedgerow.tables import files as formats

    verified = verify_release(folder)
    certificate = verified.certificate
    result = json.loads(certificate.json()) | {"problems": list(verified.problems)}
    screen.say(f"Release {certificate.release} of {certificate.date}", "")
    screen.say(*([] if certificate.plain is None else [certificate.plain, ""]), certificate.claim, "")
    screen.facts(certificate.facts())
    if certificate.unit is not None:
        screen.say("", certificate.unit.covered)
    for title, lines in (
        ("About this release, in the owner's words", certificate.describe_about()),
        ("Not covered", certificate.describe_caveats()),
        ("Assumed to be public", [f"{item.what} ({item.because})" for item in certificate.assumed_public]),
    ):
        screen.say(*(["", f"{title}:"] if lines else []), *(f"- {line}" for line in lines))
    screen.say("")
    if not verified.problems:
        copy = certificate.copies[0]
        schema = formats.read_schema(verified.public / copy.file, copy.format)
        columns = [{"column": field.name, "type": str(field.type)} for field in schema]
        screen.table("Columns of each copy", columns)
        screen.table(
            "Files", [{"file": c.file, "bytes": c.bytes, "sha256": c.sha256} for c in certificate.copies]
        )
        result["columns"] = columns
    if confidential:
        try:
            summary = json.loads(read_file(folder / CONFIDENTIAL / "summary.json", LARGEST))
        except (OSError, ReleaseError, ValueError, RecursionError):
            summary = None
        if not isinstance(summary, dict):
            raise ReleaseError(
                "The confidential part is not here, or was changed. Pass the whole release folder."
            )
        screen.say("", "Confidential: what was achieved on the data at hand")
        screen.facts(summary.items())
        rows, shapes = read_utility(folder)
        screen.utility(rows, shapes)
        result["confidential"] = summary | {"utility": rows}
    screen.result(result)
    if verified.problems:
        raise ReleaseError(
            f"{name_folder(folder)} does not match its certificate. " + " ".join(verified.problems)
        )
