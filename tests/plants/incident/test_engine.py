"""The engine: what it says of windows depends on nothing but them, and alarms begin, last and end as defined."""

from copy import deepcopy

import numpy as np
import pytest

from eccaht.base.arrays import Array
from eccaht.base.codec import restore, state_of
from eccaht.base.files import arrays_of
from eccaht.plants.incident.alarms import Engine, WindowResult
from eccaht.plants.model.fitting import fit_normal
from eccaht.plants.tuning import TUNING
from tests.plants.incident.plants import plant, simulate, spreads

EVERY = 6000.0


def run(engine: Engine, windows: Array) -> tuple[list[WindowResult], Array]:
    """What one plant shows, and whether an alarm is on, by window."""
    shown, on = [], []
    for x in windows:
        shown.append(engine.step(x[None, :]))
        on.append(bool(engine.on[0]))
    return shown, np.array(on)


def begins(shown: list[WindowResult]) -> list[int]:
    return [t for t, each in enumerate(shown) if each.began[0]]


# -- plants ----------------------------------------------------------------------------------------------


def test_plants_side_by_side_are_what_each_is_alone() -> None:
    normal, values = plant()
    windows = values[:600].reshape(200, 3, -1, order="F").copy()
    windows[100:120, 1, 2] += 4.0
    windows[50:90, 2, 0] = np.nan
    together = Engine(normal, EVERY, plants=3)
    both = [together.step(x) for x in windows]
    for n in range(3):
        alone, on = run(Engine(normal, EVERY), windows[:, n])
        for name in ("r", "e", "passed"):
            mine = np.array([getattr(each, name)[0] for each in alone])
            np.testing.assert_allclose(np.array([getattr(each, name)[n] for each in both]), mine, atol=1e-9)
        for name in ("began", "ended", "changed"):
            assert [getattr(each, name)[n].tolist() for each in both] == [
                getattr(each, name)[0].tolist() for each in alone
            ]
        assert together.on[n] == on[-1]


def test_windows_of_some_plants_leave_the_others_as_they_were() -> None:
    normal, values = plant()
    engine = Engine(normal, EVERY, plants=3)
    for x in values[:20]:
        engine.step(np.stack([x, x, x]))
    kept = deepcopy(arrays_of(state_of(engine)))
    engine.step(values[20:21] + 9.0, np.array([1]))
    for before, array in zip(kept, arrays_of(state_of(engine)), strict=True):
        axis = next(axis for axis in range(array.ndim) if array.shape[axis] == 3)
        np.testing.assert_array_equal(np.take(array, 0, axis), np.take(before, 0, axis))
    assert engine.count.tolist() == [20, 21, 20]


@pytest.mark.parametrize("cut", [105, 150])  # in an alarm, and in the change that it became
def test_a_state_that_was_kept_goes_on_bit_for_bit(cut: int) -> None:
    normal, values = plant()
    windows = values[:300].copy()
    windows[100:180, 3] += 3.0
    whole, on = run(Engine(normal, EVERY), windows)
    first = Engine(normal, EVERY)
    run(first, windows[:cut])
    second = Engine(normal, EVERY)
    restore(second, deepcopy(state_of(first)), {})
    assert (first.on[0], first.settled[0]) == (cut == 105, cut == 150)
    rest, later = run(second, windows[cut:])
    np.testing.assert_array_equal(later, on[cut:])
    for mine, other in zip(rest, whole[cut:], strict=True):
        np.testing.assert_array_equal(mine.r, other.r)
        np.testing.assert_array_equal(mine.passed, other.passed)


def test_a_state_of_other_detectors_or_sensors_is_refused() -> None:
    normal, _ = plant()
    engine = Engine(normal, EVERY)
    state = state_of(engine)
    rings = state["rings"]
    wrong: dict[str, Array]
    for wrong in ({}, rings | {"sum_1": np.zeros((2, 1, 8))}, rings | {"more": np.zeros(3)}):
        with pytest.raises(ValueError, match="damaged"):
            restore(Engine(normal, EVERY), state | {"rings": wrong}, {})


# -- false alarms ----------------------------------------------------------------------------------------


def false_alarms(plants: int, windows: int, every: float) -> tuple[int, float]:
    """Alarms in quiet windows of several plants, and how many were asked for."""
    found = 0
    for seed in range(plants):
        rng = np.random.default_rng(seed)
        values = simulate(rng, 3000 + windows, int(rng.integers(8, 20)), memory=float(rng.uniform(0.2, 0.8)))
        shown, _ = run(Engine(fit_normal(values[:3000]), every), values[3000:])
        found += len(begins(shown))
    return found, plants * windows / every


def test_false_alarms_are_at_most_twice_as_many_as_asked_for() -> None:
    found, asked = false_alarms(3, 2000, 300.0)
    assert found <= 2 * asked


@pytest.mark.slow
@pytest.mark.parametrize("every", [500.0, 3000.0])
def test_false_alarms_of_twenty_plants_are_at_most_twice_as_many_as_asked_for(every: float) -> None:
    found, asked = false_alarms(20, 9000, every)
    assert found <= 2 * asked


# -- alarms ----------------------------------------------------------------------------------------------


def test_steps_raise_evidence_without_bound() -> None:
    normal, values = plant()
    evidence = []
    for size in (2.0, 4.0, 8.0, 16.0, TUNING.farthest_spreads, 1e2, 1e3, 1e6, 1e9):
        engine = Engine(normal, EVERY)
        run(engine, values[:50])
        x = values[50].copy()
        x[1] += size * normal.scale[1]
        evidence.append(float(engine.step(x[None, :]).passed[0]))
    assert all(np.diff(evidence) > 0)
    sizes = 10.0 ** np.arange(1, 12)[:, None] * np.ones(normal.size)
    assert (np.diff(normal.tails(sizes), axis=0) >= np.log(10.0) - 1e-9).all()


@pytest.mark.parametrize(("size", "every"), [(20.0, EVERY), (1e3, EVERY), (1e3, 1e9), (1e9, 1e9)])
def test_a_large_step_is_an_alarm_at_any_rate(size: float, every: float) -> None:
    normal, values = plant()
    windows = values[:60].copy()
    windows[50:, 1] += size * normal.scale[1]
    shown, _ = run(Engine(normal, every), windows)
    (begun,) = begins(shown)
    assert 50 <= begun < 54


def test_a_shift_that_lasts_is_one_alarm_then_a_change_until_it_is_over() -> None:
    normal, values = plant()
    for sensor in range(8):
        windows = values[:400].copy()
        windows[100:260, sensor] += 5.0 * spreads(values)[sensor]
        engine = Engine(normal, EVERY)
        shown, on, lasts = [], [], []
        for x in windows:
            shown.append(engine.step(x[None, :]))
            on.append(bool(engine.on[0]))
            lasts.append(bool(engine.settled[0]))
        (begun,), (ended,) = begins(shown), [t for t, each in enumerate(shown) if each.ended[0]]
        assert begun == 100
        assert (ended - 99) % TUNING.change_windows == 0
        assert ended < 100 + 2 * TUNING.change_windows
        assert shown[ended].changed[0]
        assert all(on[100:ended])
        assert all(lasts[ended:260])
        assert not any(on[ended:])  # the recovery raises none
        assert not any(lasts[260 + TUNING.change_windows + TUNING.long_windows :])


def test_a_plant_that_has_changed_is_watched_about_its_new_level() -> None:
    """Another step, of the same sensor or of another one, is as plain as in a plant that has not changed."""
    normal, values = plant()
    for sensor in (1, 4):
        windows = values[:300].copy()
        windows[50:, 1] += 6.0 * spreads(values)[1]
        windows[200:, sensor] += 6.0 * spreads(values)[sensor]
        first, second, *_ = begins(run(Engine(normal, EVERY), windows)[0])
        assert first == 50
        assert 200 <= second < 204


# -- range, standstill, silence --------------------------------------------------------------------------


def test_a_sensor_out_of_range_is_set_aside_and_the_others_are_judged() -> None:
    normal, values = plant()
    windows = values[:300].copy()
    windows[50:, 0] += 3.0 * (normal.high - normal.low)[0]
    windows[200:, 5] += 4.0 * spreads(values)[5]
    engine = Engine(normal, EVERY)
    shown, _ = run(engine, windows)
    assert engine.standing[2, 0].tolist() == [True, *[False] * 7]
    assert begins(shown)[0] == 50
    assert not [t for t in begins(shown) if 50 + 3 * TUNING.long_windows <= t < 200]  # its neighbours are not blamed
    assert shown[200].e[0].argmax() in (0, 5)
    assert np.abs(shown[200].r[0])[1:].argmax() == 4


def test_a_sensor_that_repeats_a_value_is_stuck_until_it_moves() -> None:
    normal, values = plant()
    windows = values[:60].copy()
    windows[20:40, 3] = windows[20, 3]
    engine = Engine(normal, EVERY)
    run(engine, windows[:30])
    assert np.flatnonzero(engine.standing[0, 0]).tolist() == [3]
    run(engine, windows[30:41])
    assert not engine.standing[0].any()


def test_silence_bears_no_evidence_and_is_noticed() -> None:
    normal, values = plant()
    windows = values[:60].copy()
    windows[20:30, 3] = np.nan
    engine = Engine(normal, EVERY)
    shown, _ = run(engine, windows[:30])
    assert np.flatnonzero(engine.standing[1, 0]).tolist() == [3]
    assert all(each.r[0, 3] == pytest.approx(0.0, abs=1e-9) for each in shown[20:])
    run(engine, windows[30:31])
    assert not engine.standing[1].any()
    longer = Engine(normal, EVERY, gaps=np.full(8, 6.0))  # of the history
    run(longer, windows[:30])
    assert not longer.standing[1].any()


def test_after_a_long_gap_nothing_of_before_counts() -> None:
    normal, values = plant()
    fresh, later = Engine(normal, EVERY), Engine(normal, EVERY)
    run(later, values[:100])
    later.gap(TUNING.short_gap_windows + 1)
    for mine, other in zip(run(fresh, values[100:130])[0], run(later, values[100:130])[0], strict=True):
        np.testing.assert_allclose(mine.passed, other.passed, atol=1e-9)
