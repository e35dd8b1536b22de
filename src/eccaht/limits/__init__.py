"""Information limits: how few measurements any search could need (docs/limits.md)."""

from eccaht.limits.entropy import EntropyBound, entropy_bound
from eccaht.limits.rates import Rate, diagonal_rate, gamma_star, gamma_stars, least_measurements
from eccaht.limits.summary import Limits, limits
from eccaht.limits.swaps import fewest_measurements, swap_rate

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
