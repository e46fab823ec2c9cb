"""The application: the fatigue data under a vague prior and under the authors' prior.

The data are fixed, so replicates repeat the fits: their spread is the Monte Carlo error of a single run.
"""

import numpy as np

from hedgerow import datasets
from hedgerow.comparison import Comparison, compare
from hedgerow.models.base import Model
from hedgerow.randomness import Key
from hedgerow_studies.paper import setup
from hedgerow_studies.paper.samples import Replicate, by_record, prices, utility
from hedgerow_studies.work import silence_advice

FORMULA = "cycle ~ stress + log(stress)"
AUTHORS, DEFAULT = "authors", "default"
PRIORS = (AUTHORS, DEFAULT)


def family(prior: str) -> Model:
    """The lognormal model under one of the two priors. The one place that chooses the authors' sampler."""
    if prior == DEFAULT:
        return setup.VAGUE
    from hedgerow_studies.paper.authors_prior import AuthorsLognormal

    return AuthorsLognormal()


def fit(seed: int, replicate: int, prior: str) -> Replicate:
    """The six synthesizers and the printed truncated form on the 19 records of the paper."""
    key = Key.from_seed(seed).child("application").child(prior).child(replicate)
    with silence_advice():
        comparison = compare(
            FORMULA,
            datasets.fatigue(paper=True),
            family=family(prior),
            standards={**setup.SIX, **setup.PRINTED},
            preset="paper",
            copies=setup.MANY_COPIES if replicate == 0 else setup.COPIES * 10,
            seed=key.integer(),
        )
        found = {"prices": prices(comparison.synthesizers)}
        six = {label: comparison.synthesizers[label] for label in setup.SIX}
        found["utility"] = utility(six)
        if replicate == 0:
            found["records"] = by_record(six)
            found["values"] = _values(Comparison(six))
    return found


def _values(comparison: Comparison) -> dict[str, list[object]]:
    """The outcome of every copy, for the violins of the synthetic data."""
    columns: dict[str, list[object]] = {"standard": [], "value": []}
    for label, synth in comparison.synthesizers.items():
        copies = np.concatenate([copy[synth.outcome_name].to_numpy() for copy in synth.sample().tables])
        columns["standard"] += [label] * len(copies)
        columns["value"] += copies.tolist()
    return columns
