"""Drills lie in the quiet windows, come in pairs, are the same for the same seed, and show their faults."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from eccaht.arrays import Array
from eccaht.incident.drilling import LENGTHS, QUIET, Drill, confidence, kinds_of, run_drills
from eccaht.incident.faults import KINDS, SIZED
from tests.incident.judges import Guessing, Perfect, drill_of, plant


def drilled(quiet: Array, judge: Any = None, **options: Any) -> list[Drill]:
    return run_drills(judge or Perfect(quiet), quiet, 60.0 * np.arange(float(len(quiet))), **{"runs": 48, **options})


def facts(drills: list[Drill]) -> list[tuple[Any, ...]]:
    return [(d.kind, d.size, d.sensors, d.start, d.length, d.named, d.part) for d in drills]


def test_a_perfect_judge_is_always_right() -> None:
    drills = drilled(plant(), runs=120)
    assert all(drill.right and drill.falsely_named == 0 for drill in drills)
    assert all(drill.found == len(drill.sensors) for drill in drills)
    assert all(drill.alarm is not drill.quiet for drill in drills)


def test_stretches_lie_after_the_first_hour_and_have_the_lengths_that_fit() -> None:
    for windows, lengths in ((900, {20, 60, 200}), (300, {20, 60}), (120, {20})):
        drills = drilled(plant(windows), runs=60)
        assert {drill.length for drill in drills} == lengths
        assert all(60 <= drill.start <= windows - drill.length for drill in drills)
    assert set(LENGTHS) == {20, 60, 200}


def test_stretches_begin_where_they_may() -> None:
    starts = np.array([10, 70, 200, 290])
    assert {drill.start for drill in drilled(plant(300), starts=starts, lengths=[20])} == {70, 200}


@pytest.mark.parametrize("runs", [1, 12, 48])
def test_both_of_a_pair_are_of_one_kind_and_serve_for_one_thing_each(runs: int) -> None:
    drills = drilled(plant(), runs=runs)
    assert [drill.kind for drill in drills[::2]] == [drill.kind for drill in drills[1::2]]
    assert [drill.part for drill in drills] == ["count", "fit"] * (len(drills) // 2)
    faults = sum(not drill.quiet for drill in drills)
    assert faults == runs + runs % 2
    assert abs(len(drills) - 1.5 * faults) <= 2


def test_kinds_are_drilled_equally_often() -> None:
    assert Counter(kinds_of(48)) == Counter({**dict.fromkeys(KINDS, 8), QUIET: 24})


def test_sizes_belong_to_kinds_that_have_one() -> None:
    for drill in drilled(plant()):
        assert (1.0 <= drill.size <= 10.0) if drill.kind in SIZED else drill.size == 0.0


def test_the_same_seed_gives_the_same_drills_and_more_runs_begin_alike() -> None:
    quiet = plant()
    assert facts(drilled(quiet)) == facts(drilled(quiet)) == facts(drilled(quiet, runs=60))[:72]
    assert facts(drilled(quiet)) != facts(drilled(quiet, seed=1))


def test_the_judge_sees_copies_and_progress_is_told() -> None:
    quiet = plant()
    done: list[int] = []
    before = quiet.copy()
    drills = drilled(quiet, progress=done.append)
    assert_array_equal(quiet, before)
    assert done == [1] * len(drills)


def test_sensors_that_stand_still_are_never_faulty() -> None:
    quiet = plant(600)
    quiet[:, 2] = 1.5
    quiet[300:, 4] = 0.0  # varies in the first half alone
    drills = drilled(quiet, runs=120, lengths=[20])
    assert all(2 not in drill.sensors for drill in drills)
    still = [drill for drill in drills if drill.start >= 300 and 4 in drill.sensors]
    assert still
    assert not {drill.kind for drill in still} & {"stuck", "replay"}
    assert all(drill.right for drill in drills)


def test_gaps_do_not_hide_faults() -> None:
    quiet = plant(600)
    quiet[np.random.default_rng(1).random(quiet.shape) < 0.2] = np.nan
    assert all(drill.right for drill in drilled(quiet, runs=120))


def test_at_least_one_sensor_stays_sound() -> None:
    assert {len(drill.sensors) for drill in drilled(plant(sensors=2)) if not drill.quiet} == {1}
    assert {len(drill.sensors) for drill in drilled(plant(sensors=4)) if not drill.quiet} == {1, 2, 3}


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_confidence_has_the_log_odds_of_the_named_set_times_the_factor(factor: float) -> None:
    for odds in (0.5, 1.0, 9.0):
        told = drill_of(True, float(np.log(odds))).confidence(factor)
        assert_allclose(told / (1.0 - told), odds**factor)
    assert confidence(np.inf, 1e-3) == 1.0


@pytest.mark.parametrize(
    ("quiet", "options", "message"),
    [
        (plant(119), {}, "drills need 120 quiet windows in a row, and there are 119"),
        (plant(300, sensors=1), {}, "at least 2 sensors"),
        (np.zeros((300, 4)), {}, "'step' can be drilled: the sensors hardly vary"),
        (plant(300), {"starts": np.array([3])}, "drills need 120 quiet windows"),
        (plant(300), {"lengths": []}, "give at least one"),
        (plant(300), {"lengths": [1]}, "a length must be a whole number of at least 2"),
        (plant(300), {"runs": 0}, "runs must be a whole number of at least 1"),
        (plant(300), {"seed": -1}, "seed must be"),
    ],
)
def test_drills_that_cannot_be_are_refused(quiet: Array, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        drilled(quiet, Guessing(), **options)
