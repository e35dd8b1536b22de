"""A matrix becomes an operator."""

from __future__ import annotations

from numpy.typing import ArrayLike

from eccaht.covariance.base import Covariance
from eccaht.covariance.dense import Dense


def as_covariance(value: Covariance | ArrayLike) -> Covariance:
    """Return an operator as it is and a matrix as `Dense`."""
    if isinstance(value, Covariance):
        return value
    if hasattr(value, "matvec"):
        raise ValueError(
            f"{type(value).__name__} is no covariance operator: derive it from eccaht.covariance.Covariance"
        )
    return Dense(value)
