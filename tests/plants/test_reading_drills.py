"""What is found with few readings: the same faults, honest levels, and more readings find more."""

import json
from pathlib import Path

import numpy as np
import pytest

import eccaht
from eccaht.cli.main import run
from eccaht.plants.front.reading_drills import FULL, IN_TURN, TELLING, ReadingDrills
from eccaht.plants.model.calibration import calibrate
from eccaht.plants.model.model import Model
from eccaht.plants.watch.active import ActiveEngine, alarms_of, budget_of, counted, masked, replayed
from tests.plants.watch.plants import plant, readings


@pytest.fixture(scope="module")
def model() -> Model:
    return calibrate(readings(240, 0), window="1rows")


@pytest.fixture(scope="module")
def drills(model: Model) -> ReadingDrills:
    return model.drill(readings=[2, 6, None], runs=21, false_alarms="1/100w", progress=False)


def test_the_same_faults_are_counted_for_every_number_of_readings(drills: ReadingDrills) -> None:
    assert [(each.readings, each.rule) for each in drills.counts] == [
        (6.0, FULL),
        *[(many, rule) for many in (2.0, 6.0) for rule in (TELLING, IN_TURN)],
    ]
    assert all(0 < each.found <= each.drills <= 21 for each in drills.counts)
    assert "2 of 6 readings" in drills.line


def test_all_readings_are_the_same_by_either_rule(drills: ReadingDrills) -> None:
    telling, in_turn = (each for each in drills.counts if each.readings == 6 and each.rule != FULL)
    assert telling._replace(rule="") == in_turn._replace(rule="")


def test_drills_can_be_repeated_and_drawn(model: Model, drills: ReadingDrills, tmp_path: Path) -> None:
    again = model.drill(readings=[2], runs=21, false_alarms="1/100w", progress=False)
    assert again.counts == drills.counts[1:3]
    assert len(drills.to_frame()) == 5
    drills.plot(tmp_path / "price.png")
    assert (tmp_path / "price.png").stat().st_size > 10_000


def test_alarms_of_statistics_are_those_of_the_engine() -> None:
    model = plant()[0]
    assert model.normal is not None
    values, missing = model.quiet
    values = values[:400].copy()
    values[200:260, 2] += 8.0
    budget = budget_of(model, 2)
    plan = counted(budget, values, missing[:400])
    shown = replayed([(slice(0, 400), model.normal)], values, missing[:400], plan)
    engine, begun = ActiveEngine(model.normal, 50.0, plan), []
    for t, row in enumerate(values):
        if engine.step(masked(row, engine.ask())[None]).began[0]:
            begun.append(t)
    assert alarms_of(shown, engine.limits) == begun
    assert begun


def test_the_shell_means_the_same(model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plant.model"
    model.save(path)
    rows = tmp_path / "quiet.csv"
    np.savetxt(rows, readings(110, 5), delimiter=",", header=",".join(model.names), comments="")
    arguments = ["drill", str(path), "--data", str(rows), "--readings", "2,all", "--runs", "7"]
    assert run([*arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    found = eccaht.load_model(path).drill(rows, readings=[2, None], runs=7, progress=False).to_dict()
    assert document["readings"] == json.loads(json.dumps(found["readings"]))
    assert run(arguments) == 0
    assert "in turn" in capsys.readouterr().out
    for wrong in ("2,many", "0.1"):
        assert run(["drill", str(path), "--readings", wrong]) == 2
