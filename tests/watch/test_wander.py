"""A slow course is what stays when bursts and noise are gone, and that of another time never jumps."""

from __future__ import annotations

import numpy as np
import pytest

from eccaht.watch.wander import elsewhere, slow_course

T, LENGTH = 1000, 100


def test_a_trend_is_its_own_slow_course() -> None:
    trend = np.linspace(-3.0, 5.0, T)[:, None] * np.array([1.0, -2.0])
    inside = slice(LENGTH, T - LENGTH)
    np.testing.assert_allclose(slow_course(trend, LENGTH)[inside], trend[inside], atol=0.01)


def test_bursts_noise_and_gaps_are_left_out() -> None:
    time = np.arange(T)
    course = 3.0 * np.sin(2.0 * np.pi * time / T)
    values = np.stack([course, course + 0.3 * np.random.default_rng(0).standard_normal(T)], axis=1)
    values[400:420] = 1000.0
    values[600:650] = np.nan
    slow = slow_course(values, LENGTH)
    assert np.abs(slow - course[:, None])[LENGTH:-LENGTH].max() < 0.6
    assert np.abs(np.diff(slow, axis=0)).max() < 0.05


def test_what_stands_still_does_not_wander() -> None:
    values = np.full((300, 2), 7.0)
    values[:, 1] = np.nan
    np.testing.assert_allclose(slow_course(values, 60), np.array([[7.0, 0.0]] * 300))


@pytest.mark.parametrize("length", [1, 2, 20])
def test_short_stretches_too(length: int) -> None:
    values = np.random.default_rng(0).standard_normal((5, 2))
    assert np.isfinite(slow_course(values, length)).all()


def test_the_course_of_another_time_never_jumps() -> None:
    course = np.cumsum(np.random.default_rng(0).uniform(-1.0, 1.0, (100, 3)), axis=0)
    firsts = set()
    for seed in range(50):
        other = elsewhere(course, np.random.default_rng(seed))
        assert np.abs(np.diff(other, axis=0)).max() <= 1.0
        assert {tuple(row) for row in other.tolist()} <= {tuple(row) for row in course.tolist()}
        firsts.add(tuple(other[0]))
    assert len(firsts) > 20
