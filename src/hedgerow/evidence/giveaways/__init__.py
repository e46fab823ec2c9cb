"""Released columns that give the protected outcome away. Confidential: it is held against the data.

    >>> import pandas as pd
    >>> pay = np.array([9.5, 11.0, 12.2, 30.1, 8.4, 15.7])
    >>> frame = pd.DataFrame({"hours": [2, 4, 3, 7, 5, 6], "rate": pay / [2, 4, 3, 7, 5, 6]})
    >>> [str(finding) for finding in find_giveaways(Table.of(frame), pay, frame.columns)]
    ["'hours' × 'rate' equals it"]

All columns but the outcome are released as they are, so that no ε says anything about what stands in them.
Each is read in every way an onlooker would try (`text_numbers`) and held against the outcome (`agreement`):
is it equal, up to a constant factor or term, or within 1 %; does it put the records in the same order; does
one level of it always have one outcome, or do its gaps tell which it is? So are products, quotients, sums and
differences of any two numbers (`pairs`). `released` refuses what was found, or tells the owner of it.

Agreement that chance or the commonest value explains does not count, and neither does what is different in
every row, such as a name: it determines everything and tells nothing. Coarse classes of the outcome pass.
Findings are in words without figures: equal or nearly so is `refused`, the rest is for a warning.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Mask, PerRecord
from hedgerow.evidence.giveaways.agreement import FEW, Finding, Levels, Outcome, Verdict
from hedgerow.evidence.giveaways.pairs import COMBINE, find_pairs
from hedgerow.evidence.giveaways.text_numbers import read_numbers
from hedgerow.tables.table import Table
from hedgerow.threads import WORTH_SHARING, share_out, threads

ORDER_OF_ROWS, INDEX = "the order of the rows", "the index"
COMBINED = 400  # number columns that are combined with each other; more would take minutes

_JUDGED = 2000  # rows looked at
_ENOUGH = 50  # rows from which classes are held against each other
_SCARCE = 100  # of those, at least so many with another outcome than the commonest, if there are


@np.errstate(all="ignore")  # columns hold anything: what overflows or is no number agrees with nothing
def find_giveaways(table: Table, values: PerRecord, released: Sequence[str]) -> list[Finding]:
    """What among the released columns, their pairs, the index and the order of rows gives values away.

    The worst come first. Large tables are judged by a sample of rows, chosen by position.
    """
    if not len(values) or np.ptp(values) == 0:
        return []
    of_numbers, worth = set(table.number_columns()), table.rows > WORTH_SHARING
    # The outcome is sorted at once with as many columns as there are other cores.
    first = [name for name in released if name in of_numbers][: threads() - 1 if worth else 0]
    own, *others = share_out(Levels, [values, *map(table.cells, first)], worth=worth)
    sorted_before = dict(zip(first, others, strict=True))
    whole = Outcome(values, float(np.log(len(released) + 1)), own)
    rows = _choose_rows(values, whole.levels[whole.counts.argmax()])
    outcome = whole.at(rows)
    findings: list[Finding] = []
    numbers: dict[str, PerRecord] = {}

    def judge(name: str) -> tuple[Verdict | None, PerRecord | None]:
        cells, levels = table.cells(name), sorted_before.pop(name, None)
        few = cells[rows].astype(np.float64) if name in of_numbers else None
        return _judge_column(cells, whole, outcome, rows, levels), few

    judged = share_out(judge, released, worth=worth)
    for name, (verdict, few) in zip(released, judged, strict=True):
        if verdict is not None:
            findings.append(Finding((name,), f"'{name}'", verdict.says, verdict.refused, verdict.degree))
        if few is not None and (verdict is None or not verdict.refused) and len(numbers) < COMBINED:
            numbers[name] = few
    alone = {name: finding.degree for finding in findings for name in finding.columns}
    # A noted column makes a pair with any that hardly varies: told once, unless the pair says more.
    findings += [
        pair
        for pair in find_pairs(numbers, outcome)
        if pair.refused or all(pair.degree > alone.get(name, -np.inf) for name in pair.columns)
    ]
    findings += _find_places(table, whole, outcome, rows)
    return sorted(findings, key=lambda finding: (not finding.refused, -finding.degree))


@np.errstate(all="ignore")  # likewise
def find_combined(table: Table, protected: Mapping[str, PerRecord], released: Sequence[str]) -> list[Finding]:
    """Released numbers that are made of protected columns alone: the sum of all, a sum or a rate of two.

    Such a column gives none of them away by itself, and all of them nearly so together.
    """
    rows = _sample_rows(table.rows, np.random.default_rng(0))
    findings: list[Finding] = []
    for name in [name for name in table.number_columns() if name in released]:
        cells = table.cells(name)[rows].astype(np.float64)
        there = np.isfinite(cells) & (cells != 0)
        if len(np.unique(cells[there])) < FEW:  # many agree with a few values
            continue
        here = Outcome(cells[there], float(np.log(len(COMBINE) * len(protected) ** 2 * len(released))))
        own = {other: values[rows][there] for other, values in protected.items()}
        made: list[tuple[str, Finding | Verdict]] = [(pair.what, pair) for pair in find_pairs(own, here)]
        whole = here.judge(np.sum(list(own.values()), axis=0)) if len(own) > 2 else None
        made += [("the sum of the protected columns", whole)] if whole else []
        for what, verdict in sorted(made, key=lambda one: -one[1].degree)[:1]:
            says = re.sub(r"\bit\b", what.replace("\\", r"\\"), verdict.says, count=1)
            refused = verdict.refused and verdict.says.startswith("equals")
            findings.append(Finding((name,), f"'{name}'", says, refused, verdict.degree))
    return findings


def _choose_rows(values: PerRecord, common: float) -> NDArray[np.int64]:
    """The rows by which a table is judged, chosen by position; `common` is the commonest outcome."""
    random = np.random.default_rng(0)
    rows = _sample_rows(len(values), random)
    usual = values[rows] == common
    if len(values) <= _JUDGED or np.count_nonzero(~usual) >= _SCARCE:
        return rows
    # Of an outcome that hardly anybody has, a plain sample would hold nobody who has it.
    others = np.flatnonzero(values != common)
    others = random.choice(others, min(_SCARCE, len(others)), replace=False)
    return np.concatenate([others, rows[usual]])[:_JUDGED]


def _sample_rows(records: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Some rows, or all, in a random order."""
    return (
        random.permutation(records) if records <= _JUDGED else random.choice(records, _JUDGED, replace=False)
    )


def _judge_column(
    cells: PerRecord | NDArray[np.str_],
    whole: Outcome,
    outcome: Outcome,
    rows: NDArray[np.int64],
    levels: Levels | None = None,
) -> Verdict | None:
    """The worst that can be said of a column; `levels` are its own, where they are known."""
    verdicts: list[Verdict | None] = []
    text = cells.dtype.kind == "U"
    for numbers in read_numbers(cells[rows]) if text else [cells[rows]]:
        present = np.isfinite(numbers)
        here = outcome if present.all() else outcome.at(present)
        if len(here.levels) < 2 or np.ptp(numbers[present]) == 0:
            continue
        verdicts += [here.judge(*form) for form in _forms(numbers[present], here.values)]
        verdicts += [here.judge_order(numbers[present])]
    present = cells != "" if text else np.isfinite(cells)
    if present.any():
        here = whole if present.all() else whole.at(present)
        if levels is None or not present.all():
            levels = Levels(cells if present.all() else cells[present])
        if len(levels.counts) > 1 and len(here.levels) > 1:
            verdicts += [here.judge_levels(levels), here.judge_common(levels) if present.all() else None]
            verdicts += [here.judge_information(levels)] if len(here.values) >= _ENOUGH else []
        if not present.all():
            verdicts += _judge_gaps(present, whole)
    return max((verdict for verdict in verdicts if verdict), key=lambda v: v.degree, default=None)


def _judge_gaps(present: Mask, whole: Outcome) -> Iterator[Verdict]:
    """What it says of the outcome that a column has a value: a date that only those have who were paid."""
    levels = Levels(present.astype(np.float64))
    for verdict in (whole.judge_levels(levels), whole.judge_information(levels), whole.judge_common(levels)):
        if verdict is not None and len(present) >= _ENOUGH:
            yield replace(verdict, says=f"{verdict.says}, by its gaps")


def _forms(numbers: PerRecord, values: PerRecord) -> Iterator[tuple[PerRecord, str]]:
    """A column as it is, times a constant, and plus a constant: those that fit the middle record."""
    yield numbers, ""
    used = (numbers != 0) & (values != 0)
    if used.any():
        yield numbers * np.median(values[used] / numbers[used]), " up to a constant factor"
    yield numbers + np.median(values - numbers), " but for a constant"


def _find_places(
    table: Table, whole: Outcome, outcome: Outcome, rows: NDArray[np.int64]
) -> Iterator[Finding]:
    """What the order of the rows and the index give away."""
    verdict = outcome.judge_order(rows.astype(np.float64))
    if verdict is not None:
        yield Finding((), ORDER_OF_ROWS, verdict.says, verdict.refused, verdict.degree)
    for cells in table.index_levels():
        verdict = _judge_column(cells, whole, outcome, rows)
        if verdict is not None:
            yield Finding((), INDEX, verdict.says, verdict.refused, verdict.degree)
