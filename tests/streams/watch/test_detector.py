"""The incremental components equal those of the definition, also with silent streams and for many plants."""

from copy import deepcopy

import numpy as np
import pytest

from eccaht.base.arrays import Array
from eccaht.base.codec import restore, state_of
from eccaht.streams.watch.detector import StepDetector, components, window_lengths
from tests.streams.watch.worlds import inverse, quiet, toeplitz

SIZE, LONGEST = 6, 30


def noise(size: int = SIZE, rho: float = 0.6) -> Array:
    return toeplitz(size, rho)


def windows(count: int, seed: int = 0, size: int = SIZE) -> Array:
    return quiet(noise(size), count, seed=seed)


def by_definition(rows: Array, covariance: Array) -> Array:
    """The components after the last row: for each length, by the normal equations of each stream's step alone."""
    found = []
    for length in window_lengths(LONGEST):
        score, information = np.zeros(len(covariance)), np.zeros(len(covariance))
        for age in range(length):
            row = rows[-1 - age] if age < len(rows) else np.zeros(len(covariance))
            there = np.flatnonzero(~np.isnan(row))
            precision = inverse(covariance[np.ix_(there, there)])
            score[there] += precision @ row[there]
            information[there] += precision.diagonal()
        found.append(np.where(information > 0, score, 0.0) / np.sqrt(np.where(information > 0, information, 1.0)))
    return np.asarray(components(np.array(found)).max(axis=1))


def test_lengths_reach_from_one_to_the_longest() -> None:
    lengths = window_lengths()
    assert lengths[:12] == tuple(range(1, 13))
    assert lengths[-1] == 200
    assert len(lengths) == 36
    assert list(lengths) == sorted(set(lengths))


def test_components_of_a_single_large_sum() -> None:
    one, alike, several = components(np.array([0.0, 4.0, 0.0]))
    assert one == pytest.approx(8.0)
    assert alike == several == pytest.approx(8.0**2 / (8.0 + 5.0))


def test_streams_that_move_the_same_way_count_together() -> None:
    _, same, _ = components(np.array([3.0, 3.0]))
    _, opposite, several = components(np.array([3.0, -3.0]))
    assert same == pytest.approx(several)
    assert opposite == pytest.approx(several / 2)


def test_incremental_components_are_those_of_the_definition() -> None:
    rows = windows(100)
    rows[50:, 2] += 2.0
    detector = StepDetector(inverse(noise()), longest=LONGEST)
    for t in range(len(rows)):
        found = detector.update(rows[t])
        if t in (0, 3, 29, 30, 31, 55, 62, 99):
            np.testing.assert_allclose(found, by_definition(rows[: t + 1], noise()), rtol=1e-9)


def test_silent_streams_are_integrated_out() -> None:
    rows = windows(80)
    rng = np.random.default_rng(1)
    rows[20:][rng.random((60, SIZE)) < 0.3] = np.nan
    rows[40] = np.nan
    detector = StepDetector(inverse(noise()), longest=LONGEST)
    for t in range(len(rows)):
        found = detector.update(rows[t])
        if t in (19, 20, 35, 40, 41, 79):
            np.testing.assert_allclose(found, by_definition(rows[: t + 1], noise()), rtol=1e-7)


def test_a_stream_that_never_speaks_leaves_the_problem_of_the_others() -> None:
    rows = windows(40)
    whole = StepDetector(inverse(noise()), longest=LONGEST)
    others = StepDetector(inverse(noise()[1:, 1:]), longest=LONGEST)
    for row in rows:
        expected = others.update(row[1:])
        found = whole.update(np.append(np.nan, row[1:]))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("each", [False, True])
def test_plants_side_by_side_are_plants_alone(each: bool) -> None:
    plants = 3
    matrices = np.stack([noise(rho=rho) for rho in ((0.2, 0.5, 0.8) if each else (0.6,) * plants)])
    precisions = inverse(matrices)
    rows = np.stack([windows(70, seed) for seed in range(plants)], axis=1)
    rows[30, 1, 2] = np.nan
    fleet = StepDetector(precisions if each else precisions[0], plants=plants, longest=LONGEST)
    alone = [StepDetector(precision, longest=LONGEST) for precision in precisions]
    for x in rows:
        np.testing.assert_allclose(
            fleet.update(x).T, [one.update(row) for one, row in zip(alone, x, strict=True)], rtol=1e-9
        )


def test_single_precision_stays_close_over_many_windows() -> None:
    rows = windows(2000)
    rows[500:600, 1] += 50.0
    double = StepDetector(inverse(noise()), longest=LONGEST)
    single = StepDetector(inverse(noise()), longest=LONGEST, dtype=np.float32)
    for row in rows:
        exact, rounded = double.update(row), single.update(row)
    np.testing.assert_allclose(rounded, exact, rtol=1e-3)


def test_reset_forgets() -> None:
    rows = windows(50)
    rows[10, 0] = np.nan
    detector, fresh = (StepDetector(inverse(noise()), longest=LONGEST) for _ in range(2))
    for row in rows[:40]:
        detector.update(row)
    detector.reset()
    for row in rows[40:]:
        np.testing.assert_allclose(detector.update(row), fresh.update(row), rtol=1e-9)


def test_state_goes_on_bit_for_bit_and_is_checked() -> None:
    rows = windows(60)
    rows[15, 2] = np.nan
    first, second = (StepDetector(inverse(noise()), longest=LONGEST) for _ in range(2))
    for row in rows[:40]:
        first.update(row)
    restore(second, deepcopy(state_of(first)), {})
    for row in rows[40:]:
        np.testing.assert_array_equal(first.update(row), second.update(row))
    for name, value in (("now", 31), ("sums", np.zeros((31, 3, 1))), ("information", state_of(second)["sums"])):
        with pytest.raises(ValueError, match="damaged"):
            restore(second, {**state_of(first), name: value}, {})
