"""Raw trends: window means of any sensors over any period, with every spike, under any model that the plant had."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht.service.runtime import past
from tests.service import plants
from tests.service.service import PLANT, Service, running
from tests.service.stores import KINDS

SPIKE = 137  # the window with a spike


@pytest.fixture(scope="module", params=KINDS)
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("explore")
    with running(request.param, folder) as made:
        send(made, slice(0, 400))
        yield made


def recorded() -> tuple[Any, Any]:
    times, values = plants.recording(800, seed=3)
    values[SPIKE * plants.ROWS : (SPIKE + 1) * plants.ROWS, 2] += 50.0
    return times, values


def send(service: Service, windows: slice) -> None:
    times, values = recorded()
    part = slice(windows.start * plants.ROWS, windows.stop * plants.ROWS)
    rows = [
        {"time": f"{time}Z", **dict(zip(plants.NAMES, row, strict=True))}
        for time, row in zip(times[part].astype(str), values[part].tolist(), strict=True)
    ]
    answer = service.client.post(f"/api/plants/{PLANT}/rows", json=rows, headers=service.headers["ingest"])
    assert answer.status_code == 200, answer.text


def ask(service: Service, **query: Any) -> dict[str, Any]:
    answer = service.client.get(f"/api/plants/{PLANT}/trends", params=query, headers=service.headers["read"])
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def means(sensor: int, windows: slice) -> Any:
    """The window means of what was sent, as the sensors write them."""
    _, values = recorded()
    return values[:, sensor].reshape(-1, plants.ROWS).mean(axis=1)[windows]


def test_few_windows_are_shown_one_by_one_in_the_units_of_the_sensor(service: Service) -> None:
    found = ask(service, sensor=["c"], start="2026-03-01T08:00:20", stop="2026-03-01T08:01:00")
    assert found["windows"] == 20
    assert found["series"]["c"]["value"] == pytest.approx(means(2, slice(10, 30)).tolist())
    assert found["series"]["c"]["low"] == pytest.approx(found["series"]["c"]["high"])
    assert found["first"].startswith("2026-03-01T08:00:00")


def test_a_spike_of_one_window_stays_however_few_points_are_asked_for(service: Service) -> None:
    found = ask(service, sensor=["a", "c"], points=5)
    assert len(found["time"]) <= 5
    assert max(found["series"]["c"]["high"]) == pytest.approx(means(2, slice(0, 399)).max())
    assert min(found["series"]["a"]["low"]) == pytest.approx(means(0, slice(0, 399)).min())


def test_of_very_many_windows_some_are_left_out_and_the_answer_says_so(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "MOST_OF_FEW", 100)
    found = ask(service, sensor=["a"])
    assert found["one_of"] == 4
    assert 90 <= found["windows"] <= 100


def test_a_period_without_windows_is_empty_and_an_unknown_sensor_is_refused(service: Service) -> None:
    assert ask(service, sensor=["a"], start="2030-01-01", stop="2030-01-02")["time"] == []
    answer = service.client.get(f"/api/plants/{PLANT}/trends?sensor=zz", headers=service.headers["read"])
    assert answer.status_code == 404


def test_readings_keep_their_unit_when_the_plant_gets_another_model_and_a_gap_is_no_line(service: Service) -> None:
    sent = service.client.post("/api/models?name=o", content=plants.other_content(), headers=service.headers["admin"])
    put = service.client.request(
        "PUT", f"/api/plants/{PLANT}", json={"model": sent.json()["digest"]}, headers=service.headers["admin"]
    )
    assert put.status_code == 200, put.text
    send(service, slice(420, 460))
    found = ask(service, sensor=["b"], start="2026-03-01T08:12:00", stop="2026-03-01T08:15:00", points=2000)
    there = [value for value in found["series"]["b"]["value"] if value is not None]
    expected = np.concatenate([means(1, slice(360, 400)), means(1, slice(420, 450))])
    assert there == pytest.approx(expected.tolist(), rel=1e-9)
    assert found["series"]["b"]["value"].count(None) == 1
