"""Does a release match its certificate? Every file of `public/` is accounted for, byte by byte.

What this finds: a file changed, added, missing, replaced by a link, or a certificate whose text and figures
disagree. What it cannot find alone: somebody who writes copies and certificate anew. The ledger keeps the
digest of the certificate for that; pass it, and the confidential part is compared too where it is present.
"""

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from hedgerow.errors import PlanError, ReleaseError, SettingError
from hedgerow.release.certificate import LARGEST, Certificate
from hedgerow.release.folder import CERTIFICATE, CERTIFICATE_TEXT, CONFIDENTIAL, PLAN, PUBLIC
from hedgerow.release.ledger import Ledger
from hedgerow.release.plan import Plan


@dataclass(frozen=True)
class Verified:
    """A release and what is wrong with it: nothing, if `problems` is empty."""

    certificate: Certificate
    plan: Plan
    problems: tuple[str, ...]


def verify_release(folder: str | os.PathLike[str], *, ledger: Ledger | None = None) -> Verified:
    """Compares a release folder, or its public part alone, with its certificate.

    Raises `ReleaseError` where there is no certificate to compare with.
    """
    folder = Path(folder)
    public = folder / PUBLIC if os.path.lexists(folder / PUBLIC) else folder
    problems = _links(folder, public)
    if problems:
        raise ReleaseError(f"{folder.name}: {problems[0]} Nothing was followed or read.")
    content = _read(public / CERTIFICATE)
    certificate = Certificate.loads(content)
    expected = {copy.file: copy.sha256 for copy in certificate.copies} | {PLAN: certificate.plan}
    text = hashlib.sha256(certificate.markdown().encode()).hexdigest()
    expected |= {CERTIFICATE: hashlib.sha256(content).hexdigest(), CERTIFICATE_TEXT: text}
    there = {entry.name for entry in public.iterdir()}
    problems += [f"{name} is missing." for name in sorted(expected.keys() - there)]
    problems += [
        f"{name} was added: the certificate does not know it." for name in sorted(there - expected.keys())
    ]
    for name in sorted(expected.keys() & there):
        if not (public / name).is_file():
            problems.append(f"{name} is not a file.")
        elif _digest(public / name) != expected[name]:
            problems.append(f"{name} was changed: its digest is not the certificate's.")
    if certificate.json().encode() != content:
        problems.append(f"{CERTIFICATE} was written by something else than hedgerow.")
    problems += _confidential_problems(folder / CONFIDENTIAL, content)
    if ledger is not None:
        problems += _ledger_problems(ledger, certificate, content)
    return Verified(certificate, _plan(public / PLAN, problems), tuple(problems))


def _links(folder: Path, public: Path) -> list[str]:
    """Links are refused: what they point to may differ from what was verified, or be somebody else's file."""
    try:
        places = [folder, public, *public.iterdir()]
        return [f"{place.name} is a link." for place in places if place.is_symlink()]
    except OSError as error:
        raise ReleaseError(
            f"{folder.name}: not a release folder ({os.strerror(error.errno or 5)}). Pass the folder that "
            f"holds {PUBLIC}/{CERTIFICATE}."
        ) from None


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise ReleaseError(f"{path.name} is missing, so this is not a release. Pass the release folder.")
        with path.open("rb") as file:
            return file.read(LARGEST + 1)  # one more than a certificate may have, so that it is refused
    except OSError as error:
        raise ReleaseError(f"{path.name}: cannot be read ({os.strerror(error.errno or 5)}).") from None


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ReleaseError(f"{path.name}: cannot be read ({os.strerror(error.errno or 5)}).") from None


def _plan(path: Path, problems: list[str]) -> Plan:
    try:
        plan = Plan.load(path)
    except (PlanError, SettingError) as error:
        raise ReleaseError(f"{PLAN} is not a plan: {error}") from None
    if plan.data is not None or plan.ledger is not None or plan.seed is not None:
        problems.append(f"{PLAN} holds a path or a seed, which must not be published.")
    return plan


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
        kept = json.loads((folder / "summary.json").read_bytes())["certificate_sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return [*problems, f"{CONFIDENTIAL}/summary.json is missing or was changed."]
    if kept != hashlib.sha256(certificate).hexdigest():
        problems.append(f"{CERTIFICATE} is not the one that {CONFIDENTIAL}/summary.json was written with.")
    return problems


def _ledger_problems(ledger: Ledger, certificate: Certificate, content: bytes) -> list[str]:
    problems = [f"ledger: {problem}" for problem in ledger.verify()]
    states = [entry for entry in ledger.entries() if entry.release == certificate.release]
    if not states:
        return [*problems, f"the ledger has no entry for release {certificate.release}."]
    last = states[-1]
    digest = hashlib.sha256(content).hexdigest()
    if last.event == "void":
        problems.append(f"the ledger says that release {certificate.release} never became visible.")
    if last.event == "released" and last.certificate_digest != digest:
        problems.append(f"{CERTIFICATE} is not the one the ledger recorded.")
    total = None if certificate.epsilon is None else certificate.epsilon.total
    if last.epsilon != total:
        problems.append("the ledger recorded another ε than the certificate states.")
    return problems
