"""From settings and a table to tasks and to values that rounds read; from values to cells of copies."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hedgerow.arrays import Array, Mask, PerLink, join_columns
from hedgerow.errors import SettingError
from hedgerow.mechanism.cells import apply_rules, write_column
from hedgerow.mechanism.noisy.chain.cells import Shape, read_cells, shape_columns
from hedgerow.mechanism.noisy.chain.draws import ChainCopying
from hedgerow.mechanism.noisy.chain.encode import read_formula
from hedgerow.mechanism.noisy.chain.rows import HeldChain, Piece
from hedgerow.mechanism.noisy.chain.tasks import Task, Values, split_epsilon
from hedgerow.mechanism.noisy.margin import margin_pays
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Strict
from hedgerow.privacy.strict.limits import response_limits
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table

NO_FORECAST = "Which errors to expect is told beforehand for one protected column alone."


def chain_withheld_epsilon(settings: Settings) -> float:
    """At most this is ε for one row withheld.

    Half of that for one row replaced, but for rounding: what a blank adds to a sum is a whole number.
    """
    strict, epsilon = _need(settings)
    return epsilon if strict.relation == "withheld" else epsilon / 2 * (1 + 1e-9)


def tasks_of(settings: Settings, table: Table, design: Design, records: int | None = None) -> list[Task]:
    """What is settled of each column before a value is read.

    `records` is for a table that comes in parts: how many there are of it.
    """
    strict, epsilon = _need(settings)
    shares = [1.0 if strict.shares is None else strict.shares[name] for name in settings.outcomes]
    columns = {
        link.column.outcome: one.columns for link, one in zip(settings.links, design.links, strict=True)
    }
    masks, parts, tasks = masks_of(settings, table), split_epsilon(epsilon, shares), []
    for shape, mask, part in zip(shape_columns(settings, table), masks, parts, strict=True):
        name = shape.column.outcome
        formula, reads = read_formula(shape.column, settings.outcomes, table)
        low, high = (-1.0, 1.0) if shape.places else response_limits(shape.regression, shape.limits)
        own = records or table.rows if mask is None else int(np.count_nonzero(mask))
        tasks.append(
            Task(
                outcome=name,
                formula=formula,
                columns=columns[name],
                reads=reads,
                epsilon=part,
                relation=strict.relation,
                low=low,
                high=high,
                kinds=shape.kinds,
                classes=shape.classes,
                elsewhere=shape.ruled,
                margin_share=0.0 if shape.places else _margin(settings, strict, own, part),
                rows_per_unit=settings.rows_per_unit,
                partial=mask is not None,
            )
        )
    return tasks


def masks_of(settings: Settings, table: Table) -> list[Mask | None]:
    """Which rows each column may have a cell of its own in, where that is public and not all do."""
    return [shape.rows(table, settings.codes) for shape in shape_columns(settings, table)]


def matrices_of(settings: Settings, design: Design, masks: Sequence[Mask | None]) -> list[Array]:
    """Public predictors of each column's own rows."""
    links = zip(settings.links, design.links, strict=True)
    whole = {link.column.outcome: one.matrix for link, one in links}
    pairs = zip(whole.values(), masks, strict=True)
    return [matrix if mask is None else matrix[mask] for matrix, mask in pairs]


def hold_chain(settings: Settings, table: Table, design: Design, *, values: bool) -> HeldChain:
    """A table in memory, with what its columns hold if values are to be read."""
    masks = masks_of(settings, table)
    read = read_columns(settings, table) if values else None
    tasks, matrices = tasks_of(settings, table, design), matrices_of(settings, design, masks)
    return HeldChain.of(tasks, matrices, read, masks)


def read_columns(settings: Settings, table: Table) -> list[Values]:
    """What each column holds in its own rows; confidential."""
    return [one.values(one.shape.rows(table, settings.codes)) for one in read_cells(settings, table)]


def write_links(
    shapes: Sequence[Shape], masks: Sequence[Mask | None], made: Sequence[Values], records: int
) -> list[Array]:
    """What a copy has of each link of some columns."""
    return [
        cells
        for shape, mask, values in zip(shapes, masks, made, strict=False)
        for cells in shape.write(values, mask, records)
    ]


def write_piece(settings: Settings, copying: ChainCopying, table: Table, piece: Piece) -> PerLink:
    """What a copy has of each link in some records, of which `table` has what is public."""
    written = _Written(settings, shape_columns(settings, table), piece, table)
    made = copying.values(piece, written.applies)
    return join_columns(write_links(written.shapes, piece.masks, made, piece.records))


@dataclass
class _Written:
    """A copy as far as it is made, written as it will be released: what rules of later columns read."""

    settings: Settings
    shapes: list[Shape]
    piece: Piece
    table: Table
    done: int = 0

    def applies(self, made: Sequence[Values]) -> Mask:
        """In which records the next column has a cell of its own."""
        for shape, mask, values in list(zip(self.shapes, self.piece.masks, made, strict=False))[self.done :]:
            cells = write_links([shape], [mask], [values], self.piece.records)
            self.table = Table.of(write_column(self.settings, shape.column, self.table, shape.levels, cells))
        self.done = len(made)
        column = self.shapes[len(made)].column
        return apply_rules(column, self.table, self.settings.codes).applies


def count_clipped(tasks: Sequence[Task], values: Sequence[Values]) -> list[tuple[int, int]]:
    """By column, how many amounts there are and how many lie at a limit or were moved there; confidential."""
    found = []
    for task, own in zip(tasks, values, strict=True):
        amounts = own.numbers[own.present & ~np.isnan(own.numbers)] if not task.classes else np.zeros(0)
        moved = (amounts <= task.low) | (amounts >= task.high)
        found.append((len(amounts), int(np.count_nonzero(moved))))
    return found


def _margin(settings: Settings, strict: Strict, records: int, epsilon: float) -> float:
    """The share of a column's ε that goes to counts, where they pay."""
    if strict.margin is None:
        return 0.0
    share = strict.margin.share
    pays = margin_pays(records, share, epsilon, strict.relation, settings.rows_per_unit)
    return share if pays else 0.0


def _need(settings: Settings) -> tuple[Strict, float]:
    """Standard and ε, which settings of noisy statistics by name have."""
    strict = settings.noisy
    if strict is None or not strict.by_name or settings.epsilon is None:
        raise SettingError(f"{settings.standard.label} has no limits by column. Use Strict(limits={{…}}).")
    return strict, settings.epsilon
