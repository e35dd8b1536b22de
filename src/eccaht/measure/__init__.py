"""Measurement designs: which weights to give the streams."""

from eccaht.measure.coordinates import Coordinates, single_stream
from eccaht.measure.difference import Difference
from eccaht.measure.information import InformationDesign
from eccaht.measure.pair import Design, PairDesign, pair_design
from eccaht.measure.tree import Tree

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
