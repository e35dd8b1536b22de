"""Each number of a model file replaced by hostile ones: a model that a service can watch with, or one line."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from eccaht.base.arrays import Array
from eccaht.base.files import archive_bytes
from eccaht.plants.incident.drill import drill_trials, keeping
from eccaht.plants.model.calibration import calibrate_with_windows
from eccaht.plants.model.model import parse_model
from eccaht.service.rows import Rows
from eccaht.service.runtime.plant import LivePlant
from eccaht.service.settings import PlantOptions
from tests.service import plants

Parts = tuple[dict[str, Any], dict[str, Array]]
HOSTILE: list[Any] = [-1, 0, 0.5, 1e-300, 1e308, 2**63, 10**30, 10**400, "x", "a\0b", "\ud800", True, None, [], {}]
NUMBERS = [-1.0, 0.0, 2.5, 1e-308, 1e12, 1e30, 1e308, np.nan, np.inf]


@lru_cache(maxsize=1)
def parts() -> Parts:
    """Of a model with drills."""
    model, windows = calibrate_with_windows(plants.history(), window="2s")
    header, arrays = keeping(model, drill_trials(model, windows, runs=24)[0]).parts()
    return json.loads(json.dumps(header)), arrays


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places of a header; of lists the first three."""
    if before:
        yield before
    inner = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*before, key))


def watched(header: dict[str, Any], arrays: dict[str, Array]) -> bool:
    """Whether a service takes such a model, which it then must be able to use; a refusal is one line."""
    try:
        content = archive_bytes("model", 4, header, arrays)
    except ValueError:  # not a number of JSON: no file has it
        return False
    refusal = ""
    try:
        model = parse_model(content, "model")
        session = LivePlant.session_for(model, "digest", PlantOptions())
    except ValueError as error:
        refusal = str(error)
    if refusal:
        assert "\n" not in refusal
        assert len(refusal) <= 400
        return False
    plant = LivePlant("plant", model, "digest", 0, PlantOptions(), session, 10_000)
    times, values = plants.recording(8)
    plant.take(Rows(times, plants.NAMES, values))
    return True


def test_the_model_itself_is_watched() -> None:
    assert watched(*parts())


@pytest.mark.parametrize("part", ["columns", "reading", "drilled", "others"])
def test_each_value_of_the_header(part: str) -> None:
    header, arrays = parts()
    tried = 0
    for place in places(header):
        if (place[0] if place[0] in ("columns", "reading", "drilled") else "others") != part:
            continue
        for value in HOSTILE:
            changed = copy.deepcopy(header)
            inner = changed
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            watched(changed, arrays)
            tried += 1
    assert tried > 50


def test_each_array() -> None:
    header, arrays = parts()
    for name, array in arrays.items():
        changes = [np.full_like(array, value) for value in NUMBERS]
        for value in NUMBERS:
            for place in {0, array.size - 1}:
                changed = array.copy()
                changed.flat[place] = value
                changes.append(changed)
        changes += [array[None], np.zeros(0), np.zeros((0, 3)), np.array(1.0), np.zeros((2, 2))]
        for changed in changes:
            watched(header, arrays | {name: changed})
        assert not watched(header, {other: array for other, array in arrays.items() if other != name})


@pytest.mark.parametrize("windows", [-1.0, 0.0, 0.5, np.nan, np.inf, 1e308])
def test_an_impossible_number_of_windows_is_refused(windows: float) -> None:
    header, arrays = parts()
    assert "normal.peaks.windows" in arrays
    assert not watched(header, arrays | {"normal.peaks.windows": np.array(windows)})


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 501])
def test_columns_that_were_dropped_have_names_that_can_be_kept(name: str) -> None:
    """One that never changed in the history is reported by its name if it moves."""
    header, arrays = parts()
    header = copy.deepcopy(header)
    dropped = {**header["columns"][0], "kept": False, "reason": "constant", "scaled_by": "", "constant": 1}
    header["columns"].append({**dropped, "name": "fine"})
    assert watched(header, arrays)
    header["columns"][-1]["name"] = name
    assert not watched(header, arrays)


def test_a_constant_is_a_number_however_it_is_written() -> None:
    header, arrays = parts()
    header = copy.deepcopy(header)
    dropped = {**header["columns"][0], "kept": False, "reason": "constant", "scaled_by": "", "constant": 10**30}
    header["columns"].append({**dropped, "name": "far"})
    constant = parse_model(archive_bytes("model", 4, header, arrays), "model").constants["far"]
    assert type(constant) is float
    assert watched(header, arrays)
