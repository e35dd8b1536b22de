"""A user's own operator passes; broken ones fail with the operation that is wrong."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from eccaht.base.arrays import Array, as_floats
from eccaht.checks import CheckFailure, check_covariance
from eccaht.checks.covariance import CHECKS
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
    assert check_covariance(OneFactor(V)) == {}


def test_one_stream_and_too_many() -> None:
    assert check_covariance(Diagonal([2.0])) == {}
    with pytest.raises(ValueError, match="2000"):
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
        return super().matvec(c)[:-1]


class Cutting(OneFactor):
    def matvec(self, c: Array) -> Array:
        return super().matvec(c[: self.size])


class Forgetful(OneFactor):
    def parameters(self) -> dict[str, Any]:
        return {"v": self._v + 1.0}


class Indefinite(OneFactor):
    def dense(self) -> Array:
        return super().dense() - 2.0 * np.eye(self.size)


class Lopsided(OneFactor):
    def dense(self) -> Array:
        return super().dense() + 0.1 * np.tri(self.size)


class Unknown(OneFactor):
    def dense(self) -> Array:
        return np.full((self.size, self.size), np.nan)


class WrongColor(OneFactor):
    def color(self, z: Array) -> Array:
        return 2.0 * super().color(z)


class Loose(OneFactor):
    """Its variances given the others are too large."""

    def least_variances(self) -> Array:
        return 2.0 * self.diagonal()


BROKEN: list[tuple[str, str, type[OneFactor]]] = [  # the check, a word of its message, and what is broken
    ("dense", "definite", Indefinite),
    ("dense", "symmetric", Lopsided),
    ("dense", "finite", Unknown),
    ("diagonal", "least_variances", Loose),
    ("column", r"column\(-1\)", WrongColumn),
    ("matvec", "shape", Truncating),
    ("quad", "quad", WrongQuad),
    ("solve", "solve", WrongSolve),
    ("eigenvalues", "at 0", Descending),
    ("color", "color", WrongColor),
    ("sample", "errors off", HalfNoise),
    ("sample", "same seed", OwnNoise),
    ("inputs", "its input", Greedy),
    ("inputs", "writing", Open),
    ("inputs", "refuse", Cutting),
    ("parameters", "another", Forgetful),
]


@pytest.mark.parametrize(("check", "word", "kind"), BROKEN)
def test_a_broken_operator_fails_with_what_is_wrong(check: str, word: str, kind: type[OneFactor]) -> None:
    with pytest.raises(CheckFailure, match=f"^.*{word}.*$"):
        CHECKS[check](kind(V))
