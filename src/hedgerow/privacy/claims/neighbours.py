"""What a release is compared with, in words: the neighbour of one record, of a row, and of a whole unit.

>>> join_records(NEIGHBOURS["RangeTruncated"], whose("home"))[:54]
"the outcomes of all records of one 'home' are replaced"

To add a standard, add its row to `NEIGHBOURS`; where several columns may be protected or units priced under
it, its words for those.
"""

from collections.abc import Mapping

WITHHELD = (
    "the outcome of one record is withheld: treated as missing, while its row, its predictors and the "
    "number of records stay"
)
_IN_RANGE = "the outcome of one record is replaced by the statement that it lies in its range, at {} weight"
_REPLACED = (
    "the outcome of one record is replaced by {}, while its row, its predictors and the number of "
    "records stay"
)
# The table that a release is compared with, by the label of its standard.
NEIGHBOURS: Mapping[str, str] = {
    "Unweighted": WITHHELD,
    "ADP": WITHHELD,
    "RangeAveraged": (
        "one record keeps only the share of its likelihood deemed public (λ), still at its exact value"
    ),
    "RangeTruncated": _IN_RANGE.format("the record's own"),
    "RangeTruncated, public weight one": _IN_RANGE.format("full"),
    "Strict": WITHHELD,
    "Censored": WITHHELD,
    "Strict, withheld": WITHHELD,
    "Strict, replaced": _REPLACED.format("any other value"),
    "Strict, in range": _REPLACED.format("another value of the same public set"),
}
ALL = "all its protected columns together"
_ROW = f"the outcome of one record, {ALL}, is"
_STAY = "while its row, its public columns and the number of records stay"
_IN_RANGES = (
    f"{_ROW} replaced by the statement that each value lies in its range, all at once, at {{}} weight"
)
# The same where several columns are protected, by what it is for one.
_TOGETHER: Mapping[str, str] = {
    WITHHELD: f"{_ROW} withheld: treated as missing, {_STAY}",
    NEIGHBOURS["RangeAveraged"]: (
        f"one record, {ALL}, keeps only the share of its likelihood deemed public (λ, the chance that a row "
        "lies outside the record's ranges), still at its exact values"
    ),
    NEIGHBOURS["RangeTruncated"]: _IN_RANGES.format("the record's own"),
    NEIGHBOURS["RangeTruncated, public weight one"]: _IN_RANGES.format("full"),
    NEIGHBOURS["Strict, replaced"]: f"{_ROW} replaced by any other values, {_STAY}",
    NEIGHBOURS["Strict, in range"]: f"{_ROW} replaced by other values of the same public sets, {_STAY}",
}
ALL_THEIR = "all their protected columns together"
_STAYING = "while their rows, their {} and the number of records stay"
_LIES = "are replaced by the statement that each value lies in its range, all at once, at {} weight"
_OWN = "the records' own"
# What becomes of all records of a unit together, by what becomes of one: "{}" are columns that stay.
_OF_UNITS: Mapping[str, str] = {
    WITHHELD: f"are withheld together: treated as missing, {_STAYING}",
    NEIGHBOURS["RangeTruncated"]: _LIES.format(_OWN),
    NEIGHBOURS["RangeTruncated, public weight one"]: _LIES.format("full"),
    NEIGHBOURS["Strict, replaced"]: f"are replaced by any other values, {_STAYING}",
    NEIGHBOURS["Strict, in range"]: f"are replaced by other values of the same public sets, {_STAYING}",
}
_KEPT = (
    "keep only the shares of their likelihoods deemed public (λ, the chance that a row lies outside the "
    "record's ranges), still at their exact values"
)


def join_columns(neighbour: str) -> str:
    """What a release of several protected columns is compared with, by the words for one of them."""
    return _TOGETHER.get(neighbour, f"of one record, {ALL}: {neighbour}")


def whose(column: str | None, rows: int | None = None) -> str:
    """A unit: one of those that a column names, or a person or firm; with so many rows at most."""
    unit = "one person or firm" if column is None else f"one '{column}'"
    return unit if rows is None else f"{unit} with at most {rows} rows"


def join_records(neighbour: str, unit: str) -> str:
    """What a release priced by units is compared with, by the words for a record; `unit` is as in `whose`."""
    alone = next((one for one, several in _TOGETHER.items() if several == neighbour), neighbour)
    several = alone != neighbour
    records = f"all records of {unit}{f', {ALL_THEIR},' if several else ''}"
    if alone == NEIGHBOURS["RangeAveraged"]:
        return f"{records} {_KEPT}"
    if alone not in _OF_UNITS:  # of a standard of somebody's own
        return f"for all records of {unit} together: {neighbour}"
    stay = "public columns" if several else "predictors"
    return f"the outcomes of {records} {_OF_UNITS[alone].replace('{}', stay)}"
