"""The owner's report of a release or a fit: figures as JSON, and the page of them. Confidential.

    >>> import hedgerow as hr
    >>> synth = hr.Synthesizer("x ~ z", epsilon=6.0, seed=1).fit(hr.datasets.lognormal(n=100, seed=1))
    >>> hr.write_report(synth, "report.html")  # doctest: +SKIP

A release keeps `confidential/report.json` and `confidential/report.html`, the page of it. What is run later
is put beside them (`audit.json`, `attack.json`, `compare.json`: what these commands print with --json), and
`rewrite` makes the page again with it.
"""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hedgerow.errors import FileError, ReleaseError, SettingError, reason_of
from hedgerow.release.certificate import ABOUT, LARGEST, Certificate
from hedgerow.release.folder import CONFIDENTIAL, Draft, write_private
from hedgerow.release.verify.files import read_file
from hedgerow.report.owner import VERSION, write_page

if TYPE_CHECKING:
    from hedgerow.release.ledger.store import Entry
    from hedgerow.release.prepare import Prepared
    from hedgerow.synthesizer import Synthesizer

FIGURES, PAGE = "report.json", "report.html"
LATER = ("audit", "attack", "compare", "utility")  # what may lie beside them, by the name of its JSON file


def write_report(synth: "Synthesizer", path: str | os.PathLike[str]) -> Path:
    """Writes the owner's report of a fitted synthesizer: one HTML file that opens offline; confidential.

    The file must not exist yet, lies outside every release, and is readable by its owner alone.
    """
    from hedgerow.report.figures import collect
    from hedgerow.synthesizer import Synthesizer

    if not isinstance(synth, Synthesizer):
        raise SettingError(
            f"A report is written of a fitted synthesizer, got {type(synth).__name__}. Pass the synthesizer "
            "itself; of a release on disk: hedgerow report FOLDER."
        )
    place = Path(path)
    write_private(place, write_page(collect(synth)).encode())
    return place


def write_pages(
    draft: Draft,
    prepared: "Prepared",
    synth: "Synthesizer",
    certificate: Certificate,
    *,
    looks: Sequence["Entry"],
    notes: Sequence[str],
) -> None:
    """Writes the figures of a release that is being made, and the page of them and of its other files."""
    from hedgerow.report.figures import collect

    about = certificate.owner_says
    document = collect(synth) | {
        "release": {
            "id": certificate.release,
            "date": certificate.date,
            "certificate": certificate.digest,
            "files": [copy.file for copy in certificate.copies],
            "about": [[words, about[key]] for key, words in ABOUT.items() if key in about],
            "unit": "" if certificate.unit is None else certificate.unit.covered,
            "assumed": [{"what": item.what, "because": item.because} for item in certificate.assumed_public],
            "caveats": certificate.describe_caveats(),
            "software": certificate.software,
            "looks": [{"time": entry.time, "look": entry.look, "who": entry.who} for entry in looks],
            "reading": list(prepared.source.notes),
            "notes": list(notes),
            "dropped_rows": prepared.dropped_rows,
        }
    }
    draft.write(CONFIDENTIAL, FIGURES, json.dumps(document, ensure_ascii=False) + "\n")
    draft.write(CONFIDENTIAL, PAGE, write_page(document, **_read_later(draft.path / CONFIDENTIAL)))


def rewrite(folder: Path, out: Path | None = None) -> Path:
    """Makes the page of a release again, with what was run since: in its confidential part, or elsewhere."""
    inside = folder / CONFIDENTIAL
    document = _read(inside / FIGURES)
    if document is None:
        raise ReleaseError(
            f"{CONFIDENTIAL}/{FIGURES} is not here, or was changed. Pass the whole release folder; a release "
            "made before reports were written has none."
        )
    if document.get("report") != VERSION:
        raise ReleaseError(
            f"{CONFIDENTIAL}/{FIGURES} has another version than {VERSION}. Use the hedgerow that made the "
            "release."
        )
    try:
        page = write_page(document, **_read_later(inside)).encode()
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        raise ReleaseError(
            f"{CONFIDENTIAL}: {FIGURES}, or one of {', '.join(f'{name}.json' for name in LATER)}, is not "
            "what hedgerow writes. Restore it, or remove what was added."
        ) from None
    if out is not None:
        write_private(out, page)
        return out
    return put_inside(inside, PAGE, page)


def put_inside(inside: Path, name: str, content: bytes) -> Path:
    """Writes a file of the confidential part of a release, in place of one that is there."""
    for later in LATER:  # put there by hand, perhaps readable by others
        with suppress(OSError):
            (inside / f"{later}.json").chmod(0o600)
    place, aside = inside / name, inside / f".{name}.partial"
    try:
        with suppress(FileNotFoundError):
            aside.unlink()
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        aside.replace(place)
    except OSError as error:
        raise FileError(f"{name}: cannot be written ({reason_of(error)}).") from None
    return place


def _read_later(inside: Path) -> dict[str, dict[str, Any] | None]:
    """What lies beside the figures, by its name; None where it does not."""
    return {name: _read(inside / f"{name}.json") for name in LATER}


def _read(path: Path) -> dict[str, Any] | None:
    """A JSON file that holds a mapping; None where there is none."""
    try:
        found = json.loads(read_file(path, LARGEST))
    except (OSError, ReleaseError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
