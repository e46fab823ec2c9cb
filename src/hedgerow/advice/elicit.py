"""A box of parameters from what is published or agreed, never from the confidential outcome.

An owner seldom knows coefficients, but often knows medians: "a farm with 10 employees pays between 150,000
and 400,000, one with 100 between …". As many such statements as the formula has coefficients, and a
statement about spread, fix a box for `Strict`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from hedgerow.errors import SettingError, format_value
from hedgerow.mechanism.noisy import expect
from hedgerow.mechanism.noisy.run import recipe_of
from hedgerow.models.exact import Lognormal, Normal, Regression
from hedgerow.models.families import model_named
from hedgerow.privacy.settings import Settings
from hedgerow.privacy.strict import Boxed, Strict
from hedgerow.privacy.strict.limits import amounts_of
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table


def box_from_medians(
    formula: str,
    predictors: Any,
    points: Sequence[tuple[Mapping[str, Any], tuple[float, float]]],
    *,
    top_decile_ratio: tuple[float, float] | None = None,
    top_decile_gap: tuple[float, float] | None = None,
    family: str = "lognormal",
) -> dict[str, tuple[float, float]]:
    """The smallest box that holds every coefficient consistent with the statements.

    `points` pairs predictor values with a lower and an upper end for the median outcome there. The spread is
    given as the 90 % quantile over the median (lognormal: `top_decile_ratio`) or minus it (normal:
    `top_decile_gap`), each as a lower and an upper end. `predictors` is the public table of predictors.
    """
    model = _regression(family)
    design = public_design(formula, predictors)
    rows = pd.DataFrame([dict(values) for values, _ in points]).rename(columns=dict(design.aliases))
    if len(points) != len(design.columns):
        raise SettingError(
            f"The formula has {len(design.columns)} coefficients ({', '.join(design.columns)}); give as many "
            f"points, got {len(points)}."
        )
    try:
        matrix = np.asarray(design.spec.get_model_matrix(rows), dtype=np.float64)
        inverse = np.linalg.inv(matrix)
    except (np.linalg.LinAlgError, ValueError, KeyError):
        raise SettingError(
            f"The points do not determine the coefficients. Give values for {', '.join(design.predictors)} "
            "that differ in every predictor."
        ) from None
    ends = np.array([[_end(model, end) for end in sorted(median)] for _, median in points])
    low = np.minimum(inverse * ends[:, 0], inverse * ends[:, 1]).sum(axis=1)
    high = np.maximum(inverse * ends[:, 0], inverse * ends[:, 1]).sum(axis=1)
    box = {name: (float(a), float(b)) for name, a, b in zip(design.columns, low, high, strict=True)}
    return box | {"sigma": _sigma(model, top_decile_ratio, top_decile_gap)}


def box_cost(
    formula: str,
    predictors: Any,
    box: Mapping[str, tuple[float, float]],
    *,
    epsilon: float,
    factors: Sequence[float] = (1.0, 1.5, 2.0, 3.0),
    family: str = "lognormal",
    seed: int = 1,
) -> dict[str, list[float]]:
    """What wider boxes would cost, on an outcome simulated at the centre of the box: tidy and public.

    `mean_weight` is the average α, `effective_records` their sum: how many records' worth of information the
    copies carry.
    """
    model = _regression(family)
    design = public_design(formula, predictors)
    centre = np.array([sum(box[name]) / 2 for name in design.columns])
    sigma = float(np.sqrt(box["sigma"][0] * box["sigma"][1]))
    uniforms = Key.from_seed(seed).child("box").stream().uniform(design.records)
    values = model.predict(design, {"beta": centre, "sigma": np.asarray(sigma)}, uniforms)
    simulated = design.replace_values(values)
    wider = [Boxed(model, Strict(widen_box(box, factor)).box or {}) for factor in factors]
    weights = [np.minimum(1.0, epsilon / wide.oscillation(simulated)) for wide in wider]
    return {
        "factor": [float(factor) for factor in factors],
        "mean_weight": [float(weight.mean()) for weight in weights],
        "effective_records": [float(weight.sum()) for weight in weights],
    }


def expected_errors(
    settings: Settings,
    predictors: Any,
    *,
    factors: Sequence[float] = (0.5, 1.0, 2.0),
    sigma: float | None = None,
) -> dict[str, list[float]]:
    """What errors noisy statistics will have, beforehand, at multiples of ε: tidy and public.

    On stand-ins for the outcome, about the middle of the limits, that go through the very mechanism; `plain_`
    has the errors of the same model without privacy on the same stand-ins. `line` is the root mean squared
    error of fitted values on the response's scale, `log_sigma` that of log σ, `ecdf_max` the largest distance
    between the distributions of a copy and of what it was made from. With a spike, at which three in ten
    stand-ins lie, `zeros` is the error of the chances to be there. `sigma` is a guess at σ, by default 1 on a
    logarithmic scale, and an eighth of the distance of the limits where that is less or the scale another:
    the wider limits are beside σ, the more they cost.
    """
    table = Table.of(predictors)
    design = public_design(settings.column.formula, predictors)
    logarithmic, rows = not isinstance(amounts_of(settings.model), Normal), []
    for factor in factors:
        epsilon = factor * (settings.epsilon or 1.0)
        recipe = recipe_of(replace(settings, epsilon=epsilon), table, design)
        guess = min(1.0, recipe.half_width / 4) if sigma is None and logarithmic else sigma
        found = expect.expected_errors(recipe, sigma=guess, sampling=settings.sampling)
        rows.append(
            {
                "epsilon": epsilon,
                "line": found.line,
                "plain_line": found.plain_line,
                "log_sigma": found.log_sigma,
                "plain_log_sigma": found.plain_log_sigma,
                "ecdf_max": found.ecdf,
                "plain_ecdf_max": found.plain_ecdf,
            }
            | ({"zeros": found.zeros, "plain_zeros": found.plain_zeros} if recipe.spiked else {})
        )
    return {name: [row[name] for row in rows] for name in rows[0]}


def widen_box(box: Mapping[str, tuple[float, float]], factor: float) -> dict[str, tuple[float, float]]:
    """The box with every side stretched about its centre, sigma on the log scale."""
    if not np.isfinite(factor) or factor <= 0:
        raise SettingError(f"factor must be a positive number, got {format_value(factor)}.")
    found = {}
    for name, (low, high) in box.items():
        if name == "sigma":
            middle, half = np.log(low * high) / 2, np.log(high / low) / 2 * factor
            found[name] = (float(np.exp(middle - half)), float(np.exp(middle + half)))
        else:
            middle, half = (low + high) / 2, (high - low) / 2 * factor
            found[name] = (middle - half, middle + half)
    return found


def _regression(family: str) -> Regression:
    model = model_named(family, None) if family in ("normal", "lognormal") else None
    if not isinstance(model, Regression):
        raise SettingError(f"A box needs the normal or the lognormal family, got {format_value(family)}.")
    return model


def public_design(formula: str, predictors: Any) -> designs.Design:
    """The design of the public predictors; the outcome, if it is there at all, is not read."""
    table = predictors if isinstance(predictors, Table) else Table.of(predictors)
    outcome = formula.split("~")[0].strip().strip("`")
    blank = {name: table.frame[name].to_numpy() for name in table.columns if name != outcome}
    return designs.build(formula, Table.of(pd.DataFrame({outcome: np.ones(table.rows), **blank})))


def _end(model: Regression, value: float) -> float:
    if not np.isfinite(value) or (isinstance(model, Lognormal) and value <= 0):
        raise SettingError(
            f"A median must be a finite number the {model.name} family allows, got {format_value(value)}."
        )
    return float(model.response(np.array([float(value)]))[0])


def _sigma(
    model: Regression, ratio: tuple[float, float] | None, gap: tuple[float, float] | None
) -> tuple[float, float]:
    given, wanted, least = gap, "top_decile_gap", 0.0
    if isinstance(model, Lognormal):
        given, wanted, least = ratio, "top_decile_ratio", 1.0
    if given is None or not least < min(given) < max(given) < np.inf:
        raise SettingError(
            f"Give {wanted} as two different numbers above {least:g}, got {format_value(given)}."
        )
    low, high = model.response(np.sort(np.asarray(given, dtype=np.float64))) / ndtri(0.9)
    return float(low), float(high)
