"""A model is a check and four functions; everything else is made from them."""

import numpy as np
import pytest
from helpers.own_model import Level

import hedgerow as hr
from hedgerow.errors import SettingError
from hedgerow.models import reductions
from hedgerow.models.base import Model
from hedgerow.models.correctable import Correctable, require_correctable, require_stand_in
from hedgerow.models.scored import Interval, Linear, Opaque
from hedgerow.numerics.scoring import Extremes
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table

DATA = hr.datasets.family("normal", n=60, seed=3)[["x"]]


def drawn(records=60):
    design = designs.build("x ~ 1", Table.of(DATA[:records]))
    draws = Level().sample(design, np.ones(records), draws=50, key=Key.from_seed(1)).parameters
    return design, draws, Interval(design.values - 0.5, design.values + 1, np.ones(records, dtype=bool))


def test_a_model_is_a_check_and_four_functions():
    assert Model.__abstractmethods__ == {"check", "sample", "log_lik", "log_mass", "predict"}
    others = {name for name in vars(Model) if not name.startswith("_")} - Model.__abstractmethods__
    assert others == {"columns", "domain"}


@pytest.mark.parametrize("standard", [hr.ADP(), hr.RangeTruncated(hr.Bounds(-50.0, 50.0))])
@pytest.mark.parametrize("sampling", ["independent", "stratified"])
def test_it_goes_through_the_whole_recipe(standard, sampling):
    settings = {"standard": standard, "sampling": sampling, "draws": 200, "seed": 1}
    synth = hr.Synthesizer("x ~ 1", Level(), **settings).fit(DATA)
    assert len(synth.sample().tables[0]) == len(DATA)
    assert 0 < synth.oscillation_epsilon_ <= synth.lipschitz_epsilon_


@pytest.mark.parametrize("block", [1, 77, 10_000])
def test_reductions_in_blocks_are_those_of_the_whole_matrix(monkeypatch, block):
    monkeypatch.setattr(reductions, "_BLOCK_CELLS", block)
    design, draws, interval = drawn()
    every = slice(None)
    f, g = Level().log_lik(design, draws, every), Level().log_mass(design, draws, interval, every)
    rising = np.linspace(0.1, 1, 60)
    for part in (Linear(rising, -rising, rising), Opaque(lambda records, f, g: (f - g) ** 2)):
        d = part(every, f, g)
        got = reductions.extremes(Level(), design, draws, part, interval)
        np.testing.assert_array_equal((got.low, got.high), (d.min(axis=0), d.max(axis=0)))
        largest = reductions.absolute(Level(), design, draws, part, interval)
        np.testing.assert_array_equal(largest, np.abs(d).max(axis=0))
    np.testing.assert_allclose(
        reductions.mean_mass(Level(), design, draws, interval), np.exp(g).mean(axis=0), rtol=1e-14
    )


def test_a_model_may_have_faster_reductions():
    class Fast(Level):
        def extremes(self, *_):
            return Extremes(np.zeros(60), np.ones(60))

        def absolute(self, *_):
            return np.full(60, 7.0)

        def mean_mass(self, *_):
            return np.full(60, 0.5)

    design, draws, interval = drawn()
    part = Linear(*np.ones((3, 60)))
    assert reductions.extremes(Fast(), design, draws, part, interval).high.max() == 1
    assert reductions.absolute(Fast(), design, draws, part, interval).max() == 7
    assert reductions.mean_mass(Fast(), design, draws, interval).max() == 0.5


def test_corrections_are_inherited_and_not_a_matter_of_names():
    class Named(Level):
        tables = 3
        free = natural = stand_in = centre = chance = within = lambda *_: None

    for need in (require_correctable, require_stand_in):
        with pytest.raises(SettingError, match="the level model"):
            need(Named())
    assert isinstance(hr.Normal(), Correctable)
    assert require_stand_in(hr.Lognormal()).tables == 6
