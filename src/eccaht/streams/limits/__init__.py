"""Information limits: how few measurements any search could need (docs/limits.md)."""

from eccaht.streams.limits.entropy import EntropyBound, entropy_bound
from eccaht.streams.limits.rates import Rate, diagonal_rate, gamma_star, gamma_stars, least_measurements
from eccaht.streams.limits.summary import Limits, limits
from eccaht.streams.limits.swaps import fewest_measurements, swap_rate

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
