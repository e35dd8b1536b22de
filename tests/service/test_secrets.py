"""No secret of a source, an alert or the store is shown by any way out of the service."""

import asyncio
import json
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import ValidationError

from eccaht.cli.main import run
from eccaht.service.alerts.channels import NotDelivered
from eccaht.service.alerts.outbox import Message
from eccaht.service.alerts.sender import Alerts
from eccaht.service.hiding import HIDDEN, scrubbed
from eccaht.service.operations.check import faults
from eccaht.service.settings import PlantOptions, Settings, load_settings
from eccaht.service.sources import make_feed, read_settings
from eccaht.service.sources.settings import _BY_KIND, shown, shows_of
from eccaht.service.store import Store
from tests.service import plants
from tests.service.receivers import CLOSED, hooks, mail_channel, mails, webhook
from tests.service.service import PLANT, Service, running
from tests.service.source_tools import Recorder, target, until

SECRETS = st.text(  # of no letters that words of the program are made of
    "QXZKVWJYqxzkvwjy0123456789/@:?#%&=+;,\\'\"[]{}<>|^~$!() \tä€\U0001f511",
    min_size=12,
    max_size=40,
)
NASTY = ("gate/keeper@ferry:Quartz", "moss%40lamp?violet#Ember", 'kö€nig\'s "tulip" \\harbour', "PlainGranite7731")
KAFKA = (
    "sasl.password", "sasl.username", "ssl.key.pem", "ssl.key.password", "ssl.keystore.password", "sasl.jaas.config",
    "sasl.oauthbearer.config", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret", "of.a.later.version",
)  # fmt: skip


def leaks(secret: str, text: str) -> str | None:
    """A long part of a secret, in some notation, that a text holds."""
    forms = {secret, unquote(secret), quote(secret, safe=""), quote(secret), quote_plus(secret)}
    forms |= {form[1:-1] for form in (repr(secret), ascii(secret), json.dumps(secret))}
    parts = (form[k : k + 8] for form in forms for k in range(max(1, len(form) - 7)))
    return next((part for part in parts if part in text), None)


def given_to_sources(secret: str, port: int = 1) -> Iterator[dict[str, Any]]:
    """The secret at every place of every kind of source where one can be, also where it should not."""
    safe, host = quote(secret, safe=""), f"127.0.0.1:{port}"
    mqtt = {"kind": "mqtt", "host": "127.0.0.1", "port": port, "topic": "a/{sensor}"}
    opcua = {"kind": "opcua", "url": f"opc.tcp://{host}/ua", "nodes": {"a": "i=1"}, "timeout": "1s"}
    kafka = {"kind": "kafka", "servers": host, "topic": "t"}
    yield mqtt | {"username": secret, "password": secret}
    yield mqtt | {"key": f"-----BEGIN PRIVATE KEY-----\n{secret}\n", "tls": True}
    yield mqtt | {"host": f"anna:{secret}@broker"}
    yield mqtt | {"passwort": secret}
    yield opcua | {"username": secret, "password": secret}
    yield opcua | {"url": f"opc.tcp://{safe}:{safe}@{host}/ua?token={safe}#{safe}"}
    yield opcua | {"url": f"opc.tcp://anna:{secret}@{host}/ua"}
    yield opcua | {"url": secret}
    yield kafka | {"options": dict.fromkeys(KAFKA, secret)}
    oauth = {"sasl.mechanism": "OAUTHBEARER", "security.protocol": "SASL_PLAINTEXT"}
    unsigned = {"enable.sasl.oauthbearer.unsecure.jwt": "true", "sasl.oauthbearer.config": secret}
    yield kafka | {"options": oauth | unsigned}  # the client repeats what it cannot read
    yield kafka | {"options": {"sasl.oauthbearer.method": secret}}
    yield kafka | {"options": {"security.protocol": "SSL", "ssl.key.pem": secret}}
    yield kafka | {"servers": f"anna:{secret}@{host}"}
    yield kafka | {"options": {"sasl.password": {"inner": [secret]}}}
    for url in urls(secret, host):
        yield {"kind": "sql", "url": url, "table": "rows", "poll": "1s"}
    yield {"kind": "sql", "url": {"password": secret}, "table": [secret]}
    yield {"kind": "fax", "number": secret}
    yield {"kind": [secret], "number": secret}


def urls(secret: str, host: str) -> Iterator[str]:
    safe = quote(secret, safe="")
    yield f"postgresql://{safe}:{safe}@{host}/db?password={safe}&sslpassword={safe}&options={safe}"
    yield f"postgresql://anna:{secret}@{host}/db"
    yield f"postgresql://{secret}@{host}/db"
    yield f"postgresql://{host}/db?password={secret}"
    yield f"postgresql://{host}/db;password={secret}"
    yield f"postgresql://127.0.0.1:{safe}/db"
    yield f"mssql+pyodbc:///?odbc_connect=PWD%3D{safe}"
    yield f"nosuch+driver://anna:{safe}@{host}/db"
    yield secret


def given_to_alerts(secret: str, port: int = 1) -> Iterator[dict[str, Any]]:
    safe = quote(secret, safe="")
    hook, mail = f"http://127.0.0.1:{port}", {"host": "127.0.0.1", "port": port, "sender": "a@b.c"}
    yield {"webhooks": {"w": {"url": f"{hook}/{safe}/{safe}?key={safe}", "secret": secret}}}
    yield {"webhooks": {"w": {"url": f"{hook}/{secret}"}}}
    yield {"webhooks": {"w": {"url": f"http://anna:{safe}@127.0.0.1/"}}}
    yield {"webhooks": {"w": {"url": secret}}}
    yield {"mails": {"m": mail | {"recipients": ["d@e.f"], "user": secret, "password": secret}}}
    yield {"mails": {"m": mail | {"recipients": ["d@e.f"], "user": secret, "password": secret, "tls": "none"}}}


def error_of(work: Any) -> tuple[Any, str]:
    """What something returns, and what its error says, as text and as a program shows it."""
    try:
        return work(), ""
    except ValidationError as error:
        return None, f"{error} {error!r}"
    except ValueError as error:
        return None, f"{error} {error!r}"


# -- settings ------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(SECRETS)
def test_settings_of_sources_show_no_secret_in_whatever_form(secret: str) -> None:
    for document in given_to_sources(secret):
        settings, wrong = error_of(lambda document=document: read_settings(document, "bus"))
        feed, more = (None, "") if settings is None else error_of(
            lambda settings=settings: make_feed("bus", settings, target(), Recorder())
        )  # fmt: skip
        options = PlantOptions(sources={"bus": document})
        whole = Settings(plants={"p": {"model": "m", "sources": {"bus": document}}}, sources={"bus": document})
        texts = [repr(settings), wrong, more, repr(options), str(options), options.model_dump_json(), repr(whole)]
        texts += [json.dumps(shown(document), ensure_ascii=False), whole.model_dump_json()]
        texts += [] if settings is None else [settings.model_dump_json()]
        texts += [] if feed is None or not hasattr(feed, "health") else [feed.health._where]
        found = [part for text in texts if (part := leaks(secret, text))]
        assert found == [], (document, texts)
        assert shown(shown(document)) == shown(document)
        assert options.stored()["sources"]["bus"] == document


@settings(deadline=None, max_examples=60)
@given(SECRETS)
def test_settings_of_alerts_and_of_the_store_show_no_secret(secret: str) -> None:
    for part in given_to_alerts(secret):
        alerts, wrong = error_of(lambda part=part: Alerts.model_validate(part))
        texts = [wrong] if alerts is None else [repr(alerts), alerts.model_dump_json(), repr(alerts.channels())]
        assert [leaks(secret, text) for text in texts if leaks(secret, text)] == [], texts
    for url in urls(secret, "127.0.0.1:1"):
        settings = Settings(store={"url": url})
        store, wrong = error_of(lambda url=url: Store(url))
        texts = [repr(settings), settings.model_dump_json(), wrong, "" if store is None else store.shown]
        assert [leaks(secret, text) for text in texts if leaks(secret, text)] == [], texts


@settings(deadline=None, max_examples=60)
@given(SECRETS, st.text(max_size=20), st.text(max_size=20))
def test_an_error_that_repeats_a_secret_is_scrubbed(secret: str, before: str, after: str) -> None:
    for form in (
        secret,
        secret[2:],
        quote(secret),
        quote_plus(secret),
        repr(secret),
        ascii(secret),
        json.dumps(secret),
    ):
        text = scrubbed(before + form + after, [secret])
        assert leaks(secret, text) is None
    assert scrubbed(before + after, []) == before + after


def test_no_setting_that_is_a_secret_is_shown_and_no_other_is_hidden() -> None:
    secret = {"mqtt": {"username", "password"}, "opcua": {"username", "password"}}
    for name, kind in _BY_KIND.items():
        settings = {info.alias or field: info for field, info in kind.model_fields.items()}
        assert set(settings) - set(shows_of(kind)) == secret.get(name, set())
        assert set(shows_of(kind)) <= set(settings)


def test_harmless_settings_are_shown(tmp_path: Path) -> None:
    document = {"kind": "kafka", "servers": "a:9092, b:9092", "topic": "t", "names": {"x": "a"}, "batch": 10}
    options = {"security.protocol": "SASL_SSL", "sasl.password": "x"}
    assert shown({**document, "options": options}) == {
        **document, "options": {"security.protocol": "SASL_SSL", "sasl.password": HIDDEN},
    }  # fmt: skip
    file = {"kind": "file", "path": str(tmp_path / "rows.csv"), "poll": 2}
    assert shown(file) == file


def test_secrets_of_sources_can_be_given_in_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "live.toml"
    file.write_text('[plants.mill]\nmodel = "m"\n[plants.mill.sources.bus]\nkind = "mqtt"\ntopic = "t"\n')
    monkeypatch.setenv("ECCAHT_PLANTS__MILL__SOURCES__BUS__PASSWORD", "PlainGranite7731")
    found = load_settings(file)
    assert found.plants["mill"].sources["bus"].get_secret_value()["password"] == "PlainGranite7731"
    assert leaks("PlainGranite7731", repr(found)) is None


def test_a_url_with_several_at_signs_is_refused_before_half_a_password_is_looked_up_as_a_host() -> None:
    for url in ("postgresql://anna:moss@lamp@127.0.0.1:1/db", "postgresql://anna:moss@la/mp@127.0.0.1:1/db"):
        with pytest.raises(ValueError, match="several @"):
            Store(url)
        with pytest.raises(ValueError, match=r"'db': .*several @"):
            make_feed("db", read_settings({"kind": "sql", "url": url, "table": "t"}, "db"), target(), Recorder())
    assert Store("postgresql://anna:moss%40lamp@127.0.0.1:1/db").url.password == "moss@lamp"
    assert Store("postgresql://anna:moss/lamp@127.0.0.1:1/db").url.password == "moss/lamp"


# -- the service ---------------------------------------------------------------------------------------


def answers(service: Service) -> str:
    """All that the service says to those who may read, and to an administrator."""
    paths = ["/api/plants", f"/api/plants/{PLANT}", f"/api/plants/{PLANT}/events", "/api/audit", "/api/outbox"]
    asked = [(path, service.headers["admin"]) for path in (*paths, "/metrics", "/healthz", "/openapi.json")]
    asked += [(path, service.headers["read"]) for path in paths[:3]]
    found = [service.client.get(path, headers=headers) for path, headers in asked]
    assert [answer.status_code for answer in found if answer.status_code != 200] == []
    return "\n".join(
        json.dumps(a.json(), ensure_ascii=False) if "json" in a.headers["content-type"] else a.text for a in found
    )


@pytest.fixture
def logs(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.DEBUG, "eccaht")
    return caplog


@pytest.mark.parametrize("secret", NASTY)
def test_a_service_with_sources_that_fail_shows_no_secret(
    secret: str, tmp_path: Path, logs: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    admin: dict[str, str]
    texts: list[str] = []
    with running("sqlite", tmp_path, security={"sources": True}) as service:
        admin, port = service.headers["admin"], CLOSED
        taken: dict[str, Any] = {}
        for k, document in enumerate(given_to_sources(secret, port)):
            put = {"model": service.digest, "sources": {f"s{k}": document}}
            answer = service.client.request("PUT", f"/api/plants/{PLANT}", json=put, headers=admin)
            texts.append(answer.text)
            if answer.status_code == 200:
                taken[f"s{k}"] = document
            else:
                assert answer.status_code in (400, 422), answer.text
                assert answer.json()["detail"].startswith("source ")
        for body in (json.dumps({"model": service.digest, "sources": {"s": secret}}), f'{{"sources": "{secret}'):
            answer = service.client.request("PUT", f"/api/plants/{PLANT}", content=body.encode(), headers=admin)
            assert answer.status_code == 422
            texts.append(answer.text)
        put = {"model": service.digest, "sources": taken}
        assert service.client.request("PUT", f"/api/plants/{PLANT}", json=put, headers=admin).status_code == 200
        service.client.run(_failed(logs, taken))
        texts.append(answers(service))
        known = service.app.state.settings
        shared = next(given_to_alerts(secret))
        sources = PlantOptions(sources=taken).sources
        texts += faults(known.model_copy(update={"alerts": Alerts.model_validate(shared), "sources": sources}))
    assert len(taken) >= 6
    texts += [logs.text, *capfd.readouterr()]
    assert "next try" in logs.text
    assert [part for text in texts if (part := leaks(secret, text))] == []


async def _failed(logs: pytest.LogCaptureFixture, sources: Iterable[str]) -> None:
    """Wait until every source has failed: some cannot even start."""
    starts = {name: (f"source {name}: ", f"plant {PLANT}: source '{name}': ") for name in sources}
    await until(lambda: all(any(line.startswith(how) for line in logs.messages) for how in starts.values()), "failed")


def test_what_was_read_with_hidden_secrets_cannot_be_sent_back(tmp_path: Path) -> None:
    url = "postgresql://anna:PlainGranite7731@127.0.0.1:1/db"
    sources = {
        "db": {"kind": "sql", "url": url, "table": "t"},
        "bus": {"kind": "kafka", "servers": "127.0.0.1:1", "topic": "t", "options": {"sasl.password": "moss"}},
        "log": {"kind": "file", "path": "rows***.csv"},
    }
    with running("sqlite", tmp_path, options={"sources": sources}, security={"sources": True}) as service:
        read = service.client.get(f"/api/plants/{PLANT}", headers=service.headers["admin"]).json()["options"]
        back = {"model": service.digest, **read}

        def put() -> tuple[int, str]:
            answer = service.client.request("PUT", f"/api/plants/{PLANT}", json=back, headers=service.headers["admin"])
            return answer.status_code, answer.json().get("detail", "")

        assert put() == (400, "source 'db': setting url is hidden as ***: give it again in full")
        back["sources"]["db"]["url"] = url
        assert put() == (400, "source 'bus': setting options.sasl.password is hidden as ***: give it again in full")
        back["sources"]["bus"]["options"]["sasl.password"] = "moss"
        assert put() == (200, "")
        kept = service.app.state.engine.view(PLANT).options.stored()["sources"]
    assert kept == sources


@pytest.mark.parametrize("secret", NASTY)
def test_commands_show_no_secret_of_the_store(
    secret: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)  # the logs of the tests stay as they are
    (tmp_path / "mill.model").write_bytes(plants.content())
    for url in urls(secret, f"127.0.0.1:{CLOSED}"):
        source = f'[plants.mill.sources.db]\nkind = "sql"\ntable = "t"\nurl = {json.dumps(url)}\n'
        plant = f'[store]\nurl = {json.dumps(url)}\n[plants.mill]\nmodel = "mill.model"\n{source}'
        (tmp_path / "live.toml").write_text(plant, encoding="utf-8")
        for command in (["serve", "--check"], ["serve"], ["token", "list"]):
            assert run([*command, "--config", str(tmp_path / "live.toml")]) != 0
            out, err = capfd.readouterr()
            assert err.count("\n") == 1
            assert leaks(secret, out + err) is None, (command, url)


# -- alerts --------------------------------------------------------------------------------------------


MESSAGE = Message("k" * 32, "mill", 7, "alarm", {"named": ["a"]})


@pytest.mark.parametrize("secret", NASTY)
def test_neither_a_sent_nor_a_failed_alert_shows_a_secret(secret: str, logs: pytest.LogCaptureFixture) -> None:
    path = f"/{quote(secret, safe='')}?key={quote_plus(secret)}"
    with hooks(200) as kept:
        asyncio.run(webhook(f"http://127.0.0.1:{kept.port}{path}", secret).send(MESSAGE))
        assert unquote(kept.got[0][0]["path"]).startswith(f"/{secret}?key=")
    with pytest.raises(NotDelivered) as hook:
        asyncio.run(webhook(f"http://127.0.0.1:{CLOSED}{path}", secret).send(MESSAGE))
    with mails() as server, pytest.raises(NotDelivered) as mail:
        asyncio.run(mail_channel(port=server.port, user=secret, password=secret).send(MESSAGE))
    for text in (logs.text, str(hook.value), str(mail.value)):
        assert leaks(secret, text) is None


def test_a_token_sets_no_source_unless_the_settings_let_it(tmp_path: Path) -> None:
    """A source connects from the service's own machine to whatever it names, and reads its files."""
    sources = {"s": {"kind": "sql", "url": "postgresql://127.0.0.1:1/d", "table": "t"}}
    for allowed in (False, True):
        (place := tmp_path / str(allowed)).mkdir()
        with running("sqlite", place, security={"sources": allowed}) as service:
            put = {"model": service.digest, "sources": sources}
            path, admin = f"/api/plants/{PLANT}", service.headers["admin"]
            answer = service.client.request("PUT", path, json=put, headers=admin)
            assert answer.status_code == (200 if allowed else 403)
            assert bool(service.app.state.engine.view(PLANT).options.sources) == allowed
