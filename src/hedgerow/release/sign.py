"""Who made a release: its certificate is signed, and through its digests every copy and the plan.

>>> sign_release("release", key="id_ed25519").public.name
'public'
>>> verify_release("release", signers="allowed_signers").signer
'office@example.org'
"""

import os
from pathlib import Path

from hedgerow.errors import FileError, ReleaseError, reason_of
from hedgerow.release.folder import SIGNATURE, name_folder
from hedgerow.release.verify import Verified, verify_release
from hedgerow.release.verify.openssh import sign


def sign_release(folder: str | os.PathLike[str], *, key: str | os.PathLike[str]) -> Verified:
    """Signs a release that verifies, writes the signature into its public part, and returns it as verified.

    `key` is the file of a private key, or of a public one whose private half an agent or a token holds.
    """
    verified = verify_release(folder)
    if verified.problems:
        problems = " ".join(verified.problems)
        raise ReleaseError(
            f"{name_folder(Path(folder))} is not signed: it does not match its certificate. {problems}"
        )
    if verified.signature is not None:
        raise FileError(f"{SIGNATURE}: exists already. Remove it first, if another key is to sign.")
    # The text of a certificate that verifies is canonical, so that these are the bytes of its file.
    signature = sign(verified.certificate.json().encode(), key)
    try:
        with (verified.public / SIGNATURE).open("xb") as file:
            file.write(signature)
    except OSError as error:
        raise FileError(f"{SIGNATURE}: cannot be written ({reason_of(error)}).") from None
    return verified
