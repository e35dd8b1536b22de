"""Measurement designs: which weights to give the streams."""

from eccaht.design.coordinates import Coordinates, single_stream
from eccaht.design.difference import Difference
from eccaht.design.information import InformationDesign
from eccaht.design.pair import Design, PairDesign, forget_designs, pair_design
from eccaht.design.tree import Tree

__all__ = [
    "Coordinates",
    "Design",
    "Difference",
    "InformationDesign",
    "PairDesign",
    "Tree",
    "forget_designs",
    "pair_design",
    "single_stream",
]
