"""The front door: a confidential table in, a certified fit and its release out."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from hedgerow import design as designs
from hedgerow.axes import Mask, PerRecord
from hedgerow.calibrate import calibrate
from hedgerow.errors import HedgerowWarning, NotFittedError, SettingError
from hedgerow.keys import Key
from hedgerow.mechanism import Known, Outcome, Recipe, Start, begin, run, weigh
from hedgerow.models.base import Model
from hedgerow.models.families import model_named
from hedgerow.models.prior import Prior
from hedgerow.price import BOUNDS, Bound
from hedgerow.ranges import Everywhere
from hedgerow.release import Guarantee, Release
from hedgerow.standards import ADP, Standard
from hedgerow.table import Table
from hedgerow.utility import compare_copies
from hedgerow.weights import InverseWeights, LinearWeights, Reweighted, Weights, as_weights

_PRESETS: dict[str, dict[str, Any]] = {
    "paper": {"known": "simulated", "weights": LinearWeights(), "bound": "lipschitz", "draws": 1000}
}
_HIGH_LEVERAGE = 0.9
_SOME_LEVERAGE = 0.05  # below this a record cannot move the posterior away from its own draws
_DENSE = 0.1  # share of densities above 1 from which |f| is a doubtful risk


@dataclass(frozen=True, repr=False)
class _Fitted:
    start: Start
    outcome: Outcome
    scale: float
    release_key: Key


class Synthesizer:
    """Synthesize one column of a table under a privacy standard.

    Parameters
    ----------
    formula
        "outcome ~ terms" in the language of R, with a fixed list of transforms.
    family
        "normal" or "lognormal", or a model object.
    standard
        Which exponent the mechanism uses and what of it is sensitive.
    weights
        From risk to weight; an object, a function of the risks, or one number per record.
    bound
        "lipschitz", "oscillation" or "exact": how the privacy loss is bounded (`hedgerow.price`).
    epsilon
        Target over all copies. The weights are scaled down until a fresh fit meets it; None: no calibration.
    copies
        Number of synthetic tables; each costs the price of one draw.
    draws
        Posterior draws kept, over all chains.
    known
        How λ is found: "exact" from distribution functions, "simulated" as in the paper.
    prior
        A `Prior` in natural units; proper and blind to the outcome by default.
    preset
        "paper" sets what the caller left unset to what the paper did.
    seed
        For tests and studies only: as confidential as the data. None takes operating-system entropy.

    Formal guarantees
    -----------------
    With a target, the fit that `sample` releases was priced on its own draws, after calibration, at no more
    than epsilon/copies. What that price does and does not mean is printed by `sample().guarantee`.
    Attributes with a trailing underscore are computed from the confidential data and are confidential.
    """

    _given: frozenset[str]

    def __new__(cls, *args: Any, **kwargs: Any) -> "Synthesizer":
        self = super().__new__(cls)
        self._given = frozenset(kwargs)  # a preset fills in only what the caller left out
        return self

    def __init__(
        self,
        formula: str,
        family: str | Model = "lognormal",
        *,
        standard: Standard | None = None,
        weights: Any = None,
        bound: Bound = "lipschitz",
        epsilon: float | None = None,
        copies: int = 1,
        draws: int = 1000,
        known: Known = "exact",
        prior: Prior | None = None,
        preset: Literal["paper"] | None = None,
        seed: int | None = None,
    ) -> None:
        settings: dict[str, Any] = {"weights": weights, "bound": bound, "draws": draws, "known": known}
        if preset is not None:
            if preset not in _PRESETS:
                raise SettingError(f"preset must be one of {', '.join(_PRESETS)}, got {preset!r}.")
            settings |= {name: v for name, v in _PRESETS[preset].items() if name not in self._given}
        self.formula = formula
        self.model = model_named(family, prior)
        self.standard = standard if standard is not None else ADP()
        self.weights: Weights = as_weights(
            settings["weights"] if settings["weights"] is not None else LinearWeights()
        )
        self.bound: Bound = settings["bound"]
        self.epsilon = epsilon
        self.copies = copies
        self.draws = settings["draws"]
        self.known: Known = settings["known"]
        self._key = Key.from_seed(seed)
        self._seeded = seed is not None
        self._fitted: _Fitted | None = None
        self._check()

    def _check(self) -> None:
        if not isinstance(self.standard, Standard):
            raise SettingError(
                f"standard must be Unweighted(), ADP(), RangeAveraged(range), RangeTruncated(range) or a "
                f"Standard of your own, got {type(self.standard).__name__}."
            )
        if self.bound not in BOUNDS:
            raise SettingError(f"bound must be one of {', '.join(BOUNDS)}, got {self.bound!r}.")
        if self.known not in ("exact", "simulated"):
            raise SettingError(f"known must be 'exact' or 'simulated', got {self.known!r}.")
        if self.epsilon is not None and not (_is_real(self.epsilon) and 0 < self.epsilon < np.inf):
            raise SettingError(f"epsilon must be a positive finite number or None, got {self.epsilon!r}.")
        if not _is_count(self.draws) or self.draws < 100:
            raise SettingError(
                f"draws must be a whole number from 100 up, got {self.draws!r}; 1000 is usual."
            )
        if not _is_count(self.copies) or self.copies < 1:
            raise SettingError(f"copies must be a whole number from 1 up, got {self.copies!r}.")
        if self.copies > self.draws:
            raise SettingError(
                f"copies must be at most draws, got {self.copies} copies of {self.draws} draws. Raise draws."
            )

    @property
    def recipe(self) -> Recipe:
        """What the procedure is told before it sees the outcome."""
        return Recipe(self.model, self.standard, self.weights, self.bound, self.draws, self.known)

    def fit(self, data: Any) -> "Synthesizer":
        """Fit, weigh, refit and price. Returns the synthesizer itself."""
        table = Table.of(data)
        design = designs.build(self.formula, table)
        self._warn_about_columns(table, design)
        return self.fit_from(begin(self.model, table, design, draws=self.draws, key=self._key))

    def fit_from(self, start: Start) -> "Synthesizer":
        """Go on from an unweighted fit that several synthesizers share."""
        recipe = self.recipe
        self._warn_about_weights(start)
        weighted = weigh(recipe, start, key=self._key)
        if self.epsilon is None:
            outcome, scale = run(recipe, start, weighted, key=self._key.child("certify").child(1)), 1.0
        else:
            target = _per_copy(self.epsilon, self.copies)
            done = calibrate(recipe, start, weighted, target=target, key=self._key)
            outcome, scale = done.outcome, done.scale
        self._fitted = _Fitted(start, outcome, scale, self._key.child("release"))
        self._warn_about_leverage()
        return self

    def sample(self) -> Release:
        """The release: the same copies each time, from draws of the fit that was priced."""
        fitted = self._need()
        design, table = fitted.start.design, fitted.start.table
        tables = [table.with_column(design.outcome, values) for values in self._copies()]
        return Release(tables, self._guarantee())

    def utility(self) -> Any:
        """How the copies compare with the confidential outcome: tidy, and confidential."""
        return self.like(self.utility_columns())

    def utility_columns(self) -> dict[str, list[object]]:
        """The columns of `utility`."""
        design = self._need().start.design
        synthetic = [Table.of(copy).numbers(design.outcome) for copy in self.sample().tables]
        return compare_copies(design.values, synthetic)

    def like(self, columns: Mapping[str, Any]) -> Any:
        """A dataframe of the kind that was fitted."""
        return self._need().start.table.like(columns)

    def _copies(self) -> list[PerRecord]:
        fitted = self._need()
        design = fitted.start.design
        order = np.argsort(fitted.release_key.child("draws").stream().uniform(fitted.outcome.fit.draws))
        streams = (fitted.release_key.child("predict").child(k).stream() for k in range(self.copies))
        return [
            fitted.outcome.fit.predict(int(draw), stream.uniform(design.records))
            for draw, stream in zip(order, streams, strict=False)
        ]

    def _guarantee(self) -> Guarantee:
        fitted = self._need()
        design, stated = fitted.start.design, fitted.outcome.statement
        return Guarantee(
            standard=self.standard.label,
            neighbour=self.standard.neighbour,
            bound=stated.bound,
            family=self.model.name,
            epsilon=self.epsilon,
            copies=self.copies,
            draws=stated.draws,
            delta=stated.delta,
            confidence=stated.confidence,
            independent=stated.independent,
            protected=design.outcome,
            passed_through=tuple(name for name in fitted.start.table.columns if name != design.outcome),
            known="" if isinstance(self.standard.range, Everywhere) else repr(self.standard.range),
            averaged=self.standard.uses_known,
            seeded=self._seeded,
        )

    # What the fit found. Confidential, all of it.

    @property
    def epsilon_(self) -> float:
        """Price of one copy under the chosen bound."""
        return self._need().outcome.epsilon

    @property
    def total_epsilon_(self) -> float:
        """Price of all copies under the chosen bound."""
        return self.copies * self.epsilon_

    @property
    def lipschitz_epsilon_(self) -> float:
        """Price of one copy under the Lipschitz bound."""
        return self._need().outcome.pricing.epsilon("lipschitz")

    @property
    def oscillation_epsilon_(self) -> float:
        """Price of one copy under the oscillation bound."""
        return self._need().outcome.pricing.epsilon("oscillation")

    @property
    def exact_epsilon_(self) -> float:
        """Price of one copy by the exact privacy loss; absent where that has no closed form."""
        pricing = self._need().outcome.pricing
        if not pricing.has("exact"):
            raise AttributeError(
                f"exact_epsilon_: the neighbour of {self.standard.label} has no closed form with the "
                f"{self.model.name} model. See oscillation_epsilon_ and withheld_epsilon_."
            )
        return pricing.epsilon("exact")

    @property
    def withheld_epsilon_(self) -> dict[str, float]:
        """By bound: the price of one copy when x_i is withheld altogether."""
        withheld = self._need().outcome.pricing.withheld
        return {bound: withheld.epsilon(bound) for bound in BOUNDS if withheld.has(bound)}

    @property
    def certified_epsilon_(self) -> float:
        """The number the draw-based statement holds for: at least `epsilon_`, at most the target per copy."""
        return self._need().outcome.certified

    @property
    def sensitivity_(self) -> float:
        """Δ: the largest |d| over draws and records."""
        return float(self._need().outcome.pricing.sensitivity.max())

    @property
    def lipschitz_(self) -> PerRecord:
        """max_s |d[s,i]|: the by-record values of the paper's violins."""
        return self._need().outcome.pricing.sensitivity

    @property
    def prices_(self) -> dict[str, PerRecord]:
        """By record and bound, then with x_i withheld (names that start with `withheld_`)."""
        pricing = self._need().outcome.pricing
        own = {bound: pricing.by_record(bound) for bound in BOUNDS if pricing.has(bound)}
        withheld = pricing.withheld
        return own | {f"withheld_{b}": withheld.by_record(b) for b in BOUNDS if withheld.has(b)}

    @property
    def scale_(self) -> float:
        """The factor on the weights that calibration found; 1 without a target."""
        return self._need().scale

    @property
    def risk_(self) -> PerRecord:
        """By-record risk under the unweighted fit, of the kind the weights use."""
        return self._need().start.risk.of(getattr(self.weights, "risk", "lipschitz"))

    @property
    def alpha_(self) -> PerRecord:
        """α_i, the weights, calibration included."""
        return self._need().outcome.weighted.alpha

    @property
    def power_(self) -> PerRecord:
        """α*_i, the exponent on each record's likelihood."""
        return self._need().outcome.fit.power

    @property
    def known_(self) -> PerRecord:
        """λ_i; zero for standards that do not use it."""
        return self._need().outcome.weighted.known

    @property
    def outcome_name(self) -> str:
        """The protected column."""
        return self._need().start.design.outcome

    @property
    def outcome_(self) -> PerRecord:
        """The confidential outcome itself."""
        return self._need().start.design.values

    @property
    def records_(self) -> Any:
        """By record: risk, alpha, power, known, price under the chosen bound, share of the largest price."""
        fitted = self._need()
        price = fitted.outcome.pricing.by_record(self.bound)
        largest = price.max()
        return self.like(
            {
                "record": np.arange(len(price)),
                "risk": self.risk_,
                "alpha": self.alpha_,
                "power": self.power_,
                "known": self.known_,
                "price": price,
                "share": price / largest if largest > 0 else np.zeros_like(price),
            }
        )

    @property
    def by_draws_(self) -> Any:
        """How each bound moved as the number of draws doubled."""
        fitted = self._need()
        steps = fitted.outcome.pricing.by_draws
        columns: dict[str, list[float]] = {"draws": [count for count, _ in steps]}
        for bound in BOUNDS:
            if fitted.outcome.pricing.has(bound):
                columns[bound] = [price.epsilon(bound) for _, price in steps]
        return self.like(columns)

    @property
    def flagged_(self) -> Any:
        """Records for which a draw-based bound cannot be trusted: they decide too much of their own fit."""
        pricing = self._need().outcome.pricing
        rows = np.flatnonzero(self._untrusted())
        columns: dict[str, Any] = {"record": rows}
        if pricing.influence is not None:
            columns |= {
                "leverage": pricing.influence.leverage[rows],
                "oscillation": pricing.withheld.by_record("oscillation")[rows],
                "exact": pricing.withheld.by_record("exact")[rows],
            }
        return self.like(columns)

    def _untrusted(self) -> Mask:
        pricing = self._need().outcome.pricing
        if pricing.influence is None:
            return np.zeros(len(self.power_), dtype=np.bool_)
        leverage = pricing.influence.leverage
        flagged = leverage > _HIGH_LEVERAGE
        if (leverage > _SOME_LEVERAGE).any():
            withheld = pricing.withheld
            beyond = withheld.by_record("exact") > withheld.by_record("oscillation")
            flagged |= beyond & (leverage > _SOME_LEVERAGE)
        return flagged

    def _need(self) -> _Fitted:
        if self._fitted is None:
            raise NotFittedError("Not fitted yet: call fit(data) first.")
        return self._fitted

    def _warn_about_columns(self, table: Table, design: designs.Design) -> None:
        unused = [name for name in table.columns if name not in (design.outcome, *design.predictors)]
        if unused:
            _warn(
                f"Columns {', '.join(unused)} are not in the formula; they are released unchanged and "
                "unprotected. Drop them if they say anything about the outcome."
            )

    def _warn_about_weights(self, start: Start) -> None:
        if not self.standard.weighted:
            return
        weights = self.weights
        while isinstance(weights, Reweighted):
            weights = weights.base
        if self.bound != "lipschitz" and isinstance(weights, LinearWeights | InverseWeights):
            _warn(
                f"{type(weights).__name__} with bound='{self.bound}': these weights move with every record, "
                "and recomputed without one record the loss was seen above this bound. Use CapWeights(cap, "
                "risk='oscillation'), SoftmaxWeights or LogisticWeights, or the Lipschitz bound."
            )
        if getattr(weights, "risk", "") == "lipschitz" and start.risk.share_above_one > _DENSE:
            _warn(
                f"More than {_DENSE:.0%} of the records have a density above 1, so that risk='lipschitz' "
                "takes ordinary records for risky ones. Record the outcome in smaller units, or use "
                "risk='oscillation', which does not depend on units."
            )

    def _warn_about_leverage(self) -> None:
        if self._untrusted().any():
            _warn(
                "Some records decide so much of their own fit that draws cannot bound the loss about them: "
                "the true loss may exceed the Lipschitz and oscillation prices. They are listed in flagged_ "
                "(confidential). Merge rare categories, or use bound='exact' where there is one."
            )

    def __repr__(self) -> str:
        state = "fitted, confidential" if self._fitted is not None else "not fitted"
        return f"Synthesizer({self.formula!r}, {self.model.name}, {self.standard.label}, {state})"


def _per_copy(epsilon: float, copies: int) -> float:
    """epsilon/copies, rounded down so that the copies together never exceed epsilon."""
    target = epsilon / copies
    return target if target * copies <= epsilon else float(np.nextafter(target, 0.0))


def _warn(message: str) -> None:
    warnings.warn(message, HedgerowWarning, stacklevel=4)


def _is_real(value: object) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def _is_count(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
