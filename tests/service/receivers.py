"""Receivers of alerts that do what real ones do, and also what broken ones do."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from eccaht.service.alerts.channels import Mail, MailSettings, Webhook, WebhookSettings


def webhook(url: str, secret: str = "", *, name: str = "w", **more: Any) -> Webhook:
    return Webhook(name, WebhookSettings.model_validate({"url": url, "secret": secret}), **more)


def mail_channel(*recipients: str, timeout: float = 60.0, **settings: Any) -> Mail:
    given = {"host": "127.0.0.1", "sender": "a@b.c", "recipients": list(recipients) or ["d@e.f"], **settings}
    return Mail("m", MailSettings.model_validate(given), timeout)


@dataclass
class Hooks:
    """A web server that keeps what it gets; answers: what to say to each request in turn, the last one for ever.

    An answer is a status, "hang up" (after the body has come) or "wait" (for longer than any client waits).
    """

    answers: list[int | str] = field(default_factory=lambda: [204])
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook?a=1"


@contextmanager
def hooks(*answers: int | str) -> Iterator[Hooks]:
    """A web server for webhooks."""
    kept = Hooks(list(answers) or [204])
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.got.append(({"path": self.path, **dict(self.headers)}, body))
            answer = kept.answers.pop(0) if len(kept.answers) > 1 else kept.answers[0]
            if answer == "wait":
                over.wait()
            elif isinstance(answer, int):
                self.send_response(answer)
                self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield kept
    finally:
        over.set()
        server.shutdown()
        thread.join()
        server.server_close()


@dataclass
class Mails:
    """A mail server that keeps what it gets; how: "good", or the place where it fails."""

    how: str = "good"
    got: list[tuple[str, list[str], str]] = field(default_factory=list)
    secured: list[bool] = field(default_factory=list)
    port: int = 0


class _Talk:
    """One connection to the mail server."""

    def __init__(self, kept: Mails, context: ssl.SSLContext | None) -> None:
        self._kept, self._context, self._secure = kept, context, False

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._talk(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            pass
        finally:
            writer.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def say(line: str) -> None:
            writer.write(f"{line}\r\n".encode())
            await writer.drain()

        sender, recipients = "", list[str]()
        await say("220 test ESMTP")
        while line := (await reader.readline()).decode().strip():
            word = line.upper()
            if word.startswith("EHLO"):
                offered = ["STARTTLS"] if self._context and not self._secure else []
                names = ["test", *offered, "AUTH PLAIN"]
                for name in names[:-1]:
                    await say(f"250-{name}")
                await say(f"250 {names[-1]}")
            elif word == "STARTTLS" and self._context:
                await say("220 go ahead")
                await writer.start_tls(self._context)
                self._secure = True
            elif word.startswith("AUTH"):
                await say("535 no" if self._kept.how == "login" else "235 yes")
            elif word.startswith("MAIL FROM:"):
                sender = line[10:].split()[0].strip("<>")
                await say("550 no" if self._kept.how == "sender" else "250 ok")
            elif word.startswith("RCPT TO:"):
                refused = self._kept.how == "recipients" or "unknown" in line
                recipients += [] if refused else [line[8:].strip("<>")]
                await say("550 no such user" if refused else "250 ok")
            elif word == "DATA":
                await say("354 go on")
                text = (await reader.readuntil(b"\r\n.\r\n")).decode()
                if self._kept.how == "data":
                    await say("451 not now")
                    continue
                self._kept.got.append((sender, recipients, text))
                self._kept.secured.append(self._secure)
                if self._kept.how == "hang up":
                    return
                await say("250 taken")
            elif word == "QUIT":
                await say("221 bye")
                return
            else:
                await say("250 ok")


@contextmanager
def mails(how: str = "good", context: ssl.SSLContext | None = None) -> Iterator[Mails]:
    """A mail server, with STARTTLS if it has a certificate."""
    kept, loop = Mails(how), asyncio.new_event_loop()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _Talk(kept, context)(reader, writer)

    async def listen() -> asyncio.Server:
        return await asyncio.start_server(talk, "127.0.0.1", 0)

    server = loop.run_until_complete(listen())
    kept.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield kept
    finally:
        loop.call_soon_threadsafe(server.close)
        asyncio.run_coroutine_threadsafe(_settled(), loop).result(60.0)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _settled() -> None:
    """Let the connections that are still open end."""
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.sleep(0.01)


CLOSED = 1  # a port on which no program listens, and which the system gives to none


def certified(folder: Path) -> tuple[ssl.SSLContext, str]:
    """What a server on this machine proves itself with, and the file of its certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    begin = datetime.now(UTC) - timedelta(hours=1)
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number()).not_valid_before(begin)
    made = made.not_valid_after(begin + timedelta(days=1)).add_extension(address, critical=False)
    signed, plain = made.sign(key, hashes.SHA256()), serialization.NoEncryption()
    form = serialization.PrivateFormat.PKCS8
    (folder / "certificate.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    return context, str(folder / "certificate.pem")
