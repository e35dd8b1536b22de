"""Plants whose levels wander: an alarm ends when its sensors are where the history would also have led them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from eccaht.data.source import Arrays
from eccaht.model.calibration import calibrate_with_windows
from eccaht.randomness import rng_for
from eccaht.watch.history import rule_of_history
from eccaht.watch.plant import PlantWatch
from eccaht.watch.wander import AGES, SEEN, moves_at, usual_moves

SENSORS, ONSET, APART = 5, 400, 4.0


def noise(windows: int, *place: str) -> np.ndarray:
    """What sensors share, and a little of their own."""
    rng = rng_for(0, "regimes", *place)
    return 0.3 * rng.standard_normal((windows, 1)) + 0.1 * rng.standard_normal((windows, SENSORS))


@lru_cache(maxsize=1)
def watch_of_history() -> PlantWatch:
    """Of a plant with two regimes, between which all sensors change together, once in 150 windows."""
    changes = rng_for(0, "regimes", "changes").random((2500, 1)) < 1 / 150
    rows = noise(2500, "history") + APART * (np.cumsum(changes, axis=0) % 2)
    source = Arrays(rows, None, [f"c{k + 1}" for k in range(SENSORS)])
    model, windows = calibrate_with_windows(source, window="1row", level="local", tails="gaussian")
    return PlantWatch(model, rule_of_history(model, windows), false_alarm_every=5000)


def in_alarm(fault: np.ndarray, change: int) -> list[int]:
    """The windows in which an alarm is on; fault: of sensor 2 from ONSET on; change: of the regime."""
    known = watch_of_history()
    watch = PlantWatch(known.model, known.rule, false_alarm_every=5000)
    rows = noise(ONSET + len(fault), "now")
    rows[ONSET:, 2] += fault
    rows[change:] += APART
    found = []
    for t, row in enumerate((rows - known.model.center) / known.model.scale):
        watch.update(row)
        if watch.alarm is not None:
            assert "c3" in watch.alarm.names
            found.append(t)
    return found


def test_a_short_fault_is_over_soon_though_the_regime_changes_meanwhile() -> None:
    fault = np.zeros(250)
    fault[:3] = 60.0
    on = in_alarm(fault, ONSET - 20)
    assert on[0] == ONSET
    assert on[-1] < ONSET + 100  # the level frozen before it and what the others say now disagree for 200 windows


def test_a_lasting_fault_stays_an_alarm() -> None:
    on = in_alarm(np.full(150, 60.0), ONSET - 100)
    assert on == list(range(ONSET, ONSET + 150))


def test_usual_moves_of_a_random_walk_and_of_noise() -> None:
    rng = rng_for(0, "usual moves")
    T, width = 300_000, 11
    walk, noise = np.cumsum(rng.standard_normal(T)), rng.standard_normal(T)
    moves = usual_moves(np.column_stack([walk, noise]), width)
    ninth = 1.6449  # of a Gaussian, nine of ten values are no farther from 0
    far = np.array(AGES) >= 80
    # from the middle of the windows before to the middle of those that are seen, but for what a mean lacks
    steps = np.array(AGES)[far] + (width - SEEN) / 2
    np.testing.assert_allclose(moves[far, 0], ninth * np.sqrt(steps), rtol=0.06)
    median = np.sqrt(np.pi / 2 / width)
    np.testing.assert_allclose(moves[far, 1], ninth * np.hypot(median, SEEN**-0.5), rtol=0.08)


@pytest.mark.parametrize(("age", "between"), [(1, (0, 0)), (15, (3, 4)), (200, (8, 8)), (5000, (8, 8))])
def test_moves_between_counted_ages(age: int, between: tuple[int, int]) -> None:
    moves = np.arange(len(AGES) * 2.0).reshape(-1, 2)
    np.testing.assert_allclose(moves_at(moves, age), moves[list(between)].mean(axis=0))


def test_a_short_history_says_what_it_can() -> None:
    moves = usual_moves(rng_for(0, "short").standard_normal((80, 3)), 60)
    reached = np.array(AGES) <= 20
    assert (moves[reached] > 0.0).all()
    assert (moves[~reached] == moves[reached][-1]).all()
