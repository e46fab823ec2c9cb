"""Pairs of columns whose product, quotient, sum or difference is the outcome."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, Mask, Matrix, PerRecord
from hedgerow.evidence.giveaways.agreement import EXACT, ORDERED, Finding, Outcome

_TRIED = 24  # rows by which pairs are tried at first

COMBINE: dict[str, Callable[[Array, Array], Array]] = {
    "{0} × {1}": np.multiply,
    "{0} / {1}": np.divide,
    "{1} / {0}": lambda c, d: d / c,
    "{0} + {1}": np.add,
    "{0} − {1}": np.subtract,
}


def find_pairs(columns: dict[str, PerRecord], outcome: Outcome) -> list[Finding]:
    """Pairs of numbers whose product, quotient, sum or difference is the outcome, up to a factor."""
    names = [name for name, column in columns.items() if len(np.unique(column[:ORDERED])) > 1]
    if len(names) < 2:
        return []
    matrix = np.column_stack([columns[name] for name in names])
    here = Outcome(outcome.values, float(np.log(len(COMBINE) * len(names) ** 2)))
    worst: dict[tuple[str, str], Finding] = {}
    for words, one, other in _promising_pairs(matrix, here):
        guess = COMBINE[words](matrix[:, one], matrix[:, other])
        used = np.isfinite(guess) & (guess != 0) & (here.values != 0)
        if not used.any():
            continue
        factor = float(np.median(here.values[used] / guess[used]))
        form = "" if abs(abs(factor) - 1) <= EXACT else " up to a constant factor"
        verdict = here.judge(np.where(np.isfinite(guess), guess * factor, np.inf), form)
        pair = names[one], names[other]
        if verdict and (pair not in worst or verdict.degree > worst[pair].degree):
            turned = "{1} − {0}" if words == "{0} − {1}" and factor < 0 else words
            what = turned.format(*(f"'{name}'" for name in pair))
            worst[pair] = Finding(pair, what, verdict.says, verdict.refused, verdict.degree)
    return list(worst.values())


def _promising_pairs(matrix: Matrix, outcome: Outcome) -> Iterator[tuple[str, int, int]]:
    """Combinations, and the two columns, that come near the outcome in a few rows."""
    rows = _spread_rows(outcome)
    some, values, reach = matrix[rows], outcome.values[rows], [*outcome.reaches.values()][-1][rows]
    enough = 0.4 if outcome.varied else 0.85
    for words, combine in COMBINE.items():
        for one in range(matrix.shape[1] - 1):
            guesses = combine(some[:, [one]], some[:, one + 1 :])
            near = _hits_up_to_a_factor(guesses, values, reach).mean(axis=0) >= enough
            for other in np.flatnonzero(near).tolist():
                yield words, one, one + 1 + other


def _hits_up_to_a_factor(guesses: Array, values: PerRecord, reach: PerRecord) -> Mask:
    """By row and column: whether a guess is the value, up to each column's own factor."""
    ratio = guesses / np.where(values == 0, np.nan, values)[:, None]
    ratio[~np.isfinite(ratio)] = np.nan
    ordered = np.sort(ratio, axis=0)  # NaN last
    middle = np.maximum(np.isfinite(ratio).sum(axis=0) - 1, 0) // 2
    factor = np.take_along_axis(ordered, middle[None], axis=0)
    return np.abs(guesses / factor - values[:, None]) <= reach[:, None]


def _spread_rows(outcome: Outcome) -> NDArray[np.int64]:
    """A few rows over all values of the outcome, so that the commonest one does not decide."""
    order = np.argsort(outcome.codes, kind="stable")
    turn = np.arange(len(order)) - np.searchsorted(outcome.codes[order], outcome.codes[order])
    first = order[turn < max(1, _TRIED // len(outcome.levels))]  # so many rows of each value
    return first[np.unique(np.linspace(0, len(first) - 1, _TRIED).astype(np.int64))]
