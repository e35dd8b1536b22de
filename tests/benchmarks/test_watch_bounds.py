"""Bounds of rules that know more: against simulation, and in the order of what they know."""

import numpy as np
import pytest
from benchmarks.watch_bounds import OneStream, least_delays, mean_time


@pytest.mark.parametrize("changed", [False, True])
def test_mean_times_are_those_of_simulated_cusums(changed: bool) -> None:
    information, threshold = 4.0, 2.0
    rng, runs = np.random.default_rng(0), 3000
    cusum, times = np.zeros(runs), np.zeros(runs)
    for time in range(1, 3000):
        step = rng.normal((0.5 if changed else -0.5) * information, np.sqrt(information), runs)
        cusum = np.maximum(cusum, 0.0) + step
        times[(times == 0) & (cusum >= threshold)] = time
        if times.all():
            break
    assert times.all()
    error = times.std() / np.sqrt(runs)
    assert abs(times.mean() - mean_time(threshold, information, changed=changed)) < 4.0 * error


def test_more_information_and_more_false_alarms_make_delays_shorter() -> None:
    known = np.array([0.5, 2.0, 8.0, 30.0])
    rare, often = least_delays(known, 5000.0), least_delays(known, 100.0)
    assert (np.diff(rare) < 0).all()
    assert (often < rare).all()
    assert 1.0 <= rare[-1] < 1.1


def test_the_mixture_over_streams_grows_by_one_a_window_in_the_mean() -> None:
    rng, rule = np.random.default_rng(1), OneStream(np.eye(4), 0.3)
    rule.start(20_000)
    for time in (1, 2, 3):
        values = np.exp(rule.update(rng.standard_normal((20_000, 4))))
        assert values.mean() == pytest.approx(time, rel=0.02)
