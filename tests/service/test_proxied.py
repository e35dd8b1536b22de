"""The shipped nginx.conf in front of the real program: clients are known by their own addresses."""

import http.client
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

from tests.service import plants
from tests.service.programs import Program, program
from tests.service.source_tools import free_port, open_port
from tests.service.test_security_limits import ROWS

DEPLOY = Path(__file__).parents[2] / "deploy"
NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, str]]:
    """The service with the shipped settings, and the address of the proxy."""
    if NGINX is None or shutil.which("openssl") is None:
        pytest.skip("there is no nginx, or no openssl: apt-get install nginx-light openssl")
    folder = tmp_path_factory.mktemp("proxied")
    (folder / "plant.model").write_bytes(plants.content())
    settings = (DEPLOY / "live.toml").read_text(encoding="utf-8") + '\n[plants.p]\nmodel = "plant.model"\n'
    settings = settings.replace("[security]\n", "[security]\nlogins = 0.01\n")  # one, and the next after hours
    with program(folder, settings) as service:
        port = free_port()
        with nginx(folder, service.port, port):
            yield service, f"https://127.0.0.1:{port}"


@contextmanager
def nginx(folder: Path, service: int, port: int) -> Iterator[None]:
    """nginx with the shipped file, other than its ports and its certificate."""
    assert NGINX is not None
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost",
         "-keyout", folder / "key", "-out", folder / "certificate"],
        check=True, capture_output=True,
    )  # fmt: skip
    shipped = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    changes = {
        r"listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        r"http://127\.0\.0\.1:8765;": f"http://127.0.0.1:{service};",
        r"/etc/ssl/\S+\.pem;": f"{folder}/certificate;",
        r"/etc/ssl/\S+\.key;": f"{folder}/key;",
    }
    for old, new in changes.items():
        shipped, found = re.subn(old, new, shipped)
        assert found == 1, old
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)
    (folder / "nginx.conf").write_text(
        f"user root; daemon off; pid {folder}/pid; error_log {folder}/errors; worker_processes 1; events {{}}\n"
        f"http {{ access_log off; {places}\n{shipped} }}\n"
    )
    command = [NGINX, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "errors")]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        while not open_port("127.0.0.1", port):
            assert process.poll() is None, (folder / "errors").read_text()
            time.sleep(0.02)
        yield
    finally:
        process.terminate()
        process.wait(60)


def from_address(base: str, address: str) -> httpx.Client:
    transport = httpx.HTTPTransport(verify=False, local_address=address)  # the certificate is its own witness
    return httpx.Client(base_url=base, transport=transport, timeout=60.0)


def test_wrong_logins_lock_out_only_where_they_come_from(proxied: tuple[Program, str]) -> None:
    service, base = proxied
    right = {"token": service.headers["Authorization"].removeprefix("Bearer ")}
    with from_address(base, "127.0.0.2") as wrong, from_address(base, "127.0.0.3") as other:
        codes = [wrong.post("/api/login", json={"token": "x"}).status_code for _ in range(3)]
        assert codes == [401, 429, 429]
        assert other.post("/api/login", json={"token": "x"}).status_code == 401
        assert other.post("/api/login", json=right).status_code == 200
        assert wrong.post("/api/login", json=right).status_code == 200
        found = other.get("/api/audit", headers=service.headers).json()["audit"]
    refused = [action["document"]["address"] for action in found if action["action"] == "login refused"]
    assert sorted(refused) == ["127.0.0.2", "127.0.0.3"]


def test_streams_come_as_they_are_sent_and_large_uploads_are_answered(proxied: tuple[Program, str]) -> None:
    service, base = proxied
    with from_address(base, "127.0.0.4") as client:
        with client.stream("GET", "/api/stream", headers=service.headers) as answer:
            assert b"event: heartbeat" in next(answer.iter_raw())
        headers = {**service.headers, "Content-Type": "text/csv"}
        assert client.post(ROWS, content=b"x" * 10_000_000, headers=headers).status_code == 413
        assert client.post(ROWS, content=iter([b"x" * 100_000] * 100), headers=headers).status_code == 413


@pytest.mark.parametrize("chunked", [False, True])
def test_an_upload_over_the_limit_is_answered_without_a_proxy_too(proxied: tuple[Program, str], chunked: bool) -> None:
    service, _ = proxied
    line = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
    body = iter([b"x" * 100_000] * 200) if chunked else b"x" * 20_000_000
    headers = {**service.headers, "Content-Type": "text/csv"}
    line.request("POST", ROWS, body=body, headers=headers, encode_chunked=chunked)  # all of it, before it listens
    assert line.getresponse().status == 413
    line.close()


def test_a_head_without_an_end_is_refused(proxied: tuple[Program, str]) -> None:
    service, _ = proxied
    with socket.create_connection(("127.0.0.1", service.port), 60.0) as line:
        with suppress(ConnectionError):  # the answer may come before all of it is sent
            line.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 200_000)
        assert line.recv(65536).startswith(b"HTTP/1.1 400 ")
