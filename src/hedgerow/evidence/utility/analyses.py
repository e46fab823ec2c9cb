"""Named analyses: a regression on the original and on each copy, coefficient by coefficient.

    >>> import hedgerow as hr
    >>> table = hr.datasets.lognormal(n=300, seed=1)
    >>> compare_analyses(table, table, ["log(x) ~ z"])["overlap"].tolist()[:2]
    [1.0, 1.0]

Least squares, or a generalised linear model; with survey weights, weighted, and with linearised variances.
Formulas are read by the same whitelist as those of models (`tables.formula`): a plan cannot run code by one.
Confidential.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from scipy.special import expit, stdtrit

from hedgerow.arrays import Array, Mask, Matrix, PerRecord
from hedgerow.errors import DataError, FormulaError, SettingError, format_value, list_some
from hedgerow.evidence.utility.stack import (
    Rows,
    Stack,
    pooled_columns,
    read_weights,
    stack_tables,
)
from hedgerow.numerics.linearized import total_covariance
from hedgerow.tables.design import encode_terms
from hedgerow.tables.formula import CLASSES, Formula, parse, shorten
from hedgerow.tables.predictors import settle_predictors
from hedgerow.tables.table import Table

Regression = Literal["gaussian", "binomial", "poisson"]
COMPARED = ("synthetic", "synthetic_low", "synthetic_high", "overlap", "std_difference")
_LEVEL, _STEPS = 0.95, 100
_LARGEST = 30.0  # of a linear predictor: beyond it a logistic or a Poisson mean is 0 or no number


@dataclass(frozen=True)
class Analysis:
    """A regression that users of the copies will run: "log(wage) ~ age + C(sector)".

    `family` is "gaussian" for least squares, "binomial" for an outcome of 0 and 1 or of two labels, "poisson"
    for counts.
    """

    formula: str
    family: Regression = "gaussian"

    def __post_init__(self) -> None:
        given: object = self.formula
        if not isinstance(given, str) or given.count("~") != 1:
            raise SettingError(
                'An analysis is a formula such as "log(wage) ~ age", got '
                f"{format_value(shorten(given) if isinstance(given, str) else given)}."
            )
        if self.family not in get_args(Regression):
            words = ", ".join(get_args(Regression))
            raise SettingError(
                f"The family of an analysis must be one of {words}, got {format_value(self.family)}."
            )

    def __str__(self) -> str:
        return self.formula if self.family == "gaussian" else f"{self.formula} ({self.family})"


@dataclass(frozen=True)
class Estimated:
    """Coefficients with their standard errors; NaN for one that the rows do not determine."""

    estimate: Array
    error: Array
    df: float  # of Student's t; infinite for generalised linear models

    def ends(self, level: float = _LEVEL) -> tuple[Array, Array]:
        """The confidence interval of each."""
        reach = stdtrit(self.df, (1 + level) / 2) * self.error
        return self.estimate - reach, self.estimate + reach


def overlap(original: tuple[float, float], copy: tuple[float, float]) -> float:
    """How far two intervals overlap (Karr et al. 2006): their common part as a share of each, averaged.

    1 if they are the same; negative if they do not meet, the farther apart the more.
    """
    common = min(original[1], copy[1]) - max(original[0], copy[0])
    return 0.5 * sum(float(np.divide(common, high - low)) for low, high in (original, copy))


def compare_analyses(
    original: Any,
    copies: Any,
    analyses: Sequence["str | Analysis"],
    *,
    codes: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    weight: str | None = None,
) -> Any:
    """Each coefficient of the original beside those of the copies, with 95 % intervals.

    `overlap` is that of the two intervals, 1 at best; `std_difference` is the difference in standard errors
    of the original, 0 at best: synthpop's "CI overlap" and "Std. coef diff". Rows with a gap, or one of the
    `codes`, in a column of the formula are left out. `weight` names the survey weights.
    """
    found = analyses_of_copies(stack_tables(original, copies, codes=codes), analyses, weight)
    return Table.of(original).like(pooled_columns(found, COMPARED))


def analyses_of_copies(stack: Stack, analyses: Sequence["str | Analysis"], weight: str | None) -> Rows:
    """What `compare_analyses` finds, a row per analysis, term and copy."""
    if isinstance(analyses, str | Analysis):
        raise SettingError(f"analyses must be a list of formulas, got {format_value(str(analyses))} alone.")
    if not isinstance(analyses, Sequence):
        raise SettingError(f"analyses must be a list of formulas, got {format_value(analyses)}.")
    found: Rows = []
    for given in analyses:
        analysis = given if isinstance(given, Analysis) else Analysis(given)
        outcome, matrix, names, there = _encode(analysis, stack)
        weights = None if weight is None else read_weights(stack, weight)
        fits = []
        for number in range(len(stack.sizes)):
            rows = np.flatnonzero(there[stack.part(number)]) + stack.part(number).start
            own = None if weights is None else weights[rows]
            places = np.searchsorted(np.flatnonzero(there), rows)
            fits.append(fit_regression(matrix[places], outcome[places], analysis.family, own))
        low, high = fits[0].ends()
        for number, fit in enumerate(fits[1:], 1):
            ends = fit.ends()
            for k, name in enumerate(names):
                row: dict[str, Any] = {"analysis": str(analysis), "term": name, "copy": str(number)}
                row |= {"original": float(fits[0].estimate[k])}
                row |= {"original_low": float(low[k]), "original_high": float(high[k])}
                row |= {"synthetic": float(fit.estimate[k]), "synthetic_low": float(ends[0][k])}
                row |= {"synthetic_high": float(ends[1][k])}
                with np.errstate(all="ignore"):
                    row["overlap"] = overlap((low[k], high[k]), (ends[0][k], ends[1][k]))
                    difference = np.divide(fit.estimate[k] - fits[0].estimate[k], fits[0].error[k])
                found.append(row | {"std_difference": float(difference)})
    return found


def check_analyses(analyses: Sequence[Analysis], columns: Sequence[str]) -> None:
    """Refuse what is no formula over these columns, before any data are seen."""
    for analysis in analyses:
        _parse(analysis, pd.DataFrame({name: [0.0] for name in columns}))


def _parse(analysis: Analysis, frame: pd.DataFrame) -> list[Formula]:
    """The left side as terms of its own, and the right side."""
    blank = "left side of the analysis"
    while blank in frame.columns:
        blank += "_"
    table = Table.of(frame.assign(**{blank: 0.0}))
    left, _, right = (part.strip() for part in analysis.formula.partition("~"))
    try:
        return [parse(f"`{blank}` ~ {text}", table) for text in (f"0 + {left}", right)]
    except DataError:  # its list of columns has the stand-in for the left side in it
        raise FormulaError(
            f"Analysis '{shorten(analysis.formula)}' names a column that copies do not have. They have "
            f"{list_some([*map(str, frame.columns)], 12, quoted=True)}."
        ) from None


def _encode(analysis: Analysis, stack: Stack) -> tuple[PerRecord, Matrix, list[str], Mask]:
    """Outcome and terms of the rows that have all of them, and which rows these are; one encoding for all."""
    columns = {
        name: column.words() if column.numbers is None else column.numbers
        for name, column in stack.columns.items()
    }
    frame = pd.DataFrame(columns)
    parsed = _parse(analysis, frame)
    read = dict.fromkeys(name for formula in parsed for name in formula.predictors)
    there = np.logical_and.reduce([stack.columns[name].there for name in read])
    _require_rows(analysis, stack, there)
    known = Table.of(frame[there].reset_index(drop=True))
    outcome, names = _encode_terms(parsed[0], known)
    if outcome.shape[1] == 2 and analysis.family == "binomial" and len(parsed[0].predictors) == 1:
        outcome = outcome[:, 1:]  # the second of two labels
    if outcome.shape[1] != 1:
        raise FormulaError(
            f"Analysis '{shorten(analysis.formula)}': its left side makes {outcome.shape[1]} columns, and "
            "must make one number of a row. Use family binomial for two labels."
        )
    matrix, names = _encode_terms(parsed[1], known)
    works = np.isfinite(outcome[:, 0]) & np.isfinite(matrix).all(axis=1)  # no log of what is not positive
    there[np.flatnonzero(there)[~works]] = False
    _require_rows(analysis, stack, there)
    values = outcome[works, 0]
    if analysis.family != "gaussian" and (
        (values < 0).any() or (analysis.family == "binomial" and (values > 1).any())
    ):
        raise FormulaError(
            f"Analysis '{shorten(analysis.formula)}': the {analysis.family} family needs an outcome "
            f"{'of 0 and 1, or of two labels' if analysis.family == 'binomial' else 'from 0 up'}."
        )
    return values, matrix[works], names, there


def _require_rows(analysis: Analysis, stack: Stack, there: Mask) -> None:
    if not all(there[stack.part(number)].any() for number in range(len(stack.sizes))):
        raise FormulaError(
            f"Analysis '{shorten(analysis.formula)}': the original or a copy has no row with a value in each "
            "of its terms."
        )


def _encode_terms(formula: Formula, table: Table) -> tuple[Matrix, list[str]]:
    classes = [name for name, uses in formula.uses.items() if uses == {CLASSES}]
    settled = table.select(table.columns[:1])
    if formula.predictors:
        settled, _ = settle_predictors(table, formula.predictors, classes)
    matrix, names, _ = encode_terms(formula, settled, {})
    return matrix, list(names)


@np.errstate(over="ignore", invalid="ignore")  # values near the largest double have no standard error
def fit_regression(
    matrix: Matrix, outcome: PerRecord, family: Regression = "gaussian", weights: PerRecord | None = None
) -> Estimated:
    """Coefficients and standard errors: of the model, or linearised ones if records have weights."""
    records, width = matrix.shape
    used = np.flatnonzero(_independent(matrix))
    terms, by = matrix[:, used], np.ones(records) if weights is None else weights / weights.mean()
    line = np.zeros(len(used))
    for _ in range(1 if family == "gaussian" else _STEPS):
        mean, spread = _predict(terms @ line, family)
        curvature = terms.T @ ((by * spread)[:, None] * terms)
        step = np.linalg.lstsq(curvature, terms.T @ (by * (outcome - mean)), rcond=None)[0]
        line = line + step
        if np.abs(terms @ step).max() < 1e-10:
            break
    mean, spread = _predict(terms @ line, family)
    inverse = np.linalg.pinv(terms.T @ ((by * spread)[:, None] * terms), hermitian=True)
    free = records - len(used)
    if weights is not None:
        scores = (by * (outcome - mean))[:, None] * (terms @ inverse)
        covariance = total_covariance(scores)
    else:
        residual = float(np.sum((outcome - mean) ** 2) / max(free, 1)) if family == "gaussian" else 1.0
        covariance = inverse * residual
    estimate, error = np.full(width, np.nan), np.full(width, np.nan)
    estimate[used], error[used] = line, np.sqrt(np.diag(covariance))
    if free < 1:
        error[:] = np.nan
    return Estimated(estimate, error, float(max(free, 1)) if family == "gaussian" else np.inf)


def _predict(line: PerRecord, family: Regression) -> tuple[PerRecord, PerRecord]:
    """Mean and variance of each outcome, the variance in units of the dispersion."""
    if family == "gaussian":
        return line, np.ones_like(line)
    line = np.clip(line, -_LARGEST, _LARGEST)
    if family == "poisson":
        return np.exp(line), np.exp(line)
    mean = expit(line)
    return mean, mean * (1 - mean)


def _independent(matrix: Matrix) -> Mask:
    """Which columns say something that those before them do not."""
    size = np.linalg.norm(matrix, axis=0)
    factor = np.linalg.qr(matrix / np.where(size > 0, size, 1.0), mode="r")
    diagonal = np.zeros(matrix.shape[1])
    diagonal[: len(factor)] = np.abs(np.diag(factor))
    return diagonal > 1e-9
