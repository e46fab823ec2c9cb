"""A million records stay far below a draws × records matrix, which alone would take 7.5 GiB."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from pathlib import Path
import hedgerow as hr

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 2**20

data = hr.datasets.lognormal(1_000_000, seed=1)
hr.Synthesizer("x ~ z", seed=1).fit(data.iloc[:500]).sample()
before = peak()
synth = hr.Synthesizer("x ~ z", standard=hr.%s, seed=1, copies=2).fit(data)
synth.oscillation_epsilon_, synth.withheld_epsilon_, synth.records_, synth.sample()
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads peak memory the Linux way")
@pytest.mark.parametrize(
    "standard", ["ADP()", "RangeTruncated(hr.Radius(0.4, 1.8))", "RangeAveraged(hr.Radius(0.4, 1.8))"]
)
def test_a_million_records_take_less_than_a_gibibyte(standard):
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT % standard],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": source, "PATH": ""},
    )
    assert float(done.stdout) < 1.0
