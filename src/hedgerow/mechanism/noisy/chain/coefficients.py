"""Coefficients of columns themselves in place of their residuals: the same line, in terms that analysts use.

A column's line is in public predictors and in residuals of earlier columns about released lines. Where these
are amounts that every record has, and their own public predictors are among the column's, residuals can be
multiplied out: what is left are coefficients of public predictors and of the earlier columns' responses
(log wage for the lognormal), as in a regression on both.
"""

from collections.abc import Sequence

import numpy as np

from hedgerow.arrays import Array
from hedgerow.mechanism.noisy.chain.handed import HandedAmounts
from hedgerow.mechanism.noisy.chain.release import ReleasedColumn


def convert_lines(columns: Sequence[ReleasedColumn], place: int, lines: Array) -> tuple[Array, list[str]]:
    """Coefficients (draws, p + m) by the names of what they belong to; of residuals where it takes them."""
    task = columns[place].task
    read = [columns[j] for j in task.reads]
    entries = [f"residual of {name}" for one in read for name in one.handed.names]
    spelled = [_spell(columns, j) for j in task.reads]
    if any(one is None or not set(one) <= {*task.columns, *_responses(columns, place)} for one in spelled):
        return lines, [*task.columns, *entries]
    names = [*task.columns, *(one.task.outcome for one in read)]
    width = len(task.columns)
    turned = np.zeros((width + len(read), len(names)))
    turned[:width, :width] = np.eye(width)
    for row, one in enumerate(spelled):
        for name, value in (one or {}).items():
            if name not in names:  # a column that was read by one that is read, but not itself
                return lines, [*task.columns, *entries]
            turned[width + row, names.index(name)] = value
    return lines @ turned, names


def _responses(columns: Sequence[ReleasedColumn], place: int) -> list[str]:
    return [columns[j].task.outcome for j in columns[place].task.reads]


def _spell(columns: Sequence[ReleasedColumn], place: int) -> dict[str, float] | None:
    """A column's residual as a line in public predictors and responses; None where it is none."""
    column, handed = columns[place], columns[place].handed
    if not isinstance(handed, HandedAmounts) or handed.kinds or column.task.partial:
        return None
    line = dict.fromkeys(column.task.columns, 0.0)
    for name, value in zip(column.task.columns, handed.line, strict=False):
        line[name] -= float(value) / handed.sigma
    for j, value in zip(column.task.reads, handed.line[len(column.task.columns) :], strict=True):
        one = _spell(columns, j)
        if one is None:
            return None
        for name, part in one.items():
            line[name] = line.get(name, 0.0) - float(value) / handed.sigma * part
    line[column.task.outcome] = line.get(column.task.outcome, 0.0) + 1 / handed.sigma
    return line
