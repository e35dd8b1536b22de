"""A fault changes the cells of its sensors in its stretch, exactly as its kind says, and nothing else."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from eccaht.base.arrays import Array
from eccaht.plants.incident.faults import (
    KINDS,
    REPLAYED,
    SIZED,
    Fault,
    correlations,
    draw_fault,
    draw_number,
    inject,
    varying,
)
from tests.plants.incident.worlds import quiet as windows_of

START, STOP = 100, 140
STRETCH = slice(START, STOP)


def plant(windows: int) -> Array:
    return windows_of(6, windows).copy()


def injected(kind: str, seed: int = 0) -> tuple[Array, Array]:
    """Quiet windows, and the same with a fault of size 3, or without a size, in sensors 1 and 4."""
    quiet, fault = plant(300), Fault(kind, (1, 4), 3.0 if kind in SIZED else 0.0)
    return quiet, inject(quiet, START, STOP, fault, np.random.default_rng(seed), quiet[200:240])


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_cells_of_the_fault_change_and_the_quiet_windows_stay(kind: str) -> None:
    quiet, shown = injected(kind)
    assert_array_equal(quiet, plant(300))
    changed = (shown != quiet).any(axis=1), (shown != quiet).any(axis=0)
    assert_array_equal(np.flatnonzero(changed[0]), np.arange(START, STOP))
    assert_array_equal(np.flatnonzero(changed[1]), [1, 4])


def test_a_step_moves_by_its_size_up_or_down() -> None:
    signs = set()
    for seed in range(12):
        quiet, shown = injected("step", seed=seed)
        moved = (shown - quiet)[STRETCH][:, [1, 4]]
        assert_allclose(moved, np.broadcast_to(moved[0], moved.shape), atol=1e-12)
        assert_allclose(np.abs(moved[0]), 3.0)
        signs.add(tuple(np.sign(moved[0])))
    assert signs == {(a, b) for a in (-1.0, 1.0) for b in (-1.0, 1.0)}


def test_a_drift_grows_in_equal_steps_to_its_size() -> None:
    quiet, shown = injected("drift")
    assert_allclose(np.abs(shown - quiet)[STRETCH][:, 4], 3.0 * np.arange(1, 41) / 40)


def test_stuck_holds_the_last_reading_that_was_there() -> None:
    quiet = plant(300)
    quiet[START - 2 : START, 4] = np.nan
    quiet[START + 3, 4] = np.nan
    shown = inject(quiet, START, STOP, Fault("stuck", (1, 4)), np.random.default_rng(0))
    assert_array_equal(shown[STRETCH, 1], np.full(40, quiet[START - 1, 1]))
    assert_array_equal(shown[STRETCH, 4], np.full(40, quiet[START - 3, 4]))


def test_noise_is_gaussian_of_its_size() -> None:
    quiet = plant(6000)
    shown = inject(quiet, 100, 5900, Fault("noise", (2,), 3.0), np.random.default_rng(0))
    added = (shown - quiet)[100:5900, 2]
    assert stats.kstest(added, "norm", args=(0.0, 3.0)).pvalue > 0.01
    assert abs(np.corrcoef(added[1:], added[:-1])[0, 1]) < 0.05


def test_a_replay_shows_own_readings_of_another_time() -> None:
    quiet, shown = injected("replay")
    assert_array_equal(shown[STRETCH][:, [1, 4]], quiet[200:240][:, [1, 4]])


def test_a_concealed_fault_moves_its_first_sensor_and_replays_the_others() -> None:
    quiet, shown = injected("concealed")
    assert_allclose(np.abs(shown - quiet)[STRETCH, 1], 3.0)
    assert_array_equal(shown[STRETCH, 4], quiet[200:240, 4])
    assert set(REPLAYED) == {"replay", "concealed"}


def test_a_fault_is_concealed_by_the_sensors_nearest_to_it() -> None:
    quiet = plant(2000)
    quiet[:, 3] = quiet[:, 0] + 0.1 * quiet[:, 1]
    quiet[:, 5] = 0.5 * quiet[:, 2] - quiet[:, 0]
    near = correlations(quiet)
    assert_allclose(near, np.abs(np.corrcoef(quiet.T)), atol=1e-12)
    rng = np.random.default_rng(0)
    found = {fault.sensors for fault in (draw_fault(rng, "concealed", np.arange(6), 1, near) for _ in range(60))}
    assert (0, 3, 5) in found
    assert all(len(sensors) == 3 for sensors in found)
    assert draw_fault(rng, "concealed", np.array([0, 3]), 1, near).sensors in {(0, 3), (3, 0)}


def test_correlations_leave_out_what_is_missing() -> None:
    quiet = plant(500)
    quiet[:, 2] = np.nan
    quiet[::3, 1] = np.nan
    near = correlations(quiet)
    assert np.isfinite(near).all()
    assert not near[2].any()


def test_silence_is_nothing_and_gaps_stay_gaps() -> None:
    assert np.isnan(injected("silent")[1][STRETCH][:, [1, 4]]).all()
    quiet = plant(300)
    quiet[110, 1] = np.nan
    for kind in ("step", "drift", "noise"):
        shown = inject(quiet, START, STOP, Fault(kind, (1,), 2.0), np.random.default_rng(0))
        assert_array_equal(np.flatnonzero(np.isnan(shown[:, 1])), [110])


def test_sizes_are_log_uniform_and_sensors_uniform() -> None:
    rng = np.random.default_rng(3)
    faults = [draw_fault(rng, "step", np.array([2, 5, 7]), 2) for _ in range(3000)]
    assert stats.kstest(np.log10([fault.size for fault in faults]), "uniform").pvalue > 0.01
    assert all(fault.sensors in ((2, 5), (2, 7), (5, 7)) for fault in faults)
    counts = [sum(sensor in fault.sensors for fault in faults) for sensor in (2, 5, 7)]
    assert stats.chisquare(counts).pvalue > 0.01
    assert all(draw_fault(rng, kind, np.arange(4), 1).size == 0.0 for kind in KINDS if kind not in SIZED)


def test_one_two_or_three_sensors_but_never_more_than_there_are() -> None:
    rng = np.random.default_rng(4)
    counts = np.bincount([draw_number(rng, 9) for _ in range(4000)], minlength=4)
    assert counts[0] == 0
    assert stats.chisquare(counts[1:], [2000, 1000, 1000]).pvalue > 0.01
    assert {draw_number(rng, 2) for _ in range(100)} == {1, 2}


def test_sensors_that_stand_still_or_say_nothing_do_not_vary() -> None:
    values = plant(100)
    values[:, 0] = 3.0
    values[:, 2] = np.nan
    values[:60, 3] = np.nan
    values[::4, 5] = np.nan
    assert_array_equal(varying(values), [1, 4, 5])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda: Fault("burst", (0,)), "unknown kind"),
        (lambda: Fault("stuck", ()), "needs sensors"),
        (lambda: Fault("stuck", (1, 1)), "each of them once"),
        (lambda: Fault("step", (1,)), "cannot have the size 0"),
        (lambda: Fault("stuck", (1,), 2.0), "cannot have the size 2"),
        (lambda: Fault("noise", (1,), -1.0), "cannot have the size -1"),
        (lambda: draw_fault(np.random.default_rng(0), "step", np.array([1]), 2), "ask for fewer"),
        (lambda: inject(plant(50), 0, 10, Fault("silent", (1,)), np.random.default_rng(0)), "after the first of 50"),
        (lambda: inject(plant(50), 20, 30, Fault("replay", (1,)), np.random.default_rng(0)), "give them as replayed"),
    ],
)
def test_what_is_no_fault_is_refused(fault: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fault()
