"""`eccaht serve --check`: says what would run and what would not, and changes nothing."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from eccaht.cli.main import run
from eccaht.service.operations.check import check
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
secret = "hidden"
[plants.mill]
model = "mill.model"
false_alarms = "1/30d"
[plants.mill.sources.log]
kind = "file"
path = "rows.csv"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "mill.model").write_bytes(plants.content())
    (tmp_path / "live.toml").write_text(SETTINGS.format(store=tmp_path / "s.db", host="127.0.0.1"))
    return tmp_path / "live.toml"


def checked(settings: Settings) -> tuple[list[str], list[str]]:
    """What is good, and what is wrong."""
    lines = list(check(settings))
    return [line.text for line in lines if line.good], [line.text for line in lines if not line.good]


def test_a_good_installation_is_described_and_nothing_is_made(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    was = sorted(file.parent.iterdir())
    good, wrong = checked(load_settings(file))
    assert wrong == []
    assert [line.split(":")[0] for line in good] == ["store sqlite", "plant mill", "plant mill", "alerts", "listen"]
    assert "5 sensors, windows of 2s, false alarms 1/30d" in good[1]
    assert "source log (file)" in good[2]
    assert "hidden" not in "".join(good)
    assert sorted(file.parent.iterdir()) == was
    assert run(["serve", "--check", "--config", str(file)]) == 0
    assert capsys.readouterr().out.count("good ") == len(good)
    assert sorted(file.parent.iterdir()) == was


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('path = "rows.csv"', 'pathh = "rows.csv"', "source 'log'"),
        ('kind = "file"', 'kind = "fax"', "kind must be"),
        ("mill.model", "no.model", "no.model"),
        ("1/30d", "often", "often"),
        ("127.0.0.1", "0.0.0.0", "will not listen on 0.0.0.0 without a token"),
        ("s.db", "no/where/s.db", "no such directory"),
    ],
)
def test_what_is_wrong_is_reported_beside_what_is_good(
    file: Path, old: str, new: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(file.read_text().replace(old, new))
    _, wrong = checked(load_settings(file))
    assert len(wrong) == 1
    assert message in wrong[0]
    assert run(["serve", "--check", "--config", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out.count("WRONG") == 1
    assert err.startswith("eccaht: 1 of ")
    assert err.count("\n") == 1


def test_sources_of_several_plants_are_looked_at(file: Path) -> None:
    text = file.read_text()
    kafka = '[sources.bus]\nkind = "kafka"\nservers = "localhost:1"\ntopic = "t"\n'
    file.write_text(text + kafka)
    good, wrong = checked(load_settings(file))
    assert wrong == []
    assert "source bus of several plants (kafka)" in good
    file.write_text(text + kafka.replace("kafka", "file"))
    assert len(checked(load_settings(file))[1]) == 1


def test_wrong_settings_are_one_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for old, new in (("https://", "ftp://"), ("[listen]", "[lissen]"), ("sqlite", "mysql")):
        text = file.read_text()
        file.write_text(text.replace(old, new))
        assert run(["serve", "--check", "--config", str(file)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
        file.write_text(text)


def test_tokens_and_plants_of_the_store_are_named(store: Store) -> None:
    make(store, "anna", "operate")
    make(store, "gate", "ingest", "read")
    was = contents(store)
    translated = store.engine.get_execution_options().get("schema_translate_map") or {}
    url = store.url.render_as_string(hide_password=False)
    good, wrong = checked(Settings(store={"url": url, "schema": translated.get(None)}, listen={"host": "0.0.0.0"}))
    assert wrong == []
    assert "tokens: 1 read, 1 operate, 1 ingest" in good[-1]
    assert contents(store) == was


def test_a_store_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    good, wrong = checked(Settings(store={"url": "postgresql://localhost:1/nowhere"}))
    assert good == []
    assert wrong[0].startswith("store postgresql://localhost:1/nowhere: ")
    (tmp_path / "text.db").write_text("not a database, but long enough to be taken for one " * 40)
    _, wrong = checked(Settings(store={"url": f"sqlite:///{tmp_path / 'text.db'}"}))
    assert "file is not a database" in wrong[0]


def test_a_service_whose_store_does_not_answer_ends_with_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)  # the logs of the tests stay as they are
    assert run(["serve", "--store", "postgresql://localhost:1/nowhere"]) != 0
    printed = capsys.readouterr().err.strip().splitlines()
    assert len(printed) == 1
    assert "the store does not answer" in printed[0]
    assert "start the database" in printed[0]


def test_a_newer_store_is_refused(tmp_path: Path) -> None:
    with stores.opened("sqlite", tmp_path) as store, stores.pretended(store, 99):
        _, wrong = checked(Settings(store={"url": str(store.url)}))
    assert "version 99, newer than this eccaht knows" in wrong[0]
