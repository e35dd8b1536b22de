"""`eccaht identify` names the sensors, says why, and refuses what it cannot use without leaving anything behind."""

from __future__ import annotations

import json
import math
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from eccaht.cli.main import run
from eccaht.plants.example import STATUS, write_example
from eccaht.plants.incident.document import FORMERLY_AT_THE_TOP
from eccaht.plants.model.calibration import calibrate
from tests.plants.model.histories import signals, write_csv

ONSET = "2024-03-07T08:00"


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("plant")
    history, *_ = write_example(directory)
    calibrate([history], exclude=[STATUS]).save(directory / "plant.model")
    return directory


@pytest.fixture(scope="module")
def truth(plant: Path) -> list[str]:
    return json.loads((plant / "truth.json").read_text())["anomalies"]


def arguments(plant: Path, *others: str, data: str = "incident.csv") -> list[str]:
    given = ["--model", str(plant / "plant.model"), "--data", str(plant / data), "--anomalies", "3"]
    return ["identify", *given, "--start", ONSET, *others]


def printed(capsys: pytest.CaptureFixture[str], *given: str) -> dict[str, Any]:
    assert run([*given, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def names(document: dict[str, Any]) -> set[str]:
    return {sensor["sensor"] for sensor in document["named"]}


def test_the_right_sensors_are_named_in_a_table_with_reasons(
    plant: Path, truth: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments(plant, "--shift", "1")) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    named = [line.split()[2] for line in lines if line[2:].startswith("named")]
    assert sorted(named) == sorted(truth)
    assert sum(line.startswith("Why ") for line in lines) == 3
    assert any(line.startswith("Runner-up: ") for line in lines)
    assert max(map(len, lines)) <= 110


def test_json_holds_everything(plant: Path, truth: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    document = printed(capsys, *arguments(plant, "--shift", "1"))
    assert names(document) == set(truth)
    assert document["reason"] == "stopped"
    assert document["settled"] is True
    assert document["search"]["confidence"]["how"] == "exact"
    assert 0.95 <= document["search"]["confidence"]["probability"] <= 1
    assert document["best_rival"]["log_odds"] >= math.log(0.95 / 0.05)
    assert len(document["sensors"]) == document["settings"]["sensors"] == 24
    bias = json.loads((plant / "truth.json").read_text())["bias"]
    for sensor in document["named"]:
        reach = sensor["size_raw_high"] - sensor["size_raw"]
        assert reach == pytest.approx(sensor["size_raw"] - sensor["size_raw_low"])
        assert abs(sensor["size_raw"] - bias[sensor["sensor"]]) < 2 * reach  # four standard errors
        assert sensor["size_raw"] / sensor["size"] == pytest.approx(sensor["size_raw_low"] / sensor["size_low"])
    assert {why["sensor"] for why in document["why"]} == set(truth)
    for why in document["why"]:
        near, far = why["reading"] - why["expected"], why["reading"] - why["expected_if_swapped"]
        assert why["evidence"] == pytest.approx((far**2 - near**2) / (2 * why["noise"] ** 2))


def test_whole_windows_and_sums_give_documents_with_the_same_keys(
    plant: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """So that a program reads one answer, whichever way it was found."""
    files = ["--model", str(plant / "plant.model"), "--data", str(plant / "incident.csv")]
    whole = printed(capsys, "identify", *files)
    sums = printed(capsys, *arguments(plant, "--shift", "1"))
    quiet = [*arguments(plant, "--shift", "1", "--anomalies", "0-5"), "--start", "2024-03-07T06:00", "--stop", ONSET]
    nothing = printed(capsys, *quiet)
    for other in (sums, nothing):
        assert other.keys() == whole.keys()
        assert other["settings"].keys() == whole["settings"].keys()
        assert other["sensors"][0].keys() == whole["sensors"][0].keys()
    assert sums["incidents"][0].keys() == whole["incidents"][0].keys()
    assert (whole["verdict"], sums["verdict"], nothing["verdict"]) == ("wrong", "wrong", "nothing")
    assert whole["search"] is None
    assert {key: sums["search"][key] for key in FORMERLY_AT_THE_TOP} == {key: sums[key] for key in FORMERLY_AT_THE_TOP}
    for document in (whole, sums):
        (largest,) = (each for each in document["incidents"] if each["named"] == document["named"])
        for key in ("named", "sensors", "onset", "end", "confidence", "sure", "kinds", "runner_up"):
            assert document[key] == largest[key]
        assert document["confidence"] is None or 0.0 <= document["confidence"] <= 1.0
    assert (sums["onset"], sums["rankings"], sums["drill"]) == (None, {}, None)  # what only whole windows have
    assert sums["kinds"] == ["shifted"] * 3
    assert sums["sure"] is sums["settled"] is True
    assert (nothing["incidents"], nothing["sure"]) == ([], True)


def test_the_order_of_columns_is_free_further_ones_are_ignored_and_missing_ones_named(
    plant: Path, truth: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pl.read_csv(plant / "incident.csv")
    shuffled = tmp_path / "shuffled.csv"
    table.select(reversed(table.columns)).with_columns(pl.lit(1.5).alias("new one")).write_csv(shuffled)
    shutil.copy(plant / "plant.model", tmp_path)
    assert run(arguments(tmp_path, "--shift", "1", "--json", data="shuffled.csv")) == 0
    out, err = capsys.readouterr()
    assert names(json.loads(out)) == set(truth)
    assert "new one" in err
    absent = next(tag for tag in ("FT-101", "FT-102", "PT-101") if tag not in truth)
    table.drop(absent).write_csv(tmp_path / "lacking.csv")
    lacking = arguments(tmp_path, "--shift", "1", data="lacking.csv")
    assert run(lacking) == 2
    assert absent in capsys.readouterr().err
    document = printed(capsys, *lacking, "--missing", "allow")
    assert names(document) == set(truth)
    assert absent not in {sensor["sensor"] for sensor in document["sensors"]}
    assert any(absent in note for note in document["notes"])
    growing = printed(capsys, *lacking, "--missing", "allow", "--follow", "--timeout", "0.1", "--poll", "0.01")
    assert growing["named"] == document["named"]


def test_shifts_by_sign_by_name_and_from_a_file(
    plant: Path, truth: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong_way = printed(capsys, *arguments(plant, "--shift", "-1"))
    assert not names(wrong_way) & set(truth)
    one, *others = truth
    document = printed(capsys, *arguments(plant, "--shift", "1", "--shift", f"{one}=-1", "--stopping", "60"))
    assert one not in names(document)
    assert set(others) < names(document)
    (tmp_path / "shifts.csv").write_text("".join(f"{tag},1\n" for tag in truth))
    document = printed(capsys, *arguments(plant, "--shift", "-1", "--shift-file", str(tmp_path / "shifts.csv")))
    assert names(document) == set(truth)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_ledger_and_picture_are_written(
    plant: Path, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(tmp_path / f"ledger{ending}"), str(tmp_path / "evidence.png")]
    given = arguments(plant, "--shift", "1", "--per-window", "3", "--ledger", files[0], "--plot", files[1])
    document = printed(capsys, *given)
    assert document["files"] == files
    table = pl.read_csv(files[0]) if ending == ".csv" else pl.read_parquet(files[0])
    assert len(table) == document["measurements"]
    assert table["window"].max() == document["windows"] - 1
    assert table["window"].value_counts()["count"].max() == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["evidence.png", f"ledger{ending}"]


@pytest.mark.parametrize(
    ("stopping", "reason", "measurements"),
    [
        ("12", "stopped", 12),
        ("never", "data_ended", 120),
        ("gap", "stopped", None),
        ("glr", "stopped", None),
        ("posterior", "stopped", None),
    ],
)
def test_stopping_rules(
    plant: Path, stopping: str, reason: str, measurements: int | None, capsys: pytest.CaptureFixture[str]
) -> None:
    document = printed(capsys, *arguments(plant, "--shift", "1", "--stopping", stopping))
    assert document["reason"] == reason
    assert measurements in (None, document["measurements"])
    document = printed(capsys, *arguments(plant, "--shift", "1", "--max-measurements", "4"))
    assert (document["reason"], document["measurements"]) == ("max_measurements", 4)
    assert document["settled"] is False


def test_an_unsettled_set_is_said_to_be_one(plant: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments(plant, "--shift", "1", "--max-measurements", "4")) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "CAUTION: the confidence is only" in out
    assert "allow more measurements" in out
    normal = [*arguments(plant, "--shift", "1"), "--start", "2024-03-07T06:00", "--stop", ONSET]
    assert run([*normal, "--stopping", "never"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "CAUTION: low belief in" in out
    assert "--anomalies 0-3" in out
    assert "CAUTION: the readings fit no set well" in out
    assert run(arguments(plant, "--shift", "1", "--policy", "ecc-aht", "--max-measurements", "4")) == 0
    assert "CAUTION" in capsys.readouterr().out


def test_an_open_number_finds_the_sensors_and_quiet_data_have_none(
    plant: Path, truth: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = printed(capsys, *arguments(plant, "--shift", "1", "--anomalies", "0-5"))
    assert names(document) == set(truth)
    assert document["settings"]["anomalies"] == [0, 5]
    assert document["search"]["confidence"]["how"] == "estimated"
    files = [str(tmp_path / name) for name in ("l.csv", "p.png", "l.parquet")]
    quiet = [*arguments(plant, "--shift", "1", "--anomalies", "0-5"), "--start", "2024-03-07T06:00", "--stop", ONSET]
    assert run([*quiet, "--ledger", files[0], "--plot", files[1]]) == 0
    out = capsys.readouterr().out
    assert "Which 0 to 5 of 24 sensors are shifted by +1 robust units?" in out
    assert "Nothing is wrong: stopped at" in out
    assert "Confidence: 9" in out
    assert "Most suspect: " in out
    assert "named" not in [line.split()[1] for line in out.splitlines() if line[:1].isdigit()]
    assert pl.read_csv(files[0])["champion"].null_count() > 0
    document = printed(capsys, *quiet, "--ledger", files[2])
    assert (document["named"], document["settled"], document["why"]) == ([], True, [])
    assert document["best_rival"]["without"] is None
    assert document["search"]["runner_up"]["margin"] is None


def test_unknown_shifts_come_with_intervals_in_both_units(
    plant: Path, truth: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    given = arguments(plant, "--shift", "unknown:1:positive", "--shift", f"{truth[0]}=1", "--stopping", "40")
    document = printed(capsys, *given)
    assert names(document) == set(truth)
    bias = json.loads((plant / "truth.json").read_text())["bias"]
    for sensor in document["named"]:
        if sensor["sensor"] == truth[0]:
            assert (sensor["shift"], sensor["shift_spread"], sensor["size"]) == (1.0, 0.0, None)
            continue
        assert (sensor["shift"], sensor["shift_spread"]) == (1.0, 0.5)
        middle, reach = bias[sensor["sensor"]], sensor["size_raw_high"] - sensor["size_raw_low"]
        assert sensor["size_raw_low"] - 0.5 * reach < middle < sensor["size_raw_high"] + 0.5 * reach
    assert run(given) == 0
    out = capsys.readouterr().out
    assert "shifted by known or unknown sizes?" in out
    assert "about +1" in out


def test_wild_readings_may_be_allowed_for(plant: Path, truth: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    document = printed(capsys, *arguments(plant, "--shift", "1", "--outliers", "0.05"))
    assert names(document) == set(truth)
    assert document["settings"]["outliers"] == 0.05


def test_whole_windows_need_few_of_them(
    plant: Path, truth: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = arguments(plant, "--shift", "1", "--vectors", "--ledger", str(tmp_path / "l.csv"))
    document = printed(capsys, *given)
    assert names(document) == set(truth)
    assert document["measurements"] == document["windows"] <= 6
    assert len(pl.read_csv(tmp_path / "l.csv")) == document["windows"]
    assert printed(capsys, *given, "--readout-noise", "0.5")["windows"] >= document["windows"]
    assert printed(capsys, *given, "--stopping", "9")["windows"] == 9
    assert run(given) == 0
    assert "read whole" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ([], "--shift D"),
        (["--shift", "0"], "invisible"),
        (["--shift", "1", "--shift", "FT-999=2"], "did you mean"),
        (["--shift", "1", "--policy", "ecc"], "unknown policy"),
        (["--shift", "1", "--policy", "hds"], "HDS"),
        (["--shift", "1", "--stopping", "gapp"], "unknown stopping rule"),
        (["--shift", "1", "--stopping", "0"], "stopping"),
        (["--shift", "1", "--alpha", "2"], "alpha"),
        (["--shift", "1", "--budget", "0"], "budget"),
        (["--shift", "0.01", "--budget", "0.1"], "budget"),
        (["--shift", "1", "--anomalies", "25"], "25"),
        (["--shift", "1", "--anomalies", "0"], "nothing to find"),
        (["--shift", "1", "--anomalies", "5-2"], "backwards"),
        (["--shift", "1", "--anomalies", "0-2", "--policy", "ecc-aht"], "policy 'ecc-aht' needs a known number"),
        (["--shift", "unknown:1", "--policy", "diagonal"], "policy 'diagonal' needs known shifts"),
        (["--shift", "unknown"], "likely size"),
        (["--shift", "1", "--policy", "ecc-aht", "--stopping", "posterior"], "joint"),
        (["--shift", "1", "--policy", "ecc-aht", "--vectors"], "--vectors needs joint"),
        (["--shift", "1", "--vectors", "--per-window", "2"], "--per-window"),
        (["--shift", "1", "--readout-noise", "-1"], "readout_noise"),
        (["--shift", "1", "--outliers", "0.7"], "--outliers"),
        (["--shift", "1", "--outliers", "0.1", "--policy", "ecc-aht"], "no option 'outliers'"),
        (["--shift", "unknown:1", "--outliers", "0.1"], "outliers needs known shifts"),
        (["--shift", "1", "--start", "yesterday"], "yesterday"),
        (["--shift", "1", "--start", "2030-01-01"], "2030"),
        (["--shift", "1", "--ledger", "ledger.xlsx"], "must end in"),
        (["--shift", "1", "--plot", "plot.gif"], "must end in"),
        (["--shift", "1", "--plot", "absent/plot.png"], "directory that exists"),
        (["--shift", "1", "--timeout", "3"], "--follow"),
        (["--shift", "1", "--follow", "--poll", "0"], "--poll"),
        (["--shift", "1", "--follow", "--data", "other.csv"], "one --data"),
        (["--shift", "1", "--shift-file", "absent.csv"], "absent.csv"),
        (["--shift", "1", "--missing", "maybe"], "maybe"),
        (["--shift", "1", "--model", "absent.model"], "absent.model"),
        (["--shift", "1", "--data", "absent.csv"], "absent.csv"),
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
    given = arguments(plant, *others)
    for option, file in (("--ledger", "l.csv"), ("--plot", "p.png")):
        if option not in others:
            given += [option, file]
    assert run(given) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert message in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--data", "--model"])
@pytest.mark.parametrize(
    "content", [b"", b"time,a\n", b"\x80\x04K\x01.", b"PK\x03\x04 cut off", b"some words\nand more\n", None]
)
@pytest.mark.parametrize("follow", [False, True])
def test_files_that_are_not_what_they_should_be(
    plant: Path, tmp_path: Path, option: str, content: bytes | None, follow: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.npz"
    bad.mkdir() if content is None else bad.write_bytes(content)
    given = ["identify", "--anomalies", "3", "--shift", "1", "--ledger", str(tmp_path / "l.csv"), option, str(bad)]
    given += ["--model", str(plant / "plant.model")] if option == "--data" else ["--data", str(plant / "incident.csv")]
    given += ["--follow", "--timeout", "0.02", "--poll", "0.01"] if follow else []
    assert run(given) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-1].startswith("eccaht: ")
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["bad.npz"]


def test_inputs_are_never_overwritten(plant: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "incident.csv"
    shutil.copy(plant / "incident.csv", data)
    shutil.copy(plant / "plant.model", tmp_path)
    before = data.read_bytes()
    assert run(arguments(tmp_path, "--shift", "1", "--ledger", str(data))) == 2
    assert "overwrite --data" in capsys.readouterr().err
    assert data.read_bytes() == before


def test_a_growing_file_gives_the_finding_of_the_complete_one(
    plant: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(plant / "plant.model", tmp_path)
    lines = (plant / "incident.csv").read_text().splitlines(keepends=True)
    growing = tmp_path / "incident.csv"
    growing.write_text("".join(lines[:700]))

    def feed() -> None:
        for first in range(700, len(lines), 37):
            with growing.open("a") as file:
                text = "".join(lines[first : first + 37])
                file.write(text[:-20])
                file.flush()
                time.sleep(0.003)
                file.write(text[-20:])

    writer = threading.Thread(target=feed)
    writer.start()
    document = printed(capsys, *arguments(tmp_path, "--shift", "1", "--follow", "--poll", "0.01", "--timeout", "20"))
    writer.join()
    whole = printed(capsys, *arguments(plant, "--shift", "1"))
    for key in ("named", "sensors", "measurements", "decided", "why"):
        assert document[key] == whole[key]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_both_signals_end_the_following_with_a_finding(ending: signal.Signals, plant: Path, tmp_path: Path) -> None:
    lines = (plant / "incident.csv").read_text().splitlines(keepends=True)
    (tmp_path / "grow.csv").write_text("".join(lines[:740]))
    shutil.copy(plant / "plant.model", tmp_path)
    given = arguments(tmp_path, "--shift", "1", "--follow", "--ledger", str(tmp_path / "l.csv"), data="grow.csv")
    command = [sys.executable, "-u", "-m", "eccaht", *given]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()  # it is following
        process.send_signal(ending)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "measurement 1:" in first
    assert "the data ended at" in out
    assert "CAUTION" in out
    assert len(pl.read_csv(tmp_path / "l.csv")) >= 1


def damaged(plant: Path, path: Path) -> Path:
    """The incident with a sensor that says ERROR for ten minutes, a short row, words and NUL bytes."""
    lines = (plant / "incident.csv").read_text().splitlines(keepends=True)
    for k in range(780, 840):
        lines[k] = re.sub(r"(?<=,)[^,]*", "ERROR", lines[k], count=1)
    lines[760:760] = ["2024-03-07 08:03:00,1\n", "logger restarted\n", "\0\0\0\n"]
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("follow", [False, True])
def test_bad_lines_and_values_are_reported_and_do_not_end_it(
    follow: bool, plant: Path, truth: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged(plant, tmp_path / "bad.csv")
    shutil.copy(plant / "plant.model", tmp_path)
    more = ["--follow", "--timeout", "0.1", "--poll", "0.01"] if follow else []
    given = arguments(tmp_path, "--shift", "1", "--stopping", "40", "--ledger", str(tmp_path / "l.csv"), data="bad.csv")
    document = printed(capsys, *given, *more)
    assert names(document) == set(truth)
    assert document["measurements"] == len(pl.read_csv(tmp_path / "l.csv")) == 40
    lines, values = document["notes"][-2:]
    assert lines.startswith("3 bad lines were left out, the first: line 761 of ")
    assert re.match(r"column '.*': \d+ values count as missing, the first: 'ERROR' in line 784 of ", values)


def test_no_window_yet_is_said_in_one_line(plant: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(plant / "plant.model", tmp_path)
    header = (plant / "incident.csv").read_text().splitlines(keepends=True)[0]
    (tmp_path / "grow.csv").write_text(header)
    given = arguments(tmp_path, "--shift", "1", "--follow", "--timeout", "0.05", "--poll", "0.01", data="grow.csv")
    assert run([*given, "--ledger", str(tmp_path / "l.csv")]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"eccaht: nothing was read from .*: waited for column names and a row.*\n", err)
    assert not (tmp_path / "l.csv").exists()


@pytest.mark.parametrize("follow", [False, True])
def test_times_are_local_in_all_that_is_written(
    follow: bool, plant: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The incident with offsets, half a year later, so that 08:00 in Berlin is 06:00 in UTC."""
    shutil.copy(plant / "plant.model", tmp_path)
    table = pl.read_csv(plant / "incident.csv", try_parse_dates=True)
    stamp = table.columns[0]
    moved = (pl.col(stamp) + pl.duration(days=100)).dt.strftime("%Y-%m-%dT%H:%M:%S+02:00")
    table.with_columns(moved).write_csv(tmp_path / "summer.csv")
    given = arguments(tmp_path, "--shift", "1", "--timezone", "Europe/Berlin", data="summer.csv")
    given[given.index("--start") + 1] = "2024-06-15T08:00"
    given += ["--follow", "--timeout", "0.1", "--poll", "0.01"] if follow else []
    document = printed(capsys, *given, "--ledger", str(tmp_path / "l.parquet"))
    assert document["start"] == "2024-06-15 08:00:00+02:00"
    assert document["timezone"] == "Europe/Berlin"
    assert [note for note in document["notes"] if "line" in note] == []
    ledger = pl.read_parquet(tmp_path / "l.parquet")
    assert ledger.schema["time"] == pl.Datetime("us", "Europe/Berlin")
    assert ledger["time"].dt.strftime("%H:%M %z")[0] == "08:00 +0200"
    assert run([*given, "--plot", str(tmp_path / "p.svg"), "--ledger", str(tmp_path / "l.csv")]) == 0
    out = capsys.readouterr().out
    assert "from 2024-06-15 08:00:00 (times in Europe/Berlin)" in out
    assert pl.read_csv(tmp_path / "l.csv")["time"][0] == "2024-06-15 08:00:00+02:00"


def test_rows_without_times_are_reported_by_their_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = signals(900, 4)
    history = write_csv(tmp_path / "h.csv", values[0].tolist(), values[1:].T.tolist())
    assert run(["calibrate", str(history), "--out", str(tmp_path / "m"), "--no-header", "--window", "10rows"]) == 0
    assert "90 windows of 10 rows, from row 1 to row 891" in capsys.readouterr().out
    given = ["identify", "--model", str(tmp_path / "m"), "--data", str(history), "--anomalies", "1", "--shift", "3"]
    given += ["--start", "101", "--ledger", str(tmp_path / "l.parquet"), "--plot", str(tmp_path / "p.png")]
    assert run([*given, "--stopping", "5"]) == 0
    out = capsys.readouterr().out
    assert "windows of 10 rows from row 101" in out
    assert "1970" not in out
    assert pl.read_parquet(tmp_path / "l.parquet")["time"].to_list() == [f"row {k}" for k in (101, 111, 121, 131, 141)]
