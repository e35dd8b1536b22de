"""`eccaht identify` needs a model and data, nothing else; what it passes on, prints and writes is what it was given."""

import json
import re
from pathlib import Path

import polars as pl
import pytest

from eccaht.cli.main import run
from eccaht.plants.example import STATUS, write_example
from eccaht.plants.model.calibration import calibrate
from tests.cli.commands import refused

ONSET = "2024-03-07T08:00"


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("plant")
    history, *_ = write_example(directory)
    calibrate([history], exclude=[STATUS]).save(directory / "plant.model")
    return directory


def arguments(plant: Path, *others: str, data: Path | None = None) -> list[str]:
    return ["identify", "--model", str(plant / "plant.model"), "--data", str(data or plant / "incident.csv"), *others]


def test_a_silent_sensor_is_looked_at_and_an_absent_one_is_not(
    plant: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pl.read_csv(plant / "incident.csv").drop("FT-101")
    lacking = tmp_path / "lacking.csv"
    table.with_columns(pl.lit(None, dtype=pl.Float64).alias("PT-101")).write_csv(lacking)
    assert "FT-101" in refused(arguments(plant, data=lacking), capsys)
    assert run(arguments(plant, "--missing", "allow", "--json", data=lacking)) == 0
    document = json.loads(capsys.readouterr().out)
    assert any("FT-101" in note for note in document["notes"])
    looked_at = [each["sensor"] for each in document["sensors"]]
    assert "PT-101" in looked_at
    assert "FT-101" not in looked_at


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (["--anomalies", "24"], "needs more than the 24 sensors"),
        (["--anomalies", "x"], "whole number"),
        (["--least", "0"], "--least must be positive"),
        (["--alpha", "1"], "alpha"),
        (["--start", "yesterday"], "yesterday"),
        (["--start", "2030-01-01"], "the data have no row between 2030-01-01 and the end"),
        (["--stop", "2024-03-07T07:00", "--start", ONSET], "must be later than start"),
        (["--html", "page.txt"], "must end in .html"),
        (["--plot", "plot.gif"], "must end in"),
        (["--data", "absent.csv"], "absent.csv"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    plant: Path,
    others: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refused(arguments(plant, *others), capsys)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--data", "--model"])
@pytest.mark.parametrize(
    "content", [b"", b"time,a\n", b"\x80\x04K\x01.", b"PK\x03\x04 cut off", b"some words\nand more\n", None]
)
def test_files_that_are_not_what_they_should_be(
    plant: Path, tmp_path: Path, option: str, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.npz"
    bad.mkdir() if content is None else bad.write_bytes(content)
    given = ["identify", "--plot", str(tmp_path / "p.png"), option, str(bad)]
    given += ["--model", str(plant / "plant.model")] if option == "--data" else ["--data", str(plant / "incident.csv")]
    refused(given, capsys)
    assert [path.name for path in tmp_path.iterdir()] == ["bad.npz"]


def test_bad_lines_and_values_are_reported_and_do_not_end_it(
    plant: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (plant / "incident.csv").read_text().splitlines(keepends=True)
    for k in range(780, 840):
        lines[k] = re.sub(r"(?<=,)[^,]*", "ERROR", lines[k], count=1)
    lines[760:760] = ["2024-03-07 08:03:00,1\n", "logger restarted\n", "\0\0\0\n"]
    (tmp_path / "bad.csv").write_text("".join(lines))
    assert run(arguments(plant, "--json", data=tmp_path / "bad.csv")) == 0
    lines, values = (note for note in json.loads(capsys.readouterr().out)["notes"] if "the first: " in note)
    assert lines.startswith("3 bad lines were left out, the first: line 761 of ")
    assert re.match(r"column '.*': \d+ values count as missing, the first: 'ERROR' in line 784 of ", values)


def test_times_are_local_in_all_that_is_written(
    plant: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The incident with offsets, half a year later, so that 08:00 in Berlin is 06:00 in UTC."""
    table = pl.read_csv(plant / "incident.csv", try_parse_dates=True)
    stamp = table.columns[0]
    moved = (pl.col(stamp) + pl.duration(days=100)).dt.strftime("%Y-%m-%dT%H:%M:%S+02:00")
    table.with_columns(moved).write_csv(tmp_path / "summer.csv")
    given = arguments(plant, "--timezone", "Europe/Berlin", "--start", "2024-06-15T07:00", data=tmp_path / "summer.csv")
    assert run([*given, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["start"] == "2024-06-15 07:00:00+02:00"
    assert document["onset"].startswith("2024-06-15 08:00:00+02:00")
    assert document["timezone"] == "Europe/Berlin"
