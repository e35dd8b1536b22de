"""Replayed readings are what the sensors delivered, and never count evidence twice."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from eccaht import Problem, families, make_policy
from eccaht.base.arrays import Array
from eccaht.plants import Arrays
from eccaht.plants.data.windows import Windows
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.replay import Replay
from eccaht.streams import steps
from eccaht.streams.run.world import Simulator

START = np.datetime64("2024-05-01T08:00", "us")


def windows_of(values: Array, names: tuple[str, ...]) -> Windows:
    return Windows(START + np.arange(len(values)) * np.timedelta64(60, "s"), values, names, 60.0)


def small_problem(K: int = 5, n: int = 2, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((K, K))
    names = [f"s{k}" for k in range(K)]
    S = A @ A.T + 0.1 * np.eye(K)
    return Problem(S, shift=rng.uniform(-2, 2, K), n_anomalies=n, budget=2.0, mean=rng.standard_normal(K), names=names)


def log_likelihood(problem: Problem, c: Array, y: float, anomalies: tuple[int, ...]) -> float:
    v = c @ problem.covariance.dense() @ c
    return float(-0.5 * ((y - problem.expected(c, anomalies)) ** 2 / v + np.log(v)))


def test_a_reading_is_the_weighted_sum_of_the_window_at_its_time() -> None:
    problem = small_problem()
    x = np.random.default_rng(1).standard_normal((3, 5))
    replay = Replay(windows_of(x, problem.names or ()), problem)
    for t in range(3):
        c = np.arange(5.0) - t
        reading = replay.read(c)
        assert reading is not None
        assert reading.value == pytest.approx(c @ x[t])
        assert np.array_equal(reading.weights, c)
        assert (reading.window, reading.time) == (t, START + t * np.timedelta64(60, "s"))
    assert replay.read(c) is None
    assert (replay.n_windows, replay.n_skipped) == (3, 0)


def test_missing_sensors_get_no_weight_and_windows_without_any_asked_sensor_are_passed_over() -> None:
    problem = small_problem()
    x = np.ones((4, 5))
    x[0, 1] = np.nan
    x[1, :2] = np.nan
    replay = Replay(windows_of(x, problem.names or ()), problem)
    first = replay.read([1.0, 2.0, 3.0, 0.0, 0.0])
    assert first is not None
    assert first.weights.tolist() == [1, 0, 3, 0, 0]
    assert first.value == 4.0
    second = replay.read([1.0, -1.0, 0.0, 0.0, 0.0])
    assert second is not None
    assert second.window == 2  # both sensors are missing in window 1
    assert second.value == 0.0
    assert replay.n_skipped == 1


@pytest.mark.parametrize("missing", [(), (2,), (0, 3)])
def test_as_many_readings_as_sensors_carry_exactly_the_evidence_of_the_whole_vector(missing: tuple[int, ...]) -> None:
    problem = small_problem(K=6, seed=3)
    rng = np.random.default_rng(4)
    x = rng.standard_normal((1, 6)) * 2
    x[0, list(missing)] = np.nan
    present = [k for k in range(6) if k not in missing]
    replay = Replay(windows_of(x, problem.names or ()), problem, per_window=6)
    readings = []
    for _ in present:
        reading = replay.read(rng.standard_normal(6))
        assert reading is not None
        assert reading.window == 0
        readings.append(reading)
    sets = list(itertools.combinations(range(6), 2))
    recomputed = [sum(log_likelihood(problem, r.weights, r.value, A) for r in readings) for A in sets]
    S = problem.covariance.dense()[np.ix_(present, present)]
    exact = []
    for A in sets:
        mean = problem.mean.copy()
        mean[list(A)] += problem.shift[list(A)]
        exact.append(multivariate_normal.logpdf(x[0, present], mean[present], S))
    assert np.array(recomputed) - recomputed[0] == pytest.approx(np.array(exact) - exact[0], abs=1e-8)


def test_readings_of_one_window_are_uncorrelated() -> None:
    problem = Problem(families.toeplitz(4, 0.8), shift=1.0, n_anomalies=1, budget=2.0)
    x = problem.covariance.sample(np.random.default_rng(0), 4000)
    replay = Replay(((START, row) for row in x), problem, per_window=3)
    designs = [np.array([1.0, -0.5, 0.0, 0.0]), np.array([1.0, 0.0, 0.2, 0.0]), np.array([0.0, 1.0, 1.0, 1.0])]
    values = []
    for _ in x:
        for c in designs:
            reading = replay.read(c)
            assert reading is not None
            assert np.abs(reading.weights).sum() == pytest.approx(np.abs(c).sum())  # on the scale asked for
            values.append(reading.value / np.sqrt(problem.covariance.quad(reading.weights)))
    assert np.cov(np.reshape(values, (-1, 3)).T) == pytest.approx(np.eye(3), abs=0.08)  # naively 0.8 between 1 and 2


def test_a_measurement_that_adds_nothing_is_read_in_the_next_window() -> None:
    problem = small_problem()
    x = np.random.default_rng(1).standard_normal((3, 5))
    replay = Replay(windows_of(x, problem.names or ()), problem, per_window=4)
    a, b = np.array([1.0, 0, 0, 0, 0]), np.array([0, 1.0, 0, 0, 0])
    windows = [reading.window for c in (a, b, 2 * a - 3 * b, b) if (reading := replay.read(c)) is not None]
    assert windows == [0, 0, 1, 1]
    assert replay.n_skipped == 0


def test_a_search_reads_one_window_after_the_other() -> None:
    problem = Problem(np.eye(6), shift=4.0, n_anomalies=2, budget=2.0, names=list("abcdef"))
    x = Simulator(problem, anomalies=[1, 4], seed=2).sample(80)
    policy = make_policy("ecc-aht", problem)
    assert list(steps(policy, Replay(windows_of(x, problem.names or ()), problem)))
    assert policy.decision_names == ("b", "e")
    assert Replay([], problem).read(np.ones(6)) is None


def test_bad_input_is_named() -> None:
    problem = small_problem()
    x = np.ones((1, 5))
    with pytest.raises(ValueError, match="different sensors"):
        Replay(windows_of(x, ("s1", "s0", "s2", "s3", "s4")), problem)
    with pytest.raises(ValueError, match="windows have 5 sensors, the problem 4"):
        Replay(windows_of(x, tuple("abcde")), Problem(np.eye(4), shift=1.0, n_anomalies=1, budget=1.0))
    with pytest.raises(ValueError, match="per_window"):
        Replay([], problem, per_window=0)
    replay = Replay(windows_of(x, problem.names or ()), problem)
    for c, message in ((np.zeros(5), "all zero"), (np.ones(4), "shape"), (np.full(5, np.nan), "non-finite")):
        with pytest.raises(ValueError, match=message):
            replay.read(c)


def test_windows_with_less_than_half_of_the_usual_rows_are_left_out() -> None:
    rows = np.random.default_rng(0).standard_normal((1200, 3))
    seconds = START + np.arange(1200) * np.timedelta64(10, "s")
    model = calibrate(Arrays(rows, seconds, ("a", "b", "c"), label="the rows"), window="1min")
    kept = np.flatnonzero((np.arange(1200) % 6 < 2) | (np.arange(1200) >= 900))  # two of six rows, then all of them
    windows = model.prepare(Arrays(rows[kept], seconds[kept], ("a", "b", "c"), label="the rows"))
    replay = Replay(windows, model.problem(shift=1.0, n_anomalies=1, budget=1.0))
    reading = replay.read(np.eye(3)[0])
    assert reading is not None
    assert reading.value == pytest.approx(windows.values[150, 0])
    assert (replay.n_windows, replay.n_skipped) == (151, 150)
