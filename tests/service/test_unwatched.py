"""A plant that is not watched never looks normal: it says so, and why, on its page, in its numbers and as an alert."""

import asyncio
from collections.abc import Callable

import numpy as np
import pytest

from eccaht.base.arrays import Array
from eccaht.plants.intake import Rows
from eccaht.service.runtime.engine import Runtime
from eccaht.service.runtime.views import PlantView, overview
from eccaht.service.store import Store
from tests.service import plants
from tests.service.test_exactly_once import abandoned
from tests.service.test_no_data import alerts, begun, events, parts, with_plant

WATCHED = 30  # windows before and after

Spoil = Callable[[np.ndarray, Array], Rows]


def nulls(times: np.ndarray, values: Array) -> Rows:
    return plants.rows_of(times, np.full_like(values, np.nan))


def frozen(times: np.ndarray, values: Array) -> Rows:
    return plants.rows_of(times, np.broadcast_to(values[0], values.shape))


def zeros(times: np.ndarray, values: Array) -> Rows:
    return plants.rows_of(times, np.zeros_like(values))


def sparse(every: int) -> Spoil:
    return lambda times, values: plants.rows_of(times[::every], values[::every] + 8.0)


def of_another_plant(times: np.ndarray, values: Array) -> Rows:
    return Rows(times, tuple(f"other {name}" for name in plants.NAMES), values)


CASES: dict[str, tuple[Spoil, str]] = {
    "nulls": (nulls, "no sensor has a value"),
    "frozen": (frozen, "nothing moves"),
    "zeros": (zeros, "nothing moves"),
    "four times as sparse": (sparse(4), "too few rows: 1 in a window, 4 in the history"),
    "ten times as sparse": (sparse(10), "too few rows: 1 in a window, 4 in the history"),
    "other columns": (of_another_plant, "no column that comes is a sensor of the model (other a, other b, other c)"),
}


async def delivered(engine: Runtime, rows: list[Rows]) -> None:
    for each in rows:
        await engine.submit("p", each, source="test")


def is_known(view: PlantView) -> bool:
    return overview(view)["state"] in ("no-data", "alarm") and view.no_data is not None


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("before", [0, WATCHED])
def test_windows_that_cannot_be_judged_are_no_normal_ones(store: Store, case: str, before: int) -> None:
    """So from the first row on, after a restart in the middle, and until windows can be judged again."""
    spoil, why = CASES[case]
    times, values = plants.recording(before + 40 + WATCHED)
    first, last = before * plants.ROWS, (before + 40) * plants.ROWS
    bad = spoil(times[first:last], values[first:last])
    half = len(bad.times) // 2
    halves = [Rows(bad.times[part], bad.names, bad.values[part]) for part in (slice(half), slice(half, None))]

    async def run() -> tuple[PlantView, PlantView]:
        engine = await with_plant(store)
        await delivered(engine, (parts(0, before, values, times) if before else []) + halves[:1])
        await abandoned(engine)
        engine = await begun(store)
        await delivered(engine, halves[1:])
        blind = engine.view("p")
        await delivered(engine, parts(before + 40, before + 40 + WATCHED, values, times))
        seeing = engine.view("p")
        await engine.stop()
        return blind, seeing

    blind, seeing = asyncio.run(run())
    assert is_known(blind)
    assert str(blind.no_data).startswith(why)
    assert seeing.no_data is None
    assert [kind for kind, _ in events(store, "no-data", "data-back")] == ["no-data", "data-back"]
    assert [kind for kind in alerts(store) if "data" in kind] == ["no-data", "data-back"]


def test_a_plant_all_of_whose_sensors_are_shelved_is_not_watched(store: Store) -> None:
    times, values = plants.recording(60)

    async def run() -> tuple[PlantView, PlantView]:
        engine = await with_plant(store)
        await delivered(engine, parts(0, 20, values, times))
        for name in plants.NAMES:
            await engine.order("p", f"shelve {name} 365d", "test")
        await delivered(engine, parts(20, 40, values, times))
        blind = engine.view("p")
        await engine.order("p", "unshelve a", "test")
        await delivered(engine, parts(40, 60, values, times))
        seeing = engine.view("p")
        await engine.stop()
        return blind, seeing

    blind, seeing = asyncio.run(run())
    assert is_known(blind)
    assert blind.no_data == "all sensors are shelved: unshelve some"
    assert seeing.no_data is None


def test_windows_inside_one_delivery_that_cannot_be_judged_are_reported(store: Store) -> None:
    """A backlog that ends well may not hide what nobody watched in its middle."""
    times, values = plants.recording(80)
    values[20 * plants.ROWS : 60 * plants.ROWS] = np.nan

    async def run() -> None:
        engine = await with_plant(store)
        await delivered(engine, [plants.rows_of(times, values)])
        await engine.stop()

    asyncio.run(run())
    assert [kind for kind, _ in events(store, "no-data", "data-back")] == ["no-data", "data-back"]


def test_some_windows_that_can_be_judged_between_many_that_cannot_end_nothing(store: Store) -> None:
    times, values = plants.recording(120)
    blind = np.arange(120) % 12 != 0
    values[np.repeat(blind, plants.ROWS)] = np.nan

    async def run() -> PlantView:
        engine = await with_plant(store)
        await delivered(engine, parts(0, 120, values, times))
        view = engine.view("p")
        await engine.stop()
        return view

    assert is_known(asyncio.run(run()))
    assert [kind for kind, _ in events(store, "no-data", "data-back")] == ["no-data"]
