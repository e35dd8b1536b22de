"""Measurement designs: which weights to give the streams.

A design picks the contrast that tells most; the constraint of its `Problem` (`eccaht.measurements`) solves for it.
"""

from eccaht.measure.available import Mask, alone
from eccaht.measure.information import InformationDesign
from eccaht.measure.pair import Coordinates, Difference, PairDesign, PairToWeights, Tree, pair_design, single_stream
from eccaht.measure.spread import SpreadDesign

__all__ = [
    "Coordinates",
    "Difference",
    "InformationDesign",
    "Mask",
    "PairDesign",
    "PairToWeights",
    "SpreadDesign",
    "Tree",
    "alone",
    "pair_design",
    "single_stream",
]
