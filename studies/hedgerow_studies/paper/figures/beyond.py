"""The second set of figures: every figure of ε under each bound, range standards beside their withheld price.

The paper's ε is the Lipschitz price under the standard's own neighbour. Here the oscillation and the exact
loss stand for the same fits, and to the right of every range standard, hatched, what the same synthesizer
costs when x_i is withheld altogether. The exact loss has no closed form for a truncated range's own
neighbour, nor for a prior that is not conjugate: those violins are absent.
"""

from dataclasses import replace

import pandas as pd

from hedgerow.privacy.bounds import BY_DRAWS
from hedgerow_studies.paper import application, setup
from hedgerow_studies.paper.figures import numbered
from hedgerow_studies.paper.figures.picture import Note, Picture
from hedgerow_studies.paper.tasks import Tables

_WORDS = {"lipschitz": "Lipschitz price", "oscillation": "oscillation", "exact": "exact privacy loss"}


def pictures(study: str, tables: Tables) -> list[Picture]:
    """The second set for one study."""
    found: list[Picture] = []
    if study == "story1":
        six = tables["prices"][tables["prices"]["standard"].isin(setup.SIX)]
        found += _set("fig01-sim-Lbounds-single", "Figure 1", tables["records"], "record", "largest")
        main = six[six["n"] == setup.RECORDS]
        found += _set("fig02-sim-Lbounds-repeated", "Figure 2", main, "replicate", "median")
        sizes = six[six["n"] != setup.RECORDS]
        found += _set("fig05-sim-Lbounds-ns", "Figure 5", sizes, "replicate", "median", panel="n")
    elif study == "story2":
        name = "fig06-sim-Lbounds-single-truncated-similar-eps"
        found += _set(name, "Figure 6", tables["records"], "record", "largest")
    elif study == "story3":
        name = "fig11-sim-Lbounds-top-comparison"
        found += _set(name, "Figure 11", tables["prices"], "replicate", "median")
    else:
        for prior in application.PRIORS:
            records = tables["records"][tables["records"]["prior"] == prior]
            what = f"Figure 15, {'authors’' if prior == application.AUTHORS else 'default'} prior"
            found += _set(f"fig15-app-Lbounds-{prior}", what, records, "record", "largest")
        for picture in numbered.fatigue(tables, application.DEFAULT):
            found.append(_renamed(picture, f"{picture.name}-default-prior"))
    return found


def _set(
    name: str, title: str, rows: pd.DataFrame, unit: str, note: Note, *, panel: str | None = None
) -> list[Picture]:
    keep = [unit] if panel is None else [panel, unit]
    found = []
    for bound in (bound.name for bound in BY_DRAWS):
        table = _beside(rows, bound, keep)
        if len(table):
            found.append(
                Picture(
                    f"{name}-{bound}",
                    f"{title}, {_WORDS[bound]}; hatched: with x withheld",
                    f"{'by-record ' if unit == 'record' else ''}{_WORDS[bound]}",
                    table,
                    log=True,
                    note=note,
                    panel=panel,
                )
            )
    return found


def _beside(rows: pd.DataFrame, bound: str, keep: list[str]) -> pd.DataFrame:
    """Own prices, each range standard followed by its withheld price; rows without a price left out."""
    parts = []
    for label in dict.fromkeys(rows["standard"]):
        here = rows[rows["standard"] == label]
        parts.append(here[[*keep]].assign(standard=label, value=here[bound]))
        if label in setup.RANGED:
            withheld = here[f"withheld_{bound}"]
            parts.append(here[[*keep]].assign(standard=label + setup.WITHHELD, value=withheld))
    table = pd.concat(parts, ignore_index=True)
    # A record of weight zero costs nothing and has no place on a logarithmic axis.
    return table[table["value"] > 0].reset_index(drop=True)


def _renamed(picture: Picture, name: str) -> Picture:
    return replace(picture, name=name)
