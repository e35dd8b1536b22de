"""A matrix becomes an operator."""

from __future__ import annotations

from numpy.typing import ArrayLike

from eccaht.covariance.base import Covariance
from eccaht.covariance.dense import Dense


def as_covariance(value: Covariance | ArrayLike) -> Covariance:
    """Return an operator as it is and a matrix as `Dense`."""
    return value if isinstance(value, Covariance) else Dense(value)
