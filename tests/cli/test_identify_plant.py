"""History in, incident in, the right sensors out, with their dates: `eccaht identify` as users call it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht.base.arrays import Array
from eccaht.cli.main import run
from eccaht.plants.incident.drill import drill_history, keeping
from eccaht.plants.model.calibration import calibrate_with_windows
from tests.plants.model.histories import write_csv

NAMES = [f"T-{k}" for k in range(1, 7)]
START = np.datetime64("2024-03-04T00:00:00")
ONSET, END = 90, 130  # minutes after the beginning of the recording
BIAS = {"T-2": 6.0, "T-5": -4.0}  # raw units


def readings(rows: int, seed: int) -> Array:
    """Two groups of three sensors that follow the same disturbances."""
    rng = np.random.default_rng(seed)
    common = np.repeat(rng.standard_normal((rows, 2)), 3, axis=1)
    return np.asarray(20.0 + common + 0.5 * rng.standard_normal((rows, 6)))


def write(path: Path, values: Array, since: np.datetime64, valve: float = 3.0) -> Path:
    """The sensors, and a valve that reads 3, or something else from the onset on."""
    times = [str(since + np.timedelta64(minute, "m")) for minute in range(len(values))]
    valves = [3.0] * ONSET + [valve] * (len(values) - ONSET)
    return write_csv(path, ["time", *NAMES, "LV-7"], [times, *np.round(values, 4).T.tolist(), valves])


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plant")
    history = write(folder / "history.csv", readings(700, 0), START)
    incident, later = readings(150, 1), START + np.timedelta64(1, "D")
    for name, bias in BIAS.items():
        incident[ONSET:, NAMES.index(name)] += bias
    write(folder / "incident.csv", incident, later)
    write(folder / "valve.csv", incident, later, valve=5.0)
    lacking = [line.split(",") for line in (folder / "incident.csv").read_text().splitlines()]
    (folder / "lacking.csv").write_text("".join(",".join([*cells[:6], *cells[7:]]) + "\n" for cells in lacking))
    over = incident.copy()
    over[END:] = readings(150, 1)[END:]
    write(folder / "over.csv", over, later)
    model, windows = calibrate_with_windows(history)
    model.save(folder / "plain.model")
    keeping(model, drill_history(model, windows, runs=80)).save(folder / "plant.model")
    return folder


def identified(
    plant: Path, capsys: pytest.CaptureFixture[str], *others: str, model: str = "plant", data: str = "incident"
) -> Any:
    capsys.readouterr()
    files = ["--model", str(plant / f"{model}.model"), "--data", str(plant / f"{data}.csv")]
    assert run(["identify", *files, "--json", *others]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_sensors_that_were_moved_are_named(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = identified(plant, capsys)
    keys = {"verdict", "incidents", "named", "sensors", "onset", "end", "confidence", "sure", "cautions", "drill"}
    assert {*keys, "rankings"} <= document.keys()
    assert document["verdict"] == "wrong"
    assert {each["sensor"] for each in document["named"]} == set(BIAS)
    assert {each["sensor"] for each in document["sensors"]} == set(NAMES)
    for each in document["sensors"]:
        assert {"sensor", "belief", "kind", "size_raw"} <= each.keys()
        assert 0.0 <= each["belief"] <= 1.0
    for each in document["named"]:
        assert each["kind"] == "step"
        assert each["size_raw"] == pytest.approx(BIAS[each["sensor"]], abs=0.6)
    assert {"z_local", "mahalanobis"} <= document["rankings"].keys()
    assert document["drill"]["text"].startswith("On your own history: ")
    assert document["confidence"] is None or 0.0 <= document["confidence"] < 1.0


def test_an_incident_has_a_beginning_and_an_end(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = identified(plant, capsys, data="over")
    (incident,) = document["incidents"]
    assert {"onset", "end", "named", "sensors", "confidence", "kinds"} <= incident.keys()
    assert {each["sensor"] for each in incident["named"]} == set(BIAS)
    assert incident["kinds"] == ["step", "step"]
    began, ended = (np.datetime64(incident[name]) - START - np.timedelta64(1, "D") for name in ("onset", "end"))
    assert abs(began / np.timedelta64(1, "m") - ONSET) <= 2
    assert abs(ended / np.timedelta64(1, "m") - END) <= 5
    assert identified(plant, capsys)["end"] is None


def test_a_start_and_a_number_may_be_given(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = str(START + np.timedelta64(1, "D") + np.timedelta64(ONSET, "m"))
    document = identified(plant, capsys, "--start", start, "--anomalies", "1")
    assert [each["sensor"] for each in document["named"]] == ["T-2"]  # the larger of the two
    assert document["confidence"] is None
    assert any("drills were run without a given number" in caution for caution in document["cautions"])


def test_what_was_constant_in_the_history_and_moves_is_named_too(
    plant: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without, document = (identified(plant, capsys, data=data) for data in ("incident", "valve"))
    (valve,) = (each for each in document["named"] if each["sensor"] not in BIAS)
    others = [each for each in document["named"] if each["sensor"] in BIAS]
    assert (valve["sensor"], valve["kind"], valve["size_raw"]) == ("LV-7", "moved", 2.0)
    assert "LV-7 never moved in the history and moves now: from 3 to 5" in valve["why"]
    assert others == without["named"]
    assert document["confidence"] == without["confidence"]


def test_without_a_sensor_of_the_drills_no_confidence_is_given(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = identified(plant, capsys, "--missing", "allow", data="lacking")
    assert {each["sensor"] for each in document["named"]} == set(BIAS)
    assert document["settings"]["sensors"] == 5
    assert (document["confidence"], document["sure"]) == (None, False)
    assert any("without T-6" in caution for caution in document["cautions"])


def test_before_the_onset_nothing_is_wrong(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stop = str(START + np.timedelta64(1, "D") + np.timedelta64(ONSET, "m"))
    document = identified(plant, capsys, "--stop", stop)
    assert document["verdict"] != "wrong"
    assert (document["named"], document["incidents"]) == ([], [])
    assert document["onset"] is None


def test_picture_and_page_are_written(plant: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(tmp_path / name) for name in ("readings.svg", "incident.html")]
    document = identified(plant, capsys, "--plot", files[0], "--html", files[1])
    assert document["files"] == files
    page = Path(files[1]).read_text(encoding="utf-8")
    assert all(name in page for name in BIAS)
    assert Path(files[0]).read_text(encoding="utf-8").lstrip().startswith("<?xml")


def test_without_drills_there_is_a_caution_and_no_confidence(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = identified(plant, capsys, model="plain")
    assert {each["sensor"] for each in document["named"]} == set(BIAS)
    assert document["confidence"] is None
    assert document["sure"] is False
    assert any("drill the model" in caution for caution in document["cautions"])


def test_how_the_data_differ_from_the_history_is_printed_with_the_answer(
    plant: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [line.split(",") for line in (plant / "incident.csv").read_text().splitlines()]
    short = [[row[0], *(f"{float(cell):.1f}" for cell in row[1:])] for row in rows[1:]]
    coarse = tmp_path / "coarse.csv"
    coarse.write_text("".join(",".join(row) + "\n" for row in [rows[0], *short]))
    capsys.readouterr()
    assert run(["identify", "--model", str(plant / "plant.model"), "--data", str(coarse)]) == 0
    out = capsys.readouterr().out
    assert "rounded more than the history (T-1, T-2, T-3" in out
    assert "2 of 6 sensors " in out
