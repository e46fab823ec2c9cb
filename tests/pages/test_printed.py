"""What pages print is run again by a test, or carries the version it was made with; their Python runs."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hedgerow as hr

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Written anew or run again by tests of their own, in whole.
RUN_AGAIN = {
    "claims.md",
    "honesty.md",
    *(f"families/{path.name}" for path in (DOCS / "families").glob("*.md")),
}
RUN_AGAIN |= {f"tutorials/{path.name}" for path in (DOCS / "tutorials").glob("*.md")}
MADE_WITH = re.compile(r"^\*Measured with hedgerow (\d+\.\d+\.\d+)\.\*$", re.MULTILINE)

# How many of a page's Python blocks run, one after the other, and what has to be there first.
KEY = (
    "import subprocess; subprocess.run(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', 'id_ed25519'])\n"
)
PARQUET = "import hedgerow as hr; hr.datasets.lognormal(300, seed=1).to_parquet('payroll.parquet')\n"
PAYROLL = "import hedgerow as hr; hr.datasets.payroll(300).to_csv('payroll.csv', index=False)\n"
CLASSES = """
import hedgerow as hr, pandas as pd
table = pd.DataFrame({"age": range(20, 60), "income_class": [0.0, 10.0, 50.0, 250.0] * 10})
"""
COMBINE = """
import warnings, hedgerow as hr
warnings.simplefilter("ignore", hr.HedgerowWarning)
hr.datasets.payroll(300).assign(region=["north", "south"] * 150).to_csv("payroll.csv", index=False)
told = {"formula": "payroll ~ log(employees)", "data": "payroll.csv", "outputs": hr.Outputs(receive=True)}
hr.make_release(hr.Plan(**told, standard=hr.Strict(limits=(1e3, 1e9)), epsilon=1, copies=5), "release")
"""
PLAN = """
import hedgerow as hr
from pathlib import Path
hr.datasets.payroll(300).to_parquet("payroll.parquet", index=False)
told = {"formula": "payroll ~ log(employees)", "standard": hr.Strict(limits=(1e3, 1e9)), "epsilon": 1}
Path("plan.yaml").write_text(hr.Plan(**told, data="payroll.parquet").text())
"""
EXAMPLES = {
    "../README.md": (None, ""),
    "bias.md": (None, ""),
    "blowfish.md": (None, CLASSES),
    "cluster.md": (1, PLAN),  # the rest is for SLURM and Kubernetes
    "combine.md": (None, COMBINE),
    "coverage.md": (None, ""),
    "large.md": (None, PARQUET),
    "programs.md": (3, ""),  # the rest is for PyMC, brms and matrices from elsewhere
    "release.md": (None, KEY + PAYROLL),
    "standards.md": (None, ""),
    "strict.md": (None, ""),
    "survey.md": (1, ""),  # the rest is for svy
    "tables.md": (None, ""),
    "utility.md": (None, ""),
    "weights.md": (None, ""),
}


def pages() -> list[str]:
    return sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if "api" not in path.parts)


def prints_figures(text: str) -> bool:
    """Whether a table has decimals outside of code, or an output is shown."""
    rows = re.findall(r"^\|.*$", re.sub(r"`[^`\n]*`", "", text), re.MULTILINE)
    return "```text\n" in text or any(re.search(r"\d\.\d", row) for row in rows)


def version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


@pytest.mark.parametrize("name", [name for name in pages() if name not in RUN_AGAIN])
def test_figures_that_nothing_runs_again_carry_a_version(name):
    text = (DOCS / name).read_text(encoding="utf-8")
    made = MADE_WITH.findall(text)
    assert bool(made) or not prints_figures(text), "end the page with *Measured with hedgerow VERSION.*"
    assert all(version(one) <= version(hr.__version__) for one in made)


def test_every_page_with_python_is_run():
    having = {name for name in pages() if "```python\n" in (DOCS / name).read_text(encoding="utf-8")}
    assert having - RUN_AGAIN == set(EXAMPLES) - {"../README.md"}


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_python_on_a_page_runs(name, tmp_path):
    """In a process of its own: a page may register a family."""
    if name == "release.md" and not shutil.which("ssh-keygen"):
        pytest.skip("needs ssh-keygen")
    count, before = EXAMPLES[name]
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL)[:count]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "XDG_STATE_HOME": str(tmp_path / "state")}
    environment.pop("HEDGEROW_LEDGER", None)
    done = subprocess.run(
        [sys.executable, "-c", before + "\n".join(blocks)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
