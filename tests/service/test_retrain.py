"""A new model from a stored period: fitted beside the service, compared, and taken only when that is asked for."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

from eccaht.plants import parse_model
from eccaht.plants.data.source import Arrays
from eccaht.plants.incident.comparison import compare_models
from eccaht.plants.retrain import recalibrate
from eccaht.service.api.app import make_app
from eccaht.service.runtime import retrainer, retraining
from eccaht.service.settings import Settings
from eccaht.service.store import schema
from eccaht.service.store.history import Span
from tests.service import plants
from tests.service.asking import Client
from tests.service.service import PLANT, Service, running

MOVED = 1.2  # raw units by which sensor c reads higher than in the history


def changed(windows: int, seed: int = 5) -> tuple[Any, Any]:
    times, values = plants.recording(windows, seed=seed)
    values[:, 2] += MOVED
    return times, values


def prepared(windows: int = 400) -> Any:
    times, values = changed(windows)
    return plants.model().prepare(Arrays(values, times, plants.NAMES, zone="UTC"))


def test_a_model_fitted_to_windows_has_their_level_the_old_units_and_is_a_model_file() -> None:
    old, windows = plants.model(), prepared()
    values = windows.values.copy()
    values[50:60, 1] = np.nan
    new, filled = recalibrate(old, replace(windows, values=values))
    again = parse_model(new.to_bytes(), "new")
    assert again.names == old.names
    assert np.array_equal(again.scale, old.scale)
    assert again.raw(again.mean)[2] - old.raw(old.mean)[2] == pytest.approx(MOVED, abs=0.3)
    assert again.usual_rows == old.usual_rows
    assert not np.isnan(filled.values).any()
    assert next(column.imputed for column in again.columns if column.name == "b") == 10 / 400


def test_sensors_that_are_silent_or_still_are_left_out_by_name() -> None:
    windows = prepared()
    values = windows.values.copy()
    values[:, 0], values[:, 3], values[:300, 4] = np.nan, 0.25, np.nan
    new, _ = recalibrate(plants.model(), replace(windows, values=values))
    assert new.names == ("b", "c")
    reasons = {column.name: column.reason for column in new.columns if column.reason not in ("", "time")}
    assert reasons == {"a": "empty", "d": "constant in windows", "e": "mostly missing"}


def test_too_few_windows_are_refused_in_words() -> None:
    windows = prepared().between(stop="2026-03-01T08:01")
    with pytest.raises(ValueError, match="40 windows"):
        recalibrate(plants.model(), windows)


def test_both_models_get_the_same_faults_and_the_one_that_fits_is_better() -> None:
    old = plants.model()
    new, windows = recalibrate(old, prepared(240))
    compared = compare_models(old, new, windows, every=2000.0, runs=40)
    assert compared.better == "new"
    assert compared.old.counts.share_in_alarm > 0.5 > compared.new.counts.share_in_alarm
    assert compare_models(new, new, windows, every=2000.0, runs=10).better == "neither"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running("sqlite", tmp_path_factory.mktemp("retrain")) as made:
        times, values = plants.recording(400, wrong=slice(150, 200))
        send(made, times, values)
        yield made


def send(service: Service, times: Any, values: Any) -> None:
    rows = [
        {"time": f"{time}Z", **dict(zip(plants.NAMES, row, strict=True))}
        for time, row in zip(times.astype(str), values.tolist(), strict=True)
    ]
    answer = service.client.post(f"/api/plants/{PLANT}/rows", json=rows, headers=service.headers["ingest"])
    assert answer.status_code == 200, answer.text


def post(service: Service, what: str = "", body: dict[str, Any] | None = None, scope: str = "admin") -> Any:
    path = f"/api/plants/{PLANT}/retraining{what}"
    return service.client.post(path, json=body or {}, headers=service.headers[scope])


def ended(service: Service) -> dict[str, Any]:
    """What there is once the program has ended."""
    found = service.app.state.retrainings.get(PLANT)
    service.client.run(_joined(found))
    path = f"/api/plants/{PLANT}/retraining"
    answer: dict[str, Any] = service.client.get(path, headers=service.headers["read"]).json()
    return answer


async def _joined(found: Any) -> None:
    await asyncio.gather(found.task, return_exceptions=True)


def chosen(service: Service, **more: Any) -> Any:
    view = service.app.state.engine.view(PLANT)
    with service.store.read() as connection:
        return retraining.chosen_windows(connection, view, Span(0, 1 << 60), **more)


def test_windows_of_alarms_are_left_out_unless_they_are_asked_for(service: Service) -> None:
    found = chosen(service)
    assert found.left_out["alarm"] >= 45
    assert len(found.starts) + sum(found.left_out.values()) == 399
    place = (found.starts - plants.START.astype(np.int64)) / 2e6
    assert not ((place >= 152) & (place < 200)).any()
    assert len(chosen(service, keep_alarms=True).starts) == 399


def test_only_an_administrator_may_retrain_or_switch(service: Service) -> None:
    for what in ("", "/cancel", "/switch"):
        assert post(service, what, scope="operate").status_code == 403
    path = f"/api/plants/{PLANT}/retraining"
    assert service.client.get(path, headers=service.headers["read"]).json()["state"] == "none"
    assert post(service, "/switch").json()["detail"] == f"plant {PLANT} has no new model to switch to"
    assert post(service, "", {"start": "2030-01-01"}).status_code == 400


def test_a_short_period_fails_in_words_and_the_plant_goes_on(service: Service) -> None:
    assert post(service, "", {"stop": "2026-03-01T08:01:00", "drills": 100}).status_code == 200
    found = ended(service)
    assert found["state"] == "failed"
    assert found["detail"].startswith("a model needs at least 40 windows, and there are 30")


def test_a_retraining_can_be_cancelled_while_it_runs(service: Service) -> None:
    assert post(service, "", {"drills": 2000}).json()["state"] == "running"
    assert post(service, "", {"drills": 2000}).status_code == 400  # one at a time
    assert post(service, "/cancel").json()["state"] == "cancelled"
    assert service.app.state.retrainings.get(PLANT).task.done()


def test_a_new_model_is_compared_first_and_then_switched_to(service: Service) -> None:
    assert post(service, "", {"drills": 100}).status_code == 200
    found = ended(service)
    assert found["state"] == "done", found["detail"]
    assert found["left_out"]["alarm"] >= 45
    assert {found["found"][side]["sensors"] for side in ("old", "new")} == {5}
    assert found["found"]["new"]["drills"] > 50
    engine = service.app.state.engine
    assert engine.view(PLANT).model_digest == service.digest  # nothing has changed yet
    made = service.app.state.retrainings.get(PLANT).model
    assert post(service, "/switch").json()["state"] == "switched"
    now = engine.view(PLANT)
    assert now.model_digest == made == hashlib.sha256(now.model.to_bytes()).hexdigest()
    assert now.model.drilled is not None
    assert now.era == 2
    times, values = plants.recording(460)
    send(service, times[1600:], values[1600:])
    assert engine.view(PLANT).windows > 50
    assert len(chosen(service).starts) > 390  # of both eras, in the units of the new model


SIDE = {"sensors": 5, "history": 120, "first": "2026-03-01T08:00:00Z", "last": "2026-03-01T08:04:00Z"}
SIDE |= dict.fromkeys(("drills", "found", "right", "confident", "confident_wrong", "windows", "false_alarms"), 1)
SIDE |= {"expected": 0.1, "in_alarm": 0.0}


async def retrained_at_once(made: retraining.Retraining, folder: Path) -> None:
    """Stands in for the program, which takes long."""
    (folder / "new.model").write_bytes(other_model((folder / "old.model").read_bytes(), f"made at {made.begun}"))
    found = {"better": "new", "old": SIDE, "new": SIDE, "left_out": [], "seen": False}
    (folder / "found.json").write_text(json.dumps(found))


def test_what_was_found_outlives_a_restart_and_can_be_switched_to_or_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retraining, "_work", retrained_at_once)
    url = f"sqlite:///{tmp_path / 's.db'}"
    with running("sqlite", tmp_path, url=url) as service:
        send(service, *plants.recording(120))
        assert post(service, "", {"drills": 100}).status_code == 200
        before = ended(service)
        assert before["state"] == "done", before["detail"]
    with running("sqlite", tmp_path, url=url) as service:
        path = f"/api/plants/{PLANT}/retraining"
        assert service.client.get(path, headers=service.headers["read"]).json() == before
        digest = service.app.state.retrainings.get(PLANT).model
        assert post(service, "/switch").json()["state"] == "switched"
        content = service.app.state.engine.view(PLANT).model.to_bytes()
        assert hashlib.sha256(content).hexdigest() == digest
        assert known_models(service) == {service.digest, digest}
        assert post(service, "", {"drills": 100}).status_code == 200
        assert ended(service)["state"] == "done"
        assert len(known_models(service)) == 3
        assert post(service, "/cancel").json()["state"] == "cancelled"
        assert len(known_models(service)) == 2
    app = make_app(Settings(store={"url": url}))
    with closing(Client(app)) as client, client:
        assert app.state.retrainings.get(PLANT) is None
        assert app.state.engine.view(PLANT).model.to_bytes() == content


def known_models(service: Service) -> set[str]:
    with service.store.read() as connection:
        return set(connection.execute(sa.select(schema.models.c.digest)).scalars())


def test_a_model_of_the_settings_comes_back_only_if_its_file_has_changed(tmp_path: Path) -> None:
    file, url = tmp_path / "plant.model", f"sqlite:///{tmp_path / 's.db'}"
    given, switched = plants.content(), other_model(plants.content())
    digests = [hashlib.sha256(content).hexdigest() for content in (given, switched)]
    file.write_bytes(given)

    def started(then: str | None = None, rate: str = "1/1000w") -> str:
        settings = Settings(store={"url": url}, plants={PLANT: {"model": file, "false_alarms": rate}})
        app = make_app(settings)
        with closing(Client(app)) as client, client:
            engine = app.state.engine
            if then is not None:
                client.run(engine.add_model(switched, "m", "who"))
                client.run(engine.put_plant(PLANT, then, engine.view(PLANT).options, "who"))
            digest: str = engine.view(PLANT).model_digest
        return digest

    assert started() == digests[0]
    assert started(digests[1]) == digests[1]
    assert started() == digests[1]  # also after the next start,
    assert started(rate="1/2000w") == digests[1]  # and when other settings change
    assert started(digests[0]) == digests[0]
    file.write_bytes(switched)
    assert started() == digests[1]  # a new file is taken


def other_model(content: bytes, note: str = "another") -> bytes:
    """Another model of the same sensors."""
    model = parse_model(content, "m")
    return replace(model, reading=model.reading | {"notes": [note]}).to_bytes()


def test_the_program_reports_its_progress_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    windows = prepared(120)
    (tmp_path / "old.model").write_bytes(plants.content())
    (tmp_path / "asked.json").write_text(json.dumps({"every": 2000.0, "runs": 20}))
    starts = windows.starts.astype(np.int64)
    np.savez(tmp_path / "windows.npz", starts=starts, values=windows.values, rows=np.full(len(starts), 4))
    retrainer.retrain(tmp_path)
    shares = [json.loads(line)["share"] for line in capsys.readouterr().out.splitlines()]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
