"""A model brought up to date: which windows it is of, and which of the two is better."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eccaht.plants import Model, calibrate
from eccaht.plants.data.source import Arrays
from eccaht.plants.incident.comparison import Comparison
from eccaht.plants.incident.counts import Quiet, kept
from eccaht.plants.retrain import Update, update_model

NAMES = ["A", "B", "C", "D"]
START = np.datetime64("2024-01-01T00:00", "us")
MINUTE = np.timedelta64(60_000_000, "us")


def readings(rows: int, *, first: int = 0, level: float = 0.0, seed: int = 0) -> tuple[Arrays, np.ndarray]:
    """Four sensors of one process, a row a minute."""
    rng = np.random.default_rng([seed, first])
    common = rng.standard_normal((rows, 1))
    values = 50.0 + level + common + 0.3 * rng.standard_normal((rows, 4))
    return Arrays(values, START + MINUTE * np.arange(first, first + rows), NAMES), values


@pytest.fixture(scope="module")
def model() -> Model:
    return calibrate(readings(600)[0], window="1min")


@pytest.fixture(scope="module")
def moved(model: Model) -> Update:
    """The whole plant reads 20 higher than ever before."""
    return update_model(model, readings(300, first=700, level=20.0)[0], history=readings(600)[0], drills=40)


def test_the_oldest_windows_go_as_new_ones_come(model: Model) -> None:
    update = update_model(model, readings(200, first=600)[0], history=readings(600)[0], drills=0)
    assert (update.added, update.kept, update.dropped) == (200, 400, 200)
    assert update.model.n_windows == model.n_windows
    assert update.model.first == START + 200 * MINUTE
    assert update.comparison is None
    assert update.better is None


def test_incidents_of_the_new_rows_are_left_out_and_listed(model: Model) -> None:
    source, values = readings(300, first=600)
    values[100:140, 2] += 30.0
    update = update_model(model, Arrays(values, source.times, NAMES), history=readings(600)[0], drills=0)
    assert 38 <= update.n_left_out <= 45
    assert len(update.left_out) == 1
    assert ": C" in update.left_out[0]
    assert "Left out of the new data" in "\n".join(update.sentences())


def test_a_stretch_of_an_alarm_is_learnt_where_that_is_asked_for(model: Model) -> None:
    source, values = readings(300, first=600)
    values[100:120, 2] += 30.0
    values[200:220, 1] -= 30.0
    new, onset = Arrays(values, source.times, NAMES), START + MINUTE * 700
    asked = (str(onset - MINUTE * 5), str(onset + MINUTE * 30))
    update = model.update(new, learn=[asked], drills=0, progress=False)
    (left,) = update.left_out
    assert ": B" in left
    assert update.added + update.n_left_out == 300
    assert 18 <= update.n_left_out <= 25
    assert not update.model.identify(Arrays(values[:150], START + MINUTE * np.arange(600, 750), NAMES)).incidents


def test_without_the_old_rows_the_new_model_knows_the_new_ones_alone(model: Model) -> None:
    update = update_model(model, readings(200, first=600)[0], drills=0)
    assert (update.added, update.kept, update.model.n_windows) == (200, 0, 200)
    assert "its rows were not given" in update.sentences()[0]


def test_a_history_within_the_new_data_is_not_said_to_be_absent(model: Model) -> None:
    update = update_model(model, readings(600)[0], history=readings(600)[0], drills=0)
    assert (update.kept, update.dropped) == (0, 0)
    assert "no row of it lies before the new data" in update.sentences()[0]


def test_a_plant_that_has_changed_is_taken_as_normal_and_the_new_model_is_better(moved: Update) -> None:
    assert moved.changed
    assert moved.left_out == ()
    assert moved.better == "new"
    assert moved.sentences()[-1] == "The new model is better, by more than chance."
    found = moved.as_dict()
    assert found["better"] == "new"
    assert found["new"]["false_alarms"] <= found["old"]["false_alarms"]


def test_the_new_model_is_drilled_and_saved(moved: Update, tmp_path: Path) -> None:
    assert kept(moved.model) is not None
    moved.model.save(tmp_path / "m")
    assert (tmp_path / "m").stat().st_size > 0


def test_new_data_that_are_one_incident_are_refused(model: Model) -> None:
    source, values = readings(150, first=600)
    values[:, 2] = 50.0
    with pytest.raises(ValueError, match="an incident in all of the new data"):
        update_model(model, Arrays(values, source.times, NAMES), drills=0)


@pytest.mark.parametrize(("in_alarm", "alarms"), [(90, 1), (10, 9)])
def test_a_new_model_with_many_alarms_is_not_simply_better(moved: Update, in_alarm: int, alarms: int) -> None:
    """Alarm in 30 % of the time without a fault, or nine false alarms in 300 windows."""
    assert moved.comparison is not None
    new = moved.comparison.new
    old = replace(moved.comparison.old, counts=replace(new.counts, quiet=Quiet(300, 100, 250)))
    poor = replace(new, counts=replace(new.counts, quiet=Quiet(300, alarms, in_alarm)))
    update = replace(moved, comparison=Comparison(old, poor))
    *_, verdict, caution = update.sentences()
    assert update.better == "new"
    assert "but not well enough to rely on" in verdict
    assert caution.startswith("CAUTION: with the new model ")
