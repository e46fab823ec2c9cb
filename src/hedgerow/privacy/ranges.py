"""What the public is taken to know about each value: x_i lies in a range R_i (docs/maths.md, "Ranges").

A range object is public; the ends it gives for a record may not be. The ends of a `Radius` reveal x_i and
are never published. `Brackets` do not depend on x_i beyond the class it falls into. Of several protected
columns a `Box` says which ranges are known; the others are whole.

    >>> Box({"wage": Radius(0.5, 2), "bonus": Brackets([0, 100, 1000])}).of("wage")
    Radius(a=0.5, b=2, outside='error')
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from hedgerow.arrays import Mask, PerLink, PerRecord, RecordMask
from hedgerow.errors import RangeError, SettingError, format_value, is_real
from hedgerow.models.scored import Interval
from hedgerow.numerics.leaves import apply
from hedgerow.tables.table import Table

Outside = Literal["error", "public"]


class Range(ABC):
    """What the public knows of each value. Subclasses give the ends; `interval` checks them."""

    outside: Outside

    def __post_init__(self) -> None:
        if self.outside not in ("error", "public"):
            raise SettingError(f"outside must be 'error' or 'public', got {format_value(self.outside)}.")
        strange = [type(part).__name__ for _, part in self.parts().values() if not isinstance(part, Range)]
        if strange:
            raise SettingError(f"{type(self).__name__}: both parts must be ranges, got {strange[0]}.")

    def parts(self) -> "dict[str, tuple[str, Range]]":
        """The ranges inside this one by their place in a plan, with whose they are in words."""
        return {}

    @property
    def follows_outcome(self) -> bool:
        """Whether the ends are computed from the outcome itself, so that whoever knew them would know it."""
        return any(part.follows_outcome for _, part in self.parts().values())

    @property
    def columns(self) -> tuple[str, ...]:
        """Table columns the ends are read from; never the outcome."""
        return tuple(name for _, part in self.parts().values() for name in part.columns)

    @property
    def by_record(self) -> bool:
        """Whether bounds by record are given, which may be as confidential as the records."""
        return any(part.by_record for _, part in self.parts().values())

    @property
    def ends_public(self) -> bool:
        """Whether the settings and the public columns they name give everybody's ends, without any outcome.

        A column that is left out of the copies makes them the owner's own, which is for a fit to look at.
        """
        parts = [part.ends_public for _, part in self.parts().values()]
        return bool(parts) and all(parts) and not self.follows_outcome

    def of(self, outcome: str) -> "Range":
        """What is known of one protected column: this range, where it is not of several."""
        return self

    def restricts(self, outcome: str) -> bool:
        """Whether anything is known of a protected column."""
        return not isinstance(self.of(outcome), Everywhere)

    def lies(self) -> str:
        """Where a value is known to lie, as the end of a sentence: public settings, never a record's ends."""
        return f"in its range ({type(self).__name__})"

    def rule(self) -> str:
        """How a range with parts chooses between them, in words."""
        return ""

    def sentences(self, subject: str = "each outcome", place: str = "") -> Iterator[tuple[str, str]]:
        """What the public is taken to know, part by part: the part's place in a plan, and a sentence."""
        says = f": {self.rule()}" if self.parts() else f" is known to lie {self.lies()}"
        public = "; a value outside its range is taken to be public exactly, and is not protected"
        yield place, f"{subject}{says}{public if self.outside == 'public' else ''}"
        for name, (whose, part) in self.parts().items():
            yield from part.sentences(f"{subject}, for {whose}", f"{place}.{name}".lstrip("."))

    def describe(self) -> str:
        """The sentences in one line, for the guarantee."""
        return "; ".join(sentence for _, sentence in self.sentences())

    def of_rows(self, rows: RecordMask) -> "Range":
        """The same range for some of the rows: where bounds are given by record, those rows' bounds."""
        parts: Any = {name: part.of_rows(rows) for name, (_, part) in self.parts().items()}
        return replace(self, **parts) if parts else self  # type: ignore[type-var]  # parts are a dataclass's

    @abstractmethod
    def ends(self, values: PerRecord, table: Table) -> tuple[PerRecord, PerRecord]:
        """Lower and upper end for each record; NaN where the range has no place for it."""

    def interval(self, values: PerRecord, table: Table) -> Interval:
        """The range of each record, after checking that it holds the record's value.

        `outside="error"` refuses a range that misses a value. `outside="public"` is the paper's
        definition: such a record is taken as public, enters at power 1 and costs nothing.
        """
        lower, upper = self.ends(values, table)
        inside = (lower <= values) & (values <= upper)
        if inside.all():
            return Interval(
                lower.astype(np.float64, copy=False), upper.astype(np.float64, copy=False), inside
            )
        zeros = int((~inside & (values == 0)).sum())
        if zeros and self.follows_outcome:
            raise RangeError(
                f"{type(self).__name__}: {zeros} of {len(values)} values are zero, for which a radius is "
                "empty. Use Brackets or Bounds, or Where(...) if a public column says which these are."
            )
        missed = int((~inside).sum())
        if missed and self.outside == "error":
            raise RangeError(
                f"{type(self).__name__}: {missed} of {len(values)} values lie outside their own range. Widen "
                "it, or say outside='public' if the public already knows those values exactly."
            )
        return Interval(
            np.where(inside, lower, -np.inf).astype(np.float64),
            np.where(inside, upper, np.inf).astype(np.float64),
            inside,
        )


@dataclass(frozen=True)
class Everywhere(Range):
    """Nothing is known: the whole line."""

    outside: Outside = "error"
    ends_public: ClassVar[bool] = True

    def lies(self) -> str:
        return "anywhere: nothing is known"

    def ends(self, values: PerLink, table: Table) -> tuple[PerRecord, PerRecord]:
        shape = (len(values),)
        return np.broadcast_to(-np.inf, shape), np.broadcast_to(np.inf, shape)

    def interval(self, values: PerLink, table: Table) -> Interval:
        return Interval(*self.ends(values, table), np.ones(len(values), dtype=np.bool_))


@dataclass(frozen=True)
class Radius(Range):
    """[a·x_i, b·x_i], the paper's radius. For a negative x_i the ends swap."""

    a: float
    b: float
    outside: Outside = "error"
    follows_outcome: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        here = f"Radius({format_value(self.a)}, {format_value(self.b)})"
        if not (is_real(self.a) and is_real(self.b)) or np.isnan(self.a) or np.isnan(self.b):
            raise SettingError(f"{here}: a and b must be numbers, for instance Radius(0.4, 1.8).")
        if not 0 <= self.a < 1:
            raise SettingError(
                f"{here}: a must be at least 0 and below 1, so that each value lies in its own range. "
                "Use for instance Radius(0.9, 1.8), or Bounds(lower, upper)."
            )
        if self.b <= 1:
            raise SettingError(
                f"{here}: b must be above 1, so that each value lies in its own range. "
                "Use for instance Radius(0.4, 1.1), or Bounds(lower, upper)."
            )

    def lies(self) -> str:
        return f"between {self.a:g} and {self.b:g} times itself (a range that is never published by record)"

    def ends(self, values: PerRecord, table: Table) -> tuple[PerRecord, PerRecord]:
        def end(factor: float, other: float) -> PerRecord:
            """For a negative value the ends swap, and for zero a radius is empty."""
            return apply(lambda x: np.where(x == 0, np.nan, np.where(x < 0, other, factor) * x), values)

        return end(self.a, self.b), end(self.b, self.a)


@dataclass(frozen=True)
class Brackets(Range):
    """Classes with public edges, such as income classes: each value's class is known.

    Edges e_0 < e_1 < … ; a value equal to an edge belongs to the class above it, the last edge to the
    last class. Where a public `column` of the table holds each record's class, as its lower edge, classes are
    read from it and not from the outcome.
    """

    edges: Sequence[float]
    outside: Outside = "error"
    column: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    @property
    def by_record(self) -> bool:
        return self.column is not None

    @property
    def ends_public(self) -> bool:
        return self.column is not None

    def __post_init__(self) -> None:
        super().__post_init__()
        edges = np.asarray(self.edges, dtype=np.float64)
        if edges.ndim != 1 or len(edges) < 2 or np.isnan(edges).any() or not (np.diff(edges) > 0).all():
            raise SettingError(
                "Brackets: edges must be at least two increasing numbers, for instance "
                "Brackets([0, 1000, 5000, float('inf')])."
            )
        object.__setattr__(self, "edges", tuple(float(edge) for edge in edges))

    def lies(self) -> str:
        said = "" if self.column is None else f", which the column '{self.column}' says"
        return f"in its class{said}, the classes having the edges {', '.join(f'{e:g}' for e in self.edges)}"

    def ends(self, values: PerRecord, table: Table) -> tuple[PerRecord, PerRecord]:
        edges = np.asarray(self.edges)
        if self.column is None:
            valid = (edges[0] <= values) & (values <= edges[-1])
        else:
            values = table.bounds(self.column)
            valid = np.isin(values, edges[:-1])
            if not valid.all():
                raise RangeError(
                    f"Brackets: the column '{self.column}' holds the lower edge of no class in "
                    f"{int((~valid).sum())} of {len(values)} rows. Put each record's class there as its "
                    "lower edge, or use Bounds with two columns."
                )
        at = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
        # The upper edge belongs to the next class, which matters where it has a probability of its own.
        # Below zero a normal number, not the next one: compiled code takes subnormal numbers for zero.
        below = np.where(edges == 0, -np.finfo(np.float64).tiny, np.nextafter(edges, -np.inf))
        upper = np.where(at == len(edges) - 2, edges[at + 1], below[at + 1])
        return np.where(valid, edges[at], np.nan), np.where(valid, upper, np.nan)


@dataclass(frozen=True, eq=False, repr=False)
class Bounds(Range):
    """Lower and upper bounds by record: column names, arrays or single numbers; ±inf allowed."""

    lower: str | float | Sequence[float] | PerRecord
    upper: str | float | Sequence[float] | PerRecord
    outside: Outside = "error"

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(end for end in (self.lower, self.upper) if isinstance(end, str))

    @property
    def by_record(self) -> bool:
        return not (is_real(self.lower) and is_real(self.upper))

    @property
    def ends_public(self) -> bool:
        return all(isinstance(end, str) or is_real(end) for end in (self.lower, self.upper))

    def lies(self) -> str:
        def side(end: Any) -> str:
            if isinstance(end, str):
                return f"its value of the column '{end}'"
            return f"{float(end):g}" if is_real(end) else "a bound given by record"

        return f"between {side(self.lower)} and {side(self.upper)}"

    def of_rows(self, rows: RecordMask) -> Range:
        def chosen(end: Any) -> Any:
            return np.asarray(end)[rows] if np.shape(end) == rows.shape else end

        return replace(self, lower=chosen(self.lower), upper=chosen(self.upper))

    def ends(self, values: PerRecord, table: Table) -> tuple[PerRecord, PerRecord]:
        low, high = self._end(self.lower, "lower", table), self._end(self.upper, "upper", table)
        crossed = int((low > high).sum())
        if crossed:
            raise RangeError(
                f"Bounds: lower is above upper in {crossed} of {table.rows} rows. Swap or correct them."
            )
        flat = int(((low == high) & (low == values)).sum())
        if flat:
            raise RangeError(
                f"Bounds: lower equals upper in {flat} of {table.rows} rows, so those values would be public "
                "exactly. Give them a range of some width."
            )
        return low, high

    def _end(self, given: str | float | Sequence[float] | PerRecord, side: str, table: Table) -> PerRecord:
        if isinstance(given, str):
            return table.bounds(given)
        try:
            end = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise SettingError(f"Bounds: {side} must be a column name, a number or numbers.") from None
        if end.ndim > 1 or (end.ndim == 1 and len(end) != table.rows):
            raise SettingError(
                f"Bounds: {side} has shape {end.shape} but the table has {table.rows} rows; "
                "give one number, or one per row."
            )
        if np.isnan(end).any():
            raise SettingError(f"Bounds: {side} has missing values. Use -inf or inf where nothing is known.")
        return np.broadcast_to(end, (table.rows,)).astype(np.float64)

    def __repr__(self) -> str:
        def shown(end: object) -> str:
            return repr(end) if isinstance(end, str) or is_real(end) else "<by record, confidential>"

        return f"Bounds({shown(self.lower)}, {shown(self.upper)}, outside={self.outside!r})"


@dataclass(frozen=True)
class Where(Range):
    """One range where a boolean column is true, another elsewhere. The column must be public.

    >>> Where("manager", then=Radius(0.2, 5.0), otherwise=Radius(0.5, 2.0)).rule()
    "one range where the public column 'manager' is true, another elsewhere"

    What holds for values outside is said here, for both parts.
    """

    column: str
    then: Range
    otherwise: Range
    outside: Outside = "error"

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, *super().columns)

    def rule(self) -> str:
        return f"one range where the public column '{self.column}' is true, another elsewhere"

    def parts(self) -> dict[str, tuple[str, Range]]:
        return {"then": ("those", self.then), "otherwise": ("the other records", self.otherwise)}

    def ends(self, values: PerRecord, table: Table) -> tuple[PerRecord, PerRecord]:
        return _split(table.flags(self.column), self.then, self.otherwise, values, table)


@dataclass(frozen=True)
class Tail(Range):
    """Another, usually wider range for the largest values: the share `top` of the records.

    >>> Tail(0.05, wider=Radius(0.2, 5.0), otherwise=Radius(0.5, 2.0)).rule()
    'a wider range for the largest 5 % of the records, by a public rule'

    Ties with the smallest of them are included. Which records are caught depends on the outcome and is
    confidential; the rule itself is public. What holds for values outside is said here, for both parts.
    """

    top: float
    wider: Range
    otherwise: Range
    outside: Outside = "error"
    threshold: float | None = field(default=None, init=False, repr=False, compare=False)  # of all records
    follows_outcome: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not is_real(self.top) or not 0 < self.top < 1:
            raise SettingError(
                f"Tail: top must lie strictly between 0 and 1, got {format_value(self.top)}; try 0.05."
            )
        super().__post_init__()

    def rule(self) -> str:
        return f"a wider range for the largest {100 * self.top:g} % of the records, by a public rule"

    def parts(self) -> dict[str, tuple[str, Range]]:
        return {"wider": ("those", self.wider), "otherwise": ("the other records", self.otherwise)}

    def ends(self, values: PerRecord, table: Table) -> tuple[PerRecord, PerRecord]:
        threshold = self.threshold
        if threshold is None:
            rank = self.rank(len(values))
            threshold = np.partition(values, rank)[rank]
        return _split(values >= threshold, self.wider, self.otherwise, values, table)

    def rank(self, records: int) -> int:
        """How many of so many values lie below the smallest of the largest."""
        # Guard the product against 0.05 * 20 = 1.0000000000000002, which would catch one record too many.
        return records - max(1, int(np.ceil(self.top * records - 1e-9)))

    def settled(self, threshold: float) -> "Tail":
        """The range for some of the records, where the smallest of all largest values is the threshold."""
        other = replace(self)
        object.__setattr__(other, "threshold", threshold)
        return other

    def of_rows(self, rows: RecordMask) -> Range:
        part = super().of_rows(rows)
        return part if self.threshold is None or not isinstance(part, Tail) else part.settled(self.threshold)


def _split(
    flags: Mask, then: Range, otherwise: Range, values: PerRecord, table: Table
) -> tuple[PerRecord, PerRecord]:
    (low, high), (other_low, other_high) = (part.ends(values, table) for part in (then, otherwise))
    return np.where(flags, low, other_low), np.where(flags, high, other_high)


@dataclass(frozen=True)
class Box(Range):
    """Ranges of several protected columns, known all at once; of a column without a range nothing is known.

    >>> known = Box({"wage": Radius(0.5, 2.0), "age": Brackets([18, 40, 67])})
    >>> known.of("hours")
    Everywhere(outside='error')

    What is known of a record is that each of its values lies in its range. A range may read public columns,
    never a protected one. No part may be outside="public": one value would make a whole row public.
    """

    ranges: Mapping[str, Range]
    outside: Outside = "error"

    def __post_init__(self) -> None:
        if not isinstance(self.ranges, Mapping) or not self.ranges:
            raise SettingError(
                'Box: give a range for at least one column by its name, such as {"wage": Radius(0.5, 2)}.'
            )
        for name, part in self.ranges.items():
            if not isinstance(part, Range) or isinstance(part, Box):
                raise SettingError(
                    f"Box: '{name}' must have a range of one column, got {type(part).__name__}."
                )
        if "public" in (self.outside, *(part.outside for part in self.ranges.values())):
            raise SettingError(
                "Box: outside='public' would make a whole row public for one of its values. Widen the range, "
                "or give that column none."
            )
        object.__setattr__(self, "ranges", MappingProxyType(dict(self.ranges)))
        super().__post_init__()

    def parts(self) -> dict[str, tuple[str, Range]]:
        return {f"ranges.{name}": (f"'{name}'", part) for name, part in self.ranges.items()}

    def of(self, outcome: str) -> Range:
        return self.ranges.get(outcome, Everywhere())

    def lies(self) -> str:
        return "in the ranges of its protected columns, all at once"

    def sentences(self, subject: str = "", place: str = "") -> Iterator[tuple[str, str]]:
        yield place, f"each record is known to lie {self.lies()}"
        for name, part in self.ranges.items():
            yield from part.sentences(f"each value of '{name}'", f"{place}.ranges.{name}".lstrip("."))

    def of_rows(self, rows: RecordMask) -> Range:
        return replace(self, ranges={name: part.of_rows(rows) for name, part in self.ranges.items()})

    def ends(self, values: PerLink, table: Table) -> tuple[PerRecord, PerRecord]:
        raise SettingError("Box: the ends are those of each column. Use of(column).")

    def __hash__(self) -> int:
        return hash(tuple(self.ranges.items()))
