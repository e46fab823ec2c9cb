"""Several standards on one table, sharing the unweighted fit."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hedgerow import cards
from hedgerow.drawing import DATA, draw_violins, panels, violins
from hedgerow.errors import HedgerowWarning, SettingError, format_value
from hedgerow.evidence.giveaways.released import check_released
from hedgerow.evidence.utility import bin_shapes, stack_columns, tabulate
from hedgerow.evidence.utility.stack import SUMMED_UP
from hedgerow.mechanism.calibrate import expected_fits
from hedgerow.mechanism.steps import Start, begin
from hedgerow.models.base import Model
from hedgerow.privacy.bounds import LOCAL, RENYI, prices
from hedgerow.privacy.columns import Column
from hedgerow.privacy.ranges import Everywhere
from hedgerow.privacy.standards import ADP, Standard, Unweighted
from hedgerow.privacy.strict import Bounded
from hedgerow.progress import job, phase
from hedgerow.randomness import Key
from hedgerow.synthesizer import Synthesizer, encode
from hedgerow.tables.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class Comparison:
    """What `compare` returns: tidy frames, all confidential, since they say what was achieved on the data."""

    synthesizers: Mapping[str, Synthesizer]

    def __post_init__(self) -> None:
        outcomes = {each.settings.outcomes for each in self.synthesizers.values()}
        if len(outcomes) > 1:
            raise SettingError(
                "Comparisons and pictures need synthesizers of the same protected columns, got "
                f"{'; '.join(', '.join(names) for names in sorted(outcomes))}."
            )

    @property
    def table(self) -> Any:
        """One row per standard: price under every bound, the withheld price beside it, weights, scale."""
        rows = []
        for label, synth in self.synthesizers.items():
            row: dict[str, Any] = {"standard": label, "epsilon": synth.epsilon_}
            row |= dict.fromkeys(
                [bound.name for bound in LOCAL] + [f"withheld_{bound}" for bound in LOCAL], np.nan
            )
            row |= dict.fromkeys(("scale", "mean_alpha", "mean_power"), np.nan)
            if label in self.weighted:
                row |= prices(synth._need().outcome.pricing)
                row |= {f"withheld_{name}": price for name, price in synth.withheld_epsilon_.items()}
                row |= {"scale": synth.scale_, "mean_alpha": float(synth.alpha_.mean())}
                row |= {"mean_power": float(synth.power_.mean())}
            rows.append(row)
        return self._like({name: [row[name] for row in rows] for name in rows[0]})

    @property
    def weighted(self) -> dict[str, Synthesizer]:
        """The fits with prices by record: all but `Strict(limits=…)`."""
        return {label: each for label, each in self.synthesizers.items() if each.settings.noisy is None}

    @property
    def records(self) -> Any:
        """One row per standard and record: what `Synthesizer.records_` shows, and |d|."""
        parts = []
        for label, synth in self.weighted.items():
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

    @property
    def shown_utility(self) -> list[dict[str, Any]]:
        """A small table: the original, and each standard's copies beside it (`evidence.utility.tabulate`)."""
        found = {label: synth.utility_by_column() for label, synth in self.synthesizers.items()}
        names = dict.fromkeys(name for columns in found.values() for name in columns)
        tables = {
            name: tabulate({label: columns[name] for label, columns in found.items() if name in columns})
            for name in names
        }
        if len(tables) == 1:
            return next(iter(tables.values()))
        return [{"column": name, **row} for name, rows in tables.items() for row in rows]

    @property
    def shape_columns(self) -> dict[str, Any]:
        """The shares of outcome and copies in each of some bins (`evidence.utility.bin_shapes`)."""
        shapes = self.shapes_by_column()
        return next(iter(shapes.values())) if len(shapes) == 1 else stack_columns(shapes)

    def shapes_by_column(self) -> dict[str, dict[str, Any]]:
        """`shape_columns` of each protected column, by its name."""
        found = {label: synth.copies_by_column() for label, synth in self.synthesizers.items()}
        first = next(iter(self.synthesizers.values()))
        levels = first.levels_by_column
        return {
            name: bin_shapes(values, {label: copies[name] for label, copies in found.items()}, levels[name])
            for name, values in first.originals.items()
        }

    def plot(self, what: str = "lipschitz", *, statistic: str = "ecdf_max") -> "Figure":
        """The paper's violins: "lipschitz", "alpha", "known" or "data"; or "utility", of one `statistic`."""
        if what not in tuple(_PLOTS):
            raise SettingError(f"plot must be one of {', '.join(_PLOTS)}, got {format_value(what)}.")
        if what == "utility":
            return _draw_utility(self.synthesizers, statistic)
        drawn = self.synthesizers if what == "data" else self.weighted
        if not drawn:
            raise SettingError(
                f"plot '{what}' shows weights or prices by record, and Strict(limits=…) has none. Plot "
                "'data' or 'utility'."
            )
        return _PLOTS[what](drawn)

    def _like(self, columns: Mapping[str, Any]) -> Any:
        return next(iter(self.synthesizers.values())).like(columns)

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.synthesizers)}; confidential)"

    def _repr_html_(self) -> str:
        """What a notebook shows: prices under every bound, and what copies keep; confidential."""
        table = Table.of(self.table)
        rows = [dict(zip(table.columns, values, strict=True)) for values in table.frame.iter_rows()]
        shown = ["epsilon", *(bound.name for bound in LOCAL), "scale", "mean_alpha"]
        prices = [{"": name} | {row["standard"]: row[name] for row in rows} for name in shown]
        kept = [cards.table("What copies keep", self.shown_utility)]
        kept += [cards.shapes(shapes) for shapes in self.shapes_by_column().values()]
        first = next(iter(self.synthesizers.values())).settings
        facts = {"formula": first.described, "family": first.model.name}
        parts = [cards.table("ε of one copy", prices), *kept]
        return cards.card("hedgerow comparison", facts.items(), *parts, mark=cards.CONFIDENTIAL)


def compare(
    formula: str | Mapping[str, Column],
    data: Any,
    *,
    family: str | Model | None = None,  # lognormal, of one column
    standards: Mapping[str, Standard] | None = None,
    seed: int | None = None,
    left_out: Sequence[str] = (),
    keep: Sequence[str] = (),
    **settings: Any,
) -> Comparison:
    """Fit several standards to one table; the other settings are those of `Synthesizer`.

    >>> import hedgerow as hr
    >>> standards = {"ADP": hr.ADP(), "range": hr.RangeTruncated(hr.Radius(0.5, 2.0))}
    >>> found = compare("x ~ z", hr.datasets.lognormal(n=300, seed=1), standards=standards, draws=200, seed=1)
    >>> found.table["standard"].tolist()
    ['ADP', 'range']

    Where a standard has no weights, `debias` and what a preset says of it are left out: there is nothing to
    correct, and the plain posterior is what the others are compared with.

    Every standard gets the same random numbers, so that differences between rows come from the standards.
    The copies of different standards are therefore not independent releases: publish one of them.
    """
    chosen = dict(standards) if standards is not None else {"Unweighted": Unweighted(), "ADP": ADP()}
    if not chosen:
        raise SettingError("standards must name at least one standard, for instance {'ADP': ADP()}.")
    synthesizers = {}
    asked_by_noise = any(isinstance(one, Bounded) and one.bound.takes_delta for one in chosen.values())
    for label, standard in chosen.items():
        own = settings if getattr(standard, "weighted", True) else settings | {"debias": False}
        if isinstance(standard, Bounded):  # which brings its own
            own = {name: value for name, value in own.items() if name not in ("weights", "bound")}
        bound = standard.bound if isinstance(standard, Bounded) else settings.get("bound")
        if asked_by_noise and not getattr(bound, "takes_delta", bound == RENYI.name):
            own = {name: value for name, value in own.items() if name != "delta"}
        if getattr(standard, "by_statistics", False):
            own = {name: value for name, value in own.items() if name not in ("prior", "known", "debias")}
        synthesizers[label] = Synthesizer(formula, family, standard=standard, **own)
    table = Table.of(data)
    design = encode(table, [synth.settings for synth in synthesizers.values()])
    strict = all(isinstance(standard, Bounded) for standard in chosen.values())
    read = [name for standard in chosen.values() for name in standard.range.columns]
    first = next(iter(synthesizers.values())).settings
    checked = check_released(table, design, first, left_out=left_out, keep=keep, strict=strict, read=read)
    notes = dict.fromkeys([*design.notes, *checked])
    key = Key.from_seed(seed)
    shared: Start | None = None
    fits = [sum(expected_fits(synth.settings).values()) for synth in synthesizers.values()]
    fits[1:] = [number - 1 for number in fits[1:]]  # the plain fit is shared
    told: dict[str, Any] = {"key": key, "seeded": seed is not None, "left_out": left_out, "keep": keep}
    with job(dict(zip(synthesizers, fits, strict=True))):
        for label, synth in synthesizers.items():
            asked = synth.settings
            if asked.noisy is not None:
                notes |= dict.fromkeys(synth.fit_noisy(table, design, **told).doubts())
                continue
            with phase(label):
                # The risk of a bound for every table is that of its own restricted model, and needs no fit.
                start = shared if shared is not None and asked.bound.local else None
                if start is None:
                    start = begin(asked.model, table, design, draws=asked.draws, key=key)
                    shared = start if asked.bound.local else shared
                done = synth.fit_from(start, **told)
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
    """Each confidential column and its copies, on a logarithmic axis where all are positive."""
    originals = next(iter(synthesizers.values())).originals
    copies = {label: synth.copies_by_column() for label, synth in synthesizers.items()}

    def draw(axes: "Axes", name: str) -> None:
        groups = {DATA: originals[name]} | {label: np.concatenate(own[name]) for label, own in copies.items()}
        positive = all((values > 0).all() for values in groups.values())
        draw_violins(axes, groups, name, log=positive)

    return panels(list(originals), draw, groups=1 + len(synthesizers))


def _draw_utility(synthesizers: Mapping[str, Synthesizer], statistic: str) -> "Figure":
    """One statistic of the copies, one dot per copy, with the confidential value as a line."""
    found = {label: synth.utility_by_column() for label, synth in synthesizers.items()}
    names = list(next(iter(found.values())))

    def draw(axes: "Axes", name: str) -> None:
        groups, truth = {}, 0.0
        for label, columns in found.items():
            tidy = pd.DataFrame(columns[name])
            rows = tidy[(tidy["statistic"] == statistic) & ~tidy["copy"].isin(SUMMED_UP)]
            if rows.empty:
                known = ", ".join(sorted(tidy["statistic"].unique()))
                raise SettingError(f"statistic must be one of {known}, got {format_value(statistic)}.")
            groups[label], truth = rows["synthetic"].to_numpy(np.float64), float(rows["original"].iloc[0])
        of = f" of {name}" if len(names) > 1 else ""
        draw_violins(axes, groups, f"{_STATISTICS.get(statistic, statistic)}{of}")
        axes.axhline(truth, color="black", linewidth=0.8, linestyle="--")

    return panels(names, draw, groups=len(found))


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
