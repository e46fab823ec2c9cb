"""Small tables to try things on; none is confidential."""

import numpy as np
import pandas as pd

from hedgerow.errors import SettingError


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
