"""Sizes, rates, headers, single sign-on and streams: what holds for every request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from eccaht.service.security.fence import Rates
from eccaht.service.security.settings import ProxySettings, Security
from eccaht.service.settings import Settings
from eccaht.service.store import Store
from tests.service.asking import Client
from tests.service.guarded import bearer, client, make, revoke, small_app
from tests.service.source_tools import until

ROWS = "/api/plants/p/rows"


async def pieces(sizes: list[int]) -> AsyncIterator[bytes]:
    for size in sizes:
        yield b"x" * size


# -- bodies --------------------------------------------------------------------------------------------


def test_bodies_are_limited_by_what_they_are_for(store: Store) -> None:
    headers = bearer(make(store, "a", "admin"))
    asks, most = client(store), Settings().limits.body
    assert asks.post(ROWS, content=b"x" * most, headers=headers).json() == most
    answer = asks.post(ROWS, content=b"x" * (most + 1), headers=headers)
    assert (answer.status_code, answer.json()) == (
        413,
        {"detail": f"the body has more than {most} bytes: send less at a time"},
    )
    other = Security().other_body
    assert asks.post("/api/done", content=b"x" * (other + 1), headers=headers).status_code == 413
    assert asks.post("/api/login", content=b"x" * (other + 1)).status_code == 413


def test_a_body_without_a_length_is_counted_as_it_arrives(store: Store) -> None:
    headers, most = bearer(make(store, "a", "ingest")), Settings().limits.body
    asks = client(store)
    assert asks.post(ROWS, content=pieces([1000] * 10), headers=headers).json() == 10_000
    sent: list[int] = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            sent.append(100_000)
            yield b"x" * 100_000

    assert asks.post(ROWS, content=endless(), headers=headers).status_code == 413
    assert sum(sent) <= most + 200_000
    assert asks.post("/api/login", content=endless(), headers={"Content-Type": "application/json"}).status_code == 413


def test_compressed_bodies_are_refused_before_they_are_read(store: Store) -> None:
    headers = bearer(make(store, "a", "ingest"))
    asks = client(store)
    for coding in ("gzip", "deflate", "br", "zstd", "gzip, gzip", "x"):
        more = {**headers, "Content-Encoding": coding}
        assert asks.post(ROWS, content=pieces([10]), headers=more).status_code == 415
    assert asks.post(ROWS, content=b"xy", headers={**headers, "Content-Encoding": "identity"}).json() == 2


def test_a_length_that_is_no_number_is_refused(store: Store) -> None:
    headers = bearer(make(store, "a", "ingest"))
    for length, status in (("-1", 400), ("1e9", 400), ("", 400), ("9" * 40, 413)):
        answer = client(store).post(ROWS, content=pieces([1]), headers={**headers, "Content-Length": length})
        assert answer.status_code == status


def test_a_body_that_does_not_end_is_given_up(store: Store) -> None:
    async def slow() -> AsyncIterator[bytes]:
        yield b"x"
        await asyncio.sleep(10.0)

    asks = client(store, body_time=0.1)
    assert asks.post(ROWS, content=slow(), headers=bearer(make(store, "a", "ingest"))).status_code == 408


# -- rates ---------------------------------------------------------------------------------------------


def test_buckets_fill_with_time_and_memory_is_bounded() -> None:
    now = [0.0]
    rates = Rates(1.0, 3.0, clock=lambda: now[0], most=100)
    assert [rates.take("a") for _ in range(4)] == [0.0, 0.0, 0.0, 1.0]
    now[0] = 2.5
    assert [rates.take("a") for _ in range(3)] == [0.0, 0.0, 0.5]
    for k in range(1000):
        rates.take(str(k))
    assert len(rates._buckets) == 100
    with pytest.raises(ValueError, match="lets no request in"):
        Rates(0.0, 1.0)


def test_each_token_has_its_own_rate(store: Store) -> None:
    one, other = (bearer(make(store, name, "read")) for name in ("a", "b"))
    asks = client(store, rate=0.001, burst=3)
    answers = [asks.get("/api/seen", headers=one) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert int(answers[-1].headers["retry-after"]) > 900
    assert asks.get("/api/seen", headers=other).status_code == 200


def test_unknown_callers_are_counted_by_their_address_and_do_not_lock_others_out(store: Store) -> None:
    right = bearer(make(store, "a", "read"))
    app = small_app(store, address_rate=0.001, address_burst=3)
    unknown, elsewhere = Client(app, "10.0.0.1"), Client(app, "10.0.0.2")
    wrong = bearer("eccaht_1_" + "0" * 64)
    assert [unknown.get("/api/seen", headers=wrong).status_code for _ in range(5)] == [401, 401, 401, 429, 429]
    assert unknown.get("/page").status_code == 429
    assert unknown.get("/page", headers=wrong).status_code == 429
    assert unknown.get("/api/seen", headers=right).status_code == 200
    assert [elsewhere.get("/page").status_code for _ in range(4)] == [200, 200, 200, 429]


def test_files_of_the_page_do_not_use_up_what_an_address_may_ask(store: Store) -> None:
    asks = client(store, address_rate=0.001, address_burst=3)
    answers = [asks.get("/static/app.js").status_code for _ in range(31)]
    assert answers == [404] * 30 + [429]  # this app has no page; ten times as many files as requests
    assert [asks.get("/page").status_code for _ in range(4)] == [200, 200, 200, 429]


# -- headers -------------------------------------------------------------------------------------------


def test_every_answer_has_the_headers_of_security(store: Store) -> None:
    right = bearer(make(store, "a", "read"))
    asks = client(store)
    answers = [asks.get("/page"), asks.get("/nowhere"), asks.get("/api/seen"), asks.get("/api/seen", headers=right)]
    answers += [asks.post("/api/login", content=b"{"), asks.post(ROWS, headers={"Content-Encoding": "gzip"})]
    assert [answer.status_code for answer in answers] == [200, 404, 401, 200, 422, 415]
    for answer in answers:
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == "'self'"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers.get("cache-control") == ("no-store" if "/api" in answer.url.path else None)


# -- single sign-on ------------------------------------------------------------------------------------

SSO = {"header": "X-User", "addresses": ["10.0.0.5", "fd00::/8"], "users": {"anna": ["operate"], "bob": ["read"]}}


@pytest.mark.parametrize(
    ("address", "users", "status"),
    [
        ("10.0.0.5", ["anna"], 200),
        ("fd00::7", ["bob"], 200),
        ("::ffff:10.0.0.5", ["bob"], 200),
        ("10.0.0.6", ["anna"], 403),
        ("127.0.0.1", ["anna"], 403),
        ("", ["anna"], 403),
        ("10.0.0.5", ["carl"], 403),
        ("10.0.0.5", [""], 403),
        ("10.0.0.5", ["anna", "anna"], 403),
        ("10.0.0.5", ["anna, bob"], 403),
        ("10.0.0.5", ["anna,bob"], 403),
        ("10.0.0.5", ["Anna"], 403),
        ("10.0.0.5", ["anna "], 403),
        ("10.0.0.5", [], 401),
    ],
)
def test_a_proxy_is_believed_or_all_is_refused(address: str, users: list[str], status: int, store: Store) -> None:
    asks = client(store, address, proxy=SSO)
    headers = [("X-User", user) for user in users]
    answer = asks.get("/api/seen", headers=headers)
    assert answer.status_code == status
    if status == 403:  # not even beside a valid token: the client may pose as a proxy
        token = bearer(make(store, "t", "admin"))
        assert asks.get("/api/seen", headers=[*headers, *token.items()]).status_code == 403


def test_without_the_setting_the_header_means_nothing(store: Store) -> None:
    assert client(store, "10.0.0.5").get("/api/seen", headers={"X-User": "anna"}).status_code == 401


def test_users_of_a_proxy_have_their_scopes_and_send_the_csrf_token(store: Store) -> None:
    asks = client(store, "10.0.0.5", proxy=SSO)
    anna, bob = {"X-User": "anna"}, {"X-User": "bob"}
    tokens = {user: asks.get("/api/me", headers={"X-User": user}).json()["csrf"] for user in ("anna", "bob")}
    assert asks.post("/api/done", headers=anna).status_code == 403
    assert asks.post("/api/done", headers={**anna, "X-CSRF-Token": tokens["bob"]}).status_code == 403
    assert asks.post("/api/done", headers={**anna, "X-CSRF-Token": tokens["anna"]}).json() == "anna"
    assert asks.post("/api/done", headers={**bob, "X-CSRF-Token": tokens["bob"]}).status_code == 403


@pytest.mark.parametrize("trusted", [{"proxy": SSO}, {"forwarded_by": ["10.0.0.4/31"]}])
def test_only_the_proxy_says_where_a_client_is(store: Store, trusted: dict[str, Any]) -> None:
    app = small_app(store, **trusted, address_rate=0.001, address_burst=1)
    behind, straight = Client(app, "10.0.0.5"), Client(app, "10.0.0.9")

    def codes(asks: Client) -> list[int]:
        return [asks.get("/page", headers={"X-Forwarded-For": f"9.9.9.9, 8.8.8.{k}"}).status_code for k in range(2)]

    assert codes(behind) == [200, 200]
    assert codes(straight) == [200, 429]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"header": "X User"}, "not the name of a header"),
        ({"header": "Cookie"}, "has another meaning"),
        ({"addresses": []}, "from which addresses"),
        ({"addresses": ["0.0.0.0/0"]}, "would let every client in"),
        ({"addresses": ["proxy.example"]}, "address of the proxy"),
        ({"users": {}}, "who comes by"),
        ({"users": {"anna": []}}, "opens nothing"),
    ],
)
def test_settings_that_leave_a_gap_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ProxySettings(**{**SSO, **change})
    with pytest.raises(ValueError, match=message):
        Security(proxy={**SSO, **change})


def test_trusting_every_address_or_a_whole_machine_is_refused() -> None:
    for addresses in (["0.0.0.0/0"], ["::/0"], ["proxy.example"]):
        with pytest.raises(ValueError, match="proxy"):
            Security(forwarded_by=addresses)
    with pytest.raises(ValueError, match="behind a proxy cannot be open"):
        Security(forwarded_by=["127.0.0.1"], open=True)


# -- streams -------------------------------------------------------------------------------------------


async def _listen(app: Any, token: str, hang_up: asyncio.Event, got: list[dict[str, Any]]) -> None:
    """What a client gets until the stream ends or it hangs up."""
    asked = False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            await hang_up.wait()
            return {"type": "http.disconnect"}
        asked = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        got.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "GET",
        "path": "/api/stream", "raw_path": b"/api/stream", "query_string": b"", "root_path": "", "scheme": "http",
        "headers": [(b"authorization", f"Bearer {token}".encode())], "client": ("127.0.0.1", 1),
        "server": ("localhost", 8765), "state": {},
    }  # fmt: skip
    await app(scope, receive, send)


@pytest.mark.parametrize("ended", ["revoked", "hung up"])
def test_an_open_stream_ends_with_its_token(store: Store, monkeypatch: pytest.MonkeyPatch, ended: str) -> None:
    monkeypatch.setattr("eccaht.service.security.fence.Fence.__init__.__kwdefaults__", {"every": 0.05})
    token, app = make(store, "a", "read"), small_app(store)

    async def watched() -> list[dict[str, Any]]:
        hang_up, got = asyncio.Event(), list[dict[str, Any]]()
        stream = asyncio.create_task(_listen(app, token, hang_up, got))
        await until(lambda: len(got) > 5)
        assert not stream.done()
        if ended == "revoked":
            await asyncio.to_thread(revoke, store, "a")
        else:
            hang_up.set()
        async with asyncio.timeout(30.0):
            await stream
        return got

    got = asyncio.run(watched())
    assert got[0]["status"] == 200
    assert len(got) > 5
    assert got[-1]["more_body"] is (ended == "hung up")
    assert all(message["more_body"] for message in got[1:-1])
