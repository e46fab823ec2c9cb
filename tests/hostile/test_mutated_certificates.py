"""Releases that somebody or something has changed: no change of any byte goes unnoticed."""

import json
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hostile.limits import within
from hostile.mutations import as_json, mutate_bytes, mutate_document, mutate_files
from hostile.releases import Made, make_releases

import hedgerow as hr
from hedgerow.errors import ReleaseError
from hedgerow.release.certificate import Certificate
from hedgerow.release.ledger import Ledger

WAYS = ("structure", "structure", "structure", "bytes", "text", "plan", "copy", "files", "rewritten")


@pytest.fixture(scope="module")
def releases(tmp_path_factory) -> list[Made]:
    return make_releases(tmp_path_factory.mktemp("releases"))


def mutate(public: Path, way: str, choose: random.Random, *, alone: bool) -> None:
    """Changes something in the public part of a release, or beside it."""
    certificate = public / "certificate.json"
    if way in ("structure", "rewritten"):
        document = json.loads(certificate.read_bytes())
        certificate.write_bytes(as_json(mutate_document(document, choose)))
    elif way == "files":
        mutate_files(public, choose, beside=not alone)
    else:
        copies = sorted(public.glob("synthetic-copy-*"))
        named = {"text": "certificate.md", "plan": "plan.yaml", "bytes": certificate.name}
        file = public / named[way] if way in named else choose.choice(copies)
        file.write_bytes(mutate_bytes(file.read_bytes(), choose))
    if way == "rewritten":  # by somebody who has hedgerow: the text is made anew to go with the figures
        try:
            written = Certificate.loads(certificate.read_bytes())
            text, figures = written.markdown().encode(), written.json().encode()
        except (ReleaseError, UnicodeEncodeError):
            return
        (public / "certificate.md").write_bytes(text)
        certificate.write_bytes(figures)


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Every path below a folder, with the bytes of plain files."""
    return {
        str(place.relative_to(folder)): place.read_bytes()
        if place.is_file() and not place.is_symlink()
        else None
        for place in folder.rglob("*")
    }


def problem(folder: Path, ledger: Path | None) -> str | None:
    """What is wrong with how a changed release is received; None if the change is told in so many words."""
    try:
        with within(10):
            if ledger is None:
                problems = hr.verify_release(folder).problems
            else:
                with Ledger.open(ledger) as book:
                    problems = hr.verify_release(folder, ledger=book).problems
    except ReleaseError as error:
        problems = (str(error),)
    except BaseException as error:
        return f"{type(error).__name__} {error}"
    if not problems:
        return "passes"
    odd = [message for message in problems if not message.isprintable() or len(message) > 1000]
    return f"message {odd[0][:300]!r}" if odd else None


def attack(releases: list[Made], folder: Path, count: int, seed: int) -> None:
    """Mutates whole folders, with the ledger and without, and public parts alone, each in turn."""
    choose, problems, tried = random.Random(seed), [], Counter()
    while sum(tried.values()) < count:
        made, way = choose.choice(releases), choose.choice(WAYS)
        # Who writes figures and text anew is found by what is kept elsewhere, not by the public part.
        alone = choose.random() < 0.5 and way != "rewritten"
        place = folder / "release"
        shutil.copytree(made.folder / "public" if alone else made.folder, place)
        public = place if alone else place / "public"
        before = snapshot(place)
        mutate(public, way, choose, alone=alone)
        if snapshot(place) != before:
            tried[way] += 1
            found = problem(place, made.ledger if not alone and choose.random() < 0.5 else None)
            if found:
                where = "public alone" if alone else "folder"
                changed = [
                    name for name, content in snapshot(place).items() if before.get(name, b"") != content
                ]
                problems.append(f"{made.name}, {way}, {where}: {changed}: {found}{difference(place, before)}")
        shutil.rmtree(place)
    print(f"{count} mutated releases {dict(tried)}, {len(problems)} problems")  # noqa: T201
    assert not problems, f"{len(problems)} of {count}:\n" + "\n".join(problems[:20])


def difference(place: Path, before: dict[str, bytes | None]) -> str:
    """Where the certificate's figures differ, if both can be read."""
    name = "certificate.json" if "certificate.json" in before else "public/certificate.json"
    try:
        old, new = json.loads(before[name] or b""), json.loads((place / name).read_bytes())
        return "".join(
            f"\n    {k}: {str(old.get(k))[:200]} → {str(new.get(k))[:200]}"
            for k in {**old, **new}
            if old.get(k) != new.get(k)
        )
    except (OSError, ValueError, AttributeError):
        return ""


def test_100_mutated_releases(releases, tmp_path):
    attack(releases, tmp_path, 100, seed=1)


@pytest.mark.slow
def test_3000_mutated_releases(releases, tmp_path):
    """3,000 releases with a changed certificate, text, plan, copy or folder: each is told, within 10 s."""
    attack(releases, tmp_path, 3000, seed=2)
