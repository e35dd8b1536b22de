"""Sets of streams: which are possible, and many weighted ones at once."""

from eccaht.sets.hypotheses import Hypotheses
from eccaht.sets.sizes import Sizes

__all__ = ["Hypotheses", "Sizes"]
