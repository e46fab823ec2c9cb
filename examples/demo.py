"""Synthesize the embedded example under several standards; print what each costs and what it loses.

    python examples/demo.py --out demo

Writes `demo/public` (three copies and their guarantee: what may leave) and `demo/confidential` (violins,
prices and risks: what may not).
"""

import argparse
from pathlib import Path

import hedgerow as hr

WIDE, NARROW = hr.Radius(0.4, 1.8), hr.Radius(0.6, 1.2)
STANDARDS = {
    "Unweighted": hr.Unweighted(),
    "(-Inf, Inf)": hr.ADP(),
    "(0.4, 1.8) avg": hr.RangeAveraged(WIDE),
    "(0.4, 1.8) trunc": hr.RangeTruncated(WIDE),
    "(0.6, 1.2) avg": hr.RangeAveraged(NARROW),
    "(0.6, 1.2) trunc": hr.RangeTruncated(NARROW),
}


def main() -> None:
    """Run the demonstration."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("demo"))
    out = parser.parse_args().out
    public, confidential = out / "public", out / "confidential"
    public.mkdir(parents=True, exist_ok=True)
    confidential.mkdir(mode=0o700, exist_ok=True)

    payroll = hr.datasets.lognormal(n=2000, seed=1)
    print("2000 simulated records, x ~ z, lognormal model, 1000 draws, 5 copies a standard.\n")
    comparison = hr.compare("x ~ z", payroll, standards=STANDARDS, copies=5, seed=1)
    _print_table(comparison)
    for what in ("lipschitz", "alpha", "known", "data", "utility"):
        comparison.plot(what).savefig(confidential / f"{what}.png", dpi=150)
    comparison.table.to_csv(confidential / "prices.csv", index=False)
    comparison.records.to_csv(confidential / "records.csv", index=False)
    comparison.utility.to_csv(confidential / "utility.csv", index=False)

    print("\nNow a release: range-truncated, calibrated to ε = 6 over 3 copies, from system entropy.\n")
    synth = hr.Synthesizer("x ~ z", standard=hr.RangeTruncated(WIDE), epsilon=6.0, copies=3).fit(payroll)
    release = synth.sample()
    for number, copy in enumerate(release.tables, 1):
        copy.to_csv(public / f"synthetic-copy-{number}.csv", index=False)
    (public / "guarantee.txt").write_text(f"{release.guarantee}\n", encoding="utf-8")
    print(release.guarantee)
    print(f"\nMay leave:      {public}/synthetic-copy-1.csv … 3.csv, guarantee.txt")
    print(f"Confidential:   {confidential}/prices.csv, records.csv, utility.csv")
    print(f"Violins:        {confidential}/lipschitz.png, alpha.png, known.png, data.png, utility.png")


def _print_table(comparison: hr.Comparison) -> None:
    prices, utility = comparison.table, comparison.utility
    pooled = utility[utility["copy"] == "pooled"].pivot(
        index="standard", columns="statistic", values="synthetic"
    )
    original = utility[utility["copy"] == "pooled"].drop_duplicates("statistic").set_index("statistic")
    names = ["ε (2Δ)", "oscillation", "exact", "withheld ε", "ECDF max", "median", "Q90"]
    print(f"{'standard':18}" + "".join(f"{name:>13}" for name in names))
    truth = original["original"]
    print(f"{'the data':18}" + f"{'':>13}" * 4 + f"{'':>13}{truth['median']:13.2f}{truth['q90']:13.1f}")
    for row in prices.to_dict("records"):
        lost = pooled.loc[row["standard"]]
        exact = "none" if row["exact"] != row["exact"] else f"{row['exact']:.2f}"
        print(
            f"{row['standard']:18}{row['lipschitz']:13.2f}{row['oscillation']:13.2f}{exact:>13}"
            f"{row['withheld_lipschitz']:13.2f}{lost['ecdf_max']:13.3f}{lost['median']:13.2f}{lost['q90']:13.1f}"
        )
    print("\nwithheld ε: the same fit priced for a neighbour in which the outcome is withheld altogether.")
    print("It stands beside every range price, because a range price never stands alone.")


if __name__ == "__main__":
    main()
