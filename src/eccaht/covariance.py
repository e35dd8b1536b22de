"""Covariance operators and families: the public name of `eccaht.streams.covariance`."""

from eccaht.streams.covariance import *
from eccaht.streams.covariance import __all__ as __all__
