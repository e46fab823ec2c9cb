"""Several standards on one table, sharing the unweighted fit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hedgerow.errors import SettingError
from hedgerow.mechanism.price import BOUNDS, SUPREMA
from hedgerow.mechanism.steps import Start, begin
from hedgerow.models.base import Model
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
        """A row a standard: price under every bound, the withheld price beside it, weights, scale."""
        columns: dict[str, list[Any]] = {"standard": list(self.synthesizers)}
        fitted = list(self.synthesizers.values())
        columns["epsilon"] = [synth.epsilon_ for synth in fitted]
        for bound in BOUNDS:
            columns[bound] = [_or_nan(synth, f"{bound}_epsilon_") for synth in fitted]
        for bound in BOUNDS:
            columns[f"withheld_{bound}"] = [synth.withheld_epsilon_.get(bound, np.nan) for synth in fitted]
        columns["scale"] = [synth.scale_ for synth in fitted]
        columns["mean_alpha"] = [float(synth.alpha_.mean()) for synth in fitted]
        columns["mean_power"] = [float(synth.power_.mean()) for synth in fitted]
        return self._like(columns)

    @property
    def records(self) -> Any:
        """A row a standard and record: what `Synthesizer.records_` shows, and |d|."""
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
        """A row a standard, copy and statistic."""
        columns: dict[str, list[Any]] = {}
        for label, synth in self.synthesizers.items():
            tidy = synth.utility_columns()
            columns.setdefault("standard", []).extend([label] * len(tidy["copy"]))
            for name, values in tidy.items():
                columns.setdefault(name, []).extend(values)
        return self._like(columns)

    def plot(self, what: str = "lipschitz") -> "Figure":
        """The paper's violins: "lipschitz", "alpha", "known", "data" or "utility"."""
        from hedgerow.report import plots

        return plots.named(what)(self)

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
    first = next(iter(synthesizers.values()))
    table = Table.of(data)
    design = designs.build(formula, table, first.model.columns, first.model.domain.classes)
    table.require(left_out)
    check_columns(table, design, left_out)
    key = Key.from_seed(seed)
    shared: Start | None = None
    for synth in synthesizers.values():
        if synth.bound in SUPREMA:  # its risk is that of its own restricted model, and needs no fit
            start = begin(synth.model, table, design, draws=synth.draws, key=key)
        else:
            start = shared = shared or begin(synth.model, table, design, draws=synth.draws, key=key)
        synth.fit_from(start, key=key, seeded=seed is not None, left_out=left_out)
    return Comparison(synthesizers)


def _weighted(standard: Any) -> bool:
    return not isinstance(standard, Standard) or standard.weighted


def _or_nan(synth: Synthesizer, name: str) -> float:
    return float(getattr(synth, name, np.nan))
