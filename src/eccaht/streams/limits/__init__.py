"""Information limits: how few measurements any search could need (docs/explanation/limits.md)."""

from eccaht.streams.limits.design import MixtureDesign, mixture_design
from eccaht.streams.limits.optimal import OptimalSearch, fewest_readings, optimal_search, optimal_searches
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
    "MixtureDesign",
    "OptimalSearch",
    "Rate",
    "diagonal_rate",
    "entropy_bound",
    "fewest_measurements",
    "fewest_readings",
    "gamma_star",
    "gamma_stars",
    "least_measurements",
    "limits",
    "mixture_design",
    "optimal_search",
    "optimal_searches",
    "swap_rate",
]
