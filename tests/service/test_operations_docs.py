"""What the how-tos of the service and deploy/ say is what there is."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from eccaht.service.settings import Settings, load_settings

ROOT = Path(__file__).parents[2]
PAGES = {
    name: (ROOT / "docs" / "how-to" / f"{name}.md").read_text(encoding="utf-8")
    for name in ("serve", "sources", "alerts", "production")
}


def test_the_example_settings_are_valid(tmp_path: Path) -> None:
    example = (ROOT / "deploy" / "live.toml").read_text(encoding="utf-8")
    load_settings(ROOT / "deploy" / "live.toml")
    everything = re.sub(r"^# (?=\[|[a-z_]+ = )", "", example, flags=re.MULTILINE)
    (tmp_path / "live.toml").write_text(everything)
    settings = load_settings(tmp_path / "live.toml")
    assert [channel.name for channel in settings.alerts.channels()] == ["ops", "night"]
    assert list(settings.plants["mill"].sources) == ["bus"]


@pytest.mark.parametrize(("name", "blocks"), [("serve", 1), ("sources", 5), ("alerts", 1)])
def test_the_settings_of_the_pages_are_valid(name: str, blocks: int, tmp_path: Path) -> None:
    found = re.findall(r"```toml\n(.*?)```", PAGES[name], re.DOTALL)
    assert len(found) == blocks
    for block in found:
        (tmp_path / "live.toml").write_text(block)
        load_settings(tmp_path / "live.toml")


def test_files_of_deploy_that_the_pages_name_exist() -> None:
    named = {file for page in PAGES.values() for file in re.findall(r"deploy/[\w.]+\w", page)}
    assert len(named) > 8
    assert [file for file in named if not (ROOT / file).is_file()] == []


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    unit = (ROOT / "deploy" / "eccaht.service").read_text(encoding="utf-8")
    assert "--config /etc/eccaht/live.toml" in unit
    unit = unit.replace("/opt/eccaht/bin/eccaht", shutil.which("true") or "/bin/true")
    unit = re.sub(r"^(User|Group)=eccaht", r"\1=root", unit, flags=re.MULTILINE)
    (tmp_path / "eccaht.service").write_text(unit)
    done = subprocess.run(
        ["systemd-analyze", "verify", tmp_path / "eccaht.service"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_limits_are_counted_by_the_clients_of_the_shipped_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings(ROOT / "deploy" / "live.toml").security.forwarded_by == ["127.0.0.1"]  # nginx.conf
    compose = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    given = re.search(r"(ECCAHT_SECURITY__FORWARDED_BY): '(.*)'", compose)
    gateway = re.search(r"gateway: ([0-9.]+)", compose)
    assert given
    assert gateway
    monkeypatch.setenv(*given.groups())
    assert Settings().security.forwarded_by == [gateway[1]]


def test_the_image_listens_where_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    image = (ROOT / "deploy" / "Dockerfile").read_text(encoding="utf-8")
    for name, value in re.findall(r"(ECCAHT_\w+)=(\S+)", image):
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert (settings.listen.host, str(settings.store.url)) == ("0.0.0.0", "sqlite:////data/eccaht.db")
    assert f"EXPOSE {settings.listen.port}" in image
    assert re.search(r"^USER eccaht$", image, re.MULTILINE)
