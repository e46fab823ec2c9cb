"""Effective draws per second: hedgerow's independent draws, its NUTS by nutpie, and Stan, on one posterior.

    python -m bench.stan --stan PYTHON [--records 2000] [gamma beta negative_binomial ordinal]

PYTHON is the interpreter of Stan's own environment (README.md); without it Stan is left out. All contenders
run one after the other in one run; compilation is apart.
"""

import argparse
import json
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import hedgerow as hr
from bench.sampling import SETTINGS
from bench.stan.models import GUESSES, PROGRAMS
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table

CHAINS, WARMUP, DRAWS = 4, 400, 250  # per chain
ORDER = ("mean", "deviation", "C", "centre", "root")


def build(name: str, sampler: str, records: int) -> tuple[Any, Any]:
    """The family and its own kind of table."""
    model = hr.Family(name, sampler=sampler, thin=1, **SETTINGS.get(name, {}))
    table = Table.of(hr.datasets.family(name, n=records, seed=1))
    return model, designs.build("x ~ z", table, model.columns, model.domain.classes)


def effective(draws: np.ndarray) -> float:
    """The smallest bulk ESS over parameters; draws by chain."""
    import arviz

    return float(arviz.ess(arviz.convert_to_dataset({"value": draws}), method="bulk")["value"].min())


def own(name: str, sampler: str, records: int) -> tuple[float, float]:
    """Seconds and effective draws of a second fit: the first one compiles."""
    model, design = build(name, sampler, records)
    power = np.ones(records)
    model.sample(design, power, draws=CHAINS * DRAWS, key=Key.from_seed(0))
    began = time.perf_counter()
    sample = model.sample(design, power, draws=CHAINS * DRAWS, key=Key.from_seed(1))
    seconds = time.perf_counter() - began
    rows = np.column_stack([value.reshape(CHAINS * DRAWS, -1) for value in sample.parameters.values()])
    return seconds, effective(rows.reshape(DRAWS, CHAINS, -1).swapaxes(0, 1))  # chains alternate


def stan(name: str, interpreter: str, records: int) -> tuple[float, float]:
    """The same by Stan, in its own environment."""
    model, design = build(name, "independent", records)
    arrays = model._arrays(design)
    data: dict[str, Any] = dict(zip(ORDER, (part.tolist() for part in arrays["beta"]), strict=True))
    data |= {"n": records, "k": arrays["X"].shape[1], "X": arrays["X"].tolist()}
    data |= {"guess": float(np.log(GUESSES[name])), "spread": 2.0, "x": model._values(design).tolist()}
    if name == "ordinal":
        data["classes"] = 4
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "program.stan").write_text(PROGRAMS[name])
        (home / "data.json").write_text(json.dumps(data))
        counts = (str(count) for count in (CHAINS, WARMUP, DRAWS))
        peer = str(Path(__file__).parent / "peer.py")
        done = subprocess.run(
            [interpreter, peer, "program.stan", "data.json", "draws.npy", *counts],
            capture_output=True, text=True, check=True, cwd=home,
        )  # fmt: skip
        said = next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))
        return json.loads(said.removeprefix("RESULT"))[0], effective(np.load(home / "draws.npy"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("families", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--stan", help="the interpreter of Stan's environment")
    parser.add_argument("--records", type=int, default=2000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| family | contender | sampling s | effective draws | per second |")
    print("| --- | --- | ---: | ---: | ---: |")
    for name in given.families:
        contenders = {
            "independent": lambda name=name: own(name, "independent", given.records),
            "nutpie": lambda name=name: own(name, "nutpie", given.records),
        }
        if given.stan:
            contenders["Stan"] = lambda name=name: stan(name, given.stan, given.records)
        for contender, run in contenders.items():
            seconds, draws = run()
            rate = f"{draws / seconds:,.0f}"
            print(f"| {name} | {contender} | {seconds:.2f} | {draws:.0f} | {rate} |", flush=True)


if __name__ == "__main__":
    main()
