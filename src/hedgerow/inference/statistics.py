"""What a receiver may conclude from `statistics.json`: the noisy statistics that copies follow from.

    import pandas as pd
    from hedgerow.inference.statistics import conclude

    conclude("public/statistics.json", pd.read_csv("public/synthetic-copy-1.csv"))  # and its ends

The file holds what was released of the outcome (sums with noise, by round), the scales of the noise, and the
public rule by which predictors became loadings; the predictors are those of any copy. What is computed from
them is post-processing and costs nothing.

- `limits`, `rounds`, `counts` are on the response's scale (log x for the lognormal); Q = X · `basis` has
  Q'Q/n = I, and v_i = min(1, `cap`/‖q_i‖), in the norm 1, or 2 for Gaussian noise;
- a round: T₁ = Σ v_i q_i r_i and T₂ = Σ r_i² of residuals r_i about `line`, clipped to ±`window`, with
  `blank` for a record without a value; `score_scale`, `square_scale`: Laplace's b, or standard deviations;
- `counts`: values in the bins between `edges`; `spike`: Σ v_i q_i over values at the spike.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hedgerow.errors import HedgerowError, ReleaseError
from hedgerow.inference.bootstrap import check_level
from hedgerow.inference.columns import read_columns, summarize_columns
from hedgerow.mechanism.noisy.chain.draws import draw_columns
from hedgerow.mechanism.noisy.leaves.rows import Capping, HeldRows
from hedgerow.mechanism.noisy.posterior import draw_posterior
from hedgerow.mechanism.noisy.recipe import LOADING_UNIT, NORMS, Recipe
from hedgerow.mechanism.noisy.released import Counts, Released, Round, Spike, read_part
from hedgerow.mechanism.noisy.spike import expect_presence
from hedgerow.models.base import Parameters
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table

VERSION = 1


def write_statistics(formula: str, family: str, statistics: Mapping[str, Any]) -> str:
    """The document of released statistics: public."""
    document = {"statistics": VERSION, "formula": formula, "family": family, **statistics}
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def conclude(
    statistics: str | os.PathLike[str] | Mapping[str, Any],
    copy: Any,
    *,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Estimates with intervals that know the noise, as columns: one row per parameter.

    Quantiles of the posterior given the statistics, as `Synthesizer.intervals` has them, up to the draws.
    Statistics of several columns have `sections`, one each (`inference.columns`).
    """
    document = statistics if isinstance(statistics, Mapping) else load_statistics(Path(statistics))
    with refusing_damage():
        _check_version(document)
        several = read_columns(document, copy) if "sections" in document else []
        released, columns = (None, []) if several else read_statistics(document, copy)
    key = Key.from_seed(seed)
    if released is None:
        each = draw_columns(several, draws=draws, key=key)
        return summarize_columns(several, [one.parameters for one in each], level)
    drawn = draw_posterior(released, draws=draws, key=key)
    return summarize(drawn.parameters, columns, level)


def load_statistics(file: Path) -> Mapping[str, Any]:
    """The document in a file; an OSError if there is none."""
    content = file.read_bytes()
    with refusing_damage():
        document: Mapping[str, Any] = json.loads(content)
        _check_version(document)
    return document


@contextmanager
def refusing_damage() -> Iterator[None]:
    """Say in one sentence that a document lacks something, or has something else in its place."""
    try:
        yield
    except HedgerowError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ReleaseError(
            "These statistics were changed or cut short: something is missing in them, or is not what it "
            "should be. Download the release again, and verify it."
        ) from None


def _check_version(document: Mapping[str, Any]) -> None:
    if document["statistics"] != VERSION:
        raise ReleaseError(f"These statistics have another version than {VERSION}. Update hedgerow.")


def summarize(parameters: Parameters, columns: list[str], level: float) -> dict[str, Any]:
    """Medians and quantiles by parameter; `columns` are those of X."""
    check_level(level)
    spike = [parameters["spike_beta"]] if "spike_beta" in parameters else []
    draws = np.column_stack([parameters["beta"], parameters["sigma"], *spike])
    ends = np.quantile(draws, [0.5, (1 - level) / 2, (1 + level) / 2], axis=0)
    at_spike = [f"spike {name}" for name in columns if spike]
    return {
        "parameter": [*columns, "sigma", *at_spike],
        **dict(zip(("estimate", "lower", "upper"), ends, strict=True)),
    }


def read_statistics(document: Mapping[str, Any], copy: Any) -> tuple[Released, list[str]]:
    """The released statistics with the public predictors, which any copy has; and the columns of X."""
    design = designs.build(document["formula"], Table.of(copy))
    matrix, columns = design.matrix, list(design.columns)
    if columns != document["columns"] or len(matrix) != document["records"]:
        raise ReleaseError(
            f"The statistics are of {document['records']} records and the columns "
            f"{', '.join(document['columns'])}, the table has {len(matrix)} and {', '.join(columns)}. Pass a "
            "copy of the same release."
        )
    basis, noise = np.array(document["basis"]), document["noise"]
    (low, high), spike = document["limits"], document.get("spike")
    recipe = Recipe(
        rows=HeldRows(matrix).load(Capping(basis, document["cap"], NORMS[noise], LOADING_UNIT)),
        basis=basis,
        low=low,
        high=high,
        noise=noise,
        first_share=0.0,  # the budget is spent
        margin_share=0.0,
        spiked=spike is not None,
        **{name: document[name] for name in ("relation", "width", "epsilon", "delta", "rows_per_unit")},
    )
    if spike is not None:
        spike = read_part(Spike, spike)
        recipe = recipe.with_presence(expect_presence(recipe, spike))
    rounds = tuple(read_part(Round, each) for each in document["rounds"])
    counts = document["counts"]
    return Released(recipe, rounds, None if counts is None else read_part(Counts, counts), spike), columns
