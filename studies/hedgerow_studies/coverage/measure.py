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
            found = dict(_intervals(setting, synth, key.child("replay")))
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
    """What one copy, read as data, says of the terms' variances: robust ones for regressions (HC0)."""
    x, z, w = (table[name].to_numpy() for name in ("x", "z", "w"))
    n, y, group = len(x), np.log(x), x[z > 2.5]
    of_line, of_x, of_both = _spread(y, z), _spread(x, z), _spread(y, z, w)
    low, high = np.quantile(x, [0.9 - 0.3 / np.sqrt(n), 0.9 + 0.3 / np.sqrt(n)])  # one error either way
    of_sigma, of_group = estimate(table)[2] ** 2 / (2 * n), group.var(ddof=1) / len(group)
    return np.array([*of_line, of_sigma, of_group, ((high - low) / 2) ** 2, of_x[1], of_both[2]])


def _spread(y: PerRecord, *columns: PerRecord) -> Array:
    """Variances of least-squares coefficients."""
    X = np.column_stack([np.ones_like(y), *columns])
    half = X @ np.linalg.inv(X.T @ X)
    residual = y - X @ (half.T @ y)
    return np.asarray((half**2).T @ residual**2)


def _intervals(setting: Setting, synth: Synthesizer, key: Key) -> Any:
    """Names of methods with their ends, terms × 2; NaN for terms that a method does not have."""
    release, many = synth.sample(), setting.copies
    plain = release if setting.standard in ("strict", "unweighted") else _uncorrected(synth)
    if setting.standard != "strict":
        yield f"{RULE.format(many)}, plain", combine(plain.tables, strict=False)
    if plain is not release or setting.standard == "strict":
        yield RULE.format(many), combine(release.tables, strict=setting.standard == "strict")
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


def combine(tables: list[pa.Table], *, strict: bool) -> Array:
    """Ends by a combining rule: of partially synthetic data, T = b/m + v̄, and of fully synthetic ones.

    Under strict draws scatter by the noise as well: b holds sampling twice, and noise, so that T is
    (1 + 1/m) b − v̄ (Raghunathan, Reiter and Rubin 2003), where positive; else b/m + v̄.
    """
    estimates = np.array([estimate(table) for table in tables])
    m, within = len(tables), np.mean([variances(table) for table in tables], axis=0)
    between = estimates.var(axis=0, ddof=1)
    total, freedom = between / m + within, (m - 1) * (1 + within * m / between) ** 2
    if strict:
        whole = (1 + 1 / m) * between - within
        better = whole > 0
        total = np.where(better, whole, total)
        freedom = np.where(better, (m - 1) * (1 - within / ((1 + 1 / m) * between)) ** 2, freedom)
    half = t.ppf((1 + LEVEL) / 2, np.maximum(freedom, 1.0)) * np.sqrt(total)
    return np.column_stack([estimates.mean(axis=0) - half, estimates.mean(axis=0) + half])
