"""Interval estimates from corrected draws, by a parametric bootstrap (docs/maths.md, "Intervals").

Tables simulated at the corrected draws go through the whole recipe, draws are taken of each one's weighted
posterior, and corrected. How far these land from where they were simulated is how far the released ones may
lie from the truth. Only public things and released draws enter: it is post-processing, and ε stays.
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np

from hedgerow.arrays import Array
from hedgerow.errors import CalibrationError, SettingError
from hedgerow.inference.bootstrap import TABLES, check_sizes
from hedgerow.mechanism.debias import Corrected, Public, attempt, replay
from hedgerow.models.correctable import require_stand_in
from hedgerow.models.exact import Regression
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Boxed
from hedgerow.tables.design import check_sigma

T = TypeVar("T")

_GROUPS = 20  # sets of draws from one simulated table: cheap beside the table, and they smooth the ends


@dataclass(frozen=True)
class Intervals:
    """One entry per parameter: the coefficients, then σ. As releasable as the draws they come from."""

    parameters: tuple[str, ...]
    estimate: Array
    lower: Array
    upper: Array
    corrected: bool  # whether the search for θ_c settled for every copy


def explain_refusal(settings: Settings) -> str:
    """Why a weighted release has no intervals; empty where it has."""
    if not settings.standard.weighted:
        return (
            f"intervals: {settings.standard.label} copies come from a plain posterior, for which hr.combine "
            "has a rule; there is nothing to replay."
        )
    if not settings.debias:
        return (
            "intervals: they rest on corrected draws, and combining rules on uncorrected ones are too narrow "
            "and in the wrong place. Plan the release with debias=True."
        )
    if not isinstance(settings.model, Regression | Boxed):
        return (
            f"intervals: the {settings.model.name} model is replayed only approximately. Use the normal, "
            "lognormal or asinh family, with Strict or without."
        )
    return ""


def check_intervals(settings: Settings, *, level: float, tables: int) -> None:
    """Refuse what has no intervals."""
    if reason := explain_refusal(settings):
        raise SettingError(reason)
    check_sizes(level, tables)


def intervals(
    public: Public, copies: tuple[Corrected, ...], *, level: float = 0.95, tables: int = TABLES
) -> Intervals:
    """Basic bootstrap intervals about the mean of the copies' draws. A function of its arguments alone.

    Copies that went out uncorrected are matched by uncorrected draws, so that their bias moves the interval.
    """
    model, design = require_stand_in(public.settings.model), public.design
    here, again = find_errors(public, copies, tables=tables, sets=_GROUPS)
    again = again.reshape(-1, *again.shape[2:])
    low, high = np.quantile(again.mean(axis=1), [(1 - level) / 2, (1 + level) / 2], axis=0)
    ends = [model.natural(design, model.within(design, here - end)) for end in (high, low)]
    estimate, lower, upper = (
        np.append(one["beta"], one["sigma"]) for one in (model.natural(design, here), *ends)
    )
    settled = all(copy.converged for copy in copies)
    return Intervals((*design.columns, "sigma"), estimate, lower, upper, settled)


def find_errors(
    public: Public, copies: tuple[Corrected, ...], *, tables: int, sets: int
) -> tuple[Array, Array]:
    """Where the copies' draws are on average, and how far replayed ones lie from there: as `free` writes it.

    The second has one entry per simulated table, set, copy and parameter. A simulated table's draws are not
    corrected by a search of their own but by the straight line that the correction is close to near θ_c: the
    mean gap of the weighted estimates there, and how it moves with the parameters. What the tables of a
    search leave to chance is put back by resampling.
    """
    model, design = require_stand_in(public.settings.model), public.design
    check_sigma(design, "intervals")
    here = np.mean([model.free(design, copy.parameters) for copy in copies], axis=0)
    truth, draws = model.natural(design, here), sets * len(copies)
    found = _require_tables(attempt(partial(replay, public, truth, scales={}, draws=draws), tables))
    bias = np.array([estimate - chance for estimate, chance, _ in found]) - here
    drawn = np.array([draws for _, _, draws in found]).reshape(-1, len(copies), len(here))
    gap = drawn - here - _draw_search_bias(public, bias, drawn.shape[:2])
    slope = _slope(public, here, drawn.std(axis=(0, 1)))
    settled = np.array([copy.converged for copy in copies])
    # Not kept in a box, which would cut off how far they can be from the truth; the ends are.
    again = np.where(settled[:, None], gap @ np.linalg.pinv(slope), drawn - here)
    return here, again.reshape(tables, sets, len(copies), -1)


def _slope(public: Public, here: Array, steps: Array) -> Array:
    """How the weighted estimate's mean moves with each parameter, a row each, on the same random numbers.

    A step goes the other way where the model, its box for one, has no place for it.
    """
    model, design = require_stand_in(public.settings.model), public.design
    public = replace(public, key=public.key.child("slope"))
    moves = [place * step for place, step in zip(np.eye(len(here)), steps, strict=True)]
    moves = [
        move if np.array_equal(model.within(design, here + move), here + move) else -move for move in moves
    ]
    scales: dict[int, float] = {}

    def differences(number: int) -> Array:
        truths = [model.natural(design, here + move) for move in (np.zeros_like(here), *moves)]
        found = [np.subtract(*replay(public, truth, number, scales)[:2]) for truth in truths]
        return np.array([there - found[0] for there in found[1:]])

    found = _require_tables(attempt(differences, model.tables))
    return np.asarray(np.mean(found, axis=0) / np.sum(moves, axis=0)[:, None], dtype=np.float64)


def _require_tables(found: list[T] | None) -> list[T]:
    """What simulated tables gave; refused where too few of them met the target."""
    if found is None:
        raise CalibrationError(
            "intervals: too few tables simulated at the released draws meet the target. Use more records, a "
            "larger ε or fewer copies."
        )
    return found


def _draw_search_bias(public: Public, bias: Array, shape: tuple[int, ...]) -> Array:
    """The bias as searches would find it, each with a few tables of its own."""
    model = require_stand_in(public.settings.model)
    each = model.tables if public.search.tables is None else public.search.tables
    uniforms = public.key.child("searches").stream().uniform(int(np.prod(shape)) * each)
    chosen = np.minimum((uniforms * len(bias)).astype(np.int64), len(bias) - 1)
    return np.asarray(bias[chosen].reshape(*shape, each, -1).mean(axis=2), dtype=np.float64)
