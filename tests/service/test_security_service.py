"""The whole service: every endpoint refuses unknown callers, and whatever they send changes nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht.plants.model.model import parse_model
from eccaht.service.security import guard
from eccaht.service.security.settings import SCOPES
from eccaht.service.store.store import now
from tests.checks import hostile
from tests.service import plants, stores
from tests.service.filled import contents
from tests.service.guarded import bearer, make, revoke
from tests.service.service import PLANT, Service, endpoints, running

FREE = {"/healthz", "/metrics", "/api/login"}
ROWS = f"/api/plants/{PLANT}/rows"


@pytest.fixture(scope="module", params=stores.KINDS)
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    # unknown callers are many here: another test shows that they are counted
    security = {"address_rate": 1e6, "address_burst": 1e6, "rate": 1e6, "burst": 1e6, "logins": 1e6}
    with running(request.param, tmp_path_factory.mktemp("service"), security=security) as made:
        yield made


def kept(service: Service) -> dict[str, Any]:
    """All that is stored, but for who asked when."""
    return {name: rows for name, rows in contents(service.store).items() if name not in ("audit", "tokens")}


# -- every endpoint ------------------------------------------------------------------------------------


def asked(service: Service) -> list[tuple[str, str, str]]:
    """Method, path and scope of every endpoint that needs one."""
    found = []
    for route in endpoints(service.app.routes):
        granted = [
            call.scope for inner in route.dependant.dependencies if (call := inner.call) and hasattr(call, "scope")
        ]
        if route.path in FREE:
            assert granted == []
            continue
        assert len(granted) == 1, f"{route.path} asks for {granted or 'no scope'}"
        path = route.path.replace("{plant}", PLANT).replace("{number}", "1")
        assert "{" not in path
        found += [(method, path, granted[0]) for method in sorted(route.methods or ())]
    return found


def test_every_endpoint_has_the_scope_of_the_table(service: Service) -> None:
    found = {(method, path.replace("/api", "")): scope for method, path, scope in asked(service)}
    assert len(found) >= 25
    for (method, path), scope in found.items():
        if path in ("/me", "/logout"):
            wanted = "any"
        elif path.endswith("/rows"):
            wanted = "ingest"
        elif path in ("/audit", "/outbox") or method in ("PUT", "DELETE") or (method, path) == ("POST", "/models"):
            wanted = "admin"
        elif "/retraining" in path:
            wanted = "read" if (method, path) == ("GET", f"/plants/{PLANT}/retraining") else "admin"
        else:
            wanted = "read" if method == "GET" else "operate"
        assert scope == wanted, (method, path)


def test_every_endpoint_refuses_unknown_callers_and_too_small_scopes(service: Service, tmp_path: Path) -> None:
    old = make(service.store, "old", "admin", seconds=1.0, at=now() - 2_000_000)
    gone = make(service.store, "gone", "admin")
    revoke(service.store, "gone")
    with stores.opened("sqlite", tmp_path) as other:
        foreign = [make(other, name, "admin") for name in "abcdefgh"][-1]
    unknown = [{}, bearer(foreign), bearer(old), bearer(gone), {"Cookie": "eccaht_session=1.2.3.4"}]
    was = kept(service)
    for method, path, scope in asked(service):
        for headers in unknown:
            answer = service.client.request(method, path, json={}, headers=headers)
            assert answer.status_code == 401, (method, path, headers)
        for held in SCOPES:
            if not guard.allows([held], scope):
                answer = service.client.request(method, path, json={}, headers=service.headers[held])
                assert answer.status_code == 403, (method, path, held)
                assert f"needs the scope {scope}" in answer.json()["detail"]
    assert kept(service) == was


def test_unsafe_requests_by_cookie_need_the_csrf_token_everywhere(service: Service) -> None:
    login = service.client.post("/api/login", json={"token": make(service.store, "boss", "admin")})
    cookie = {"Cookie": login.headers["set-cookie"].partition(";")[0]}
    service.client.cookies.clear()
    was = kept(service)
    for method, path, _ in asked(service):
        if method not in ("GET", "HEAD"):
            answer = service.client.request(method, path, json={}, headers=cookie)
            assert (answer.status_code, "X-CSRF-Token" in answer.text) == (403, True), (method, path)
    assert kept(service) == was


def test_what_needs_no_token_shows_no_readings(service: Service) -> None:
    for path in (*sorted(FREE), "/", "/static/app.js", "/static/plotly.min.js"):
        assert service.client.get(path).status_code == 200, path
    for headers in ({}, bearer("eccaht_1_x"), {"Cookie": "eccaht_session=1.2.3.4"}):
        assert service.client.get("/api/login", headers=headers).json() is None
    assert service.client.get("/static/../settings.py").status_code in (401, 404)
    assert service.client.get("/static/%2e%2e/settings.py").status_code in (401, 404)


# -- hostile bodies ------------------------------------------------------------------------------------

TIME = '"time": "2026-03-01T08:00:00Z"'
JSON, LINES, CSV = "application/json", "application/x-ndjson", "text/csv"


def bad_rows() -> Iterator[tuple[str, bytes]]:
    """Rows that no reader can parse: their type and their bytes."""
    texts = [
        "", "{", "]", "nul", '"x"', "3", "[3]", "[[]]", "[null]", '[{"a": 1}, {"a": 2}]',
        '{"values": {"a": []}}', "[" + ",".join([f"{{{TIME}}}"] * 10_001) + "]", "[1, 2", "\x00", "[\x01]",
        *(f'[{{"time": {time}}}]' for time in ("true", "[]", "{}", "-1", "1e300", "1e400", "NaN", "-Infinity", '"x"')),
        *(f'[{{"time": {time}}}]' for time in ('"2026-13-01"', '"99999-01-01"', "1e19", '""', "9" * 5000)),
        *(f'[{{{TIME}, "values": {values}}}]' for values in ("3", "[]", '"x"', "true", "null", "[[1]]")),
        *(f'[{{{TIME}, "a": {value}}}]' for value in ('"x"', "[]", "{}", '"1,5"', "[1]", "9" * 5000, '"1e"')),
        "[" * 100_000, '{"a":' * 50_000, "[" * 500 + "]" * 500, f'[{{{TIME}, "{"n" * 600}": 1}}]',
    ]  # fmt: skip
    for text in texts:
        yield JSON, text.encode()
        if text and "\n" not in text:
            yield LINES, text.encode()
    encodings = [f'[{{{TIME}, "ä": 1}}]'.encode(coding) for coding in ("utf-16", "utf-32", "latin-1")]
    for data in [*encodings, b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", bytes(range(256))]:
        yield from ((kind, data) for kind in (JSON, LINES, CSV))
    for table in (
        "", "a,b\n1,2\n", "time,a,a\n", "time,time\n", "time,a\nx,1\n", "time,a\n2026-03-01T08:00:00Z\n",
        "time,a\n2026-03-01T08:00:00Z,1,2\n", "time,a\n2026-03-01T08:00:00Z,x\n", 'time,a\n"2026', "time\ta\n1\t2\n",
        "time,a\n" + "2026-03-01T08:00:00Z,1\n" * 10_001, "time,a\n2026-03-01T08:00:00Z," + "9" * 200_000 + "x\n",
        "time," + ",".join(map(str, range(30_000))) + "\n2026-03-01T08:00:00Z" + ",1" * 30_000 + "\n",
    ):  # fmt: skip
        yield CSV, table.encode()
    for kind in (
        "",
        "text/html",
        "application/xml",
        "multipart/form-data; boundary=x",
        "application/octet-stream",
        "\xe4",
    ):
        yield kind, b"[]"


def test_bad_rows_are_refused_in_one_line_and_nothing_is_stored(service: Service) -> None:
    was, bodies = kept(service), list(bad_rows())
    for kind, data in bodies:
        headers = {**service.headers["ingest"], "Content-Type": kind.encode("latin-1")}
        refused(service.client.post(ROWS, content=data, headers=headers), (kind, data[:60]))
    assert len(bodies) >= 100
    assert kept(service) == was


def refused(answer: Any, what: Any) -> None:
    assert 400 <= answer.status_code < 500, (what, answer.status_code, answer.text[:200])
    detail = answer.json()["detail"]
    assert isinstance(detail, str), (what, detail)
    assert 0 < len(detail) <= 600
    assert "\n" not in detail
    assert "Traceback" not in detail


def bad_documents() -> Iterator[tuple[str, str, Any]]:
    """Method, path and document of requests that must not do anything."""
    odd: list[Any] = [
        None,
        True,
        -1,
        1e308,
        10**400,
        "",
        "x" * 100_000,
        "\x00",
        "a\nb",
        [],
        [[]],
        {},
        {"x": 1},
        "\ud800",
    ]
    base = f"/api/plants/{PLANT}"
    for value in odd:
        yield "POST", f"{base}/shelve", {"sensor": value, "duration": "1h"}
        yield "POST", f"{base}/shelve", {"sensor": "a", "duration": value}
        yield "POST", f"{base}/unshelve", {"sensor": value}
        yield "POST", f"{base}/incidents/1/comments", {"text": value}
        yield "PUT", base, {"model": value}
        yield "POST", "/api/login", {"token": value}
        if value is not None:
            yield "PUT", "/api/plants/q", {"model": "0" * 64, "false_alarms": value}
            yield "PUT", "/api/plants/q", {"model": "0" * 64, "lateness": value}
        yield "PUT", "/api/plants/q", {"model": "0" * 64, "sources": {"s": value}}
        if value != {}:
            yield "POST", f"{base}/acknowledge", value
    for name in ("", "..", "a%2fb", "a%00b", "%ff", "x" * 70, "%0a", "-x", " "):
        yield "PUT", f"/api/plants/{name}", {"model": "0" * 64}
    for number in ("0", "-1", "x", "1e3", str(10**30), "2", "%00"):
        yield "POST", f"{base}/incidents/{number}/comments", {"text": "hello"}


def test_bad_documents_are_refused_in_one_line_and_nothing_is_stored(service: Service) -> None:
    was, documents = kept(service), list(bad_documents())
    for method, path, document in documents:
        data = json.dumps(document).encode()
        headers = {**service.headers["admin"], "Content-Type": JSON}
        refused(service.client.request(method, path, content=data, headers=headers), (method, path, data[:80]))
    assert len(documents) >= 100
    assert kept(service) == was


def test_bad_models_are_refused_in_one_line_and_nothing_is_stored(service: Service) -> None:
    """Damaged files, and edited ones whose digest is right: refused wherever the library refuses them."""
    sound, rng = plants.content(), np.random.default_rng(5)
    bad = [b"", b"x", sound[:1000], sound + b"\0", b"PK\x03\x04" + sound, sound[::-1], sound * 2]
    while len(bad) < 60:
        data = hostile.damaged(sound, rng) if len(bad) % 3 == 0 else hostile.edited(sound, sound, rng)
        try:
            parse_model(data, "m")
        except (ValueError, ArithmeticError):
            bad.append(data)
    was = kept(service)
    for k, data in enumerate(bad):
        refused(service.client.post("/api/models?name=m", content=data, headers=service.headers["admin"]), k)
    for name in ("", "x" * 200, "a%00b", "a%0ab"):
        refused(service.client.post(f"/api/models?name={name}", content=sound, headers=service.headers["admin"]), name)
    assert kept(service) == was


def test_queries_that_make_no_sense_are_refused(service: Service) -> None:
    bases = [path for method, path, scope in asked(service) if method == "GET" and scope in ("read", "admin")]
    queries = ["start=x", "stop=99999-01-01", "points=-1", "points=1e9", "points=99999999999", "limit=0", "limit=-5"]
    queries += [
        "before=x",
        "before=" + "9" * 40,
        "sensor=unknown",
        "sensor=%00",
        "kind=%00",
        "start=%ff",
        "plant=unknown",
    ]
    for path in bases:
        for query in ["plant=unknown", "plant=%00"] if path.endswith("/stream") else queries:
            answer = service.client.get(f"{path}?{query}", headers=service.headers["admin"])
            assert answer.status_code < 500, (path, query, answer.text[:200])
            if answer.status_code >= 400:
                refused(answer, (path, query))


def test_rows_with_odd_names_are_counted_and_not_kept(service: Service) -> None:
    """Unknown columns are no error, whatever they are called."""
    names = ["\u0000", "\ud800", "__proto__", "<script>", "a" * 256, "\u202e", "values"]
    for name in names[:-1]:
        body = json.dumps([{"time": "2030-01-01T00:00:00Z", "values": {name: 1.0}}])
        answer = service.client.post(
            ROWS, content=body.encode(), headers={**service.headers["ingest"], "Content-Type": JSON}
        )
        assert answer.status_code < 500, (name, answer.text)


def test_errors_do_not_show_what_was_sent_as_markup(service: Service) -> None:
    answer = service.client.get("/api/plants/%3Cscript%3E", headers=service.headers["read"])
    assert answer.headers["content-type"] == JSON
    assert re.fullmatch(r"4\d\d", str(answer.status_code))
