"""What a receiver may conclude from the statistics of several columns: one section a column, in their order.

A section has the public part of its column's formula, the columns before it that it `reads` and its own ε.
The rule by which predictors became loadings follows from these and from what was released before, so that it
can be computed again. Scores are those of public predictors, then of the entries of columns read. `kinds` are
what a cell may be that has no amount, with a sum each in `sums`; `omits` are rows, from 0 up, that have no
cell of their own by public knowledge.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from hedgerow.arrays import Mask, Matrix
from hedgerow.errors import ReleaseError
from hedgerow.inference.bootstrap import check_level
from hedgerow.mechanism.noisy.chain.classes import ReleasedClasses, expect_amounts
from hedgerow.mechanism.noisy.chain.coefficients import convert_lines
from hedgerow.mechanism.noisy.chain.encode import build_public
from hedgerow.mechanism.noisy.chain.release import ReleasedColumn, finish_column, recipe_of
from hedgerow.mechanism.noisy.chain.rows import HeldChain
from hedgerow.mechanism.noisy.chain.tasks import Task
from hedgerow.mechanism.noisy.released import Counts, Released, Round, Spike, describe_part, read_part
from hedgerow.models.base import Parameters
from hedgerow.tables.table import Table

# What a section has of its task as it is; names stand for the places of columns read.
_OF_TASK = [entry.name for entry in fields(Task) if entry.name not in ("reads", "columns", "partial")]
_SPIKE = "at its spike"  # of older statistics


def describe_columns(
    columns: Sequence[ReleasedColumn], epsilon: float, records: int, omitted: Sequence[Iterable[int]]
) -> dict[str, Any]:
    """What was released, in plain numbers; `omitted` are rows that have no cell of their own, by column."""
    sections = []
    for column, rows in zip(columns, omitted, strict=True):
        task, released = column.task, column.released
        section: dict[str, Any] = {name: getattr(task, name) for name in _OF_TASK} | {
            "kinds": list(task.kinds)
        }
        section |= {"columns": list(task.columns), "reads": [columns[j].task.outcome for j in task.reads]}
        section["omits"] = [int(row) for row in rows]
        by_class = released if isinstance(released, ReleasedClasses) else column.kinds
        section["sums"] = [] if by_class is None else list(map(describe_part, by_class.sums))
        if isinstance(released, Released):
            section["rounds"] = list(map(describe_part, released.rounds))
            section["counts"] = None if released.counts is None else describe_part(released.counts)
        sections.append(section)
    return {"epsilon": epsilon, "records": records, "sections": sections}


def read_columns(document: Mapping[str, Any], copy: Any) -> list[ReleasedColumn]:
    """What was released, with the public predictors, which any copy has."""
    table = Table.of(copy)
    if table.rows != document["records"]:
        raise ReleaseError(
            f"The statistics are of {document['records']} records, the table has {table.rows}. Pass a copy "
            "of the same release."
        )
    sections = [_update(section) for section in document["sections"]]
    names = [section["outcome"] for section in sections]
    tasks, matrices, masks = list[Task](), list[Matrix](), list[Mask | None]()
    for section in sections:
        design = build_public(section["formula"], section["outcome"], table)
        if list(design.columns) != section["columns"]:
            raise ReleaseError(
                f"The statistics of '{section['outcome']}' have the columns {', '.join(section['columns'])}, "
                f"the table has {', '.join(design.columns)}. Pass a copy of the same release."
            )
        rows = ~np.isin(np.arange(table.rows), section["omits"])
        entries = {name: section[name] for name in _OF_TASK} | {"kinds": tuple(section["kinds"])}
        entries |= {"reads": tuple(names.index(name) for name in section["reads"])}
        tasks.append(Task(columns=design.columns, partial=not rows.all(), **entries))
        matrices.append(design.matrix if rows.all() else design.matrix[rows])
        masks.append(None if rows.all() else rows)
    chain, done = HeldChain.of(tasks, matrices, masks=masks), list[ReleasedColumn]()
    for section, task in zip(sections, tasks, strict=True):
        done.append(finish_column(task, *_read_released(chain, section)))
        chain = chain.after(done[-1].handed)
    return done


def _update(section: Mapping[str, Any]) -> Mapping[str, Any]:
    """A section in today's terms: there was one kind without an amount, and each entry had its own bound."""
    if "kinds" in section:
        return section
    spike = [] if section.get("spike") is None else [section["spike"]]
    kinds = [_SPIKE] if spike else []
    new = {"kinds": kinds, "elsewhere": False, "jointly": False, "omits": [], "sums": spike}
    return {**new, **section}


def _read_released(
    chain: HeldChain, section: Mapping[str, Any]
) -> tuple[Released | ReleasedClasses, ReleasedClasses | None]:
    """What was released of the chain's next column, and of the kinds of its cells."""
    task, recipe, kinds = chain.task, recipe_of(chain), None
    sums = tuple(read_part(Spike, one) for one in section["sums"])
    if task.classes:
        return ReleasedClasses(recipe, sums, task.classes == 2), None
    if sums:
        kinds = ReleasedClasses(recipe, sums, signed=False)
        recipe = recipe.with_presence(expect_amounts(kinds))
    counts = None if section["counts"] is None else read_part(Counts, section["counts"])
    return Released(recipe, tuple(read_part(Round, one) for one in section["rounds"]), counts), kinds


def summarize_columns(
    columns: Sequence[ReleasedColumn], drawn: Sequence[Parameters], level: float
) -> dict[str, Any]:
    """Medians and quantiles by column and parameter; residuals multiplied out where that can be done."""
    check_level(level)
    summary: dict[str, list[Any]] = {key: [] for key in ("column", "parameter", "estimate", "lower", "upper")}
    for place, (column, own) in enumerate(zip(columns, drawn, strict=True)):
        parts: list[tuple[Any, list[str]]] = []
        entries = [f"residual of {name}" for j in column.task.reads for name in columns[j].handed.names]
        labels = [f"kind {name}" for name in column.task.kinds]
        if isinstance(column.released, ReleasedClasses):
            first = 2 if column.released.signed else 1
            labels = [f"class {first + number}" for number in range(len(column.released.sums))]
        else:
            lines, names = convert_lines(columns, place, own["beta"])
            parts += [(lines, names), (own["sigma"][:, None], ["sigma"])]
        for number, label in enumerate(labels):
            names = [f"{label} {name}" for name in (*column.task.columns, *entries)]
            parts.append((own["logits"][:, number], names))
        for draws, names in parts:
            ends = np.quantile(draws, [0.5, (1 - level) / 2, (1 + level) / 2], axis=0)
            summary["column"] += [column.task.outcome] * len(names)
            summary["parameter"] += names
            for name, values in zip(("estimate", "lower", "upper"), ends, strict=True):
                summary[name] += values.tolist()
    return summary
