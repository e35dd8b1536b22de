"""Texts from outside: one that a store cannot keep, or an answer not show, is refused before anything is stored."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.service import plants, stores
from tests.service.service import PLANT, Service, running

BASE = f"/api/plants/{PLANT}"
MARKS = ["a\0b", "\x07", "\x85", "a\ud800b", "\udfff"]


@pytest.fixture(scope="module", params=stores.KINDS)
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("texts")
    security = {"rate": 1e6, "burst": 1e6}
    with running(request.param, folder, options={"false_alarms": "1/2000w"}, security=security) as made:
        times, values = plants.recording(60, wrong=slice(30, 45))
        rows = [
            {"time": f"{time}Z", **dict(zip(plants.NAMES, row, strict=True))}
            for time, row in zip(times.astype(str), values.tolist(), strict=True)
        ]
        assert made.client.post(f"{BASE}/rows", json=rows, headers=made.headers["ingest"]).status_code == 200
        yield made


def sent(service: Service, method: str, path: str, document: Any) -> Any:
    """The answer to JSON that is written in ASCII, whatever the texts hold."""
    headers = {**service.headers["admin"], "Content-Type": "application/json"}
    return service.client.request(method, path, content=json.dumps(document), headers=headers)


def number(service: Service) -> int:
    found = service.client.get(f"{BASE}/incidents", headers=service.headers["read"]).json()
    return int(found["incidents"][0]["number"])


def state(service: Service) -> Any:
    """All that a caller may have changed."""
    paths = ("/api/audit?limit=500", f"{BASE}/incidents/{number(service)}", BASE)
    return [service.client.get(path, headers=service.headers["admin"]).json() for path in paths]


@pytest.mark.parametrize("mark", MARKS)
def test_a_text_that_cannot_be_kept_is_refused_and_changes_nothing(service: Service, mark: str) -> None:
    before = state(service)
    mqtt = {"kind": "mqtt", "topic": "t"}
    source: list[Any] = [{**mqtt, "client_id": mark}, {**mqtt, "names": {mark: "a"}}, {**mqtt, "names": {"a": mark}}]
    asked = [
        ("POST", f"{BASE}/incidents/{number(service)}/comments", {"text": mark}),
        ("POST", f"{BASE}/shelve", {"sensor": mark, "duration": "2h"}),
        ("POST", f"{BASE}/shelve", {"sensor": "a", "duration": mark}),
        ("POST", f"{BASE}/unshelve", {"sensor": mark}),
        ("PUT", BASE, {"model": service.digest, "false_alarms": mark}),
        *(("PUT", BASE, {"model": service.digest, "sources": {"s": each}}) for each in source),
        ("POST", f"{BASE}/rows", [{"time": "2026-03-01T08:00:00Z", mark: 1}]),
        ("POST", f"{BASE}/rows", [{"time": mark, "a": 1}]),
    ]
    for method, path, document in asked:
        answer = sent(service, method, path, document)
        assert answer.status_code in (400, 422), (path, answer.text)
        assert "\n" not in answer.json()["detail"]
    assert state(service) == before


def test_a_comment_may_have_several_lines_and_any_letters(service: Service) -> None:
    text = "two\nlines\tand ünïcode 🌡 \u2028 end"
    path = f"{BASE}/incidents/{number(service)}"
    assert sent(service, "POST", f"{path}/comments", {"text": text}).status_code == 200
    shown = service.client.get(path, headers=service.headers["read"]).json()["comments"]
    assert shown[-1]["text"] == text


def test_settings_that_are_nested_without_end_are_refused(service: Service) -> None:
    deep = '{"a":' * 900 + "1" + "}" * 900
    body = f'{{"model": "{service.digest}", "sources": {{"s": {{"kind": {deep}}}}}}}'
    headers = {**service.headers["admin"], "Content-Type": "application/json"}
    assert service.client.request("PUT", BASE, content=body, headers=headers).status_code in (400, 422)
