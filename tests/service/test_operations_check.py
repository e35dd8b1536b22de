"""`eccaht serve --check`: says what would not run, and changes nothing."""

import logging
from pathlib import Path

import pytest

from eccaht.cli.main import run
from eccaht.service.operations.check import faults
from eccaht.service.settings import Settings, load_settings
from eccaht.service.store import Store
from tests.service import plants, stores
from tests.service.filled import contents
from tests.service.guarded import make

SETTINGS = """
[store]
url = "sqlite:///{store}"
[listen]
host = "{host}"
[alerts.webhooks.ops]
url = "https://example.org/hook"
[plants.mill]
model = "mill.model"
false_alarms = "1/30d"
[plants.mill.sources.log]
kind = "file"
path = "rows.csv"
[sources.bus]
kind = "kafka"
servers = "localhost:1"
topic = "t"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "mill.model").write_bytes(plants.content())
    (tmp_path / "live.toml").write_text(SETTINGS.format(store=tmp_path / "s.db", host="127.0.0.1"))
    return tmp_path / "live.toml"


def test_a_good_installation_has_no_faults_and_nothing_is_made(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    was = sorted(file.parent.iterdir())
    assert run(["serve", "--check", "--config", str(file)]) == 0
    assert "good" in capsys.readouterr().out
    assert sorted(file.parent.iterdir()) == was


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('path = "rows.csv"', 'pathh = "rows.csv"', "source 'log'"),
        ('kind = "file"', 'kind = "fax"', "kind must be"),
        ('kind = "kafka"', 'kind = "file"', "source 'bus'"),
        ("mill.model", "no.model", "no.model"),
        ("1/30d", "often", "often"),
        ("127.0.0.1", "0.0.0.0", "without a token"),
        ("s.db", "no/where/s.db", "no such directory"),
        ("https://", "ftp://", "webhook"),
        ("[listen]", "[lissen]", "lissen"),
        ("sqlite", "mysql", "mysql"),
    ],
)
def test_what_is_wrong_is_one_line(
    file: Path, old: str, new: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(file.read_text().replace(old, new))
    assert run(["serve", "--check", "--config", str(file)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err


def test_all_that_is_wrong_is_said(file: Path) -> None:
    file.write_text(file.read_text().replace("1/30d", "often").replace("127.0.0.1", "0.0.0.0"))
    assert len(list(faults(load_settings(file)))) == 2


def test_a_valid_token_lets_the_service_listen_everywhere(store: Store) -> None:
    translated = store.engine.get_execution_options().get("schema_translate_map") or {}
    url = store.url.render_as_string(hide_password=False)
    settings = Settings(store={"url": url, "schema": translated.get(None)}, listen={"host": "0.0.0.0"})
    assert len(list(faults(settings))) == 1
    make(store, "anna", "operate")
    was = contents(store)
    assert list(faults(settings)) == []
    assert contents(store) == was


def test_a_store_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    (fault,) = faults(Settings(store={"url": "postgresql://localhost:1/nowhere"}))
    assert fault.startswith("store postgresql://localhost:1/nowhere: ")
    (tmp_path / "text.db").write_text("not a database, but long enough to be taken for one " * 40)
    (fault,) = faults(Settings(store={"url": f"sqlite:///{tmp_path / 'text.db'}"}))
    assert "not a database" in fault
    with stores.opened("sqlite", tmp_path) as store, stores.pretended(store, 99):
        (fault,) = faults(Settings(store={"url": str(store.url)}))
    assert "version 99" in fault


def test_a_service_whose_store_does_not_answer_ends_with_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)  # the logs of the tests stay as they are
    assert run(["serve", "--store", "postgresql://localhost:1/nowhere"]) != 0
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "the store does not answer" in line
