"""Each number of a model file replaced by hostile ones: a model that a service can watch with, or one line."""

import copy
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from eccaht.base.codec import State
from eccaht.base.files import archive_bytes
from eccaht.plants.incident.drill import drill_trials, keeping
from eccaht.plants.intake import Rows
from eccaht.plants.model.calibration import calibrate_with_windows
from eccaht.plants.model.model import parse_model
from eccaht.service.runtime.plant import LivePlant
from eccaht.service.settings import PlantOptions
from tests.service import plants

HOSTILE: list[Any] = [-1, 0, 0.5, 1e-300, 1e308, 2**63, 10**30, 10**400, "x", "a\0b", "\ud800", True, None, [], {}]
NUMBERS = [-1.0, 0.0, 2.5, 1e-308, 1e12, 1e30, 1e308, np.nan, np.inf]


@lru_cache(maxsize=1)
def stored() -> State:
    """A model with drills."""
    model, windows = calibrate_with_windows(plants.history(), window="2s")
    return keeping(model, drill_trials(model, windows, runs=24)[0]).stored()


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """All places of a state; of lists the first three."""
    if before:
        yield before
    inner = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*before, key))


def changed(place: tuple[Any, ...], value: Any) -> State:
    state = copy.deepcopy(stored())
    inner: Any = state
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return state


def value_at(place: tuple[Any, ...]) -> Any:
    found: Any = stored()
    for key in place:
        found = found[key]
    return found


def watched(state: State) -> bool:
    """Whether a service takes such a model, which it then must be able to use; a refusal is one line."""
    try:
        content = archive_bytes("model", 7, state)
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
    assert watched(stored())


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])  # of the values in each place
@pytest.mark.parametrize("part", ["columns", "reading", "drilled", "others"])
def test_each_value(part: str, step: int) -> None:
    tried = 0
    for number, place in enumerate(places(stored())):
        known = place[1] if place[:2] == ("model", "columns") else place[0]
        if (known if known in ("columns", "reading", "drilled") else "others") != part:
            continue
        for value in HOSTILE[number % step :: step]:
            watched(changed(place, value))
            tried += 1
    assert tried > 50


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_each_array(step: int) -> None:
    for start, place in enumerate(places(stored())):
        array = value_at(place)
        if not isinstance(array, np.ndarray):
            continue
        wrong = [np.full_like(array, value) for value in NUMBERS]
        for value in NUMBERS:
            for entry in {0, array.size - 1}:
                other = array.copy()
                other.flat[entry] = value
                wrong.append(other)
        wrong += [array[None], np.zeros(0), np.zeros((0, 3)), np.array(1.0), np.zeros((2, 2))]
        for other in wrong[start % step :: step]:
            watched(changed(place, other))


@pytest.mark.parametrize("name", ["a\0b", "\ud800", "x" * 501])
def test_columns_that_were_dropped_have_names_that_can_be_kept(name: str) -> None:
    """One that never changed in the history is reported by its name if it moves."""
    state = copy.deepcopy(stored())
    columns = state["model"]["columns"]
    columns.append({**columns[0], "kept": False, "reason": "constant", "scaled_by": "", "constant": 1, "name": "fine"})
    assert watched(state)
    columns[-1]["name"] = name
    assert not watched(state)


def test_a_constant_is_a_number_however_it_is_written() -> None:
    state = copy.deepcopy(stored())
    columns = state["model"]["columns"]
    columns.append({**columns[0], "kept": False, "reason": "far", "scaled_by": "", "constant": 10**30, "name": "far"})
    constant = parse_model(archive_bytes("model", 7, state), "model").constants["far"]
    assert type(constant) is float
    assert watched(state)
