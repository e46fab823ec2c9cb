"""The command in this process: arguments in, exit code and what was shown out."""

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

import hedgerow as hr
from hedgerow.cli import main


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything shown, with wrapped lines joined."""
        return " ".join((self.out + self.err).split())


@pytest.fixture
def hedgerow(monkeypatch, capsys, tmp_path):
    """Runs `hedgerow ARGUMENTS` in a folder of its own, with a ledger of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEDGEROW_LEDGER", str(tmp_path / "ledger.sqlite"))

    def run(*arguments: object) -> Done:
        monkeypatch.setattr(sys, "argv", ["hedgerow", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        shown = capsys.readouterr()
        return Done(code, shown.out, shown.err)

    return run


@pytest.fixture
def table(tmp_path) -> Path:
    """A small confidential file: whole-number outcome x, predictor z."""
    frame = hr.datasets.lognormal(n=150, seed=3)
    frame = frame.assign(x=(frame["x"] * 1000).round().astype("int64"), z=frame["z"].round(3))
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.fixture
def make(tmp_path, table):
    """Makes a release of the small file by the Python door; warnings and the gauge are not what is tested."""

    def release(name: str = "release", **changes):
        settings = {"formula": "x ~ z", "epsilon": 40.0, "draws": 200, "data": table}
        settings |= {"ledger": tmp_path / "ledger.sqlite", **changes}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hr.HedgerowWarning)
            return hr.make_release(hr.Plan(**settings), tmp_path / name, anyway=True)

    return release
