"""What is known before the first measurement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eccaht.arrays import Array, Index, as_count, as_floats, as_positive, as_vector, support_of
from eccaht.covariance import Covariance, as_covariance


class Problem:
    """K streams of known covariance, `n_anomalies` of which have their mean moved by their `shift`.

    A measurement c gives y ~ N(c'mean + sum over anomalous k of shift_k c_k, c'S c), with |c|_1 <= budget
    (SPEC section 1; paper, section 3.1). Immutable, and checked once: what holds a Problem trusts it.

    covariance: a (K, K) matrix or an operator of `eccaht.covariance`.
    shift: one value or one per stream, of either sign, never 0.
    mean: nominal mean, one value or one per stream.
    names: K distinct names; errors and reports use them.

    >>> problem = Problem(np.eye(4), shift=[3, -3, 2, 2], n_anomalies=1, budget=2.0, names=list("abcd"))
    >>> problem.size, problem.label(1)
    (4, "'b'")
    """

    __slots__ = ("_last", "budget", "covariance", "mean", "n_anomalies", "names", "shift")

    covariance: Covariance
    shift: Array
    n_anomalies: int
    budget: float
    mean: Array
    names: tuple[str, ...] | None
    _last: tuple[Array | None, float]

    def __init__(
        self,
        covariance: Covariance | ArrayLike,
        *,
        shift: ArrayLike,
        n_anomalies: int,
        budget: float,
        mean: ArrayLike = 0.0,
        names: Sequence[str] | None = None,
    ) -> None:
        operator = as_covariance(covariance)
        values: dict[str, Any] = {
            "covariance": operator,
            "shift": _checked_shift(shift, operator.size),
            "n_anomalies": _checked_number(n_anomalies, operator.size),
            "budget": as_positive(budget, "budget"),
            "mean": as_vector(mean, operator.size, "mean"),
            "names": _checked_names(names, operator.size),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_last", (None, 0.0))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a Problem is immutable: use replace({name}=...) to get another one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Problem is immutable")

    @property
    def size(self) -> int:
        """The number of streams K."""
        return self.covariance.size

    def replace(self, **changes: Any) -> Problem:
        """Return the same problem with some arguments changed."""
        return _rebuild(self._arguments() | changes)

    def label(self, k: int) -> str:
        """How messages call stream k."""
        return str(k) if self.names is None else repr(self.names[k])

    def noise_variance(self, c: Array) -> float:
        """c'S c; remembered for the last read-only c, which world and policy both ask for."""
        last, variance = self._last
        if c is last:
            return variance
        variance = self.covariance.quad(c)
        if c.flags.owndata and not c.flags.writeable:
            object.__setattr__(self, "_last", (c, variance))
        return variance

    def expected(self, c: Array, anomalies: Index | Sequence[int] = ()) -> float:
        """The mean reading of measurement c when the given streams are anomalous."""
        support = support_of(c)
        which = np.asarray(anomalies, dtype=np.intp)
        return float(c[support] @ self.mean[support] + c[which] @ self.shift[which])

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to other processes as arguments."""
        return _rebuild, (self._arguments(),)

    def _arguments(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__ if name != "_last"}

    def __repr__(self) -> str:
        return f"Problem({self.covariance!r}, n_anomalies={self.n_anomalies}, budget={self.budget:g})"


def _rebuild(arguments: dict[str, Any]) -> Problem:
    return Problem(arguments.pop("covariance"), **arguments)


def _checked_shift(shift: ArrayLike, size: int) -> Array:
    values = as_floats(shift, "shift")
    zero = np.flatnonzero(values == 0)
    if zero.size:
        raise ValueError(f"shift of stream {zero[0]} is 0: an anomaly there is invisible; give it a size or drop it")
    return as_vector(values, size, "shift")


def _checked_number(n: int, size: int) -> int:
    number = as_count(n, "n_anomalies", least=1)
    if number >= size:
        raise ValueError(f"n_anomalies = {number} must be smaller than the number of streams, {size}")
    return number


def _checked_names(names: Sequence[str] | None, size: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        raise ValueError("names must be a list of strings")
    if len(names) != size:
        raise ValueError(f"{len(names)} names for {size} streams: give each stream one name")
    if len(set(names)) != size:
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise ValueError(f"name {twice!r} is used twice: stream names must be distinct")
    return tuple(names)
