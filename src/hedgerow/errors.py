"""One tree of errors under `HedgerowError`; every message says value, bound and remedy.

A message may name columns, counts, parameters and public settings. It never quotes a value of the
confidential outcome or a row number picked by such a value. One message holds a number computed from the
outcome, and says so: a `CalibrationError` tells the owner the smallest ε that was reached. So does a
`HealthError`, with the diagnostics of a sampler.
"""


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
