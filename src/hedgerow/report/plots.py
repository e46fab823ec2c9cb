"""The paper's violins, the audit's losses, prices by draws and by records: all of them confidential."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hedgerow.arrays import Array
from hedgerow.comparison import Comparison
from hedgerow.errors import SettingError
from hedgerow.privacy.ranges import Everywhere
from hedgerow.synthesizer import Synthesizer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from hedgerow.evidence.audit import Audit
    from hedgerow.evidence.more_draws import Outlook

# Okabe and Ito's palette: distinguishable with every common kind of colour blindness.
PALETTE = ("#999999", "#E69F00", "#56B4E9", "#0072B2", "#009E73", "#CC79A7", "#D55E00", "#F0E442")

DATA = "Data"  # the confidential outcome, drawn in a colour of its own
STATISTICS = {
    "ecdf_max": "ECDF, maximum difference",
    "ecdf_mean_absolute": "ECDF, mean absolute difference",
    "ecdf_mean_squared": "ECDF, mean squared difference",
    "mean": "mean",
    "median": "median",
    "q90": "90 % quantile",
}

Source = Synthesizer | Comparison | Mapping[str, Synthesizer]


def lipschitz(source: Source) -> "Figure":
    """By-record Lipschitz values max_s |d|; the price is twice the largest.

    Beside the price of a range standard stands the price of the same fit with the outcome withheld.
    """
    synthesizers = _synthesizers(source)
    notes = {}
    for label, synth in synthesizers.items():
        notes[label] = f"ε = {synth.lipschitz_epsilon_:.2g}"
        if not isinstance(synth.settings.standard.range, Everywhere):
            notes[label] += f"\nwithheld {synth.withheld_epsilon_['lipschitz']:.2g}"
    groups = {label: synth.lipschitz_ for label, synth in synthesizers.items()}
    return violins(groups, "by-record Lipschitz value", notes=notes)


def alpha(source: Source) -> "Figure":
    """The weights α."""
    groups = {label: synth.alpha_ for label, synth in _synthesizers(source).items()}
    return violins(groups, "weight α")


def known(source: Source) -> "Figure":
    """λ, the probability that a fresh value falls outside a record's range."""
    groups = {label: synth.known_ for label, synth in _synthesizers(source).items()}
    return violins(groups, "λ")


def data(source: Source) -> "Figure":
    """The confidential outcome and the copies, on a logarithmic axis where all are positive."""
    synthesizers = _synthesizers(source)
    first = next(iter(synthesizers.values()))
    groups = {DATA: first.outcome_}
    for label, synth in synthesizers.items():
        copies = synth.copied_outcomes()
        groups[label] = np.concatenate(copies)
    positive = all((values > 0).all() for values in groups.values())
    return violins(groups, first.outcome_name, log=positive)


def utility(source: Source, statistic: str = "ecdf_max") -> "Figure":
    """One statistic of the copies, a dot a copy, with the confidential value as a line."""
    groups, truth = {}, 0.0
    for label, synth in _synthesizers(source).items():
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
    figure = violins(groups, STATISTICS.get(statistic, statistic))
    figure.axes[0].axhline(truth, color="black", linewidth=0.8, linestyle="--")
    return figure


def audit(found: "Audit") -> "Figure":
    """Losses with weights fixed and recomputed, the largest first, against the stated price."""
    from matplotlib.figure import Figure

    order = np.argsort(-found.fixed, kind="stable")
    place = np.empty(len(order))
    place[order] = np.arange(1, len(order) + 1)
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.subplots()
    label = f"weights fixed ({len(order)} records)"
    axes.plot(place[order], found.fixed[order], ".", color=PALETTE[3], markersize=4, label=label)
    if len(found.chosen):
        label = f"weights recomputed ({len(found.chosen)})"
        again = place[found.chosen], found.recomputed
        axes.vlines(again[0], found.fixed[found.chosen], again[1], color=PALETTE[1], linewidth=0.8)
        axes.plot(*again, "D", color=PALETTE[1], markeredgecolor="black", markersize=5, label=label)
        if np.isfinite(found.reverse).any():
            label = "the same, at draws of the posterior without the record"
            axes.plot(again[0], found.reverse, "_", color=PALETTE[6], markersize=7, label=label)
    axes.axhline(found.epsilon, color="black", linewidth=1, linestyle="--", label="stated price of one copy")
    for record, height in _largest(found):
        colour = PALETTE[6] if height > found.epsilon else "black"
        axes.annotate(
            f"{record}", (place[record], height), xytext=(5, 3), textcoords="offset points", fontsize=8,
            rotation=40, color=colour,
        )  # fmt: skip
    axes.set_xscale("log")
    tops = [found.epsilon, *(height for _, height in _largest(found)), *found.reverse]
    axes.set_ylim(0, 1.12 * float(np.nanmax(tops)))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("record, by its loss with weights fixed")
    axes.set_ylabel("largest |privacy loss|, outcome withheld")
    axes.set_title(f"Audit (confidential): {found.kind}; a lower bound on the loss", fontsize=9, loc="left")
    _plain(axes)
    return figure


def outlook(found: "Outlook") -> "Figure":
    """The price as draws were added, in the order they were made, and what its tail foretells beyond them."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axes = figure.subplots()
    seen = found.factor * np.maximum.accumulate(found.maxima)
    counts = np.arange(1, len(seen) + 1)
    axes.step(counts[9:], seen[9:], where="post", color=PALETTE[3], label="these draws")
    many = np.geomspace(max(10, len(seen) // 10), 100 * len(seen), 60)
    foretold = [found.price_at(int(count)) for count in many]
    axes.plot(many, foretold, color=PALETTE[1], label="expected, from a generalised Pareto tail")
    axes.axvline(len(seen), color="black", linewidth=0.6, linestyle=":")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("draws")
    axes.set_ylabel("price of one copy, ε")
    verdict = "has settled" if found.settled else "has not settled"
    axes.set_title(f"Draws (confidential): the price {verdict}", fontsize=9, loc="left")
    _plain(axes)
    return figure


def contraction(columns: Mapping[str, Sequence[float]]) -> "Figure":
    """Each bound against the number of records, from `evidence.more_draws.contraction`; dashed: withheld."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.0, 4.0), layout="constrained")
    axes = figure.subplots()
    for bound, colour in zip(("lipschitz", "oscillation", "exact"), PALETTE[1:], strict=False):
        own, withheld = np.asarray(columns[bound]), np.asarray(columns[f"withheld_{bound}"])
        if np.isfinite(own).any():
            axes.plot(columns["n"], own, "o-", color=colour, label=bound)
        if np.isfinite(withheld).any() and not np.allclose(own, withheld):
            axes.plot(columns["n"], withheld, "o--", color=colour, label=f"{bound}, withheld")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.4g}")
        axis.set_minor_formatter(lambda value, _: f"{value:,.4g}" if f"{value:e}"[0] in "25" else "")
    axes.tick_params(which="both", labelsize=9, pad=4)
    axes.set_xlabel("records")
    axes.set_ylabel("price of one copy, ε")
    axes.set_title("Contraction (confidential)", fontsize=9, loc="left")
    _plain(axes)
    return figure


def _plain(axes: "Axes") -> None:
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)


def _largest(found: "Audit", count: int = 5) -> list[tuple[int, float]]:
    """The records to name in a picture: those of the largest loss of either kind."""
    height = found.fixed.copy()
    height[found.chosen] = np.maximum(height[found.chosen], found.recomputed)
    return [(int(record), float(height[record])) for record in np.argsort(-height, kind="stable")[:count]]


def named(what: str) -> Callable[[Source], "Figure"]:
    """A plot by its name."""
    found: dict[str, Callable[[Source], Figure]] = {
        "lipschitz": lipschitz,
        "alpha": alpha,
        "known": known,
        "data": data,
        "utility": utility,
    }
    if what not in found:
        raise SettingError(f"plot must be one of {', '.join(found)}, got {what!r}.")
    return found[what]


def violins(
    groups: Mapping[str, Array],
    ylabel: str,
    *,
    log: bool = False,
    notes: Mapping[str, str] | None = None,
    colours: Mapping[str, str] | None = None,
) -> "Figure":
    """A violin a group with its median marked; few or equal values become dots."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.0, 1.35 * len(groups) + 1.2), 4.2), layout="constrained")
    draw_violins(figure.subplots(), groups, ylabel, log=log, notes=notes, colours=colours)
    return figure


def draw_violins(
    axes: "Axes",
    groups: Mapping[str, Array],
    ylabel: str,
    *,
    log: bool = False,
    notes: Mapping[str, str] | None = None,
    colours: Mapping[str, str] | None = None,
) -> None:
    """The same on given axes. Groups that `colours` does not name take the palette in turn."""
    palette = iter(PALETTE * (1 + len(groups) // len(PALETTE)))
    given = colours or {}
    for place, (label, raw) in enumerate(groups.items()):
        values = np.log10(raw) if log else np.asarray(raw, dtype=np.float64)
        colour = "#444444" if label == DATA else given.get(label) or next(palette)
        if len(values) >= 10 and np.ptp(values) > 1e-9 * max(1.0, float(np.abs(values).max())):
            body = axes.violinplot(values, positions=[place], widths=0.85, showextrema=False, points=200)
            for patch in body["bodies"]:  # type: ignore[attr-defined]  # a list, typed as one artist
                patch.set(facecolor=colour, edgecolor="black", linewidth=0.8, alpha=0.85)
        else:
            axes.plot(np.full(len(values), place), values, "o", color=colour, markeredgecolor="black")
        median = float(np.median(values))
        axes.plot([place - 0.2, place + 0.2], [median, median], color="black", linewidth=2.2)
        axes.plot([place], [median], "o", color="white", markeredgecolor="black", markersize=5, zorder=3)
        if notes is not None:
            top = float(values.max())
            axes.annotate(
                notes[label], (place, top), xytext=(0, 4), textcoords="offset points", ha="center", fontsize=9
            )
    axes.set_xticks(range(len(groups)), [label.replace(") ", ")\n") for label in groups], fontsize=9)
    axes.set_ylabel(ylabel)
    axes.margins(y=0.08)
    if log:
        round_ticks(axes)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)


def round_ticks(axes: "Axes") -> None:
    """Ticks at 1, 2 and 5 times powers of ten, for values whose logarithms are drawn.

    Where axes are shared, again once all of them are drawn: the limits move until then.
    """
    low, high = axes.get_ylim()
    steps = (1, 2, 5) if high - low < 3.2 else (1,)
    powers = range(int(np.floor(low)), int(np.ceil(high)) + 1)
    ticks = [step * 10.0**power for power in powers for step in steps]
    shown = [tick for tick in ticks if low <= np.log10(tick) <= high]
    if len(shown) > 1:
        axes.set_yticks([float(np.log10(tick)) for tick in shown], [_round(tick) for tick in shown])
    else:
        axes.yaxis.set_major_formatter(lambda value, _: f"{10.0**value:,.6g}")


def _round(tick: float) -> str:
    return f"{tick:,.0f}" if tick >= 1 else f"{tick:g}"


def _synthesizers(source: Source) -> Mapping[str, Synthesizer]:
    if isinstance(source, Comparison):
        return source.synthesizers
    if isinstance(source, Synthesizer):
        return {source.settings.standard.label: source}
    return source
