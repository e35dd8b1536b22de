"""Normal operation about the level before: scores are normal, evidence is as rare as it says, elimination is exact."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht.base.arrays import Array
from eccaht.plants.model.local import Local, evidence_of, without
from eccaht.plants.tuning import TUNING
from tests.plants.incident.worlds import normal_of, quiet


@pytest.fixture(scope="module")
def local() -> Local:
    found = normal_of(5).local
    assert found is not None
    return found


def deviations(local: Local, seed: int, windows: int) -> Array:
    x, width = quiet(5, windows, seed), int(local.width)
    levels = np.array([np.median(x[t - width : t], axis=0) for t in range(width, windows)])
    return np.asarray(x[width:] - levels)


def test_scores_of_new_deviations_are_normal(local: Local) -> None:
    y = local.scores(deviations(local, 20, 4000))
    for quantile, score in ((0.5, 0.674), (0.9, 1.645), (0.99, 2.576)):
        assert_allclose(np.quantile(np.abs(y), quantile, axis=0), score, rtol=0.15)


def test_scores_increase_with_the_deviation_beyond_all_that_was_seen(local: Local) -> None:
    d = np.array([-1e3, -3.0, -0.2, 0.0, 1e-4, 0.5, 7.0, 1e4])
    for k in range(5):
        scores = local.scores(np.repeat(d[:, None], 5, axis=1))[:, k]
        assert (np.diff(scores) > 0).all()


def test_the_level_is_the_median_of_the_windows_before(local: Local) -> None:
    x = quiet(5, 200, 21)
    assert_allclose(local.level(x), np.median(x[-int(local.width) :], axis=0))
    assert_allclose(local.level(x[: TUNING.least_level_readings - 1]), local.middle)
    x[:, 2] = np.nan
    assert local.level(x)[2] == local.middle[2]


@pytest.mark.parametrize("missing", [(), (3,), (0, 3)])
def test_setting_a_sensor_free_equals_leaving_it_out(local: Local, missing: tuple[int, ...]) -> None:
    x = quiet(5, 100, 22)
    x[75:85, list(missing)] = np.nan
    x[70:, 2] += 8.0  # it is wrong, and no longer predicts what is missing
    systems = without(local.systems(local.before(x[:70]), x[70:]), 2)
    chosen = np.array([0, 1, 3, 4])
    part = local.of(chosen)
    alone = part.systems(part.before(x[:70, chosen]), x[70:, chosen])
    assert_allclose(evidence_of(systems)[:, chosen], evidence_of(alone), rtol=1e-7, atol=1e-8)


def test_a_silent_sensor_bears_no_evidence(local: Local) -> None:
    x = quiet(5, 100, 23)
    x[70:, 3] = np.nan
    evidence = evidence_of(local.systems(local.before(x[:70]), x[70:]))
    assert_allclose(evidence[:, 3], -15.0)


@pytest.mark.parametrize("length", [3, 10, 20, 60])
def test_evidence_of_sound_sensors_is_as_rare_as_it_says(local: Local, length: int) -> None:
    x = quiet(5, 12_000, 24)
    rare = []
    for start in range(100, 12_000 - length, 75):
        systems = local.systems(local.before(x[:start]), x[start : start + length])
        rare.append(local.rarity(evidence_of(systems).max(axis=0), length))
    assert 0.04 < (np.array(rare) > np.log(10.0)).mean() < 0.22
    assert (np.array(rare) > np.log(1000.0)).mean() < 0.008


def test_rounding_adds_to_units_and_knots(local: Local) -> None:
    wide = local.rounded(np.array([0.5, 0.0, 0.0, 0.0, 0.0]))
    assert wide.unit[0] > local.unit[0]
    assert_allclose(wide.unit[1:], local.unit[1:])
    assert (wide.knots[1:, 0] > local.knots[1:, 0]).all()
    assert_allclose(wide.knots[:, 1:], local.knots[:, 1:])


@pytest.mark.parametrize("step", [1.0, 1e3, 1e6, 1e9])
def test_rounding_that_hides_all_deviations_leaves_knots_that_increase(local: Local, step: float) -> None:
    wide = local.rounded(np.array([step, 0.0, 0.0, 0.0, 0.0]))
    assert (np.diff(wide.knots, axis=0) > 0).all()
    assert_allclose(wide.knots[-1, 0], np.hypot(local.knots[-1, 0], step / np.sqrt(12.0)), rtol=1e-6)
