"""The channels, each against a real server."""

import asyncio
import hashlib
import hmac
import json
import os
from contextlib import suppress
from email import message_from_string, policy
from pathlib import Path
from typing import Any

import pytest

from eccaht.service.alerts.channels import SIGNATURE, Channel, Mail, NotDelivered, PerhapsDelivered
from eccaht.service.alerts.outbox import Message
from eccaht.service.alerts.sender import Alerts
from tests.service.receivers import CLOSED, certified, hooks, mail_channel, mails, webhook
from tests.service.source_tools import until

EVENT = {
    "event": "alarm", "number": 7, "time": "2024-05-01T08:00:00", "onset": "2024-05-01T07:58:00", "confidence": 0.973,
    "named": ["LT-101", "TT-303"], "text": "ALARM: LT-101 (step +2.9), TT-303 (drift) since 2024-05-01 07:58:00",
}  # fmt: skip
MESSAGE = Message("k" * 32, "mill 2", 7, "alarm", EVENT)
BROKER = os.environ.get("ECCAHT_TEST_MQTT", "localhost:1883")


def send(channel: Channel, message: Message = MESSAGE) -> None:
    asyncio.run(channel.send(message))


# -- webhooks ------------------------------------------------------------------------------------------


def test_a_webhook_gets_a_signed_document_with_a_key() -> None:
    with hooks(200) as kept:
        send(webhook(kept.url, secret="s3cret", clock=lambda: 1700000000.5))
    ((headers, body),) = kept.got
    assert json.loads(body) == MESSAGE.document()
    assert (headers["path"], headers["Idempotency-Key"]) == ("/hook?a=1", MESSAGE.key)
    digest = hmac.new(b"s3cret", b"1700000000." + body, hashlib.sha256).hexdigest()
    assert headers[SIGNATURE] == f"t=1700000000,v1={digest}"


@pytest.mark.parametrize("answer", [301, 307, 400, 404, 429, 500, 503, "hang up", "wait"])
def test_anything_but_a_good_answer_is_not_delivered(answer: int | str) -> None:
    with hooks(answer) as kept:
        with pytest.raises(NotDelivered):
            send(webhook(kept.url, timeout=1.0 if answer == "wait" else 60.0))
        asyncio.run(until(lambda: kept.got, "the receiver has it"))
        assert len(kept.got) == 1  # a redirect is not followed
        assert SIGNATURE not in kept.got[0][0]


def test_the_body_of_an_answer_is_not_waited_for() -> None:
    """A receiver that answers without an end would fill the memory."""

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        with suppress(ConnectionError):
            while True:
                writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
                await writer.drain()
        writer.close()

    async def sent() -> None:
        async with await asyncio.start_server(endless, "127.0.0.1", 0) as server:
            await webhook(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/").send(MESSAGE)

    asyncio.run(sent())


def test_a_receiver_whose_certificate_is_not_trusted_gets_nothing(tmp_path: Path) -> None:
    context, _ = certified(tmp_path)
    got: list[bytes] = []

    async def taken(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        got.append(await reader.read())

    async def sent() -> None:
        async with await asyncio.start_server(taken, "127.0.0.1", 0, ssl=context) as server:
            await webhook(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/").send(MESSAGE)

    with pytest.raises(NotDelivered, match="CERTIFICATE_VERIFY_FAILED"):
        asyncio.run(sent())
    assert b"".join(got) == b""


def test_alerts_take_no_way_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{CLOSED}")
    with hooks(200) as kept:
        send(webhook(kept.url))
    assert len(kept.got) == 1


@pytest.mark.parametrize("url", ["ftp://x/", "file:///etc/passwd", "x", "http://", "https://user:pw@host/"])
def test_a_webhook_needs_a_plain_url(url: str) -> None:
    with pytest.raises(ValueError, match="webhook w: "):
        webhook(url)


# -- e-mail --------------------------------------------------------------------------------------------


def mail(port: int, **more: Any) -> Mail:
    return mail_channel("anna@example.org", sender="Plant <plant@example.org>", port=port, tls="none", **more)


def test_a_mail_is_short_and_plain() -> None:
    with mails() as kept:
        send(mail(kept.port))
    ((sender, recipients, text),) = kept.got
    assert (sender, recipients) == ("plant@example.org", ["anna@example.org"])
    read = message_from_string(text, policy=policy.default)
    assert read["Subject"] == "ALARM mill 2: LT-101, TT-303"
    assert read["Message-ID"] == f"<{MESSAGE.key}@eccaht>"
    assert read.get_content_type() == "text/plain"
    body = read.get_content()
    assert body.startswith("ALARM: LT-101 (step +2.9), TT-303 (drift) since 2024-05-01 07:58:00")
    assert "confidence: 97.3 %" in body


def test_names_cannot_add_headers_or_recipients() -> None:
    named = ["x\r\nBcc: eve@example.org\r\n\r\nhello", "\u2028y"]
    odd = Message(
        "k", "p\nBcc: eve@example.org", 1, "alarm", {**EVENT, "named": named, "text": "a\r\n.\r\nMAIL FROM:x"}
    )
    with mails() as kept:
        send(mail(kept.port), odd)
    ((_, recipients, text),) = kept.got
    read = message_from_string(text, policy=policy.default)
    assert recipients == ["anna@example.org"]
    assert read["Bcc"] is None
    assert "a . MAIL FROM:x" in read.get_content()


@pytest.mark.parametrize("how", ["sender", "recipients", "data"])
def test_a_mail_that_the_server_refuses_is_not_delivered(how: str) -> None:
    with mails(how) as kept:
        with pytest.raises(NotDelivered):
            send(mail(kept.port))
        assert kept.got == []


def test_a_mail_server_that_leaves_without_an_answer_leaves_a_doubt() -> None:
    with mails("hang up") as kept:
        with pytest.raises(PerhapsDelivered):
            send(mail(kept.port))
        assert len(kept.got) == 1


def test_one_good_recipient_is_enough() -> None:
    with mails() as kept:
        send(mail_channel("unknown@example.org", "anna@example.org", port=kept.port, tls="none"))
    assert kept.got[0][1] == ["anna@example.org"]


def test_a_server_without_tls_gets_neither_mail_nor_password() -> None:
    with mails() as kept:
        for tls in ("starttls", "tls"):
            secure = mail_channel(port=kept.port, tls=tls, user="user", password="pw", timeout=60.0)
            with pytest.raises(NotDelivered):
                send(secure)
        assert kept.got == []
    with pytest.raises(ValueError, match="not sent without TLS"):
        mail(25, user="u", password="pw")


def test_a_mail_goes_out_over_tls_to_a_server_with_the_right_certificate(tmp_path: Path) -> None:
    context, certificate = certified(tmp_path)
    with mails(context=context) as kept:
        options: dict[str, Any] = {"port": kept.port, "user": "u", "password": "pw"}
        with pytest.raises(NotDelivered, match="CERTIFICATE_VERIFY_FAILED"):  # the system does not know it
            send(mail_channel(**options))
        assert kept.got == []
        send(mail_channel(trust=certificate, **options))
    assert kept.secured == [True]


@pytest.mark.parametrize("address", ["anna", "", "a@b\r\nBcc: x@y"])
def test_addresses_are_checked(address: str) -> None:
    with pytest.raises(ValueError, match="is not an address"):
        mail_channel(address)


# -- settings ------------------------------------------------------------------------------------------

MAIL = {"host": "h", "sender": "a@b.c", "recipients": ["d@e.f"]}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"webhooks": {"a": {"url": "x"}}}, "is not a URL"),
        ({"webhooks": {"a": {"url": "http://x/"}}, "mails": {"a": MAIL}}, "two alerts are called 'a'"),
        ({"mails": {"a": MAIL | {"recipients": []}}}, "no recipient"),
        ({"pagers": {}}, "Extra inputs"),
    ],
)
def test_wrong_settings_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Alerts.model_validate(given)
