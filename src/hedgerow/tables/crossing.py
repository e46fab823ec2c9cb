"""The cells that categorical predictors make: public patterns that occur, crossed with declared levels.

    >>> import pandas as pd
    >>> table = Table.of(pd.DataFrame({"sex": ["f", "m", "f"], "job": ["a", "b", "b"]}))
    >>> cells = Crossing.of(table, ["sex"], {"job": ("a", "b", "c")})
    >>> cells.count, cells.codes.tolist()
    (6, [0, 4, 1])

Formal guarantee: `count` and the meaning of each code follow from public columns and declared levels alone.
The codes themselves are as confidential as the protected columns among the predictors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.errors import DataError
from hedgerow.tables.table import Table

Codes = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Crossing:
    """The cell of each record, and how many there are; a cell that is made of an undeclared label is 0."""

    codes: Codes
    count: int
    steps: tuple[tuple[str, NDArray[np.str_], Codes], ...]  # public column, its words, patterns up to it
    declared: Mapping[str, tuple[Any, ...]]  # levels of protected columns

    @classmethod
    def of(cls, table: Table, public: Sequence[str], declared: Mapping[str, tuple[Any, ...]]) -> "Crossing":
        """The cells of a table's predictors."""
        steps, codes, count = [], np.zeros(table.rows, dtype=np.int64), 1
        for name in public:
            words, inner = np.unique(table.words(name), return_inverse=True)
            patterns, codes = np.unique(codes * len(words) + inner, return_inverse=True)
            steps.append((name, words, patterns))
            count = len(patterns)
        for levels in declared.values():
            count *= len(levels)
        return cls(codes, count, tuple(steps), dict(declared)).encode(table)

    def encode(self, table: Table) -> "Crossing":
        """The cells that another table's records fall into."""
        codes = np.zeros(table.rows, dtype=np.int64)
        for name, words, patterns in self.steps:
            texts = table.words(name)
            inner = np.minimum(np.searchsorted(words, texts), len(words) - 1)
            wanted = codes * len(words) + inner
            codes = np.minimum(np.searchsorted(patterns, wanted), len(patterns) - 1)
            if (words[inner] != texts).any() or (patterns[codes] != wanted).any():
                raise DataError(
                    f"Column '{name}' makes a combination of public predictors that the model has no "
                    "cell for. Synthesize the table it was fitted to."
                )
        for name, levels in self.declared.items():
            codes = codes * len(levels) + np.maximum(table.places(name, levels), 0).astype(np.int64)
        return replace(self, codes=codes)

    def spread(self, rows: NDArray[np.intp], times: int, places: Mapping[str, Codes]) -> "Crossing":
        """The cells of some records, each so many times, with other levels of the protected predictors."""
        inner = int(np.prod([len(levels) for levels in self.declared.values()], initial=1))
        codes = np.repeat(self.codes[rows] // inner, times)
        for name, levels in self.declared.items():
            codes = codes * len(levels) + places[name]
        return replace(self, codes=codes)

    def take(self, rows: NDArray[np.intp]) -> "Crossing":
        """The cells of some rows."""
        return replace(self, codes=self.codes[rows])

    def hollow(self) -> "Crossing":
        """The cells alone, of no records."""
        return replace(self, codes=self.codes[:0].copy())

    def blank(self) -> "Crossing":
        """The public part, in memory of its own: codes too, unless protected columns are among them."""
        codes = self.codes[:0] if self.declared else self.codes
        return replace(self, codes=codes.copy())
