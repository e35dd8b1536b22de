"""The guide for engineers runs as printed and names the right sensors."""

from __future__ import annotations

import json
import re
import shlex
from functools import partial
from pathlib import Path

import pytest

from eccaht.cli.main import run
from eccaht.plants.incident.drill import drill_history

GUIDE = (Path(__file__).parents[2] / "docs" / "engineers.md").read_text(encoding="utf-8")
SHOWN = re.compile(r"```sh\n(?P<commands>.*?)```\n*(?:```text\n(?P<output>.*?)```)?", re.DOTALL)


def named(output: str) -> set[str]:
    return set(re.findall(r"^\d+ named +(\S+)", output, re.MULTILINE))


@pytest.fixture(autouse=True)
def few_drills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Defaults but for fewer drills, which take most of the time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("eccaht.plants.incident.drill.drill_history", partial(drill_history, runs=24))


def test_every_command_runs_and_names_the_right_sensors(capsys: pytest.CaptureFixture[str]) -> None:
    outputs: list[tuple[list[str], str, str | None]] = []  # a command, what it prints, and what the page shows of it
    for found in SHOWN.finditer(GUIDE):
        *first, last = [shlex.split(line) for line in found["commands"].splitlines()]
        for command, shown in [*((each, None) for each in first), (last, found["output"])]:
            if command[0] == "eccaht":
                assert run(command[1:]) == 0, command
                outputs.append((command[1:], capsys.readouterr().out, shown))
    assert len(outputs) > 10
    truth = set(json.loads(Path("plant/truth.json").read_text())["anomalies"])
    for command, output, shown in outputs:
        if command[0] == "identify":
            expected = set() if "--stop" in command else truth
            if "--json" in command:
                assert {sensor["sensor"] for sensor in json.loads(output)["named"]} == expected
            else:
                assert named(output) == expected, command
            assert shown is None or named(shown) == expected, command
    calibrated, drilled = (next(each for each in outputs if each[0][0] == name) for name in ("calibrate", "drill"))
    (line,) = re.findall(r"^On your own history: .*$", str(calibrated[2]), re.MULTILINE)
    assert str(drilled[2]).startswith(line)
    assert any("Verdict: ok" in output for command, output, _ in outputs if command[0] == "diagnose")
    files = ["plant.model", "drill.png", "incident.png", "incident.html"]
    files += ["diagnosis.html", "ledger.csv", "evidence.png"]
    assert all((Path("plant") / file).stat().st_size > 0 for file in files)


def test_the_guide_says_what_every_caution_means() -> None:
    table = GUIDE.partition("### When a caution appears")[2].partition("###")[0]
    cautions = (
        "no drills",
        "no confidence was estimated",
        "too few answers of this kind",
        "confident answers were wrong too often",
        "it may be the plant that changed",
    )
    compared = ("rounded more than the history", "rows are", "lie outside of everything", "more readings are missing")
    for words in (*cautions, *compared):
        assert words in table


def test_the_python_of_the_guide_runs(capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL))
    exec(compile(code, "docs/engineers.md", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert all(repr(name) in printed for name in json.loads(Path("truth.json").read_text())["anomalies"])
