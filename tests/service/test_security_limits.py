"""Sizes, rates and headers: what holds for every request."""

from collections.abc import AsyncIterator

import pytest

from eccaht.service.security.fence import Rates
from eccaht.service.security.login import OTHER_BODY
from eccaht.service.security.settings import Security
from eccaht.service.settings import Settings
from eccaht.service.store import Store
from tests.service.asking import Client
from tests.service.guarded import bearer, client, make, small_app

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
    other = OTHER_BODY
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


# -- proxies -------------------------------------------------------------------------------------------


def test_only_the_proxy_says_where_a_client_is(store: Store) -> None:
    app = small_app(store, forwarded_by=["10.0.0.4/31"], logins=0.01)
    behind, straight = Client(app, "10.0.0.5"), Client(app, "10.0.0.9")

    def codes(asks: Client) -> list[int]:
        forwarded = [{"X-Forwarded-For": f"9.9.9.9, 8.8.8.{k}"} for k in (1, 2)]
        return [asks.post("/api/login", json={"token": "x"}, headers=each).status_code for each in forwarded]

    assert codes(behind) == [401, 401]
    assert codes(straight) == [401, 429]


def test_trusting_every_address_or_a_whole_machine_is_refused() -> None:
    for addresses in (["0.0.0.0/0"], ["::/0"], ["proxy.example"]):
        with pytest.raises(ValueError, match="proxy"):
            Security(forwarded_by=addresses)
    with pytest.raises(ValueError, match="behind a proxy cannot be open"):
        Security(forwarded_by=["127.0.0.1"], open=True)
