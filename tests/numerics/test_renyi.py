"""The Rényi divergence of exact posteriors against refits, draws, exact arithmetic and another library."""

from dataclasses import astuple

import mpmath
import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln, psi

import hedgerow as hr
from hedgerow.numerics.renyi import COARSE_ORDERS, ORDERS, Neighbours, conversion
from hedgerow.randomness import Key
from hedgerow.tables import design as designs
from hedgerow.tables.table import Table

PRIOR = hr.Prior(residual=0.7, residual_df=3.0, intercept=(0.5, 4.0), slope=(0.3, 2.0))
MODEL = hr.Normal(prior=PRIOR)


def example(n, seed, columns=2):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame({f"z{j}": random.normal(size=n) for j in range(columns)})
    frame["x"] = 0.4 + frame.sum(axis=1) + random.standard_t(4, size=n)
    formula = "x ~ " + " + ".join(f"z{j}" for j in range(columns))
    return designs.build(formula, Table.of(frame)), random.uniform(0.1, 1, n), random.uniform(0, 1, n)


def influence(design, power, model=MODEL):
    return model.sample(design, power, draws=100, key=Key.from_seed(1)).influence()


def pair(design, power, share, record):
    """The two posteriors, fitted one by one."""
    less = power.copy()
    less[record] -= share[record]
    return MODEL.posterior(design, power), MODEL.posterior(design, less)


def natural(posterior):
    precision = posterior.factor.T @ posterior.factor
    linear = precision @ posterior.mean
    return precision, linear, posterior.shape, 2 * posterior.rate + posterior.mean @ linear


def log_normaliser(precision, linear, shape, squares):
    log_determinant = np.linalg.slogdet(precision)[1]
    rate = (squares - linear @ np.linalg.solve(precision, linear)) / 2
    if np.linalg.eigvalsh(precision).min() <= 0 or rate <= 0 or shape <= 0:
        return np.inf
    return gammaln(shape) - shape * np.log(rate) - log_determinant / 2


def divergence(one, other, order):
    """D_o of two members of an exponential family: the normaliser at o·one + (1 − o)·other."""
    first, second = natural(one), natural(other)
    mixed = [order * a + (1 - order) * b for a, b in zip(first, second, strict=True)]
    whole = log_normaliser(*mixed) - order * log_normaliser(*first) - (1 - order) * log_normaliser(*second)
    return whole / (order - 1)


def kullback_leibler(one, other):
    first, second = natural(one)[0], natural(other)[0]
    apart = one.mean - other.mean
    given_sigma = (
        np.trace(second @ np.linalg.inv(first))
        - len(apart)
        - np.linalg.slogdet(second)[1]
        + np.linalg.slogdet(first)[1]
        + one.shape / one.rate * (apart @ second @ apart)
    ) / 2
    return (
        given_sigma
        + (one.shape - other.shape) * psi(one.shape)
        - gammaln(one.shape)
        + gammaln(other.shape)
        + other.shape * np.log(one.rate / other.rate)
        + one.shape * (other.rate - one.rate) / one.rate
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("order", [1.05, 2.0, 7.5, 40.0])
def test_divergences_are_those_of_two_refits(seed, order):
    """Both directions, part of the power taken away or all of it, and infinite at the same orders."""
    design, power, part = example(12 + 20 * seed, seed)
    for share in (power, power * part):
        forward, backward = influence(design, power).neighbours(share).divergences(order)
        for record in range(0, design.records, 3):
            one, other = pair(design, power, share, record)
            assert forward[record] == pytest.approx(divergence(one, other, order), rel=1e-8, abs=1e-12)
            assert backward[record] == pytest.approx(divergence(other, one, order), rel=1e-8, abs=1e-12)


def test_some_orders_have_no_divergence():
    """Without the record the posterior is too wide: more than some multiple of it cannot be taken away."""
    design, power, _ = example(12, 0)
    neighbours = influence(design, power).neighbours(power)
    forward, backward = neighbours.divergences(8.0)
    limit = 2 * neighbours.rate / (neighbours.squared + 2 * neighbours.rate * neighbours.spread)
    finite = 7 * power < np.minimum(2 * neighbours.shape, limit)
    assert np.isfinite(forward).all()
    assert 0 < finite.sum() < len(finite)
    np.testing.assert_array_equal(np.isfinite(backward), finite)


@pytest.mark.parametrize("seed", range(3))
def test_divergences_rise_with_the_order_from_the_kullback_leibler_divergence(seed):
    design, power, _ = example(40, seed)
    neighbours = influence(design, power).neighbours(power)
    by_order = np.array([np.stack(neighbours.divergences(order)) for order in ORDERS])
    assert (by_order[1:] >= by_order[:-1]).all()
    near = np.stack(neighbours.divergences(1 + 1e-5))
    for record in range(0, design.records, 5):
        one, other = pair(design, power, power, record)
        limits = kullback_leibler(one, other), kullback_leibler(other, one)
        np.testing.assert_allclose(near[:, record], limits, rtol=1e-3)
        assert (near[:, record] <= by_order[0, :, record]).all()


def exact_divergences(design, power, record, orders):
    """The divergences with the record and without one unit of its power, in 60 digits from the table."""
    with mpmath.workdps(60):
        rows = [[mpmath.mpf(float(z)) for z in row] for row in design.matrix]
        y = [mpmath.mpf(float(value)) for value in MODEL.response(design.values)]
        level, deviation = PRIOR.moments(design)
        width = len(level)
        prior = [  # as rows of its own: contrasts, their means, their precisions
            ([mpmath.mpf(each) for each in row], mpmath.mpf(float(m)), 1 / mpmath.mpf(float(d)) ** 2)
            for row, m, d in zip(PRIOR.contrasts(design).tolist(), level, deviation, strict=True)
        ]

        def normaliser(added):
            powers = [mpmath.mpf(float(one)) for one in power]
            powers[record] += added - 1
            precision, linear, squares = mpmath.zeros(width), mpmath.zeros(width, 1), mpmath.mpf(0)
            for row, value, one in [*prior, *zip(rows, y, powers, strict=True)]:
                squares += one * value**2
                for j in range(width):
                    linear[j] += one * value * row[j]
                    for k in range(width):
                        precision[j, k] += one * row[j] * row[k]
            shape = PRIOR.shape + sum(powers) / 2
            centre = mpmath.lu_solve(precision, linear)
            rate = PRIOR.rate + (squares - sum(a * b for a, b in zip(centre, linear, strict=True))) / 2
            return mpmath.loggamma(shape) - shape * mpmath.log(rate) - mpmath.log(mpmath.det(precision)) / 2

        without, with_it = normaliser(mpmath.mpf(0)), normaliser(mpmath.mpf(1))
        found = []
        for order in orders:
            o = mpmath.mpf(float(order))
            forward = normaliser(o) - o * with_it + (o - 1) * without
            backward = normaliser(1 - o) - o * without + (o - 1) * with_it
            found.append((forward / (o - 1), backward / (o - 1)))
        return found


@pytest.mark.parametrize(("n", "off"), [(10**6, 1e-10), (10**8, 1e-8)])
def test_large_tables_lose_no_digits_to_cancellation(n, off):
    """Every record at the power of n/40: sums as large as those of n records, one of which is priced."""
    design, _, _ = example(40, 7)
    power, orders = np.full(40, n / 40), (2.0, 30.0, 3000.0)
    neighbours = influence(design, power).neighbours(np.ones(40))
    record = int(np.argmax(neighbours.squared))
    for order, wanted in zip(orders, exact_divergences(design, power, record, orders), strict=True):
        found = [float(each[record]) for each in neighbours.divergences(order)]
        np.testing.assert_allclose(found, [float(each) for each in wanted], rtol=off)
    best = ORDERS[200:]
    exact = np.array(exact_divergences(design, power, record, best), dtype=np.float64)
    least = (exact + conversion(best, 1e-6)[:, None]).min(axis=0).max()
    priced = neighbours.by_record(delta=1e-6)[record]
    assert least <= priced <= least * (1 + 3e-8)


def test_a_lone_record_and_a_wild_one_are_left_out_by_refitting():
    """What is left of the fit without them would be a difference of nearly equal numbers."""
    random = np.random.default_rng(5)
    group = np.array(["a"] * 60 + ["b"] * 39 + ["alone"])
    frame = pd.DataFrame({"x": random.normal(size=100), "group": group})
    frame.loc[3, "x"] = 1e6
    design = designs.build("x ~ group", Table.of(frame))
    power = np.ones(100)
    vague = hr.Normal(prior=hr.Prior(slope=(0.0, 1000.0)))
    seen = influence(design, power, vague)
    assert seen.leverage[99] > 0.999
    assert seen.pull[3] > 0.999
    for model, record in ((MODEL, 3), (MODEL, 99), (vague, 3), (vague, 99)):
        neighbours = influence(design, power, model).neighbours(power)
        without = power.copy()
        without[record] = 0.0
        other = model.posterior(design, without)
        z = design.matrix[record]
        half = np.linalg.solve(other.factor.T, z)
        wanted = (half @ half, (design.values[record] - z @ other.mean) ** 2, other.shape, other.rate)
        found = [column[record] for column in astuple(neighbours)[1:]]
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


def random_neighbours(n, seed):
    random = np.random.default_rng(seed)
    size = 10 ** random.uniform(1, 5, n)
    return Neighbours(
        share=random.choice([0.0, 0.3, 1.0], n),
        spread=10 ** random.uniform(-1, 1, n) / size,
        squared=random.chisquare(1, n) ** 2,
        shape=size / 2,
        rate=size / 2 * random.uniform(0.5, 2, n),
    )


@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("copies", [1, 20])
def test_the_bisection_finds_the_best_order_and_no_record_that_decides_is_passed_over(delta, copies):
    for seed in range(4):
        neighbours = random_neighbours(500, seed)
        both = np.array([np.stack(neighbours.divergences(order)) for order in ORDERS])
        wanted = (copies * both + conversion(ORDERS, delta)[:, None, None]).min(axis=0).max(axis=0)
        wanted[neighbours.share == 0] = 0.0
        found = neighbours.by_record(delta=delta, copies=copies)
        np.testing.assert_allclose(found, np.maximum(wanted, 0), rtol=2e-8)
        assert neighbours.epsilon(delta=delta, copies=copies) == found.max()


@pytest.mark.parametrize("least", [0, 2e4])  # of shapes: with small ones most orders have no divergence
@pytest.mark.parametrize("count", [1, 2, 9, 10, 40])
def test_a_curve_is_the_largest_divergence_at_each_order(least, count):
    neighbours, orders = random_neighbours(9000, count), COARSE_ORDERS[:: 40 // count][:count]
    neighbours = neighbours.of(neighbours.shape > least)
    plain = [max(side.max() for side in neighbours.divergences(float(order))) for order in orders]
    np.testing.assert_allclose(neighbours.curve(orders, 3), 3 * np.array(plain), rtol=2e-8)
    assert (neighbours.curve(orders, 3) >= 3 * np.array(plain)).all()


# ε of a Gaussian mechanism, D_o = ρ·o, composed m times: dp_accounting 0.6.0, rdp.compute_epsilon at ORDERS.
GAUSSIAN = [
    (0.0001, 1, 1e-06, 0.053727436628233774),
    (0.0001, 1, 0.001, 0.020977412366489243),
    (0.0001, 20, 1e-06, 0.26430392311754225),
    (0.01, 1, 1e-06, 0.6217334343405378),
    (0.01, 1, 0.001, 0.35436809098141975),
    (0.01, 20, 1e-06, 3.1313063496126397),
    (0.05, 20, 0.001, 5.419923664369299),
    (0.5, 1, 1e-06, 5.221972777343538),
    (0.5, 20, 1e-06, 32.22168010123656),
    (3.0, 1, 1e-06, 14.94792243627678),
]


@pytest.mark.parametrize(("rho", "copies", "delta", "wanted"), GAUSSIAN)
def test_conversion_and_composition_are_those_of_dp_accounting(rho, copies, delta, wanted):
    found = (copies * rho * ORDERS + conversion(ORDERS, delta)).min()
    assert found == pytest.approx(wanted, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_divergences_agree_with_400_000_draws(seed):
    """Both directions, within 1 %. The mean of e^{−L} is 1 and known: it takes most of the noise away."""
    random = np.random.default_rng(seed)
    design, power, part = example(int(random.integers(40, 400)), seed, columns=int(random.integers(1, 4)))
    share = power * part if seed % 2 else power
    neighbours = influence(design, power).neighbours(share)
    strength = np.sqrt(neighbours.divergences(1.05)[0])
    # Means of e^{(o−1)L} can be seen in draws where its variance is finite, with room to spare.
    plain = np.isfinite(neighbours.divergences(20.0)[1]) & (strength < 0.5)
    record = int(np.flatnonzero(plain)[np.argsort(strength[plain])[-1 - seed % 3]])
    one, other = pair(design, power, share, record)
    order = 1 + min(random.uniform(0.4, 1.0) / strength[record], 60.0)
    found = [each[record] for each in neighbours.divergences(order)]
    for (here, there), wanted in zip(((one, other), (other, one)), found, strict=True):
        draws = here.draw(400_000, Key.from_seed(seed))
        loss = here.log_density(draws) - there.log_density(draws)
        moment, known = np.exp((order - 1) * loss), np.exp(-loss)
        slope = np.cov(moment, known)[0, 1] / known.var()
        seen = np.log(moment.mean() - slope * (known.mean() - 1)) / (order - 1)
        assert seen == pytest.approx(wanted, rel=0.01), (order, wanted)
