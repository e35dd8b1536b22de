"""From readings to a message outside, through the whole service and a restart of it."""

import json
from pathlib import Path
from typing import Any

from tests.service import plants, stores
from tests.service.receivers import hooks
from tests.service.service import PLANT, Service, running
from tests.service.source_tools import until
from tests.service.test_alerts import box

WINDOWS, WRONG = 90, slice(40, 60)


def rows(first: int, last: int) -> bytes:
    """Some of the windows as lines of JSON."""
    times, values = plants.recording(WINDOWS, wrong=WRONG)
    some = range(first * plants.ROWS, last * plants.ROWS)
    named = [dict(zip(plants.NAMES, values[k].tolist(), strict=True)) for k in some]
    lines = [{"time": f"{times[k]}Z", "values": readings} for k, readings in zip(some, named, strict=True)]
    return "\n".join(map(json.dumps, lines)).encode()


def deliver(service: Service, first: int, last: int) -> None:
    headers = {**service.headers["ingest"], "Content-Type": "application/x-ndjson"}
    answer = service.client.post(f"/api/plants/{PLANT}/rows", content=rows(first, last), headers=headers)
    assert answer.status_code == 200, answer.text


def wait_for(service: Service, many: int) -> None:
    """Until so many messages are sent."""

    service.client.run(until(lambda: sum(row.status == "sent" for row in box(service.store)) >= many, "sent"))


def test_an_alarm_goes_out_once_and_so_does_its_end(tmp_path: Path) -> None:
    with hooks(204) as kept:
        parts: dict[str, Any] = {"alerts": {"webhooks": {"ops": {"url": kept.url}}}}
        with stores.located("sqlite", tmp_path) as (url, _):
            with running("sqlite", tmp_path, url=url, options={"false_alarms": "1/2000w"}, **parts) as service:
                deliver(service, 0, 50)
                wait_for(service, 1)
            with running("sqlite", tmp_path, url=url, options={"false_alarms": "1/2000w"}, **parts) as service:
                deliver(service, 48, WINDOWS)  # some rows come again
                wait_for(service, 2)
                got = [json.loads(body) for _, body in kept.got]
                assert [message["kind"] for message in got] == ["alarm", "over"]
                assert "b" in got[0]["event"]["named"]
                assert {row.status for row in box(service.store)} == {"sent"}
                shown = service.client.get("/api/outbox", headers=service.headers["admin"]).json()["outbox"]
                assert sorted(row["kind"] for row in shown) == ["alarm", "over"]


def test_every_action_says_who_what_when_and_where(tmp_path: Path) -> None:
    security = {"sources": True}
    with running("sqlite", tmp_path, options={"false_alarms": "1/2000w"}, security=security) as service:
        deliver(service, 0, 50)
        base, operate = f"/api/plants/{PLANT}", service.headers["operate"]
        source = {"kind": "sql", "url": "postgresql://u:hunter2@h/d", "table": "t"}
        mqtt = {"kind": "mqtt", "topic": "t", "username": "u", "password": "hunter2"}
        done = [
            service.client.post(f"{base}/acknowledge", json={}, headers=operate),
            service.client.post(f"{base}/shelve", json={"sensor": "a", "duration": "1h"}, headers=operate),
            service.client.post(f"{base}/unshelve", json={"sensor": "a"}, headers=operate),
            service.client.post(f"{base}/normal", json={}, headers=operate),
            service.client.request(
                "PUT",
                "/api/plants/q",
                json={"model": service.digest, "sources": {"s": source, "m": mqtt}},
                headers=service.headers["admin"],
            ),
            service.client.request("DELETE", "/api/plants/q", headers=service.headers["admin"]),
        ]
        assert [answer.status_code for answer in done] == [200] * 6, [answer.text for answer in done]
        answer = service.client.get("/api/audit", headers=service.headers["admin"])
        actions = [(row["who"], row["action"], row["plant"]) for row in answer.json()["audit"]]
        assert [action for action in reversed(actions) if action[0] in ("operate", "admin")] == [
            ("admin", "model", None), ("admin", "plant", PLANT),
            *[("operate", "order", PLANT)] * 4,
            ("admin", "plant", "q"), ("admin", "remove", "q"),
        ]  # fmt: skip
        assert "hunter2" not in answer.text
