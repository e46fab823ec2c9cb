"""The paper's table for the application: as CSV, Markdown, and drawn."""

import io
from pathlib import Path

import pandas as pd

from hedgerow_studies.paper import application, setup
from hedgerow_studies.paper.claims.application import CONFIDENTIAL, PRIORS, ROWS, TABLE
from hedgerow_studies.paper.store import write
from hedgerow_studies.paper.tasks import Tables

NAME = "table1-app-utility"
_TITLES = {"mean": "Mean", "median": "Median", "q90": "90th Q"}


def tidy(tables: Tables) -> pd.DataFrame:
    """One row per prior, statistic and synthesizer: mean over copies, its error, and what is printed."""
    utility = tables["utility"]
    rows = []
    for prior in PRIORS:
        for name in ROWS:
            for label in setup.SIX:
                here = (utility["prior"] == prior) & (utility["standard"] == label)
                part = utility[here & (utility["statistic"] == name)]
                fits = part.groupby("replicate")["synthetic"].mean()
                rows.append(
                    {
                        "prior": prior,
                        "statistic": name,
                        "standard": label,
                        "value": part["synthetic"].mean(),
                        "standard_error": fits.std() / len(fits) ** 0.5,
                        "spread_over_copies": part["synthetic"].std(),
                        "printed": TABLE[name].get(label, TABLE[name][setup.WEIGHTED]),
                        "confidential": CONFIDENTIAL[name],
                    }
                )
    return pd.DataFrame(rows)


def save(tables: Tables, folder: Path) -> None:
    """The table in four formats."""
    import matplotlib
    from matplotlib.figure import Figure

    table = tidy(tables)
    write(folder / f"{NAME}.csv", table.to_csv(index=False, lineterminator="\n").encode())
    head, body = _cells(table)
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join(['---', *['---:'] * (len(head) - 1)])} |"]
    lines += [f"| {' | '.join(row)} |" for row in body]
    write(folder / f"{NAME}.md", ("\n".join(lines) + "\n").encode())
    figure = Figure(figsize=(12.5, 0.36 * (len(body) + 2)), layout="constrained")
    axes = figure.subplots()
    axes.axis("off")
    axes.set_title("Table 1. Utility of the copies of the fatigue data", fontsize=11, loc="left")
    drawn = axes.table(body, colLabels=head, loc="center", cellLoc="right", colWidths=[0.26, *[0.105] * 7])
    drawn.auto_set_font_size(False)
    drawn.set_fontsize(9)
    drawn.scale(1, 1.35)
    for (row, column), cell in drawn.get_celld().items():
        cell.set_linewidth(0.4)
        if column == 0:
            cell.set_text_props(ha="left")
        if row == 0:
            cell.set_facecolor("#e6e6e6")
    with matplotlib.rc_context({"svg.hashsalt": "hedgerow", "svg.fonttype": "path"}):
        for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, dpi=110, metadata=metadata)
            write(folder / f"{NAME}.{kind}", buffer.getvalue())


def _cells(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    head = ["", "confidential", *setup.SIX]
    body = []
    for name, title in _TITLES.items():
        part = table[table["statistic"] == name]
        printed = part[part["prior"] == application.AUTHORS].set_index("standard")["printed"]
        truth = f"{CONFIDENTIAL[name]}"
        body.append([f"{title}, as printed", truth, *(f"{printed[label]:.0f}" for label in setup.SIX)])
        for prior, words in PRIORS.items():
            here = part[part["prior"] == prior].set_index("standard")["value"]
            body.append([f"{title}, {words}", truth, *(f"{here[label]:.0f}" for label in setup.SIX)])
    return head, body
