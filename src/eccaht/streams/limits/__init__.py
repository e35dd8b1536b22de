"""Information limits: how few measurements any search could need (docs/explanation/limits.md)."""

from eccaht.streams.limits.rates import (
    MixtureDesign as MixtureDesign,
    Rate as Rate,
    gamma_star as gamma_star,
    least_measurements as least_measurements,
    mixture_design as mixture_design,
)
