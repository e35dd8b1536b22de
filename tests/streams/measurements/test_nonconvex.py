"""Few streams, groups, levels and lists: nearly as good as the best of all, and a bound that holds."""

from collections.abc import Callable

import numpy as np
import pytest

from eccaht.base.arrays import Array
from eccaht.streams.covariance import Dense
from eccaht.streams.measurements import AtMost, Box, Constraint, Levels, NonNegative, OneOf, OnePerGroup, Readout
from tests.checks.enumeration import best_levels, best_streams
from tests.streams.measurements.test_convex import contrast, noise_of

TERNARY = [-1.0, 0.0, 1.0]
Best = Callable[[Array, Array], float]


def few(most: int, **options: object) -> Best:
    return lambda S, D: best_streams(S, D, min(most, len(D)), **options)  # type: ignore[arg-type]


def grid(levels: list[float], **options: object) -> Best:
    return lambda S, D: best_levels(S, D, levels, **options)  # type: ignore[arg-type]


def cases(K: int) -> dict[str, tuple[Constraint, Best]]:
    labels = (np.arange(K) // 2).tolist()
    by_group, readout = OnePerGroup(labels), Readout(2.0, 0.5)
    found: dict[str, tuple[Constraint, Best]] = {
        "two": (AtMost(2), few(2)),
        "three": (AtMost(3), few(3)),
        "three, added": (AtMost(3) & NonNegative(), few(3, nonnegative=True)),
        "three, added, noise": (AtMost(3) & NonNegative() & readout, few(3, nonnegative=True, price=0.0625)),
        "groups": (by_group, few(K, labels=labels)),
        "two of groups": (by_group & AtMost(2), few(2, labels=labels)),
        "pools": (Levels([0, 1]), grid([0.0, 1.0])),
        "pools, noise": (Levels([0, 1]) & Readout(3.0, 0.7), grid([0.0, 1.0], norm=3.0, noise=0.7)),
        "masks": (Levels([-1, 1]), grid([-1.0, 1.0])),
    }
    if K <= 8:
        found |= {
            "balance": (Levels(TERNARY), grid(TERNARY)),
            "balance of three": (Levels(TERNARY) & AtMost(3), grid(TERNARY, most=3)),
            "balance of groups": (Levels(TERNARY) & by_group, grid(TERNARY, labels=labels)),
        }
    return found


@pytest.mark.parametrize("kind", ["toeplitz", "equal", "wishart"])
@pytest.mark.parametrize("K", [5, 8, 12])
def test_at_least_95_percent_of_the_best_of_all(kind: str, K: int) -> None:
    for seed in range(2 if K < 12 else 1):
        rng = np.random.default_rng(1000 * K + seed)
        S, D = noise_of(kind, K, rng), contrast(K, rng, pair=seed % 2 == 0)
        places = np.flatnonzero(D)
        for name, (within, best) in cases(K).items():
            if K == 12 and name == "groups":
                continue  # all sets of 12 streams take too long
            design = within.contrast(Dense(S), places, D[places])
            assert within.allows(design.weights)
            reached, most = 2.0 * design.information, best(S, D)
            assert 0.95 * most <= reached <= most * (1.0 + 1e-9), f"{name}, seed {seed}: {reached} of {most}"
            assert 2.0 * design.bound >= most * (1.0 - 1e-9), f"{name}, seed {seed}: bound {design.bound}"
            assert design.gap == pytest.approx(1.0 - design.information / design.bound, abs=1e-12)


def test_a_list_is_looked_at_row_by_row() -> None:
    rng = np.random.default_rng(3)
    S, rows, D = noise_of("wishart", 7, rng), rng.integers(0, 2, (30, 7)).astype(float), contrast(7, rng, False)
    rows = rows[rows.any(axis=1)]
    values = (rows @ D) ** 2 / np.einsum("ij,jk,ik->i", rows, S, rows)
    design = OneOf(rows).contrast(Dense(S), np.arange(7), D)
    assert 2.0 * design.information == pytest.approx(values.max())
    assert design.gap == pytest.approx(0.0, abs=1e-12)
    noisy = (OneOf(rows) & Readout(3.0, 1.0)).contrast(Dense(S), np.arange(7), D)
    left = rows.sum(axis=1) <= 3.0
    quiet = np.einsum("ij,jk,ik->i", rows, S, rows)
    assert 2.0 * noisy.information == pytest.approx(((rows @ D) ** 2 / (quiet + 1.0))[left].max())


def test_many_streams_cost_little_time() -> None:
    """K = 128: what is found is allowed, and the more is allowed the more informative it is."""
    rng, K = np.random.default_rng(7), 128
    S, D = Dense(noise_of("toeplitz", K, rng)), contrast(K, rng, True)
    places = np.flatnonzero(D)
    reached = [AtMost(m).contrast(S, places, D[places]).information for m in (1, 2, 3, 4, 6, 10)]
    assert reached == sorted(reached)
    full = Box(-np.inf, np.inf).contrast(S, places, D[places])
    assert reached[-1] == pytest.approx(full.information, rel=0.01)
    for within in (Levels(TERNARY), Levels([0, 1]) & AtMost(5), OnePerGroup((np.arange(K) // 8).tolist())):
        assert within.allows(within.contrast(S, places, D[places]).weights)
