"""The whole service: every endpoint refuses unknown callers, and whatever they send changes nothing."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eccaht.service.security import guard
from eccaht.service.security.settings import SCOPES
from eccaht.service.store.store import now
from tests.service import stores
from tests.service.filled import contents
from tests.service.guarded import bearer, make, revoke
from tests.service.service import PLANT, Service, endpoints, running

FREE = {"/healthz", "/metrics", "/api/login"}
ROWS = f"/api/plants/{PLANT}/rows"


@pytest.fixture(scope="module", params=stores.KINDS)
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with running(request.param, tmp_path_factory.mktemp("service"), security={"logins": 1e6, "sources": True}) as made:
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
        elif path.endswith(("/rows", "/next")):
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

JSON, LINES, CSV = "application/json", "application/x-ndjson", "text/csv"


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
        yield "POST", f"{base}/incidents/1/checks", {"sensor": "a", "value": value, "noise": value}
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
