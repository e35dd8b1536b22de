"""Tokens, logins and scopes: who is let in, and who is not."""

import base64
import hmac
import json
import stat
from pathlib import Path

import pytest
import sqlalchemy as sa

from eccaht.service.security import guard, sessions
from eccaht.service.security.guard import check_listening
from eccaht.service.security.settings import SCOPES
from eccaht.service.store import Store, schema
from eccaht.service.store.store import now
from tests.service import stores
from tests.service.asking import Client
from tests.service.guarded import bearer, client, make, revoke

DAY = 86_400.0


# -- tokens --------------------------------------------------------------------------------------------


def test_what_is_stored_does_not_open_anything(store: Store) -> None:
    text = make(store, "a", "read")
    with store.read() as connection:
        row = connection.execute(sa.select(schema.tokens)).one()
        assert text.rpartition("_")[2] not in str(row)
        assert guard.find(connection, f"eccaht_{row.id}_{row.hash.split('$')[2]}", now()) is None
        found = guard.find(connection, text, now())
    assert found is not None
    assert (found.name, found.scopes, found.expires) == ("a", ("read",), None)


def test_secrets_are_compared_in_constant_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also for a token that is not there: the time must not show which ones are."""
    compared: list[tuple[str, str]] = []

    def equal(one: str, other: str) -> bool:
        compared.append((one, other))
        return one == other

    text = make(store, "a", "read")
    monkeypatch.setattr(hmac, "compare_digest", equal)
    with store.read() as connection:
        for shown in (text, text[:-1] + "x", "eccaht_99_" + "0" * 64, "nonsense"):
            compared.clear()
            assert (guard.find(connection, shown, now()) is not None) == (shown == text)
            assert len(compared) == 1
    signer = sessions.Signer(b"k" * 32, 60.0)
    cookie = signer.issue(1, 0)
    compared.clear()
    assert signer.read(cookie, 1) is not None
    assert signer.csrf_matches(cookie, signer.csrf(cookie))
    assert len(compared) == 2


@pytest.mark.parametrize("name", ["", " a", "a\nb", "a/b", "x" * 65, "ä"])
def test_names_are_plain(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a token"):
        make(store, name, "read")


def test_a_name_is_never_used_again(store: Store) -> None:
    make(store, "a", "read")
    revoke(store, "a")
    with pytest.raises(ValueError, match="already, perhaps a revoked one"):
        make(store, "a", "read")
    with pytest.raises(ValueError, match="revoked already"):
        revoke(store, "a")
    make(store, "gateway", "ingest")
    with pytest.raises(ValueError, match="did you mean 'gateway'"):
        revoke(store, "gatway")


def test_which_scope_opens_what() -> None:
    opened = {scope: {need for need in SCOPES if guard.allows([scope], need)} for scope in SCOPES}
    assert opened == {
        "read": {"read"},
        "operate": {"read", "operate"},
        "ingest": {"ingest"},
        "admin": {"read", "operate", "ingest", "admin"},
    }
    assert not guard.allows([], "any")
    assert not guard.allows(["any", "everything"], "any")
    assert all(guard.allows([scope], "any") for scope in SCOPES)


def test_every_change_of_tokens_is_audited(store: Store) -> None:
    make(store, "a", "read", "operate")
    revoke(store, "a")
    with store.read() as connection:
        rows = connection.execute(sa.select(schema.audit).order_by(schema.audit.c.id)).all()
    assert [(row.who, row.action, row.document["token"]) for row in rows] == [
        ("command line", "token create", "a"),
        ("command line", "token revoke", "a"),
    ]


def test_a_new_store_is_private_and_its_values_stay_out_of_errors(tmp_path: Path) -> None:
    with stores.opened("sqlite", tmp_path) as private:
        with private.begin() as connection:
            sessions.session_key(connection)
        files = [path for path in tmp_path.iterdir() if path.is_file()]
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
        with pytest.raises(sa.exc.IntegrityError) as error, private.begin() as connection:
            connection.execute(sa.insert(schema.meta), [{"name": "session key", "value": "hunter2"}] * 2)
        assert "hunter2" not in str(error.value)


# -- who is let in -------------------------------------------------------------------------------------


def test_unknown_callers_are_refused(store: Store, tmp_path: Path) -> None:
    text = make(store, "a", "admin")
    old = make(store, "old", "admin", seconds=60.0, at=now() - 61_000_000)
    gone = make(store, "gone", "admin")
    revoke(store, "gone")
    with stores.opened("sqlite", tmp_path) as other:
        foreign = [make(other, name, "admin") for name in ("a", "b", "c", "d")]
    asks = client(store)
    wrong = ["", "x", text[:-1], text + "0", text.upper(), text.replace("eccaht", "eccahu"), old, gone, *foreign]
    wrong += [text[:-1] + ("0" if text[-1] != "0" else "1"), f"{text} {text}", "eccaht_" + "9" * 30 + "_" + "0" * 64]
    for shown in wrong:
        answer = asks.get("/api/seen", headers=bearer(shown))
        assert answer.status_code == 401, shown
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "\n" not in answer.json()["detail"]
    for shown in (f"Basic {text}", text, f"bearer{text}"):
        assert asks.get("/api/seen", headers={"Authorization": shown}).status_code == 401
    twice = [("Authorization", f"Bearer {text}"), ("Authorization", f"Bearer {text}")]
    assert asks.get("/api/seen", headers=twice).status_code == 401
    assert asks.get("/api/seen", headers=bearer(text)).status_code == 200
    assert asks.get("/api/seen").status_code == 401


def test_a_token_ends_at_its_time_and_when_it_is_revoked(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    text = make(store, "a", "read", seconds=DAY)
    asks = client(store)
    assert asks.get("/api/seen", headers=bearer(text)).status_code == 200
    later = now() + round(DAY * 1e6)
    monkeypatch.setattr("eccaht.service.security.guard.now", lambda: later)
    assert asks.get("/api/seen", headers=bearer(text)).status_code == 401
    monkeypatch.undo()
    revoke(store, "a")
    assert asks.get("/api/seen", headers=bearer(text)).status_code == 401


def test_the_last_use_is_noted_but_not_at_every_request(store: Store) -> None:
    text = make(store, "a", "read")
    asks = client(store)
    used = []
    for _ in range(3):
        asks.get("/api/seen", headers=bearer(text))
        with store.read() as connection:
            used.append(guard.listed(connection)[0].used)
    assert used[0] is not None
    assert used == [used[0]] * 3


# -- the login of the page -----------------------------------------------------------------------------


@pytest.fixture
def page(store: Store) -> tuple[Client, str]:
    """A browser that is logged in as an operator, and its CSRF token."""
    text = make(store, "anna", "operate")
    asks = client(store)
    answer = asks.post("/api/login", json={"token": text})
    assert answer.status_code == 200
    return asks, answer.json()["csrf"]


def test_a_token_that_only_sends_rows_cannot_log_in(store: Store) -> None:
    answer = client(store).post("/api/login", json={"token": make(store, "gateway", "ingest")})
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)
    assert answer.json()["detail"] == "this token may only send rows; the page needs the scope read"


def test_a_login_gives_a_cookie_that_scripts_and_other_sites_do_not_get(store: Store) -> None:
    text = make(store, "anna", "operate")
    asks = client(store)
    answer = asks.post("/api/login", json={"token": text})
    parts = answer.headers["set-cookie"].split("; ")
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(parts)
    assert "Secure" not in parts  # plain HTTP on this machine
    assert text not in answer.text + answer.headers["set-cookie"]
    assert asks.get("/api/seen").json() == "anna"
    answer = asks.post("/api/login", json={"token": text}, headers={"Host": "plant.example"})
    assert "Secure" in answer.headers["set-cookie"].split("; ")


def test_a_cookie_alone_reads_and_does_not_act(page: tuple[Client, str]) -> None:
    asks, csrf = page
    assert asks.get("/api/seen").status_code == 200
    wrong = ["", "x", csrf[:-1], csrf.upper() if csrf.upper() != csrf else "0" * 64, "ä" * 64, "0" * 64]
    assert asks.post("/api/done").status_code == 403
    for given in wrong:
        assert asks.post("/api/done", headers={"X-CSRF-Token": given.encode()}).status_code == 403
    assert asks.post("/api/done", headers=[("X-CSRF-Token", csrf)] * 2).status_code == 403
    assert asks.post("/api/done", headers={"X-CSRF-Token": csrf}).status_code == 200
    assert asks.get("/api/me").json() == {"name": "anna", "scopes": ["operate"], "by": "login", "csrf": csrf}
    assert asks.get("/api/login").json() == asks.get("/api/me").json()


def test_a_changed_cookie_is_no_cookie(page: tuple[Client, str], store: Store) -> None:
    asks, _ = page
    cookie = asks.cookies[sessions.COOKIE]
    content, _, signed = cookie.rpartition(".")
    make(store, "boss", "admin")  # has the next number
    with store.begin() as connection:
        key = sessions.session_key(connection)
    session = sessions.Signer(key, 60.0).read(cookie, now())
    assert session is not None
    number, expires, name = session.token, session.expires, session.name
    others = [[number + 1, expires, name], [number, expires + 10**12, name], [number, expires, "0" * 32]]
    wrong = [
        *(base64.urlsafe_b64encode(json.dumps(other).encode()).decode().rstrip("=") + "." + signed for other in others),
        f"{content}.{'A' * 43}",
        content,
        cookie + "0",
        cookie[:-1],
        sessions.Signer(b"another key of thirty-two bytes!!", 60.0).issue(number, now()),
        f"{content}.{sessions.Signer(key, 60.0).csrf(content)}",  # signed for another purpose
        f"{number}.{expires}.{name}.{'0' * 64}",  # as they were before
        "",
        "....",
    ]
    for changed in wrong:
        asks.cookies.set(sessions.COOKIE, changed)
        asks.cookies.clear()
        assert asks.get("/api/seen", headers={"Cookie": f"{sessions.COOKIE}={changed}"}).status_code == 401, changed
    assert asks.get("/api/seen", headers={"Cookie": f"{sessions.COOKIE}={cookie}"}).status_code == 200


@pytest.mark.parametrize("end", ["revoked", "expired", "lifetime", "logout"])
def test_a_login_ends_with_its_token_its_time_or_by_logout(
    store: Store, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    text = make(store, "anna", "operate", seconds=3600.0)
    asks = client(store, session="2h" if end == "expired" else "30min")
    csrf = asks.post("/api/login", json={"token": text}).json()["csrf"]
    cookie = {"Cookie": f"{sessions.COOKIE}={asks.cookies[sessions.COOKIE]}"}
    assert asks.get("/api/seen", headers=cookie).status_code == 200
    if end == "revoked":
        revoke(store, "anna")
    elif end == "logout":
        assert asks.post("/api/logout").status_code == 403
        assert asks.post("/api/logout", headers={"X-CSRF-Token": csrf}).status_code == 200
        assert sessions.COOKIE not in asks.cookies
    else:
        later = now() + (3601 if end == "expired" else 1801) * 1_000_000
        monkeypatch.setattr("eccaht.service.security.guard.now", lambda: later)
    asks.cookies.clear()
    assert asks.get("/api/seen", headers=cookie).status_code == 401
    again = client(store)  # a service that starts again has not forgotten
    assert again.get("/api/seen", headers=cookie).status_code == 401


def test_ended_logins_are_forgotten_once_they_would_be_over_anyway(store: Store) -> None:
    with store.begin() as connection:
        for k in range(5):
            sessions.end(connection, sessions.LoginSession(1, 100 + k, f"{k:032x}"), now=102)
        assert [sessions.is_over(connection, sessions.LoginSession(1, 0, f"{k:032x}")) for k in range(5)] == [
            False, False, False, True, True,
        ]  # fmt: skip


def test_wrong_logins_are_limited_and_audited_and_lock_no_right_one_out(store: Store) -> None:
    text = make(store, "anna", "operate")
    asks = client(store, logins=0.01)  # one, and the next after hours
    got = [asks.post("/api/login", json={"token": "x"}).status_code for _ in range(3)]
    assert got == [401, 429, 429]
    assert asks.post("/api/login", json={"token": text}).status_code == 200
    answer = asks.post("/api/login", json={"token": "x"})
    assert answer.status_code == 429
    assert 3600 < int(answer.headers["retry-after"]) <= 6000
    with store.read() as connection:
        actions = connection.execute(sa.select(schema.audit.c.action)).scalars().all()
    assert actions.count("login refused") == 1


def test_a_page_of_another_site_cannot_log_its_reader_in(store: Store) -> None:
    text = make(store, "anna", "operate")
    asks = client(store)
    for site in ("cross-site", "same-site"):
        headers = {"Sec-Fetch-Site": site}
        assert asks.post("/api/login", json={"token": text}, headers=headers).status_code == 403
    form = asks.post("/api/login", content=f'{{"token": "{text}"}}', headers={"Content-Type": "text/plain"})
    assert form.status_code == 422


# -- where the service listens -------------------------------------------------------------------------


def test_it_listens_elsewhere_only_once_a_token_is_valid(store: Store) -> None:
    for host in ("127.0.0.1", "localhost", "::1", "127.1.2.3"):
        check_listening(host, store)
    for host in ("0.0.0.0", "::", "10.0.0.7", "plant.example", "127.0.0.1.example", ""):
        with pytest.raises(ValueError, match="eccaht token create"):
            check_listening(host, store)
    make(store, "old", "admin", seconds=1.0, at=now() - 2_000_000)
    with pytest.raises(ValueError, match="without a token"):
        check_listening("0.0.0.0", store)
    make(store, "a", "read")
    check_listening("0.0.0.0", store)


# -- open to its own machine, for trying it out --------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {"Host": "[::1]:8765"}, 200),
        ("127.0.0.1", {"Host": "evil.example"}, 401),  # a name of another site that leads here
        ("127.0.0.1", {"Host": "localhost.evil.example:8765"}, 401),
        ("127.0.0.1", {"X-Forwarded-For": "9.9.9.9"}, 401),
        ("127.0.0.1", {"Via": "1.1 proxy"}, 401),
        ("127.0.0.1", {"Authorization": "Bearer wrong"}, 401),
        ("10.0.0.7", {}, 401),
        ("", {}, 401),
    ],
)
def test_an_open_service_lets_only_its_own_machine_in(
    store: Store, address: str, headers: dict[str, str], status: int
) -> None:
    assert client(store, address, open=True).get("/api/seen", headers=headers).status_code == status
    assert client(store, address).get("/api/seen", headers=headers).status_code == 401


def test_an_open_service_is_not_open_to_pages_of_other_sites(store: Store) -> None:
    asks = client(store, open=True)
    csrf = asks.get("/api/me").json()["csrf"]
    assert asks.post("/api/done").status_code == 403
    assert asks.post("/api/done", headers={"X-CSRF-Token": csrf}).status_code == 200


def test_an_open_service_listens_nowhere_else(store: Store) -> None:
    make(store, "a", "admin")
    check_listening("127.0.0.1", store, is_open=True)
    with pytest.raises(ValueError, match=r"security\.open"):
        check_listening("0.0.0.0", store, is_open=True)
