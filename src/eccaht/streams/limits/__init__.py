"""Information limits: how few measurements any search could need (docs/explanation/limits.md)."""

from eccaht.streams.limits.rates import (
    Rate,
    diagonal_rate,
    fewest_measurements,
    gamma_star,
    gamma_stars,
    least_measurements,
    swap_rate,
)
from eccaht.streams.limits.summary import EntropyBound, Limits, entropy_bound, limits

__all__ = [
    "EntropyBound",
    "Limits",
    "Rate",
    "diagonal_rate",
    "entropy_bound",
    "fewest_measurements",
    "gamma_star",
    "gamma_stars",
    "least_measurements",
    "limits",
    "swap_rate",
]
