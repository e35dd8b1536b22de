"""The bandit baselines against enumeration, plain resampling and the definitions of their papers."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import comb

from eccaht import Problem, Simulator, families, make_policy, search
from eccaht.streams.policies.bandits import CombGapE, another_set, cheapest_swap
from eccaht.streams.posterior import EmpiricalMeans


def pulled(problem: Problem, seed: int, rounds: int = 3) -> EmpiricalMeans:
    """Means after a few single-stream readings of every stream, not equally many."""
    belief, world, rng = EmpiricalMeans(problem), Simulator(problem, seed=seed), np.random.default_rng(seed)
    for k in [*range(problem.size), *rng.integers(0, problem.size, rounds * problem.size)]:
        c = np.eye(problem.size)[k]
        belief.update(c, world.measure(c))
    return belief


def test_means_of_single_stream_readings_are_averages_in_units_of_the_shift() -> None:
    problem = Problem(families.toeplitz(4, 0.5), shift=[2.0, -2.0, 4.0, 1.0], n_anomalies=1, budget=3.0, mean=10.0)
    belief = EmpiricalMeans(problem)
    for y in (13.0, 9.0, 11.0):
        belief.update(3.0 * np.eye(4)[1], 3.0 * y)
    assert_allclose(belief.scores, [0, (11.0 - 10.0) / -2.0, 0, 0])
    assert_allclose(belief.variances[1], 1 / (3 * 4.0))
    assert belief.unmeasured.tolist() == [0, 2, 3]


def test_cheapest_swap_is_the_cheapest_set() -> None:
    """Transportation cost of every other set, enumerated: single swaps suffice."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        means, variances = rng.standard_normal(7), rng.uniform(0.1, 3.0, 7)
        leader = np.sort(np.argsort(-means)[:3])
        costs = []
        for other in combinations(range(7), 3):
            inside, outside = sorted(set(leader.tolist()) - {*other}), sorted({*other} - set(leader.tolist()))
            if inside:
                gap = max(means[inside].sum() - means[outside].sum(), 0.0)
                costs.append(gap**2 / (2 * (variances[inside].sum() + variances[outside].sum())))
        rivals, cost = cheapest_swap(means, variances, leader, np.arange(7))
        assert_allclose(cost, min(costs))
        i, j = rivals.leaving[0], rivals.entering[0]
        assert_allclose((means[i] - means[j]) ** 2 / (2 * (variances[i] + variances[j])), cost)


@pytest.mark.parametrize("gap", [0.3, 1.2])
def test_another_set_is_what_endless_resampling_gives(gap: float) -> None:
    """Distribution over challenger sets of 5 streams, n = 2, against plain rejection; chi-square on 10,000 draws."""
    means, variances = np.array([gap * 2, gap * 1.5, 0.0, -0.2, 0.3]), np.array([0.3, 0.5, 0.2, 0.9, 0.1])
    leader, count, rng = np.array([0, 1]), 10_000, np.random.default_rng(1)
    sets = [s for s in combinations(range(5), 2) if s != (0, 1)]
    draws = means + np.sqrt(variances) * rng.standard_normal((40 * count, 5))
    best = np.sort(np.argsort(-draws, axis=1)[:, :2], axis=1)
    expected = np.array([(best == s).all(axis=1).sum() for s in sets], dtype=float)
    seen = dict.fromkeys(sets, 0)
    for _ in range(count):
        rivals = another_set(means, variances, leader, rng)
        first, second = sorted((set(leader.tolist()) - set(rivals.leaving.tolist())) | set(rivals.entering.tolist()))
        seen[first, second] += 1
    observed = np.array(list(seen.values()), dtype=float)
    share = expected / expected.sum()
    error = np.sqrt(count * share * (1 - share) * (1 + count / expected.sum()))
    assert np.all(np.abs(observed - count * share) < 4.5 * error + 1)


def test_another_set_is_found_where_resampling_never_would() -> None:
    """Gaps of 60 standard deviations: the conditional draw swaps the closest pair, as the tail says it must."""
    means, variances = np.array([90.0, 60.0, 0.0, -1.0]), np.full(4, 0.5)
    rng = np.random.default_rng(0)
    for _ in range(50):
        rivals = another_set(means, variances, np.array([0, 1]), rng)
        assert (rivals.leaving.tolist(), rivals.entering.tolist()) == ([1], [2])


def bound_of(search: CombGapE, members: set[int], other: set[int], t: int) -> float:
    """The upper confidence bound of the advantage of another set, from its definition."""
    means, variances = search.belief.scores, search.belief.variances
    inside, outside = sorted(members - other), sorted(other - members)
    gap = means[outside].sum() - means[inside].sum()
    spread = variances[outside].sum() + variances[inside].sum()
    K, n = search.problem.size, search.problem.n_anomalies
    return float(gap + np.sqrt(2 * spread * np.log(comb(K, n) * np.pi**2 * t**2 / (6 * 0.05))))


def test_combgape_challenger_against_enumeration() -> None:
    """Never below the best single swap, and the best of all sets in nearly all cases."""
    best_found = 0
    for seed in range(40):
        problem = Problem(families.identity(8), shift=2.0, n_anomalies=3, budget=1.0)
        belief = pulled(problem, seed)
        search = CombGapE(problem, belief, alpha=0.05)
        members = set(np.argsort(-belief.scores)[:3].tolist())
        rivals, bound = search.challenger(np.array(sorted(members)), 32)
        named = (members - set(rivals.leaving.tolist())) | set(rivals.entering.tolist())
        assert_allclose(bound, bound_of(search, members, named, 32))
        others = [set(other) for other in combinations(range(8), 3) if set(other) != members]
        bounds = [bound_of(search, members, other, 32) for other in others]
        swaps = [b for b, other in zip(bounds, others, strict=True) if len(members - other) == 1]
        assert bound >= max(swaps) - 1e-12
        best_found += bool(np.isclose(bound, max(bounds)))
    assert best_found >= 36


@pytest.mark.parametrize("spread", [False, True])
def test_readings_of_one_stream_are_added_as_any_others(spread: bool) -> None:
    """Single-stream readings beside sums over the readings; a weighted sum in between where `spread`."""
    problem = Problem(families.toeplitz(5, 0.5), shift=[2.0, -2.0, 4.0, 1.0, 0.5], n_anomalies=1, budget=3.0, mean=0.7)
    belief, rng = EmpiricalMeans(problem), np.random.default_rng(3)
    sums, precisions = np.zeros(5), np.zeros(5)
    for k in [2, 0, 2, 1, 4, 4, 0]:
        assert belief.unmeasured.tolist() == np.flatnonzero(precisions == 0.0).tolist()
        c = 3.0 * np.eye(5)[k]
        if spread and k == 1:
            c[3] = -1.0
        y = float(rng.standard_normal())
        v = problem.covariance.quad(c)
        before = belief.scores.copy()
        belief.update(c, y)
        sums += c * ((y - c @ problem.mean) / v)
        precisions += c**2 / v
        known = precisions > 0.0
        assert_allclose(belief.scores[known], (sums / problem.shift)[known] / precisions[known], rtol=1e-14)
        assert_allclose(belief.variances[known], 1.0 / (precisions * problem.shift**2)[known], rtol=1e-14)
        assert np.isinf(belief.variances[~known]).all()
        assert (belief.scores != before)[c == 0.0].sum() == 0


def test_combgape_pulls_the_least_measured_stream_of_the_difference() -> None:
    problem = Problem(families.identity(6), shift=3.0, n_anomalies=2, budget=1.0)
    policy, world, counts = make_policy("combgape", problem, stopping=None), Simulator(problem), np.zeros(6)
    for step in range(60):
        c = policy.ask()
        (k,) = np.flatnonzero(c)
        if step < 6:
            assert counts[k] == 0
        elif policy.pair is not None:
            assert k in policy.pair
            assert counts[k] == counts[list(policy.pair)].min()
        policy.tell(c, world.measure(c))
        counts[k] += 1


@pytest.mark.parametrize("name", ["combgape", "ttts", "t3c"])
def test_own_stopping_rules_are_right_when_they_stop(name: str) -> None:
    """20 runs at alpha 0.05: the bounds are loose, so no error is expected; all stop."""
    problem = Problem(families.identity(12), shift=[3.0, -3.0] * 6, n_anomalies=2, budget=1.0, mean=4.0)
    for seed in range(20):
        world = Simulator(problem, seed=seed)
        result = search(make_policy(name, problem, seed=seed), world.measure, max_measurements=2000)
        assert result.reason == "stopped"
        assert np.array_equal(result.anomalies, world.anomalies)


def test_top_two_coin_and_pairs() -> None:
    """Half of the pulls go to a stream of the leader."""
    problem = Problem(families.identity(6), shift=3.0, n_anomalies=1, budget=1.0)
    policy, world = make_policy("t3c", problem, stopping=None), Simulator(problem)
    leader = 0
    for step in range(506):
        c = policy.ask()
        if step >= 6:
            assert policy.pair is not None
            leader += int(np.flatnonzero(c)[0] == policy.pair[0])
        policy.tell(c, world.measure(c))
    assert abs(leader - 250) < 5 * np.sqrt(500 * 0.25)
