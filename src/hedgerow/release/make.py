"""Making a release: from a plan to a folder of which `public/` may leave the building.

    >>> made = make_release(Plan.load("plan.yaml"), "release")
    >>> print(made.certificate.claim)

The order is the guarantee. The spend is recorded (`reserve`) before a single copy is on disk; the folder
appears whole by one rename; then the ledger is told (`confirm`). A process that dies in between leaves an
entry without copies, which counts as spent until somebody settles it, and never copies without an entry.
"""

import hashlib
import os
import secrets
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hedgerow.errors import HedgerowError, HedgerowWarning, LedgerError
from hedgerow.models.families.family import Family
from hedgerow.privacy.censored import Censored
from hedgerow.privacy.guarantee import Release
from hedgerow.privacy.strict import Strict
from hedgerow.release.certificate import Assumption, Certificate, Copy
from hedgerow.release.confidential import write_confidential
from hedgerow.release.folder import CERTIFICATE, CERTIFICATE_TEXT, PLAN, PUBLIC, Draft, check_place, drafts
from hedgerow.release.ledger import Balance, Ledger
from hedgerow.release.ledger.place import ledger_path, open_ledger
from hedgerow.release.plan import Plan
from hedgerow.release.prepare import Prepared, prepare
from hedgerow.synthesizer import Synthesizer
from hedgerow.tables import files as formats

Progress = Callable[[str], None]

_BY_DEFINITION = "The method passes them through, and its neighbours share them."
NO_REASON = "No reason was given."
_DECLARED = "The plan says so; the statement does not hold if it was read from the confidential column."


@dataclass(frozen=True)
class Made:
    """A release that was made. Public facts, and where things are."""

    folder: Path
    certificate: Certificate
    relation: str
    ledger: Path


def make_release(plan: Plan, out: str | os.PathLike[str], *, progress: Progress | None = None) -> Made:
    """Makes the release that a plan describes, in a folder that does not exist yet."""
    tell = progress or (lambda step: None)
    out = Path(out)
    check_place(out)
    for left in drafts(out):
        _warn(
            f"{left.name} was left by a release that did not finish. It holds copies and confidential files: "
            "remove it, and settle its entry in the ledger (hedgerow ledger list)."
        )
    tell("reading")
    prepared = prepare(plan)
    with open_ledger(plan.ledger) as ledger:
        fingerprint = ledger.fingerprint(prepared.table, [prepared.outcome])
        account: dict[str, Any] = {
            "fingerprint": fingerprint,
            "relation": plan.relation,
            "dataset": plan.dataset,
        }
        _warn_about_budgets(ledger.check(**account, epsilon=plan.settings.epsilon), plan)
        _warn_about_release(prepared)
        tell("fitting")
        synth, notes = _fit(prepared)
        sample = synth.sample()
        tell("recording the spend")
        release = secrets.token_hex(8)
        ledger.reserve(
            **account,
            epsilon=plan.settings.epsilon,
            copies=plan.settings.copies,
            plan=plan.digest,
            release=release,
            note=f"folder {out.name}",
        )
        draft = Draft(out, release)
        try:
            draft.begin()
            certificate = _write_public(draft, prepared, sample, release, tell)
            tell("writing confidential files")
            facts: dict[str, Any] = {"release": release, "fingerprint": fingerprint, "warnings": notes}
            write_confidential(draft, prepared, synth, facts | {"certificate_sha256": certificate.digest})
            draft.publish()
        except BaseException:
            _undo(draft, ledger, release)
            raise
        try:
            ledger.confirm(release, certificate=certificate.digest)
        except LedgerError as error:
            _warn(
                f"The release is made and its spend recorded, but the ledger could not be told so: {error} "
                f"Its entry {release} is pending; close it with: hedgerow ledger settle {release} spent"
            )
    return Made(out, certificate, plan.relation, ledger_path(plan.ledger))


def _fit(prepared: Prepared) -> tuple[Synthesizer, list[str]]:
    """The fit, and the warnings it gave: passed on, and kept for the confidential files."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", HedgerowWarning)
        synth = prepared.fit()
    for warning in caught:
        warnings.warn(warning.message, stacklevel=3)
    return synth, [str(w.message) for w in caught if issubclass(w.category, HedgerowWarning)]


def _write_public(
    draft: Draft, prepared: Prepared, sample: Release, release: str, tell: Progress
) -> Certificate:
    """Writes the copies, the plan and the certificate of them."""
    plan, copies = prepared.plan, []
    for number, table in enumerate(sample.tables, 1):
        tell(f"writing copy {number} of {plan.settings.copies}")
        written = formats.write(
            table.select(prepared.released),
            draft.place(PUBLIC, f"copy-{number}{prepared.format.suffix}"),
            prepared.source,
            format=prepared.format,
            formulas=plan.outputs.formulas,
        )
        copies.append(
            Copy(written.path.name, written.format.value, written.sha256, written.size, written.changes)
        )
    tell("writing the certificate")
    not_covered = [
        "The rows are in the order of the input. If that order says anything about the outcome, it is public."
    ]
    if prepared.withheld:
        names = ", ".join(prepared.withheld)
        not_covered.append(f"Columns that were used and not released ({names}) are not protected either.")
    public_plan = draft.write(PUBLIC, PLAN, plan.public().text())
    certificate = Certificate.build(
        sample.guarantee,
        release=release,
        date=datetime.now(UTC).date().isoformat(),
        records=prepared.table.num_rows,
        unchanged=[name for name in prepared.released if name != prepared.outcome],
        used_not_released=prepared.withheld,
        assumed=list_assumptions(prepared),
        also_not_covered=not_covered,
        plan=hashlib.sha256(public_plan).hexdigest(),
        copies=copies,
    )
    draft.write(PUBLIC, CERTIFICATE, certificate.json())
    draft.write(PUBLIC, CERTIFICATE_TEXT, certificate.markdown())
    return certificate


def _undo(draft: Draft, ledger: Ledger, release: str) -> None:
    """After a failure: no draft, and the spend given back; or, if that fails too, left to be settled."""
    if draft.moved:
        return  # the copies are out: the entry stands
    with suppress(OSError, HedgerowError):
        draft.discard()
        ledger.settle(release, "void", note="hedgerow: writing failed, and the draft was removed unseen")
        return
    _warn(f"Entry {release} stays in the ledger as pending; remove {draft.path.name} and settle it.")


def list_assumptions(prepared: Prepared) -> list[Assumption]:
    """What the certificate says is taken as public knowledge, and why."""
    plan, outcome = prepared.plan, prepared.outcome
    kind = prepared.table.schema.field(outcome).type
    sentences = plan.settings.standard.range.sentences(f"each value of '{outcome}'") if plan.ranged else ()
    pairs = [
        (words, plan.reasons.get(place) or ("As for the whole." if place else NO_REASON))
        for place, words in sentences
    ]
    if isinstance(plan.settings.standard, Strict):
        pairs.append((plan.settings.standard.described(), plan.settings.standard.reason or NO_REASON))
    if isinstance(plan.settings.standard, Censored):
        what = "the model with its prior, which place the windows of the censored likelihood"
        pairs.append((what, plan.settings.standard.reason or NO_REASON))
    if isinstance(plan.settings.family, Family) and plan.settings.family.settings():
        declared = ", ".join(f"{name} {value!r}" for name, value in plan.settings.family.settings().items())
        pairs.append((f"what the plan declares of '{outcome}': {declared}", _DECLARED))
    whole = (
        f"who is in the table, in which order, how many records there are, and all columns but '{outcome}'"
    )
    pairs.append((whole, _BY_DEFINITION))
    pairs.append((f"the type of '{outcome}' ({kind})", "The copies are written in the same type."))
    if plan.missing == "drop":
        what = f"which rows lack a value in '{outcome}' or in a predictor; such rows were dropped"
        pairs.append((what, "The plan says missing: drop."))
    return [Assumption(what, because) for what, because in pairs]


def _warn_about_release(prepared: Prepared) -> None:
    for note in prepared.source.notes:
        _warn(f"Reading the data: {note}")
    if prepared.dropped_rows:
        _warn(
            f"{prepared.dropped_rows} rows without a value in a column of the formula were dropped. The "
            "certificate says that which they are is assumed to be public."
        )
    if prepared.plan.seed is not None:
        _warn(
            "The randomness comes from a seed: whoever knows it can compute from the copies what must stay "
            "secret. The certificate says so. Leave the seed out for a release that leaves the building."
        )
    if prepared.plan.ranged and prepared.plan.because is None:
        _warn(
            "No reason was given why the range is public, and the certificate says so. Give one: "
            '--because "…", or because: in the plan.'
        )


def _warn_about_budgets(balances: list[Balance], plan: Plan) -> None:
    budgeted = [balance.relation for balance in balances if balance.budget is not None]
    if budgeted and plan.relation not in budgeted:
        _warn(
            f"This data has a budget under '{budgeted[0]}', but none under '{plan.relation}', from which "
            "this release pays. Prices under different relations do not add up: set a budget for each in use."
        )


def _warn(message: str) -> None:
    warnings.warn(message, HedgerowWarning, stacklevel=3)
