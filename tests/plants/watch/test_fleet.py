"""What plants of a fleet share, and that sharing changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht.plants.data.windows import Sample
from eccaht.plants.model.model import load_model
from eccaht.plants.watch.fleet import FleetPlant, Models, SharedModels, lean, replay
from eccaht.plants.watch.session import Session
from eccaht.plants.watch.watchers import WatchedPlant
from tests.plants.watch.plants import plant, readings, scaled

EVERY = 300.0


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a model."""
    file = tmp_path_factory.mktemp("model") / "plant.model"
    plant()[0].save(file)
    return file


def windows(seed: int, count: int = 80) -> list[Sample]:
    """Windows of which the last third has a fault."""
    values = scaled(readings(count, seed))
    values[2 * count // 3 :, 1] += 8.0
    begun = np.datetime64("2024-05-01", "us")
    return [Sample(begun + np.timedelta64(t, "s"), x) for t, x in enumerate(values)]


def events(session: Session, samples: list[Sample]) -> list[dict[str, Any]]:
    return [event.document() for sample in samples for event in session.take(sample)]


def test_plants_that_share_a_model_are_watched_as_if_alone(path: Path, tmp_path: Path) -> None:
    """In turn, window by window; and so after they were saved and restored half way."""
    models = Models()
    shared = models.of(path)
    records = [windows(seed) for seed in (1, 2, 3)]
    model = load_model(path)
    alone = [events(Session(model, WatchedPlant.of(model, EVERY)), record) for record in records]
    assert all("alarm" in {event["event"] for event in found} for found in alone)
    sessions = [shared.session(EVERY) for _ in records]
    found: list[list[dict[str, Any]]] = [[] for _ in records]
    for t in range(len(records[0])):
        for k, record in enumerate(records):
            if t == 60:
                sessions[k].settle()
                sessions[k].save(tmp_path / "state")
                sessions[k] = shared.restored(tmp_path / "state")
            found[k] += events(sessions[k], [record[t]])
    assert found == alone


def test_what_is_constant_is_there_once(path: Path, tmp_path: Path) -> None:
    shared = Models().of(path)
    sessions = [shared.session(EVERY) for _ in range(2)]
    sessions[1].save(tmp_path / "state")
    sessions.append(shared.restored(tmp_path / "state"))
    watches = [session.watcher.watch for session in sessions if isinstance(session.watcher, WatchedPlant)]
    assert len(watches) == 3
    for watch in watches:
        assert watch.model is shared.model
        assert watch.normal is shared.model.normal


def test_copies_of_a_model_file_are_one_model(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.model"
    copy.write_bytes(path.read_bytes())
    models = Models()
    assert models.of(path) is models.of(copy)
    assert len(models) == 1


def test_a_lean_model_is_watched_by_the_same_thresholds(path: Path) -> None:
    model = load_model(path)
    small = lean(model)
    assert sum(array.nbytes for array in small.summary.arrays().values()) < sum(
        array.nbytes for array in model.summary.arrays().values()
    )
    one, other = SharedModels(model, "").session(EVERY).watcher, WatchedPlant.of(model, EVERY)
    assert isinstance(one, WatchedPlant)
    np.testing.assert_array_equal(one.watch.engine.limits, other.watch.engine.limits)


def test_a_recording_that_cannot_be_read_is_said(path: Path, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("a,b\n1,2\n3,4\n")
    found = replay(FleetPlant("p", path, (tmp_path / "data.csv",)), EVERY)
    assert found.events == ()
    assert found.error is not None
    assert "has no column for 6 of the model's sensors" in found.error
