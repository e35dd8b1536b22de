"""Measurement designs: which weights to give the streams.

A design picks the most informative contrast; the constraint of its `Problem` (`eccaht.measurements`) solves for it.
"""

from eccaht.base.arrays import Mask
from eccaht.streams.designs.information import InformationDesign
from eccaht.streams.designs.pair import (
    Coordinates,
    Difference,
    PairDesign,
    PairToWeights,
    Tree,
    alone,
    pair_design,
    single_stream,
)
from eccaht.streams.designs.spread import SpreadDesign

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
