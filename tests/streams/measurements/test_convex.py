"""Convex constraints are solved exactly: they agree with an interior-point solver, and say how exact they are."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht import Problem, families, pair_design
from eccaht.base.arrays import Array
from eccaht.streams.covariance import Covariance, Dense
from eccaht.streams.measurements import (
    Available,
    Box,
    Budget,
    Constraint,
    Design,
    Noise,
    NonNegative,
    NotShown,
    Readout,
    Unlimited,
)
from tests.checks.covariances import wishart
from tests.checks.enumeration import best_ratio

INF = np.inf


def designed(within: Constraint, covariance: Covariance, D: Array) -> Design:
    places = np.flatnonzero(D)
    design = within.contrast(covariance, places, D[places])
    assert within.allows(design.weights)
    assert design.gap <= 1e-8
    assert design.kkt_residual <= 1e-8
    return design


def noise_of(kind: str, K: int, rng: np.random.Generator) -> Array:
    if kind == "toeplitz":
        return families.toeplitz(K, 0.8).dense()
    if kind == "smooth":
        return families.rbf(K, length_scale=2.0).dense()
    if kind == "equal":
        return families.equicorrelation(K, 0.8).dense()
    A = rng.standard_normal((K, K + 2))
    return A @ A.T / K


def contrast(K: int, rng: np.random.Generator, pair: bool) -> Array:
    if not pair:
        return 3.0 * rng.standard_normal(K)
    D = np.zeros(K)
    i, j = rng.choice(K, 2, replace=False)
    D[i], D[j] = 3.0, -rng.uniform(1.0, 4.0)
    return D


def cases(K: int, rng: np.random.Generator, D: Array) -> dict[str, tuple[Constraint, dict[str, Any]]]:
    """Constraints and the arguments of the other solver."""
    signs = rng.integers(-1, 2, K).astype(float)
    signs[np.flatnonzero(D)[0]] = 1.0
    on = rng.random(K) < 0.8
    on[np.flatnonzero(D)[0]] = True
    low, high = -rng.uniform(0.1, 2.0, K), rng.uniform(0.1, 2.0, K)
    by_sign = {"low": np.where(signs > 0, 0.0, -INF), "high": np.where(signs < 0, 0.0, INF)}
    by_mask = {"low": np.where(on, -INF, 0.0), "high": np.where(on, INF, 0.0)}
    ratio = 1.3 / float(np.abs(D[on]).max())
    up = float(np.abs(D).max())
    return {
        "readout": (Readout(1.0, 0.3), {"norm": 1.0, "noise": 0.3}),
        "loud readout": (Readout(2.0, 3.0), {"norm": 2.0, "noise": 3.0}),
        "non-negative": (NonNegative(), {"low": 0.0}),
        "signs": (Box(**by_sign), by_sign),
        "streams off": (Available(on), by_mask),
        "box with noise": (Box(low, high) & Noise(0.5), {"low": low, "high": high, "noise": 0.5}),
        "box without noise": (Box(low, high), {}),
        "box of one sign": (Box(0.0, 1.0) & Noise(0.2), {"low": 0.0, "high": 1.0, "noise": 0.2}),
        "budget and signs": (Budget(1.5 / up) & NonNegative(), {"low": 0.0, "per_contrast": 1.5 / up}),
        "budget and streams off": (Budget(ratio) & Available(on), {**by_mask, "per_contrast": ratio}),
        "readout and signs": (Readout(1.0, 0.3) & Box(**by_sign), {**by_sign, "norm": 1.0, "noise": 0.3}),
        "readout and non-negative": (Readout(1.0, 0.3) & NonNegative(), {"low": 0.0, "norm": 1.0, "noise": 0.3}),
        "readout and streams off": (Readout(0.5, 0.1) & Available(on), {**by_mask, "norm": 0.5, "noise": 0.1}),
        "readout and box": (Readout(1.0, 0.2) & Box(low / 3, high / 3),
                            {"low": low / 3, "high": high / 3, "norm": 1.0, "noise": 0.2}),
        "all": (Readout(1.0, 0.2) & Box(low, high) & Box(**by_sign) & Budget(2.0),
                {"low": np.maximum(low, by_sign["low"]), "high": np.minimum(high, by_sign["high"]),
                 "norm": 1.0, "noise": 0.2, "per_contrast": 2.0}),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["toeplitz", "equal", "smooth", "wishart"])
@pytest.mark.parametrize("pair", [True, False])
def test_an_interior_point_solver_finds_the_same_information(kind: str, pair: bool) -> None:
    compared = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        K = int(rng.integers(4, 15))
        S, D = noise_of(kind, K, rng), contrast(K, rng, pair)
        for name, (within, options) in cases(K, rng, D).items():
            found = 2.0 * designed(within, Dense(S), D).information
            value = best_ratio(S, D, **options, about=found)
            if value is not None:
                assert_allclose(found, value, rtol=1e-6, err_msg=f"{name}, seed {seed}")
                compared += 1
    assert compared >= 35  # it gives up now and then


def test_large_problems_use_few_columns() -> None:
    """K = 1000: the answer is checked against all streams, and no allowed change of it is better."""
    K, rng = 1000, np.random.default_rng(0)
    noise, D = families.toeplitz(K, 0.8), np.zeros(K)
    D[[300, 303, 700]] = [3.0, -2.0, 3.0]
    for within in (Readout(1.0, 0.3), NonNegative(), Readout(1.0, 0.3) & NonNegative(), Box(-0.2, 0.3) & Noise(0.1)):
        best = designed(within, noise, D)
        for _ in range(20):
            c = best.weights + 0.05 * rng.standard_normal(K) * (rng.random(K) < 0.01)
            if isinstance(within, NonNegative) or "NonNegative" in repr(within):
                c = np.maximum(c, 0.0)
            other = best._replace(weights=within.scaled(c))
            assert other.information <= best.information * (1.0 + 1e-9)


def test_readout_is_the_minimum_along_the_lasso_path() -> None:
    """w'S w + (r/B)^2 |w|_1^2 with w'D = 1: scaled to |c|_1 = B it is c'S c + r^2 per contrast."""
    noise, r, B = wishart(12), 0.4, 0.7
    design = pair_design(Problem(noise, shift=2.0, n_anomalies=1, measurements=Readout(B, r)), 2, 7)
    assert np.abs(design.weights).sum() == pytest.approx(B)
    S, D = noise.dense(), np.zeros(12)
    D[[2, 7]] = 2.0, -2.0
    rng = np.random.default_rng(0)
    w = design.weights / (design.weights @ D)

    def cost(x: Array) -> float:
        return float(x @ S @ x + (r / B) ** 2 * np.abs(x).sum() ** 2)

    assert 0.5 / cost(w) == pytest.approx(design.information)
    for _ in range(300):
        step = 0.03 * rng.standard_normal(12) * (rng.random(12) < 0.4)
        x = w + step
        assert cost(x / (x @ D)) >= cost(w) * (1.0 - 1e-12)


def test_without_readout_noise_nothing_changes() -> None:
    noise = families.toeplitz(40, 0.8)
    for i, j in ((3, 9), (20, 21), (0, 39)):
        quiet, free = (
            pair_design(Problem(noise, shift=3.0, n_anomalies=1, measurements=part), i, j).weights
            for part in (Readout(1.0, 0.0), Unlimited(1.0))
        )
        assert_allclose(quiet, free, rtol=0.0, atol=1e-15)


def test_more_noise_cancels_less() -> None:
    """The streams that have weight become fewer as the instrument gets worse; in the end a plain difference is left."""
    noise, used = wishart(20), []
    for r in (0.0, 0.1, 0.3, 1.0, 3.0, 30.0):
        problem = Problem(noise, shift=2.0, n_anomalies=1, measurements=Readout(1.0, r))
        used.append(int((pair_design(problem, 4, 11).weights != 0.0).sum()))
    assert used[0] == 20
    assert used == sorted(used, reverse=True)
    assert used[-1] <= 2


def test_the_noise_of_the_instrument_is_one_thing() -> None:
    problem = Problem(np.eye(4), shift=2.0, n_anomalies=1, measurements=Readout(1.0, 0.3))
    assert problem.readout_noise == 0.3
    assert problem.noise_variance(np.array([1.0, 0.0, 0.0, 0.0])) == pytest.approx(1.09)
    same = Problem(np.eye(4), shift=2.0, n_anomalies=1, measurements=Readout(1.0, 0.3), readout_noise=0.3)
    assert same.replace(n_anomalies=2).readout_noise == 0.3
    with pytest.raises(ValueError, match=r"readout_noise=0.1 conflicts"):
        Problem(np.eye(4), shift=2.0, n_anomalies=1, measurements=Readout(1.0, 0.3), readout_noise=0.1)
    assert problem.replace(measurements=Readout(1.0, 0.5)).readout_noise == 0.5
    assert problem.replace(measurements=Budget(1.0)).readout_noise == 0.0
    boxed = Problem(np.eye(4), shift=2.0, n_anomalies=1, measurements=Box(-1.0, 1.0), readout_noise=0.3)
    assert boxed.measurements == Box(-1.0, 1.0)
    assert pair_design(boxed, 0, 1).information == pytest.approx(0.5 * 16.0 / 2.09)
    with pytest.raises(ValueError, match="limited size"):
        Problem(np.eye(4), shift=2.0, n_anomalies=1, measurements=NonNegative(), readout_noise=0.3)


def test_no_noise_is_cancelled_without_subtracting() -> None:
    """With common noise a sum of streams is no better than the better single one."""
    problem = Problem(families.equicorrelation(6, 0.9), shift=2.0, n_anomalies=1, measurements=NonNegative())
    design = pair_design(problem, 1, 4)
    assert np.flatnonzero(design.weights).tolist() in ([1], [4])
    assert design.information == pytest.approx(2.0)
    assert design.unlimited == pytest.approx(40.0)


def test_what_cannot_be_shown_is_said() -> None:
    off = Available(np.arange(5) < 3)
    with pytest.raises(NotShown, match="streams 3 and 4 apart"):
        off.contrast(Dense(np.eye(5)), np.array([3, 4]), np.array([1.0, -1.0]))
    with pytest.raises(NotShown, match="streams 3 and 4 apart: allow more"):
        pair_design(Problem(np.eye(5), shift=1.0, n_anomalies=1, measurements=off), 3, 4)
