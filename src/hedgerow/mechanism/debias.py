"""Undoing the bias of the weights by indirect inference (docs/maths.md, "Undoing the bias"; docs/bias.md).

For a released draw θ, look for the θ_c such that tables simulated from the model at θ_c, put through the same
recipe, lead back to θ on average. `correct` receives one frozen object of public things and nothing else:
whatever it does with them is post-processing of the draw, and ε stays what it was. The weights, their scale,
λ and the ranges of the confidential table are not in it; they are computed anew on each simulated table.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from hedgerow.arrays import Array, PerRecord
from hedgerow.errors import DataError, HedgerowError, SettingError
from hedgerow.mechanism.calibrate import settle
from hedgerow.mechanism.steps import Start, begin, power_of
from hedgerow.models.base import Model, Parameters
from hedgerow.models.correctable import require_correctable, require_stand_in
from hedgerow.privacy.ranges import Everywhere, Range
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.standards import Standard
from hedgerow.privacy.weights import FixedWeights, Reweighted, Weights
from hedgerow.randomness import Key
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table
from hedgerow.threads import one_blas_thread

T = TypeVar("T")

_SPARE = 3  # times as many tables are tried as are needed, for those that lead to no release
_TELLING = 0.5  # share of an estimate's variance that may be left when chance is taken off
_REDRAWS = 50  # times a simulated value that no range has a place for is drawn again


@dataclass(frozen=True)
class Search:
    """How θ_c is looked for: fixed beforehand, the same for every release."""

    tables: int | None = None  # simulated tables, alike at every step; None: as many as the model asks for
    limit: int = 12  # steps; a draw that has not settled by then goes out as it is
    tolerance: float = 0.25  # last move allowed, in standard deviations of an estimate over the tables


@dataclass(frozen=True, repr=False)
class Public:
    """All that a correction may know. Everything reachable from here is public or the released draw.

    `settings` hold the model with its prior, the standard with its public range, the rule for the weights,
    the bound, S, the target and how λ is found. `key` serves nothing else.
    """

    draw: Parameters  # θ, one value per parameter
    design: Design  # the predictors; its outcome is missing throughout
    table: Table  # columns that the range and the weights read
    settings: Settings
    key: Key
    search: Search = field(default_factory=Search)

    def __repr__(self) -> str:
        return f"Public({self.design.records} records, {self.settings.standard.label})"


@dataclass(frozen=True, repr=False)
class Corrected:
    """What goes out: θ_c where the search settled, else θ itself."""

    parameters: Parameters
    converged: bool
    steps: int

    def __repr__(self) -> str:
        return f"Corrected({'converged' if self.converged else 'uncorrected'} after {self.steps} steps)"


def check(settings: Settings) -> None:
    """Refuse what cannot be replayed from public things, before any data are seen."""
    standard, public_range = settings.standard, settings.standard.range
    if not standard.weighted:
        raise SettingError(
            f"debias: {standard.label} has no weights whose bias could be undone. Leave debias out."
        )
    require_correctable(settings.model)
    if isinstance(settings.weights.unraised, FixedWeights):
        raise SettingError(
            "debias: weights given by record cannot be replayed on a simulated table, and using them "
            "would not be post-processing. Use a rule such as LinearWeights(), or leave debias out."
        )
    # The exponents depend on the ranges through λ, the price, or records taken as public.
    needed = standard.uses_known or settings.target is not None or isinstance(settings.weights, Reweighted)
    if public_range.by_record and (needed or public_range.outside == "public"):
        raise SettingError(
            "debias: bounds given by record cannot be replayed on a simulated table: they may be as "
            "confidential as the records, and simulated values need not lie in them. Use Radius, Brackets or "
            "bounds that are the same for all, or leave debias out."
        )
    if public_range.by_record and not is_dataclass(standard):
        raise SettingError(
            f"debias: {type(standard).__name__} must be a dataclass, so that its bounds by record, "
            "which are not needed, can be left out."
        )
    for part in (settings.weights, standard, settings.model):
        stranger = _find_unvouched(part)
        if stranger is not None:
            raise SettingError(
                f"debias: {stranger} is not of hedgerow's own making, and may hold confidential data. If it "
                "was written without looking at them, say so: public=True (for a class of your own, the "
                "attribute public = True); or leave debias out."
            )


def _find_unvouched(part: object) -> str | None:
    """The name of something a caller made and has not vouched for with public=True, wherever it is held.

    A correction may know the settings, and settings may hold functions and objects of the caller's in which a
    confidential array can hide. Our own frozen types hold numbers, words and names of columns.
    """
    if getattr(part, "public", False) is True:
        return None
    if type(part).__module__.partition(".")[0] != "hedgerow":
        return getattr(part, "__name__", type(part).__name__)
    for held in vars(part).values():
        if isinstance(held, Weights | Standard | Range | Model) or callable(held):
            stranger = _find_unvouched(held)
            if stranger is not None:
                return stranger
    return None


def public_view(settings: Settings, start: Start, draw: Parameters, key: Key) -> Public:
    """What work on a released draw may know, in memory that holds nothing else."""
    standard: Any = settings.standard
    if standard.range.by_record:  # `check` found that it is not needed
        settings = replace(settings, standard=replace(standard, range=Everywhere()))
    names = dict.fromkeys((*settings.standard.range.columns, *settings.weights.columns))
    if start.design.outcome in names:
        raise SettingError("debias: the range or the weights read the outcome's column. Leave debias out.")
    return Public(draw, start.design.blank(), start.table.copy_columns(list(names)), settings, key)


def public_draw(parameters: Parameters, draw: int) -> Parameters:
    """One draw of a fit, in memory of its own."""
    return MappingProxyType({name: np.array(values[draw], copy=True) for name, values in parameters.items()})


@one_blas_thread()
def correct(public: Public) -> Corrected:
    """θ_c, or θ itself by a fixed rule where the search does not settle. A function of `public` alone."""
    design, search = public.design, public.search
    model = require_correctable(public.settings.model).stand_in(design, public.draw)
    public = replace(public, settings=replace(public.settings, model=model))
    wanted = model.free(design, public.draw)
    here, step, smallest = wanted, 1.0, np.inf
    tables = model.tables if search.tables is None else search.tables
    scales: dict[int, float] = {}
    told = True
    for steps in range(1, search.limit + 1):
        truth = model.natural(design, here)
        found = attempt(partial(replay, public, truth, scales=scales), tables)
        if found is not None and steps == 1 and search.tables is None and model.doubted_tables:
            told = _chance_tells(found)
            if not told:
                tables = model.doubted_tables
                found = attempt(partial(replay, public, truth, scales=scales), tables)
        if found is None:
            break
        estimates = [estimate for estimate, *_ in found]
        gap = wanted - np.mean([one - chance for one, chance, _ in found] if told else estimates, axis=0)
        spread = np.std(estimates, axis=0, ddof=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            size = float(np.max(np.where(gap == 0, 0.0, np.abs(gap) / spread)))
        if not np.isfinite(size):
            break
        if size <= search.tolerance:
            there = model.within(design, here + gap)
            return Corrected(MappingProxyType(dict(model.natural(design, there))), True, steps)
        step = step / 2 if size > smallest else step  # the gap grew: walk more slowly
        smallest = min(smallest, size)
        # A wall is no answer: with θ_c beyond the box the gap stays open, and the draw goes out as it is.
        before, here = here, model.within(design, here + step * gap)
        if np.array_equal(before, here):
            break
    return Corrected(public.draw, False, steps)


def _chance_tells(found: Sequence[tuple[Array, Array, Array]]) -> bool:
    """Whether a table's estimate follows chance, so that taking it off makes up for few tables.

    It does not where the prior, or weights that leave little of the data, hold the estimate in its place.
    """
    estimates, chances = (np.array([one[place] for one in found]) for place in (0, 1))
    return bool((np.var(estimates - chances, axis=0) <= _TELLING * np.var(estimates, axis=0)).all())


def attempt(one_table: Callable[[int], T], tables: int) -> list[T] | None:
    """What so many simulated tables lead to; None where too few of them can be released at all.

    A table on which the recipe has no answer, a target it cannot meet for one, is passed over: it would not
    have been released, and the confidential one was.
    """
    found: list[T] = []
    for number in range(_SPARE * tables):
        try:
            found.append(one_table(number))
        except HedgerowError:
            continue
        if len(found) == tables:
            return found
    return None


def replay(
    public: Public, truth: Parameters, number: int, scales: dict[int, float], *, draws: int = 0
) -> tuple[Array, Array, Array]:
    """A table simulated at `truth` and put through the whole recipe: its estimate, and chance's part in it.

    Beside them, draws of that table's weighted posterior, as `free` writes them. `scales` remembers each
    table's calibrated scale, where the search for it starts at the next step.
    """
    settings, key = public.settings, public.key.child("table").child(number)
    model = require_stand_in(settings.model)
    first, values = _simulate(public, truth, key.child("values"))
    design = public.design.replace_values(values)
    start = begin(model, public.table, design, draws=settings.draws, key=key)
    # The last step's scale of the same table, or that of the table before: a place to start searching.
    settled = settle(settings, start, key=key, near=scales.get(number, scales.get(number - 1)))
    if settings.target is not None:
        scales[number] = settled.scale
    power = power_of(settings, settled.weighted)
    estimate = model.centre(design, power, key=key.child("centre"))
    # Values before any redraw: only these follow the model exactly, which is what makes the mean zero.
    chance = model.chance(public.design.replace_values(first), truth)
    rows = []
    if draws:
        drawn = model.sample(design, power, draws=draws, key=key.child("draws")).parameters
        rows = [model.free(design, public_draw(drawn, draw)) for draw in range(draws)]
    return estimate, np.zeros_like(estimate) if chance is None else chance, np.array(rows)


def _simulate(public: Public, truth: Parameters, key: Key) -> tuple[PerRecord, PerRecord]:
    """Outcomes drawn from the model, and the same with those redrawn that their range has no place for."""
    model, records = public.settings.model, public.design.records
    first = model.predict(public.design, truth, key.child(0).stream().uniform(records))
    if not np.isfinite(first).all():
        raise DataError("Simulated values leave the numbers.")
    values, outside = keep_inside(public, truth, first, key)
    if outside:
        raise DataError("Simulated values keep falling outside the public range.")
    return first, values


def keep_inside(public: Public, truth: Parameters, values: PerRecord, key: Key) -> tuple[PerRecord, int]:
    """Outcomes with those drawn again that their range has no place for, and how many are left outside.

    The public is taken to know that no outcome lies outside its range, unless the range says otherwise. Both
    the simulated tables and the copies of a corrected draw keep to it: θ_c belongs to values inside.
    """
    model, public_range = public.settings.model, public.settings.standard.range
    if public_range.outside == "public" or isinstance(public_range, Everywhere):
        return values, 0
    for turn in range(1, _REDRAWS + 1):
        lower, upper = public_range.ends(values, public.table)
        outside = ~((lower <= values) & (values <= upper))
        if not outside.any():
            return values, 0
        noise = key.child(turn).stream().uniform(public.design.records)
        values = np.where(outside, model.predict(public.design, truth, noise), values)
    return values, int(outside.sum())
