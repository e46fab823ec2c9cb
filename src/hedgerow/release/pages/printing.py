"""A page as PDF, printed by a browser of this machine where one is found.

    pdf = print_page(write_board(certificate, found))  # None: no browser was found

The browser gets a profile of its own, in a folder that only its owner can read and that is removed: nothing
of a confidential page stays in a history or a cache. The page itself may load nothing (`report.html`).
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
BY_HAND = "Open it in a browser, and print it to PDF on A4, with background graphics."
_SECONDS = 60  # more than a busy machine takes
_FLAGS = (
    "--headless", "--disable-gpu", "--no-first-run", "--disable-extensions", "--disable-sync",
    "--disable-background-networking", "--disable-breakpad", "--no-pdf-header-footer",
)  # fmt: skip


def count_sheets(pdf: bytes) -> int:
    """How many sheets a PDF of `print_page` has."""
    return len(re.findall(rb"/Type\s*/Page\b", pdf))


def print_page(page: str) -> bytes | None:
    """The PDF of an HTML page; None where no browser is found, or it does not print."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        return None
    with tempfile.TemporaryDirectory(prefix="hedgerow-", ignore_cleanup_errors=True) as folder:
        source, made = Path(folder) / "page.html", Path(folder) / "page.pdf"
        source.write_text(page, encoding="utf-8")
        # Chromium refuses its sandbox to the superuser.
        flags = (*_FLAGS, "--no-sandbox") if getattr(os, "geteuid", lambda: 1)() == 0 else _FLAGS
        places = (f"--user-data-dir={folder}/profile", f"--print-to-pdf={made}", source.as_uri())
        try:
            subprocess.run([browser, *flags, *places], capture_output=True, timeout=_SECONDS, check=True)  # noqa: S603 - found by its name
            return made.read_bytes()
        except (OSError, subprocess.SubprocessError):
            return None
