"""Measurement designs: which weights to give the streams."""

from eccaht.measure.information import InformationDesign
from eccaht.measure.pair import Design, PairDesign, pair_design
from eccaht.measure.restricted import Coordinates, Difference, Tree, single_stream

__all__ = [
    "Coordinates",
    "Design",
    "Difference",
    "InformationDesign",
    "PairDesign",
    "Tree",
    "pair_design",
    "single_stream",
]
