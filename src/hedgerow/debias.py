"""Undoing the bias of the weights by indirect inference (docs/maths.md, "Undoing the bias"; docs/bias.md).

For a released draw θ, look for the θ_c such that tables simulated from the model at θ_c, put through the same
recipe, lead back to θ on average. `corrected` receives one frozen object of public things and nothing else:
whatever it does with them is post-processing of the draw, and ε stays what it was. The weights, their scale,
λ and the ranges of the confidential table are not in it; they are computed anew on each simulated table.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import BuiltinFunctionType, FunctionType, MappingProxyType, ModuleType, NoneType
from typing import Any, TypeVar

import numpy as np

from hedgerow.axes import Array, PerRecord
from hedgerow.calibrate import calibrate
from hedgerow.design import Design
from hedgerow.errors import CalibrationError, DataError, SettingError
from hedgerow.keys import Key
from hedgerow.mechanism import Recipe, begin, power_of, weigh
from hedgerow.models.base import Parameters
from hedgerow.price import SUPREMA
from hedgerow.ranges import Everywhere
from hedgerow.table import Table
from hedgerow.weights import CallableWeights, FixedWeights, Reweighted, Weights

T = TypeVar("T")

_SPARE = 3  # times as many tables are tried as are needed, for those that lead to no release
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

    `recipe` holds the model with its prior, the standard with its public range, the rule for the weights,
    the bound, S and how λ is found; `target` is the public ε of one copy. `key` serves nothing else.
    """

    draw: Parameters  # θ, one value per parameter
    design: Design  # the predictors; its outcome is missing throughout
    table: Table  # columns that the range and the weights read
    recipe: Recipe
    target: float | None
    key: Key
    search: Search = field(default_factory=Search)

    def __repr__(self) -> str:
        return f"Public({self.design.records} records, {self.recipe.standard.label})"


@dataclass(frozen=True, repr=False)
class Corrected:
    """What goes out: θ_c where the search settled, else θ itself."""

    parameters: Parameters
    converged: bool
    steps: int

    def __repr__(self) -> str:
        return f"Corrected({'converged' if self.converged else 'uncorrected'} after {self.steps} steps)"


def check(recipe: Recipe, target: float | None) -> None:
    """Refuse what cannot be replayed from public things, before any data are seen."""
    if not recipe.standard.weighted:
        raise SettingError(
            f"debias: {recipe.standard.label} has no weights whose bias could be undone. Leave debias out."
        )
    if not recipe.model.correctable:
        raise SettingError(
            f"debias: the {recipe.model.name} model has no weighted estimate to correct with. Use a named "
            "family or a Program, or leave debias out."
        )
    function = getattr(recipe.model, "function", None)
    if function is not None and not _self_contained(function):
        raise SettingError(
            "debias: the program's function carries data of its own, and hedgerow cannot know whether they "
            "are public. Bind nothing but numbers, text and functions; pass columns with data=."
        )
    for weights in _chain(recipe.weights):
        if isinstance(weights, FixedWeights):
            raise SettingError(
                "debias: weights given by record cannot be replayed on a simulated table, and using them "
                "would not be post-processing. Use a rule such as LinearWeights(), or leave debias out."
            )
        if isinstance(weights, CallableWeights) and not _self_contained(weights.function):
            raise SettingError(
                "debias: weights from a function can be replayed only if it carries no data of its own. Give "
                "a function of the risks that binds nothing but numbers, text and functions."
            )
    known = recipe.standard.range
    if known.by_record and _needs_range(recipe, target):
        raise SettingError(
            "debias: bounds given by record cannot be replayed on a simulated table: they may be as "
            "confidential as the records, and simulated values need not lie in them. Use Radius, Brackets or "
            "bounds that are the same for all, or leave debias out."
        )
    for part in (recipe.weights, *(() if known.by_record else (recipe.standard, known))):
        if any(isinstance(value, np.ndarray) for value in _held(part)):
            raise SettingError(
                f"debias: {type(part).__name__} holds an array, which may come from the confidential table. "
                "Use public settings only, or leave debias out."
            )


def public_inputs(recipe: Recipe, design: Design, table: Table) -> tuple[Recipe, Design, Table]:
    """The parts of `Public` that all draws of a release share, in memory that holds nothing else."""
    if recipe.standard.range.by_record:  # `check` found that it is not needed
        standard: Any = recipe.standard
        recipe = replace(recipe, standard=replace(standard, range=Everywhere()))
    names = dict.fromkeys((*recipe.standard.range.columns, *recipe.weights.columns))
    if design.outcome in names:
        raise SettingError("debias: the range or the weights read the outcome's column. Leave debias out.")
    return recipe, design.blank(), table.apart(list(names))


def public_draw(parameters: Parameters, draw: int) -> Parameters:
    """One draw of a fit, in memory of its own."""
    return MappingProxyType({name: np.array(values[draw], copy=True) for name, values in parameters.items()})


def corrected(public: Public) -> Corrected:
    """θ_c, or θ itself by a fixed rule where the search does not settle. A function of `public` alone."""
    design, search = public.design, public.search
    model = public.recipe.model.stand_in(design, public.draw)
    public = replace(public, recipe=replace(public.recipe, model=model))
    wanted = model.free(design, public.draw)
    here, step, smallest = wanted, 1.0, np.inf
    tables = model.tables if search.tables is None else search.tables
    scales: dict[int, float] = {}
    for steps in range(1, search.limit + 1):
        truth = model.natural(design, here)
        found = attempted(partial(replayed, public, truth, scales=scales), tables)
        if found is None:
            break
        centre = np.mean([estimate - chance for estimate, chance in found], axis=0)
        spread = np.std([estimate for estimate, _ in found], axis=0, ddof=1)
        there = model.within(design, here + wanted - centre)
        gap = there - here
        with np.errstate(divide="ignore", invalid="ignore"):
            size = float(np.max(np.where(gap == 0, 0.0, np.abs(gap) / spread)))
        if not np.isfinite(size):
            break
        if size <= search.tolerance:
            return Corrected(MappingProxyType(dict(model.natural(design, there))), True, steps)
        step = step / 2 if size > smallest else step  # the gap grew: walk more slowly
        smallest = min(smallest, size)
        here = here + step * gap
    return Corrected(public.draw, False, steps)


def attempted(replay: Callable[[int], T], tables: int) -> list[T] | None:
    """What so many simulated tables lead to; None where too few of them can be released at all.

    A table on which the recipe has no answer, a target it cannot meet for one, is passed over: it would not
    have been released, and the confidential one was.
    """
    found: list[T] = []
    for number in range(_SPARE * tables):
        try:
            found.append(replay(number))
        except (CalibrationError, DataError):
            continue
        if len(found) == tables:
            return found
    return None


def replayed(public: Public, truth: Parameters, number: int, scales: dict[int, float]) -> tuple[Array, Array]:
    """A table simulated at `truth` and put through the whole recipe: its estimate, and chance's part in it.

    `scales` remembers each table's calibrated scale, where the search for it starts at the next step.
    """
    return _told(public, truth, _replay(public, truth, number, scales))


def redrawn(
    public: Public, truth: Parameters, number: int, scales: dict[int, float], *, draws: int
) -> tuple[Array, Array, Array]:
    """`replayed`, and beside it draws of that table's weighted posterior, as `free` writes them."""
    model, replay = public.recipe.model, _replay(public, truth, number, scales)
    estimate, chance = _told(public, truth, replay)
    drawn = model.sample(replay.design, replay.power, draws=draws, key=replay.key.child("draws")).parameters
    rows = [model.free(replay.design, public_draw(drawn, draw)) for draw in range(draws)]
    return estimate, chance, np.array(rows)


@dataclass(frozen=True, repr=False)
class _Replay:
    """A simulated table at the end of the recipe."""

    first: PerRecord  # outcomes before any redraw
    design: Design
    power: PerRecord
    key: Key


def _replay(public: Public, truth: Parameters, number: int, scales: dict[int, float]) -> _Replay:
    recipe, key = public.recipe, public.key.child("table").child(number)
    first, values = _simulated(public, truth, key.child("values"))
    design = public.design.replace_values(values)
    start = begin(recipe.model, public.table, design, draws=recipe.draws, key=key)
    weighted = weigh(recipe, start, key=key)
    if public.target is not None and recipe.bound not in SUPREMA:
        # The last step's scale of the same table, or that of the table before: a place to start searching.
        near = scales.get(number, scales.get(number - 1))
        done = calibrate(recipe, start, weighted, target=public.target, key=key, near=near)
        weighted, scales[number] = done.outcome.weighted, done.scale
    return _Replay(first, design, power_of(recipe, weighted), key)


def _told(public: Public, truth: Parameters, replay: _Replay) -> tuple[Array, Array]:
    """The estimate on a replayed table, and chance's part in it."""
    model = public.recipe.model
    estimate = model.centre(replay.design, replay.power, key=replay.key.child("centre"))
    # Values before any redraw: only these follow the model exactly, which is what makes the mean zero.
    chance = model.chance(public.design.replace_values(replay.first), truth)
    return estimate, np.zeros_like(estimate) if chance is None else chance


def _simulated(public: Public, truth: Parameters, key: Key) -> tuple[PerRecord, PerRecord]:
    """Outcomes drawn from the model, and the same with those redrawn that their range has no place for.

    The public is taken to know that no outcome lies outside its range, unless the range says otherwise.
    """
    model, known = public.recipe.model, public.recipe.standard.range
    records = public.design.records
    first = model.predict(public.design, truth, key.child(0).stream().uniform(records))
    values = first
    if known.outside == "public" or isinstance(known, Everywhere):
        return first, values
    for turn in range(1, _REDRAWS + 1):
        lower, upper = known.ends(values, public.table)
        outside = ~((lower <= values) & (values <= upper))
        if not outside.any():
            return first, values
        again = model.predict(public.design, truth, key.child(turn).stream().uniform(records))
        values = np.where(outside, again, values)
    raise DataError("Simulated values keep falling outside the public range.")


def _needs_range(recipe: Recipe, target: float | None) -> bool:
    """Whether the exponents depend on the ranges: through λ, the price, or records taken as public."""
    standard = recipe.standard
    reweighted = isinstance(recipe.weights, Reweighted)
    return standard.uses_known or target is not None or reweighted or standard.range.outside == "public"


def _chain(weights: Weights) -> Iterator[Weights]:
    yield weights
    while isinstance(weights, Reweighted):
        weights = weights.base
        yield weights


def _self_contained(carried: object) -> bool:
    """Whether a function, or what one carries along, holds nothing but functions and plain constants."""
    if isinstance(carried, tuple | list):
        return all(_self_contained(item) for item in carried)
    if isinstance(carried, Mapping):
        return _self_contained([*carried.values()])
    if isinstance(carried, partial):
        return _self_contained([carried.func, carried.args, carried.keywords])
    if isinstance(carried, FunctionType):
        cells = [cell.cell_contents for cell in carried.__closure__ or ()]
        return _self_contained([cells, carried.__defaults__ or (), carried.__kwdefaults__ or {}])
    plain = (bool, int, float, str, type(None), type, ModuleType, BuiltinFunctionType, np.ufunc)
    return isinstance(carried, plain) and not (
        isinstance(carried, BuiltinFunctionType) and not isinstance(carried.__self__, ModuleType | NoneType)
    )


def _held(part: object) -> Iterator[object]:
    """What an object's attributes hold, and what objects of this package's kinds hold in turn."""
    for value in getattr(part, "__dict__", {}).values():
        yield value
        if hasattr(value, "__dict__") and not isinstance(value, type | FunctionType):
            yield from _held(value)
