"""One seeded release per standard and family: SHA-256 of its copies, draws, guarantee and certificate.

Work on the inside of the package must not change what a seed leads to. Write the digests before a change and
compare them after it:

    python tests/golden/releases.py --write before.json
    python tests/golden/releases.py --compare before.json

Where a mended fault changes bytes on purpose, the changelog says which and why. Digests hold for one machine
and one set of installed versions, so that they are not kept in the repository.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import hedgerow as hr

EXACT = ("normal", "lognormal", "asinh")
SAMPLED = (
    "gamma", "weibull", "log_student", "lognormal_mixture", "beta", "poisson", "negative_binomial",
    "bernoulli",
    "ordinal", "zero_normal", "zero_lognormal", "zero_gamma", "zero_weibull", "zero_log_student",
    "zero_lognormal_mixture", "zero_beta", "student", "zero_student", "zero_asinh",
)  # fmt: skip
NARROW = hr.Prior(intercept=(0.5, 0.5), slope=(0.8, 0.5))
BOX = {"Intercept": (-2, 3), "z": (-1, 2), "sigma": (0.4, 2.5)}


def standards(family: str) -> dict[str, dict[str, object]]:
    """Settings that between them reach every standard, bound, weight and way of synthesis."""
    known = hr.Radius(0.4, 1.8) if family == "lognormal" else hr.Brackets([-np.inf, 0.5, 2.5, np.inf])
    if family not in EXACT:  # a Markov chain takes seconds, and a thousand draws to be healthy
        found = {"adp": {"draws": 1000}, "truncated": {"standard": hr.RangeTruncated(known), "draws": 1000}}
        if family == "gamma":
            found["adp, target"] = {"epsilon": 30.0, "draws": 1000}
            found["censored"] = {"standard": hr.Censored(), "epsilon": 8.0, "draws": 1000, "prior": NARROW}
        return found
    return {
        "unweighted": {"standard": hr.Unweighted()},
        "adp": {"standard": hr.ADP(), "epsilon": 8.0, "copies": 2},
        "averaged": {"standard": hr.RangeAveraged(known)},
        "truncated": {"standard": hr.RangeTruncated(known)},
        "truncated, as printed": {"standard": hr.RangeTruncated(known, public_weight="one")},
        "averaged, simulated": {"standard": hr.RangeAveraged(known), "known": "simulated"},
        "exact": {"bound": "exact", "weights": hr.SoftmaxWeights(), "epsilon": 6.0},
        "recommended": {"preset": "recommended", "epsilon": 12.0, "copies": 2},
        "cap, corrected": {
            "weights": hr.CapWeights(2.0, risk="oscillation"), "bound": "oscillation", "debias": True,
            "sampling": "stratified", "epsilon": 4.0, "copies": 2,
        },
        "corrected": {"debias": True, "epsilon": 8.0, "weights": hr.LogisticWeights()},
        "reweighted": {"weights": hr.Reweighted(hr.InverseWeights())},
        "strict": {"standard": hr.Strict(BOX), "epsilon": 2.0, "copies": 2},
    }  # fmt: skip


def cases(families: tuple[str, ...]) -> Iterator[tuple[str, str, dict[str, object]]]:
    for family in families:
        for name, settings in standards(family).items():
            yield family, name, settings


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def release(family: str, settings: dict[str, object]) -> dict[str, str]:
    """The digests of one seeded release, or of the refusal it meets."""
    table = hr.datasets.family(family, n=80, seed=3)
    chosen: object = hr.Family("ordinal", lower=1, upper=4) if family == "ordinal" else family
    if family.endswith(("asinh", "student")) and "log" not in family:
        chosen = hr.Family(family, scale=1.0)
    try:
        synth = hr.Synthesizer("x ~ z", chosen, seed=11, **({"draws": 400} | settings)).fit(table)  # type: ignore[arg-type]
        sample = synth.sample()
    except hr.HedgerowError as error:
        return {"refused": f"{type(error).__name__}: {error}"}
    draws = synth.to_arviz().posterior
    return {
        "copies": digest(*(np.ascontiguousarray(copy[c]).tobytes() for copy in sample.tables for c in copy)),
        "draws": digest(*(np.ascontiguousarray(draws[name].values).tobytes() for name in sorted(draws))),
        "records": digest(*(np.ascontiguousarray(synth.records_[c]).tobytes() for c in synth.records_)),
        "guarantee": digest(str(sample.guarantee).encode()),
    }


def certificate(folder: Path, standard: object) -> str:
    """The digest of a seeded release's certificate, without what names this run and this machine."""
    data = folder / "payroll.csv"
    hr.datasets.payroll(n=60, seed=2).to_csv(data, index=False)
    plan = hr.Plan(
        formula="payroll ~ employees", epsilon=30.0, copies=2, seed=5, data=str(data), standard=standard,
        ledger=str(folder / "ledger.sqlite"),
    )  # type: ignore[arg-type]  # fmt: skip
    out = folder / "release"
    hr.make_release(plan, out)
    written = json.loads((out / "public" / "certificate.json").read_text())
    for name in ("release", "date", "software", "page"):
        written.pop(name, None)
    return digest(json.dumps(written, sort_keys=True).encode())


def digests(families: tuple[str, ...]) -> dict[str, object]:
    found: dict[str, object] = {}
    for family, name, settings in cases(families):
        found[f"{family}, {name}"] = release(family, settings)
        print(f"{family}, {name}", file=sys.stderr, flush=True)  # noqa: T201 - minutes pass
    for kind in (
        hr.ADP(),
        hr.RangeAveraged(hr.Radius(0.4, 1.8)),
        hr.RangeTruncated(hr.Brackets([0, 1e5, 1e12])),
    ):
        with tempfile.TemporaryDirectory() as folder:
            found[f"certificate, {kind.label}"] = certificate(Path(folder), kind)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path)
    parser.add_argument("--compare", type=Path)
    parser.add_argument("--exact", action="store_true", help="leave out the families that are sampled")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    now = digests(EXACT if given.exact else (*EXACT, *SAMPLED))
    if given.write:
        given.write.write_text(json.dumps(now, indent=1) + "\n")
    if not given.compare:
        return 0
    before = json.loads(given.compare.read_text())
    moved = [name for name in now if now[name] != before.get(name)]
    for name in moved:
        print(f"{name}\n  before {before.get(name)}\n  now    {now[name]}")  # noqa: T201
    print(f"{len(now) - len(moved)} of {len(now)} releases are the same.")  # noqa: T201
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())
