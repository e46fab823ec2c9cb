"""Leaf by leaf gives what the table in memory gives, to the last digit: risks, weights, prices, copies."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.mechanism.streamed.copies import write_leaf
from hedgerow.mechanism.streamed.fit import StreamedFit, stream_weighted
from hedgerow.numerics import leaves as leaves_module
from hedgerow.randomness import Key
from hedgerow.synthesizer import encode
from hedgerow.tables.leaves import Held
from hedgerow.tables.table import Table
from hedgerow.threads import Here

pytestmark = pytest.mark.filterwarnings("ignore::hedgerow.errors.HedgerowWarning")
SEED = 7


@pytest.fixture(autouse=True)
def small_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves_module, "LEAF", 64)


def make_table(n: int = 300) -> pd.DataFrame:
    random = np.random.default_rng(3)
    z = random.normal(size=n)
    group = random.choice(["a", "b", "c"], n)
    x = np.exp(1.0 + 0.5 * z + 0.4 * (group == "b") + random.normal(0, 0.8, n))
    y = 2.0 + 0.3 * z + 0.5 * np.log(x) + random.normal(0, 0.5, n)
    return pd.DataFrame({"x": x, "y": y, "z": z, "group": group, "low": x * 0.5, "high": x * 2.0})


def stream(settings: Any, table: pd.DataFrame) -> tuple[StreamedFit, Held]:
    data = Table.of(table)
    held = Held(data, encode(data, [settings]))
    return stream_weighted(settings, held, key=Key.from_seed(SEED), workers=Here()), held


def joined(held: Held, name: str) -> Any:
    return np.concatenate([held.kept(name, leaf) for leaf in range(held.count)], axis=-1)


def compare(table: pd.DataFrame, formula: Any = "x ~ z + group", **asked: Any) -> StreamedFit:
    """Fit in memory and leaf by leaf, and hold one against the other."""
    synth = hr.Synthesizer(formula, seed=SEED, draws=200, **asked).fit(table, left_out=["low", "high"])
    fit, held = stream(synth.settings, table)
    done = synth._need()
    assert held.count > 3
    np.testing.assert_array_equal(joined(held, "risk"), [done.start.risk.low, done.start.risk.high])
    if synth.settings.standard.weighted:
        np.testing.assert_array_equal(fit.scale * joined(held, "alpha"), done.outcome.weighted.alpha)
    if done.outcome.weighted.known.any():
        np.testing.assert_array_equal(joined(held, "known"), done.outcome.weighted.known)
    np.testing.assert_array_equal(joined(held, "power"), done.outcome.fit.power)
    for name, values in done.outcome.fit.parameters.items():
        np.testing.assert_array_equal(fit.parameters[name], values)
    pricing, bound = done.outcome.pricing, synth.settings.bound
    np.testing.assert_array_equal(joined(held, "price"), bound.by_record(pricing))
    assert (fit.scale, fit.certified) == (done.scale, done.outcome.certified)
    assert (fit.epsilon, fit.total_epsilon) == (done.epsilon, done.total_epsilon)
    assert fit.statement == done.statement
    assert fit.account.withheld.total == bound.total(pricing.withheld, synth.settings.copies)
    for number, copy in enumerate(synth.sample().tables):
        parts = [write_leaf(fit, held, leaf, number) for leaf in range(held.count)]
        made = pd.concat(parts, ignore_index=True).drop(columns=["low", "high"])
        pd.testing.assert_frame_equal(made, copy, check_exact=True)
    return fit


def test_one_column() -> None:
    compare(make_table(), epsilon=3.0, copies=2)
