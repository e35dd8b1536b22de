"""Measurement designs: which weights to give the streams.

A design picks the contrast that tells most; the constraint of its `Problem` (`eccaht.measurements`) solves for it.
"""

from eccaht.measure.information import InformationDesign
from eccaht.measure.pair import Coordinates, Difference, PairDesign, Tree, pair_design, single_stream

__all__ = ["Coordinates", "Difference", "InformationDesign", "PairDesign", "Tree", "pair_design", "single_stream"]
