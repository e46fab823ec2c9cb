"""Small tables to try things on; none is confidential."""

import numpy as np
import pandas as pd
from scipy.special import expit

from hedgerow.errors import SettingError
from hedgerow.models.families.definition import find_definition

# Stress and number of cycles to failure of 22 specimens, as published by Upadhyay and Peshwani (2008).
_STRESS = (
    145.9, 85.2, 116.4, 87.2, 100.1, 85.8, 99.8, 113.0, 120.4, 86.4, 114.8, 144.5, 91.3, 142.5, 100.5,
    118.4, 118.6, 118.0, 87.31, 80.6, 80.3, 84.3,
)  # fmt: skip
_CYCLES = (
    5733, 13949, 15616, 56723, 12076, 152680, 43331, 18067, 9750, 156725, 21300, 6705, 112002, 11865,
    12181, 8489, 12434, 13030, 121075, 200027, 211629, 155000,
)  # fmt: skip
_NOT_IN_THE_PAPER = (5733, 112002, 155000)  # cycles of the other three


def lognormal(n: int = 2000, seed: int = 1) -> pd.DataFrame:
    """The paper's simulated data: z ~ Normal(2, 1), x ~ Lognormal(z + 1, 1); columns x and z."""
    random = _generator(n, seed)
    z = random.normal(2.0, 1.0, n)
    return pd.DataFrame({"x": np.exp(z + 1.0 + random.normal(0.0, 1.0, n)), "z": z})


def payroll(n: int = 1000, seed: int = 1) -> pd.DataFrame:
    """A made-up establishment file: payroll in whole dollars, employees, industry, region.

    Simulated: employees is a skewed count, and log payroll is linear in its logarithm with an effect of
    industry and normal errors.
    """
    random = _generator(n, seed)
    effect = {"farming": -0.3, "trade": -0.1, "services": 0.0, "manufacturing": 0.3}
    industry = random.choice(np.array(list(effect)), n, p=[0.1, 0.35, 0.4, 0.15])
    employees = 1 + np.floor(np.exp(random.normal(2.0, 1.2, n))).astype(np.int64)
    level = 10.4 + 1.02 * np.log(employees) + np.array([effect[name] for name in industry])
    paid = np.rint(np.exp(level + random.normal(0.0, 0.6, n))).astype(np.int64)
    region = random.choice(np.array(["north", "south", "west"]), n)
    return pd.DataFrame({"payroll": paid, "employees": employees, "industry": industry, "region": region})


def fatigue(paper: bool = False) -> pd.DataFrame:
    """Accelerated life testing: the stress on a specimen and the cycles it survived; 22 published rows.

    The mean, median and 90 % quantile that the paper prints for its confidential data (57771, 15616,
    165385) belong to 19 of them; `paper=True` returns those.
    """
    rows = pd.DataFrame({"stress": _STRESS, "cycle": _CYCLES})
    return rows[~rows["cycle"].isin(_NOT_IN_THE_PAPER)].reset_index(drop=True) if paper else rows


def family(name: str, n: int = 1000, seed: int = 1) -> pd.DataFrame:
    """Simulated data of a family's own kind: x, and z ~ Normal(2, 1) that it depends on.

    A `zero_` family has a spike at zero of about a quarter of the records. Classes of "ordinal" are 1 to 4,
    those of "categorical" and "dirichlet" 1 to 3; the latter has z in whole numbers, for its cells.
    """
    definition = find_definition(name)
    random = _generator(n, seed)
    z = random.normal(2.0, 1.0, n)
    z = np.rint(z) if definition.domain.crossed else z
    x = np.asarray(definition.simulate(random, z), dtype=np.float64)
    if name != definition.name:
        x = np.where(random.uniform(size=n) < expit(-1.0 + 0.3 * (z - 2)), 0.0, x)
    return pd.DataFrame({"x": x.astype(np.int64) if definition.domain.whole else x, "z": z})


def _generator(n: int, seed: int) -> np.random.Generator:
    if n < 1:
        raise SettingError(f"n must be at least 1, got {n}.")
    return np.random.default_rng(seed)
