"""From several copies to one estimate with its interval, by the rule that fits how the copies were made.

    >>> import hedgerow as hr
    >>> table = hr.datasets.payroll(n=300, seed=1)
    >>> limits = hr.Strict(limits=(1e3, 1e9))
    >>> synth = hr.Synthesizer("payroll ~ log(employees)", standard=limits, epsilon=1.0, copies=10, seed=1)
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
from hedgerow.numerics.linearized import Codes, total_variances
from hedgerow.privacy.claims.combining import Combining, choose_rule
from hedgerow.privacy.guarantee import Release
from hedgerow.tables.kinds import blank_codes

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
    clusters: str | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Estimates with intervals from all copies of a release: one row per term.

    `release`: a `Release`, the folder of one, or tables that belong together (then say the `rule`). `what`:

    - a formula, fitted to each copy by statsmodels: "log(pay) ~ age"; with `family` ("binomial", "poisson",
      "gamma", …, or one of statsmodels') a generalised linear model;
    - "mean of pay by region, sex", "total of …" or "share of …": one term for each group, and for each
      value of which there is a share;
    - a function of a table that returns numbers, by name ({"median": 3.2}, a pandas Series) or in an array;
      with their variances if it has them, {"mean": (3.2, 0.1)}; otherwise rows are left out in turn;
    - estimates and variances that you already have, a row for each copy; of an analysis that does not take
      the public columns as given, also the parts of the variances that come from protected values.

    `weights` names a column of survey weights, for formulas, means, totals and shares; a weighted formula
    has robust standard errors. `clusters` names a public column whose values say which rows belong together,
    such as members of a household; by default it is the unit that the release names, if any. Cells with a
    code that stands for no amount, as the release lists them, count as missing; for shares they are values.
    `rule` is by default the one that the release calls for (`hedgerow.receive` lists them). `attrs["why"]` of
    the result says which rule and why, and what was done about codes and units.
    """
    tables, (name, why), facts = _open(release, rule, clusters)
    apart = name in ("noisy", "projected")
    given = isinstance(what, tuple)
    if clusters is not None and given:
        raise SettingError("clusters go with an analysis. Estimates and variances that you have know them.")
    groups = None if given else _find_clusters(tables, facts.unit)
    shares = isinstance(what, str) and "~" not in what and what.split()[:1] == ["share"]
    blank = [blank_codes(table, facts.codes) for table in tables] if facts.codes else tables
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
            q, u, *parts = map(receive.rows_by_copy, what)
            terms = tuple(str(place + 1) for place in range(q.shape[1]))
            found = receive.Estimates(terms, q, u, parts[0] if parts else None)
        elif callable(what):
            found = receive.estimate(
                blank, what, given=apart, clusters=groups, stack=_stack, take=_take, rows=_count_rows
            )
        elif not isinstance(what, str):
            raise SettingError(
                f"what: {type(what).__name__} is neither text, nor a function, nor estimates and variances. "
                'Write "pay ~ age" or "mean of pay by region".'
            )
        else:
            frames = [_to_pandas(table) for table in (tables if shares else blank)]
            found = _analyse(frames, what, family, weights, groups, given=apart)
        combined = receive.combine(
            found.estimates, found.variances, rule=name, level=level, given=found.given if apart else None
        )
    except receive.ReceiveError as error:
        raise SettingError(str(error)) from None
    frame = pd.DataFrame({"term": found.terms, **combined})
    notes = [] if given else ["" if shares else facts.about_codes, facts.about_units]
    frame.attrs["why"] = " ".join(filter(None, [why, *notes]))
    return frame


def choose_rule_of(release: Release) -> Combining:
    """The rule that fits a release in memory, as its certificate would name it."""
    of = release.guarantee
    bound, copies = of.terms.bound.name, len(release.tables)
    return choose_rule(standard=of.standard, bound=bound, processing=of.processing(), copies=copies)


def _open(
    release: Any, rule: str | None, clusters: str | None
) -> tuple[Sequence[Any], receive.Rule, receive.Facts]:
    """The tables, the rule that the release calls for, and what it says of codes and units."""
    tables: Sequence[Any]
    if isinstance(release, Release):
        tables, of = release.tables, release.guarantee
        unit = {"column": of.unit_column, "together": of.unit is not None}
        certificate = {"combining": choose_rule_of(release)._asdict(), "codes": of.codes, "unit": unit}
    elif isinstance(release, str | os.PathLike):
        try:
            read, certificate = receive.read(release)
            tables = [pd.DataFrame(table) for table in read]
            receive.rule_for(certificate, rule)
        except receive.ReceiveError as error:
            raise DataError(str(error)) from None
    elif rule is None:
        raise SettingError(
            "Tables alone do not say how they were made. Pass the release or its folder, or say the rule: "
            f"{', '.join(receive.RULES)}."
        )
    else:
        tables, certificate = list(release), {}
    tables, columns = _align(tables)
    return tables, receive.rule_for(certificate, rule), receive.facts_of(certificate, columns, clusters)


def _align(tables: Sequence[Any]) -> tuple[list[Any], list[str]]:
    """The tables with the columns of the first in its order, and these."""
    try:
        frames = [nw.from_native(table, eager_only=True) for table in tables]
    except TypeError:
        raise SettingError(
            "hr.combine needs a release, its folder, or a list of tables, one for each copy: DataFrames of "
            "pandas or polars, or Arrow tables."
        ) from None
    if not frames:
        raise SettingError("There are no tables to combine. Pass one for each copy.")
    columns = list(frames[0].columns)
    if any({*frame.columns} != {*columns} for frame in frames):
        raise DataError("Copies have different columns. Pass tables that belong together.")
    same = [frame if list(frame.columns) == columns else frame.select(columns) for frame in frames]
    return [frame.to_native() for frame in same], columns


def _find_clusters(tables: Sequence[Any], name: str | None) -> Codes | None:
    """A number for each row, the same for those that belong together; None if each stands for itself."""
    if name is None:
        return None
    frames = [_to_pandas(table) for table in tables]
    _require(frames[0], [name])
    first = frames[0][name].reset_index(drop=True)
    if first.isna().any():
        raise DataError(f"'{name}' has gaps: it must name the cluster of each row. Take another column.")
    if any(not first.equals(frame[name].reset_index(drop=True)) for frame in frames[1:]):
        raise DataError(f"'{name}' differs between copies. Clusters are those of a public column.")
    codes, levels = pd.factorize(first)
    if len(levels) < 2:
        raise DataError(f"'{name}' is the same in all rows, which shows no variance. Take another column.")
    return None if len(levels) == len(first) else codes


def _analyse(
    tables: Sequence[pd.DataFrame],
    what: str,
    family: Any,
    weights: str | None,
    clusters: Codes | None,
    *,
    given: bool,
) -> receive.Estimates:
    """A formula or a table on each copy; with `given` also what protected values add to variances."""
    if given and len({*map(len, tables)}) > 1:
        raise DataError(
            "Copies have different numbers of rows, and are compared row by row. Select rows by a function "
            "of a table."
        )
    if weights is not None:
        _require(tables[0], [weights])
        for table in tables:
            if not pd.api.types.is_numeric_dtype(table[weights]) or (table[weights] < 0).any():
                raise DataError(f"'{weights}' holds no survey weights: they are numbers from 0 up.")
    if "~" in what:
        each = [_fit(table, what, family, weights, clusters) for table in tables]
    else:
        each = _tabulate(tables, what, weights, clusters)
    terms = each[0].terms
    if any(one.terms != terms for one in each):
        some = sorted({name for one in each for name in {*one.terms} ^ {*terms}})
        raise DataError(
            f"Some copies have other terms than the first: {list_some(some)}. Merge classes that are rare, "
            "so that each copy has all."
        )
    q, u = (np.array([getattr(one, name) for one in each]) for name in ("estimates", "variances"))
    if not given or len(each) < 2:
        return receive.Estimates(terms, q, u, None)
    # Public columns are the same in all copies: what a row adds differs by its protected values alone.
    parts = np.stack([_add_clusters(one.influence, clusters) for one in each])
    return receive.Estimates(terms, q, u, np.tile(parts.var(axis=0, ddof=1).sum(axis=0), (len(each), 1)))


def _add_clusters(influence: Array, clusters: Codes | None) -> Array:
    """What each cluster adds; a record, if it stands for itself. Cells that rows share differ together."""
    if clusters is None:
        return influence
    sums = np.zeros((int(clusters.max()) + 1, influence.shape[1]))
    np.add.at(sums, clusters, influence)
    return sums


def _fit(
    table: pd.DataFrame, formula: str, family: Any, weights: str | None, clusters: Codes | None
) -> _Analysis:
    try:
        import statsmodels.api as sm
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
    rows, quoted = len(table), {f"Q({name!r})": name for name in re.findall(r"`([^`]+)`", formula)}
    for call, name in quoted.items():  # patsy's way to name a column that is no word of Python
        formula = formula.replace(f"`{name}`", call)
    # A gap is not above 0, nor is it not: rows without a value leave, unless the formula is about gaps.
    if not re.search(r"\b(is|not)_?(na|nan|null)\b", formula):
        named = [re.search(rf"(?<![\w.]){re.escape(str(name))}(?!\w)", formula) for name in table.columns]
        table = table.loc[table.loc[:, [found is not None for found in named]].notna().all(axis=1)]
    if weights is not None:
        table = table.loc[table[weights].notna()]
    least, most = -np.inf, np.inf
    if isinstance(family, str):
        if family not in _FAMILIES:
            raise SettingError(f"family={family!r} is not one of {', '.join(_FAMILIES)}.")
        least, most = -np.inf if family == "gaussian" else 0.0, 1.0 if family == "binomial" else np.inf
        family = getattr(sm.families, _FAMILIES[family])()
    try:
        with np.errstate(divide="ignore", invalid="ignore"):  # the log of a zero, say
            known = pd.concat(dmatrices(formula, table, return_type="dataframe"), axis=1)
        table = table.loc[known.index[np.isfinite(known).all(axis=1)]]
        if table.empty:
            raise DataError(f"{formula!r}: a copy has no row with a value in each term.")
        left, right = dmatrices(formula, table, return_type="dataframe")
    except PatsyError as error:
        raise SettingError(f"{formula!r} cannot be read: {str(error).splitlines()[0]}.") from None
    if left.shape[1] > 1:  # of yes and no, patsy has a column for each
        yes = [name for name in left.columns if name.endswith("[True]")]
        if left.shape[1] > 2 or not yes:
            raise SettingError(
                f"{formula!r}: its left side has classes. Say which one is meant, as in "
                "\"(status == 'a') ~ age\"."
            )
        left = left[yes]
    if not left.iloc[:, 0].between(least, most).all():
        ends = "from 0 up" if most == np.inf else "from 0 to 1"
        raise DataError(f"{formula!r}: the family takes an outcome {ends}, and a copy has others.")
    told = {} if weights is None else {"weights" if family is None else "var_weights": table[weights]}
    if family is None:
        model = (sm.OLS if weights is None else sm.WLS)(left, right, **told)
    else:
        model = sm.GLM(left, right, family=family, **told)
    robust: dict[str, Any] = {} if weights is None else {"cov_type": "HC1"}
    if clusters is not None:
        robust = {"cov_type": "cluster", "cov_kwds": {"groups": clusters[table.index]}}
    fitted = model.fit(**robust)
    if family is None:
        influence = (np.asarray(fitted.wresid)[:, None] * model.wexog) @ fitted.normalized_cov_params
    else:
        scores = np.asarray(model.score_factor(fitted.params))[:, None] * model.exog
        influence = scores @ np.linalg.pinv(-model.hessian(fitted.params, observed=False))
    every = np.zeros((rows, len(fitted.params)))  # nothing by rows without a value
    every[table.index] = np.asarray(influence)
    values = fitted.params.to_numpy(), np.diag(fitted.cov_params())
    terms = [str(term) for term in fitted.params.index]
    for call, name in quoted.items():
        terms = [term.replace(call, name) for term in terms]
    return _Analysis(tuple(terms), *values, every)


def _tabulate(
    tables: Sequence[pd.DataFrame], phrase: str, weights: str | None, clusters: Codes | None
) -> list[_Analysis]:
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
    return [_tabulate_one(table, kind, column, by, values, weights, clusters) for table in tables]


def _tabulate_one(
    table: pd.DataFrame,
    kind: str,
    column: str,
    by: list[str],
    values: Mapping[str, Any],
    weights: str | None,
    clusters: Codes | None,
) -> _Analysis:
    """Rows without a value, a group or a weight count for nothing. Variances are those of `hr.survey`."""
    rows, own = len(table), table[column].reset_index(drop=True)
    given = np.ones(rows) if weights is None else table[weights].to_numpy(dtype=np.float64, na_value=0.0)
    usable = own.notna().to_numpy() & table[by].notna().all(axis=1).to_numpy() & (given > 0)
    keys = np.array([", ".join(map(_show, row)) for row in table[by].itertuples(index=False)] or [""] * rows)
    told, found, influence = [], [], []
    for group in np.unique(keys[usable]):
        here = usable & (keys == group)
        weight = np.where(here, given, 0.0)
        if kind != "total" and here.sum() < 2:
            if not by:
                raise DataError(f"A copy has one row with a value of '{column}', which shows no spread.")
            raise DataError(
                f"A group of '{', '.join(by)}' has one row in a copy, which shows no spread. Merge it with "
                "another."
            )
        for name, value in values.items():
            x = np.where(here, own == value if kind == "share" else own, 0.0).astype(np.float64)
            share = weight if kind == "total" else weight / weight.sum()
            found.append(float(share @ x))
            influence.append(share * x if kind == "total" else share * (x - found[-1]))
            told.append(", ".join(part for part in (name, str(group)) if part) or f"{kind} of {column}")
    if not told:
        raise DataError(f"No row has a value of '{column}' and of what it is to be shown by.")
    added = np.column_stack(influence)
    return _Analysis(tuple(told), np.array(found), total_variances(added, None, clusters), added)


def _show(value: Any) -> str:
    """A class as people write it: 1 of a column that is 1.0 beside gaps."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _require(table: pd.DataFrame, names: Sequence[str]) -> None:
    if lacking := [name for name in names if name not in table.columns]:
        raise DataError(f"There is no column '{lacking[0]}'. The columns are {list_some([*table.columns])}.")


def _to_pandas(table: Any) -> pd.DataFrame:
    return nw.from_native(table, eager_only=True).to_pandas()


def _count_rows(table: Any) -> int:
    return len(nw.from_native(table, eager_only=True))


def _stack(one: Any, other: Any) -> Any:
    return nw.concat([nw.from_native(each, eager_only=True) for each in (one, other)]).to_native()


def _take(table: Any, places: Array) -> Any:
    return nw.from_native(table, eager_only=True)[places].to_native()
