"""The sensitive part d[s,i] of a standard, recognised as coefficients where it is linear.

A standard is ordinary arithmetic on `log_lik` and `log_mass`. Evaluated once on two symbols instead of
arrays, it yields d = density_i · log_lik + mass_i · log_mass + constant_i, and the fused kernels can find
its extremes without ever forming draws × records. A standard that does anything else with its arguments
makes the symbols refuse, and is scored in blocks instead.
"""

from typing import Any, NoReturn

import numpy as np

from hedgerow.arrays import LogLik, LogMass, PerRecord
from hedgerow.errors import SettingError
from hedgerow.models.scored import Interval, Linear, Opaque, Sensitive
from hedgerow.privacy.standards import Standard


def sensitive_part(standard: Standard, alpha: PerRecord, known: PerRecord, interval: Interval) -> Sensitive:
    """The standard's d for these weights; zero for records that are public (outside their range)."""
    traced = _trace(standard, alpha, known)
    if traced is not None:
        # On the whole line log γ = 0: drop it, so that a range covering everything is ADP exactly.
        mass = np.broadcast_to(0.0, alpha.shape) if interval.whole else traced.mass
        if interval.inside.all():
            return Linear(traced.density, mass, traced.constant)
        inside = interval.inside.astype(np.float64)
        return Linear(inside * traced.density, inside * mass, inside * traced.constant)

    def evaluate(records: slice, log_lik: LogLik, log_mass: LogMass) -> LogLik:
        part = np.asarray(standard.sensitive(alpha[records], known[records], log_lik, log_mass))
        if part.shape != log_lik.shape:
            raise SettingError(
                f"{type(standard).__name__}.sensitive returned shape {part.shape} for {log_lik.shape}; "
                "return one value per draw and record."
            )
        return np.where(interval.inside[records], part, 0.0)

    return Opaque(evaluate)


def withheld_part(power: PerRecord) -> Linear:
    """d for the neighbour in which x_i is withheld altogether: α*_i f."""
    nothing = np.broadcast_to(0.0, power.shape)
    return Linear(power, nothing, nothing)


class _Symbol:
    """A linear form in two unknowns. Anything but linear arithmetic raises TypeError."""

    __array_ufunc__ = None  # so that array * symbol asks the symbol

    def __init__(self, density: Any, mass: Any, constant: Any) -> None:
        self.terms = (density, mass, constant)

    def __add__(self, other: Any) -> "_Symbol":
        density, mass, constant = self.terms
        if isinstance(other, _Symbol):
            return _Symbol(density + other.terms[0], mass + other.terms[1], constant + other.terms[2])
        return _Symbol(density, mass, constant + _plain(other))

    __radd__ = __add__

    def __mul__(self, other: Any) -> "_Symbol":
        factor = _plain(other)
        # A term that is not there stays one number, unless a factor makes none of it.
        finite = not factor.size or bool(np.isfinite(factor.min()) and np.isfinite(factor.max()))

        def multiply(term: Any) -> Any:
            if np.ndim(term) == 0 and (term == 1 or (term == 0 and finite)):
                return factor if term == 1 else 0.0
            return term * factor

        return _Symbol(*map(multiply, self.terms))

    __rmul__ = __mul__

    def __neg__(self) -> "_Symbol":
        return self * -1.0

    def __sub__(self, other: Any) -> "_Symbol":
        return self + (-other)

    def __rsub__(self, other: Any) -> "_Symbol":
        return -self + other

    def __truediv__(self, other: Any) -> "_Symbol":
        return self * (1.0 / _plain(other))

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("not linear")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __len__ = __iter__ = __getitem__ = __array__ = __float__ = __pow__ = _refuse
    __hash__ = _refuse  # nor looked up in a cache


def _plain(value: Any) -> Any:
    if isinstance(value, _Symbol) or np.ndim(value) > 1:
        raise TypeError("not linear")
    return np.asarray(value, dtype=np.float64)


def _trace(standard: Standard, alpha: PerRecord, known: PerRecord) -> Linear | None:
    try:
        form = standard.sensitive(alpha, known, _Symbol(1.0, 0.0, 0.0), _Symbol(0.0, 1.0, 0.0))
    except Exception:  # a user's function may fail on a symbol in any way; blocks of arrays decide then
        return None
    if not isinstance(form, _Symbol):
        return None
    spread = [np.broadcast_to(np.asarray(term, dtype=np.float64), alpha.shape) for term in form.terms]
    density, mass, constant = (np.ascontiguousarray(term) if np.any(term) else term for term in spread)
    return Linear(density, mass, constant)
