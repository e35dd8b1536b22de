"""Sets of streams: which are possible, and many weighted ones at once."""

from eccaht.sets.hypotheses import Hypotheses
from eccaht.sets.prior import SetPrior

__all__ = ["Hypotheses", "SetPrior"]
