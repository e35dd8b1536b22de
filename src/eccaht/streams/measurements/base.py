"""The interface of a constraint on the weights of measurements."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

from eccaht.base.arrays import Array, Index
from eccaht.streams.covariance import Covariance
from eccaht.streams.measurements.region import Region


class NotShown(ValueError):
    """No allowed measurement shows a contrast, or tells two streams apart."""


class Design(NamedTuple):
    """The best allowed measurement of a contrast D, which is zero but for `values` at `indices`.

    weights: (K,), allowed as they are; under an L1 budget |weights|_1 = budget.
    budget_active: whether the constraint kept the noise from being cancelled further.
    violation: works out `kkt_residual` when it is asked for.
    noise: standard deviation of what the instrument adds to a reading.
    ceiling: of information, where the weights may not be the best ones.
    """

    covariance: Covariance
    indices: Index
    values: Array
    weights: Array
    budget_active: bool = True
    violation: Callable[[], float] = float  # float() is 0
    noise: float = 0.0
    ceiling: float | None = None

    def __repr__(self) -> str:
        used, size = int((self.weights != 0).sum()), len(self.weights)
        return f"Design({used} of {size} weights, information {self.information:.4g} nats)"

    @property
    def information(self) -> float:
        """Nats that one reading gives between means that differ by D: (c'D)^2 / (2 c'S c) (paper, eq. 1).

        The noise variance c'S c and that of the instrument add up.
        """
        signal = float(self.values @ self.weights[self.indices])
        return 0.5 * signal**2 / (self.covariance.quad(self.weights) + self.noise**2)  # eq. 1

    @property
    def bound(self) -> float:
        """What no allowed measurement exceeds, in nats; reached where the allowed weights are convex."""
        return self.information if self.ceiling is None else max(self.ceiling, self.information)

    @property
    def gap(self) -> float:
        """The share of `bound` that is not reached: 0 where the allowed weights are convex, up to `kkt_residual`."""
        return max(0.0, 1.0 - self.information / self.bound)

    @property
    def unlimited(self) -> float:
        """Nats that a reading would give if all weights were allowed and the instrument had no noise: D'S^-1 D / 2."""
        z = self.covariance.solve_sparse(self.indices, self.values)
        return 0.5 * float(self.values @ z[self.indices])  # eq. 1 at its largest, c = S^-1 D

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
    def reshapes(self) -> bool:
        """Are designs for many sets iterated under it, since its weights may be far from S^-1 D?"""
        return False

    @property
    def noise(self) -> float | None:
        """The standard deviation of the instrument's own noise, where the constraint says so."""
        return None

    def with_noise(self, noise: float) -> Constraint:  # noqa: ARG002
        """The same constraint for an instrument of this noise; as it is where designs do not look at it."""
        return self

    def check_streams(self, size: int) -> None:  # noqa: B027
        """Refuse a number of streams for which nothing is allowed."""

    lasting: ClassVar[bool] = False  # a contrast has the same weights at any time: searches keep them

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
    def contrast(self, covariance: Covariance, indices: Index, values: Array) -> Design:
        """Solve for the contrast D that is zero but for `values` at the distinct `indices`.

        The weights maximise (c'D)^2 / c'S c over all that are allowed (paper, eq. 2): either sign of c'D will do. A
        contrast that no allowed measurement shows is a ValueError.
        """

    def check_pair(self, shifts: Array, labels: tuple[str, str]) -> None:  # noqa: B027
        """Refuse a problem in which two streams of these shifts cannot be separated, before the search starts."""

    def check_pairs(self, shift: Array, label: Callable[[int], str]) -> None:  # noqa: B027
        """Refuse a problem in which some two streams cannot be separated, before the search starts."""

    def __and__(self, other: Constraint) -> Constraint:
        """Both hold; for the constraints of eccaht."""
        from eccaht.streams.measurements.combined import Combined

        return Combined(self, other)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def beyond(self, c: Array) -> str:  # noqa: ARG002
        """The message about weights that are not allowed."""
        return f"a reading has weights that {self!r} does not allow"


class Limited(Constraint):
    """|c|_1 <= limit, all of which may be on one stream and which every measurement uses up."""

    limit: float

    @property
    def largest_weight(self) -> float:
        return self.limit

    def narrow(self, region: Region) -> None:
        """Take away what is not allowed."""
        region.norm = min(region.norm, self.limit)
