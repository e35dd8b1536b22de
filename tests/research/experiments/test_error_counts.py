"""A calibration counts what single searches do, whoever runs them, and judges the count as the binomial test does."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from eccaht import Problem, Simulator, UnknownShift, families, make_policy, search
from eccaht.base.randomness import rng_for
from eccaht.research.experiments.error_counts import (
    QUANTILES,
    CountedSearch,
    ErrorCounts,
    Stop,
    Truth,
    _Plan,
    _world,
    check_alphas,
    count_errors,
    right_for_good,
    summarise,
)

SMALL = Problem(families.toeplitz(7, 0.6), shift=1.0, n_anomalies=2, budget=3.0)
OPEN = Problem(families.toeplitz(6, 0.6), shift=UnknownShift(4.0, "positive"), n_anomalies=(0, 2), budget=3.0)
LARGE = Problem(families.toeplitz(60, 0.8), shift=2.0, n_anomalies=4, budget=5.0)  # too many sets to enumerate


@pytest.mark.parametrize(
    ("problem", "name", "stopping", "runs"),
    [
        (SMALL, "joint", "posterior", 6),
        (SMALL, "exact", "glr", 6),
        (SMALL, "ecc-aht", "gap", 12),
        (OPEN, "joint", "posterior", 4),
        (LARGE, "joint", "posterior", 2),
        (LARGE, "joint", "glr", 2),
    ],
)
def test_each_alpha_stops_where_a_search_of_its_own_does(problem: Problem, name: str, stopping: str, runs: int) -> None:
    horizon, alphas = 40, (0.3, 0.05, 0.01)
    records = count_errors(problem, policy=name, stopping=stopping, alphas=alphas, runs=runs, horizon=horizon, seed=5)
    for run, counted in enumerate(records.searches):
        for alpha, stop in zip(alphas, counted.stops, strict=True):
            world = Simulator(problem, seed=(5, run), names=[name])
            policy = make_policy(name, problem, seed=(5, run), stopping=stopping, alpha=alpha)
            result = search(policy, world.measure, horizon)
            assert (stop is None) == (result.reason == "max_measurements")
            if stop is not None:
                assert stop.n_measurements == result.n_measurements
                assert stop.right == (result.anomalies.tolist() == world.anomalies.tolist())
                if stop.right and result.shifts is not None:
                    held = (result.shifts.low <= world.shifts) & (world.shifts <= result.shifts.high)
                    assert (stop.named, stop.covered) == (held.size, held.sum())


def test_searches_can_be_given_what_is_true() -> None:
    problem = Problem(families.identity(6), shift=UnknownShift(3.0), n_anomalies=(0, 3), budget=3.0)
    plan = _Plan(problem, "joint", "posterior", (0.05,), 10, 4, Truth(2, (2.0, 5.0)))
    worlds = [_world(plan, run) for run in range(60)]
    sizes = np.concatenate([np.abs(world.shifts) for world in worlds])
    assert {world.anomalies.size for world in worlds} == {2}
    assert 2.0 <= sizes.min() < 2.2 < 4.8 < sizes.max() <= 5.0
    assert {-1.0, 1.0} == {float(sign) for world in worlds for sign in np.sign(world.shifts)}
    assert len({tuple(world.anomalies.tolist()) for world in worlds}) > 10
    quiet = count_errors(problem, runs=3, horizon=1, truth=Truth(0))
    assert all(search.right_for_good in (1, None) for search in quiet.searches)


def test_true_sizes_keep_a_known_sign_and_known_shifts() -> None:
    shifts: list[float | UnknownShift] = [UnknownShift(3.0, "negative"), 7.0, UnknownShift(2.0)]
    problem = Problem(families.identity(3), shift=shifts, n_anomalies=2, budget=3.0)
    plan = _Plan(problem, "joint", "posterior", (0.05,), 10, 4, Truth(None, (2.0, 2.5)))
    for run in range(20):
        world = _world(plan, run)
        moved = dict(zip(world.anomalies.tolist(), world.shifts.tolist(), strict=True))
        assert moved.get(1, 7.0) == 7.0
        assert -2.5 <= moved.get(0, -2.0) <= -2.0


@pytest.mark.parametrize(
    ("truth", "message"),
    [
        (Truth(4), "from 0 to 3, not 4"),
        (Truth(None, (3.0, 2.0)), "the smaller first"),
        (Truth(None, (-1.0, 2.0)), "from 0 on"),
    ],
)
def test_what_cannot_be_true_is_refused(truth: Truth, message: str) -> None:
    problem = Problem(families.identity(6), shift=UnknownShift(3.0), n_anomalies=(0, 3), budget=3.0)
    with pytest.raises(ValueError, match=message):
        count_errors(problem, runs=1, truth=truth)
    with pytest.raises(ValueError, match="these are known"):
        count_errors(SMALL, runs=1, truth=Truth(None, (1.0, 2.0)))


def test_right_for_good_is_the_last_change_to_the_true_set() -> None:
    records = count_errors(SMALL, runs=8, alphas=[0.01], seed=2)
    for run, counted in enumerate(records.searches):
        world = Simulator(SMALL, seed=(2, run), names=["joint"])
        policy = make_policy("joint", SMALL, seed=(2, run), stopping=None)
        good = None
        for count in range(1, counted.n_measurements + 1):
            c = policy.ask()
            policy.tell(c, world.measure(c))
            right = policy.decision.tolist() == world.anomalies.tolist()
            good = (good or count) if right else None
        assert counted.right_for_good == good


def test_the_error_bound_of_the_exact_posterior_holds() -> None:
    """Enumerated sets: the error is at most alpha by theorem, but not far below it."""
    runs = 120
    levels = summarise(count_errors(SMALL, alphas=(0.3, 0.1), runs=runs))
    for level in levels:
        assert level.stopped == runs
        assert stats.binomtest(level.errors, runs, level.alpha, alternative="greater").pvalue > 0.01
        assert level.compatible
    assert levels[0].errors > 0.1 * runs  # an error level that is far overstated would be no calibration either


def test_intervals_of_unknown_shifts_cover_at_their_level() -> None:
    problem = OPEN.replace(n_anomalies=2)
    (level,) = summarise(count_errors(problem, alphas=[0.2], runs=70, horizon=60))
    assert level.coverage is not None
    assert level.coverage.named == 2 * (level.stopped - level.errors)
    assert stats.binomtest(level.coverage.covered, level.coverage.named, 0.95).pvalue > 0.01


def test_numbers_depend_on_the_seed_alone() -> None:
    options: dict[str, Any] = {"alphas": (0.1, 0.01), "horizon": 30}
    reported: list[int] = []
    alone = count_errors(SMALL, runs=6, seed=3, jobs=1, **options)
    assert count_errors(SMALL, runs=6, seed=3, jobs=2, progress=reported.append, **options) == alone
    assert sum(reported) == 6
    assert count_errors(SMALL, runs=4, seed=3, **options).searches == alone.searches[:4]
    assert count_errors(SMALL, runs=6, seed=4, **options) != alone


def fabricated(right: int, wrong: int, never: int, alpha: float = 0.05) -> ErrorCounts:
    """Searches that stop after 1, 2, 3, ... measurements, the wrong ones first."""
    stops = [Stop(k + 1, k >= wrong) for k in range(right + wrong)]
    searches = [CountedSearch((stop,), stop.n_measurements, 1 if stop.right else None) for stop in stops]
    return ErrorCounts((alpha,), 1000, 0, (*searches, *(CountedSearch((None,), 1000, None) for _ in range(never))))


@pytest.mark.parametrize(("right", "wrong", "never"), [(10, 0, 0), (90, 10, 0), (187, 13, 5), (180, 20, 1), (0, 3, 9)])
def test_the_count_is_judged_as_the_binomial_test_does(right: int, wrong: int, never: int) -> None:
    (level,) = summarise(fabricated(right, wrong, never))
    stopped = right + wrong
    two_sided = stats.binomtest(wrong, stopped).proportion_ci(0.95, method="exact")
    one_sided = stats.binomtest(wrong, stopped, alternative="less").proportion_ci(0.95, method="exact")
    test = stats.binomtest(wrong, stopped, 0.05, alternative="greater")
    assert (level.runs, level.stopped, level.never_stopped, level.errors) == (stopped + never, stopped, never, wrong)
    assert level.share == wrong / stopped
    assert level.interval == pytest.approx(tuple(two_sided))
    assert level.at_most == pytest.approx(one_sided.high)
    assert level.chance == pytest.approx(test.pvalue)
    assert level.compatible == (test.pvalue >= 0.01)


def test_searches_that_never_stop_are_neither_right_nor_early() -> None:
    (level,) = summarise(fabricated(right=8, wrong=0, never=2))
    assert level.measurements.mean == (36 + 2 * 1000) / 10
    assert level.measurements.censored == 2
    assert level.quantiles == (1, 3, 5, 8, None)
    (none,) = summarise(fabricated(right=0, wrong=0, never=3))
    assert (none.share, none.interval, none.at_most, none.compatible) == (None, None, None, None)
    assert none.quantiles == (None,) * len(QUANTILES)
    assert right_for_good(fabricated(right=0, wrong=0, never=3)) is None


def test_what_cannot_be_calibrated_is_refused() -> None:
    assert check_alphas([0.01, 0.2]) == (0.2, 0.01)
    for alphas, message in (([], "at least one"), ([0.1, 0.1], "twice"), ([0.0], "between 0 and 1")):
        with pytest.raises(ValueError, match=message):
            check_alphas(alphas)
    with pytest.raises(ValueError, match="joint and exact"):
        count_errors(SMALL, policy="ecc-aht", stopping="posterior")
    with pytest.raises(ValueError, match="no error level"):
        count_errors(SMALL, policy="combgape", stopping="own")
    with pytest.raises(ValueError, match="known number"):
        count_errors(OPEN, stopping="gap")
    with pytest.raises(ValueError, match="runs"):
        count_errors(SMALL, runs=0)


@pytest.mark.slow
@pytest.mark.parametrize("stopping", ["posterior", "glr"])
@pytest.mark.parametrize("noise", ["toeplitz", "rbf", "equicorrelation"])
def test_error_bounds_hold_where_sets_cannot_be_enumerated(noise: str, stopping: str) -> None:
    """K=128, n=5, 200 searches; at 0.05 `posterior` stops at most at 1.3 times what it takes to be right for good."""
    S = families.rbf(128, rho=0.8) if noise == "rbf" else getattr(families, noise)(128, 0.8)
    problem = Problem(S, shift=3.0, n_anomalies=5, budget=5.0)
    records = count_errors(problem, stopping=stopping, runs=200, seed=77, horizon=500)
    good = right_for_good(records)
    assert good is not None
    for level in summarise(records):
        assert level.stopped == 200
        assert level.compatible
        assert stopping == "glr" or level.alpha < 0.05 or level.measurements.mean < 1.3 * good.mean


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1, 5, 8])
def test_error_bounds_hold_for_every_true_number(number: int) -> None:
    problem = Problem(families.toeplitz(128, 0.8), shift=3.0, n_anomalies=(0, 8), budget=5.0)
    (level,) = summarise(count_errors(problem, alphas=[0.05], runs=200, seed=78, truth=Truth(number)))
    assert level.stopped == 200
    assert level.compatible


@pytest.mark.slow
def test_error_bounds_hold_for_sizes_within_the_prior() -> None:
    problem = Problem(families.toeplitz(128, 0.8), shift=UnknownShift(3.5), n_anomalies=5, budget=5.0)
    records = count_errors(problem, alphas=[0.05], runs=100, seed=79, horizon=300, truth=Truth(None, (2.0, 5.0)))
    (level,) = summarise(records)
    assert level.stopped >= 99
    assert level.compatible
    assert level.coverage is not None
    assert level.coverage.share > 0.92


def test_searches_can_be_given_an_estimate_of_their_own() -> None:
    records = count_errors(SMALL, runs=3, horizon=60, seed=2, alphas=[0.05], truth=Truth(vectors=14))
    for run, counted in enumerate(records.searches):
        X = SMALL.mean + SMALL.covariance.sample(rng_for((2, run), "vectors"), 14)
        given = Problem.from_samples(X, shift=1.0, n_anomalies=2, budget=3.0)
        policy = make_policy("joint", given, seed=(2, run))
        result = search(policy, Simulator(SMALL, seed=(2, run), names=["joint"]).measure, 60)
        assert counted.n_measurements == result.n_measurements


def test_heavy_tails_keep_the_variance() -> None:
    plan = _Plan(SMALL, "joint", "posterior", (0.05,), 10, 1, Truth(tails=5.0))
    c = np.array([1.0, -1.0, 0.0, 0.5, 0.0, 0.0, 0.0])
    world = _world(plan, 0)
    z = np.array([world.read(c).value - SMALL.expected(c, world.anomalies) for _ in range(20_000)])
    z /= np.sqrt(SMALL.noise_variance(c))
    assert z.var() == pytest.approx(1.0, rel=0.08)
    assert stats.kstest(z * np.sqrt(5 / 3), stats.t(5).cdf).pvalue > 0.01


def test_an_estimate_from_as_many_vectors_as_streams_keeps_alpha() -> None:
    """Of 200 searches with an error of 0.05 more than 18 are wrong in less than 1 of 100 cases."""
    problem = Problem(families.toeplitz(16, 0.8), shift=2.0, n_anomalies=2, budget=4.0)
    (level,) = summarise(count_errors(problem, runs=200, horizon=400, alphas=[0.05], truth=Truth(vectors=18)))
    assert level.stopped >= 195
    assert level.errors <= 18
