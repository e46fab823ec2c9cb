"""A real browser, offline: Debian's Chromium driven by Playwright.

Where either is missing these tests are skipped, unless HEDGEROW_REQUIRE_BROWSER=1 says that they may not be.
"""

import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.privacy.columns import Column
from hedgerow.release.plan import About

CHROMIUM = shutil.which("chromium")
HOSTILE = "<img src=x onerror=alert(1)>"
TURNED = "\u202egnp.exe"
LONG = "n" * 10_000


@dataclass
class Opened:
    """A page as it was opened, and what it did."""

    page: Any
    url: str
    requested: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)  # errors, messages of the console, dialogs


Open = Callable[..., Opened]


def _miss(why: str) -> None:
    if os.environ.get("HEDGEROW_REQUIRE_BROWSER") == "1":
        pytest.fail(f"HEDGEROW_REQUIRE_BROWSER=1, but {why}")
    pytest.skip(why)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _miss("playwright is not installed")
    if CHROMIUM is None:
        _miss("chromium is not installed")
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def axe() -> Any:
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        _miss("axe-playwright-python is not installed")
    return Axe()


@pytest.fixture(scope="session")
def open_page(browser) -> Open:
    """Opens a file in a browser without a network, and records what it asks for; each file once."""
    opened: dict[Path, Opened] = {}

    def open_file(path: Path, *, width: int = 1280, scheme: str = "light") -> Opened:
        if path not in opened:
            new = Opened(browser.new_context(offline=True).new_page(), path.as_uri())
            new.page.on("request", lambda request: new.requested.append(request.url))
            new.page.on("console", lambda message: new.said.append(message.text))
            new.page.on("pageerror", lambda error: new.said.append(str(error)))
            new.page.on("dialog", lambda dialog: (new.said.append(dialog.message), dialog.dismiss()))
            new.page.goto(new.url)
            opened[path] = new
        opened[path].page.set_viewport_size({"width": width, "height": 844})
        opened[path].page.emulate_media(color_scheme=scheme)
        return opened[path]

    return open_file


@pytest.fixture(scope="session")
def release(tmp_path_factory) -> Path:
    """A small release of two columns, with names that would like to be markup."""
    folder, random = tmp_path_factory.mktemp("browser"), np.random.default_rng(1)
    size = random.integers(1, 300, 60)
    frame = pd.DataFrame({HOSTILE: np.exp(3 + np.log(size) + random.normal(0, 0.6, 60)), TURNED: size})
    frame = frame.assign(**{LONG: random.choice(["a", "b"], 60), "hours": random.normal(38, 3, 60)})
    frame.to_parquet(folder / "t.parquet")
    plan = hr.Plan(
        formula={
            HOSTILE: Column(f"`{HOSTILE}` ~ log(`{TURNED}`)"),
            "hours": Column(f"hours ~ `{HOSTILE}`", "normal"),
        },
        epsilon=60.0,
        draws=100,
        copies=2,
        data=folder / "t.parquet",
        ledger=folder / "l",
        about=About(purpose="<script>alert(1)</script>\nand teaching", contact="data@example.org"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hr.HedgerowWarning)
        return hr.make_release(plan, folder / "release").folder
