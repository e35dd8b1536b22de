"""README: its code runs, what it shows is what the commands print, and its first screen is short."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import eccaht
from eccaht.cli.main import run
from eccaht.plants.example import write_example

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COUNTED = ("Confidence", "On")  # paragraphs with numbers of drills, which differ a little between processors


def test_it_is_short() -> None:
    assert len(README.split()) < 800


def test_it_shows_one_small_picture() -> None:
    (picture,) = re.findall(r"!\[[^\]]+\]\((docs/[^)]+)\)", README)  # besides badges
    assert (ROOT / picture).stat().st_size < 150_000


def test_the_demo_is_what_it_shows() -> None:
    """And both identify with a model and data alone: nothing is there to guess."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace(" \\\n\t\t", " ")
    demo = makefile.partition("\ndemo:")[2].partition("\n\n")[0]
    demo = demo.replace("demo/", "plant/").replace("--out demo", "--out plant")
    shown = re.findall(r"^(eccaht .*?)(?:  .*)?$", README, re.MULTILINE)
    assert [line.split()[1] for line in shown] == ["example", "calibrate", "identify"]
    assert [line for line in shown if line not in demo] == []
    assert set(re.findall(r"--[a-z]+", shown[-1])) == {"--model", "--data"}


def test_its_code_runs_and_its_answer_is_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the drills, which take their time: `python docs/outputs.py` writes what they print."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(eccaht, "calibrate", partial(eccaht.calibrate, drills=0))
    Path("plant").mkdir()
    write_example(Path("plant"), kind="concealed")
    plant, search = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    page: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(plant, "README.md", "exec"), page)
    page["model"].save("plant.model")
    capsys.readouterr()
    assert run(["identify", "--model", "plant.model", "--data", "plant/incident.csv"]) == 0
    printed = _in_one_line(capsys.readouterr().out).replace("seem to be wrong", "are wrong")  # drills make it sure
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    paragraphs = re.findall(r"^(?!\.\.\.)\S.*\n(?: +.*\n)*", shown, re.MULTILINE)
    assert len(paragraphs) >= 3
    assert [
        text
        for text in paragraphs
        if text.split(maxsplit=1)[0].strip(":") not in COUNTED and _in_one_line(text) not in printed
    ] == []
    exec(compile(search, "README.md", "exec"), {"__name__": "__main__"})


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
