"""Any NumPyro program as a model: `Program(function)`.

The function is used as it is. It takes the design matrix and the outcome, `(X, y=None)`, or arguments of its
own that are filled from public columns, and has one observed site. hedgerow puts each record's power on that
site, samples with NUTS, scores and predicts from it. docs/programs.md tells the rest.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.errors import DataError, SettingError
from hedgerow.models.base import Domain
from hedgerow.models.programs.sampled import Sampled
from hedgerow.tables.design import Design

if TYPE_CHECKING:
    from hedgerow.models.programs.potential import Traced


@dataclass(frozen=True)
class Codes:
    """A public column as whole numbers from 0 up, its levels in sorted order."""

    column: str


@dataclass(frozen=True)
class Levels:
    """How many levels a public column has: the size of a plate of groups."""

    column: str


@dataclass(frozen=True)
class Program(Sampled):
    """A NumPyro program with one observed site.

    Parameters
    ----------
    function
        The program. Called with keyword arguments only; the outcome argument is None or an array.
    data
        Further arguments by name, from public columns of the table: a column name (text becomes codes,
        numbers stay numbers), `Codes(column)` or `Levels(column)`.
    response, matrix
        Names of the arguments that receive the outcome and the formula's design matrix. A program without
        the second does not get it. The matrix has a column of ones unless the formula says `0 +`.
    public
        True: the author vouches that the program holds nothing computed from the confidential data. Asked for
        where released draws are to be corrected (`debias`).
    sampler, chains, warmup, target_accept, thin, minimum_ess, allow_unhealthy
        How the chains run and what is asked of them: see `hedgerow.models.programs.sampled.Sampled`.

    Formal guarantees
    -----------------
    The outcome enters at the response site alone, raised to each record's power; a program that uses it
    elsewhere is refused. Draws are those of a Markov chain, so statements about them are approximate.
    """

    function: Callable[..., Any]
    data: Mapping[str, str | Codes | Levels] = field(default_factory=dict)
    response: str = "y"
    matrix: str = "X"
    name: str = "program"
    public: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise SettingError(f"Program: function must be callable, got {type(self.function).__name__}.")
        self._check_sampler()
        for name, source in self.data.items():
            if not isinstance(source, str | Codes | Levels):
                raise SettingError(
                    f"Program: data['{name}'] must be a column name, Codes(column) or Levels(column), got "
                    f"{type(source).__name__}. Bind constants with functools.partial."
                )
        object.__setattr__(self, "data", MappingProxyType(dict(self.data)))
        accepted, required = _argument_names(self.function)
        if self.response not in accepted:
            raise SettingError(
                f"Program: the function has no argument '{self.response}' for the outcome; its arguments are "
                f"{', '.join(sorted(accepted))}. Name it with response=."
            )
        unknown = [name for name in self.data if name not in accepted]
        if unknown or {self.response, self.matrix} & set(self.data):
            raise SettingError(
                f"Program: data names {', '.join(self.data)}; the function takes "
                f"{', '.join(sorted(accepted))}, of which '{self.response}' and "
                f"'{self.matrix}' are filled from the formula."
            )
        missing = sorted(required - {self.response, self.matrix, *self.data})
        if missing:
            raise SettingError(
                f"Program: no source for the arguments {', '.join(missing)}. Name a public column for each "
                "in data=, or bind constants with functools.partial."
            )

    @property
    def columns(self) -> tuple[str, ...]:
        sources = (source if isinstance(source, str) else source.column for source in self.data.values())
        return tuple(dict.fromkeys(sources))

    @property
    def domain(self) -> Domain:
        # A response without whole numbers may have atoms too, and nothing tells.
        return Domain(atoms=True)

    def check(self, design: Design) -> None:
        from hedgerow.models.programs import inspection

        traced = self._traced(design)
        if traced.discrete:
            broken = int((design.values != np.rint(design.values)).sum())
            if broken:
                raise DataError(
                    f"Column '{design.outcome}' has {broken} values in {design.records} rows that are not "
                    "whole numbers, but the program's response is a count or class. Round them, or change it."
                )
        inspection.check(traced, self._arrays(design), self._values(design), design.outcome)

    def _traced(self, design: Design) -> "Traced":
        try:
            from hedgerow.models.programs import inspection
        except ModuleNotFoundError as missing:
            raise SettingError(
                f"Program needs '{missing.name}', which is not installed. Install hedgerow[programs]."
            ) from None
        shapes = tuple((name, value.shape, str(value.dtype)) for name, value in self._arrays(design).items())
        fixed = tuple(
            (name, design.public[source.column].levels)
            for name, source in self.data.items()
            if isinstance(source, Levels)
        )
        return inspection.read(self.function, self.response, shapes, fixed, design.records)

    def _arrays(self, design: Design) -> dict[str, Any]:
        arrays: dict[str, Any] = {}
        if self.matrix in _argument_names(self.function)[0]:
            arrays[self.matrix] = design.matrix
        for name, source in self.data.items():
            if isinstance(source, Codes):
                arrays[name] = design.public[source.column].codes
            elif isinstance(source, str):
                column = design.public[source]
                arrays[name] = column.codes if column.numbers is None else column.numbers
        return arrays


def _argument_names(function: Callable[..., Any]) -> tuple[set[str], set[str]]:
    """Names a function accepts, and those it cannot do without."""
    import inspect

    parameters = inspect.signature(function).parameters.values()
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return {p.name for p in named}, {p.name for p in named if p.default is p.empty}
