"""The front door: a confidential table in, a certified fit and its release out."""

import sys
import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from hedgerow import progress
from hedgerow.errors import DataError, HedgerowWarning, SettingError, is_count, is_real, list_some
from hedgerow.inference.intervals import TABLES
from hedgerow.inference.intervals import check as check_intervals
from hedgerow.mechanism import debias as debiasing
from hedgerow.mechanism.calibrate import calibrate
from hedgerow.mechanism.copies import SAMPLINGS, Sampling
from hedgerow.mechanism.price import BOUNDS, SUPREMA, Bound
from hedgerow.mechanism.steps import Known, Recipe, Start, begin, run, weigh
from hedgerow.models.base import Model
from hedgerow.models.families import model_named
from hedgerow.models.prior import Prior
from hedgerow.privacy import presets
from hedgerow.privacy.guarantee import Guarantee, Release
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.standards import ADP, Standard
from hedgerow.privacy.strict import Bounded, Boxed, StrictWeights
from hedgerow.privacy.weights import (
    LinearWeights,
    Reweighted,
    Weights,
    as_weights,
    if_recomputed,
    moves_with_everyone,
)
from hedgerow.randomness import Key
from hedgerow.results import Fitted, Results, per_copy
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table

_EDGE = 0.5  # share of draws at the edge of a box from which the box decides
_DENSE = 0.1  # share of densities above 1 from which |f| is a doubtful risk


class Synthesizer(Results):
    """Synthesize one column of a table under a privacy standard.

    Parameters
    ----------
    formula
        "outcome ~ terms" in the language of R, with a fixed list of transforms.
    family
        A name, for instance "lognormal", "gamma" or "poisson" (docs/families.md), or a model object.
    standard
        Which exponent the mechanism uses and what of it is sensitive.
    weights
        From risk to weight; an object, a function of the risks, or one number per record.
    bound
        "lipschitz", "oscillation" or "exact": how the privacy loss is bounded (`hedgerow.mechanism.price`).
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
    sampling
        "independent", or "stratified" for smoother copies; rules that combine copies assume the first.
    debias
        Correct each released draw for the bias of the weights, from public things alone (`mechanism.debias`).
        To be chosen before looking at the confidential data; it assumes the model.
    preset
        "paper" sets what the caller left unset to what the paper did; "recommended" to what lost least in the
        study of weights (docs/weights.md): cap weights and bound on oscillation, corrected, stratified.
    seed
        For tests and studies only: as confidential as the data, and good for one table: copies of two tables
        from the same seed share their noise. None takes fresh operating-system entropy for every fit.

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
        sampling: Sampling = "independent",
        debias: bool = False,
        preset: Literal["paper", "recommended"] | None = None,
        seed: int | None = None,
    ) -> None:
        settings: dict[str, Any] = {
            "weights": weights,
            "bound": bound,
            "draws": draws,
            "known": known,
            "sampling": sampling,
            "debias": debias,
        }
        if preset is not None:
            settings |= presets.preset(preset, epsilon=epsilon, copies=copies, given=self._given)
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
        self.sampling: Sampling = settings["sampling"]
        self.debias: bool = settings["debias"]
        if isinstance(self.standard, Bounded):
            self._make_bounded(self.standard, default_prior=prior is None)
        Key.from_seed(seed)  # refuse a bad seed now
        self._seed = seed
        self._fitted: Fitted | None = None
        self._check()
        if self.debias:
            self._check_debias()

    def _check(self) -> None:
        if not isinstance(self.standard, Standard):
            raise SettingError(
                f"standard must be Unweighted(), ADP(), RangeAveraged(range), RangeTruncated(range) or a "
                f"Standard of your own, got {type(self.standard).__name__}."
            )
        if self.bound not in BOUNDS and not isinstance(self.standard, Bounded):
            raise SettingError(f"bound must be one of {', '.join(BOUNDS)}, got {self.bound!r}.")
        if self.sampling not in SAMPLINGS:
            raise SettingError(f"sampling must be one of {', '.join(SAMPLINGS)}, got {self.sampling!r}.")
        if not isinstance(self.debias, bool):
            raise SettingError(f"debias must be True or False, got {self.debias!r}.")
        if self.known not in ("exact", "simulated"):
            raise SettingError(f"known must be 'exact' or 'simulated', got {self.known!r}.")
        if self.epsilon is not None and not (is_real(self.epsilon) and 0 < self.epsilon < np.inf):
            raise SettingError(f"epsilon must be a positive finite number or None, got {self.epsilon!r}.")
        if not is_count(self.draws) or self.draws < 100:
            raise SettingError(
                f"draws must be a whole number from 100 up, got {self.draws!r}; 1000 is usual."
            )
        if not is_count(self.copies) or self.copies < 1:
            raise SettingError(f"copies must be a whole number from 1 up, got {self.copies!r}.")
        if self.copies > self.draws:
            raise SettingError(
                f"copies must be at most draws, got {self.copies} copies of {self.draws} draws. Raise draws."
            )

    def _check_debias(self) -> None:
        try:
            debiasing.check(self.recipe, self.epsilon)
        except SettingError as error:
            if "debias" in self._given:
                raise
            raise SettingError(f"{error} It was the preset that asked for it: say debias=False.") from None

    def _make_bounded(self, standard: Bounded, *, default_prior: bool) -> None:
        name = standard.label
        if self.epsilon is None:
            raise SettingError(f"{name} needs a target: its weights are min(1, ε/oscillation). Give epsilon.")
        given = {"bound", "weights"} & self._given
        if given:
            raise SettingError(f"{name} has its own bound and weights; leave out {', '.join(sorted(given))}.")
        self._check()
        self.model = standard.restrict(self.model, default_prior=default_prior)
        self.weights = StrictWeights(per_copy(self.epsilon, self.copies))
        self.bound = standard.bound

    @property
    def recipe(self) -> Recipe:
        """What the procedure is told before it sees the outcome."""
        return Recipe(self.model, self.standard, self.weights, self.bound, self.draws, self.known)

    def fit(self, data: Any, *, left_out: Sequence[str] = ()) -> "Synthesizer":
        """Fit, weigh, refit and price. Returns the synthesizer itself.

        `left_out` names columns that may be read but are not in the copies, such as bounds by record.
        """
        table = Table.of(data)
        design = designs.build(self.formula, table, self.model.columns, self.model.classes)
        table.require(left_out)
        check_columns(table, design, left_out)
        # Fresh entropy for every fit: two fits on the same random numbers would cancel each other's noise.
        key = Key.from_seed(self._seed)
        with progress.shown():
            start = begin(self.model, table, design, draws=self.draws, key=key)
            return self.fit_from(start, key=key, seeded=self._seed is not None, left_out=left_out)

    def fit_from(
        self, start: Start, *, key: Key, seeded: bool, left_out: Sequence[str] = ()
    ) -> "Synthesizer":
        """Go on from an unweighted fit of the same model that several synthesizers share."""
        recipe = self.recipe
        self._warn_about_weights(start)
        weighted = weigh(recipe, start, key=key)
        if self.epsilon is None or self.bound in SUPREMA:
            outcome, scale = run(recipe, start, weighted, key=key.child("certify").child(1)), 1.0
        else:
            target = per_copy(self.epsilon, self.copies)
            done = calibrate(recipe, start, weighted, target=target, key=key)
            outcome, scale = done.outcome, done.scale
        self._fitted = Fitted(
            recipe,
            self.epsilon,
            self.copies,
            seeded,
            tuple(left_out),
            key,
            start,
            outcome,
            scale,
            self.sampling,
            self.debias,
        )
        self._warn_about_leverage()
        self._warn_about_edge()
        return self

    def sample(self) -> Release:
        """The release: the same copies each time, from draws of the fit that was priced."""
        fitted = self._need()
        design, table = fitted.start.design, fitted.start.table
        support = fitted.recipe.model.support
        tables = [
            table.drop(fitted.left_out, table.with_column(design.outcome, values, design.levels, support))
            for values in fitted.predicted()
        ]
        return Release(tables, self._guarantee())

    def intervals(self, *, level: float = 0.95, tables: int = TABLES) -> Any:
        """Interval estimates of the coefficients and σ: a row a parameter, in a table of the fitted kind.

        A parametric bootstrap through the same recipe, with `tables` simulated tables, for corrected draws of
        the normal and lognormal models (docs/bias.md, "Intervals"). `corrected` is False where a draw went
        out uncorrected. The same each time; approximate, and only as good as the model.

        Formal guarantees
        -----------------
        A function of released draws and public things: post-processing, covered by the ε of `sample`,
        provided that giving it out was decided on before looking.
        """
        check_intervals(self.model, debias=self.debias, level=level, tables=tables)
        found = self._need().intervals(level=level, tables=tables)
        return self.like(
            {
                "parameter": list(found.parameters),
                "estimate": found.estimate,
                "lower": found.lower,
                "upper": found.upper,
                "corrected": [found.corrected] * len(found.parameters),
            }
        )

    def _guarantee(self) -> Guarantee:
        fitted = self._need()
        design, stated = fitted.start.design, fitted.outcome.statement
        standard = fitted.recipe.standard
        return Guarantee(
            standard=standard.label,
            neighbour=standard.neighbour,
            bound=stated.bound,
            family=fitted.recipe.model.name,
            epsilon=fitted.epsilon,
            copies=fitted.copies,
            draws=stated.draws,
            delta=stated.delta,
            confidence=stated.confidence,
            independent=stated.independent,
            protected=design.outcome,
            passed_through=tuple(
                name for name in fitted.start.table.columns if name not in (design.outcome, *fitted.left_out)
            ),
            known=standard.assumption(),
            averaged=standard.uses_known,
            follows_outcome=standard.range.follows_outcome,
            outside_public=standard.range.outside == "public",
            seeded=fitted.seeded,
            declared=fitted.recipe.model.declared(design),
            single_values=fitted.recipe.model.atoms and not isinstance(standard.range, Everywhere),
            uncertified=_uncertified(fitted),
            corrected=sum(draw.converged for draw in fitted.released) if fitted.debias else None,
            sampling=fitted.sampling,
            if_recomputed=if_recomputed(fitted.recipe.weights) if standard.weighted else "",
        )

    def _warn_about_weights(self, start: Start) -> None:
        if not self.standard.weighted:
            return
        weights = self.weights
        while isinstance(weights, Reweighted):
            weights = weights.base
        if self.bound != "lipschitz" and moves_with_everyone(weights):
            _warn(
                f"{type(weights).__name__} with bound='{self.bound}': these weights move with every record, "
                "and recomputed without one record the loss was seen above this bound. Use CapWeights(cap, "
                "risk='oscillation') or ScalarWeights, and an audit, or the Lipschitz bound."
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

    def _warn_about_edge(self) -> None:
        if isinstance(self.model, Boxed) and self.edge_mass_ > _EDGE:
            _warn(
                "Most of the posterior lies at the edge of the box (edge_mass_, confidential): the box, not "
                "the data, decides the copies. Leave the prior out, raise ε, or give a box that public "
                "knowledge supports better."
            )

    def __repr__(self) -> str:
        state = "fitted, confidential" if self._fitted is not None else "not fitted"
        return f"Synthesizer({self.formula!r}, {self.model.name}, {self.standard.label}, {state})"


def _uncertified(fitted: Fitted) -> str:
    """Which checks the owner overrode: their names, never what they measured."""
    fits = [fitted.outcome.fit] if fitted.start.fit is None else [fitted.start.fit, fitted.outcome.fit]
    checks = dict.fromkeys(name for fit in fits for name in fit.health.failed)
    if not checks:
        return ""
    return f"the sampler failed its health checks ({', '.join(checks)}) and the owner overrode them"


def check_columns(table: Table, design: designs.Design, left_out: Sequence[str] = ()) -> None:
    """Everything but the outcome is released as it is: refuse what gives the outcome away, name the rest."""
    if design.outcome in left_out:
        raise SettingError(f"Column '{design.outcome}' is the protected one; it cannot be left out.")
    telling = table.orders_like(design.values, apart_from=[design.outcome, *left_out])
    if telling:
        raise DataError(
            f"The records stand in the same order by {' and by '.join(telling)} as by the outcome "
            f"'{design.outcome}'. Released unchanged, that would publish ranks or more. Leave such columns "
            "out (left_out=, --drop), reset the index, and shuffle the rows."
        )
    named = {design.outcome, *design.predictors, *left_out}
    unused = [name for name in table.columns if name not in named]
    if unused:
        _warn(
            f"Columns {list_some(unused, 12)} are not in the formula; they are released unchanged and "
            "unprotected. Drop them if they say anything about the outcome."
        )


def _warn(message: str) -> None:
    """Warn at the caller's line, however deep inside the package the reason was found."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("hedgerow."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, HedgerowWarning, stacklevel=level)
