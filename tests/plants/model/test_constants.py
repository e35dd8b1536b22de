"""A column that never changed in the history is remembered, and named once it moves."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from eccaht.plants.data.windows import Moved
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model, load_model
from tests.plants.model.histories import START, clock, signals, write_csv

ROWS = 900


def moved_constants(model: Model, path: Path, stop: str | None = None) -> list[Moved]:
    return model.prepare(path, stop=stop, missing="allow", bad="skip").moved()


def table(path: Path, valve: list[float], text: str = "on") -> Path:
    columns = [clock(ROWS), *signals(ROWS, 2).T.tolist(), valve, [0.1] * ROWS, [text] * ROWS]
    return write_csv(path, ["time", "a", "b", "valve", "setpoint", "mode"], columns)


def test_a_constant_that_moves(tmp_path: Path) -> None:
    calibrate(table(tmp_path / "h.csv", [7.0] * ROWS)).save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert model.constants == {"valve": 7.0, "setpoint": 0.1}
    assert model.prepare(tmp_path / "h.csv", missing="allow", bad="skip").moved() == []
    new = table(tmp_path / "new.csv", [7.0] * 500 + [8.5] * 400, "off")
    since = START + np.timedelta64(500, "s")
    assert model.prepare(new, missing="allow", bad="skip").moved() == [Moved("valve", 7.0, 8.5, since)]
    assert model.prepare(new, stop="2017-09-25T18:05", missing="allow", bad="skip").moved() == []


def test_columns_that_are_not_there_have_not_moved(tmp_path: Path) -> None:
    model = calibrate(table(tmp_path / "h.csv", [7.0] * ROWS))
    columns = [clock(ROWS), *signals(ROWS, 2).T.tolist()]
    lacking = write_csv(tmp_path / "new.csv", ["time", "a", "b"], columns)
    assert model.prepare(lacking, missing="allow", bad="skip").moved() == []


# -- labels: columns that say which rows are anomalous ---------------------------------------------------


def labelled(path: Path, name: str, label: Sequence[object]) -> Path:
    columns = [clock(ROWS), *signals(ROWS, 2).T.tolist(), label, [3] * ROWS]
    return write_csv(path, ["time", "a", "b", name, "same"], columns)


def reasons(model: Model) -> dict[str, str]:
    return {column.name: column.reason for column in model.columns}


LABELS = ["ATT_FLAG", "anomaly", "Anomalies", "label", "Labels", "attack", "is_anomaly", "changepoint", "pump-fault"]


@pytest.mark.parametrize("name", [*LABELS, "fault", "Change_Point", "Normal/Attack"])
@pytest.mark.parametrize("values", [[0, 0], [0, 1], [-999, 1], [1, -1], ["True", "False"], ["Normal", "Attack"]])
def test_labels_are_no_sensors_whatever_they_hold(name: str, values: list[object], tmp_path: Path) -> None:
    path = labelled(tmp_path / "h.csv", name, [values[k // 60 % 2] for k in range(ROWS)])
    model = calibrate(path, window="10s")
    assert model.names == ("a", "b")
    assert reasons(model)[name] == "looks like a label"
    assert model.constants == {"same": 3.0}


@pytest.mark.parametrize("name", ["default", "labelling", "attacker", "faulting", "unlabel", "alarm", "valve"])
def test_other_names_and_other_values_are_no_labels(name: str, tmp_path: Path) -> None:
    bits = [k // 60 % 2 for k in range(ROWS)]
    assert name in calibrate(labelled(tmp_path / "h.csv", name, bits), window="10s").names
    for values in ([0.0, 0.5], [0, 2], ["on", "off"]):
        path = labelled(tmp_path / "h.csv", "fault", [values[bit] for bit in bits])
        assert "fault" in calibrate(path, window="10s").names


def test_a_label_in_new_data_is_neither_unknown_nor_a_constant_that_moved(tmp_path: Path) -> None:
    calibrate(labelled(tmp_path / "h.csv", "ATT_FLAG", [0] * ROWS), window="10s").save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    new = labelled(tmp_path / "new.csv", "ATT_FLAG", [-999] * 500 + [1] * 400)
    assert moved_constants(model, new) == []


def test_a_label_is_kept_if_it_is_named(tmp_path: Path) -> None:
    path = labelled(tmp_path / "h.csv", "ATT_FLAG", [k // 60 % 2 for k in range(ROWS)])
    (note,) = calibrate(path, window="10s").reading["notes"]
    assert "'*,ATT_FLAG'" in note
    for columns in (["*,ATT_FLAG"], ["*", "ATT_FLAG"], ["a", "b", "ATT_FLAG"]):
        model = calibrate(path, columns=columns, window="10s")
        assert model.names == ("a", "b", "ATT_FLAG")
        assert model.reading["notes"] == []
    assert calibrate(path, columns=["*"], window="10s").names == ("a", "b")
    constant = calibrate(labelled(path, "ATT_FLAG", [0] * ROWS), columns=["a,b,ATT_FLAG"], window="10s")
    assert constant.constants == {"ATT_FLAG": 0.0}


def test_labels_of_frames(tmp_path: Path) -> None:
    a, b = signals(ROWS, 2).T
    columns = {"time": clock(ROWS), "a": a, "b": b, "label": np.arange(ROWS) > 500, "attack": [0] * ROWS}
    pl.DataFrame(columns).write_parquet(tmp_path / "h.parquet")
    for data in (pl.DataFrame(columns), tmp_path / "h.parquet"):
        model = calibrate(data, window="10s")
        assert reasons(model)["label"] == reasons(model)["attack"] == "looks like a label"
    assert "label, attack" in model.reading["notes"][0]
