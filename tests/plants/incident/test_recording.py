"""Incidents of a recording: those of the alarms that a watch raises, dated at both ends."""

from typing import NamedTuple

import numpy as np
import pytest

from eccaht.base.arrays import Array
from eccaht.plants.incident.alarms import Engine, run_engine
from eccaht.plants.incident.naming import DatedIncident, incidents_of, stretch_of
from eccaht.plants.model.fitting import fit_normal
from eccaht.plants.model.residuals import Normal
from tests.plants.incident.plants import plant, pump_house, simulate, spreads

EVERY = 6000.0


class Dated(NamedTuple):
    """By how many windows an incident was misdated, None where it was not found; and from its recovery."""

    onset: int | None
    end: int | None
    from_recovery: int | None


def largest(found: list[DatedIncident]) -> DatedIncident | None:
    return max(found, key=lambda each: each.weight, default=None)


def simulated(seed: int) -> Dated:
    """One to three sensors off by 1 to 10 interquartile ranges for 20 to 200 windows, in one of many plants."""
    rng = np.random.default_rng(seed)
    sensors = int(rng.integers(10, 25))
    values = simulate(rng, 2500, sensors, memory=float(rng.uniform(0.2, 0.8)))
    history, windows = values[:2000], values[2000:].copy()
    wrong = rng.choice(sensors, int(rng.integers(1, 4)), replace=False)
    start, lasted = int(rng.integers(100, 200)), int(rng.integers(20, 200))
    size = np.exp(rng.uniform(0.0, np.log(10.0))) * rng.choice([-1.0, 1.0], len(wrong))
    windows[start : start + lasted, wrong] += size * spreads(history)[wrong]
    normal = fit_normal(history)
    best = largest(incidents_of(normal, run_engine(normal, windows, EVERY)))
    if best is None:
        return Dated(None, None, None)
    end = len(windows) if best.dates.end is None else best.dates.end
    return Dated(best.dates.onset - start, end - start - lasted, best.dates.onset - start - lasted)


def check_dates(runs: int, onsets: int, ends: int) -> None:
    found = [simulated(seed) for seed in range(runs)]
    assert sum(each.onset is not None and abs(each.onset) <= 2 for each in found) >= onsets
    assert sum(each.end is not None and abs(each.end) <= 5 for each in found) >= ends
    assert not any(each.from_recovery is not None and abs(each.from_recovery) <= 2 for each in found)


@pytest.mark.slow
def test_a_hundred_faults_that_end_are_dated_at_both_ends() -> None:
    check_dates(100, onsets=90, ends=80)


def test_the_alarms_are_those_of_a_watch_of_the_same_windows() -> None:
    normal, values = plant()
    windows = values[:400].copy()
    windows[100:150, 2] += 3.0
    windows[250:300, 5] -= 3.0
    engine, begun, on = Engine(normal, EVERY), [], []
    for t, x in enumerate(windows):
        if engine.step(x[None, :]).began[0]:
            begun.append(t)
        on.append(bool(engine.on[0]))
    run = run_engine(normal, windows, EVERY)
    assert [first for first, _, _ in run.alarms] == begun
    mine = np.zeros(len(windows), dtype=bool)
    for first, over, _ in run.alarms:
        mine[first:over] = True
    assert mine.tolist() == on


def test_a_stretch_that_is_given_is_one_incident_whatever_it_shows() -> None:
    normal, values = plant()
    run = run_engine(normal, values[:200], EVERY)
    found = stretch_of(normal, run, 100, 150, number=2)
    assert (found.dates.onset, found.dates.end, len(found.sensors)) == (100, 150, 2)


# -- what rests is not stuck -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def pumping() -> Normal:
    return fit_normal(pump_house(0, 20))


def stuck(pumping: Normal, values: Array) -> set[int]:
    found = incidents_of(pumping, run_engine(pumping, values, 10_000.0))
    return {k for incident in found for k, kind in incident.wrong.items() if kind == "stuck"}


def test_a_pump_that_is_off_all_weekend_is_not_stuck(pumping: Normal) -> None:
    for seed in range(1, 4):
        assert stuck(pumping, pump_house(seed, 7, (4, 5))) == set()


@pytest.mark.parametrize("value", [0.0, 40.0])
def test_a_pump_that_the_others_contradict_is_stuck_at_rest_too(pumping: Normal, value: float) -> None:
    values = pump_house(4, 7)
    values[3 * 144 :, 1] = value
    assert stuck(pumping, values) == {1}


def test_what_never_stands_still_there_is_stuck_though_nothing_contradicts_it(pumping: Normal) -> None:
    values = pump_house(5, 7)
    values[3 * 144 :, 3] = values[3 * 144, 3]  # nothing predicts the temperature
    assert stuck(pumping, values) == {3}
