"""Strict over boxes of parameters for several columns: ε is shared by a level for each row."""

import numpy as np
import pandas as pd
import pytest

import hedgerow as hr
from hedgerow.mechanism.fit import fit
from hedgerow.models.exact import Normal
from hedgerow.privacy.strict.box import Boxed, BoxedChain, share_by_level
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.chain import ChainDesign
from hedgerow.tables.table import Table

X = {"Intercept": (-1.0, 1.0), "z": (0.5, 1.5), "sigma": (0.5, 2.0)}
Y = {"Intercept": (-1.0, 1.0), "x": (-1.0, 1.0), "sigma": (0.5, 2.0)}
COLUMNS = {"x": hr.Column("x ~ z", "normal"), "y": hr.Column("y ~ x", "normal")}


def pairs(n=300, seed=1):
    random = np.random.default_rng(seed)
    z = random.normal(size=n)
    x = z + random.standard_t(3, size=n)
    return pd.DataFrame({"z": z, "x": x, "y": 0.5 * x + random.normal(size=n)})


def test_a_level_shares_what_a_row_may_move_and_starves_no_column_for_a_wild_one():
    random = np.random.default_rng(2)
    each = random.exponential(size=(500, 4)) * np.array([1, 1, 3, 20])
    each[random.random((500, 4)) < 0.1] = 0.0  # missing values
    total = each.sum(axis=1)
    for epsilon in (0.1, 2.0, 30.0):
        power = np.minimum(1.0, epsilon / np.maximum(total, 1e-300))
        shared = share_by_level(each, power)
        moved = (shared * each).sum(axis=1)
        assert (moved <= epsilon).all()
        np.testing.assert_allclose(moved, power * total, rtol=1e-9)
        equal = np.minimum(1.0, epsilon / 4 / np.maximum(each, 1e-300))
        assert (shared >= equal * (1 - 1e-9)).all()
        # One level: columns below it are whole, the others are cut to it.
        cut = np.where(shared < 1, shared * each, np.nan)
        level = np.nanmax(np.where(np.isnan(cut), -np.inf, cut), axis=1)
        assert np.nanmax(np.abs(cut - level[:, None]) / np.maximum(level[:, None], 1e-300)) < 1e-9
        assert (
            np.where(shared == 1, each, 0.0).max(axis=1)
            <= np.where(np.isinf(level), np.inf, level * (1 + 1e-9))
        ).all()


def test_no_row_moves_the_joint_log_density_by_more_than_epsilon_anywhere_in_the_boxes():
    table = Table.of(pairs(40))
    links = [designs.build(text, table, secret=("x", "y")) for text in ("x ~ z", "y ~ x")]
    design, epsilon = ChainDesign.of(links, table), 1.5
    chain = BoxedChain((Boxed(Normal(), X), Boxed(Normal(), Y)))
    risk = chain.public_risk(design).oscillation
    power = np.minimum(1.0, epsilon / risk)
    random = np.random.default_rng(3)
    far = random.random((20_000, 3)) * 1.4 - 0.2  # beyond the ends, then clipped: corners and edges as well
    total = np.zeros((20_000, 40))
    for box, model, link, own in zip((X, Y), chain.models, links, chain.by_link(design, power), strict=True):
        ends = np.array(list(box.values()))
        place = np.clip(far[random.permutation(20_000)], 0, 1)
        parameters = ends[:, 0] + place * (ends[:, 1] - ends[:, 0])
        total += own * model.log_lik(
            link, {"beta": parameters[:, :2], "sigma": parameters[:, 2]}, slice(None)
        )
    moved = total.max(axis=0) - total.min(axis=0)
    assert moved.max() <= epsilon
    assert np.median(moved) > 0.7 * epsilon
    # Nothing but the row itself decides its powers.
    other = table.native.copy()
    other.loc[1:, ["x", "y"]] *= -3.0
    again = Table.of(other)
    links = [designs.build(text, again, secret=("x", "y")) for text in ("x ~ z", "y ~ x")]
    np.testing.assert_array_equal(
        [own[0] for own in chain.by_link(ChainDesign.of(links, again), power)],
        [own[0] for own in chain.by_link(design, power)],
    )


def test_draws_of_each_link_have_its_own_powers():
    table = Table.of(pairs(60))
    links = [designs.build(text, table, secret=("x", "y")) for text in ("x ~ z", "y ~ x")]
    design, power = ChainDesign.of(links, table), np.full(60, 0.05)
    chain = BoxedChain((Boxed(Normal(), X), Boxed(Normal(), Y)))
    done = fit(chain, design, power, draws=50, key=Key.from_seed(4))
    for place, (model, link, own) in enumerate(
        zip(chain.models, links, chain.by_link(design, power), strict=True)
    ):
        alone = model.sample(link, own, draws=50, key=Key.from_seed(4).child(place)).parameters
        np.testing.assert_array_equal(done.parameters[f"{place}.beta"], alone["beta"])
    assert not np.allclose(*chain.by_link(design, power))


def test_through_the_front_door():
    asked = hr.Synthesizer(COLUMNS, standard=hr.Strict({"x": X, "y": Y}, "as published"), epsilon=2.0, seed=5)
    synth = asked.fit(pairs(150))
    assert synth.total_epsilon_ <= 2.0
    assert synth.records_["price"].max() <= 2.0
    assert 0 < synth.acceptance_ <= 1
    told = " ".join(str(synth.sample().guarantee).split())
    assert (
        "of 'x': parameters lie in the box Intercept in [-1, 1], z in [0.5, 1.5], sigma in [0.5, 2]" in told
    )
    copy = synth.sample().tables[0]
    assert np.corrcoef(copy["x"], copy["y"])[0, 1] > 0.1
    assert synth.lipschitz_epsilon_ > 0


def test_a_value_that_a_later_column_cannot_read_is_no_refusal():
    data = pairs(80)
    data.loc[3, "x"], data.loc[4, "x"] = np.nan, np.inf
    asked = hr.Synthesizer(COLUMNS, standard=hr.Strict({"x": X, "y": Y}), epsilon=2.0, seed=5)
    with pytest.warns(hr.HedgerowWarning, match="count as withheld"):
        synth = asked.fit(data)
    assert synth.sample().tables[0]["y"].notna().all()


@pytest.mark.parametrize(
    ("box", "says"),
    [
        ({"x": X}, "'y' needs a box of its own"),
        ({"x": X, "y": Y, "w": Y}, "'w' has a box and is not protected"),
        ({"x": X, "sigma": (1, 2)}, "'sigma' needs a box of its own"),
        ({"x": X, "y": {"Intercept": (0, 1)}}, "positive ends for 'sigma'"),
        (X, "one protected column"),
    ],
)
def test_boxes_that_do_not_fit_the_columns_are_refused(box, says):
    with pytest.raises(hr.HedgerowError, match=says):
        hr.Synthesizer(COLUMNS, standard=hr.Strict(box), epsilon=1.0)
    with pytest.raises(hr.HedgerowError, match="goes with several protected columns"):
        hr.Synthesizer("x ~ z", "normal", standard=hr.Strict({"x": X}), epsilon=1.0)
