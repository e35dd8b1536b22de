"""Constraints on the weights of a measurement: the public name of `eccaht.streams.measurements`."""

from eccaht.streams.measurements import *
from eccaht.streams.measurements import __all__ as __all__
