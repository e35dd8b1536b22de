"""Where messages go: a channel takes one, or says whether it may have left all the same.

By HTTP, a signed POST whose key the receiver knows again; by e-mail, a short plain text over TLS. Each channel reads
the certificates that it trusts once, at its first message.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import smtplib
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from functools import cached_property
from typing import Literal, Protocol

import httpx
from pydantic import Field, SecretStr

from eccaht.service.alerts.outbox import Message
from eccaht.service.hiding import SecretHook, scrubbed
from eccaht.service.parts import Part, Port
from eccaht.version import __version__

SIGNATURE = "X-Eccaht-Signature"
logging.getLogger("httpx").setLevel(logging.WARNING)  # below, it logs every URL, whose path may be a secret


class NotDelivered(Exception):
    """The message surely did not arrive: it is tried again later."""


class PerhapsDelivered(Exception):
    """The message was on its way when something broke: the sender does not know whether it arrived."""


class Channel(Protocol):
    """Where messages go.

    name: as in the settings. idempotent: whether the receiver knows a message that comes twice by its key.
    """

    @property
    def name(self) -> str:
        """As in the settings."""

    @property
    def idempotent(self) -> bool:
        """Whether sending a message twice is harmless."""

    async def send(self, message: Message) -> None:
        """Send a message; raises NotDelivered or PerhapsDelivered."""


class WebhookSettings(Part):
    """A URL that gets a POST."""

    url: SecretHook = Field(description="https://host/path")
    secret: SecretStr = Field(SecretStr(""), description="signs the messages: X-Eccaht-Signature")


@dataclass(frozen=True)
class Webhook:
    """POSTs messages to a URL, signed with the secret so that the receiver can verify the sender."""

    name: str
    settings: WebhookSettings
    timeout: float = 10.0
    clock: Callable[[], float] = time.time
    idempotent: bool = True

    def __post_init__(self) -> None:
        try:
            url = httpx.URL(self.settings.url.get_secret_value())
        except httpx.InvalidURL:
            url = httpx.URL()
        if url.scheme not in ("http", "https") or not url.host:
            raise ValueError(f"webhook {self.name}: this is not a URL: write it as https://host/path")
        if url.userinfo:
            raise ValueError(f"webhook {self.name}: leave user and password out of the URL, and give a secret instead")

    async def send(self, message: Message) -> None:
        """Send a message; anything but an answer of 200 to 299 counts as not delivered."""
        body = json.dumps(message.document(), allow_nan=False).encode()
        secret = self.settings.secret.get_secret_value()
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": message.key,
            "User-Agent": f"eccaht/{__version__}",
        }
        if secret:
            headers[SIGNATURE] = signed(secret, body, int(self.clock()))
        try:
            status = await self._post(body, headers)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            cause = _cause(error)
            reason = f"{type(cause).__name__}: {cause}"
            raise NotDelivered(scrubbed(reason, [secret, *self.settings.url.secrets()])) from None
        if not 200 <= status < 300:
            raise NotDelivered(f"the receiver answered {status}")

    async def _post(self, body: bytes, headers: dict[str, str]) -> int:
        """The status of the answer; its body is not read, and a redirect is not followed: it is another receiver."""
        trusted = await asyncio.to_thread(lambda: self._trusted)  # reads files, the first time
        async with (
            httpx.AsyncClient(verify=trusted, timeout=self.timeout, trust_env=False) as client,
            client.stream("POST", self.settings.url.get_secret_value(), content=body, headers=headers) as answer,
        ):
            return answer.status_code

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context()


def _cause(error: BaseException) -> BaseException:
    """The error of the system behind one of the client, which only says that all its attempts failed."""
    before: BaseException | None = error
    while before is not None and getattr(before, "errno", None) is None:
        before = before.__cause__ or before.__context__
    return before or error


def signed(secret: str, body: bytes, moment: int) -> str:
    """The signature of a body: its time, so that an old message cannot be played again, and an HMAC of both.

    >>> signed("s", b"{}", 1700000000)[:20]
    't=1700000000,v1=...'
    """
    digest = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={digest}"


class MailSettings(Part):
    """A mail server and who gets the mails."""

    host: str = Field(description="mail server")
    port: Port = Field(587, description="its port")
    tls: Literal["starttls", "tls", "none"] = Field("starttls", description="starttls, tls, or none")
    user: SecretStr = Field(SecretStr(""), description="name at the server, if it asks for one")
    password: SecretStr = Field(SecretStr(""), description="password at the server")
    trust: str | None = Field(None, description="file of certificates to believe instead of the system's")
    sender: str = Field(description="address that mails come from")
    recipients: list[str] = Field(description="addresses that mails go to")


@dataclass(frozen=True)
class Mail:
    """Hands messages to a mail server, by STARTTLS (usual, port 587), TLS (port 465), or none in a trusted network.

    A server that does not offer what is asked for gets nothing.
    """

    name: str
    settings: MailSettings
    timeout: float = 10.0
    idempotent: bool = False

    def __post_init__(self) -> None:
        settings = self.settings
        for address in (settings.sender, *settings.recipients):
            if "@" not in parseaddr(address)[1] or not address.isprintable():
                raise ValueError(f"e-mail {self.name}: {address!r} is not an address: write it as name@host")
        if not settings.recipients:
            raise ValueError(f"e-mail {self.name}: no recipient: give at least one")
        if settings.user.get_secret_value() and settings.tls == "none":
            raise ValueError(f"e-mail {self.name}: a password is not sent without TLS: set tls to starttls or tls")

    async def send(self, message: Message) -> None:
        """Send a message to all recipients that the server takes."""
        await asyncio.to_thread(self._deliver, message)

    def _deliver(self, message: Message) -> None:
        try:
            server = self._connected()
        except (OSError, smtplib.SMTPException) as error:
            raise NotDelivered(self._error_line(error)) from None
        try:
            self._announce(server)
            try:
                code, answer = server.data(self._text(message))
            except smtplib.SMTPDataError as error:
                raise NotDelivered(self._error_line(error)) from None
            except (OSError, smtplib.SMTPException) as error:
                raise PerhapsDelivered(f"the mail server left without an answer: {self._error_line(error)}") from None
            if code != 250:
                raise NotDelivered(f"the mail server answered {code} {answer.decode(errors='replace')}")
        finally:
            try:
                server.quit()
            except (OSError, smtplib.SMTPException):
                server.close()

    @cached_property
    def _trusted(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.settings.trust)

    def _connected(self) -> smtplib.SMTP:
        settings, trusted = self.settings, self._trusted
        server: smtplib.SMTP
        if settings.tls == "tls":
            server = smtplib.SMTP_SSL(settings.host, settings.port, timeout=self.timeout, context=trusted)
        else:
            server = smtplib.SMTP(settings.host, settings.port, timeout=self.timeout)
        try:
            if settings.tls == "starttls":
                server.starttls(context=trusted)
            server.ehlo_or_helo_if_needed()
            if user := settings.user.get_secret_value():
                server.login(user, settings.password.get_secret_value())
        except BaseException:
            server.close()
            raise
        return server

    def _announce(self, server: smtplib.SMTP) -> None:
        """Announce the sender and the recipients; one recipient that the server takes is enough."""
        try:
            code, answer = server.mail(parseaddr(self.settings.sender)[1])
            if code != 250:
                raise NotDelivered(f"the mail server refuses the sender: {code} {answer.decode(errors='replace')}")
            answers = [server.rcpt(parseaddr(recipient)[1]) for recipient in self.settings.recipients]
        except (OSError, smtplib.SMTPException) as error:
            raise NotDelivered(self._error_line(error)) from None
        if not any(code in (250, 251) for code, _ in answers):
            raise NotDelivered(f"the mail server refuses every recipient: {answers[0][0]} {answers[0][1]!r}")

    def _text(self, message: Message) -> bytes:
        """The mail as it is sent; its Message-ID is the same however often that happens."""
        mail = EmailMessage()
        mail["Subject"], mail["From"] = message.subject, self.settings.sender
        mail["To"] = ", ".join(self.settings.recipients)
        mail["Date"] = format_datetime(datetime.now(UTC))
        mail["Message-ID"] = f"<{message.key}@eccaht>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(message.body)
        return mail.as_bytes()

    def _error_line(self, error: Exception) -> str:
        hidden = [self.settings.user.get_secret_value(), self.settings.password.get_secret_value()]
        return scrubbed(" ".join(f"{type(error).__name__}: {error}".split()), hidden)
