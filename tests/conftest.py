"""Axes named in types are checked at run time while the tests run, each worker on one core."""

import os
import signal

# Matrices here are small: OpenBLAS's threads wait for each other in a loop, which cost four times the work.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):  # before NumPy is imported
    os.environ.setdefault(name, "1")

from helpers.axes import checked_modules  # noqa: E402
from jaxtyping import install_import_hook  # noqa: E402

install_import_hook(checked_modules(), "beartype.beartype")

import numpy as np  # noqa: E402 - after the hook, so that what they import is checked
import pandas as pd  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

import hedgerow as hr  # noqa: E402

settings.register_profile("hedgerow", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("hedgerow")


@pytest.fixture(autouse=True)
def _interrupts():
    """A command that has ended ignores interrupts, which its process does not survive and this one does."""
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def payroll() -> pd.DataFrame:
    """The paper's simulated data."""
    return hr.datasets.lognormal(n=2000, seed=1)


@pytest.fixture(scope="session")
def small() -> pd.DataFrame:
    """Enough for laws that do not need many records."""
    random = np.random.default_rng(5)
    z = random.normal(size=60)
    group = random.choice(["a", "b", "c"], 60)
    x = np.exp(1.0 + 0.5 * z + 0.4 * (group == "b") + random.normal(0, 0.8, 60))
    return pd.DataFrame({"x": x, "z": z, "group": group})
