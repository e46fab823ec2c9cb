"""What is said of one protected column: formula, family, prior and what was declared of it. Public.

>>> Column("bonus ~ log(wage) + age", family="zero_lognormal").outcome
'bonus'
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from hedgerow.errors import SettingError
from hedgerow.models.base import Model
from hedgerow.models.prior import Prior
from hedgerow.tables.formula import split
from hedgerow.tables.values import Declared


@dataclass(frozen=True)
class Column:
    """How one of several protected columns is synthesized: from public columns and from those before it."""

    formula: str
    family: str | Model = "lognormal"
    _: KW_ONLY
    prior: Prior | None = None
    declared: Declared | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.formula, str):
            raise SettingError(
                f'formula must be text such as "x ~ z", or several columns by name, got {self.formula!r}.'
            )
        if self.declared is not None and not isinstance(self.declared, Declared):
            raise SettingError(
                f"declared must be Declared(type, …), got {type(self.declared).__name__}. Use "
                'Declared("integer", range_min=0).'
            )

    @property
    def outcome(self) -> str:
        """The protected column."""
        return split(self.formula)[0]


def read_columns(formula: Any, **own: Any) -> tuple[Column, ...]:
    """The columns that a formula, or a mapping from names to columns, stands for, in its order.

    `own` holds what was said of a single column (family, prior, declared).
    """
    if not isinstance(formula, Mapping):
        return (Column(formula, **own),)
    told = [name for name, value in own.items() if value is not None]
    if told:
        raise SettingError(f"{', '.join(told)}: with several columns each has its own. Say it in hr.Column.")
    if not formula:
        raise SettingError('No column is named. Give {"wage": hr.Column("wage ~ age"), …}.')
    for name, column in formula.items():
        if not isinstance(column, Column):
            raise SettingError(
                f"'{name}': give hr.Column(formula, family=…), got {type(column).__name__} {column!r}."
            )
        if column.outcome != name:
            raise SettingError(
                f"'{name}': its formula protects '{column.outcome}'. Name the column that the formula has "
                "on its left-hand side."
            )
    return tuple(formula.values())
