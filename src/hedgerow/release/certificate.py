"""The certificate: what may be claimed about a release, for machines (JSON) and for people (Markdown).

Both are written from one value, and its statements are those of `Guarantee`, so that nothing is said twice in
different words. A certificate holds public facts only: targets and settings, never what a fit achieved.
`certificate.md` is a function of `certificate.json`; `verify` writes it again to see whether it was changed.
"""

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any, Self

from hedgerow import __version__
from hedgerow.errors import FieldError, ReleaseError
from hedgerow.privacy.bounds import BOUNDS
from hedgerow.privacy.guarantee import Guarantee
from hedgerow.privacy.wording import Assumption, rounded_up
from hedgerow.release.fields import (
    Choice,
    Either,
    Flag,
    Key,
    Named,
    Nothing,
    Number,
    Record,
    Several,
    Text,
    Whole,
)

VERSION = 1
LARGEST = 1 << 24  # bytes; 10,000 columns need half a megabyte
_DIGEST = Text("[0-9a-f]{64}")
_TEXTS = Several(Text())
_COLUMNS = Several(Text(blank=True))  # a Parquet column may have any name


def _keys(**of: Any) -> dict[str, Key]:
    return {name: Key(field, "it belongs to every certificate.", required=True) for name, field in of.items()}


FIELDS = Record(
    _keys(
        certificate=Whole(least=1),
        release=Text("[0-9a-f]{16}"),
        date=Text("[0-9]{4}-[0-9]{2}-[0-9]{2}"),
        standard=Text(),
        neighbour=Text(),
        bound=Choice(tuple(bound.name for bound in BOUNDS)),
        family=Text(),
        epsilon=Either((Record(_keys(per_copy=Number(above=0), total=Number(above=0))), Nothing())),
        delta=Either((Record(_keys(per_copy=Number(above=0), total=Number(above=0))), Nothing())),
        confidence=Either((Number(above=0), Nothing())),
        draws=Whole(least=1),
        independent_draws=Flag(),
        claim=Text(),
        processing=_TEXTS,
        not_covered=_TEXTS,
        left_open=Either((Text(), Nothing())),
        protected=Text(),
        unchanged=_COLUMNS,
        used_not_released=_COLUMNS,
        records=Whole(least=1),
        assumed_public=Several(Record(_keys(what=Text(), because=Text()))),
        seeded=Flag(),
        software=Named(Text()),
        plan=_DIGEST,
        copies=Several(
            Record(
                _keys(
                    file=Text(r"copy-[0-9]+\.[a-z]+"), format=Text(), sha256=_DIGEST, bytes=Whole(),
                    changes=_TEXTS,
                )
            ),
            least=1,
        ),
    )
)  # fmt: skip


@dataclass(frozen=True)
class Copy:
    """A synthetic table on disk."""

    file: str
    format: str
    sha256: str
    bytes: int
    changes: tuple[str, ...]  # what its format could not hold as it was


@dataclass(frozen=True)
class Price:
    """A figure for one copy, and for all of them together."""

    per_copy: float
    total: float


@dataclass(frozen=True)
class Certificate:
    """What a release claims and what it consists of. Public."""

    release: str
    date: str
    standard: str
    neighbour: str
    bound: str
    family: str
    epsilon: Price | None  # None: nothing is claimed
    delta: Price | None
    confidence: float | None  # none where the claim does not rest on draws
    draws: int
    independent_draws: bool
    claim: str
    processing: tuple[str, ...]  # what was done to the released draws afterwards, at no price
    not_covered: tuple[str, ...]
    left_open: str | None
    protected: str
    unchanged: tuple[str, ...]
    used_not_released: tuple[str, ...]
    records: int
    assumed_public: tuple[Assumption, ...]
    seeded: bool
    software: dict[str, str]
    plan: str  # digest of plan.yaml
    copies: tuple[Copy, ...]

    @classmethod
    def build(
        cls,
        guarantee: Guarantee,
        *,
        release: str,
        date: str,
        records: int,
        unchanged: Sequence[str],
        used_not_released: Sequence[str],
        assumed: Sequence[Assumption],
        also_not_covered: Sequence[str],
        plan: str,
        copies: Sequence[Copy],
    ) -> Self:
        """The certificate of a guarantee and the files it speaks of."""
        terms, stated = guarantee.terms, guarantee.statement
        claimed, m = None if guarantee.uncertified else terms.epsilon, terms.copies
        return cls(
            release=release,
            date=date,
            standard=guarantee.standard,
            neighbour=guarantee.neighbour,
            bound=terms.bound.name,
            family=guarantee.family,
            epsilon=None if claimed is None else Price(claimed / m, claimed),
            delta=None
            if claimed is None or not terms.bound.over_draws
            else Price(stated.delta, m * stated.delta),
            confidence=stated.confidence if terms.bound.over_draws else None,
            draws=stated.draws,
            independent_draws=stated.independent,
            claim=guarantee.claim(),
            processing=guarantee.processing(),
            not_covered=(*guarantee.caveats(), *also_not_covered),
            left_open=guarantee.left_open or None,
            protected=guarantee.protected,
            unchanged=tuple(unchanged),
            used_not_released=tuple(used_not_released),
            records=records,
            assumed_public=tuple(assumed),
            seeded=guarantee.seeded,
            software=_software(),
            plan=plan,
            copies=tuple(copies),
        )

    def json(self) -> str:
        """For machines."""
        return json.dumps({"certificate": VERSION, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def loads(cls, content: bytes) -> Self:
        """A certificate from its JSON; anything that its schema does not allow is refused."""
        if len(content) > LARGEST:
            raise ReleaseError(f"certificate.json has more than {LARGEST} bytes, which no release has.")
        try:
            found = FIELDS.read(json.loads(content, object_pairs_hook=_once, parse_constant=_refuse), "")
        except FieldError as error:
            raise ReleaseError(f"certificate.json is not a certificate: {error}") from None
        except (ValueError, RecursionError):
            raise ReleaseError("certificate.json is not JSON. It was changed, or cut short.") from None
        if found.pop("certificate") != VERSION:
            raise ReleaseError(f"certificate.json has another version than {VERSION}. Update hedgerow.")
        for name in ("epsilon", "delta"):
            found[name] = None if found[name] is None else Price(**found[name])
        found["assumed_public"] = tuple(Assumption(**item) for item in found["assumed_public"])
        found["copies"] = tuple(Copy(**item) for item in found["copies"])
        return cls(**found)

    def markdown(self) -> str:
        """For people."""
        lines = [f"# Certificate of release {self.release}", "", f"Made on {self.date}.", "", "## Claim", ""]
        lines += [self.claim, "", "| | |", "| --- | --- |"]
        lines += [f"| {name} | {_cell(value)} |" for name, value in self.facts()]
        if self.processing:
            lines += ["", "## Processing after the draw", "", *(f"- {text}" for text in self.processing)]
        if self.left_open is not None:
            lines += ["", "## What the range leaves open", "", self.left_open]
        lines += ["", "## Not covered", "", *(f"- {text}" for text in self.not_covered)]
        lines += ["", "## Assumed to be public", ""]
        lines += [f"- {item.what}. *Why:* {item.because}" for item in self.assumed_public]
        lines += ["", "## Files", "", "| file | bytes | sha256 |", "| --- | --- | --- |"]
        lines += [f"| {copy.file} | {copy.bytes} | {copy.sha256} |" for copy in self.copies]
        lines += [f"| plan.yaml | | {self.plan} |"]
        changes = [f"- {copy.file}: {change}" for copy in self.copies for change in copy.changes]
        lines += ["", *changes] if changes else []
        made_with = ", ".join(f"{name} {number}" for name, number in self.software.items())
        return "\n".join([*lines, "", f"Made with {made_with}.", ""])

    def facts(self) -> list[tuple[str, str]]:
        """The figures and columns, one by one."""
        found = [
            ("standard", self.standard),
            ("compared with the table in which", self.neighbour),
            ("bound", self.bound),
            ("model", self.family),
            ("copies", str(len(self.copies))),
            ("records", str(self.records)),
        ]
        if self.epsilon is None:
            found += [("target ε", "none: nothing is claimed")]
        else:
            found += [
                ("target ε for one copy", rounded_up(self.epsilon.per_copy, 6)),
                ("target ε in total", rounded_up(self.epsilon.total, 6)),
            ]
        if self.delta is not None:
            kind = "independent" if self.independent_draws else "effective"
            found += [
                ("δ for one copy", rounded_up(self.delta.per_copy, 2)),
                ("δ in total", rounded_up(self.delta.total, 2)),
                ("confidence", f"{self.confidence:.0%} over {self.draws} {kind} draws"),
            ]
        found += [
            ("protected column", self.protected),
            ("columns passed through unchanged", ", ".join(self.unchanged) or "none"),
        ]
        if self.used_not_released:
            found += [("columns used but not released", ", ".join(self.used_not_released))]
        return [*found, ("randomness", "a seed set by hand" if self.seeded else "from the operating system")]


def schema() -> dict[str, Any]:
    """The JSON Schema of a certificate."""
    body = FIELDS.schema()
    body["properties"]["certificate"] = {"const": VERSION}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hedgerow certificate",
        **body,
    }


def _software() -> dict[str, str]:
    parts = {name: version(name) for name in ("numpy", "scipy", "numba", "pyarrow")}
    return {"hedgerow": __version__, "python": platform.python_version(), **parts}


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FieldError("a key occurs twice.")
    return found


def _refuse(word: str) -> None:
    raise FieldError(f"{word} is no number of a certificate.")
