"""Sign, box, limit and instrument noise together: optimal by an independent solver, however small the weights."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht.streams import (
    AtMost,
    Available,
    Box,
    Budget,
    Constraint,
    Levels,
    LowRankPlusDiagonal,
    Noise,
    NonNegative,
    OneOf,
    Readout,
    Unlimited,
)
from eccaht.streams.measurements.cone import Cone, pull, solve, violation
from tests.checks.enumeration import best_ratio

K = 7
RULES = [
    *(Budget(4.0), Unlimited(4.0), Readout(1.0, 0.3), NonNegative() & Budget(4.0), Box(-1.0, 2.0) & Readout(1.0, 0.3)),
    *(AtMost(3) & Budget(2.0), Available(np.arange(K) > 0) & Budget(4.0), Noise(0.3) & Box(-1.0, 1.0)),
    *(OneOf(np.eye(K)), Levels([-1, 0, 1])),
]


@pytest.mark.parametrize("within", RULES, ids=repr)
def test_the_largest_allowed_multiple_of_a_direction(within: Constraint) -> None:
    rng, scaled = np.random.default_rng(2), 0
    for _ in range(60):
        direction = rng.integers(-1, 2, K) * (rng.random(K) < 0.5) * rng.choice([1.0, rng.random()])
        if rng.random() < 0.5:
            direction = np.abs(direction)
        if not direction.any():
            continue
        try:
            c = within.scaled(direction)
        except ValueError:
            continue
        scaled += 1
        assert_allclose(c, direction * (np.abs(c).sum() / np.abs(direction).sum()), atol=1e-12)
        assert within.allows(c)
        assert not within.allows(1.01 * c)
    assert scaled >= 1


def test_weights_without_end_are_not_allowed() -> None:
    for within in (Box(-1.0, 2.0), NonNegative(), AtMost(3)):
        assert not within.allows(np.full(4, np.inf))
        assert not within.allows(np.full(4, np.nan))


def test_bounds_that_use_up_the_norm_together_are_no_obstacle() -> None:
    """0.6 + 0.4 = 1: the multipliers are not unique there, and no limit can be left out of the equations."""
    S = np.array([[1.562473, -0.070218, 0.447132], [-0.070218, 0.540718, -0.133362], [0.447132, -0.133362, 1.341821]])
    cone = Cone(S, np.array([2.850457, 0.0, -3.240427]), np.full(3, -0.4), np.full(3, 0.6), norm=1.0, noise=0.5)
    point = solve(cone)
    assert violation(cone, point, pull(cone, point, S @ point.w)) < 1e-9
    assert_allclose(point.w / point.s, [0.6, 0.0, -0.4], atol=1e-12)


def information_of(cone: Cone) -> float:
    """(c'D)^2 / (c'S c + r^2) of the better of the solutions for D and -D."""
    found = []
    for side in (1.0, -1.0):
        point = solve(cone._replace(D=side * cone.D))
        if not point.s:  # no allowed weights read this contrast
            continue
        c = point.w / point.s
        assert (c >= cone.low - 1e-9).all()
        assert (c <= cone.high + 1e-9).all()
        assert np.abs(c).sum() <= cone.norm * (1.0 + 1e-9)
        found.append(float((c @ cone.D) ** 2 / (c @ cone.S @ c + cone.noise**2)))
    return max(found)


def assert_optimal(cone: Cone) -> None:
    """An independent solver, exact to about 1e-8 here, finds the same optimum."""
    found, unit = information_of(cone), float(np.abs([cone.low, cone.high]).max())
    S, D = cone.S * (unit / cone.noise) ** 2, cone.D * unit / cone.noise  # weights and noise of size 1
    low, high, norm = cone.low / unit, cone.high / unit, cone.norm / unit
    best = best_ratio(S, D, low=low, high=high, norm=norm, noise=1.0, about=found, tolerance=1e-9)
    assert best is not None
    assert found == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("seed", [*range(20), 298, 329, 400, 474, 481, 894])
def test_weights_that_hardly_count_are_settled(seed: int) -> None:
    """The noise of the instrument may be all but everything, where the interior method alone stalls."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 17))
    factors = rng.standard_normal((n, int(rng.integers(1, 5)))) * 10 ** rng.uniform(-1, 1)
    S = LowRankPlusDiagonal(factors, 10 ** rng.uniform(-3, 0.5) * rng.uniform(0.1, 2, n)).dense()
    D, pair = np.zeros(n), rng.choice(n, 2, replace=False)
    D[pair] = rng.uniform(0.5, 4, 2) * rng.choice([-1, 1], 2)
    reach = 10 ** rng.uniform(-2, 1)
    low, _ = np.full(n, -reach * float(rng.choice([0, 1, 0.5]))), rng.random()
    high, norm = rng.uniform(0, reach, n) + 1e-3, reach * 10 ** rng.uniform(-1, 1.5)
    assert_optimal(Cone(S, D, low, high, norm, noise=float(10 ** rng.uniform(-3, 2))))


@pytest.mark.parametrize("deviation", [0.3, 30.0])
def test_designs_are_optimal_however_large_the_readout_noise(deviation: float) -> None:
    """Also where the covariance decides about weights that hardly count."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        n = int(rng.integers(3, 12))
        S = LowRankPlusDiagonal(rng.standard_normal((n, 2)), rng.uniform(0.02, 0.2, n)).dense()
        D = np.r_[rng.uniform(1.0, 3.0, 2), np.zeros(n - 2)]
        low, high = np.full(n, -0.02), rng.uniform(0.005, 0.04, n)
        assert_optimal(Cone(S, D, low, high, norm=float(rng.uniform(0.02, 0.2)), noise=deviation))
