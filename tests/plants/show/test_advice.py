"""What to do about an undecided answer can be pasted: files, times and options are the user's own."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import eccaht
from eccaht.base.clock import Clock
from eccaht.cli.main import run
from eccaht.plants.answer import Question
from eccaht.plants.show.advice import settling_commands, update_command, what_to_do
from tests.plants.show.example_answers import answer_of

SHELL = Question(data=("new data/a.csv", "b.csv"), model="models/plant.model")


def test_commands_have_the_files_quoted_and_every_option() -> None:
    question = Question(
        SHELL.data,
        SHELL.model,
        calibrating={"exclude": ["P-101 mode", "x"], "header": False, "decimal_comma": True, "timezone": None},
        asking={"stop": None, "anomalies": (1, 3), "alpha": 0.01},
    )
    calibrate, identify = settling_commands(question, "2024-03-07T08:00")
    assert calibrate == (
        "eccaht calibrate 'new data/a.csv' b.csv --exclude 'P-101 mode' --exclude x --no-header --decimal-comma "
        "--stop 2024-03-07T08:00 --out models/plant-new.model"
    )
    assert identify == (
        "eccaht identify --model models/plant-new.model --data 'new data/a.csv' --data b.csv --anomalies 1-3 "
        "--alpha 0.01 --start 2024-03-07T08:00"
    )
    assert update_command(question) == (
        "eccaht calibrate --update models/plant.model --data 'new data/a.csv' --data b.csv "
        "--out models/plant-updated.model"
    )


def test_the_history_ends_at_the_start_that_was_given_or_after_a_third() -> None:
    answer = answer_of(question=SHELL, first=np.datetime64("2024-03-07T07:00", "us"))
    assert "--start 2024-03-07T07:49:40" in what_to_do(answer)[2]  # of 07:00 to 09:29
    given = what_to_do(answer_of(question=SHELL, settings={"start": "2024-03-07T08:30"}))
    assert "well before 2024-03-07T08:30" in given[0]
    assert "--stop 2024-03-07T08:30" in given[1]
    rows = (np.arange(150) * 10**6).astype("datetime64[us]")
    counted = answer_of(question=SHELL, first=rows[0], last=rows[-1], clock=Clock(row_interval=1.0, counted=True))
    assert "--start 51 " in what_to_do(counted)[2] + " "


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plant that runs elsewhere than in its history, and whose sensor b is wrong in the last third."""
    directory = tmp_path_factory.mktemp("a plant")
    rng = np.random.default_rng(0)
    common = rng.standard_normal(540)
    noise = rng.standard_normal((540, 4))
    readings = common[:, None] + 0.3 * noise
    readings[270:] += 60.0
    readings[450:, 1] += 4.0
    columns = {"abcd"[k]: readings[:, k].round(3) for k in range(4)}
    table = pl.DataFrame({**columns, "operator's mode": rng.integers(0, 2, 540)})
    table[:270].write_csv(directory / "the history.csv")
    table[270:].write_csv(directory / "new data.csv")
    return directory


def test_pasted_commands_lead_to_the_sensor(changed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    history, new, model = (str(changed / name) for name in ("the history.csv", "new data.csv", "m.model"))
    assert run(["calibrate", history, "--exclude", "operator's mode", "--no-drill", "--out", model]) == 0
    capsys.readouterr()
    assert run(["identify", "--model", model, "--data", new]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Undecided: the plant has changed")
    commands = [shlex.split(line) for line in said.splitlines() if line.startswith("    eccaht ")]
    assert len(commands) == 3
    for name, *arguments in commands[:2]:
        assert name == "eccaht"
        assert run(arguments) == 0
    assert "1 of 4 sensors seems to be wrong since row 18" in capsys.readouterr().out
    assert run([*commands[2][1:], "--no-drill"]) == 0


def test_pasted_calls_lead_to_the_sensor(changed: Path) -> None:
    history, data = (pl.read_csv(changed / name) for name in ("the history.csv", "new data.csv"))
    model = eccaht.calibrate(history, exclude=["operator's mode"], drills=0, progress=False)
    answer = model.identify(data, progress=False)
    assert answer.verdict == "undecided"
    names = {"eccaht": eccaht, "model": model, "data": data}
    for line in what_to_do(answer)[1:3]:
        exec(line.strip(), names)  # the words that were printed, as a user would paste them
    settled = names["answer"]
    assert isinstance(settled, type(answer))
    assert settled.named == ("b",)
