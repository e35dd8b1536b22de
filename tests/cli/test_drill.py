"""`eccaht drill` shows what drills counted: new ones in quiet data, or those that the model keeps."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from eccaht.cli.drill import drill
from eccaht.data.windows import Windows
from eccaht.datasets.example import STATUS, write_example
from eccaht.incident.counts import Counts
from eccaht.model.calibration import calibrate
from eccaht.model.model import Model, load_model
from tests.incident.judges import example_counts


@dataclass(frozen=True)
class Drilled:
    counts: Counts
    factor: float


class Work:
    """Stands in for the drills: remembers what it was asked, and gives known counts."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}
        self.windows: Windows | None = None
        self.result: Drilled | None = Drilled(example_counts(), 0.3)
        self.keeps: Drilled | None = None

    def drilled(self, _: Model, windows: Windows, *, progress: Callable[[int], object], **options: Any) -> Any:
        progress(1)
        self.windows, self.options = windows, options
        return self.result

    def kept(self, _: Model) -> Drilled | None:
        return self.keeps

    def keeping(self, model: Model, drilled: Drilled) -> Model:
        self.keeps = drilled
        return model


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    stand_in, module = Work(), ModuleType("eccaht.incident.drill")
    for name in ("drilled", "kept", "keeping"):
        setattr(module, name, getattr(stand_in, name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return stand_in


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("plant")
    history, *_ = write_example(directory)
    calibrate([history], exclude=[STATUS]).save(directory / "plant.model")
    return directory


def test_new_drills_get_the_data_and_the_options(plant: Path, work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    drill(plant / "plant.model", data=[plant / "incident.csv"], runs=40, seed=7)
    assert work.options == {"runs": 40, "seed": 7, "alpha": 0.05}
    assert work.windows is not None
    assert work.windows.names == load_model(plant / "plant.model").names
    output = capsys.readouterr()
    assert output.out.startswith(example_counts().line(60.0))
    for row in example_counts().rows():
        assert all(cell in output.out for cell in row)
    assert "multiplies the evidence by 0.3, which is fitted to all drills" in output.out
    assert output.err == ""


def test_data_of_the_history_are_told(plant: Path, work: Work, capsys: pytest.CaptureFixture[str]) -> None:
    drill(plant / "plant.model", data=[plant / "history.csv"])
    assert work.options["runs"] == 200
    assert "lie in the time of the history" in capsys.readouterr().err


def test_without_data_what_the_model_keeps_is_shown(
    plant: Path, work: Work, capsys: pytest.CaptureFixture[str]
) -> None:
    work.keeps = Drilled(example_counts(1.0), 1.0)
    drill(plant / "plant.model")
    assert work.windows is None
    output = capsys.readouterr().out
    assert output.startswith(example_counts(1.0).line(60.0))
    assert "multiplies" not in output


def test_files_and_documents(plant: Path, work: Work, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot, out, data = tmp_path / "drills.png", tmp_path / "new.model", [plant / "incident.csv"]
    drill(plant / "plant.model", data=data, alpha=0.1, plot=plot, out=out, as_json=True)
    document, counts = json.loads(capsys.readouterr().out), example_counts()
    assert document["files"] == [str(plot), str(out)]
    assert plot.stat().st_size > 1000
    assert work.keeps is work.result
    assert load_model(out).names == load_model(plant / "plant.model").names
    assert document["settings"] == {"data": [str(data[0])], "runs": 200, "seed": 0, "alpha": 0.1}
    assert (document["faults"], document["sets_right"]) == (counts.faults, counts.right)
    assert document["quiet_hours"] == pytest.approx(counts.quiet_windows / 60)
    assert len(document["kinds"]) == len(counts.cells)
    assert document["factor"] == 0.3


def test_the_model_itself_may_be_replaced(plant: Path, work: Work, tmp_path: Path) -> None:
    model = tmp_path / "plant.model"
    model.write_bytes((plant / "plant.model").read_bytes())
    drill(model, data=[plant / "incident.csv"], out=model)
    assert load_model(model).names
    assert work.keeps is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "has no drills: give --data QUIET, or calibrate it without --no-drill"),
        ({"runs": 10}, "--runs needs new drills: give --data QUIET"),
        ({"out": Path("new.model")}, "--out needs new drills"),
        ({"data": ["incident.csv"], "alpha": 1.0}, "alpha is an error probability"),
        ({"data": ["incident.csv"], "plot": Path("drills.txt")}, "must end in .png"),
        ({"data": ["incident.csv"], "plot": Path("plant.model.png"), "out": Path("plant.model.png")}, "overwrite"),
        ({"data": ["incident.csv"], "out": Path("incident.csv")}, "would overwrite --data"),
    ],
)
@pytest.mark.usefixtures("work")
def test_what_cannot_be_drilled_is_said_in_one_line(
    plant: Path, options: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(plant)
    if "data" in options:
        options = options | {"data": [Path(name) for name in options["data"]]}
    before = sorted(path.name for path in plant.iterdir())
    with pytest.raises(ValueError, match=message) as error:
        drill(Path("plant.model"), **options)
    assert "\n" not in str(error.value)
    assert sorted(path.name for path in plant.iterdir()) == before
