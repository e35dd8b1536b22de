"""The most informative measurement, alone and beyond others under way, against quadrature and a grid of directions."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.optimize import minimize

from eccaht import Problem, families, pair_design
from eccaht.base.arrays import Array, Index
from eccaht.streams.designs.information import InformationDesign, Outcomes, _Information, left_of
from eccaht.streams.sets import Hypotheses


def plain(sets: Index, weights: Array, shift: Array) -> Hypotheses:
    """Sets as hypotheses, every stream with its known shift."""
    shifts = np.append(shift, 0.0)
    return Hypotheses.of_sets(sets, weights, shifts[sets[:, :-1]], np.tile(shifts, (len(sets), 1)))


def mutual_information(means: Array, weights: Array) -> float:
    """By numerical integration of the mixture's entropy."""

    def density(y: float) -> float:
        return float(weights @ np.exp(-0.5 * (y - means) ** 2)) / np.sqrt(2 * np.pi)

    entropy = quad(lambda y: -density(y) * np.log(density(y)), means.min() - 9, means.max() + 9, limit=400)[0]
    return float(entropy) - 0.5 * math.log(2 * math.pi * math.e)


def test_information_of_a_reading() -> None:
    rng = np.random.default_rng(0)
    for spread in (0.3, 1.0, 4.0):
        means, weights = spread * rng.standard_normal(6), rng.dirichlet(np.ones(6))
        found, _ = _Information(weights).judge(means)
        assert_allclose(found, mutual_information(means, weights), rtol=0.03, atol=2e-3)


@pytest.mark.parametrize("budget", [5.0, 0.7])
@pytest.mark.parametrize("weights", [[0.5, 0.5], [0.9, 0.1]])
def test_two_sets_give_the_pair_design(budget: float, weights: list[float]) -> None:
    """Where one swap is in doubt; also under a limit that binds, and with unequal shifts."""
    shift = np.full(20, 2.0)
    shift[7] = -3.0
    problem = Problem(families.toeplitz(20, 0.8), shift=shift, n_anomalies=3, budget=budget)
    hypotheses = plain(np.array([[1, 12, 4], [1, 12, 7]]), np.array(weights), shift)
    c = InformationDesign(problem)(hypotheses, np.random.default_rng(0))
    pair = pair_design(problem, 4, 7)
    assert pair.budget_active == (budget < 1.0)
    assert_allclose(c * np.sign(c @ pair.weights), pair.weights, atol=1e-6 * budget)


def test_noisy_readings_take_the_top_generalized_eigenvector() -> None:
    rng = np.random.default_rng(1)
    K = 8
    problem = Problem(families.equicorrelation(K, 0.3), shift=0.02, n_anomalies=2, budget=60.0)
    sets = np.array([rng.choice(K, 2, replace=False) for _ in range(12)])
    weights = rng.dirichlet(np.ones(12))
    x = np.zeros((12, K))
    x[np.arange(12)[:, None], sets] = 0.02
    centred = x - weights @ x
    covariance = (centred * weights[:, None]).T @ centred
    S = problem.covariance.dense()
    top = np.linalg.eigvals(np.linalg.solve(S, covariance)).real.max()
    design = InformationDesign(problem)
    reached = []
    for seed in range(5):
        c = design(plain(sets, weights, problem.shift), np.random.default_rng(seed))
        reached.append(float(c @ covariance @ c / (c @ S @ c)))
    assert max(reached) > 0.97 * top


def test_precise_readings_settle_several_streams_at_once() -> None:
    """The direction of largest variance asks about the one stream that is in half of the sets."""
    rng = np.random.default_rng(2)
    K = 20
    problem = Problem(families.identity(K), shift=12.0, n_anomalies=2, budget=5.0)
    pairs = np.array([rng.choice(np.arange(1, K), 2, replace=False) for _ in range(40)])
    pairs[:20, 0] = 0
    weights = np.full(40, 1 / 40)

    def information_of(c: Array) -> float:
        return mutual_information(12.0 * c[pairs].sum(axis=1) / np.linalg.norm(c), weights)

    hypotheses = plain(pairs, weights, problem.shift)
    reached = [information_of(InformationDesign(problem)(hypotheses, np.random.default_rng(s))) for s in range(5)]
    x = np.zeros((40, K))
    x[np.arange(40)[:, None], pairs] = 1.0
    top = np.linalg.svd(x - x.mean(axis=0))[2][0]
    assert max(reached) > information_of(top) + 0.1
    assert np.mean(reached) > np.mean([information_of(rng.standard_normal(K)) for _ in range(20)]) + 0.1


@pytest.mark.parametrize("doubt", [0.4, 0.6])
def test_one_measurement_asks_about_all_rivals_at_once(doubt: float) -> None:
    """Nothing is wrong, or one of 30 correlated streams is: the best measurement has signs that alternate."""
    K = 30
    problem = Problem(families.toeplitz(K, 0.8), shift=1.0, n_anomalies=(0, 1), budget=5.0)
    stream, chance = np.arange(K + 1), np.append(np.full(K, doubt / K), 1.0 - doubt)
    empty = np.zeros((1, 0))
    rows = np.zeros(K + 1, dtype=np.intp)
    hypotheses = Hypotheses(empty.astype(np.intp), empty, rows, stream, np.append(problem.shift, 0.0), chance)

    def information_of(c: Array) -> float:
        return mutual_information(np.append(c, 0.0) / np.sqrt(problem.noise_variance(c)), chance)

    alternating = information_of(np.where(np.arange(K) % 2, -1.0, 1.0))
    reached = [information_of(InformationDesign(problem)(hypotheses, np.random.default_rng(s))) for s in range(8)]
    assert min(reached) > 0.9 * alternating
    assert alternating > 5.0 * information_of(np.ones(K))


def test_the_likeliest_set_is_set_apart_from_all_rivals() -> None:
    """Where one rival is four times as probable as the next, information dwells on it; the error bound does not."""
    K = 12
    problem = Problem(families.toeplitz(K, 0.6), shift=1.5, n_anomalies=1, budget=5.0)
    chance = np.append(0.75, np.geomspace(1.0, 0.3, K - 1))
    chance[1:] *= 0.25 / chance[1:].sum()
    sets = np.arange(K)[:, None]

    def bound(c: Array) -> float:
        apart = 1.5 * (c[1:] - c[0]) / np.sqrt(problem.noise_variance(c))
        return float(np.sqrt(chance[1:]) @ np.exp(-(apart**2) / 8.0))

    starts = [np.random.default_rng(s).standard_normal(K) for s in range(10)]
    best = min(minimize(bound, start, method="BFGS").fun for start in starts)
    found = [
        bound(InformationDesign(problem)(plain(sets, chance, problem.shift), np.random.default_rng(s)))
        for s in range(10)
    ]
    assert min(found) < best * 1.001
    assert max(found) < best * 1.1


K, SHIFT = 3, 1.6
PROBLEM = Problem(np.eye(K), shift=SHIFT, n_anomalies=1, budget=5.0)


def hypotheses(chance: list[float]) -> Hypotheses:
    """One stream is anomalous, with these probabilities."""
    sets, shifts = np.arange(K)[:, None], np.full((K, K + 1), SHIFT)
    return Hypotheses.of_sets(sets, np.array(chance), np.empty((K, 0)), shifts)


def means(c: Array) -> Array:
    return SHIFT * c / np.linalg.norm(c)


def information(chance: Array, *measurements: Array) -> float:
    """Nats about the set in readings of one or two measurements, by quadrature."""
    grid = np.linspace(-8.0, 8.0, 161)
    axes = np.meshgrid(*[grid] * len(measurements), indexing="ij")
    each = [
        np.exp(-0.5 * sum((axis - means(c)[s]) ** 2 for axis, c in zip(axes, measurements, strict=True)))
        for s in range(K)
    ]
    each = [density / density.sum() for density in each]
    total = sum(p * density for p, density in zip(chance, each, strict=True))
    own = [p * (d * np.log(np.maximum(d, 1e-300))).sum() for p, d in zip(chance, each, strict=True)]
    return float(sum(own) - (total * np.log(np.maximum(total, 1e-300))).sum())


def directions() -> Iterator[Array]:
    """Directions of contrasts, which add up to 0."""
    for angle in np.linspace(0.0, np.pi, 30, endpoint=False):
        yield np.cos(angle) * np.array([1.0, -1.0, 0.0]) + np.sin(angle) * np.array([1.0, 1.0, -2.0]) / np.sqrt(3.0)


@pytest.mark.parametrize("chance", [[0.34, 0.33, 0.33], [0.45, 0.45, 0.1], [0.4, 0.2, 0.4]])
def test_it_tells_nearly_as_much_as_any_measurement_can_beyond_the_first(chance: list[float]) -> None:
    first = np.array([1.0, -1.0, 0.0])
    best = max(information(np.array(chance), first, c) for c in directions())
    known = information(np.array(chance), first)
    found = []
    for seed in range(6):
        c = InformationDesign(PROBLEM)(hypotheses(chance), np.random.default_rng(seed), [first])
        found.append(information(np.array(chance), first, c) - known)
    assert np.mean(found) >= 0.93 * (best - known)


def test_once_a_set_leads_what_is_left_of_its_rivals_counts() -> None:
    """Of 0.6, 0.3 and 0.1 a precise reading under way settles the first two: the next one is about the third."""
    sharp = Problem(0.05 * np.eye(K), shift=SHIFT, n_anomalies=1, budget=5.0)
    pending = [np.array([2.5, -2.5, 0.0])]
    c = InformationDesign(sharp)(hypotheses([0.6, 0.3, 0.1]), np.random.default_rng(0), pending)
    alone = InformationDesign(sharp)(hypotheses([0.6, 0.3, 0.1]), np.random.default_rng(0))
    gain = abs(c[0] - c[2]) / np.linalg.norm(c)
    assert gain > 1.4  # of at most sqrt(2)
    assert gain > abs(alone[0] - alone[2]) / np.linalg.norm(alone)


def test_the_weights_of_rivals_are_bhattacharyya_bounds() -> None:
    chance, earlier = np.array([0.5, 0.3, 0.2]), np.array([[0.0, 1.0, 4.0], [0.0, -2.0, 0.5]])
    left = np.sqrt(left_of(chance, 0, earlier))
    bound = np.sqrt(chance) * np.exp(-(earlier**2).sum(axis=0) / 8.0)
    assert left[0] == 0.0
    assert np.isclose(left[1] / left[2], bound[1] / bound[2], rtol=1e-12)


def test_probabilities_after_outcomes_are_on_average_those_before() -> None:
    chance, earlier = np.array([0.5, 0.3, 0.2]), np.array([[0.0, 0.7, 1.5]])
    total = np.zeros(3)
    for seed in range(400):
        outcomes = Outcomes(chance, earlier, np.random.default_rng(seed))
        for sets, after in zip(outcomes.sets, outcomes.chances, strict=True):
            total[sets] += after / (400 * len(outcomes.sets))
    assert np.allclose(total, chance, atol=0.01)


def test_where_readings_under_way_settle_everything_something_is_still_in_doubt() -> None:
    outcomes = Outcomes(np.full(3, 1 / 3), np.array([[0.0, 500.0, 1000.0]]), np.random.default_rng(0))
    doubt = [1.0 - after.max() for after in outcomes.chances]
    assert 0.05 <= np.mean(doubt) < 0.5
