"""From settings and a table to what the rounds are told, and what one outcome changes in their statistics.

The statistics are sums with noise of a known scale, so that the privacy loss about a record is known in
closed form: round by round, |ΔT₁|₁/b₁ + |ΔT₂|/b₂ at most, given the rounds before. `losses` has it for the
table at hand; it cannot exceed ε, whatever the table. `log_ratio` is the best test there is of which of two
tables was used: copies are computed from the statistics, and tell no more.
"""

from dataclasses import replace

import numpy as np

from hedgerow.arrays import Array, PerRecord, RecordMask
from hedgerow.errors import RangeError, SettingError
from hedgerow.mechanism.copies import public_interval
from hedgerow.mechanism.noisy.leaves.rows import HeldRows, Rows
from hedgerow.mechanism.noisy.margin import least_for_margin, margin_pays
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT, Recipe
from hedgerow.mechanism.noisy.recipe.make import make_recipe
from hedgerow.mechanism.noisy.released import Released, Round
from hedgerow.mechanism.noisy.rounds import first_window
from hedgerow.models.exact import Regression
from hedgerow.models.scored import Interval
from hedgerow.privacy.bounds import DELTA
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Margin, Strict
from hedgerow.privacy.strict.limits import amounts_of, public_sets, response_limits, spike_of, widest_set
from hedgerow.tables.design import Design
from hedgerow.tables.table import Table

Outcomes = tuple[PerRecord, RecordMask]  # responses, and which of them are there


def recipe_of(settings: Settings, table: Table, design: Design) -> Recipe:
    """What is settled before an outcome is read: from the settings and public columns."""
    return settle_recipe(settings, HeldRows(design.matrix), find_width(settings, table))


def find_width(settings: Settings, table: Table) -> float | None:
    """d, how far an outcome may move in the public sets of these rows; None where the relation has none.

    Classes that copies could not be drawn inside are refused, before an outcome is read.
    """
    strict, model, limits, _ = _need(settings)
    if (outcome := settings.column.outcome) in strict.range.columns:
        raise SettingError(
            f"Strict: the sets are to be public, and '{outcome}' is the column to protect. Read them "
            "from other columns."
        )
    classes_within(settings, table)
    return widest_set(strict.range, model, limits, table) if strict.relation == "range" else None


def settle_recipe(settings: Settings, rows: Rows, width: float | None) -> Recipe:
    """What the rounds are told, where public rows are and how wide their public sets are once known."""
    strict, model, limits, epsilon = _need(settings)
    low, high = response_limits(model, limits)
    share = 0.0 if strict.margin is None or margin_left_out(settings, rows.records) else strict.margin.share
    return make_recipe(
        rows,
        low=low,
        high=high,
        epsilon=epsilon,
        relation=strict.relation,
        width=width,
        noise=strict.noise,
        delta=settings.delta if settings.bound.takes_delta else 0.0,
        margin_share=share,
        rows_per_unit=settings.rows_per_unit,
        spiked=spike_of(settings.model) is not None,
    )


def settle_noise(settings: Settings, recipe: Recipe) -> Settings:
    """The settings with the noise that "auto" became, whose bound is claimed and charged. Public."""
    strict = _need(settings)[0]
    if strict.noise == recipe.noise:
        return settings
    delta = settings.delta if recipe.noise == "gaussian" else DELTA  # pure ε takes none
    return replace(settings, standard=replace(strict, noise=recipe.noise), delta=delta)


def margin_left_out(settings: Settings, records: int) -> str:
    """Why there will be no margin although one is asked for, in words; empty where there will be. Public."""
    strict, _, _, epsilon = _need(settings)
    relation, rows = strict.relation, settings.rows_per_unit
    if strict.margin is None or margin_pays(records, strict.margin.share, epsilon, relation, rows):
        return ""
    least = least_for_margin(relation, rows)
    return (
        f"There is no margin, and its share of ε goes to the line: records × share × ε is below {least:g}, "
        "where counts have more noise than they are worth. Ask for a larger ε or share."
    )


def advise_margin(settings: Settings, records: int) -> str:
    """What a margin will do, or would do if one were asked for, in words. Public."""
    strict, _, _, epsilon = _need(settings)
    if strict.margin is not None or strict.inside:
        return margin_left_out(settings, records)
    share = Margin().share
    pays = least_for_margin(strict.relation, settings.rows_per_unit) / (records * share)
    if epsilon < pays:
        return f"A margin would add more noise than it mends below ε = {pays:.3g} at this number of records."
    return (
        f"With a margin of {share:g} copies would keep the column's distribution where the model is wrong; "
        f"line and σ would have the errors of ε = {(1 - share) * epsilon:.3g}."
    )


def read_outcomes(settings: Settings, design: Design, table: Table) -> Outcomes:
    """The responses within the limits, and which outcomes are there; confidential."""
    present = np.ones(design.records, dtype=np.bool_) if design.present is None else design.present
    return clip_response(settings, design.values, table), present


def clip_response(settings: Settings, values: PerRecord, table: Table) -> PerRecord:
    """The outcome within its public set and the limits, on the scale where errors are normal; confidential.

    A value outside its set would belong to none, and ε to no change of it. One at a family's spike is NaN.
    """
    strict, model, limits, _ = _need(settings)
    if strict.relation == "range" and strict.range.ends_public:
        values = np.clip(values, *public_sets(strict.range, table))
    response = model.response(np.clip(values, *limits))
    spike = spike_of(settings.model)
    return response if spike is None else np.where(values == spike, np.nan, response)


def classes_within(settings: Settings, table: Table) -> Interval | None:
    """The part of every record's public class that lies within the limits, if copies are drawn inside."""
    interval = public_interval(settings, table)
    if interval is None:
        return None
    limits = _need(settings)[2]
    lower, upper = np.clip(interval.lower, *limits), np.clip(interval.upper, *limits)
    if empty := int((lower >= upper).sum()):
        raise RangeError(
            f"inside=True: {empty} of {len(lower)} public classes have no width within the limits "
            f"({limits[0]:g}, {limits[1]:g}). Give wider limits, or leave inside out."
        )
    return Interval(lower, upper, interval.inside)


def _need(settings: Settings) -> tuple[Strict, Regression, tuple[float, float], float]:
    """Standard, model (of amounts), limits and ε, which settings of noisy statistics have."""
    strict, model = settings.noisy, amounts_of(settings.model)
    if strict is None or strict.pair is None or settings.epsilon is None or model is None:
        raise SettingError(
            f"This goes with noisy statistics of one column, got {settings.standard.label}. Use "
            "Strict(limits=(low, high))."
        )
    return strict, model, strict.pair, settings.epsilon


def withheld_epsilon(recipe: Recipe) -> float:
    """At most this is ε for one outcome (all rows of a person) withheld, known beforehand.

    Half of replaced, but for what a blank adds being a whole number. In range: a round's loss is concave in
    how far an outcome moves, and no window is wider than that of round one, so that moving it through all of
    that costs at most 2w/d times what moving it through a set does.
    """
    if recipe.relation == "withheld":
        return recipe.epsilon
    steps = _steps(recipe)
    if recipe.noise == "gaussian":  # ε grows at most as the square of a shift
        return recipe.epsilon * steps**2
    return recipe.epsilon * steps / 2 * (1 + 1e-9)


def divergences(recipe: Recipe, orders: Array, *, withheld: bool) -> Array:
    """At most this is the Rényi divergence at each order, for one outcome withheld or under the relation.

    Pure ε: min(ε, ε²o/2) (Bun and Steinke 2016, proposition 15). Gaussian noise: ρo, and counts are pure.
    """
    if recipe.noise == "laplace":
        return _pure(withheld_epsilon(recipe) if withheld else recipe.epsilon, orders)
    rows = recipe.rows_per_unit  # all of a person's, which shift the sums that many times as far
    first, second, counts = (float(part) for part in recipe.budget())
    steps = _steps(recipe) if withheld and recipe.relation != "withheld" else 1.0
    return (steps * rows) ** 2 * (first + second) * orders + _pure(rows * counts, orders)


def _steps(recipe: Recipe) -> float:
    """How many times as wide as a public set the widest window is; 1 where the relation has no sets."""
    return 1.0 if recipe.width is None else max(1.0, 2 * first_window(recipe) / recipe.width)


def _pure(epsilon: float, orders: Array) -> Array:
    return np.minimum(epsilon, epsilon**2 * orders / 2)


def losses(released: Released, response: PerRecord, present: RecordMask) -> PerRecord:
    """The largest log ratio of the statistics' probabilities between this table and a neighbour's, by record.

    Neighbours under the recipe's relation, given the rounds as they came out; confidential. For `range` the
    other values are those within its width. Laplace noise: with Gaussian noise the ratio has no bound.
    """
    recipe, total = released.recipe, np.zeros(len(response))
    if recipe.noise != "laplace":
        raise SettingError("Gaussian noise has no largest loss: (ε, δ) is proven, and an attack can be run.")
    sizes = np.abs(recipe.loadings).sum(axis=1) * LOADING_UNIT
    for each in released.rounds:
        total += _round_losses(recipe, each, sizes / each.score_scale, _residual(recipe, each, response))
    if released.counts is not None:
        total += (1 if recipe.relation == "withheld" else 2) / released.counts.scale
    if released.spike is not None:
        total = _losses_beside_spike(released, response, sizes, total)
    return np.where(present, total, 0.0)


def _losses_beside_spike(
    released: Released, response: PerRecord, sizes: PerRecord, moved: PerRecord
) -> PerRecord:
    """With a spike: `moved` for an amount, and for a value at the spike the loss by its own sum.

    One that is replaced may also go from one to the other, which costs that sum and withholding an amount:
    the one at hand or, from the spike, the dearest there is.
    """
    recipe, at_spike = released.recipe, np.isnan(response)
    own = sizes / (released.spike.scale if released.spike else np.inf)
    if recipe.relation == "withheld":
        return np.where(at_spike, own, moved)
    across = own + (0.0 if released.counts is None else 1 / released.counts.scale)
    for each in released.rounds:
        slope, residual = sizes / each.score_scale, _residual(recipe, each, response)
        centre = recipe.matrix @ each.line
        low, high = (np.clip(end - centre, -each.window, each.window) for end in (recipe.low, recipe.high))
        tops = slope * each.square_scale / 2
        places = [low, high, *(np.clip(place, low, high) for place in (tops, -tops, np.zeros_like(tops)))]
        any_other = np.max([_withheld_losses(each, slope, place) for place in places], axis=0)
        across += np.where(at_spike, any_other, _withheld_losses(each, slope, residual))
    return np.where(at_spike, across, np.fmax(moved, across))


def _withheld_losses(each: Round, slope: PerRecord, residual: PerRecord) -> PerRecord:
    return slope * np.abs(residual) + np.abs(residual**2 - each.blank) / each.square_scale


def _round_losses(recipe: Recipe, each: Round, slope: PerRecord, residual: PerRecord) -> PerRecord:
    if recipe.relation == "withheld":
        return _withheld_losses(each, slope, residual)
    width = np.inf if recipe.width is None else recipe.width
    low, high = np.maximum(residual - width, -each.window), np.minimum(residual + width, each.window)
    # Piecewise quadratic in the other value: largest at an end, at its top, or where a piece begins.
    tops = slope * each.square_scale / 2
    others = [low, high, *(np.clip(place, low, high) for place in (tops, -tops, np.zeros_like(tops)))]
    return np.max(
        [slope * np.abs(o - residual) + np.abs(o**2 - residual**2) / each.square_scale for o in others],
        axis=0,
    )


def log_ratio(released: Released, one: Outcomes, other: Outcomes) -> float:
    """log of how much likelier the statistics are given one table than given the other; confidential."""
    recipe, total = released.recipe, 0.0
    loadings = recipe.loadings * LOADING_UNIT
    for each in released.rounds:
        noise = []
        for response, present in (one, other):
            known = present & ~np.isnan(response)
            residual = np.where(known, _residual(recipe, each, response), 0.0)
            squares = (residual**2).sum() + (~known).sum() * each.blank
            noise.append((each.scores - loadings.T @ residual, np.array([each.squares - squares])))
        for scale, *pair in zip((each.score_scale, each.square_scale), *noise, strict=True):
            total += _log_density(recipe.noise, pair[0], scale) - _log_density(recipe.noise, pair[1], scale)
    if (counts := released.counts) is not None:
        for sign, (response, present) in ((1, one), (-1, other)):
            known = present & ~np.isnan(response)
            bins = np.searchsorted(counts.edges, response[known], side="right")
            noise_of_counts = counts.counts - np.bincount(bins, minlength=len(counts.counts))
            total += sign * _log_density("laplace", noise_of_counts, counts.scale)
    if (spike := released.spike) is not None:
        for sign, (response, present) in ((1, one), (-1, other)):
            noise_of_spike = spike.scores - (present & np.isnan(response)) @ loadings
            total += sign * _log_density(recipe.noise, noise_of_spike, spike.scale)
    return total


def _residual(recipe: Recipe, each: Round, response: PerRecord) -> PerRecord:
    return np.clip(response - recipe.matrix @ each.line, -each.window, each.window)


def _log_density(noise: str, values: Array, scale: float) -> float:
    """Up to a constant."""
    scaled = np.abs(values) / scale
    return -float(scaled.sum() if noise == "laplace" else (scaled**2).sum() / 2)
