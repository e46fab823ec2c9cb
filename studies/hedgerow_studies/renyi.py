"""What the Rényi price is beside the others, and the scales that meet a total (ε, δ).

`python -m hedgerow_studies.renyi` prints the tables of docs/maths.md, "Rényi price", in a few minutes.

The paper's simulation; means over samples, δ = 1e-6. `prices` has no target. `scales` asks for ε = 1 over
all copies with equal weights. `again` calibrates one table again and again: how far its scale moves with the
random numbers. `recomputed` runs the procedure without a record, weights included, as an audit does.
"""

import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import typer

from hedgerow import datasets
from hedgerow.errors import HedgerowWarning
from hedgerow.privacy.bounds import LOCAL, OSCILLATION, RENYI
from hedgerow.privacy.standards import Unweighted
from hedgerow.privacy.weights import CapWeights, LinearWeights, ScalarWeights, Weights
from hedgerow.synthesizer import Synthesizer
from hedgerow_studies.breaches import markdown

SAMPLES = {2000: 20, 20_000: 5}
SIZES, COPIES = (200, 2000), (1, 5, 20)


def _cap(level: float) -> CapWeights:
    return CapWeights(level, risk="oscillation")


WEIGHTS: dict[str, Weights] = {"equal": ScalarWeights(1.0), "cap 1 on o": _cap(1.0)}


def _fitted(n: int, seed: int, *, key: int | None = None, **settings: Any) -> Synthesizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HedgerowWarning)
        made = Synthesizer("x ~ z", seed=seed if key is None else key, **settings)
        return made.fit(datasets.lognormal(n, seed=seed))


def prices(samples: dict[int, int] = SAMPLES) -> pd.DataFrame:
    """One row per size and weights: one copy under every bound, and 20 copies by adding up or together."""
    rows = []
    for n, count in samples.items():
        found: dict[str, list[list[float]]] = {}
        for seed in range(1, count + 1):
            plain = _fitted(n, seed, standard=Unweighted())
            cap = float(np.quantile(plain.prices_[OSCILLATION.name], 0.9))
            fits = {
                "Unweighted": plain,
                "linear": _fitted(n, seed, weights=LinearWeights()),
                "cap at the 90 % quantile of o": _fitted(n, seed, weights=_cap(cap)),
            }
            for label, synth in fits.items():
                pricing = synth._need().outcome.pricing
                together = [bound.total(pricing, 20) for bound in (OSCILLATION, RENYI)]
                found.setdefault(label, []).append([*(bound.epsilon(pricing) for bound in LOCAL), *together])
        names = [*(bound.name for bound in LOCAL), "20 copies, oscillation", "20 copies, renyi"]
        for label, values in found.items():
            means = np.mean(values, axis=0).tolist()
            rows.append({"n": n, "weights": label, **dict(zip(names, means, strict=True))})
    return pd.DataFrame(rows)


def scales(n: int = 2000, samples: int = SAMPLES[2000]) -> pd.DataFrame:
    """The scale that a total of ε = 1 puts on equal weights: mean and range over samples."""
    rows = []
    for copies in COPIES:
        asked: dict[str, Any] = {"bound": "renyi", "epsilon": 1.0, "copies": copies}
        found = [
            _fitted(n, seed, weights=ScalarWeights(1.0), **asked).scale_ for seed in range(1, samples + 1)
        ]
        rows.append(
            {
                "copies": copies,
                "scale": f"{np.mean(found):.3f}",
                "over samples": f"{min(found):.3f} to {max(found):.3f}",
            }
        )
    return pd.DataFrame(rows)


def again(sizes: Sequence[int] = SIZES, keys: int = 20) -> pd.DataFrame:
    """One table calibrated to ε = 1 with other random numbers each time: mean, deviation and range."""
    rows = []
    for n, (label, weights), bound in product(sizes, WEIGHTS.items(), (OSCILLATION, RENYI)):
        settings = {"weights": weights, "bound": bound.name, "epsilon": 1.0}
        found = [_fitted(n, 1, key=key, **settings).scale_ for key in range(1, keys + 1)]
        moved = f"{np.mean(found):.3f} ± {np.std(found):.3f}"
        ends = f"{min(found):.3f} to {max(found):.3f}"
        rows.append({"n": n, "weights": label, "bound": bound.name, "scale": moved, "range": ends})
    return pd.DataFrame(rows)


def recomputed(sizes: Sequence[int] = SIZES, samples: int = 10) -> pd.DataFrame:
    """In how many samples ε at δ with weights recomputed exceeds the price of one copy, and how far."""
    rows = []
    for n, (label, weights) in product(sizes, (WEIGHTS | {"linear": LinearWeights()}).items()):
        found = []
        for seed in range(1, samples + 1):
            audit = _fitted(n, seed, weights=weights, bound="renyi").audit(keys=2)
            found.append(float(audit.recomputed.max()) / audit.epsilon)
        above = f"{sum(ratio > 1 + 1e-6 for ratio in found)} of {samples}"
        rows.append({"n": n, "weights": label, "above": above, "largest ratio": max(found)})
    return pd.DataFrame(rows)


def main() -> None:
    """Print the tables."""
    for table in (prices, scales, again, recomputed):
        typer.echo(markdown(table()) + "\n")


if __name__ == "__main__":
    typer.run(main)
