"""Exact normal, lognormal and asinh regression (docs/maths.md, "Exact models").

The conjugate pseudo posterior with one power per record has a closed form; its draws are independent and
exact. It is the oracle for every other model, and the only kind whose privacy loss is known exactly.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit, ndtri, psi

from hedgerow.arrays import Array, LogLik, LogMass, Mask, Matrix, PerRecord
from hedgerow.errors import DataError
from hedgerow.models.base import Domain, Health, Influence, Parameters, Sample, Units
from hedgerow.models.conjugate import (
    DIGITS,
    LOG_2PI,
    REFIT,
    Left,
    Places,
    Posterior,
    Refit,
    RegressionInfluence,
)
from hedgerow.models.correctable import StandIn
from hedgerow.models.prior import DEFAULT, Prior
from hedgerow.models.reductions import blocked_extremes
from hedgerow.models.scored import Interval, Linear, Sensitive
from hedgerow.numerics import leaves, scoring
from hedgerow.numerics.blocks import BlockNeighbours, find_directions
from hedgerow.numerics.leaves import apply, leaves_of, multiply, sum_leaves
from hedgerow.numerics.normal_mass import log_interval_mass, normal_inside
from hedgerow.numerics.renyi import Neighbours
from hedgerow.numerics.rounding import format_count
from hedgerow.numerics.scoring import Draws, Extremes
from hedgerow.numerics.triangular import (
    invert_leading,
    leaf_factor,
    leaf_leverages,
    leverages,
    merge_factors,
    weighted_factor,
)
from hedgerow.randomness import Key
from hedgerow.tables.design import LARGEST, Design
from hedgerow.tables.values import Support
from hedgerow.threads import one_blas_thread, share_out


class Drawn(dict[str, Array]):
    """Parameters that score many leaves: what is found out about the draws is found out once."""

    def __init__(self, parameters: Parameters, records: int) -> None:
        super().__init__(parameters)
        self.draws = Draws(parameters["beta"], parameters["sigma"], records)


def read_draws(parameters: Parameters) -> Draws:
    """The draws that parameters are."""
    if isinstance(parameters, Drawn):
        return parameters.draws
    return Draws(parameters["beta"], parameters["sigma"])


@dataclass(frozen=True)
class Regression(StandIn):
    """Linear regression of a perhaps transformed outcome with normal errors and a conjugate prior."""

    prior: Prior = field(default_factory=Prior)
    tables: ClassVar[int] = 6

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", self.prior.over(DEFAULT, self.prior.residual))

    def response(self, values: PerRecord) -> PerRecord:
        """The scale on which errors are normal: the table's own, unless a subclass has another."""
        return values

    def responses(self, design: Design) -> PerRecord:
        """The response of each record of a design."""
        return design.once("response", lambda: apply(self.response, design.values), self)

    def describes(self, values: PerRecord) -> Mask:
        """Which outcomes the model can describe."""
        return np.abs(values) <= LARGEST

    def check(self, design: Design) -> None:
        self.prior.moments(design)
        huge = int((~self.describes(design.values)).sum())
        if huge:
            raise DataError(
                f"Column '{design.outcome}' has {huge} values beyond ±{LARGEST:g} in {design.records} rows. "
                "Record it in larger units."
            )

    def jacobian(self, design: Design) -> PerRecord:
        """What the change of scale adds to the log density, record by record."""
        return np.zeros(design.records)

    def jacobians(self, design: Design) -> PerRecord:
        """`jacobian`, computed once for a design."""
        return design.once("jacobian", lambda: self.jacobian(design), self)

    def outcome(self, response: PerRecord) -> PerRecord:
        """Back to the scale of the table."""
        return response

    def apart(self, ratio: float) -> float:
        """How far apart responses can be whose outcomes are at most so many times each other."""
        return np.inf

    def posterior(self, design: Design, power: PerRecord) -> Posterior:
        """The pseudo posterior in closed form, from one streamed triangular factor."""
        return self.posterior_of(self._factor(design, power), sum_leaves(power))

    def _factor(self, design: Design, power: PerRecord) -> Array:
        return weighted_factor(design.matrix, self.responses(design), power, start=self.start(design))

    def sum_leaf(self, design: Design, power: PerRecord, *, first: bool) -> Array:
        """The triangular factor of one leaf of records; the first one continues from the prior."""
        start = self.start(design) if first else None
        return leaf_factor(design.matrix, self.responses(design), power, start=start)

    def merge_sums(self, one: Array, other: Array) -> Array:
        return merge_factors((one, other))

    def start(self, design: Design) -> Array:
        """The prior's factor, from which that of the records goes on: no row of it, but its means and spread.

        It enters as one more row per coefficient, so that nothing is squared and subtracted.
        """
        mean, deviation = self.prior.moments(design)
        width = len(mean)
        start = np.zeros((width + 1, width + 1))
        start[:width, :width] = self.prior.contrasts(design) / deviation[:, None]
        start[:width, width] = mean / deviation
        return start

    def posterior_of(self, merged: Array, power: float) -> Posterior:
        """The pseudo posterior from the factor of prior and records, and the sum of their powers."""
        width = len(merged) - 1
        factor = merged[:width, :width]
        return Posterior(
            factor=factor,
            mean=solve_triangular(factor, merged[:width, width]),
            shape=self.prior.shape + power / 2,
            rate=self.prior.rate + float(merged[width, width]) ** 2 / 2,
        )

    def sample(self, design: Design, power: PerRecord, *, draws: int, key: Key) -> Sample:
        posterior = self.posterior(design, power)
        sample = self.draw(posterior, draws=draws, key=key)
        return replace(sample, influence=lambda: self.influence(design, power, posterior))

    def draw(self, posterior: Posterior, *, draws: int, key: Key) -> Sample:
        """Draws of a posterior; what records do to it is left open."""
        exact = posterior.draw(draws, key)
        health = Health(sampler="exact", independent=True, effective_draws=float(draws))
        return Sample({"beta": exact.beta, "sigma": exact.sigma}, health)

    def free(self, design: Design, parameters: Parameters) -> Array:
        return np.append(parameters["beta"], np.log(parameters["sigma"]))

    def natural(self, design: Design, free: Array) -> Parameters:
        return {"beta": free[:-1].copy(), "sigma": np.asarray(np.exp(free[-1]))}

    def centre(self, design: Design, power: PerRecord, *, key: Key) -> Array:
        """The posterior means of β and of log σ: E log σ² = log rate − ψ(shape)."""
        posterior = self.posterior(design, power)
        return np.append(posterior.mean, (np.log(posterior.rate) - psi(posterior.shape)) / 2)

    def chance(self, design: Design, truth: Parameters) -> Array | None:
        """Least squares: β̂ − β, and log σ̂ less its mean, which the χ² law of the residuals gives."""
        width = len(design.columns)
        if design.records <= width:
            return None
        factor = weighted_factor(design.matrix, self.responses(design))
        estimate = solve_triangular(factor[:width, :width], factor[:width, width])
        log_ratio = 2 * np.log(factor[width, width] / truth["sigma"])
        expected = psi((design.records - width) / 2) + np.log(2)
        return np.append(estimate - truth["beta"], (log_ratio - expected) / 2)

    def log_lik(self, design: Design, parameters: Parameters, records: slice) -> LogLik:
        sigma = parameters["sigma"][:, None]
        mean = parameters["beta"] @ design.matrix[records].T
        residual = (self.response(design.values[records]) - mean) / sigma
        return np.asarray(
            self.jacobians(design)[records] - LOG_2PI / 2 - np.log(sigma) - residual**2 / 2, dtype=np.float64
        )

    def log_mass(self, design: Design, parameters: Parameters, interval: Interval, records: slice) -> LogMass:
        sigma = parameters["sigma"][:, None]
        mean = parameters["beta"] @ design.matrix[records].T
        block = interval[records]
        return log_interval_mass(
            (self._end(block.lower) - mean) / sigma, (self._end(block.upper) - mean) / sigma
        )

    def predict(self, design: Design, parameters: Parameters, uniforms: PerRecord) -> PerRecord:
        with np.errstate(over="ignore"):
            return self.outcome(
                multiply(design.matrix, parameters["beta"]) + parameters["sigma"] * ndtri(uniforms)
            )

    def predict_inside(
        self, design: Design, parameters: Parameters, interval: Interval, uniforms: PerRecord
    ) -> PerRecord:
        mean, ends = (
            multiply(design.matrix, parameters["beta"]),
            (self._end(interval.lower), self._end(interval.upper)),
        )
        with np.errstate(over="ignore"):
            values = self.outcome(normal_inside(mean, parameters["sigma"], *ends, uniforms))
        return np.clip(values, interval.lower, interval.upper)  # rounding must not leave it

    def extremes(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> Extremes:
        if not isinstance(sensitive, Linear) or sensitive.form.reversed:
            return blocked_extremes(self, design, parameters, sensitive, interval)
        draws = read_draws(parameters)
        density, mass = sensitive.density, sensitive.mass
        shift = sensitive.constant + density * self.jacobians(design)
        if not sensitive.form.uses_mass:
            scored = scoring.density_extremes(_predictors(design), self.responses(design), draws)
        elif sensitive.form.conditional:
            scored = scoring.conditional_extremes(*self._records(design, interval), draws)
        else:
            records = self._records(design, interval)
            return scoring.combined_extremes(*records, draws, density, mass).shifted(shift)
        low, high = (np.where(density == 0, 0.0, density * end) for end in (scored.low, scored.high))
        return Extremes(low, high).shifted(shift)

    def absolute(
        self, design: Design, parameters: Parameters, sensitive: Sensitive, interval: Interval
    ) -> PerRecord:
        if not isinstance(sensitive, Linear) or sensitive.form.shifted or sensitive.form.reversed:
            return self.extremes(design, parameters, sensitive, interval).absolute
        draws, shift = read_draws(parameters), self.jacobians(design)
        density = sensitive.density
        if not sensitive.form.uses_mass:
            response = self.responses(design)
            scored = scoring.density_absolute(_predictors(design), response, draws, shift=shift)
        elif sensitive.form.conditional:
            scored = scoring.conditional_absolute(*self._records(design, interval), draws, shift=shift)
        else:
            return self.extremes(design, parameters, sensitive, interval).absolute
        with np.errstate(invalid="ignore"):
            return apply(lambda share, size: np.where(share == 0, 0.0, share * size), density, scored)

    def density_bound(self, design: Design, parameters: Parameters) -> PerRecord:
        most = np.max(-np.log(parameters["sigma"])) - LOG_2PI / 2
        return most + 1e-9 * (1 + abs(most)) + self.jacobians(design)

    def mean_mass(self, design: Design, parameters: Parameters, interval: Interval) -> PerRecord:
        draws = read_draws(parameters)
        return scoring.mean_mass(*self._records(design, interval), draws)

    def influence(
        self, design: Design, power: PerRecord, posterior: Posterior, refit: Refit | None = None
    ) -> Influence:
        """What these records do to a posterior of them or, with a `refit` of its own, of more than them."""
        Z, y = design.matrix, self.responses(design)
        inverse = invert_leading(posterior.factor, len(design.columns))
        leverage, pull, spread, squared = np.empty((4, design.records))

        def measure(rows: slice) -> None:
            spread[rows] = leaf_leverages(Z[rows], inverse)
            squared[rows] = (y[rows] - Z[rows] @ posterior.mean) ** 2
            np.multiply(power[rows], spread[rows], out=leverage[rows])
            with np.errstate(all="ignore"):
                pull[rows] = power[rows] * squared[rows] / (2 * (1 - leverage[rows]) * posterior.rate)

        with one_blas_thread():
            share_out(measure, leaves_of(design.records), worth=design.records > leaves.LEAF)
        told = self.jacobians(design), posterior.shape, posterior.rate
        refit = refit or partial(self._leave_out, design, power)
        return RegressionInfluence(leverage, pull, spread, squared, *told, refit)

    def _leave_out(self, design: Design, power: PerRecord, share: PerRecord, rows: Places) -> list[Left]:
        """h, r² and b of these records' neighbours: all of them are left out once, the others put back."""
        others = power.copy()
        others[rows] = 0.0
        Z, y = design.matrix[rows], self.response(design.values[rows])
        return self.leave_out(
            Z, y, power[rows], share[rows], base=self._factor(design, others), rest=sum_leaves(others)
        )

    def leave_out(
        self, Z: Array, y: PerRecord, power: PerRecord, share: PerRecord, *, base: Array, rest: float
    ) -> list[Left]:
        """h, r² and b of these records' neighbours, by a factor of the others and the sum of their powers."""
        left: list[Left] = []
        for place in range(len(y)):
            own = power.copy()
            own[place] -= share[place]
            if own[place] < -DIGITS:  # a standard of one's own may take away more than there is
                left.append((np.inf, np.inf, np.inf))
                continue
            own[place] = max(own[place], 0.0)
            fitted = self.posterior_of(weighted_factor(Z, y, own, start=base), rest + float(own.sum()))
            spread = leverages(Z[[place]], fitted.factor)[0]
            left.append((float(spread), float(y[place] - Z[place] @ fitted.mean) ** 2, fitted.rate))
        return left

    def without_units(
        self, design: Design, power: PerRecord, share: PerRecord, unit: Units
    ) -> tuple[Neighbours, PerRecord]:
        """From one fit; a unit that decides nearly all of it has a fit of its own."""
        posterior, response = self.posterior(design, power), self.responses(design)

        def directions(fitted: Posterior, members: Places) -> tuple[Array, Array]:
            """Of units, a row of members each, in coordinates of a fit's precision."""
            Z, root = design.matrix[members], np.sqrt(share[members])
            turned = solve_triangular(fitted.factor, Z.reshape(-1, width).T, trans=1).T.reshape(Z.shape)
            residual = (response[members] - Z @ fitted.mean) * root
            return find_directions(turned * root[..., None], residual)

        count, width = int(unit.max()) + 1, design.matrix.shape[1]
        sizes, squared = np.zeros((2, count, width + 1))
        order = np.argsort(unit, kind="stable")
        many = np.bincount(unit, minlength=count)
        first = np.cumsum(many) - many
        for size in np.unique(many[many > 0]):
            own = np.flatnonzero(many == size)
            members = order[first[own][:, None] + np.arange(size)]
            values, along = directions(posterior, members)
            sizes[own, : values.shape[1]], squared[own, : along.shape[1]] = values, along
        left = 1 - sizes
        added = np.bincount(unit, share, minlength=count).astype(np.float64)
        with np.errstate(all="ignore"):
            rate = posterior.rate - (squared / left).sum(axis=1) / 2
            hard = np.flatnonzero(~((left > REFIT).all(axis=1) & (rate > REFIT * posterior.rate)))
            sizes, squared = sizes / left, squared / left**2
        for one in hard:
            members = order[first[one] : first[one] + many[one]]
            others = power.copy()
            others[members] = np.maximum(others[members] - share[members], 0.0)
            without = self.posterior(design, others)
            values, along = directions(without, members[None])
            sizes[one], squared[one] = 0.0, 0.0
            sizes[one, : values.shape[1]], squared[one, : along.shape[1]] = values[0], along[0]
            rate[one] = without.rate
        found = BlockNeighbours(added, sizes, squared, posterior.shape - added / 2, rate, unit)
        constant = found.loss_constant() + np.bincount(unit, share * (self.jacobians(design) - LOG_2PI / 2))
        lost = ~np.isfinite(constant) | (sizes.max(axis=1) > 1 / DIGITS)
        return found, np.where(lost, -np.inf, constant)[unit]

    def _end(self, values: PerRecord) -> PerRecord:
        """A range's end on the scale of the response."""
        return self.response(values)

    def _records(self, design: Design, interval: Interval) -> tuple[Array, PerRecord, PerRecord, PerRecord]:
        """Predictors, response, and the ends of the ranges as offsets from it."""
        response = self.responses(design)

        def offset(end: PerRecord, name: str) -> PerRecord:
            return design.once(
                name, lambda: apply(lambda own, y: self._end(own) - y, end, response), self, end
            )

        return _predictors(design), response, offset(interval.lower, "lower"), offset(interval.upper, "upper")


@dataclass(frozen=True)
class Normal(Regression):
    """x = z'β + σ e."""

    name: str = "normal"


@dataclass(frozen=True)
class Lognormal(Regression):
    """log x = z'β + σ e; the log density of x includes −log x."""

    name: str = "lognormal"

    @property
    def domain(self) -> Domain:
        return Domain(Support(0.0, above=True))

    def check(self, design: Design) -> None:
        self.prior.moments(design)
        if (design.values > 0).all():
            return
        zeros, negative = int((design.values == 0).sum()), int((design.values < 0).sum())
        if zeros or negative:
            found = [format_count(zeros, "zero")] if zeros else []
            found += [format_count(negative, "negative value")] if negative else []
            remedy = "family='student' or family='asinh', for amounts of either sign, with a public scale"
            if negative and zeros:
                remedy = "family='zero_asinh' or 'zero_student', for amounts of either sign with a spike"
            elif zeros:
                remedy = "family='zero_lognormal', which has a spike at zero"
            raise DataError(
                f"Column '{design.outcome}' has {' and '.join(found)} in {design.records} rows; the "
                f"lognormal family needs positive values. Use {remedy}."
            )

    def describes(self, values: PerRecord) -> Mask:
        return (values > 0) & np.isfinite(values)

    def response(self, values: PerRecord) -> PerRecord:
        return np.asarray(np.log(values), dtype=np.float64)

    def jacobian(self, design: Design) -> PerRecord:
        return apply(np.negative, self.responses(design))

    def outcome(self, response: PerRecord) -> PerRecord:
        return np.asarray(np.exp(response), dtype=np.float64)

    def apart(self, ratio: float) -> float:
        return float(np.log(ratio))

    def _end(self, values: PerRecord) -> PerRecord:
        return np.asarray(
            np.log(np.maximum(values, 0.0), where=values > 0, out=np.full_like(values, -np.inf))
        )


@dataclass(frozen=True)
class Asinh(Regression):
    """asinh(x / scale) = z'β + σ e: x itself where it is small beside a public scale, ± its log beyond."""

    name: str = "asinh"
    scale: float = field(kw_only=True)

    @property
    def domain(self) -> Domain:
        return Domain(declared=f"scale {self.scale:.17g}")

    def response(self, values: PerRecord) -> PerRecord:
        return np.asarray(np.arcsinh(values / self.scale), dtype=np.float64)

    def jacobian(self, design: Design) -> PerRecord:
        return -np.log(np.hypot(self.scale, design.values))

    def outcome(self, response: PerRecord) -> PerRecord:
        return np.asarray(self.scale * np.sinh(response), dtype=np.float64)

    def apart(self, ratio: float) -> float:
        return float(np.log(ratio))  # asinh grows more slowly than the logarithm of |x|


@dataclass(frozen=True)
class Logit(Regression):
    """log((x − low)/(high − x)) = z'β + σ e: numbers between two ends, as noisy sums take them."""

    name: str = "logit"
    low: float = field(default=0.0, kw_only=True)
    high: float = field(default=1.0, kw_only=True)

    @property
    def domain(self) -> Domain:
        return Domain(Support(self.low, self.high, above=True, below=True))

    def response(self, values: PerRecord) -> PerRecord:
        return np.asarray(np.log(values - self.low) - np.log(self.high - values), dtype=np.float64)

    def jacobian(self, design: Design) -> PerRecord:
        share = (design.values - self.low) / (self.high - self.low)
        return -np.log((self.high - self.low) * share * (1 - share))

    def outcome(self, response: PerRecord) -> PerRecord:
        return np.asarray(self.low + (self.high - self.low) * expit(response), dtype=np.float64)


def _predictors(design: Design) -> Matrix:
    """The matrix as nobody may write to it, so that a device may keep what it was sent."""
    return design.once("matrix", lambda: design.matrix)
