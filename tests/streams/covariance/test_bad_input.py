"""What is no covariance is refused, with what to change."""

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse as sp

from eccaht import covariance, effective_rank, families
from eccaht.base.arrays import Array

BAD: dict[str, tuple[Callable[[], object], str]] = {
    "not square": (lambda: covariance.Dense(np.ones((2, 3))), "square"),
    "a vector": (lambda: covariance.Dense(np.ones(3)), "square"),
    "empty": (lambda: covariance.Dense(np.ones((0, 0))), "square"),
    "nan": (lambda: covariance.Dense([[1.0, np.nan], [np.nan, 1.0]]), "non-finite"),
    "text": (lambda: covariance.Dense([["a", "b"], ["c", "d"]]), "real numbers"),
    "complex": (lambda: covariance.Dense(1j * np.eye(2)), "real numbers"),
    "asymmetric": (lambda: covariance.Dense([[1.0, 0.5], [0.2, 1.0]]), "not symmetric.*0.5.*0.2"),
    "indefinite": (
        lambda: covariance.Dense([[1.0, 2.0], [2.0, 1.0]]),
        "smallest eigenvalue -1.*ridge of at least 1.02",
    ),
    "singular": (lambda: covariance.Dense(np.ones((3, 3))), "not positive definite.*ridge"),
    "rbf without nugget": (lambda: families.rbf(50, length_scale=20.0, nugget=0.0), "not positive definite.*ridge"),
    "zero variance": (lambda: covariance.Diagonal([1.0, 0.0]), "stream 1 must be positive"),
    "rho of one": (lambda: families.toeplitz(5, 1.0), "strictly between"),
    "size zero": (lambda: families.toeplitz(0, 0.5), "at least 1"),
    "size not whole": (lambda: covariance.AR1(2.5, 0.5), "whole number"),  # type: ignore[arg-type]
    "indefinite ring": (lambda: covariance.Circulant([1.0, 0.9, 0.0, 0.9]), "not positive definite"),
    "lopsided ring": (lambda: covariance.Circulant([1.0, 0.3, 0.2]), "entries 1 and 2"),
    "negative equicorrelation": (lambda: families.equicorrelation(5, -0.5), "-0.25 < rho"),
    "no blocks": (lambda: covariance.BlockDiagonal([]), "non-empty"),
    "factor shapes": (lambda: covariance.LowRankPlusDiagonal(np.ones((3, 1)), np.ones(2)), "3 diagonal values"),
    "factor diagonal": (lambda: covariance.LowRankPlusDiagonal(np.ones((2, 1)), [1.0, -1.0]), "must be positive"),
    "factor weight": (lambda: covariance.LowRankPlusDiagonal(np.ones((3, 1)), 1.0, [-1.0]), "not positive definite"),
    "precision indefinite": (lambda: covariance.SparsePrecision([[1.0, 2.0], [2.0, 1.0]]), "not positive definite"),
    "precision singular": (lambda: covariance.SparsePrecision(sp.csc_array((2, 2))), "not positive definite"),
    "precision asymmetric": (lambda: covariance.SparsePrecision([[1.0, 0.5], [0.0, 1.0]]), "not symmetric"),
    "rbf of nothing": (lambda: families.rbf(5), "either length_scale or rho"),
    "mixture at one": (lambda: families.spectral_mixture(5, 1.0), "singular"),
    "graph probability": (lambda: families.graph(5, 0.5, p=2.0), "probability"),
    "unknown rank": (lambda: effective_rank(np.eye(2), kind="x"), "shannon"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", BAD)
def test_refused_in_one_line(name: str) -> None:
    build, message = BAD[name]
    with pytest.raises(ValueError, match=message) as error:
        build()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("S", [np.ones((4, 4)), np.array([[1.0, 2.0], [2.0, 1.0]]), 1e6 * np.diag([1.0, -1e-9])])
def test_the_suggested_ridge_mends_the_matrix(S: Array) -> None:
    with pytest.raises(ValueError, match="ridge of at least") as error:
        covariance.Dense(S)
    ridge = float(str(error.value).split("at least ")[1].split()[0])
    covariance.Dense(S + ridge * np.eye(len(S)))


def test_factors_far_beyond_the_diagonal_are_refused() -> None:
    with pytest.raises(ValueError, match="too large beside the diagonal"):
        covariance.LowRankPlusDiagonal(np.full((3, 1), 1e59), np.full(3, 1e-200), np.full(1, 1e59))


def test_a_covariance_of_zeros_is_refused() -> None:
    with pytest.raises(ValueError, match="all 0"):
        covariance.Dense(np.zeros((3, 3)))
