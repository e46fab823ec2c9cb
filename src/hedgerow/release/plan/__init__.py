"""A plan: everything a release is told before it sees the data, in one file that can be read and signed.

A plan is a frozen value. It is written as YAML (`Plan.text`), read back (`Plan.load`), and turned into the
flags of a command line and back (`hedgerow.release.plan.flags`); all three go through one table of fields
(`hedgerow.release.plan.parts`), from which the JSON Schema comes as well.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from hedgerow.errors import FieldError, PlanError
from hedgerow.models.families.family import Family
from hedgerow.models.prior import Prior
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.standards import ADP, Standard
from hedgerow.privacy.strict import Bounded
from hedgerow.privacy.weights import LinearWeights, Weights
from hedgerow.release.plan import text
from hedgerow.release.plan.parts import (
    NO_TARGET,
    OUTPUTS,
    PLAN,
    PRIOR,
    RANGE,
    READ,
    STANDARD,
    VERSION,
    WEIGHTS,
    put_reasons,
    take_reasons,
)
from hedgerow.tables.files import MISSING_WORDS

__all__ = ["Outputs", "Plan", "Read"]

_NAMES = ("kind", "outside", "because")


@dataclass(frozen=True)
class Read:
    """How to read the data; see `hedgerow.tables.files.read`."""

    format: str | None = None
    encoding: str | None = None
    delimiter: str | None = None
    decimal: str = "."
    missing: tuple[str, ...] = MISSING_WORDS
    text: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outputs:
    """The files of the copies: their format (None: the input's), columns to leave out, formula cells."""

    format: str | None = None
    drop: tuple[str, ...] = ()
    formulas: str = "refuse"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to release, under which standard, at what price. `epsilon=None` claims nothing."""

    formula: str
    epsilon: float | None
    data: str | None = None
    read: Read = field(default_factory=Read)
    missing: str = "refuse"
    family: str | Family = "lognormal"
    prior: Prior | None = None
    standard: Standard = field(default_factory=ADP)
    reasons: Mapping[str, str | None] = field(default_factory=dict)  # place of a range: why it is public
    weights: Weights | None = None  # linear unless given; None where the standard brings its own
    bound: str | None = None  # lipschitz unless given; None where the standard brings its own
    copies: int = 1
    draws: int = 1000
    known: str = "exact"
    debias: bool = False
    sampling: str = "independent"
    dataset: str | None = None
    ledger: str | None = None
    outputs: Outputs = field(default_factory=Outputs)
    seed: int | None = None

    def __post_init__(self) -> None:
        STANDARD.write(self.standard)  # refuses what is no standard, before its range is asked for
        self._settle_weights()
        for name in ("data", "ledger"):
            given = getattr(self, name)
            object.__setattr__(self, name, None if given is None else os.fspath(given))
        object.__setattr__(
            self, "reasons", MappingProxyType({"": None, **self.reasons} if self.ranged else {})
        )
        PLAN.read(self.mapping(), "")  # a plan that exists can be written

    def _settle_weights(self) -> None:
        """Fill in weights and bound, or refuse them where the standard brings its own."""
        given = [name for name in ("bound", "weights") if getattr(self, name) is not None]
        if not isinstance(self.standard, Bounded):
            for name, default in (("weights", LinearWeights()), ("bound", "lipschitz")):
                object.__setattr__(self, name, getattr(self, name) if name in given else default)
        elif given:
            label = self.standard.label
            raise FieldError(f"{label} has its own bound and weights; leave out {', '.join(given)}.")

    @property
    def ranged(self) -> bool:
        """Whether the standard assumes that the public knows a range."""
        return not isinstance(self.standard.range, Everywhere) or "range" in STANDARD.write(self.standard)

    @property
    def because(self) -> str | None:
        """Why the public knows the range; None: no reason was given."""
        return self.reasons.get("")

    @classmethod
    def of(cls, given: Any) -> Self:
        """A plan from a mapping, as a file or a command line gives it."""
        found = PLAN.read(given, "")
        version = found.pop("version")
        if version != VERSION:
            raise FieldError(
                f"version {version} is not known; this hedgerow reads {VERSION}. Update hedgerow."
            )
        if found["epsilon"] == NO_TARGET:
            found["epsilon"] = None
        written = given.get("standard")
        if isinstance(written, Mapping) and "range" in written:
            found["reasons"] = take_reasons(written["range"])
            if "" not in found["reasons"]:
                raise FieldError(
                    "standard.range.because is missing: why does the public know this range? Give the reason "
                    "for the certificate, or null to have it say that none was given."
                )
        for name, make in (("read", Read), ("outputs", Outputs), ("prior", Prior)):
            if name in found:
                found[name] = make(**found[name])
        if isinstance(found.get("family"), Mapping):
            settings = dict(found["family"])
            found["family"] = Family(settings.pop("kind"), **settings)
        return cls(**found)

    @classmethod
    def loads(cls, content: str | bytes, name: str = "plan") -> Self:
        """A plan from the text of a plan file."""
        try:
            return cls.of(text.load(content, name))
        except FieldError as error:
            raise PlanError(f"{name}: {error}") from None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """A plan from a file; paths in it are relative to the file."""
        path = Path(path)
        try:
            with path.open("rb") as file:
                content = file.read(text.LARGEST + 1)
        except OSError as error:
            raise PlanError(f"{path.name}: cannot be read ({os.strerror(error.errno or 5)}).") from None
        plan = cls.loads(content, path.name)
        given = {name: getattr(plan, name) for name in ("data", "ledger")}
        here: dict[str, Any] = {k: str(path.parent / v) for k, v in given.items() if v is not None}
        return replace(plan, **here)

    def mapping(self) -> dict[str, Any]:
        """The plan as a file holds it; what has its default value is left out."""
        plain: dict[str, Any] = {"version": VERSION}
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name == "epsilon":
                plain["epsilon"] = NO_TARGET if value is None else PLAN.keys["epsilon"].of.write(value)
            elif entry.name == "standard":
                plain["standard"] = self._standard()
            elif entry.name == "weights":
                plain |= {"weights": WEIGHTS.write(value)} if value is not None else {}
            elif entry.name in ("read", "outputs"):
                changed = _changed(value, READ if entry.name == "read" else OUTPUTS)
                plain |= {entry.name: changed} if changed else {}
            elif entry.name == "family":
                plain["family"] = _family(value)
            elif entry.name == "prior":
                plain |= {"prior": _changed(value, PRIOR)} if value is not None else {}
            elif entry.name != "reasons" and value is not None:
                plain[entry.name] = value
        return {name: plain[name] for name in PLAN.keys if name in plain}

    def _standard(self) -> dict[str, Any]:
        written: dict[str, Any] = STANDARD.write(self.standard)
        if "range" in written:
            written["range"] = RANGE.write(self.standard.range)
            put_reasons(written["range"], self.reasons)
        return written

    def text(self) -> str:
        """The plan as YAML."""
        return text.dump(self.mapping())

    def public(self) -> "Plan":
        """The plan as it may be published: without paths, ledger and seed."""
        return replace(self, data=None, ledger=None, seed=None)

    @property
    def digest(self) -> str:
        """What the ledger knows the plan by: SHA-256 of its public text."""
        return hashlib.sha256(self.public().text().encode()).hexdigest()

    @property
    def relation(self) -> str:
        """The neighbour relation, by which the ledger keeps its accounts: standard and range, in one line.

        Two releases pay from one account only if their prices bound the same comparison.
        """
        written: dict[str, Any] = STANDARD.write(self.standard)
        if "range" not in written or isinstance(self.standard.range, Everywhere):
            # Where nothing is known the range standards compare with x_i withheld: no second account for it.
            return "withheld"
        weight = " public_weight=one" if written.get("public_weight") == "one" else ""
        return f"{written['kind']} {_brief(written['range'])}{weight}"


def _family(value: str | Family) -> Any:
    """A family as a file holds it: its name, or a mapping with what was declared."""
    if not isinstance(value, Family):
        return value
    if value != Family(value.name, **value.settings()):
        raise FieldError(
            "family: a plan holds a family's name and public settings; give its prior as the plan's own, and "
            "leave the sampler's settings as they are."
        )
    settings = {k: list(v) if isinstance(v, tuple) else v for k, v in value.settings().items()}
    return {"kind": value.name, **settings} if settings else value.name


def _brief(written: Mapping[str, Any]) -> str:
    """A range in one line: two ranges have the same line only if they are the same."""
    parts = [_brief(v) if isinstance(v, Mapping) else repr(v) for k, v in written.items() if k not in _NAMES]
    parts += ["outside=public"] if written["outside"] == "public" else []
    return f"{written['kind']}({', '.join(parts)})"


def _changed(value: Any, record: Any) -> dict[str, Any]:
    """The fields of a record that differ from their defaults."""
    default = type(value)()
    return {
        name: key.of.write(getattr(value, name))
        for name, key in record.keys.items()
        if getattr(value, name) != getattr(default, name)
    }
