"""What is run and where it is kept: shared by both environments, so NumPy and the standard library only."""

import argparse
import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

SIZES = (200, 2000)
EPSILONS = (1.0, 5.7)
SEEDS = tuple(range(1, 11))  # of hr.datasets.lognormal
DELTA = 1e-6  # well below 1/n for both sizes
RESULTS = Path(__file__).parents[1] / "results" / "rival"


@dataclass(frozen=True)
class Grid:
    """Public bins of equal width: z from −2 to 6, log x from −3 to 9. Values beyond fall into the outer bins.

    The ends are some four standard deviations either side of the simulation's means, and no table was looked
    at: knowledge that is a gift to whoever bins, as the box is to strict mode.
    """

    width: float
    z_ends: tuple[float, float] = (-2.0, 6.0)
    y_ends: tuple[float, float] = (-3.0, 9.0)

    @property
    def z(self) -> np.ndarray:
        return self._edges(self.z_ends)

    @property
    def y(self) -> np.ndarray:
        return self._edges(self.y_ends)

    @property
    def label(self) -> str:
        return f"{len(self.z) - 1} × {len(self.y) - 1}"

    def _edges(self, ends: tuple[float, float]) -> np.ndarray:
        return np.linspace(*ends, round((ends[1] - ends[0]) / self.width) + 1)


GRIDS = (Grid(1.0), Grid(0.5))


@dataclass(frozen=True)
class Case:
    """One table and one target."""

    n: int
    epsilon: float
    seed: int

    @property
    def name(self) -> str:
        return f"n{self.n}-e{self.epsilon:g}-s{self.seed:02d}"

    def table(self, out: Path) -> Path:
        return out / "tables" / f"n{self.n}-s{self.seed:02d}.csv"


@dataclass(frozen=True)
class Copy:
    """One synthetic table, and how it came about."""

    method: str
    output: str  # how values were drawn from what was released
    guarantee: str  # a key of bench.rival.table.GUARANTEES
    n: int
    epsilon: float
    seed: int
    file: str  # under the folder of results
    seconds: float  # of processor time for the fit, shared by its outputs
    detail: str = ""

    @property
    def case(self) -> Case:
        return Case(self.n, self.epsilon, self.seed)


class Shelf:
    """A folder of synthetic CSVs with a list of them, a JSON line each; a stopped run goes on from there."""

    def __init__(self, out: Path, maker: str) -> None:
        self.out, self.maker = out, maker
        self.list = out / f"{maker}.jsonl"
        lines = self.list.read_text().splitlines() if self.list.exists() else []
        self.copies = [Copy(**json.loads(line)) for line in lines]

    def has(self, method: str, output: str, case: Case) -> bool:
        return any((copy.method, copy.output, copy.case) == (method, output, case) for copy in self.copies)

    def add(
        self, method: str, guarantee: str, case: Case, outputs: dict, *, seconds: float, detail: str = ""
    ) -> None:
        """Keep the copies of one fit, {output: (x, z)}; listed together, so that none is half there."""
        made = []
        for output, (x, z) in outputs.items():
            slug = "-".join(re.findall(r"[a-z0-9]+", f"{method} {output}".lower()))
            file = f"{self.maker}/{slug}/{case.name}.csv"
            write(self.out / file, x, z)
            made.append(
                Copy(method, output, guarantee, **asdict(case), file=file, seconds=seconds, detail=detail)
            )
        with self.list.open("a") as stream:
            stream.write("".join(json.dumps(asdict(copy), ensure_ascii=False) + "\n" for copy in made))
        self.copies += made


def write(path: Path, x: np.ndarray, z: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savetxt(path, np.column_stack([x, z]), delimiter=",", header="x,z", comments="", fmt="%.17g")


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    x, z = np.loadtxt(path, delimiter=",", skiprows=1, unpack=True)
    return x, z


def arguments(doc: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of results")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="how many of the ten tables")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    return parser


def cases(given: argparse.Namespace) -> list[Case]:
    """Seed by seed, so that a run stopped early has whole seeds."""
    return [
        Case(n, epsilon, seed) for seed in SEEDS[: given.seeds] for n in given.sizes for epsilon in EPSILONS
    ]
