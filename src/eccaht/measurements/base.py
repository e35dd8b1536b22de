"""What a constraint on the weights of measurements can be asked."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol

from eccaht.arrays import Array, Index
from eccaht.covariance import Covariance


class Solution(Protocol):
    """The least noisy allowed measurement of a contrast."""

    @property
    def weights(self) -> Array:
        """The measurement c, (K,), allowed as it is."""

    @property
    def information(self) -> float:
        """Nats that one reading gives between means that differ by the contrast D: (c'D)^2 / (2 c'S c) (eq. 1)."""

    @property
    def active(self) -> bool:
        """Did the constraint keep the noise from being cancelled further?"""

    @property
    def kkt_residual(self) -> float:
        """How far from optimal the weights are, relative: 0 at the optimum."""


class Solved(NamedTuple):
    """A solution by its weights, for the contrast D that is zero but for `values` at `indices`."""

    covariance: Covariance
    indices: Index
    values: Array
    weights: Array
    active: bool = True
    kkt_residual: float = 0.0

    @property
    def information(self) -> float:
        """(c'D)^2 / (2 c'S c) (eq. 1)."""
        signal = float(self.values @ self.weights[self.indices])
        return 0.5 * signal**2 / self.covariance.quad(self.weights)


class Constraint(ABC):
    """What weights are allowed. A subclass needs `allows`, `scaled` and `contrast`.

    >>> import numpy as np
    >>> class Short(Constraint):
    ...     "|c|_2 <= 1, which limits the size of a measurement but not its direction."
    ...     def allows(self, c):
    ...         return bool(np.linalg.norm(c) <= 1.0 + 1e-9)
    ...     def scaled(self, direction):
    ...         return direction / np.linalg.norm(direction)
    ...     def contrast(self, covariance, indices, values):
    ...         weights = self.scaled(covariance.solve_sparse(indices, values))
    ...         return Solved(covariance, indices, values, weights, active=False)
    >>> from eccaht import Problem, pair_design
    >>> pair_design(Problem(np.eye(3), shift=1.0, n_anomalies=1, measurements=Short()), 0, 1).weights.round(3)
    array([ 0.707, -0.707,  0.   ])
    """

    @property
    def largest_weight(self) -> float:
        """The largest weight that a stream may have; infinite where that is not known."""
        return math.inf

    @property
    def least_contrast(self) -> float:
        """Contrasts whose largest entry is below this are scaled up to it, where only their direction matters."""
        return 0.0

    @abstractmethod
    def allows(self, c: Array) -> bool:
        """Is c allowed, up to rounding?"""

    @abstractmethod
    def scaled(self, direction: Array) -> Array:
        """Return the largest allowed multiple of a direction; a ValueError if none is allowed."""

    @abstractmethod
    def contrast(self, covariance: Covariance, indices: Index, values: Array) -> Solution:
        """Solve for the contrast D that is zero but for `values` at the distinct `indices`.

        The weights maximise (c'D)^2 / c'S c over all that are allowed (paper, eq. 2): either sign of c'D will do. A
        contrast that no allowed measurement shows is a ValueError.
        """

    def recalled(self, covariance: Covariance, indices: Index, values: Array) -> Solution:
        """Solve as `contrast` does; a search comes back to the same pairs, so answers may be remembered here."""
        return self.contrast(covariance, indices, values)

    def check_pair(self, shifts: Array, labels: tuple[str, str]) -> None:  # noqa: B027
        """Refuse a problem in which two streams of these shifts cannot be separated, before the search starts."""

    def beyond(self, c: Array) -> str:  # noqa: ARG002
        """What to say of weights that are not allowed."""
        return f"weights were told that {self!r} does not allow"
