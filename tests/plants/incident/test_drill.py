"""Drills of a model: in its history by fits to halves of it, in other data by the model itself; kept in its file."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht import calibrate
from eccaht.base.codec import state_of
from eccaht.plants.data.windows import Windows
from eccaht.plants.incident import drill
from eccaht.plants.incident.confidence import N_CLUES
from eccaht.plants.incident.counts import Drilled, Quiet, kept
from eccaht.plants.incident.drill import drill_history, drill_trials, drilled_of, keeping
from eccaht.plants.incident.investigate import investigate_incident
from eccaht.plants.incident.trials import DrilledAnswer, Trial
from eccaht.plants.model.model import Model
from tests.plants.incident.worlds import frame_of, model_of, quiet


@pytest.fixture(scope="module")
def calibrated() -> tuple[Model, Windows]:
    return model_of(6, 1500)


@pytest.fixture(scope="module")
def drilled(calibrated: tuple[Model, Windows]) -> Drilled:
    return drill_history(*calibrated, runs=400)


def test_quiet_windows_are_those_of_the_history_once(calibrated: tuple[Model, Windows], drilled: Drilled) -> None:
    assert drilled.counts.quiet.windows == len(calibrated[1].values) == 1500
    assert drilled.counts.every == calibrated[0].usual_rate == 4500.0
    assert 350 < drilled.counts.drills <= 400


def test_a_history_is_judged_by_halves_and_other_data_by_the_model(
    calibrated: tuple[Model, Windows], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, windows = calibrated
    seen: list[Any] = []

    def remember(judges: Any, *_: Any) -> list[Trial]:
        seen.append(judges)
        return []

    monkeypatch.setattr(drill, "run_trials", remember)
    drill_trials(model, windows)
    drill_trials(model, windows, unseen=True)
    halves, itself = seen
    assert len(halves) == 2
    assert all(judge.normal is not model.normal for judge in halves)
    assert [judge.normal for judge in itself] == [model.normal]
    assert len(itself[0].values) == 1500


def test_each_half_of_the_trials_is_counted_by_the_confidence_of_the_other() -> None:
    """Answers like each other are right in every second trial, so that no half may call its own confident."""
    clues = (0.0,) * N_CLUES
    trials = [
        Trial("step", 2.0, (0,), 9, True, 0, named=(0,), answers=(DrilledAnswer(clues, False, k % 2 == 0),))
        for k in range(400)
    ]
    found = drilled_of(trials, Quiet(100, 0, 0), 300.0, 0.05)
    assert found.counts.confident == (200, 200)  # every odd trial, by the even ones, which are all right
    assert not found.counts.holds
    assert found.afterwards is not None
    assert found.afterwards.counted(clues) == pytest.approx(0.5)
    assert found.standing is None


def test_drills_are_the_same_for_the_same_seed(calibrated: tuple[Model, Windows]) -> None:
    one, other = (drill_history(*calibrated, runs=30, seed=4) for _ in range(2))
    assert state_of(one) == state_of(other)


def test_a_clear_incident_has_a_confidence_and_it_depends_on_its_length(
    calibrated: tuple[Model, Windows], drilled: Drilled
) -> None:
    model = keeping(calibrated[0], drilled)
    again = kept(model)
    assert again is not None
    assert state_of(again) == state_of(drilled)
    x = quiet(6, 400, 9)
    x[300:, 2] += 6.0
    answer = investigate_incident(model, model.prepare(frame_of(x, first=5000)))
    assert answer.named == ("S2",)
    assert answer.confidence is not None
    assert answer.confidence > 0.7


@pytest.mark.parametrize(
    ("options", "message"),
    [({"runs": 0}, "runs"), ({"runs": 10**12}, "at most"), ({"alpha": 1.5}, "alpha"), ({"alpha": 0.0}, "alpha")],
)
def test_what_cannot_be_drilled_is_refused(
    calibrated: tuple[Model, Windows], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        drill_trials(*calibrated, **options)


def test_short_data_are_refused_with_what_is_needed(calibrated: tuple[Model, Windows]) -> None:
    model, windows = calibrated
    few = replace(windows, values=windows.values[:99], starts=windows.starts[:99])
    with pytest.raises(ValueError, match="at least 100"):
        drill_trials(model, few)


def test_windows_with_gaps_are_drilled(calibrated: tuple[Model, Windows]) -> None:
    model, windows = calibrated
    values = windows.values.copy()
    values[::17, 3] = np.nan
    kept_rows = np.arange(len(values)) % 200 < 190
    gappy = replace(windows, values=values[kept_rows], starts=windows.starts[kept_rows])
    found, trials = drill_trials(model, gappy, runs=60, unseen=True)
    assert found.counts.drills == len(trials) > 40


RECORDED = Path(__file__).parents[4] / "shared" / "data" / "asd" / "train" / "omi-5.csv.gz"


@pytest.mark.skipif(not RECORDED.is_file(), reason="the public recordings are not beside the repository")
def test_a_standstill_is_drilled_that_others_contradict_only_later() -> None:
    """A metric that rests at an end of its range is stuck from the window on in which the others say so."""
    history = np.loadtxt(RECORDED, delimiter=",")
    model = calibrate(history, names=[f"metric {k}" for k in range(history.shape[1])], drills=1000, progress=False)
    assert kept(model) is not None
