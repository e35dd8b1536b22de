"""Confidence is the share of right sets among drills with such clues; and it holds in other drills."""

from functools import lru_cache

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.signal import lfilter
from scipy.special import expit

from eccaht.base.arrays import Array
from eccaht.plants.incident.confidence import FEWEST, N_CLUES, Clues, clues_of, fitted
from eccaht.plants.incident.counts import Drilled
from eccaht.plants.incident.drill import drilled_of
from eccaht.plants.incident.naming import LONGEST_DRILL, Naming
from eccaht.plants.incident.trials import DrilledAnswer, Trial, halves_of, quiet_of, run_trials


def naming(rarity: list[float], named: tuple[int, ...]) -> Naming:
    others = tuple(k for k in range(len(rarity)) if k not in named)
    return Naming((*named, *others), named, np.array(rarity), np.array(rarity), 5.0, np.full(len(rarity), 0.5))


def test_the_clues_are_the_weakest_named_sensor_the_strongest_other_and_the_kinds() -> None:
    clues = clues_of(naming([9.0, 12.0, 4.0, 1.0], (1, 0)), {1: "step", 0: "noise"}, 7.0, 10)
    assert_allclose(clues[:4], np.log([1.0 + 4.0, 1.0 + 1.0, 1.0 + 7.0, 10.0]))
    assert clues[4:] == (1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert len(clues) == N_CLUES


def test_sensors_that_are_wrong_by_themselves_need_no_evidence() -> None:
    clues = clues_of(naming([0.0, 12.0, 4.0], (0, 1)), {0: "stuck", 1: "step"})
    assert clues[0] == np.log(1.0 + 7.0)
    assert np.isfinite(clues_of(naming([0.0, 0.0], (0, 1)), {0: "range", 1: "silent"})).all()


def test_more_windows_count_up_to_the_longest_drill() -> None:
    found = [clues_of(naming([9.0, 1.0], (0,)), windows=n)[3] for n in (1, LONGEST_DRILL, 10 * LONGEST_DRILL)]
    assert_allclose(found, [0.0, np.log(LONGEST_DRILL), np.log(LONGEST_DRILL)])


def outcomes(rng: np.random.Generator, many: int) -> tuple[list[Clues], list[bool]]:
    """Answers with two clues that count and others that are noise; the log-odds to be right are 2 a - 3 b."""
    clues = rng.uniform(0.0, 2.0, (many, N_CLUES))
    clues[:, 5] = 1.0
    right = rng.random(many) < expit(2.0 * clues[:, 0] - 3.0 * clues[:, 1])
    return [tuple(each) for each in clues.tolist()], right.tolist()


def test_shares_are_those_of_the_law_that_made_the_answers() -> None:
    rng = np.random.default_rng(0)
    found = fitted(*outcomes(rng, 20_000))
    assert found is not None
    clues, _ = outcomes(rng, 200)
    expected = [expit(2.0 * each[0] - 3.0 * each[1]) for each in clues]
    assert_allclose([found.counted(each) for each in clues], expected, atol=0.05)  # errors of 0.01


def test_the_mean_share_is_that_of_the_drills() -> None:
    """The score equation of the constant: the sum of the shares is that of Platt's targets."""
    for seed in range(5):
        clues, right = outcomes(np.random.default_rng(seed), 100)
        found = fitted(clues, right)
        assert found is not None
        n, m = sum(right), len(right) - sum(right)
        expected = n * (n + 1.0) / (n + 2.0) + m / (m + 2.0)
        assert_allclose(sum(found.counted(each) for each in clues), expected, rtol=1e-5)


def test_drills_that_were_all_right_do_not_make_certain() -> None:
    clues, _ = outcomes(np.random.default_rng(1), 60)
    found = fitted(clues, [True] * 60)
    assert found is not None
    assert_allclose([found.counted(each) for each in clues], 61.0 / 62.0, rtol=1e-6)


def test_clues_beyond_those_of_drills_count_as_the_farthest_of_them() -> None:
    clues, right = outcomes(np.random.default_rng(2), 300)
    found = fitted(clues, right)
    assert found is not None
    assert found.counted((100.0,) * N_CLUES) == found.counted(tuple(np.max(clues, axis=0).tolist()))


def test_few_drills_say_nothing() -> None:
    clues, right = outcomes(np.random.default_rng(3), FEWEST)
    assert fitted(clues, right) is not None
    assert fitted(clues[1:], right[1:]) is None


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
    return 0.0 if part is None else part.counted(answer.clues)


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
    assert np.mean(confidences >= 0.95) > 0.5


@pytest.mark.slow
def test_what_is_counted_as_sure_is_held_out_and_holds() -> None:
    found, trials = drilled(12, 1500, 0)
    confident, wrong = found.counts.confident
    assert 0 < confident < sum(len(trial.answers) for trial in trials)
    assert wrong <= 0.05 * confident
    assert found.counts.holds
