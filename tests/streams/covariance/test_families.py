"""The families are those of the paper, entry by entry, and have the effective ranks of its table 1."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

from eccaht import effective_rank, families

K = 128
distance = np.abs(np.subtract.outer(np.arange(K), np.arange(K)))
ranks = {
    "toeplitz": (families.toeplitz(K, 0.8), 46.64, 28.58),
    "equicorrelation": (families.equicorrelation(K, 0.8), 4.30, 1.56),
    "block": (families.block(K, 0.8), 21.54, 12.08),
    "circulant": (families.circulant(K, 0.8), 46.08, 28.10),
    "exponential": (families.exponential(K, -1 / np.log(0.8)), 46.64, 28.58),
    "rbf": (families.rbf(K, rho=0.8), 3.80, 3.18),
    "kronecker": (families.kronecker(0.8), 9.41, 3.60),
}


@pytest.mark.parametrize("name", ranks)
def test_effective_ranks_of_the_paper(name: str) -> None:
    cov, shannon, participation = ranks[name]
    assert round(effective_rank(cov), 2) == shannon
    assert round(effective_rank(cov, kind="participation"), 2) == participation


def test_graph_rank_is_near_the_papers() -> None:
    """Another random graph: 121.70 and 113.60 are matched to a percent over seeds."""
    covs = [families.graph(K, 0.8, seed=seed) for seed in range(5)]
    assert_allclose(np.mean([effective_rank(c) for c in covs]), 121.70, rtol=0.01)
    assert_allclose(np.mean([effective_rank(c, kind="participation") for c in covs]), 113.60, rtol=0.015)


def test_entries() -> None:
    for rho in (0.8, -0.5):
        assert_allclose(families.toeplitz(K, rho).dense(), rho**distance, atol=1e-14)
    assert_allclose(families.equicorrelation(9, 0.3).dense(), 0.7 * np.eye(9) + 0.3, atol=1e-14)
    same = np.subtract.outer(np.arange(20) // 16, np.arange(20) // 16) == 0
    assert_allclose(families.block(20, 0.4).dense(), same * (0.6 * np.eye(20) + 0.4), atol=1e-14)
    assert_allclose(families.circulant(K, 0.8).dense(), 0.8 ** np.minimum(distance, K - distance), atol=1e-14)
    assert_allclose(families.rbf(K, length_scale=3.0).dense(), np.exp(-(distance**2) / 18) + 1e-6 * np.eye(K))
    assert_allclose(families.rbf(K, rho=0.8).dense()[0, 1], np.exp(-0.5 / (K * 0.20001) ** 2))
    expected = np.kron(families.equicorrelation(16, 0.8).dense(), families.toeplitz(8, 0.8).dense())
    assert_allclose(families.kronecker(0.8).dense(), expected, atol=1e-14)


def test_graph_precision_follows_the_definition() -> None:
    cov = families.graph(K, 0.8, seed=4)
    P = np.linalg.inv(cov.dense())
    scale = np.sqrt(P.diagonal())
    A = -P / np.outer(scale, scale) + np.eye(K)  # a A, since I - a A has unit diagonal
    strength = np.unique(np.round(A[np.abs(A) > 1e-9], 9))
    assert strength.size == 1
    adjacency = (np.abs(A) > 1e-9).astype(float)
    assert_allclose(strength[0], 0.95 * 0.8 / np.linalg.eigvalsh(adjacency)[-1], rtol=1e-5)  # rounded above
    assert_allclose(cov.diagonal(), 1.0, atol=1e-12)
    assert 0.03 < adjacency.sum() / (K * (K - 1)) < 0.07


def test_spectral_mixture_as_printed_and_with_unit_variance() -> None:
    printed = families.spectral_mixture(K, 0.97, seed=5)
    assert_allclose(printed.eigenvalues()[[0, -1]], [0.03, 1.0], rtol=1e-9)
    unit = families.spectral_mixture(K, 0.97, seed=5, unit_variance=True)
    assert_allclose(unit.diagonal(), 1.0)
    scale = np.sqrt(printed.diagonal())
    assert_allclose(unit.dense(), printed.dense() / np.outer(scale, scale), atol=1e-12)


def test_effective_rank_of_a_large_structured_covariance_forms_no_matrix() -> None:
    """10^6 equicorrelated streams: the closed form of the spectrum, with 1 + (K-1) rho on top."""
    size, rho = 1_000_000, 0.5
    top, rest = 1 + (size - 1) * rho, 1 - rho
    share = np.array([top, rest]) / size
    entropy = -(share[0] * np.log(share[0]) + (size - 1) * share[1] * np.log(share[1]))
    assert_allclose(effective_rank(families.equicorrelation(size, rho)), np.exp(entropy), rtol=1e-9)


FIRST = "the number of streams comes first, as in families"
MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "kronecker, the number of streams first": (
        lambda: families.kronecker(128, 0.8),  # type: ignore[arg-type]
        "kronecker needs rho and the shape of a grid, not 128 and 0.8: "
        "call it as families.kronecker(0.8, (16, 8)) for 128 streams",
    ),
    "kronecker, a number for the shape": (
        lambda: families.kronecker(0.5, 90),  # type: ignore[arg-type]
        "call it as families.kronecker(0.8, (10, 9)) for 90 streams",
    ),
    "kronecker, three sides": (
        lambda: families.kronecker(0.5, (4, 2, 2)),  # type: ignore[arg-type]
        "call it as families.kronecker(0.8, (16, 8)) for 128 streams",
    ),
    "kronecker, half a side": (
        lambda: families.kronecker(0.5, (0.5, 4)),  # type: ignore[arg-type]
        "a side of the shape must be a whole number of at least 1, not 0.5",
    ),
    "toeplitz, rho first": (lambda: families.toeplitz(0.8, 128), f"{FIRST}.toeplitz(128, 0.8)"),  # type: ignore[arg-type]
    "rbf, rho first": (lambda: families.rbf(0.8, 128), f"{FIRST}.rbf(128, rho=0.8)"),  # type: ignore[arg-type]
    "rbf without rho": (lambda: families.rbf(128), "call it as families.rbf(128, rho=0.8)"),
    "rbf, rho too large": (lambda: families.rbf(128, rho=1.5), "rho must lie between -1 and 1, not 1.5"),
    "circulant, rho too large": (
        lambda: families.circulant(128, 1.5),
        "rho must lie strictly between -1 and 1, not 1.5",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_natural_mistakes_are_answered_by_how_to_call_it(mistake: str) -> None:
    call, answer = MISTAKES[mistake]
    with pytest.raises(ValueError, match=re.escape(answer)) as error:
        call()
    assert "\n" not in str(error.value)
