"""Does a release match its certificate? Every file of `public/` is accounted for, byte by byte.

    >>> verify_release("release").problems
    ()

A receiver needs nothing of the engine for it: digests and records are counted, plan.yaml is read as plain
values, and the claim is written again from the certificate's fields (`consistency`). The files are somebody
else's, and are opened with care (`files`).

What this finds: a file changed, added, missing, replaced by a link or a pipe, and a certificate that
contradicts itself, its text or its plan. What it cannot find alone: somebody who writes copies and
certificate anew. For that there are signatures (`openssh`: pass `signers`), the certificate's SHA-256 by
another channel, and the ledger, which keeps that digest; where the confidential part is present, it is
compared too.
"""

import hashlib
import html
import json
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import PlanError, ReleaseError, SettingError, format_value, list_some, reason_of
from hedgerow.privacy.claims.units import WHOLE_UNIT
from hedgerow.release import text
from hedgerow.release.certificate import LARGEST, Certificate, Copy
from hedgerow.release.folder import (
    CERTIFICATE,
    CERTIFICATE_TEXT,
    CONFIDENTIAL,
    PAGE,
    PLAN,
    PUBLIC,
    SIGNATURE,
)
from hedgerow.release.verify.consistency import certificate_problems, plan_problems
from hedgerow.release.verify.files import (
    count_records,
    digest,
    open_file,
    read_columns,
    read_file,
    show_name,
    size_of,
)

if TYPE_CHECKING:  # a receiver verifies without the engine, and most without a ledger
    from hedgerow.release.ledger import Ledger
    from hedgerow.release.plan import Plan

_LARGEST_SIGNATURE = 1 << 16  # bytes; one of RSA with 16384 bits has four thousand
_ARMOURED = re.compile(
    rb"-----BEGIN SSH SIGNATURE-----\r?\n([A-Za-z0-9+/=]+\r?\n)+-----END SSH SIGNATURE-----\r?\n?"
)
_SHA256 = re.compile("[0-9a-fA-F]{64}")


@dataclass(frozen=True, repr=False)
class Verified:
    """A release and what is wrong with it: nothing, if `problems` is empty."""

    certificate: Certificate
    problems: tuple[str, ...]
    public: Path  # the folder that was verified
    sha256: str  # of certificate.json, for comparison by another channel
    signature: bytes | None = field(repr=False)
    signer: str | None  # who signed it, by the signers that were passed
    plan_text: bytes = field(repr=False)  # plan.yaml as it was verified

    def __repr__(self) -> str:
        return f"Verified({self.certificate!r}, problems={self.problems!r})"

    @property
    def plan(self) -> "Plan":
        """The published plan, which needs the engine that knows its standards."""
        from hedgerow.release.plan import Plan

        try:
            return Plan.loads(self.plan_text, PLAN)
        except SettingError as error:
            raise ReleaseError(f"{PLAN} is not a plan: {error}") from None


def verify_release(
    folder: str | os.PathLike[str],
    *,
    ledger: "Ledger | None" = None,
    signers: str | os.PathLike[str] | None = None,
    certificate_sha256: str | None = None,
) -> Verified:
    """Compares a release folder, or its public part alone, with its certificate.

    `signers` is a file of allowed signers, as OpenSSH has it: then a signature by one of them is required.
    `certificate_sha256` is what the owner told by another channel. Raises `ReleaseError` where there is no
    certificate to compare with.
    """
    folder = Path(folder)
    if certificate_sha256 is not None and not _SHA256.fullmatch(certificate_sha256):
        raise SettingError(
            f"a SHA-256 has 64 hex digits, got {format_value(certificate_sha256)}. Copy all of it."
        )
    try:
        return _compare(folder, ledger, signers, certificate_sha256)
    except OSError as error:
        name = Path(error.filename or folder).name
        raise ReleaseError(f"{name}: cannot be read ({reason_of(error)}).") from None


def _compare(
    folder: Path,
    ledger: "Ledger | None",
    signers: str | os.PathLike[str] | None,
    told: str | None,
) -> Verified:
    public, there, beside = _list_files(folder)
    content = _read(public / CERTIFICATE, LARGEST)
    plan_text = _read(public / PLAN, text.LARGEST)
    certificate, sha256 = Certificate.loads(content), hashlib.sha256(content).hexdigest()
    copies = {copy.file: copy for copy in certificate.copies}
    others = certificate.digests
    expected = {*copies, *others, CERTIFICATE, CERTIFICATE_TEXT}
    missing = sorted(expected - there)
    problems = [f"missing: {list_some(missing)}."] if missing else []
    if added := sorted(map(show_name, there - expected - {SIGNATURE})):
        problems.append(f"added, and not known to the certificate: {list_some(added)}.")
    if beside:
        found = list_some(sorted(map(show_name, beside)))
        problems.append(f"beside {PUBLIC}, and no part of a release: {found}.")
    plan = _load_plan(plan_text)
    for name in sorted(copies.keys() & there):
        problems += _copy_problems(public / name, copies[name], certificate, plan.get("read"))
    problems += _text_problems(public, certificate, there)
    for name in sorted(others.keys() & there - {PLAN}):  # whose bytes are in hand
        if not _is_digest_of(public / name, others[name]):
            problems.append(f"{name} was changed: its digest is not the certificate's.")
    problems += _page_problems(public, certificate) if PAGE in others.keys() & there else []
    if hashlib.sha256(plan_text).hexdigest() != certificate.plan:
        problems.append(f"{PLAN} was changed: its digest is not the certificate's.")
    if certificate.json().encode(errors="surrogatepass") != content:
        problems.append(f"{CERTIFICATE} was written by something else than hedgerow.")
    problems += certificate_problems(certificate)
    problems += plan_problems(certificate, plan)
    if plan.keys() & {"data", "ledger", "seed"}:
        problems.append(f"{PLAN} holds a path or a seed, which must not be published.")
    problems += _confidential_problems(folder / CONFIDENTIAL if public != folder else None, sha256)
    if told is not None and told.lower() != sha256:
        problems.append(f"{CERTIFICATE} has the SHA-256 {sha256}, not the one that was passed.")
    signature, signer = _read_signature(public) if SIGNATURE in there else None, None
    if signature is not None and not _ARMOURED.fullmatch(signature):  # OpenSSH reads past what surrounds one
        problems.append(f"{SIGNATURE} holds something else than one signature.")
    elif signers is not None and signature is None:
        problems.append(f"it is not signed: there is no {SIGNATURE}.")
    elif signers is not None and signature is not None:
        from hedgerow.release.verify.openssh import find_signer

        signer = find_signer(content, signature, signers)
        if signer is None:
            problems.append(f"{SIGNATURE} is not a signature of this certificate by one of the signers.")
    if ledger is not None:
        problems += _ledger_problems(ledger, certificate, sha256)
    return Verified(certificate, tuple(problems), public, sha256, signature, signer, plan_text)


def _list_files(folder: Path) -> tuple[Path, set[str], set[str]]:
    """The public part, what is in it, and what lies beside it in a release folder.

    A folder that holds a certificate is the public part, whatever else is in it: a release is not looked for
    inside another. Links are refused: they may point elsewhere by now, or at others' files.
    """
    try:
        inside = {place.name for place in folder.iterdir()}
        public = folder if CERTIFICATE in inside or PUBLIC not in inside else folder / PUBLIC
        if public == folder and os.path.lexists(folder / PUBLIC / CERTIFICATE):
            raise ReleaseError(
                f"{folder.name}: has a {CERTIFICATE} of its own and one in {PUBLIC}. Which of them is meant "
                "cannot be told. Pass a release as it was made."
            )
        for place in (folder, *(folder / name for name in inside)):
            _refuse_link(folder, place)
        files = list(public.iterdir())
        for place in files:
            _refuse_link(folder, place)
    except OSError as error:
        raise ReleaseError(
            f"{folder.name}: not a release folder ({reason_of(error)}). Pass the folder that holds "
            f"{PUBLIC}/{CERTIFICATE}."
        ) from None
    beside = inside - {PUBLIC, CONFIDENTIAL} if public != folder else set()
    return public, {place.name for place in files}, beside


def _refuse_link(folder: Path, place: Path) -> None:
    if place.is_symlink():
        raise ReleaseError(f"{folder.name}: {show_name(place.name)} is a link. Nothing was followed or read.")


def _read(path: Path, largest: int) -> bytes:
    try:
        return read_file(path, largest)
    except FileNotFoundError:
        raise ReleaseError(
            f"{path.name} is missing, so this is not a release. Pass the release folder."
        ) from None


def _copy_problems(path: Path, copy: Copy, certificate: Certificate, dialect: Any) -> list[str]:
    """Size first: a file of another size is not read. What is in it counts once its bytes are right."""
    expected = {*certificate.unchanged, *certificate.outcomes}
    try:
        with open_file(path) as file:
            if size_of(file) != copy.bytes:
                return [f"{copy.file} was changed: it has {size_of(file)} bytes, not {copy.bytes}."]
            if digest(file, copy.bytes) != copy.sha256:
                return [f"{copy.file} was changed: its digest is not the certificate's."]
            counted = count_records(file, copy.format)
            given = dialect if isinstance(dialect, dict) else {}
            columns = read_columns(file, copy.format, expected, given)
    except ReleaseError as error:
        return [str(error)]
    if counted != certificate.records:
        return [f"{copy.file} has {counted} records, the certificate says {certificate.records}."]
    if added := [name for name in columns if name not in expected]:
        return [f"{copy.file} has columns that the certificate does not name: {_list_names(added)}."]
    if lacking := sorted(expected - {*columns}):
        return [f"{copy.file} lacks columns that the certificate names: {_list_names(lacking)}."]
    unchanged = [name for name in columns if name not in certificate.outcomes]
    if unchanged != [*certificate.unchanged] or len(columns) > len(unchanged) + len(certificate.outcomes):
        return [f"{copy.file} has its columns in another order than the certificate, or one of them twice."]
    return []


def _is_digest_of(path: Path, sha256: str) -> bool:
    try:
        with open_file(path) as file:
            return digest(file, size_of(file)) == sha256
    except ReleaseError:  # no file at all
        return False


def _list_names(names: list[str]) -> str:
    return list_some([show_name(name) for name in names], quoted=True)


def _text_problems(public: Path, certificate: Certificate, there: set[str]) -> list[str]:
    if CERTIFICATE_TEXT not in there:
        return []
    expected = certificate.markdown().encode(errors="surrogatepass")
    try:
        same = read_file(public / CERTIFICATE_TEXT, len(expected)) == expected
    except ReleaseError as error:
        return [str(error)]
    return [] if same else [f"{CERTIFICATE_TEXT} was changed: it is not what {CERTIFICATE} says."]


def _page_problems(public: Path, certificate: Certificate) -> list[str]:
    """A page is the owner's, but it may not claim something else than the certificate."""
    try:
        page = html.unescape(read_file(public / PAGE, LARGEST).decode(errors="replace"))
    except ReleaseError as error:
        return [str(error)]
    said = (certificate.release, certificate.claim, certificate.plain or "")
    return (
        [] if all(words in page for words in said) else [f"{PAGE} does not hold the claim of {CERTIFICATE}."]
    )


def _load_plan(content: bytes) -> dict[str, Any]:
    """The plan's keys. Whether it could be run is for `Verified.plan` to find out."""
    try:
        plan: Any = text.load(content, PLAN)
    except PlanError as error:
        raise ReleaseError(f"{PLAN} is not a plan: {error}") from None
    if not isinstance(plan, dict) or not {"formula", "columns"} & plan.keys():
        raise ReleaseError(f"{PLAN} is not a plan: it names no formula.")
    return plan


def _read_signature(public: Path) -> bytes:
    signature = _read(public / SIGNATURE, _LARGEST_SIGNATURE)
    if len(signature) > _LARGEST_SIGNATURE:
        raise ReleaseError(f"{SIGNATURE} has more than {_LARGEST_SIGNATURE} bytes, which no signature has.")
    return signature


def _confidential_problems(folder: Path | None, sha256: str) -> list[str]:
    if folder is None or not os.path.lexists(folder):
        return []  # the public part was copied out, as it should be
    if not folder.is_dir():
        return [f"{CONFIDENTIAL} is not a folder."]
    problems = []
    open_to_others = [
        place.name for place in (folder, *folder.iterdir()) if stat.S_IMODE(place.lstat().st_mode) & 0o077
    ]
    if open_to_others:
        problems.append(f"{CONFIDENTIAL}: others may read {open_to_others[0]}. Run chmod -R go= on it.")
    try:
        recorded = json.loads(read_file(folder / "summary.json", LARGEST))["certificate_sha256"]
    except (OSError, ReleaseError, ValueError, KeyError, TypeError, RecursionError):
        return [*problems, f"{CONFIDENTIAL}/summary.json is missing or was changed."]
    if recorded != sha256:
        problems.append(f"{CERTIFICATE} is not the one that {CONFIDENTIAL}/summary.json was written with.")
    return problems


def _ledger_problems(ledger: "Ledger", certificate: Certificate, sha256: str) -> list[str]:
    from hedgerow.release.ledger.accounts import charge_unit

    problems = [f"ledger: {problem}" for problem in ledger.verify()]
    release = certificate.release
    states = [entry for entry in ledger.entries() if entry.release == release]
    if not states:
        return [*problems, f"the ledger has no entry for release {release}."]
    last = states[-1]
    if last.event == "void":
        problems.append(f"the ledger says that release {release} never became visible.")
    elif last.event != "released":
        state = "spent without copies" if last.event == "spent" else "pending"
        problems.append(f"the ledger does not know release {release} as released: its entry is {state}.")
    recorded = {entry.certificate_digest for entry in states} - {None}
    if not recorded:
        problems.append(f"the ledger recorded no certificate for release {release}: none can be compared.")
    elif recorded != {sha256}:
        problems.append(f"{CERTIFICATE} is not the one the ledger recorded.")
    total = None if certificate.epsilon is None else certificate.epsilon.total
    unit = certificate.unit
    rows = None if unit is None or unit.together or certificate.bound in WHOLE_UNIT else unit.rows
    if last.epsilon != charge_unit({"epsilon": total}, rows)["epsilon"]:
        problems.append("the ledger recorded another ε than the certificate states.")
    return problems
