"""What is plain from the data is reported at once, and nothing else is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from eccaht import UnknownShift, make_policy
from eccaht.base.arrays import Array
from eccaht.cli.main import run
from eccaht.plants.incident.search import Finding, investigate
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model
from eccaht.plants.replay import Replay
from tests.plants.incident.search_plants import NAMES, calibrated, incident, prepared, readings, write


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return calibrated(tmp_path_factory.mktemp("plant"))


def look(
    model: Model, path: Path, values: Array, *, vectors: bool = False, stopping: str | None = "default", **pose: object
) -> Finding:
    problem = model.problem(**({"shift": 1.0, "n_anomalies": 2, "budget": 4.0} | pose))  # type: ignore[arg-type]
    replay = Replay(prepared(model, path, values), problem)
    return investigate(make_policy("joint", problem, stopping=stopping), replay, vectors=vectors, max_measurements=60)


def test_normal_incidents_and_quiet_stretches_bring_no_caution(model: Model, tmp_path: Path) -> None:
    for seed in range(4):
        assert look(model, tmp_path, incident(360, seed)[0], vectors=seed % 2 == 0).cautions == ()
        quiet = readings(360, 2000 + seed)
        assert look(model, tmp_path, quiet, n_anomalies=(0, 3)).cautions == ()
        assert look(model, tmp_path, quiet).cautions == ()  # two were asked for, and none is wrong


def test_a_frozen_record_counts_once(model: Model, tmp_path: Path) -> None:
    values = incident(360, 1)[0]
    values[30:] = values[30]
    finding = look(model, tmp_path, values, stopping=None)
    assert finding.n_measurements == 6  # five windows, and the first of those that are all the same
    assert finding.entries[-1].inflation > 3.0  # which is one row
    assert len(finding.cautions) == 1
    assert "54 windows repeat the one before in every sensor" in finding.cautions[0]


@pytest.mark.parametrize("vectors", [False, True])
def test_the_wrong_sign_is_noticed(model: Model, tmp_path: Path, vectors: bool) -> None:
    for seed in range(6):
        values, truth = incident(360, seed)
        (caution,) = look(model, tmp_path, values, shift=-1.0, vectors=vectors).cautions
        assert all(name in caution for name in truth)
        assert "try --shift 1 or --shift unknown:1" in caution
        (caution,) = look(model, tmp_path, values, shift=UnknownShift(1.0, "negative"), vectors=vectors).cautions
        assert "the other sign" in caution


def test_one_wrong_sign_of_two_is_noticed(model: Model, tmp_path: Path) -> None:
    values, truth = incident(360, 2)
    k = NAMES.index(truth[0])
    values[:, k] -= 2 * 1.349 * np.sqrt(2.0)
    (caution,) = look(model, tmp_path, values).cautions
    assert f"the other sign in {truth[0]} (" in caution
    assert "try --shift unknown:1." in caution
    assert look(model, tmp_path, values, shift=UnknownShift(1.0)).cautions == ()


@pytest.mark.parametrize("kind", ["stuck", "silent"])
def test_a_sensor_that_stands_still_is_named(
    model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    values, truth = incident(360, 5)
    k = NAMES.index(truth[0])
    values[60:, k] = values[60, k] if kind == "stuck" else np.nan
    model.save(tmp_path / "plant.model")
    data = str(write(tmp_path / "new.csv", values))
    command = ["identify", "--model", str(tmp_path / "plant.model"), "--data", data, "--anomalies", "2", "--shift", "1"]
    assert run([*command, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert {sensor["sensor"]: sensor["kind"] for sensor in printed["named"]} == {truth[0]: kind, truth[1]: "shifted"}
    assert printed["named"][0]["since"].endswith("18:10:00")
    assert "confidence is about the other sensors" in printed["cautions"][0]
    assert run(command) == 0
    lines = " ".join(capsys.readouterr().out.split())
    assert f"Named {truth[0]} ({kind}), {truth[1]}:" in lines
    assert f"CAUTION: {truth[0]} {'stopped moving' if kind == 'stuck' else 'fell silent'}" in lines
    finding = look(model, tmp_path, values, stopping=None)  # from Python too
    assert [(culprit.sensor, culprit.kind) for culprit in finding.culprits] == [(truth[0], kind)]


def test_a_model_that_is_not_fit_claims_no_error_rate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slow = calibrated(tmp_path, memory=0.99)
    finding = look(slow, tmp_path, incident(360, 1)[0])
    assert finding.refuted
    assert finding.cautions[0].startswith("the model is not fit for a search by sums: independent windows")
    slow.save(tmp_path / "plant.model")
    data = ["--model", str(tmp_path / "plant.model"), "--data", str(tmp_path / "new.csv")]
    assert run(["identify", *data, "--anomalies", "2", "--shift", "1", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["settled"] is False
    assert printed["model_verdict"]["verdict"] == "not fit"
    assert printed["model_verdict"]["error"] > 0.5 > printed["model_verdict"]["promised_error"]
    assert run(["identify", *data, "--anomalies", "2", "--shift", "1"]) == 0
    lines = " ".join(capsys.readouterr().out.split())
    assert "CAUTION: the model is not fit for a search by sums" in lines
    assert "only if the model held, which its own history refutes" in lines
    assert run(["diagnose", str(tmp_path / "plant.model"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["error"] == printed["model_verdict"]["error"]


def test_a_silent_sensor_that_was_silent_before_may_be_one_of_the_wrong_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    history = readings(9000, 0)
    values, truth = incident(360, 5)
    k = NAMES.index(truth[0])
    history[1000:1300, k] = np.nan  # 50 minutes, so that an hour is no news
    values[:, k] = np.nan
    calibrate([write(tmp_path / "history.csv", history)], window="1min").save(tmp_path / "plant.model")
    data = ["--model", str(tmp_path / "plant.model"), "--data", str(write(tmp_path / "new.csv", values))]
    assert run(["identify", *data, "--anomalies", "2", "--shift", "1", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [sensor["sensor"] for sensor in printed["named"]] == [truth[1]]  # not a second one that is normal
    assert truth[0] in printed["notes"][0]
