"""Several standards on one table, sharing the unweighted fit."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hedgerow.drawing import DATA, violins
from hedgerow.errors import HedgerowWarning, SettingError
from hedgerow.mechanism.calibrate import expected_fits
from hedgerow.mechanism.steps import Start, begin
from hedgerow.models.base import Model
from hedgerow.privacy.bounds import LOCAL, prices
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.standards import ADP, Standard, Unweighted
from hedgerow.privacy.strict import Bounded
from hedgerow.progress import job, phase
from hedgerow.randomness import Key
from hedgerow.synthesizer import Synthesizer, check_columns
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Comparison:
    """Tidy frames, all confidential: they say what was achieved on the data at hand."""

    synthesizers: Mapping[str, Synthesizer]

    @property
    def table(self) -> Any:
        """One row per standard: price under every bound, the withheld price beside it, weights, scale."""
        rows = []
        for label, synth in self.synthesizers.items():
            own, withheld = prices(synth._need().outcome.pricing), synth.withheld_epsilon_
            rows.append(
                {"standard": label, "epsilon": synth.epsilon_}
                | {bound.name: own.get(bound.name, np.nan) for bound in LOCAL}
                | {f"withheld_{bound}": withheld.get(bound.name, np.nan) for bound in LOCAL}
                | {"scale": synth.scale_, "mean_alpha": float(synth.alpha_.mean())}
                | {"mean_power": float(synth.power_.mean())}
            )
        return self._like({name: [row[name] for row in rows] for name in rows[0]})

    @property
    def records(self) -> Any:
        """One row per standard and record: what `Synthesizer.records_` shows, and |d|."""
        parts = []
        for label, synth in self.synthesizers.items():
            frame = Table.of(synth.records_)
            own = {name: frame.numbers(name) for name in frame.columns}
            parts.append({"standard": np.repeat(label, frame.rows), **own, "lipschitz": synth.lipschitz_})
        return self._like({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})

    @property
    def utility(self) -> Any:
        """One row per standard, copy and statistic."""
        parts: list[dict[str, list[Any]]] = []
        for label, synth in self.synthesizers.items():
            tidy = synth.utility_columns()
            parts.append({"standard": [label] * len(tidy["copy"]), **tidy})
        return self._like({name: [value for part in parts for value in part[name]] for name in parts[0]})

    def plot(self, what: str = "lipschitz", **options: Any) -> "Figure":
        """The paper's violins: "lipschitz", "alpha", "known", "data" or "utility" (with a `statistic`)."""
        if what not in _PLOTS:
            raise SettingError(f"plot must be one of {', '.join(_PLOTS)}, got {what!r}.")
        return _PLOTS[what](self.synthesizers, **options)

    def _like(self, columns: Mapping[str, Any]) -> Any:
        return next(iter(self.synthesizers.values())).like(columns)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.synthesizers)}; confidential)"


def compare(
    formula: str,
    data: Any,
    *,
    family: str | Model = "lognormal",
    standards: Mapping[str, Standard] | None = None,
    seed: int | None = None,
    left_out: Sequence[str] = (),
    keep: Sequence[str] = (),
    **settings: Any,
) -> Comparison:
    """Fit several standards to one table; the other settings are those of `Synthesizer`.

    Where a standard has no weights, `debias` and what a preset says of it are left out: there is nothing to
    correct, and the plain posterior is what the others are compared with.

    Every standard gets the same random numbers, so that differences between rows come from the standards.
    The copies of different standards are therefore not independent releases: publish one of them.
    """
    chosen = dict(standards) if standards is not None else {"Unweighted": Unweighted(), "ADP": ADP()}
    if not chosen:
        raise SettingError("standards must name at least one standard, for instance {'ADP': ADP()}.")
    synthesizers = {}
    for label, standard in chosen.items():
        own = settings if getattr(standard, "weighted", True) else settings | {"debias": False}
        synthesizers[label] = Synthesizer(formula, family, standard=standard, **own)
    first = next(iter(synthesizers.values())).settings
    table = Table.of(data)
    domains = [synth.settings.model.domain for synth in synthesizers.values()]
    # A gap counts as withheld only where every standard takes it so.
    usable = None if any(domain.usable is None for domain in domains) else domains[0].usable
    design = designs.build(formula, table, first.model.columns, domains[0].classes, usable=usable)
    strict = all(isinstance(standard, Bounded) for standard in chosen.values())
    checked = check_columns(table, design, left_out=left_out, keep=keep, strict=strict)
    notes = dict.fromkeys([*design.notes, *checked])
    key = Key.from_seed(seed)
    shared: Start | None = None
    fits = [sum(expected_fits(synth.settings).values()) for synth in synthesizers.values()]
    fits[1:] = [number - 1 for number in fits[1:]]  # the plain fit is shared
    with job(dict(zip(synthesizers, fits, strict=True))):
        for label, synth in synthesizers.items():
            asked = synth.settings
            with phase(label):
                # The risk of a bound for every table is that of its own restricted model, and needs no fit.
                start = shared if shared is not None and asked.bound.local else None
                if start is None:
                    start = begin(asked.model, table, design, draws=asked.draws, key=key)
                    shared = start if asked.bound.local else shared
                done = synth.fit_from(start, key=key, seeded=seed is not None, left_out=left_out, keep=keep)
            notes |= dict.fromkeys(done.doubts())
    for note in notes:
        warnings.warn(note, HedgerowWarning, stacklevel=2)
    return Comparison(synthesizers)


def _draw_lipschitz(synthesizers: Mapping[str, Synthesizer]) -> "Figure":
    """By-record Lipschitz values max_s |d|; the price is twice the largest.

    Beside the price of a range standard stands the price of the same fit with the outcome withheld.
    """
    notes = {}
    for label, synth in synthesizers.items():
        notes[label] = f"ε = {synth.lipschitz_epsilon_:.2g}"
        if not isinstance(synth.settings.standard.range, Everywhere):
            notes[label] += f"\nwithheld {synth.withheld_epsilon_['lipschitz']:.2g}"
    groups = {label: synth.lipschitz_ for label, synth in synthesizers.items()}
    return violins(groups, "by-record Lipschitz value", notes=notes)


def _draw_data(synthesizers: Mapping[str, Synthesizer]) -> "Figure":
    """The confidential outcome and the copies, on a logarithmic axis where all are positive."""
    first = next(iter(synthesizers.values()))
    groups = {label: np.concatenate(synth.copied_outcomes()) for label, synth in synthesizers.items()}
    groups = {DATA: first.outcome_, **groups}
    positive = all((values > 0).all() for values in groups.values())
    return violins(groups, first.outcome_name, log=positive)


def _draw_utility(synthesizers: Mapping[str, Synthesizer], statistic: str = "ecdf_max") -> "Figure":
    """One statistic of the copies, one dot per copy, with the confidential value as a line."""
    groups, truth = {}, 0.0
    for label, synth in synthesizers.items():
        tidy = pd.DataFrame(synth.utility_columns())
        rows = tidy[(tidy["statistic"] == statistic) & (tidy["copy"] != "pooled")]
        if rows.empty:
            names = ", ".join(sorted(tidy["statistic"].unique()))
            raise SettingError(f"statistic must be one of {names}, got {statistic!r}.")
        groups[label], truth = rows["synthetic"].to_numpy(np.float64), float(rows["original"].iloc[0])
    figure = violins(groups, _STATISTICS.get(statistic, statistic))
    figure.axes[0].axhline(truth, color="black", linewidth=0.8, linestyle="--")
    return figure


_STATISTICS = {
    "ecdf_max": "ECDF, maximum difference",
    "ecdf_mean_absolute": "ECDF, mean absolute difference",
    "ecdf_mean_squared": "ECDF, mean squared difference",
    "q90": "90 % quantile",
}
_PLOTS: "dict[str, Callable[..., Figure]]" = {
    "lipschitz": _draw_lipschitz,
    "alpha": lambda all_: violins({label: synth.alpha_ for label, synth in all_.items()}, "weight α"),
    "known": lambda all_: violins({label: synth.known_ for label, synth in all_.items()}, "λ"),
    "data": _draw_data,
    "utility": _draw_utility,
}
