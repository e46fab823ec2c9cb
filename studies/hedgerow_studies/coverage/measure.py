"""One simulated table and the intervals that people would compute from its release. Nothing is confidential.

log x = 1 + z + w/10 + error, z and w public, w not in the model: given z alone log x has σ = 1 and the
lognormal model of x on z is right. Truths are those given the public columns, and the estimands:

- intercept, slope and σ by least squares of log x on z, the model's own parameters;
- the mean of x where z is above 2.5, a public group; the 90 % quantile of x;
- the slope of x itself on z: a regression of another form, which follows from the model;
- the coefficient of w beside z: a regression that the model did not contain, and copies do not know of.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.optimize import brentq
from scipy.special import ndtr
from scipy.stats import t

from hedgerow import receive
from hedgerow.arrays import Array, PerRecord
from hedgerow.errors import CalibrationError
from hedgerow.inference.bootstrap import Replay, bootstrap
from hedgerow.privacy.ranges import Radius
from hedgerow.privacy.standards import ADP, RangeTruncated, Standard, Unweighted
from hedgerow.privacy.strict import Strict
from hedgerow.randomness import Key
from hedgerow.synthesizer import Synthesizer
from hedgerow_studies.work import silence_advice

LEVEL = 0.95
LIMITS = (float(np.exp(-3.0)), float(np.exp(9.0)))
BESIDE = 0.1  # coefficient of w
TERMS = ("intercept", "slope", "sigma", "mean in group", "90 % quantile", "slope of x", "beside the model")
ITSELF = "the table itself, not released"
POSTERIOR, ONE, MANY = "posterior", "bootstrap, 1 copy", "bootstrap, {} copies"
RULE = "combining rule, {} copies"


@dataclass(frozen=True)
class Setting:
    """What is released, and how many samples of it the study asks for."""

    standard: str  # strict, unweighted, adp, truncated
    records: int
    epsilon: float | None  # of all copies under strict, of one copy else
    copies: int
    samples: int
    tables: int = 60

    @property
    def label(self) -> str:
        """As tables name it."""
        epsilon = "" if self.epsilon is None else f", ε = {self.epsilon:g}"
        return f"{self.standard}, n = {self.records}{epsilon}"

    def synthesizer(self, seed: int) -> Synthesizer:
        """Not fitted."""
        strict = self.standard == "strict"
        standards: dict[str, Standard] = {
            "strict": Strict(limits=LIMITS),
            "unweighted": Unweighted(),
            "adp": ADP(),
            "truncated": RangeTruncated(Radius(0.4, 1.8)),
        }
        return Synthesizer(
            "x ~ z",
            standard=standards[self.standard],
            epsilon=None if self.epsilon is None else self.epsilon * (1 if strict else self.copies),
            copies=self.copies,
            debias=self.standard in ("adp", "truncated"),
            seed=seed,
        )


def measure(setting: Setting, number: int, seed: int) -> dict[str, Any]:
    """Lower and upper ends by method and term, on one sample; none where no fit meets the target."""
    key = Key.from_seed(seed).child(f"{setting.records} {number}")  # the same tables for all standards
    table, truth = simulate(setting.records, key)
    row: dict[str, Any] = {"setting": setting.label, "sample": number, "seed": seed}
    row |= {"tables": setting.tables, "truth": truth.tolist()}
    try:
        with silence_advice():
            synth = setting.synthesizer(key.child(setting.label).integer()).fit(table)
            found = {ITSELF: read_itself(table)} | dict(_intervals(setting, synth, key.child("replay")))
    except CalibrationError:
        found = {}
    return row | {"found": {name: np.round(ends, 6).tolist() for name, ends in found.items()}}


def simulate(records: int, key: Key) -> tuple[pa.Table, Array]:
    """A table, and the truth of each term given its public columns."""
    z, w, error = (
        key.child(name).stream().normal(records) * scale + place
        for name, scale, place in (("z", 1.0, 2.0), ("w", 1.0, 0.0), ("x", np.sqrt(1 - BESIDE**2), 0.0))
    )
    x = np.exp(1 + z + BESIDE * w + error)
    mean = np.exp(1.5 + z)
    quantile = brentq(lambda q: ndtr(q - 1 - z).mean() - 0.9, -20.0, 40.0)
    slope = float(np.cov(mean, z)[0, 1] / z.var(ddof=1))
    truth = np.array([1.0, 1.0, 1.0, mean[z > 2.5].mean(), np.exp(quantile), slope, BESIDE])
    return pa.table({"x": x, "z": z, "w": w}), truth


def estimate(table: pa.Table) -> Array:
    """The terms, of one table."""
    x, z, w = (table[name].to_numpy() for name in ("x", "z", "w"))
    X, y = np.column_stack([np.ones_like(z), z, w]), np.log(x)
    gram, moments = X.T @ X, X.T @ np.column_stack([y, x])
    line, of_x = np.linalg.solve(gram[:2, :2], moments[:2]).T
    beside = np.linalg.solve(gram, moments[:, 0])[2]
    sigma = np.sqrt(np.sum((y - X[:, :2] @ line) ** 2) / (len(y) - 2))
    return np.array([*line, sigma, x[z > 2.5].mean(), np.quantile(x, 0.9), of_x[1], beside])


def variances(table: pa.Table) -> Array:
    """What one copy, read as data, says of the terms' variances given the public columns, by the model."""
    z, w = (table[name].to_numpy() for name in ("z", "w"))
    found, n, group = estimate(table), len(z), z > 2.5
    line, sigma, quantile = found[0] + found[1] * z, found[2], found[4]
    of_y, of_x = np.full(n, sigma**2), np.expm1(sigma**2) * np.exp(2 * line + sigma**2)
    at = (np.log(quantile) - line) / sigma
    below, density = ndtr(at), np.exp(-(at**2) / 2).mean() / (sigma * np.sqrt(2 * np.pi))
    of_quantile = (quantile / density) ** 2 * np.mean(below * (1 - below)) / n
    of_group, of_slope = of_x[group].mean() / group.sum(), _spread(of_x, z)[1]
    of_sigma, of_beside = sigma**2 / (2 * n), _spread(of_y, z, w)[2]
    return np.array([*_spread(of_y, z), of_sigma, of_group, of_quantile, of_slope, of_beside])


def _spread(variance: PerRecord, *columns: PerRecord) -> Array:
    """Variances of least-squares coefficients where each record has its own."""
    X = np.column_stack([np.ones_like(variance), *columns])
    half = X @ np.linalg.inv(X.T @ X)
    return np.asarray((half**2).T @ variance)


def read_itself(table: pa.Table) -> Array:
    """Usual intervals from the simulated table: what chance does to the best there is."""
    found, half = estimate(table), t.ppf((1 + LEVEL) / 2, table.num_rows - 2) * np.sqrt(variances(table))
    return np.column_stack([found - half, found + half])


def _intervals(setting: Setting, synth: Synthesizer, key: Key) -> Any:
    """Names of methods with their ends, terms × 2; NaN for terms that a method does not have."""
    release, many = synth.sample(), setting.copies
    if setting.standard in ("adp", "truncated"):
        yield f"{RULE.format(many)}, uncorrected", combine(_uncorrected(synth).tables)
    if setting.standard != "strict":
        yield RULE.format(many), combine(release.tables)
    if not isinstance(release.replay, Replay):
        return
    if setting.standard == "strict":
        own = synth.intervals(level=LEVEL)
        ends = np.full((len(TERMS), 2), np.nan)
        ends[:3] = np.column_stack([own["lower"].to_numpy(), own["upper"].to_numpy()])
        yield POSTERIOR, ends
    found = bootstrap(release.replay, estimate, tables=setting.tables, key=key)
    for name, copies in ((ONE, 1), (MANY.format(many), many)):
        _, lower, upper = found.ends(level=LEVEL, copies=copies)
        yield name, np.column_stack([lower, upper])


def _uncorrected(synth: Synthesizer) -> Any:
    return synth._need().variant(debias=False).release


def combine(tables: list[pa.Table]) -> Array:
    """Ends by the rule for partially synthetic data: T = b/m + v̄.

    For copies given noisy statistics another rule holds, which docs/combine.md has and measures.
    """
    each = [estimate(table) for table in tables], [variances(table) for table in tables]
    found = receive.combine(*each, rule="partial", level=LEVEL)
    return np.column_stack([found["lower"], found["upper"]])
