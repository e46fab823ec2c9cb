"""Does a release match its certificate? Every file of `public/` is accounted for, byte by byte.

    >>> verify_release("release").problems
    ()

A receiver needs nothing of the engine for it: digests are compared, and plan.yaml is read as plain values.
What this finds: a file changed, added, missing, replaced by a link, or a certificate whose text and figures
disagree. What it cannot find alone: somebody who writes copies and certificate anew. The ledger keeps the
digest of the certificate for that; pass it, and the confidential part is compared too where it is present.
"""

import hashlib
import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hedgerow.errors import PlanError, ReleaseError, SettingError, reason_of
from hedgerow.release import text
from hedgerow.release.certificate import LARGEST, Certificate
from hedgerow.release.folder import CERTIFICATE, CERTIFICATE_TEXT, CONFIDENTIAL, PLAN, PUBLIC

if TYPE_CHECKING:  # a receiver verifies without the engine, and most without a ledger
    from hedgerow.release.ledger import Ledger
    from hedgerow.release.plan import Plan


@dataclass(frozen=True)
class Verified:
    """A release and what is wrong with it: nothing, if `problems` is empty."""

    certificate: Certificate
    problems: tuple[str, ...]
    plan_text: bytes = field(repr=False)  # plan.yaml as it was verified

    @property
    def plan(self) -> "Plan":
        """The published plan, which needs the engine that knows its standards."""
        from hedgerow.release.plan import Plan

        try:
            return Plan.loads(self.plan_text, PLAN)
        except SettingError as error:
            raise ReleaseError(f"{PLAN} is not a plan: {error}") from None


def verify_release(folder: str | os.PathLike[str], *, ledger: "Ledger | None" = None) -> Verified:
    """Compares a release folder, or its public part alone, with its certificate.

    Raises `ReleaseError` where there is no certificate to compare with.
    """
    folder = Path(folder)
    try:
        return _compare(folder, ledger)
    except OSError as error:
        name = Path(error.filename or folder).name
        raise ReleaseError(f"{name}: cannot be read ({reason_of(error)}).") from None


def _compare(folder: Path, ledger: "Ledger | None") -> Verified:
    public = folder / PUBLIC if os.path.lexists(folder / PUBLIC) else folder
    there = _list_files(folder, public)
    content = _read(public / CERTIFICATE, LARGEST)
    certificate = Certificate.loads(content)
    expected = {copy.file: copy.sha256 for copy in certificate.copies} | {PLAN: certificate.plan}
    expected |= {CERTIFICATE: _sha256(content), CERTIFICATE_TEXT: _sha256(certificate.markdown().encode())}
    added = sorted(there - expected.keys())
    problems = [f"{name} is missing." for name in sorted(expected.keys() - there)]
    problems += [f"{name} was added: the certificate does not know it." for name in added]
    plan_text = _read(public / PLAN, text.LARGEST)
    for name in sorted(expected.keys() & there):
        if not (public / name).is_file():
            problems.append(f"{name} is not a file.")
        elif (_digest(public / name) if name != PLAN else _sha256(plan_text)) != expected[name]:
            problems.append(f"{name} was changed: its digest is not the certificate's.")
    if certificate.json().encode() != content:
        problems.append(f"{CERTIFICATE} was written by something else than hedgerow.")
    problems += _confidential_problems(folder / CONFIDENTIAL, content)
    if ledger is not None:
        problems += _ledger_problems(ledger, certificate, content)
    problems += _plan_problems(plan_text)
    return Verified(certificate, tuple(problems), plan_text)


def _list_files(folder: Path, public: Path) -> set[str]:
    """What is in the public part. Links are refused: they may point elsewhere by now, or at others' files."""
    try:
        files = list(public.iterdir())
        for place in (folder, public, *files):
            if place.is_symlink():
                raise ReleaseError(f"{folder.name}: {place.name} is a link. Nothing was followed or read.")
        return {place.name for place in files}
    except OSError as error:
        raise ReleaseError(
            f"{folder.name}: not a release folder ({reason_of(error)}). Pass the folder that holds "
            f"{PUBLIC}/{CERTIFICATE}."
        ) from None


def _read(path: Path, largest: int) -> bytes:
    if not path.is_file():
        raise ReleaseError(f"{path.name} is missing, so this is not a release. Pass the release folder.")
    with path.open("rb") as file:
        return file.read(largest + 1)  # one more than it may have, so that it is refused


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _plan_problems(content: bytes) -> list[str]:
    """What a plan must not say in public. Whether it could be run is for `Verified.plan` to find out."""
    try:
        plan = text.load(content, PLAN)
    except PlanError as error:
        raise ReleaseError(f"{PLAN} is not a plan: {error}") from None
    if not isinstance(plan, dict) or "formula" not in plan:
        raise ReleaseError(f"{PLAN} is not a plan: it names no formula.")
    if plan.keys() & {"data", "ledger", "seed"}:
        return [f"{PLAN} holds a path or a seed, which must not be published."]
    return []


def _confidential_problems(folder: Path, certificate: bytes) -> list[str]:
    if not folder.is_dir():
        return []  # the public part was copied out, as it should be
    problems = []
    open_to_others = [
        place.name for place in (folder, *folder.iterdir()) if stat.S_IMODE(place.lstat().st_mode) & 0o077
    ]
    if open_to_others:
        problems.append(f"{CONFIDENTIAL}: others may read {open_to_others[0]}. Run chmod -R go= on it.")
    try:
        recorded = json.loads((folder / "summary.json").read_bytes())["certificate_sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return [*problems, f"{CONFIDENTIAL}/summary.json is missing or was changed."]
    if recorded != _sha256(certificate):
        problems.append(f"{CERTIFICATE} is not the one that {CONFIDENTIAL}/summary.json was written with.")
    return problems


def _ledger_problems(ledger: "Ledger", certificate: Certificate, content: bytes) -> list[str]:
    problems = [f"ledger: {problem}" for problem in ledger.verify()]
    states = [entry for entry in ledger.entries() if entry.release == certificate.release]
    if not states:
        return [*problems, f"the ledger has no entry for release {certificate.release}."]
    last = states[-1]
    if last.event == "void":
        problems.append(f"the ledger says that release {certificate.release} never became visible.")
    if last.event == "released" and last.certificate_digest != _sha256(content):
        problems.append(f"{CERTIFICATE} is not the one the ledger recorded.")
    total = None if certificate.epsilon is None else certificate.epsilon.total
    if last.epsilon != total:
        problems.append("the ledger recorded another ε than the certificate states.")
    return problems
