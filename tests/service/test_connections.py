"""Connections: unfinished requests shut no one out, and a client that sends too much gets to read why."""

from __future__ import annotations

import contextlib
import http.client
import resource
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from fastapi.responses import Response

from eccaht.service.api import serving
from eccaht.service.security.connections import Connections
from tests.service import plants, stores
from tests.service.guarded import served, small_app
from tests.service.programs import Program, program
from tests.service.test_security_limits import ROWS

HALF = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
TRIES, SENT, LARGE = 20, 10_000_000, 20_000_000


# -- the program ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A service that may open 400 files, which 1,100 connections would be far beyond."""
    settings = """
        [limits]
        body = 1_000_000
        per_address = 200
        [security]
        forwarded_by = ["127.0.0.9"]
        [plants.p]
        model = "plant.model"
    """
    folder = tmp_path_factory.mktemp("connections")
    (folder / "plant.model").write_bytes(plants.content())
    with program(folder, settings, {resource.RLIMIT_NOFILE: 400}) as made:
        yield made


@contextlib.contextmanager
def unfinished(port: int, count: int, head: bytes = HALF, source: str = "127.0.0.1") -> Iterator[list[socket.socket]]:
    """Connections that send a part of a head and no more."""
    with contextlib.ExitStack() as stack:
        made = []
        for _ in range(count):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", port), 30.0, (source, 0)))
            with contextlib.suppress(OSError):  # it may be closed already, to make room
                line.sendall(head)
            made.append(line)
        yield made


def ended(line: socket.socket) -> bool:
    """Wait for what the server does: whether it hung up without an answer."""
    try:
        return line.recv(100) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("source", ["127.0.0.1", "127.0.0.9"])
def test_a_flood_of_unfinished_heads_shuts_no_one_out(service: Program, source: str) -> None:
    """Also one that comes through a trusted proxy, which has no limit but the one of all connections."""
    with unfinished(service.port, 1100, source=source):
        for path in ("/healthz", "/api/plants") * 5:
            assert service.get(path, headers=service.headers).status_code == 200
    lines = [line for line in service.log.read_text().splitlines() if "connections closed without an answer" in line]
    assert '"warning"' in lines[0]
    assert len(lines) < 10  # the first at once, the others together, every ten seconds


def test_a_head_without_an_end_is_refused(service: Program) -> None:
    with unfinished(service.port, 1, HALF + b"X-Long: " + b"x" * 1_000_000) as (line,):
        assert line.recv(65536).startswith(b"HTTP/1.1 400 ")
    assert service.get("/healthz", headers={"X-Long": "x" * 20_000}).status_code == 200


# -- uploads that are too large --------------------------------------------------------------------------


def by_standard_library(service: Program, chunked: bool) -> int:
    line = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    body = iter([b"x" * 100_000] * (SENT // 100_000)) if chunked else b"x" * SENT
    headers = {**service.headers, "Content-Type": "text/csv"}
    line.request("POST", ROWS, body=body, headers=headers, encode_chunked=chunked)  # all of it, before it listens
    status = line.getresponse().status
    line.close()
    return status


def by_httpx(service: Program, chunked: bool) -> int:
    content = iter([b"x" * 100_000] * (SENT // 100_000)) if chunked else b"x" * SENT
    headers = {**service.headers, "Content-Type": "text/csv"}
    return httpx.post(service.base + ROWS, content=content, headers=headers, timeout=60.0).status_code


def by_curl(service: Program, chunked: bool) -> int:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    more = ["-H", "Transfer-Encoding: chunked", "-H", "Expect:"] if chunked else ["-H", "Expect: 100-continue"]
    sent = subprocess.run(
        ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-X", "POST", "--data-binary", "@-",
         "-H", f"Authorization: {service.headers['Authorization']}", "-H", "Content-Type: text/csv", *more,
         service.base + ROWS],
        input=b"x" * SENT, capture_output=True, check=True,
    )  # fmt: skip
    return int(sent.stdout)


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("send", [by_standard_library, by_httpx, by_curl])
def test_an_upload_over_the_limit_is_answered(
    service: Program, send: Callable[[Program, bool], int], chunked: bool
) -> None:
    assert [send(service, chunked) for _ in range(TRIES)] == [413] * TRIES


def test_nothing_more_is_asked_for_if_the_length_is_too_large(service: Program) -> None:
    head = f"POST {ROWS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n"
    with unfinished(service.port, 1, head.encode()) as (line,):
        assert line.recv(65536).startswith(b"HTTP/1.1 413 ")


# -- the limits by themselves ----------------------------------------------------------------------------


class Line:
    """A connection that only knows whether it was ended."""

    evicted = False

    def evict(self) -> None:
        self.evicted = True


@pytest.mark.usefixtures("_quiet")
def test_the_longest_wait_ends_first_and_answers_under_way_never() -> None:
    lines, shared = [Line() for _ in range(6)], Connections(100, 3)
    for line in lines[:3]:
        assert shared.admit(line, "10.0.0.1")
        shared.waits(line, True)
    shared.waits(lines[0], False)  # a request is complete
    assert shared.admit(lines[3], "10.0.0.1")
    shared.waits(lines[1], True)  # it went, and changes nothing any more
    assert [line.evicted for line in lines[:4]] == [False, True, False, False]
    shared.waits(lines[2], False)
    assert not shared.admit(lines[4], "10.0.0.1")
    assert shared.admit(lines[5], "10.0.0.2")
    for line in lines:
        shared.leave(line)
    assert len(shared) == 0


@pytest.fixture
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Connections, "report", lambda *_: None)  # it needs a loop


@pytest.mark.usefixtures("_quiet")
def test_some_connections_are_left_for_those_who_hold_few() -> None:
    shared = Connections(100, 1000, lambda peer: peer == "10.0.0.9")
    assert sum(shared.admit(Line(), "10.0.0.1") for _ in range(200)) == 90
    assert sum(shared.admit(Line(), "10.0.0.2") for _ in range(200)) == 8
    assert sum(shared.admit(Line(), "10.0.0.9") for _ in range(200)) == 2


@pytest.mark.usefixtures("_quiet")
def test_an_address_is_a_network_of_ipv6_and_a_proxy_is_none() -> None:
    shared = Connections(1000, 5, lambda peer: peer == "2001:db8::9")
    assert sum(shared.admit(Line(), f"2001:db8::{k}") for k in range(1, 9)) == 5
    assert sum(shared.admit(Line(), "2001:db8::9") for k in range(20)) == 20
    assert sum(shared.admit(Line(), f"2001:db8:0:1::{k}") for k in range(1, 9)) == 5


# -- clients that neither send nor take ------------------------------------------------------------------


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "_LINGER", 0.3)
    monkeypatch.setattr(serving, "_IDLE", 0.3)
    monkeypatch.setattr(serving, "_DISCARDED", 20_000_000)


@pytest.fixture
def port(tmp_path: Path, short: None) -> Iterator[int]:
    """The small app behind a real socket, with little time for clients."""
    assert short is None
    with stores.opened("sqlite", tmp_path) as store:
        app = small_app(store)

        @app.get("/large")
        def large() -> Response:
            return Response(b"x" * LARGE)

        with served(app, security={"head_time": 0.3}) as port:
            yield port


def test_slow_heads_are_closed(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with unfinished(port, 3) as heads, unfinished(port, 3, b"") as silent:
        assert all(ended(line) for line in heads + silent)
    assert "slow heads 1" in caplog.text
    with unfinished(port, 1) as (line,):
        assert hung_up(line, b"X-Little: more\r\n")


def test_a_line_that_is_kept_is_closed_when_nothing_comes(port: int) -> None:
    """Empty lines are no request: they do not make the time begin anew."""
    with unfinished(port, 1, HALF + b"\r\n") as (line,):
        assert line.recv(65536).startswith(b"HTTP/1.1 404 ")  # this app has no such path
        assert hung_up(line, b"\r\n")


def test_a_body_that_is_no_longer_wanted_must_end(port: int) -> None:
    """The answer is out before the body has come: uvicorn by itself would wait for the rest for ever."""
    head = f"POST {ROWS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n".encode()
    with unfinished(port, 1, head) as (line,):
        assert line.recv(65536).startswith(b"HTTP/1.1 401 ")
        assert hung_up(line, b"x")
    with unfinished(port, 1, head) as (line,):  # one that does end is kept
        assert line.recv(65536).startswith(b"HTTP/1.1 401 ")
        line.sendall(b"x" * 1000 + b"GET /page HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert line.recv(65536).startswith(b"HTTP/1.1 200 ")


def test_an_upload_without_an_end_is_cut_off(port: int) -> None:
    head = f"POST {ROWS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n".encode()
    with unfinished(port, 1, head) as (line,):
        assert hung_up(line, b"x" * 1_000_000)


def test_a_client_that_takes_nothing_is_given_up(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, lost = threading.Event(), serving.LimitedProtocol.connection_lost

    def noted(self: serving.LimitedProtocol, exc: Exception | None) -> None:
        lost(self, exc)
        gone.set()

    monkeypatch.setattr(serving.LimitedProtocol, "connection_lost", noted)
    with unfinished(port, 1, b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n") as (line,):
        assert gone.wait(60.0)
        assert sum(map(len, iter(lambda: line.recv(1_000_000), b""))) < LARGE


def test_a_client_that_takes_its_time_gets_everything(port: int) -> None:
    got = 0
    with unfinished(port, 1, b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n") as (line,):
        while got < LARGE:
            got += len(line.recv(1_000_000))
            time.sleep(0.02)


def hung_up(line: socket.socket, data: bytes) -> bool:
    """Send the same again and again until the server hangs up; whether it does."""
    try:
        for _ in range(1000):
            line.sendall(data)
            time.sleep(0.03)
    except ConnectionError:
        return True
    return False
