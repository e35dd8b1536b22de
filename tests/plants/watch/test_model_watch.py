"""`Watch` of a model: units, files that go on bit for bit, and untrusted files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eccaht import Alarm, Watch
from eccaht.plants.model.model import Model, load_model
from eccaht.plants.watch.plant import PlantWatch
from tests.checks.archives import Arrays, edit
from tests.checks.hostile import attempt, edited
from tests.plants.watch.plants import plant, readings, scaled

NUMBERS = ("time", "onset", "onset_interval", "decision", "sizes", "beliefs")
START = np.datetime64("2024-05-01T00:00", "us")


def model() -> Model:
    return plant()[0]


def incident() -> np.ndarray:
    """Raw readings: a step of sensor 3 in windows 100 to 149, sensor 2 silent later, sensor 1 stuck at the end."""
    rows = readings(260, 8)
    rows[100:150, 3] += 14.0
    rows[170:190, 2] = np.nan
    rows[200:, 1] = rows[199, 1]
    return rows


def test_windows_and_sizes_are_in_units_of_the_readings() -> None:
    calibrated = model()
    watch, engine = Watch(calibrated), PlantWatch(calibrated)
    for row in incident():
        mine, its = watch.update(row), engine.update(scaled(row))
        assert watch.evidence == engine.evidence
        assert (mine is None) == (its is None)
        if mine is not None and its is not None:
            np.testing.assert_array_equal(mine.sizes, its.sizes * calibrated.scale[its.decision])
    assert watch.past is not None
    assert watch.past.names == ("c4",)
    assert watch.past.sizes[0] == pytest.approx(14.0, rel=0.25)
    assert watch.still == {"c2": "stuck"}
    assert watch.state == "alarm"


def test_the_rate_rests_on_what_was_counted() -> None:
    assert Watch(model(), false_alarm_every=20).basis == "counted"
    assert Watch(model(), false_alarm_every=1e6).basis == "extrapolated"


@pytest.mark.parametrize(("moment", "dated"), [(20, True), (101, False), (130, True), (155, False), (230, True)])
def test_a_saved_watch_goes_on_bit_for_bit(tmp_path: Path, moment: int, dated: bool) -> None:
    watch, rows = Watch(model()), incident()
    second = np.timedelta64(round(watch.engine.model.seconds * 1e6), "us")  # type: ignore[union-attr]
    times = [START + t * second if dated else None for t in range(len(rows))]
    for row, time in zip(rows[:moment], times[:moment], strict=True):
        watch.update(row, time)
    watch.save(tmp_path / "watch")
    loaded = Watch.load(tmp_path / "watch")
    for row, time in zip(rows[moment:], times[moment:], strict=True):
        a, b = loaded.update(row, time), watch.update(row, time)
        assert loaded.evidence == watch.evidence
        for one, other in ((a, b), (loaded.alarm, watch.alarm), (loaded.past, watch.past)):
            assert (one is None) == (other is None)
            if one is not None and other is not None:
                assert all(np.array_equal(*pair, equal_nan=True) for pair in _numbers(one, other))
                assert one.names == other.names
    loaded.save(tmp_path / "a")
    watch.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def _numbers(one: Alarm, other: Alarm) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(np.asarray(getattr(one, key)), np.asarray(getattr(other, key))) for key in NUMBERS]


def test_bad_windows_and_options() -> None:
    watch = Watch(model(), false_alarm_every=100)
    watch.update({"c1": 0.5}, None)
    with pytest.raises(ValueError, match="6 numbers"):
        watch.update(np.zeros(7))
    with pytest.raises(ValueError, match="unknown stream 'c9'"):
        watch.update({"c9": 1.0})
    with pytest.raises(ValueError, match="with every window of a watch, or with none"):
        watch.update(np.zeros(6), START)
    with pytest.raises(ValueError, match="is for problems"):
        Watch(model(), threshold="proven")
    with pytest.raises(ValueError, match="at least one window"):
        Watch(model(), false_alarm_every=0.2)
    with pytest.raises(ValueError, match="does not say what is normal"):
        Watch(replace(model(), normal=None))
    assert watch.time == 1


# -- untrusted files --------------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    watch = Watch(model())
    for row in incident()[:120]:
        watch.update(row)
    assert watch.alarm is not None
    watch.save(tmp_path / "watch")
    return tmp_path / "watch"


def put(name: str, value: object) -> Callable[[dict[str, Any], Arrays], object]:
    return lambda content, _: content["state"].update({name: value})


def array(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any], Arrays], object]:
    return lambda _, arrays: arrays.update({name: change(arrays[name])})


@pytest.mark.parametrize(
    "damage",
    [
        put("counts", [1, 2]),
        put("counts", [-1, 0, 0]),
        put("standing", [[0, "asleep", 3]]),
        put("standing", [[77, "stuck", 3]]),
        put("follow", None),
        put("follow", [3, 10**6]),
        put("alarm", None),
        put("false_alarm_every", 0.0),
        put("start", "now"),
        put("decimals", {"c1": -1}),
        put("places", [0]),
        put("changed", 1),
        put("more", 1),
        lambda content, _: content.update(model=None),
        array("recent.values", lambda values: np.full_like(values, np.inf)),
        array("recent.times", lambda times: times[:-1]),
        array("engine.r", lambda r: np.full_like(r, np.inf)),
        array("engine.on", lambda on: on + 2),
        array("engine.count", lambda count: count - 10**6),
        array("engine.still", lambda still: still[:, :-1].copy()),
        array("follow.level", lambda level: level[:-1].copy()),
        array("alarm.decision", lambda decision: decision + 6),
        array("alarm.beliefs", lambda beliefs: beliefs + 1.0),
        array("model.normal.tails.table", lambda table: table[:, ::-1].copy()),
        array("model.normal.precision", lambda precision: -precision),
        array("model.normal.peaks.heights", lambda heights: heights[:, ::-1].copy()),
        array("model.normal.local.knots", lambda knots: knots[:, :-1].copy()),
        lambda _, arrays: arrays.pop("model.normal.drifts.edge"),
        lambda _, arrays: arrays.update({"model.normal.more": np.ones(2)}),
        lambda _, arrays: arrays.update({"more": np.ones(2)}),
    ],
)
def test_damaged_files_are_refused_in_one_line(path: Path, damage: Callable[[dict[str, Any], Arrays], object]) -> None:
    edit(path, damage)
    with pytest.raises(ValueError, match="is not a valid watch file") as error:
        Watch.load(path)
    assert "\n" not in str(error.value)


def use(path: Path) -> None:
    """Go on with a watch for some windows, two of them in trouble."""
    watch = Watch.load(path)
    rows = incident()[120:140]
    rows[5, 0], rows[7] = np.nan, 1e6
    with np.errstate(all="ignore"):
        for row in rows:
            watch.update(row)
    assert not watch.evidence < 0.0
    watch.save(path)
    Watch.load(path)


@pytest.mark.parametrize("count", [60, pytest.param(3000, marks=pytest.mark.slow)])
def test_whatever_is_written_is_refused_or_soundly_used(path: Path, count: int) -> None:
    data, rng = path.read_bytes(), np.random.default_rng(11)
    outcomes = []
    for _ in range(count):
        path.write_bytes(edited(data, data, rng))
        outcomes.append(attempt(use, path))
    assert set(outcomes) <= {"refused", "taken"}
    assert "refused" in outcomes


def test_a_model_survives_its_file_bit_for_bit(tmp_path: Path) -> None:
    model().save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    rows, watches = scaled(incident()), [PlantWatch(each) for each in (model(), loaded)]
    for row in rows:
        for watch in watches:
            watch.update(row)
        assert watches[0].evidence == watches[1].evidence
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
