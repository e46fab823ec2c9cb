"""One tree of errors under `HedgerowError`, and what its messages share; each says value, bound and remedy.

`is_real`, `is_finite` and `is_count` say what counts as a number at the door; `reason_of` words an error of
the operating system, without its path; `list_some` shortens a list of names; `show_controls` makes a text
safe to show.

A message may name columns, counts, parameters and public settings. It never quotes a value of the
confidential outcome or a row number picked by such a value. One message holds a number computed from the
outcome, and says so: a `CalibrationError` tells the owner the smallest ε that was reached. So does a
`HealthError`, with the diagnostics of a sampler.
"""

import errno
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence

_FEW = 6  # parts of a list that a message shows

# Those of terminals, line breaks of any kind, those that turn the direction of writing, halves of characters.
CONTROLS = re.compile(  # of a terminal, of the direction of writing, of no width
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
)


class HedgerowError(Exception):
    """Every error that hedgerow raises on purpose."""


class SettingError(HedgerowError, ValueError):
    """A setting given by the caller is out of bounds or does not go with another."""


class FormulaError(SettingError):
    """A formula that is malformed or uses something outside the fixed list of transforms."""


class FieldError(SettingError):
    """A key or value of a plan, a certificate or a flag that is not what it should be."""


class PlanError(SettingError):
    """A plan that cannot be read."""


class DataError(HedgerowError, ValueError):
    """The table cannot be used as it is."""


class RangeError(DataError):
    """A range does not fit the outcome it is meant to describe."""


class UnscoredError(DataError):
    """A draw at which the model gives some record no finite density."""


class CalibrationError(HedgerowError):
    """The target ε cannot be met."""


class FileError(HedgerowError):
    """A file that cannot be read or written: absent, cut short, of another kind, or no room for it."""


class ClusterError(HedgerowError):
    """A cluster that cannot be reached, lost its scheduler or its workers, or is not set up for the work."""


class LedgerError(HedgerowError):
    """The ledger cannot be read, written or trusted."""


class BudgetError(LedgerError):
    """A spend that the budget does not cover."""

    def __init__(self, message: str, *, remaining: float) -> None:
        super().__init__(message)
        self.remaining = remaining  # ε, rounded down, so that spending it is always allowed


class ReleaseError(HedgerowError):
    """A release folder that is not what its certificate says, or cannot be made."""


class HealthError(HedgerowError):
    """The sampler's draws cannot be trusted. The message holds diagnostics of the fit: confidential."""


class NotFittedError(HedgerowError, AttributeError):
    """A result was asked for before `fit`."""


class HedgerowWarning(UserWarning):
    """Something the caller should know before relying on a result; never a confidential value."""


def reason_of(error: OSError) -> str:
    """Why the operating system refused, in its own words but without the path: "No space left on device"."""
    return os.strerror(error.errno or errno.EIO)  # a library may raise OSError without a number


def list_some(names: Sequence[object], most: int = 5, *, quoted: bool = False) -> str:
    """The first few names, and how many more there are."""
    listed = ", ".join(f"'{name}'" if quoted else f"{name}" for name in names[:most])
    return listed + (f" and {len(names) - most} more" if len(names) > most else "")


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A hint at the name that was probably meant, or nothing; signs that join words and case do not count."""
    import difflib  # here, since most runs make no mistake

    names = {_plain(name): name for name in known}
    near = difflib.get_close_matches(_plain(str(word)), names, 1)
    return f" Did you mean {names[near[0]]}?" if near else ""


def _plain(name: str) -> str:
    return name.replace("_", "-").lower()


def format_value(value: object, most: int = 60) -> str:
    """What somebody gave, in a message: plain values, cut to a readable length; of all else the type.

    A table, an array or a long list where a setting belongs may hold data, and a message goes to logs.
    """
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**20:
        return "a number of more than 20 digits"
    if isinstance(value, Mapping):
        return f"a mapping of {len(value)}"
    if isinstance(value, list | tuple):
        if len(value) > _FEW or not all(map(_is_plain, value)):
            return f"a {type(value).__name__} of {len(value)}"
    elif not _is_plain(value):
        return f"a value of type {type(value).__name__}"
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, str | bool) or is_real(value)


def show_controls(text: str) -> str:
    r"""The text in one line, with what would steer a terminal or a page written out: \x1b, \n, \u202e."""
    return CONTROLS.sub(lambda each: each[0].encode("unicode_escape").decode(), text)


def is_real(value: object) -> bool:
    """A plain number, not a boolean; may be infinite or NaN."""
    import numpy as np  # here, so that `import hedgerow` does not load it

    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_finite(value: object) -> bool:
    """A plain number that is finite as a float64."""
    try:
        return is_real(value) and math.isfinite(float(value))  # type: ignore[arg-type]  # is_real has checked
    except OverflowError:  # a whole number beyond the largest float64
        return False


def is_count(value: object) -> bool:
    """A whole number, not a boolean."""
    import numpy as np

    return isinstance(value, int | np.integer) and not isinstance(value, bool)
