"""The tables, and hedgerow's copies of them. `--corrected` adds copies whose draw is corrected for bias."""

import time
import warnings
from dataclasses import dataclass

import hedgerow as hr
from bench.rival.plan import Case, Shelf, arguments, cases, write
from hedgerow.errors import CalibrationError

BOX = {"Intercept": (0.0, 2.0), "z": (0.5, 1.5), "sigma": (0.6, 1.6)}
# The truth (1, 1, 1) is the centre of that box, and strict mode's prior sits on the centre: as ε falls the
# copies tend to the truth by luck. A box of that size with the truth near a quarter tells what it is worth.
OFF_CENTRE = {"Intercept": (0.5, 2.5), "z": (0.75, 1.75), "sigma": (0.8, 1.8)}
BECAUSE = "the simulation's own parameters, with room around them"


def methods(epsilon: float) -> dict[str, tuple[str, dict]]:
    """Method -> guarantee and the synthesizer's settings."""
    return {
        "hedgerow Unweighted": ("none", {"standard": hr.Unweighted()}),
        "hedgerow ADP, Lipschitz, linear weights": (
            "lipschitz",
            {"standard": hr.ADP(), "weights": hr.LinearWeights(), "epsilon": epsilon},
        ),
        # The cap is the public target: no record's factor is to move the posterior by more than ε.
        "hedgerow ADP, oscillation, cap weights": (
            "oscillation",
            {
                "standard": hr.ADP(),
                "weights": hr.CapWeights(epsilon, risk="oscillation"),
                "bound": "oscillation",
                "epsilon": epsilon,
            },
        ),
        "hedgerow Strict": ("strict", {"standard": hr.Strict(BOX, reason=BECAUSE), "epsilon": epsilon}),
        "hedgerow Strict, box off centre": (
            "strict",
            {"standard": hr.Strict(OFF_CENTRE, reason=BECAUSE), "epsilon": epsilon},
        ),
    }


@dataclass(frozen=True)
class Variant:
    """What is done with the released draw: post-processing, so the guarantee stays."""

    name: str
    output: str
    settings: dict


PLAIN = Variant("", "z kept, independent", {})
CORRECTED = (
    Variant(", corrected", "z kept, independent", {"debias": True}),
    Variant(", corrected", "z kept, stratified", {"debias": True, "sampling": "stratified"}),
)


def release(shelf: Shelf, case: Case, variant: Variant) -> None:
    data = hr.datasets.lognormal(n=case.n, seed=case.seed)
    for name, (guarantee, setting) in methods(case.epsilon).items():
        if variant is not PLAIN and guarantee == "none":  # nothing to correct
            continue
        method = f"{name}{variant.name}"
        if shelf.has(method, variant.output, case):
            continue
        start = time.process_time()
        synth = hr.Synthesizer(
            "x ~ z", family="lognormal", seed=1000 + case.seed, **setting, **variant.settings
        )
        try:
            copy = synth.fit(data).sample().tables[0]
        except CalibrationError as error:  # said here, and seen in the table as fewer seeds
            print(f"{method}, {case.name}: {error}", flush=True)
            continue
        seconds = time.process_time() - start
        outputs = {variant.output: (copy["x"].to_numpy(), copy["z"].to_numpy())}
        shelf.add(method, guarantee, case, outputs, seconds=seconds)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument(
        "--corrected", action="store_true", help="add copies with debias=True, independent and stratified"
    )
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    shelf = Shelf(given.out, "ours")
    warnings.simplefilter("ignore", hr.HedgerowWarning)  # cap weights and bounds are chosen on purpose
    for case in cases(given):
        if not case.table(given.out).exists():
            data = hr.datasets.lognormal(n=case.n, seed=case.seed)
            write(case.table(given.out), data["x"].to_numpy(), data["z"].to_numpy())
        for variant in (PLAIN, *CORRECTED) if given.corrected else (PLAIN,):
            release(shelf, case, variant)


if __name__ == "__main__":
    main()
