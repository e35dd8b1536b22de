"""A plant watched with few readings: the filter is exact, every sensor is visited, and the budget is kept."""

from copy import deepcopy
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eccaht
from eccaht.plants.tuning import TUNING
from eccaht.plants.watch.active import ActiveEngine, Dynamics, Latch, ReadingPlan, budget_of, masked, planned
from eccaht.plants.watch.plant import PlantWatch
from eccaht.plants.watch.session import Session
from eccaht.plants.watch.state import built_plant, plant_state
from tests.plants.watch.plants import SENSORS, plant, readings, scaled


@lru_cache
def plan(many: float = 2.0) -> ReadingPlan:
    return planned(plant()[0], budget_of(plant()[0], many))


def engine(many: float = 2.0, **changed: Any) -> ActiveEngine:
    normal = plant()[0].normal
    assert normal is not None
    return ActiveEngine(normal, 1000.0, replace(plan(2.0), readings=many, **changed))


def asked_over(watch: ActiveEngine, windows: int, seed: int = 1) -> np.ndarray:
    """Which sensors were asked for in each window, (T, K), if just these answer."""
    found = np.zeros((windows, SENSORS), dtype=bool)
    for t, row in enumerate(scaled(readings(windows, seed))):
        asked = watch.ask()
        assert watch.ask().tolist() == asked.tolist()
        found[t, asked] = True
        watch.step(masked(row, asked)[None])
    return found


def test_the_filter_is_the_conditional_of_one_large_gaussian() -> None:
    """What is predicted and what it leaves open, from the joint covariance of all windows, inverted as a whole."""
    watch, T, K = engine(), 5, SENSORS
    F, Q, P = Dynamics.of(watch.normal)
    blocks = [[np.zeros((K, K))] * T for _ in range(T)]
    own = [P]
    for _ in range(1, T):
        own.append(F @ own[-1] @ F.T + Q)
    for s in range(T):
        blocks[s][s] = own[s]
        for t in range(s + 1, T):
            blocks[t][s] = F @ blocks[t - 1][s]
            blocks[s][t] = blocks[t][s].T
    joint = np.block(blocks)
    rows, rng = 0.3 * scaled(readings(T - 1, 5)), np.random.default_rng(0)
    seen = np.zeros((T, K), dtype=bool)
    for t, row in enumerate(rows):
        chosen = rng.choice(K, 2, replace=False)
        seen[t, chosen] = True
        watch.step(masked(row, chosen)[None])
    z = watch.normal.scaled(rows)[seen[:-1]]
    known, new = np.flatnonzero(seen.ravel()), np.arange((T - 1) * K, T * K)
    gain = np.linalg.solve(joint[np.ix_(known, known)], joint[known][:, new]).T
    assert np.abs(watch._mean - gain @ z).max() < 1e-6  # a ridge of 1e-9 on variances of at least 1e-2
    assert np.abs(watch._covariance - (joint[np.ix_(new, new)] - gain @ joint[known][:, new])).max() < 1e-6


def test_each_sensor_is_taken_that_adds_most_to_the_weighted_precisions() -> None:
    watch = engine(3.0)
    asked_over(watch, 20)
    w = np.exp(watch._suspicion + 0.3 * watch._age)
    C, taken = watch._covariance, watch.ask().tolist()

    def worth(some: list[int]) -> float:
        return float(w[some] @ np.linalg.inv(C[np.ix_(some, some)]).diagonal()) if some else 0.0

    for k in range(3):
        best = max((worth([*taken[:k], j]), j) for j in range(SENSORS) if j not in taken[:k])
        assert best[1] == taken[k]


@pytest.mark.parametrize("many", [1.0, 2.0, 5.0])
def test_every_sensor_is_read_within_six_rounds_whatever_is_suspected(many: float) -> None:
    watch = engine(many)
    rounds = np.ceil(SENSORS / many)
    last = np.zeros(SENSORS)
    for t, row in enumerate(scaled(readings(300, 2))):
        asked = watch.ask()
        assert len(asked) <= many
        watch.step(masked(row, asked)[None])
        watch._suspicion[:2] = 50.0  # two sensors that always seem wrong
        last[asked] = t
        assert (t - last).max() <= 6 * rounds


def test_the_budget_is_kept_in_the_mean_where_readings_cost_more() -> None:
    costs = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 7.0])
    found = asked_over(engine(2.0, costs=costs), 400)
    assert (found @ costs).mean() <= 2.0
    assert found.sum(axis=0).min() >= 5
    assert np.diff(np.flatnonzero(found[:, 5])).max() <= 6 * np.ceil(costs.sum() / 2.0)


def test_a_sensor_is_read_as_often_as_it_must() -> None:
    within = np.full(SENSORS, 1e9)
    within[3] = 4.0
    found = asked_over(engine(1.0, within=within), 300)
    assert np.diff(np.flatnonzero(found[:, 3])).max() <= 4
    assert found.any(axis=0).all()


def test_a_step_is_found_and_named_with_a_third_of_the_readings() -> None:
    named = []
    for seed in range(6):
        values = scaled(readings(160, 20 + seed))
        values[100:, 3] += 6.0
        watch = PlantWatch(plant()[0], plan=plan())
        alarms = [watch.take(masked(row, plant()[0].places(watch.ask())), None) for row in values]
        raised = [alarm for alarm in alarms if alarm is not None]
        named += [alarm.names for alarm in raised if alarm.time >= 100]
        assert not watch.standing  # what was not read is not silent
    assert len(named) >= 5
    assert sum(name[0] == plant()[0].names[3] for name in named) >= 4


def test_false_alarms_come_at_most_twice_as_often_as_asked() -> None:
    begun, windows = 0, 0
    for seed in range(8):
        watch = PlantWatch(plant()[0], false_alarm_every=200, plan=plan())
        for row in scaled(readings(500, 40 + seed)):
            begun += watch.take(masked(row, plant()[0].places(watch.ask())), None) is not None
            windows += 1
    assert begun <= 2 * windows / 200 + 3 * np.sqrt(2 * windows / 200)


def test_a_sensor_that_does_not_answer_is_silent_and_others_are_not() -> None:
    watch = PlantWatch(plant()[0], plan=plan())
    model = plant()[0]
    for row in scaled(readings(150, 3)):
        row[4] = np.nan
        watch.take(masked(row, model.places(watch.ask())), None)
    assert {k: kind for k, (kind, _) in watch.standing.items()} == {4: "silent"}


def test_what_lasts_without_anything_sudden_is_a_change() -> None:
    latch, steady, hold = Latch(), TUNING.change_windows, TUNING.alarm_hold_windows
    shown = [latch.step(True, True), *(latch.step(False, True) for _ in range(2 * steady))]
    assert [t for t, (began, _, _) in enumerate(shown) if began] == [0]
    assert [t for t, (_, over, changed) in enumerate(shown) if over and changed] == [steady]
    assert (latch.settled, latch.on) == (True, False)
    assert latch.step(True, True)[0]  # what is sudden raises an alarm again
    shown = [latch.step(False, False) for _ in range(TUNING.long_windows)]
    assert [t for t, (_, over, changed) in enumerate(shown) if over and not changed] == [hold - 1]
    assert not latch.settled


def test_a_sensor_far_out_of_range_leaves_the_others_to_be_judged() -> None:
    watch, rows = engine(), scaled(readings(120, 8))
    rows[40:, 0] += 1000.0
    for row in rows:
        watch.step(masked(row, watch.ask())[None])
    sudden, lasting = (watch.statistics > watch.limits).tolist()
    assert watch.standing[2, 0].tolist() == [True] + [False] * (SENSORS - 1)
    assert (sudden, lasting) == (False, True)
    assert (watch.latch.settled, watch.latch.on) == (True, False)


def test_a_watch_goes_on_bit_for_bit() -> None:
    model, rows = plant()[0], scaled(readings(200, 9))
    rows[120:, 1] += 6.0
    watch = PlantWatch(model, plan=plan())
    for t, row in enumerate(rows):
        asked = watch.ask()
        if t in (0, 60, 130):
            other = built_plant(model, deepcopy(plant_state(watch)))
        if t >= 130:
            assert other.ask() == asked
            other.take(masked(row, model.places(asked)), None)
        watch.take(masked(row, model.places(asked)), None)
    assert np.array_equal(other.engine._mean, watch.engine._mean)  # type: ignore[union-attr]
    assert other.evidence == watch.evidence
    assert other.alarm is not None


def test_more_and_fewer_readings_and_whole_rows_are_taken(tmp_path: Path) -> None:
    model = eccaht.calibrate(readings(600, 0), names=list("abcdef"), window="1rows", drills=0, progress=False)
    watch = model.watch(readings=2, progress=False)
    rows = readings(60, 4)
    for t, row in enumerate(rows):
        asked = watch.ask()
        assert len(asked) == 2
        given = dict(zip("abcdef", row.tolist(), strict=True))
        if t % 3 == 0:
            given = {asked[0]: given[asked[0]]}
        elif t % 3 == 1:
            given = {name: given[name] for name in {*asked, "a"}}
        if t == 20:
            given = {}
        watch.update(given)
        assert watch.session.windows == t + 1  # judged at once: what to ask depends on it
        if t == 30:
            watch.save(tmp_path / "active.watch")
            watch = eccaht.load_watch(tmp_path / "active.watch")


def test_shelved_sensors_are_not_asked_for() -> None:
    session = Session(PlantWatch(plant()[0], plan=plan()))
    name = plant()[0].names[2]
    session.watch.shelve([name])
    for row in scaled(readings(40, 7)):
        asked = session.watch.ask()
        assert name not in asked
        session.watch.take(masked(row, plant()[0].places(asked)), None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"readings": 0.5}, "pay for no sensor"),
        ({"readings": 2, "costs": {"nowhere": 3.0}}, "no sensor"),
        ({"readings": 2, "costs": {"s1": 0.0}}, "must be positive"),
        ({"costs": {"s1": 2.0}}, "give readings"),
        ({"readings": 2, "at_least_every": {"s1": "1h"}}, "no times"),
    ],
)
def test_what_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    model = plant()[0]
    known = {"s1": model.names[1]}
    given: dict[str, Any] = {
        key: {known.get(name, name): each for name, each in value.items()} if isinstance(value, dict) else value
        for key, value in options.items()
    }
    with pytest.raises(ValueError, match=said):
        model.watch(**given, progress=False)
