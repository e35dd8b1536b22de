"""A model keeps its drills bit for bit, and drills that a stranger has changed are refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from eccaht.incident.drill import drill_history, keeping, kept, total
from eccaht.model.calibration import calibrate_with_windows
from eccaht.model.model import Model, load_model
from tests.checks.archives import Arrays, edit
from tests.checks.hostile import attempt, edited
from tests.incident.judges import drill_of
from tests.model.histories import history

RUNS = 12


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drilled")


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    calibrated, windows = calibrate_with_windows(history(folder / "h.csv", rows=700, step=60), window="1min")
    told: list[int] = []
    drilled = drill_history(calibrated, windows, runs=RUNS, progress=told.append)
    assert sum(told) == total(RUNS)
    return keeping(calibrated, drilled)


@pytest.fixture
def path(model: Model, tmp_path: Path) -> Path:
    model.save(tmp_path / "plant.model")
    return tmp_path / "plant.model"


def test_drills_survive_a_file_bit_for_bit(model: Model, path: Path) -> None:
    before, after = kept(model), kept(load_model(path))
    assert before is not None
    assert after is not None
    for name, array in before.quiet.arrays().items():
        assert_array_equal(after.quiet.arrays()[name], array)
    assert after.counts == before.counts
    assert after.promise.factor == before.promise.factor
    assert str(after.promise.shares) == str(before.promise.shares)
    assert_array_equal(after.promise.table.values, before.promise.table.values)
    first = path.read_bytes()
    load_model(path).save(path)
    assert path.read_bytes() == first


def test_a_model_without_drills_keeps_none(folder: Path) -> None:
    assert kept(calibrate_with_windows(folder / "h.csv", window="1min")[0]) is None


def test_a_history_that_is_too_short_is_not_drilled(tmp_path: Path) -> None:
    calibrated, windows = calibrate_with_windows(history(tmp_path / "h.csv", rows=300, step=60), window="1min")
    with pytest.raises(ValueError, match="drills need 600 windows of history, and there are 300"):
        drill_history(calibrated, windows, runs=RUNS)


def put(name: str, value: object) -> Callable[[dict[str, Any], Arrays], object]:
    return lambda content, _: content["drilled"].update({name: value})


def array(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any], Arrays], object]:
    return lambda _, arrays: arrays.update({f"drilled.{name}": change(arrays[f"drilled.{name}"])})


@pytest.mark.parametrize(
    "damage",
    [
        put("counts", None),
        put("table", {"edges": [0.5], "values": [2.0]}),
        put("more", 1),
        *(put("shares", {"nothing": value, "silent": 0.9, "stuck": None}) for value in (-0.1, 1.1, "1", True)),
        *(put("shares", value) for value in (None, {}, {"nothing": 0.9})),
        lambda content, _: content["drilled"].pop("table"),
        lambda _, arrays: arrays.pop("drilled.bars"),
        lambda _, arrays: arrays.update({"drilled.more": np.ones(3)}),
        array("bars", lambda bars: np.full_like(bars, np.nan)),
        array("alarms", lambda alarms: -alarms),
        array("power", lambda power: power[:, :-1].copy()),
        array("still", lambda still: still[:-1].copy()),
        array("lengths", lambda lengths: lengths[::-1].copy()),
        array("curves", lambda curves: curves[..., ::-1].copy()),
    ],
)
def test_damaged_drills_are_refused_in_one_line(path: Path, damage: Callable[[dict[str, Any], Arrays], object]) -> None:
    edit(path, damage)
    with pytest.raises(ValueError, match=r".") as error:
        kept(load_model(path))
    assert "\n" not in str(error.value)


def test_drills_of_other_sensors_are_refused(model: Model) -> None:
    drilled = kept(model)
    assert drilled is not None
    fewer = replace(drilled, quiet=drilled.quiet.of(np.array([0, 1])))
    with pytest.raises(ValueError, match="of other sensors"):
        kept(keeping(model, fewer))


def use(path: Path) -> None:
    """Load the drills of a model, and measure with them what can be measured."""
    drilled = kept(load_model(path))
    if drilled is None:
        return
    yardstick = drilled.quiet.yardstick(30)
    assert np.isfinite(yardstick.bar(2)).all()
    assert np.isfinite(yardstick.threshold(0.05))
    assert not drilled.promise.confidence(drill_of(True, 3.0)) > 1.0
    assert drilled.counts.line(60.0)


def test_whatever_strangers_write_is_refused_or_soundly_used(path: Path) -> None:
    data, rng = path.read_bytes(), np.random.default_rng(11)
    outcomes = []
    for _ in range(150):
        path.write_bytes(edited(data, data, rng))
        outcomes.append(attempt(use, path))
    assert set(outcomes) <= {"refused", "taken"}
    assert "refused" in outcomes
