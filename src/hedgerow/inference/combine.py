"""From several copies to one estimate with its interval, by the rule that fits how the copies were made.

    >>> import hedgerow as hr
    >>> table = hr.datasets.payroll(n=300, seed=1)
    >>> limits = hr.Strict(limits=(1e3, 1e9))
    >>> synth = hr.Synthesizer("payroll ~ log(employees)", standard=limits, epsilon=1, copies=10, seed=1)
    >>> found = hr.combine(synth.fit(table).sample(), "np.log(payroll) ~ np.log(employees)")
    >>> list(found.columns)
    ['term', 'estimate', 'std_error', 'df', 'lower', 'upper', 'rule']

The rules are those of `hedgerow.receive`, which a receiver may use without the rest. Here are the analyses:
linear and generalised linear models, means, totals and shares by group, and any function of a table. What
each row adds to an estimate tells the part of its variance that comes from protected values from that of the
public columns (docs/maths.md, "Combining copies"). Post-processing, all of it.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pandas as pd
from numpy import exp, log, sqrt  # noqa: F401 - formulas may say log(pay), as those of plans do

from hedgerow import receive
from hedgerow.arrays import Array
from hedgerow.errors import DataError, SettingError, list_some
from hedgerow.privacy.claims.combining import Combining, choose_rule
from hedgerow.privacy.guarantee import Release

_PHRASE = re.compile(r"\s*(mean|total|share)\s+of\s+(.+?)(?:\s+by\s+(.+?))?\s*")
_FAMILIES = {
    "gaussian": "Gaussian", "binomial": "Binomial", "poisson": "Poisson", "gamma": "Gamma",
    "negative_binomial": "NegativeBinomial",
}  # fmt: skip


class _Analysis(NamedTuple):
    """What one copy says: numbers by term, their variances, and what each row adds to them."""

    terms: tuple[str, ...]
    estimates: Array
    variances: Array
    influence: Array  # record × term


def combine(
    release: Release | str | os.PathLike[str] | Sequence[Any],
    what: str | tuple[Any, ...] | Callable[[Any], Any],
    *,
    rule: str | None = None,
    family: Any = None,
    weights: str | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Estimates with intervals from all copies of a release: one row per term.

    `release`: a `Release`, the folder of one, or tables that belong together (then say the `rule`). `what`:

    - a formula, fitted to each copy by statsmodels: "log(pay) ~ age"; with `family` ("binomial", "poisson",
      "gamma", …, or one of statsmodels') a generalised linear model;
    - "mean of pay by region, sex", "total of …" or "share of …": one term for each group, and for each
      value of which there is a share;
    - a function of a table that returns numbers, by name or in an array: {"median": 3.2}; with variances, if
      it has them: {"mean": (3.2, 0.1)}, else rows are left out in turn;
    - estimates and variances that you have, a row for each copy; of an analysis that does not take the public
      columns as given, also the parts of the variances that come from protected values.

    `weights` names a column of survey weights, for formulas, means, totals and shares; standard errors of a
    weighted formula are robust ones. `rule` is the one that the release calls for, unless you name another
    (`hedgerow.receive` lists them). `attrs["why"]` of the result says which and why.
    """
    tables, (name, why) = _open(release, rule)
    apart = name in ("noisy", "projected")
    if weights is not None and not isinstance(what, str):
        raise SettingError("weights go with a formula or a table. A function reads the column itself.")
    if family is not None and not (isinstance(what, str) and "~" in what):
        raise SettingError('family goes with a formula, such as "employed ~ age".')
    try:
        if isinstance(what, tuple):
            if len(what) not in (2, 3):
                raise SettingError(
                    "Give estimates and variances, and perhaps the parts given public columns."
                )
            q, u, *given = (np.asarray(part, dtype=np.float64) for part in what)
            terms = tuple(str(place + 1) for place in range(1 if q.ndim == 1 else q.shape[1]))
            found = receive.Estimates(terms, q, u, given[0] if given else None)
        elif callable(what):
            rows = len(nw.from_native(tables[0], eager_only=True))
            found = receive.estimate(tables, what, given=apart, stack=_stack, take=_take, rows=rows)
        elif not isinstance(what, str):
            raise SettingError(
                f"what: {type(what).__name__} is neither text, nor a function, nor estimates and variances. "
                'Write "pay ~ age" or "mean of pay by region".'
            )
        else:
            found = _analyse([_to_pandas(table) for table in tables], what, family, weights)
        combined = receive.combine(
            found.estimates, found.variances, rule=name, level=level, given=found.given if apart else None
        )
    except receive.ReceiveError as error:
        raise SettingError(str(error)) from None
    frame = pd.DataFrame({"term": found.terms, **combined})
    frame.attrs["why"] = why
    return frame


def choose_rule_of(release: Release) -> Combining:
    """The rule that fits a release in memory, as its certificate would name it."""
    of = release.guarantee
    bound, copies = of.terms.bound.name, len(release.tables)
    return choose_rule(standard=of.standard, bound=bound, processing=of.processing(), copies=copies)


def _open(release: Any, rule: str | None) -> tuple[Sequence[Any], receive.Rule]:
    """The tables, and the rule that the release calls for."""
    if isinstance(release, Release):
        return release.tables, receive.rule_for({"combining": choose_rule_of(release)._asdict()}, rule)
    if isinstance(release, str | os.PathLike):
        try:
            tables, certificate = receive.read(release)
            return [pd.DataFrame(table) for table in tables], receive.rule_for(certificate, rule)
        except receive.ReceiveError as error:
            raise DataError(str(error)) from None
    if rule is None:
        raise SettingError(
            "Tables alone do not say how they were made. Pass the release or its folder, or say the rule: "
            f"{', '.join(receive.RULES)}."
        )
    if not (tables := list(release)):
        raise SettingError("There are no tables to combine. Pass one for each copy.")
    return tables, receive.rule_for({}, rule)


def _analyse(
    tables: Sequence[pd.DataFrame], what: str, family: Any, weights: str | None
) -> receive.Estimates:
    """A formula or a table on each copy."""
    if weights is not None:
        _require(tables[0], [weights])
        for table in tables:
            if not pd.api.types.is_numeric_dtype(table[weights]) or (table[weights] < 0).any():
                raise DataError(f"'{weights}' holds no survey weights: they are numbers from 0 up.")
    if "~" in what:
        each = [_fit(table, what, family, weights) for table in tables]
    else:
        each = _tabulate(tables, what, weights)
    terms = each[0].terms
    if any(one.terms != terms for one in each):
        some = sorted({name for one in each for name in {*one.terms} ^ {*terms}})
        raise DataError(
            f"Some copies have other terms than the first: {list_some(some)}. Merge classes that are rare, "
            "so that each copy has all."
        )
    # Public columns are the same in all copies: what a row adds differs by its protected values alone.
    parts = np.stack([one.influence for one in each])
    given = parts.var(axis=0, ddof=1).sum(axis=0) if len(each) > 1 else np.zeros(len(terms))
    return receive.Estimates(
        terms,
        np.array([one.estimates for one in each]),
        np.array([one.variances for one in each]),
        np.tile(given, (len(each), 1)),
    )


def _fit(table: pd.DataFrame, formula: str, family: Any, weights: str | None) -> _Analysis:
    try:
        import statsmodels.api as sm
        import statsmodels.formula.api as smf
        from patsy import PatsyError, dmatrices
    except ImportError:
        raise SettingError("Formulas are fitted by statsmodels. Install hedgerow[models].") from None
    kinds = pd.api.types
    own = {  # what patsy knows: yes and no as 1 and 0, and none of pandas' own kinds of numbers
        name: "int64" if kinds.is_bool_dtype(column) and column.notna().all() else "float64"
        for name, column in table.items()
        if kinds.is_bool_dtype(column)
        or (kinds.is_numeric_dtype(column) and kinds.is_extension_array_dtype(column))
    }
    table = table.reset_index(drop=True).astype(own)
    if isinstance(family, str):
        if family not in _FAMILIES:
            raise SettingError(f"family={family!r} is not one of {', '.join(_FAMILIES)}.")
        family = getattr(sm.families, _FAMILIES[family])()
    robust = {} if weights is None else {"cov_type": "HC1"}
    told = {} if weights is None else {"weights" if family is None else "var_weights": table[weights]}
    linear = smf.ols if weights is None else smf.wls
    rows = len(table)
    try:
        with np.errstate(divide="ignore", invalid="ignore"):  # the log of a zero, say
            sides = dmatrices(formula, table, return_type="dataframe")
        known = pd.concat(sides, axis=1)
        table = table.loc[known.index[np.isfinite(known).all(axis=1)]]
        if table.empty:
            raise DataError(f"{formula!r}: a copy has no row with a value in each term.")
        told = {name: column[table.index] for name, column in told.items()}
        model = (
            linear(formula, table, **told)
            if family is None
            else smf.glm(formula, table, family=family, **told)
        )
    except PatsyError as error:
        raise SettingError(f"{formula!r} cannot be read: {str(error).splitlines()[0]}.") from None
    fitted = model.fit(**robust)
    if family is None:
        influence = (np.asarray(fitted.wresid)[:, None] * model.wexog) @ fitted.normalized_cov_params
    else:
        scores = np.asarray(model.score_factor(fitted.params))[:, None] * model.exog
        influence = scores @ np.linalg.pinv(-model.hessian(fitted.params, observed=False))
    every = np.zeros((rows, len(fitted.params)))  # nothing by rows without a value
    every[np.asarray(model.data.row_labels)] = np.asarray(influence)
    values = fitted.params.to_numpy(), np.diag(fitted.cov_params())
    return _Analysis(tuple(map(str, fitted.params.index)), *values, every)


def _tabulate(tables: Sequence[pd.DataFrame], phrase: str, weights: str | None) -> list[_Analysis]:
    """Means, totals or shares by group, of each copy."""
    parts = _PHRASE.fullmatch(phrase)
    if parts is None:
        raise SettingError(
            f'{phrase!r} is neither a formula nor a table. Write "pay ~ age", or "mean of pay by region" '
            "(mean, total, share)."
        )
    kind, column, by = parts[1], parts[2].strip("`"), [*re.split(r"\s*,\s*", parts[3] or "")]
    by = [name.strip("`") for name in by if name]
    _require(tables[0], [column, *by])
    values = {"": ""}
    if kind == "share":
        every = pd.concat([table[column] for table in tables]).dropna().unique()
        values = {f"{column} = {_show(value)}": value for value in sorted(every, key=str)}
    elif not all(pd.api.types.is_numeric_dtype(table[column]) for table in tables):
        raise DataError(f"'{column}' holds no numbers. Ask for a share instead: \"share of {column}\".")
    return [_tabulate_one(table, kind, column, by, values, weights) for table in tables]


def _tabulate_one(
    table: pd.DataFrame, kind: str, column: str, by: list[str], values: Mapping[str, Any], weights: str | None
) -> _Analysis:
    """Rows without a value, a group or a weight count for nothing."""
    rows, own = len(table), table[column].reset_index(drop=True)
    given = np.ones(rows) if weights is None else table[weights].to_numpy(dtype=np.float64, na_value=0.0)
    usable = own.notna().to_numpy() & table[by].notna().all(axis=1).to_numpy() & (given > 0)
    keys = np.array([", ".join(map(_show, row)) for row in table[by].itertuples(index=False)] or [""] * rows)
    told, found, spread, influence = [], [], [], []
    for group in np.unique(keys[usable]):
        here = usable & (keys == group)
        weight = np.where(here, given, 0.0)
        for name, value in values.items():
            x = np.where(here, own == value if kind == "share" else own, 0.0).astype(np.float64)
            if kind == "total":
                added, factor = weight * x, rows / (rows - 1)
                found.append(float(added.sum()))
                added = added - added.mean()
            else:
                count, share = int(here.sum()), weight / weight.sum()
                if count < 2:
                    raise DataError(
                        f"A group of '{', '.join(by)}' has one row in a copy, which shows no spread. Merge "
                        "it with another."
                    )
                factor = count / (count - 1)
                found.append(float(share @ x))
                added = share * (x - found[-1])
            told.append(", ".join(part for part in (name, str(group)) if part) or f"{kind} of {column}")
            spread.append(factor * float(added @ added))
            influence.append(added)
    if not told:
        raise DataError(f"No row has a value of '{column}' and of what it is to be shown by.")
    return _Analysis(tuple(told), np.array(found), np.array(spread), np.column_stack(influence))


def _show(value: Any) -> str:
    """A class as people write it: 1 of a column that is 1.0 beside gaps."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _require(table: pd.DataFrame, names: Sequence[str]) -> None:
    if lacking := [name for name in names if name not in table.columns]:
        raise DataError(f"There is no column '{lacking[0]}'. The columns are {list_some([*table.columns])}.")


def _to_pandas(table: Any) -> pd.DataFrame:
    return nw.from_native(table, eager_only=True).to_pandas()


def _stack(one: Any, other: Any) -> Any:
    return nw.concat([nw.from_native(each, eager_only=True) for each in (one, other)]).to_native()


def _take(table: Any, places: Array) -> Any:
    return nw.from_native(table, eager_only=True)[places].to_native()
