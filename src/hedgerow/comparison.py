"""Several standards on one table, sharing the unweighted fit."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.drawing import DATA, violins
from hedgerow.errors import HedgerowWarning, SettingError
from hedgerow.mechanism.steps import Start, begin
from hedgerow.models.base import Model
from hedgerow.privacy.bounds import BY_DRAWS, prices
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.standards import ADP, Standard, Unweighted
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
        columns: dict[str, list[Any]] = {"standard": list(self.synthesizers)}
        fitted = list(self.synthesizers.values())
        columns["epsilon"] = [synth.epsilon_ for synth in fitted]
        priced = [prices(synth._need().outcome.pricing) for synth in fitted]
        withheld = [synth.withheld_epsilon_ for synth in fitted]
        for bound in BY_DRAWS:
            columns[bound.name] = [own.get(bound.name, np.nan) for own in priced]
        for bound in BY_DRAWS:
            columns[f"withheld_{bound}"] = [apart.get(bound.name, np.nan) for apart in withheld]
        columns["scale"] = [synth.scale_ for synth in fitted]
        columns["mean_alpha"] = [float(synth.alpha_.mean()) for synth in fitted]
        columns["mean_power"] = [float(synth.power_.mean()) for synth in fitted]
        return self._like(columns)

    @property
    def records(self) -> Any:
        """One row per standard and record: what `Synthesizer.records_` shows, and |d|."""
        parts: dict[str, list[Any]] = {}
        for label, synth in self.synthesizers.items():
            frame = Table.of(synth.records_)
            size = frame.rows
            parts.setdefault("standard", []).append(np.repeat(label, size))
            for name in frame.columns:
                parts.setdefault(name, []).append(frame.numbers(name))
            parts.setdefault("lipschitz", []).append(synth.lipschitz_)
        return self._like({name: np.concatenate(values) for name, values in parts.items()})

    @property
    def utility(self) -> Any:
        """One row per standard, copy and statistic."""
        columns: dict[str, list[Any]] = {}
        for label, synth in self.synthesizers.items():
            tidy = synth.utility_columns()
            columns.setdefault("standard", []).extend([label] * len(tidy["copy"]))
            for name, values in tidy.items():
                columns.setdefault(name, []).extend(values)
        return self._like(columns)

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
    **settings: Any,
) -> Comparison:
    """Fit several standards to one table; the other settings are those of `Synthesizer`.

    Where a standard has no weights, `debias` and what a preset says of it are left out: there is nothing to
    correct, and the plain posterior is what the others are compared with.

    Every standard gets the same random numbers, so that differences between rows come from the standards.
    The copies of different standards are therefore not independent releases: publish one of them.
    """
    chosen = dict(standards) if standards is not None else {"Unweighted": Unweighted(), "ADP": ADP()}
    plain = {"debias": False}
    if not chosen:
        raise SettingError("standards must name at least one standard, for instance {'ADP': ADP()}.")
    synthesizers = {
        label: Synthesizer(
            formula, family, standard=standard, **(settings if _weighted(standard) else settings | plain)
        )
        for label, standard in chosen.items()
    }
    first = next(iter(synthesizers.values())).settings
    table = Table.of(data)
    design = designs.build(formula, table, first.model.columns, first.model.domain.classes)
    table.require(left_out)
    notes = dict.fromkeys(check_columns(table, design, left_out))
    key = Key.from_seed(seed)
    shared: Start | None = None
    for synth in synthesizers.values():
        asked = synth.settings
        if not asked.bound.over_draws:  # its risk is that of its own restricted model, and needs no fit
            start = begin(asked.model, table, design, draws=asked.draws, key=key)
        else:
            start = shared = shared or begin(asked.model, table, design, draws=asked.draws, key=key)
        notes |= dict.fromkeys(
            synth.fit_from(start, key=key, seeded=seed is not None, left_out=left_out).doubts()
        )
    for note in notes:
        warnings.warn(note, HedgerowWarning, stacklevel=2)
    return Comparison(synthesizers)


def _weighted(standard: Any) -> bool:
    return not isinstance(standard, Standard) or standard.weighted


_STATISTICS = {
    "ecdf_max": "ECDF, maximum difference",
    "ecdf_mean_absolute": "ECDF, mean absolute difference",
    "ecdf_mean_squared": "ECDF, mean squared difference",
    "mean": "mean",
    "median": "median",
    "q90": "90 % quantile",
}


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


def _draw_alpha(synthesizers: Mapping[str, Synthesizer]) -> "Figure":
    """The weights α."""
    groups = {label: synth.alpha_ for label, synth in synthesizers.items()}
    return violins(groups, "weight α")


def _draw_known(synthesizers: Mapping[str, Synthesizer]) -> "Figure":
    """λ, the probability that a fresh value falls outside a record's range."""
    groups = {label: synth.known_ for label, synth in synthesizers.items()}
    return violins(groups, "λ")


def _draw_data(synthesizers: Mapping[str, Synthesizer]) -> "Figure":
    """The confidential outcome and the copies, on a logarithmic axis where all are positive."""
    first = next(iter(synthesizers.values()))
    groups = {DATA: first.outcome_}
    for label, synth in synthesizers.items():
        copies = synth.copied_outcomes()
        groups[label] = np.concatenate(copies)
    positive = all((values > 0).all() for values in groups.values())
    return violins(groups, first.outcome_name, log=positive)


def _draw_utility(synthesizers: Mapping[str, Synthesizer], statistic: str = "ecdf_max") -> "Figure":
    """One statistic of the copies, a dot a copy, with the confidential value as a line."""
    groups, truth = {}, 0.0
    for label, synth in synthesizers.items():
        tidy = synth.utility_columns()
        rows = [
            i
            for i, (copy, name) in enumerate(zip(tidy["copy"], tidy["statistic"], strict=True))
            if name == statistic and copy != "pooled"
        ]
        if not rows:
            raise SettingError(
                f"statistic must be one of {', '.join(sorted({str(name) for name in tidy['statistic']}))}, "
                f"got {statistic!r}."
            )
        groups[label] = np.array([tidy["synthetic"][i] for i in rows], dtype=np.float64)
        truth = float(str(tidy["original"][rows[0]]))
    figure = violins(groups, _STATISTICS.get(statistic, statistic))
    figure.axes[0].axhline(truth, color="black", linewidth=0.8, linestyle="--")
    return figure


_PLOTS: "dict[str, Callable[..., Figure]]" = {
    "lipschitz": _draw_lipschitz,
    "alpha": _draw_alpha,
    "known": _draw_known,
    "data": _draw_data,
    "utility": _draw_utility,
}
