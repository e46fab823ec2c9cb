"""The certificate: what may be claimed about a release, for machines (JSON) and for people (Markdown).

Both are written from one value, and its statements are those of `Guarantee`, so that nothing is said twice in
different words. A certificate holds public facts only: targets and settings, never what a fit achieved. Its
dataclasses are its form as well: `Certificate.loads` refuses whatever their annotations do not allow.
`certificate.md` is a function of `certificate.json`; `verify` writes it again to see whether it was changed.

Version 2 added who answers for the release, the unit of privacy and the plain paragraph. Documents of version
1 are read and written as they were.
"""

import hashlib
import json
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version as version_of
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, TypeAdapter

from hedgerow import __version__
from hedgerow.errors import FieldError, ReleaseError, show_controls
from hedgerow.numerics.rounding import format_rounded_up
from hedgerow.privacy.claims import TUNED, list_protected
from hedgerow.privacy.claims import combining as combinings
from hedgerow.privacy.claims.caveats import find_id
from hedgerow.privacy.claims.units import write_unit
from hedgerow.release.document import AnyText, Digest, Finite, Flag, Text, Whole, describe, read

if TYPE_CHECKING:  # a receiver verifies without the engine
    from hedgerow.privacy.guarantee import Guarantee

VERSION = 2
NAMES = {1: "copy-{}.{}", 2: "synthetic-copy-{}.{}"}  # of a copy by version: its number, its format's ending
LARGEST = 1 << 24  # bytes; 10,000 columns need half a megabyte
# The words of the format, not of the engine, which a receiver need not have.
Bound = Literal[
    "lipschitz", "oscillation", "exact", "renyi", "strict", "censored", "statistics", "gaussian"
]  # fmt: skip
Above0 = Annotated[Finite, Field(gt=0)]
From1 = Annotated[Whole, Field(ge=1)]
MOST_ROWS = 10**9  # of one person or firm
From0 = Annotated[Whole, Field(ge=0)]
# What an owner may say about a release, in the order in which it is shown.
ABOUT = {
    "purpose": "purpose", "curator": "curator", "contact": "contact", "region": "region",
    "retention": "kept for", "decided_by": "ε decided by", "epsilon_reason": "reason for this ε",
}  # fmt: skip
AboutKey = Literal["purpose", "curator", "contact", "region", "retention", "decided_by", "epsilon_reason"]

# What CommonMark takes for HTML, a link in angle brackets, or the address of a link: a backslash goes there.
_TAG_OR_LINK = re.compile(r"<(?=/?[A-Za-z][\w-]*[\s/>]|[!?]|[A-Za-z][\w+.-]*:|[^\s<>]*@)|(?<=\])[(\[:]")


class _Strict:
    """Keys that a part of a certificate does not know are refused."""

    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Copy(_Strict):
    """A synthetic table on disk."""

    file: Annotated[AnyText, Field(pattern=r"^((synthetic-)?copy-[0-9]+\.[a-z]+)$")]
    format: Text
    sha256: Digest
    bytes: Annotated[Whole, Field(ge=0)]
    changes: tuple[Text, ...]  # what its format could not hold as it was


@dataclass(frozen=True)
class Price(_Strict):
    """A figure for one copy, and for all of them together; none for one where copies do not simply add up."""

    per_copy: Above0 | None
    total: Above0


@dataclass(frozen=True)
class Combining(_Strict):
    """The rule that combines the copies, and why."""

    rule: combinings.Name
    why: Text


@dataclass(frozen=True)
class Assumption(_Strict):
    """Something the statement takes as public knowledge, and why."""

    what: Text
    because: Text


@dataclass(frozen=True)
class Unit(_Strict):
    """Whose data one row is: how many rows a person or firm has at most, by the owner's word.

    `together`: the claim is for all rows of a unit, those with the same in `column` or as many as `rows`.
    """

    rows: Annotated[Whole, Field(ge=1, le=MOST_ROWS)] | None  # None: nothing was declared
    column: AnyText | None  # which names them, if it is released or rows are priced together
    covered: Text  # what that means for the claim
    together: Flag = False


@dataclass(frozen=True, repr=False)
class Certificate(_Strict):
    """What a release claims and what it consists of. Public."""

    release: Annotated[AnyText, Field(pattern="^([0-9a-f]{16})$")]
    date: Annotated[AnyText, Field(pattern="^([0-9]{4}-[0-9]{2}-[0-9]{2})$")]
    standard: Text
    neighbour: Text
    bound: Bound
    family: Text
    epsilon: Price | None  # None: nothing is claimed
    delta: Price | None
    confidence: Above0 | None  # none where the claim does not rest on draws
    draws: From1
    independent_draws: Flag
    claim: Text
    processing: tuple[Text, ...]  # what was done to the released draws afterwards, at no price
    not_covered: tuple[Text, ...]
    left_open: Text | None
    # A name; of several columns their names in a list, in the order in which they were synthesized.
    protected: Text | Annotated[tuple[Text, ...], Field(min_length=2)]
    unchanged: tuple[AnyText, ...]  # a Parquet column may have any name
    used_not_released: tuple[AnyText, ...]
    records: From1
    assumed_public: tuple[Assumption, ...]
    seeded: Flag
    software: dict[str, Text]
    plan: Digest  # of plan.yaml
    copies: Annotated[tuple[Copy, ...], Field(min_length=1)]
    # Since version 2, which has all of them:
    plain: Text | None = None
    unit: Unit | None = None
    about: dict[AboutKey, Text] | None = None
    earlier_releases: From0 | None = None  # of the same data; None: the owner does not say
    looks: From0 | None = None  # at the data beforehand; None: they were not counted
    statistics: Digest | None = None  # of statistics.json; None: there is none
    page: Digest | None = None  # of index.html; None: made before releases had one
    combining: Combining | None = None  # by which rule; None: made before certificates said so
    receive: dict[Literal["receive.py", "receive.R"], Digest] | None = None  # None: there are none
    codes: dict[AnyText, tuple[Whole | Finite | Text, ...]] | None = None  # no amounts
    version: Literal[1, 2] = 2

    def __repr__(self) -> str:
        target = "no target" if self.epsilon is None else f"ε = {self.epsilon.total:g}"
        return f"Certificate({self.release}, {self.standard}, {target})"

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 by file, of those beside the copies that the certificate knows."""
        others = [("plan.yaml", self.plan), ("statistics.json", self.statistics), ("index.html", self.page)]
        others += (self.receive or {}).items()
        return {name: sha256 for name, sha256 in others if sha256 is not None}

    @property
    def fitting_rule(self) -> Combining:
        """The rule that its other fields call for."""
        found = combinings.choose_rule(
            standard=self.standard, bound=self.bound, processing=self.processing, copies=len(self.copies)
        )
        return Combining(*found)

    @classmethod
    def build(
        cls,
        guarantee: "Guarantee",
        *,
        assumed: Sequence[Assumption],
        also_not_covered: Sequence[str],
        records: int,
        rows_per_unit: int | None = None,
        unit: str | None = None,
        about: Mapping[str, str] = MappingProxyType({}),
        **files: Any,
    ) -> Self:
        """The certificate of a guarantee, and of the `files` that it knows nothing of.

        At most `rows_per_unit` rows are one person's or firm's, which column `unit` names.
        """
        together = guarantee.unit is not None
        terms, stated, shares = guarantee.terms, guarantee.statement, guarantee.shares()
        parts = {name: version_of(name) for name in ("numpy", "scipy", "numba", "pyarrow")}
        made = cls(
            standard=guarantee.standard,
            neighbour=guarantee.neighbour,
            bound=terms.bound.name,  # type: ignore[arg-type]  # checked when the certificate is made
            family=guarantee.family,
            epsilon=None if shares is None else Price(*shares.epsilon),
            delta=None if shares is None or shares.delta is None else Price(*shares.delta),
            confidence=stated.confidence if terms.bound.over_draws else None,
            draws=stated.draws,
            independent_draws=stated.independent,
            claim=guarantee.claim(),
            processing=guarantee.processing(),
            not_covered=(*guarantee.caveats(), *also_not_covered),
            left_open=guarantee.left_open or None,
            protected=guarantee.protected,
            assumed_public=tuple(assumed),
            seeded=guarantee.seeded,
            software={"hedgerow": __version__, "python": platform.python_version(), **parts},
            records=records,
            plain=guarantee.plain(records=records),
            unit=Unit(
                rows_per_unit,
                unit,
                write_unit(
                    terms.bound.name,
                    guarantee.figures(),
                    rows=rows_per_unit,
                    column=unit,
                    several=not isinstance(guarantee.protected, str),
                    together=together,
                ),
                together,
            ),
            codes=dict(guarantee.codes) or None,
            about=dict(about),  # type: ignore[arg-type]  # as is its bound
            **files,
        )
        return replace(made, combining=made.fitting_rule)

    @property
    def several(self) -> bool:
        """Whether more than one column is protected."""
        return not isinstance(self.protected, str)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """The protected columns."""
        return (self.protected,) if isinstance(self.protected, str) else self.protected

    def json(self) -> str:
        """For machines."""
        document = asdict(self)
        document = {"certificate": document.pop("version"), **document}
        left_out: tuple[str, ...] = _SINCE_2 if self.version == 1 else ()
        # As it was written before there were looks, statistics, pages, rules, codes, units priced as a whole.
        since = ("looks", "statistics", "page", "combining", "receive", "codes")
        left_out += tuple(name for name in since if getattr(self, name) is None)
        if self.unit is not None and not self.unit.together:
            del document["unit"]["together"]
        document = {name: value for name, value in document.items() if name not in left_out}
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def loads(cls, content: bytes) -> Self:
        """A certificate from its JSON; anything that its schema does not allow is refused."""
        if len(content) > LARGEST:
            raise ReleaseError(f"certificate.json has more than {LARGEST} bytes, which no release has.")
        try:
            document = json.loads(content, object_pairs_hook=_once, parse_constant=_refuse)
            if not isinstance(document, dict) or "certificate" not in document:
                raise FieldError("the document has no key certificate with the version of its form.")
            version = document.pop("certificate")
            if version not in (1, VERSION) or isinstance(version, bool):
                raise ReleaseError(
                    f"certificate.json has another version than 1 or {VERSION}. Update hedgerow."
                )
            for name in ("version", *_SINCE_2):
                if (name in document) != (version >= 2 and name != "version"):
                    there = "is not known" if name in document else "is missing"
                    raise FieldError(f"{name} {there} in version {version}.")
            return read(TypeAdapter(cls), document | {"version": version})
        except FieldError as error:
            raise ReleaseError(f"certificate.json is not a certificate: {error}") from None
        except (ValueError, RecursionError):
            raise ReleaseError("certificate.json is not JSON. It was changed, or cut short.") from None

    @property
    def digest(self) -> str:
        """SHA-256 of certificate.json, which the ledger keeps."""
        return hashlib.sha256(self.json().encode()).hexdigest()

    def markdown(self) -> str:
        """For people. Names of columns may hold anything: none of it is taken for Markdown."""
        lines = [f"# Certificate of release {self.release}", "", f"Made on {self.date}.", "", "## Claim", ""]
        lines += [] if self.plain is None else [_escape(self.plain), "", "Formally:", ""]
        lines += [_escape(self.claim), "", "| | |", "| --- | --- |"]
        cells = [(name, _escape(value).replace("|", "\\|")) for name, value in self.facts()]
        lines += [f"| {name} | {cell} |" for name, cell in cells]
        if self.unit is not None:
            lines += ["", "## Who is protected", "", _escape(self.unit.covered)]
        if self.about:
            told = _list(self.describe_about())
            lines += ["", "## About this release", "", "In the owner's words.", "", *told]
        if self.processing:
            lines += ["", "## Processing after the draw", "", *_list(self.processing)]
        if self.combining is not None:
            lines += ["", "## Combining copies", "", _escape(self.combining.why)]
        if self.left_open is not None:
            lines += ["", "## What the range leaves open", "", _escape(self.left_open)]
        lines += ["", "## Not covered", "", *_list(self.describe_caveats())]
        lines += ["", "## Assumed to be public", ""]
        for item in self.assumed_public:
            because = item.because if self.version == 1 else item.because.replace("<", "&lt;")
            lines.append(f"- {_escape(item.what)}. *Why:* {_escape_headings(because)}")
        lines += ["", "## Files", "", "| file | bytes | sha256 |", "| --- | --- | --- |"]
        lines += [f"| {copy.file} | {copy.bytes} | {copy.sha256} |" for copy in self.copies]
        lines += [f"| {name} | | {sha256} |" for name, sha256 in self.digests.items()]
        changes = _list(f"{copy.file}: {change}" for copy in self.copies for change in copy.changes)
        lines += ["", *changes] if changes else []
        made_with = ", ".join(f"{name} {number}" for name, number in self.software.items())
        return "\n".join([*lines, "", f"Made with {_escape(made_with)}.", ""])

    def describe_caveats(self) -> list[str]:
        """What is not covered, with the ids that lead to proofs: hedgerow verify --why ID."""
        ids = [None if self.version == 1 else find_id(text) for text in self.not_covered]
        return [f"{text} [{id}]" if id else text for id, text in zip(ids, self.not_covered, strict=True)]

    @property
    def owner_says(self) -> Mapping[str, str]:
        """What the owner says of the release, by the keys of `about`; nothing where there is no such part."""
        return self.about or {}  # type: ignore[return-value]  # keys are words too

    def describe_about(self) -> list[str]:
        """What the owner says of the release, a line each."""
        said = self.owner_says
        return [f"{words}: {said[name]}" for name, words in ABOUT.items() if name in said]

    def facts(self) -> list[tuple[str, str]]:
        """The figures and columns, one by one."""
        facts = [
            ("standard", self.standard),
            ("compared with the table in which", self.neighbour),
            ("bound", self.bound),
            ("model", self.family),
            ("copies", str(len(self.copies))),
            ("records", str(self.records)),
        ]
        for name, price, digits in (("target ε", self.epsilon, 6), ("δ", self.delta, 2)):
            if price is not None:
                if price.per_copy is not None:
                    facts += [(f"{name} for one copy", format_rounded_up(price.per_copy, digits))]
                facts += [(f"{name} in total", format_rounded_up(price.total, digits))]
            elif name == "target ε":
                facts += [(name, "none: nothing is claimed")]
        if self.delta is not None and self.confidence is not None:
            kind = "independent" if self.independent_draws else "effective"
            facts += [("confidence", f"{self.confidence:.0%} over {self.draws} {kind} draws")]
        facts += [(f"protected column{'s' * self.several}", list_protected(self.protected))]
        facts += [("columns passed through unchanged", ", ".join(self.unchanged) or "none")]
        if self.used_not_released:
            facts += [("columns used but not released", ", ".join(self.used_not_released))]
        if self.looks is not None:
            facts += [("looks at the data that were counted", str(self.looks))]
        if self.version == 1:
            return [
                *facts,
                ("randomness", "a seed set by hand" if self.seeded else "from the operating system"),
            ]
        tuned = "nothing" if self.epsilon is None else TUNED[self.bound]
        earlier = "not said" if self.earlier_releases is None else str(self.earlier_releases)
        source = "a seed set by hand" if self.seeded else "entropy of the operating system"
        facts += [("tuned on the data", tuned), ("earlier releases of the data", earlier)]
        return [*facts, ("randomness", f"{source}, expanded by SHAKE-256")]


_SINCE_2 = ("plain", "unit", "about", "earlier_releases")


def _escape(text: str) -> str:
    """Text of our own, with names in it: no tags, links or line breaks of theirs."""
    return show_controls(_TAG_OR_LINK.sub(r"\\\g<0>", text.replace("\\", "\\\\")))


def _escape_headings(text: str) -> str:
    """The owner's own words, which may have links and several lines, but no heading.

    Nor HTML, since version 2.
    """
    # Anchored at each line break, so that a text of nothing but line breaks is read once.
    return "\n".join(map(show_controls, re.sub(r"(?<=\n)([^\S\n]*)(?=[#=-])", r"\1\\", text).split("\n")))


def _list(texts: Iterable[str]) -> list[str]:
    return [f"- {_escape(text)}" for text in texts]


def schema() -> dict[str, Any]:
    """The JSON Schema of a certificate."""
    body = describe(TypeAdapter(Certificate), "hedgerow certificate")
    del body["properties"]["version"]
    body["properties"] = {"certificate": {"const": VERSION}} | body["properties"]
    return body | {"required": ["certificate", *body["required"], *_SINCE_2]}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise FieldError("a key occurs twice.")
    return dict(pairs)


def _refuse(word: str) -> None:
    raise FieldError(f"{word} is no number of a certificate.")
