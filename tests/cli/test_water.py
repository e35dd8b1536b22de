"""`eccaht water` goes from nothing to a table, or says in one line why not."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from eccaht.cli.main import run
from tests.cli import commands

QUICK = ["--days", "1", "--step", "5min", "--attacks", "3", "--jobs", "1", "--policies", "ecc-aht,diagonal"]

pytestmark = pytest.mark.skipif(find_spec("wntr") is None, reason="the extra [water] is not installed")


def test_one_command_writes_everything_and_says_what_it_found(tmp_path: Path) -> None:
    said = commands.invoke("water", "--out", str(tmp_path / "new" / "out"), *QUICK)
    assert "288 windows of 5min as history" in said
    assert "1 sensor: diagonal needs" in said
    names = {path.name for path in (tmp_path / "new" / "out").iterdir()}
    assert names == {
        *("history.csv", "attacks.csv", "truth.json", "model.npz"),
        *("summary.csv", "delays.pdf", "delays.png"),
    }


def test_json(tmp_path: Path) -> None:
    printed = commands.document("water", "--out", str(tmp_path), *QUICK, "--window", "10min")
    assert printed["windows"] == 144
    assert [attack["n"] for attack in printed["attacks"]] == [1, 2, 3]
    assert [group["group"] for group in printed["groups"]] == ["1 sensor", "2 sensors", "3 sensors"]
    assert [row["policy"] for row in printed["groups"][0]["policies"]] == ["ecc-aht", "diagonal"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--step", "7s"], "is no whole part of 10 minutes"),
        (["--step", "soon"], "is not a length of time"),
        (["--window", "30s"], "must be between the step"),
        (["--days", "0.1"], "do not cover a day"),
        (["--policies", "unheard"], "unknown policy 'unheard'"),
    ],
)
def test_bad_options_are_one_line_and_leave_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in commands.refused(["water", "--out", str(tmp_path / "new"), *arguments], capsys)
    assert not (tmp_path / "new").exists()


def test_without_the_extra_the_command_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wntr", None)
    assert run(["water", "--out", str(tmp_path / "new")]) == 2
    assert "pip install 'eccaht[water]'" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
