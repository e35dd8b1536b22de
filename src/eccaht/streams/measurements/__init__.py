"""What weights a measurement may have, and the best allowed ones for a contrast (docs/how-to/instruments.md).

A constraint is part of a `Problem`, which knows nothing of designs: the contrast to measure next is `streams.designs`.

`Problem(..., budget=4.0)` is short for `Problem(..., measurements=Budget(4.0))`. Constraints combine by `&`:
`Readout(1.0, 0.3) & NonNegative() & AtMost(3)`. One's own constraint is a subclass of `Constraint`: see there.
"""

from eccaht.streams.measurements.base import Constraint, Design, NotShown
from eccaht.streams.measurements.budget import Budget, Unlimited
from eccaht.streams.measurements.combined import Combined, Rule
from eccaht.streams.measurements.rules import (
    AtMost,
    Available,
    Box,
    Levels,
    Noise,
    NonNegative,
    OneOf,
    OnePerGroup,
    Readout,
)

__all__ = [
    "AtMost",
    "Available",
    "Box",
    "Budget",
    "Combined",
    "Constraint",
    "Design",
    "Levels",
    "Noise",
    "NonNegative",
    "NotShown",
    "OneOf",
    "OnePerGroup",
    "Readout",
    "Rule",
    "Unlimited",
]
