"""What is taken as public of a column's cells, in words: from its declaration, or from a plan.

>>> list(describe_cells("wage", {"codes": [-8], "filler": 3000.0}))
["that -8 in 'wage' stands for no amount", "that 3000 is a usual amount of 'wage'"]
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hedgerow.errors import is_finite

FILLER = 1.0  # unless another is declared


def describe_cells(name: str, declared: Mapping[str, Any]) -> Iterator[str]:
    """What is assumed by the keys of a column as plans have them: gaps, codes, rules, fillers, units."""
    if declared.get("missing") == "public":
        yield f"which cells of '{name}' are missing or cannot be read"
    if codes := declared.get("codes"):
        stand = "stands" if len(codes) == 1 else "stand"
        yield f"that {', '.join(map(str, codes))} in '{name}' {stand} for no amount"
    if (whole := declared.get("share_of")) is not None:
        yield f"that '{name}' is at most {whole}"
    if (condition := declared.get("only_where")) is not None:
        otherwise = declared.get("otherwise")
        elsewhere = "missing" if otherwise is None else _write(otherwise)
        yield f"that '{name}' is {elsewhere} unless {condition}"
    if (filler := declared.get("filler", FILLER)) != FILLER:
        yield f"that {_write(filler)} is a usual amount of '{name}'"
    if declared.get("shared"):
        yield f"that '{name}' is the same in all rows of one unit"


def _write(value: Any) -> str:
    return f"{value:.15g}" if is_finite(value) else str(value)
