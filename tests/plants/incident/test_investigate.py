"""A recording is answered by its incidents, dated at both ends, and by what drills on the history say of them."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eccaht.base.arrays import Array
from eccaht.plants.answer import Answer
from eccaht.plants.data.windows import Moved
from eccaht.plants.incident.drill import drill_history, keeping
from eccaht.plants.incident.investigate import investigate_incident
from eccaht.plants.model.model import Model
from tests.plants.incident.worlds import MINUTE, SCALE, START, frame_of, model_of, quiet

T, ONSET, END = 300, 120, 180
FAULTY = ("S1", "S3")
VALVE = Moved("valve", 3.0, 5.0, START + (ONSET + 5) * MINUTE)


@pytest.fixture(scope="module")
def model() -> Model:
    """A model with drills."""
    fitted, windows = model_of()
    return keeping(fitted, drill_history(fitted, windows, runs=150))


def recording(faults: dict[int, float] | None = None, *, seed: int = 1, end: int = END, windows: int = T) -> Array:
    """Quiet windows in which sensors are off by these standard deviations from the onset to the end."""
    values = quiet(6, windows, seed)
    for sensor, size in (faults or {}).items():
        values[ONSET:end, sensor] += size
    return values


def asked(model: Model, values: Array, **options: Any) -> Answer:
    return investigate_incident(model, model.prepare(frame_of(values)), **options)


def minute(time: np.datetime64 | int | None) -> int:
    assert isinstance(time, np.datetime64)
    return int((time - START) / MINUTE)


@pytest.mark.parametrize("size", [-8.0, 3.0, 5.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_fault_is_dated_at_both_ends_and_not_at_its_recovery(model: Model, size: float, seed: int) -> None:
    answer = asked(model, recording({2: size}, seed=seed))
    assert answer.verdict == "wrong"
    assert answer.named == ("S2",)
    assert abs(minute(answer.onset) - ONSET) <= 2
    assert abs(minute(answer.end) - END) <= 5
    assert np.sign(answer.sensors[0].size_raw) == np.sign(size)
    assert answer.sensors[0].size_raw == pytest.approx(SCALE * size, abs=0.8 * SCALE)
    assert all(abs(minute(incident.onset) - END) > 5 for incident in answer.incidents)


def test_several_incidents_are_several_answers_in_order_of_time(model: Model) -> None:
    values = recording({2: 6.0}, end=150)
    values[240:270, 4] -= 3.0
    first, second = asked(model, values).incidents
    assert (first.named, second.named) == (("S2",), ("S4",))
    assert first.onset < first.end < second.onset  # type: ignore[operator]
    assert asked(model, values).named == ("S2",)  # the largest


def test_with_a_start_the_rows_before_are_used_and_not_answered(model: Model) -> None:
    values = recording({2: 6.0}, end=150)
    assert asked(model, values, start=200).verdict != "wrong"
    late = asked(model, recording({2: 6.0}, end=T), start=ONSET)
    assert abs(minute(late.onset) - ONSET) <= 2
    assert late.n_windows == T - ONSET
    assert asked(model, values, stop=ONSET).verdict != "wrong"


def test_nothing_is_said_of_most_quiet_stretches(model: Model) -> None:
    verdicts = Counter(asked(model, quiet(6, 240, seed)).verdict for seed in range(10, 50))
    assert verdicts["nothing"] >= 32
    assert verdicts["wrong"] <= 6  # 40 stretches of 240 windows, one alarm in 4500 asked for


def test_beliefs_of_quiet_stretches_without_an_alarm_are_small(model: Model) -> None:
    """However long they are: of sound sensors at most one in twenty is the more likely wrong."""
    answers = [asked(model, quiet(6, 60 + windows, 70 + windows), start=60) for windows in range(5, 245, 8)]
    largest = [max(each.belief for each in answer.sensors) for answer in answers if not answer.incidents]
    assert len(largest) >= 24
    assert np.median(largest) < 0.2
    assert np.mean(np.array(largest) > 0.5) <= 0.05


def test_between_nothing_and_wrong_lies_undecided(model: Model) -> None:
    verdicts = []
    for size in np.linspace(0.0, 6.0, 49):
        values = quiet(6, 60, 10)
        values[-1, 2] += size
        answer = asked(model, values, start=55)  # few windows: in many the same peak would be nothing rare
        verdicts.append(answer.verdict)
        assert (answer.verdict == "undecided") == bool(answer.doubts)
        if answer.verdict == "nothing":
            assert max(suspect.belief for suspect in answer.sensors) <= 0.5
        if answer.verdict == "undecided":
            assert (answer.confidence, answer.named, answer.onset) == (None, (), None)
    order = ["nothing", "undecided", "wrong"]
    assert list(dict.fromkeys(verdicts)) == order
    assert verdicts == sorted(verdicts, key=order.index)


@pytest.mark.parametrize("windows", [1, 2, 10, 240])
@pytest.mark.parametrize("size", [-1000.0, 15.0, 60.0])
def test_nothing_is_never_said_while_a_sensor_is_out_of_range(model: Model, windows: int, size: float) -> None:
    values = quiet(6, 240, 10)
    values[-windows:, 5] += size
    answer = asked(model, values)
    assert answer.verdict != "nothing"
    if windows >= 10:
        assert answer.verdict == "wrong"
        assert answer.named == ("S5",)
        assert any(incident.kinds == ("range",) for incident in answer.incidents)


def test_nothing_is_never_said_of_windows_without_readings(model: Model) -> None:
    values = recording()
    values[len(values) // 2 :] = np.nan
    answer = asked(model, values)
    assert answer.verdict == "undecided"
    assert answer.doubts


def test_stuck_and_silent_sensors_are_named_as_such_with_the_dates_of_their_standstill(model: Model) -> None:
    values = recording()
    values[ONSET:END, 0], values[200:210, 4] = values[ONSET, 0], np.nan
    answer = investigate_incident(model, model.prepare(frame_of(values).fill_nan(None)))
    found = {each.named: (each.kinds, minute(each.onset), minute(each.end)) for each in answer.incidents}
    kinds, onset, end = found.pop(("S0",))  # which the others contradict after some windows
    assert kinds == ("stuck",)
    assert ONSET <= onset < ONSET + 8
    assert end == END
    assert found == {("S4",): (("silent",), 200, 210)}


def test_a_sensor_without_readings_is_silent_and_no_part_of_a_fault_beside_it(model: Model) -> None:
    """What is missing is predicted by the sound sensors: by the wrong ones it would contradict the sound ones."""
    values = recording({1: 6.0, 3: 6.0}, end=T)
    values[:, 4] = np.nan
    answer = asked(model, values)
    silent, largest = answer.incidents
    assert (silent.named, silent.kinds, minute(silent.onset)) == (("S4",), ("silent",), 0)
    assert set(largest.named) == set(FAULTY)
    assert abs(minute(largest.onset) - ONSET) <= 2
    assert {suspect.sensor: suspect.belief for suspect in largest.sensors}["S4"] < 0.5


def test_a_set_larger_than_any_drill_has_no_confidence(model: Model) -> None:
    answer = asked(model, recording({0: 6.0, 1: -6.0, 2: 7.0, 4: -8.0}))
    assert len(answer.named) == 4
    assert answer.confidence is None
    assert any("at most 3" in caution for caution in answer.cautions)


def test_named_sensors_are_believed_and_others_are_not(model: Model) -> None:
    for seed in range(1, 6):
        answer = asked(model, recording({1: 2.5, 3: -2.5}, seed=seed))
        assert all(suspect.belief >= 0.5 for suspect in answer.sensors if suspect.named)
        assert all(suspect.belief < 0.7 for suspect in answer.sensors if not suspect.named)


def test_the_confidence_is_that_of_drills(model: Model) -> None:
    answer = asked(model, recording({1: 8.0}))
    assert answer.confidence is not None
    assert 0.3 < answer.confidence < 1.0
    assert answer.confident == (answer.confidence >= 0.95)
    assert asked(model, recording({1: 8.0}), alpha=0.7).confident
    assert answer.cautions == ()


def uncounted(answer: Answer) -> str:
    """The caution that says why there is no confidence."""
    assert (answer.confidence, answer.confident) == (None, False)
    (caution,) = answer.cautions
    return caution


@pytest.mark.parametrize("options", [{"number": 2}, {"number": (1, 3)}, {"least": 0.5}])
def test_what_drills_were_not_given_leaves_no_confidence(model: Model, options: dict[str, Any]) -> None:
    answer = asked(model, recording({1: 5.0, 3: -5.0}), **options)
    assert set(FAULTY) == set(answer.named)
    assert "number" in uncounted(answer)


def test_without_drills_there_is_a_caution_and_no_confidence(model: Model) -> None:
    answer = asked(replace(model, drilled=None), recording({1: 5.0}))
    assert "no drills" in uncounted(answer)


def test_without_a_sensor_of_the_drills_there_is_no_confidence(model: Model) -> None:
    windows = model.prepare(frame_of(recording({1: 5.0, 3: -5.0})))
    answer = investigate_incident(model, windows.of(("S0", "S1", "S3", "S4", "S5")))
    assert set(answer.named) == set(FAULTY)
    assert "S2" in uncounted(answer)
    assert len(answer.sensors) == 5
    with pytest.raises(ValueError, match="in its order"):
        investigate_incident(model, windows.of(("S1", "S0")))


@pytest.mark.parametrize(("number", "named"), [(1, 1), (2, 2), (3, 3), ((0, 1), 1), ((1, 4), 2), ((3, 4), 3)])
def test_a_given_number_of_sensors_is_named(model: Model, number: Any, named: int) -> None:
    answer = asked(model, recording({1: 5.0, 3: -5.0}), number=number)
    assert len(answer.named) == named


def test_a_number_from_none_on_names_no_sensor_of_a_quiet_stretch(model: Model) -> None:
    values = quiet(6, 240, 10)
    assert asked(model, values, number=(0, 3)).verdict == "nothing"
    assert len(asked(model, values, number=(1, 3)).named) == 1
    assert len(asked(model, values, number=2).named) == 2


def test_deviations_that_are_too_small_to_matter_are_left_out(model: Model) -> None:
    values = recording({1: 8.0, 3: -2.5})
    assert set(asked(model, values).named) == set(FAULTY)
    assert asked(model, values, least=3.0).named == ("S1",)
    assert asked(model, values, least=30.0).verdict == "nothing"


def test_the_stretch_itself_may_be_the_incident(model: Model) -> None:
    answer = asked(model, recording({1: 5.0, 3: -5.0}), start=ONSET, stop=END, locate=False)
    (incident,) = answer.incidents
    assert set(incident.named) == set(FAULTY)
    assert minute(incident.onset) == ONSET
    assert incident.end is None


def test_a_constant_that_moved_is_named_and_changes_nothing_else(model: Model) -> None:
    values = recording({1: 5.0, 3: -5.0})
    without, answer = asked(model, values), asked(model, values, moved=[VALVE])
    valve = next(each for each in answer.sensors if each.sensor == "valve")
    assert (valve.named, valve.kind, valve.size_raw) == (True, "moved", 2.0)
    assert (valve.reason.expected, valve.reason.read, valve.since) == (3.0, 5.0, VALVE.since)
    assert [each.sensor for each in answer.sensors if each != valve] == [each.sensor for each in without.sensors]
    assert (answer.confidence, answer.onset) == (without.confidence, without.onset)
    alone = asked(model, quiet(6, 240, 10), moved=[VALVE])
    assert (alone.verdict, alone.named, alone.onset, alone.end) == ("wrong", ("valve",), VALVE.since, None)
    assert "too few" in uncounted(alone)
    assert asked(model, values, moved=[VALVE], number=1).named == ("valve",)
    assert len(asked(model, values, moved=[VALVE], number=2).named) == 2


def test_a_constant_that_moved_before_is_no_part_of_what_comes_later(model: Model) -> None:
    values = recording({1: 5.0, 3: -5.0})
    early = VALVE._replace(since=VALVE.since - 90 * MINUTE)
    moved, fault = asked(model, values, moved=[early]).incidents
    assert (moved.named, moved.weight) == (("valve",), 0.0)
    assert set(fault.named) == set(FAULTY)
    assert set(asked(model, values, moved=[early]).named) == set(FAULTY)  # the headline


def test_a_constant_is_believed_by_how_long_it_never_changed(model: Model) -> None:
    """One that never changed in T windows changes in the next L with probability L / (T + L) at most."""
    for windows in (30, 240):
        (incident,) = asked(model, quiet(6, windows, 10), moved=[VALVE]).incidents
        (valve,) = (each for each in incident.sensors if each.named)
        assert valve.belief == pytest.approx(min(1500 / (1500 + windows), 0.999))


def test_a_sensor_that_is_stuck_does_not_hide_a_fault_that_begins_later(model: Model) -> None:
    values = recording({1: 40.0, 3: 20.0}, end=T)
    values[ONSET - 40 :, 0] = values[ONSET - 40, 0]
    answer = asked(model, values)
    assert set(FAULTY) <= set(answer.named)
    assert abs(minute(answer.onset) - ONSET) <= 1
    assert answer.named[:2] == ("S1", "S3")


@pytest.mark.parametrize("far", [1, 3, 5])
def test_of_sensors_out_of_range_the_farthest_comes_first(model: Model, far: int) -> None:
    answer = asked(model, recording({k: 100.0 if k == far else 40.0 for k in (1, 3, 5)}))
    assert answer.named[0] == f"S{far}"
    assert set(answer.named) == {"S1", "S3", "S5"}


def test_the_default_rate_is_what_the_history_carries() -> None:
    timed, _ = model_of()
    counted = replace(timed, reading=timed.reading | {"counted": True, "row_interval": 1.0})
    assert replace(timed, n_windows=1000).usual_rate == 3000
    assert replace(timed, n_windows=100_000, last=timed.first + 100_000 * MINUTE).usual_rate == 30 * 1440
    assert replace(counted, n_windows=100_000, last=timed.first + 100_000 * MINUTE).usual_rate == 300_000
