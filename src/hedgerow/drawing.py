"""Pictures from plain columns: violins, losses, prices by draws and by records.

Nothing here knows of fits or synthesizers; whoever calls says what the numbers are. What is drawn from
confidential numbers is confidential.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hedgerow.arrays import Array, PerDraw, PerRecord

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: distinguishable with every common kind of colour blindness.
PALETTE = ("#999999", "#E69F00", "#56B4E9", "#0072B2", "#009E73", "#CC79A7", "#D55E00", "#F0E442")
_ACROSS = 4  # panels in a row
DATA = "Data"  # the confidential outcome, drawn in a colour of its own


def violins(groups: Mapping[str, Array], ylabel: str, **options: Any) -> "Figure":
    """One violin per group with its median marked; few or equal values become dots. As `draw_violins`."""
    figure, axes = _figure(max(4.0, 1.35 * len(groups) + 1.2), 4.2)
    draw_violins(axes, groups, ylabel, **options)
    return figure


def panels(names: Sequence[str], draw: "Callable[[Axes, str], None]", *, groups: int) -> "Figure":
    """A panel for each name, four in a row at most; `groups` violins stand in each."""
    from matplotlib.figure import Figure

    across = min(len(names), _ACROSS)
    down = -(-len(names) // across)
    width = max(4.0, 1.35 * groups + 1.2)
    figure = Figure(figsize=(across * width, down * 4.2), layout="constrained")
    every = figure.subplots(down, across, squeeze=False).ravel()
    for axes, name in zip(every, names, strict=False):
        draw(axes, name)
    for axes in every[len(names) :]:
        axes.remove()
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
    """Draws violins on given axes. Groups that `colours` does not name take the palette in turn."""
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
        words = [f"{tick:,.0f}" if tick >= 1 else f"{tick:g}" for tick in shown]
        axes.set_yticks([float(np.log10(tick)) for tick in shown], words)
    else:
        axes.yaxis.set_major_formatter(lambda value, _: f"{10.0**value:,.6g}")


def losses(
    fixed: PerRecord,
    chosen: NDArray[np.int64],
    recomputed: PerRecord,
    reverse: PerRecord,
    *,
    epsilon: float,
    kind: str,
) -> "Figure":
    """An audit's losses with weights fixed and recomputed, the largest first, against the stated price."""
    figure, axes = _figure(7.0, 4.2)
    order = np.argsort(-fixed, kind="stable")
    place = np.empty(len(order))
    place[order] = np.arange(1, len(order) + 1)
    label = f"weights fixed ({len(order)} records)"
    axes.plot(place[order], fixed[order], ".", color=PALETTE[3], markersize=4, label=label)
    highest = fixed.copy()
    if len(chosen):
        highest[chosen] = np.maximum(highest[chosen], recomputed)
        label = f"weights recomputed ({len(chosen)})"
        again = place[chosen], recomputed
        axes.vlines(again[0], fixed[chosen], again[1], color=PALETTE[1], linewidth=0.8)
        axes.plot(*again, "D", color=PALETTE[1], markeredgecolor="black", markersize=5, label=label)
        if np.isfinite(reverse).any():
            label = "the same, at draws of the posterior without the record"
            axes.plot(again[0], reverse, "_", color=PALETTE[6], markersize=7, label=label)
    axes.axhline(epsilon, color="black", linewidth=1, linestyle="--", label="stated price of one copy")
    for record in np.argsort(-highest, kind="stable")[:5]:
        colour = PALETTE[6] if highest[record] > epsilon else "black"
        axes.annotate(
            f"{record}", (place[record], highest[record]), xytext=(5, 3), textcoords="offset points",
            fontsize=8, rotation=40, color=colour,
        )  # fmt: skip
    axes.set_xscale("log")
    heights = np.array([epsilon, *highest, *reverse])
    axes.set_ylim(0, 1.12 * float(heights[np.isfinite(heights)].max()))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set(
        xlabel="record, by its loss with weights fixed", ylabel="largest |privacy loss|, outcome withheld"
    )
    _finish(axes, f"Audit (confidential): {kind}; a lower bound on the loss")
    return figure


def price_by_draws(
    maxima: PerDraw, factor: float, price_at: Callable[[int], float], *, settled: bool
) -> "Figure":
    """The price as draws were added, in the order they were made, and what its tail foretells beyond them."""
    figure, axes = _figure(6.0, 4.0)
    seen = factor * np.maximum.accumulate(maxima)
    counts = np.arange(1, len(seen) + 1)
    axes.step(counts[9:], seen[9:], where="post", color=PALETTE[3], label="these draws")
    many = np.geomspace(max(10, len(seen) // 10), 100 * len(seen), 60)
    expected = [price_at(int(count)) for count in many]
    axes.plot(many, expected, color=PALETTE[1], label="expected, from a generalised Pareto tail")
    axes.axvline(len(seen), color="black", linewidth=0.6, linestyle=":")
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set(xlabel="draws", ylabel="price of one copy, ε")
    _finish(axes, f"Draws (confidential): the price {'has settled' if settled else 'has not settled'}")
    return figure


def price_by_records(columns: Mapping[str, Sequence[float]]) -> "Figure":
    """Each bound against the number of records; dashed: with the outcome withheld."""
    figure, axes = _figure(6.0, 4.0)
    bounds = [name.removeprefix("withheld_") for name in columns if name.startswith("withheld_")]
    for bound, colour in zip(bounds, PALETTE[1:], strict=False):
        own, withheld = np.asarray(columns[bound]), np.asarray(columns[f"withheld_{bound}"])
        if np.isfinite(own).any():
            axes.plot(columns["n"], own, "o-", color=colour, label=bound)
        if np.isfinite(withheld).any() and not np.allclose(own, withheld):
            axes.plot(columns["n"], withheld, "o--", color=colour, label=f"{bound}, withheld")
    axes.loglog()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,.4g}")
        axis.set_minor_formatter(lambda value, _: f"{value:,.4g}" if f"{value:e}"[0] in "25" else "")
    axes.tick_params(which="both", labelsize=9, pad=4)
    axes.set(xlabel="records", ylabel="price of one copy, ε")
    _finish(axes, "Contraction (confidential)")
    return figure


def _figure(width: float, height: float) -> "tuple[Figure, Axes]":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _finish(axes: "Axes", title: str) -> None:
    axes.set_title(title, fontsize=9, loc="left")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", linewidth=0.4, alpha=0.5)
