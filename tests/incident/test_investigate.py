"""A confidence is given where drills have counted it, and nowhere else; what was constant and moves is named."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from eccaht.data.windows import Windows
from eccaht.incident.answer import Answer
from eccaht.incident.drill import drill_history, keeping, kept
from eccaht.incident.investigate import investigate_incident
from eccaht.incident.promise import ConfidenceTable, Promise
from eccaht.incident.quiet import FEWEST_STRETCHES
from eccaht.model.calibration import calibrate_with_windows
from eccaht.model.constants import Moved
from eccaht.model.model import Model
from tests.incident.judges import believing
from tests.model.histories import history

START, STOP = 600, 640
STRICT = 1e-12  # an error level at which nothing is an alarm
FAULTY = ("s1", "s3")
COUNTED = 0.95  # by the promise of this model, for evidence that says so and for nothing named
VALVE = Moved("valve", 3.0, 5.0, np.datetime64("2017-09-26T04:07:30", "us"))


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Windows]:
    """A model with drills whose promise is known, and its quiet windows."""
    path = history(tmp_path_factory.mktemp("history") / "h.csv", rows=700, step=60)
    model, windows = calibrate_with_windows(
        path, window="1min", level="fixed", memory="none", shrink=0.0, tails="gaussian"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eccaht.incident.quiet.STRETCHES", FEWEST_STRETCHES)
        drilled = drill_history(model, windows, runs=6)
    counts = replace(drilled.counts, factor=1.0, sure=0, sure_and_wrong=0)
    return keeping(model, replace(drilled, promise=believing(), counts=counts)), windows


@pytest.fixture(scope="module")
def incident(plant: tuple[Model, Windows]) -> Windows:
    windows = plant[1]
    values = windows.values.copy()
    values[START:STOP, [windows.names.index(name) for name in FAULTY]] += 8.0
    return replace(windows, values=values)


def asked(plant: tuple[Model, Windows], windows: Windows, **options: Any) -> Answer:
    return investigate_incident(plant[0], windows, **{"start": START, "stop": STOP, **options})


def uncounted(answer: Answer) -> str:
    """The caution that says why there is no confidence."""
    assert (answer.confidence, answer.sure) == (None, False)
    (caution,) = (each for each in answer.cautions if "no confidence was counted" in each)
    return caution


def test_an_answer_as_drilled_has_the_counted_confidence(plant: tuple[Model, Windows], incident: Windows) -> None:
    answer = asked(plant, incident)
    assert set(answer.named) == set(FAULTY)
    assert (answer.confidence, answer.sure, answer.searched) == (COUNTED, True, False)
    assert answer.cautions == ()
    nothing = asked(plant, plant[1])
    assert (nothing.named, nothing.confidence, nothing.sure) == ((), COUNTED, True)


def test_that_a_search_found_nothing_has_no_confidence(plant: tuple[Model, Windows]) -> None:
    nothing = asked(plant, plant[1], start=None)
    assert (nothing.named, nothing.searched) == ((), True)
    assert "drills were told where to look" in uncounted(nothing)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"number": 2}, "with nothing told; with a given number of sensors"),
        ({"number": (1, 3)}, "with nothing told; with a given number of sensors"),
        ({"least": 0.5}, "with nothing told; with a smallest deviation that matters"),
        ({"correlation": False}, "with what the sensors share; without it"),
    ],
)
def test_what_drills_were_not_told_leaves_no_confidence(
    plant: tuple[Model, Windows], incident: Windows, told: dict[str, Any], words: str
) -> None:
    answer = asked(plant, incident, **told)
    assert set(FAULTY) <= set(answer.named)
    assert f"drills were counted {words} no confidence was counted" in uncounted(answer)


def test_another_error_level_matters_only_where_it_may_change_the_answer(
    plant: tuple[Model, Windows], incident: Windows
) -> None:
    for windows, alpha in ((incident, 0.04), (incident, 0.5), (plant[1], STRICT)):
        assert asked(plant, windows, alpha=alpha).confidence == COUNTED
    missed = asked(plant, incident, alpha=STRICT)
    assert missed.named == ()
    assert "with an error level of 0.05; with 1e-12 the answer may be another one" in uncounted(missed)
    assert uncounted(asked(plant, plant[1], alpha=STRICT, start=None)) == uncounted(missed)  # other places were seen
    answers = (asked(plant, plant[1], alpha=0.5, start=start, stop=start + 20) for start in range(100, 600, 20))
    loose = next(answer for answer in answers if answer.named)
    assert "with an error level of 0.05; with 0.5 the answer may be another one" in uncounted(loose)


def test_a_searched_stretch_is_told(plant: tuple[Model, Windows], incident: Windows) -> None:
    answer = asked(plant, incident, start=None)
    assert answer.searched
    assert (set(answer.named), answer.confidence) == (set(FAULTY), COUNTED)
    assert asked(plant, incident, start=100).searched  # a long stretch is searched even if its start is given
    assert not asked(plant, incident, start=100, locate=False).searched


def test_without_a_sensor_of_the_drills_there_is_no_confidence(plant: tuple[Model, Windows], incident: Windows) -> None:
    answer = asked(plant, incident.of(("s0", "s1", "s3")))
    assert set(answer.named) == set(FAULTY)
    assert "drills were counted with all sensors; without s2 no confidence was counted" in uncounted(answer)
    assert len(answer.sensors) == 3
    with pytest.raises(ValueError, match="in its order"):
        asked(plant, incident.of(("s1", "s0")))


def test_where_no_drill_named_anything_there_is_no_confidence(plant: tuple[Model, Windows], incident: Windows) -> None:
    drilled = kept(plant[0])
    assert drilled is not None
    promise = Promise(1.0, ConfidenceTable(np.zeros(0), np.zeros(0)), drilled.promise.shares)
    model = keeping(plant[0], replace(drilled, promise=promise))
    assert "no drill had such an answer" in uncounted(asked((model, plant[1]), incident))


def test_a_constant_that_moved_is_named_first_and_changes_nothing_else(
    plant: tuple[Model, Windows], incident: Windows
) -> None:
    without, answer = asked(plant, incident), asked(plant, incident, moved=[VALVE])
    first, *others = answer.sensors
    assert (first.sensor, first.named, first.kind, first.size_raw) == ("valve", True, "moved", 2.0)
    assert (first.reason.expected, first.reason.read, first.since) == (3.0, 5.0, VALVE.since)
    assert [each.sensor for each in others] == [each.sensor for each in without.sensors]
    assert (answer.confidence, answer.onset) == (without.confidence, without.onset)
    alone = asked(plant, plant[1], moved=[VALVE])
    assert (alone.named, alone.onset, alone.confidence) == (("valve",), VALVE.since, COUNTED)


@pytest.mark.parametrize(("number", "named"), [(1, 1), (2, 2), ((1, 2), 2), ((0, 1), 1)])
def test_a_constant_that_moved_is_one_of_the_given_number(
    plant: tuple[Model, Windows], incident: Windows, number: int | tuple[int, int], named: int
) -> None:
    answer = asked(plant, incident, moved=[VALVE], number=number)
    assert answer.named[0] == "valve"
    assert len(answer.named) == named
