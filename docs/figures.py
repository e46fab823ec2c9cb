"""Draw the figures of the documentation, from simulated data only: python docs/figures.py"""

from pathlib import Path

import hedgerow as hr

HERE = Path(__file__).parent / "figures"
STANDARDS = {
    "Unweighted": hr.Unweighted(),
    "(-Inf, Inf)": hr.ADP(),
    "(0.4, 1.8) avg": hr.RangeAveraged(hr.Radius(0.4, 1.8)),
    "(0.4, 1.8) trunc": hr.RangeTruncated(hr.Radius(0.4, 1.8)),
    "(0.6, 1.2) avg": hr.RangeAveraged(hr.Radius(0.6, 1.2)),
    "(0.6, 1.2) trunc": hr.RangeTruncated(hr.Radius(0.6, 1.2)),
}

if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    comparison = hr.compare("x ~ z", hr.datasets.lognormal(n=2000, seed=1), standards=STANDARDS, seed=1)
    comparison.plot("lipschitz").savefig(HERE / "lipschitz.png", dpi=110)
