"""What has declared fields is the same after a file, and each field that breaks its declaration is refused."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from eccaht import Problem, Simulator, UnknownShift, Watch, families, load_policy, load_watch, make_policy, policy_names
from eccaht.base.codec import State, state_of
from eccaht.base.files import read_archive, write_archive
from eccaht.plants.front.rows import _VERSION as ROW_WATCH
from eccaht.plants.model import load_model, model_file
from eccaht.plants.watch import state as plant_state
from eccaht.plants.watch.plant import PlantWatch
from eccaht.streams.policies import storage
from tests.checks.fields import damages, same
from tests.plants.watch.plants import plant, readings, scaled

NOISE = families.toeplitz(8, 0.6)
KNOWN = Problem(NOISE, shift=4.0, n_anomalies=2, budget=3.0)
CASES: dict[str, tuple[str, Problem, dict[str, Any]]] = {
    **{name: (name, KNOWN, {}) for name in policy_names() if name not in ("hds", "oracle-design")},
    "oracle-design": ("oracle-design", KNOWN, {"anomalies": [1, 5]}),
    "hds": ("hds", KNOWN.replace(covariance=families.identity(8)), {}),
    "robust readings": ("joint", KNOWN, {"outliers": 0.05}),
    "population": ("joint", KNOWN.replace(shift=UnknownShift(3.0), n_anomalies=(0, 3)), {"posterior": "population"}),
    "wide": ("joint", KNOWN, {"posterior": "wide"}),
}


def taken(load: Callable[[Path], object], path: Path, version: int, state: State) -> bool:
    """Is a file of this state loaded, rather than refused in one line?"""
    write_archive(path, path.name, version, state)
    try:
        load(path)
    except ValueError as error:
        return "\n" in str(error)
    return True


@pytest.mark.parametrize("case", CASES)
def test_policies(case: str, tmp_path: Path) -> None:
    name, problem, options = CASES[case]
    policy, world = make_policy(name, problem, seed=1, **options), Simulator(problem, seed=2)
    for _ in range(5):
        policy.tell(policy.ask(), world.measure(policy.ask()))
    if policy.can.batches:
        policy.ask(batch=2)
        policy.ask(available=np.arange(8) != 3)
    path, fields = tmp_path / "policy", storage._fields(policy)
    policy.save(path)
    assert same(state_of(load_policy(path), fields), state_of(policy, fields))
    sound = read_archive(path, "policy", 5, dict)
    damaged = damages(policy, sound["state"], {"K": 8, "n": 2, "t": 5}, fields)
    assert [what for what, state in damaged if taken(load_policy, path, 5, sound | {"state": state})] == []


def test_watches_of_a_problem(tmp_path: Path) -> None:
    watch, rng = Watch(KNOWN, false_alarm_every=1000), np.random.default_rng(0)
    rows = NOISE.sample(rng, 120)
    rows[20:50, 2] += 6.0
    rows[70:, 4] += 6.0
    rows[90, 1] = np.nan
    for row in rows:
        watch.update(row)
    assert watch.alarm is not None
    assert watch.past is not None
    path = tmp_path / "watch"
    watch.save(path)
    assert same(state_of(Watch.load(path)), state_of(watch))
    sound = read_archive(path, "watch", 7, dict)
    for what, state in damages(watch, sound["state"], {"K": 8, "n": 2}):
        assert not taken(Watch.load, path, 6, sound | {"state": state}), what


def test_watches_of_a_plant() -> None:
    engine, rows = PlantWatch(plant()[0]), readings(260, 8)
    rows[100:150, 3] += 14.0
    rows[240:, 4] += 14.0
    for k, row in enumerate(scaled(rows)):
        engine.take(row, np.datetime64("2024-05-01", "us") + np.timedelta64(k, "m"))
    assert engine.alarm is not None
    assert engine.past is not None
    sound, K = plant_state.plant_state(engine), {"K": len(rows[0])}
    assert same(plant_state.plant_state(plant_state.built_plant(engine.model, deepcopy(sound))), sound)
    parts = {"state": engine, "decimals": engine._decimals}
    for part, holder in parts.items():
        for what, state in damages(holder, sound[part], K):
            with pytest.raises(ValueError, match=r"damaged|lacks|unknown") as error:
                pytest.fail(f"taken: {what}, {plant_state.built_plant(engine.model, deepcopy(sound) | {part: state})}")
            assert "\n" not in str(error.value)


def test_models(tmp_path: Path) -> None:
    model, _ = plant()
    path, K = tmp_path / "model", len(model.names)
    model.save(path)
    sound = read_archive(path, "model", 7, dict)
    assert same(load_model(path).stored(), sound)
    for what, state in damages(model, sound["model"], {"K": K}, model_file.MODEL):
        assert not taken(load_model, path, 7, sound | {"model": state}), what
    for what, state in damages(SimpleNamespace(**model.reading), sound["reading"], {}, model_file.READING):
        assert not taken(load_model, path, 7, sound | {"reading": state}), what


def test_watches_of_rows(tmp_path: Path) -> None:
    model, rows = plant()[0], readings(40, 8)
    watch, first = model.watch(), np.datetime64("2024-05-01", "us")
    for k, row in enumerate(rows):
        watch.update(row, first + np.timedelta64(20 * k, "s"))
    watch.update(rows[0], np.datetime64("2024-06-01", "us"))
    watch.session.report("caution", "made up", first)
    watch.session.operator.shelve(model.names[0], first)
    path, names, version = tmp_path / "row-watch", model.names, ROW_WATCH
    watch.save(path)
    sound = read_archive(path, "row-watch", version, dict)
    assert sound["rows"]["intake"]["horizon"]["doubted"]
    load_watch(path).save(path)
    assert same(read_archive(path, "row-watch", version, dict), sound)
    for what, state in damages(watch, sound["rows"], {"columns": len(names)}):
        assert not taken(load_watch, path, version, sound | {"rows": state}), what
    for what, state in damages(watch.session, sound["session"]["session"], {"K": len(names)}):
        session = sound["session"] | {"session": state}
        assert not taken(load_watch, path, version, sound | {"session": session}), what
