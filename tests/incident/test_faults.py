"""A fault changes the cells of its sensors in its stretch, exactly as its kind says, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from eccaht.arrays import Array
from eccaht.incident.faults import KINDS, SIZED, Fault, delivering, draw_fault, draw_number, inject, varying
from tests.incident.judges import plant

START, STOP = 100, 140
STRETCH = slice(START, STOP)


def injected(kind: str, seed: int = 0) -> tuple[Array, Array]:
    """Quiet windows, and the same with a fault of size 3, or without a size, in sensors 1 and 4."""
    quiet, fault = plant(300), Fault(kind, (1, 4), 3.0 if kind in SIZED else 0.0)
    return quiet, inject(quiet, START, STOP, fault, np.random.default_rng(seed), donor=200)


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


def test_silence_is_nothing_and_gaps_stay_gaps() -> None:
    assert np.isnan(injected("silent")[1][STRETCH][:, [1, 4]]).all()
    quiet = plant(300)
    quiet[110, 1] = np.nan
    for kind in SIZED:
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
    assert_array_equal(delivering(values), [0, 1, 4, 5])
    assert_array_equal(varying(values), [1, 4, 5])


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda: Fault("burst", (0,)), "unknown kind of fault 'burst': use step, drift"),
        (lambda: Fault("stuck", ()), "needs sensors"),
        (lambda: Fault("stuck", (1, 1)), "each of them once"),
        (lambda: Fault("step", (1,)), "cannot have the size 0"),
        (lambda: Fault("stuck", (1,), 2.0), "cannot have the size 2"),
        (lambda: Fault("noise", (1,), -1.0), "cannot have the size -1"),
        (lambda: draw_fault(np.random.default_rng(0), "step", np.array([1]), 2), "ask for fewer"),
        (lambda: inject(plant(50), 0, 10, Fault("silent", (1,)), np.random.default_rng(0)), "after the first of 50"),
        (lambda: inject(plant(50), 20, 30, Fault("replay", (1,)), np.random.default_rng(0)), "as donor"),
        (lambda: inject(plant(50), 20, 30, Fault("replay", (1,)), np.random.default_rng(0), 11), "overlap"),
    ],
)
def test_what_is_no_fault_is_refused(fault: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fault()
