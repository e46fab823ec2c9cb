"""The front door: a confidential table in, a certified fit and its release out.

>>> import hedgerow as hr
>>> table = hr.datasets.lognormal(n=200, seed=1)
>>> synth = hr.Synthesizer("x ~ z", epsilon=8.0, seed=1).fit(table)
>>> synth.sample()
Release(1 copies, ADP, ε = 8)
"""

import warnings
from collections.abc import Sequence
from typing import Any, Literal

from hedgerow import progress
from hedgerow.errors import DataError, HedgerowWarning, SettingError, list_some
from hedgerow.mechanism.calibrate import finish
from hedgerow.mechanism.debias import check as check_debias
from hedgerow.mechanism.steps import Start, begin
from hedgerow.models.base import Model
from hedgerow.models.prior import Prior
from hedgerow.privacy.settings import UNSET, Known, Sampling, Settings
from hedgerow.privacy.standards import Standard
from hedgerow.randomness import Key
from hedgerow.results import Fitted, Results
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table
from hedgerow.tables.values import Declared


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
        "lipschitz", "oscillation" or "exact": how the privacy loss is bounded (`privacy.bounds`).
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
    declared
        `Declared(type, …)`: type, decimals and limits of the outcome in the copies, chosen without looking at
        it. None: the type of the confidential column; under `Strict` doubles.
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

    def __init__(
        self,
        formula: str,
        family: str | Model = "lognormal",
        *,
        standard: Standard | None = None,
        weights: Any = UNSET,
        bound: Literal["lipschitz", "oscillation", "exact"] = UNSET,  # lipschitz
        epsilon: float | None = None,
        copies: int = 1,
        draws: int = UNSET,  # 1000
        known: Known = UNSET,  # exact
        prior: Prior | None = None,
        declared: Declared | None = None,
        sampling: Sampling = UNSET,  # independent
        debias: bool = UNSET,  # False
        preset: Literal["paper", "recommended"] | None = None,
        seed: int | None = None,
    ) -> None:
        self.settings = Settings.of(
            formula,
            family,
            standard=standard,
            weights=weights,
            bound=bound,
            epsilon=epsilon,
            copies=copies,
            draws=draws,
            known=known,
            prior=prior,
            declared=declared,
            sampling=sampling,
            debias=debias,
            preset=preset,
        )
        self._check(seed, asked_to_correct=debias is not UNSET)

    @classmethod
    def of(cls, settings: Settings, *, seed: int | None = None) -> "Synthesizer":
        """A synthesizer of settings that are at hand, such as a plan's."""
        made = cls.__new__(cls)
        made.settings = settings
        made._check(seed)
        return made

    def _check(self, seed: int | None, *, asked_to_correct: bool = True) -> None:
        """Refuse what cannot be corrected, and a bad seed, before any data are seen."""
        if self.settings.debias:
            try:
                check_debias(self.settings)
            except SettingError as error:
                if asked_to_correct:
                    raise
                raise SettingError(
                    f"{error} It was the preset that asked for it: say debias=False."
                ) from None
        Key.from_seed(seed)
        self._seed = seed
        self._fitted: Fitted | None = None

    def fit(self, data: Any, *, left_out: Sequence[str] = ()) -> "Synthesizer":
        """Fit, weigh, refit and price. Returns the synthesizer itself.

        `left_out` names columns that may be read but are not in the copies, such as bounds by record.
        """
        model = self.settings.model
        table = Table.of(data)
        domain = model.domain
        design = designs.build(
            self.settings.formula, table, model.columns, domain.classes, usable=domain.usable
        )
        if design.levels is not None and self.settings.declared is not None:
            raise SettingError(
                f"declared: the {model.name} family takes '{design.outcome}' as classes, which have no type, "
                "decimals or limits. Leave declared out."
            )
        table.require(left_out)
        for note in check_columns(table, design, left_out):
            warnings.warn(note, HedgerowWarning, stacklevel=2)
        gaps = 0 if design.present is None else int((~design.present).sum())
        if gaps:
            warnings.warn(
                f"{gaps} of {design.records} values of '{design.outcome}' are missing or none that the "
                f"{model.name} family describes. They count as withheld, and their rows get synthetic values "
                "like any other (confidential).",
                HedgerowWarning,
                stacklevel=2,
            )
        # Fresh entropy for every fit: two fits on the same random numbers would cancel each other's noise.
        key = Key.from_seed(self._seed)
        with progress.shown():
            start = begin(model, table, design, draws=self.settings.draws, key=key)
            fitted = self.fit_from(start, key=key, seeded=self._seed is not None, left_out=left_out)
        for doubt in fitted.doubts():
            warnings.warn(doubt, HedgerowWarning, stacklevel=2)
        return self

    def fit_from(self, start: Start, *, key: Key, seeded: bool, left_out: Sequence[str] = ()) -> Fitted:
        """Go on from an unweighted fit of the same model that several synthesizers share."""
        outcome, scale = finish(self.settings, start, key=key)
        self._fitted = Fitted(self.settings, start, outcome, scale, key, seeded, tuple(left_out))
        return self._fitted

    def __repr__(self) -> str:
        asked, state = self.settings, "not fitted" if self._fitted is None else "fitted, confidential"
        return f"Synthesizer({asked.formula!r}, {asked.model.name}, {asked.standard.label}, {state})"


def check_columns(table: Table, design: designs.Design, left_out: Sequence[str] = ()) -> list[str]:
    """All but the outcome is released as it is: refuse what gives the outcome away, and tell of the rest."""
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
    note = (
        f"Columns {list_some(unused, 12)} are not in the formula; they are released unchanged and "
        "unprotected. Drop them if they say anything about the outcome."
    )
    return [note] if unused else []
