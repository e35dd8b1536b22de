"""Information limits: how few measurements any search could need (docs/limits.md)."""

from eccaht.limits.entropy import EntropyBound, entropy_bound
from eccaht.limits.rates import Rate, diagonal_rate, gamma_star, gamma_stars, least_measurements
from eccaht.limits.summary import Limits, limits

__all__ = [
    "EntropyBound",
    "Limits",
    "Rate",
    "diagonal_rate",
    "entropy_bound",
    "gamma_star",
    "gamma_stars",
    "least_measurements",
    "limits",
]
