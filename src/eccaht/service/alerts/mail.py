"""Alerts by e-mail: one short plain text a message, over TLS."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr
from typing import Literal

from eccaht.service.alerts.channel import Message, NotDelivered, PerhapsDelivered
from eccaht.service.hiding import scrubbed


@dataclass(frozen=True)
class Mail:
    """Hands messages to a mail server.

    tls: "starttls" (usual, port 587), "tls" (port 465), or "none" for a server on a trusted network. A server that does
    not offer what is asked for gets nothing. trust: a file of certificates to believe instead of the system's.
    """

    name: str
    host: str
    sender: str
    recipients: tuple[str, ...]
    port: int = 587
    tls: Literal["starttls", "tls", "none"] = "starttls"
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    trust: str | None = None
    timeout: float = 10.0
    idempotent: bool = False

    def __post_init__(self) -> None:
        for address in (self.sender, *self.recipients):
            if "@" not in parseaddr(address)[1] or not address.isprintable():
                raise ValueError(f"e-mail {self.name}: {address!r} is not an address: write it as name@host")
        if not self.recipients:
            raise ValueError(f"e-mail {self.name}: no recipient: give at least one")
        if self.user and self.tls == "none":
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
                code, answer = server.data(self.text(message))
            except smtplib.SMTPDataError as error:
                raise NotDelivered(self._error_line(error)) from None
            except (OSError, smtplib.SMTPException) as error:
                raise PerhapsDelivered(f"the mail server left without an answer: {self._error_line(error)}") from None
            if code != 250:
                raise NotDelivered(f"the mail server answered {code} {answer.decode(errors='replace')}")
        finally:
            _leave(server)

    def _connected(self) -> smtplib.SMTP:
        context = ssl.create_default_context(cafile=self.trust)
        server: smtplib.SMTP
        if self.tls == "tls":
            server = smtplib.SMTP_SSL(self.host, self.port, timeout=self.timeout, context=context)
        else:
            server = smtplib.SMTP(self.host, self.port, timeout=self.timeout)
        try:
            if self.tls == "starttls":
                server.starttls(context=context)
            server.ehlo_or_helo_if_needed()
            if self.user:
                server.login(self.user, self.password)
        except BaseException:
            server.close()
            raise
        return server

    def _announce(self, server: smtplib.SMTP) -> None:
        """Announce the sender and the recipients; one recipient that the server takes is enough."""
        try:
            code, answer = server.mail(parseaddr(self.sender)[1])
            if code != 250:
                raise NotDelivered(f"the mail server refuses the sender: {code} {answer.decode(errors='replace')}")
            answers = [server.rcpt(parseaddr(recipient)[1]) for recipient in self.recipients]
        except (OSError, smtplib.SMTPException) as error:
            raise NotDelivered(self._error_line(error)) from None
        if not any(code in (250, 251) for code, _ in answers):
            raise NotDelivered(f"the mail server refuses every recipient: {answers[0][0]} {answers[0][1]!r}")

    def text(self, message: Message) -> bytes:
        """The mail as it is sent; its Message-ID is the same however often that happens."""
        mail = EmailMessage()
        mail["Subject"], mail["From"], mail["To"] = message.subject, self.sender, ", ".join(self.recipients)
        mail["Date"] = format_datetime(datetime.now(UTC))
        mail["Message-ID"] = f"<{message.key}@eccaht>"
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(message.body)
        return mail.as_bytes()

    def _error_line(self, error: Exception) -> str:
        return scrubbed(" ".join(f"{type(error).__name__}: {error}".split()), [self.user, self.password])


def _leave(server: smtplib.SMTP) -> None:
    try:
        server.quit()
    except (OSError, smtplib.SMTPException):
        server.close()
