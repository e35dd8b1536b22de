"""`eccaht drill` shows what drills counted: new ones in quiet data, or those that the model keeps."""

import json
from pathlib import Path
from typing import Any

import pytest

from eccaht.cli.main import run
from eccaht.plants.example import STATUS, write_example
from eccaht.plants.incident.counts import kept
from eccaht.plants.incident.drill import AT_ALARM, HEADINGS, drill_history, keeping
from eccaht.plants.incident.faults import KINDS
from eccaht.plants.model.calibration import calibrate, calibrate_with_windows
from eccaht.plants.model.model import load_model
from tests.cli.commands import refused

FEW = ["--runs", "40"]


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("plant")
    history, *_ = write_example(directory)
    model, windows = calibrate_with_windows([history], exclude=[STATUS])
    keeping(model, drill_history(model, windows, runs=60)).save(directory / "plant.model")
    model.save(directory / "plain.model")
    return directory


def printed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert run(["drill", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_without_data_what_the_model_keeps_is_shown(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, plant / "plant.model").splitlines()
    drilled = kept(load_model(plant / "plant.model"))
    assert drilled is not None
    assert " ".join(lines[:3]) == drilled.counts.line(60.0)
    assert "in 47.8 hours (" in lines[2]  # those of the history, however many stretches were drilled
    assert lines[4].split("  ")[0] == "fault"
    assert [name for name in HEADINGS if name not in lines[4]] == []
    assert {line.split()[0] for line in lines[5:] if line.split() and line.split()[0] in KINDS} == set(KINDS)
    assert "False alarms: " in lines[-3]
    assert "5.97 days" in lines[-3]
    assert "0.33 expected" in lines[-3]
    assert "--data QUIET" in lines[-1]


def test_watch_prints_the_same_table_with_the_sets_at_the_alarm(
    plant: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = printed(capsys, plant / "plant.model").splitlines()
    watched = printed(capsys, plant / "plant.model", "--watch").splitlines()
    assert watched[4].endswith(AT_ALARM)
    assert all(more.startswith(less.rstrip()) for less, more in zip(plain, watched, strict=True))


def test_new_drills_are_counted_in_the_data(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", plant / "incident.csv"]
    one = json.loads(printed(capsys, plant / "plain.model", *data, *FEW, "--json"))
    again = json.loads(printed(capsys, plant / "plain.model", *data, *FEW, "--json"))
    other = json.loads(printed(capsys, plant / "plain.model", *data, *FEW, "--seed", 3, "--json"))
    assert one == again
    assert one["trials"] != other["trials"]
    assert one["settings"] == {
        "data": [str(plant / "incident.csv")], "runs": 40, "seed": 0, "alpha": 0.05, "every": 8604.0,
    }  # fmt: skip
    assert one["faults"] == len(one["trials"]) == sum(cell["faults"] for cell in one["kinds"])
    assert one["found"] == sum(trial["found"] for trial in one["trials"])
    assert one["sets_right"] == sum(trial["right"] for trial in one["trials"])
    names = set(load_model(plant / "plain.model").names)
    assert all(set(trial["sensors"]) <= names for trial in one["trials"])
    assert one["alarms"] == len(one["quiet_alarms"])
    assert one["quiet_hours"] == pytest.approx(one["quiet_windows"] / 60.0)
    assert set(one["confidence"]) == {"afterwards", "standing", "at_alarm"}


def test_the_rate_sets_the_thresholds(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = ["--data", plant / "incident.csv", *FEW, "--json"]
    often = json.loads(printed(capsys, plant / "plain.model", *data, "--false-alarms", "1/1h"))
    seldom = json.loads(printed(capsys, plant / "plain.model", *data, "--false-alarms", "1/100000w"))
    assert (often["false_alarm_every"], seldom["false_alarm_every"]) == (60.0, 100_000.0)
    assert often["alarms"] > seldom["alarms"]
    assert often["alarms_expected"] == pytest.approx(often["quiet_windows"] / 60.0)


def test_data_of_the_history_are_noted_and_alarms_are_listed(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rate = ["--false-alarms", "1/100w"]
    assert run(["drill", str(plant / "plain.model"), "--data", str(plant / "history.csv"), *FEW, *rate]) == 0
    said = capsys.readouterr()
    assert "lie in the time of the history" in said.err
    assert "check whether these were false:" in said.out
    assert "more, which --json lists" in said.out


def test_files_are_written(plant: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot, out = tmp_path / "drills.png", tmp_path / "new.model"
    data = ["--data", plant / "incident.csv", *FEW]
    said = json.loads(printed(capsys, plant / "plain.model", *data, "--plot", plot, "--out", out, "--json"))
    assert said["files"] == [str(plot), str(out)]
    assert plot.stat().st_size > 1000
    assert kept(load_model(plant / "plain.model")) is None
    drilled = kept(load_model(out))
    assert drilled is not None
    assert drilled.counts.line(60.0, "these data") == said["line"]
    assert "Saved" in printed(capsys, out, "--plot", plot)


def test_the_model_itself_may_be_replaced(plant: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "plant.model"
    model.write_bytes((plant / "plain.model").read_bytes())
    printed(capsys, model, "--data", plant / "incident.csv", *FEW, "--out", model)
    assert kept(load_model(model)) is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "has no drills: give --data QUIET, or calibrate with drills on at least 100 windows"),
        (["--runs", "10"], "--runs needs new drills: give --data QUIET"),
        (["--false-alarms", "1/30d"], "--false-alarms needs new drills"),
        (["--out", "new.model"], "--out needs new drills"),
        (["--data", "incident.csv", "--alpha", "1"], "alpha is an error probability"),
        (["--data", "incident.csv", "--false-alarms", "seldom"], "'seldom' is no rate"),
        (["--data", "incident.csv", "--plot", "drills.txt"], "must end in .png"),
        (["--data", "incident.csv", "--plot", "a.png", "--out", "a.png"], "overwrite"),
        (["--data", "incident.csv", "--out", "incident.csv"], "would overwrite --data"),
    ],
)
def test_what_cannot_be_drilled_is_one_line(
    plant: Path, options: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(plant)
    before = sorted(path.name for path in plant.iterdir())
    assert message in refused(["drill", "plain.model", *options], capsys)
    assert sorted(path.name for path in plant.iterdir()) == before


def test_rows_without_times_are_counted_in_windows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.plants.model.histories import signals, write_csv

    names: list[Any] = ["a", "b", "c"]
    path = write_csv(tmp_path / "h.csv", names, signals(300, 3).T.tolist())
    calibrate(path).save(tmp_path / "m")
    said = printed(capsys, tmp_path / "m", "--data", path, *FEW)
    assert "in 300 windows (" in said
    assert "one in 900 windows was asked for" in said
