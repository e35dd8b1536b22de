"""`eccaht identify` needs a model and data, nothing else; what it passes on, prints and writes is what it was given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from eccaht.cli.identify import given
from eccaht.cli.main import run
from eccaht.plants.data.windows import Windows
from eccaht.plants.example import SETPOINT, STATUS, write_example
from eccaht.plants.incident.answer import Answer
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model
from eccaht.streams.policies import DEFAULT_POLICY
from tests.plants.incident.example_answers import answer_of

ONSET = "2024-03-07T08:00"


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("plant")
    history, *_ = write_example(directory)
    calibrate([history], exclude=[STATUS]).save(directory / "plant.model")
    return directory


class Asked:
    """Stands in for the investigation: remembers what it was asked, and answers with a known answer."""

    def __init__(self) -> None:
        self.model: Model
        self.windows: Windows
        self.options: dict[str, Any] = {}

    def __call__(self, model: Model, windows: Windows, **options: Any) -> Answer:
        """Remember and answer."""
        self.model, self.windows, self.options = model, windows, options
        return answer_of(("step",), names=model.names, sensors=len(model.names), notes=("a note of its own",))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    stand_in = Asked()
    monkeypatch.setattr("eccaht.plants.front.model.investigate_incident", stand_in)
    return stand_in


def arguments(plant: Path, *others: str, data: Path | None = None) -> list[str]:
    return ["identify", "--model", str(plant / "plant.model"), "--data", str(data or plant / "incident.csv"), *others]


def test_nothing_but_model_and_data_is_needed(plant: Path, asked: Asked, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(arguments(plant)) == 0
    out, err = capsys.readouterr()
    assert out.startswith("1 of 24 sensors is wrong since ")
    assert "Note: a note of its own" in err
    assert asked.options == {"start": None, "alpha": 0.05, "moved": []}
    assert asked.windows.names == asked.model.names


def test_windows_before_the_start_are_read_and_those_from_the_stop_on_are_not(plant: Path, asked: Asked) -> None:
    assert run(arguments(plant, "--start", ONSET, "--stop", "2024-03-07T09:00")) == 0
    starts, first = asked.windows.starts, asked.options["start"]
    assert starts[0] == np.datetime64("2024-03-07T06:00")
    assert starts[first] == np.datetime64(ONSET)
    assert starts[-1] == np.datetime64("2024-03-07T08:59")


def test_number_size_and_level_are_passed_on(plant: Path, asked: Asked) -> None:
    assert run(arguments(plant, "--anomalies", "0-4", "--least", "0.5", "--alpha", "0.01")) == 0
    assert asked.options == {"start": None, "alpha": 0.01, "least": 0.5, "number": (0, 4), "moved": []}


def test_json_page_and_picture(plant: Path, asked: Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(tmp_path / name) for name in ("p.svg", "p.html")]
    assert run(arguments(plant, "--json", "--plot", files[0], "--html", files[1], "--start", ONSET)) == 0
    document = json.loads(capsys.readouterr().out)
    assert [sensor["sensor"] for sensor in document["named"]] == [asked.model.names[0]]
    assert document["files"] == files
    assert "a note of its own" in document["notes"]
    assert document["settings"]["start"] == ONSET
    keys = {"verdict", "incidents", "onset", "end", "confidence", "sure", "cautions", "drill", "rankings", "timezone"}
    assert keys <= document.keys()
    assert document["verdict"] == "wrong"
    assert document["incidents"][0]["named"] == document["named"]
    page = Path(files[1]).read_text(encoding="utf-8")
    assert document["headline"] in page
    assert "plant.model" in page
    assert Path(files[0]).stat().st_size > 0


def test_a_silent_sensor_is_looked_at_and_an_absent_one_is_not(
    plant: Path, asked: Asked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pl.read_csv(plant / "incident.csv").drop("FT-101")
    lacking = tmp_path / "lacking.csv"
    table.with_columns(pl.lit(None, dtype=pl.Float64).alias("PT-101")).write_csv(lacking)
    assert run(arguments(plant, data=lacking)) == 2
    assert "FT-101" in capsys.readouterr().err
    assert run(arguments(plant, "--missing", "allow", data=lacking)) == 0
    assert "not looked at, because the data do not have them: FT-101" in capsys.readouterr().err
    assert asked.windows.names == tuple(name for name in asked.model.names if name != "FT-101")
    assert np.isnan(asked.windows.values[:, asked.windows.names.index("PT-101")]).all()


def test_a_constant_of_the_history_that_moves_is_passed_on(plant: Path, asked: Asked, tmp_path: Path) -> None:
    table, later = pl.read_csv(plant / "incident.csv"), tmp_path / "moved.csv"
    rows = pl.int_range(pl.len())
    table.with_columns(pl.when(rows < 60).then(75.0).otherwise(76.0).alias(SETPOINT)).write_csv(later)
    assert run(arguments(plant, data=later)) == 0
    (moved,) = asked.options["moved"]
    assert (moved.name, moved.usual, moved.read) == (SETPOINT, 75.0, 76.0)
    assert run(arguments(plant, "--stop", "2024-03-07T06:05", data=later)) == 0
    assert asked.options["moved"] == []


@pytest.mark.parametrize(
    ("others", "message"),
    [
        (["--follow"], "--follow needs --sums, with --anomalies N and --shift D"),
        (["--sums"], "--sums needs --anomalies N (how many sensors are wrong) and --shift D"),
        (["--budget", "5"], "--budget means a search by weighted sums (--sums), which needs --anomalies N"),
        (["--policy", "joint", "--shift", "1"], "--shift means a search by weighted sums (--sums), which needs --anom"),
        (["--seed", "0", "--anomalies", "3"], "--seed means a search by weighted sums (--sums), which needs --shift D"),
        (["--anomalies", "3", "--shift", "1", "--html", "p.html"], "--html is for whole windows and --shift for"),
        (["--anomalies", "3", "--shift", "1", "--least", "1"], "--least is for whole windows"),
        (["--anomalies", "24"], "needs more than the 24 sensors"),
        (["--anomalies", "x"], "whole number"),
        (["--least", "0"], "--least must be positive"),
        (["--alpha", "1"], "alpha"),
        (["--start", "yesterday"], "yesterday"),
        (["--start", "2030-01-01"], "the data have no row between 2030-01-01 and the end"),
        (["--stop", "2024-03-07T07:00", "--start", ONSET], "must be later than start"),
        (["--html", "page.txt"], "must end in .html"),
        (["--plot", "plot.gif"], "must end in"),
        (["--timeout", "3"], "add --follow"),
        (["--data", "absent.csv"], "absent.csv"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    plant: Path,
    asked: Asked,
    others: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(arguments(plant, *others)) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert message in err
    assert asked.options == {}
    assert list(tmp_path.iterdir()) == []


def test_zero_is_an_option_that_was_given() -> None:
    assert given({"budget": 0.0, "outliers": 0.0, "seed": 0}) == ["--budget", "--outliers", "--seed"]


def test_the_help_gives_the_policy_that_a_search_takes(capsys: pytest.CaptureFixture[str]) -> None:
    """The command knows it by its name alone, so that whole windows load no policy."""
    assert run(["identify", "--help"]) == 0
    assert f"[default: {DEFAULT_POLICY}]" in " ".join(capsys.readouterr().out.replace("│", " ").split())
