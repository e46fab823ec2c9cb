"""Small tables to try things on; none is confidential."""

import numpy as np
import pandas as pd
from scipy.special import expit

from hedgerow.errors import SettingError
from hedgerow.models.families.definition import find_definition

# Stress and number of cycles to failure of 22 specimens, as published by Upadhyay and Peshwani (2008).
_FATIGUE = (
    (145.90, 5733),
    (85.20, 13949),
    (116.40, 15616),
    (87.20, 56723),
    (100.10, 12076),
    (85.80, 152680),
    (99.80, 43331),
    (113.00, 18067),
    (120.40, 9750),
    (86.40, 156725),
    (114.80, 21300),
    (144.50, 6705),
    (91.30, 112002),
    (142.50, 11865),
    (100.50, 12181),
    (118.40, 8489),
    (118.60, 12434),
    (118.00, 13030),
    (87.31, 121075),
    (80.60, 200027),
    (80.30, 211629),
    (84.30, 155000),
)
_NOT_IN_THE_PAPER = ((145.90, 5733), (91.30, 112002), (84.30, 155000))


def lognormal(n: int = 2000, seed: int = 1) -> pd.DataFrame:
    """The paper's simulated data: z ~ Normal(2, 1), x ~ Lognormal(z + 1, 1); columns x and z."""
    if n < 1:
        raise SettingError(f"n must be at least 1, got {n}.")
    random = np.random.default_rng(seed)
    z = random.normal(2.0, 1.0, n)
    x = np.exp(z + 1.0 + random.normal(0.0, 1.0, n))
    return pd.DataFrame({"x": x, "z": z})


def payroll(n: int = 1000, seed: int = 1) -> pd.DataFrame:
    """A made-up establishment file: payroll in whole dollars, employees, industry, region.

    Simulated: employees is a skewed count, and log payroll is linear in its logarithm with an effect of
    industry and normal errors.
    """
    if n < 1:
        raise SettingError(f"n must be at least 1, got {n}.")
    random = np.random.default_rng(seed)
    industries = np.array(["farming", "trade", "services", "manufacturing"])
    effect = {"farming": -0.3, "trade": -0.1, "services": 0.0, "manufacturing": 0.3}
    industry = random.choice(industries, n, p=[0.1, 0.35, 0.4, 0.15])
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
    rows = [row for row in _FATIGUE if not paper or row not in _NOT_IN_THE_PAPER]
    return pd.DataFrame(rows, columns=["stress", "cycle"])


def family(name: str, n: int = 1000, seed: int = 1) -> pd.DataFrame:
    """Simulated data of a family's own kind: x, and z ~ Normal(2, 1) that it depends on.

    A `zero_` family has a spike at zero of about a quarter of the records. Classes of "ordinal" are 1 to 4.
    """
    definition = find_definition(name)
    if n < 1:
        raise SettingError(f"n must be at least 1, got {n}.")
    random = np.random.default_rng(seed)
    z = random.normal(2.0, 1.0, n)
    x = np.asarray(definition.simulate(random, z), dtype=np.float64)
    if name != definition.name:
        x = np.where(random.uniform(size=n) < expit(-1.0 + 0.3 * (z - 2)), 0.0, x)
    return pd.DataFrame({"x": x.astype(np.int64) if definition.domain.whole else x, "z": z})
