"""/healthz says whether rows can be stored now: a store that is locked or full is no healthy one."""

import json
import resource
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from eccaht.service.api import health
from tests.service import plants, stores
from tests.service.programs import Program, program
from tests.service.service import Service, running


@pytest.fixture(params=stores.KINDS)
def service(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(health, "_PATIENCE", 60.0)  # however slow the disk is
    monkeypatch.setattr(health, "_KEPT", 0.0)
    with running(request.param, tmp_path) as made:
        yield made


@contextmanager
def locked(service: Service) -> Iterator[None]:
    """Another program has the store for itself."""
    if service.store.is_sqlite:
        other = sqlite3.connect(str(service.store.url.database), isolation_level=None, timeout=60.0)
        other.execute("BEGIN EXCLUSIVE")
        try:
            yield
        finally:
            other.close()
        return
    with service.store.begin() as connection:
        name = service.app.state.settings.store.schema_name
        connection.execute(sa.text(f"LOCK TABLE {name}.meta IN ACCESS EXCLUSIVE MODE"))
        yield


def asked(service: Service) -> tuple[int, dict[str, Any]]:
    answer = service.client.get("/healthz")
    return answer.status_code, answer.json()


def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("it did not come to pass")


def test_a_plant_without_a_window_is_waiting_and_not_quiet(service: Service) -> None:
    numbers = service.client.get("/metrics").text
    assert 'eccaht_plants{state="waiting"} 1.0' in numbers
    assert 'eccaht_plants{state="quiet"} 0.0' in numbers


def test_a_locked_store_is_seen_and_so_is_its_end(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(service) == (200, {"status": "ok", "plants": 1, "without_data": 0, "detail": ""})
    with locked(service), monkeypatch.context() as impatient:
        impatient.setattr(health, "_PATIENCE", 0.3)
        for _ in range(2):
            code, found = asked(service)
            assert (code, found["status"]) == (503, "broken")
            assert found["detail"].startswith("the store has not taken a write for")
            assert "\n" not in found["detail"]
    eventually(lambda: asked(service)[0] == 200)


def test_a_store_that_only_reads_is_seen(service: Service) -> None:
    """As a database that was made read-only, or whose disk is full: reading works, writing fails at once."""

    def read_only(connection: Any, *_: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA query_only=ON" if service.store.is_sqlite else "SET default_transaction_read_only=on")
        if not service.store.is_sqlite:
            connection.commit()
        cursor.close()

    service.store.engine.dispose()
    sa.event.listen(service.store.engine, "connect", read_only)
    code, found = asked(service)
    sa.event.remove(service.store.engine, "connect", read_only)
    service.store.engine.dispose()
    reason = "SQLITE_READONLY" if service.store.is_sqlite else "25006"
    assert (code, found["detail"]) == (503, f"the store takes no write ({reason}): the log says more")
    assert asked(service)[0] == 200


def test_whoever_asks_often_makes_no_work(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_KEPT", 3600.0)
    writes: list[Any] = []
    sa.event.listen(service.store.engine, "begin", writes.append)
    for _ in range(50):
        assert asked(service)[0] == 200
    assert len(writes) == 1


# -- a full disk -----------------------------------------------------------------------------------------


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Program]:
    (tmp_path / "plant.model").write_bytes(plants.content())
    with program(tmp_path, '[plants.p]\nmodel = "plant.model"\n') as made:
        yield made


def grow_to(service: Program, size: int) -> None:
    """Let no file of the service become larger: what a full disk does, without filling one."""
    resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def send(service: Program, first: int) -> int:
    """The status of a delivery of rows."""
    times, values = plants.recording(100)
    rows = [
        {"time": f"{time}Z", "values": dict(zip(plants.NAMES, row, strict=True))}
        for time, row in zip(times[first : first + 100].astype(str), values[first : first + 100].tolist(), strict=True)
    ]
    headers = {**service.headers, "Content-Type": "application/json"}
    return httpx.post(
        f"{service.base}/api/plants/p/rows", content=json.dumps(rows), headers=headers, timeout=60.0
    ).status_code


def test_a_full_disk_is_seen_and_so_is_its_end(full: Program) -> None:
    eventually(lambda: full.get("/healthz").status_code == 200)
    assert send(full, 0) == 200
    grow_to(full, Path(full.url.removeprefix("sqlite:///") + "-wal").stat().st_size)
    assert send(full, 100) == 503
    answer = full.get("/healthz")
    assert (answer.status_code, answer.json()["status"]) == (503, "broken")
    assert "\n" not in answer.json()["detail"]
    grow_to(full, resource.RLIM_INFINITY)
    assert send(full, 100) == 200
    eventually(lambda: full.get("/healthz").status_code == 200)


def test_a_table_that_takes_no_rows_is_seen_and_so_is_its_end(service: Service) -> None:
    """Whatever the error of the database is called."""
    times, values = plants.recording(12)
    rows = [{"time": f"{time}Z", "values": {"a": row[0]}} for time, row in zip(times.astype(str), values, strict=True)]

    def post() -> int:
        return service.client.post("/api/plants/p/rows", json=rows, headers=service.headers["ingest"]).status_code

    windows, prefix = "windows", "" if service.store.is_sqlite else f"{service.app.state.settings.store.schema_name}."
    with service.store.begin() as connection:
        connection.execute(sa.text(f"ALTER TABLE {prefix}{windows} RENAME TO gone"))
    assert post() == 503
    code, found = asked(service)
    assert (code, found["status"]) == (503, "broken")
    with service.store.begin() as connection:
        connection.execute(sa.text(f"ALTER TABLE {prefix}gone RENAME TO windows"))
    assert post() == 200
    assert asked(service)[0] == 200
