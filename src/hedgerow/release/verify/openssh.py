"""Signatures by OpenSSH, with the key that an office already has.

    >>> signature = sign(b"certificate", "id_ed25519")
    >>> find_signer(b"certificate", signature, "allowed_signers")
    'office@example.org'

The work is that of `ssh-keygen -Y`; hedgerow never reads a private key. Signatures are made in the namespace
`hedgerow`, so that one made for another purpose does not pass. A file of signers has a line for each:
`office@example.org namespaces="hedgerow" ssh-ed25519 AAAA…`.

Formal guarantee: `find_signer` names somebody only if a key that the file lists for them, for this namespace
and at this time, signed these very bytes. Whether that file is right is for whoever keeps it.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from hedgerow.errors import FileError, ReleaseError, reason_of
from hedgerow.release.verify.files import show_name

NAMESPACE = "hedgerow"
_LARGEST = 1 << 20  # bytes of a file of signers


def sign(content: bytes, key: str | os.PathLike[str]) -> bytes:
    """The signature of these bytes by a private key, or by what an agent or a token has for a public one."""
    path = Path(os.path.abspath(key))  # noqa: PTH100 - never taken for an option, and free of no link
    if not path.is_file():
        raise FileError(f"{path.name}: no such key. Pass the file of a key that ssh-keygen made.")
    done = _run("sign", "-f", str(path), "-n", NAMESPACE, given=content)
    if done.returncode or not done.stdout.startswith(b"-----BEGIN SSH SIGNATURE-----"):
        raise ReleaseError(f"ssh-keygen did not sign with {path.name}: {_last_line(done.stderr)}")
    return done.stdout


def find_signer(content: bytes, signature: bytes, signers: str | os.PathLike[str]) -> str | None:
    """Who of the allowed signers signed these bytes; None if nobody did."""
    try:
        with Path(signers).open("rb") as file:
            allowed = file.read(_LARGEST + 1)
    except OSError as error:
        raise FileError(f"{Path(signers).name}: cannot be read ({reason_of(error)}).") from None
    if len(allowed) > _LARGEST:
        raise FileError(f"{Path(signers).name}: more than {_LARGEST} bytes. Is this a file of signers?")
    # Copied, so that both questions below are about the bytes that were read.
    with tempfile.TemporaryDirectory(prefix="hedgerow-") as folder:
        files = {"-f": Path(folder) / "signers", "-s": Path(folder) / "signature"}
        files["-f"].write_bytes(allowed)
        files["-s"].write_bytes(signature)
        about = [str(part) for pair in files.items() for part in pair]
        listed = _run("find-principals", *about)
        names = listed.stdout.decode(errors="replace").replace(",", "\n").splitlines()
        for name in names if listed.returncode == 0 else ():
            asked = ("verify", *about, "-I", name, "-n", NAMESPACE)
            if name.strip() and not name.startswith("!") and _run(*asked, given=content).returncode == 0:
                return show_name(name.strip())
    return None


def _run(action: str, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise ReleaseError(
            "ssh-keygen is not installed, which makes and checks signatures. Install OpenSSH 8.2 or later "
            "(openssh-client)."
        )
    # No shell, and each argument that is not ours follows the option it belongs to.
    command = [program, "-Y", action, *arguments]
    return subprocess.run(command, input=given, capture_output=True)  # noqa: S603 - as said above


def _last_line(said: bytes) -> str:
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    return show_name(lines[-1].strip())[:200] if lines else "no reason was given."
