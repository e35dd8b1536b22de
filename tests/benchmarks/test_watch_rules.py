"""Every rule's statistics, updated window by window, against the formula of its paper on all of the past."""

from collections.abc import Callable

import numpy as np
import pytest
from benchmarks.watch_rules import (
    LENGTHS,
    LONGEST,
    RULES,
    Mewma,
    Ocd,
    Rule,
    Scan,
    SumOfCusums,
    largest,
    largest_rise,
    mixture,
    rising_mixture,
)
from numpy.testing import assert_allclose

from eccaht import families
from eccaht.base.arrays import Array

K, T = 6, 40
COVARIANCE = 4.0 * families.toeplitz(K, 0.6).dense()
DEVIATION = 2.0


@pytest.fixture
def windows() -> Array:
    """(T, 3 replicas, K), with a change of some streams halfway."""
    rng = np.random.default_rng(0)
    x = DEVIATION * rng.standard_normal((T, 3, K))
    x[T // 2 :, :, :2] += np.array([3.0, -2.0])
    return x


def statistics(rule: Rule, windows: Array) -> Array:
    """(T, R, m)."""
    rule.start(windows.shape[1])
    return np.stack([rule.update(x) for x in windows])


def by_lengths(windows: Array, lengths: tuple[int, ...], statistic: Callable[[Array], float]) -> Array:
    """The largest statistic over sums of the last w windows, by adding them up anew."""
    x = windows / DEVIATION
    found = np.empty(windows.shape[:2])
    for t in range(1, len(x) + 1):
        for r in range(x.shape[1]):
            found[t - 1, r] = max(statistic(x[t - w : t, r].sum(axis=0) / np.sqrt(w)) for w in lengths if w <= t)
    return found


@pytest.mark.parametrize(
    ("combine", "formula"),
    [
        (mixture, lambda z: sum(np.log(0.9 + 0.1 * np.exp(v * v / 2)) for v in z)),
        (rising_mixture, lambda z: sum(np.log(0.9 + 0.1 * np.exp(max(v, 0) ** 2 / 2)) for v in z)),
        (largest, lambda z: max(v * v / 2 for v in z)),
        (largest_rise, lambda z: max(max(v, 0) ** 2 / 2 for v in z)),
    ],
)
def test_scans(windows: Array, combine: Callable[[Array], Array], formula: Callable[[Array], float]) -> None:
    lengths = (1, 2, 3, 5, 10, 30)
    found = statistics(Scan(COVARIANCE, combine, lengths), windows)
    assert_allclose(found[:, :, 0], by_lengths(windows, lengths, formula), atol=1e-9)


def test_the_mixture_of_a_huge_deviation_is_finite() -> None:
    assert_allclose(mixture(np.array([[1e4, 0.0]])), [0.5e8 + np.log(0.1)])


def test_the_grid_of_lengths_is_dense_where_it_matters() -> None:
    assert LENGTHS[:12] == tuple(range(1, 13))
    assert LENGTHS[-1] == LONGEST
    assert max(np.divide(LENGTHS[1:], LENGTHS[:-1])[12:]) < 1.2


def test_sum_of_cusums(windows: Array) -> None:
    """A CUSUM is the largest log-likelihood ratio over onsets, or 0."""
    shift, x = 0.7, windows / DEVIATION
    found = statistics(SumOfCusums(COVARIANCE, shift), windows)
    for t in (1, 7, T):
        onsets = [x[start:t] for start in range(t + 1)]
        sides = [
            np.max([(sign * shift * part - shift**2 / 2).sum(axis=0) for part in onsets], axis=0) for sign in (1, -1)
        ]
        assert_allclose(found[t - 1, :, 0], np.maximum(*sides).sum(axis=1))


@pytest.mark.parametrize("weight", [1.0, 0.2])
def test_mewma(windows: Array, weight: float) -> None:
    """z is a sum of weighted windows, whose covariance is the sum of the squared weights times that of a window."""
    found = statistics(Mewma(COVARIANCE, weight), windows)
    for t in (1, 2, T):
        weights = weight * (1.0 - weight) ** np.arange(t)[::-1]
        z = np.einsum("t,trk->rk", weights, windows[:t])
        Q = np.linalg.inv((weights**2).sum() * COVARIANCE)
        assert_allclose(found[t - 1, :, 0], np.einsum("ri,ij,rj->r", z, Q, z))


def test_ocd(windows: Array) -> None:
    """The tail of a CUSUM starts where the sum of log-likelihood ratios up to now is largest."""
    x, beyond = windows / DEVIATION, np.sqrt(2 * np.log(K))
    found = statistics(Ocd(COVARIANCE, norm=1.5), windows)
    sizes = [1.5 / np.sqrt(2**level * np.log2(2 * K)) for level in range(4)]  # 2^3 is the first power above K
    for t in range(1, T + 1):
        for r in range(3):
            best = np.zeros(3)
            for place, size in enumerate(sizes):
                for b in (size, -size):
                    for j in range(K):
                        ratios = [(b * x[t - n : t, r, j] - b * b / 2).sum() for n in range(t + 1)]
                        n = int(np.argmax(ratios))
                        others = np.delete(x[t - n : t, r].sum(axis=0), j) / np.sqrt(max(n, 1))
                        best[0] = max(best[0], ratios[n])
                        if place < 3:
                            best[1] = max(best[1], (others**2).sum())
                            best[2] = max(best[2], (others[np.abs(others) >= beyond] ** 2).sum())
            assert_allclose(found[t - 1, r], best, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", RULES)
def test_replicas_do_not_know_of_each_other(name: str, windows: Array) -> None:
    rule = RULES[name](COVARIANCE)
    together = statistics(rule, windows)
    alone = statistics(rule, windows[:, 1:2])
    assert_allclose(together[:, 1:2], alone, rtol=1e-6)
    rule.start(3)
    for x in windows[:10]:
        rule.update(x)
    rule.keep(np.array([False, True, False]))
    assert_allclose(np.stack([rule.update(x[1:2]) for x in windows[10:]]), alone[10:], rtol=1e-6)
