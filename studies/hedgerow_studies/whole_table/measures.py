"""What a copy of the claims has lost: margins, pairs of columns, three regressions, and whether rows can be
told apart.

Amounts are compared in distribution as they are and elsewhere by their
logarithms.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd

from hedgerow.evidence.utility import ecdf_distance, measure_propensity
from hedgerow_studies.whole_table.data import AMOUNTS, LABELS, PROTECTED, PUBLIC, UNKNOWN, is_high

# The study's question: benefits of high earners rose, those of others did not; did high earners stay away
# longer?
REGRESSIONS = {
    "weeks": "np.log(weeks) ~ after * high + male + married + age + C(industry) + C(injury) + hospital",
    "wage": "np.log(wage) ~ age + male + C(industry)",
    "hospital": "hospital ~ C(injury) + age",
}
EFFECT = "after:high"


def measure(original: pd.DataFrame, copy: pd.DataFrame, *, kept: bool) -> dict[str, float]:
    """All figures of one copy. `kept`: its public columns are the table's own, row by row."""
    return {
        **_differ("margin", compare_margins(original, copy)),
        **_differ("pair", compare_pairs(original, copy)),
        **compare_regressions(original, copy),
        "pmse": compare_rows(original, copy, kept=kept, pairs=False),
        "pmse_pairs": compare_rows(original, copy, kept=kept, pairs=True),
    }


def compare_margins(original: pd.DataFrame, copy: pd.DataFrame) -> dict[str, float]:
    """For each protected column total variation, of amounts the largest difference of the ECDFs."""
    found = {}
    for name in PROTECTED:
        if name in AMOUNTS:
            found[name] = ecdf_distance(_amount(original, name), _amount(copy, name)).maximum
        else:
            one, two = (_shares(table, name) for table in (original, copy))
            found[name] = float(np.abs(one - two).sum() / 2)
    return found


def compare_pairs(original: pd.DataFrame, copy: pd.DataFrame) -> dict[str, float]:
    """|difference of association| of each pair of columns that is not public altogether."""
    before, after = associations(original), associations(copy)
    return {pair: abs(after[pair] - value) for pair, value in before.items()}


def associations(table: pd.DataFrame) -> dict[str, float]:
    """Of amounts the correlation of logarithms, of categories Cramér's V, of one and the other the
    correlation ratio.
    """
    found = {}
    for one, two in combinations((*PUBLIC, *PROTECTED), 2):
        if one in PUBLIC and two in PUBLIC:
            continue
        amounts = [name for name in (one, two) if name in AMOUNTS]
        if len(amounts) == 2:
            value = float(np.corrcoef(_log(table, one), _log(table, two))[0, 1])
        elif amounts:
            values = _log(table, amounts[0])
            groups = pd.Series(values).groupby(_codes(table, two if one in AMOUNTS else one))
            between = (groups.size() * (groups.mean() - values.mean()) ** 2).sum()
            value = float(np.sqrt(between / ((values - values.mean()) ** 2).sum()))
        else:
            counts = pd.crosstab(_codes(table, one), _codes(table, two)).to_numpy()
            fair = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
            value = float(
                np.sqrt(((counts - fair) ** 2 / fair).sum() / counts.sum() / (min(counts.shape) - 1))
            )
        found[f"{one}, {two}"] = value
    return found


def regress(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Estimates and ends of 95 % intervals, by regression and term. Rows with an unknown in it are left
    out.
    """
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

    labelled = ("married", "industry", "injury")
    ready = table.assign(
        high=is_high(table).astype(float),
        **{
            name: pd.Categorical(
                table[name].where(table[name] != UNKNOWN), [one for one in LABELS[name] if one != UNKNOWN]
            )
            for name in labelled
        },
    )
    found = {}
    for name, formula in REGRESSIONS.items():
        logit = {"family": sm.families.Binomial()} if name == "hospital" else {}
        fit = (smf.glm if logit else smf.ols)(formula, ready, **logit).fit()
        ends = fit.conf_int()
        found[name] = pd.DataFrame({"estimate": fit.params, "lower": ends[0], "upper": ends[1]})
    return found


def compare_regressions(original: pd.DataFrame, copy: pd.DataFrame) -> dict[str, float]:
    """Mean overlap of 95 % intervals by regression (Karr et al. 2006, none counts as 0), and the study's
    effect.
    """
    before, after = regress(original), regress(copy)
    found = {}
    for name, one in before.items():
        two = after[name].loc[one.index]
        both = np.clip(
            np.minimum(one["upper"], two["upper"]) - np.maximum(one["lower"], two["lower"]), 0, None
        )
        shares = [both / (each["upper"] - each["lower"]) for each in (one, two)]
        found[f"overlap_{name}"] = float(np.mean(sum(shares)[1:] / 2))  # the intercept is no finding
    return {**found, "effect": float(after["weeks"]["estimate"][EFFECT])}


def compare_rows(original: pd.DataFrame, copy: pd.DataFrame, *, kept: bool, pairs: bool) -> float:
    """pMSE over its expectation, by main effects or by these and all products of two columns' terms."""
    own, shared = (list(_terms(original, copy, names)) for names in (PROTECTED, PUBLIC))
    if pairs:
        products = [(one, two) for place, one in enumerate(own) for two in (*shared, *own[:place])]
        own += [(one[:, :, None] * two[:, None, :]).reshape(len(one), -1) for one, two in products]
    n = len(original)
    if kept:
        terms = np.hstack(own)
        return measure_propensity(terms[:n], terms[n:], kept=np.hstack(shared)[:n]).ratio
    terms = np.hstack([*shared, *own])
    return measure_propensity(terms[:n], terms[n:]).ratio


def _terms(original: pd.DataFrame, copy: pd.DataFrame, names: tuple[str, ...]) -> Iterator[np.ndarray]:
    """Of each column, both tables below each other: logarithms, and dummies for zeros and labels."""
    both = pd.concat([original, copy], ignore_index=True)
    for name in names:
        if name in AMOUNTS:
            values, zero = _log(both, name), (_amount(both, name) == 0).astype(float)
            parts = [values - values.mean()] + ([zero] if zero.any() else [])
        else:
            codes = _codes(both, name)
            parts = [(codes == code).astype(float) for code in np.unique(codes)[1:]]
        yield np.column_stack(parts)


def _differ(label: str, differences: dict[str, float]) -> dict[str, float]:
    values = list(differences.values())
    return {f"{label}_mean": float(np.mean(values)), f"{label}_max": float(np.max(values))}


def _shares(table: pd.DataFrame, name: str) -> np.ndarray:
    return np.bincount(_codes(table, name), minlength=len(LABELS[name])) / len(table)


def _codes(table: pd.DataFrame, name: str) -> np.ndarray:
    return np.asarray(pd.Categorical(table[name], categories=LABELS[name]).codes.astype(int))


def _amount(table: pd.DataFrame, name: str) -> np.ndarray:
    return table[name].to_numpy(dtype=float)


def _log(table: pd.DataFrame, name: str) -> np.ndarray:
    values = _amount(table, name)
    return values if name == "age" else np.log(np.maximum(values, 1.0 if name == "medical" else 0.01))
