"""Whether a model can tell rows of a table from rows of its copy: pMSE, and what else its scores say.

    >>> import pandas as pd
    >>> random = np.random.default_rng(1)
    >>> table, copy = (pd.DataFrame({"x": random.normal(size=500)}) for _ in range(2))
    >>> found = compare_rows(table, copy)
    >>> found.columns.tolist()
    ['by', 'copy', 'pMSE', 'expected', 'S_pMSE', 'SPECKS', 'PO50', 'AUC', 'terms', 'rows']

The names are synthpop's. Confidential.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from jaxtyping import Float
from scipy.special import expit

from hedgerow.arrays import Mask, Matrix, PerRecord
from hedgerow.errors import SettingError, format_value, is_count
from hedgerow.evidence.utility.columns import ecdf_distance
from hedgerow.evidence.utility.stack import Rows, Stack, pooled_columns, stack_tables
from hedgerow.evidence.utility.terms import split_terms
from hedgerow.tables.table import Table

CopyMatrix: TypeAlias = Float[np.ndarray, "row column"]
KeptMatrix: TypeAlias = Float[np.ndarray, "record kept"]
By = Literal["main", "pairs", "cart"]
MEASURES = ("pMSE", "expected", "S_pMSE", "SPECKS", "PO50", "AUC")
PERMUTATIONS = 50
_NEWTON, _RIDGE = 50, 1e-6  # steps at most; what keeps coefficients finite where rows can be told apart
_ROWS_PER_TERM = 10  # with fewer the null expectation, which is of many rows, is none
_LEAF, _COMPLEXITY = 5, 1e-3  # of a tree, as synthpop has them


@dataclass(frozen=True)
class Propensity:
    """How well a model tells copied rows from real ones (Snoke et al. 2018)."""

    mean_squared: float  # pMSE: of the fitted probability about the share of copied rows
    expected: float  # of a copy drawn from the right model, with parameters estimated from the table
    specks: float  # largest distance of the scores' distributions, 0 at best
    over_half: float  # PO50: points over 50 % of rows that are guessed right, 0 at best
    auc: float  # that a copied row scores higher than a real one, 0.5 at best

    @property
    def ratio(self) -> float:
        """1 where nothing was lost; 2 for one posterior draw, or for another sample, of as many rows."""
        return self.mean_squared / self.expected


def measure_propensity(original: Matrix, copy: CopyMatrix, *, kept: KeptMatrix | None = None) -> Propensity:
    """The propensity score's mean squared error and what is to be expected of it without any loss.

    Rows are records, columns the terms of the regression, without an intercept: of k − 1 terms it is
    (k − 1)(1 − c)² c/N, c the share of copied among N rows. `kept` has the terms of columns that both tables
    share row by row. No copy can differ in them, nor in the part of another term that follows from them, so
    that what counts is how far the two rows of a pair differ (docs/maths.md, "Utility").
    """
    if kept is not None and not len(original) == len(copy) == len(kept):
        raise SettingError("Columns that are kept have the same rows in the table and in the copy.")
    terms = np.vstack([original, copy])
    shared = np.empty((len(terms), 0)) if kept is None else np.vstack([kept, kept])
    copied = np.repeat([0.0, 1.0], [len(original), len(copy)])
    share = float(copied.mean())
    basis = _span(np.hstack([shared, terms]))  # fitted probabilities depend on the terms' span alone
    coefficients = np.zeros(basis.shape[1])
    fitted = np.full(len(copied), share)
    for _ in range(_NEWTON):
        spread = fitted * (1 - fitted)
        curvature = basis.T @ (spread[:, None] * basis) + _RIDGE * np.eye(len(coefficients))
        step = np.linalg.solve(curvature, basis.T @ (copied - fitted) - _RIDGE * coefficients)
        coefficients += step
        before, fitted = fitted, expit(np.log(share / (1 - share)) + basis @ coefficients)
        if np.abs(fitted - before).max() < 1e-9:
            break
    expected = max(basis.shape[1] - 1, 1) * (1 - share) ** 2 * share / len(copied)
    if kept is not None:
        apart = basis[len(original) :] - basis[: len(original)]
        paired = float(np.sum((apart - apart.mean(axis=0)) ** 2)) / 8 / len(copied) ** 2
        expected = paired if paired > 1e-9 * expected else expected  # of a table and itself there is none
    return _score(fitted, copied == 1, expected)


def _span(terms: Matrix) -> Matrix:
    """Orthogonal columns of length √N that span the terms and an intercept."""
    spread = terms.std(axis=0)
    centred = (terms - terms.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    scaled = np.hstack([np.ones((len(terms), 1)), centred])
    _, lengths, axes = np.linalg.svd(np.linalg.qr(scaled, mode="r"))  # of a small matrix, not of all rows
    used = lengths > 1e-9 * lengths[0]
    return np.asarray(scaled @ (axes[used] / lengths[used, None]).T * np.sqrt(len(terms)))


def _score(fitted: PerRecord, copied: Mask, expected: float) -> Propensity:
    """What scores say of how alike the rows are."""
    share = float(copied.mean())
    guess = fitted > share + 1e-12
    right = (guess[copied].mean() + (~guess)[~copied].mean()) / 2
    real, made = np.sort(fitted[~copied]), fitted[copied]
    wins = (np.searchsorted(real, made) + np.searchsorted(real, made, side="right")) / 2  # half for a tie
    return Propensity(
        mean_squared=float(np.mean((fitted - share) ** 2)),
        expected=expected,
        specks=ecdf_distance(fitted[~copied], fitted[copied]).maximum,
        over_half=float(100 * right - 50),
        auc=float(wins.mean() / len(real)),
    )


def measure_by_trees(
    terms: Matrix, copied: Mask, *, paired: bool, permutations: int = PERMUTATIONS, seed: int = 1
) -> Propensity:
    """The propensity score of a classification tree; its expectation is the mean over trees of permuted rows.

    Rows of a table and a copy that share columns are swapped pair by pair, which leaves these as they are.
    Unlike the closed form, this is the expectation of rows that are exchangeable, such as another sample's.
    """
    try:
        from sklearn.tree import DecisionTreeClassifier
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "sklearn":
            raise
        raise SettingError(
            "by='cart' needs scikit-learn, which is not installed. Install hedgerow[models], or use "
            "by='main' or by='pairs'."
        ) from None
    if not is_count(permutations) or permutations < 2:
        raise SettingError(
            f"permutations must be a whole number from 2 up, got {format_value(permutations)}."
        )
    random, share = np.random.default_rng(seed), float(copied.mean())
    least = _COMPLEXITY * 2 * share * (1 - share)

    def score(labels: Mask) -> PerRecord:
        # Pruned, not stopped: a split that gains little by itself may be needed for those below it.
        tree = DecisionTreeClassifier(min_samples_leaf=_LEAF, ccp_alpha=least, random_state=seed)
        return np.asarray(tree.fit(terms, labels).predict_proba(terms)[:, 1])

    null, half = [], len(copied) // 2
    for _ in range(permutations):
        labels = random.permutation(copied)
        if paired:
            first = random.uniform(size=half) < 0.5
            labels = np.concatenate([first, ~first])
        null.append(float(np.mean((score(labels) - share) ** 2)))
    return _score(score(copied), copied, max(float(np.mean(null)), 1e-12))


def compare_rows(
    original: Any,
    copies: Any,
    *,
    by: By = "main",
    protected: Collection[str] | None = None,
    classes: Collection[str] = (),
    codes: Mapping[str, Sequence[Any]] = MappingProxyType({}),
    columns: Sequence[str] | None = None,
    permutations: int = PERMUTATIONS,
    seed: int = 1,
) -> Any:
    """pMSE of each copy and its ratio to what is expected without any loss, S_pMSE; and other measures.

    `by` is the model that tells rows apart: "main" a logistic regression on the columns, "pairs" also on
    products of two, "cart" a tree (needs scikit-learn). `protected`, `classes`, `codes` and `columns` as in
    `stack_tables`. One row per copy, then their mean, the lowest and the highest.
    """
    stack = stack_tables(original, copies, protected=protected, classes=classes, codes=codes, columns=columns)
    rows = rows_of_copies(stack, by=by, permutations=permutations, seed=seed)
    return Table.of(original).like(pooled_columns(rows, MEASURES))


def rows_of_copies(stack: Stack, *, by: By, permutations: int = PERMUTATIONS, seed: int = 1) -> Rows:
    """What `compare_rows` finds, a row per copy."""
    if by not in get_args(By):
        raise SettingError(f"by must be one of {', '.join(get_args(By))}, got {format_value(by)}.")
    own, shared = split_terms(stack, pairs=by == "pairs")
    real, found = stack.part(0), Rows()
    for number in stack.copies:
        made = stack.part(number)
        count = stack.sizes[0] + stack.sizes[number]
        width = own.shape[1] + shared.shape[1]
        if by != "cart" and width * _ROWS_PER_TERM > count:
            raise SettingError(
                f"by='{by}' makes {width} terms of {count} rows, and its expectation needs {_ROWS_PER_TERM} "
                "rows a term. Name fewer columns (columns=), or use by='main' or by='cart'."
            )
        if by == "cart":
            labels = np.repeat([False, True], [stack.sizes[0], stack.sizes[number]])
            terms = np.hstack([own, shared])
            both, paired = np.vstack([terms[real], terms[made]]), bool(stack.kept)
            score = measure_by_trees(both, labels, paired=paired, permutations=permutations, seed=seed)
        else:
            kept = shared[real] if stack.kept else None
            score = measure_propensity(own[real], own[made], kept=kept)
        values = (score.mean_squared, score.expected, score.ratio, score.specks, score.over_half, score.auc)
        row = {"by": by, "copy": str(number), **dict(zip(MEASURES, values, strict=True))}
        found.append(row | {"terms": width, "rows": count})
    return found
