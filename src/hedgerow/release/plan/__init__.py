"""A plan: everything a release is told before it sees the data, in one file that can be read and signed.

    >>> plan = Plan(formula="payroll ~ employees", epsilon=5.7, data="payroll.csv")
    >>> Plan.loads(plan.text()) == plan
    True
    >>> plan.relation
    'withheld'

A plan is a frozen value. It is written as YAML (`Plan.text`), read back (`Plan.load`), and turned into the
flags of a command line and back (`hedgerow.release.plan.flags`); all three go through one description of its
keys (`hedgerow.release.plan.parts`), from which the JSON Schema comes as well.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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
from hedgerow.release import text
from hedgerow.release.document import read
from hedgerow.release.plan.parts import (
    NO_TARGET,
    PLAN,
    STANDARDS,
    VERSION,
    WEIGHTS,
    Outputs,
    Read,
    build,
    put_reasons,
    take_reasons,
    write_changes,
    write_part,
)

__all__ = ["Outputs", "Plan", "Read"]

# What a synthesizer is told. The other fields of a plan are about files.
SETTINGS = (
    "formula", "family", "prior", "standard", "weights", "bound", "epsilon", "copies", "draws", "known",
    "sampling", "debias",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to release, under which standard, at what price. `epsilon=None` claims nothing."""

    formula: str
    epsilon: float | None
    family: str | Family = "lognormal"
    prior: Prior | None = None
    standard: Standard = field(default_factory=ADP)
    weights: Weights | None = None  # linear unless given; None where the standard brings its own
    bound: str | None = None  # lipschitz unless given; None where the standard brings its own
    copies: int = 1
    draws: int = 1000
    known: str = "exact"
    sampling: str = "independent"
    debias: bool = False

    data: str | None = None
    read: Read = field(default_factory=Read)
    missing: str = "refuse"
    reasons: Mapping[str, str | None] = field(default_factory=dict)  # place of a range: why it is public
    dataset: str | None = None
    ledger: str | None = None
    outputs: Outputs = field(default_factory=Outputs)
    seed: int | None = None

    def __post_init__(self) -> None:
        write_part(
            self.standard, "a standard", STANDARDS
        )  # refuses what is none, before it is asked anything
        given = [name for name in ("bound", "weights") if getattr(self, name) is not None]
        if not isinstance(self.standard, Bounded):
            for name, default in (("weights", LinearWeights()), ("bound", "lipschitz")):
                object.__setattr__(self, name, getattr(self, name) if name in given else default)
        elif given:
            label = self.standard.label
            raise FieldError(f"{label} has its own bound and weights; leave out {', '.join(given)}.")
        for name in ("data", "ledger"):
            path = getattr(self, name)
            object.__setattr__(self, name, None if path is None else os.fspath(path))
        reasons = {"": None, **self.reasons} if self.ranged else {}
        object.__setattr__(self, "reasons", MappingProxyType(reasons))
        self.mapping()  # a plan that exists can be written

    @property
    def ranged(self) -> bool:
        """Whether the standard assumes that the public knows a range."""
        return "range" in write_part(self.standard, "a standard", STANDARDS)

    @property
    def because(self) -> str | None:
        """Why the public knows the range; None: no reason was given."""
        return self.reasons.get("")

    def settings(self) -> dict[str, Any]:
        """The keywords of the plan's synthesizer, its seed apart; what is None is left to its default."""
        given = {name: getattr(self, name) for name in SETTINGS}
        return {name: value for name, value in given.items() if value is not None}

    @classmethod
    def of(cls, given: Any) -> Self:
        """A plan from a mapping, as a file or a command line gives it."""
        keys = read(PLAN, given)
        if keys.version != VERSION:
            raise FieldError(
                f"version {keys.version} is not known; this hedgerow reads {VERSION}. Update hedgerow."
            )
        found = {name: build(getattr(keys, name)) for name in keys.model_fields_set - {"version"}}
        if found["epsilon"] == NO_TARGET:
            found["epsilon"] = None
        written = given.get("standard")
        if isinstance(written, Mapping) and "range" in written:
            found["reasons"] = take_reasons(written["range"])
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
        standard = write_part(self.standard, "a standard", STANDARDS)
        if "range" in standard:
            put_reasons(standard["range"], self.reasons)
        files = ("data", "missing", "dataset", "ledger", "seed")
        plain = {"version": VERSION} | self.settings() | {name: getattr(self, name) for name in files}
        plain |= {
            "epsilon": NO_TARGET if self.epsilon is None else self.epsilon,
            "family": _write_family(self.family),
            "standard": standard,
            "weights": None if self.weights is None else write_part(self.weights, "weights", WEIGHTS),
            "prior": None if self.prior is None else write_changes(self.prior),
            "read": write_changes(self.read) or None,
            "outputs": write_changes(self.outputs) or None,
        }
        keys = read(PLAN, {name: value for name, value in plain.items() if value is not None})
        return keys.model_dump(exclude_unset=True)

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
        written = self.mapping()["standard"]
        if "range" not in written or isinstance(self.standard.range, Everywhere):
            # Where nothing is known the range standards compare with x_i withheld: no second account for it.
            return "withheld"
        weight = " public_weight=one" if written.get("public_weight") == "one" else ""
        return f"{written['kind']} {_range_line(written['range'])}{weight}"


def _write_family(value: str | Family) -> Any:
    """A family as a file holds it: its name, or a mapping with what was declared."""
    if not isinstance(value, Family):
        return value
    if value != Family(value.name, **value.settings()):
        raise FieldError(
            "family: a plan holds a family's name and public settings; give its prior as the plan's own, and "
            "leave the sampler's settings as they are."
        )
    return {"kind": value.name, **value.settings()} if value.settings() else value.name


def _range_line(written: Mapping[str, Any]) -> str:
    """A range in one line: two ranges have the same line only if they are the same."""
    names = ("kind", "outside", "because")
    parts = [
        _range_line(v) if isinstance(v, Mapping) else repr(v) for k, v in written.items() if k not in names
    ]
    parts += ["outside=public"] if written["outside"] == "public" else []
    return f"{written['kind']}({', '.join(parts)})"
