"""The guide for engineers runs as printed and names the right sensors."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from eccaht.cli.main import run

GUIDE = (Path(__file__).parents[2] / "docs" / "engineers.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", GUIDE, re.DOTALL)


def named(output: str) -> set[str]:
    return set(re.findall(r"^\d+ named +(\S+)", output, re.MULTILINE))


def test_every_command_runs_and_names_the_right_sensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [shlex.split(line) for block in blocks("sh") for line in block.splitlines()]
    commands = [command[1:] for command in commands if command[0] == "eccaht"]
    assert len(commands) > 10
    outputs: list[tuple[str, str]] = []
    for command in commands:
        assert run(command) == 0, command
        outputs.append((command[0], capsys.readouterr().out))
    truth = set(json.loads(Path("plant/truth.json").read_text())["anomalies"])
    found = [output for name, output in outputs if name == "identify"]
    (normal,) = [output for output in found if "Nothing is wrong" in output]
    assert named(normal) == set()
    found.remove(normal)
    for output in found:
        if output.startswith("{"):
            assert {sensor["sensor"] for sensor in json.loads(output)["named"]} == truth
        else:
            assert named(output) == truth
    verdicts = [output for name, output in outputs if name == "diagnose"]
    assert "Verdict: caution" in verdicts[0]
    assert "P-101 mode" in verdicts[0]
    assert "Verdict: ok" in verdicts[1]
    shown = [block.rstrip("\n") for block in blocks("text")]
    assert len(shown) == 3
    for block in shown:  # the same question and the same names; digits may differ from machine to machine
        question = block.splitlines()[0]
        assert any(out.startswith(question) and named(out) == named(block) for _, out in outputs), question
    for file in ("ledger.csv", "evidence.png", "diagnosis.html", "plant.model"):
        assert (tmp_path / "plant" / file).stat().st_size > 0


def test_the_python_of_the_guide_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks("python")), "docs/engineers.md", "exec"), {"__name__": "__main__"})
    printed = capsys.readouterr().out
    assert all(repr(name) in printed for name in json.loads(Path("truth.json").read_text())["anomalies"])
