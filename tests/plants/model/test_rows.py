"""Windows with fewer rows than usual are as noisy as their rows say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import lfilter

from eccaht.base.arrays import Array
from eccaht.plants.model.gaps import RowNoise, row_noise
from eccaht.plants.model.model_file import SHARES
from eccaht.streams.covariance import Dense

M, K, N = 12, 4, 4000


def rows_of(memory: float, seed: int = 0) -> Array:
    """Rows (N, M, K): a disturbance that all sensors share and that lasts, and one of each sensor's own."""
    rng = np.random.default_rng(seed)
    white = rng.standard_normal((N * M, K + 1))
    own = lfilter([np.sqrt(1 - memory**2)], [1.0, -memory], white[:, :K], axis=0)
    shared = lfilter([np.sqrt(1 - 0.98**2)], [1.0, -0.98], white[:, K])
    return np.asarray(own + 2.0 * shared[:, None]).reshape(N, M, K)


def noise_of(rows: Array) -> tuple[RowNoise, Array]:
    S = np.cov(rows.mean(axis=1), rowvar=False)
    within, runs = row_noise(rows, Dense(S))
    W = within[0]
    return RowNoise(float(M), np.ones(K), W.diagonal(), lambda c: np.asarray(W @ c), runs), S


CONTRAST, SUM = np.array([1.0, -1.0, 0.0, 0.0]), np.ones(K)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("c", [CONTRAST, SUM], ids=["contrast", "sum"])
def test_rows_left_out_at_random_add_the_noise_that_is_said(memory: float, c: Array) -> None:
    rows = rows_of(memory)
    noise, S = noise_of(rows)
    random = RowNoise(noise.usual, noise.delivered, noise.variances, noise.within, np.ones(SHARES.size))
    order = np.random.default_rng(1).random((N, M)).argsort(axis=1)
    for m in (1, 2, 6, 11):
        kept = np.take_along_axis(rows, order[:, :m, None], axis=1).mean(axis=1)
        excess = random.excess(np.full(K, float(m)))
        assert excess is not None
        assert c @ S @ c + excess.quad(c) == pytest.approx(np.var(kept @ c), rel=0.08)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("c", [CONTRAST, SUM], ids=["contrast", "sum"])
def test_rows_that_are_lost_in_one_run_never_add_more_than_is_said(memory: float, c: Array) -> None:
    rows = rows_of(memory, seed=2)
    noise, S = noise_of(rows)
    fresh = rows_of(memory, seed=3)
    for m in (2, 3, 6, 9):
        excess = noise.excess(np.full(K, float(m)))
        assert excess is not None
        for kept in (fresh[:, :m], fresh[:, M - m :]):
            assert c @ S @ c + excess.quad(c) > 0.92 * np.var(kept.mean(axis=1) @ c)


def test_one_sensor_with_gaps_adds_noise_of_its_own_alone() -> None:
    rows = rows_of(0.5)
    noise, S = noise_of(rows)
    excess = noise.excess(np.array([3.0, M, M, M]))
    assert excess is not None
    assert excess.quad(np.array([0.0, 1.0, -1.0, 2.0])) == 0.0
    order = np.random.default_rng(1).random((N, M)).argsort(axis=1)
    x = rows.mean(axis=1)
    x[:, 0] = np.take_along_axis(rows[:, :, 0], order[:, :3], axis=1).mean(axis=1)
    assert S[0, 0] + excess.quad(np.eye(K)[0]) >= 0.95 * np.var(x[:, 0])
    np.testing.assert_allclose(excess.block(np.array([0, 2])), np.diag([excess.own[0], 0.0]))


def test_full_windows_and_fuller_ones_add_nothing() -> None:
    noise, _ = noise_of(rows_of(0.5))
    assert noise.excess(np.full(K, float(M))) is None
    assert noise.excess(np.full(K, 3.0 * M)) is None
    assert noise.excess(np.zeros(K)) is None
    gappy = RowNoise(float(M), np.array([0.5, 1.0, 1.0, 1.0]), noise.variances, noise.within, noise.runs)
    assert gappy.excess(np.array([6.0, M, M, M])) is None  # as in the history


def test_independent_rows_count_by_their_number() -> None:
    rows = np.random.default_rng(0).standard_normal((N, M, K))
    noise, S = noise_of(rows)
    c = np.array([1.0, 2.0, -1.0, 0.5])
    excess = noise.excess(np.full(K, 3.0))
    assert excess is not None
    assert 1.0 + excess.quad(c) / float(c @ S @ c) == pytest.approx(M / 3, rel=0.15)
