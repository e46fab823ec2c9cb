"""Draw the figures of docs/, from simulated data only: python -m hedgerow_studies.pages.figures"""

import warnings
from pathlib import Path

import hedgerow as hr
from hedgerow.evidence.more_records import contraction

FOLDER = Path("docs/figures")
STANDARDS = {
    "Unweighted": hr.Unweighted(),
    "(-Inf, Inf)": hr.ADP(),
    "(0.4, 1.8) avg": hr.RangeAveraged(hr.Radius(0.4, 1.8)),
    "(0.4, 1.8) trunc": hr.RangeTruncated(hr.Radius(0.4, 1.8)),
    "(0.6, 1.2) avg": hr.RangeAveraged(hr.Radius(0.6, 1.2)),
    "(0.6, 1.2) trunc": hr.RangeTruncated(hr.Radius(0.6, 1.2)),
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    comparison = hr.compare("x ~ z", hr.datasets.lognormal(n=2000, seed=1), standards=STANDARDS, seed=1)
    comparison.plot("lipschitz").savefig(FOLDER / "lipschitz.png", dpi=110)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HedgerowWarning)  # what they warn about is what is drawn
        linear = hr.Synthesizer("x ~ z", bound="oscillation", seed=1).fit(hr.datasets.lognormal(2000, seed=1))
        linear.audit().plot().savefig(FOLDER / "audit.png", dpi=110)
        linear.outlook().plot().savefig(FOLDER / "outlook.png", dpi=110)
        simulated = hr.datasets.lognormal(8000, seed=1)
        sizes = contraction(lambda: hr.Synthesizer("x ~ z", seed=1), simulated, seed=1)
        hr.plot.contraction(sizes).savefig(FOLDER / "contraction.png", dpi=110)
