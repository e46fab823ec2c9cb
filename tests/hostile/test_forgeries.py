"""Certificates that contradict themselves, written by somebody who has hedgerow and nothing else.

The forger changes figures, renders `certificate.md` anew with the package, mends digests, and hands out the
public part alone: no ledger, no signature, no confidential files. What is still wrong must be found.
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hostile.limits import within
from hostile.releases import Made, make_releases

import hedgerow as hr
from hedgerow.errors import ReleaseError
from hedgerow.release.certificate import Certificate
from hedgerow.release.ledger import Ledger

Document = dict[str, Any]


@pytest.fixture(scope="module")
def releases(tmp_path_factory) -> dict[str, Made]:
    return {made.name: made for made in make_releases(tmp_path_factory.mktemp("releases"))}


def scale(key: str, factor: float) -> Callable[[Document, Path], None]:
    def change(document: Document, public: Path) -> None:
        document[key] = {name: value * factor for name, value in document[key].items()}

    return change


def put(*path: Any, to: Any) -> Callable[[Document, Path], None]:
    """Sets the value at a path; `to` may be a function of what is there."""

    def change(document: Document, public: Path) -> None:
        holder: Any = document
        for step in path[:-1]:
            holder = holder[step]
        holder[path[-1]] = to(holder[path[-1]]) if callable(to) else to

    return change


def plan(**changes: Any) -> Callable[[Document, Path], None]:
    """Another plan than the one that was run, with its digest in the certificate."""

    def change(document: Document, public: Path) -> None:
        written = yaml.safe_load((public / "plan.yaml").read_text()) | changes
        content = hr.Plan.loads(yaml.safe_dump(written)).text().encode()
        (public / "plan.yaml").write_bytes(content)
        document["plan"] = hashlib.sha256(content).hexdigest()

    return change


def drop_a_copy(document: Document, public: Path) -> None:
    (public / document["copies"].pop()["file"]).unlink()


def double_a_copy(document: Document, public: Path) -> None:
    document["copies"][1] = document["copies"][0]
    (public / "synthetic-copy-2.csv").unlink()


def rename_a_copy(document: Document, public: Path) -> None:
    (public / "synthetic-copy-2.csv").rename(public / "synthetic-copy-7.csv")
    document["copies"][1]["file"] = "synthetic-copy-7.csv"


def lengthen_a_copy(document: Document, public: Path) -> None:
    """Adds a row: digest and size are mended, the number of records is not."""
    file = public / "synthetic-copy-1.csv"
    content = file.read_bytes()
    content += content.splitlines(keepends=True)[-1]
    file.write_bytes(content)
    document["copies"][0] |= {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}


FORGERIES: dict[str, tuple[str, Callable[[Document, Path], None]]] = {
    "ε per copy above the total": ("adp", put("epsilon", "per_copy", to=100.0)),
    "ε per copy too small for the total": ("adp", put("epsilon", "per_copy", to=1.0)),
    "another ε than the claim's": ("adp", scale("epsilon", 0.1)),
    "a claim with another ε": ("adp", put("claim", to=lambda text: text.replace("30", "3"))),
    "a claim with a smaller δ": ("adp", put("claim", to=lambda text: text.replace("0.026", "0.001"))),
    "a stronger claim": ("adp", put("claim", to="Each copy is 30-differentially private.")),
    "δ per copy above the total": ("adp", put("delta", "per_copy", to=0.5)),
    "a smaller δ": ("adp", scale("delta", 1e-3)),
    "no δ": ("adp", put("delta", to=None)),
    "a δ where there is none": ("strict", put("delta", to={"per_copy": 0.1, "total": 0.2})),
    "more draws": ("adp", put("draws", to=20_000)),
    "a higher confidence": ("adp", put("confidence", to=0.999)),
    "a confidence above one": ("adp", put("confidence", to=1.5)),
    "no confidence": ("adp", put("confidence", to=None)),
    "draws that depend": ("adp", put("independent_draws", to=False)),
    "no ε, but a claim": ("adp", put("epsilon", to=None)),
    "no ε and no δ, but a claim": ("strict", put("epsilon", to=None)),
    "ε without a claim": ("unclaimed", put("epsilon", to={"per_copy": 1.0, "total": 1.0})),
    "a claim without ε": ("unclaimed", put("claim", to="Each copy is 1-differentially private.")),
    "another bound": ("adp", put("bound", to="exact")),
    "a bound of another standard": ("adp", put("bound", to="strict")),
    "strict by a bound over draws": ("strict", put("bound", to="lipschitz")),
    "another standard": ("adp", put("standard", to="Strict")),
    "an unknown standard": ("adp", put("standard", to="Stricter")),
    "the neighbour of another standard": ("truncated", put("neighbour", to="one record is removed")),
    "another family": ("adp", put("family", to="normal")),
    "more records": ("adp", put("records", to=12_000)),
    "fewer records, Parquet": ("truncated", put("records", to=12)),
    "fewer records, Stata": ("averaged", put("records", to=12)),
    "fewer records, SPSS": ("seeded", put("records", to=12)),
    "fewer records, Arrow": ("smooth", put("records", to=12)),
    "a copy with a row more": ("adp", lengthen_a_copy),
    "more bytes": ("adp", put("copies", 0, "bytes", to=lambda size: size + 1)),
    "another format": ("adp", put("copies", 0, "format", to="parquet")),
    "a copy left out": ("adp", drop_a_copy),
    "a copy twice": ("adp", double_a_copy),
    "a gap in the copies": ("adp", rename_a_copy),
    "the protected column passed through": ("adp", put("unchanged", to=["z", "x"])),
    "another protected column": ("adp", put("protected", to="z")),
    "a column released and not": ("adp", put("used_not_released", to=["z"])),
    "a plan with another ε": ("adp", plan(epsilon=6)),
    "a plan without a target": ("adp", plan(epsilon="no-target")),
    "a plan for another column": ("adp", plan(formula="z ~ x")),
    "a plan with another number of copies": ("adp", plan(copies=1)),
    "a plan with another family": ("adp", plan(family="normal")),
    "a plan with another bound": ("adp", plan(bound="oscillation")),
    "a plan with fewer draws": ("adp", plan(draws=100)),
    "a plan that drops a released column": ("adp", plan(outputs={"drop": ["z"]})),
}


@pytest.fixture
def found(tmp_path) -> Callable[..., bool]:
    """Whether verification finds something wrong with a folder, in time and in words."""

    def look(folder: Path, **given: Any) -> bool:
        try:
            with within(10):
                return hr.verify_release(folder, **given).problems != ()
        except ReleaseError:
            return True

    return look


def forge(made: Made, public: Path, change: Callable[[Document, Path], None]) -> None:
    shutil.copytree(made.folder / "public", public)
    document = json.loads((public / "certificate.json").read_bytes())
    # Its page would say what was claimed before; a forger leaves it out, as releases had none for a while.
    del document["page"]
    (public / "index.html").unlink()
    change(document, public)
    content = (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()
    (public / "certificate.json").write_bytes(content)
    try:
        certificate = Certificate.loads(content)
    except ReleaseError:
        return
    (public / "certificate.md").write_text(certificate.markdown())


@pytest.mark.parametrize("name", FORGERIES)
def test_a_contradiction_is_found(releases, found, tmp_path, name):
    release, change = FORGERIES[name]
    forge(releases[release], tmp_path / "public", change)
    assert found(tmp_path / "public")


def test_what_is_only_rendered_anew_is_sound(releases, found, tmp_path):
    """The forger's tools alone leave nothing to be found, so that each forgery is found for what it says."""
    for name, made in releases.items():
        forge(made, tmp_path / name, lambda document, public: None)
        assert not found(tmp_path / name)
    forge(releases["adp"], tmp_path / "planned", plan())
    assert not found(tmp_path / "planned")


def test_a_release_inside_another_is_no_release(releases, found, tmp_path):
    """A forged folder named public inside the one that is handed over."""
    public = tmp_path / "public"
    shutil.copytree(releases["adp"].folder / "public", public)
    (public / "synthetic-copy-1.csv").write_text("x,z\n1,1\n")
    shutil.copytree(releases["adp"].folder / "public", public / "public")
    assert found(public)


@pytest.mark.parametrize("state", ["pending", "spent"])
def test_the_ledger_tells_a_forgery_whatever_the_state(releases, found, tmp_path, state):
    """Copies and certificate written anew under the name of an entry that was never confirmed."""
    made, folder = releases["adp"], tmp_path / "public"
    forge(made, folder, lambda document, public: document.update(date="2001-01-01"))
    release = json.loads((folder / "certificate.json").read_bytes())["release"]
    with Ledger.open(made.ledger) as ledger:
        entry = next(each for each in ledger.entries() if each.release == release)
    with Ledger.open(tmp_path / "ledger.sqlite") as ledger:
        kept = ("fingerprint", "relation", "epsilon", "copies", "plan", "dataset", "release")
        ledger.reserve(**{name: getattr(entry, name) for name in kept})
        if state == "spent":
            ledger.settle(release, "spent", note="nobody knows")
        assert found(folder, ledger=ledger)
