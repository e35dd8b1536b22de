"""The pages for engineers run as printed, one after the other, and name the right sensors."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from eccaht.cli.main import run
from eccaht.plants.incident.counts import Drilled
from eccaht.plants.incident.drill import drill_history

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("tutorials/wrong-sensors.md", "how-to/watch.md")
SHOWN = re.compile(r"```sh\n(?P<commands>.*?)```\n*(?:```text\n(?P<output>.*?)```)?", re.DOTALL)


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def named(output: str) -> set[str]:
    return set(re.findall(r"^\d+ named +(\S+)", output, re.MULTILINE))


@pytest.fixture(autouse=True)
def few_drills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defaults but for fewer drills, which take most of the time."""
    monkeypatch.chdir(tmp_path)

    def few(*given: Any, **options: Any) -> Drilled:
        return drill_history(*given, **(options | {"runs": 24}))

    monkeypatch.setattr("eccaht.plants.front.calibration.drill_history", few)


def test_every_command_runs_and_names_the_right_sensors(capsys: pytest.CaptureFixture[str]) -> None:
    outputs: list[tuple[list[str], str, str | None]] = []  # a command, what it prints, and what the page shows of it
    for found in SHOWN.finditer("".join(text_of(page) for page in PAGES)):
        *first, last = [shlex.split(line, comments=True) for line in found["commands"].splitlines()]
        for command, shown in [*((each, None) for each in first), (last, found["output"])]:
            assert run(command[1:]) == 0, command
            outputs.append((command[1:], capsys.readouterr().out, shown))
    assert len(outputs) > 8
    truth = set(json.loads(Path("plant/truth.json").read_text())["anomalies"])
    for command, output, shown in outputs:
        if command[0] == "identify":
            expected = set() if "--stop" in command else truth
            assert named(output) == expected, command
            assert shown is None or named(shown) == expected, command
    calibrated, drilled = (next(each for each in outputs if each[0][0] == name) for name in ("calibrate", "drill"))
    (line,) = re.findall(r"^On your own history: .*$", str(calibrated[2]), re.MULTILINE)
    assert str(drilled[2]).startswith(line)
    (alarm,) = [output for command, output, _ in outputs if command[0] == "watch" and "plant/incident.csv" in command][
        :1
    ]
    assert all(name in alarm for name in truth)
    printed: dict[str, Any] = {}
    exec(re.findall(r"```py\n(.*?)```", text_of("how-to/watch.md"), re.DOTALL)[0], printed)
    assert set(printed["policy"].decision_names) == truth
    files = ["plant.model", "drill.png", "incident.png", "incident.html"]
    assert all((Path("plant") / file).stat().st_size > 0 for file in files)
