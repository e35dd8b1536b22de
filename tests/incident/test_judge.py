"""The judge names what was moved, whatever the sensors are called, and its probabilities are probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht.arrays import Array
from eccaht.incident.judge import Judge, standing_still
from eccaht.incident.onset import scan
from eccaht.incident.usual import simulated
from tests.incident.worlds import normal_of, quiet_worlds

K, START, STOP = 6, 100, 140
NONE = np.zeros(400)


@pytest.fixture(scope="module")
def white() -> Judge:
    normal = normal_of(K, scatter=np.eye(K))
    return Judge(normal, quiet_worlds(normal))


@pytest.fixture(scope="module")
def shared() -> Judge:
    normal = normal_of(K, tails=6.0, memory=0.4)
    return Judge(normal, quiet_worlds(normal))


def windows(judge: Judge, seed: int = 50) -> Array:
    return simulated(judge.normal, len(NONE), seed)


def moved(judge: Judge, sensors: list[int], by: float = 8.0, since: int = START, seed: int = 50) -> Array:
    values = windows(judge, seed)
    values[since:, sensors] += by
    return values


@pytest.mark.parametrize("sensor", range(K))
@pytest.mark.parametrize("by", [-9.0, 9.0])
def test_a_huge_step_in_one_sensor_of_a_white_world_is_named_alone(white: Judge, sensor: int, by: float) -> None:
    judgement = white(moved(white, [sensor], by), NONE, START, STOP)
    assert judgement.named == (sensor,)
    assert judgement.order[0] == sensor
    assert judgement.alarm
    assert np.sign(judgement.evidence.deviations[:, sensor].mean()) == np.sign(by)


def test_a_scan_passes_where_something_happens_and_nowhere_else(white: Judge) -> None:
    told: list[float] = []
    values = windows(white)
    values[250:300, 1] += 8.0
    place, passed = scan(white, values, NONE, 10, 400, told.append)
    assert passed > 0.0
    assert 190 < place < 300
    assert all(0.0 <= share <= 1.0 for share in told)
    assert told == sorted(told)


@pytest.mark.parametrize("sensors", [[], [4], [0, 3], [1, 2, 5]])
def test_relabelling_sensors_relabels_the_answer(shared: Judge, sensors: list[int]) -> None:
    values, order = moved(shared, sensors, 5.0), np.array([4, 2, 0, 5, 1, 3])
    plain = shared(values, NONE, START, STOP)
    other = Judge(shared.normal.of(order), shared.quiet.of(order))(values[:, order], NONE, START, STOP)
    assert [order[k] for k in other.order] == list(plain.order)
    assert [order[k] for k in other.named] == list(plain.named)
    assert_allclose(other.beliefs(), plain.beliefs()[order], rtol=1e-6, atol=1e-12)
    assert_allclose(other.statistic, plain.statistic, rtol=1e-6)
    assert_allclose(other.log_odds, plain.log_odds, rtol=1e-6)


def test_later_windows_do_not_matter(shared: Judge) -> None:
    values = moved(shared, [3])
    later = values.copy()
    later[STOP:] = 1e3
    assert shared(values, NONE, START, STOP).order == shared(later, NONE, START, STOP).order


@pytest.mark.parametrize("factor", [1e-3, 0.3, 1.0])
@pytest.mark.parametrize("sensors", [[], [4], [0, 3], [0, 1, 2, 3, 5]])
def test_beliefs_and_posteriors_are_probabilities(shared: Judge, sensors: list[int], factor: float) -> None:
    for by in (0.5, 3.0, 1e6):
        judgement = shared(moved(shared, sensors, by), NONE, START, STOP)
        beliefs = judgement.beliefs(factor)
        assert ((beliefs >= 0.0) & (beliefs <= 1.0)).all()
        assert 0.0 <= judgement.posterior(factor) <= 1.0
        assert sorted(judgement.order) == list(range(K))
        assert set(judgement.order[: len(judgement.named)]) == set(judgement.named)
        assert np.isfinite(judgement.log_odds)


@pytest.mark.parametrize("number", [1, 2, 4])
def test_as_many_are_named_as_are_known_to_be_wrong(shared: Judge, number: int) -> None:
    assert len(shared(windows(shared), NONE, START, STOP, number=number).named) == number
    assert set(shared(moved(shared, [1, 4]), NONE, START, STOP, number=2).named) == {1, 4}


def test_answers_without_some_sensors_and_without_alarm(shared: Judge) -> None:
    judgement = shared(moved(shared, [1, 4]), NONE, START, STOP)
    assert judgement.without([]) is judgement
    assert judgement.without([1]).named == tuple(k for k in judgement.named if k != 1)
    quiet = judgement.without_alarm()
    assert quiet.named == ()
    assert not quiet.alarm
    assert quiet.basis == "nothing"
    assert 0.0 <= quiet.posterior() <= 0.5


# -- standing still ------------------------------------------------------------------------------------


def test_sensors_that_repeat_a_value_or_fall_silent_stand_still() -> None:
    values = np.random.default_rng(0).standard_normal((100, 4))
    values[70:, 1] = values[69, 1]
    values[60:, 2] = np.nan
    values[:, 3] = np.nan  # was silent before: no news
    still = np.full(4, 10.0)
    assert standing_still(values, 60, 100, still) == {1: "stuck", 2: "silent"}
    assert standing_still(values, 60, 79, still) == {2: "silent"}  # the tenth window with one value is allowed
    assert standing_still(values, 60, 80, still) == {1: "stuck", 2: "silent"}
    assert standing_still(values, 0, 60, still) == {3: "silent"}  # nothing is known of before
    assert standing_still(values, 60, 100, np.array([10.0, 50.0, 10.0, 10.0])) == {2: "silent"}


@pytest.mark.parametrize("kind", ["stuck", "silent"])
def test_a_sensor_that_stands_still_is_named_beside_one_that_moves(white: Judge, kind: str) -> None:
    values = moved(white, [2])
    values[START - 1 :, 5] = values[START - 1, 5] if kind == "stuck" else np.nan
    judgement = white(values, NONE, START, STOP)
    assert set(judgement.named) == {2, 5}
    assert judgement.standing == {5: kind}
    assert judgement.beliefs()[5] == 1.0 - 1.0 / K
