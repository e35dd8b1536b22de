"""Information limits: how few measurements any search could need (docs/explanation/limits.md)."""

from eccaht.streams.limits.design import MixtureDesign, mixture_design
from eccaht.streams.limits.rates import (
    Rate,
    diagonal_rate,
    gamma_star,
    gamma_stars,
    least_measurements,
)
from eccaht.streams.limits.summary import EntropyBound, Limits, entropy_bound, limits

__all__ = [
    "EntropyBound",
    "Limits",
    "MixtureDesign",
    "Rate",
    "diagonal_rate",
    "entropy_bound",
    "gamma_star",
    "gamma_stars",
    "least_measurements",
    "limits",
    "mixture_design",
]
