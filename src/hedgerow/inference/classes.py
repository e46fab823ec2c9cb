"""Copies from public classes alone: where everybody knows each record's class, no outcome need be read.

    >>> import hedgerow as hr, numpy as np
    >>> table = hr.datasets.payroll(n=300, seed=1)
    >>> edges = [0, 1e5, 1e6, 1e7, np.inf]
    >>> table["class"] = np.array(edges)[np.searchsorted(edges, table["payroll"], side="right") - 1]
    >>> known = hr.Brackets(edges, column="class")
    >>> public = table[["employees", "class"]]
    >>> asked = {"range": known, "limits": (1e3, 1e9), "seed": 1}
    >>> (copy,) = copies_from_classes("payroll ~ log(employees)", public, **asked)
    >>> bool((copy["payroll"] >= copy["class"]).all())
    True

Formal guarantee
----------------
The outcome is no argument: where the table has its column, it is overwritten before anything is read. Its
synthetic values are a function of the public classes, the predictors, the limits and randomness: ε = 0 for
replacing an outcome by any other of its class, for any number of copies, with nothing to compose or charge.
It says nothing about the classes themselves, nor of the other columns and the index: they are released as
they are, and nothing looks whether they give the outcome away, since nothing looks at it.
"""

from typing import Any

import narwhals as nw
import numpy as np

from hedgerow.errors import SettingError
from hedgerow.mechanism.classes import draw_from_classes
from hedgerow.mechanism.noisy.run import classes_within
from hedgerow.models.exact import Regression
from hedgerow.privacy.ranges import Range
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Strict
from hedgerow.privacy.strict.limits import response_limits
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table
from hedgerow.tables.values import Declared


def copies_from_classes(
    formula: str,
    table: Any,
    *,
    range: Range,
    limits: tuple[float, float],
    family: str = "lognormal",
    copies: int = 1,
    draws: int = 1000,
    seed: int | None = None,
) -> list[Any]:
    """Copies of a table of public columns, each record's outcome drawn inside its class.

    Give the columns that may be released, and no others.

    `range`: `Brackets(edges, column=…)`, or `Bounds` on public columns; `limits` of the outcome, as `Strict`
    has them. Each copy comes from a draw of its own of the regression given the classes.
    """
    strict = Strict(limits=limits, relation="range", range=range, inside=True)
    # For its checks alone: none of ε is spent.
    settings = Settings.of(formula, family, standard=strict, epsilon=1.0, copies=copies, draws=draws)
    model = settings.model
    outcome = formula.split("~")[0].strip().strip("`")
    blank = Table.of(Table.of(table).frame.with_columns(nw.lit(1.0).alias(outcome)).to_native())
    design, interval = designs.build(formula, blank), classes_within(settings, blank)
    if interval is None or not isinstance(model, Regression) or outcome in range.columns:
        raise SettingError(f"The classes are to be public, and '{outcome}' is protected. Name other columns.")
    low, high = response_limits(model, limits)
    ends, key = (model.response(interval.lower), model.response(interval.upper)), Key.from_seed(seed)
    sample = draw_from_classes(design.matrix, *ends, low=low, high=high, draws=draws, key=key.child("draws"))
    made = []
    for number in np.arange(copies).tolist():
        draw = {name: np.asarray(values[number]) for name, values in sample.parameters.items()}
        numbers = key.child("copies").child(number).stream().uniform(blank.rows)
        values = model.predict_inside(design, draw, interval, numbers)
        made.append(blank.with_column(outcome, values, None, model.domain.support, Declared("number")))
    return made
