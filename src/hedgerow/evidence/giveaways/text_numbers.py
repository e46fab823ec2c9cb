"""The numbers that a column of text holds: "123.45 EUR", "1,234.50", "1.234,50", "F0012-12345", "0x3039".

    >>> for numbers in read_numbers(np.array(["F0001-1,250 EUR", "F0002-80 EUR"])):
    ...     print(numbers.tolist())
    [0.0, 1.0]
    [1.0, 2.0]
    [1250.0, 80.0]
    [1.25, 80.0]

Cells are taken apart in every usual way at once; which of them makes sense is for the reader to say.
"""

import re

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import PerRecord

_PLACES = (0, 1, 2, -1)  # the numbers of a cell that are looked at
_SEPARATORS = " '’_\u00a0\u202f"
_NUMBER = re.compile(rf"(?:(?<!\w)[-−])?\d+(?:[.,{_SEPARATORS}]\d+)*(?:[eE][-+]?\d+)?")
_HEXADECIMAL = re.compile(r"(?:0x)?[0-9a-f]{2,16}", re.IGNORECASE)


def read_numbers(words: NDArray[np.str_]) -> list[PerRecord]:
    """Each way to read text as numbers that works for most cells; NaN where one does not, or is empty.

    The first is the place in the alphabet.
    """
    filled = words != ""
    _, places = np.unique(words, return_inverse=True)
    ways = [np.where(filled, places, np.nan)]
    tokens = [_NUMBER.findall(word) for word in words.tolist()]
    most = max(map(len, tokens), default=0)
    for place in _PLACES[: most + 1]:
        if place < most:
            found = [row[place] if -len(row) <= place < len(row) else "" for row in tokens]
            ways += [np.array([_parse(token, point) for token in found], dtype=np.float64) for point in ".,"]
    if any(re.search("[a-f]", word, re.IGNORECASE) for word in words.tolist()):
        ways.append(np.array([_parse_hexadecimal(word) for word in words.tolist()], dtype=np.float64))
    enough = [way for way in ways if np.isfinite(way).sum() > filled.sum() / 2]
    different = {way.tobytes(): way for way in enough}
    return list(different.values())


def _parse(token: str, point: str) -> float:
    """A number whose decimal sign is `point`; what else stands between its digits groups them."""
    token = token.replace("−", "-")
    if token.count(point) > 1:  # it cannot be the decimal sign here
        token = token.replace(point, "")
    plain = "".join(
        "." if sign == point else sign for sign in token if sign not in f".,{_SEPARATORS}" or sign == point
    )
    try:
        return float(plain)
    except ValueError:
        return np.nan


def _parse_hexadecimal(word: str) -> float:
    return float(int(word, 16)) if _HEXADECIMAL.fullmatch(word) else np.nan
