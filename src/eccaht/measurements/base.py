"""The interface of a constraint on the weights of measurements."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from eccaht.arrays import Array, Index
from eccaht.covariance import Covariance


class Design(NamedTuple):
    """The least noisy allowed measurement of a contrast D, which is zero but for `values` at `indices`.

    weights: (K,), allowed as they are; under an L1 budget |weights|_1 = budget.
    budget_active: whether the constraint kept the noise from being cancelled further.
    violation: works out `kkt_residual` when it is asked for.
    """

    covariance: Covariance
    indices: Index
    values: Array
    weights: Array
    budget_active: bool = True
    violation: Callable[[], float] = float  # float() is 0

    @property
    def information(self) -> float:
        """Nats that one reading gives between means that differ by D: (c'D)^2 / (2 c'S c) (paper, eq. 1)."""
        signal = float(self.values @ self.weights[self.indices])
        return 0.5 * signal**2 / self.covariance.quad(self.weights)

    @property
    def kkt_residual(self) -> float:
        """Largest violation of the optimality conditions, relative; 0 where the constraint does not say."""
        return self.violation()


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
    ...         return Design(covariance, indices, values, weights, budget_active=False)
    >>> from eccaht import Problem, pair_design
    >>> pair_design(Problem(np.eye(3), shift=1.0, n_anomalies=1, measurements=Short()), 0, 1).weights.round(3)
    array([ 0.707, -0.707,  0.   ])
    """

    @property
    def largest_weight(self) -> float:
        """The largest weight that a stream may have; infinite where that is not known."""
        return math.inf

    @property
    def usual_norm(self) -> float:
        """The |c|_1 to which weighted sums are scaled that are shown but were not measured."""
        return 1.0

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
    def contrast(self, covariance: Covariance, indices: Index, values: Array) -> Design:
        """Solve for the contrast D that is zero but for `values` at the distinct `indices`.

        The weights maximise (c'D)^2 / c'S c over all that are allowed (paper, eq. 2): either sign of c'D will do. A
        contrast that no allowed measurement shows is a ValueError.
        """

    def recalled(self, covariance: Covariance, indices: Index, values: Array) -> Design:
        """Solve as `contrast` does; a search asks for the same pairs again, so answers may be cached here."""
        return self.contrast(covariance, indices, values)

    def check_pair(self, shifts: Array, labels: tuple[str, str]) -> None:  # noqa: B027
        """Refuse a problem in which two streams of these shifts cannot be separated, before the search starts."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def beyond(self, c: Array) -> str:  # noqa: ARG002
        """The message about weights that are not allowed."""
        return f"weights were told that {self!r} does not allow"
