"""Which weights suit a job, by simulation from public things alone: `weights.advise` (docs/weights.md)."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtri, stdtrit

from hedgerow.advice.candidates import METHODS, PLAIN, STATISTICS, Candidate, trial, unweighted, usual
from hedgerow.arrays import Array
from hedgerow.errors import HedgerowWarning, SettingError, format_value, is_count, is_finite
from hedgerow.mechanism.debias import public_draw
from hedgerow.models.base import Parameters
from hedgerow.models.exact import Regression
from hedgerow.models.families import model_named
from hedgerow.models.prior import Prior
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.design import Design
from hedgerow.tables.formula import split
from hedgerow.tables.table import Table

RIGHT, WRONG = "right", "wrong"
_WIDEST = 50.0  # a response whose prior scatters by more is no guess at any data
_AUDITED = (6, 2)  # records whose weights an audit recomputes: of large risk or loss, and others
_FEWEST = 4.0  # records that the residual's guess must be worth
UNWEIGHTED = "Unweighted"


@dataclass(frozen=True)
class Advice:
    """What `advise` found. Made from public things, and public.

    `table` has a row a candidate and method: the claim, the errors under the right and the wrong model, both
    also as ratios to Unweighted's, `met` (the share of simulated tables on which a fit met ε), the largest
    privacy loss that an audit found with weights recomputed, over ε (`loss_right`, `loss_wrong`; none for
    strict mode, which needs no audit), and the `score` it is recommended by, lowest first. There is no score
    where ε was not always met, nor where the loss exceeded ε although the model held.
    """

    epsilon: float
    records: int
    source: str  # where the parameters came from
    trust: float
    table: pd.DataFrame
    candidates: tuple[Candidate, ...]

    @property
    def recommended(self) -> pd.Series:
        """The row with the smallest score, whatever its claim."""
        if self.by_claim.empty:
            raise SettingError(
                "No candidate met ε on every simulated table within its price. Raise ε, or give a box."
            )
        return self.table.iloc[0]

    @property
    def by_claim(self) -> pd.DataFrame:
        """The best row under each claim: equal ε under different bounds do not say the same."""
        return self.table.dropna(subset=["score"]).drop_duplicates("bound").reset_index(drop=True)

    @property
    def settings(self) -> dict[str, Any]:
        """The recommended row as `Synthesizer` takes it, for one copy."""
        row = self.recommended
        chosen = next(one for one in self.candidates if one.label == row["weights"])
        extra: dict[str, Any] = {} if row["method"] == PLAIN else {"debias": True}
        if "stratified" in row["method"]:
            extra["sampling"] = "stratified"
        return {**chosen.settings(), "epsilon": self.epsilon, **extra}

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"Weights at ε = {self.epsilon:g} for one copy of {self.records} records, from {self.source}"
        yield "Score: mean of ECDF maximum and error of Q90, each over Unweighted's; the right model's"
        yield f"share in it is {self.trust:g}, the rest is from Student's t errors with 3 degrees of freedom."
        yield ""
        yield f"  {'weights, bound':24}{'method':24}{'right':>8}{'wrong':>8}{'score':>8}{'loss/ε':>14}  claim"
        for row in self.by_claim.to_dict("records"):
            figures = "".join(f"{row[name]:>8.2f}" for name in (RIGHT, WRONG, "score"))
            worst = (row[f"loss_{RIGHT}"], row[f"loss_{WRONG}"])
            loss = "  ".join("-" if pd.isna(one) else f"{one:.2f}" for one in worst)
            yield f"  {row['weights']:24}{row['method']:24}{figures}{loss:>14}  {row['claim']}"
        yield ""
        if self.by_claim.empty:
            yield "Nothing to recommend: no candidate met ε on every table within its price."
        else:
            best = self.recommended
            yield f"Recommended: {best['weights']}, {best['method']}. `by_claim` has the best of each claim."
            yield "Equal ε under different bounds are different claims: choose the claim first."
            if best["loss_wrong"] > 1:
                yield "Under the wrong model its price was exceeded once weights were recomputed: see loss/ε."
        unscored = self.table[self.table["score"].isna()]["weights"].drop_duplicates()
        if len(unscored):
            yield f"Not scored, ε not met or exceeded in the audit: {'; '.join(unscored)}."


def advise(
    formula: str,
    public: Any,
    *,
    epsilon: float,
    family: str = "lognormal",
    prior: Prior | None = None,
    parameters: Mapping[str, float] | None = None,
    candidates: Sequence[Candidate] | None = None,
    box: Mapping[str, tuple[float, float]] | None = None,
    records: int | None = None,
    tables: int = 6,
    copies: int = 1,
    draws: int = 1000,
    trust: float = 0.75,
    seed: int | None = None,
) -> Advice:
    """Compare weights, risks and bounds at one ε on simulated tables, and recommend by expected error.

    **Never pass the confidential outcome.** `public` is a table of public predictors, or a public stand-in:
    last year's published file, a synthetic one. hedgerow cannot tell: with the confidential outcome in it the
    advice would be a second use of the data, which ε does not cover. Predictors are public by assumption.

    Parameters
    ----------
    formula, family
        As the release will use them; the exact families, normal, lognormal and asinh.
    public
        Predictors, with or without an outcome column.
    epsilon
        The target of one copy, asked for under each candidate's own bound.
    parameters
        Public guesses to simulate at, by design column and "sigma" on the model's scale: {"Intercept": 1.0,
        "z": 1.0, "sigma": 1.0}. Without them: estimated from the outcome of the stand-in if it has one, else
        drawn from `prior`, anew for each table, which must then be informative.
    prior
        As the release will use it.
    candidates
        `hedgerow.advice.candidates.usual(epsilon, box=box)` unless given.
    box
        A public box of parameters; strict mode is compared as well.
    records
        The size of the table to be protected, if the stand-in's is another: rows are drawn with replacement.
    tables, copies, draws
        Tables simulated under each model, copies of each, posterior draws kept.
    trust
        Weight of the right model in the score, from 0 to 1; the rest is the wrong one's, with Student's t
        errors of 3 degrees of freedom and the model's variance.
    seed
        To repeat an advice; not to be used for a release.

    Formal guarantees
    -----------------
    None is made or spent: what comes out is a function of what goes in, which must be public. An advice is
    an average over simulated tables; the price on the table at hand is found by calibration alone.
    """
    if not is_finite(epsilon) or epsilon <= 0:
        raise SettingError(f"epsilon must be a positive finite number, got {format_value(epsilon)}.")
    if not is_finite(trust) or not 0 <= trust <= 1:
        raise SettingError(f"trust must lie between 0 and 1, got {format_value(trust)}.")
    for name, count in {"tables": tables, "copies": copies, "records": records}.items():
        if count is not None and (not is_count(count) or count < 1):
            raise SettingError(f"{name} must be a whole number from 1 up, got {format_value(count)}.")
    model = model_named(family, prior)
    if not isinstance(model, Regression):
        raise SettingError(
            f"advise simulates the exact families, normal, lognormal, asinh, not {model.name}. Try the one "
            "that comes closest, or compare on made-up data with hr.compare."
        )
    chosen = _check_candidates(candidates, epsilon, box)
    key = Key.from_seed(seed).child("advise")
    outcome, frame = split(formula)[0], Table.of(public).frame.to_pandas()
    estimated = parameters is None and outcome in frame
    if not estimated:  # an outcome that is there has no part in it
        frame = frame.assign(**{outcome: 1.0})
    given = designs.build(formula, Table.of(frame))
    designs.check_sigma(given, "advise")
    draw, source = _parameters(model, given, parameters, estimated, prior, key)
    if records is not None:
        order = key.child("rows").stream().uniform(records) * len(frame)
        frame = frame.iloc[order.astype(np.int64)].reset_index(drop=True)
    design = designs.build(formula, Table.of(frame))
    frame = frame[[outcome, *design.predictors]]
    settings: dict[str, Any] = {"family": family, "prior": prior, "copies": copies, "draws": draws}
    rows: list[dict[str, Any]] = []
    for name, errors in _ERRORS.items():
        for number in range(tables):
            here = key.child(name).child(number)
            noise = errors(here.child("errors").stream().uniform(design.records))
            values = _simulate(model, design, draw(here.child("parameters")), noise)
            data, common = frame.assign(**{outcome: values}), settings | {"seed": here.integer()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", HedgerowWarning)
                losses = {UNWEIGHTED: unweighted(formula, data, **common)[:1]}
                for one in chosen:
                    losses[one.label] = trial(one, formula, data, epsilon=epsilon, audited=_AUDITED, **common)
            same = {"model": name, "table": number}
            rows += [{"weights": label, **same, **vars(one)} for label in losses for one in losses[label]]
    scored = _score(pd.DataFrame(rows), chosen, tables, trust)
    return Advice(float(epsilon), design.records, source, float(trust), scored, chosen)


def _check_candidates(
    candidates: Any, epsilon: float, box: Mapping[str, tuple[float, float]] | None
) -> tuple[Candidate, ...]:
    """The candidates, after checking that each is one and has a row of its own."""
    if candidates is None:
        return usual(epsilon, box=box)
    found = tuple(candidates) if isinstance(candidates, Iterable) else (candidates,)
    if not found:
        raise SettingError("candidates is empty: give some, or leave it out.")
    labels = {UNWEIGHTED}
    for one in found:
        if not isinstance(one, Candidate):
            raise SettingError(
                "candidates must be a sequence of hedgerow.advice.candidates.Candidate, for instance "
                f"[Candidate('linear', 'lipschitz', LinearWeights())]; got a {type(one).__name__} in it."
            )
        if not one.standard.weighted:
            raise SettingError(
                f"candidates: '{one.label}' has the standard {one.standard.label}, which uses no weights and "
                "can meet no target. All candidates are compared with it anyway: leave it out."
            )
        if one.label in labels:
            raise SettingError(f"candidates: the label '{one.label}' is taken. Give each candidate its own.")
        labels.add(one.label)
    return found


_ERRORS: dict[str, Callable[[Array], Array]] = {
    RIGHT: ndtri,
    WRONG: lambda uniforms: stdtrit(3.0, uniforms) / np.sqrt(3.0),  # scaled to variance 1
}


def _parameters(
    model: Regression,
    design: Design,
    given: Mapping[str, float] | None,
    estimated: bool,
    prior: Prior | None,
    key: Key,
) -> tuple[Callable[[Key], Parameters], str]:
    """Where tables are simulated, and where that comes from, in words."""
    if given is not None:
        wanted = [*design.columns, "sigma"]
        if set(given) != set(wanted) or not all(is_finite(value) for value in given.values()):
            raise SettingError(
                f"parameters must give a finite number for each of {', '.join(wanted)}, on the model's "
                f"scale; got {', '.join(str(name) for name in given) or 'none'}."
            )
        if given["sigma"] <= 0:
            raise SettingError(f"parameters: sigma must be positive, got {format_value(given['sigma'])}.")
        beta = np.array([given[name] for name in design.columns], dtype=np.float64)
        guess = {"beta": beta, "sigma": np.asarray(float(given["sigma"]))}
        return lambda _: guess, "parameters given as public guesses"
    if estimated:
        model.check(design)
        centre = model.natural(design, model.centre(design, np.ones(design.records), key=key))
        return lambda _: centre, "parameters estimated from the public stand-in"
    if prior is None:
        raise SettingError(
            f"advise has nothing to simulate at: the public table has no column '{design.outcome}', and the "
            "default prior is too vague. Give parameters={...} as public guesses, a prior that says "
            "something, or a public stand-in with an outcome."
        )
    prior = model.prior
    _, deviation = prior.moments(design)
    about = design.matrix @ np.linalg.inv(prior.contrasts(design))
    widest = float(np.sqrt(np.square(about * deviation * prior.residual).sum(axis=1)).max())
    if widest > _WIDEST * prior.residual or prior.residual_df < _FEWEST:
        raise SettingError(
            f"prior is too vague to simulate from: fitted values would scatter by {widest:.3g} with residual "
            f"{prior.residual:g} worth {prior.residual_df:g} records; at most {_WIDEST:g} times the residual "
            f"and at least {_FEWEST:g} records are needed. Name coefficients={{...}} and residual_df, or "
            "give parameters={...} as public guesses."
        )
    # The posterior of records that all have power 0 is the prior.
    nothing = model.posterior(design, np.zeros(design.records))

    def drawn(place: Key) -> Parameters:
        one = nothing.draw(1, place)
        return public_draw({"beta": one.beta, "sigma": one.sigma}, 0)

    return drawn, "parameters drawn from the prior"


def _simulate(model: Regression, design: Design, parameters: Parameters, noise: Array) -> Array:
    response = design.matrix @ parameters["beta"] + parameters["sigma"] * noise
    with np.errstate(over="ignore", under="ignore"):
        values = model.outcome(response)
    if not np.isfinite(values).all():
        raise SettingError("Outcomes simulated at these parameters leave the numbers. Give smaller ones.")
    model.check(design.replace_values(values))
    return values


def _score(rows: pd.DataFrame, chosen: Sequence[Candidate], tables: int, trust: float) -> pd.DataFrame:
    """Mean errors by candidate and method, as ratios to Unweighted's on the same tables; best first."""
    rows["loss_recomputed"] = rows["loss_recomputed"].astype(np.float64)
    means: Any = rows.groupby(["weights", "method", "model"], sort=False)[list(STATISTICS)].mean()
    found = []
    for one in chosen:
        mine = rows[rows["weights"] == one.label]
        met = len(mine) / (2 * tables * len(METHODS))
        for method in METHODS:
            row: dict[str, Any] = {"weights": one.label, "bound": one.bound.name, "method": method}
            score = 0.0
            for model, share in ((RIGHT, trust), (WRONG, 1 - trust)):
                here = (one.label, method, model)
                errors = means.loc[here] if here in means.index else pd.Series(np.nan, index=STATISTICS)
                ratio = float((errors / means.loc[(UNWEIGHTED, PLAIN, model)]).mean())
                row |= {model: ratio} | {f"{name}_{model}": float(errors[name]) for name in STATISTICS}
                row[f"loss_{model}"] = float(mine[mine["model"] == model]["loss_recomputed"].max())
                score += share * ratio if share else 0.0
            held = met == 1 and not row[f"loss_{RIGHT}"] > 1
            found.append(row | {"met": met, "score": score if held else np.nan, "claim": one.bound.brief})
    return pd.DataFrame(found).sort_values("score", kind="stable").reset_index(drop=True)
