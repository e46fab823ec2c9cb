"""One replicate of a simulation study: a fresh sample, its synthesizers, what they cost and what they lose.

Every function takes the study's seed and the replicate's number and returns plain columns, so that a
replicate is the same whichever process computes it, and whenever. Stories 1 to 3 share their samples:
replicate r is the same table in each, and differences between synthesizers are paired.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from hedgerow import datasets
from hedgerow.comparison import compare
from hedgerow.evidence.utility import statistics
from hedgerow.evidence.utility.stack import SUMMED_UP
from hedgerow.mechanism.calibrate import largest_scale
from hedgerow.mechanism.steps import begin
from hedgerow.privacy.bounds import BY_DRAWS
from hedgerow.privacy.weights import LinearWeights
from hedgerow.randomness import Key
from hedgerow.synthesizer import Synthesizer
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table
from hedgerow_studies.paper import setup
from hedgerow_studies.work import silence_advice

Columns = dict[str, list[Any]]
Replicate = dict[str, Columns]  # what a replicate leaves behind, by name of its tidy table

_BOUNDS = tuple(bound.name for bound in BY_DRAWS)
PRICES = (*_BOUNDS, *(f"withheld_{bound}" for bound in _BOUNDS))
STATISTICS = ("ecdf_max", "ecdf_mean_absolute", "ecdf_mean_squared", "mean", "median", "q90")


def story1(seed: int, replicate: int, records: int) -> Replicate:
    """The six synthesizers and the printed truncated form; utility at the paper's n only."""
    main = records == setup.RECORDS
    standards = {**setup.SIX, **setup.PRINTED, **(setup.NARROWER if main else {})}
    data, key = sample(seed, replicate, records)
    with silence_advice():
        fitted = compare(
            setup.FORMULA,
            data,
            family=setup.VAGUE,
            standards=standards,
            preset="paper",
            copies=setup.COPIES,
            seed=key.integer(),
        ).synthesizers
        found = {"prices": prices({k: v for k, v in fitted.items() if k not in setup.NARROWER})}
        if main:
            found["narrower"] = {
                "standard": list(setup.NARROWER),
                "lipschitz": [fitted[label].lipschitz_epsilon_ for label in setup.NARROWER],
            }
            found["utility"] = utility({label: fitted[label] for label in setup.SIX})
        if main and replicate == 0:
            found["records"] = by_record({label: fitted[label] for label in setup.SIX})
    return found


def story2(seed: int, replicate: int) -> Replicate:
    """Weights scaled until the three synthesizers cost what (0.6, 1.2) trunc costs unscaled."""
    data, key = sample(seed, replicate, setup.RECORDS)
    table = Table.of(data)
    copies = setup.MANY_COPIES if replicate == 0 else setup.COPIES
    with silence_advice():
        first = _scaled(setup.UNWEIGHTED, 1.0, key, copies)
        start = begin(
            first.settings.model,
            table,
            designs.build(setup.FORMULA, table),
            draws=first.settings.draws,
            key=key.child("start"),
        )

        def fitted(label: str, scale: float) -> Synthesizer:
            synth = _scaled(label, scale, key, copies)
            synth.fit_from(start, key=key.child("fit"), seeded=True)
            return synth

        def price(label: str, scale: float) -> float:
            return fitted(label, scale).lipschitz_epsilon_

        target = fitted(setup.NARROW_TRUNC, 1.0).lipschitz_epsilon_
        scales = {setup.UNWEIGHTED: 1.0}
        for label in setup.COMMON[1:]:
            scales[label] = largest_scale(partial(price, label), target)
        common = {label: fitted(label, scale) for label, scale in scales.items()}
        found = {"prices": prices(common), "utility": utility(common)}
        found["prices"]["scale"] = list(scales.values())
        every = (*setup.COMMON, *setup.PRINTED)
        found["unscaled"] = {"standard": list(every), "lipschitz": [price(label, 1.0) for label in every]}
        if replicate == 0:
            found["records"] = by_record(common)
            found["resampled"] = _resampled(data["x"].to_numpy(), key)
    return found


def story3(seed: int, replicate: int) -> Replicate:
    """Range-averaged synthesizers with the top of the distribution on a wider range."""
    data, key = sample(seed, replicate, setup.RECORDS)
    with silence_advice():
        fitted = compare(
            setup.FORMULA,
            data,
            family=setup.VAGUE,
            standards=setup.TAILS,
            preset="paper",
            copies=setup.COPIES,
            seed=key.integer(),
        ).synthesizers
        return {"prices": prices(fitted), "utility": utility(fitted)}


def sample(seed: int, replicate: int, records: int) -> tuple[pd.DataFrame, Key]:
    """The replicate's table, and the key of everything random that is done to it."""
    key = Key.from_seed(seed).child("sample").child(records).child(replicate)
    return datasets.lognormal(records, key.child("data").integer()), key.child("fit")


def prices(fitted: Mapping[str, Synthesizer]) -> Columns:
    """ε under each bound, for the standard's own neighbour and with x_i withheld; NaN where there is none."""
    columns: Columns = {"standard": list(fitted)}
    for bound in _BOUNDS:
        columns[bound] = [float(getattr(synth, f"{bound}_epsilon_", np.nan)) for synth in fitted.values()]
    for bound in _BOUNDS:
        columns[f"withheld_{bound}"] = [
            synth.withheld_epsilon_.get(bound, np.nan) for synth in fitted.values()
        ]
    columns["mean_alpha"] = [float(synth.alpha_.mean()) for synth in fitted.values()]
    columns["mean_power"] = [float(synth.power_.mean()) for synth in fitted.values()]
    return columns


def utility(fitted: Mapping[str, Synthesizer]) -> Columns:
    """One row per synthesizer, copy and statistic, beside the confidential value."""
    columns: Columns = {"standard": [], "copy": [], "statistic": [], "original": [], "synthetic": []}
    for label, synth in fitted.items():
        tidy = synth.utility_columns()
        for row in zip(*(tidy[name] for name in list(columns)[1:]), strict=True):
            if row[0] not in SUMMED_UP and row[1] in STATISTICS:
                for name, value in zip(columns, (label, *row), strict=True):
                    columns[name].append(value)
    return columns


def by_record(fitted: Mapping[str, Synthesizer]) -> Columns:
    """One row per synthesizer and record: weights and the record's part of each bound."""
    columns: Columns = {}
    for label, synth in fitted.items():
        rows: Columns = {
            "standard": [label] * len(synth.alpha_),
            "record": list(range(len(synth.alpha_))),
            "alpha": synth.alpha_.tolist(),
            "power": synth.power_.tolist(),
            "known": synth.known_.tolist(),
        }
        found = synth.prices_
        for name in PRICES:
            rows[name] = found[name].tolist() if name in found else [np.nan] * len(synth.alpha_)
        for name, values in rows.items():
            columns.setdefault(name, []).extend(values)
    return columns


def _scaled(label: str, scale: float, key: Key, copies: int) -> Synthesizer:
    # The same seed at every scale: common random numbers make the price a smooth function of it.
    return Synthesizer(
        setup.FORMULA,
        setup.VAGUE,
        standard={**setup.SIX, **setup.PRINTED}[label],
        weights=LinearWeights(scale=scale),
        preset="paper",
        copies=copies,
        seed=key.child("fit").integer(),
    )


def _resampled(values: "np.ndarray[Any, np.dtype[np.float64]]", key: Key) -> Columns:
    """The data's own sampling spread: statistics of bootstrap samples, for the violin named Data."""
    uniform = key.child("bootstrap").stream().uniform((setup.MANY_COPIES, len(values)))
    columns: Columns = {"copy": [], "statistic": [], "synthetic": []}
    for copy, row in enumerate((uniform * len(values)).astype(np.int64)):
        for name, value in statistics(values[row], (0.9,)).items():
            columns["copy"].append(str(copy + 1))
            columns["statistic"].append(name)
            columns["synthetic"].append(value)
    return columns
