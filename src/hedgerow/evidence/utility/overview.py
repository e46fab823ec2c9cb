"""All that a release's owner is told of what was lost, in plain numbers; confidential."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hedgerow.errors import FormulaError, SettingError
from hedgerow.evidence.utility.analyses import COMPARED, Analysis, analyses_of_copies
from hedgerow.evidence.utility.groups import GROUPED, few_groups, groups_of_copies
from hedgerow.evidence.utility.pairs import TWO_WAY, two_way_of_copies
from hedgerow.evidence.utility.propensity import MEASURES, By, rows_of_copies
from hedgerow.evidence.utility.stack import POOLED, SUMMED_UP, Rows, Stack, pool_copies, read_weights

_MODELS: tuple[By, ...] = ("main", "pairs")
_MOST_BY = 3  # public columns whose groups are compared
_SHOWN = ("ecdf_max", "mean", "median", "q90")
_NO_NUMBERS = "values of the original or of a copy are too large or too far apart for arithmetic."


def write_overview(
    stack: Stack, analyses: Sequence[Analysis] = (), weight: str | None = None
) -> dict[str, Any]:
    """Rows by what they compare, and in `left_out` what could not be, in words.

    No value ends it: under Strict whether there is a release depends on none.

    `propensity` and `analyses` have a row per copy and the mean over copies; `two_way` and `groups`, which
    are many, only the mean, the lowest and the highest.
    """
    left_out: list[str] = []
    found: dict[str, Rows] = {"propensity": [], "analyses": []}
    for by in _MODELS:
        try:
            found["propensity"] += pool_copies(rows_of_copies(stack, by=by), MEASURES)
        except SettingError as error:
            left_out.append(str(error))
        except np.linalg.LinAlgError:
            left_out.append(f"propensity by '{by}': {_NO_NUMBERS}")
    for analysis in analyses:
        try:
            rows = analyses_of_copies(stack, [analysis], weight)
            found["analyses"] += pool_copies(rows, COMPARED)
        except FormulaError as error:
            left_out.append(str(error))
        except np.linalg.LinAlgError:
            left_out.append(f"Analysis '{analysis}': {_NO_NUMBERS}")
    weights = None if weight is None else read_weights(stack, weight)
    found["two_way"] = _sum_up(two_way_of_copies(stack, weights, [weight] if weight else ()), TWO_WAY)
    found["groups"] = []
    for name in few_groups(stack)[:_MOST_BY]:
        rows = [row for row in groups_of_copies(stack, name, weight) if row["statistic"] in _SHOWN]
        found["groups"] += _sum_up(rows, GROUPED)
    written = {name: [_plain(row) for row in rows] for name, rows in found.items()}
    return {"design_weight": weight, "rows": stack.sizes[0], **written, "left_out": left_out}


def shorten_overview(overview: dict[str, Any]) -> dict[str, float | None]:
    """A few figures, means over copies: each S_pMSE, the largest TVD, and of analyses means over terms."""
    pooled = {
        name: [row for row in overview[name] if row["copy"] == POOLED]
        for name in ("propensity", "two_way", "analyses")
    }
    found = {f"S_pMSE, {row['by']}": row["S_pMSE"] for row in pooled["propensity"]}
    far = [row["TVD"] for row in pooled["two_way"] if row["TVD"] is not None]
    found |= {"largest TVD of two columns": max(far)} if far else {}
    for name in dict.fromkeys(row["analysis"] for row in pooled["analyses"]):
        shares = [row["overlap"] for row in pooled["analyses"] if row["analysis"] == name]
        known = [share for share in shares if share is not None]
        found[f"CI overlap, {name}"] = float(np.mean(known)) if known else None
    return found


def _sum_up(rows: Rows, measures: Sequence[str]) -> Rows:
    return [row for row in pool_copies(rows, measures) if row["copy"] in SUMMED_UP]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """The row with None in place of what JSON has no number for."""
    return {
        name: None if isinstance(cell, float) and not np.isfinite(cell) else cell
        for name, cell in row.items()
    }
