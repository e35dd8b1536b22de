"""Thresholds: tails are those of known distributions, and the mean time to a false alarm is what was asked for."""

import numpy as np
import pytest

from eccaht.streams.watch.detector import EDetector, StepDetector
from eccaht.streams.watch.thresholds import Calibration, Tail, calibrated
from tests.streams.watch.worlds import inverse, quiet, toeplitz

SIZE = 4
LONGEST = 20
NOISE = toeplitz(SIZE, 0.5)
PRECISION = inverse(NOISE)


def test_tail_of_an_exponential_sequence() -> None:
    """Independent exponential values of slope 2 pass b at the rate exp(-2 b)."""
    values = np.random.default_rng(0).exponential(0.5, size=(2000, 250)).max(axis=1)
    tail = Tail.of(values, 250)
    assert tail.slope == pytest.approx(2.0, rel=0.15)
    assert tail.log_time(4.0) == pytest.approx(8.0, abs=0.3)
    assert tail.log_time(4.0, errors=1.0) < tail.log_time(4.0)


def test_calibration_is_cached_and_depends_on_the_seed() -> None:
    first = calibrated(PRECISION, windows=2000, longest=LONGEST)
    assert calibrated(PRECISION, windows=2000, longest=LONGEST) is first
    assert calibrated(4.0 * PRECISION, windows=2000, longest=LONGEST) is first  # another unit
    assert calibrated(PRECISION, 1, windows=2000, longest=LONGEST) != first
    assert Calibration.from_numbers(first.numbers()) == first
    for damaged in (first.numbers()[1:], -first.numbers(), np.full((4, 4), np.nan)):
        with pytest.raises(ValueError, match="calibration"):
            Calibration.from_numbers(damaged)


def alarms(calibration: Calibration, every: float, count: int, runs: int, seed: int) -> int:
    detector = StepDetector(PRECISION, plants=runs, longest=LONGEST)
    found = 0
    for x in quiet(NOISE, count, runs, seed=seed):
        over = calibration.log_time(detector.update(x)) >= np.log(every)
        found += int(over.sum())
        if over.any():
            detector.reset(over)
    return found


def test_false_alarms_are_as_rare_as_asked_for() -> None:
    calibration = calibrated(PRECISION, windows=100_000, longest=LONGEST)
    found = alarms(calibration, every=300.0, count=500, runs=60, seed=3)
    assert 60 <= found <= 130  # 100 expected


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_asked_for_over_long_times() -> None:
    calibration = calibrated(PRECISION, longest=LONGEST)
    assert 20 <= alarms(calibration, every=20_000.0, count=4000, runs=200, seed=3) <= 60  # 40 expected


def test_the_e_detector_grows_by_one_a_window_in_the_mean() -> None:
    """While none of its onsets is dropped, its mean after t windows is t."""
    values = []
    for rows in quiet(NOISE, 3, 1500, seed=5).transpose(1, 0, 2):
        detector = EDetector(PRECISION, longest=LONGEST)
        values.append([np.exp(detector.update(row)) for row in rows])
    mean, error = np.mean(values, axis=0), np.std(values, axis=0) / np.sqrt(len(values))
    assert (np.abs(mean - [1.0, 2.0, 3.0]) < 4.0 * error).all()


def test_the_e_detector_keeps_its_false_alarm_rate() -> None:
    every, runs = 20.0, 30
    times = []
    for rows in quiet(NOISE, 200, runs, seed=7).transpose(1, 0, 2):
        detector = EDetector(PRECISION, longest=LONGEST)
        times.append(next((t for t, row in enumerate(rows, 1) if detector.update(row) >= np.log(every)), 200))
    assert np.mean(times) > every


def test_the_e_detector_ignores_silent_streams() -> None:
    rows = quiet(NOISE, 30, seed=2)
    whole, others = EDetector(PRECISION, longest=LONGEST), EDetector(inverse(NOISE[1:, 1:]), longest=LONGEST)
    ratio = []
    for row in rows:
        few = whole.update(np.append(np.nan, row[1:])), others.update(row[1:])
        ratio.append(np.subtract(*few))
    assert np.abs(ratio).max() < 1.0  # a stream that says nothing takes its share of the mixture, no more


def test_the_e_detector_finds_a_step_and_forgets_by_reset() -> None:
    rows = quiet(NOISE, 40, seed=2)
    detector, fresh = EDetector(PRECISION, longest=LONGEST), EDetector(PRECISION, longest=LONGEST)
    for row in rows[:20] + np.array([0.0, 2.0, -2.0, 0.0]):
        strongest = detector.update(row)
    assert strongest > np.log(1e6)
    detector.reset()
    assert [detector.update(row) for row in rows[20:]] == [fresh.update(row) for row in rows[20:]]
