"""Settings: the file, the environment and flags, the later ones stronger; what is wrong is one line."""

from pathlib import Path

import pytest

from eccaht.service.settings import load_settings
from eccaht.service.store import Store


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "live.toml"
    made.write_text(
        """
        [store]
        url = "sqlite:///of-the-file.db"
        [listen]
        port = 1000
        host = "::1"
        [retention]
        windows = "30d"
        [plants.mill]
        model = "mill.model"
        lateness = "2s"
        """
    )
    return made


def test_later_ones_are_stronger(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = load_settings(file)
    assert (found.listen.port, found.listen.host) == (1000, "::1")
    assert found.retention.windows == 30 * 86400.0
    assert found.plants["mill"].model == file.parent / "mill.model"
    assert found.plants["mill"].options().lateness == 2.0
    monkeypatch.setenv("ECCAHT_LISTEN__PORT", "2000")
    found = load_settings(file)
    assert (found.listen.port, found.listen.host) == (2000, "::1")
    found = load_settings(file, listen={"port": 3000})
    assert (found.listen.port, found.listen.host) == (3000, "::1")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[listen]\nport = 70000", "setting listen.port: .*less than or equal to 65535"),
        ("[listen]\nprot = 70", r"setting listen.prot is no setting: did you mean 'port'\?"),
        (
            "[plants.mill]\nfalse_alarm = '1/30d'",
            "setting plants.mill.model is missing; setting plants.mill.false_alarm",
        ),
        ("[plants.mill]\nfalse_alarm = '1/30d'", r"is no setting: did you mean 'false_alarms'\?"),
        ("[store]\nschemas = 'x'", r"did you mean 'schema'\?"),
        ("plants = 3", "setting plants: "),
        ("[plants.'a/b']\nmodel = 'm'", "setting plants.a/b"),
        ("[plants.a]\nmodel = 'm'\nlateness = 'soon'", "not a length of time"),
        ("listen = ", "is no file of TOML"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "live.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        load_settings(file)
    assert "\n" not in str(caught.value)


def test_paths_of_a_file_are_beside_it_and_others_where_one_is(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    file.write_text(
        file.read_text()
        + """
        [plants.mill.sources.log]
        kind = "file"
        path = "rows.csv"
        [plants.mill.sources.other]
        kind = "file"
        path = "/rows.csv"
        """
    )
    found = load_settings(Path("../live.toml"))
    sources = {name: made.get_secret_value()["path"] for name, made in found.plants["mill"].sources.items()}
    assert sources["other"] == "/rows.csv"
    for path in (Store(found.store.url.get_secret_value()).url.database, found.plants["mill"].model, sources["log"]):
        assert Path(str(path)).resolve().parent == tmp_path
    flag = load_settings(Path("../live.toml"), store={"url": "sqlite:///here.db"}).store.url
    assert Store(flag.get_secret_value()).shown == f"sqlite:///{elsewhere}/here.db"
    monkeypatch.setenv("ECCAHT_STORE__URL", "sqlite:///here.db")
    assert str(load_settings(Path("../live.toml")).store.url) == "sqlite:///here.db"


def test_flags_are_checked_too() -> None:
    with pytest.raises(ValueError, match=r"listen\.port"):
        load_settings(listen={"port": -1})
