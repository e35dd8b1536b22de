"""A user's own operator passes; broken ones fail with the operation that is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, as_floats
from eccaht.checks import CheckFailure, check_covariance, covariance_checks
from eccaht.streams.covariance import AR1, Covariance, Diagonal


class OneFactor(Covariance):
    """I + v v', as a user writes it: the questions that have no default."""

    def __init__(self, v: ArrayLike) -> None:
        self._v = as_floats(v, "v").copy()
        self.size = self._v.size

    def diagonal(self) -> Array:
        return 1.0 + self._v**2

    def column(self, k: int) -> Array:
        column = self._v * self._v[k]
        column[k] += 1.0
        return column

    def matvec(self, c: Array) -> Array:
        return c + np.multiply.outer(self._v, self._v @ c)

    def solve(self, b: Array) -> Array:
        return b - np.multiply.outer(self._v, self._v @ b) / (1.0 + self._v @ self._v)

    def eigenvalues(self) -> Array:
        values = np.ones(self.size)
        values[-1] += self._v @ self._v
        return values

    def color(self, z: Array) -> Array:
        length = float(self._v @ self._v)
        return z + (np.sqrt(1.0 + length) - 1.0) / length * np.multiply.outer(self._v, self._v @ z)

    def parameters(self) -> dict[str, Any]:
        return {"v": self._v}


V = np.linspace(0.5, 1.5, 7)


def test_an_operator_of_a_user_passes() -> None:
    """A ridge, too, or the reason why there is none."""
    assert set(check_covariance(OneFactor(V))) <= {"ridge"}


def test_one_stream_and_too_many() -> None:
    assert check_covariance(Diagonal([2.0])) == {"search": "a search needs at least two streams"}
    with pytest.raises(ValueError, match="the full matrix of 5000 streams is too large: check at most 2000"):
        check_covariance(AR1(5000, 0.5))
    assert check_covariance(AR1(9, 0.5), skip={"sample": "long"}) == {"sample": "long"}


class WrongQuad(OneFactor):
    def quad(self, c: Array) -> float:
        return 1.01 * super().quad(c)


class WrongSolve(OneFactor):
    def solve(self, b: Array) -> Array:
        return super().solve(b) * 2.0


class WrongColumn(OneFactor):
    def column(self, k: int) -> Array:
        return super().column(abs(k))

    def dense(self) -> Array:
        return np.eye(self.size) + np.outer(self._v, self._v)


class Descending(OneFactor):
    def eigenvalues(self) -> Array:
        return super().eigenvalues()[::-1]


class HalfNoise(OneFactor):
    def sample(self, rng: np.random.Generator, size: int | None = None) -> Array:
        return super().sample(rng, size) / 2.0


class OwnNoise(OneFactor):
    def sample(self, rng: np.random.Generator, size: int | None = None) -> Array:  # noqa: ARG002
        return super().sample(np.random.default_rng(), size)


class Greedy(OneFactor):
    def matvec(self, c: Array) -> Array:
        c += np.multiply.outer(self._v, self._v @ c)
        return c


class Open(OneFactor):
    """Hands out its own memory."""

    def diagonal(self) -> Array:
        return self._v

    def dense(self) -> Array:
        return np.diag(self._v)


class Truncating(OneFactor):
    def matvec(self, c: Array) -> Array:
        return super().matvec(c[: self.size])


class Forgetful(OneFactor):
    def parameters(self) -> dict[str, Any]:
        return {"v": self._v + 1.0}


class Indefinite(OneFactor):
    def dense(self) -> Array:
        return super().dense() - 2.0 * np.eye(self.size)


BROKEN: dict[type[OneFactor], tuple[str, str]] = {
    WrongQuad: ("quad", r"quad of 1 nonzero weights differs from c'S c: [\d.]+ instead of [\d.]+"),
    WrongSolve: ("solve", r"solve of shape \(7,\) differs from S\^-1 b: \S+ instead of \S+ at \d"),
    WrongColumn: ("column", r"column\(-1\) differs from that of dense\(\): \S+ instead of \S+ at \d"),
    Descending: ("eigenvalues", r"eigenvalues\(\) differ from those of dense\(\): [\d.]+ instead of [\d.]+ at 0"),
    HalfNoise: (
        "sample",
        r"the covariance of 2000 samples is beyond 6 standard errors: .* instead of .* at \(\d, \d\)",
    ),
    OwnNoise: ("sample", r"sample must draw from the generator alone: the same seed gave other numbers: .*"),
    Greedy: ("inputs", r"matvec changed its input: .* instead of .* at \d"),
    Open: ("inputs", r"writing into a result changed the operator: return copies or read-only: 0.0 instead of .*"),
    Truncating: ("shapes", "matvec must refuse a vector of 8 numbers for 7 streams, but it is accepted"),
    Forgetful: ("parameters", r"the operator built again from parameters\(\) is another one: .* at \(\d, \d\)"),
    Indefinite: ("dense", r"dense\(\) must be positive definite, but its smallest eigenvalue is -1"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_operator_fails_with_what_is_wrong(kind: type[OneFactor]) -> None:
    name, message = BROKEN[kind]
    with pytest.raises(CheckFailure, match=f"^{message}$"):
        dict(covariance_checks())[name](kind(V))
    with pytest.raises(AssertionError):
        check_covariance(kind(V))


def test_wrong_lengths_are_refused_by_our_own() -> None:
    """Not read as several columns, nor cut off."""
    for cov in (AR1(4, 0.5), AR1(1, 0.5), Diagonal(np.ones(4))):
        for operation in (cov.matvec, cov.solve, cov.color, cov.quad):
            with pytest.raises(ValueError, match="8 values for"):
                operation(np.ones(8))


class Matrix(Covariance):
    """Any matrix, taken at its word."""

    def __init__(self, S: ArrayLike) -> None:
        self._S = np.asarray(S, dtype=float)
        self.size = len(self._S)

    def dense(self) -> Array:
        return self._S.copy()

    def diagonal(self) -> Array:
        return self._S.diagonal().copy()

    def column(self, k: int) -> Array:
        return self._S[:, k].copy()

    def matvec(self, c: Array) -> Array:
        return self._S @ c

    def solve(self, b: Array) -> Array:
        return np.linalg.solve(self._S, b)

    def eigenvalues(self) -> Array:
        return np.linalg.cholesky(self._S).diagonal()  # refuses what is not positive definite

    def color(self, z: Array) -> Array:
        return np.linalg.cholesky(self._S) @ z

    def parameters(self) -> dict[str, Any]:
        return {"S": self._S}


NO_COVARIANCE: dict[str, tuple[Any, str]] = {
    "not symmetric": ([[1.0, 0.5], [0.0, 1.0]], r"dense\(\) must be symmetric: 0.5 instead of 0.0 at \(0, 1\)"),
    "indefinite": ([[1.0, 2.0], [2.0, 1.0]], r"dense\(\) must be positive definite, but its smallest eigenvalue is -1"),
    "NaN": ([[1.0, np.nan], [np.nan, 1.0]], r"dense\(\) must be finite, but it holds NaN or infinite numbers"),
    "not square": (np.ones((2, 3)), r"dense\(\) has shape \(2, 3\), but size 2 means \(2, 2\)"),
}


@pytest.mark.parametrize("name", NO_COVARIANCE)
def test_a_matrix_that_is_no_covariance_is_called_what_it_is(name: str) -> None:
    """Although its eigenvalues cannot be had."""
    matrix, message = NO_COVARIANCE[name]
    with pytest.raises(CheckFailure, match=f"^{message}$"):
        check_covariance(Matrix(matrix))


@pytest.mark.parametrize("thing", ["toeplitz", None, 5, np.eye(3), object(), AR1])
def test_what_is_no_operator_is_one_line(thing: Any) -> None:
    with pytest.raises(CheckFailure, match=r"^this is no covariance operator: '\w+' has no \w+$"):
        check_covariance(thing)


@pytest.mark.parametrize("size", [0, True, 2.5, None, "3"])
def test_a_size_that_is_none(size: Any) -> None:
    operator = Matrix(np.eye(3))
    operator.size = size
    with pytest.raises(CheckFailure, match=r"^size must be a whole number of at least 1, not "):
        check_covariance(operator)
