"""What weights a measurement may have, and the best allowed ones for a contrast.

A constraint is part of a `Problem`, which knows nothing of designs: which contrast to measure next is `eccaht.measure`.

`Problem(..., budget=4.0)` is short for `Problem(..., measurements=Budget(4.0))`. One's own constraint is a subclass
of `Constraint`: see there.
"""

from eccaht.measurements.base import Constraint, Design
from eccaht.measurements.budget import Budget, Unlimited, forget_designs

__all__ = ["Budget", "Constraint", "Design", "Unlimited", "forget_designs"]
