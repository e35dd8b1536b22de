"""`eccaht drill --watch` shows what a watch would do on the user's own quiet data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eccaht.cli.main import app, run
from eccaht.model.calibration import calibrate_with_windows
from eccaht.model.model import load_model
from eccaht.watch.drill_confidence import set_belief
from eccaht.watch.drill_words import HEADINGS
from eccaht.watch.kept import count_watch, drills_of, plant_watch
from tests.model.histories import clock, signals, write_csv

NAMES, ROWS, HISTORY = ("s0", "s1", "s2", "s3"), 5, 2000
QUIET = 125 * ROWS


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a model, its history and quiet data of later."""
    directory = tmp_path_factory.mktemp("plant")
    times, values = clock(HISTORY + QUIET), signals(HISTORY + QUIET, len(NAMES))
    for name, part in (("history.csv", slice(0, HISTORY)), ("quiet.csv", slice(HISTORY, None))):
        write_csv(directory / name, ["timestamp", *NAMES], [times[part], *values[part].T.tolist()])
    model, windows = calibrate_with_windows([directory / "history.csv"], window=f"{ROWS}s")
    count_watch(model, windows).save(directory / "plant.model")
    return directory


@pytest.fixture
def plant(files: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(files)
    return files


def told(*options: str) -> Any:
    result = CliRunner().invoke(
        app, ["drill", "plant.model", "--watch", "--data", "quiet.csv", "--runs", "6", *options]
    )
    assert result.exit_code == 0, result.output
    return result


@pytest.mark.usefixtures("plant")
def test_the_line_comes_first_then_the_table_and_what_to_know() -> None:
    result = told("--false-alarms", "1/5min")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("Watched 0.17 quiet hours: ")
    assert "of 6 faults" in lines[0]
    assert lines[2].split()[: len(HEADINGS[0].split())] == HEADINGS[0].split()
    assert lines[18].startswith("all")
    assert "promised: at most 288 a day" in result.stdout
    assert result.stderr == ""


@pytest.mark.usefixtures("plant", "plain_pictures")
def test_the_document_and_the_picture(tmp_path: Path) -> None:
    plot = tmp_path / "watch.png"
    document = json.loads(told("--json", "--false-alarms", "1/100w", "--seed", "3", "--plot", str(plot)).stdout)
    assert document["settings"] == {"data": ["quiet.csv"], "runs": 6, "seed": 3}
    assert document["false_alarm_every"] == 100.0
    assert document["window_seconds"] == 5.0
    assert document["all"]["faults"] + document["faults_left_out"] == 6
    assert document["quiet"]["windows"] <= 125
    assert document["files"] == [str(plot)]
    assert plot.stat().st_size > 1000


@pytest.mark.usefixtures("plant")
def test_data_of_the_history_are_told() -> None:
    result = CliRunner().invoke(app, ["drill", "plant.model", "--watch", "--data", "history.csv", "--runs", "1"])
    assert result.exit_code == 0, result.output
    assert "400 of the 400 windows lie in the time of the history" in result.stderr


@pytest.mark.usefixtures("plant")
@pytest.mark.parametrize(("rate", "basis"), [("1/2w", "counted"), ("1/300d", "extrapolated")])
def test_without_data_the_counts_of_the_rule_are_told(rate: str, basis: str) -> None:
    command = ["drill", "plant.model", "--watch", "--false-alarms", rate]
    words = CliRunner().invoke(app, command).stdout
    document = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert document["basis"] == basis
    assert 300 <= document["history_windows"] <= 400
    assert words.splitlines() == [
        document["line"],
        "Give --data QUIET to drill it: quiet data that the model has not seen.",
    ]
    assert f"on {document['history_windows']} windows of the history" in words
    assert basis in words


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--watch", "--seed", "1"], "--seed needs new drills: give --data QUIET"),
        (["--watch", "--data", "quiet.csv", "--alpha", "0.1"], "--alpha does not go with --watch"),
        (["--watch", "--out", "new.model"], "--out needs new drills"),
        (["--data", "quiet.csv", "--false-alarms", "1/1d"], "--false-alarms needs --watch"),
        (["--watch", "--data", "quiet.csv", "--false-alarms", "often"], "is no rate"),
        (["--watch", "--data", "quiet.csv", "--runs", "6000"], "at most 5000 faults"),
        (["--watch", "--data", "quiet.csv", "--plot", "watch.txt"], "must end in .png"),
        (["--watch", "--data", "quiet.csv", "--plot", "quiet.csv"], "must end in .png"),
        (["--watch", "--data", "absent.csv"], "absent.csv"),
        (["--watch", "--data", "short.csv"], "drills need 120 quiet windows, and there are 4"),
    ],
)
def test_what_cannot_be_drilled_is_said_in_one_line(
    plant: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (plant / "short.csv").write_text("\n".join((plant / "quiet.csv").read_text().splitlines()[:20]) + "\n")
    before = sorted(path.name for path in plant.iterdir())
    assert run(["drill", "plant.model", *options]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert message in output.err
    assert output.err.count("\n") == 1
    assert sorted(path.name for path in plant.iterdir()) == before


@pytest.mark.usefixtures("plant")
def test_a_model_keeps_the_drills_and_its_alarms_a_confidence(tmp_path: Path) -> None:
    drilled = tmp_path / "drilled.model"
    first = told("--false-alarms", "1/100w", "--out", str(drilled)).stdout.splitlines()
    again = CliRunner().invoke(app, ["drill", str(drilled), "--watch"]).stdout.splitlines()
    assert again == first[: len(again)]
    model = load_model(drilled)
    kept = drills_of(model)
    assert kept is not None
    watch = plant_watch(model, 100.0)
    assert watch.confidence is not None
    assert watch.confidence.header() == kept.confidence.header()
    rows = model.prepare(["quiet.csv"]).values
    rows[60:, 1] += 30.0
    found = [alarm for row in rows if (alarm := watch.update(row)) is not None][-1]
    told_of = watch.confidence.counted("evidence", set_belief(found.beliefs, found.decision), 0)
    assert found.confidence == (None if told_of != told_of else told_of)


@pytest.mark.usefixtures("plant")
def test_without_data_the_rule_speaks_of_itself() -> None:
    result = CliRunner().invoke(app, ["drill", "plant.model", "--watch", "--json"])
    document = json.loads(result.stdout)
    assert document["history_windows"] == HISTORY // ROWS
    assert document["counts"] is None
