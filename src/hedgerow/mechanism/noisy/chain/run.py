"""From settings and a table to tasks, to the values that rounds read, and back to cells of copies."""

from collections.abc import Sequence

from hedgerow.arrays import Array
from hedgerow.errors import SettingError
from hedgerow.mechanism.cells import codes_of
from hedgerow.mechanism.noisy.chain.cells import Shape, shape_columns, take_apart
from hedgerow.mechanism.noisy.chain.encode import read_formula
from hedgerow.mechanism.noisy.chain.tasks import Task, Values, split_epsilon
from hedgerow.mechanism.noisy.margin import margin_pays
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Strict
from hedgerow.privacy.strict.limits import response_limits
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table

NO_FORECAST = "Which errors to expect is told beforehand for one protected column alone."


def halve_replaced(settings: Settings) -> float:
    """At most this is ε for one row withheld: half of replaced, but for a blank adding a whole number."""
    strict, epsilon = _need(settings)
    return epsilon if strict.relation == "withheld" else epsilon / 2 * (1 + 1e-9)


def tasks_of(settings: Settings, table: Table, design: Design) -> list[Task]:
    """What is settled of each column before a value is read."""
    strict, epsilon = _need(settings)
    outcomes, codes = [column.outcome for column in settings.columns], codes_of(settings.columns)
    shares = [1.0 if strict.shares is None else strict.shares[name] for name in outcomes]
    matrices = {link.column.outcome: one for link, one in zip(settings.links, design.links, strict=True)}
    tasks = []
    for shape, part in zip(shape_columns(settings, table), split_epsilon(epsilon, shares), strict=True):
        name, link = shape.column.outcome, matrices[shape.column.outcome]
        formula, reads = read_formula(shape.column, outcomes, table)
        rows = shape.rows(table, codes)
        matrix = link.matrix if rows is None else link.matrix[rows]
        low, high = (-1.0, 1.0) if shape.places else response_limits(shape.regression, shape.limits)
        tasks.append(
            Task(
                outcome=name,
                formula=formula,
                matrix=matrix,
                columns=link.columns,
                reads=reads,
                epsilon=part,
                relation=strict.relation,
                low=low,
                high=high,
                kinds=shape.kinds,
                classes=shape.classes,
                elsewhere=shape.ruled,
                margin_share=0.0 if shape.places else _margin(settings, strict, len(matrix), part),
                rows_per_unit=settings.rows_per_unit,
                rows=rows,
            )
        )
    return tasks


def read_columns(settings: Settings, table: Table) -> list[Values]:
    """What each column holds in the rows of its task; confidential."""
    codes = codes_of(settings.columns)
    return [one.values(one.shape.rows(table, codes)) for one in take_apart(settings, table)]


def write_links(
    shapes: Sequence[Shape], tasks: Sequence[Task], made: Sequence[Values], records: int
) -> list[Array]:
    """What a copy has of each link of some columns."""
    return [
        cells
        for shape, task, values in zip(shapes, tasks, made, strict=False)
        for cells in shape.write(values, task.rows, records)
    ]


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
