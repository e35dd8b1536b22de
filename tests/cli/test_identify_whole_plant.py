"""History in, incident in, the right sensors out: calibrate, drill and identify as users call them."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht.arrays import Array
from eccaht.cli.main import run
from eccaht.incident import drill as drills
from eccaht.incident.counts import HEADINGS
from tests.model.histories import write_csv

NAMES = [f"T-{k}" for k in range(1, 7)]
START = np.datetime64("2024-03-04T00:00:00")
ONSET = 90  # minutes after the beginning of the incident
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
    write(folder / "quiet.csv", readings(600, 2), later)
    fast = ["--level", "fixed", "--memory", "none", "--tails", "gaussian", "--shrink", "0"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drills, "drill_history", partial(drills.drill_history, runs=24))
        patch.setattr(drills, "total", partial(drills.total, runs=24))
        assert run(["calibrate", str(history), "--out", str(folder / "plant.model"), *fast]) == 0
    assert run(["calibrate", str(history), "--out", str(folder / "plain.model"), "--no-drill", *fast]) == 0
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
    keys = {"named", "sensors", "onset", "confidence", "sure", "cautions", "drill", "rankings"}
    assert keys <= document.keys()
    assert {each["sensor"] for each in document["named"]} == set(BIAS)
    assert {each["sensor"] for each in document["sensors"]} == set(NAMES)
    for each in document["sensors"]:
        assert {"sensor", "belief", "kind", "size_raw"} <= each.keys()
        assert 0.0 <= each["belief"] <= 1.0
    for each in document["named"]:
        assert each["kind"] == "step"
        assert each["size_raw"] == pytest.approx(BIAS[each["sensor"]], abs=0.6)
    assert {"z_local", "mahalanobis"} <= document["rankings"].keys()
    assert document["drill"]["text"].startswith("On your own history: 12 faults drilled")
    assert document["confidence"] is None or 0.0 <= document["confidence"] < 1.0


def test_a_start_and_a_number_may_be_given(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = str(START + np.timedelta64(1, "D") + np.timedelta64(ONSET, "m"))
    document = identified(plant, capsys, "--start", start, "--anomalies", "1")
    assert [each["sensor"] for each in document["named"]] == ["T-2"]  # the larger of the two
    assert document["confidence"] is None
    assert any("drills were counted with nothing told" in caution for caution in document["cautions"])


def test_what_was_constant_in_the_history_and_moves_is_named_too(
    plant: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without, document = (identified(plant, capsys, data=data) for data in ("incident", "valve"))
    valve, *others = document["named"]
    assert (valve["sensor"], valve["kind"], valve["size_raw"]) == ("LV-7", "moved", 2.0)
    assert "LV-7 never moved in the history and moves now: from 3 to 5" in valve["why"]
    assert others == without["named"]
    assert document["confidence"] == without["confidence"]


def test_without_a_sensor_of_the_drills_no_confidence_is_given(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = identified(plant, capsys, "--missing", "allow", data="lacking")
    assert {each["sensor"] for each in document["named"]} == set(BIAS)
    assert document["settings"]["sensors"] == 5
    assert (document["confidence"], document["sure"]) == (None, False)
    assert "drills were counted with all sensors; without T-6 no confidence was counted" in document["cautions"]


def test_before_the_onset_nothing_is_wrong(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stop = str(START + np.timedelta64(1, "D") + np.timedelta64(ONSET, "m"))
    document = identified(plant, capsys, "--stop", stop)
    assert document["named"] == []
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
    assert any("calibrate without --no-drill" in caution for caution in document["cautions"])


def test_the_drills_of_a_model_are_shown(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["drill", str(plant / "plant.model")]) == 0
    out = capsys.readouterr().out
    assert out.startswith("On your own history: 12 faults drilled")
    assert all(heading in out for heading in HEADINGS)
    assert run(["drill", str(plant / "plain.model")]) == 2
    assert "has no drills: give --data QUIET" in capsys.readouterr().err


def test_quiet_data_may_be_drilled_and_kept(plant: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new.model"
    model, quiet = str(plant / "plain.model"), str(plant / "quiet.csv")
    capsys.readouterr()
    assert run(["drill", model, "--data", quiet, "--runs", "12", "--out", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["faults"] == 6  # one half is counted, the other one fitted
    assert run(["drill", str(out)]) == 0
    assert capsys.readouterr().out.startswith(document["line"])
