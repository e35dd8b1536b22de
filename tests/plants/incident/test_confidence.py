"""Confidence is the share of right sets among drills that were as clear, from below; and it holds in other drills."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.signal import lfilter

from eccaht.base.arrays import Array
from eccaht.plants.incident.counts import Drilled
from eccaht.plants.incident.drill import FEWEST, drilled_of, fitted
from eccaht.plants.incident.naming import LONGEST_DRILL, set_belief
from eccaht.plants.incident.trials import DrilledAnswer, Trial, halves_of, quiet_of, run_trials


def chances(*log_odds: float) -> Array:
    return 1.0 / (1.0 + np.exp(-np.array(log_odds)))


def test_a_set_is_as_clear_as_its_weakest_sensor_and_the_next_one() -> None:
    beliefs = chances(9.0, 3.0, -2.0, -5.0)
    assert_allclose(set_belief(beliefs, [0, 1]), np.log(4.0) + np.log(3.0))
    assert_allclose(set_belief(beliefs, [0]), np.log(10.0))  # sensor 1 looks wrong and is not named
    assert_allclose(set_belief(beliefs, [0, 1, 2]), np.log(6.0))  # sensor 2 looks sound and is named


def test_longer_incidents_are_clearer_up_to_the_longest_drill() -> None:
    beliefs = chances(9.0, -2.0)
    found = [set_belief(beliefs, [0], windows=windows) for windows in (1, 10, LONGEST_DRILL, 10 * LONGEST_DRILL)]
    assert_allclose(found[1] - found[0], np.log(10.0) / 5.0)
    assert found[1] < found[2] == found[3]


def test_sensors_that_stand_still_are_wrong_by_themselves() -> None:
    beliefs = chances(0.1, -3.0, -4.0)
    assert set_belief(beliefs, [0], standing=[0]) > set_belief(beliefs, [0])
    assert np.isfinite(set_belief(np.array([1.0, 0.0]), [0]))
    assert np.isfinite(set_belief(np.array([1.0, 1.0]), [0, 1]))


def outcomes(rng: np.random.Generator, many: int) -> list[tuple[float, bool]]:
    """Answers that are right with a probability that grows with their clarity, from 0.3 to 1."""
    clarity = rng.uniform(0.0, 5.0, many)
    right = rng.random(many) < 0.3 + 0.7 * np.minimum(clarity / 3.0, 1.0)
    return list(zip(clarity.tolist(), right.tolist(), strict=True))


def test_the_share_increases_and_is_hardly_ever_too_high() -> None:
    rng = np.random.default_rng(0)
    above = []
    for _ in range(100):
        found = fitted(outcomes(rng, 500))
        assert found is not None
        shares = np.array([found.counted(clarity) for clarity in np.linspace(-1.0, 6.0, 50)])
        assert (np.diff(shares) >= 0).all()
        for clarity in (1.0, 2.0, 4.0):
            above.append(found.counted(clarity) > 0.3 + 0.7 * min(clarity / 3.0, 1.0) + 0.02)
        assert found.counted(4.5) >= 0.95
    assert np.mean(above) < 0.1


def test_few_drills_say_nothing() -> None:
    rng = np.random.default_rng(1)
    assert fitted(outcomes(rng, FEWEST - 1)) is None
    assert fitted(outcomes(rng, FEWEST)) is not None


def test_equal_clarity_gives_one_share() -> None:
    found = fitted([(1.0, False)] * 60 + [(2.0, k % 2 == 0) for k in range(200)])
    assert found is not None
    assert found.counted(2.0) < 0.5
    assert found.counted(1.0) < 0.05


# -- on simulated plants -------------------------------------------------------------------------------


def plant(sensors: int, windows: int, seed: int, memory: float = 0.9) -> Array:
    """Sensors that follow three common causes, with noise of their own."""
    rng = np.random.default_rng(seed)
    causes = lfilter([np.sqrt(1.0 - memory**2)], [1.0, -memory], rng.standard_normal((windows + 50, 3)), axis=0)[50:]
    own = lfilter([0.87], [1.0, -0.5], rng.standard_normal((windows, sensors)), axis=0)
    x = causes @ rng.standard_normal((3, sensors)) + rng.uniform(0.2, 1.0, sensors) * own
    return np.asarray(x / (np.percentile(x, 75, axis=0) - np.percentile(x, 25, axis=0)))


@lru_cache(maxsize=8)
def drilled(sensors: int, windows: int, seed: int) -> tuple[Drilled, list[Trial]]:
    values = plant(sensors, windows, 7)
    judges = halves_of(values, np.zeros(windows, dtype=np.intp), np.zeros(sensors))
    every = 3.0 * windows
    trials = run_trials(judges, every, 700, seed)
    return drilled_of(trials, quiet_of(judges, every), every, 0.05), trials


def confidence(found: Drilled, answer: DrilledAnswer) -> float:
    part = found.standing if answer.standing else found.afterwards
    return 0.0 if part is None else part.counted(answer.clarity)


@pytest.mark.slow
@pytest.mark.parametrize(("sensors", "windows"), [(8, 800), (12, 1500)])
def test_confident_answers_are_right_in_drills_with_other_seeds(sensors: int, windows: int) -> None:
    confident = []
    for seed, other in ((0, 1), (1, 0)):
        found, _ = drilled(sensors, windows, seed)
        answers = [each for trial in drilled(sensors, windows, other)[1] for each in trial.answers]
        confident += [each.right for each in answers if confidence(found, each) >= 0.95]
    assert len(confident) > 100
    assert np.mean(confident) >= 0.95


@pytest.mark.slow
def test_a_clear_fault_on_a_good_plant_has_a_confident_answer() -> None:
    """Large steps that last, in drills with another seed."""
    found, _ = drilled(12, 1500, 0)
    _, trials = drilled(12, 1500, 1)
    clear = [trial for trial in trials if trial.kind == "step" and trial.size > 2.0 and trial.lasted > 30]
    assert len(clear) >= 10
    confidences = np.array([confidence(found, trial.answers[0]) for trial in clear])
    assert np.mean(confidences >= 0.95) > 0.2
    assert np.median(confidences) > 0.9


@pytest.mark.slow
def test_what_is_counted_as_sure_is_held_out_and_holds() -> None:
    found, trials = drilled(12, 1500, 0)
    confident, wrong = found.counts.confident
    assert 0 < confident < sum(len(trial.answers) for trial in trials)
    assert wrong <= 0.05 * confident
    assert found.counts.holds
